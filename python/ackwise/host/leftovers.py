# SPDX-License-Identifier: MIT
"""What a killed run leaves behind, and which of it the next run may remove.

Temporary namespaces, folders and files carry the name of the process that made them:

    ackwise-PIDNS-PID-START-RANDOM     PIDNS: its PID namespace; START: the time it started, so
                                       that a later process with the same number is not mistaken

Removed is what belongs to this user and whose process has ended. A process in another PID
namespace cannot be seen from here, so what it made stays.
"""

import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_NAME = re.compile(r"ackwise-(\d+)-(\d+)-(\d+)-[0-9a-f]{8}")
_STATE, _START = 0, 19  # fields of /proc/PID/stat behind the command's name


def _started(pid: int) -> str:
    """When a process started, in ticks since boot; "" if it has ended."""
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
    """A unique name that says which process it belongs to."""
    pid = os.getpid()
    return f"ackwise-{_pid_namespace()}-{pid}-{_started(pid)}-{secrets.token_hex(4)}"


def is_abandoned(name: str) -> bool:
    """Whether a name belongs to a process that has ended."""
    found = _NAME.search(name)
    return (
        found is not None and found[1] == _pid_namespace() and _started(int(found[2])) != found[3]
    )


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for the block. Those that killed runs left are removed first."""
    remove_abandoned(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=f"{owned_name()}-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def remove_abandoned(folder: Path) -> None:
    """Removes the files and folders in `folder` that killed runs of this user left."""
    with suppress(OSError), os.scandir(folder) as entries:
        for one in entries:
            if not is_abandoned(one.name):
                continue
            with suppress(OSError):
                if one.stat(follow_symlinks=False).st_uid != os.geteuid():
                    continue
                if one.is_dir(follow_symlinks=False):
                    shutil.rmtree(one.path, ignore_errors=True)
                else:
                    Path(one.path).unlink()
