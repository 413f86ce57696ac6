# SPDX-License-Identifier: MIT
"""`ackwise reproduce`: what a check says, what is written where, the same each time."""

import json
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import Ackwise

import ackwise_experiments as reproduce
from ackwise import plans
from ackwise.plans import policy
from ackwise_experiments import check, document, reference, table, tally
from ackwise_experiments.check import Basis, Kind, Origin
from ackwise_experiments.experiment import Experiment, Outcome
from ackwise_experiments.figure import Figure, Grid, Panel, Series, drawn
from ackwise_experiments.runner import Runner

FIGURE = Figure(
    "sample",
    "Two curves <and> a grid",
    [
        Panel(
            "time, s",
            "goodput, Mbit/s",
            [
                Series("ours & theirs", [0, 1, 2], [1.0, 2.0, 1.5], spread=[0.1, 0.1, 0.2]),
                Series("published", [0, 1, 2], [1.1, 2.1, 1.4], published=True),
                Series("points", [0, 1], [0.5, 0.7], "points", spread=[0.1, 0.1]),
            ],
            lines=[("bound", 1.58)],
        ),
        Panel("case", "kbit/s", [Series("a", ["x", "y"], [1, 2], "bars"),
                                 Series("b", ["x", "y"], [2, 1], "bars", spread=[0.1, 0.2])]),
        Grid("S", "R", ["4", "8"], ["4", "8"], [["1", "2"], ["3", "4"]], [["free", ""], ["", "I"]]),
    ],
)  # fmt: skip


HELD = Basis(Kind.PREDICTED, Origin.ASKED)
PRINTED = Basis(Kind.PREDICTED, Origin.PUBLISHED)
OWN = Basis(Kind.OWN, Origin.AFTER)


def test_a_check_says_whether_and_how_far() -> None:
    assert check.within("a", 100, 109.9, percent=10, basis=HELD).passed
    far = check.within("a", 100, 111, percent=10, basis=HELD)
    assert not far.passed
    assert far.from_published_percent == pytest.approx(11)
    assert check.between("a", 5, 10, 10, basis=HELD).passed
    above = check.between("a", 5, 10, 12, basis=HELD)
    assert not above.passed
    assert above.beyond_allowed_percent == pytest.approx(20)
    below = check.between("a", 5, 10, 4, basis=HELD)
    assert not below.passed
    assert below.beyond_allowed_percent == pytest.approx(-20)
    assert check.at_most("a", 1.58, 1.58, basis=HELD).passed
    assert not check.at_most("a", 1.58, 1.59, basis=HELD).passed
    assert check.at_least("a", 93, 93, basis=HELD).passed
    assert not check.at_least("a", 93, 92.9, basis=HELD).passed
    assert check.same("a", "II", "II", basis=HELD).passed
    assert not check.same("a", "II", None, basis=HELD).passed


def test_distances_from_the_published_figure_and_from_the_bound_are_two_columns() -> None:
    missed = check.at_most("speed", 340.5, 347, published=250, basis=HELD, unit="kbit/s")
    assert table.HEADS[1:-1] == (
        "published", "measured", "from published", "allowed", "bound", "kind",
    )  # fmt: skip
    assert table.cells(missed) == (
        "speed, kbit/s", "250", "347", "+38.8%", "≤ 340.5 (missed by 1.9%)", "asked", "predicted",
        "FAIL",
    )  # fmt: skip
    kept = check.at_most("speed", 350, 347, published=250, basis=HELD)
    assert table.cells(kept)[1:5] == ("250", "347", "+38.8%", "≤ 350")
    assert kept.beyond_allowed_percent == 0


def test_only_what_is_published_stands_under_published() -> None:
    def row(one: check.Check) -> tuple[str, ...]:
        return table.cells(one)[1:5]

    assert row(check.at_least("a", 90, 91, basis=HELD)) == ("-", "91", "-", "≥ 90")
    assert row(check.at_least("a", 90, 91, published="more", basis=HELD))[0] == "more"
    assert row(check.between("a", 19, 20, 19.5, basis=HELD))[0] == "-"
    assert row(check.between("a", 19, 20, 19.5, basis=PRINTED))[0] == "19 to 20"
    assert row(check.between("a", 50, 52, 51, published="51", basis=PRINTED))[0] == "51"
    assert row(check.same("a", 64, 61, basis=HELD)) == ("-", "61", "-", "= 64")
    assert row(check.same("a", "II", "II", basis=PRINTED)) == ("II", "II", "-", "= II")


