# SPDX-License-Identifier: MIT
"""A point of a space as a link and a workload, and each of its policies as a separate plan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from ackwise import plans
from ackwise.engine.scenario import Channel, Scenario
from ackwise.errors import InputError
from ackwise.plans import Flows, Link, Plan, Workload
from ackwise.plans.policy import PolicyChoice
from ackwise.sweeps.axis import Value
from ackwise.sweeps.draw import Point
from ackwise.sweeps.keys import DERIVED
from ackwise.sweeps.space import Candidate, Space, own_axes, with_parameters

Part = TypeVar("Part", Link, Workload)
Table = TypeVar("Table", bound=Any)  # a table of a scenario


@dataclass(frozen=True)
class Conditions:
    """The conditions at a point."""

    link: Link
    workload: Workload
    policies: Mapping[str, Mapping[str, int]]  # drawn parameters by policy


def place(space: Space, point: Point) -> Conditions:
    """The link and workload at a point. Raises InputError if its values are incompatible."""
    given = {axis.varied.name: value for axis, value in zip(space.axes, point, strict=True)}
    link = _named(space.links, given.get("link"))
    workload = _named(space.workloads, given.get("workload"))
    shape = link.scenario
    whole: dict[str, Value] = {}
    flows = workload.flows
    policies: dict[str, dict[str, int]] = {}
    for axis, value in zip(space.axes, point, strict=True):
        match axis.varied.path:
            case ("link", *path) if path:
                shape = _put(shape, path, value, f"{space.file}: vary: {axis.varied.name}")
            case ("workload", key):
                whole[key] = value
            case ("flows", *path):
                flows = tuple(_put_in_flows(one, path, value) for one in flows)
            case ("policy", name, parameter):
                policies.setdefault(name, {})[parameter] = int(value)
    for derived in DERIVED:
        if derived.name in given:
            shape = _DERIVE[derived.name](shape, given[derived.name], space.file)
    changed: dict[str, Any] = {"flows": flows, **whole}
    return Conditions(replace(link, scenario=shape), replace(workload, **changed), policies)


def _named(parts: Sequence[Part], name: Value | None) -> Part:
    """The part with the varied name, or the only one."""
    return next((part for part in parts if part.name == name), parts[0])


def _put(part: Table, path: Sequence[str], value: Value, where: str) -> Table:
    """The table with the value set at a path of keys."""
    name, *below = path
    if not below:
        return replace(part, **{name: value})
    inner = getattr(part, name)
    if inner is None:
        raise InputError(f"{where}: the link has no table [{name}]; add it to the link's file")
    return replace(part, **{name: _put(inner, below, value, where)})


def _put_in_flows(flows: Flows, path: Sequence[str], value: Value) -> Flows:
    """The flows with the value set, unless the key belongs to another application."""
    name, *below = path
    if not below:
        return flows.changed(**{name: value})
    inner = getattr(flows.group, name)
    if name == "app" and below[0] not in {field.name for field in fields(inner)}:
        return flows
    return flows.changed(**{name: _put(inner, below, value, "")})


# --- keys that stand for several ------------------------------------------------------------------


def _rtt_ns(shape: Scenario) -> int:
    """RTT of the empty path; a packet crosses the access links of both hosts in each direction."""
    return shape.down.delay_ns + shape.up.delay_ns + _access_ns(shape)


def _access_ns(shape: Scenario) -> int:
    return 4 * shape.access.delay_ns if shape.access else 0


def _set_rtt(shape: Scenario, rtt_ns: Value, where: str) -> Scenario:
    rest = int(rtt_ns) - _access_ns(shape)
    if rest < 0:
        raise InputError(
            f"{where}: vary: rtt: {rtt_ns} ns is less than the {_access_ns(shape)} ns that the "
            "access links take; give more, or a shorter delay in [access]"
        )
    return replace(
        shape,
        up=replace(shape.up, delay_ns=rest // 2),
        down=replace(shape.down, delay_ns=rest - rest // 2),
    )


def _set_asymmetry(shape: Scenario, ratio: Value, _where: str) -> Scenario:
    rate_bps = max(1, round(shape.down.rate_bps / float(ratio)))
    return replace(shape, up=replace(shape.up, rate_bps=rate_bps))


def _set_queues(shape: Scenario, products: Value, _where: str) -> Scenario:
    packet = shape.mtu_bytes + shape.link_overhead_bytes

    def with_queue(pipe: Channel) -> Channel:
        product = pipe.rate_bps * _rtt_ns(shape) / 8e9
        size = max(packet, round(float(products) * product))
        return replace(pipe, queue_bytes=size, queue_packets=0)

    return replace(shape, down=with_queue(shape.down), up=with_queue(shape.up))


_DERIVE = {"rtt": _set_rtt, "asymmetry": _set_asymmetry, "queue_bdp": _set_queues}


# --- policies at a point --------------------------------------------------------------------------


def plan_at(space: Space, number: int, where: Conditions, candidate: Candidate) -> Plan:
    """The plan for one policy at the point with this number, as `ackwise compare` runs it."""
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
        clamp=space.clamp,
        where=space.file,
    )


def policy_at(space: Space, where: Conditions, choice: PolicyChoice) -> PolicyChoice:
    """The policy with the parameters drawn for the point."""
    drawn = where.policies.get(choice.name, {})
    own = [axis.varied.path[2] for axis in own_axes(choice, space.policy_axes)]
    values = {name: drawn[name] for name in own if name in drawn}
    return with_parameters(choice, values, f"{space.file}: policies")
