# SPDX-License-Identifier: MIT
"""Network namespaces of this host."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ackwise.host.leftovers import is_abandoned, owned_name
from ackwise.host.programs import do, program, run

_NAMES = Path("/run/netns")


def inside(namespace: str, *words: str) -> list[str]:
    """The command that runs `words` in a namespace."""
    return [program("ip"), "netns", "exec", namespace, program(words[0]), *words[1:]]


@contextmanager
def namespace(end: str) -> Iterator[str]:
    """Creates a network namespace, named after its owner and `end`, and always removes it. Those
    of killed runs are removed first."""
    _remove_abandoned()
    name = f"{owned_name()}-{end}"
    try:
        do("ip", "netns", "add", name)
        yield name
    finally:
        _remove(name)


def _remove(name: str) -> None:
    # Deleting a namespace deletes the devices and queues in it.
    run(["ip", "netns", "del", name], timeout_s=30)


def _remove_abandoned() -> None:
    with suppress(OSError):
        for place in _NAMES.iterdir():
            if is_abandoned(place.name):
                _remove(place.name)
