# SPDX-License-Identifier: MIT
"""Arrivals at a real receiver: a guest's connections have the same policy and price, and each has
arrivals of its own. Costs follow from the capture at the receiver; the simulator runs the same
scenarios, and the core replays the same captures without a host."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from ackwise import engine, plans
from ackwise.engine import Cancel
from ackwise.errors import RunError
from ackwise.host.leftovers import temporary_folder
from ackwise.lab.measure import SERVER_PORT, read_capture
from ackwise.lab.network import CLIENT
from ackwise.plans import policy
from ackwise.results.hosts import like_the_lab
from ackwise_experiments import documents
from ackwise_experiments.changes import Scenario
from ackwise_experiments.dynamic.arrivals import KINDS, PACKETS, PAYLOAD_BYTES
from ackwise_experiments.dynamic.fixed import random_of
from ackwise_experiments.dynamic.policies import (
    BLOWUP,
    DYNAMIC,
    GREEDY,
    LIMITED,
    LINKS,
    LINUX,
    OVERALL,
    PER_ACK,
    PLAIN,
    STOCK,
    UNIT_NS,
    CostCurve,
    CostCurves,
    CostPoint,
    JudgedRun,
    LimitedPolicy,
    Size,
    choice,
    cost_point,
    limit_forced_ack,
    price_ns,
    replay_options,
)
from ackwise_experiments.dynamic.sender import (
    STREAMING,
    WINDOWS,
    Rates,
    SimulatedConnection,
    connection,
    duration_ns,
    judged,
    rates_of,
    replayed,
    requested,
    scaled_cost,
)
from ackwise_experiments.lab_runner import LabRunner

PAPERS = "uniform"
CASES = [LimitedPolicy(name, LIMITED) for name in (PER_ACK, DYNAMIC, GREEDY, STOCK, LINUX)]
PRICED_CASES = [case for case in CASES if case.policy not in PLAIN]
SETTLE_NS = 5 * 10**9  # after the last write
# A policy that sends all but so few of the ACKs itself counts as not limited.
RARE = 0.01
# Random numbers with which the core replays a capture, besides those of each connection.
REPLAYS = 8
BYTES = PACKETS * PAYLOAD_BYTES  # of a connection
# One transfer after the other, each with time to end: this, and its bytes at so slow a rate.
SLOT_NS, SLOT_BYTES_PER_S = 5 * 10**9, 250_000
_FIN, _SYN = 1, 2


@dataclass(frozen=True)
class LabSize:
    """How much is run."""

    ratios: Sequence[int] = tuple(sorted({*OVERALL, *BLOWUP}))
    connections: int = 30
    request_bytes: Sequence[int] = Size().request_bytes
    requests: int = 5  # of each size


class Guest(NamedTuple):
    """Connections under one policy at one price, and why the receiving host's ACKs left."""

    connections: list[SimulatedConnection]
    reasons: dict[str, int]
    alone: list[float]  # cost of the policy on the same arrivals, on the host of the model
    core: list[float]  # the same on the kernel's host


@dataclass
class Costs:
    """Costs of each policy relative to the best schedule, by RTT."""

    kernel: dict[str, CostCurves] = field(default_factory=dict)
    simulator: dict[str, CostCurves] = field(default_factory=dict)  # on the kernel's host
    source: dict[str, CostCurves] = field(default_factory=dict)  # with the RFC limits alone
    alone: dict[str, CostCurves] = field(default_factory=dict)
    core: dict[str, CostCurves] = field(default_factory=dict)
    reasons: dict[str, dict[LimitedPolicy, dict[int, dict[str, int]]]] = field(default_factory=dict)


# --- scenarios ------------------------------------------------------------------------------------


def together(made: Sequence[Scenario], starts_ns: Sequence[int]) -> Scenario:
    """Scenarios of one group each as one."""
    groups = []
    for number, (one, start_ns) in enumerate(zip(made, starts_ns, strict=True)):
        (group,) = one["groups"]
        groups.append(copy.deepcopy(group) | {"name": str(number), "start_ns": start_ns})
    return {**made[0], "groups": groups}


def spaced(rtt: str, case: LimitedPolicy, rho: int, connections: int) -> Scenario:
    """The paper's 100 packets, on so many connections at once."""
    link, chosen = plans.load_link(LINKS[rtt]), choice(case, rho)
    times = [KINDS[PAPERS](random_of(PAPERS, run), price_ns(rho)) for run in range(connections)]
    made = together([replayed(link, chosen, one, 1) for one in times], [0] * connections)
    return made | {"duration_ns": max(one[-1] for one in times) + SETTLE_NS}


