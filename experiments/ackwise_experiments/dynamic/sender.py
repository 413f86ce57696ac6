# SPDX-License-Identifier: MIT
"""Arrivals from a simulated sender, which reacts to the ACKs, and its throughput."""

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

from ackwise import engine, plans
from ackwise.errors import RunError
from ackwise.plans import policy
from ackwise.results.stats import Estimate, paired_percent
from ackwise_experiments import documents
from ackwise_experiments.dynamic import arrivals
from ackwise_experiments.dynamic.arrivals import KINDS, PAYLOAD_BYTES
from ackwise_experiments.dynamic.fixed import random_of
from ackwise_experiments.dynamic.policies import (
    DYNAMIC,
    GREEDY,
    HOSTS,
    LIMITED,
    LINKS,
    LINUX,
    PER_ACK,
    PLAIN,
    REQUEST_BYTES,
    STOCK,
    UNIT_NS,
    CostCurves,
    JudgedRun,
    LimitedPolicy,
    Size,
    choice,
    cost_point,
    limit_forced_ack,
    price_ns,
)
from ackwise_experiments.runner import Runner


class SimulatedConnection(NamedTuple):
    """Arrivals and ACKs of one simulated connection."""

    arrivals_ns: list[int]
    acks: int
    latency_ns: int
    limited: bool


def connection(result: dict[str, Any]) -> SimulatedConnection:
    """From a result's trace; an ACK covers everything that arrived before it."""
    (group,) = result["groups"]
    (flow,) = group["flows"]
    trace, acks = flow["trace"], flow["trace"]["ack_time_ns"]
    if trace["truncated"] or not flow["completed"]:
        raise RunError("dynamic: a run or its trace was cut off")
    # A run ends once all is acknowledged: what arrives later was retransmitted needlessly.
    times = [
        t
        for t, n in zip(trace["arrival_time_ns"], trace["arrival_segments"], strict=True)
        for _ in range(n)
        if t <= acks[-1]
    ]
    latency_ns, at = 0, 0
    for time in times:
        while acks[at] < time:
            at += 1
        latency_ns += acks[at] - time
    return SimulatedConnection(
        times, len(acks), latency_ns, limit_forced_ack(group["acks_by_reason"])
    )


def scaled_cost(acks: int, latency_ns: int, rho: int) -> int:
    """rho ACKs + (1 - rho) latency / unit, times 1000 units, without rounding."""
    return rho * UNIT_NS * acks + (1000 - rho) * latency_ns


def judged(one: SimulatedConnection, rho: int) -> JudgedRun:
    """Its cost relative to the best schedule for the same arrivals."""
    best = engine.optimum(one.arrivals_ns, rho, UNIT_NS)
    least = scaled_cost(best["acks"], best["latency_ns"], rho)
    return JudgedRun(scaled_cost(one.acks, one.latency_ns, rho) / least, one.limited)


def replayed(
    link: plans.Link, chosen: policy.PolicyChoice, times: list[int], seed: int
) -> dict[str, Any]:
    """A scenario in which the server writes a full segment at each of these times."""
    scenario = documents.scenario_of(
        link, plans.load_workload("random-spacing"), chosen, seed, trace_limit=100 * len(times)
    )
    scenario["groups"][0]["app"] = {
        "kind": "replay",
        "times_ns": times,
        "bytes": [PAYLOAD_BYTES] * len(times),
    }
    scenario["duration_ns"] = times[-1] + 600 * 10**9
    return scenario


def clocked(link: plans.Link, chosen: policy.PolicyChoice, seed: int) -> dict[str, Any]:
    """A scenario in which each packet waits for the previous one's ACK: a window of one."""
    scenario = documents.scenario_of(
        link, plans.load_workload("random-spacing"), chosen, seed,
        trace_limit=100 * arrivals.PACKETS,
    )  # fmt: skip
    group = scenario["groups"][0]
    group["app"] = {"kind": "bulk", "bytes": arrivals.PACKETS * PAYLOAD_BYTES}
    group["sender"] |= {"initial_window_segments": 1, "max_window_segments": 1}
    scenario["duration_ns"] = 600 * 10**9
    return scenario


CLOCKED = "clocked by ACKs"
SIMULATED = [
    *(LimitedPolicy(DYNAMIC, limits) for limits in HOSTS),
    LimitedPolicy(PER_ACK, LIMITED),
    LimitedPolicy(GREEDY, LIMITED),
    LimitedPolicy(STOCK, LIMITED),
    LimitedPolicy(LINUX, LIMITED),
]


