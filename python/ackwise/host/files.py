# SPDX-License-Identifier: MIT
"""Files that are written completely or not at all."""

import os
import sys
import tempfile
from pathlib import Path

from ackwise.errors import InputError, RunError

STDOUT = "-"


def check_target(path: str, option: str) -> None:
    """InputError, before any run, if the result could not be written to `path`."""
    if path == STDOUT:
        return
    target = Path(path)
    if not path.strip() or "\0" in path:
        raise InputError(f'{option}: "{path!r}" is not a valid file name')
    if target.is_dir():
        raise InputError(f"{option}: {path}: is a directory; give a file name")
    parent = target.parent
    if not parent.is_dir():
        raise InputError(f"{option}: {path}: there is no directory {parent}; create it first")
    if not os.access(parent, os.W_OK):
        raise InputError(f"{option}: {path}: the directory {parent} is not writable")


def write_whole(path: str, data: bytes) -> None:
    """Writes a temporary file and renames it: readers see the old or the complete new file."""
    if path == STDOUT:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    temporary = ""
    try:
        with tempfile.NamedTemporaryFile(
            dir=target.parent, prefix=f".{target.name}.", suffix=".part", delete=False
        ) as stream:
            temporary = stream.name
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        # A temporary file is private; the result gets the usual permissions.
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)
        Path(temporary).replace(target)
    except OSError as problem:
        raise RunError(f"{path}: cannot be written: {problem.strerror or problem}") from None
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
