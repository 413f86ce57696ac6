# SPDX-License-Identifier: MIT
"""What measures real time fails on an idle host only."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import idle
import pytest
from processes import wait_until


@contextmanager
def burning(count: int) -> Iterator[None]:
    """So many processes that always want a processor."""
    loops = [
        subprocess.Popen([sys.executable, "-I", "-S", "-c", "while True: pass"])
        for _ in range(count)
    ]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def host(stretched: float, stalled_s: float) -> idle.Host:
    made = idle.Host()
    made.stretched, made.stalled_s = stretched, stalled_s
    return made


def test_a_host_is_busy_if_work_is_stretched_or_stalls() -> None:
    assert host(1.2, 0.09).busy() == ""
    assert "3.0 times" in host(3, 0.05).busy()
    assert "up to 250 ms" in host(1.1, 0.25).busy()


def test_a_busy_host_is_seen_as_such() -> None:
    with burning(4 * (os.cpu_count() or 1)), idle.watched() as seen:
        time.sleep(1)
    assert seen.stretched > idle.STRETCHED_MAX
    assert seen.busy()


@pytest.mark.parametrize("stretched", [1.0, 4.0])
def test_a_failure_counts_on_an_idle_host_and_is_excused_on_a_busy_one(
    stretched: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def seen() -> Iterator[idle.Host]:
        yield host(stretched, 0)

    monkeypatch.setattr(idle, "watched", seen)
    with idle.excused_if_busy():
        pass
    expected = pytest.skip.Exception if stretched > 1 else AssertionError
    with pytest.raises(expected, match=r"0\.898 s"), idle.excused_if_busy():
        raise AssertionError("0.898 s")


@pytest.mark.real_time
def test_a_test_with_the_mark_has_a_witness_beside_it() -> None:
    def is_there() -> bool:
        tasks = Path(f"/proc/{os.getpid()}/task")
        children = " ".join((task / "children").read_text() for task in tasks.iterdir()).split()
        commands = [Path(f"/proc/{child}/cmdline") for child in children]
        return any("perf_counter" in one.read_text() for one in commands if one.exists())

    wait_until(is_there)  # a process that has just begun does not have its name yet
