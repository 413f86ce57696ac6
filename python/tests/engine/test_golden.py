# SPDX-License-Identifier: MIT
"""The golden tables are what the engine gives now; and what is wrong with one is told."""

import shutil
from pathlib import Path

import golden
import pytest
import twin

from ackwise.lab import compare as lab_compare
from ackwise.lab.machine import Kernel
from ackwise.plans import load_plan
from ackwise.results import compare

PLAN = """
title = "tiny"
source = "test"
links = ["lan-10m"]
workloads = ["bulk"]
policies = ["linux"]
runs = 1
[override]
duration = "200ms"
"""


@pytest.mark.slow
def test_golden_tables_are_current() -> None:
    found = golden.complaints(golden.FOLDER)
    assert not found, "\n".join(
        [*found, "if the change is meant: make golden, and commit the diff"]
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(golden, "shipped", lambda _kind: [])
    (tmp_path / "tiny.toml").write_text(PLAN)
    (tmp_path / "tiny.txt").write_text(golden.made(tmp_path / "tiny.toml"))
    return tmp_path


def test_a_current_table_is_no_complaint(folder: Path) -> None:
    assert golden.complaints(folder) == []


def test_a_change_shows_as_a_diff(folder: Path) -> None:
    table = folder / "tiny.txt"
    table.write_text(table.read_text().replace("linux", "linus"))
    (complaint,) = golden.complaints(folder)
    assert "-  linus" in complaint
    assert "+  linux" in complaint


def test_a_missing_table_is_told(folder: Path) -> None:
    (folder / "tiny.txt").unlink()
    assert "is missing" in golden.complaints(folder)[0]


def test_an_orphan_is_told(folder: Path) -> None:
    shutil.copy(folder / "tiny.txt", folder / "old.txt")
    assert "old.txt: has no plan" in golden.complaints(folder)[0]


def test_what_is_shipped_and_in_no_plan_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(golden, "shipped", lambda kind: ["new"] if kind == "links" else [])
    assert "shipped link new" in golden.complaints(folder)[0]


# --- both worlds (golden/twin, kept by tools/evidence.py) -----------------------------------------


def test_the_twins_tables_have_every_place_that_the_lab_can_run() -> None:
    kernel = Kernel(Path(), Path(), "", "", has_policies=True)
    assert len(twin.names()) == 5
    for name in twin.names():
        plan = load_plan(str(twin.FOLDER / f"{name}.toml"))
        lacks = lab_compare.lacking(plan, kernel)
        wanted = {job.combination for job in compare.jobs(plan, False)} - lacks.keys()
        rows = twin.read(name)
        for measure in twin.BOUNDS:
            found = [row for row in rows if row.measure == measure]
            assert {(row.link, row.workload, row.policy) for row in found} == wanted
            assert all(row.simulator and row.linux and row.again for row in found)


def test_a_twins_table_reads_what_it_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        twin.Row("adsl", "bulk", "linux", "download", "goodput_bps", 102.0, 100.0, 99.0),
        twin.Row("adsl", "bulk", "a3", "download", "goodput_bps", 90.0, 100.0, None),
        twin.Row("adsl", "bulk", "a3", "download", "acks", 3.0, 0.0, 1.5),
    ]
    monkeypatch.setattr(twin, "FOLDER", tmp_path)
    (tmp_path / "x.csv").write_text(twin.text(rows))
    assert twin.read("x") == rows
    assert twin.differences(rows, "goodput_bps") == [2.0, 10.0]
    assert twin.differences(rows, "goodput_bps", again=True) == [1.0]
    assert twin.differences(rows, "acks") == []  # there is none from 0


def cell(
    policy: str, run: int, here: tuple[float, float], there: tuple[float, float]
) -> dict[str, str]:
    names = ("goodput_bps", "acks", "linux.goodput_bps", "linux.acks")
    figures = dict(zip(names, map(str, (*here, *there)), strict=True))
    return {"point": "0", "policy": policy, "run": str(run), **figures}


def test_random_links_are_compared_by_run_and_the_kernel_with_itself() -> None:
    cells = [cell("a3", 0, (110, 5), (100, 5)), cell("a3", 1, (60, 5), (80, 5))]
    found = twin.random_differences(cells, "goodput_bps")
    assert found == {"simulator": [10.0, 25.0], "again": [20.0]}
    assert twin.random_differences(cells[:1], "goodput_bps")["again"] == []


def test_the_kernels_second_run_is_the_yardstick_for_its_first() -> None:
    cells = [cell("a3", 0, (110, 5), (100, 6)), cell("a3", 1, (60, 5), (80, 7))]
    assert twin.first_run(cells) == cells[:1]
    (again,) = twin.first_run(cells, again=True)
    assert (again["goodput_bps"], again["acks"]) == ("100", "6")
    assert (again["linux.goodput_bps"], again["linux.acks"]) == ("80", "7")


@pytest.mark.parametrize(
    ("there", "agrees"),
    [(((100, 9), (100, 5)), True), (((100, 9), (99.1, 5)), True), (((100, 9), (98, 5)), False)],
)
def test_the_best_policy_agrees_if_it_is_as_good_on_the_kernel(
    there: tuple[tuple[float, float], ...], agrees: bool
) -> None:
    cells = [cell("linux", 1, (100, 9), there[0]), cell("a3", 1, (99.5, 5), there[1])]
    (point,) = twin.random_points(cells)
    assert twin.best_agrees(point) is agrees
