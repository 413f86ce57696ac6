# SPDX-License-Identifier: MIT
"""Network namespaces of this host."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from ackwise.host.tools import do, program


def inside(namespace: str, *words: str) -> list[str]:
    """The command that runs `words` in a namespace."""
    return [program("ip"), "netns", "exec", namespace, program(words[0]), *words[1:]]


@contextmanager
def namespace(name: str) -> Iterator[str]:
    """Creates a network namespace and always removes it."""
    try:
        do("ip", "netns", "add", name)
        yield name
    finally:
        # Deleting a namespace deletes the devices and queues in it.
        subprocess.run([program("ip"), "netns", "del", name], capture_output=True, timeout=30)
