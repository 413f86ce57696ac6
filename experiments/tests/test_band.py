# SPDX-License-Identifier: MIT
"""Headlines over a band: every setting counts, by the end of its interval that is against it."""

from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

from ackwise.lab.machine import Kernel
from ackwise.results.stats import Estimate
from ackwise_experiments import band, changes, documents
from ackwise_experiments.band import Headline
from ackwise_experiments.bottleneck import band as bottleneck
from ackwise_experiments.bottleneck import lab as bottleneck_lab
from ackwise_experiments.bottleneck.scenario import LINUX, SIMULATOR
from ackwise_experiments.bottleneck.story import STEPS, as_case
from ackwise_experiments.check import Basis, Kind, Origin
from ackwise_experiments.deadlock import band as deadlock
from ackwise_experiments.deadlock import lab_band as lab_deadlock
from ackwise_experiments.deadlock.transfers import ObservedTransfer
from ackwise_experiments.dynamic import band as dynamic
from ackwise_experiments.dynamic import lab_band as lab_dynamic
from ackwise_experiments.dynamic import lab_checks
from ackwise_experiments.dynamic.lab_runs import LabSize
from ackwise_experiments.dynamic.policies import CostPoint, LimitedPolicy, Size
from ackwise_experiments.experiment import Outcome
from ackwise_experiments.figure import Grid, drawn
from ackwise_experiments.lab_runner import LabRunner
from ackwise_experiments.ratelimit import band as ratelimit
from ackwise_experiments.ratelimit import devices
from ackwise_experiments.ratelimit import lab_band as lab_ratelimit
from ackwise_experiments.ratelimit.lab_runs import KernelRun
from ackwise_experiments.runner import Runner
from ackwise_experiments.separation import lab_band as lab_separation

BASIS = Basis(Kind.PREDICTED, Origin.ASKED)
GAIN = Headline("gain", 45, 75, BASIS, "%")


def outcome(headline: Headline, *values: Estimate) -> Outcome:
    found = {f"setting {n}": [value] for n, value in enumerate(values)}
    return band.shown("test", band.bands([headline], found))


def failed(*values: Estimate) -> list[str]:
    return [one.name for one in outcome(GAIN, *values).checks if not one.passed]


def test_one_setting_beyond_a_bound_fails_the_band() -> None:
    fine = Estimate(60, 1)
    assert failed(fine, Estimate(74, 1), Estimate(46, 1)) == []
    assert failed(fine, Estimate(74, 1.1)) == ["gain, highest of the band"]
    assert failed(fine, Estimate(46, 1.1)) == ["gain, lowest of the band"]
    assert failed(fine, Estimate(44, None), fine) == ["gain, lowest of the band"]


def test_a_setting_that_could_not_be_measured_fails_the_band_and_is_not_drawn() -> None:
    unknown = Estimate(inf, None)
    found = outcome(GAIN, Estimate(60, 2), unknown)
    assert [one.passed for one in found.checks] == [False, True]
    assert "60 % (setting 0) to 60 % (setting 0)" in found.notes[0]
    assert "over 1 of 2 settings" in found.notes[0]
    (bars,) = band.Band(GAIN, {"a": Estimate(60, 2), "b": unknown}).panel().series
    assert (bars.x, bars.y, bars.spread) == (["a"], [60], [2])
    assert outcome(GAIN, unknown, unknown).notes[0].endswith("not measured in any of 2 settings.")


def test_a_headline_has_a_check_for_each_bound() -> None:
    least = Headline("share", 90, None, BASIS)
    (only,) = outcome(least, Estimate(99, 1)).checks
    assert (only.name, only.measured, only.group) == ("share, lowest of the band", 98, band.GROUP)


def test_the_table_marks_the_settings_that_are_beyond() -> None:
    made = outcome(GAIN, Estimate(60, 1), Estimate(80, 1))
    (figure,) = made.figures
    *_, table = figure.panels
    assert isinstance(table, Grid)
    assert table.classes == [[""], ["beyond the bound"]]
    assert b"at most 75" in drawn(figure)
    assert made.notes == ["gain: 60 % (setting 0) to 80 % (setting 1) over 2 settings."]


def test_each_setting_is_run_with_its_change_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "simulate", lambda made, cancel=None: made["duration_ns"])
    settings = {"twice": changes.twice_as_long}
    scenarios: list[dict[str, Any]] = [{"duration_ns": 3}, {"duration_ns": 4}]
    found = band.measured(
        Runner(workers=1), settings, scenarios, lambda runs: [Estimate(sum(runs), None)]
    )
    assert {name: [one.mean for one in values] for name, values in found.items()} == {
        band.AS_RUN: [7],
        "twice": [14],
    }
    assert scenarios == [{"duration_ns": 3}, {"duration_ns": 4}]


def test_what_a_change_leaves_as_it_is_is_not_run_again() -> None:
    ran = []

    def run(items: list[int]) -> list[int]:
        ran.extend(items)
        return [10 * one for one in items]

    variants = {"even ones more": lambda n: n if n % 2 else n + 1, "none": lambda n: n}
    found = band.over(variants, [2, 3], lambda made: [Estimate(one, None) for one in made], run)
    assert ran == [2, 3, 3]
    values = {name: [one.mean for one in some] for name, some in found.items()}
    assert values == {band.AS_RUN: [20, 30], "even ones more": [30, 30], "none": [20, 30]}


def kernel_run(mbit_s: float, acks: int, p99_ms: float = 1.0) -> KernelRun:
    return KernelRun(mbit_s, acks, 1.0, None, p99_ms)


