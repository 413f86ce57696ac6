# SPDX-License-Identifier: MIT
"""The pages of the experiments show what their records say."""

from pathlib import Path

import pytest
import record_pages as pages
import records

import ackwise_experiments as reproduce
from ackwise_experiments import check, document, figure, table
from ackwise_experiments.check import Basis, Kind, Origin
from ackwise_experiments.experiment import Experiment

PREDICTED = Basis(Kind.PREDICTED, Origin.ASKED)
FITTED = Basis(Kind.FITTED, Origin.PUBLISHED)
CHECKS = [
    *check.grouped(
        "speeds",
        [check.within("up|down", 750, 700, percent=10, basis=PREDICTED, unit="kbit/s")],
    ),
    *check.grouped("classes", [check.same("S/R 4/4", "free", "I", basis=FITTED)]),
]
PAGE = """# A page

<!-- checks: speeds -->
old
<!-- end -->
prose
<!-- checks: all --><!-- end -->

## What does not come out

`S/R 4/4`: it does not.
"""


def test_tables_are_replaced_and_prose_stays() -> None:
    made = pages.with_tables(PAGE, CHECKS, "page")
    assert "old" not in made
    assert "prose" in made
    row = "| up\\|down, kbit/s | 750 | 700 | -6.7% | ±10% | asked | **predicted** | yes |"
    assert made.count(row) == 2
    assert made.count("**no**") == 1
    assert pages.with_tables(made, CHECKS, "page") == made


def test_a_page_shows_at_a_glance_what_could_have_failed() -> None:
    made = pages.with_tables("<!-- checks: summary --><!-- end -->", CHECKS, "page")
    assert "| **predicted** | 1 of 1 | - | 1 of 1 | - | - |" in made
    assert "| fitted | 0 of 1 | 0 of 1 | - | - | - |" in made


def test_a_page_shows_the_notes_that_it_asks_for() -> None:
    page = "<!-- checks: notes x86 -->\nold\n<!-- end -->"
    made = pages.with_tables(page, CHECKS, "page", ["x86: a\nb", "mips: c"])
    assert "```text\nx86: a\nb\n```" in made
    assert "old" not in made and "mips" not in made
    with pytest.raises(SystemExit, match="asks for 'notes x86'"):
        pages.with_tables(page, CHECKS, "page", ["mips: c"])


def test_a_record_keeps_the_rows_of_its_run() -> None:
    run = {
        "checks": [document.of_check("sample", one) for one in CHECKS],
        "experiments": [{"notes": ["a"], "figures": []}],
    }
    record = pages.of_document(run, "ackwise reproduce sample", 3)
    assert record.outcome == "1 of 2 checks passed"
    for one, kept in zip(CHECKS, pages.checks_of(record), strict=True):
        assert table.cells(kept) == table.cells(one)
        assert (kept.kind, kept.bound, kept.group) == (one.kind, one.bound, one.group)


def test_a_page_cannot_ask_for_a_table_that_does_not_exist() -> None:
    with pytest.raises(SystemExit, match="the groups are: speeds, classes"):
        pages.with_tables("<!-- checks: delays -->\n<!-- end -->", CHECKS, "page")
    with pytest.raises(SystemExit, match="no <!-- end -->"):
        pages.with_tables("<!-- checks: all -->", CHECKS, "page")


def test_a_failed_check_must_be_mentioned() -> None:
    assert pages.undisclosed(PAGE, CHECKS) == []
    assert pages.undisclosed("`S/R 4/4` in another section", CHECKS) == ["S/R 4/4"]


def test_a_failed_check_is_known_with_and_without_its_unit() -> None:
    failed = check.at_most("delay", 1, 2, basis=FITTED, unit="ms")
    kept = pages.checks_of(
        records.Record("", "", "2026-01-01", "", "", 1, checks=[pages.of_check(failed)])
    )
    for words in ("`delay`", "`delay, ms`"):
        assert pages.undisclosed(f"{pages.FAILURES}\n{words}", kept) == []
    assert pages.undisclosed(f"{pages.FAILURES}\n`delays`", kept) == ["delay, ms"]


def test_a_page_is_renewed_from_its_records_alone() -> None:
    page = "# A page\n\nMeasured at yesterday.\n\n<!-- audit -->\nold\n<!-- end of audit -->\n"
    record = records.Record("passed", "0123abcd", "2026-01-02", "a host", "ackwise x", 1)
    audit = records.Record("ran", "89abcdef", "2026-01-03", "", "", 1, notes=["delays: none"])
    made = pages.renewed("page", page, record, audit)
    assert "\nMeasured at 0123abcd, 2 January 2026, on a host: `ackwise x`.\n" in made
    assert "At 89abcdef, 3 January 2026:\n\n- delays: none\n" in made
    assert "The audit was not run." in pages.renewed("page", made, record, None)
    with pytest.raises(SystemExit, match="no line that begins with 'Measured at'"):
        pages.renewed("page", "# A page\n", record, None)


@pytest.mark.parametrize("name", pages.names())
def test_each_page_shows_what_its_record_says(name: str) -> None:
    assert list(pages.complaints(name)) == []


@pytest.mark.parametrize(
    "experiment",
    [reproduce.load(one, on) for on, names in reproduce.NAMES.items() for one in names],
    ids=lambda one: one.name,
)
def test_the_list_says_how_long_an_experiment_takes(experiment: Experiment) -> None:
    record = records.read(experiment.name)
    assert record is not None
    assert record.minutes is not None
    # in whole minutes; a busy host takes several times as long as an idle one
    assert record.minutes <= 10 * experiment.minutes + 1
    assert experiment.minutes <= 2 * record.minutes + 1


@pytest.mark.parametrize("name", pages.names())
def test_each_page_has_question_picture_and_answer_in_order(name: str) -> None:
    text = (pages.PAGES / f"{name}.md").read_text(encoding="utf-8")
    places = [text.index(f"\n## {head}") for head in ("The question", "The picture", "The answer")]
    assert places == sorted(places)


def test_a_page_that_differs_is_told_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "separation.md"
    text = (pages.PAGES / page.name).read_text(encoding="utf-8")
    page.write_text(text.replace("| **predicted** | yes |", "| **predicted** | **no** |", 1))
    monkeypatch.setattr(pages, "PAGES", tmp_path)
    assert list(pages.complaints("separation")) == [
        "docs/experiments/separation.md differs from its record; run `make docs`"
    ]
    assert list(pages.complaints("separation", write=True)) == []
    assert page.read_text(encoding="utf-8") == text


def test_figures_are_drawn_from_the_data_of_a_record() -> None:
    panel = figure.Panel(
        "x", "y", [figure.Series("a", [1, 2], [3, 4], spread=[0.5, 1])], log_x=True
    )
    grid = figure.Grid("r", "c", ["1"], ["2"], [["text"]], [["class"]], "title")
    one = figure.Figure("sample", "A sample", [panel, grid], columns=2)
    data = records.small(document._figure(one))
    assert figure.drawn(document.figure_of(data)) == figure.drawn(one)


def test_a_curve_keeps_no_more_points_than_a_picture_shows() -> None:
    high = [0.0] * 10_000
    high[7003] = 123.456789
    series = {"x": list(range(10_000)), "y": high, "spread": None, "label": "a"}
    made = records.small({"panels": [{"kind": "panel", "series": [series]}]})
    (thin,) = made["panels"][0]["series"]
    assert len(thin["x"]) == len(thin["y"]) <= records.POINTS_MAX
    assert (thin["x"][0], thin["x"][-1]) == (0, 9999)
    assert thin["y"][thin["x"].index(7003)] == 123.46
