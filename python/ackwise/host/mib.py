# SPDX-License-Identifier: MIT
"""Counters of this network namespace: files with a line of names above each line of values."""

from pathlib import Path

SNMP, NETSTAT = Path("/proc/self/net/snmp"), Path("/proc/self/net/netstat")
_REASONS = "TcpAck"


def read(file: Path) -> dict[str, dict[str, int]]:
    """Each group's counters by their names; empty where there is no such file."""
    try:
        lines = file.read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    found: dict[str, dict[str, int]] = {}
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        group, *words = names.split()
        pairs = zip(words, values.split()[1:], strict=True)
        found[group.rstrip(":")] = {name: int(value) for name, value in pairs}
    return found


class AcksByReason:
    """What the namespace's TCP has sent since `begin`."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._start: dict[str, int] = {}

    def _now(self) -> dict[str, int]:
        return read(self._file).get(_REASONS, {})

    def begin(self) -> None:
        """From here on."""
        self._start = self._now()

    def grown(self) -> dict[str, int]:
        """ACKs by reason, those that left; empty where nobody counts them."""
        return {name: value - self._start.get(name, 0) for name, value in self._now().items()}
