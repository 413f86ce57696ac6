# SPDX-License-Identifier: MIT
"""The room that a session of processes takes in its folders, also in files without a name."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

_DELETED = " (deleted)"
_File = tuple[int, int]  # device and inode


def files_in(places: Sequence[Path]) -> int:
    """Number of files and folders in these places."""
    return sum(
        len(inner) + len(names) for place in places for _, inner, names, _ in os.fwalk(place)
    )


def taken(places: Sequence[Path], session: int, files_max: int) -> tuple[int, int]:
    """Number of files and folders in these places, counted up to `files_max` and one more, and the
    bytes of all files, also of those that processes of the session have opened or mapped after
    their names were removed. Follows no link."""
    count, found = 0, dict[_File, int]()
    for place in places:
        try:
            for _, inner, names, folder in os.fwalk(place):
                count += len(inner) + len(names)
                for name in names[: files_max + 1]:
                    with suppress(OSError):
                        _note(found, os.stat(name, dir_fd=folder, follow_symlinks=False))
                if count > files_max:
                    break
        except RecursionError:  # folders in folders
            count = files_max + 1
    for process in _session(session):
        with suppress(OSError):
            for opened in process.joinpath("fd").iterdir():
                with suppress(OSError):
                    at = opened.stat()
                    if not at.st_nlink:
                        _note(found, at)
            for file, size in _mapped(process):
                found[file] = max(size, found.get(file, 0))
    return count, sum(found.values())


def _note(found: dict[_File, int], at: os.stat_result) -> None:
    if stat.S_ISREG(at.st_mode):
        found[at.st_dev, at.st_ino] = 512 * at.st_blocks


def _session(session: int) -> Iterator[Path]:
    """The processes of a session."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):
            if process.joinpath("stat").read_text().rpartition(")")[2].split()[3] == str(session):
                yield process


def _mapped(process: Path) -> Iterator[tuple[_File, int]]:
    """Files without a name that a process has mapped, each with the end of the mapped part."""
    for line in process.joinpath("maps").read_text(errors="replace").splitlines():
        if line.endswith(_DELETED):
            span, _, offset, device, inode = line.split(maxsplit=5)[:5]
            begin, end = (int(address, 16) for address in span.split("-"))
            major, minor = (int(part, 16) for part in device.split(":"))
            file = os.makedev(major, minor), int(inode)
            yield file, int(offset, 16) + end - begin
