# SPDX-License-Identifier: MIT
"""Spec page 4 on the real kernel: each step of its transfer with Linux's own buffers, named from a
capture alone."""

from pathlib import Path

from ackwise.engine import Cancel
from ackwise.reproduce.bottleneck.case import Case
from ackwise.reproduce.bottleneck.making import Made, make
from ackwise.reproduce.bottleneck.retold import retell
from ackwise.reproduce.bottleneck.scenario import LINUX
from ackwise.reproduce.experiment import Experiment, Outcome
from ackwise.reproduce.lab_runner import LabRunner
from ackwise.reproduce.runner import Runner


def run(runner: Runner) -> Outcome:
    """Every step."""
    if not isinstance(runner, LabRunner):
        raise TypeError("runs on the lab's kernel")

    def in_the_lab(case: Case, folder: Path, cancel: Cancel) -> Made:
        return make(case, folder, runner.kernel, cancel)

    return retell(runner, in_the_lab, LINUX, "the kernel", "linux-")


EXPERIMENT = Experiment(
    "linux-bottleneck",
    "A transfer that is slow over distance, on Linux",
    "a network engineer's notes of 2015, spec page 4",
    "Does the diagnosis name from a capture alone what limits each step of a transfer between two "
    "Linux 6.12 hosts, as the kernel's own account has it?",
    run,
)
