# SPDX-License-Identifier: MIT
"""Spec page 3: what ACKs of a download do to an upload on a slow uplink, and a queue of their own.

The four cases of the source, what its open choices move, and a sweep over the link's asymmetry.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from ackwise import plans
from ackwise.gateway.linklayer import LAYERS, LinkLayer, line_bps
from ackwise.plans import Link, Plan, Workload, policy
from ackwise.reproduce.check import Check, at_least, at_most, grouped, same, within
from ackwise.reproduce.experiment import Experiment, Outcome
from ackwise.reproduce.figure import Figure, Grid, Panel, Series
from ackwise.reproduce.reference import published
from ackwise.reproduce.runner import Runner
from ackwise.results.stats import Estimate, estimate

Scenario = dict[str, Any]
Result = dict[str, Any]

UP, DOWN = "upload", "download"
BOTH = (UP, DOWN)
EVERY = "every"  # the source: one ACK for each data packet
SECOND = "delayed"  # RFC 1122, 4.2.3.2: one for every second
FIFO, APART = "gateway-fifo", "gateway-separated"

# Tolerances, set before measuring. The bounds on shares are those a gateway is held to.
LONE_PERCENT = 5.0
FIFO_UPLOAD_PERCENT = 25.0
FIFO_DOWNLOAD_PERCENT = 10.0
APART_PERCENT = 7.0
FIFO_UPLOAD_MOST = 45.0
FIFO_DOWNLOAD_LEAST = 90.0
APART_LEAST = 93.0
SWEEP_PERCENT = 5.0
FILTER_UPLOAD_LEAST = 80.0
FILTER_DOWNLOAD_LEAST = 90.0

MTU_BYTES = 1500
DATA_BYTES, ACK_BYTES, PAYLOAD_BYTES = 1514, 66, 1448  # on the wire of the links, and of it data
WINDOW_PACKETS, QUEUE_PACKETS = 88, 100

SETTLED_NS = 60_000_000_000  # what comes before is the start of transfers that last half an hour
BIN_NS = 10_000_000_000
SERIES_NS = 100_000_000  # of each first run
QUEUE_SHOWN_NS = (300_000_000_000, 360_000_000_000)

OPEN_RUNS = 5

# Asymmetry of the sweep, down to up: the source's uplink, a faster and faster downlink.
RATIOS = (1.0, 2.0, 2.625, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0)
SWEEP_RUNS = 5
SWEEP_DURATION_NS = 200_000_000_000
FILTER_SHARE_PPM = 150_000


@dataclass(frozen=True)
class Case:
    """One of the source's four."""

    name: str
    link: str
    flows: tuple[str, ...]


LONE_UP = Case("upload alone", FIFO, (UP,))
LONE_DOWN = Case("download alone", FIFO, (DOWN,))
ONE_QUEUE = Case("both, FIFO", FIFO, BOTH)
TWO_QUEUES = Case("both, ACK separation", APART, BOTH)
CASES = (LONE_UP, LONE_DOWN, ONE_QUEUE, TWO_QUEUES)


def scenario(
    link: Link, workload: Workload, policy_text: str, flows: Sequence[str], seed: int
) -> Scenario:
    """What the engine runs: `workload` on `link` with only `flows` of its groups."""
    chosen = policy.parse(policy_text, "separation")
    made = plans.scenario_of(link, workload, chosen, seed, series_interval_ns=BIN_NS)
    made["groups"] = [g for g in made["groups"] if g["name"] in flows]
    return made


def group(result: Result, name: str) -> dict[str, Any]:
    """A group of flows of a result."""
    found: dict[str, Any] = next(g for g in result["groups"] if g["name"] == name)
    return found


def goodput_kbps(result: Result, name: str) -> float:
    """Goodput of the one flow of a group from SETTLED_NS on."""
    series = group(result, name)["flows"][0]["series"]
    # A sample holds what came since the one before it.
    settled = [
        count
        for at, count in zip(series["time_ns"], series["delivered_bytes"], strict=True)
        if at > SETTLED_NS
    ]
    return float(sum(settled) * 8e6 / (series["time_ns"][-1] - SETTLED_NS))


def mean(values: Sequence[float]) -> Estimate:
    """Mean and interval of at least one value."""
    found = estimate(values)
    assert found is not None
    return found


def speed(results: Sequence[Result], name: str) -> Estimate:
    """Goodput in kbit/s, mean and interval over the runs."""
    return mean([goodput_kbps(r, name) for r in results])