def streamed(rtt: str, window: str, label: str, size: LabSize) -> Scenario:
    """Requests of every size, one after the other, each on a new connection."""
    link = plans.load_link(LINKS[rtt])
    made, starts, at = [], [], 0
    for wanted, run in product(size.request_bytes, range(size.requests)):
        made.append(requested(link, STREAMING[label], WINDOWS[window], wanted, run))
        starts.append(at)
        at += SLOT_NS + wanted * 10**9 // SLOT_BYTES_PER_S
    return together(made, starts) | {"duration_ns": at}


def on_linux(chosen: policy.PolicyChoice) -> policy.PolicyChoice:
    """The policy as a kernel runs it."""
    return replace(chosen, host=policy.STOCK, clamp=policy.CLAMPED)


def on_kernel(made: Scenario) -> Scenario:
    """For the lab: the scenario's receivers otherwise stand on the host of the source."""
    made = copy.deepcopy(made)
    for group in made["groups"]:
        group["policy"] |= {"host": policy.STOCK, "clamp": True}
    return made


def as_the_kernel(made: Scenario) -> Scenario:
    """For the simulator: as on_kernel(), with the kernel's limits."""
    return documents.of(like_the_lab(documents.read(on_kernel(made))))


# --- from a capture -------------------------------------------------------------------------------


def captured(path: Path, flows: int) -> list[SimulatedConnection]:
    """Arrivals and ACKs of each connection, from the capture at the client.

    An ACK covers everything that arrived before it; so does the FIN of a client that closes. Once
    all is acknowledged nothing counts. Raises RunError if data is never acknowledged.
    """
    arrivals: list[list[int]] = [[] for _ in range(flows)]
    owed: list[list[int]] = [[] for _ in range(flows)]
    # of `idle` ACKs, which cover nothing, those count that more data follow
    acks, idle, latency = [0] * flows, [0] * flows, [0] * flows
    for p in read_capture(path):
        if not 0 <= p.flow < flows or p.flags & _SYN:
            continue
        if p.from_server:
            if p.payload:
                arrivals[p.flow].append(p.time_ns)
                owed[p.flow].append(p.time_ns)
        elif owed[p.flow]:
            acks[p.flow] += 1 + idle[p.flow]
            latency[p.flow] += sum(p.time_ns - arrived for arrived in owed[p.flow])
            owed[p.flow].clear()
            idle[p.flow] = 0
        elif acks[p.flow] and not p.flags & _FIN:
            idle[p.flow] += 1
    if any(owed) or not all(acks):
        raise RunError("dynamic: data was never acknowledged")
    return [
        SimulatedConnection(times, count, waited, limited=False)
        for times, count, waited in zip(arrivals, acks, latency, strict=True)
    ]


def _replayed(
    path: Path, chosen: policy.PolicyChoice, rho: int, replays: int, best: Sequence[int]
) -> list[float]:
    """Cost of a policy on the arrivals of each connection, relative to the best schedule's."""
    options = replay_options([], rho, 0)
    options |= {"policies": [chosen.for_engine()], "traced_directions": len(best)}
    totals = [0.0] * len(best)
    for seed in range(replays):
        for one in engine.replay(str(path), options | {"seed": seed})["directions"]:
            flow = int(one["from"].rpartition(":")[2]) - SERVER_PORT
            found = next(p for p in one["policies"] if p["policy"] == chosen.name)
            # up to the first that covers the last byte: one for a FIN alone does not count
            acks = 1 + sum(point["ack"] <= BYTES for point in found["trace"]["first"])
            totals[flow] += scaled_cost(acks, found["latency_ns"], rho) / best[flow]
    return [total / replays for total in totals]


class Priced(NamedTuple):
    """What a guest runs: a policy at a price, over a path with this RTT."""

    rtt: str
    case: LimitedPolicy
    rho: int
    made: Scenario


def priced(rtt: str, case: LimitedPolicy, rho: int, connections: int) -> Priced:
    """With the paper's arrivals."""
    return Priced(rtt, case, rho, spaced(rtt, case, rho, connections))


def _ran(
    runner: LabRunner, item: Priced, folder: Path, cancel: Cancel
) -> tuple[list[SimulatedConnection], dict[str, int]]:
    """Its connections, and why the receiving host's ACKs left; keeps the capture in `folder`."""
    label = f"RTT {item.rtt}, {item.case.policy}"
    made = on_kernel(item.made)
    result = documents.in_lab(made, label, label, runner.kernel, cancel=cancel, keep=folder)
    counted = result["counters"][CLIENT]
    reasons = {n.removeprefix("TcpAck"): c for n, c in counted.items() if n.startswith("TcpAck")}
    reasons.pop("piggyback", None)  # not a pure ACK
    return captured(folder / f"{CLIENT}.pcap", len(item.made["groups"])), reasons


