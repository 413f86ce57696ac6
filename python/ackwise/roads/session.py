# SPDX-License-Identifier: MIT
"""A policy in force while this process runs, and stock again whatever ends it.

      begin:  lock ─> sweep ─> prepare ─> guard ─> begin ─> say so ─> look each second
      end:    end of the road (by us, or by the guard if we are killed) ─> forget ─> unlock

The watchdog ends it when data arrives and nothing answers: in two looks in a row at least 20
segments came in and not one left. No policy may wait longer than 500 ms with an ACK.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from ackwise.errors import RunError
from ackwise.host import mib, programs
from ackwise.host.leftovers import owned_name
from ackwise.roads import choice
from ackwise.roads.choice import Choice
from ackwise.roads.road import Applied, Refused, Road, Wanted
from ackwise.roads.state import Keeper, Record

T = TypeVar("T")

LOOK_S = 1.0
_SILENT_SEGMENTS, _SILENT_LOOKS = 20, 2
_END_S = 10.0


def tcp_counters(*names: str) -> dict[str, int]:
    """Counters of this network namespace's TCP by their names in /proc/net/snmp and netstat."""
    groups = mib.read(mib.SNMP) | mib.read(mib.NETSTAT)
    found = groups.get("Tcp", {}) | groups.get("TcpExt", {})
    return {name: found[name] for name in names if name in found}


@dataclass
class Watchdog:
    """Whether data arrives that nothing answers."""

    last: tuple[int, int] | None = None
    silent: int = 0

    def look(self, segments_in: int, segments_out: int) -> None:
        """RunError when it does."""
        before, self.last = self.last, (segments_in, segments_out)
        if before is None:
            return
        came, left = segments_in - before[0], segments_out - before[1]
        self.silent = self.silent + 1 if came >= _SILENT_SEGMENTS and left == 0 else 0
        if self.silent >= _SILENT_LOOKS:
            raise RunError(f"watchdog: {came} segments came in within a second, and none left")


@contextmanager
def in_force(road: Road, applied: Applied, wanted: Wanted, keeper: Keeper) -> Iterator[Record]:
    """Has the policy in force during the block. The lock is held."""
    before = getattr(applied, "before", "")
    record = Record(
        os.getpid(), owned_name(), wanted.policy.label, road.name, road.does(wanted), time.time(),
        before,
    )  # fmt: skip

    def back() -> None:
        applied.end()
        keeper.forget()

    def back_for_the_dead() -> None:
        back()
        keeper.clean(lock=True)  # the guard still holds it

    with programs.guarded(back_for_the_dead):
        try:
            keeper.write(record)
            applied.begin()
            yield record
        finally:
            with _undisturbed():
                back()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """No second Ctrl-C ends the block."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def run(
    road: Road,
    wanted: Wanted,
    keeper: Keeper,
    *,
    ready: Callable[[list[str]], None],
    looks: int | None = None,
) -> None:
    """Keeps the policy in force until Ctrl-C, SIGTERM, or for `looks` seconds. RunError when the
    kernel refuses it, or it had to be taken off."""
    with keeper.lock():
        swept = choice.sweep()
        applied = road.prepare(wanted)
        with in_force(road, applied, wanted, keeper) as record:
            ready(swept)
            watchdog, start = Watchdog(), tcp_counters("InSegs", "OutSegs")
            while looks is None or looks > 0:
                time.sleep(LOOK_S)
                looks = None if looks is None else looks - 1
                applied.refresh()
                now = tcp_counters("InSegs", "OutSegs")
                if len(now) == len(start) == 2:
                    watchdog.look(now["InSegs"], now["OutSegs"])
                of_host = {f"host_{key}": now[key] - start[key] for key in now}
                keeper.write(replace(record, counters=applied.counters() | of_host))


def unrefused(found: Choice, act: Callable[[Choice], T]) -> tuple[Choice, T]:
    """Acts by the best road that the kernel does not refuse; the last refusal, where it refuses
    all."""
    while True:
        assert found.road is not None
        try:
            return found, act(found)
        except Refused as problem:
            found = found.without(found.road, str(problem))
            if found.road is None:
                raise


def run_best(
    found: Choice, wanted: Wanted, keeper: Keeper, *, ready: Callable[[Choice, list[str]], None]
) -> None:
    """`run` by the best road that the kernel does not refuse."""

    def act(by: Choice) -> None:
        assert by.road is not None
        run(by.road, wanted, keeper, ready=partial(ready, by))

    unrefused(found, act)


def stop(keeper: Keeper) -> list[str]:
    """Ends the run of this network namespace, and takes back what killed ones left. What was done,
    in words."""
    done, record = [], keeper.read()
    if record is not None and keeper.is_running():
        with suppress(ProcessLookupError):
            os.kill(record.process, signal.SIGTERM)
            done.append(f"ended process {record.process}, {record.policy}")
    with keeper.lock(_END_S):
        done += choice.sweep()
        if keeper.read() is not None:
            done.append("removed the record of a killed run")
        keeper.forget()
    return done