def asymmetry(down_bps: float, up_bps: float) -> float:
    """Normalized asymmetry k (RFC 3449, 2.1), with an ACK for each data packet: the part of the
    uplink that the ACKs of a full downlink ask for."""
    return down_bps / up_bps / (DATA_BYTES / ACK_BYTES)


# --- the four cases ------------------------------------------------------------------------------


@dataclass(frozen=True)
class FourCases:
    """The runs of every case, under one receiver policy."""

    up_bps: int
    runs: dict[Case, list[Result]]

    def speed(self, case: Case, name: str) -> Estimate:
        """Goodput in kbit/s."""
        return speed(self.runs[case], name)

    def share(self, case: Case, name: str) -> float:
        """Goodput in percent of the speed alone."""
        alone = self.speed(LONE_UP if name == UP else LONE_DOWN, name).mean
        return 100 * self.speed(case, name).mean / alone

    def ack_percent(self, case: Case) -> float:
        """Part of the uplink's rate that ACKs take, percent."""
        carried = sum(r["up"]["ack_bytes"] * 8e9 / r["duration_ns"] for r in self.runs[case])
        return float(100 * carried / len(self.runs[case]) / self.up_bps)


def four_cases(runner: Runner, plan: Plan, policy_text: str) -> FourCases:
    """Runs them; each first run keeps its series."""
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
    return FourCases(links[FIFO].scenario["up"]["rate_bps"], found)


def source_figure(quantity: str) -> float:
    """What the source prints for it."""
    return published("separation", quantity).number


def case_checks(every: FourCases, second: FourCases) -> Iterator[Check]:
    """Published speeds, and the same as shares of the lone speeds."""
    lone_up, lone_down = source_figure("upload alone"), source_figure("download alone")
    unit, figure3, figure8 = "kbit/s", "figure 3", "figure 8"
    yield from grouped(
        "throughput, an ACK for each packet",
        [
            within(
                "upload alone", lone_up, every.speed(LONE_UP, UP).mean,
                percent=LONE_PERCENT, unit=unit, source=figure3,
            ),
            within(
                "download alone", lone_down, every.speed(LONE_DOWN, DOWN).mean,
                percent=LONE_PERCENT, unit=unit, source=figure3,
            ),
            within(
                "upload beside a download, FIFO",
                source_figure("upload with download; FIFO queue of 100"),
                every.speed(ONE_QUEUE, UP).mean,
                percent=FIFO_UPLOAD_PERCENT, unit=unit, source=figure3,
            ),
            within(
                "download beside an upload, FIFO", lone_down, every.speed(ONE_QUEUE, DOWN).mean,
                percent=FIFO_DOWNLOAD_PERCENT, unit=unit, source=figure3,
            ),
            within(
                "upload beside a download, ACK separation",
                source_figure("upload with download; ACK separation"),
                every.speed(TWO_QUEUES, UP).mean,
                percent=APART_PERCENT, unit=unit, source=figure8,
            ),
            within(
                "download beside an upload, ACK separation",
                source_figure("download with upload; ACK separation"),
                every.speed(TWO_QUEUES, DOWN).mean,
                percent=APART_PERCENT, unit=unit, source=figure8,
            ),
        ],
    )  # fmt: skip
    yield from grouped(
        "% of solo throughput, an ACK for each packet",
        [
            at_most(
                "upload's share, FIFO", FIFO_UPLOAD_MOST, every.share(ONE_QUEUE, UP),
                published=100 * source_figure("upload with download; FIFO queue of 100") / lone_up,
                unit="%", source=figure3,
            ),
            at_least(
                "download's share, FIFO", FIFO_DOWNLOAD_LEAST, every.share(ONE_QUEUE, DOWN),
                published=100, unit="%", source=figure3,
            ),
            at_least(
                "upload's share, ACK separation", APART_LEAST, every.share(TWO_QUEUES, UP),
                published=100, unit="%", source=figure8,
            ),
            at_least(
                "download's share, ACK separation", APART_LEAST, every.share(TWO_QUEUES, DOWN),
                published=100, unit="%", source=figure8,
            ),
        ],
    )  # fmt: skip
    left_kbps = (every.up_bps / 1e3) * (1 - every.ack_percent(TWO_QUEUES) / 100)
    yield from grouped(
        "uplink capacity taken by ACKs",
        [
            within(
                "ACKs' share of the uplink", source_figure("uplink share used by ACKs"),
                every.ack_percent(TWO_QUEUES), percent=LONE_PERCENT, unit="%", source="section 4.1",
            ),
            within(
                "upload with ACK separation: remaining uplink capacity, as payload",
                left_kbps * PAYLOAD_BYTES / DATA_BYTES, every.speed(TWO_QUEUES, UP).mean,
                percent=LONE_PERCENT, unit=unit, source="arithmetic",
            ),
            within(
                "ACKs in a full FIFO of 100", WINDOW_PACKETS,
                acks_when_full(every.runs[ONE_QUEUE][0]),
                percent=FIFO_UPLOAD_PERCENT, unit="packets", source="section 3.2",
            ),
        ],
    )  # fmt: skip
    yield from grouped(
        "% of solo throughput, an ACK for every second packet",
        [
            at_least(
                "upload's share, ACK separation, delayed ACKs", APART_LEAST,
                second.share(TWO_QUEUES, UP), published=100, unit="%", source=figure8,
            ),
            at_least(
                "download's share, ACK separation, delayed ACKs", APART_LEAST,
                second.share(TWO_QUEUES, DOWN), published=100, unit="%", source=figure8,
            ),
        ],
    )  # fmt: skip


