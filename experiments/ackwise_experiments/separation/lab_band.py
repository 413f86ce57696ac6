# SPDX-License-Identifier: MIT
"""A single queue on the real kernel over what the paper leaves open: its length and the download's
window, changed as in the simulator."""

from collections.abc import Sequence
from itertools import product
from typing import Any

from ackwise.results.stats import Estimate, mean_of
from ackwise_experiments.band import bands, measured, shown
from ackwise_experiments.changes import Change, Scenario
from ackwise_experiments.experiment import Outcome
from ackwise_experiments.runner import Runner
from ackwise_experiments.separation.access import HOME
from ackwise_experiments.separation.choices import HEADLINES, QUEUES
from ackwise_experiments.separation.lab_runs import (
    COMPARED_SEEDS,
    PAPER_HOSTS,
    GatewayJob,
    scenario,
    settled_run,
    speed,
)
from ackwise_experiments.separation.paper import BOTH, DOWN, FIFO, UP

# Of receive buffer for each segment of the window: with these, the RTT of a download alone is what
# so many packets take on the downlink, within 1% for windows of 70 to 106.
SEGMENT_MEMORY_BYTES = 2385
FIRST_BUFFER_BYTES = 65_536


def _window(segments: int) -> Change:
    """The download's window, through its receive buffer. Linux 6.12 forgets a clamp of the window
    with the first segment, and then only scaling bounds it: by 65535 bytes times a power of two."""

    def change(made: Scenario) -> None:
        for group in made["groups"]:
            if group["name"] == DOWN:
                group["sender"]["max_window_segments"] = 0
                most = segments * SEGMENT_MEMORY_BYTES
                bounds = {"recv_buffer_bytes": FIRST_BUFFER_BYTES, "recv_buffer_max_bytes": most}
                group["receiver"] = {**group.get("receiver", {}), **bounds}

    return change


# A run of six minutes takes several seconds: without two lengths between the others. 88 is what the
# experiment asks for and the clamp makes 90.
SETTINGS = {
    **{name: QUEUES[name] for name in QUEUES if not name.endswith((" 90", " 110"))},
    **{f"download's window {n}": _window(n) for n in (70, 79, 88, 96, 106)},
}
JOBS = [GatewayJob(HOME, PAPER_HOSTS, FIFO, flows) for flows in ((UP,), (DOWN,), BOTH)]
WANTED = list(product(JOBS, range(1, COMPARED_SEEDS + 1)))


def _read(results: Sequence[dict[str, Any]]) -> list[Estimate]:
    """Each flow's share of its mean solo throughput, %."""
    runs = [settled_run(job, result) for (job, _), result in zip(WANTED, results, strict=True)]
    alone_up, alone_down, both = (
        runs[i * COMPARED_SEEDS : (i + 1) * COMPARED_SEEDS] for i in range(len(JOBS))
    )
    solo_up, solo_down = speed(alone_up, UP).mean, speed(alone_down, DOWN).mean
    return [
        mean_of([100 * run.up / solo_up for run in both]),
        mean_of([100 * run.down / solo_down for run in both]),
    ]


def band(runner: Runner) -> Outcome:
    """Both shares in each setting; about four minutes on two cores."""
    found = measured(runner, SETTINGS, [scenario(*one) for one in WANTED], _read)
    return shown("linux-separation", bands(HEADLINES, found))
