# SPDX-License-Identifier: MIT
"""Checks of dynamic acknowledgement on the real kernel. Their bounds were committed before the
first run of the experiment."""

from collections.abc import Sequence
from dataclasses import replace

from ackwise.results.hosts import ACK_DELAY_MAX_NS
from ackwise.results.stats import Estimate
from ackwise_experiments.check import Basis, Check, Kind, Origin, at_most, grouped, same
from ackwise_experiments.dynamic.checks import (
    FIGURE,
    PRINTED,
    PRINTED_BELOW,
    paper_checks,
    streaming_checks,
)
from ackwise_experiments.dynamic.lab_runs import (
    CASES,
    RARE,
    Costs,
    Streamed,
    forced_share,
)
from ackwise_experiments.dynamic.policies import (
    DYNAMIC,
    GREEDY,
    LIMITED,
    LINKS,
    PER_ACK,
    STOCK,
    CostCurves,
    CostPoint,
    LimitedPolicy,
    price_ns,
)
from ackwise_experiments.dynamic.sender import STREAMING, WINDOWS

MIDDLE = (100, 900)  # cost ratios in 1/1000 that no reading of "borderline" takes in
MIDDLE_WORDS = " to ".join(f"{rho / 1000:g}" for rho in MIDDLE)
TWICE = 2.0  # what greedy costs at most
COST_PERCENT = 5.0
CORE_PERCENT = 1.0
RATE_PERCENT = 10.0
GREEDY_CASE, PER_ACK_CASE, STOCK_CASE = (
    LimitedPolicy(name, LIMITED) for name in (GREEDY, PER_ACK, STOCK)
)
EXPECTED = Basis(Kind.PREDICTED, Origin.BEFORE)
OURS = Basis(Kind.OWN, Origin.BEFORE)


def _set_before(checks: Sequence[Check]) -> list[Check]:
    """The simulator's bounds, which were committed long before anything ran on the kernel."""
    return [
        replace(one, bound=Origin.BEFORE) if one.bound == Origin.AFTER else one for one in checks
    ]


def _in_the_middle(by_rtt: Sequence[CostCurves], case: LimitedPolicy) -> list[CostPoint]:
    low, high = MIDDLE
    return [point for curves in by_rtt for rho, point in curves[case].items() if low <= rho <= high]


def dearest(by_rtt: Sequence[CostCurves]) -> Estimate:
    """The cost with z per ACK in the middle whose interval reaches highest."""
    points = _in_the_middle(by_rtt, PER_ACK_CASE)
    return max((Estimate(one.mean, one.ci95) for one in points), key=lambda one: one.high)


def dearest_connection(by_rtt: Sequence[CostCurves]) -> float:
    """The highest cost of a connection under greedy in the middle."""
    return max(point.most for point in _in_the_middle(by_rtt, GREEDY_CASE))


def cost_checks(found: Costs) -> list[Check]:
    """What the source says, where the host acts rarely and in the middle of its figure."""
    by_rtt = list(found.kernel.values())
    first, *words = _set_before(paper_checks(by_rtt))
    rare = f"the host sends at most {RARE:.0%} of the ACKs"
    unlimited = replace(first, name=f"{PER_ACK}: highest upper end of the CI where {rare}")
    middle = f"at cost ratios {MIDDLE_WORDS}"
    rows = [
        unlimited,
        at_most(
            f"{PER_ACK}: highest upper end of the CI {middle}, whatever the host does",
            PRINTED_BELOW,
            dearest(by_rtt).high,
            basis=EXPECTED,
            published=PRINTED,
            source=FIGURE,
        ),
        at_most(
            f"{GREEDY}: highest of all connections {middle}, whatever the host does",
            TWICE,
            dearest_connection(by_rtt),
            basis=EXPECTED,
            source="spec page 2, S2.6",
        ),
        *words,
    ]
    return grouped("statements of the paper, the worse of both RTTs", rows)


def host_checks(found: Costs) -> list[Check]:
    """What the kernel's own rules are expected to do."""
    longest = max(
        rho
        for by_policy in found.reasons.values()
        for rho in by_policy[GREEDY_CASE]
        if price_ns(rho) < ACK_DELAY_MAX_NS
    )
    rows = [
        at_most(
            f"{GREEDY}: cost on the kernel, furthest from the core's on the same capture on the "
            f"same host, up to {longest / 1000:g}",
            CORE_PERCENT,
            _furthest_percent(found.kernel, found.core, GREEDY_CASE, longest),
            basis=OURS,
            unit="%",
        ),
        same(
            f"{STOCK}: ACKs that the host sent",
            0,
            sum(
                round(forced_share(reasons) * sum(reasons.values()))
                for by_policy in found.reasons.values()
                for reasons in by_policy[STOCK_CASE].values()
            ),
            basis=EXPECTED,
        ),
    ]
    return grouped("the host", rows)


def _furthest_percent(
    measured: dict[str, CostCurves], base: dict[str, CostCurves], case: LimitedPolicy, upto: int
) -> float:
    """The largest distance of mean costs over cost ratios and RTTs."""
    return max(
        abs(100 * (measured[rtt][case][rho].mean / point.mean - 1))
        for rtt, curves in base.items()
        for rho, point in curves[case].items()
        if rho <= upto
    )


def simulator_checks(found: Costs, kernel: Streamed, simulator: Streamed) -> list[Check]:
    """Whether the simulator predicts the kernel, on the same host. With z once per connection
    chance decides more than that, so it is left out."""
    rows = [
        at_most(
            f"{case.policy}: cost on the kernel, furthest from the simulator's, any ratio and RTT",
            COST_PERCENT,
            _furthest_percent(found.kernel, found.simulator, case, 1000),
            basis=OURS,
            unit="%",
        )
        for case in CASES
        if case.policy != DYNAMIC
    ]
    rows += [
        at_most(
            f"{name}: throughput on the kernel, furthest from the simulator's, any size and RTT",
            RATE_PERCENT,
            max(
                abs(100 * (sum(rates) / sum(simulator[place][name][wanted]) - 1))
                for place, by_policy in kernel.items()
                for wanted, rates in by_policy[name].items()
            ),
            basis=OURS,
            unit="%",
        )
        for name in STREAMING
    ]
    return grouped("the kernel and the simulator", rows)


def throughput_checks(kernel: Streamed) -> list[Check]:
    """No gain, with either buffer."""
    found = []
    for window in WINDOWS:
        rows = _set_before(streaming_checks([kernel[rtt, window] for rtt in LINKS]))
        found += [replace(one, name=f"{one.name}, buffer: {window}") for one in rows]
    return grouped("throughput", found)
