# SPDX-License-Identifier: MIT
"""Starts a machine that QEMU emulates, with the lab's guest program as its first one.

QEMU counts instructions (`-icount`), and the machine's clock is that count: it advances by a fixed
time per instruction, and jumps to the next timer while the processor idles. The kernel gets all its
files in its initial file system and delivers its output only after the run, because the host's
response time varies.
"""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ackwise.errors import RunError
from ackwise.host import files, folders, programs, space
from ackwise.lab import machine
from ackwise.lab.machine import Kernel

WALL_LIMIT_S = 3600.0
_DATE = "2001-09-09T01:46:40"
_TAG = "lab"  # tag of the folder for results
MODE_FOLDER, MODE_FILE, MODE_PROGRAM, MODE_DEVICE = 0o040755, 0o100644, 0o100755, 0o020600


@dataclass(frozen=True)
class Board:
    """QEMU's options for a machine."""

    emulator: str
    words: tuple[str, ...]
    parameters: str  # kernel parameters
    counted: str = ""  # more parameters, while instructions are counted
    repeated: str = ""  # more parameters, for reproducible runs
    memory_mb: int = 256


@dataclass(frozen=True)
class Clock:
    """What drives a machine's clock."""

    icount: str  # value of QEMU's option; "": the host's clock drives it
    words: tuple[str, ...] = ()
    is_own: bool = False  # whether it is independent of the host's clock


def counted(shift: int) -> Clock:
    """The clock that advances by 2 to the power of `shift` nanoseconds per instruction."""
    return Clock(f"shift={shift},sleep=off", ("-rtc", f"base={_DATE},clock=vm"), is_own=True)


# --- what the machine starts with ------------------------------------------------------------


def member(
    name: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0), changed_s: int = 0
) -> bytes:
    """A member of a cpio archive in `newc` format; the owner is root."""
    fields = (0, mode, 0, 0, 1, changed_s, len(data), 0, 0, *device, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    return _padded(head) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


END = member("TRAILER!!!", 0)


def initial_files(guest: bytes, steps: Iterable[str]) -> Iterator[bytes]:
    """What each guest needs: its program as init, its steps, and the devices that it opens."""
    for name in ("dev", "proc", "sys", "tmp", "run", "run/lab"):
        yield member(name, MODE_FOLDER)
    yield member("dev/console", MODE_DEVICE, device=(5, 1))
    yield member("dev/urandom", MODE_DEVICE, device=(1, 9))
    yield member("init", MODE_PROGRAM, guest)
    yield member("run/lab/steps", MODE_FILE, ("\n".join(steps) + "\n").encode("ascii"))


# --- the machine -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Machine:
    """A machine that is running, or has run."""

    process: programs.Process
    console: IO[bytes]
    shared: Path  # folder that the guest writes to
    guard: machine.Guard
    what: str  # in messages

    def results(self, made: str = "flows") -> Path:
        """Folder with the results of a finished run, the file `made` among them. RunError if it
        failed."""
        results = self.shared
        machine.take_back(results)
        self.guard.check()
        tail = f"end of its console:\n{machine.console_tail(self.console)}"
        with suppress(FileNotFoundError), (results / "error").open("rb") as stream:
            error = stream.read(machine.SHOWN_BYTES).decode("ascii", "replace")
            raise RunError(f"{self.what}: {' '.join(error.split())}; {tail}")
        if self.process.returncode or not (results / made).is_file():
            raise RunError(f"the {self.what} ended with code {self.process.returncode}; {tail}")
        self.console.seek(0)
        with files.create(results / "console") as kept:
            shutil.copyfileobj(self.console, kept)
        return results


def _words(board: Board, place: Path, shared: Path, seed: int, clock: Clock) -> list[str]:
    parameters = board.parameters + (board.counted if clock.icount else "")
    parameters += board.repeated if clock.is_own else ""
    parameters += f" norandmaps quiet panic=-1 lab_share={_TAG} lab_seed={seed}"
    share = f"local,id=share,path={shared},security_model=none"
    return [
        programs.program(board.emulator), board.emulator, *board.words,
        "-m", f"{board.memory_mb}", "-smp", "1", "-nodefaults", "-no-user-config",
        "-display", "none", "-serial", "stdio", "-no-reboot",
        "-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
        "-accel", "tcg,thread=single", *(("-icount", clock.icount) if clock.icount else ()),
        "-seed", f"{seed % 2**32}", *clock.words,
        "-kernel", str(place / "linux"), "-initrd", str(place / "initrd"), "-append", parameters,
        "-fsdev", share, "-device", f"virtio-9p-pci,fsdev=share,mount_tag={_TAG}",
    ]  # fmt: skip


@contextmanager
def started(
    board: Board,
    kernel: Kernel,
    members: Iterable[bytes],
    seed: int,
    clock: Clock,
    *,
    what: str,
    card: int = -1,
) -> Iterator[Machine]:
    """A machine running during the block, with these members of its initial file system; `card`:
    the open socket that serves as its wire."""
    with ExitStack() as stack:
        place = stack.enter_context(machine.empty_folder(kernel))
        shared = stack.enter_context(machine.folder_to_give())
        # a copy: nobody but root may enter root's cache
        folders.copy_file(kernel.linux, place / "linux")
        (place / "linux").chmod(0o644)
        with files.create(place / "initrd") as initrd:
            initrd.writelines(members)
            initrd.write(END)
        console = stack.enter_context(files.create(place / "console"))
        words = _words(board, place, shared, seed, clock)
        if card >= 0:
            words += ["-netdev", f"socket,id=wire,fd={card}"]
            words += ["-device", "virtio-net-pci,netdev=wire"]
        # The emulator's own filter of system calls takes the place of the lab's.
        command = machine.confined(kernel, place, shared, words, without=("seccomp",))
        given = space.files_in((place, shared))
        with (
            programs.started(
                command,
                stdout=console,
                stderr=programs.SAME_AS_STDOUT,
                environment=machine.guest_environment(shared),
                new_session=True,
                pass_fds=() if card < 0 else (card,),
            ) as process,
            machine.guarded(process, (place, shared), given) as guard,
        ):
            yield Machine(process, console, shared, guard, what)


def results_of(
    one: Machine, limit_s: float, cancel: object, keep: Path | None, made: str = "flows"
) -> Path:
    """The folder with the results of a machine, once it has come to its end, the file `made` among
    them; they are stored in `keep` as well."""
    machine.watch(one.process, one.console, limit_s, None, cancel)
    one.process.wait()
    folder = one.results(made)
    if keep is not None:
        files.make_folder(keep)
        for file in folder.iterdir():
            files.copy(file, keep / file.name)
    return folder
