# SPDX-License-Identifier: MIT
"""A point of a space as a link and a workload, and each of its policies as a plan of its own."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

from ackwise import plans
from ackwise.errors import InputError
from ackwise.plans import Link, Plan, Workload, schema
from ackwise.plans.policy import PolicyChoice
from ackwise.sweeps.axis import Value
from ackwise.sweeps.draw import Point
from ackwise.sweeps.keys import DERIVED, Varied
from ackwise.sweeps.space import Candidate, Space, own_axes, with_parameters

Part = TypeVar("Part", Link, Workload)


@dataclass(frozen=True)
class Conditions:
    """What a point stands for."""

    link: Link
    workload: Workload
    policies: Mapping[str, Mapping[str, int]]  # drawn parameters by policy


def place(space: Space, point: Point) -> Conditions:
    """The link and workload at a point. Raises InputError if its values do not fit together."""
    given = {axis.varied.name: value for axis, value in zip(space.axes, point, strict=True)}
    link = _named(space.links, given.get("link"))
    workload = _named(space.workloads, given.get("workload"))
    shape = copy.deepcopy(link.scenario)
    whole: dict[str, Any] = {
        "duration_ns": workload.duration_ns,
        "ping_interval_ns": workload.ping_interval_ns,
    }
    groups = copy.deepcopy(workload.groups)
    policies: dict[str, dict[str, int]] = {}
    for axis, value in zip(space.axes, point, strict=True):
        match axis.varied.path:
            case ("link", *path) if path:
                _put(shape, path, value, f"{space.file}: vary: {axis.varied.name}")
            case ("workload", key):
                whole[key] = value
            case ("flows", *path):
                _put_in_flows(groups, path, value, axis.varied)
            case ("policy", name, parameter):
                policies.setdefault(name, {})[parameter] = int(value)
    for derived in DERIVED:
        if derived.name in given:
            _DERIVE[derived.name](shape, given[derived.name], space.file)
    return Conditions(
        replace(link, scenario=shape), replace(workload, groups=groups, **whole), policies
    )


def _named(parts: Sequence[Part], name: Value | None) -> Part:
    """The one that varies to `name`, or the only one."""
    return next((part for part in parts if part.name == name), parts[0])


def _put(table: dict[str, Any], path: list[str], value: Value, where: str) -> None:
    for name in path[:-1]:
        if name not in table and name in _WITH_DEFAULTS:
            table[name] = {}
        if name not in table:
            raise InputError(f"{where}: the link has no table [{name}]; add it to the link's file")
        table = table[name]
    table[path[-1]] = value


# Tables of a link that may be absent and of which every key has a default.
_WITH_DEFAULTS = ("client", "server")


def _put_in_flows(
    groups: list[dict[str, Any]], path: list[str], value: Value, varied: Varied
) -> None:
    """The value in every group; a key of an application in those that have such a one."""
    for group in groups:
        if path[0] == "app" and path[1] not in _keys_of_app(group["app"]["kind"]):
            continue
        table = group
        for name in path[:-1]:
            table = table.setdefault(name, {})
        table[path[-1]] = value


@cache
def _keys_of_app(kind: str) -> frozenset[str]:
    return frozenset(key.engine_name for key in schema.keys_of(f"app.{kind}"))


# --- keys that stand for several ------------------------------------------------------------------


def _rtt_ns(shape: Mapping[str, Any]) -> int:
    """Of the empty path; a packet crosses the access links of both hosts in each direction."""
    return int(shape["down"]["delay_ns"] + shape["up"]["delay_ns"] + _access_ns(shape))


def _access_ns(shape: Mapping[str, Any]) -> int:
    access = shape.get("access")
    return 4 * int(access["delay_ns"]) if access else 0


def _set_rtt(shape: dict[str, Any], rtt_ns: Value, where: str) -> None:
    rest = int(rtt_ns) - _access_ns(shape)
    if rest < 0:
        raise InputError(
            f"{where}: vary: rtt: {rtt_ns} ns is less than the {_access_ns(shape)} ns that the "
            "access links take; give more, or a shorter delay in [access]"
        )
    shape["up"]["delay_ns"] = rest // 2
    shape["down"]["delay_ns"] = rest - rest // 2


def _set_asymmetry(shape: dict[str, Any], ratio: Value, _where: str) -> None:
    shape["up"]["rate_bps"] = max(1, round(shape["down"]["rate_bps"] / float(ratio)))


def _set_queues(shape: dict[str, Any], products: Value, _where: str) -> None:
    packet = shape["mtu_bytes"] + shape.get("link_overhead_bytes", 0)
    for side in ("down", "up"):
        product = shape[side]["rate_bps"] * _rtt_ns(shape) / 8e9
        shape[side]["queue_bytes"] = max(packet, round(float(products) * product))
        shape[side]["queue_packets"] = 0


_DERIVE = {"rtt": _set_rtt, "asymmetry": _set_asymmetry, "queue_bdp": _set_queues}


# --- policies at a point --------------------------------------------------------------------------


def plan_at(space: Space, number: int, where: Conditions, candidate: Candidate) -> Plan:
    """The one policy at the point of that number, as `ackwise compare` runs it."""
    chosen = policy_at(space, where, candidate.choice)
    return plans.build(
        title=space.title,
        source=space.source,
        file=space.file,
        links=[where.link],
        workloads=[where.workload],
        policies=[chosen],
        baseline=chosen.label,
        runs=space.runs,
        seed=space.seeds(number)[0],
        rails=space.rails,
        where=space.file,
    )


def policy_at(space: Space, where: Conditions, choice: PolicyChoice) -> PolicyChoice:
    """The policy with the parameters that were drawn for the point."""
    drawn = where.policies.get(choice.name, {})
    own = [axis.varied.path[2] for axis in own_axes(choice, space.policy_axes)]
    values = {name: drawn[name] for name in own if name in drawn}
    return with_parameters(choice, values, f"{space.file}: policies")
