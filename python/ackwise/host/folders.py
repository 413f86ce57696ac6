# SPDX-License-Identifier: MIT
"""Folders: whose they are, and the only module that makes, copies, renames and removes in them.

What a path leads to is ours if nobody but this user and root can put something else in its place:
both own it and every folder above it, and others cannot write there, except in folders such as
/tmp, whose sticky bit keeps them from renaming what is not theirs. Programs, kernels and temporary
folders have to be ours, because what is found there is run or removed by its name. Results may be
written anywhere, by descriptors.
"""

import errno
import itertools
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ackwise.errors import InputError
from ackwise.host.paths import followed

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def stranger(path: Path, *, owners: Sequence[int] = (), shared: bool = False) -> str:
    """Who else could replace what `path` leads to, or "". What does not exist yet is judged by the
    folders above it.

    owners  who may own it; without it, this user and root. Whoever owns / may in any case: in a
            user namespace that is no known user.
    shared  others may make files in it, as in /tmp
    """
    try:
        whole = path.resolve()
        trusted = {*(owners or (0, os.geteuid())), Path("/").stat().st_uid}
        for place in (whole, *whole.parents):
            with suppress(FileNotFoundError):
                found = place.stat()
                if found.st_uid not in trusted:
                    return f"{place} belongs to user {found.st_uid}"
                # A group with the number of the owner is the owner's own.
                group = 0 if found.st_gid == found.st_uid else stat.S_IWGRP
                is_sticky = found.st_mode & stat.S_ISVTX and (shared or place != whole)
                if found.st_mode & (group | stat.S_IWOTH) and not is_sticky:
                    return f"others can write to {place}"
    except (OSError, RuntimeError) as problem:
        return f"it cannot be examined ({problem})"
    return ""


def ours(path: Path, what: str, *, shared: bool = False) -> Path:
    """The path without symbolic links. InputError, which begins with `what`, if others could
    replace what it leads to."""
    if whose := stranger(path, shared=shared):
        raise InputError(
            f"{what}: {path}: {whose}, who could replace what ackwise relies on; give a folder "
            "that only you and root can change"
        )
    return path.resolve()


@contextmanager
def entered(folder: Path) -> Iterator[int]:
    """A descriptor of an existing folder, to list it. Raises OSError."""
    with followed(folder) as place, _opened(place.name, place.folder) as descriptor:
        yield descriptor


@contextmanager
def listed(folder: int) -> Iterator[int]:
    """The same for a descriptor that need not allow that."""
    with _opened(".", folder) as descriptor:
        yield descriptor


@contextmanager
def _opened(name: str, above: int) -> Iterator[int]:
    descriptor = os.open(name, _OPEN, dir_fd=above)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def names(folder: int) -> list[str]:
    """What is in an open folder."""
    return os.listdir(folder)


def make(folder: Path, mode: int = 0o777, *, parents: bool = True) -> None:
    """Makes a folder, unless it exists; links of others are not followed, see `paths`. Raises
    OSError."""
    for place in reversed((folder, *folder.parents)) if parents else (folder,):
        with followed(place) as found:
            if found.found is None:
                with suppress(FileExistsError):
                    os.mkdir(found.name, mode, dir_fd=found.folder)
            elif not stat.S_ISDIR(found.found.st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(place))


def remove_tree(place: Path) -> None:
    """Removes a file, or a folder with all that is in it on the same mount. Raises OSError."""
    with entered(place.parent) as above:
        remove_tree_at(above, place.name)


def remove_tree_at(above: int, name: str) -> None:
    """`remove_tree` of a name in an open folder."""
    if not _is_folder(above, name):
        os.unlink(name, dir_fd=above)
        return
    mount = _mount(above)
    with _opened(name, above) as top:
        if _mount(top) == mount:
            _empty(top, mount)
    os.rmdir(name, dir_fd=above)


def _empty(top: int, mount: str) -> None:
    """Removes what is in an open folder on this mount, by moving folders up into it: however deep
    they are, one of them is open at a time."""
    known = set(names(top))
    fresh = (name for name in map(str, itertools.count()) if name not in known)
    pending = sorted(known)
    while pending:
        name = pending.pop()
        if not _is_folder(top, name):
            os.unlink(name, dir_fd=top)
            continue
        with _opened(name, top) as folder:
            for inner in names(folder) if _mount(folder) == mount else ():
                if _is_folder(folder, inner):
                    pending.append(next(fresh))
                    os.rename(inner, pending[-1], src_dir_fd=folder, dst_dir_fd=top)
                else:
                    os.unlink(inner, dir_fd=folder)
        os.rmdir(name, dir_fd=top)


def _is_folder(above: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode)


def _mount(folder: int) -> str:
    """The number of the mount that an open folder is on."""
    lines = Path(f"/proc/self/fdinfo/{folder}").read_text(encoding="ascii").splitlines()
    return next(line for line in lines if line.startswith("mnt_id:"))


def remove_files(folder: Path, chosen: Callable[[str], bool]) -> None:
    """Removes the chosen names of a folder, except those of folders."""
    with suppress(FileNotFoundError), entered(folder) as descriptor:
        for name in filter(chosen, names(descriptor)):
            with suppress(FileNotFoundError, IsADirectoryError, PermissionError):
                os.unlink(name, dir_fd=descriptor)


# --- in folders that are ours ---------------------------------------------------------------------


def rename(place: Path, to: Path) -> None:
    """Renames a file or folder, replacing a file."""
    place.rename(to)


def remove_empty(folder: Path) -> None:
    """Removes a folder if it is empty. Raises OSError."""
    folder.rmdir()


def remove_file(file: Path) -> None:
    """Removes a file, unless it is gone."""
    file.unlink(missing_ok=True)


def copy_file(file: Path, to: Path) -> None:
    """Copies a file with its mode and times."""
    shutil.copy2(file, to)


def copy_tree(folder: Path, to: Path, left_out: Iterable[str] = ()) -> None:
    """Copies what is in a folder into an existing one, except names with these patterns; symbolic
    links stay links."""
    ignored = shutil.ignore_patterns(*left_out)
    shutil.copytree(folder, to, dirs_exist_ok=True, symlinks=True, ignore=ignored)
