# SPDX-License-Identifier: MIT
"""Runs a plan on all cores and turns the runs into cells: one for each link, workload, policy and
measured group, with means, confidence intervals and the change against the baseline."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ackwise import engine, plans
from ackwise.engine import Cancel
from ackwise.engine.pool import run_all
from ackwise.errors import InputError, RunError
from ackwise.plans import Link, Plan, Workload
from ackwise.plans.policy import PolicyChoice
from ackwise.results.metrics import ACKS, GOODPUT, METRICS, Better
from ackwise.results.stats import Estimate, estimate, is_best, paired_percent

BELOW_PERCENT = 1.0  # goodput further below the baseline than this is reported
SERIES_POINTS = 100
TRACE_POINTS_TOTAL = 80_000
TRACE_POINTS_MAX = 2000
TRACE_POINTS_MIN = 250


@dataclass(frozen=True)
class Job:
    """One run of the engine."""

    link: Link
    workload: Workload
    policy: PolicyChoice
    run: int
    seed: int
    detailed: bool  # keeps series and trace, for the report


Simulate = Callable[[Job, dict[str, Any], Cancel], dict[str, Any]]


def _in_simulator(_job: Job, scenario: dict[str, Any], cancel: Cancel) -> dict[str, Any]:
    return engine.simulate(scenario, cancel)


@dataclass(frozen=True)
class GroupRun:
    """The figures of one measured group in one run."""

    job: Job
    group: str
    values: dict[str, float | None]  # by metric key
    acks_by_reason: dict[str, int]
    detail: dict[str, Any] | None


@dataclass(frozen=True)
class Cell:
    """All runs of one link, workload, policy and group."""

    link: Link
    workload: Workload
    policy: PolicyChoice
    group: str
    runs: list[GroupRun]
    estimates: dict[str, Estimate | None]
    goodput_change_percent: Estimate | None  # against the baseline; None for the baseline itself
    below_baseline: bool
    best: frozenset[str]  # metric keys in which the mean is the table's best, or within 0.05% of it

    @property
    def acks_by_reason(self) -> dict[str, float]:
        """Mean count of ACKs for each reason that occurred."""
        labels = [r["label"] for r in engine.reasons()]
        seen = {label for run in self.runs for label in run.acks_by_reason}
        return {
            label: sum(run.acks_by_reason.get(label, 0) for run in self.runs) / len(self.runs)
            for label in [*labels, *sorted(seen - set(labels))]
            if label in seen
        }


@dataclass(frozen=True)
class ResultTable:
    """The cells of one link and workload, and each group's cheapest policy."""

    link: Link
    workload: Workload
    cells: list[Cell]
    cheapest: dict[str, str]  # group -> policy with fewest ACKs within 1% of the best goodput


@dataclass(frozen=True)
class Comparison:
    """A plan with its results."""

    plan: Plan
    tables: list[ResultTable]

    def below_baseline(self) -> Iterator[Cell]:
        """Cells whose goodput lies more than 1% below the baseline's."""
        for table in self.tables:
            yield from (cell for cell in table.cells if cell.below_baseline)


def jobs(plan: Plan, detailed: bool) -> list[Job]:
    """Every run of a plan, in the order of the results."""
    return [
        Job(link, workload, chosen, run, seed, detailed and run == 0)
        for link in plan.links
        for workload in plan.workloads
        for chosen in plan.policies
        for run, seed in enumerate(plan.seeds)
    ]