def cost_of(runner: LabRunner, item: Priced, cancel: Cancel) -> CostPoint:
    """What a policy costs on the kernel."""
    with temporary_folder() as folder:
        found, reasons = _ran(runner, item, folder, cancel)
    return _curve(found, [item.rho], forced_share(reasons) > RARE)[item.rho]


def _guest(runner: LabRunner, item: Priced, cancel: Cancel) -> Guest:
    _, case, rho, _ = item
    with temporary_folder() as folder:
        found, reasons = _ran(runner, item, folder, cancel)
        path = folder / f"{CLIENT}.pcap"
        alone: list[float] = []
        core: list[float] = []
        if case in PRICED_CASES:
            best = [engine.optimum(one.arrivals_ns, rho, UNIT_NS) for one in found]
            least = [scaled_cost(one["acks"], one["latency_ns"], rho) for one in best]
            chosen = choice(case, rho)
            free = replace(chosen, host="model")
            bound = on_linux(chosen)
            # greedy draws nothing
            replays = 1 if case.policy == GREEDY else REPLAYS
            alone = _replayed(path, free, rho, replays, least)
            core = _replayed(path, bound, rho, replays, least)
    return Guest(found, reasons, alone, core)


def forced_share(reasons: Mapping[str, int]) -> float:
    """Share of the ACKs that a duty sent before the policy did."""
    forced = sum(count for reason, count in reasons.items() if limit_forced_ack([reason]))
    return forced / max(1, sum(reasons.values()))


# --- runs -----------------------------------------------------------------------------------------


def _curve(
    connections: Sequence[SimulatedConnection], ratios: Sequence[int], limited: bool
) -> CostCurve:
    return {
        rho: cost_point([[judged(one, rho)._replace(limited=limited)] for one in connections])
        for rho in ratios
    }


def _simulated(made: Scenario, cancel: Cancel) -> list[SimulatedConnection]:
    return [connection({"groups": [group]}) for group in documents.simulate(made, cancel)["groups"]]


def costs(runner: LabRunner, size: LabSize) -> Costs:
    """Over the cost ratio. A policy that does not know the price runs once for each RTT."""
    items = [
        priced(rtt, case, rho, size.connections)
        for rtt, case in product(LINKS, CASES)
        for rho in (size.ratios if case in PRICED_CASES else size.ratios[:1])
    ]
    scenarios = [item.made for item in items]
    guests = runner.map("100 packets, the kernel", partial(_guest, runner), items)
    bound = [as_the_kernel(made) for made in scenarios]
    simulated = runner.map("the same, the simulator", _simulated, bound)
    by_source = runner.map("the same, RFC limits only", _simulated, scenarios)
    found = Costs()
    for (rtt, case, rho, _), guest, ours, sources in zip(
        items, guests, simulated, by_source, strict=True
    ):
        ratios = [rho] if case in PRICED_CASES else size.ratios
        limited = forced_share(guest.reasons) > RARE
        for place, connections in (
            (found.kernel, guest.connections),
            (found.simulator, ours),
            (found.source, sources),
        ):
            curves = place.setdefault(rtt, {}).setdefault(case, {})
            curves |= _curve(connections, ratios, limited)
        for place, ratio in ((found.alone, guest.alone), (found.core, guest.core)):
            if ratio:
                point = cost_point([[JudgedRun(one, False)] for one in ratio])
                place.setdefault(rtt, {}).setdefault(case, {})[rho] = point
        found.reasons.setdefault(rtt, {}).setdefault(case, {})[rho] = guest.reasons
    return found


Streamed = dict[tuple[str, str], Rates]  # by RTT and window


def times_ns(result: Mapping[str, Any]) -> list[float]:
    """Duration of each request."""
    return [duration_ns({"groups": [group]}) for group in result["groups"]]


def streaming(runner: LabRunner, size: LabSize) -> tuple[Streamed, Streamed]:
    """Throughput of one request and one response, on the kernel and in the simulator."""
    keys = list(product(LINKS, WINDOWS, STREAMING))
    made = [streamed(*key, size) for key in keys]

    def simulated(one: Scenario, cancel: Cancel) -> list[float]:
        return times_ns(documents.simulate(as_the_kernel(one), cancel))

    sizes = list(product(size.request_bytes, range(size.requests)))
    by_place: list[Streamed] = []
    for found in (
        runner.simulate("requests and responses, the kernel", [*map(on_kernel, made)], times_ns),
        runner.map("the same, the simulator", simulated, made),
    ):
        rates: Streamed = {}
        for (rtt, window, name), times in zip(keys, found, strict=True):
            named = [(name, *one) for one in sizes]
            rates.setdefault((rtt, window), {}).update(rates_of(named, times))
        by_place.append(rates)
    kernel, ours = by_place
    return kernel, ours
