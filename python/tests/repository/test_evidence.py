# SPDX-License-Identifier: MIT
"""Records are dated; nothing becomes stale, and one renews what one asks for."""

import json
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import evidence
import pytest
import records
from records import Record

OLD = Record("passed", "0123abcd", "2026-01-02", "a host", "make old", 10)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of records."""
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    return tmp_path


def item(name: str, *command: str, paths: tuple[str, ...] = ()) -> evidence.Item:
    return evidence.Item(name, command, paths)


def test_a_record_is_read_as_it_was_written(folder: Path) -> None:
    figure = {"name": "f", "panels": [{"kind": "panel", "series": [{"x": [1, 2], "y": [3, 4]}]}]}
    record = Record(
        "passed", "0", "2026-01-02", "a", "b", None, [{"name": "≤ 1"}], ["a\nb"], [figure]
    )
    records.write("one", record)
    assert records.read("one") == record
    assert json.loads((folder / "one.json").read_text())["date"] == "2026-01-02"
    assert records.read("two") is None


@pytest.mark.parametrize("name", sorted(p.stem for p in records.FOLDER.glob("*.json")))
def test_every_record_belongs_to_an_item(name: str) -> None:
    record = records.read(name)
    assert record is not None
    assert name in evidence.items()
    assert records.text(record) == records.path(name).read_text(encoding="utf-8")


def test_the_oldest_that_fit_are_chosen(folder: Path) -> None:
    for name, day, took in (("a", 3, 10), ("b", 1, 25), ("c", 2, 5), ("d", 1, 40)):
        records.write(name, Record("passed", "0", f"2026-01-0{day}", "", "", took))
    known = [item(name) for name in "abcde"]
    assert [one.name for one in evidence.oldest(known, 30)] == ["b", "c"]
    assert [one.name for one in evidence.oldest(known, 90)] == ["e", "b", "c"]


def test_a_run_leaves_a_dated_record(folder: Path) -> None:
    assert evidence.renew([item("one", "true")]) == 0
    record = records.read("one")
    assert record is not None
    assert (record.outcome, record.command, record.age_days()) == ("passed", "true", 0)
    assert evidence.renew([item("one", "false")]) == 1
    failed = records.read("one")
    assert failed is not None and failed.outcome == "failed"


def test_what_could_not_run_keeps_its_record(folder: Path) -> None:
    records.write("one", OLD)
    assert evidence.renew([item("one", "sh", "-c", "exit 2")]) == 1
    assert records.read("one") == OLD


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("core/policy/ratelimit.c", {"ratelimit", "linux-ratelimit", "device-ratelimit"}),
        ("core/policy/new.c", set()),
        (
            "python/ackwise/cli/compare.py",
            {"fuzz-python", "package-aarch64", "package-deb", "package-oci", "package-wheel"},
        ),
        ("linux/fuzz/results.c", {"fuzz-guest"}),
        ("docs/live.md", set()),
    ],
)
def test_advice_follows_paths(path: str, named: set[str]) -> None:
    found = evidence.affected(list(evidence.items().values()), [path])
    assert {one.name for one in found if not one.name.startswith("audit-")} == named


def test_every_path_of_the_advice_exists(root: Path) -> None:
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=root, capture_output=True, text=True, check=True).stdout
    files = listed.splitlines()
    for one in evidence.items().values():
        for pattern in one.paths:
            assert any(fnmatchcase(file, pattern) for file in files), (one.name, pattern)


def test_the_list_says_how_old_each_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records.write("b", OLD)
    evidence.show([item("b"), item("a")])
    first, second = capsys.readouterr().out.splitlines()
    assert first.split() == ["a", "-", "never", "run"]
    assert "passed, 2 January 2026" in second and "at 0123abcd" in second


def test_only_the_program_of_a_command_is_replaced() -> None:
    assert evidence._words(("tools/check.sh", "python")) == ["tools/check.sh", "python"]
    words = evidence._words(("env", "A=b", "python", "-m", "ackwise"))
    assert words == ["env", "A=b", sys.executable, "-m", "ackwise"]
