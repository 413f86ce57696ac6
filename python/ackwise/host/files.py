# SPDX-License-Identifier: MIT
"""The one way in which output reaches a file, so that nothing is lost or left half written.

the path leads to                what happens
a regular file, or nothing       a file beside it takes its place once it is complete
a symbolic link                  the same happens to what it points to; the link stays (`paths` says
                                 whose links are followed)
a device, FIFO or /dev/stdout    it is opened and written through, once all is there
a directory or socket            it is refused
"""

import errno
import fcntl
import math
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from ackwise.errors import InputError, RunError
from ackwise.host import environment, folders
from ackwise.host.leftovers import owned_name, remove_abandoned_once
from ackwise.host.paths import Place, followed
from ackwise.host.reading import open_regular

STDOUT = "-"
_PRIVATE, _ORDINARY = 0o600, 0o666
_LOCK_POLL_S = 0.05
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
    errno.ELOOP: "give the file itself",
}


def reason(problem: OSError) -> str:
    """Description of a file error and its remedy, without the file's name."""
    words = problem.strerror or str(problem)
    remedy = _REMEDIES.get(problem.errno or 0)
    return f"{words}; {remedy}" if remedy else words


def _is_replaced(place: Place) -> bool:
    """Whether a new file takes its place; devices and FIFOs are written through instead."""
    if place.is_descriptor:
        return False
    return place.found is None or stat.S_ISREG(place.found.st_mode)


def is_capture(path: str | Path) -> bool:
    """Whether the content of a regular file starts like a pcap or pcapng file."""
    try:
        with open_regular(path, "") as stream:
            return stream.read(4) in _CAPTURES
    except (InputError, OSError):
        return False


def check_target(path: str, option: str, *, replace_capture: bool = False) -> None:
    """InputError, before any run, if the output could not be written to `path` or would destroy a
    capture: measurements cannot be repeated, computed results can."""
    if path == STDOUT:
        return
    if not path.strip() or "\0" in path:
        raise InputError(f'{option}: "{path!r}" is not a valid file name')
    try:
        if path.endswith("/"):
            raise IsADirectoryError
        with followed(path) as place:
            _check_place(place, f"{option}: {path}")
    except IsADirectoryError:
        raise InputError(f"{option}: {path}: is a directory; give a file name") from None
    except FileNotFoundError:
        folder = Path(path).parent
        raise InputError(
            f"{option}: {path}: there is no directory {folder}; create it first"
        ) from None
    except OSError as problem:
        raise InputError(f"{option}: {path}: {problem.strerror}; give another file") from None
    if not replace_capture and is_capture(path):
        raise InputError(f"{option}: {path}: is a capture; give another file name")


def _check_place(place: Place, subject: str) -> None:
    mode = place.found.st_mode if place.found else 0
    if stat.S_ISDIR(mode):
        raise IsADirectoryError
    if stat.S_ISSOCK(mode):
        raise InputError(f"{subject}: is a socket; give a file name")
    if place.found and not os.access(place.name, os.W_OK, dir_fd=place.folder):
        raise InputError(f"{subject}: is write-protected; give another file")
    if _is_replaced(place):
        _check_writable(place.where, subject)


def check_folder(folder: Path, option: str) -> None:
    """InputError, before any run, if `folder` does not exist and cannot be created."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir():
        raise InputError(f"{option}: {folder}: {there} is not a directory; give a directory")
    _check_writable(there, f"{option}: {folder}")


def _check_writable(folder: Path, subject: str) -> None:
    if not os.access(folder, os.W_OK):
        raise InputError(f"{subject}: the directory {folder} is not writable")


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/ackwise, or ~/.cache/ackwise; InputError for a user without a home, or if
    others could replace it: programs are run from there."""
    base = environment.value("XDG_CACHE_HOME")
    if Path(base).is_absolute():
        return folders.ours(Path(base) / "ackwise", "XDG_CACHE_HOME")
    try:
        return folders.ours(Path.home() / ".cache" / "ackwise", "HOME")
    except RuntimeError:
        raise InputError("no home directory is known; set HOME or XDG_CACHE_HOME") from None


@contextmanager
def writing(path: str, *, private: bool = False) -> Iterator[IO[bytes]]:
    """A stream with a descriptor; its content becomes the file `path`, on disk, when the block
    succeeds. After an exception nothing has changed. `private`: nobody else can read or write the
    file, so it replaces whatever is there.

    Raises RunError when the result cannot be written.
    """
    with ExitStack() as stack:
        with _explained(path):
            place = stack.enter_context(followed(path))
        if private or _is_replaced(place):
            yield from _replacing(path, place, private)
            return
        content = stack.enter_context(tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES))
        yield content
        with _explained(path):
            content.seek(0)
            with os.fdopen(_opened(place), "wb", buffering=0) as out:
                shutil.copyfileobj(content, out)


def _opened(place: Place) -> int:
    """A descriptor to write through. A descriptor of this process is duplicated: opening it again
    would start at the beginning of the file behind it."""
    here = Path("/proc/self/fd").stat()
    if place.is_descriptor and os.path.samestat(os.fstat(place.folder), here):
        sys.stdout.flush()
        return os.dup(int(place.name))
    return place.open(os.O_WRONLY | os.O_APPEND)


