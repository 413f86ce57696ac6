# SPDX-License-Identifier: MIT
"""The panels that figures of dynamic acknowledgement are made of, in simulator and kernel."""

from collections.abc import Iterable, Mapping

from ackwise_experiments.dynamic.policies import BOUND, MBIT_S, CostCurve
from ackwise_experiments.dynamic.sender import Rates
from ackwise_experiments.figure import Panel, Series

COST_RATIO = "cost ratio"


def cost_series(
    label: str, curve: CostCurve, ratios: Iterable[int], *, dark: bool = False
) -> Series:
    """A policy's cost at those of `ratios` (thousandths) that were measured."""
    shown = [rho for rho in ratios if rho in curve]
    return Series(
        label,
        [rho / 1000 for rho in shown],
        [curve[rho].mean for rho in shown],
        published=dark,
        spread=None if dark else [curve[rho].ci95 for rho in shown],
    )


def cost_panel(title: str, lines: list[Series], *, log_y: bool = False) -> Panel:
    """Cost over cost ratio, with the bound that dynamic acknowledgement keeps."""
    return Panel(
        COST_RATIO,
        "cost relative to the best schedule",
        lines,
        title=title,
        lines=(("e/(e-1) = 1.58", BOUND),),
        log_y=log_y,
    )


def throughput_panels(rates: Mapping[tuple[str, str], Rates]) -> list[Panel]:
    """Throughput of one request and one response, for each RTT and receive buffer."""
    return [
        Panel(
            "bytes requested",
            "throughput, Mbit/s",
            [
                Series(
                    label,
                    list(by_size),
                    [MBIT_S * sum(runs) / len(runs) for runs in by_size.values()],
                )
                for label, by_size in found.items()
            ],
            title=f"RTT {rtt}, receive buffer: {window}",
            log_x=True,
            log_y=True,
        )
        for (rtt, window), found in rates.items()
    ]
