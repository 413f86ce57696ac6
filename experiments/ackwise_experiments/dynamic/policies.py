# SPDX-License-Identifier: MIT
"""The policies that are judged, the limits they are under, and their cost over the cost ratio."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import e
from typing import NamedTuple

from ackwise import engine
from ackwise.engine.replayed import Options
from ackwise.errors import RunError
from ackwise.plans import policy
from ackwise.results.stats import estimate

BOUND = e / (e - 1)
UNIT_NS = 10_000_000
MBIT_S = 1e-6
OVERALL = range(50, 951, 50)  # the paper's cost ratios, in 1/1000
BLOWUP = range(900, 996, 5)
LINKS = {"2 ms": "lan-100m", "100 ms": "wan-100ms"}
CAPTURES = ("bulk", "request-response", "stream")
REQUEST_BYTES = 200
# An ACK for a FIN leaves at the last arrival, where the best schedule's does too: no limit.
NOT_LIMITING = "fin"

# How much of what the RFCs demand binds the policy, and the host that it stands on for it.
FREE = "no limits"
LIMITED = "RFC limits"
HOSTS = {FREE: "host=model", LIMITED: "host=rfc,clamp=none"}

DYNAMIC = "dynamic"
PER_ACK = "dynamic, z for each ACK"
FIXED = "dynamic, z = 1"
GREEDY = "greedy"
STOCK = "delayed (the paper's stock)"
LINUX = "linux 6.12"
CAPTURED = "captured: a real kernel"
PRICED = {DYNAMIC: "dynamic:draw=0", PER_ACK: "dynamic:draw=1", FIXED: "dynamic:draw=2"}
PLAIN = {STOCK: "delayed:segments=2,delay_ms=200", LINUX: "linux"}


class LimitedPolicy(NamedTuple):
    """A policy, and the limits it is under."""

    policy: str
    limits: str


GIVEN = [
    *(LimitedPolicy(p, limits) for p in (DYNAMIC, PER_ACK, GREEDY) for limits in HOSTS),
    LimitedPolicy(FIXED, FREE),
    LimitedPolicy(STOCK, LIMITED),
    LimitedPolicy(LINUX, LIMITED),
]


@dataclass(frozen=True)
class Size:
    """How much is run; the questions stay the same."""

    ratios: Sequence[int] = tuple(sorted({*OVERALL, *BLOWUP}))
    given_runs: int = 150  # sequences of each kind of arrivals
    drawn_sequences: int = 8  # of them, with every z
    simulated_runs: int = 30
    # For an interval of a few thousandths: the paper's figure is printed to a hundredth.
    simulated_runs_per_ack: int = 200
    random_inputs: int = 400  # for the two optima
    request_bytes: Sequence[int] = (
        *(m * 10**k for k in range(3, 7) for m in (1, 3)),
        10**7,
    )
    request_runs: int = 8


class JudgedRun(NamedTuple):
    """One run's cost relative to the best schedule, and whether a limit forced an ACK."""

    ratio: float
    limited: bool


@dataclass(frozen=True)
class CostPoint:
    """A policy's runs at one cost ratio."""

    mean: float
    ci95: float  # over sequences of arrivals
    most: float
    expected: float  # over the draws of z, highest of all sequences
    limited: bool  # in any run


CostCurve = dict[int, CostPoint]  # by cost ratio in 1/1000
CostCurves = dict[LimitedPolicy, CostCurve]


def cost_point(sequences: Sequence[Sequence[JudgedRun]]) -> CostPoint:
    """From the runs over each sequence of arrivals, one for each draw."""
    means = [sum(r.ratio for r in runs) / len(runs) for runs in sequences]
    found = estimate(means)
    if found is None:
        raise RunError("dynamic: no runs")
    every = [r for runs in sequences for r in runs]
    return CostPoint(
        found.mean,
        found.ci95 or 0.0,
        max(r.ratio for r in every),
        max(means),
        any(r.limited for r in every),
    )


def price_ns(rho: int) -> int:
    """L: what one ACK is worth in waiting time."""
    return UNIT_NS * rho // (1000 - rho)


def choice(case: LimitedPolicy, rho: int) -> policy.PolicyChoice:
    """The policy at a cost ratio."""
    price = f"cost_permille={rho},unit_us={UNIT_NS // 1000}"
    if case.policy in PLAIN:
        spec = PLAIN[case.policy]
    else:
        spec = policy.extended(PRICED.get(case.policy, GREEDY), price)
    if spec != policy.STOCK:
        spec = policy.extended(spec, HOSTS[case.limits])
    return policy.parse(spec, "reproduce dynamic")


def replay_options(cases: Iterable[LimitedPolicy], rho: int, seed: int) -> Options:
    """What the engine's replay takes."""
    return {
        "policies": [choice(case, rho).for_engine() for case in cases],
        "price": {"rho_permille": rho, "unit_ns": UNIT_NS},
        "seed": seed,
    }


def limit_forced_ack(reasons: Iterable[str]) -> bool:
    """Whether a duty of the host sent an ACK before the policy did."""
    duties = {r["label"] for r in engine.reasons() if r["source"] == "duty"} - {NOT_LIMITING}
    return not duties.isdisjoint(reasons)


def worst_expected(curve: CostCurve) -> float:
    """The highest expected cost of any sequence at any cost ratio."""
    return max(p.expected for p in curve.values())
