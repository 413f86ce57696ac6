# SPDX-License-Identifier: MIT
"""Resolution of paths through descriptors, so that whoever may change a folder on the way cannot
redirect the operation at its end.

A symbolic link is followed if it belongs to root, to the caller, or to the owner of its target. So
nobody can make root write or read files of a third user.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

_LINKS_MAX = 40
_PROC_ROOT_INODE = 1
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True)
class Place:
    """The end of a path; valid while the context of `followed` is open."""

    folder: int  # a descriptor for `dir_fd`
    name: str  # name within that folder; open it with `open`
    found: os.stat_result | None  # None: no file exists there
    is_descriptor: bool  # a link in /proc that represents an open file

    @property
    def where(self) -> Path:
        """The folder's path, for messages."""
        return Path(f"/proc/self/fd/{self.folder}").readlink()

    def open(self, flags: int) -> int:
        """A descriptor. OSError if a file of another type has taken the place since."""
        if not self.is_descriptor:
            flags |= os.O_NOFOLLOW
        descriptor = os.open(self.name, flags | os.O_CLOEXEC | os.O_NOCTTY, dir_fd=self.folder)
        kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
        if self.found is None or kind != stat.S_IFMT(self.found.st_mode):
            os.close(descriptor)
            raise OSError(errno.ESTALE, "something else has taken its place")
        return descriptor


@contextmanager
def followed(path: str | Path) -> Iterator[Place]:
    """The place that a path leads to. Raises OSError."""
    with ExitStack() as stack:
        walk = _Walk(stack)
        yield walk.lead(walk.keep(os.open(".", _FOLDER)), os.fspath(path))


class _Walk:
    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        self.links = 0

    def keep(self, descriptor: int) -> int:
        self.stack.callback(os.close, descriptor)
        return descriptor

    def lead(self, folder: int, path: str) -> Place:
        if not path:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        if path.startswith("/"):
            folder = self.keep(os.open("/", _FOLDER))
        *before, last = path.split("/")
        for name in before:
            if name:
                folder = self.enter(self.end(folder, name))
        return self.end(folder, last or ".")

    def enter(self, place: Place) -> int:
        flags = _FOLDER if place.is_descriptor else _FOLDER | os.O_NOFOLLOW
        return self.keep(os.open(place.name, flags, dir_fd=place.folder))

    def end(self, folder: int, name: str) -> Place:
        try:
            seen = self.keep(os.open(name, _LOOK, dir_fd=folder))
        except FileNotFoundError:
            return Place(folder, name, None, False)
        found = os.fstat(seen)
        if not stat.S_ISLNK(found.st_mode):
            return Place(folder, name, found, False)
        self.links += 1
        if self.links > _LINKS_MAX:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if _is_descriptor(folder):
            return Place(folder, name, os.stat(name, dir_fd=folder), True)
        place = self.lead(folder, os.readlink("", dir_fd=seen))
        owner = (place.found or os.fstat(place.folder)).st_uid
        if found.st_uid not in (0, os.geteuid(), owner):
            raise OSError(errno.ELOOP, "a symbolic link of another user leads elsewhere")
        return place


def _is_descriptor(folder: int) -> bool:
    """Whether links in this folder represent open files; links at the top of /proc are ordinary
    names."""
    here = os.fstat(folder)
    return here.st_dev == Path("/proc").stat().st_dev and here.st_ino != _PROC_ROOT_INODE