def simulated_costs(runner: Runner, rtt: str, size: Size) -> dict[str, CostCurves]:
    """Cost curves by kind of arrivals and policy, over the path with this RTT."""
    link = plans.load_link(LINKS[rtt])
    plan: list[tuple[str, LimitedPolicy, int, int]] = []  # one for each batch of so many runs
    scenarios = []
    for kind in (*KINDS, CLOCKED):
        published_kind = kind == "uniform"
        if kind == CLOCKED:
            cases = [
                LimitedPolicy(DYNAMIC, LIMITED),
                LimitedPolicy(PER_ACK, LIMITED),
                LimitedPolicy(GREEDY, LIMITED),
            ]
        else:
            cases = SIMULATED if published_kind else [LimitedPolicy(DYNAMIC, LIMITED)]
        for case in cases:
            per_ack = published_kind and case.policy == PER_ACK
            runs = size.simulated_runs_per_ack if per_ack else size.simulated_runs
            # A policy that does not know the price does the same at every ratio.
            for rho in size.ratios[:1] if case.policy in PLAIN else size.ratios:
                plan.append((kind, case, rho, runs))
                chosen = choice(case, rho)
                for run in range(runs):
                    if kind == CLOCKED:
                        scenarios.append(clocked(link, chosen, run))
                        continue
                    times = KINDS[kind](random_of(kind, run), price_ns(rho))
                    scenarios.append(replayed(link, chosen, times, run))
    label = f"arrivals that react to ACKs, RTT {rtt}"
    results = iter(runner.simulate(label, scenarios, connection))
    found: dict[str, CostCurves] = {}
    for kind, case, rho, runs in plan:
        batch = [next(results) for _ in range(runs)]
        curve = found.setdefault(kind, {}).setdefault(case, {})
        for at in size.ratios if case.policy in PLAIN else (rho,):
            curve[at] = cost_point([[judged(one, at)] for one in batch])
    return found


# tcp_rmem of the paper's Linux (2.4, 2.6) let a receive buffer grow to 174 760 bytes.
WINDOWS = {"paper": 174_760, "today": 6 << 20}
STREAMING = {LINUX: "linux", STOCK: "delayed", DYNAMIC: "dynamic", GREEDY: "greedy"}
Rates = dict[str, dict[int, list[float]]]  # by policy and bytes, bit/s of each run


def requested(
    link: plans.Link, spec: str, window_bytes: int, wanted: int, seed: int
) -> dict[str, Any]:
    """One request and one response of `wanted` bytes on a new connection."""
    chosen = policy.parse(spec, "reproduce dynamic")
    scenario = documents.scenario_of(link, plans.load_workload("request-response"), chosen, seed)
    group = scenario["groups"][0]
    group["receiver"] = {**group.get("receiver", {}), "recv_buffer_max_bytes": window_bytes}
    group["app"] = {
        "kind": "request-response",
        "request_bytes": REQUEST_BYTES,
        "response_bytes": wanted,
        "count": 1,
    }
    scenario["duration_ns"] = 600 * 10**9
    return scenario


def duration_ns(result: dict[str, Any]) -> float:
    """Until the response's last byte has arrived."""
    (group,) = result["groups"]
    if group["message_latency_ns"]["samples"] != 1:
        raise RunError("dynamic: a request got no response")
    return float(group["message_latency_ns"]["max"])


def streaming(runner: Runner, rtt: str, window: str, size: Size) -> Rates:
    """Throughput of one request and one response on a new connection, until the last byte arrives.
    `window` names the largest receive buffer."""
    link = plans.load_link(LINKS[rtt])
    keys = list(product(STREAMING, size.request_bytes, range(size.request_runs)))
    scenarios = [
        requested(link, STREAMING[label], WINDOWS[window], wanted, run)
        for label, wanted, run in keys
    ]
    label = f"request and response, RTT {rtt}, window: {window}"
    return rates_of(keys, runner.simulate(label, scenarios, duration_ns))


def rates_of(keys: Sequence[tuple[str, int, int]], times: Sequence[float]) -> Rates:
    """Rates by policy and bytes, from the duration of each run."""
    found: Rates = {}
    for (label, wanted, _), ns in zip(keys, times, strict=True):
        found.setdefault(label, {}).setdefault(wanted, []).append(8e9 * wanted / ns)
    return found


def gains_percent(rates: Rates, stock: str) -> dict[int, Estimate]:
    """Dynamic's gain in throughput over a stock receiver, by bytes requested."""
    gains = {}
    for wanted, ours in rates[DYNAMIC].items():
        found = paired_percent(ours, rates[stock][wanted])
        if found is not None:
            gains[wanted] = found
    return gains
