# SPDX-License-Identifier: MIT
"""Both transfers on one queue, changing one choice at a time that the paper leaves open."""

from collections.abc import Callable
from itertools import product
from typing import Any

from ackwise.gateway.linklayer import line_bps
from ackwise.plans import Plan, policy
from ackwise.reproduce.figure import Figure, Grid
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
    BOTH,
    DOWN,
    FIFO_DOWNLOAD_LEAST,
    FIFO_UPLOAD_MOST,
    UP,
)

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


_MS = 1_000_000
VARIANTS: tuple[tuple[str, Callable[[Scenario], None]], ...] = (
    ("as in the experiment", lambda _one: None),
    ("delay 2 ms", _pipes("delay_ns", 2 * _MS, "up", "down")),
    ("delay 30 ms", _pipes("delay_ns", 30 * _MS, "up", "down")),
    ("delay 50 ms", _pipes("delay_ns", 50 * _MS, "up", "down")),
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


def open_choices(runner: Runner, plan: Plan) -> Figure:
    """Both transfers on one queue, with one choice changed at a time."""
    link = next(link for link in plan.links if link.name == FIFO_LINK)
    (workload,) = plan.workloads
    seeds = plan.seeds[:OPEN_RUNS]
    made = []
    for (_, change), flows, seed in product(VARIANTS, ((UP,), (DOWN,), BOTH), seeds):
        one = scenario(link, workload, EVERY, flows, seed)
        change(one)
        made.append(one)
    results = iter(runner.simulate("open choices, FIFO", made))
    cells, classes = [], []
    for _ in VARIANTS:
        solo_up, solo_down, runs = ([next(results) for _ in seeds] for _ in range(3))
        up, down = speed(runs, UP), speed(runs, DOWN)
        shares = [
            100 * up.mean / speed(solo_up, UP).mean,
            100 * down.mean / speed(solo_down, DOWN).mean,
        ]
        cells.append(
            [f"{e.mean:.0f} ± {e.ci95 or 0:.0f}" for e in (up, down)]
            + [f"{share:.0f}%" for share in shares]
        )
        kept = shares[1] >= FIFO_DOWNLOAD_LEAST
        name = "download harmed"
        if kept:
            name = "upload at most 45%" if shares[0] <= FIFO_UPLOAD_MOST else "upload above 45%"
        classes.append([name] * 4)
    return Figure(
        "separation-open",
        "Both transfers on one queue: effect of each choice that the paper leaves open",
        [
            Grid(
                "",
                "",
                [name for name, _ in VARIANTS],
                ["up, kbit/s", "down, kbit/s", "up, of solo", "down, of solo"],
                cells,
                classes,
            )
        ],
    )
