# SPDX-License-Identifier: MIT
"""Runs scenarios for an experiment on all cores, reports progress and lists what was run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from ackwise import engine, plans
from ackwise.engine import Cancel, typed
from ackwise.engine.pool import run_all
from ackwise.engine.result import RunResult
from ackwise.engine.scenario import Scenario
from ackwise.plans import Plan
from ackwise.results import compare
from ackwise.results.compare import Comparison, Job
from ackwise_experiments import documents
from ackwise_experiments.kept import KeptResults, Results, Scenarios

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Ran:
    """One batch of runs: a plan, or the scenarios of the part that `label` names."""

    label: str
    plan: Plan | None
    scenarios: Sequence[dict[str, Any]]
    on: str = "simulator"

    @property
    def runs(self) -> int:
        """Runs of the engine."""
        return len(compare.jobs(self.plan, False)) if self.plan else len(self.scenarios)


class Runner:
    """Spreads work over the cores. With `keep`, results of scenarios are kept in that folder and
    taken from there."""

    on = "simulator"
    result: type[RunResult] = RunResult
    # Of the scenarios of one call, at most: a thread for each short run would cost more than the
    # run.
    batches = 200

    def __init__(
        self,
        *,
        workers: int | None = None,
        keep: Path | None = None,
        on_progress: Callable[[str, int, int], None] = lambda _what, _done, _all: None,
    ) -> None:
        self.ran: list[Ran] = []
        self._workers = workers
        self._keep = keep
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
            simulate=self._of_plan,
        )

    def _of_plan(self, job: Job, scenario: Scenario, cancel: Cancel) -> RunResult:
        names = f"link {job.link.name}", f"workload {job.workload.name}"
        (found,) = self._results([documents.of(scenario)], *names, cancel)
        return typed.read(self.result, found)

    @property
    def identity(self) -> str:
        """Changes with everything that decides a run's result but is not in its `key`."""
        return f"simulator {engine.identity()}"

    @cached_property
    def _kept(self) -> KeptResults | None:
        return None if self._keep is None else KeptResults(self._keep, self.identity)

    def _results(self, scenarios: Scenarios, link: str, workload: str, cancel: Cancel) -> Results:
        def run() -> Results:
            return [self._one(scenario, link, workload, cancel) for scenario in scenarios]

        if self._kept is None:
            return run()
        return self._kept.get([self.key(one, link, workload) for one in scenarios], run)

    def key(self, scenario: dict[str, Any], _link: str, _workload: str) -> object:
        """With `identity`, all that decides a run's result."""
        return scenario

    def _one(
        self, scenario: dict[str, Any], _link: str, _workload: str, cancel: Cancel
    ) -> dict[str, Any]:
        """Runs one scenario; error messages name the link and the workload."""
        return documents.simulate(scenario, cancel)

    def simulate(
        self,
        label: str,
        scenarios: Sequence[dict[str, Any]],
        take: Callable[[dict[str, Any]], Any] = lambda result: result,
    ) -> list[Any]:
        """`take(result)` for each scenario, in order; `label` names the batch.

        With many scenarios or traces, take only what is needed: whole results fill the memory.
        """
        self.ran.append(Ran(label, None, scenarios, self.on))

        def run(some: Sequence[dict[str, Any]], cancel: Cancel) -> list[Any]:
            return [take(result) for result in self._results(some, label, label, cancel)]

        size = -(-len(scenarios) // self.batches)
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
