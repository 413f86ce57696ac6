# SPDX-License-Identifier: MIT
"""Control groups of version 2: where they are, and one that lasts for a block."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ackwise.errors import RunError
from ackwise.host import files
from ackwise.host.leftovers import is_abandoned, owned_name

MOUNT = "mount -t cgroup2 none /sys/fs/cgroup/unified"
_MOUNTS = Path("/proc/self/mountinfo")
_END_S = 5.0


def root() -> Path | None:
    """Where version 2 is mounted; None where it is not."""
    with suppress(OSError):
        for line in _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
            before, _, after = line.partition(" - ")
            if after.startswith("cgroup2 "):
                return Path(before.split()[4])
    return None


def is_group(folder: Path) -> bool:
    """Whether a folder is a group of version 2."""
    return (folder / "cgroup.procs").exists() and (folder / "cgroup.events").exists()


@contextmanager
def group() -> Iterator[Path]:
    """A group of its own during the block; whatever still runs in it then is killed. Groups of
    killed runs are removed first. RunError when none can be made."""
    top = root()
    if top is None:
        raise RunError(f"no cgroup of version 2 is mounted; `{MOUNT}`")
    remove_abandoned()
    made = top / owned_name()
    try:
        made.mkdir()
    except OSError as problem:
        raise RunError(f"{made}: {problem.strerror}; run it with sudo") from None
    try:
        yield made
    finally:
        _remove(made)


def remove_abandoned() -> list[str]:
    """Removes the groups that killed runs left; their names."""
    top = root()
    found = [] if top is None else [one for one in top.iterdir() if is_abandoned(one.name)]
    for one in found:
        _remove(one)
    return [one.name for one in found]


def cpu_us(folder: Path) -> int:
    """CPU time that the processes of a group have used."""
    words = (folder / "cpu.stat").read_text(encoding="ascii").split()
    return int(words[words.index("usage_usec") + 1])


def _remove(folder: Path) -> None:
    with suppress(OSError):
        files.tell(folder / "cgroup.kill", "1")
    end = time.monotonic() + _END_S
    while True:
        try:
            folder.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError as problem:  # a killed process needs a moment to end
            if time.monotonic() > end:
                raise RunError(f"{folder}: cannot be removed: {problem.strerror}") from None
            time.sleep(0.01)
