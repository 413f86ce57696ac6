# SPDX-License-Identifier: MIT
"""Spec page 4 on the real kernel: each step of its transfer with Linux's own buffers, named from a
capture alone."""

from collections.abc import Mapping
from pathlib import Path

from ackwise.engine import Cancel
from ackwise_experiments.bottleneck import band as sizes
from ackwise_experiments.bottleneck.band import Variant
from ackwise_experiments.bottleneck.build import Made, make
from ackwise_experiments.bottleneck.case import Case
from ackwise_experiments.bottleneck.scenario import LINUX
from ackwise_experiments.bottleneck.steps import Make, run_steps
from ackwise_experiments.bottleneck.story import OWN_RTT_MS, Step
from ackwise_experiments.experiment import Experiment, Outcome
from ackwise_experiments.lab_runner import LabRunner
from ackwise_experiments.runner import Runner

NAME = "linux-bottleneck"
# A step takes half a minute of a core. The hosts' delay is left as it is where it is less than a
# twentieth of the round trip, for a fifth of it is then less than a hundredth.
SMALL = 1 / 20


def _in_the_lab(runner: Runner) -> Make:
    if not isinstance(runner, LabRunner):
        raise TypeError("runs on the lab's kernel")

    def made(case: Case, folder: Path, cancel: Cancel) -> Made:
        return make(case, folder, runner.kernel, cancel)

    return made


def _where_it_counts(variant: Variant) -> Variant:
    def vary(step: Step) -> Step:
        other = variant(step)
        if other.delay_ms != step.delay_ms and step.rtt_ms * SMALL > OWN_RTT_MS:
            return step
        return other

    return vary


VARIANTS: Mapping[str, Variant] = {
    name: _where_it_counts(variant) for name, variant in sizes.VARIANTS.items()
}


def run(runner: Runner) -> Outcome:
    """Every step."""
    return run_steps(runner, _in_the_lab(runner), LINUX, "the kernel", "linux-")


def band(runner: Runner) -> Outcome:
    """What the simulator's band has; about four minutes on two cores."""
    return sizes.band(runner, _in_the_lab(runner), LINUX, NAME, VARIANTS)


EXPERIMENT = Experiment(
    NAME,
    "A transfer that is slow over distance, on Linux",
    "a network engineer's notes of 2015, spec page 4",
    "Does the diagnosis name from a capture alone what limits each step of a transfer between two "
    "Linux 6.12 hosts, as the kernel's own account has it?",
    run,
    band,
    minutes=10,
)
