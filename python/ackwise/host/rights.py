# SPDX-License-Identifier: MIT
"""Capabilities of this process."""

import os
from pathlib import Path

_BITS = {
    "CAP_CHOWN": 0,
    "CAP_KILL": 5,
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
    "CAP_NET_ADMIN": 12,
    "CAP_NET_RAW": 13,
    "CAP_SYS_ADMIN": 21,
}
# CAP_NET_ADMIN makes links and queues, CAP_SYS_ADMIN makes namespaces, CAP_NET_RAW captures.
NETWORK = ("CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_SYS_ADMIN")


def _held() -> int:
    """The effective capabilities, as bits."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        line = next(x for x in status.splitlines() if x.startswith("CapEff:"))
        return int(line.split()[1], 16)
    except (OSError, StopIteration, ValueError):
        return -1 if os.geteuid() == 0 else 0


def privileged() -> bool:
    """Whether this process may do what its caller may not: it is root, or has capabilities."""
    return os.geteuid() == 0 or _held() != 0


def missing_capabilities(*names: str) -> list[str]:
    """Which of these capabilities this process lacks; without names, of those that a network of
    namespaces needs."""
    held = _held()
    return [name for name in names or NETWORK if not held >> _BITS[name] & 1]
