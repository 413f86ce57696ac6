# SPDX-License-Identifier: MIT
"""The only module that opens files which somebody else may have written."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from ackwise.errors import InputError
from ackwise.host.paths import followed


def open_regular(path: str | Path, what: str, give: str = "a regular file") -> BinaryIO:
    """A stream of a regular file. Other files are refused: a FIFO would block, and reading from a
    device can change it.

    Raises InputError, in which `what` names the file and `give` is the remedy.
    """
    try:
        with followed(path) as place:
            mode = place.found.st_mode if place.found else 0
            if place.found is None or not stat.S_ISREG(mode):
                wrong = "is a directory" if stat.S_ISDIR(mode) else "is not a regular file"
                raise InputError(f"{what}: {wrong if mode else 'does not exist'}; give {give}")
            if not place.found.st_size:
                # The kernel's own files report a size of 0. Reading them can block, or consume data
                # that others need (/proc/kmsg).
                return Path(os.devnull).open("rb")
            return os.fdopen(place.open(os.O_RDONLY | os.O_NONBLOCK), "rb")
    except FileNotFoundError:
        raise InputError(f"{what}: does not exist; give {give}") from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise InputError(f"{what}: cannot be read: {reason}") from None


def read_bounded(
    path: str | Path, limit_bytes: int, what: str, give: str = "a regular file"
) -> bytes:
    """The whole content of a regular file. Raises InputError, also when it exceeds
    `limit_bytes`."""
    with open_regular(path, what, give) as stream:
        try:
            data = stream.read(limit_bytes + 1)
        except OSError as problem:
            raise InputError(f"{what}: cannot be read: {problem.strerror}") from None
    if len(data) > limit_bytes:
        raise InputError(f"{what}: larger than {limit_bytes} bytes, the limit; give {give}")
    return data
