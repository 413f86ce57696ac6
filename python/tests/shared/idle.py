# SPDX-License-Identifier: MIT
"""Whether this host was idle while a test measured real time.

A test marked `real_time` asserts times, rates or shares of this host's clock. They hold only while
its processes run as soon as they can. If such a test fails while others held the processors, it is
skipped, with what was seen; on an idle host it fails.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

# A process of its own, as threads of an interpreter wait for each other. Every tenth of a second
# it needs 10 ms of a processor, more than the scheduler's slice, and notes how long that takes.
_WITNESS = """
import select, sys, time
NEED = 0.01
bursts = took = longest = 0
ended = False
while True:
    begin, used = time.perf_counter(), time.process_time()
    while time.process_time() - used < NEED:
        pass
    passed = time.perf_counter() - begin
    bursts, took, longest = bursts + 1, took + passed, max(longest, passed)
    if ended:
        break
    ended = bool(select.select([sys.stdin], [], [], 0.09)[0])
print(took / (bursts * NEED), longest)
"""
STRETCHED_MAX = 1.25
STALLED_MAX_S = 0.1


class Host:
    """What the witness saw; read it after the block of `watched`."""

    stretched = 1.0  # times as long as on a processor of its own
    stalled_s = 0.0  # the longest that 10 ms of work took

    def busy(self) -> str:
        """What kept processes waiting, or "" if nothing did."""
        if self.stretched <= STRETCHED_MAX and self.stalled_s <= STALLED_MAX_S:
            return ""
        return (
            f"work took {self.stretched:.1f} times as long as on an idle processor, and 10 ms of "
            f"it up to {self.stalled_s * 1000:.0f} ms"
        )


@contextmanager
def watched() -> Iterator[Host]:
    """Watches the host during the block."""
    host = Host()
    witness = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _WITNESS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield host
    finally:
        said, _ = witness.communicate()
        if said:  # nothing if an interrupt of all of the process group ended it
            host.stretched, host.stalled_s = map(float, said.split())


@contextmanager
def excused_if_busy() -> Iterator[None]:
    """Skips what fails in the block, if the host was busy meanwhile."""
    wrong: Exception | None = None
    with watched() as host:
        try:
            yield
        except Exception as problem:
            wrong = problem
    if wrong is None:
        return
    if host.busy():
        first = str(wrong).partition("\n")[0]
        pytest.skip(f"measures real time, on a busy host: {host.busy()}; {first}")
    raise wrong
