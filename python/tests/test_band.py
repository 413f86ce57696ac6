# SPDX-License-Identifier: MIT
"""Headlines over a band: every setting counts, by the end of its interval that is against it."""

from typing import Any

import pytest

from ackwise import engine
from ackwise.reproduce import band, changes
from ackwise.reproduce.band import Headline
from ackwise.reproduce.bottleneck import band as bottleneck
from ackwise.reproduce.bottleneck.scenario import SIMULATOR
from ackwise.reproduce.bottleneck.story import STEPS, as_case
from ackwise.reproduce.check import Basis, Kind, Origin
from ackwise.reproduce.deadlock import band as deadlock
from ackwise.reproduce.dynamic import band as dynamic
from ackwise.reproduce.dynamic.policies import Size
from ackwise.reproduce.experiment import Outcome
from ackwise.reproduce.figure import Grid, drawn
from ackwise.reproduce.ratelimit import band as ratelimit
from ackwise.reproduce.ratelimit import devices
from ackwise.reproduce.runner import Runner
from ackwise.reproduce.separation import lab_band as lab_separation
from ackwise.results.stats import Estimate

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
    monkeypatch.setattr(engine, "simulate", lambda made, cancel=None: made["duration_ns"])
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


class Recorded(Exception):
    """What would have been run."""


class Recorder(Runner):
    """Runs nothing: the scenarios of each call, whole batches."""

    def __init__(self) -> None:
        super().__init__(workers=1)
        self.batches: list[list[dict[str, Any]]] = []

    def simulate(self, _label: str, scenarios: Any, _take: Any = None) -> list[Any]:
        """As the real one, up to the run."""
        self.batches.append(list(scenarios))
        raise Recorded


@pytest.mark.parametrize(
    ("run", "settings"),
    [
        (ratelimit.band, ratelimit.SETTINGS),
        (deadlock.band, deadlock.SETTINGS),
        (lab_separation.band, lab_separation.SETTINGS),
        (lambda runner: dynamic.band(runner, Size(ratios=(500,))), dynamic.SETTINGS),
    ],
)
def test_each_setting_of_a_band_is_another_experiment(run: Any, settings: band.Settings) -> None:
    recorder = Recorder()
    with pytest.raises(Recorded):
        run(recorder)
    (made,) = recorder.batches
    each = len(made) // (1 + len(settings))
    parts = [made[i : i + each] for i in range(0, len(made), each)]
    assert len(parts) == 1 + len(settings)
    if settings is dynamic.SETTINGS:  # windows bind where throughput is measured
        parts = [part for name, part in zip([band.AS_RUN, *settings], parts, strict=True)
                 if not name.startswith("windows")]  # fmt: skip
    assert all(one != other for i, one in enumerate(parts) for other in parts[:i])


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


def test_each_setting_of_the_story_is_another_story() -> None:
    stories = [
        [as_case(n, variant(step), SIMULATOR).scenario for n, step in enumerate(STEPS, 1)]
        for variant in bottleneck.VARIANTS.values()
    ]
    assert all(one != other for i, one in enumerate(stories) for other in stories[:i])
    rtts = [story[0]["down"]["delay_ns"] for story in stories[:3]]
    assert rtts[1] < rtts[0] < rtts[2]
