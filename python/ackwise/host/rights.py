# SPDX-License-Identifier: MIT
"""Capabilities of this process."""

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_BITS = {
    "CAP_CHOWN": 0,
    "CAP_KILL": 5,
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
    "CAP_SETPCAP": 8,
    "CAP_NET_ADMIN": 12,
    "CAP_NET_RAW": 13,
    "CAP_SYS_ADMIN": 21,
}
# CAP_NET_ADMIN makes links and queues, CAP_SYS_ADMIN makes namespaces, CAP_NET_RAW captures.
NETWORK = ("CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_SYS_ADMIN")
# What root needs to start a program as another user, with fewer capabilities, and to end it.
_CONFINING = ("CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP")
_VERSION_3 = 0x20080522  # linux/capability.h: sets of 64 bits
_HEADER, _SETS = struct.Struct("=II"), struct.Struct("=6I")


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
    namespaces needs, for programs in it that have fewer."""
    held = _held()
    wanted = names or (NETWORK if os.geteuid() else (*NETWORK, *_CONFINING))
    return [name for name in wanted if not held >> _BITS[name] & 1]


@contextmanager
def only(*names: str) -> Iterator[None]:
    """In the block only these capabilities of this thread are in effect, as far as it has them.

    A slip in the block cannot use another one, such as reading any file. It is no confinement:
    the others stay permitted, as they are in effect again behind the block.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    header = _HEADER.pack(_VERSION_3, 0)
    found = ctypes.create_string_buffer(_SETS.size)

    def call(function: Any, sets: Any) -> None:
        if function(header, sets):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    call(libc.capget, found)
    effective, permitted, inheritable, *high = _SETS.unpack(found.raw)
    kept = effective & sum(1 << _BITS[name] for name in names)
    call(libc.capset, _SETS.pack(kept, permitted, inheritable, 0, *high[1:]))
    try:
        yield
    finally:
        call(libc.capset, found.raw)
