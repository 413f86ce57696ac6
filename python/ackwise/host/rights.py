# SPDX-License-Identifier: MIT
"""Capabilities of this process."""

import ctypes
import os
import struct
from pathlib import Path

from ackwise.errors import RunError

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
_VERSION_3 = 0x20080522  # linux/capability.h: sets of 64 bits
_HEADER, _SETS = struct.Struct("=II"), struct.Struct("=6I")
_PR_SET_NO_NEW_PRIVS = 38


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


def keep_only(*names: str) -> None:
    """Drops every capability but these, of which this thread keeps what it has. They do not come
    back, neither in this thread and those it starts nor in a program that they run. RunError when
    the kernel refuses."""
    kept = _held() & sum(1 << _BITS[name] for name in names)
    low, high = kept & 0xFFFFFFFF, kept >> 32
    libc = ctypes.CDLL(None, use_errno=True)
    # effective, permitted and inheritable; with an empty inheritable set there is no ambient one
    sets = _SETS.pack(low, low, 0, high, high, 0)
    header = _HEADER.pack(_VERSION_3, 0)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.capset(header, sets):
        said = os.strerror(ctypes.get_errno())
        raise RunError(f"privileges that are not needed cannot be dropped: {said}")
