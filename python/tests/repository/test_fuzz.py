# SPDX-License-Identifier: MIT
"""The seeds of fuzzing and every input it has found: accepted, or refused in words."""

import importlib.util
import sys
from pathlib import Path

import fuzzed
import pytest
from conftest import ROOT

from ackwise.errors import InputError, RunError

FUZZ = ROOT / "python/fuzz"
sys.path.insert(0, str(FUZZ))

import targets  # noqa: E402

SEEDS = sorted(path for path in (FUZZ / "corpus").glob("*/*"))


@pytest.mark.parametrize("seed", SEEDS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_an_input_is_accepted_or_refused_in_words(seed: Path) -> None:
    try:
        targets.TARGETS[seed.parent.name](seed.read_bytes())
    except (InputError, RunError) as refusal:
        assert seed.name.startswith(("found-", "error")), refusal
        assert "\n" not in str(refusal)


def test_every_target_is_fuzzed_and_has_seeds() -> None:
    text = (FUZZ / "Makefile").read_text()
    (line,) = (one for one in text.splitlines() if one.startswith("TARGETS :="))
    assert line.split()[2:] == list(targets.TARGETS)
    assert {seed.parent.name for seed in SEEDS} == set(targets.TARGETS)


@pytest.mark.parametrize("group", fuzzed.INPUTS)
def test_what_has_passed_is_not_run_again_until_an_input_changes(
    group: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("UNLESS_PASSED", "1")
    ran = tmp_path / "ran"
    command = ("sh", "-c", f"echo once >> {ran}")

    def runs(seconds: str = "5") -> int:
        assert fuzzed.main(group, "one", seconds, *command) == 0
        return len(ran.read_text().split())

    assert [runs(), runs(), runs("9"), runs("9"), runs()] == [1, 1, 2, 2, 2]
    first, *others = fuzzed.inputs(group)
    changed = tmp_path / first.name
    changed.write_bytes(first.read_bytes() + b"\n")
    monkeypatch.setattr(fuzzed, "ROOT", Path("/"))
    monkeypatch.setattr(fuzzed, "inputs", lambda _group: [changed, *others])
    assert runs() == 3


@pytest.mark.parametrize("if_needed", [True, False])
def test_what_cannot_run_is_never_kept_as_passed(
    if_needed: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("UNLESS_PASSED", raising=False)
    if if_needed:
        monkeypatch.setenv("UNLESS_PASSED", "1")
    assert fuzzed.main("fuzz-python", "fuzz-state", "1", "true") == (0 if if_needed else 1)
    assert not list(tmp_path.rglob("fuzz-state*"))