def acks_when_full(result: Result) -> float | None:
    """Mean number of ACKs that wait while at most two places of the uplink's queue are free, from
    SETTLED_NS on."""
    series = result["up"]["series"]
    full = [
        acks
        for at, acks, data in zip(series["time_ns"], series["acks"], series["data"], strict=True)
        if at > SETTLED_NS and acks + data >= QUEUE_PACKETS - 2
    ]
    return sum(full) / len(full) if full else None


def cases_figure(every: FourCases, second: FourCases) -> Figure:
    """Figures 3 and 8 of the source in one."""
    known = {
        UP: {
            LONE_UP: "upload alone",
            ONE_QUEUE: "upload with download; FIFO queue of 100",
            TWO_QUEUES: "upload with download; ACK separation",
        },
        DOWN: {
            LONE_DOWN: "download alone",
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

        values = [source_figure(quantity) for quantity in known[name].values()]
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

    def line(case: Case, name: str) -> Series:
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

    def panel(case: Case) -> Panel:
        lines = [line(case, name) for name in BOTH]
        lone = [line(LONE_UP, UP), line(LONE_DOWN, DOWN)]
        return Panel("time, s", "kbit/s", [*lines, *lone], title=case.name)

    return Figure(
        "separation-time",
        "Goodput over time, means over 10 s, first run",
        [panel(ONE_QUEUE), panel(TWO_QUEUES)],
        source="figures 3 and 8 give the means",
    )


def queue_figure(every: FourCases) -> Figure:
    """What waits for the uplink, a minute of the first run."""

    def panel(case: Case) -> Panel:
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


# --- what the source leaves open -----------------------------------------------------------------


def _sender(**values: Any) -> Callable[[Scenario], None]:
    def change(one: Scenario) -> None:
        for flow in one["groups"]:
            flow["sender"].update(values)

    return change


def _pipes(key: str, value: Any, *sides: str) -> Callable[[Scenario], None]:
    def change(one: Scenario) -> None:
        for side in sides:
            one[side][key] = value

    return change


def _receivers(policy_text: str, *flows: str) -> Callable[[Scenario], None]:
    def change(one: Scenario) -> None:
        chosen = policy.parse(policy_text, "separation").for_engine()
        for flow in one["groups"]:
            if flow["name"] in flows:
                flow["policy"] = chosen

    return change


ADSL_LAYER = LAYERS["atm-bridged"]  # whichever of AAL5's framings it is


def put_in(layer: LinkLayer, one: Scenario) -> None:
    """Gives every packet of a scenario what that link layer puts around it."""
    one |= {"link_overhead_bytes": layer.overhead_bytes, "link_cells": layer.cells}


def _in_cells(one: Scenario) -> None:
    """The rates are what cells carry."""
    put_in(ADSL_LAYER, one)
    for side in ("up", "down"):
        one[side]["rate_bps"] = line_bps(one[side]["rate_bps"])


_MS = 1_000_000
VARIANTS: tuple[tuple[str, Callable[[Scenario], None]], ...] = (
    ("as in the experiment", lambda _one: None),
    ("delay 2 ms", _pipes("delay_ns", 2 * _MS, "up", "down")),
    ("delay 30 ms", _pipes("delay_ns", 30 * _MS, "up", "down")),
    ("delay 50 ms", _pipes("delay_ns", 50 * _MS, "up", "down")),
    ("no jitter", _pipes("jitter_ns", 0, "up", "down")),
    ("packets in ATM cells", _in_cells),
    ("provider's queue 100", _pipes("queue_packets", 100, "down")),
    ("uplink's queue 50", _pipes("queue_packets", 50, "up")),
    ("uplink's queue 150", _pipes("queue_packets", 150, "up")),
    ("loss recovery by timeout only", _sender(recovery="timeout")),
    ("loss recovery by SACK", _sender(recovery="sack")),
    ("CUBIC with SACK", _sender(recovery="sack", congestion_control="cubic")),
    ("minimum RTO 200 ms", _sender(min_rto_ns=200 * _MS)),
    ("initial window 10", _sender(initial_window_segments=10)),
    ("remote host uses delayed ACKs", _receivers(SECOND, UP)),
    ("both hosts use delayed ACKs", _receivers(SECOND, UP, DOWN)),
)


def open_choices(runner: Runner, plan: Plan) -> Figure:
    """Both transfers on one queue, with one choice changed at a time."""
    link = next(link for link in plan.links if link.name == FIFO)
    (workload,) = plan.workloads
    seeds = plan.seeds[:OPEN_RUNS]
    made = []
    for (_, change), flows, seed in product(VARIANTS, ((UP,), (DOWN,), BOTH), seeds):
        one = scenario(link, workload, EVERY, flows, seed)
        change(one)
        made.append(one)
    results = iter(runner.simulate("open choices, FIFO", made))
    cells, classes = [], []
    for _ in VARIANTS:
        lone_up, lone_down, runs = ([next(results) for _ in seeds] for _ in range(3))
        up, down = speed(runs, UP), speed(runs, DOWN)
        shares = [
            100 * up.mean / speed(lone_up, UP).mean,
            100 * down.mean / speed(lone_down, DOWN).mean,
        ]
        cells.append(
            [f"{e.mean:.0f} ± {e.ci95 or 0:.0f}" for e in (up, down)]
            + [f"{share:.0f}%" for share in shares]
        )
        kept = shares[1] >= FIFO_DOWNLOAD_LEAST
        name = "download harmed"
        if kept:
            name = "upload at most 45%" if shares[0] <= FIFO_UPLOAD_MOST else "upload above 45%"
        classes.append([name] * 4)
    return Figure(
        "separation-open",
        "Both transfers on one queue: effect of each choice that the paper leaves open",
        [
            Grid(
                "",
                "",
                [name for name, _ in VARIANTS],
                ["up, kbit/s", "down, kbit/s", "up, of solo", "down, of solo"],
                cells,
                classes,
            )
        ],
    )


# --- the sweep -----------------------------------------------------------------------------------

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
class Point:
    """One ratio of the sweep; shares in percent of the lone speeds, by discipline."""

    ratio: float
    k: float
    lone_ack_percent: float  # of the uplink, download alone
    lone_acks_lost: int
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
) -> list[Point]:
    """Lone and common speeds at each ratio, for each discipline of the uplink. `sender`: what the
    senders have otherwise than the plan. `Point.k` is for an ACK for each packet whatever the
    policy."""
    link = next(link for link in plan.links if link.name == FIFO)
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
        _sender(**(sender or {}))(one)
    results = iter(runner.simulate(f"sweep over asymmetry, {policy_text}", made))
    up_bps = link.scenario["up"]["rate_bps"]

    def ack_percent(result: Result) -> float:
        return float(result["up"]["ack_bytes"] * 8e11 / result["duration_ns"] / up_bps)

    points = []
    for ratio in ratios:
        up: dict[str, list[float]] = {name: [] for name, _, _ in DISCIPLINES}
        down: dict[str, list[float]] = {name: [] for name, _, _ in DISCIPLINES}
        acks: dict[str, list[float]] = {name: [] for name, _, _ in DISCIPLINES}
        alone: list[Result] = []
        for _ in seeds:
            lone = {n: next(results) for n in BOTH}
            alone.append(lone[DOWN])
            for name, _, _ in DISCIPLINES:
                result = next(results)
                for n, shares in ((UP, up), (DOWN, down)):
                    base = goodput_kbps(lone[n], n)
                    shares[name].append(100 * goodput_kbps(result, n) / base)
                acks[name].append(ack_percent(result))
        points.append(
            Point(
                ratio,
                asymmetry(ratio, 1),
                sum(map(ack_percent, alone)) / len(alone),
                sum(r["up"]["acks_dropped_queue"] for r in alone),
                {name: mean(values) for name, values in up.items()},
                {name: mean(values) for name, values in down.items()},
                {name: sum(values) / len(values) for name, values in acks.items()},
            )
        )
    return points


def sweep_checks(points: Sequence[Point]) -> Iterator[Check]:
    """Theory first; then what a gateway is to reach on very asymmetric links."""
    (_, apart, filtered) = (name for name, _, _ in DISCIPLINES)
    demand = [abs(p.lone_ack_percent - 100 * min(1.0, p.k)) for p in points]
    left = [abs(p.up[apart].mean - 100 * (1 - min(p.k, 0.5))) for p in points]
    calm = [p for p in points if p.k <= 0.5]
    crowded = [p.ratio for p in points if p.k > 1]
    lost = [p.ratio for p in points if p.lone_acks_lost]
    theory = [
        at_most(
            "ACKs' share of the uplink, download alone: largest distance from min(1, k)",
            SWEEP_PERCENT, max(demand), unit="points", source="RFC 3449, 2.1",
        ),
        same(
            "lowest ratio at which ACKs alone exceed the uplink",
            f"{min(crowded):g}:1", f"{min(lost):g}:1" if lost else None, source="k > 1",
        ),
        at_most(
            "upload with ACK separation: largest distance from 1 - min(k, 50%) of solo throughput",
            SWEEP_PERCENT, max(left), unit="points", source="arithmetic",
        ),
        at_least(
            "download with ACK separation where k is at most 0.5: lowest share",
            APART_LEAST, min(p.down[apart].mean for p in calm), unit="%", source="section 4.1",
        ),
    ]  # fmt: skip
    yield from grouped("sweep: theory", theory)
    extreme = []
    for p in points:
        if p.ratio in (50, 100):
            extreme += [
                at_least(
                    f"{p.ratio:g}:1, separation and ACK filtering: upload's share",
                    FILTER_UPLOAD_LEAST, p.up[filtered].mean, unit="%", source="spec page 3",
                ),
                at_least(
                    f"{p.ratio:g}:1, separation and ACK filtering: download's share",
                    FILTER_DOWNLOAD_LEAST, p.down[filtered].mean, unit="%", source="spec page 3",
                ),
            ]  # fmt: skip
    yield from grouped("sweep: very asymmetric links", extreme)


def sweep_figure(points: Sequence[Point]) -> Figure:
    """Shares over the ratio, and what ACKs take over k."""
    ratios = [p.ratio for p in points]
    ks = [p.k for p in points]

    def panel(name: str, of: Callable[[Point], dict[str, Estimate]]) -> Panel:
        lines = [
            Series(
                label,
                ratios,
                [of(p)[label].mean for p in points],
                spread=[of(p)[label].ci95 or 0 for p in points],
            )
            for label, _, _ in DISCIPLINES
        ]
        return Panel("ratio of downlink to uplink rate", f"{name}, % of solo throughput", lines, name, log_x=True)

    demand = [
        Series("min(1, k)", ks, [100 * min(1.0, k) for k in ks], published=True),
        Series("download alone", ks, [p.lone_ack_percent for p in points], "points"),
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


def begins(points: Sequence[Point]) -> str:
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


def run(runner: Runner) -> Outcome:
    """The four cases, the open choices, the sweep."""
    plan = plans.load_plan("separation")
    every = four_cases(runner, plan, EVERY)
    second = four_cases(runner, plan, SECOND)
    choices = open_choices(runner, plan)
    points = sweep(runner, plan)
    speeds = ", ".join(
        f"{case.name} {name} {e.mean:.0f} ± {e.ci95 or 0:.0f}"
        for case in CASES
        for name in case.flows
        for e in [every.speed(case, name)]
    )
    return Outcome(
        checks=[*case_checks(every, second), *sweep_checks(points)],
        figures=[
            cases_figure(every, second),
            over_time_figure(every),
            queue_figure(every),
            choices,
            sweep_figure(points),
        ],
        notes=[
            f"kbit/s with 95% CI over {plan.runs} runs, an ACK for each packet: {speeds}.",
            begins(points),
        ],
    )


EXPERIMENT = Experiment(
    name="separation",
    title="ACK separation in a home network gateway",
    source='spec page 3: J. Park, S. Hong, "Preventing network performance interference with '
    'ACK-separation queuing mechanism in a home network gateway using an asymmetric link"',
    question="What do a download's ACKs do to an upload on a slow uplink, and does a separate "
    "ACK queue end it?",
    run=run,
)
