# SPDX-License-Identifier: MIT
"""What an experiment runs things with: all cores, progress, and a list of what was run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from ackwise import compare, engine
from ackwise import plan as plans
from ackwise.compare import Comparison
from ackwise.engine import Cancel
from ackwise.plan import Plan
from ackwise.pool import run_all

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Ran:
    """One batch of runs: a plan, or scenarios made from the parts that `label` names."""

    label: str
    plan: Plan | None
    scenarios: Sequence[dict[str, Any]]

    @property
    def runs(self) -> int:
        """Runs of the engine."""
        return len(compare.jobs(self.plan, False)) if self.plan else len(self.scenarios)


class Runner:
    """Hands work to the cores and keeps account of it."""

    def __init__(
        self,
        *,
        workers: int | None = None,
        on_progress: Callable[[str, int, int], None] = lambda _what, _done, _all: None,
    ) -> None:
        self.ran: list[Ran] = []
        self._workers = workers
        self._on_progress = on_progress

    def compare(self, plan: str | Plan, *, detailed: bool = False) -> Comparison:
        """A plan (a shipped one by its name) as `ackwise compare --plan` runs it; `detailed`
        keeps series and histograms of each first run."""
        made = plans.load_plan(plan) if isinstance(plan, str) else plan
        label = plan if isinstance(plan, str) else made.title
        self.ran.append(Ran(label, made, ()))
        return compare.run(
            made,
            detailed=detailed,
            workers=self._workers,
            on_progress=partial(self._on_progress, label),
        )

    def simulate(self, label: str, scenarios: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The engine's result for each scenario, in order. `label` says what is run."""
        self.ran.append(Ran(label, None, scenarios))
        return self.map(label, engine.simulate, scenarios)

    def map(
        self, label: str, function: Callable[[Item, Cancel], Result], items: Sequence[Item]
    ) -> list[Result]:
        """`function(item, cancel)` for each item on all cores, results in order."""
        return run_all(
            function,
            items,
            workers=self._workers,
            on_progress=partial(self._on_progress, label),
        )
