# SPDX-License-Identifier: MIT
"""Figures and notes of dynamic acknowledgement."""

from ackwise_experiments.dynamic.panels import cost_panel, cost_series, throughput_panels
from ackwise_experiments.dynamic.policies import (
    BLOWUP,
    BOUND,
    DYNAMIC,
    FIXED,
    FREE,
    GIVEN,
    GREEDY,
    HOSTS,
    LIMITED,
    LINUX,
    OVERALL,
    PER_ACK,
    UNIT_NS,
    CostCurves,
    LimitedPolicy,
    Size,
    worst_expected,
)
from ackwise_experiments.dynamic.sender import CLOCKED, SIMULATED, Rates, gains_percent
from ackwise_experiments.figure import Figure, Grid


def figures(
    given: dict[str, CostCurves],
    captured: dict[str, CostCurves],
    closed: dict[str, dict[str, CostCurves]],
    rates: dict[tuple[str, str], Rates],
    size: Size,
) -> list[Figure]:
    """The paper's four figures, and further ones."""
    as_published = [
        cost_panel(
            f"{name}, RTT {rtt}",
            [
                cost_series(case.policy, closed[rtt]["uniform"][case], ratios)
                for case in SIMULATED
                if case.limits == LIMITED
            ],
            log_y=True,
        )
        for name, ratios in (("overall", OVERALL), ("close-up", BLOWUP))
        for rtt in closed
    ]
    limits = [
        cost_panel(
            kind,
            [
                cost_series(limit, given[kind][LimitedPolicy(DYNAMIC, limit)], size.ratios)
                for limit in HOSTS
            ],
        )
        for kind in given
    ]
    drawn = (DYNAMIC, PER_ACK, FIXED, GREEDY)
    draws = [
        cost_panel(
            kind,
            [cost_series(p, given[kind][LimitedPolicy(p, FREE)], size.ratios) for p in drawn],
        )
        for kind in given
    ]
    worst = [
        [worst_expected(curves[LimitedPolicy(p, FREE)]) for p in drawn]
        for curves in (given | captured).values()
    ]
    kept = Grid(
        "arrivals",
        "policy",
        [*given, *(f"capture: {name}" for name in captured)],
        drawn,
        [[f"{w:.3f}" for w in row] for row in worst],
        [["keeps e/(e-1)" if w <= BOUND else "exceeds it" for w in row] for row in worst],
        title="expected ratio over the draws of z, worst sequence and cost ratio",
    )
    clock = [
        cost_panel(
            f"a window of one segment, RTT {rtt}",
            [
                cost_series(case.policy, curve, size.ratios)
                for case, curve in found[CLOCKED].items()
            ],
        )
        for rtt, found in closed.items()
    ]
    real = [
        cost_panel(
            name,
            [
                cost_series(case.policy, curves[case], size.ratios)
                for case in curves
                if case.limits == LIMITED and case.policy != PER_ACK
            ],
            log_y=True,
        )
        for name, curves in captured.items()
    ]
    return [
        Figure("dynamic-ratio", "Competitive ratio", as_published, "slides 21 to 24", columns=2),
        Figure("dynamic-limits", "Effect of the RFC limits on dynamic", limits, columns=2),
        Figure("dynamic-draw", "How z is drawn, without limits", draws, columns=2),
        Figure(
            "dynamic-kept",
            "Which policies keep the bound on which arrivals, without limits",
            [kept],
        ),
        Figure("dynamic-clocked", "Arrivals that wait for ACKs", clock, columns=2),
        Figure("dynamic-captures", "Real captures", real, columns=2),
        Figure(
            "dynamic-streaming",
            "One request, one response",
            throughput_panels(rates),
            "slide 28",
            columns=2,
        ),
    ]


def notes(
    given: dict[str, CostCurves],
    captured: dict[str, CostCurves],
    closed: dict[str, dict[str, CostCurves]],
    rates: dict[tuple[str, str], Rates],
) -> list[str]:
    """What the tables do not show."""
    lines = [f"One unit of latency is {UNIT_NS // 10**6} ms: the paper gives no unit."]
    for kind, curves in (given | captured).items():
        bound = sum(p.limited for p in curves[LimitedPolicy(DYNAMIC, LIMITED)].values())
        lines.append(f"{kind}: RFC limits bind at {bound} of {len(curves[GIVEN[0]])} cost ratios.")
    for kind, curves in (given | captured).items():
        curve = curves[LimitedPolicy(PER_ACK, FREE)]
        broken = {rho: p.expected for rho, p in curve.items() if p.expected > BOUND}
        if broken:
            rho = max(broken, key=lambda r: broken[r])
            lines.append(
                f"{kind}, z for each ACK, no limits: expected cost above e/(e-1) at {len(broken)} "
                f"of {len(curve)} cost ratios, up to {broken[rho]:.4f} (at {rho / 1000:g})."
            )
    for rtt, found in closed.items():
        linux = found["uniform"][LimitedPolicy(LINUX, LIMITED)]
        clock = found[CLOCKED][LimitedPolicy(DYNAMIC, LIMITED)]
        worst = max(clock, key=lambda rho: clock[rho].mean)
        lines.append(
            f"RTT {rtt}: linux 6.12 costs {linux[min(linux)].mean:.2f} times the best schedule at "
            f"{min(linux) / 1000:g}, {linux[max(linux)].mean:.2f} at {max(linux) / 1000:g}; "
            f"dynamic, clocked by its own ACKs, up to {clock[worst].mean:.2f} "
            f"(at {worst / 1000:g})."
        )
        gains = gains_percent(rates[rtt, "today"], LINUX)
        best = max(gains, key=lambda wanted: gains[wanted].mean)
        lines.append(
            f"RTT {rtt}, today's receive buffers: throughput of dynamic relative to linux 6.12, "
            f"best size ({best} bytes): {gains[best].mean:+.1f}%."
        )
    return lines
