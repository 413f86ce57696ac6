# SPDX-License-Identifier: MIT
"""The files that a guest leaves are read in pieces, up to a bound: its root can write anything."""

import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from ackwise.engine import scenario
from ackwise.errors import RunError
from ackwise.lab import measure

BOUND = "has more than|has a line of|columns, more than"


def sparse(file: Path) -> None:
    """Zeros, of which none is on the disk."""
    file.write_bytes(b"")
    os.truncate(file, 3 * 2**30)


def many_columns(file: Path) -> None:
    words = b" ".join([b"1"] * 2000) + b"\n"
    file.write_bytes(words * 2500)


def many_rows(file: Path) -> None:
    names = b" ".join(b"%x" % i for i in range(16)) + b"\n"
    file.write_bytes(names + (b" ".join([b"1"] * 16) + b"\n") * (measure.TABLE_BYTES_MAX // 32))


@pytest.mark.parametrize("write", [sparse, many_columns, many_rows])
def test_a_table_of_any_size_takes_bounded_memory(
    tmp_path: Path, write: Callable[[Path], None]
) -> None:
    file = tmp_path / "samples"
    write(file)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=BOUND):
            measure.read_table(file)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 20 * measure.TABLE_BYTES_MAX


@pytest.mark.parametrize("name", ["flows", "samples", "counters-client-before"])
def test_what_a_guest_leaves_too_large_is_an_error_of_the_run(tmp_path: Path, name: str) -> None:
    (tmp_path / "flows").write_bytes(b"base 1 end 1000000\n")
    (tmp_path / "samples").write_bytes(b"time_ns flow\n")
    sparse(tmp_path / name)
    channel = scenario.Channel(rate_bps=10**6, delay_ns=0)
    whole = scenario.Scenario(seed=1, duration_ns=10**6, down=channel, up=channel, groups=())
    with pytest.raises(RunError, match=f"{name} has a line of"):
        measure.result(tmp_path, whole, [])
