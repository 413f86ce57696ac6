# SPDX-License-Identifier: MIT
"""Spec page 3 on the real kernel in virtual time: a gateway whose uplink has the queues of `ackwise
gateway plan`, or others.

      host ────── gateway ═══════════ internet ────── server
                      up: the queues that are compared
                      down: a FIFO at the provider's
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ackwise import plans
from ackwise.results.stats import Estimate, mean_of
from ackwise_experiments import documents
from ackwise_experiments.changes import Scenario
from ackwise_experiments.runner import Runner
from ackwise_experiments.separation import model
from ackwise_experiments.separation.access import (
    ADSL,
    APART,
    CAKE,
    CAKE_FILTER,
    FQ_CODEL,
    FQ_DATA,
    FQ_LEAF,
    HEAD_DROP,
    HOME,
    LOSSY_PPM,
    SATELLITE_DELAY_NS,
    SEGMENTS_OF,
    THINNED,
    AccessLine,
    eightfold,
    home,
    narrow,
    queues,
)
from ackwise_experiments.separation.cases import (
    EVERY,
    FIFO_LINK,
    WINDOW_PACKETS,
    set_link_layer,
)
from ackwise_experiments.separation.cases import scenario as simulator_scenario
from ackwise_experiments.separation.paper import BOTH, DOWN, FIFO, UP
from ackwise_experiments.separation.testbed import OLD

_MS, _S = 10**6, 10**9


@dataclass(frozen=True)
class LabHosts:
    """Both ends: the receivers' policy, and what differs from the plan in the senders and from the
    kernel's defaults in their TCP."""

    name: str
    policy: str
    sender: Mapping[str, Any] = field(hash=False)
    sysctls: Mapping[str, int] = field(default_factory=dict, hash=False)


PAPER_HOSTS = LabHosts("hosts as in the paper", EVERY, {}, OLD)
TODAY = LabHosts("today's hosts", "linux", model.TODAY | {"initial_window_segments": 10})


@dataclass(frozen=True)
class SettledRun:
    """One run. Goodput in kbit/s after the settling time, times in ns; of the download's ACKs:
    `path` (see `ackwise.engine.both_ends.AckPath`)."""

    up: float
    down: float
    up_wire_bps: float
    rtt_p99_ns: float
    timeouts: int
    retransmitted: int
    path: dict[str, Any]
    ping: dict[str, Any]


@dataclass(frozen=True)
class GatewayJob:
    """One kind of run, made once for each seed."""

    line: AccessLine
    hosts: LabHosts
    queue: str
    flows: tuple[str, ...]


def scenario(job: GatewayJob, seed: int) -> Scenario:
    """What the lab runs."""
    plan = plans.load_plan("separation")
    link = next(link for link in plan.links if link.name == FIFO_LINK)
    (workload,) = plan.workloads
    made = simulator_scenario(link, workload, job.hosts.policy, job.flows, seed)
    line = job.line
    made.pop("access", None)  # the hosts' own Ethernet
    made |= {
        "duration_ns": line.duration_ns,
        "series_interval_ns": line.duration_ns // 100,
        "ping_interval_ns": line.ping_ns,
    }
    extras: dict[str, Any] = {"paths_from_ns": line.settled_ns, "sysctls": dict(job.hosts.sysctls)}
    set_link_layer(made, line.layer)
    for way, rate_bps in (("up", line.up_bps), ("down", line.down_bps)):
        made[way] |= {"rate_bps": rate_bps, "delay_ns": line.delay_ns}
        made[way].pop("jitter_ns", None)
        if line.jitter:  # one packet's time, as in the plan
            made[way]["jitter_ns"] = line.wire_time_ns(rate_bps)
    made["down"] |= {"queue_packets": line.buffer_packets, "loss_ppm": line.loss_ppm}
    for group in made["groups"]:
        # as the paper's upload: a queue of 100 holds the whole window
        window = line.window if group["name"] == DOWN else WINDOW_PACKETS
        group["sender"] |= {**job.hosts.sender, "max_window_segments": window}
    lines = queues(job.queue, line)
    if lines:
        extras["tc"] = {"up": lines}
    return made | {documents.EXTRAS: extras}


def settled_run(job: GatewayJob, result: dict[str, Any]) -> SettledRun:
    """A result, from the line's settled time on."""
    line = job.line
    seconds = (line.duration_ns - line.settled_ns) / _S
    speeds = dict.fromkeys(BOTH, 0.0)
    for group in result["groups"]:
        series = group["flows"][0]["series"]
        # a sample holds what arrived since the previous one
        begin_ns = next(at for at in series["time_ns"] if at >= line.settled_ns)
        settled = [
            count
            for at, count in zip(series["time_ns"], series["delivered_bytes"], strict=True)
            if at > begin_ns
        ]
        counted_s = (series["time_ns"][-1] - begin_ns) / _S
        speeds[group["name"]] = sum(settled) * 8e-3 / counted_s
    paths = {g["name"]: p for g, p in zip(result["groups"], result["ack_paths"], strict=True)}
    groups = {g["name"]: g for g in result["groups"]}
    down = groups.get(DOWN)
    return SettledRun(
        up=speeds[UP],
        down=speeds[DOWN],
        up_wire_bps=paths[UP]["data_bytes"] * 8 / seconds if UP in paths else 0.0,
        rtt_p99_ns=down["rtt_ns"]["p99"] if down else 0.0,
        timeouts=down["timeouts"] if down else 0,
        retransmitted=down["retransmitted_segments"] if down else 0,
        path=paths.get(DOWN, {}),
        ping=result["ping"],
    )


