# SPDX-License-Identifier: MIT
"""The paper's uplink with a faster and faster downlink: from which asymmetry on ACKs do harm."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from ackwise.plans import Plan
from ackwise.results.stats import Estimate, mean_of
from ackwise_experiments.changes import Scenario
from ackwise_experiments.check import (
    Basis,
    Check,
    Kind,
    Origin,
    at_least,
    at_most,
    grouped,
    same,
)
from ackwise_experiments.figure import Figure, Panel, Series
from ackwise_experiments.runner import Runner
from ackwise_experiments.separation import paper
from ackwise_experiments.separation.cases import (
    ACK_BYTES,
    DATA_BYTES,
    EVERY,
    FIFO_LINK,
    PAYLOAD_BYTES,
    WINDOW_PACKETS,
    Result,
    change_senders,
    goodput_kbps,
    scenario,
)
from ackwise_experiments.separation.paper import BOTH, DOWN, UP

RATIOS = (1.0, 2.0, 2.625, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0)
SWEEP_RUNS = 5
SWEEP_DURATION_NS = 200_000_000_000
FILTER_SHARE_PPM = 150_000


def asymmetry(down_bps: float, up_bps: float) -> float:
    """Normalized asymmetry k (RFC 3449, 2.1), with an ACK for each data packet: the part of the
    uplink that the ACKs of a full downlink ask for."""
    return down_bps / up_bps / (DATA_BYTES / ACK_BYTES)


DISCIPLINES = (
    ("FIFO", "fifo", 500_000),
    ("ACK separation", "ack-separation", 500_000),
    ("ACK separation, 15% share, ACK filtering", "ack-separation-filter", FILTER_SHARE_PPM),
)


def at_ratio(base: Scenario, ratio: float) -> Scenario:
    """`base` with a downlink of `ratio` times the uplink's rate. The download's window, the
    provider's queue and the jitter keep their length in time, so that nothing else changes."""
    one = copy.deepcopy(base)
    one["duration_ns"] = SWEEP_DURATION_NS
    factor = ratio * one["up"]["rate_bps"] / one["down"]["rate_bps"]
    down = one["down"]
    down["rate_bps"] = round(down["rate_bps"] * factor)
    down["queue_packets"] = round(down["queue_packets"] * factor)
    down["jitter_ns"] = round(down["jitter_ns"] / factor)
    one["access"]["rate_bps"] = max(one["access"]["rate_bps"], 5 * down["rate_bps"])
    for flow in one["groups"]:
        if flow["name"] == DOWN:
            window = round(WINDOW_PACKETS * factor)
            flow["sender"]["max_window_segments"] = window
            flow["sender"]["send_buffer_bytes"] = max(2 * window * PAYLOAD_BYTES, 4 << 20)
            receiver = flow.setdefault("receiver", {})
            receiver["recv_buffer_max_bytes"] = max(2 * window * PAYLOAD_BYTES, 6 << 20)
    return one


@dataclass(frozen=True)
class SweepPoint:
    """One ratio of the sweep; shares in % of solo throughput, by discipline."""

    ratio: float
    k: float
    solo_ack_percent: float  # of the uplink, download alone
    solo_acks_lost: int
    up: dict[str, Estimate]
    down: dict[str, Estimate]
    ack_percent: dict[str, float]


def sweep(
    runner: Runner,
    plan: Plan,
    ratios: Sequence[float] = RATIOS,
    seeds: Sequence[int] | None = None,
    policy_text: str = EVERY,
    sender: Mapping[str, Any] | None = None,
) -> list[SweepPoint]:
    """Throughput alone and together at each ratio, for each discipline of the uplink. `sender`:
    what differs from the plan in the senders. `SweepPoint.k` assumes an ACK for each packet,
    whatever the policy."""
    link = next(link for link in plan.links if link.name == FIFO_LINK)
    (workload,) = plan.workloads
    seeds = plan.seeds[:SWEEP_RUNS] if seeds is None else seeds
    made: list[Scenario] = []
    for ratio, seed in product(ratios, seeds):
        made += [at_ratio(scenario(link, workload, policy_text, (n,), seed), ratio) for n in BOTH]
        for _, discipline, share_ppm in DISCIPLINES:
            one = at_ratio(scenario(link, workload, policy_text, BOTH, seed), ratio)
            one["up"] |= {"discipline": discipline, "ack_share_ppm": share_ppm}
            made.append(one)
    for one in made:
        change_senders(**(sender or {}))(one)
    results = iter(runner.simulate(f"sweep over asymmetry, {policy_text}", made))
    up_bps = link.scenario.up.rate_bps

    def ack_percent(result: Result) -> float:
        return float(result["up"]["ack_bytes"] * 8e11 / result["duration_ns"] / up_bps)

    points = []
    for ratio in ratios:
        up: dict[str, list[float]] = {name: [] for name, _, _ in DISCIPLINES}
        down: dict[str, list[float]] = {name: [] for name, _, _ in DISCIPLINES}
        acks: dict[str, list[float]] = {name: [] for name, _, _ in DISCIPLINES}
        alone: list[Result] = []
        for _ in seeds:
            solo = {n: next(results) for n in BOTH}
            alone.append(solo[DOWN])
            for name, _, _ in DISCIPLINES:
                result = next(results)
                for n, shares in ((UP, up), (DOWN, down)):
                    base = goodput_kbps(solo[n], n)
                    shares[name].append(100 * goodput_kbps(result, n) / base)
                acks[name].append(ack_percent(result))
        points.append(
            SweepPoint(
                ratio,
                asymmetry(ratio, 1),
                sum(map(ack_percent, alone)) / len(alone),
                sum(r["up"]["acks_dropped_queue"] for r in alone),
                {name: mean_of(values) for name, values in up.items()},
                {name: mean_of(values) for name, values in down.items()},
                {name: sum(values) / len(values) for name, values in acks.items()},
            )
        )
    return points


