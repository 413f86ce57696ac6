# SPDX-License-Identifier: MIT
"""Runs a plan on all cores and combines the runs into cells: one for each link, workload, policy
and measured group, with means, confidence intervals and the change against the baseline."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ackwise import engine, plans
from ackwise.engine import Cancel
from ackwise.engine.pool import run_all
from ackwise.engine.result import GroupResult, Quantiles, RunResult, Trace
from ackwise.engine.scenario import Scenario
from ackwise.errors import InputError, RunError
from ackwise.plans import Link, Plan, Workload
from ackwise.plans.policy import PolicyChoice
from ackwise.results import provenance
from ackwise.results.metrics import ACKS, GOODPUT, METRICS, Better, Measured
from ackwise.results.provenance import Record
from ackwise.results.stats import Estimate, estimate, is_best, paired_percent
from ackwise.results.validated import is_validated

BELOW_PERCENT = 1.0  # goodput more than this below the baseline is reported
SERIES_POINTS = 100
TRACE_POINTS_TOTAL = 80_000
TRACE_POINTS_MAX = 2000
TRACE_POINTS_MIN = 250


Combination = tuple[str, str, str]  # names of link and workload, label of the policy


@dataclass(frozen=True)
class Job:
    """One run of the engine."""

    link: Link
    workload: Workload
    policy: PolicyChoice
    run: int
    seed: int
    detailed: bool  # keeps series and trace for the report

    @property
    def combination(self) -> Combination:
        """What it has in common with the runs with other seeds."""
        return self.link.name, self.workload.name, self.policy.label


Simulate = Callable[[Job, Scenario, Cancel], RunResult]


def _in_simulator(_job: Job, scenario: Scenario, cancel: Cancel) -> RunResult:
    return engine.simulate(scenario, cancel)


@dataclass(frozen=True)
class GroupRun:
    """The figures of one measured group in one run."""

    job: Job
    group: str
    values: dict[str, float | None]  # by metric key
    acks_by_reason: dict[str, int]
    detail: "Detail | None"


@dataclass(frozen=True)
class Detail:
    """Data of a run for a report: series summed over the flows, RTT histogram, and the first flow's
    time-sequence trace."""

    time_ns: list[int]
    delivered_bytes: list[int]
    acks_by_reason: dict[str, list[int]]
    rtt: Quantiles
    trace: Trace | None


@dataclass(frozen=True)
class Cell:
    """All runs of one link, workload, policy and group."""

    link: Link
    workload: Workload
    policy: PolicyChoice
    group: str
    runs: list[GroupRun]
    samples: int  # number of independent values: 1 when all runs are identical
    estimates: dict[str, Estimate | None]
    # Relative to the baseline; None for the baseline itself.
    goodput_change_percent: Estimate | None
    best: frozenset[str]  # metric keys in which the mean is the table's best or within 0.05% of it

    @property
    def identical(self) -> bool:
        """Whether several runs are identical: they are one sample."""
        return self.samples == 1 < len(self.runs)

    @property
    def below_baseline(self) -> bool:
        """Whether goodput is more than 1% below the baseline's, and the interval does not contain
        zero."""
        change = self.goodput_change_percent
        return change is not None and self._looks_below and change.mean + (change.ci95 or 0) < 0

    @property
    def undecided(self) -> bool:
        """Whether goodput looks more than 1% below the baseline's, but the interval contains
        zero."""
        return self._looks_below and not self.below_baseline

    @property
    def _looks_below(self) -> bool:
        change = self.goodput_change_percent
        return change is not None and change.mean < -BELOW_PERCENT

    @property
    def acks_by_reason(self) -> dict[str, float]:
        """Mean count of ACKs for each reason that occurred."""
        seen = (label for run in self.runs for label in run.acks_by_reason)
        return {
            label: sum(run.acks_by_reason.get(label, 0) for run in self.runs) / len(self.runs)
            for label in engine.in_order_of_reasons(seen)
        }


@dataclass(frozen=True)
class ResultTable:
    """The cells of one link and workload, and the policy with the fewest ACKs in each group."""

    link: Link
    workload: Workload
    cells: list[Cell]
    cheapest: dict[str, str]  # group -> policy with fewest ACKs within 1% of the best goodput
    skipped: dict[str, str]  # policy that was not run -> reason


@dataclass(frozen=True)
class Comparison:
    """A plan with its results."""

    plan: Plan
    world: provenance.World
    tables: list[ResultTable]

    @property
    def provenance(self) -> Record:
        """The record of the results' origin."""
        clamp = self.world.clamp_of(self.plan.policies, self.plan.clamp)
        return provenance.record(self.world, clamp, self.plan.seeds)

    def validated(self, cell: Cell) -> bool | None:
        """Whether the simulator was found to agree with the kernel for this cell; None: not
        simulated."""
        if self.world is not provenance.SIMULATOR:
            return None
        return is_validated(cell.link, cell.policy)

    def below_baseline(self) -> Iterator[Cell]:
        """Cells whose goodput is below the baseline's."""
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


