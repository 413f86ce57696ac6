# SPDX-License-Identifier: MIT
"""A single queue on the real kernel over what the paper leaves open: its length and the download's
window, changed as in the simulator."""

from collections.abc import Sequence
from itertools import product
from typing import Any

from ackwise.reproduce.band import bands, measured, shown
from ackwise.reproduce.experiment import Outcome
from ackwise.reproduce.runner import Runner
from ackwise.reproduce.separation.access import HOME
from ackwise.reproduce.separation.choices import HEADLINES, QUEUES, WINDOWS
from ackwise.reproduce.separation.lab_runs import (
    COMPARED_SEEDS,
    PAPER_HOSTS,
    GatewayJob,
    scenario,
    settled_run,
    speed,
)
from ackwise.reproduce.separation.paper import BOTH, DOWN, FIFO, UP
from ackwise.results.stats import Estimate, mean_of

# A run of six minutes takes several seconds: without two lengths between the others.
SETTINGS = {name: QUEUES[name] for name in QUEUES if not name.endswith((" 90", " 110"))} | WINDOWS
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
