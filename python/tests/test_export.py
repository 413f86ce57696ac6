# SPDX-License-Identifier: MIT
"""Files appear whole or not at all."""

import math
import os
from pathlib import Path

import pytest

from ackwise.errors import InputError, RunError
from ackwise.host import files
from ackwise.results import export


def test_a_file_is_replaced_at_once_and_with_ordinary_rights(tmp_path: Path) -> None:
    target = tmp_path / "x.json"
    target.write_text("old")
    files.write_whole(str(target), b"new")
    assert target.read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]
    mask = os.umask(0)
    os.umask(mask)
    assert target.stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "x.json"
    target.write_text("old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match="No space left"):
        files.write_whole(str(target), b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]
    assert target.read_text() == "old"


@pytest.mark.parametrize("path", ["", " ", "a\0b", "/", "/nonexistent/x"])
def test_an_impossible_target_is_refused(path: str) -> None:
    with pytest.raises(InputError, match="--json"):
        files.check_target(path, "--json")


def test_nan_is_no_json() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        export.json_bytes({"x": math.nan})
