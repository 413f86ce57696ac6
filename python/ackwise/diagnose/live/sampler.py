# SPDX-License-Identifier: MIT
"""Looks at sockets once in each interval, as far as a share of one core allows.

The kernel's counters are sums: a socket that is looked at later loses nothing but resolution. So a
list that costs more than an interval's share is put down and read on in the next.
"""

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ackwise import engine
from ackwise.diagnose.live.selection import Selection
from ackwise.errors import InputError
from ackwise.host import inet_diag
from ackwise.host.inet_diag import Listing

CORE_SHARE = 0.1
_BETWEEN_CHECKS = 8  # datagrams; each takes the kernel less than 0.2 ms
_SOCKET = re.compile(r"socket:\[(\d+)\]")


class Sampler:
    """The sockets of this network namespace, from look to look."""

    def __init__(
        self,
        selection: Selection,
        *,
        uid: int | None = None,
        pids: Sequence[int] = (),
        core_share: float = CORE_SHARE,
    ) -> None:
        self._selection = selection
        self._pids = pids
        self._core_share = core_share
        self._listing: Listing | None = None
        self._table = engine.Sockets(uid, _inodes(pids) if pids else None)
        self._debt_s = 0.0  # what the intervals before took beyond their share
        self._cpu_s = time.thread_time()
        self._end_s = time.monotonic()

    def begin(self) -> None:
        """The first look, which has nothing to compare with: at all sockets, whatever it costs.
        RunError when the kernel does not list them."""
        self._read(float("inf"))
        self._cpu_s = time.thread_time()
        self._end_s = time.monotonic()

    def interval(self, seconds: float) -> None:
        """Waits for the end of an interval, then looks at all sockets, or at as many as the share
        allows. RunError when the kernel does not list them."""
        self._end_s = max(self._end_s + seconds, time.monotonic())
        time.sleep(max(0.0, self._end_s - time.monotonic()))
        if self._pids:
            self._table.choose_inodes(_inodes(self._pids))  # it may have opened more
        # what has been computed since the last interval is part of the account
        budget = self._core_share * seconds
        continued = self._listing is not None
        while self._spent(budget) and self._read(budget) and continued:
            continued = False  # an older list is complete: there may be time for one of now
        self._debt_s = max(0.0, self._debt_s - budget)

    def lines(self, most: int) -> list[str]:
        """One line of JSON for each socket that was active since the last call, those that lost
        most time first."""
        return self._table.lines(most)

    def rows(self, most: int) -> list[dict[str, Any]]:
        """As `lines`, read."""
        return self._table.rows(most)

    def totals(self) -> dict[str, Any]:
        """Sums over all sockets since the start."""
        return self._table.totals() | {"cpu_s": time.process_time()}

    def close(self) -> None:
        """Ends the listing."""
        if self._listing is not None:
            self._listing.close()
            self._listing = None

    def _spent(self, budget: float) -> bool:
        """Whether some of the share is left; what was computed is taken from it."""
        now = time.thread_time()
        self._debt_s += now - self._cpu_s
        self._cpu_s = now
        return self._debt_s < budget

    def _read(self, budget: float) -> bool:
        """Whether the list came to its end."""
        if self._listing is None:
            self._listing = Listing(self._selection.states, self._selection.bytecode)
        taken = 0
        while True:
            datagram = self._listing.receive()
            end = self._table.take(datagram.data, datagram.time_us)
            if end is not None:
                self.close()
                if end:
                    raise inet_diag.refused(end)
                self._table.end_round()
                return True
            taken += 1
            if taken % _BETWEEN_CHECKS == 0 and not self._spent(budget):
                return False


def _inodes(pids: Sequence[int]) -> set[int]:
    """Sockets of these processes; InputError for one that is gone or belongs to somebody else."""
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
            with suppress(FileNotFoundError):  # closed meanwhile
                match = _SOCKET.fullmatch(str(one.readlink()))
                found |= {int(match[1])} if match else set()
    return found
