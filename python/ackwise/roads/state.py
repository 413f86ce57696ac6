# SPDX-License-Identifier: MIT
"""What one `run` says to the next, and to `--status` and `--stop`: a lock that the kernel releases
with its holder, and a file beside it. One of both for each network namespace."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ackwise import bounded
from ackwise.errors import InputError, RunError
from ackwise.host import files, folders, reading
from ackwise.host.leftovers import is_running

RUN_DIRECTORY = Path("/run/ackwise")
_BYTES_MAX = 1 << 16


@dataclass(frozen=True)
class Record:
    """A policy that is in force."""

    process: int
    owner: str  # its name among processes, see `leftovers`
    policy: str
    road: str
    does: str
    since_s: float  # seconds since the epoch
    before: str = ""  # what a sysctl said before
    counters: dict[str, int] = field(default_factory=dict)


class Keeper:
    """The files of this process's network namespace."""

    def __init__(self, directory: Path = RUN_DIRECTORY) -> None:
        self.directory = directory
        try:
            number = Path("/proc/self/ns/net").stat().st_ino
        except OSError:
            number = 0  # a kernel without namespaces
        self.file = directory / f"run-{number}.json"
        self._lock = directory / f"run-{number}.lock"

    @contextmanager
    def lock(self, wait_s: float = 1.0) -> Iterator[None]:
        """Holds the lock during the block; RunError when another run does."""
        end = time.monotonic() + wait_s
        while True:
            self._make_directory()
            held = files.lock(self._lock, wait_s=max(0.0, end - time.monotonic()))
            try:
                held.__enter__()
                break
            except RunError as problem:
                # whoever ended just now has removed the directory
                if isinstance(problem, files.FolderGone) and time.monotonic() < end:
                    continue
                record = self.read()
                if record is None:
                    raise
                raise RunError(
                    f"run: {record.policy} is in force, by process {record.process}; "
                    "`ackwise run --status` says more, `ackwise run --stop` ends it"
                ) from None
        try:
            yield
        finally:
            held.__exit__(None, None, None)
            self.clean()

    def clean(self, *, lock: bool = False) -> None:
        """Removes the directory, if it is empty; with `lock`, the lock file of a dead holder."""
        with suppress(OSError):
            if lock:
                folders.remove_file(self._lock)
            folders.remove_empty(self.directory)

    def _make_directory(self) -> None:
        try:
            with suppress(FileExistsError):
                folders.make(self.directory, 0o755, parents=False)
        except OSError as problem:
            raise RunError(f"{self.directory}: {problem.strerror}; run it with sudo") from None
        with suppress(FileNotFoundError):
            folders.ours(self.directory, "run", shared=False)

    def read(self) -> Record | None:
        """The record, None if there is none or it is damaged."""
        damaged = suppress(OSError, ValueError, TypeError, RunError, InputError)
        with damaged, reading.open_regular(self.file, str(self.file)) as stream:
            if os.fstat(stream.fileno()).st_uid not in (0, os.geteuid()):
                return None
            return Record(**bounded.parse_json(stream.read(_BYTES_MAX)))
        return None

    def is_running(self) -> bool:
        """Whether the process of the record lives."""
        record = self.read()
        return record is not None and is_running(record.owner)

    def write(self, record: Record) -> None:
        """Writes the record, whole or not at all."""
        files.write_whole(str(self.file), json.dumps(asdict(record)).encode())

    def forget(self) -> None:
        """Removes the record."""
        folders.remove_file(self.file)
