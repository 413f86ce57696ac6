# SPDX-License-Identifier: MIT
"""What a reproduced experiment consists of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ackwise.reproduce.check import Check
from ackwise.reproduce.figure import Figure
from ackwise.reproduce.runner import Runner


@dataclass(frozen=True)
class Outcome:
    """What a run of an experiment found. `notes`: sentences that belong beside the table."""

    checks: Sequence[Check]
    figures: Sequence[Figure]
    notes: Sequence[str] = field(default=())


@dataclass(frozen=True)
class Experiment:
    """A published experiment: where it stands, what it asks, how we run it."""

    name: str
    title: str
    source: str
    question: str
    run: Callable[[Runner], Outcome]
