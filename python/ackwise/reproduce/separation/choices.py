# SPDX-License-Identifier: MIT
"""Both transfers on one queue, changing one thing at a time: what the paper leaves open, and the
sizes that it gives, by a fifth. The verdict is of the whole band."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from ackwise.gateway.linklayer import line_bps
from ackwise.plans import Plan, policy
from ackwise.reproduce.check import Check, at_least, at_most, grouped
from ackwise.reproduce.figure import Figure, Grid, Panel, Series
from ackwise.reproduce.runner import Runner
from ackwise.reproduce.separation.cases import (
    ADSL_LAYER,
    EVERY,
    FIFO_LINK,
    SECOND,
    Scenario,
    change_senders,
    scenario,
    set_link_layer,
    speed,
)
from ackwise.reproduce.separation.paper import (
    ASKED,
    BOTH,
    DOWN,
    FIFO_DOWNLOAD_LEAST,
    FIFO_UPLOAD_MOST,
    UP,
)
from ackwise.results.stats import Estimate

OPEN_RUNS = 5


def _pipes(key: str, value: Any, *sides: str) -> Callable[[Scenario], None]:
    def change(one: Scenario) -> None:
        for side in sides:
            one[side][key] = value

    return change


def _receivers(policy_text: str, *flows: str) -> Callable[[Scenario], None]:
    def change(one: Scenario) -> None:
        chosen = policy.parse(policy_text, "separation").for_engine()
        for flow in one["groups"]:
            if flow["name"] in flows:
                flow["policy"] = chosen

    return change


def _in_cells(one: Scenario) -> None:
    """Every packet in cells, on a line whose cells carry the same rates."""
    set_link_layer(one, ADSL_LAYER)
    for side in ("up", "down"):
        one[side]["rate_bps"] = line_bps(one[side]["rate_bps"])


def _window(packets: int) -> Callable[[Scenario], None]:
    def change(one: Scenario) -> None:
        for flow in one["groups"]:
            if flow["name"] == DOWN:
                flow["sender"]["max_window_segments"] = packets

    return change


def _twice_as_long(one: Scenario) -> None:
    one["duration_ns"] *= 2


_MS = 1_000_000
Variants = tuple[tuple[str, Callable[[Scenario], None]], ...]
# Sizes: the band.
BAND: Variants = (
    ("as in the experiment", lambda _one: None),
    ("delay 2 ms", _pipes("delay_ns", 2 * _MS, "up", "down")),
    ("delay 30 ms", _pipes("delay_ns", 30 * _MS, "up", "down")),
    ("delay 50 ms", _pipes("delay_ns", 50 * _MS, "up", "down")),
    *((f"uplink's queue {n}", _pipes("queue_packets", n, "up")) for n in (80, 90, 99, 110, 120)),
    *((f"download's window {n}", _window(n)) for n in (70, 79, 96, 106)),
    *((f"provider's queue {n}", _pipes("queue_packets", n, "down")) for n in (160, 240)),
    ("twice as long", _twice_as_long),
)
# Other hosts and lines.
OTHERS: Variants = (
    ("no jitter", _pipes("jitter_ns", 0, "up", "down")),
    ("packets in ATM cells", _in_cells),
    ("provider's queue 100", _pipes("queue_packets", 100, "down")),
    ("uplink's queue 50", _pipes("queue_packets", 50, "up")),
    ("uplink's queue 150", _pipes("queue_packets", 150, "up")),
    ("loss recovery by timeout only", change_senders(recovery="timeout")),
    ("loss recovery by SACK", change_senders(recovery="sack")),
    ("CUBIC with SACK", change_senders(recovery="sack", congestion_control="cubic")),
    ("minimum RTO 200 ms", change_senders(min_rto_ns=200 * _MS)),
    ("initial window 10", change_senders(initial_window_segments=10)),
    ("remote host uses delayed ACKs", _receivers(SECOND, UP)),
    ("both hosts use delayed ACKs", _receivers(SECOND, UP, DOWN)),
)
VARIANTS = (*BAND, *OTHERS)


@dataclass(frozen=True)
class Choice:
    """Both transfers with one thing changed: kbit/s, and % of solo throughput."""

    name: str
    up: Estimate
    down: Estimate
    up_percent: float
    down_percent: float


def choices(runner: Runner, plan: Plan) -> list[Choice]:
    """Each variant, with its own solo throughput."""
    link = next(link for link in plan.links if link.name == FIFO_LINK)
    (workload,) = plan.workloads
    seeds = plan.seeds[:OPEN_RUNS]
    made = []
    for (_, change), flows, seed in product(VARIANTS, ((UP,), (DOWN,), BOTH), seeds):
        one = scenario(link, workload, EVERY, flows, seed)
        change(one)
        made.append(one)
    results = iter(runner.simulate("open choices, FIFO", made))
    found = []
    for name, _ in VARIANTS:
        solo_up, solo_down, runs = ([next(results) for _ in seeds] for _ in range(3))
        up, down = speed(runs, UP), speed(runs, DOWN)
        shares = [
            100 * up.mean / speed(solo_up, UP).mean,
            100 * down.mean / speed(solo_down, DOWN).mean,
        ]
        found.append(Choice(name, up, down, *shares))
    return found


def band_checks(found: Sequence[Choice]) -> list[Check]:
    """The verdict on a single queue, over the whole band."""
    band = found[: len(BAND)]
    return grouped(
        f"a single queue over {len(BAND)} settings, % of solo throughput",
        [
            at_most(
                "upload's share, FIFO, highest of the band", FIFO_UPLOAD_MOST,
                max(one.up_percent for one in band), basis=ASKED, unit="%", source="figure 3",
            ),
            at_least(
                "download's share, FIFO, lowest of the band", FIFO_DOWNLOAD_LEAST,
                min(one.down_percent for one in band), basis=ASKED, unit="%", source="figure 3",
            ),
        ],
    )  # fmt: skip


def band_note(found: Sequence[Choice]) -> str:
    """The band in words."""
    band = found[: len(BAND)]
    low, high = (chosen(band, key=lambda one: one.up_percent) for chosen in (min, max))
    return (
        f"On one queue the upload keeps {low.up_percent:.0f}% ({low.name}) to "
        f"{high.up_percent:.0f}% ({high.name}) over {len(band)} settings."
    )


def band_figure(found: Sequence[Choice]) -> Figure:
    """The upload's share over the band."""
    band = found[: len(BAND)]
    names = [one.name.replace(" ", "\n") for one in band]
    return Figure(
        "separation-band",
        "Upload on one queue: one size changed at a time",
        [
            Panel(
                "",
                "upload, % of solo throughput",
                [Series("", names, [one.up_percent for one in band], "bars")],
                lines=[("asked: at most 45", FIFO_UPLOAD_MOST)],
            )
        ],
        source="figure 3",
    )


def choices_figure(found: Sequence[Choice]) -> Figure:
    """Both transfers on one queue, with one thing changed at a time."""
    cells, classes = [], []
    for one in found:
        cells.append(
            [f"{e.mean:.0f} ± {e.ci95 or 0:.0f}" for e in (one.up, one.down)]
            + [f"{share:.0f}%" for share in (one.up_percent, one.down_percent)]
        )
        name = "download harmed"
        if one.down_percent >= FIFO_DOWNLOAD_LEAST:
            low = one.up_percent <= FIFO_UPLOAD_MOST
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
