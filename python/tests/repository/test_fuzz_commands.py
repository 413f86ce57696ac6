# SPDX-License-Identifier: MIT
"""The fuzzing of whole commands sees what it looks for."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "python/fuzz"))
import commands


def raises() -> int:
    raise RuntimeError


def prints() -> int:
    os.write(2, b"ackwise: internal error: KeyError")
    return 1


def takes() -> int:
    return len(bytearray(400_000_000)) and 0


def works() -> int:
    while True:
        pass


def waits() -> int:
    time.sleep(60)
    return 0


@pytest.mark.parametrize(
    ("does", "says"),
    [
        (raises, "code 99"),
        (prints, "internal error"),
        (takes, " kB"),
        (works, "1 s"),
        (waits, "waits"),
    ],
)
def test_what_goes_wrong_is_found(
    does: Callable[[], int], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ackwise.cli.main.main", lambda _words: does())
    monkeypatch.setattr(commands, "SECONDS_MAX", 1)
    monkeypatch.setattr(commands, "WAITS_MAX", 1 if does is waits else 60)
    assert says in commands.run([], tmp_path / "said")


@pytest.mark.parametrize("code", [0, 1, 2])
def test_a_refusal_is_no_failure(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ackwise.cli.main.main", lambda _words: code)
    assert commands.run([], tmp_path / "said") == ""
