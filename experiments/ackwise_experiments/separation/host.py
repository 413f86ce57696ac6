# SPDX-License-Identifier: MIT
"""Spec page 3 on this host's kernel in real time: `ackwise gateway up` in network namespaces, all
cases at once, several times."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

from ackwise.gateway import control, model
from ackwise.host.leftovers import temporary_folder
from ackwise.host.programs import do
from ackwise.results.stats import mean_of
from ackwise_experiments.check import Check, at_most, grouped
from ackwise_experiments.experiment import Experiment, Outcome
from ackwise_experiments.figure import Figure, Panel, Series
from ackwise_experiments.runner import Ran, Runner
from ackwise_experiments.separation import lab, paper, testbed
from ackwise_experiments.separation import model as deviation
from ackwise_experiments.separation.access import (
    ADSL,
    APART,
    CAKE,
    CELLS,
    FQ_CODEL,
    HOME,
    AccessLine,
    queues,
    shaped,
)
from ackwise_experiments.separation.paper import BOTH, DOWN, FIFO, UP
from ackwise_experiments.separation.testbed import MeasuredLine, Testbed

REPEATS = 3
SECONDS, SETTLED_SECONDS = 180.0, 90.0  # the start takes up to 75 s, see access.HOME
OWN = "the gateway's plan"
HELD = (FIFO, APART, OWN)


@dataclass(frozen=True)
class LiveHosts:
    """Both ends."""

    name: str
    every_packet: bool
    old: bool
    congestion_control: str


PAPER_HOSTS = LiveHosts("hosts as in the paper", True, True, "reno")
EVERY = LiveHosts("today's hosts, an ACK for each packet", True, False, "cubic")
TODAY = LiveHosts("today's hosts", False, False, "cubic")
ALL_HOSTS = (PAPER_HOSTS, EVERY, TODAY)


@dataclass(frozen=True)
class WaveCase:
    """One access line of a wave, and what runs over it."""

    hosts: LiveHosts
    queue: str
    flows: tuple[str, ...]
    line: AccessLine = HOME


def _cases(names: tuple[str, ...]) -> list[WaveCase]:
    made = [WaveCase(hosts, FIFO, (flow,)) for hosts, flow in product(ALL_HOSTS, BOTH)]
    made += [WaveCase(hosts, queue, BOTH) for hosts, queue in product(ALL_HOSTS, names)]
    made += [WaveCase(PAPER_HOSTS, FIFO, (flow,), ADSL) for flow in BOTH]
    return made + [WaveCase(PAPER_HOSTS, queue, BOTH, ADSL) for queue in HELD]


def uplink(made: Testbed, line: AccessLine, queue: str, run_dir: Path | None) -> None:
    """Sets up the queues of the gateway's port g1; `run_dir`: for `ackwise gateway up`."""
    what = (
        "--down", f"{line.down_bps}bit", "--up", f"{line.up_bps}bit",
        "--overhead", line.layer.name, "--data-leaf", "pfifo",
    )  # fmt: skip
    leaf = {APART: ("--ack-leaf", "pfifo"), OWN: ()}.get(queue)
    if leaf is not None:
        made.ackwise(made.gateway, "gateway", "up", "g1", *what, *leaf, "--run-dir", str(run_dir))
        return
    lines = queues(queue, line) or shaped(line.up_bps, line.layer, "pfifo limit 100")
    for words in lines:
        do("tc", "-n", made.gateway, *words.replace("PORT", "g1").split())


def _wave(cases: list[WaveCase], seed: int) -> list[MeasuredLine]:
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder())
        lines = []
        for number, case in enumerate(cases):
            made = stack.enter_context(
                testbed.testbed(
                    shaped(
                        case.line.down_bps,
                        case.line.layer,
                        f"pfifo limit {case.line.buffer_packets}",
                    ),
                    every_packet=case.hosts.every_packet,
                    old=case.hosts.old,
                )
            )
            uplink(made, case.line, case.queue, folder / str(number))
            lines.append((made, case.flows, case.hosts.congestion_control))
        return testbed.run(
            lines,
            window_packets=HOME.window,
            seconds=SECONDS,
            settled_seconds=SETTLED_SECONDS,
            seed=seed,
        )


