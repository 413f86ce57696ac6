# SPDX-License-Identifier: MIT
"""Sampler of sockets: once per interval, within a share of one core.

The kernel's counters are sums, so a socket sampled late loses only time resolution. A listing that
costs more than an interval's share is suspended and continued in the next interval.

With a walker, the first listing still comes from inet_diag, which assigns every socket the cookie
that identifies it; after that the walker describes only sockets that changed.
"""

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ackwise import engine
from ackwise.diagnosis.live.selection import Selection
from ackwise.errors import InputError, RunError
from ackwise.host import inet_diag, tcp_walk
from ackwise.host.inet_diag import Listing
from ackwise.host.tcp_walk import Walk, Walker

CORE_SHARE = 0.1
_BETWEEN_CHECKS = 8  # datagrams; the kernel takes less than 0.2 ms for each
# A socket's owner can change without a packet: one walk in so many describes all sockets.
_WALKS_UNTIL_ALL = 10
_SOCKET = re.compile(r"socket:\[(\d+)\]")


class Sampler:
    """Repeated samples of the sockets in this network namespace."""

    def __init__(
        self,
        selection: Selection,
        *,
        uid: int | None = None,
        pids: Sequence[int] = (),
        core_share: float = CORE_SHARE,
        walker: Walker | None = None,
    ) -> None:
        self._selection = selection
        self._pids = pids
        self._core_share = core_share
        self._listing: Listing | Walk | None = None
        self._walker = walker
        self._begun_us = 0
        self._walks_until_all = 0
        self._has_owner = uid is not None or bool(pids)
        self._inodes = _inodes(pids) if pids else None
        self._table = engine.Sockets(uid, self._inodes, selection.bytecode)
        self._debt_s = 0.0  # time that earlier intervals took beyond their share
        self._cpu_s = time.thread_time()
        self._end_s = time.monotonic()

    def begin(self) -> None:
        """The first sample, which has nothing to compare with: all sockets, at any cost. RunError
        when the kernel does not list them."""
        self._read(float("inf"))
        self._debt_s = 0.0
        self._cpu_s = time.thread_time()
        self._end_s = time.monotonic()

    def interval(self, seconds: float) -> None:
        """Waits for the end of an interval, then samples all sockets, or as many as the share
        allows. RunError when the kernel does not list them."""
        self._end_s = max(self._end_s + seconds, time.monotonic())
        time.sleep(max(0.0, self._end_s - time.monotonic()))
        if self._pids:
            self._choose(_inodes(self._pids))  # the processes may have opened more sockets
        # computation since the last interval counts as well
        budget = self._core_share * seconds
        continued = self._listing is not None
        while self._spent(budget) and self._read(budget) and continued:
            continued = False  # an older listing is complete; there may be time for a new one
        self._debt_s = max(0.0, self._debt_s - budget)

    def lines(self, most: int) -> list[str]:
        """One line of JSON for each socket that was active since the last call, sorted by time
        lost."""
        return self._table.lines(most)

    def rows(self, most: int) -> list[dict[str, Any]]:
        """The result of `lines`, parsed."""
        return self._table.rows(most)

    def totals(self) -> dict[str, Any]:
        """Sums over all sockets since the start."""
        return self._table.totals() | {"cpu_s": time.process_time()}

    def close(self) -> None:
        """Ends the listing and the walker."""
        self._end_list()
        self._stop_walking()

    def _spent(self, budget: float) -> bool:
        """Whether part of the share is left, after subtracting the time computed so far."""
        now = time.thread_time()
        self._debt_s += now - self._cpu_s
        self._cpu_s = now
        return self._debt_s < budget

    def _choose(self, inodes: set[int]) -> None:
        if inodes != self._inodes:
            self._inodes = inodes
            self._table.choose_inodes(inodes)
            self._walks_until_all = 0

    def _begin_list(self) -> Listing | Walk:
        since_us, self._begun_us = self._begun_us, inet_diag.now_us()
        if self._walker is None:
            return Listing(self._selection.states, self._selection.bytecode)
        if not since_us:
            return Listing(self._walker.states)  # sockets outside the selection need a cookie too
        if self._table.needs_all() or (self._has_owner and self._walks_until_all == 0):
            self._walks_until_all = _WALKS_UNTIL_ALL
            return self._walker.walk(tcp_walk.ALL)
        self._walks_until_all -= 1
        return self._walker.walk(since_us)

    def _end_list(self) -> None:
        if self._listing is not None:
            self._listing.close()
            self._listing = None

    def _stop_walking(self) -> None:
        if self._walker is not None:
            self._walker.close()
            self._walker = None

    def _part(self) -> tuple[bool, int]:
        """Reads the next part of the listing. Returns whether it was the last, and the errno of a
        refusal."""
        if self._listing is None:
            self._listing = self._begin_list()
        datagram = self._listing.receive()
        end = self._table.take(datagram.data, datagram.time_us)
        return end is not None, end or 0

    def _part_either_way(self) -> tuple[bool, int]:
        """Like `_part`, but falls back to a listing by inet_diag where walking fails."""
        try:
            ended, refused = self._part()
        except RunError:
            if not isinstance(self._listing, Walk):
                raise
            refused = 1
        if refused and isinstance(self._listing, Walk):
            self._end_list()
            self._stop_walking()
            return self._part()
        return ended, refused

    def _read(self, budget: float) -> bool:
        """Reads within the budget; returns whether the listing is complete."""
        taken = 0
        while True:
            ended, refused = self._part_either_way()
            if ended:
                self._end_list()
                if refused:
                    raise inet_diag.refused(refused)
                self._table.end_round()
                return True
            taken += 1
            if taken % _BETWEEN_CHECKS == 0 and not self._spent(budget):
                return False


def _inodes(pids: Sequence[int]) -> set[int]:
    """Inodes of these processes' sockets; InputError for a process that is gone or belongs to
    another user."""
    found = set()
    for pid in pids:
        try:
            descriptors = list(Path(f"/proc/{pid}/fd").iterdir())
        except FileNotFoundError:
            raise InputError(f"--pid: there is no process {pid}") from None
        except PermissionError:
            raise InputError(
                f"--pid: process {pid} belongs to another user; run this as that user or as root"
            ) from None
        for one in descriptors:
            with suppress(FileNotFoundError):  # closed in between
                match = _SOCKET.fullmatch(str(one.readlink()))
                found |= {int(match[1])} if match else set()
    return found
