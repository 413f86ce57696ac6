# SPDX-License-Identifier: MIT
"""ACK rate limiting on CPU-bound devices (spec page 1).

Three devices: a MIPS router that sends, a virtual machine that receives, and both with an
application that competes for the CPU. The links define what a packet costs them.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ackwise_experiments import check
from ackwise_experiments.check import Basis, Check, Kind, Origin
from ackwise_experiments.experiment import Experiment, Outcome
from ackwise_experiments.figure import Figure, Panel, Series
from ackwise_experiments.ratelimit.band import band
from ackwise_experiments.ratelimit.devices import (
    DEVICE_POLICY,
    DISTURBANCES_S,
    DROP_S,
    LIMITED_S,
    LIMITING_S,
    LONG_S,
    MACHINE,
    MACHINE_POLICY,
    ONE_PER_TWO,
    SECOND,
    SHORT_S,
    STOCK,
    FlowRun,
    device_scenarios,
    gain_percent,
    machine_scenarios,
    scenario,
)
from ackwise_experiments.reference import published
from ackwise_experiments.runner import Runner

# "Up to", "about" and "approximately" are met within this; exact figures within a tenth.
ROUGHLY_PERCENT = 25
CLOSELY_PERCENT = 10
EQUAL_PERCENT = 1

# The start of limiting, the drop and the disturbances are set. The costs of a packet follow from
# the published gains, and the VM's windows from its published RTT and ACK rate.
SET = Basis(Kind.INJECTED, Origin.PUBLISHED)
COSTS = Basis(Kind.FITTED, Origin.AFTER)
SHAPE = Basis(Kind.FITTED, Origin.PUBLISHED)
LIKE_STOCK = Basis(Kind.IDENTITY, Origin.AFTER)  # the policy is stock at these times
FOLLOWS = Basis(Kind.PREDICTED, Origin.PUBLISHED)
NEARLY = Basis(Kind.PREDICTED, Origin.AFTER)
BESIDE_STOCK = Basis(Kind.OWN, Origin.AFTER)
NO_LOSS = Basis(Kind.PREDICTED, Origin.ASKED)
COUNTED = Basis(Kind.PREDICTED, Origin.BEFORE)  # costs are the instructions of a machine

LOADS = (10, 25, 40, 55, 70, 85)
LOAD_S = 10
DROPPED_80 = "delayed:segments=10"
DROPPED_MOST = "delayed:segments=64"

# Our own run of a prototype of Linux 6.12 with one ACK for N segments and no clamp, in
# virtual time: goodput in Mbit/s; 100 Mbit/s, 10 ms, a queue of 50 packets, CUBIC, 10 s.
KERNEL_STRETCHED = {4: 95.37, 8: 95.38, 16: 94.11, 32: 88.53, 64: 9.38}
KERNEL = "Linux 6.12"

LINKS = ("fitted-router", "fitted-writer", "fitted-receiver", "fitted-reader", "fitted-machine")
POLICIES = (STOCK, ONE_PER_TWO, "ratelimit", "ratelimit:guard=0,clamp=none")


def _near(name: str, both: Sequence[float], percent: float, basis: Basis, *, source: str) -> Check:
    """The second of two runs of ours relative to the first."""
    first, second = both
    away = percent / 100
    ratio = second / first if first else None
    return check.between(name, 1 - away, 1 + away, ratio, basis=basis, source=source)


def _run(runner: Runner, label: str, scenarios: Sequence[dict[str, Any]]) -> list[FlowRun]:
    return [FlowRun(result) for result in runner.simulate(label, scenarios)]


# --- the device that sends ----------------------------------------------------------------------


def _device(runner: Runner) -> tuple[list[Check], list[Figure]]:
    stock, limited = _run(runner, "the device that sends", device_scenarios())
    rate = limited.series["policy"]["rate_segments"]
    raised = [t for t, n in zip(limited.time_s, rate, strict=True) if n > 1]
    again = [t for t in raised if t > DROP_S + 1]
    settled = (1, 19)
    dropped = (DROP_S + 2, DROP_S + 15)
    both = [
        [run.mean(values(run), *span) for run in (stock, limited)]
        for values, span in (
            (_mbit_s, settled),
            (_mbit_s, LIMITING_S),
            (_rtt_ms, LIMITING_S),
            (_rtt_ms, dropped),
            (_mbit_s, dropped),
        )
    ]
    before, during, rtt, rtt_after, after = both
    checks = [
        check.between("limiting starts", 19, 20, raised[0] if raised else None, basis=SET,
                      unit="s", source="fig 6"),
        _near("throughput before limiting, limited / unlimited", before, EQUAL_PERCENT,
              LIKE_STOCK, source="figs 5, 6"),
        check.within("gain while limiting",
                     published("ratelimit-physical",
                               "throughput gain with ACK rate limiting").number,
                     gain_percent(during[1], during[0]), percent=ROUGHLY_PERCENT, basis=COSTS,
                     unit="%", source="fig 6"),
        check.at_least("RTT, limited / unlimited", 1, rtt[1] / rtt[0] if rtt[0] else None,
                       basis=SHAPE, published="longer", source="figs 7, 8"),
        _near("RTT after a drop, limited / unlimited", rtt_after, CLOSELY_PERCENT, LIKE_STOCK,
              source="figs 7, 8"),
        _near("throughput after a drop, limited / unlimited", after, EQUAL_PERCENT, LIKE_STOCK,
              source="figs 5, 6"),
        check.between("limiting starts again", 50, 52, again[0] if again else None,
                      basis=FOLLOWS, published="51", unit="s", source="fig 6"),
    ]  # fmt: skip
    runs = {"without limiting": stock, "with limiting": limited}
    figure = Figure(
        "ratelimit-device",
        "A MIPS router sends: throughput, ACKs and RTT over time",
        [
            _over_time("goodput, Mbit/s", runs, _mbit_s),
            _over_time("ACKs per second", runs, _acks_s),
            _over_time("RTT, ms", runs, _rtt_ms),
            Panel(
                "time, s",
                "segments",
                [_values("full segments that may wait unacknowledged", limited, "rate_segments")],
            ),
        ],
        "figs 5 to 8",
        columns=2,
    )
    return check.grouped("the device that sends", checks), [figure]


def _mbit_s(run: FlowRun) -> list[float]:
    return run.mbit_s


def _acks_s(run: FlowRun) -> list[float]:
    return run.acks_s


def _rtt_ms(run: FlowRun) -> list[float]:
    return run.rtt_ms


def _over_time(
    label: str, runs: dict[str, FlowRun], values: Callable[[FlowRun], Sequence[float]]
) -> Panel:
    return Panel(
        "time, s",
        label,
        [Series(name, run.time_s[1:], values(run)[1:]) for name, run in runs.items()],
    )


def _values(label: str, run: FlowRun, name: str) -> Series:
    return Series(label, run.time_s, run.series["policy"][name], "steps")


# --- the virtual machine that receives ----------------------------------------------------------


def falls_after(times_s: Sequence[float], values: Sequence[int], starts_s: Sequence[float]) -> int:
    """How many of the start times are followed by a fall before the next one."""
    ends = [*starts_s[1:], float("inf")]
    steps = [t for t, a, b in zip(times_s[1:], values[:-1], values[1:], strict=True) if b < a]
    return sum(
        any(start < t <= end for t in steps) for start, end in zip(starts_s, ends, strict=True)
    )


def histogram_ms(quantiles: dict[str, Any]) -> dict[int, int]:
    """Samples in each whole millisecond."""
    bins: dict[int, int] = {}
    for upper, count in zip(quantiles["bucket_upper"], quantiles["bucket_count"], strict=True):
        at = int(upper // 10**6)
        bins[at] = bins.get(at, 0) + int(count)
    return bins


def mode_ms(bins: dict[int, int]) -> float | None:
    """Middle of the millisecond with most samples."""
    return max(bins, key=lambda at: (bins[at], -at)) + 0.5 if bins else None


def _machine(runner: Runner) -> tuple[list[Check], list[Figure]]:
    stock, limited = _run(runner, "the virtual machine that receives", machine_scenarios())
    rate = limited.series["policy"]["rate_segments"]
    raised = [t for t, n in zip(limited.time_s, rate, strict=True) if n > 1]
    highest = [t for t, n in zip(limited.time_s, rate, strict=True) if n == max(rate)]
    goodput, acks, rtt = (
        [run.mean(values(run), *LIMITED_S) for run in (stock, limited)]
        for values in (_mbit_s, _acks_s, _rtt_ms)
    )
    bins = [histogram_ms(run.group["rtt_ns"]) for run in (stock, limited)]
    shown = 2 + max(ms for one in bins for ms in one)
    checks = [
        check.within("ack_rate_val starts to grow", 10, raised[0] if raised else None,
                     percent=CLOSELY_PERCENT, basis=Basis(Kind.INJECTED, Origin.AFTER), unit="s",
                     source="fig 10"),
        check.between("ack_rate_val reaches its maximum", 20, 25, highest[0] if raised else None,
                      basis=SHAPE, unit="s", source="fig 10"),
        check.same("ack_rate_val falls after 30, 50 and 80 s", len(DISTURBANCES_S),
                   falls_after(limited.time_s, rate, DISTURBANCES_S), basis=SET, source="fig 10"),
        check.within("gain of the virtual machine",
                     published("ratelimit-vm", "throughput gain").number,
                     gain_percent(goodput[1], goodput[0]), percent=ROUGHLY_PERCENT, basis=COSTS,
                     unit="%", source="figs 11, 12"),
        check.within("ACKs per second, with / without limiting",
                     published("ratelimit-vm", "ACK rate with limiting / unmodified").number,
                     acks[1] / acks[0] if acks[0] else None, percent=ROUGHLY_PERCENT,
                     basis=COSTS, source="fig 17"),
        check.between("RTT mode without limiting", 10, 20, mode_ms(bins[0]), basis=SHAPE,
                      unit="ms", source="fig 15"),
        check.between("RTT mode with limiting", 5, 10, mode_ms(bins[1]), basis=FOLLOWS,
                      unit="ms", source="fig 16"),
        check.within("mean RTT, with / without limiting", 0.5, rtt[1] / rtt[0] if rtt[0] else None,
                     percent=ROUGHLY_PERCENT, basis=NEARLY, source="figs 13, 14"),
    ]  # fmt: skip
    runs = {"without limiting": stock, "with limiting": limited}
    figures = [
        Figure(
            "ratelimit-machine",
            "A virtual machine receives: rate, throughput, RTT and ACKs over time",
            [
                Panel(
                    "time, s",
                    "segments",
                    [
                        _values("ack_rate_val", limited, "rate_segments"),
                        _values("ack_rate_max", limited, "rate_max_segments"),
                    ],
                ),
                _over_time("goodput, Mbit/s", runs, _mbit_s),
                _over_time("RTT, ms", runs, _rtt_ms),
                _over_time("ACKs per second", runs, _acks_s),
            ],
            "figs 10 to 14 and 17",
            columns=2,
        ),
        Figure(
            "ratelimit-histogram",
            "A virtual machine receives: histogram of RTT samples",
            [
                Panel(
                    "RTT, ms",
                    "share of samples",
                    [
                        Series(
                            name,
                            range(shown),
                            [one.get(ms, 0) / sum(one.values()) for ms in range(shown)],
                            "steps",
                        )
                        for name, one in zip(runs, bins, strict=True)
                    ],
                )
            ],
            "figs 15, 16",
        ),
    ]
    return check.grouped("the virtual machine that receives", checks), figures


# --- growth and recovery of the sender's window ---------------------------------------------------


def _unbounded(made: dict[str, Any]) -> dict[str, Any]:
    """The scenario limited by the congestion window instead of the receive buffer."""
    del made["client"]["recv_buffer_max_bytes"]
    return made


def _recovery(runner: Runner) -> tuple[list[Check], list[Figure]]:
    specs = (STOCK, "ratelimit:guard=0,clamp=none")
    made = [_unbounded(scenario(MACHINE, s, LONG_S, series=True)) for s in specs]
    stock, limited = runs = _run(runner, "the sender's window", made)
    late = (LONG_S / 2, LONG_S)
    cwnd, ssthresh = (
        [run.mean(run.series[key], *late) / 1000 for run in runs]
        for key in ("cwnd_bytes", "ssthresh_bytes")
    )
    cuts = [int(run.group["fast_recoveries"]) for run in runs]
    checks = [
        _near(f"{name}, limited / unlimited", pair, ROUGHLY_PERCENT, BESIDE_STOCK,
              source="figs 18, 19")
        for name, pair in (
            ("mean congestion window", cwnd),
            ("mean slow start threshold", ssthresh),
            ("recoveries in 100 s", cuts),
        )
    ]  # fmt: skip
    figure = Figure(
        "ratelimit-window",
        "Congestion window and slow start threshold of the sender (CUBIC)",
        [
            Panel(
                "time, s",
                "kB",
                [
                    Series(key, run.time_s, [n / 1000 for n in run.series[f"{key}_bytes"]])
                    for key in ("cwnd", "ssthresh")
                ],
                title=name,
            )
            for name, run in (("without limiting", stock), ("with limiting", limited))
        ],
        "figs 18, 19",
        columns=2,
    )
    return check.grouped("the sender's window", checks), [figure]


# --- processor load -------------------------------------------------------------------------------


def loaded(spec: str, load_percent: int) -> dict[str, Any]:
    """The virtual machine at the rate that costs `load_percent` of its CPU with one ACK per two
    segments."""
    made = scenario(MACHINE, spec, LOAD_S)
    cpu = made["client"]
    segment_s = (cpu["data_received_ns"] + cpu["ack_sent_ns"] / 2) / SECOND
    wire_bits = 8 * (made["mtu_bytes"] + made["link_overhead_bytes"])
    made["down"]["rate_bps"] = round(load_percent / 100 / segment_s * wire_bits)
    return made


def _load(runner: Runner) -> tuple[list[Check], list[Figure]]:
    specs = (ONE_PER_TWO, DROPPED_80, DROPPED_MOST)
    made = [loaded(spec, load) for load in LOADS for spec in specs]
    runs = _run(runner, "processor load", made)
    saved: dict[str, list[float]] = {DROPPED_80: [], DROPPED_MOST: []}
    share = []
    for i in range(0, len(runs), len(specs)):
        whole, *fewer = (
            float(r.result["client"]["cpu_s_per_gb"]) for r in runs[i : i + len(specs)]
        )
        share.append(100 * float(runs[i].result["client"]["cpu_share"]))
        for spec, one in zip(specs[1:], fewer, strict=True):
            saved[spec].append(100 * (1 - one / whole))
    at = dict(zip(LOADS, saved[DROPPED_80], strict=True))
    quantity = "performance gain at 80% ACK drop"
    low = published("ratelimit-cpu", quantity, "25% CPU load")
    high = published("ratelimit-cpu", quantity, "over 60% CPU load")
    most = published("ratelimit-cpu", "CPU load reduction")
    checks = [
        check.within("load reduction with 80% of ACKs dropped, at 25% load", low.number, at[25],
                     percent=CLOSELY_PERCENT, basis=COSTS, unit="%", source="fig 20"),
        check.within("load reduction with 80% of ACKs dropped, above 60% load", high.number, at[70],
                     percent=CLOSELY_PERCENT, basis=COSTS, unit="%", source="fig 20"),
        check.within("load reduction with nearly all ACKs dropped", most.number,
                     max(saved[DROPPED_MOST]), percent=ROUGHLY_PERCENT, basis=NEARLY, unit="%",
                     source="section 6"),
    ]  # fmt: skip
    figure = Figure(
        "ratelimit-load",
        "Processor time saved against load with one ACK for two segments",
        [
            Panel(
                "load without limiting, %",
                "load reduction, %",
                [
                    Series("published, 80% dropped", [25, 60], [low.number, high.number],
                           "points", published=True),
                    Series("80% dropped (1 for 10)", share, saved[DROPPED_80]),
                    Series("97% dropped (1 for 64)", share, saved[DROPPED_MOST]),
                ],
            )
        ],
        "fig 20",
    )  # fmt: skip
    return check.grouped("processor load", checks), [figure]


# --- beside a real kernel --------------------------------------------------------------------


def _kernel(runner: Runner) -> tuple[list[Check], list[Figure]]:
    made = [scenario(link, spec, SHORT_S, series=True) for link in LINKS for spec in POLICIES]
    runs = _run(runner, "five devices, four receivers", made)
    at = {
        (link, spec): runs[len(POLICIES) * i + j]
        for i, link in enumerate(LINKS)
        for j, spec in enumerate(POLICIES)
    }
    # Once slow start and the losses that end it are over.
    steady = partial(_steady, start_s=SHORT_S / 2, end_s=SHORT_S)
    counts = sorted(KERNEL_STRETCHED)
    stretched = [f"delayed:segments={n},delay_ms=40,clamp=none" for n in counts]
    path = [scenario("wan-10ms", spec, 10) for spec in (STOCK, "ratelimit", *stretched)]
    stock, limited, *fixed = (
        run.goodput_mbit_s for run in _run(runner, "fixed numbers of segments per ACK", path)
    )
    sender, writer, _, reader, _ = LINKS
    checks = [
        check.between("CPU-bound sender: gain over one ACK per two segments", 39, 57,
                      gain_percent(steady(at[sender, "ratelimit"])[0],
                                   steady(at[sender, ONE_PER_TWO])[0]),
                      basis=BESIDE_STOCK, unit="%", source=KERNEL),
        check.between("the same with a writer that competes for the CPU", 39, 57,
                      gain_percent(steady(at[writer, "ratelimit"])[0],
                                   steady(at[writer, ONE_PER_TWO])[0]),
                      basis=BESIDE_STOCK, unit="%", source=KERNEL),
        check.between("CPU-bound receiver: segments per ACK of stock", 38, 95,
                      steady(at[reader, STOCK])[1], basis=BESIDE_STOCK, source=KERNEL),
        check.between("CPU-bound receiver: gain over stock", 0, 3,
                      gain_percent(steady(at[reader, "ratelimit"])[0],
                                   steady(at[reader, STOCK])[0]),
                      basis=BESIDE_STOCK, unit="%", source=KERNEL),
        _near("after losses, 64 segments per ACK: goodput / that of a kernel without the clamp",
              (KERNEL_STRETCHED[64], fixed[-1]), ROUGHLY_PERCENT, BESIDE_STOCK, source=KERNEL),
        check.at_least("after losses: ratelimit / stock", 0.99, limited / stock if stock else None,
                       basis=NO_LOSS, source="spec page 1"),
    ]  # fmt: skip
    figure = Figure(
        "ratelimit-devices",
        "Gain on five devices after slow start, and with fixed numbers of segments per ACK",
        [
            Panel(
                "",
                "goodput, Mbit/s",
                [
                    Series(
                        spec, LINKS, [steady(at[link, spec])[0] for link in LINKS], "bars"
                    )
                    for spec in POLICIES
                ],
            ),
            Panel(
                "",
                "segments per ACK",
                [
                    Series(
                        spec, LINKS, [steady(at[link, spec])[1] for link in LINKS], "bars"
                    )
                    for spec in POLICIES
                ],
            ),
            Panel(
                "segments per ACK",
                "goodput, Mbit/s, of 100",
                [
                    Series(f"{KERNEL}, prototype", counts,
                           [KERNEL_STRETCHED[n] for n in counts], "points"),
                    Series("delayed:segments=N,delay_ms=40", counts, fixed),
                ],
                lines=[("ratelimit", limited)],
            ),
        ],
    )  # fmt: skip
    return check.grouped("beside our runs of a real kernel", checks), [figure]


# --- with costs that were counted ----------------------------------------------------------------


def _counted(runner: Runner) -> tuple[list[Check], list[Figure]]:
    devices = (
        ("the MIPS router that sends", "mips-router", "fig 6",
         published("ratelimit-physical", "throughput gain with ACK rate limiting").number),
        ("the virtual machine that receives", "vm-openwrt", "figs 11, 12",
         published("ratelimit-vm", "throughput gain").number),
    )  # fmt: skip
    specs = (ONE_PER_TWO, "ratelimit:guard=0,clamp=none")
    made = [scenario(link, s, SHORT_S, series=True) for _, link, *_ in devices for s in specs]
    runs = _run(runner, "costs counted", made)
    goodput = [_steady(run, SHORT_S / 2, SHORT_S)[0] for run in runs]
    checks = [
        check.within(f"costs counted: gain of {name}", gain,
                     gain_percent(goodput[2 * i + 1], goodput[2 * i]),
                     percent=ROUGHLY_PERCENT, basis=COUNTED, unit="%", source=source)
        for i, (name, _, source, gain) in enumerate(devices)
    ]  # fmt: skip
    return check.grouped("with costs that were counted", checks), []


def _steady(run: FlowRun, start_s: float, end_s: float) -> tuple[float, float]:
    """Goodput in Mbit/s and full segments for each ACK over a part of the run."""
    goodput, acks = (run.mean(v, start_s, end_s) for v in (run.mbit_s, run.acks_s))
    segments_s = goodput * 1e6 / 8 / SEGMENT_BYTES
    return goodput, segments_s / acks if acks else 0.0


SEGMENT_BYTES = 1448  # Ethernet, timestamps


def run(runner: Runner) -> Outcome:
    """All parts; about half a minute on two cores."""
    parts = [part(runner) for part in (_device, _machine, _recovery, _load, _kernel, _counted)]
    return Outcome(
        checks=[c for checks, _ in parts for c in checks],
        figures=[f for _, figures in parts for f in figures],
        notes=(
            f"`{DEVICE_POLICY}` and `{MACHINE_POLICY}`: guard=0 is the paper's algorithm; its "
            "start and its interval follow from the published curves.",
            f"The drop after {DROP_S} s and the short transfers on the virtual machine after "
            f"{', '.join(map(str, DISTURBANCES_S))} s are injected: the model does not cause them.",
        ),
    )


EXPERIMENT = Experiment(
    name="ratelimit",
    title="ACK rate limiting on CPU-bound devices",
    source="Statkus, Paulikas, Krukonis, Electronics 10(6), 2021; spec page 1",
    question="How much does a slow device gain from fewer ACKs, its own or its peer's, and when "
    "does it gain nothing?",
    run=run,
    band=band,
    minutes=2,
)
