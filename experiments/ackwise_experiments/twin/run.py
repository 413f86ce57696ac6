# SPDX-License-Identifier: MIT
"""A plan run in the simulator, on the lab's kernel, and on the kernel again with other seeds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ackwise import engine
from ackwise.engine import Cancel
from ackwise.engine.result import RunResult
from ackwise.engine.scenario import Record, Scenario
from ackwise.errors import InputError
from ackwise.host import files
from ackwise.host.leftovers import temporary_folder
from ackwise.lab import compare as lab_compare
from ackwise.lab import traffic
from ackwise.lab.machine import Kernel
from ackwise.lab.measure import captures_in
from ackwise.lab.network import CLIENT, SERVER
from ackwise.plans import Plan
from ackwise.results import compare, hosts, provenance
from ackwise.results.compare import Cell, Combination, Comparison, Job, ResultTable
from ackwise.results.metrics import METRICS
from ackwise.results.stats import Estimate
from ackwise_experiments.twin import divergence, same, wire
from ackwise_experiments.twin.divergence import Divergence
from ackwise_experiments.twin.wire import Flow

# The compared metrics, in this order: those that both worlds measure.
SHOWN = (
    "goodput_bps", "acks", "segments_per_ack", "rtt_p50_ns", "rtt_p95_ns",
    "message_latency_p50_ns", "message_latency_p99_ns", "retransmitted_segments", "timeouts",
    "flows_completed",
)  # fmt: skip
MEASURES = {metric.key: metric for metric in METRICS if metric.key in SHOWN}
_TRACE_ALL = 1_000_000  # maximum number of a flow's packets that are traced
_SAMPLES = 1000  # samples of a flow's congestion window

# The worlds, as named in progress messages and --keep.
SIMULATOR, LINUX, AGAIN = "simulator", "linux", "linux with other seeds"

Simulate = Callable[[Job, Scenario, Cancel, Path | None], RunResult]
FlowKey = tuple[str, str, str, str]  # names of link and workload, label of the policy, group


@dataclass(frozen=True)
class FlowPair:
    """The first flow of a group in both worlds, with the first seed."""

    simulator: Flow
    linux: Flow
    divergences: Sequence[Divergence]
    agreed: int  # number of packets before the first divergence


@dataclass(frozen=True)
class Measure:
    """One measure of both worlds."""

    simulator: Estimate | None
    linux: Estimate | None
    again: Estimate | None  # the kernel with other seeds

    @property
    def difference_percent(self) -> float | None:
        """Difference of the simulator from the kernel, in percent."""
        return _percent(self.simulator, self.linux)

    @property
    def again_percent(self) -> float | None:
        """Difference of the kernel with other seeds from the kernel, in percent: the yardstick."""
        return _percent(self.again, self.linux)


def _percent(one: Estimate | None, base: Estimate | None) -> float | None:
    if one is None or base is None:
        return None
    if not base.mean:
        return None if one.mean else 0.0
    return 100 * (one.mean - base.mean) / base.mean


@dataclass(frozen=True)
class Twins:
    """The cell of one link, workload, policy and group in both worlds."""

    simulator: Cell
    linux: Cell
    again: Cell
    pair: FlowPair | None  # None: the flow sent no data in one of them

    def figure(self, key: str) -> Measure:
        """The measure with this key."""
        return Measure(*(cell.estimates[key] for cell in (self.simulator, self.linux, self.again)))

    @property
    def reasons(self) -> dict[str, Measure]:
        """ACKs by reason, for the reasons that occur in either world."""
        worlds = [cell.acks_by_reason for cell in (self.simulator, self.linux, self.again)]
        if not worlds[1]:
            return {}  # the kernel does not count them
        seen = (label for world in worlds for label in world)
        return {
            label: Measure(*(Estimate(world.get(label, 0.0), None) for world in worlds))
            for label in engine.in_order_of_reasons(seen)
        }


@dataclass(frozen=True)
class Twin:
    """A plan in both worlds."""

    plan: Plan
    simulator: Comparison
    linux: Comparison
    again: Comparison
    pairs: Mapping[FlowKey, FlowPair]
    tolerance_ns: int
    same_losses: bool = False  # whether the simulator lost the packets that the kernel's run lost

    def tables(self) -> Iterator[tuple[ResultTable, list[Twins]]]:
        """The kernel's table of each link and workload, and its cells paired with the
        simulator's."""
        worlds = (self.simulator.tables, self.linux.tables, self.again.tables)
        for here, there, again in zip(*worlds, strict=True):
            cells = zip(here.cells, there.cells, again.cells, strict=True)
            yield there, [Twins(*three, self.pairs.get(_place(three[0]))) for three in cells]


def _place(cell: Cell) -> FlowKey:
    return cell.link.name, cell.workload.name, cell.policy.label, cell.group


