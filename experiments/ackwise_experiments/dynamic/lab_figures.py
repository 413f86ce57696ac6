# SPDX-License-Identifier: MIT
"""Figures and notes of dynamic acknowledgement on the real kernel."""

from collections.abc import Iterable, Mapping

from ackwise_experiments.dynamic.lab_runs import (
    CASES,
    PRICED_CASES,
    RARE,
    Costs,
    LabSize,
    Streamed,
    forced_share,
)
from ackwise_experiments.dynamic.panels import (
    COST_RATIO,
    cost_panel,
    cost_series,
    throughput_panels,
)
from ackwise_experiments.dynamic.policies import (
    BLOWUP,
    DYNAMIC,
    LINKS,
    LINUX,
    OVERALL,
    STOCK,
    LimitedPolicy,
)
from ackwise_experiments.dynamic.sender import gains_percent
from ackwise_experiments.figure import Figure, Panel, Series


def figures(found: Costs, kernel: Streamed, size: LabSize) -> list[Figure]:
    """The paper's figures, and what the host does to them."""
    return [
        Figure(
            "linux-dynamic-ratio",
            "Competitive ratio on the kernel",
            [
                cost_panel(
                    f"{name}, RTT {rtt}",
                    [cost_series(case.policy, found.kernel[rtt][case], ratios) for case in CASES],
                    log_y=True,
                )
                for name, ratios in (("overall", OVERALL), ("close-up", BLOWUP))
                for rtt in LINKS
            ],
            "slides 21 to 24",
            columns=2,
        ),
        Figure(
            "linux-dynamic-host",
            "What the host costs: the kernel, the simulator, and the same arrivals without a host",
            [
                cost_panel(
                    f"{case.policy}, RTT {rtt}",
                    [*_compared(found, rtt, case, size)],
                    log_y=True,
                )
                for case in CASES
                if case.policy != DYNAMIC
                for rtt in LINKS
            ],
            columns=2,
        ),
        Figure(
            "linux-dynamic-reasons",
            "Why ACKs left",
            [
                Panel(
                    COST_RATIO,
                    "% of the ACKs",
                    _reasons(found.reasons[rtt][case]),
                    title=f"{case.policy}, RTT {rtt}",
                )
                for case in PRICED_CASES
                if case.policy != DYNAMIC
                for rtt in LINKS
            ],
            columns=2,
        ),
        Figure(
            "linux-dynamic-streaming",
            "One request, one response, on the kernel",
            throughput_panels(kernel),
            "slide 28",
            columns=2,
        ),
    ]


def _compared(found: Costs, rtt: str, case: LimitedPolicy, size: LabSize) -> Iterable[Series]:
    yield cost_series("kernel", found.kernel[rtt][case], size.ratios)
    yield cost_series("simulator, the kernel's host", found.simulator[rtt][case], size.ratios)
    yield cost_series("simulator, RFC limits only", found.source[rtt][case], size.ratios)
    if case in PRICED_CASES:
        alone = found.alone[rtt][case]
        yield cost_series("the same arrivals, no host", alone, size.ratios, dark=True)


def _reasons(by_ratio: Mapping[int, Mapping[str, int]]) -> list[Series]:
    names = dict.fromkeys(reason for reasons in by_ratio.values() for reason in reasons)
    return [
        Series(
            name,
            [rho / 1000 for rho in by_ratio],
            [100 * one.get(name, 0) / max(1, sum(one.values())) for one in by_ratio.values()],
        )
        for name in names
    ]


def notes(found: Costs, kernel: Streamed) -> list[str]:
    """Where the host acts, and what that costs."""
    lines = []
    for rtt in LINKS:
        for case in PRICED_CASES:
            reasons = found.reasons[rtt][case]
            bound = [rho for rho, one in reasons.items() if forced_share(one) > RARE]
            if bound:
                lines.append(
                    f"RTT {rtt}, {case.policy}: the host sends more than {RARE:.0%} of the ACKs "
                    f"from {min(bound) / 1000:g} on, "
                    f"{100 * forced_share(reasons[max(bound)]):.0f}% at {max(bound) / 1000:g}."
                )
            for rho in (500, 900, max(reasons)):
                if rho in reasons:
                    lines.append(
                        f"RTT {rtt}, {case.policy} at {rho / 1000:g}: "
                        f"{found.kernel[rtt][case][rho].mean:.3f} on the kernel, "
                        f"{found.core[rtt][case][rho].mean:.3f} by the core on the same arrivals "
                        "on the kernel's host, "
                        f"{found.alone[rtt][case][rho].mean:.3f} without; {_told(reasons[rho])}."
                    )
    for (rtt, window), rates in kernel.items():
        for stock in (STOCK, LINUX):
            gains = gains_percent(rates, stock)
            lines.append(
                f"RTT {rtt}, receive buffer {window}: throughput of dynamic relative to {stock}, "
                + ", ".join(f"{wanted:g} bytes {one.mean:+.1f}%" for wanted, one in gains.items())
                + "."
            )
    return lines


def _told(reasons: Mapping[str, int]) -> str:
    whole = max(1, sum(reasons.values()))
    most = sorted(reasons.items(), key=lambda one: -one[1])
    return ", ".join(f"{name} {100 * count / whole:.1f}%" for name, count in most)
