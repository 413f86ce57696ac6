# SPDX-License-Identifier: MIT
"""Starts, watches and ends a guest: a user-mode kernel whose clock moves only while it is idle.

`linux/lab/confine` starts the guest: it can write only to the folder of its run, and root starts it
as a user that no other process has. While it runs, root touches nothing in that folder; afterwards
root takes the folder back before reading its content.
"""

import os
import select
import signal
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ackwise.engine import Cancelled
from ackwise.errors import RunError
from ackwise.host import environment, files, folders, programs, space
from ackwise.host.leftovers import temporary_folder
from ackwise.host.rights import missing_capabilities

MEMORY_MB = 512
FILE_BYTES_MAX = 4 << 30  # maximum size of each file that a guest writes, including its memory
FILES_MAX = 512  # that it makes
BYTES_MAX = 2 * FILE_BYTES_MAX  # maximum size of all files
_LOOK_S = 0.5
LAYERS = ("landlock", "namespace", "seccomp")
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108
_WALL_START_NS = 10**18  # the guest's time of day at boot: a round value in 2001
_CONSOLE_LINES = 15
SHOWN_BYTES = 1 << 14  # maximum length of the guest's console output in messages
# The folder as the guest sees it: the working directory of its host process. The command line seeds
# the guest's random numbers, so it must not contain a name that varies.
_HERE = "/proc/self/cwd"


@dataclass(frozen=True)
class Kernel:
    """A kernel built by `ackwise lab build`."""

    linux: Path
    guest: Path
    label: str
    key: str
    has_policies: bool

    @property
    def confine(self) -> Path:
        """The program that starts the kernel."""
        return self.guest.with_name("lab-confine")


class Hung(RunError):
    """A run that exceeded its time limit."""


@contextmanager
def folder_to_give(within: Path | None = None) -> Iterator[Path]:
    """A folder that only this user can enter, until it is given to a guest's user. Its parent stays
    this user's and shows which process the run belongs to."""
    with temporary_folder(within) as outer:
        outer.chmod(0o711)
        inner = outer / "lab"
        folders.make(inner, 0o700)
        yield inner


@contextmanager
def empty_folder(kernel: Kernel) -> Iterator[Path]:
    """A temporary folder for one run. Folders of killed runs are removed first."""
    _check_rights()
    with suppress(OSError):  # a cache owned by another user
        os.utime(kernel.guest.parent)  # the cache keeps the most recently used kernels
    with folder_to_give() as folder:
        yield folder


@contextmanager
def run_folder(kernel: Kernel) -> Iterator[Path]:
    """A temporary folder for one run, with its init."""
    with empty_folder(kernel) as folder:
        # a copy: a hard link would be the cache's file. The kernel itself is never in the folder.
        folders.copy_file(kernel.guest, folder / kernel.guest.name)
        (folder / kernel.guest.name).chmod(0o755)
        yield folder


def put(folder: Path, name: str, text: str) -> None:
    """Creates a file for the guest to read, before it runs."""
    with files.create(folder / name) as stream:
        stream.write(text.encode("ascii"))


@contextmanager
def _memory_folder(folder: Path) -> Iterator[Path]:
    """Folder for the guest's memory, which is a file: not on a disk if possible."""
    if not os.access(_SHARED_MEMORY, os.W_OK):
        yield folder
        return
    with folder_to_give(_SHARED_MEMORY) as memory:
        yield memory


def confined(
    kernel: Kernel, folder: Path, other: Path, words: Sequence[str], *, without: Sequence[str] = ()
) -> list[str]:
    """The command that runs a program where it can write to these folders only; `words` are its
    path, its name and its arguments, `without` the LAYERS that it cannot do with."""
    left_out = [word for layer in without for word in ("--without", layer)]
    return [str(kernel.confine), *left_out, str(folder), str(other), str(FILE_BYTES_MAX), *words]


