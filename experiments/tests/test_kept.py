# SPDX-License-Identifier: MIT
"""Kept results are a cache: what is damaged is made again."""

import json
import random
import zlib
from pathlib import Path
from typing import Any

import pytest

from ackwise_experiments import kept

RESULTS: list[dict[str, Any]] = [{"acks": 1}, {"acks": 2}]


def file_in(folder: Path) -> Path:
    results = kept.KeptResults(folder, "an engine")
    assert results.get([1, 2], lambda: RESULTS) == RESULTS
    (file,) = folder.rglob("*.json.z")
    return file


def again(folder: Path) -> tuple[Any, int]:
    """What comes out, and how often it ran."""
    runs = []

    def run() -> list[dict[str, Any]]:
        runs.append(1)
        return RESULTS

    return kept.KeptResults(folder, "an engine").get([1, 2], run), len(runs)


def test_what_is_kept_is_not_run_again(tmp_path: Path) -> None:
    file_in(tmp_path)
    assert again(tmp_path) == (RESULTS, 0)


@pytest.mark.parametrize("value", [[], {}, "x", [{}], [{}, 1], [[], []], None, 3, [{}, {}, {}]])
def test_other_values_are_made_again(tmp_path: Path, value: object) -> None:
    file = file_in(tmp_path)
    file.write_bytes(zlib.compress(json.dumps(value).encode()))
    assert again(tmp_path) == (RESULTS, 1)
    assert again(tmp_path) == (RESULTS, 0)


def test_damaged_bytes_are_made_again(tmp_path: Path) -> None:
    file = file_in(tmp_path)
    whole, chance = file.read_bytes(), random.Random(1)  # noqa: S311
    for _ in range(300):
        made = bytearray(whole)
        made[chance.randrange(len(made))] ^= 1 << chance.randrange(8)
        file.write_bytes(made[: chance.choice((len(made), chance.randrange(len(made))))])
        assert again(tmp_path)[0] == RESULTS


def test_a_bomb_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = file_in(tmp_path)
    monkeypatch.setattr(kept, "UNPACKED_BYTES_MAX", 10**6)
    file.write_bytes(zlib.compress(b"[" + b" " * 10**7 + b"{},{}]"))
    assert again(tmp_path) == (RESULTS, 1)
