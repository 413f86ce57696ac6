# SPDX-License-Identifier: MIT
"""What an experiment runs things with: all cores, progress, and a list of what was run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from ackwise import engine, plans
from ackwise.engine import Cancel
from ackwise.engine.pool import run_all
from ackwise.plans import Plan
from ackwise.results import compare
from ackwise.results.compare import Comparison

BATCHES = 200  # of the scenarios of one call, at most

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Ran:
    """One batch of runs: a plan, or scenarios made from the parts that `label` names."""

    label: str
    plan: Plan | None
    scenarios: Sequence[dict[str, Any]]
    on: str = "simulator"

    @property
    def runs(self) -> int:
        """Runs of the engine."""
        return len(compare.jobs(self.plan, False)) if self.plan else len(self.scenarios)


class Runner:
    """Hands work to the cores and keeps account of it."""

    on = "simulator"

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
        self.ran.append(Ran(label, made, (), self.on))
        return compare.run(
            made,
            detailed=detailed,
            workers=self._workers,
            on_progress=partial(self._on_progress, label),
            simulate=lambda job, scenario, cancel: self._one(
                scenario, f"link {job.link.name}", f"workload {job.workload.name}", cancel
            ),
        )

    def _one(
        self, scenario: dict[str, Any], _link: str, _workload: str, cancel: Cancel
    ) -> dict[str, Any]:
        """Runs one scenario; messages name its link and its workload."""
        return engine.simulate(scenario, cancel)

    def simulate(
        self,
        label: str,
        scenarios: Sequence[dict[str, Any]],
        take: Callable[[dict[str, Any]], Any] = lambda result: result,
    ) -> list[Any]:
        """`take` of the engine's result for each scenario, in order. `label` says what is run.

        With many scenarios and traces, take what is needed: whole results fill the memory.
        """
        self.ran.append(Ran(label, None, scenarios, self.on))

        def run(some: Sequence[dict[str, Any]], cancel: Cancel) -> list[Any]:
            return [take(self._one(scenario, label, label, cancel)) for scenario in some]

        # Handing each short run to a thread of its own costs more than the run.
        size = -(-len(scenarios) // BATCHES)
        batches = [scenarios[i : i + size] for i in range(0, len(scenarios), max(1, size))]
        return [one for found in self.map(label, run, batches) for one in found]

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
