# SPDX-License-Identifier: MIT
"""Spec page 3 on the real kernel in virtual time: a gateway's uplink with the queues of `ackwise
gateway plan` and of others.

      host ────── gateway ═══════════ internet ────── server
                      up: the queues that are compared
                      down: a FIFO at the provider's
"""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

from ackwise import plans
from ackwise.gateway import model, tree
from ackwise.gateway.classifier import Framing
from ackwise.gateway.linklayer import LAYERS, LinkLayer, line_bps
from ackwise.gateway.settings import Access, LeafChoice, Request, settle
from ackwise.reproduce.check import Check, at_least, at_most, grouped, within
from ackwise.reproduce.experiment import Experiment, Outcome
from ackwise.reproduce.figure import Figure, Grid, Panel, Series
from ackwise.reproduce.runner import Runner
from ackwise.reproduce.separation import model as deviation
from ackwise.reproduce.separation import simulator as simulated
from ackwise.reproduce.separation.line import OLD
from ackwise.reproduce.separation.simulator import BOTH, DOWN, UP, source_figure
from ackwise.results.stats import Estimate

Scenario = dict[str, Any]

# --- the queues ----------------------------------------------------------------------------------

FIFO = "FIFO"
APART = "separation, FIFOs"
THINNED = "separation, CAKE leaf"
HEAD_DROP = "separation, head-drop leaf"
FQ_LEAF = "separation, fq_codel leaf"
FQ_DATA = "separation, CAKE leaf; data: fq_codel"
FQ_CODEL = "fq_codel"
CAKE = "CAKE"
CAKE_FILTER = "CAKE, ack-filter"
LEAVES_OF = {
    APART: (LeafChoice("pfifo"), LeafChoice("pfifo")),
    THINNED: (LeafChoice("cake"), LeafChoice("pfifo")),
    HEAD_DROP: (LeafChoice("pfifo_head_drop"), LeafChoice("pfifo")),
    FQ_LEAF: (LeafChoice("fq_codel"), LeafChoice("pfifo")),
    FQ_DATA: (LeafChoice("cake"), LeafChoice("fq_codel")),
}
# the plan's leaf with room for an ACK for so many packets: what thinning to fewer costs
SEGMENTS_OF = {f"{THINNED}, one ACK per {segments} packets": segments for segments in (2, 3, 4)}


# --- runs ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hosts:
    """Both ends: receivers' policy, what senders have otherwise than the plan, and what their TCP
    has otherwise than the kernel."""

    name: str
    policy: str
    sender: Mapping[str, Any] = field(hash=False)
    sysctls: Mapping[str, int] = field(default_factory=dict, hash=False)


SOURCE = Hosts("hosts as in the paper", simulated.EVERY, {}, OLD)
TODAY = Hosts("today's hosts", "linux", deviation.TODAY | {"initial_window_segments": 10})


@dataclass(frozen=True)
class Line:
    """An access line. `buffer_packets`: the provider's queue; `window`: the download's, in packets,
    0 for no bound; `loss_ppm`: of the packets on the way down."""

    name: str
    up_bps: int
    down_bps: int
    delay_ns: int
    jitter: bool
    buffer_packets: int
    window: int
    duration_ns: int
    settled_ns: int
    ping_ns: int
    layer: LinkLayer = LAYERS["header"]  # as spec page 3 counts
    loss_ppm: int = 0

    def wire_time_ns(self, rate_bps: int) -> int:
        """Of a full packet, in whole microseconds."""
        return 1000 * round(8e6 * self.layer.wire_bytes(simulated.MTU_BYTES) / rate_bps)


_MS, _S = 10**6, 10**9
# With hosts of the source one queue makes a cycle of 16 s, after a start of up to 75 s in which a
# round trip repairs one loss. 15 cycles tell a run's share within a point.
HOME = Line(
    "800 kbit/s, 2.1 Mbit/s", 800_000, 2_100_000, 10 * _MS, True, 200, 88, 360 * _S, 120 * _S,
    200 * _MS,
)  # fmt: skip
# The source's gateway speaks RFC 2684, 2364 and 1577: its ADSL carries ATM. If 800 kbit/s and 2.1
# Mbit/s are what the cells carry, a packet of 1500 bytes fills 32 of them (whichever of the three
# it is), an ACK two, and the lone speeds are the published 750 and 2000.
CELLS = "ATM cells"
ADSL = replace(
    HOME,
    name=f"{HOME.name}, {CELLS}",
    up_bps=line_bps(HOME.up_bps),
    down_bps=line_bps(HOME.down_bps),
    layer=simulated.ADSL_LAYER,
)
NARROW_UP_BPS = 200_000  # a line of 100:1 at 800 kbit/s costs four times the processor time