def _replacing(path: str, place: Place, private: bool) -> Iterator[IO[bytes]]:
    part = f".{owned_name()}.part"
    found = None if private else place.found
    # A new file may be readable by more users than the one it replaces.
    mode = _PRIVATE if private or found else _ORDINARY
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with _explained(path):
        remove_abandoned_once(place.folder)
        descriptor = os.open(part, flags, mode, dir_fd=place.folder)
    stream = os.fdopen(descriptor, "w+b")
    try:
        yield stream
        with _explained(path):
            stream.flush()
            if found is not None:
                with suppress(PermissionError):  # only root may give files away
                    os.fchown(descriptor, found.st_uid, found.st_gid)
                os.fchmod(descriptor, found.st_mode & 0o777)
            os.fsync(descriptor)
            os.replace(part, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
            with suppress(PermissionError), folders.listed(place.folder) as there:
                os.fsync(there)
    finally:
        with suppress(OSError):  # what was not flushed is told already, with the file's name
            stream.close()
        with suppress(OSError):
            os.unlink(part, dir_fd=place.folder)


@contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise RunError(f"{path}: cannot be written: {reason(problem)}") from None


def write_whole(path: str, data: bytes, *, private: bool = False) -> None:
    """Writes `data` as the content of `path`, or to standard output."""
    write_pieces(path, (data,), private=private)


def write_pieces(path: str, pieces: Iterable[bytes], *, private: bool = False) -> None:
    """Like `write_whole`, for content that is produced while it is written."""
    if path == STDOUT:
        sys.stdout.flush()
        sys.stdout.buffer.writelines(pieces)
        sys.stdout.buffer.flush()
        return
    with writing(path, private=private) as stream, _explained(path):
        stream.writelines(pieces)


def tell(file: Path, text: str) -> None:
    """Writes to a file of the kernel, such as a sysctl; OSError where it refuses."""
    descriptor = os.open(file, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def create(path: Path) -> IO[bytes]:
    """A new file, open for reading and writing, readable by whoever can enter its folder. It is not
    synced to disk: for a temporary folder that nobody else can write to."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    stream = os.fdopen(os.open(path, flags, _PRIVATE), "w+b")
    os.fchmod(stream.fileno(), 0o644)
    return stream


def copy(file: Path, to: Path) -> None:
    """Copies the content of a plain file of ours, if there is one."""
    with suppress(FileNotFoundError), file.open("rb") as come, writing(str(to)) as kept:
        shutil.copyfileobj(come, kept)


def make_folder(folder: Path) -> None:
    """Creates a folder and its parents if needed; RunError if it cannot be created."""
    try:
        folders.make(folder)
    except OSError as problem:
        raise RunError(f"{folder}: cannot be made: {reason(problem)}") from None


class FolderGone(RunError):
    """The folder of a lock does not exist, or no longer."""


@contextmanager
def lock(
    path: Path, *, wait_s: float = math.inf, on_wait: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Holds a lock file during the block. The kernel releases it when the process ends, however it
    ends. `on_wait` is called once, with the holder's process number, if another has it.

    RunError when another process held it for `wait_s`, or when somebody else could hold it forever;
    FolderGone when its folder does not exist.
    """
    end = time.monotonic() + wait_s
    while (held := _locked(path)) is None:
        holder = _holder(path)
        if on_wait is not None:
            on_wait(holder)
            on_wait = None
        if time.monotonic() > end:
            raise RunError(
                f"{path}: process {holder} has held this lock for {wait_s:g} s; wait for it, or "
                "end it"
            )
        time.sleep(_LOCK_POLL_S)
    stack, folder, descriptor = held
    with stack:
        os.truncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        try:
            yield
        finally:
            # removed while locked: a waiting process notices that it is no longer the same file
            with suppress(OSError):
                os.unlink(path.name, dir_fd=folder)


def _locked(path: Path) -> tuple[ExitStack, int, int] | None:
    """Descriptors of the folder and of the file that holds the lock, closed by the stack; None
    while another has it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(folders.entered(path.parent))
            descriptor = os.open(path.name, flags, _PRIVATE, dir_fd=folder)
        except OSError as problem:
            gone = isinstance(problem, FileNotFoundError)
            raise (FolderGone if gone else RunError)(
                f"{path}: cannot be locked: {reason(problem)}"
            ) from None
        stack.callback(os.close, descriptor)
        found = os.fstat(descriptor)
        is_own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        if not is_own or found.st_nlink > 1:
            raise RunError(f"{path}: is not a lock file of this user; remove it")
        os.fchmod(descriptor, _PRIVATE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            there = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
            if not os.path.samestat(there, os.fstat(descriptor)):
                return None
        except (BlockingIOError, FileNotFoundError):
            return None
        return stack.pop_all(), folder, descriptor


def _holder(path: Path) -> str:
    with suppress(InputError, OSError), open_regular(path, "lock") as stream:
        return stream.read(20).decode("ascii", "replace").strip() or "unknown"
    return "unknown"