def test_our_own_run_never_stands_under_published() -> None:
    assert check.between("a", 0.9, 1.1, 1.0, basis=OWN).published is None
    with pytest.raises(ValueError, match="a run of ours stands under published"):
        check.within("a", 180.6, 180.6, percent=1, basis=OWN)
    with pytest.raises(ValueError, match="a run of ours stands under published"):
        check.at_most("a", 1, 1, published="FIFO: 484", basis=OWN)
    with pytest.raises(ValueError, match="a run of ours stands under published"):
        check.same("a", 560, 560, basis=Basis(Kind.OWN, Origin.PUBLISHED))


def test_predictions_are_counted_first_and_apart_from_the_rest() -> None:
    fitted = Basis(Kind.FITTED, Origin.ASKED)
    checks = [
        check.same("a", 1, 1, basis=OWN),
        check.same("b", 1, 1, basis=fitted),
        check.same("c", 1, 2, basis=fitted),
        check.same("d", 1, 2, basis=HELD),
        check.same("e", 1, 1, basis=PRINTED),
    ]
    assert tally.summary(checks) == (
        "predicted: 1 of 2 pass; apart from that: fitted 1 of 2, own 1 of 1"
    )
    assert tally.summary(checks[:1]) == "nothing is predicted; apart from that: own 1 of 1"
    assert tally.summary(checks[3:]) == "predicted: 1 of 2 pass"
    kinds = [row[:6] for row in tally.rows(checks)]
    assert kinds == [
        ("predicted", "1 of 2", "1 of 1", "0 of 1", "-", "-"),
        ("fitted", "1 of 2", "-", "1 of 2", "-", "-"),
        ("own", "1 of 1", "-", "-", "-", "1 of 1"),
    ]


@pytest.mark.parametrize("measured", [None, float("nan"), float("inf")])
def test_what_was_not_measured_never_passes(measured: float | None) -> None:
    for one in (
        check.within("a", 1, measured, percent=1e9, basis=HELD),
        check.between("a", -1e9, 1e9, measured, basis=HELD),
        check.at_most("a", 1e9, measured, basis=HELD),
        check.at_least("a", -1e9, measured, basis=HELD),
    ):
        assert not one.passed
        assert one.measured is None


def test_published_figures_are_complete() -> None:
    assert len(reference.table_15_1()) == len(reference.table_15_2()) == 64
    locked = {pair for pair, cell in reference.table_15_1().items() if cell.deadlock}
    assert locked == {pair for pair, cell in reference.table_15_2().items() if cell.deadlock}
    # the source: shaded where the throughput is below 1 Mbit/s
    assert all(
        cell.deadlock == (cell.throughput_mbit_s < 1) for cell in reference.table_15_1().values()
    )
    up = reference.published("separation", "uplink share used by ACKs")
    assert (up.number, up.unit) == (11.5, "percent")
    with pytest.raises(KeyError):
        reference.published("separation", "nothing of the kind")


def test_a_figure_is_the_same_bytes_and_well_formed() -> None:
    picture = drawn(FIGURE)
    assert picture == drawn(FIGURE)
    root = ET.fromstring(picture)  # noqa: S314 - our own
    texts = "".join(root.itertext())
    for word in ("ours & theirs", "published", "goodput, Mbit/s", "bound", "free"):
        assert word in texts


def test_a_figure_in_png_is_png_and_the_same_bytes() -> None:
    picture = drawn(FIGURE, "png")
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    assert picture == drawn(FIGURE, "png")


def sample(runner: Runner) -> Outcome:
    one = plans.build(
        title="sample", source="", file="", links=[plans.load_link("lan-10m")],
        workloads=[plans.load_workload("bulk")], policies=policy.parse_all(["every"], "test"),
        baseline="linux", runs=1, seed=1, where="test",
    )  # fmt: skip
    found = runner.compare(plans.with_duration(one, 10**8))
    cell = found.tables[0].cells[0]
    rate = cell.runs[0].values["goodput_bps"]
    assert rate is not None
    checks = [
        check.between("rate", 1e6, 1e7, rate, basis=HELD, unit="bit/s", source="table 1"),
        check.same("class <I>", "I", "II", basis=PRINTED, source="table 2"),
    ]
    return Outcome(check.grouped("rates & classes", checks), [FIGURE], ["a <note>"])


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> Experiment:
    experiment = Experiment(
        "sample", "A sample", "nobody, 1999", "Does it work?", sample, minutes=1
    )
    monkeypatch.setattr(reproduce, "NAMES", {"simulator": ("sample",), "linux": ()})
    module = ModuleType("ackwise_experiments.sample.simulator")
    vars(module)["EXPERIMENT"] = experiment
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return experiment


