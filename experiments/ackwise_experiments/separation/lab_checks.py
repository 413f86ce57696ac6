# SPDX-License-Identifier: MIT
"""Checks of the gateway in the lab."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from ackwise.gateway import model
from ackwise.results.stats import mean_of
from ackwise_experiments.check import Check, at_least, at_most, grouped
from ackwise_experiments.separation import model as deviation
from ackwise_experiments.separation import paper
from ackwise_experiments.separation.access import (
    ADSL,
    APART,
    CELLS,
    HEAD_DROP,
    HOME,
    THINNED,
    model_link,
    narrow,
)
from ackwise_experiments.separation.lab_runs import (
    COMPARED_SEEDS,
    EXTREME,
    FLOOD,
    HOME_SEEDS,
    MODELLED,
    PAPER_HOSTS,
    SATELLITE,
    SIDE,
    TODAY,
    GatewayRuns,
    SettledRun,
)
from ackwise_experiments.separation.paper import BOTH, DOWN, FIFO, UP

FLOOD_PERCENT = 97.0  # of the data class's guarantee: its pings and bursts take the rest


SEPARATED = {"ACK separation as in the paper": (APART,), "the gateway's plan": (THINNED,)}
# Today's hosts send so few ACKs that the plan has none to thin: the worse of both counts.
BOTH_WAYS = {" and ".join(SEPARATED): (APART, THINNED)}


def case_checks(found: GatewayRuns) -> Iterator[Check]:
    """The paper's four cases, and what a gateway is held to in every run."""
    for line, named in ((HOME, ""), (ADSL, f", {CELLS}")):
        checks = paper.throughput_checks(
            partial(found.solo, line, PAPER_HOSTS), found.together(line, PAPER_HOSTS, FIFO, UP),
            named, line=paper.OURS if line is HOME else paper.FITTED,
        )  # fmt: skip
        yield from grouped(f"throughput, {PAPER_HOSTS.name}{named}", checks)
    for line, hosts, named, group in (
        (HOME, PAPER_HOSTS, "", PAPER_HOSTS.name),
        (ADSL, PAPER_HOSTS, f", {CELLS}", f"{PAPER_HOSTS.name}, {CELLS}"),
        (HOME, TODAY, f", {TODAY.name}", TODAY.name),
    ):
        shares = partial(found.shares, line, hosts)
        apart = SEPARATED if hosts is PAPER_HOSTS else BOTH_WAYS
        checks = paper.share_checks(
            shares, apart, named, as_published=hosts is PAPER_HOSTS, each_run=True
        )
        yield from grouped(f"% of solo throughput in {HOME_SEEDS} runs, {group}", checks)


def extreme_checks(found: GatewayRuns) -> Iterator[Check]:
    """Where ACKs alone exceed the uplink. Ratio and leaf make no difference: the worst counts."""
    checks = []
    for lines, words in (
        ([narrow(r) for r in EXTREME], " and ".join(f"{r:g}:1" for r in EXTREME)),
        ([SATELLITE], "50:1 by satellite"),
    ):
        for flow, bound, basis in (
            (UP, paper.FILTER_UPLOAD_LEAST, paper.CEILING),
            (DOWN, paper.FILTER_DOWNLOAD_LEAST, paper.ASKED),
        ):
            share = min(
                share
                for line, queue in product(lines, (THINNED, HEAD_DROP))
                for share in found.shares(line, TODAY, queue, flow)
            )
            name = f"{words}, CAKE or head-drop leaf: {flow}'s share, lowest"
            checks.append(at_least(name, bound, share, basis=basis, unit="%"))
    yield from grouped(f"very asymmetric lines in {COMPARED_SEEDS} runs, today's hosts", checks)
    line = narrow(100.0)
    up_wire_bps = min(run.up_wire_bps for run in found.of(line, FLOOD, APART))
    link = model_link(line, 1)
    advice = model.advise(link, may_thin=False)
    guarantee_bps = (link.up_bps - advice.ack_guarantee_bps) * link.payload_share
    yield from grouped(
        f"ACK flood at 4.4 times the uplink rate, {COMPARED_SEEDS} runs",
        [
            at_least(
                "upload's segments relative to the data class's guarantee, lowest", FLOOD_PERCENT,
                100 * up_wire_bps / guarantee_bps, basis=paper.OURS, unit="%",
                source="spec page 3",
            )
        ],
    )  # fmt: skip


def latency_checks(found: GatewayRuns) -> Iterator[Check]:
    """In a separate queue an ACK waits for the packet that is being sent and for little else."""
    packet_ns = HOME.wire_time_ns(HOME.up_bps)
    # the line's own delay, its jitter of a packet, the packet being sent, and one more
    most_ms = (HOME.delay_ns + 3 * packet_ns) / 1e6
    checks = [
        at_most(
            f"{queue}: p99 ACK delay, {hosts.name}", round(most_ms, 1),
            p99_ms(found.of(HOME, hosts, queue), "ack"), basis=paper.OURS, unit="ms",
        )
        for hosts in (PAPER_HOSTS, TODAY)
        for queue in (APART, THINNED)
    ]  # fmt: skip
    yield from grouped("delay of the download's ACKs through the loaded uplink", checks)


def p99_ms(runs: Sequence[SettledRun], what: str) -> float:
    """The highest p99 of the runs, ms."""
    figures = [r.path["delay_ns"] if what == "ack" else r.ping["rtt_ns"] for r in runs]
    return max(float(f["p99"]) for f in figures) / 1e6


@dataclass(frozen=True)
class ModelComparison:
    """Model and gateway at one ratio: % of solo throughput, by queue and flow."""

    ratio: float
    predicted: dict[tuple[str, str], float]
    measured: dict[tuple[str, str], float]


def deviations(found: GatewayRuns) -> list[ModelComparison]:
    """Model and gateway, with as many ACKs as the hosts send when alone."""
    made = []
    for line in MODELLED:
        link = model_link(line, 2)
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
            for flow, side in SIDE.items()
        }
        measured = {
            (queue, flow): mean_of(found.shares(line, TODAY, queue, flow)).mean
            for queue, flow in product(speeds, BOTH)
        }
        made.append(ModelComparison(line.down_bps / line.up_bps, predicted, measured))
    return made


def model_checks(found: GatewayRuns) -> Iterator[Check]:
    """The model's largest errors; tolerances as against the simulator."""
    points = deviations(found)
    checks = []
    for queue, flow in product((FIFO, APART, THINNED), BOTH):
        worst = max(points, key=lambda p: abs(p.predicted[queue, flow] - p.measured[queue, flow]))
        bound = deviation.FIFO_POINTS if queue == FIFO else deviation.APART_POINTS
        off = abs(worst.predicted[queue, flow] - worst.measured[queue, flow])
        words = f"model, {queue}, {flow}: largest error"
        checks.append(at_most(words, bound, off, basis=deviation.MODEL, unit="points"))
    yield from grouped("model against gateway, 1:1 to 100:1, today's hosts", checks)
