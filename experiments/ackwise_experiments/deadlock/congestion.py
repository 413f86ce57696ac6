# SPDX-License-Identifier: MIT
"""Deadlock, third part: A3 and CSA3 through injected congestion (figures 15.4 to 15.9).

The paper prints curves without numbers and describes in words what they show. Those words are the
checks. The congestions and the numbers for most words are ours, chosen with exploratory runs in
view.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ackwise import plans
from ackwise.results.stats import mean_of
from ackwise_experiments import check, documents
from ackwise_experiments.check import Basis, Check, Kind, Origin
from ackwise_experiments.figure import Figure, Panel, Series
from ackwise_experiments.runner import Runner

PLAN = "congestion"  # path, endpoints and policies
A3, CSA3 = "a3", "csa3"
NS = 10**9
DURATION_S = 2500
# The paper: three congestions, the first near 500 s, and none from 2000 s on.
STARTS_S = (500, 1000, 1500)
CALM_S = 2000
LENGTH_S = 2.0  # beyond a timeout of 1 s: the window falls to one segment
RUNS = 20
SHIFT_S = 0.37  # between runs, so that congestions hit each at another point

BEFORE_S = 100  # mean throughput before a congestion
RESTORED_S = 250  # by then it is over, or the transfer does not recover
DROP_S = 10
SHOWN_BIN_S = 5

# Chosen with exploratory runs in view.
SMALL_PERCENT = 3.0  # "very small throughput drops", over the 1500 s that hold them
SAME_PERCENT = 1.0  # "overlapped"
DROPS_TO_PERCENT = 70.0  # "drops significantly"
RECOVERED_PERCENT = 90.0
PENALTY_PERCENT = 1.0  # "does not impose any penalty"
MUCH_FASTER = 0.5  # "recover from throughput drop much faster": at most half of the time
OUTAGE = Basis(Kind.INJECTED, Origin.AFTER)  # mostly the outage itself
REACTION = Basis(Kind.PREDICTED, Origin.AFTER)
ORDER = Basis(Kind.PREDICTED, Origin.PUBLISHED)  # which of two is larger


@dataclass(frozen=True)
class BufferSetting:
    """Buffers in KiB and the region of table 15.3 where the paper places them."""

    send_kib: int
    recv_kib: int
    region: str

    @property
    def name(self) -> str:
        """The setting in the paper's notation."""
        return f"{self.send_kib}/{self.recv_kib} KB"


SMALL = BufferSetting(4, 4, "deadlock-free")
LARGE = BufferSetting(52, 52, "II")
MIDDLE = BufferSetting(24, 24, "I")
UNEQUAL = BufferSetting(24, 48, "I")
SETTINGS = (SMALL, LARGE, MIDDLE, UNEQUAL)


@dataclass(frozen=True)
class ThroughputCurve:
    """Bytes delivered in each second of one run, and where its congestions began."""

    bytes_per_s: Sequence[int]
    starts_s: Sequence[float]

    def between(self, begin_s: float, end_s: float) -> float:
        """Mean throughput in bytes a second."""
        begin, end = int(begin_s), int(end_s)
        return sum(self.bytes_per_s[begin:end]) / (end - begin)


def _scenario(setting: BufferSetting, policy: str, run: int, congested: bool) -> dict[str, Any]:
    plan = plans.load_plan(PLAN)
    chosen = next(p for p in plan.policies if p.name == policy)
    made = documents.scenario_of(
        plan.links[0], plan.workloads[0], chosen, run + 1, series_interval_ns=NS
    )
    group = made["groups"][0]
    group["sender"]["send_buffer_bytes"] = setting.send_kib * 1024
    group["receiver"]["recv_buffer_bytes"] = setting.recv_kib * 1024
    if congested:
        outages = [
            {"start_ns": round(s * NS), "length_ns": round(LENGTH_S * NS)} for s in _starts(run)
        ]
        for side in ("down", "up"):
            made[side] = copy.deepcopy(made[side]) | {"outages": outages}
    return made


def _starts(run: int) -> list[float]:
    return [start + run * SHIFT_S for start in STARTS_S]


def _curve(result: dict[str, Any], run: int) -> ThroughputCurve:
    series = result["groups"][0]["flows"][0]["series"]
    # The first point is of time 0.
    return ThroughputCurve(series["delivered_bytes"][1 : DURATION_S + 1], _starts(run))