class Waves:
    """Measurements of every wave."""

    def __init__(self, runs: dict[WaveCase, list[MeasuredLine]], names: tuple[str, ...]) -> None:
        self._runs = runs
        self.queues = names

    def speeds(self, case: WaveCase, flow: str) -> list[float]:
        """kbit/s of each repetition."""
        return [m.speeds[flow] for m in self._runs[case]]

    def solo(self, hosts: LiveHosts, flow: str, line: AccessLine = HOME) -> list[float]:
        """Solo throughput in kbit/s, of each repetition."""
        return self.speeds(WaveCase(hosts, FIFO, (flow,), line), flow)

    def shares(
        self, hosts: LiveHosts, queue: str, flow: str, line: AccessLine = HOME
    ) -> list[float]:
        """% of mean solo throughput, of each repetition."""
        alone = mean_of(self.solo(hosts, flow, line)).mean
        return [100 * s / alone for s in self.speeds(WaveCase(hosts, queue, BOTH, line), flow)]

    def ping_p99_ms(self, case: WaveCase) -> float:
        """p99 over all repetitions."""
        rtts = sorted(t for m in self._runs[case] for t in m.rtts_s)
        return 1e3 * rtts[max(0, -(-99 * len(rtts) // 100) - 1)] if rtts else float("nan")


def _checks(found: Waves) -> Iterator[Check]:
    for hosts, line in (
        (PAPER_HOSTS, HOME),
        (PAPER_HOSTS, ADSL),
        (EVERY, HOME),
        (TODAY, HOME),
    ):
        of = f", {hosts.name}" + ("" if line is HOME else f", {CELLS}")
        shares = partial(found.shares, hosts, line=line)
        held = {queue: (queue,) for queue in (APART, OWN)}
        checks = paper.share_checks(
            shares, held, of, as_published=hosts is PAPER_HOSTS, each_run=True
        )
        yield from grouped(f"% of solo throughput in {REPEATS} runs{of}", checks)
    checks = []
    for hosts, segments in ((EVERY, 1), (TODAY, 2)):
        link = model.AccessLink(
            HOME.down_bps, HOME.up_bps, segments_per_ack=segments,
            window_packets=HOME.window, round_trip_ns=0,
        )  # fmt: skip
        said = model.predict(link)
        for queue, flow in product((FIFO, APART), BOTH):
            speeds = said.fifo if queue == FIFO else said.separation
            side = "up_bps" if flow == UP else "down_bps"
            predicted = 100 * getattr(speeds, side) / getattr(said.alone, side)
            off = abs(predicted - mean_of(found.shares(hosts, queue, flow)).mean)
            bound = deviation.FIFO_POINTS if queue == FIFO else deviation.APART_POINTS
            name = f"model, {queue}, {flow}, {hosts.name}: error"
            checks.append(at_most(name, bound, off, basis=deviation.MODEL, unit="points"))
    yield from grouped("model against gateway", checks)


def _figure(found: Waves) -> Figure:
    words = ["alone", *found.queues]

    def panel(flow: str) -> Panel:
        series = []
        for hosts in ALL_HOSTS:
            means = [mean_of(found.solo(hosts, flow))] + [
                mean_of(found.speeds(WaveCase(hosts, queue, BOTH), flow)) for queue in found.queues
            ]
            series.append(
                Series(
                    hosts.name, words, [e.mean for e in means], "bars",
                    spread=[e.ci95 or 0 for e in means],
                )
            )  # fmt: skip
        return Panel("", f"{flow}, kbit/s", series, title=flow)

    pings = [
        Series(
            hosts.name, list(found.queues),
            [found.ping_p99_ms(WaveCase(hosts, queue, BOTH)) for queue in found.queues], "bars",
        )
        for hosts in ALL_HOSTS
    ]  # fmt: skip
    return Figure(
        "host-separation-cases",
        "Throughput and ping times on this host's kernel, by uplink queue",
        [
            panel(UP),
            panel(DOWN),
            Panel("", "p99 ping time, ms", pings, title="ping, both transfers"),
        ],
        source="figures 3 and 8",
    )


def run(runner: Runner) -> Outcome:
    """REPEATS waves. Raises InputError, naming what is missing, when this host cannot run them."""
    testbed.check()
    missing = control.missing_kinds()
    others = ((FQ_CODEL, "fq_codel"), (CAKE, "cake"))
    names = (*HELD, *(queue for queue, kind in others if kind not in missing))
    cases = _cases(names)
    # one after the other: they share this host's CPU time
    waves = [
        runner.map(
            f"repetition {seed} of {REPEATS}", lambda seed, _cancel: _wave(cases, seed), [seed]
        )[0]
        for seed in range(1, REPEATS + 1)
    ]
    what = [
        {
            "hosts": c.hosts.name,
            "line": c.line.name,
            "queue": c.queue,
            "flows": c.flows,
            "seed": seed,
        }
        for seed in range(1, REPEATS + 1)
        for c in cases
    ]
    runner.ran.append(Ran("waves", None, what, "host"))
    found = Waves({c: [wave[i] for wave in waves] for i, c in enumerate(cases)}, names)
    notes = [
        f"kbit/s of each run, {case.line.name}, {case.hosts.name}, {case.queue}: "
        + "; ".join(
            f"{flow} " + ", ".join(f"{s:.0f}" for s in found.speeds(case, flow)) for flow in BOTH
        )
        + f"; p99 ping time {found.ping_p99_ms(case):.0f} ms."
        for case in cases
        if case.flows == BOTH
    ]
    skipped = [f"{kind} ({words})" for kind, words in missing.items()]
    if skipped:
        notes.append(f"Not run, because this kernel lacks it: {', '.join(skipped)}.")
    return Outcome(checks=list(_checks(found)), figures=[_figure(found)], notes=notes)


EXPERIMENT = Experiment(
    name="host-separation",
    title="ACK separation on a live host's kernel",
    source=lab.EXPERIMENT.source,
    question="Does `ackwise gateway up` do on a live host's kernel what it does in the lab?",
    run=run,
    minutes=9,
)
