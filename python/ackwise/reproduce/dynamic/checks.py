# SPDX-License-Identifier: MIT
"""Checks of dynamic acknowledgement."""

from ackwise.reproduce.check import Check, at_least, at_most, grouped, within
from ackwise.reproduce.dynamic.arrivals import KINDS
from ackwise.reproduce.dynamic.policies import (
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
    worst_ratio,
)
from ackwise.reproduce.dynamic.simulated import Rates, gains_percent
from ackwise.reproduce.reference import published


def _kept(name: str, curve: CostCurve, source: str, bound: float = BOUND) -> list[Check]:
    """The mean minus its CI is at most e/(e-1) at every cost ratio where no limit forced an ACK; no
    check where limits did so everywhere."""
    free = {rho: p for rho, p in curve.items() if not p.limited}
    if not free:
        return []
    worst = f"{name}: mean minus CI, worst of {len(free)} cost ratios"
    return [at_most(worst, bound, worst_ratio(free), published=f"≤ {bound:g}", source=source)]


def given_checks(given: dict[str, CostCurves]) -> list[Check]:
    """The theorems, on arrivals that do not depend on ACKs."""
    checks = []
    theorem = "spec page 2, S2.3"
    for limits in (FREE, LIMITED):
        rows = [
            row
            for kind, curves in given.items()
            for row in _kept(f"{kind}, {limits}", curves[LimitedPolicy(DYNAMIC, limits)], theorem)
        ]
        checks += grouped(f"one z per connection, fixed arrivals, {limits}", rows)
    alone = given["isolated"]
    rows = [
        within(
            "isolated, z = 1: ratio tends to",
            2,
            _mean(alone[LimitedPolicy(FIXED, FREE)]),
            percent=1,
        ),
        within(
            "isolated, greedy: ratio tends to",
            2,
            _mean(alone[LimitedPolicy(GREEDY, FREE)]),
            percent=1,
        ),
        within(
            "isolated, z for each ACK: ratio tends to e/(e-1)",
            BOUND,
            _mean(alone[LimitedPolicy(PER_ACK, FREE)]),
            percent=1,
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
                published="≤ 2",
                source="S2.6" if name == GREEDY else "S2.2",
            )
            for name in (GREEDY, FIXED)
        ),
    ]
    return checks + grouped("the adversaries", rows)


def _mean(curve: CostCurve) -> float:
    return sum(p.mean for p in curve.values()) / len(curve)


def simulated_checks(rtt: str, found: dict[str, CostCurves]) -> list[Check]:
    """The bound with a sender that sees the ACKs, then what the paper says about its figure."""
    rows = [
        row
        for kind in KINDS
        for row in _kept(kind, found[kind][LimitedPolicy(DYNAMIC, LIMITED)], "spec page 2, S2.3")
    ]
    checks = grouped(f"one z per connection, simulated sender, RTT {rtt}, RFC limits", rows)
    source = "slides 21 to 26"
    curves = found["uniform"]
    new, stock = curves[LimitedPolicy(PER_ACK, LIMITED)], curves[LimitedPolicy(STOCK, LIMITED)]
    bound = published("dynamic", "competitive ratio bound of the randomized algorithm").number
    first, last = min(stock), max(stock)
    lowest = min(p.mean for p in stock.values())
    nearest = min(abs(100 * (stock[rho].mean / new[rho].mean - 1)) for rho in stock)
    claims = [
        *_kept("dynamic, z for each ACK", new, source, bound),
        at_least(
            f"stock: extremely high at cost ratio {first / 1000:g}, multiple of dynamic",
            5,
            stock[first].mean / new[first].mean,
            published="extremely high",
            source=source,
        ),
        at_most(
            "stock: then close to dynamic, smallest distance",
            10,
            nearest,
            published="converges",
            unit="%",
            source=source,
        ),
        at_least(
            f"stock: rises again up to {last / 1000:g}, multiple of its minimum",
            1.1,
            stock[last].mean / lowest,
            published="increases",
            source=source,
        ),
        at_most(
            "stock: that rise relative to the fall before it",
            1,
            (stock[last].mean - lowest) / (stock[first].mean - lowest),
            published="slower",
            source=source,
        ),
    ]
    return checks + grouped(f"statements of the paper, RTT {rtt}", claims)


def streaming_checks(rtt: str, rates: Rates) -> list[Check]:
    """Dynamic is no faster than stock at any size."""
    return [
        at_most(
            f"RTT {rtt}: gain of dynamic over {stock}, minus CI, best size",
            1,
            max(g.mean - (g.ci95 or 0.0) for g in gains_percent(rates, stock).values()),
            published="no gain",
            unit="%",
            source="slides 28 to 30",
        )
        for stock in (STOCK, LINUX)
    ]
