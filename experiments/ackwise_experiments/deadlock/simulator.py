# SPDX-License-Identifier: MIT
"""Spec page 5: throughput deadlock, adaptive acknowledgement, and what became of them here."""

from ackwise_experiments.check import Check
from ackwise_experiments.deadlock import ablation, congestion, fairness, grid, heldout, tables
from ackwise_experiments.deadlock.band import band
from ackwise_experiments.experiment import Experiment, Outcome
from ackwise_experiments.figure import Figure
from ackwise_experiments.runner import Runner

PARTS = (tables.run, heldout.run, grid.run, ablation.run, congestion.run, fairness.run)


def run(runner: Runner) -> Outcome:
    """All parts, in the order of the paper."""
    checks: list[Check] = []
    figures: list[Figure] = []
    notes: list[str] = []
    for part in PARTS:
        found = part(runner)
        checks += found[0]
        figures += found[1]
        notes += found[2]
    return Outcome(checks, figures, notes)


EXPERIMENT = Experiment(
    "deadlock",
    "Throughput deadlock between Nagle's rule and delayed ACKs, A3 and CSA3",
    'R. Chang, H. Chan, A. Yeung, "Deadlock-Free TCP Over High-Speed Internet"',
    "Which buffer sizes make a sender and a receiver stall on each other, and does an adaptive "
    "receiver end it, even under congestion?",
    run,
    band,
    minutes=1,
)