def _lost_s(calm: ThroughputCurve, congested: ThroughputCurve, start_s: float) -> float:
    """Seconds of full throughput lost to a congestion, its own length included."""
    lost = calm.between(start_s, start_s + RESTORED_S)
    lost -= congested.between(start_s, start_s + RESTORED_S)
    return lost * RESTORED_S / calm.between(start_s - BEFORE_S, start_s)


Curves = dict[tuple[BufferSetting, str, bool], list[ThroughputCurve]]


def _curves(runner: Runner) -> Curves:
    kinds = [(s, p, c) for s in SETTINGS for p in (A3, CSA3) for c in (False, True)]
    jobs = [(kind, run) for kind in kinds for run in range(RUNS if kind[2] else 1)]
    results = runner.simulate(
        f"{PLAN}, with outages and other buffer sizes", [_scenario(*kind[:2], run, kind[2])
                                                    for kind, run in jobs]
    )  # fmt: skip
    found: Curves = {kind: [] for kind in kinds}
    for (kind, run), result in zip(jobs, results, strict=True):
        found[kind].append(_curve(result, run))
    return found


def _lost(curves: Curves, setting: BufferSetting, policy: str) -> list[float]:
    """Seconds lost to a congestion, mean of each run."""
    calm = curves[setting, policy, False][0]
    return [
        sum(_lost_s(calm, c, s) for s in c.starts_s) / len(c.starts_s)
        for c in curves[setting, policy, True]
    ]


def _share(curves: Curves, setting: BufferSetting, policy: str, begin: float, end: float) -> float:
    """Throughput with congestion relative to that without, in percent, mean of the runs."""
    calm = curves[setting, policy, False][0].between(begin, end)
    runs = [c.between(begin, end) for c in curves[setting, policy, True]]
    return 100 * sum(runs) / len(runs) / calm


def _differing(curves: Curves, setting: BufferSetting, policy: str, end: int) -> int:
    """Seconds in which any run with congestion differs from the one without."""
    calm = curves[setting, policy, False][0].bytes_per_s[:end]
    return sum(
        calm[i] != c.bytes_per_s[i] for c in curves[setting, policy, True] for i in range(end)
    )


def _around(curves: Curves, setting: BufferSetting, policy: str, begin: int, end: int) -> float:
    """The ratio for some time after the start of each congestion, lowest of the three."""
    calm = curves[setting, policy, False][0]
    shares = []
    for i in range(len(STARTS_S)):
        runs = [
            c.between(c.starts_s[i] + begin, c.starts_s[i] + end)
            / calm.between(c.starts_s[i] + begin, c.starts_s[i] + end)
            for c in curves[setting, policy, True]
        ]
        shares.append(100 * sum(runs) / len(runs))
    return min(shares)