def _words(kernel: Kernel, folder: Path, memory: Path, seed: int) -> list[str]:
    words = [
        str(kernel.linux),
        "/proc/self/exe",  # the path by which it restarts itself when the guest reboots
        f"mem={MEMORY_MB}M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro",
        "kunit.enable=0",  # its tests would use the run's random numbers
        f"init={_HERE}/{kernel.guest.name}", f"lab_dir={_HERE}",
        f"hostfs_writable={_HERE}",
        "time-travel=inf-cpu", f"time-travel-start={_WALL_START_NS}", f"lab_seed={seed}",
        "con=null", "con0=fd:0,fd:1", f"uml_dir={_HERE}/", "umid=guest", "panic=-1",
        "quiet",
    ]  # fmt: skip
    return confined(kernel, folder, memory, words)


def guest_environment(memory: Path) -> dict[str, str]:
    """The environment of a guest; `memory`: folder of its temporary files."""
    return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR": str(memory), "HOME": "/"}


def _check_rights() -> None:
    """RunError for a root that may not switch to another user, or not kill that user's
    processes."""
    lacking = missing_capabilities("CAP_CHOWN", "CAP_SETUID", "CAP_SETGID", "CAP_KILL")
    if os.geteuid() == 0 and lacking:
        raise RunError(
            f"lab: root without {', '.join(lacking)} cannot run the guest as another user; run it "
            "as an ordinary user, or with these capabilities"
        )


def layers(kernel: Kernel) -> list[str]:
    """The LAYERS that this host can apply."""
    return programs.run([str(kernel.confine), "--check"]).stdout.split()


def unconfined(kernel: Kernel) -> str:
    """What a guest can do to this host because confinement layers are missing; "" if it cannot
    write. RunError if no guest can be started."""
    _check_rights()
    if {"landlock", "namespace"} & set(layers(kernel)):
        return ""
    return (
        "guests are not confined to their folder: this host has neither Landlock nor user "
        "namespaces, so a guest has its user's rights on files"
    )


def take_back(folder: Path) -> None:
    """Takes the folder back from the guest's user, and removes everything but the guest's plain
    files, so that nothing read afterwards is elsewhere."""
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        owners = {os.geteuid(), os.fstat(place).st_uid}
        os.fchown(place, os.geteuid(), os.getegid())
        os.fchmod(place, 0o700)
        for name in folders.names(place):
            found = os.stat(name, dir_fd=place, follow_symlinks=False)
            is_plain = stat.S_ISREG(found.st_mode) and found.st_nlink == 1
            if not is_plain or found.st_uid not in owners:
                folders.remove_tree_at(place, name)
    finally:
        os.close(place)


def console_tail(console: IO[bytes]) -> str:
    """The end of the console output, from the open file: the guest may have replaced the file by
    its name."""
    size = os.fstat(console.fileno()).st_size
    data = os.pread(console.fileno(), SHOWN_BYTES, max(0, size - SHOWN_BYTES))
    text = data.decode(errors="replace")
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "\n".join(f"  | {line}" for line in lines[-_CONSOLE_LINES:]) or "  | (nothing)"


