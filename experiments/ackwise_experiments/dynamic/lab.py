# SPDX-License-Identifier: MIT
"""Spec page 2 on the real kernel: what its ACKs cost relative to the best schedule for the arrivals
that the capture shows, and what of the host keeps the algorithm from it."""

from ackwise_experiments.dynamic.lab_band import band
from ackwise_experiments.dynamic.lab_checks import (
    cost_checks,
    host_checks,
    simulator_checks,
    throughput_checks,
)
from ackwise_experiments.dynamic.lab_figures import figures, notes
from ackwise_experiments.dynamic.lab_runs import LabSize, costs, streaming
from ackwise_experiments.experiment import Experiment, Outcome
from ackwise_experiments.lab_runner import LabRunner
from ackwise_experiments.runner import Runner


def _lab(runner: Runner) -> LabRunner:
    if not isinstance(runner, LabRunner):
        raise TypeError("runs on the lab's kernel")
    return runner


def measure(size: LabSize, runner: LabRunner) -> Outcome:
    """Both experiments at a given size."""
    found = costs(runner, size)
    kernel, simulator = streaming(runner, size)
    return Outcome(
        [
            *cost_checks(found),
            *host_checks(found),
            *throughput_checks(kernel),
            *simulator_checks(found, kernel, simulator),
        ],
        figures(found, kernel, size),
        notes(found, kernel),
    )


def run(runner: Runner) -> Outcome:
    """Both experiments; a quarter of an hour of one core at most."""
    return measure(LabSize(), _lab(runner))


EXPERIMENT = Experiment(
    "linux-dynamic",
    "Dynamic acknowledgement on the real kernel",
    "Lim, Lai, Wong: Experiment and analysis of dynamic TCP acknowledgement; spec page 2; "
    "Linux 6.12 in virtual time",
    "Does the randomized algorithm stay within 1.58 times the best schedule's cost on a real "
    "kernel, what of the host keeps it from that, and what does it do to throughput?",
    run,
    lambda runner: band(_lab(runner), LabSize()),
    minutes=4,
)