def run(
    plan: Plan,
    kernel: Kernel,
    *,
    tolerance_ns: int = divergence.TOLERANCE_NS,
    keep: Path | None = None,
    limit_s: float | None = None,
    workers: int | None = None,
    same_losses: bool = False,
    on_progress: Callable[[str, int, int], None] = lambda _what, _done, _all: None,
) -> Twin:
    """Every run of a plan in both worlds, and the same number on the kernel with the following
    seeds.

    `keep`: folder for the captures of both worlds; `limit_s`: seconds of real time after which a
    run on the kernel counts as hung; `same_losses`: the simulator loses the packets that the
    kernel's run lost; `on_progress(what, done, all)`. What the lab does not support is left out.
    Raises InputError if nothing is left, RunError when a run failed.
    """
    lacks = lab_compare.lacking(plan, kernel)
    if same_losses:
        lacks |= same.lacking(plan)
        if all(job.combination in lacks for job in compare.jobs(plan, False)):
            raise InputError(next(iter(lacks.values())))
    if keep is not None:
        followed = [job for job in compare.jobs(plan, True) if job.detailed]
        for name in (SIMULATOR, LINUX):
            lab_compare.check_keep(keep / name, followed)
    here, there = _in_simulator, partial(_on_linux, kernel, limit_s)
    worlds = {
        SIMULATOR: _Watched(keep and keep / SIMULATOR, here),
        LINUX: _Watched(keep and keep / LINUX, there),
        AGAIN: _Watched(None, there),
    }
    if same_losses:
        losses = _SameLosses(here, there)
        worlds = {
            LINUX: _Watched(keep and keep / LINUX, losses.on_linux),
            SIMULATOR: _Watched(keep and keep / SIMULATOR, losses.in_simulator),
            AGAIN: worlds[AGAIN],
        }
    made = {
        name: compare.run(
            replace(plan, seed=plan.seed + plan.runs) if name == AGAIN else plan,
            detailed=name != AGAIN,
            workers=workers,
            on_progress=partial(on_progress, name),
            world=provenance.SIMULATOR if name == SIMULATOR else lab_compare.world(kernel),
            lacking=lacks,
            simulate=world.simulate,
        )
        for name, world in worlds.items()
    }
    ours, theirs = worlds[SIMULATOR].flows, worlds[LINUX].flows
    pairs = {
        place: _pair(ours[place], theirs[place], tolerance_ns) for place in ours if place in theirs
    }
    return Twin(plan, made[SIMULATOR], made[LINUX], made[AGAIN], pairs, tolerance_ns, same_losses)


def _pair(simulator: Flow, linux: Flow, tolerance_ns: int) -> FlowPair:
    found = divergence.divergences(simulator, linux, tolerance_ns)
    return FlowPair(simulator, linux, found, divergence.agreed(simulator, linux, found))


class _Watched:
    """Runs in one world, and the first flow of every group in each first run."""

    def __init__(self, keep: Path | None, simulate: Simulate) -> None:
        self.flows: dict[FlowKey, Flow] = {}
        self._keep, self._simulate = keep, simulate

    def simulate(self, job: Job, scenario: Scenario, cancel: Cancel) -> RunResult:
        """One run, with the signature that results.compare expects; its flows are recorded if it is
        detailed."""
        if not job.detailed:
            return self._simulate(job, scenario, cancel, None)
        scenario = replace(
            scenario,
            series_interval_ns=max(1, job.workload.duration_ns // _SAMPLES),
            record=Record(trace=True, trace_limit=_TRACE_ALL),
        )
        with ExitStack() as stack:
            if self._keep is None:
                folder = stack.enter_context(temporary_folder())
            else:
                folder = lab_compare.folder_of(self._keep, job)
            result = self._simulate(job, scenario, cancel, folder)
            for place, flow in _flows(job, scenario, result, folder):
                self.flows[place] = flow  # each is written by one run, and so by one thread
        return result


def _in_simulator(_job: Job, scenario: Scenario, cancel: Cancel, keep: Path | None) -> RunResult:
    scenario = hosts.like_the_lab(scenario)
    if keep is None:
        return engine.simulate(scenario, cancel)
    captured = engine.simulate_captured(scenario)
    files.make_folder(keep)
    for host in (CLIENT, SERVER):
        files.write_whole(str(keep / f"{host}.pcap"), getattr(captured, host))
    return captured.result


def _on_linux(
    kernel: Kernel,
    limit_s: float | None,
    job: Job,
    scenario: Scenario,
    cancel: Cancel,
    keep: Path | None,
) -> RunResult:
    return lab_compare.simulate(job, scenario, kernel, cancel=cancel, limit_s=limit_s, keep=keep)


class _SameLosses:
    """The kernel's runs, followed by the simulator's with the same losses."""

    def __init__(self, here: Simulate, there: Simulate) -> None:
        self._here, self._there = here, there
        self._fed: dict[tuple[Combination, int], Scenario] = {}

    def on_linux(
        self, job: Job, scenario: Scenario, cancel: Cancel, keep: Path | None
    ) -> RunResult:
        """One run on the kernel, whose losses are recorded."""
        with ExitStack() as stack:
            folder = keep or stack.enter_context(temporary_folder())
            result = self._there(job, scenario, cancel, folder)
            captures = captures_in(folder)
            self._fed[job.combination, job.seed] = same.fed(scenario, captures)
        return result

    def in_simulator(
        self, job: Job, _scenario: Scenario, cancel: Cancel, keep: Path | None
    ) -> RunResult:
        """The run in the simulator, with the kernel's losses."""
        return self._here(job, self._fed[job.combination, job.seed], cancel, keep)


def _flows(
    job: Job, scenario: Scenario, result: RunResult, folder: Path
) -> Iterator[tuple[FlowKey, Flow]]:
    """The first flow of each measured group."""
    groups_of = traffic.build(scenario, job.workload.name, {}).groups_of  # in order of their start
    for index, group in enumerate(scenario.groups):
        if group.name not in job.workload.measured_names or index not in groups_of:
            continue
        found = wire.read(
            captures_in(folder),
            groups_of.index(index),
            down=group.direction == "down",
            duration_ns=scenario.duration_ns,
            flow=result.groups[index].flows[0],
        )
        if found is not None:
            yield (*job.combination, group.name), found
