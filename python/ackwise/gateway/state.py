# SPDX-License-Identifier: MIT
"""The state that `up` saves for `down`, and the lock that lets one process change queues.

The file is on disk before the first change and goes after the last, so whatever kills a process in
between, the next one knows what was there before.
"""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ackwise.errors import RunError
from ackwise.gateway.snapshot import Snapshot
from ackwise.host import files
from ackwise.host.leftovers import remove_abandoned
from ackwise.results import export

RUN_DIRECTORY = "/run/ackwise"
_VERSION = 1
_LOCK_SECONDS = 10.0
_LOCK_POLL_SECONDS = 0.05

GOING_UP, UP, GOING_DOWN = "going up", "up", "going down"


@dataclass(frozen=True)
class SelfTest:
    """Whether ACKs reach the ACK class; `passed` None: not run, for the reason in `words`."""

    passed: bool | None
    words: str

    @property
    def line(self) -> str:
        """For a message."""
        outcome = {True: "passed", False: "FAILED", None: "not run"}[self.passed]
        return f"self-test {outcome}: {self.words}"


@dataclass(frozen=True)
class State:
    """`before`: what `down` restores; `settings`: a document for status and messages."""

    interface: str
    ifindex: int
    namespace: int
    phase: str
    settings: dict[str, Any]
    before: Snapshot
    after: Snapshot | None = None
    self_test: SelfTest | None = None


def namespace() -> int:
    """Number of this process' network namespace."""
    return Path("/proc/self/ns/net").stat().st_ino


class Keeper:
    """The files of one interface in a directory such as /run/ackwise."""

    def __init__(self, directory: str, interface: str) -> None:
        self.directory = Path(directory)
        self.file = self.directory / f"gateway-{interface}.json"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Makes the directory and locks it; it is removed when it is empty.

        RunError when another holds it for 10 s, or when it cannot be made.
        """
        descriptor = self._locked()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # not empty: something is up
                self.directory.rmdir()
            os.close(descriptor)

    def _locked(self) -> int:
        end = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                self.directory.mkdir(mode=0o755, exist_ok=True)
                descriptor = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
            except FileNotFoundError:
                if self.directory.parent.is_dir():
                    continue  # removed in between
                raise RunError(f"{self.directory.parent}: the directory does not exist") from None
            except OSError as problem:
                raise RunError(f"{self.directory}: {problem.strerror}; run it with sudo") from None
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # The holder before may have removed the directory: then this lock means nothing.
                if os.fstat(descriptor).st_nlink and self._is(descriptor):
                    return descriptor
            except BlockingIOError:
                pass
            os.close(descriptor)
            if time.monotonic() > end:
                raise RunError(
                    f"{self.directory}: another ackwise has been changing queues for "
                    f"{_LOCK_SECONDS:.0f} s; wait for it, or end it"
                )
            time.sleep(_LOCK_POLL_SECONDS)

    def _is(self, descriptor: int) -> bool:
        try:
            here, held = self.directory.stat(), os.fstat(descriptor)
        except FileNotFoundError:
            return False
        return (here.st_dev, here.st_ino) == (held.st_dev, held.st_ino)

    def read(self) -> State | None:
        """RunError for a file that is damaged."""
        try:
            told = json.loads(self.file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise RunError(f"{self.file}: {problem.strerror}") from None
        except ValueError:
            raise self._damaged("is not JSON") from None
        try:
            if told["version"] != _VERSION:
                raise self._damaged(f"has version {told['version']!r}, not {_VERSION}")
            after, tested = told["after"], told["self_test"]
            return State(
                interface=str(told["interface"]),
                ifindex=int(told["ifindex"]),
                namespace=int(told["namespace"]),
                phase=str(told["phase"]),
                settings=dict(told["settings"]),
                before=Snapshot.of_document(told["before"]),
                after=None if after is None else Snapshot.of_document(after),
                self_test=None if tested is None else SelfTest(**tested),
            )
        except (KeyError, TypeError, ValueError) as problem:
            raise self._damaged(f"lacks what it should hold ({problem!r})") from None

    def _damaged(self, how: str) -> RunError:
        return RunError(
            f"{self.file}: {how}; `tc qdisc del dev INTERFACE root` gives the kernel's default "
            "back, then remove the file"
        )

    def write(self, state: State) -> None:
        """On disk whole, or not at all."""
        after, tested = state.after, state.self_test
        told = {
            "version": _VERSION,
            "interface": state.interface,
            "ifindex": state.ifindex,
            "namespace": state.namespace,
            "phase": state.phase,
            "settings": state.settings,
            "before": state.before.document(),
            "after": None if after is None else after.document(),
            "self_test": None if tested is None else asdict(tested),
        }
        files.write_whole(str(self.file), export.json_bytes(told))

    def forget(self) -> None:
        """Removes the file, and what a killed process has left of writing it."""
        self.file.unlink(missing_ok=True)
        remove_abandoned(self.directory)
