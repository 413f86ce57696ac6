# SPDX-License-Identifier: MIT
"""Fixed arrivals, made up or captured: they do not depend on the ACKs."""

from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from itertools import count
from random import Random
from typing import Any

from ackwise import engine
from ackwise.engine import Cancel
from ackwise.engine.replayed import Arrivals, DirectionResult, PolicyResult
from ackwise.errors import RunError
from ackwise_experiments.dynamic.arrivals import KINDS, PAYLOAD_BYTES
from ackwise_experiments.dynamic.policies import (
    CAPTURED,
    DYNAMIC,
    GIVEN,
    LIMITED,
    PER_ACK,
    CostCurves,
    CostPoint,
    JudgedRun,
    LimitedPolicy,
    Size,
    cost_point,
    limit_forced_ack,
    price_ns,
    replay_options,
)
from ackwise_experiments.runner import Runner

# A policy that draws starts its walk through a table of so many values of z at a random place and
# goes on from there: with every start, a mean over draws is exact.
STARTS = 256
DRAWN = [case for case in GIVEN if case.policy in (DYNAMIC, PER_ACK)]
UNDRAWN = [case for case in GIVEN if case not in DRAWN]
_GOLDEN, _64_BITS = 0x9E37_79B9_7F4A_7C15, (1 << 64) - 1


def _start(seed: int) -> int:
    """Where the policy starts with this seed: the highest bits of the engine's first random
    number (SplitMix64: Steele, Lea, Flood 2014)."""
    z = (seed + _GOLDEN) & _64_BITS
    z = ((z ^ z >> 30) * 0xBF58_476D_1CE4_E5B9) & _64_BITS
    z = ((z ^ z >> 27) * 0x94D0_49BB_1331_11EB) & _64_BITS
    return (z ^ z >> 31) >> 56


@cache
def seeds_of_every_start() -> tuple[int, ...]:
    """A seed for each start."""
    found: dict[int, int] = {}
    for seed in count():
        found.setdefault(_start(seed), seed)
        if len(found) == STARTS:
            return tuple(found.values())
    raise AssertionError


def random_of(kind: str, run: int) -> Random:
    """Random numbers that give every policy and cost ratio the same arrivals."""
    return Random(f"{kind} {run}")  # noqa: S311 - a model's


Item = tuple[str, int, int, int]  # a kind, a cost ratio, how many sequences, how many with every z


def on_given(item: Item, cancel: Cancel) -> dict[LimitedPolicy, CostPoint]:
    """Every policy on a kind of arrivals, at one cost ratio."""
    del cancel
    kind, rho, sequences, drawn_sequences = item
    found: dict[LimitedPolicy, list[list[JudgedRun]]] = {case: [] for case in GIVEN}
    for number in range(sequences):
        times = KINDS[kind](random_of(kind, number), price_ns(rho))
        packets: Arrivals = {
            "times_ns": times,
            "bytes": [PAYLOAD_BYTES] * len(times),
            "mss_bytes": PAYLOAD_BYTES,
        }
        if number < drawn_sequences:
            _replayed(packets, DRAWN, rho, seeds_of_every_start(), found)
        _replayed(packets, UNDRAWN, rho, (0,), found)
    return {case: cost_point(runs) for case, runs in found.items()}


def _replayed(
    packets: Arrivals,
    cases: Sequence[LimitedPolicy],
    rho: int,
    seeds: Sequence[int],
    found: dict[LimitedPolicy, list[list[JudgedRun]]],
) -> None:
    options = replay_options(cases, rho, 0)
    results = [engine.replay_arrivals(packets, options | {"seed": seed}) for seed in seeds]
    for i, case in enumerate(cases):
        found[case].append([_judged(result["policies"][i]) for result in results])


def _judged(policy: PolicyResult) -> JudgedRun:
    ratio = policy["cost_ratio"]
    if ratio is None:
        raise RunError("the best schedule costs nothing: no ratio to it")
    return JudgedRun(ratio, limit_forced_ack(policy["acks_by_reason"]))


def on_captured(item: Item, cancel: Cancel) -> dict[LimitedPolicy, CostPoint]:
    """Every policy on the largest direction of a shipped capture, at one cost ratio."""
    name, rho, _, _ = item
    with resources.as_file(resources.files("ackwise") / "captures" / f"{name}.pcap") as file:

        def replayed(cases: Sequence[LimitedPolicy], seed: int) -> DirectionResult:
            judged = engine.replay(str(file), replay_options(cases, rho, seed), cancel)
            largest = max(judged["directions"], key=lambda d: d["payload_bytes"])
            if largest["policies"][0]["policy"] != "captured":
                raise RunError(f"{file}: the receiver's packets are missing")
            return largest

        once = replayed(UNDRAWN, 0)
        # Each direction of a capture gets random numbers of its own.
        place = once["connection"] << 1 | once["direction"]
        own = place * _GOLDEN & _64_BITS
        drawn = [replayed(DRAWN, seed ^ own) for seed in seeds_of_every_start()]
    cases = [LimitedPolicy(CAPTURED, LIMITED), *UNDRAWN]
    found = {case: [_judged(p)] for case, p in zip(cases, once["policies"], strict=True)}
    for i, case in enumerate(DRAWN, 1):
        found[case] = [_judged(one["policies"][i]) for one in drawn]
    return {case: cost_point([runs]) for case, runs in found.items()}


def curves_of(
    runner: Runner, label: str, function: Any, kinds: Iterable[str], size: Size
) -> dict[str, CostCurves]:
    """Cost curves by kind of arrivals and policy."""
    many = (size.given_runs, size.drawn_sequences)
    items = [(kind, rho, *many) for kind in kinds for rho in size.ratios]
    found: dict[str, CostCurves] = {}
    for (kind, rho, *_), points in zip(items, runner.map(label, function, items), strict=True):
        for case, one in points.items():
            found.setdefault(kind, {}).setdefault(case, {})[rho] = one
    return found
