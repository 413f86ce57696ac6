# SPDX-License-Identifier: MIT
"""The state that `up` saves for `down`, and the lock that lets one process change queues.

The file is on disk before the first change and is removed after the last, so that after a kill the
next process knows what was there before. Its contents are sent to the kernel, so it is accepted
only if nobody else could have written it, and only in the form that `up` writes.
"""

import contextlib
import json
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ackwise.errors import InputError, RunError, quoted
from ackwise.gateway.snapshot import Snapshot
from ackwise.host import files, folders
from ackwise.host.leftovers import remove_abandoned
from ackwise.host.reading import open_regular
from ackwise.results import export

RUN_DIRECTORY = "/run/ackwise"
_VERSION = 1
_LOCK_SECONDS = 10.0
_BYTES_MAX = 1 << 26
_DEPTH_MAX = 16  # maximum nesting of brackets, also in settings
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_IFNAME_MAX = 15
_IFINDEX_MAX = 0x7FFFFFFF

GOING_UP, UP, GOING_DOWN = "going up", "up", "going down"


class Unreadable(RunError):
    """The state file exists, but this process may not read it."""


@dataclass(frozen=True)
class SelfTest:
    """Whether ACKs reach the ACK class. `passed` None: not run, for the reason in `words`."""

    passed: bool | None
    words: str

    @property
    def line(self) -> str:
        """The result as one line for a message."""
        outcome = {True: "passed", False: "FAILED", None: "not run"}[self.passed]
        return f"self-test {outcome}: {self.words}"


@dataclass(frozen=True)
class State:
    """Contents of the state file. `before`: what `down` restores; `settings`: for status and
    messages."""

    interface: str
    ifindex: int
    namespace: int
    phase: str
    settings: dict[str, Any]
    before: Snapshot
    after: Snapshot | None = None
    self_test: SelfTest | None = None


def namespace() -> int:
    """Inode number of this process's network namespace; 0 where the kernel has no namespaces."""
    try:
        return Path("/proc/self/ns/net").stat().st_ino
    except FileNotFoundError:
        return 0


def parse(data: bytes, file: str, interface: str) -> State:
    """The state of an interface, parsed from the bytes of its file. RunError, which names the file
    and the remedy, for bytes that `Keeper.write` does not produce."""
    try:
        state = _parsed(data)
        if state.interface != interface:
            raise ValueError(f"belongs to {quoted(state.interface)}")
    except ValueError as problem:
        raise RunError(
            f"{file}: {problem}; `tc qdisc del dev {interface} root` gives the kernel's default "
            "back, then remove the file"
        ) from None
    return state


def _parsed(data: bytes) -> State:
    if not 0 < len(data) <= _BYTES_MAX:
        raise ValueError(f"has {len(data)} bytes" if not data else f"has over {_BYTES_MAX} bytes")
    try:
        found = json.loads(data)
        json.dumps(found, allow_nan=False)  # json.loads accepts Infinity, and reads 1e999 as it
    except (ValueError, RecursionError):
        raise ValueError("is not JSON") from None
    if not isinstance(found, dict) or found.get("version") != _VERSION:
        version = found.get("version") if isinstance(found, dict) else None
        raise ValueError(f"has version {quoted(version)}, not {_VERSION}")
    wanted = {"version", *State.__dataclass_fields__}
    if set(found) != wanted:
        lacking = ", ".join(sorted(wanted - set(found))) or "nothing"
        raise ValueError(f"lacks {lacking}, or has more than it should")
    after, tested = found["after"], found["self_test"]
    if not (
        isinstance(found["interface"], str)
        and 0 < len(found["interface"]) <= _IFNAME_MAX
        and type(found["ifindex"]) is int
        and 0 < found["ifindex"] <= _IFINDEX_MAX
        and type(found["namespace"]) is int
        and found["phase"] in (GOING_UP, UP, GOING_DOWN)
        and isinstance(found["settings"], dict)
        and _depth(found["settings"]) <= _DEPTH_MAX
    ):
        raise ValueError("has a field of another type than `up` writes")
    if tested is not None and not (
        isinstance(tested, dict)
        and set(tested) == set(SelfTest.__dataclass_fields__)
        and isinstance(tested["passed"], bool | None)
        and isinstance(tested["words"], str)
    ):
        raise ValueError("has a self-test of another shape than `up` writes")
    return State(
        interface=found["interface"],
        ifindex=found["ifindex"],
        namespace=found["namespace"],
        phase=found["phase"],
        settings=found["settings"],
        before=Snapshot.of_document(found["before"]),
        after=None if after is None else Snapshot.of_document(after),
        self_test=None if tested is None else SelfTest(**tested),
    )


