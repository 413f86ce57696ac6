# SPDX-License-Identifier: MIT
"""Network namespaces of this host."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Unpack

from ackwise.errors import RunError
from ackwise.host.leftovers import is_abandoned, owned_name
from ackwise.host.programs import Options, do, program, run, tethered

_NAMES = Path("/run/netns")
_NOBODY = 65_534
_REMOVE_S = 60.0
_CLONE_NEWNET = 0x40000000
_FOR_NETWORKS: Options = {"privileges": ("net_admin", "sys_admin")}


def inside(namespace: str, *words: str, **options: Unpack[Options]) -> list[str]:
    """The command that runs `words` in a namespace; the options apply to the program run there."""
    return [program("ip"), "netns", "exec", namespace, *tethered(words, **options)]


def as_nobody(*capabilities: str) -> Options:
    """Options for a program that needs only these capabilities: root starts it as user nobody."""
    if os.geteuid() != 0:
        return {}
    return {"user": _NOBODY, "privileges": capabilities}


def set_up(*words: str) -> None:
    """Runs `ip`, `tc` or `ethtool` with network capabilities only; RunError when it fails."""
    do(*words, **_as_needed())


def _as_needed() -> Options:
    return _FOR_NETWORKS if os.geteuid() == 0 else {}


@contextmanager
def namespace(end: str) -> Iterator[str]:
    """Creates a network namespace, named after its owner and `end`, and always removes it.
    Namespaces of killed runs are removed first."""
    _remove_abandoned()
    name = f"{owned_name()}-{end}"
    try:
        set_up("ip", "netns", "add", name)
        yield name
    finally:
        _remove(name)


def enter(namespace: str) -> None:
    """Moves this thread into a network namespace; descriptors that are open keep theirs. RunError
    when the kernel refuses."""
    with (_NAMES / namespace).open() as there:
        _move(there.fileno(), namespace)


@contextmanager
def within(namespace: str) -> Iterator[None]:
    """Keeps this thread in the namespace during the block."""
    with Path("/proc/thread-self/ns/net").open() as home:
        enter(namespace)
        try:
            yield
        finally:
            _move(home.fileno(), "it came from")


def _move(descriptor: int, name: str) -> None:
    # os.setns() is newer than the oldest supported Python
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET):
        raise RunError(f"namespace {name}: {os.strerror(ctypes.get_errno())}")


def _remove(name: str) -> None:
    # Deleting a namespace deletes the devices and queues in it. A busy kernel may take its time for
    # that, and nobody else would do it.
    with suppress(RunError):
        run(["ip", "netns", "del", name], timeout_s=_REMOVE_S, check=True, **_as_needed())


def _remove_abandoned() -> None:
    with suppress(OSError):
        for place in _NAMES.iterdir():
            if is_abandoned(place.name):
                _remove(place.name)
