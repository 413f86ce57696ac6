# SPDX-License-Identifier: MIT
"""Both transfers on one queue, changing one thing at a time: what the paper leaves open, and the
sizes that it gives, by a fifth."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from ackwise import plans
from ackwise.engine import typed
from ackwise.gateway.linklayer import line_bps
from ackwise.plans import Plan, policy
from ackwise.results.stats import Estimate, mean_of
from ackwise_experiments.band import AS_RUN, Headline, Settings, bands, shown
from ackwise_experiments.changes import Change, Scenario, changed, twice_as_long, unchanged
from ackwise_experiments.experiment import Outcome
from ackwise_experiments.figure import Figure, Grid
from ackwise_experiments.runner import Runner
from ackwise_experiments.separation.cases import (
    ADSL_LAYER,
    EVERY,
    FIFO_LINK,
    SECOND,
    change_senders,
    goodput_kbps,
    scenario,
    set_link_layer,
    speed,
)
from ackwise_experiments.separation.paper import (
    ASKED,
    BOTH,
    DOWN,
    FIFO_DOWNLOAD_LEAST,
    FIFO_UPLOAD_MOST,
    UP,
)

OPEN_RUNS = 5


def _pipes(key: str, value: Any, *sides: str) -> Change:
    def change(one: Scenario) -> None:
        for side in sides:
            one[side][key] = value

    return change


def _receivers(policy_text: str, *flows: str) -> Change:
    def change(one: Scenario) -> None:
        chosen = typed.document(policy.parse(policy_text, "separation").for_engine())
        for flow in one["groups"]:
            if flow["name"] in flows:
                flow["policy"] = chosen

    return change


def _in_cells(one: Scenario) -> None:
    """Every packet in cells, on a line whose cells carry the same rates."""
    set_link_layer(one, ADSL_LAYER)
    for side in ("up", "down"):
        one[side]["rate_bps"] = line_bps(one[side]["rate_bps"])


def _window(packets: int) -> Change:
    def change(one: Scenario) -> None:
        for flow in one["groups"]:
            if flow["name"] == DOWN:
                flow["sender"]["max_window_segments"] = packets

    return change


_MS = 1_000_000
QUEUES = {f"uplink's queue {n}": _pipes("queue_packets", n, "up") for n in (80, 90, 99, 110, 120)}
# The band.
SIZES: Settings = {
    AS_RUN: unchanged,
    "delay 2 ms": _pipes("delay_ns", 2 * _MS, "up", "down"),
    "delay 30 ms": _pipes("delay_ns", 30 * _MS, "up", "down"),
    "delay 50 ms": _pipes("delay_ns", 50 * _MS, "up", "down"),
    **QUEUES,
    **{f"download's window {n}": _window(n) for n in (70, 79, 96, 106)},
    **{f"provider's queue {n}": _pipes("queue_packets", n, "down") for n in (160, 240)},
    "twice as long": twice_as_long,
}
# Other hosts and lines.
OTHERS: Settings = {
    "no jitter": _pipes("jitter_ns", 0, "up", "down"),
    "packets in ATM cells": _in_cells,
    "provider's queue 100": _pipes("queue_packets", 100, "down"),
    "uplink's queue 50": _pipes("queue_packets", 50, "up"),
    "uplink's queue 150": _pipes("queue_packets", 150, "up"),
    "loss recovery by timeout only": change_senders(recovery="timeout"),
    "loss recovery by SACK": change_senders(recovery="sack"),
    "CUBIC with SACK": change_senders(recovery="sack", congestion_control="cubic"),
    "minimum RTO 200 ms": change_senders(min_rto_ns=200 * _MS),
    "initial window 10": change_senders(initial_window_segments=10),
    "remote host uses delayed ACKs": _receivers(SECOND, UP),
    "both hosts use delayed ACKs": _receivers(SECOND, UP, DOWN),
}
VARIANTS = {**SIZES, **OTHERS}


@dataclass(frozen=True)
class Choice:
    """Both transfers with one thing changed: kbit/s, and % of mean solo throughput."""

    name: str
    up: Estimate
    down: Estimate
    up_share: Estimate
    down_share: Estimate


def choices(runner: Runner, plan: Plan) -> list[Choice]:
    """Each variant, with its own solo throughput."""
    link = next(link for link in plan.links if link.name == FIFO_LINK)
    (workload,) = plan.workloads
    seeds = plan.seeds[:OPEN_RUNS]
    made = []
    for change, flows, seed in product(VARIANTS.values(), ((UP,), (DOWN,), BOTH), seeds):
        made.append(changed(scenario(link, workload, EVERY, flows, seed), change))
    results = iter(runner.simulate("open choices, FIFO", made))
    found = []
    for name in VARIANTS:
        solo_up, solo_down, runs = ([next(results) for _ in seeds] for _ in range(3))
        alone = {UP: speed(solo_up, UP).mean, DOWN: speed(solo_down, DOWN).mean}
        shares = [
            mean_of([100 * goodput_kbps(run, flow) / alone[flow] for run in runs]) for flow in BOTH
        ]
        found.append(Choice(name, speed(runs, UP), speed(runs, DOWN), *shares))
    return found


HEADLINES = (
    Headline("upload's share, FIFO", None, FIFO_UPLOAD_MOST, ASKED, "%", "figure 3"),
    Headline("download's share, FIFO", FIFO_DOWNLOAD_LEAST, None, ASKED, "%", "figure 3"),
)


def band_of(found: Sequence[Choice]) -> Outcome:
    """The verdict on a single queue, and every choice in numbers."""
    inside = {one.name: (one.up_share, one.down_share) for one in found if one.name in SIZES}
    made = shown("separation", bands(HEADLINES, inside))
    return Outcome(made.checks, [*made.figures, choices_figure(found)], made.notes)


def band(runner: Runner) -> Outcome:
    """A single queue over what the paper leaves open."""
    return band_of(choices(runner, plans.load_plan("separation")))


def choices_figure(found: Sequence[Choice]) -> Figure:
    """Both transfers on one queue, with one thing changed at a time."""
    cells, classes = [], []
    for one in found:
        cells.append(
            [f"{e.mean:.0f} ± {e.ci95 or 0:.0f}" for e in (one.up, one.down)]
            + [f"{share.mean:.0f}%" for share in (one.up_share, one.down_share)]
        )
        name = "download harmed"
        if one.down_share.mean >= FIFO_DOWNLOAD_LEAST:
            low = one.up_share.mean <= FIFO_UPLOAD_MOST
            name = "upload at most 45%" if low else "upload above 45%"
        classes.append([name] * 4)
    return Figure(
        "separation-open",
        "Both transfers on one queue: effect of each choice that the paper leaves open",
        [
            Grid(
                "",
                "",
                [one.name for one in found],
                ["up, kbit/s", "down, kbit/s", "up, of solo", "down, of solo"],
                cells,
                classes,
            )
        ],
    )
