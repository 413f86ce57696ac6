# SPDX-License-Identifier: MIT
"""Capabilities of this process."""

import ctypes
import os
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ackwise.errors import RunError

_BITS = {
    "CAP_CHOWN": 0,
    "CAP_DAC_OVERRIDE": 1,
    "CAP_FOWNER": 3,
    "CAP_KILL": 5,
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
    "CAP_SETPCAP": 8,
    "CAP_NET_ADMIN": 12,
    "CAP_NET_RAW": 13,
    "CAP_SYS_ADMIN": 21,
    "CAP_PERFMON": 38,
    "CAP_BPF": 39,
}
# CAP_NET_ADMIN creates links and queues, CAP_SYS_ADMIN creates namespaces, CAP_NET_RAW captures.
NETWORK = ("CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_SYS_ADMIN")
# Needed by root to start a program as another user with fewer capabilities, and to end it.
CONFINING = ("CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP")
# Needed to write to another user's folder.
FILES = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER")
_PR_SET_NO_NEW_PRIVS = 38
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
    """Whether this process may do what its caller may not: it is root or has capabilities."""
    return os.geteuid() == 0 or _held() != 0


def missing_capabilities(*names: str) -> list[str]:
    """The capabilities among `names` that this process lacks. Default: those for a network of
    namespaces whose programs run with fewer capabilities."""
    held = _held()
    wanted = names or (NETWORK if os.geteuid() else (*NETWORK, *CONFINING))
    return [name for name in wanted if not held >> _BITS[name] & 1]


@contextmanager
def only(*names: str) -> Iterator[None]:
    """During the block only these capabilities are in effect in this thread, as far as it has them.

    A mistake in the block cannot use another one, for example to read any file. This is no sandbox:
    the others stay permitted, because they are in effect again after the block.
    """
    effective, permitted, inheritable = _sets()
    _set(effective & _bits(names), permitted, inheritable)
    try:
        yield
    finally:
        _set(effective, permitted, inheritable)


def keep_only(*names: str) -> None:
    """Drops every capability except these for good, in this thread, in threads that it starts and
    in programs that they run. RunError when the kernel refuses."""
    kept = _sets()[0] & _bits(names)
    if ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise RunError("privileges that are not needed cannot be dropped: prctl failed")
    _set(kept, kept, 0)


def _bits(names: Iterable[str]) -> int:
    return sum(1 << _BITS[name] for name in names)


def _sets() -> tuple[int, int, int]:
    """The effective, permitted and inheritable capabilities of this thread."""
    found = ctypes.create_string_buffer(_SETS.size)
    _call("capget", found)
    words = _SETS.unpack(found.raw)
    effective, permitted, inheritable = (
        low | high << 32 for low, high in zip(words[:3], words[3:], strict=True)
    )
    return effective, permitted, inheritable


def _set(*sets: int) -> None:
    words = [bits >> shift & 0xFFFFFFFF for shift in (0, 32) for bits in sets]
    _call("capset", _SETS.pack(*words))


def _call(name: str, sets: Any) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc[name](_HEADER.pack(_VERSION_3, 0), sets):
        said = os.strerror(ctypes.get_errno())
        raise RunError(f"privileges that are not needed cannot be dropped: {name}: {said}")
