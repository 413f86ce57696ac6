# SPDX-License-Identifier: MIT
"""Temporary objects that a killed run leaves behind, and which of them the next run may remove.

Temporary namespaces, folders and files carry the name of the process that made them:

    ackwise-PIDNS-PID-START-RANDOM     PIDNS: its PID namespace; START: the time it started, so
                                       that a later process with the same number is not mistaken

An object is removed if it belongs to this user and its process has ended. Processes in another PID
namespace cannot be seen from here, so their objects stay.
"""

import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_NAME = re.compile(r"\.?ackwise-(\d+)-(\d+)-(\d+)-[0-9a-f]{8}")
_STATE, _START = 0, 19  # fields of /proc/PID/stat after the command's name
_cleaned: set[tuple[int, int]] = set()  # device and inode of folders already cleaned


def _started(pid: int) -> str:
    """Start time of a process in ticks since boot; "" if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].decode().split()
    except OSError:
        return ""
    return "" if fields[_STATE] in "ZX" else fields[_START]


def _pid_namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        return ""


def owned_name() -> str:
    """A unique name that identifies the process it belongs to."""
    pid = os.getpid()
    return f"ackwise-{_pid_namespace()}-{pid}-{_started(pid)}-{secrets.token_hex(4)}"


def is_abandoned(name: str) -> bool:
    """Whether a name belongs to a process that has ended."""
    found = _NAME.match(name)
    return (
        found is not None and found[1] == _pid_namespace() and _started(int(found[2])) != found[3]
    )


@contextmanager
def temporary_folder(within: Path | None = None) -> Iterator[Path]:
    """A temporary folder during the block. Folders that killed runs left are removed first."""
    place = within or Path(tempfile.gettempdir())
    remove_abandoned_once(place)
    with tempfile.TemporaryDirectory(
        prefix=f"{owned_name()}-", dir=place, ignore_cleanup_errors=True
    ) as name:
        yield Path(name)


def remove_abandoned(folder: Path, *, dir_fd: int | None = None) -> None:
    """Removes the files and folders in `folder` that killed runs of this user left."""
    with suppress(OSError):  # the folder may be writable but not readable
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=dir_fd)
        try:
            _remove_abandoned(descriptor)
        finally:
            os.close(descriptor)


def remove_abandoned_once(folder: Path, *, dir_fd: int | None = None) -> None:
    """Like `remove_abandoned`, but only once per process."""
    found = os.stat(folder, dir_fd=dir_fd)
    if (found.st_dev, found.st_ino) not in _cleaned:
        _cleaned.add((found.st_dev, found.st_ino))
        remove_abandoned(folder, dir_fd=dir_fd)


def _remove_abandoned(folder: int) -> None:
    # Relative names and no symbolic links: in another user's folder only its own content can be
    # removed, and that user could remove it anyway.
    with os.scandir(folder) as entries:
        abandoned = [one.name for one in entries if is_abandoned(one.name)]
    for name in abandoned:
        with suppress(OSError):
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if found.st_uid != os.geteuid():
                continue
            if stat.S_ISDIR(found.st_mode):
                shutil.rmtree(name, ignore_errors=True, dir_fd=folder)
            else:
                os.unlink(name, dir_fd=folder)