def _checks(curves: Curves) -> list[Check]:
    lost = {(s, p): _lost(curves, s, p) for s in SETTINGS for p in (A3, CSA3)}
    first = STARTS_S[0]
    made = [
        check.same(
            "4/4 KB, A3: seconds that differ from the uncongested run, before the first congestion",
            0, _differing(curves, SMALL, A3, first),
            basis=Basis(Kind.IDENTITY, Origin.PUBLISHED), published="overlapped",
            source="figure 15.4",
        ),
        check.at_least(
            "4/4 KB, A3: throughput relative to the uncongested run, 500 to 2000 s",
            100 - SMALL_PERCENT, _share(curves, SMALL, A3, first, CALM_S), basis=OUTAGE,
            published="very small drops", unit="%", source="figure 15.4",
        ),
        check.between(
            "4/4 KB, A3: throughput relative to the uncongested run, from 2000 s on",
            100 - SAME_PERCENT, 100 + SAME_PERCENT,
            _share(curves, SMALL, A3, CALM_S, DURATION_S), basis=REACTION,
            published="overlapped", unit="%", source="figure 15.4",
        ),
        check.at_most(
            "52/52 KB, A3: relative throughput in the first 10 s of each congestion",
            DROPS_TO_PERCENT, _around(curves, LARGE, A3, 0, DROP_S), basis=OUTAGE,
            published="drops significantly", unit="%", source="figure 15.5",
        ),
    ]  # fmt: skip
    for setting, figure in ((LARGE, "15.5"), (MIDDLE, "15.6")):
        made.append(
            check.at_least(
                f"{setting.name}, A3: relative throughput before the next congestion",
                RECOVERED_PERCENT,
                _around(curves, setting, A3, RESTORED_S, STARTS_S[1] - STARTS_S[0]),
                basis=REACTION,
                unit="%",
                source=f"figure {figure}",
            )
        )
    later = mean_of([m - x for m, x in zip(lost[MIDDLE, A3], lost[LARGE, A3], strict=True)])
    made.append(
        check.at_most(
            "A3: time lost to a congestion, 24/24 minus 52/52 KB, upper end of the CI",
            0, later.high, basis=ORDER, published="less", unit="s", source="figure 15.6",
        )
    )  # fmt: skip
    gains = {}
    for setting, figure in ((LARGE, "15.7"), (MIDDLE, "15.8"), (UNEQUAL, "15.9")):
        pairs = zip(lost[setting, A3], lost[setting, CSA3], strict=True)
        gains[setting] = mean_of([a - c for a, c in pairs]).mean
        made += [
            check.at_most(
                f"{setting.name}: time lost with CSA3 / with A3, upper end of the CI",
                MUCH_FASTER, _upper_ratio(lost[setting, CSA3], lost[setting, A3]),
                basis=REACTION, published="recovers much faster", source=f"figure {figure}",
            ),
            check.at_least(
                f"{setting.name}: throughput of CSA3 relative to A3, whole run",
                100 - PENALTY_PERCENT,
                100 * _whole(curves, setting, CSA3) / _whole(curves, setting, A3),
                basis=REACTION, published="no penalty", unit="%", source=f"figure {figure}",
            ),
        ]  # fmt: skip
    made.append(
        check.same(
            "buffers with which CSA3 saves most", LARGE.name,
            max(gains, key=lambda s: gains[s]).name, basis=ORDER, source="section 15.4.2",
        )
    )  # fmt: skip
    return check.grouped("congestion", made)


def _upper_ratio(values: Sequence[float], base: Sequence[float]) -> float:
    """Upper end of the interval of the mean of `values`, relative to the mean of `base`; the two
    are paired by run."""
    whole = sum(base) / len(base)
    return mean_of([v / whole for v in values]).high


def _whole(curves: Curves, setting: BufferSetting, policy: str) -> float:
    runs = [c.between(0, DURATION_S) for c in curves[setting, policy, True]]
    return sum(runs) / len(runs)


def _series(label: str, curve: ThroughputCurve, begin: int, end: int, width: int) -> Series:
    steps = range(begin, end - width + 1, width)
    kib = [curve.between(t, t + width) / 1024 for t in steps]
    return Series(label, [float(t) for t in steps], kib, "steps")


def _figures(curves: Curves) -> list[Figure]:
    def panels(setting: BufferSetting, shown: Sequence[tuple[str, str, bool]]) -> list[Panel]:
        first = STARTS_S[0]
        return [
            Panel(
                "time, s",
                "throughput, KiB/s",
                [_series(label, curves[setting, p, c][0], *cut) for label, p, c in shown],
                f"S/R {setting.name}, per {cut[2]} s",
            )
            for cut in ((0, DURATION_S, SHOWN_BIN_S), (first - 5, first + 15, 1))
        ]

    calm = (("A3", A3, False), ("A3 under congestion", A3, True))
    both = (("A3 under congestion", A3, True), ("CSA3 under congestion", CSA3, True))
    return [
        Figure(
            "deadlock-congestion-a3",
            "A3 with and without congestion",
            [p for s in (SMALL, LARGE, MIDDLE) for p in panels(s, calm)],
            "figures 15.4 to 15.6",
            columns=2,
        ),
        Figure(
            "deadlock-congestion-csa3",
            "A3 and CSA3 under congestion",
            [p for s in (LARGE, MIDDLE, UNEQUAL) for p in panels(s, both)],
            "figures 15.7 to 15.9",
            columns=2,
        ),
    ]


def run(runner: Runner) -> tuple[list[Check], list[Figure], list[str]]:
    """Checks, figures and notes."""
    curves = _curves(runner)
    notes = []
    for setting in SETTINGS:
        lost = []
        for policy in (A3, CSA3):
            found = mean_of(_lost(curves, setting, policy))
            lost.append(f"{policy} {found.mean:.2f} ±{found.ci95 or 0:.2f} s")
        notes.append(
            f"S/R {setting.name}: total time lost to a congestion of {LENGTH_S:g} s: "
            + ", ".join(lost)
        )
    return _checks(curves), _figures(curves), notes
