# SPDX-License-Identifier: MIT
"""Fixed arrivals, made up or captured: they do not depend on the ACKs."""

from collections.abc import Iterable, Sequence
from importlib import resources
from random import Random
from typing import Any

from ackwise import engine
from ackwise.engine import Cancel
from ackwise.errors import RunError
from ackwise.reproduce.dynamic.arrivals import KINDS, PAYLOAD_BYTES
from ackwise.reproduce.dynamic.policies import (
    CAPTURED,
    GIVEN,
    LIMITED,
    CostCurves,
    CostPoint,
    JudgedRun,
    LimitedPolicy,
    cost_point,
    limit_forced_ack,
    price_ns,
    replay_options,
)
from ackwise.reproduce.runner import Runner


def random_of(kind: str, run: int) -> Random:
    """The same arrivals for every policy and cost ratio."""
    return Random(f"{kind} {run}")  # noqa: S311 - a model's


def on_given(item: tuple[str, int, int], cancel: Cancel) -> dict[LimitedPolicy, CostPoint]:
    """Every policy on `runs` draws of a kind of arrivals, at one cost ratio."""
    del cancel
    kind, rho, runs = item
    found: dict[LimitedPolicy, list[JudgedRun]] = {case: [] for case in GIVEN}
    options = replay_options(GIVEN, rho, 0)
    for run in range(runs):
        times = KINDS[kind](random_of(kind, run), price_ns(rho))
        packets = {
            "times_ns": times,
            "bytes": [PAYLOAD_BYTES] * len(times),
            "mss_bytes": PAYLOAD_BYTES,
        }
        judged = engine.replay_arrivals(packets, options | {"seed": run})
        for case, one in zip(GIVEN, judged["policies"], strict=True):
            found[case].append(
                JudgedRun(one["cost_ratio"], limit_forced_ack(one["acks_by_reason"]))
            )
    return {case: cost_point(runs) for case, runs in found.items()}


def on_captured(item: tuple[str, int, int], cancel: Cancel) -> dict[LimitedPolicy, CostPoint]:
    """Every policy on the largest direction of a shipped capture, with `runs` draws of z."""
    name, rho, runs = item
    found: dict[LimitedPolicy, list[JudgedRun]] = {
        case: [] for case in (*GIVEN, LimitedPolicy(CAPTURED, LIMITED))
    }
    options = replay_options(GIVEN, rho, 0)
    with resources.as_file(resources.files("ackwise") / "captures" / f"{name}.pcap") as file:
        for run in range(runs):
            judged = engine.replay(str(file), options | {"seed": run}, cancel)
            one = max(judged["directions"], key=lambda d: int(d["payload_bytes"]))
            if one["policies"][0]["policy"] != "captured":
                raise RunError(f"{file}: the receiver's packets are missing")
            for case, p in zip(
                (LimitedPolicy(CAPTURED, LIMITED), *GIVEN), one["policies"], strict=True
            ):
                found[case].append(
                    JudgedRun(p["cost_ratio"], limit_forced_ack(p["acks_by_reason"]))
                )
    return {case: cost_point(runs) for case, runs in found.items()}


def curves_of(
    runner: Runner,
    label: str,
    function: Any,
    kinds: Iterable[str],
    ratios: Sequence[int],
    runs: int,
) -> dict[str, CostCurves]:
    """By kind of arrivals and policy."""
    items = [(kind, rho, runs) for kind in kinds for rho in ratios]
    found: dict[str, CostCurves] = {}
    for (kind, rho, _), points in zip(items, runner.map(label, function, items), strict=True):
        for case, one in points.items():
            found.setdefault(kind, {}).setdefault(case, {})[rho] = one
    return found
