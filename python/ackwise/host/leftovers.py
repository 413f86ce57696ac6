# SPDX-License-Identifier: MIT
"""Temporary objects that a killed run leaves behind, and which of them the next run may remove.

Temporary namespaces, folders and files carry the name of the process that made them:

    ackwise-PIDNS-PID-START-RANDOM     PIDNS: its PID namespace; START: the time it started, so
                                       that a later process with the same number is not mistaken

An object is removed if it belongs to this user and its process has ended. Processes in another PID
namespace cannot be seen from here, so their objects stay. Folders are removed only where temporary
folders are made, which is in places that are ours (see `folders`): elsewhere somebody could give
such a name to a folder of this user.
"""

import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ackwise.host import folders

_NAME = re.compile(r"\.?ackwise-(\d+)-(\d+)-(\d+)-[0-9a-f]{8}")
_STATE, _START = 0, 19  # fields of /proc/PID/stat after the command's name
_cleaned: set[tuple[int, int, bool]] = set()  # device and inode of folders already cleaned


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


def is_running(name: str) -> bool:
    """Whether a name belongs to a process that is seen here and has not ended."""
    found = _NAME.match(name)
    return (
        found is not None and found[1] == _pid_namespace() and _started(int(found[2])) == found[3]
    )


@contextmanager
def temporary_folder(within: Path | None = None) -> Iterator[Path]:
    """A temporary folder that only this user can enter, during the block. Folders that killed runs
    left are removed first. InputError if others could replace it."""
    place = folders.ours(within or Path(tempfile.gettempdir()), "TMPDIR", shared=True)
    with folders.entered(place) as descriptor:
        remove_abandoned_once(descriptor, with_folders=True)
        name = owned_name()
        os.mkdir(name, 0o700, dir_fd=descriptor)
        try:
            yield place / name
        finally:
            with suppress(OSError):
                folders.remove_tree_at(descriptor, name)


def remove_abandoned(folder: Path) -> None:
    """Removes the files that killed runs of this user left in a folder."""
    with suppress(OSError), folders.entered(folder) as descriptor:
        _remove_abandoned(descriptor, with_folders=False)


def remove_abandoned_once(folder: int, *, with_folders: bool = False) -> None:
    """The same for an open folder, but only once per process."""
    found = os.fstat(folder)
    if (found.st_dev, found.st_ino, with_folders) not in _cleaned:
        _cleaned.add((found.st_dev, found.st_ino, with_folders))
        with suppress(OSError), folders.listed(folder) as descriptor:
            _remove_abandoned(descriptor, with_folders=with_folders)


def _remove_abandoned(folder: int, *, with_folders: bool) -> None:
    for name in filter(is_abandoned, folders.names(folder)):
        with suppress(OSError):
            _remove(folder, name, with_folders=with_folders)


def _remove(folder: int, name: str, *, with_folders: bool) -> None:
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if found.st_uid != os.geteuid():
        return
    if not stat.S_ISDIR(found.st_mode):
        os.unlink(name, dir_fd=folder)
    # Whoever may write to a folder can move it here.
    elif with_folders and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        folders.remove_tree_at(folder, name)