def _trace_limit(plan: Plan) -> int:
    cells = len(plan.links) * len(plan.workloads) * len(plan.policies)
    return max(TRACE_POINTS_MIN, min(TRACE_POINTS_MAX, TRACE_POINTS_TOTAL // cells))


def _run(job: Job, trace_limit: int, simulate: Simulate, cancel: Cancel) -> list[GroupRun]:
    scenario = plans.scenario_of(
        job.link,
        job.workload,
        job.policy,
        job.seed,
        series_interval_ns=max(1, job.workload.duration_ns // SERIES_POINTS) if job.detailed else 0,
        trace_limit=trace_limit if job.detailed else 0,
    )
    try:
        result = simulate(job, scenario, cancel)
    except InputError as problem:
        raise InputError(
            f"link {job.link.name}, workload {job.workload.name}, policy {job.policy.label}: "
            f"{problem}"
        ) from None
    host = result[job.link.device]
    ping = result.get("ping") or {"lost": None, "rtt_ns": {"samples": 0}}
    found = {group["name"]: group for group in result["groups"]}
    runs = []
    for name in job.workload.measured_names:
        group = found.get(name)
        if group is None:
            raise RunError(f"the engine returned no group {name!r}")
        group |= {"pings_lost": ping["lost"], "ping_rtt_ns": ping["rtt_ns"]}  # of the whole run
        runs.append(
            GroupRun(
                job,
                name,
                {m.key: m.take(group, host) for m in METRICS},
                dict(group["acks_by_reason"]),
                _detail(group) if job.detailed else None,
            )
        )
    return runs


def _detail(group: dict[str, Any]) -> dict[str, Any]:
    """Series summed over the flows, RTT histogram and the first flow's time-sequence trace."""
    series: dict[str, Any] = {"time_ns": [], "delivered_bytes": [], "acks_by_reason": {}}
    for flow in group["flows"]:
        one = flow.get("series")
        if not one:
            continue
        if len(one["time_ns"]) > len(series["time_ns"]):
            series["time_ns"] = one["time_ns"]
        _add(series["delivered_bytes"], one["delivered_bytes"])
        for reason, counts in one["acks_by_reason"].items():
            _add(series["acks_by_reason"].setdefault(reason, []), counts)
    rtt = group["rtt_ns"]
    return {
        "series": series,
        "rtt": {"upper_ns": rtt["bucket_upper"], "count": rtt["bucket_count"]},
        "trace": next((f["trace"] for f in group["flows"] if f.get("trace")), None),
    }


def _add(into: list[int], values: list[int]) -> None:
    into.extend([0] * (len(values) - len(into)))
    for i, value in enumerate(values):
        into[i] += value


def run(
    plan: Plan,
    *,
    detailed: bool = False,
    workers: int | None = None,
    on_progress: Callable[[int, int], None] = lambda _done, _all: None,
    simulate: Simulate = _in_simulator,
) -> Comparison:
    """Every run of `plan`, on all cores; `simulate` does one and returns the engine's result.

    `on_progress(done, all)` is called from this thread. Raises InputError, RunError, or
    Interrupted on Ctrl-C after every run has been stopped.
    """
    todo = jobs(plan, detailed)
    limit = _trace_limit(plan)
    results = run_all(
        lambda job, cancel: _run(job, limit, simulate, cancel),
        todo,
        workers=workers,
        on_progress=on_progress,
    )
    return Comparison(plan, list(_tables(plan, [r for runs in results for r in runs])))


def _tables(plan: Plan, runs: list[GroupRun]) -> Iterator[ResultTable]:
    by_cell: dict[tuple[str, str, str, str], list[GroupRun]] = {}
    for one in runs:
        job = one.job
        key = (job.link.name, job.workload.name, one.group, job.policy.label)
        by_cell.setdefault(key, []).append(one)
    for link in plan.links:
        for workload in plan.workloads:
            cells: list[Cell] = []
            cheapest: dict[str, str] = {}
            for group in workload.measured_names:
                column = {
                    p.label: by_cell[link.name, workload.name, group, p.label]
                    for p in plan.policies
                }
                made = _group_cells(plan, link, workload, group, column)
                cells += made
                cheapest[group] = _cheapest(made)
            yield ResultTable(link, workload, cells, cheapest)


def _values(runs: list[GroupRun], key: str) -> list[float]:
    return [v for run in runs if (v := run.values[key]) is not None]


def _group_cells(
    plan: Plan, link: Link, workload: Workload, group: str, column: dict[str, list[GroupRun]]
) -> list[Cell]:
    estimates = {
        label: {m.key: estimate(_values(runs, m.key)) for m in METRICS}
        for label, runs in column.items()
    }
    base = _values(column[plan.baseline.label], GOODPUT)
    cells = []
    for chosen in plan.policies:
        runs = column[chosen.label]
        change = None
        if chosen.label != plan.baseline.label:
            change = paired_percent(_values(runs, GOODPUT), base)
        cells.append(
            Cell(
                link,
                workload,
                chosen,
                group,
                runs,
                estimates[chosen.label],
                change,
                change is not None and change.mean < -BELOW_PERCENT,
                frozenset(
                    m.key
                    for m in METRICS
                    if _is_best(m.better, chosen.label, {k: e[m.key] for k, e in estimates.items()})
                ),
            )
        )
    return cells


def _is_best(better: Better, label: str, column: dict[str, Estimate | None]) -> bool:
    """The mean is the best or ties with it, and at least one policy's is worse."""
    own = column[label]
    means = [e.mean for e in column.values() if e is not None]
    if own is None or better is Better.NEITHER:
        return False
    return is_best(own.mean, means, highest=better is Better.HIGHER)


def _cheapest(cells: list[Cell]) -> str:
    """The policy with the fewest ACKs among those within 1% of the best goodput."""

    def mean(cell: Cell, key: str) -> float:
        found = cell.estimates[key]
        return found.mean if found else 0.0

    best = max(mean(c, GOODPUT) for c in cells)
    near = [c for c in cells if mean(c, GOODPUT) >= best * (1 - BELOW_PERCENT / 100)]
    return min(near, key=lambda c: mean(c, ACKS)).policy.label
