# SPDX-License-Identifier: MIT
"""The paper's four cases in the simulator: each transfer alone, both on one queue, both with ACK
separation."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from ackwise.gateway.linklayer import LAYERS, LinkLayer
from ackwise.plans import Link, Plan, Workload, policy
from ackwise.results.stats import Estimate, mean_of
from ackwise_experiments import documents
from ackwise_experiments.changes import Scenario
from ackwise_experiments.check import Check, between, grouped, within
from ackwise_experiments.figure import Figure, Panel, Series
from ackwise_experiments.runner import Runner
from ackwise_experiments.separation import paper
from ackwise_experiments.separation.paper import BOTH, DOWN, UP, paper_figure

Result = dict[str, Any]

EVERY = "every"  # the paper: one ACK for each data packet
SECOND = "delayed"  # RFC 1122, 4.2.3.2: one for every second
FIFO_LINK, SEPARATED_LINK = "gateway-fifo", "gateway-separated"

MTU_BYTES = 1500
DATA_BYTES, ACK_BYTES, PAYLOAD_BYTES = 1514, 66, 1448  # on the wire; the last without headers
WINDOW_PACKETS, QUEUE_PACKETS = 88, 100

SETTLED_NS = 60_000_000_000  # left out: the start of transfers that last half an hour
BIN_NS = 10_000_000_000
SERIES_NS = 100_000_000  # of each first run
QUEUE_SHOWN_NS = (300_000_000_000, 360_000_000_000)


@dataclass(frozen=True)
class PublishedCase:
    """One of the paper's four."""

    name: str
    link: str
    flows: tuple[str, ...]


SOLO_UP = PublishedCase("upload alone", FIFO_LINK, (UP,))
SOLO_DOWN = PublishedCase("download alone", FIFO_LINK, (DOWN,))
ONE_QUEUE = PublishedCase("both, FIFO", FIFO_LINK, BOTH)
TWO_QUEUES = PublishedCase("both, ACK separation", SEPARATED_LINK, BOTH)
CASES = (SOLO_UP, SOLO_DOWN, ONE_QUEUE, TWO_QUEUES)
SOLO = {UP: SOLO_UP, DOWN: SOLO_DOWN}


def scenario(
    link: Link, workload: Workload, policy_text: str, flows: Sequence[str], seed: int
) -> Scenario:
    """What the engine runs: `workload` on `link` with only `flows` of its groups."""
    chosen = policy.parse(policy_text, "separation")
    made = documents.scenario_of(link, workload, chosen, seed, series_interval_ns=BIN_NS)
    made["groups"] = [g for g in made["groups"] if g["name"] in flows]
    return made


def group(result: Result, name: str) -> dict[str, Any]:
    """A group of flows of a result."""
    found: dict[str, Any] = next(g for g in result["groups"] if g["name"] == name)
    return found


def goodput_kbps(result: Result, name: str) -> float:
    """Goodput of the one flow of a group from SETTLED_NS on."""
    series = group(result, name)["flows"][0]["series"]
    # A sample holds what arrived since the previous one.
    settled = [
        count
        for at, count in zip(series["time_ns"], series["delivered_bytes"], strict=True)
        if at > SETTLED_NS
    ]
    return float(sum(settled) * 8e6 / (series["time_ns"][-1] - SETTLED_NS))


def speed(results: Sequence[Result], name: str) -> Estimate:
    """Goodput in kbit/s, mean and interval over the runs."""
    return mean_of([goodput_kbps(r, name) for r in results])


ADSL_LAYER = LAYERS["atm-bridged"]  # any of the framings of AAL5 fills as many cells


def change_senders(**values: Any) -> Callable[[Scenario], None]:
    """A change of every sender's keys."""

    def change(one: Scenario) -> None:
        for flow in one["groups"]:
            flow["sender"].update(values)

    return change


def set_link_layer(one: Scenario, layer: LinkLayer) -> None:
    """Every packet of a scenario gets this layer's overhead."""
    one |= {"link_overhead_bytes": layer.overhead_bytes, "link_cells": layer.cells}


