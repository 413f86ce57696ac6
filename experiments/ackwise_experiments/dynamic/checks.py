# SPDX-License-Identifier: MIT
"""Checks of dynamic acknowledgement."""

from collections.abc import Sequence
from math import inf

from ackwise.results.stats import Estimate
from ackwise_experiments.check import (
    Basis,
    Check,
    Kind,
    Origin,
    at_least,
    at_most,
    grouped,
    within,
)
from ackwise_experiments.dynamic.policies import (
    BOUND,
    DYNAMIC,
    FIXED,
    FREE,
    GREEDY,
    LIMITED,
    LINUX,
    PER_ACK,
    STOCK,
    CostCurve,
    CostCurves,
    LimitedPolicy,
    worst_expected,
)
from ackwise_experiments.dynamic.sender import Rates, gains_percent

PROVED = Basis(Kind.IDENTITY, Origin.PUBLISHED)
LIMIT = Basis(Kind.IDENTITY, Origin.AFTER)  # proved too; how near a run has to come is ours
STATED = Basis(Kind.PREDICTED, Origin.PUBLISHED)
# The numbers for the paper's words were chosen after a first look at the curves.
WORDED = Basis(Kind.PREDICTED, Origin.AFTER)
_FREE = LimitedPolicy(DYNAMIC, FREE)
FIGURE, THROUGHPUT = "slides 21 to 26", "slides 28 to 30"
PRINTED = "1.58"
PRINTED_BELOW = 1.585  # what is printed as 1.58


def given_checks(given: dict[str, CostCurves]) -> list[Check]:
    """The theorems, on arrivals that do not depend on ACKs."""
    theorem = [
        at_most(
            f"{kind}: expected cost over every z / best schedule, highest of all sequences and "
            f"{len(curves[_FREE])} cost ratios",
            BOUND,
            worst_expected(curves[_FREE]),
            basis=PROVED,
            source="spec page 2, S2.3",
        )
        for kind, curves in given.items()
    ]
    alone = given["isolated"]
    rows = [
        *(
            within(
                f"isolated, {words}: ratio tends to",
                bound,
                _mean(alone[LimitedPolicy(name, FREE)]),
                percent=1,
                basis=LIMIT,
            )
            for words, name, bound in (
                ("z = 1", FIXED, 2),
                ("greedy", GREEDY, 2),
                ("z for each ACK", PER_ACK, BOUND),
            )
        ),
        *(
            at_most(
                f"{name}: at most twice the best schedule, in every run",
                2,
                max(
                    p.most
                    for curves in given.values()
                    for p in curves[LimitedPolicy(name, FREE)].values()
                ),
                basis=PROVED,
                source="S2.6" if name == GREEDY else "S2.2",
            )
            for name in (GREEDY, FIXED)
        ),
    ]
    return [
        *grouped("one z per connection, fixed arrivals, no limits", theorem),
        *grouped("the adversaries", rows),
    ]


def _mean(curve: CostCurve) -> float:
    return sum(p.mean for p in curve.values()) / len(curve)


def highest_unlimited(by_rtt: Sequence[CostCurves]) -> Estimate:
    """The cost with z per ACK whose interval reaches highest where no limit forced an ACK;
    infinite, so that no bound holds, where limits forced some everywhere."""
    points = [
        Estimate(point.mean, point.ci95)
        for curves in by_rtt
        for point in curves[LimitedPolicy(PER_ACK, LIMITED)].values()
        if not point.limited
    ]
    return max(points, key=lambda one: one.high, default=Estimate(inf, None))


def stock_multiple(by_rtt: Sequence[CostCurves]) -> float:
    """Cost of stock where latency is dearest, as a multiple of dynamic's; lowest of the RTTs."""
    return min(
        stock[min(stock)].mean / new[min(stock)].mean
        for curves in by_rtt
        for stock, new in [[curves[LimitedPolicy(p, LIMITED)] for p in (STOCK, PER_ACK)]]
    )


def best_gain(by_rtt: Sequence[Rates], stock: str) -> Estimate:
    """Dynamic's gain in throughput at the size and RTT where its interval reaches highest."""
    gains = [gain for rates in by_rtt for gain in gains_percent(rates, stock).values()]
    return max(gains, key=lambda one: one.high)


def paper_checks(by_rtt: Sequence[CostCurves]) -> list[Check]:
    """What the paper says about its figure; the RTT that fits it least counts."""
    source = FIGURE
    new = [curves[LimitedPolicy(PER_ACK, LIMITED)] for curves in by_rtt]
    stock = [curves[LimitedPolicy(STOCK, LIMITED)] for curves in by_rtt]
    first, last = min(stock[0]), max(stock[0])
    rises = [curve[last].mean - _lowest(curve) for curve in stock]
    falls = [curve[first].mean - _lowest(curve) for curve in stock]
    rows = [
        at_most(
            "dynamic, z for each ACK: highest upper end of the CI where no limit acted",
            PRINTED_BELOW,
            highest_unlimited(by_rtt).high,
            basis=STATED,
            published=PRINTED,
            source=source,
        ),
        at_least(
            f"stock: extremely high at cost ratio {first / 1000:g}, multiple of dynamic",
            5,
            stock_multiple(by_rtt),
            basis=WORDED,
            published="extremely high",
            source=source,
        ),
        at_most(
            "stock: then close to dynamic, smallest distance",
            10,
            max(_nearest_percent(s, n) for s, n in zip(stock, new, strict=True)),
            basis=WORDED,
            published="converges",
            unit="%",
            source=source,
        ),
        at_least(
            f"stock: rises again up to {last / 1000:g}, multiple of its minimum",
            1.1,
            min(curve[last].mean / _lowest(curve) for curve in stock),
            basis=WORDED,
            published="increases",
            source=source,
        ),
        at_most(
            "stock: that rise relative to the fall before it",
            1,
            max(rise / fall for rise, fall in zip(rises, falls, strict=True)),
            basis=WORDED,
            published="slower",
            source=source,
        ),
    ]
    return grouped("statements of the paper, the worse of both RTTs", rows)


def _lowest(curve: CostCurve) -> float:
    return min(p.mean for p in curve.values())


def _nearest_percent(stock: CostCurve, new: CostCurve) -> float:
    return min(abs(100 * (stock[rho].mean / new[rho].mean - 1)) for rho in stock)


def streaming_checks(by_rtt: Sequence[Rates]) -> list[Check]:
    """Dynamic is no faster than stock at any size, with the buffers of the paper's time."""
    rows = [
        at_most(
            f"gain of dynamic over {stock}, upper end of the CI, best size and RTT",
            1,
            best_gain(by_rtt, stock).high,
            basis=WORDED,
            published="no gain",
            unit="%",
            source=THROUGHPUT,
        )
        for stock in (STOCK, LINUX)
    ]
    return grouped("throughput", rows)