def home(ratio: float) -> Line:
    """HOME with a downlink of `ratio` times the uplink. The download's window and the provider's
    queue keep their length in time, as in the simulator's sweep."""
    factor = ratio * HOME.up_bps / HOME.down_bps
    return replace(
        HOME,
        name=f"{ratio:g}:1",
        down_bps=round(HOME.up_bps * ratio),
        buffer_packets=round(HOME.buffer_packets * factor),
        window=round(HOME.window * factor),
        duration_ns=90 * _S,
        settled_ns=30 * _S,
    )


PROVIDER_NS = 250 * _MS  # of the wider lines: as long as their CUBIC can use
SATELLITE_DELAY_NS = 300 * _MS


def narrow(ratio: float, delay_ns: int = 10 * _MS) -> Line:
    """An uplink of 200 kbit/s whose downlink is so many times faster."""
    down_bps = round(NARROW_UP_BPS * ratio)
    packets = max(20, down_bps * PROVIDER_NS // (8 * simulated.DATA_BYTES * _S))
    name, seconds, settled_seconds = f"{ratio:g}:1", 60, 25
    if delay_ns >= SATELLITE_DELAY_NS:
        # slow start ends at 50 packets; CUBIC's 500 at 0.8 s a round trip take their time
        name, seconds, settled_seconds = f"{name}, satellite", 240, 120
    return Line(
        name, NARROW_UP_BPS, down_bps, delay_ns, False, packets, 0, seconds * _S,
        settled_seconds * _S, _S,
    )  # fmt: skip


LOSSY_PPM = 1000


def eightfold(loss_ppm: int) -> Line:
    """8:1, where the plan gives ACKs neither its least share nor its most."""
    name = f"8:1, {loss_ppm / 10_000:g}% loss on the downlink"
    return replace(
        home(8.0), name=name, duration_ns=120 * _S, settled_ns=40 * _S, loss_ppm=loss_ppm
    )


def queues(name: str, line: Line) -> list[str]:
    """`tc` lines for the gateway's port to the internet; none for the lab's own FIFO. Those with
    separation are what `ackwise gateway plan` prints for the line."""
    if name == FIFO:
        return []
    if name in LEAVES_OF or name in SEGMENTS_OF:
        ack_leaf, data_leaf = LEAVES_OF.get(name, LEAVES_OF[THINNED])
        share_bps = None
        if name in SEGMENTS_OF:
            share_bps = int(_link(line, SEGMENTS_OF[name]).demand * line.up_bps)
        settings, _ = settle(
            Request(
                "PORT",
                Access(line.down_bps, line.up_bps, line.layer),
                framing=Framing.ETHERNET,
                ack_guarantee_bps=share_bps,
                ack_ceiling_bps=share_bps,
                ack_leaf=ack_leaf,
                data_leaf=data_leaf,
                burst_ns=tree.BURST_NS,
            )
        )
        return [shlex.join(words) for words in tree.commands(settings)]
    if name == FQ_CODEL:
        return shaped(line.up_bps, line.layer, "fq_codel")
    cells = f" atm overhead {line.layer.overhead_bytes}" if line.layer.cells else ""
    more = " ack-filter" if name == CAKE_FILTER else ""
    return [f"qdisc add dev PORT root cake bandwidth {line.up_bps}bit{cells}{more}"]


def shaped(rate_bps: int, layer: LinkLayer, leaf: str) -> list[str]:
    """`tc` lines of one class with one queue."""
    accounting = " ".join(["", *tree.accounting(layer, Framing.ETHERNET)])
    burst = tree.burst_bytes(rate_bps)
    return [
        "qdisc add dev PORT root handle 1: htb default 1",
        f"class add dev PORT parent 1: classid 1:1 htb rate {rate_bps}bit "
        f"burst {burst} cburst {burst}{accounting}",
        f"qdisc add dev PORT parent 1:1 {leaf}",
    ]


@dataclass(frozen=True)
class Run:
    """One run. Goodput in kbit/s behind the settled part, times in ns; of the download's ACKs:
    `path` (see `ackwise.lab.measure.ack_path`)."""

    up: float
    down: float
    up_wire_bps: float
    rtt_p99_ns: float
    timeouts: int
    retransmitted: int
    path: dict[str, Any]
    ping: dict[str, Any]


@dataclass(frozen=True)
class Job:
    """What is run, once for each seed."""

    line: Line
    hosts: Hosts
    queue: str
    flows: tuple[str, ...]


def _scenario(job: Job, seed: int) -> Scenario:
    plan = plans.load_plan("separation")
    link = next(link for link in plan.links if link.name == simulated.FIFO)
    (workload,) = plan.workloads
    made = simulated.scenario(link, workload, job.hosts.policy, job.flows, seed)
    line = job.line
    made.pop("access", None)  # the hosts' own Ethernet
    made |= {
        "duration_ns": line.duration_ns,
        "series_interval_ns": line.duration_ns // 100,
        "ping_interval_ns": line.ping_ns,
        "paths_from_ns": line.settled_ns,
        "sysctls": dict(job.hosts.sysctls),
    }
    simulated.put_in(line.layer, made)
    for way, rate_bps in (("up", line.up_bps), ("down", line.down_bps)):
        made[way] |= {"rate_bps": rate_bps, "delay_ns": line.delay_ns}
        made[way].pop("jitter_ns", None)
        if line.jitter:  # one packet's time, as the plan has it
            made[way]["jitter_ns"] = line.wire_time_ns(rate_bps)
    made["down"] |= {"queue_packets": line.buffer_packets, "loss_ppm": line.loss_ppm}
    for group in made["groups"]:
        # as the source's upload: within a queue of 100 it loses nothing of its own doing
        window = line.window if group["name"] == DOWN else simulated.WINDOW_PACKETS
        group["sender"] |= {**job.hosts.sender, "max_window_segments": window}
    lines = queues(job.queue, line)
    if lines:
        made["up"]["tc"] = lines
    return made


def _summary(job: Job, result: dict[str, Any]) -> Run:
    line = job.line
    seconds = (line.duration_ns - line.settled_ns) / _S
    speeds = dict.fromkeys(BOTH, 0.0)
    for group in result["groups"]:
        series = group["flows"][0]["series"]
        # a sample holds what came since the one before it
        begin_ns = next(at for at in series["time_ns"] if at >= line.settled_ns)
        settled = [
            count
            for at, count in zip(series["time_ns"], series["delivered_bytes"], strict=True)
            if at > begin_ns
        ]
        told_s = (series["time_ns"][-1] - begin_ns) / _S
        speeds[group["name"]] = sum(settled) * 8e-3 / told_s
    paths = {g["name"]: p for g, p in zip(result["groups"], result["ack_paths"], strict=True)}
    groups = {g["name"]: g for g in result["groups"]}
    down = groups.get(DOWN)
    return Run(
        up=speeds[UP],
        down=speeds[DOWN],
        up_wire_bps=paths[UP]["data_bytes"] * 8 / seconds if UP in paths else 0.0,
        rtt_p99_ns=down["rtt_ns"]["p99"] if down else 0.0,
        timeouts=down["timeouts"] if down else 0,
        retransmitted=down["retransmitted_segments"] if down else 0,
        path=paths.get(DOWN, {}),
        ping=result["ping"],
    )


class Found:
    """The runs of every job."""

    def __init__(self, runner: Runner, jobs: dict[Job, int]) -> None:
        wanted = [(job, seed) for job, seeds in jobs.items() for seed in range(1, seeds + 1)]
        scenarios = [_scenario(job, seed) for job, seed in wanted]
        results = runner.simulate("gateway", scenarios)
        self.runs: dict[Job, list[Run]] = {}
        for (job, _), result in zip(wanted, results, strict=True):
            self.runs.setdefault(job, []).append(_summary(job, result))

    def of(self, line: Line, hosts: Hosts, queue: str, flows: tuple[str, ...] = BOTH) -> list[Run]:
        """The runs of one job."""
        return self.runs[Job(line, hosts, queue, flows)]

    def lone(self, line: Line, hosts: Hosts, flow: str) -> float:
        """Speed alone, mean, kbit/s."""
        return speed(self.of(line, hosts, FIFO, (flow,)), flow).mean

    def shares(self, line: Line, hosts: Hosts, queue: str, flow: str) -> list[float]:
        """Percent of the speed alone, of each run."""
        alone = self.lone(line, hosts, flow)
        return [100 * getattr(r, _SIDE[flow]) / alone for r in self.of(line, hosts, queue)]


_SIDE = {UP: "up", DOWN: "down"}


def speed(runs: Sequence[Run], flow: str) -> Estimate:
    """Goodput in kbit/s, mean and interval over the runs."""
    return simulated.mean([getattr(r, _SIDE[flow]) for r in runs])


HOME_SEEDS = 5
COMPARED_SEEDS = 3  # of queues that are shown beside the plan's, and of the narrow lines
EXTREME = (50.0, 100.0)
MODELLED = (home(1.0), HOME, home(5.0), home(20.0), *map(narrow, EXTREME))
HELD_QUEUES = (FIFO, APART, THINNED)
HOME_QUEUES = (*HELD_QUEUES, FQ_DATA, FQ_CODEL, CAKE)
ADSL_QUEUES = (*HELD_QUEUES, CAKE)
EIGHTFOLD = (eightfold(0), eightfold(LOSSY_PPM))
LEAVES = (APART, THINNED, HEAD_DROP, FQ_LEAF, FQ_CODEL, CAKE, CAKE_FILTER)
SATELLITE = narrow(50.0, SATELLITE_DELAY_NS)
SATELLITE_QUEUES = (FIFO, THINNED, HEAD_DROP, FQ_CODEL, CAKE_FILTER)
FLOOD = Hosts("an ACK for each packet", simulated.EVERY, TODAY.sender)
UNSACKED = Hosts("today's hosts without SACK", "linux", {**TODAY.sender, "recovery": "newreno"})
UNSACKED_QUEUES = (FIFO, THINNED, HEAD_DROP, CAKE_FILTER)


def _jobs() -> dict[Job, int]:
    """Every job and how many seeds it is run with."""
    made: dict[Job, int] = {}

    def add(line: Line, hosts: Hosts, names: Sequence[str], seeds: int) -> None:
        for flow in BOTH:
            made.setdefault(Job(line, hosts, FIFO, (flow,)), seeds)
        for name in names:
            made[Job(line, hosts, name, BOTH)] = seeds

    for hosts in (SOURCE, TODAY):
        add(HOME, hosts, HELD_QUEUES, HOME_SEEDS)
        add(HOME, hosts, HOME_QUEUES[len(HELD_QUEUES) :], COMPARED_SEEDS)
    add(ADSL, SOURCE, HELD_QUEUES, HOME_SEEDS)
    add(ADSL, SOURCE, (CAKE,), COMPARED_SEEDS)
    for line in EIGHTFOLD:
        add(line, TODAY, tuple(SEGMENTS_OF), HOME_SEEDS)
    add(narrow(50.0), TODAY, (FIFO, *LEAVES), COMPARED_SEEDS)
    add(narrow(100.0), TODAY, (FIFO, APART, THINNED, HEAD_DROP), COMPARED_SEEDS)
    add(SATELLITE, TODAY, SATELLITE_QUEUES, COMPARED_SEEDS)
    add(narrow(50.0), UNSACKED, UNSACKED_QUEUES, COMPARED_SEEDS)
    made[Job(narrow(100.0), FLOOD, APART, BOTH)] = COMPARED_SEEDS
    for line in MODELLED:
        if not any(job.line == line for job in made):
            add(line, TODAY, (FIFO, APART, THINNED), 1)
    return made


# --- checks --------------------------------------------------------------------------------------

FLOOD_PERCENT = 97.0  # of the data class's guarantee: the rest is the class's own pings and bursts


def case_checks(found: Found) -> Iterator[Check]:
    """The source's four cases, and what a gateway is held to in every run."""
    yield from grouped("throughput, hosts as in the paper", _speed_checks(found, HOME, ""))
    yield from grouped(
        f"throughput, hosts as in the paper, {CELLS}", _speed_checks(found, ADSL, f", {CELLS}")
    )
    runs = f"% of solo throughput in {HOME_SEEDS} runs"
    for line, hosts, named, of in (
        (HOME, SOURCE, "", SOURCE.name),
        (ADSL, SOURCE, f", {CELLS}", f"{SOURCE.name}, {CELLS}"),
        (HOME, TODAY, f", {TODAY.name}", TODAY.name),
    ):
        shares = partial(found.shares, line, hosts)
        checks = share_checks(shares, HELD_TO, named, fifo=hosts is SOURCE)
        yield from grouped(f"{runs}, {of}", checks)


HELD_TO = {APART: "ACK separation as in the paper", THINNED: "the gateway's plan"}
_UNIT, _FIGURE_3, _FIGURE_8 = "kbit/s", "figure 3", "figure 8"


def _speed_checks(found: Found, line: Line, named: str) -> list[Check]:
    lone = {UP: source_figure("upload alone"), DOWN: source_figure("download alone")}
    apart = {
        UP: source_figure("upload with download; ACK separation"),
        DOWN: source_figure("download with upload; ACK separation"),
    }

    def of(queue: str, flow: str) -> float:
        return speed(found.of(line, SOURCE, queue), flow).mean

    return [
        *(
            within(
                f"{flow} alone{named}", lone[flow], found.lone(line, SOURCE, flow),
                percent=simulated.LONE_PERCENT, unit=_UNIT, source=_FIGURE_3,
            )
            for flow in BOTH
        ),
        within(
            f"upload beside a download, FIFO{named}",
            source_figure("upload with download; FIFO queue of 100"), of(FIFO, UP),
            percent=simulated.FIFO_UPLOAD_PERCENT, unit=_UNIT, source=_FIGURE_3,
        ),
        within(
            f"download beside an upload, FIFO{named}", lone[DOWN], of(FIFO, DOWN),
            percent=simulated.FIFO_DOWNLOAD_PERCENT, unit=_UNIT, source=_FIGURE_3,
        ),
        *(
            within(
                f"{flow}, {words}{named}", apart[flow], of(queue, flow),
                percent=simulated.APART_PERCENT, unit=_UNIT, source=_FIGURE_8,
            )
            for queue, words in HELD_TO.items()
            for flow in BOTH
        ),
    ]  # fmt: skip


def share_checks(
    shares: Callable[[str, str], list[float]], held: Mapping[str, str], named: str, *, fifo: bool
) -> list[Check]:
    """What a gateway is held to in every run. `shares`: percent of the lone speed in each, by queue
    and flow; `held`: words for the queues; `fifo`: whether one queue has to harm the upload."""
    checks = []
    if fifo:
        beside = source_figure("upload with download; FIFO queue of 100")
        checks = [
            at_most(
                f"upload's share, FIFO, highest{named}", simulated.FIFO_UPLOAD_MOST,
                max(shares(FIFO, UP)), published=100 * beside / source_figure("upload alone"),
                unit="%", source=_FIGURE_3,
            ),
            at_least(
                f"download's share, FIFO, lowest{named}", simulated.FIFO_DOWNLOAD_LEAST,
                min(shares(FIFO, DOWN)), published=100, unit="%", source=_FIGURE_3,
            ),
        ]  # fmt: skip
    return checks + [
        at_least(
            f"{flow}'s share, {words}, lowest{named}", simulated.APART_LEAST,
            min(shares(queue, flow)), published=100, unit="%", source=_FIGURE_8,
        )
        for queue, words in held.items()
        for flow in BOTH
    ]  # fmt: skip


def extreme_checks(found: Found) -> Iterator[Check]:
    """Where ACKs alone exceed the uplink."""
    checks = []
    for line, words in (
        *((narrow(r), f"{r:g}:1") for r in EXTREME),
        (SATELLITE, "50:1 by satellite"),
    ):
        for queue in (THINNED, HEAD_DROP):
            for flow, bound in (
                (UP, simulated.FILTER_UPLOAD_LEAST),
                (DOWN, simulated.FILTER_DOWNLOAD_LEAST),
            ):
                share = min(found.shares(line, TODAY, queue, flow))
                name = f"{words}, {queue}: {flow}'s share, lowest"
                checks.append(at_least(name, bound, share, unit="%"))
    yield from grouped(f"very asymmetric lines in {COMPARED_SEEDS} runs, today's hosts", checks)
    line = narrow(100.0)
    up_wire_bps = min(run.up_wire_bps for run in found.of(line, FLOOD, APART))
    link = _link(line, 1)
    advice = model.advise(link, may_thin=False)
    guarantee_bps = (link.up_bps - advice.ack_guarantee_bps) * link.payload_share
    yield from grouped(
        f"ACK flood at 4.4 times the uplink rate, {COMPARED_SEEDS} runs",
        [
            at_least(
                "upload's segments relative to the data class's guarantee, lowest", FLOOD_PERCENT,
                100 * up_wire_bps / guarantee_bps, unit="%", source="spec page 3",
            )
        ],
    )  # fmt: skip


def latency_checks(found: Found) -> Iterator[Check]:
    """ACKs wait less in a queue of their own than in any shared one."""
    checks = []
    for hosts in (SOURCE, TODAY):
        fifo = _p99(found.of(HOME, hosts, FIFO), "ack")
        for queue in (APART, THINNED):
            checks.append(
                at_most(
                    f"{queue}: p99 ACK delay, {hosts.name}", fifo,
                    _p99(found.of(HOME, hosts, queue), "ack"), published=f"FIFO: {fifo:.0f}",
                    unit="ms",
                )
            )  # fmt: skip
    yield from grouped("delay of the download's ACKs through the loaded uplink", checks)


def _p99(runs: Sequence[Run], what: str) -> float:
    """The highest p99 of the runs, ms."""
    figures = [r.path["delay_ns"] if what == "ack" else r.ping["rtt_ns"] for r in runs]
    return max(float(f["p99"]) for f in figures) / _MS


def _link(line: Line, segments_per_ack: float) -> model.Link:
    return model.Link(
        down_bps=line.down_bps,
        up_bps=line.up_bps,
        segments_per_ack=segments_per_ack,
        round_trip_ns=2 * line.delay_ns,
        window_packets=line.window,
        layer=line.layer,
    )


@dataclass(frozen=True)
class Deviation:
    """Model and gateway at one ratio: percent of the lone speeds, by queue and flow."""

    ratio: float
    predicted: dict[tuple[str, str], float]
    measured: dict[tuple[str, str], float]


def deviations(found: Found) -> list[Deviation]:
    """The model beside the gateway, with the ACKs that the hosts sent when alone."""
    made = []
    for line in MODELLED:
        link = _link(line, 2)
        # the queues follow from the gateway's assumption, the speeds from what hosts do
        share = model.thinned_share(replace(link, segments_per_ack=1))
        said = model.predict(link)
        speeds = {
            FIFO: said.fifo,
            APART: said.separation,
            THINNED: model.apart(link, said.alone, min(link.demand, share)),
        }
        predicted = {
            (queue, flow): 100 * getattr(s, f"{side}_bps") / getattr(said.alone, f"{side}_bps")
            for queue, s in speeds.items()
            for flow, side in _SIDE.items()
        }
        measured = {
            (queue, flow): simulated.mean(found.shares(line, TODAY, queue, flow)).mean
            for queue, flow in product(speeds, BOTH)
        }
        made.append(Deviation(line.down_bps / line.up_bps, predicted, measured))
    return made


def model_checks(found: Found) -> Iterator[Check]:
    """How far the model is from the gateway, at worst; tolerances as beside the simulator."""
    points = deviations(found)
    checks = []
    for queue, flow in product((FIFO, APART, THINNED), BOTH):
        worst = max(points, key=lambda p: abs(p.predicted[queue, flow] - p.measured[queue, flow]))
        bound = deviation.FIFO_POINTS if queue == FIFO else deviation.APART_POINTS
        off = abs(worst.predicted[queue, flow] - worst.measured[queue, flow])
        checks.append(at_most(f"model, {queue}, {flow}: largest error", bound, off, unit="points"))
    yield from grouped("model against gateway, 1:1 to 100:1, today's hosts", checks)


# --- figures -------------------------------------------------------------------------------------


def _broken(queue: str) -> str:
    """One line for each part of the name."""
    return queue.replace(", ", ",\n").replace("; ", ";\n")


def cases_figure(found: Found) -> Figure:
    """Figures 3 and 8 of the source, and other queues."""
    quantities = {
        UP: ["upload alone", "upload with download; FIFO queue of 100",
             "upload with download; ACK separation"],
        DOWN: ["download alone", "download alone", "download with upload; ACK separation"],
    }  # fmt: skip
    known = {flow: [source_figure(one) for one in names] for flow, names in quantities.items()}

    def panel(flow: str) -> Panel:
        def ours(hosts: Hosts, line: Line, names: Sequence[str], label: str) -> Series:
            found_here = [speed(found.of(line, hosts, FIFO, (flow,)), flow)] + [
                speed(found.of(line, hosts, queue), flow) for queue in names
            ]
            return Series(
                label, ["alone", *map(_broken, names)], [e.mean for e in found_here], "bars",
                spread=[e.ci95 or 0 for e in found_here],
            )  # fmt: skip

        return Panel(
            "",
            f"{flow}, kbit/s",
            [
                Series(
                    "published", ["alone", FIFO, _broken(APART)], known[flow], "bars",
                    published=True,
                ),
                ours(SOURCE, HOME, HOME_QUEUES, SOURCE.name),
                ours(SOURCE, ADSL, ADSL_QUEUES, f"{SOURCE.name}, {CELLS}"),
                ours(TODAY, HOME, HOME_QUEUES, TODAY.name),
            ],
            title=flow,
        )  # fmt: skip

    return Figure(
        "linux-separation-cases",
        "Throughput alone and together on a real kernel, by uplink queue",
        [panel(UP), panel(DOWN)],
        source="figures 3 and 8",
    )


def latency_figure(found: Found) -> Figure:
    """p99 of what waits for the loaded uplink."""
    columns = ["ACK p50", "ACK p99", "ping p50", "ping p99", "pings lost", "up", "down"]

    def grid(line: Line, hosts: Hosts, names: Sequence[str]) -> Grid:
        cells = []
        for queue in names:
            runs = found.of(line, hosts, queue)
            middle = [
                max(f["p50"] for f in figures) / _MS
                for figures in (
                    [r.path["delay_ns"] for r in runs],
                    [r.ping["rtt_ns"] for r in runs],
                )
            ]
            lost = 100 * sum(r.ping["lost"] for r in runs) / sum(r.ping["sent"] for r in runs)
            shares = [min(found.shares(line, hosts, queue, flow)) for flow in BOTH]
            cells.append([
                f"{middle[0]:.0f}", f"{_p99(runs, 'ack'):.0f}", f"{middle[1]:.0f}",
                f"{_p99(runs, 'ping'):.0f}", f"{lost:.0f}%", *(f"{s:.0f}%" for s in shares),
            ])  # fmt: skip
        title = f"{line.name}, {hosts.name}"
        return Grid("", "", list(names), columns, cells, [[""] * len(columns)] * len(cells), title)

    return Figure(
        "linux-separation-latency",
        "ACK delay to the server and ping RTT in ms, and the transfers' % of solo throughput; "
        "worst run of each",
        [
            grid(HOME, SOURCE, HOME_QUEUES),
            grid(ADSL, SOURCE, ADSL_QUEUES),
            grid(HOME, TODAY, HOME_QUEUES),
            grid(narrow(50.0), TODAY, (FIFO, *LEAVES)),
            grid(SATELLITE, TODAY, SATELLITE_QUEUES),
        ],
    )


def leaves_figure(found: Found) -> Figure:
    """What thinning loses and what it costs."""
    columns = [
        "ACKs\ndropped", "dup ACKs\ndropped", "SACK info\nlost", "RTT\np99, ms", "pauses",
        "timeouts", "retrans-\nmitted", "up", "down",
    ]  # fmt: skip

    def grid(line: Line, names: Sequence[str], title: str, hosts: Hosts = TODAY) -> Grid:
        cells = []
        for queue in names:
            runs = found.of(line, hosts, queue)

            def total(key: str, runs: list[Run] = runs) -> int:
                return sum(r.path[key] for r in runs)

            def part(of: str, whole: str) -> str:
                return f"{100 * total(of) / total(whole):.1f}%" if total(whole) else "none sent"

            shares = [min(found.shares(line, hosts, queue, flow)) for flow in BOTH]
            cells.append([
                part("acks_dropped", "acks_sent"),
                part("duplicate_acks_dropped", "duplicate_acks_sent"),
                part("sacked_bytes_never_told", "sacked_bytes"),
                f"{max(r.rtt_p99_ns for r in runs) / _MS:.0f}",
                f"{total('pauses')}",
                f"{sum(r.timeouts for r in runs)}",
                f"{sum(r.retransmitted for r in runs)}",
                *(f"{s:.0f}%" for s in shares),
            ])  # fmt: skip
        classes = [[""] * len(columns)] * len(cells)
        return Grid("", "", list(names), columns, cells, classes, title)

    return Figure(
        "linux-separation-leaves",
        "Queues that thin ACKs, on lines of 50:1 and 100:1 (200 kbit/s up), today's hosts",
        [
            grid(narrow(50.0), (FIFO, *LEAVES), "50:1"),
            grid(
                narrow(100.0), (FIFO, APART, THINNED, HEAD_DROP), "100:1"
            ),
            grid(SATELLITE, SATELLITE_QUEUES, "50:1, 600 ms by satellite"),
            grid(narrow(50.0), UNSACKED_QUEUES, "50:1, hosts without SACK", UNSACKED),
            *(grid(line, tuple(SEGMENTS_OF), line.name) for line in EIGHTFOLD),
        ],
    )  # fmt: skip


def model_figure(found: Found) -> Figure:
    """Predicted as lines, measured as points."""
    points = deviations(found)

    def panel(flow: str) -> Panel:
        def line(queue: str, measured: bool) -> Series:
            values = [(p.measured if measured else p.predicted)[queue, flow] for p in points]
            label = f"{queue}, {'gateway' if measured else 'model'}"
            kind = "points" if measured else "line"
            return Series(label, [p.ratio for p in points], values, kind)  # type: ignore[arg-type]

        series = [line(q, m) for m in (False, True) for q in (FIFO, APART, THINNED)]
        return Panel("ratio of downlink to uplink rate", f"{flow}, % of solo throughput", series, flow, log_x=True)

    return Figure(
        "linux-separation-model",
        "Model and gateway on a real kernel, today's hosts",
        [panel(UP), panel(DOWN)],
        columns=2,
    )


def run(runner: Runner) -> Outcome:
    """Every job, then checks and figures."""
    found = Found(runner, _jobs())
    return Outcome(
        checks=[
            *case_checks(found),
            *extreme_checks(found),
            *latency_checks(found),
            *model_checks(found),
        ],
        figures=[
            cases_figure(found),
            latency_figure(found),
            leaves_figure(found),
            model_figure(found),
        ],
        notes=[
            "kbit/s with 95% CI, hosts as in the paper: "
            + ", ".join(
                f"{queue} {flow} {e.mean:.0f} ± {e.ci95 or 0:.0f}"
                for queue in HOME_QUEUES
                for flow in BOTH
                for e in [speed(found.of(HOME, SOURCE, queue), flow)]
            )
            + ".",
            *(
                f"upload's share in each run, FIFO, {line.name}, {hosts.name}: "
                + ", ".join(f"{share:.1f}" for share in found.shares(line, hosts, FIFO, UP))
                + "%."
                for line, hosts in ((HOME, SOURCE), (ADSL, SOURCE), (HOME, TODAY))
            ),
        ],
    )


EXPERIMENT = Experiment(
    name="linux-separation",
    title="ACK separation by a real gateway",
    source='spec page 3: J. Park, S. Hong, "Preventing network performance interference with '
    'ACK-separation queuing mechanism in a home network gateway using an asymmetric link"',
    question="What do a download's ACKs do to an upload on a real kernel, what ends it, and at "
    "what cost?",
    run=run,
)