def _cpu_s(pid: int) -> float:
    """Processor time of the guest's kernel so far, seconds."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0.0


def run(
    kernel: Kernel,
    folder: Path,
    steps: Sequence[str],
    *,
    seed: int,
    wall_limit_s: float,
    cpu_limit_s: float | None = None,
    cancel: object = None,
) -> None:
    """Runs `steps` in a guest to completion; results are in `folder`.

    Raises RunError with the guest's error and the end of its console; Hung when it took more than
    `wall_limit_s` of real time or `cpu_limit_s` of processor time, which a busy host does not
    increase.
    """
    with ExitStack() as stack:
        put(folder, "steps", "\n".join(steps) + "\n")
        console = stack.enter_context(files.create(folder / "console"))
        memory = stack.enter_context(_memory_folder(folder))
        given = space.files_in((folder, memory))
        try:
            # its session ends with the block, and a guest cannot leave it
            with (
                programs.started(
                    _words(kernel, folder, memory, seed),
                    stdout=console,
                    stderr=programs.SAME_AS_STDOUT,
                    environment=guest_environment(memory),
                    new_session=True,
                ) as process,
                guarded(process, (folder, memory), given) as guard,
            ):
                watch(process, console, wall_limit_s, cpu_limit_s, cancel)
        finally:
            take_back(folder)
        guard.check()
        tail = f"end of its console:\n{console_tail(console)}"
    with suppress(FileNotFoundError), (folder / "error").open("rb") as error:
        message = " ".join(error.read(SHOWN_BYTES).decode(errors="replace").split())
        raise RunError(f"guest: {message}; {tail}")
    if process.returncode == -signal.SIGXFSZ:
        raise RunError(
            f"the guest was stopped: a file of its run reached {FILE_BYTES_MAX / 2**30:g} GiB; "
            f"make the run shorter; {tail}"
        )
    if process.returncode != 0:
        raise RunError(f"the guest exited with code {process.returncode}; {tail}")


class Guard:
    """Ends a guest whose files are too many or too large together; looks twice a second."""

    def __init__(self, process: programs.Process, places: Sequence[Path], given: int) -> None:
        self._process, self._places = process, places
        self._files_max = given + FILES_MAX
        self._ended = os.pidfd_open(process.pid)
        self._is_over = threading.Event()
        self._problem = ""
        self._thread = threading.Thread(target=self._look_on, daemon=True)
        self._thread.start()

    def _look_on(self) -> None:
        while not self._is_over.wait(_LOOK_S):
            self._look()

    def _look(self) -> None:
        count, size = space.taken(self._places, self._process.pid, self._files_max)
        if count > self._files_max:
            self._problem = f"it made more than {FILES_MAX} files"
        elif size > BYTES_MAX:
            self._problem = f"its files reached {BYTES_MAX / 2**30:g} GiB together"
        if self._problem:
            # What it started ends with it.
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._ended, signal.SIGKILL)

    def close(self) -> None:
        """Looks a last time."""
        self._is_over.set()
        self._thread.join()
        self._look()
        os.close(self._ended)

    def check(self) -> None:
        """RunError if the guest was stopped."""
        if self._problem:
            raise RunError(f"the guest was stopped: {self._problem}; make the run shorter")


@contextmanager
def guarded(process: programs.Process, places: Sequence[Path], given: int) -> Iterator[Guard]:
    """Guards a guest and the folders that it writes to, during the block. `given`: files that were
    there before it."""
    guard = Guard(process, places, given)
    try:
        yield guard
    finally:
        guard.close()


def watch(
    process: programs.Process,
    console: IO[bytes],
    wall_limit_s: float,
    cpu_limit_s: float | None,
    cancel: object,
) -> None:
    """Returns when the guest has ended. It is not reaped yet, so its process number is still
    valid."""
    started = time.monotonic()
    ended = os.pidfd_open(process.pid)
    ready = select.poll()
    ready.register(ended, select.POLLIN)
    try:
        while not ready.poll(100):
            if getattr(cancel, "cancelled", False):
                raise Cancelled
            spent = ""
            if time.monotonic() - started > wall_limit_s:
                spent = f"{wall_limit_s:.0f} s of real time"
            elif cpu_limit_s is not None and _cpu_s(process.pid) > cpu_limit_s:
                spent = f"{cpu_limit_s:.0f} s of processor time"
            if spent:
                raise Hung(
                    f"the guest did not finish within {spent} and was stopped; a program that "
                    "polls a clock never ends in virtual time. --wall-limit allows more. End "
                    f"of its console:\n{console_tail(console)}"
                )
    finally:
        os.close(ended)


def shell(kernel: Kernel, folder: Path, steps: Sequence[str], seed: int) -> int:
    """Runs a shell of the guest on this terminal; returns its exit code."""
    put(folder, "steps", "\n".join(steps) + "\n")
    with _memory_folder(folder) as memory:
        terminal = environment.value("TERM") or "dumb"
        done = programs.run(
            _words(kernel, folder, memory, seed),
            stdin=None,
            stdout=None,
            stderr=None,
            environment={**guest_environment(memory), "TERM": terminal},
        )
    return done.returncode
