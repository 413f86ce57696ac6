# SPDX-License-Identifier: MIT
"""Spec page 1 on a slow processor: the real kernel on emulated machines, cost in instructions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ackwise import plans
from ackwise.plans import policy
from ackwise.reproduce import check
from ackwise.reproduce.check import Basis, Check, Kind, Origin
from ackwise.reproduce.experiment import Experiment, Outcome
from ackwise.reproduce.figure import Figure, Panel, Series
from ackwise.reproduce.reference import published
from ackwise.reproduce.runner import Runner

SECOND = 10**9
MACHINES = ("x86",)  # what the source's virtual machine ran on
STOCK = "linux"
EACH = "every"
ONE_PER_TWO = "delayed:segments=2"
LIMITED = "ratelimit"
FEWEST = "delayed:segments=1024"
STRETCHED = "delayed:segments=64"
OTHERS = ("delayed:segments=8", "bsd", "dynamic", "greedy", "a3", "a3fewer", "csa3")
POLICIES = (STOCK, ONE_PER_TWO, LIMITED, FEWEST, STRETCHED, EACH, *OTHERS)
# Without a delay a flight is a few segments, and a policy may not let a sender wait: the source's
# virtual machine has RTTs of 10 to 20 ms.
DELAY_NS = 5_000_000
SATURATED_S = 6.0
SETTLED_FROM = 1 / 3  # of the run: slow start, and the settling of ratelimit, are over
PACED_S = 4.0
PACES_BPS = (20_000_000, 60_000_000)

KEPT = 0.98
OF_BOUND = 0.9
AWAY = 0.25
# Our prototype's, with one ACK per 64 segments and no rails: 49% and 28% less.
SAVED_PERCENT = {20_000_000: 24, 60_000_000: 14}

ASKED = Basis(Kind.PREDICTED, Origin.ASKED)
PUBLISHED = Basis(Kind.PREDICTED, Origin.PUBLISHED)
EXPECTED = Basis(Kind.PREDICTED, Origin.BEFORE)
OWN = Basis(Kind.OWN, Origin.BEFORE)


def scenario(machine: str, spec: str, seconds: float, pace_bps: int = 0) -> dict[str, Any]:
    """One transfer on a machine. `machine` and `pace_bps` are read by the runner."""
    link = plans.load_link("lan-1g")
    shape = dict(link.scenario)
    for way in ("down", "up"):
        shape[way] = {**shape[way], "delay_ns": DELAY_NS}
    made = plans.scenario_of(
        replace(link, scenario=shape),
        replace(plans.load_workload("bulk"), duration_ns=round(seconds * SECOND)),
        policy.parse(spec, "reproduce ratelimit"),
        1,
        series_interval_ns=1,
    )
    return made | {"machine": machine, "pace_bps": pace_bps}


@dataclass(frozen=True)
class DeviceRun:
    """One run."""

    mbit_s: float  # once it has settled
    instructions_per_mb: float
    segments_per_ack: float
    acks: int
    busy_share: float
    srtt_ms: float
    time_s: Sequence[float]
    mbit_s_at: Sequence[float]
    cwnd_segments: Sequence[float]
    rate_segments: Sequence[float]

    @property
    def per_segment(self) -> float:
        """Instructions for each segment of 1448 bytes, with its share of an ACK."""
        return self.instructions_per_mb * 1448 / 1e6


def device_run(result: Mapping[str, Any]) -> DeviceRun:
    """The figures of a run."""
    group, processor = result["groups"][0], result["processor"]
    series = group["flows"][0]["series"]
    time_s = [t / SECOND for t in series["time_ns"]]
    steps = [b - a for a, b in zip([0.0, *time_s], time_s, strict=False)]
    rates = [
        8 * n / 1e6 / step if step else 0.0
        for n, step in zip(series["delivered_bytes"], steps, strict=True)
    ]
    settled_s = SETTLED_FROM * result["duration_ns"] / SECOND
    late = [(n, s) for t, n, s in zip(time_s, series["delivered_bytes"], steps, strict=True)
            if t > settled_s]  # fmt: skip
    return DeviceRun(
        8 * sum(n for n, _ in late) / 1e6 / sum(s for _, s in late),
        float(processor["instructions_per_mb"]),
        float(group["segments_per_ack"]),
        int(group["acks_sent"]),
        float(processor["busy_share"]),
        float(group["rtt_ns"]["p50"]) / 1e6,
        time_s,
        rates,
        [n / 1448 for n in series["cwnd_bytes"]],
        [float(n) for n in series["policy"].get("rate_segments", ())],
    )


Runs = Mapping[str, DeviceRun]


@dataclass(frozen=True)
class Price:
    """Instructions at both ends: `segment` without any ACK, `ack` for each."""

    segment: float
    ack: float

    @property
    def bound_percent(self) -> float:
        """How much faster a saturated machine is without any ACKs than with one per two."""
        return 100 * self.ack / 2 / self.segment


def price(runs: Runs) -> Price:
    """From one ACK for each segment and one for two."""
    each, two = runs[EACH], runs[ONE_PER_TWO]
    ack = (each.per_segment - two.per_segment) / (
        1 / each.segments_per_ack - 1 / two.segments_per_ack
    )
    return Price(two.per_segment - ack / two.segments_per_ack, ack)


def gain_percent(runs: Runs, spec: str, base: str = ONE_PER_TWO) -> float:
    """Throughput above that of `base`."""
    return 100 * (runs[spec].mbit_s / runs[base].mbit_s - 1)


# --- as fast as the processor allows --------------------------------------------------------------


def _saturated(runner: Runner, machine: str) -> tuple[list[Check], list[Figure], list[str]]:
    made = [scenario(machine, spec, SATURATED_S) for spec in POLICIES]
    found = runner.simulate(f"{machine}, saturated", made, device_run)
    runs = dict(zip(POLICIES, found, strict=True))
    cost = price(runs)
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
                       gain / cost.bound_percent, basis=ASKED),
        check.between(f"{machine}: gain of ratelimit over one ACK per two segments",
                      (1 - AWAY) * most, (1 + AWAY) * most, gain,
                      basis=EXPECTED, published=most, unit="%", source=source),
        check.between(f"{machine}: bound without ACKs, by instructions",
                      (1 - AWAY) * most, (1 + AWAY) * most, cost.bound_percent,
                      basis=EXPECTED, published=most, unit="%", source=source),
        check.between(f"{machine}: gain with one ACK per 1024 segments / bound", OF_BOUND, 1.1,
                      gain_percent(runs, FEWEST) / cost.bound_percent, basis=OWN),
        check.at_most(f"{machine}: ACKs of ratelimit / one per two segments", 0.6,
                      runs[LIMITED].acks / runs[ONE_PER_TWO].acks,
                      basis=EXPECTED, published="about 0.5", source="fig 17"),
        *(
            check.at_least(f"{machine}: goodput of {spec} / one ACK per two segments", KEPT,
                           run.mbit_s / runs[ONE_PER_TWO].mbit_s, basis=ASKED)
            for spec, run in runs.items()
            if spec not in (ONE_PER_TWO, EACH)
        ),
    ]  # fmt: skip
    if machine == "mips":
        checks.append(
            check.at_least("mips: RTT of ratelimit / one ACK per two segments", 1,
                           runs[LIMITED].srtt_ms / runs[ONE_PER_TWO].srtt_ms,
                           basis=PUBLISHED, published="rises", source="figs 7, 8")
        )  # fmt: skip
    else:
        checks.append(
            check.at_most("x86: RTT of ratelimit / one ACK per two segments", 0.75,
                          runs[LIMITED].srtt_ms / runs[ONE_PER_TWO].srtt_ms,
                          basis=EXPECTED, published="about 0.5", source="figs 15, 16")
        )  # fmt: skip
    notes = [
        f"{machine}: a segment costs {cost.segment:.0f} instructions at both ends, an ACK "
        f"{cost.ack:.0f}; without any ACKs {cost.bound_percent:.1f}% more than with one per two. "
        "Instructions per megabyte, Mbit/s, segments per ACK, share of that bound: "
        + "; ".join(
            f"{spec} {run.instructions_per_mb / 1e6:.2f} million, {run.mbit_s:.1f}, "
            f"{run.segments_per_ack:.2f}, {gain_percent(runs, spec) / cost.bound_percent:.2f}"
            for spec, run in runs.items()
        )
    ]
    figures = [_costs(machine, runs, cost), _over_time(machine, runs)]
    return check.grouped(f"{machine}, saturated", checks), figures, notes


def _costs(machine: str, runs: Runs, cost: Price) -> Figure:
    names = [spec.replace("delayed:segments=", "1 per ") for spec in runs]
    bound = cost.segment / 1448
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


def _over_time(machine: str, runs: Runs) -> Figure:
    shown = (STOCK, ONE_PER_TWO, LIMITED)
    return Figure(
        f"device-ratelimit-{machine}-time",
        f"A saturated {machine} over time",
        [
            Panel("time, s", "Mbit/s",
                  [Series(s, runs[s].time_s, runs[s].mbit_s_at) for s in shown]),
            Panel("time, s", "congestion window, segments",
                  [Series(s, runs[s].time_s, runs[s].cwnd_segments) for s in shown]),
            Panel("time, s", "segments that may wait (ack_rate_val)",
                  [Series(LIMITED, runs[LIMITED].time_s, runs[LIMITED].rate_segments)]),
        ],
        "figs 5, 6, 10, 18",
    )  # fmt: skip


# --- below saturation -----------------------------------------------------------------------------


def _paced(runner: Runner, machine: str) -> list[Check]:
    specs = (ONE_PER_TWO, STRETCHED, LIMITED)
    made = [scenario(machine, spec, PACED_S, pace) for pace in PACES_BPS for spec in specs]
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


# --- all of it ------------------------------------------------------------------------------------


def _run(runner: Runner) -> Outcome:
    checks: list[Check] = []
    figures: list[Figure] = []
    notes: list[str] = []
    for machine in MACHINES:
        more, drawn, said = _saturated(runner, machine)
        checks += [*more, *_paced(runner, machine)]
        figures += drawn
        notes += said
    return Outcome(checks, figures, notes)


EXPERIMENT = Experiment(
    "device-ratelimit",
    "What fewer ACKs save on a slow processor",
    "spec page 1",
    "How much faster is a machine whose processor is the bottleneck with fewer ACKs, and how much "
    "of what no ACKs at all would save does each policy get?",
    _run,
)
