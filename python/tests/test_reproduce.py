# SPDX-License-Identifier: MIT
"""`ackwise reproduce`: what a check says, what is written where, the same each time."""

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import Ackwise

from ackwise import plans, reproduce
from ackwise.plans import policy
from ackwise.reproduce import check, document, reference, table
from ackwise.reproduce.experiment import Experiment, Outcome
from ackwise.reproduce.figure import Figure, Grid, Panel, Series, drawn
from ackwise.reproduce.runner import Runner

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


def test_a_check_says_whether_and_how_far() -> None:
    assert check.within("a", 100, 109.9, percent=10).passed
    far = check.within("a", 100, 111, percent=10)
    assert not far.passed
    assert far.from_published_percent == pytest.approx(11)
    assert check.within_abs("a", 1.0, 1.04, by=0.05).passed
    assert not check.within_abs("a", 1.0, 1.06, by=0.05).passed
    assert check.between("a", 5, 10, 10).passed
    above = check.between("a", 5, 10, 12)
    assert not above.passed
    assert above.beyond_allowed_percent == pytest.approx(20)
    below = check.between("a", 5, 10, 4)
    assert not below.passed
    assert below.beyond_allowed_percent == pytest.approx(-20)
    assert check.at_most("a", 1.58, 1.58).passed
    assert not check.at_most("a", 1.58, 1.59).passed
    assert check.at_least("a", 93, 93).passed
    assert not check.at_least("a", 93, 92.9).passed
    assert check.same("a", "II", "II").passed
    assert not check.same("a", "II", None).passed


def test_distances_from_the_published_figure_and_from_the_bound_are_two_columns() -> None:
    missed = check.at_most("speed", 340.5, 347, published=250, unit="kbit/s")
    assert table.HEADS[1:-1] == ("published", "measured", "from published", "allowed")
    assert table.cells(missed) == (
        "speed, kbit/s", "250", "347", "+38.8%", "≤ 340.5 (missed by 1.9%)", "FAIL",
    )  # fmt: skip
    kept = check.at_most("speed", 350, 347, published=250)
    assert table.cells(kept)[1:] == ("250", "347", "+38.8%", "≤ 350", "pass")
    assert kept.beyond_allowed_percent == 0


def test_only_what_is_published_stands_under_published() -> None:
    assert table.cells(check.at_least("a", 90, 91))[1:4] == ("-", "91", "-")
    assert table.cells(check.at_least("a", 90, 91, published="more"))[1:4] == ("more", "91", "-")
    assert table.cells(check.between("a", 19, 20, 19.5))[1:5] == (
        "19 to 20", "19.50", "-", "19 to 20",
    )  # fmt: skip


@pytest.mark.parametrize("measured", [None, float("nan"), float("inf")])
def test_what_was_not_measured_never_passes(measured: float | None) -> None:
    for one in (
        check.within("a", 1, measured, percent=1e9),
        check.within_abs("a", 1, measured, by=1e9),
        check.between("a", -1e9, 1e9, measured),
        check.at_most("a", 1e9, measured),
        check.at_least("a", -1e9, measured),
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
        check.between("rate", 1e6, 1e7, rate, unit="bit/s", source="table 1"),
        check.same("class <I>", "I", "II", source="table 2"),
    ]
    return Outcome(check.grouped("rates & classes", checks), [FIGURE], ["a <note>"])


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> Experiment:
    experiment = Experiment("sample", "A sample", "nobody, 1999", "Does it work?", sample)
    monkeypatch.setattr(reproduce, "NAMES", {"simulator": ("sample",), "linux": ()})
    module = ModuleType("ackwise.reproduce.sample.simulator")
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
    assert "1 of 2 checks pass" in said.out
    found = json.loads((tmp_path / "a.json").read_text())
    assert found["passed"] is False
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
    scenarios = (tmp_path / "new/sample-1.jsonl").read_text().splitlines()
    assert [json.loads(s)["seed"] for s in scenarios] == [1, 1]  # the baseline and `every`


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