def scenario(job: Job, trace_limit: int = 0) -> Scenario:
    """The engine's input for a run."""
    return plans.scenario_of(
        job.link,
        job.workload,
        job.policy,
        job.seed,
        start_jitter_ns=plans.start_jitter_ns(job.workload),
        series_interval_ns=max(1, job.workload.duration_ns // SERIES_POINTS) if job.detailed else 0,
        trace_limit=trace_limit if job.detailed else 0,
    )


def _trace_limit(plan: Plan) -> int:
    cells = len(plan.links) * len(plan.workloads) * len(plan.policies)
    return max(TRACE_POINTS_MIN, min(TRACE_POINTS_MAX, TRACE_POINTS_TOTAL // cells))


def _run(job: Job, trace_limit: int, simulate: Simulate, cancel: Cancel) -> list[GroupRun]:
    try:
        result = simulate(job, scenario(job, trace_limit), cancel)
    except InputError as problem:
        raise InputError(
            f"link {job.link.name}, workload {job.workload.name}, policy {job.policy.label}: "
            f"{problem}"
        ) from None
    host = result.client if job.link.device == "client" else result.server
    found = {group.name: group for group in result.groups}
    runs = []
    directions = {group.name: group.direction for group in job.workload.groups}
    for name in job.workload.measured_names:
        group = found.get(name)
        if group is None:
            raise RunError(f"the engine returned no group {name!r}")
        ways = (result.down, result.up)
        data, ack = ways if directions[name] == "down" else reversed(ways)
        measured = Measured(group, host, result.ping, data, ack)
        runs.append(
            GroupRun(
                job,
                name,
                {m.key: m.take(measured) for m in METRICS},
                group.acks_by_reason,
                _detail(group) if job.detailed else None,
            )
        )
    return runs


def _detail(group: GroupResult) -> Detail:
    times: list[int] = []
    delivered: list[int] = []
    acks: dict[str, list[int]] = {}
    for series in (flow.series for flow in group.flows if flow.series):
        times = max(times, series.time_ns, key=len)
        _add(delivered, series.delivered_bytes)
        for reason, counts in series.acks_by_reason.items():
            _add(acks.setdefault(reason, []), counts)
    trace = next((flow.trace for flow in group.flows if flow.trace), None)
    return Detail(times, delivered, acks, group.rtt_ns, trace)


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
    world: provenance.World = provenance.SIMULATOR,
    lacking: Mapping[Combination, str] | None = None,
    simulate: Simulate = _in_simulator,
) -> Comparison:
    """Every run of `plan`, on all cores; `simulate` executes one run in `world` and returns a
    result in the engine's format. `lacking`: combinations that `world` cannot run, and why.

    `on_progress(done, all)` is called from this thread. Raises InputError, RunError, or
    Interrupted on Ctrl-C after every run has been stopped.
    """
    lacking = lacking or {}
    todo = [job for job in jobs(plan, detailed) if job.combination not in lacking]
    limit = _trace_limit(plan)
    results = run_all(
        lambda job, cancel: _run(job, limit, simulate, cancel),
        todo,
        workers=workers,
        on_progress=on_progress,
    )
    return Comparison(
        plan, world, list(_tables(plan, lacking, [r for runs in results for r in runs]))
    )


def _tables(
    plan: Plan, lacking: Mapping[Combination, str], runs: list[GroupRun]
) -> Iterator[ResultTable]:
    by_cell: dict[tuple[Combination, str], list[GroupRun]] = {}
    for one in runs:
        by_cell.setdefault((one.job.combination, one.group), []).append(one)
    for link in plan.links:
        for workload in plan.workloads:
            of_policy = {p.label: (link.name, workload.name, p.label) for p in plan.policies}
            skipped = {label: lacking[at] for label, at in of_policy.items() if at in lacking}
            cells: list[Cell] = []
            cheapest: dict[str, str] = {}
            for group in workload.measured_names if len(skipped) < len(of_policy) else ():
                column = {
                    label: by_cell[at, group]
                    for label, at in of_policy.items()
                    if label not in skipped
                }
                made = _group_cells(plan, link, workload, group, column)
                cells += made
                cheapest[group] = _cheapest(made)
            yield ResultTable(link, workload, cells, cheapest, skipped)


def _values(runs: list[GroupRun], key: str) -> list[float]:
    return [v for run in runs if (v := run.values[key]) is not None]


def _samples(runs: list[GroupRun]) -> list[GroupRun]:
    """The runs, or only the first one if all are identical."""
    same = all(
        (run.values, run.acks_by_reason) == (runs[0].values, runs[0].acks_by_reason) for run in runs
    )
    return runs[:1] if same else runs


def _group_cells(
    plan: Plan, link: Link, workload: Workload, group: str, column: dict[str, list[GroupRun]]
) -> list[Cell]:
    samples = {label: _samples(runs) for label, runs in column.items()}
    estimates = {
        label: {m.key: estimate(_values(samples[label], m.key)) for m in METRICS}
        for label in column
    }
    base = plan.baseline.label
    cells = []
    for chosen in plan.policies:
        label = chosen.label
        if label not in column:
            continue
        change = None
        if label != base and base in column:
            count = max(len(samples[label]), len(samples[base]))
            pair = (_values(column[one][:count], GOODPUT) for one in (label, base))
            change = paired_percent(*pair)
        cells.append(
            Cell(
                link,
                workload,
                chosen,
                group,
                column[label],
                len(samples[label]),
                estimates[label],
                change,
                frozenset(
                    m.key
                    for m in METRICS
                    if _is_best(m.better, chosen.label, {k: e[m.key] for k, e in estimates.items()})
                ),
            )
        )
    return cells


def _is_best(better: Better, label: str, column: dict[str, Estimate | None]) -> bool:
    """Whether the mean is the best or ties with it, and at least one policy's is worse."""
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
