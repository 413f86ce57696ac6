# SPDX-License-Identifier: MIT
"""The one way in which output reaches a file, so that nothing is lost or left half written.

the path leads to                what happens
a regular file, or nothing       a file beside it takes its place once it is complete
a symbolic link                  the same happens to what it points to; the link stays
a device, FIFO or /dev/stdout    it is opened and written through, once all is there
a directory or socket            it is refused
"""

import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from ackwise.errors import InputError, RunError
from ackwise.host.leftovers import owned_name, remove_abandoned

STDOUT = "-"
_LINKS_MAX = 40
_IN_MEMORY_BYTES = 1 << 26
_CAPTURES = (
    *(b"\xa1\xb2\xc3\xd4", b"\xd4\xc3\xb2\xa1"),  # pcap in microseconds
    *(b"\xa1\xb2\x3c\x4d", b"\x4d\x3c\xb2\xa1"),  # pcap in nanoseconds
    b"\x0a\x0d\x0d\x0a",  # pcapng
)
_REMEDIES = {
    errno.ENOSPC: "free some space or write elsewhere",
    errno.EDQUOT: "free some space or write elsewhere",
    errno.EFBIG: "write to a file system that takes larger files",
    errno.EACCES: "give a file that you may write",
    errno.EPERM: "give a file that you may write",
    errno.EROFS: "give a file on another file system",
    errno.EPIPE: "its reader closed it",
    errno.EBADF: "it is closed",
}


def reason(problem: OSError) -> str:
    """What went wrong with a file, and what to do about it, without the file's name."""
    words = problem.strerror or str(problem)
    remedy = _REMEDIES.get(problem.errno or 0)
    return f"{words}; {remedy}" if remedy else words


def _followed(path: str) -> Path:
    """Where a path leads. Links in /proc stay: they name open descriptors, not paths."""
    place = Path(path)
    for _ in range(_LINKS_MAX):
        place = place.parent.resolve() / place.name
        if place.is_relative_to("/proc") or not place.is_symlink():
            return place
        place = place.parent / place.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _status(place: Path) -> os.stat_result | None:
    """None if nothing is there."""
    try:
        return place.stat()
    except FileNotFoundError:
        return None


def _is_replaced(place: Path, found: os.stat_result | None) -> bool:
    return not place.is_relative_to("/proc") and (found is None or stat.S_ISREG(found.st_mode))


def is_capture(path: str | Path) -> bool:
    """Whether a regular file begins as a pcap or pcapng file does."""
    place = Path(path)
    try:
        if not place.is_file():
            return False
        with place.open("rb") as stream:
            return stream.read(4) in _CAPTURES
    except (OSError, ValueError):
        return False


def check_target(path: str, option: str, *, replace_capture: bool = False) -> None:
    """InputError, before any run, if the output could not be written to `path`, or would destroy a
    capture: what was measured cannot be had again, what is computed can."""
    if path == STDOUT:
        return
    if not path.strip() or "\0" in path:
        raise InputError(f'{option}: "{path!r}" is not a valid file name')
    try:
        place = _followed(path)
        found = _status(place)
    except OSError as problem:
        raise InputError(f"{option}: {path}: {problem.strerror}; give another file") from None
    if path.endswith("/") or (found and stat.S_ISDIR(found.st_mode)):
        raise InputError(f"{option}: {path}: is a directory; give a file name")
    if found and stat.S_ISSOCK(found.st_mode):
        raise InputError(f"{option}: {path}: is a socket; give a file name")
    if found and not os.access(place, os.W_OK):
        raise InputError(f"{option}: {path}: is write-protected; give another file")
    if _is_replaced(place, found):
        _check_folder(place.parent, path, option)
        if not replace_capture and is_capture(place):
            raise InputError(f"{option}: {path}: is a capture; give another file name")


def _check_folder(folder: Path, path: str, option: str) -> None:
    if not folder.is_dir():
        raise InputError(f"{option}: {path}: there is no directory {folder}; create it first")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{option}: {path}: the directory {folder} is not writable")


def check_folder(folder: Path, option: str) -> None:
    """InputError, before any run, if `folder` is not there and cannot be made."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir():
        raise InputError(f"{option}: {folder}: {there} is not a directory; give a directory")
    if not os.access(there, os.W_OK):
        raise InputError(f"{option}: {folder}: the directory {there} is not writable")


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/ackwise, or ~/.cache/ackwise; InputError for a user without a home."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if Path(base).is_absolute():
        return Path(base) / "ackwise"
    try:
        return Path.home() / ".cache" / "ackwise"
    except RuntimeError:
        raise InputError("no home directory is known; set HOME or XDG_CACHE_HOME") from None


@contextmanager
def writing(path: str) -> Iterator[IO[bytes]]:
    """A stream with a descriptor; what is in it when the block succeeds becomes `path`. After an
    exception nothing has changed. Raises RunError when the result cannot be written."""
    with _explained(path):
        place = _followed(path)
        found = _status(place)
    if _is_replaced(place, found):
        with _replacing(path, place, found) as stream:
            yield stream
        return
    with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES) as content:
        yield content
        with _explained(path):
            content.seek(0)
            with os.fdopen(_opened(place), "wb", buffering=0) as out:
                shutil.copyfileobj(content, out)


def _opened(place: Path) -> int:
    """A descriptor to write through. One of this process is shared, not opened again: opened again
    it would begin at the start of the file behind it."""
    if place.parent == Path(f"/proc/{os.getpid()}/fd"):
        sys.stdout.flush()
        return os.dup(int(place.name))
    return os.open(place, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)


@contextmanager
def _replacing(path: str, place: Path, found: os.stat_result | None) -> Iterator[IO[bytes]]:
    with _explained(path):
        remove_abandoned(place.parent)
        folder = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    part = f".{owned_name()}.part"
    try:
        with _explained(path):
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            descriptor = os.open(part, flags, 0o666, dir_fd=folder)
        with os.fdopen(descriptor, "w+b") as stream:
            yield stream
            with _explained(path):
                stream.flush()
                if found is not None:
                    with suppress(PermissionError):  # only root may give files away
                        os.fchown(descriptor, found.st_uid, found.st_gid)
                    os.fchmod(descriptor, found.st_mode & 0o777)
                os.fsync(descriptor)
        with _explained(path):
            os.replace(part, place.name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with suppress(OSError):
            os.unlink(part, dir_fd=folder)
        os.close(folder)


@contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise RunError(f"{path}: cannot be written: {reason(problem)}") from None


def write_whole(path: str, data: bytes) -> None:
    """`data` becomes the content of `path`, or goes to standard output."""
    if path == STDOUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    with writing(path) as stream, _explained(path):
        stream.write(data)
