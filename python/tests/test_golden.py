# SPDX-License-Identifier: MIT
"""The golden tables are what the engine gives now; and what is wrong with one is told."""

import shutil
from pathlib import Path

import golden
import pytest

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
