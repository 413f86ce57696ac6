# SPDX-License-Identifier: MIT
"""The parts of a reproduced experiment."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ackwise_experiments.check import Check
from ackwise_experiments.figure import Figure
from ackwise_experiments.runner import Runner


@dataclass(frozen=True)
class Outcome:
    """Result of an experiment. `notes`: sentences that complete the table."""

    checks: Sequence[Check]
    figures: Sequence[Figure]
    notes: Sequence[str] = field(default=())


@dataclass(frozen=True)
class Experiment:
    """A published experiment: where it was published, its question, and how it is run. `band`: its
    headlines over what the source leaves open. `minutes`: how long both take on two cores."""

    name: str
    title: str
    source: str
    question: str
    run: Callable[[Runner], Outcome]
    band: Callable[[Runner], Outcome] | None = None
    minutes: int = field(kw_only=True)

    def whole(self, runner: Runner) -> Outcome:
        """The experiment with its band."""
        parts = [part(runner) for part in (self.run, self.band) if part]
        return Outcome(
            [one for part in parts for one in part.checks],
            [one for part in parts for one in part.figures],
            [one for part in parts for one in part.notes],
        )
