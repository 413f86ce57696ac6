# SPDX-License-Identifier: MIT
"""Spec page 1 on a slow processor: the real kernel on emulated machines, cost in instructions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

from ackwise import plans
from ackwise.engine.typed import put
from ackwise.plans import policy
from ackwise_experiments import check, documents
from ackwise_experiments.check import Basis, Check, Kind, Origin
from ackwise_experiments.device import cost
from ackwise_experiments.device.cost import EXACT, SEGMENT_BYTES, PacketCosts
from ackwise_experiments.experiment import Experiment, Outcome
from ackwise_experiments.figure import Figure, Panel, Series
from ackwise_experiments.reference import published
from ackwise_experiments.runner import Runner

SECOND = 10**9
MACHINES = ("x86", "mips")  # the source's: a virtual machine, a router
STOCK = "linux"
EACH, ONE_PER_TWO = cost.EACH, cost.ONE_PER_TWO
BASELINES = (EACH, ONE_PER_TWO)
LIMITED = "ratelimit"
FEWEST = "delayed:segments=1024"
STRETCHED = "delayed:segments=64"
DROPPED_80 = "delayed:segments=10"  # of the ACKs of ONE_PER_TWO
OTHERS = ("delayed:segments=8", "dynamic", "greedy", "a3", "a3fewer", "csa3")
POLICIES = (STOCK, ONE_PER_TWO, LIMITED, FEWEST, STRETCHED, EACH, *OTHERS)
# Without a delay a flight is a few segments, and a policy may not let a sender wait: the source's
# virtual machine has RTTs of 10 to 20 ms.
DELAY_NS = 5_000_000
SATURATED_S = 6.0
SETTLED_FROM = 1 / 3  # of the run: slow start, and the settling of ratelimit, are over
LOAD_S = 4.0
PACED_S = 20.0  # ratelimit takes thousands of segments to settle, and as many for each step
PACES_BPS = (20_000_000, 60_000_000)
# The clamp lets a quarter of an RTT's segments wait: ten of them or more at
# these paces, with a longer RTT.
LOAD_PACES_BPS = tuple(n * 10**6 for n in (10, 25, 40, 55, 70, 90))
LOAD_DELAY_NS = 30_000_000
BIN_MS = 1  # of the histogram

KEPT = 0.98
OF_BOUND = 0.9
AWAY = 0.25
HALF = 0.5  # of the ACKs are left (fig 17)
# Our prototype's, with one ACK per 64 segments and no clamp: 49% and 28% less.
SAVED_PERCENT = {20_000_000: 24, 60_000_000: 14}

ASKED = Basis(Kind.PREDICTED, Origin.ASKED)
PUBLISHED = Basis(Kind.PREDICTED, Origin.PUBLISHED)
EXPECTED = Basis(Kind.PREDICTED, Origin.BEFORE)
KNOWN = Basis(Kind.PREDICTED, Origin.AFTER)  # such runs were seen
OWN = Basis(Kind.OWN, Origin.BEFORE)


def scenario(
    machine: str,
    spec: str,
    seconds: float,
    *,
    pace_bps: int = 0,
    delay_ns: int = DELAY_NS,
    exact: bool = False,
) -> dict[str, Any]:
    """One transfer on a machine, `exact`: with as many ACKs as the policy asks for. `machine` and
    `pace_bps` are read by the runner."""
    link = plans.load_link("lan-1g")
    shape = link.scenario
    for way in ("down", "up"):
        shape = put(shape, way, {"delay_ns": delay_ns})
    made = documents.scenario_of(
        replace(link, scenario=shape),
        replace(plans.load_workload("bulk"), duration_ns=round(seconds * SECOND)),
        policy.parse(spec, "reproduce ratelimit"),
        1,
        series_interval_ns=1,
    )
    made |= {"machine": machine, "pace_bps": pace_bps}
    return made | {documents.EXTRAS: asdict(EXACT)} if exact else made


@dataclass(frozen=True)
class DeviceRun:
    """One run. `over_time`: a value for each sample, by the names of OVER_TIME, RATE and
    `time_s`."""

    mbit_s: float  # once it has settled
    instructions_per_mb: float
    segments_per_ack: float
    acks: int
    busy_share: float
    srtt_ms: float
    over_time: Mapping[str, Sequence[float]]
    settled: int  # the first sample that counts

    def late(self, name: str) -> Sequence[float]:
        """Values over time once it has settled."""
        return self.over_time[name][self.settled :]


def device_run(result: Mapping[str, Any]) -> DeviceRun:
    """The figures of a run."""
    group, processor = result["groups"][0], result["processor"]
    series = group["flows"][0]["series"]
    time_s = [t / SECOND for t in series["time_ns"]]
    steps = [b - a for a, b in zip([0.0, *time_s], time_s, strict=False)]

    def per_s(key: str) -> list[float]:
        return [n / s if s else 0.0 for n, s in zip(series[key], steps, strict=True)]

    settled_s = SETTLED_FROM * result["duration_ns"] / SECOND
    settled = sum(t <= settled_s for t in time_s)
    delivered = sum(series["delivered_bytes"][settled:])
    return DeviceRun(
        8 * delivered / 1e6 / sum(steps[settled:]),
        float(processor["instructions_per_mb"]),
        float(group["segments_per_ack"]),
        int(group["acks_sent"]),
        float(processor["busy_share"]),
        float(group["rtt_ns"]["p50"]) / 1e6,
        {
            "time_s": time_s,
            "mbit_s": [8 * n / 1e6 for n in per_s("delivered_bytes")],
            "acks_s": per_s("acks"),
            "srtt_ms": [n / 1e6 for n in series["srtt_ns"]],
            "cwnd_segments": [n / SEGMENT_BYTES for n in series["cwnd_bytes"]],
            "ssthresh_segments": [n / SEGMENT_BYTES for n in series["ssthresh_bytes"]],
            **series["policy"],
        },
        settled,
    )


Runs = Mapping[str, DeviceRun]


def price(runs: Runs) -> PacketCosts:
    """From one ACK for each segment and one for two."""
    each, two = ((runs[spec].instructions_per_mb, runs[spec].segments_per_ack)
                 for spec in (EACH, ONE_PER_TWO))  # fmt: skip
    return cost.price(each, two)


def gain_percent(runs: Runs, spec: str, base: str = ONE_PER_TWO) -> float:
    """Throughput above that of `base`."""
    return 100 * (runs[spec].mbit_s / runs[base].mbit_s - 1)


# --- as fast as the processor allows --------------------------------------------------------------


def _saturated(runner: Runner, machine: str) -> tuple[list[Check], list[Figure], list[str]]:
    made = [scenario(machine, s, SATURATED_S, exact=s in BASELINES) for s in POLICIES]
    found = runner.simulate(f"{machine}, saturated", made, device_run)
    runs = dict(zip(POLICIES, found, strict=True))
    paid = price(runs)
    gain = gain_percent(runs, LIMITED)
    most = published(
        *(
            ("ratelimit-physical", "throughput gain with ACK rate limiting")
            if machine == "mips"
            else ("ratelimit-vm", "throughput gain")
        )
    ).number
    source = "fig 6" if machine == "mips" else "figs 11, 12"
    checks = [
        check.at_least(f"{machine}: gain of ratelimit / bound without ACKs", OF_BOUND,
                       gain / paid.bound_percent, basis=ASKED),
        check.between(f"{machine}: gain of ratelimit over one ACK per two segments",
                      (1 - AWAY) * most, (1 + AWAY) * most, gain,
                      basis=EXPECTED, published=most, unit="%", source=source),
        check.between(f"{machine}: bound without ACKs, by instructions",
                      (1 - AWAY) * most, (1 + AWAY) * most, paid.bound_percent,
                      basis=EXPECTED, published=most, unit="%", source=source),
        check.between(f"{machine}: gain with one ACK per 1024 segments / bound", OF_BOUND, 1.1,
                      gain_percent(runs, FEWEST) / paid.bound_percent, basis=OWN),
        check.between(f"{machine}: ACKs of ratelimit / one per two segments",
                      (1 - AWAY) * HALF, (1 + AWAY) * HALF,
                      runs[LIMITED].acks / runs[ONE_PER_TWO].acks,
                      basis=KNOWN, published=f"about {HALF}", source="fig 17"),
        *(
            check.at_least(f"{machine}: goodput of {spec} / one ACK per two segments", KEPT,
                           run.mbit_s / runs[ONE_PER_TWO].mbit_s, basis=ASKED)
            for spec, run in runs.items()
            if spec not in (ONE_PER_TWO, EACH)
        ),
    ]  # fmt: skip
    checks += [
        check.between(f"{machine}: mean {what} of ratelimit / one ACK per two segments",
                      1 - AWAY, 1 + AWAY, ratio(runs, name),
                      basis=EXPECTED, published="same", source="figs 18, 19")
        for name, what in (("cwnd_segments", "congestion window"),
                           ("ssthresh_segments", "slow start threshold"))
    ]  # fmt: skip
    if machine == "mips":
        checks.append(
            check.at_least("mips: RTT of ratelimit / one ACK per two segments", 1,
                           runs[LIMITED].srtt_ms / runs[ONE_PER_TWO].srtt_ms,
                           basis=PUBLISHED, published="rises", source="figs 7, 8")
        )  # fmt: skip
    else:
        modes = [mode_ms(histogram(runs[spec])) for spec in (LIMITED, ONE_PER_TWO)]
        checks.append(
            check.at_most("x86: most frequent RTT of ratelimit / one ACK per two segments", 0.75,
                          modes[0] / modes[1] if modes[0] and modes[1] else None,
                          basis=KNOWN, published="about 0.5", source="figs 15, 16")
        )  # fmt: skip
        checks.append(
            check.at_most("x86: RTT of ratelimit / one ACK per two segments", 0.75,
                          runs[LIMITED].srtt_ms / runs[ONE_PER_TWO].srtt_ms,
                          basis=EXPECTED, published="about 0.5", source="figs 13, 14")
        )  # fmt: skip
    notes = [_table(machine, runs, paid)]
    figures = [_costs(machine, runs, paid), _over_time(machine, runs), _histogram(machine, runs)]
    return check.grouped(f"{machine}, saturated", checks), figures, notes


def _table(machine: str, runs: Runs, paid: PacketCosts) -> str:
    """Who gets how much of what the bound allows."""
    heads = ("", "instructions/MB", "Mbit/s", "segments/ACK", "gain, %", "share of bound")
    rows = [heads] + [
        (
            spec,
            f"{run.instructions_per_mb / 1e6:.2f} million",
            f"{run.mbit_s:.1f}",
            f"{run.segments_per_ack:.2f}",
            f"{gain_percent(runs, spec):+.1f}",
            f"{gain_percent(runs, spec) / paid.bound_percent:+.2f}",
        )
        for spec, run in runs.items()
    ]
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join((row[0].ljust(wide[0]), *map(str.rjust, row[1:], wide[1:]))) for row in rows)
    return (
        f"{machine}: a segment costs {paid.segment:.0f} instructions at both ends, an ACK "
        f"{paid.ack:.0f};\nbound: without any ACKs {paid.bound_percent:.1f}% more than with one "
        "per two segments\n\n" + "\n".join(lines)
    )


def _costs(machine: str, runs: Runs, paid: PacketCosts) -> Figure:
    names = [spec.replace("delayed:segments=", "1 per ") for spec in runs]
    bound = paid.segment / SEGMENT_BYTES
    return Figure(
        f"device-ratelimit-{machine}-cost",
        f"What a megabyte costs on {machine}, both ends",
        [
            Panel(
                "",
                "million instructions per MB",
                [Series("", names, [r.instructions_per_mb / 1e6 for r in runs.values()], "bars")],
                lines=[("without any ACKs", bound)],
            )
        ],
    )


COMPARED = (STOCK, ONE_PER_TWO, LIMITED)
OVER_TIME = {
    "mbit_s": "Mbit/s",
    "acks_s": "ACKs per second",
    "srtt_ms": "smoothed RTT, ms",
    "cwnd_segments": "congestion window, segments",
    "ssthresh_segments": "slow start threshold, segments",
}
RATE = {"rate_segments": "ack_rate_val", "rate_max_segments": "ack_rate_max"}


def _over_time(machine: str, runs: Runs) -> Figure:
    def series(spec: str, name: str, label: str) -> Series:
        return Series(label, runs[spec].over_time["time_s"], runs[spec].over_time[name])

    return Figure(
        f"device-ratelimit-{machine}-time",
        f"A saturated {machine} over time",
        [
            *(
                Panel("time, s", label, [series(spec, name, spec) for spec in COMPARED])
                for name, label in OVER_TIME.items()
            ),
            Panel(
                "time, s",
                f"segments that may wait, {LIMITED}",
                [series(LIMITED, name, label) for name, label in RATE.items()],
            ),
        ],
        "figs 5 to 8, 10 to 14, 18, 19",
        columns=2,
    )


def histogram(run: DeviceRun) -> Counter[int]:
    """Samples of the smoothed RTT once the run has settled, in steps of BIN_MS."""
    return Counter(int(ms // BIN_MS) * BIN_MS for ms in run.late("srtt_ms"))


def mode_ms(bins: Counter[int]) -> float | None:
    """Middle of the step with most samples, the shortest of equals."""
    return max(bins, key=lambda ms: (bins[ms], -ms)) + BIN_MS / 2 if bins else None


def _histogram(machine: str, runs: Runs) -> Figure:
    found = {spec: histogram(runs[spec]) for spec in COMPARED}
    longest = max(ms for bins in found.values() for ms in bins)
    steps = range(0, longest + 2 * BIN_MS, BIN_MS)
    return Figure(
        f"device-ratelimit-{machine}-rtt",
        f"Histogram of the smoothed RTT on a saturated {machine}",
        [
            Panel(
                "RTT, ms",
                "share of samples",
                [Series(s, steps, [bins[ms] / bins.total() for ms in steps], "steps")
                 for s, bins in found.items()],
            )
        ],
        "figs 15, 16",
    )  # fmt: skip


def ratio(runs: Runs, name: str) -> float | None:
    """Mean of a value of ratelimit once settled, relative to one ACK per two segments."""
    limited, two = (sum(runs[spec].late(name)) for spec in (LIMITED, ONE_PER_TWO))
    if limited == two:
        return 1.0  # a threshold that neither has set
    return limited / two if two else None


# --- below saturation -----------------------------------------------------------------------------


def _paced(runner: Runner, machine: str) -> list[Check]:
    specs = (ONE_PER_TWO, STRETCHED, LIMITED)
    made = [scenario(machine, spec, PACED_S, pace_bps=pace) for pace in PACES_BPS for spec in specs]
    found = runner.simulate(f"{machine}, paced", made, device_run)
    checks = []
    for i, pace in enumerate(PACES_BPS):
        two, *fewer = found[i * len(specs) : (i + 1) * len(specs)]
        for spec, run in zip(specs[1:], fewer, strict=True):
            saved = 100 * (1 - run.busy_share / two.busy_share) if two.busy_share else None
            checks.append(
                check.at_least(
                    f"{machine}, {pace / 1e6:g} Mbit/s: load saved by {spec}",
                    SAVED_PERCENT[pace], saved, basis=OWN, unit="%",
                )
            )  # fmt: skip
    return check.grouped(f"{machine}, paced", checks)


# --- performance against load ---------------------------------------------------------------------


def at_load(loads: Sequence[float], gains: Sequence[float], load: float) -> float | None:
    """The gain at a load, between the two runs nearest to it; None outside of all runs."""
    points = sorted(zip(loads, gains, strict=True))
    for (x0, y0), (x1, y1) in pairwise(points):
        if x0 <= load <= x1:
            return y0 + (y1 - y0) * (load - x0) / (x1 - x0) if x1 > x0 else y0
    return None


def _load(runner: Runner, machine: str) -> tuple[list[Check], list[Figure]]:
    specs = (ONE_PER_TWO, DROPPED_80)
    made = [
        scenario(machine, spec, LOAD_S, pace_bps=pace, delay_ns=LOAD_DELAY_NS, exact=True)
        for pace in LOAD_PACES_BPS
        for spec in specs
    ]
    found = runner.simulate(f"{machine}, 80% of ACKs dropped", made, device_run)
    two, ten = found[::2], found[1::2]
    loads = [100 * run.busy_share for run in two]
    gains = [
        100 * (a.instructions_per_mb / b.instructions_per_mb - 1)
        for a, b in zip(two, ten, strict=True)
    ]
    kept = [a.segments_per_ack / b.segments_per_ack for a, b in zip(two, ten, strict=True)]
    quantity = "performance gain at 80% ACK drop"
    low = published("ratelimit-cpu", quantity, "25% CPU load").number
    high = published("ratelimit-cpu", quantity, "over 60% CPU load").number
    checks = [
        *(
            check.within(f"{machine}: performance with 80% of ACKs dropped, at {load}% load",
                         gain, at_load(loads, gains, load), percent=100 * AWAY,
                         basis=EXPECTED, unit="%", source="fig 20")
            for load, gain in ((25, low), (60, high))
        ),
        check.at_most(f"{machine}: ACKs left where 80% shall be dropped, most of all loads", 0.25,
                      max(kept), basis=OWN),
    ]  # fmt: skip
    figure = Figure(
        f"device-ratelimit-{machine}-load",
        f"What {machine} gains with 80% of ACKs dropped",
        [
            Panel(
                "load with one ACK per two segments, %",
                "bytes per instruction gained, %",
                [
                    Series("published", [25, 60], [low, high], "points", published=True),
                    Series("one ACK per ten segments", loads, gains),
                ],
            )
        ],
        "fig 20",
    )
    return check.grouped(f"{machine}, 80% of ACKs dropped", checks), [figure]


# --- all of it ------------------------------------------------------------------------------------


def _run(runner: Runner) -> Outcome:
    checks: list[Check] = []
    figures: list[Figure] = []
    notes: list[str] = []
    for machine in MACHINES:
        more, drawn, said = _saturated(runner, machine)
        loaded, curves = _load(runner, machine)
        checks += [*more, *_paced(runner, machine), *loaded]
        figures += [*drawn, *curves]
        notes += said
    return Outcome(checks, figures, notes)


EXPERIMENT = Experiment(
    "device-ratelimit",
    "What fewer ACKs save on a slow processor",
    "spec page 1",
    "How much faster is a machine whose processor is the bottleneck with fewer ACKs, and how much "
    "of what no ACKs at all would save does each policy get?",
    _run,
    minutes=14,
)
