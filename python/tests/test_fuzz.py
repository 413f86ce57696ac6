# SPDX-License-Identifier: MIT
"""The seeds of fuzzing and every input it has found: accepted, or refused in words."""

import sys
from pathlib import Path

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