def test_the_worst_sender_and_link_are_what_a_band_of_fewer_acks_reads() -> None:
    stock = kernel_run(100, 1000)
    clean = [kernel_run(100, 100), kernel_run(98, 150), kernel_run(100, 250)]
    short = [kernel_run(97, 990), kernel_run(100, 1010), kernel_run(100, 1000)]
    answered = [kernel_run(1, 1, 1.000_256), kernel_run(1, 1, 0.9)]
    found = lab_ratelimit._read(
        [one for run in (*clean, *short, *answered) for one in (stock, run)]
    )
    assert [one.mean for one in found] == pytest.approx([75, 0.98, -1, 0.97, 256])


def test_stalls_are_counted_by_receiver_and_mtu() -> None:
    silent = ObservedTransfer(1, 1, 0, 0, 1, 1, 0, (), ())
    stalls = replace(silent, stalls_late=2)
    where = {name: [i for i, (_, spec) in enumerate(lab_deadlock.WANTED) if spec == name]
             for name in ("linux", "a3")}  # fmt: skip
    assert [len(some) for some in where.values()] == [105, 117]

    def read(stalling: list[int]) -> list[float]:
        made = [stalls if i in stalling else silent for i in range(len(lab_deadlock.WANTED))]
        return [one.mean for one in lab_deadlock._stalls(made)]

    # the pairs are sorted by MTU, 35 of each
    assert read([*where["linux"][:40], *where["linux"][-1:]]) == [1, 0]
    assert read([*where["linux"][:70], where["a3"][-1]]) == [0, 1]


def test_the_dearest_of_both_rtts_is_what_a_band_of_costs_reads() -> None:
    def cost(rtt: str, case: LimitedPolicy, rho: int) -> CostPoint:
        mean = {lab_checks.STOCK_CASE: 9.0, lab_checks.GREEDY_CASE: 1.8}.get(case, 1.5)
        far = rtt == "100 ms"
        return CostPoint(mean + far * (rho == 900) / 10, 0.01, mean + far / 10, mean, rho == 900)

    found = lab_dynamic._costs([cost(*one) for one in lab_dynamic.CASES])
    assert [one.high for one in found] == pytest.approx([1.51, 1.61, 1.9, 6.0])
    size = LabSize(request_bytes=(1000,), requests=2)
    times = [[1.0, 1.01], [2.0, 2.02], [1.0, 1.01], [1.0, 1.01]]  # by RTT: dynamic, then linux
    (gain,) = lab_dynamic._gain(size, times)
    assert gain.mean == pytest.approx(100)


class RecordedError(Exception):
    """The settings and what would have been run."""


def recorded(variants: Any, items: Any, _read: Any, _run: Any) -> Any:
    """In the place of `band.over`."""
    raise RecordedError(variants, items)


ON_LINUX = LabRunner(Kernel(Path("linux"), Path("guest"), "6.12", "key", has_policies=True))


@pytest.mark.parametrize(
    "run",
    [
        lambda: ratelimit.band(Runner()),
        lambda: deadlock.band(Runner()),
        lambda: dynamic.band(Runner(), Size(ratios=(500,))),
        lambda: lab_separation.band(ON_LINUX),
        lambda: lab_ratelimit.band(ON_LINUX),
        lambda: lab_deadlock.band(ON_LINUX),
        lambda: lab_dynamic.band(ON_LINUX, LabSize()),
    ],
)
def test_each_setting_of_a_band_is_another_experiment(
    monkeypatch: pytest.MonkeyPatch, run: Any
) -> None:
    for module in (band, lab_dynamic):
        monkeypatch.setattr(module, "over", recorded)
    with pytest.raises(RecordedError) as caught:
        run()
    variants, items = caught.value.args
    parts = {name: [change(one) for one in items] for name, change in variants.items()}
    if "spacing -20%" in parts:  # windows bind where throughput is measured
        parts = {name: part for name, part in parts.items() if not name.startswith("windows")}
    made = [list(items), *parts.values()]
    assert len(made) > 4
    assert all(one != other for i, one in enumerate(made) for other in made[:i])


def test_a_path_that_is_the_same_both_ways_is_changed_once() -> None:
    pipe = {"delay_ns": 1000}
    made = changes.changed({"down": pipe, "up": pipe}, changes.delays(0.5))
    assert made == {"down": {"delay_ns": 500}, "up": {"delay_ns": 500}}


def test_twice_as_long_stretches_the_schedule_too() -> None:
    (made, _), (machine, _) = devices.device_scenarios(), devices.machine_scenarios()
    for one in (made, machine):
        longer = changes.changed(one, ratelimit.SETTINGS["twice as long"])
        assert longer["duration_ns"] == 2 * one["duration_ns"]
        starts = [
            [part.get("start_ns", 0) for part in (*run["down"].get("outages", ()), *run["groups"])]
            for run in (one, longer)
        ]
        assert any(starts[0])
        assert starts[1] == [2 * start for start in starts[0]]


@pytest.mark.parametrize(
    ("world", "variants"),
    [(SIMULATOR, bottleneck.VARIANTS), (LINUX, bottleneck_lab.VARIANTS)],
)
def test_each_setting_of_the_story_is_another_story(world: str, variants: Any) -> None:
    stories = [
        [as_case(n, variant(step), world).scenario for n, step in enumerate(STEPS, 1)]
        for variant in (lambda step: step, *variants.values())
    ]
    assert all(one != other for i, one in enumerate(stories) for other in stories[:i])
    rtts = [story[0]["down"]["delay_ns"] for story in stories[:3]]
    assert rtts[1] < rtts[0] < rtts[2]