def paths(value: Any, at: str = "") -> set[str]:
    """Every key of a document as KEYS writes it."""
    if isinstance(value, dict):
        return {p for k, v in value.items() for p in paths(v, f"{at}.{k}" if at else k)}
    if isinstance(value, list):
        return {p for v in value for p in paths(v, at + "[]")} or {at + "[]"}
    return {at}


@pytest.mark.usefixtures("sampled")
def test_everything_is_written_and_a_failed_check_is_exit_1(
    ackwise: Ackwise, tmp_path: Path
) -> None:
    words = ["reproduce", "sample", "--quiet"]
    for option, name in (("json", "a.json"), ("csv", "a.csv"), ("report", "a.html"),
                         ("figures", "new/figures"), ("plans", "new")):  # fmt: skip
        words += [f"--{option}", str(tmp_path / name)]
    said = ackwise(*words)
    assert said.code == 1, said.err
    assert "rates & classes" in said.out
    assert "sample: predicted: 1 of 2 pass" in said.out
    found = json.loads((tmp_path / "a.json").read_text())
    assert found["passed"] is False
    assert found["predicted"] == {"passed": 1, "checks": 2}
    assert {(c["kind"], c["bound"]) for c in found["checks"]} == {
        ("predicted", "asked"), ("predicted", "published"),
    }  # fmt: skip
    assert [c["passed"] for c in found["checks"]] == [True, False]
    assert found["checks"][0]["experiment"] == "sample"
    known = {p for p in paths(found) if not p.startswith("experiments[].figures[].panels[]")}
    assert known == {p for p in document.KEYS if not p.endswith("panels[]")}
    assert (tmp_path / "a.csv").read_text().count("\n") == 3
    assert (tmp_path / "new/figures/sample.svg").read_bytes() == drawn(FIGURE)
    page = (tmp_path / "a.html").read_text()
    assert "class &lt;I&gt;" in page
    assert "<note>" not in page
    assert page.count("<img ") == 1
    assert "predicted: 1 of 2 pass" in page
    scenarios = (tmp_path / "new/sample-1.jsonl").read_text().splitlines()
    assert [json.loads(s)["seed"] for s in scenarios] == [1, 1]  # the baseline and `every`


def test_a_run_that_is_cut_leaves_what_it_has(
    ackwise: Ackwise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sampled: Experiment
) -> None:
    def cut(_runner: Runner) -> Outcome:
        raise KeyboardInterrupt

    module = ModuleType("ackwise_experiments.cut.simulator")
    vars(module)["EXPERIMENT"] = replace(sampled, name="cut", run=cut)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(reproduce, "NAMES", {"simulator": ("sample", "cut"), "linux": ()})
    path = tmp_path / "a.json"
    said = ackwise("reproduce", "all", "--quiet", "--json", str(path))
    assert said.code == 130
    assert [one["name"] for one in json.loads(path.read_text())["experiments"]] == ["sample"]


@pytest.mark.usefixtures("sampled")
def test_the_document_is_the_same_each_time(ackwise: Ackwise) -> None:
    first = ackwise("reproduce", "all", "--json", "--jobs", "1")
    assert first.out.startswith("{")
    assert first.out == ackwise("reproduce", "all", "--json", "--jobs", "2").out


@pytest.mark.usefixtures("sampled")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "no experiment named"),
        (["sampel"], 'did you mean "sample"?'),
        (["sample", "--on", "linux"], "is not an experiment on linux; use --on simulator"),
        (
            ["sample", "--figures", "/dev/null"],
            "--figures: /dev/null: /dev/null is not a directory",
        ),
        (["sample", "--report", "-"], "--report: cannot go to standard output"),
        (["sample", "--json", "x", "--csv", "x"], "--csv: "),
        (["sample", "--json", "nowhere/x"], "--json: nowhere/x"),
    ],
)
def test_bad_input_is_told_before_any_run(ackwise: Ackwise, words: list[str], told: str) -> None:
    said = ackwise("reproduce", *words)
    assert said.code == 2
    assert told in said.err
    assert said.err.count("\n") == 1


@pytest.mark.usefixtures("sampled")
def test_the_list_tells_what_is_asked(ackwise: Ackwise) -> None:
    said = ackwise("reproduce", "--list")
    assert said.code == 0
    assert "Does it work?" in said.out