@dataclass(frozen=True)
class FourCases:
    """The runs of every case, under one receiver policy."""

    up_bps: int
    runs: dict[PublishedCase, list[Result]]

    def speed(self, case: PublishedCase, name: str) -> Estimate:
        """Goodput in kbit/s."""
        return speed(self.runs[case], name)

    def share(self, case: PublishedCase, name: str) -> Estimate:
        """Goodput in % of mean solo throughput."""
        alone = self.speed(SOLO[name], name).mean
        return mean_of([100 * goodput_kbps(r, name) / alone for r in self.runs[case]])

    def ack_percent(self, case: PublishedCase) -> float:
        """ACKs' share of the uplink's rate, percent."""
        carried = sum(r["up"]["ack_bytes"] * 8e9 / r["duration_ns"] for r in self.runs[case])
        return float(100 * carried / len(self.runs[case]) / self.up_bps)


def four_cases(runner: Runner, plan: Plan, policy_text: str) -> FourCases:
    """Runs them; the first run of each case keeps its series."""
    links = {link.name: link for link in plan.links}
    (workload,) = plan.workloads
    made = []
    for case, seed in product(CASES, plan.seeds):
        one = scenario(links[case.link], workload, policy_text, case.flows, seed)
        if seed == plan.seed:
            one["series_interval_ns"] = SERIES_NS
        made.append(one)
    results = runner.simulate(f"four cases, {policy_text}", made)
    found = {case: results[i * plan.runs : (i + 1) * plan.runs] for i, case in enumerate(CASES)}
    return FourCases(links[FIFO_LINK].scenario.up.rate_bps, found)


def case_checks(every: FourCases, second: FourCases) -> Iterator[Check]:
    """Published speeds, and the same in % of solo throughput."""
    case_of = {paper.FIFO: ONE_QUEUE, "ACK separation": TWO_QUEUES}
    separated = {"ACK separation": ("ACK separation",)}

    def shares(runs: FourCases) -> Callable[[str, str], list[float]]:
        def ends(queue: str, flow: str) -> list[float]:
            share = runs.share(case_of[queue], flow)
            return [share.low, share.high]

        return ends

    yield from grouped(
        "throughput, an ACK for each packet",
        paper.throughput_checks(
            lambda flow: every.speed(SOLO[flow], flow).mean, every.speed(ONE_QUEUE, UP).mean
        ),
    )
    yield from grouped(
        "% of solo throughput, an ACK for each packet",
        paper.share_checks(shares(every), separated, as_published=True, each_run=False),
    )
    left_kbps = (every.up_bps / 1e3) * (1 - every.ack_percent(TWO_QUEUES) / 100)
    yield from grouped(
        "uplink capacity taken by ACKs",
        [
            within(
                "ACKs' share of the uplink", paper_figure("uplink share used by ACKs"),
                every.ack_percent(TWO_QUEUES), percent=paper.SOLO_PERCENT,
                basis=paper.ARITHMETIC, unit="%", source="section 4.1",
            ),
            between(
                "upload with ACK separation / payload that the ACKs leave room for", 0.95, 1.05,
                every.speed(TWO_QUEUES, UP).mean / (left_kbps * PAYLOAD_BYTES / DATA_BYTES),
                basis=paper.ARITHMETIC,
            ),
            within(
                "ACKs in a full FIFO of 100", WINDOW_PACKETS,
                acks_when_full(every.runs[ONE_QUEUE][0]),
                percent=paper.FIFO_UPLOAD_PERCENT, basis=paper.OURS, unit="packets",
                source="section 3.2",
            ),
        ],
    )  # fmt: skip
    yield from grouped(
        "% of solo throughput, an ACK for every second packet",
        paper.share_checks(
            shares(second), separated, ", delayed ACKs", as_published=False, each_run=False
        ),
    )