def sweep_checks(points: Sequence[SweepPoint]) -> Iterator[Check]:
    """Theory first; then what a gateway is to reach on very asymmetric links."""
    (_, apart, filtered) = (name for name, _, _ in DISCIPLINES)
    demand = [abs(p.solo_ack_percent - 100 * min(1.0, p.k)) for p in points]
    left = [abs(p.up[apart].mean - 100 * (1 - min(p.k, 0.5))) for p in points]
    calm = [p for p in points if p.k <= 0.5]
    crowded = [p.ratio for p in points if p.k > 1]
    lost = [p.ratio for p in points if p.solo_acks_lost]
    theory = [
        at_most(
            "ACKs' share of the uplink, download alone: largest distance from min(1, k)",
            paper.SWEEP_PERCENT, max(demand), basis=paper.ARITHMETIC, unit="points",
            source="RFC 3449, 2.1",
        ),
        same(
            "lowest ratio at which ACKs alone exceed the uplink",
            f"{min(crowded):g}:1", f"{min(lost):g}:1" if lost else None,
            basis=Basis(Kind.IDENTITY, Origin.PUBLISHED), published="k > 1", source="RFC 3449, 2.1",
        ),
        at_most(
            "upload with ACK separation: largest distance from 1 - min(k, 50%) of solo throughput",
            paper.SWEEP_PERCENT, max(left), basis=paper.ARITHMETIC, unit="points",
        ),
        at_least(
            "download with ACK separation where k is at most 0.5: lowest share",
            paper.APART_LEAST, min(p.down[apart].mean for p in calm), basis=paper.ASKED, unit="%",
            source="section 4.1",
        ),
    ]  # fmt: skip
    yield from grouped("sweep: theory", theory)
    extreme = []
    for p in points:
        if p.ratio in (50, 100):
            extreme += [
                at_least(
                    f"{p.ratio:g}:1, separation and ACK filtering: upload's share",
                    paper.FILTER_UPLOAD_LEAST, p.up[filtered].mean,
                    basis=paper.CEILING, unit="%", source="spec page 3",
                ),
                at_least(
                    f"{p.ratio:g}:1, separation and ACK filtering: download's share",
                    paper.FILTER_DOWNLOAD_LEAST, p.down[filtered].mean, basis=paper.ASKED,
                    unit="%", source="spec page 3",
                ),
            ]  # fmt: skip
    yield from grouped("sweep: very asymmetric links", extreme)


def sweep_figure(points: Sequence[SweepPoint]) -> Figure:
    """Shares over the ratio, and what ACKs take over k."""
    ratios = [p.ratio for p in points]
    ks = [p.k for p in points]

    def panel(name: str, of: Callable[[SweepPoint], dict[str, Estimate]]) -> Panel:
        lines = [
            Series(
                label,
                ratios,
                [of(p)[label].mean for p in points],
                spread=[of(p)[label].ci95 or 0 for p in points],
            )
            for label, _, _ in DISCIPLINES
        ]
        return Panel(
            "ratio of downlink to uplink rate",
            f"{name}, % of solo throughput",
            lines,
            name,
            log_x=True,
        )

    demand = [
        Series("min(1, k)", ks, [100 * min(1.0, k) for k in ks], published=True),
        Series("download alone", ks, [p.solo_ack_percent for p in points], "points"),
        *(
            Series(f"both, {label}", ks, [p.ack_percent[label] for p in points])
            for label, _, _ in DISCIPLINES
        ),
    ]
    return Figure(
        "separation-sweep",
        "Uplink 800 kbit/s, downlink 1 to 200 times as fast, an ACK for each packet",
        [
            panel(UP, lambda p: p.up),
            panel(DOWN, lambda p: p.down),
            Panel(
                "normalized asymmetry k",
                "% of the uplink taken by ACKs",
                demand,
                "ACKs",
                log_x=True,
            ),
        ],
    )


def begins(points: Sequence[SweepPoint]) -> str:
    """Where the FIFO starts to cost the upload a tenth, in words."""
    name = DISCIPLINES[0][0]
    harmed = [p for p in points if p.up[name].mean < 90]
    if not harmed:
        return "On one queue the upload keeps 90% of its solo throughput at every ratio."
    first = harmed[0]
    return (
        f"On one queue the upload falls below 90% of its solo throughput from {first.ratio:g}:1 on "
        f"(k = {first.k:.2f}), the first such ratio among those tested."
    )