class GatewayRuns:
    """The runs of every job."""

    def __init__(self, runner: Runner, jobs: dict[GatewayJob, int]) -> None:
        wanted = [(job, seed) for job, seeds in jobs.items() for seed in range(1, seeds + 1)]
        scenarios = [scenario(job, seed) for job, seed in wanted]
        results = runner.simulate("gateway", scenarios)
        self.runs: dict[GatewayJob, list[SettledRun]] = {}
        for (job, _), result in zip(wanted, results, strict=True):
            self.runs.setdefault(job, []).append(settled_run(job, result))

    def of(
        self, line: AccessLine, hosts: LabHosts, queue: str, flows: tuple[str, ...] = BOTH
    ) -> list[SettledRun]:
        """The runs of one job."""
        return self.runs[GatewayJob(line, hosts, queue, flows)]

    def solo(self, line: AccessLine, hosts: LabHosts, flow: str) -> float:
        """Mean solo throughput, kbit/s."""
        return speed(self.of(line, hosts, FIFO, (flow,)), flow).mean

    def together(self, line: AccessLine, hosts: LabHosts, queue: str, flow: str) -> float:
        """Mean throughput with both transfers, kbit/s."""
        return speed(self.of(line, hosts, queue), flow).mean

    def shares(self, line: AccessLine, hosts: LabHosts, queue: str, flow: str) -> list[float]:
        """% of solo throughput, of each run."""
        alone = self.solo(line, hosts, flow)
        return [100 * getattr(r, SIDE[flow]) / alone for r in self.of(line, hosts, queue)]


SIDE = {UP: "up", DOWN: "down"}


def speed(runs: Sequence[SettledRun], flow: str) -> Estimate:
    """Goodput in kbit/s, mean and interval over the runs."""
    return mean_of([getattr(r, SIDE[flow]) for r in runs])


HOME_SEEDS = 5
COMPARED_SEEDS = 3  # for queues other than the plan's, and for the narrow lines
EXTREME = (50.0, 100.0)
MODELLED = (home(1.0), HOME, home(5.0), home(20.0), *map(narrow, EXTREME))
HELD_QUEUES = (FIFO, APART, THINNED)
HOME_QUEUES = (*HELD_QUEUES, FQ_DATA, FQ_CODEL, CAKE)
ADSL_QUEUES = (*HELD_QUEUES, CAKE)
EIGHTFOLD = (eightfold(0), eightfold(LOSSY_PPM))
LEAVES = (APART, THINNED, HEAD_DROP, FQ_LEAF, FQ_CODEL, CAKE, CAKE_FILTER)
SATELLITE = narrow(50.0, SATELLITE_DELAY_NS)
SATELLITE_QUEUES = (FIFO, THINNED, HEAD_DROP, FQ_CODEL, CAKE_FILTER)
FLOOD = LabHosts("an ACK for each packet", EVERY, TODAY.sender)
UNSACKED = LabHosts("today's hosts without SACK", "linux", {**TODAY.sender, "recovery": "newreno"})
UNSACKED_QUEUES = (FIFO, THINNED, HEAD_DROP, CAKE_FILTER)


def jobs() -> dict[GatewayJob, int]:
    """Every job and how many seeds it is run with."""
    made: dict[GatewayJob, int] = {}

    def add(line: AccessLine, hosts: LabHosts, names: Sequence[str], seeds: int) -> None:
        for flow in BOTH:
            made.setdefault(GatewayJob(line, hosts, FIFO, (flow,)), seeds)
        for name in names:
            made[GatewayJob(line, hosts, name, BOTH)] = seeds

    for hosts in (PAPER_HOSTS, TODAY):
        add(HOME, hosts, HELD_QUEUES, HOME_SEEDS)
        add(HOME, hosts, HOME_QUEUES[len(HELD_QUEUES) :], COMPARED_SEEDS)
    add(ADSL, PAPER_HOSTS, HELD_QUEUES, HOME_SEEDS)
    add(ADSL, PAPER_HOSTS, (CAKE,), COMPARED_SEEDS)
    for line in EIGHTFOLD:
        add(line, TODAY, tuple(SEGMENTS_OF), HOME_SEEDS)
    add(narrow(50.0), TODAY, (FIFO, *LEAVES), COMPARED_SEEDS)
    add(narrow(100.0), TODAY, (FIFO, APART, THINNED, HEAD_DROP), COMPARED_SEEDS)
    add(SATELLITE, TODAY, SATELLITE_QUEUES, COMPARED_SEEDS)
    add(narrow(50.0), UNSACKED, UNSACKED_QUEUES, COMPARED_SEEDS)
    made[GatewayJob(narrow(100.0), FLOOD, APART, BOTH)] = COMPARED_SEEDS
    for line in MODELLED:
        if not any(job.line == line for job in made):
            add(line, TODAY, (FIFO, APART, THINNED), 1)
    return made