def _depth(found: Any) -> int:
    """Nesting depth of containers, counted up to one above the maximum."""
    level, depth = [found], 0
    while level and depth <= _DEPTH_MAX:
        inner = [one for one in level if isinstance(one, dict | list)]
        level = [x for one in inner for x in (one.values() if isinstance(one, dict) else one)]
        depth += bool(inner)
    return depth


class Keeper:
    """The files of one interface in a directory such as /run/ackwise."""

    def __init__(self, directory: str, interface: str) -> None:
        self.directory = Path(directory)
        self.interface = interface
        self.file = self.directory / f"gateway-{interface}.json"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Creates the directory and locks it; removes it afterwards if it is empty.

        RunError when another process holds the lock for 10 s, or the directory cannot be created or
        is writable by others.
        """
        end = time.monotonic() + _LOCK_SECONDS
        while True:
            self._make_directory()
            left_s = round(max(0, end - time.monotonic()), 1)
            held = contextlib.ExitStack()
            try:
                held.enter_context(files.lock(self.directory / "lock", wait_s=left_s))
                break
            except files.FolderGone:  # the previous holder has removed it
                if time.monotonic() > end:
                    raise
        try:
            with held:
                yield
        finally:
            with contextlib.suppress(OSError):  # not empty: an interface is up
                folders.remove_empty(self.directory)

    def _make_directory(self) -> None:
        while True:
            try:
                with contextlib.suppress(FileExistsError):
                    folders.make(self.directory, 0o755, parents=False)
            except FileNotFoundError:
                raise RunError(f"{self.directory.parent}: the directory does not exist") from None
            except OSError as problem:
                raise RunError(f"{self.directory}: {problem.strerror}; run it with sudo") from None
            # another instance that has finished may remove it in between
            with contextlib.suppress(FileNotFoundError):
                found = self.directory.lstat()
                break
        if not stat.S_ISDIR(found.st_mode):
            raise RunError(f"{self.directory}: is not a directory; give another --run-dir")
        self._check_owner(self.directory, found)
        folders.ours(self.directory.parent, "--run-dir", shared=True)

    def _check_owner(self, place: Path, found: os.stat_result) -> None:
        """RunError when anyone but root and this user could have written it."""
        if found.st_uid not in (0, os.geteuid()):
            whose = f"belongs to user {found.st_uid}"
        elif found.st_mode & _OTHERS_WRITE:
            whose = "can be written by others"
        else:
            return
        remedy = (
            f"`chmod go-w {place}` if that is a mistake, or give another --run-dir"
            if place == self.directory
            else f"`tc qdisc del dev {self.interface} root` gives the kernel's default back, then "
            "remove the file"
        )
        raise RunError(f"{place}: {whose}, and what is in it would be sent to the kernel; {remedy}")

    def read(self) -> State | None:
        """The state, or None if there is no file. RunError for a file that is damaged or that
        others could have written; Unreadable for one that this user may not read."""
        try:
            found = self.file.lstat()
        except FileNotFoundError:
            return None
        except OSError:
            raise self._unreadable() from None
        self._check_owner(self.file, found)
        if not os.access(self.file, os.R_OK, follow_symlinks=False):
            raise self._unreadable()
        try:
            self._check_owner(self.directory, self.directory.stat())
            with open_regular(self.file, str(self.file)) as stream:
                found = os.fstat(stream.fileno())
                data = stream.read(_BYTES_MAX + 1)
        except (InputError, OSError) as problem:
            raise RunError(str(problem)) from None
        if data:
            self._check_owner(self.file, found)
        return parse(data, str(self.file), self.interface)

    def _unreadable(self) -> Unreadable:
        return Unreadable(f"{self.file}: cannot be read by this user; run it with sudo")

    def write(self, state: State) -> None:
        """Writes the state to disk, whole or not at all; refuses anything that `read` would
        refuse."""
        after, tested = state.after, state.self_test
        data = export.json_bytes(
            {
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
        )
        if len(data) > _BYTES_MAX:
            raise InputError(
                f"{state.interface}: not changed: its queues take {len(data)} bytes to save, more "
                f"than {_BYTES_MAX}; remove them first"
            )
        parse(data, str(self.file), self.interface)
        files.write_whole(str(self.file), data, private=True)

    def forget(self) -> None:
        """Removes the file, and temporary files that a killed process left."""
        folders.remove_file(self.file)
        remove_abandoned(self.directory)