def acks_when_full(result: Result) -> float | None:
    """Mean number of waiting ACKs while at most two places of the uplink's queue are free, from
    SETTLED_NS on."""
    series = result["up"]["series"]
    full = [
        acks
        for at, acks, data in zip(series["time_ns"], series["acks"], series["data"], strict=True)
        if at > SETTLED_NS and acks + data >= QUEUE_PACKETS - 2
    ]
    return sum(full) / len(full) if full else None


def cases_figure(every: FourCases, second: FourCases) -> Figure:
    """Figures 3 and 8 of the paper in one."""
    known = {
        UP: {
            SOLO_UP: "upload alone",
            ONE_QUEUE: "upload with download; FIFO queue of 100",
            TWO_QUEUES: "upload with download; ACK separation",
        },
        DOWN: {
            SOLO_DOWN: "download alone",
            ONE_QUEUE: "download alone",  # "download speed is not affected"
            TWO_QUEUES: "download with upload; ACK separation",
        },
    }

    def panel(name: str) -> Panel:
        cases = list(known[name])
        words = [case.name for case in cases]

        def ours(label: str, of: FourCases) -> Series:
            found = [of.speed(case, name) for case in cases]
            return Series(
                label, words, [e.mean for e in found], "bars", spread=[e.ci95 or 0 for e in found]
            )

        values = [paper_figure(quantity) for quantity in known[name].values()]
        return Panel(
            "",
            f"{name}, kbit/s",
            [
                Series("published", words, values, "bars", published=True),
                ours("simulated, an ACK for each packet", every),
                ours("simulated, an ACK for every second packet", second),
            ],
            title=name,
        )

    return Figure(
        "separation-cases",
        "Throughput alone and together, with one uplink queue and with two",
        [panel(UP), panel(DOWN)],
        source="figures 3 and 8",
        columns=2,
    )


def over_time_figure(every: FourCases) -> Figure:
    """Goodput of the first run, in bins of 10 s."""

    def line(case: PublishedCase, name: str) -> Series:
        beside = "with the other" if len(case.flows) > 1 else "alone"
        series = group(every.runs[case][0], name)["flows"][0]["series"]
        bins: dict[int, int] = {}
        for at, count in zip(series["time_ns"], series["delivered_bytes"], strict=True):
            place = max(at - 1, 0) // BIN_NS
            bins[place] = bins.get(place, 0) + count
        return Series(
            f"{name} {beside}",
            [place * BIN_NS / 1e9 for place in bins],
            [count * 8e6 / BIN_NS for count in bins.values()],
            "steps",
        )

    def panel(case: PublishedCase) -> Panel:
        lines = [line(case, name) for name in BOTH]
        solo = [line(SOLO_UP, UP), line(SOLO_DOWN, DOWN)]
        return Panel("time, s", "kbit/s", [*lines, *solo], title=case.name)

    return Figure(
        "separation-time",
        "Goodput over time, means over 10 s, first run",
        [panel(ONE_QUEUE), panel(TWO_QUEUES)],
        source="figures 3 and 8 give the means",
    )


def queue_figure(every: FourCases) -> Figure:
    """Packets waiting for the uplink, in one minute of the first run."""

    def panel(case: PublishedCase) -> Panel:
        series = every.runs[case][0]["up"]["series"]
        first, last = QUEUE_SHOWN_NS
        shown = [i for i, at in enumerate(series["time_ns"]) if first <= at <= last]
        times = [series["time_ns"][i] / 1e9 for i in shown]
        lines = [
            Series(label, times, [series[key][i] for i in shown], "steps")
            for label, key in (("ACKs", "acks"), ("data packets", "data"))
        ]
        level = [("88 ACKs, as in the paper", float(WINDOW_PACKETS))]
        return Panel(
            "time, s",
            "packets waiting",
            lines,
            title=case.name,
            lines=level if case is ONE_QUEUE else [],
        )

    return Figure(
        "separation-queue",
        "The uplink's queue",
        [panel(ONE_QUEUE), panel(TWO_QUEUES)],
        source="figure 4",
    )
