# SPDX-License-Identifier: MIT
"""Other processes of this host, and waiting for what they do."""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_until(ready: Callable[[], bool], limit_s: float = 300) -> None:
    end = time.monotonic() + limit_s
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.05)


def descendants(pid: int) -> set[int]:
    """Those alive while this looks: a process that ends meanwhile has none."""
    found = set()
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found |= {child} | descendants(child)
    return found
