# SPDX-License-Identifier: MIT
"""The pages of the experiments show what the experiments give."""

from pathlib import Path

import experiments
import pytest

import ackwise_experiments as reproduce
from ackwise_experiments import check, document, table
from ackwise_experiments.check import Basis, Kind, Origin

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
    made = experiments.renewed(PAGE, CHECKS, "page")
    assert "old" not in made
    assert "prose" in made
    row = "| up\\|down, kbit/s | 750 | 700 | -6.7% | ±10% | asked | **predicted** | yes |"
    assert made.count(row) == 2
    assert made.count("**no**") == 1
    assert experiments.renewed(made, CHECKS, "page") == made


def test_a_page_shows_at_a_glance_what_could_have_failed() -> None:
    made = experiments.renewed("<!-- checks: summary --><!-- end -->", CHECKS, "page")
    assert "| **predicted** | 1 of 1 | - | 1 of 1 | - | - |" in made
    assert "| fitted | 0 of 1 | 0 of 1 | - | - | - |" in made


def test_a_page_shows_the_notes_that_it_asks_for() -> None:
    page = "<!-- checks: notes x86 -->\nold\n<!-- end -->"
    made = experiments.renewed(page, CHECKS, "page", ["x86: a\nb", "mips: c"])
    assert "```text\nx86: a\nb\n```" in made
    assert "old" not in made and "mips" not in made
    with pytest.raises(SystemExit, match="asks for notes of 'x86'"):
        experiments.renewed(page, CHECKS, "page", ["mips: c"])


def test_checks_are_read_from_the_document_as_they_were() -> None:
    for one in CHECKS:
        found = experiments.read(document.of_check("sample", one))
        assert table.cells(found) == table.cells(one)
        assert (found.kind, found.bound, found.group) == (one.kind, one.bound, one.group)


def test_a_page_cannot_ask_for_a_table_that_does_not_exist() -> None:
    with pytest.raises(SystemExit, match="the groups are: speeds, classes"):
        experiments.renewed("<!-- checks: delays -->\n<!-- end -->", CHECKS, "page")
    with pytest.raises(SystemExit, match="no <!-- end -->"):
        experiments.renewed("<!-- checks: all -->", CHECKS, "page")


def test_a_failed_check_must_be_mentioned() -> None:
    assert experiments.undisclosed(PAGE, CHECKS) == []
    assert experiments.undisclosed("`S/R 4/4` in another section", CHECKS) == ["S/R 4/4"]


@pytest.mark.parametrize(
    "name",
    [reproduce.load(name, on).name for on, names in reproduce.NAMES.items() for name in names],
)
def test_each_page_has_question_picture_and_answer_in_order(root: Path, name: str) -> None:
    text = (root / f"docs/experiments/{name}.md").read_text(encoding="utf-8")
    places = [text.index(f"\n## {head}") for head in ("The question", "The picture", "The answer")]
    assert places == sorted(places)
    for figure in (root / "docs/experiments/figures").glob(f"{name}-*.svg"):
        assert f"(figures/{figure.name})" in text, f"{figure.name} is shown nowhere"
