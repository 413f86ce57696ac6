# SPDX-License-Identifier: MIT
"""Spec page 4 in the simulator: each step of its transfer, named from a capture alone."""

from pathlib import Path

from ackwise.engine import Cancel
from ackwise_experiments.bottleneck.band import band
from ackwise_experiments.bottleneck.build import Made, make
from ackwise_experiments.bottleneck.case import Case
from ackwise_experiments.bottleneck.scenario import SIMULATOR
from ackwise_experiments.bottleneck.steps import run_steps
from ackwise_experiments.experiment import Experiment, Outcome
from ackwise_experiments.runner import Runner


def _make(case: Case, folder: Path, _cancel: Cancel) -> Made:
    return make(case, folder)


def run(runner: Runner) -> Outcome:
    """Every step."""
    return run_steps(runner, _make, SIMULATOR, "the simulator's state", "")


EXPERIMENT = Experiment(
    "bottleneck",
    "A transfer that is slow over distance, step by step",
    "a network engineer's notes of 2015, spec page 4",
    "Does the diagnosis name from a capture alone what limits each step of a transfer at 1 Gbit/s "
    "over 0, 10 and 100 ms, and size the buffers that end it?",
    run,
    lambda runner: band(runner, _make, SIMULATOR, "bottleneck"),
    minutes=1,
)
