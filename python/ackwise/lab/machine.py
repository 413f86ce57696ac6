# SPDX-License-Identifier: MIT
"""Starts, watches and ends a guest: a user-mode kernel whose clock moves only while it is idle.

It runs as an ordinary user (root starts it as `nobody`), its root file system is the host's,
read-only, and it can write only to the folder of its run.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ackwise.engine import Cancelled
from ackwise.errors import RunError
from ackwise.host.leftovers import temporary_folder
from ackwise.host.programs import tethered
from ackwise.host.rights import missing_capabilities

MEMORY_MB = 512
_NOBODY = 65_534
_WALL_START_NS = 10**18  # the guest's time of day at boot: a round figure in 2001
_CONSOLE_LINES = 15
# The folder as the guest sees it: the working directory of its host process. The command line
# seeds the guest's random numbers, so it must not contain a name that changes.
_HERE = "/proc/self/cwd"


@dataclass(frozen=True)
class Kernel:
    """A kernel made by `ackwise lab build`."""

    linux: Path
    guest: Path
    label: str
    key: str
    has_policies: bool


class Hung(RunError):
    """A run that exceeded its time limit."""


@contextmanager
def run_folder(kernel: Kernel) -> Iterator[Path]:
    """A temporary folder for one run, with its kernel. Those of killed runs are removed first."""
    _check_rights()
    with temporary_folder() as outer:
        # The inner folder is given to the guest's user; the outer one shows whose run it is.
        outer.chmod(0o711)
        folder = outer / "lab"
        folder.mkdir(mode=0o700)
        for file in (kernel.linux, kernel.guest):
            # the user nobody cannot read a home directory; a hard link costs nothing
            target = folder / file.name
            try:
                os.link(file, target)
            except OSError:
                shutil.copy2(file, target)
        yield folder


def _words(kernel: Kernel, folder: Path, seed: int) -> list[str]:
    console = "con0=fd:0,fd:1"
    return tethered([
        "setarch", "-R",  # the same addresses of the host process in every run
        str(folder / kernel.linux.name),
        f"mem={MEMORY_MB}M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro",
        f"init={_HERE}/{kernel.guest.name}", f"lab_dir={_HERE}",
        f"hostfs_writable={_HERE}",
        "time-travel=inf-cpu", f"time-travel-start={_WALL_START_NS}", f"lab_seed={seed}",
        "con=null", console, f"uml_dir={_HERE}/", "umid=guest", "panic=-1",
        "quiet",
    ])  # fmt: skip


def _environment(folder: Path) -> dict[str, str]:
    # the guest's memory is a file: avoid a disk if possible
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else str(folder)  # noqa: S108
    return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR": memory, "HOME": "/"}


def _check_rights() -> None:
    """RunError for a root that may not become the guest's user, nor end what that user runs."""
    lacking = missing_capabilities("CAP_CHOWN", "CAP_SETUID", "CAP_SETGID", "CAP_KILL")
    if os.geteuid() == 0 and lacking:
        raise RunError(
            f"lab: root without {', '.join(lacking)} cannot run the guest as user nobody; run it "
            "as an ordinary user, or with these capabilities"
        )


def _as_user(folder: Path) -> dict[str, object]:
    if os.geteuid() != 0:
        return {}
    os.chown(folder, _NOBODY, _NOBODY)
    return {"user": _NOBODY, "group": _NOBODY, "extra_groups": ()}


def _console_tail(folder: Path) -> str:
    text = (folder / "console").read_text(encoding="utf-8", errors="replace")
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "\n".join(f"  | {line}" for line in lines[-_CONSOLE_LINES:]) or "  | (nothing)"


def _cpu_s(pid: int) -> float:
    """Processor time of the guest's kernel so far."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0.0


def end(process: "subprocess.Popen[bytes]") -> None:
    """Kills a guest with all its processes; its session contains nothing else."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


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
    (folder / "steps").write_text("\n".join(steps) + "\n", encoding="ascii")
    started = time.monotonic()
    user = _as_user(folder)
    with (folder / "console").open("wb") as console:
        process = subprocess.Popen(
            _words(kernel, folder, seed),
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            env=_environment(folder),
            cwd=folder,
            start_new_session=True,
            **user,  # type: ignore[call-overload]
        )
        try:
            while process.poll() is None:
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
                        f"of its console:\n{_console_tail(folder)}"
                    )
                try:
                    process.wait(0.1)
                except subprocess.TimeoutExpired:
                    continue
        finally:
            end(process)
    error = folder / "error"
    if error.exists():
        message = " ".join(error.read_text(errors="replace").split())
        raise RunError(f"guest: {message}; end of its console:\n{_console_tail(folder)}")
    if process.returncode != 0:
        raise RunError(
            f"the guest exited with code {process.returncode}; end of its console:\n"
            f"{_console_tail(folder)}"
        )


def shell(kernel: Kernel, folder: Path, steps: Sequence[str], seed: int) -> int:
    """The guest's shell on this terminal; its exit code."""
    (folder / "steps").write_text("\n".join(steps) + "\n", encoding="ascii")
    user = _as_user(folder)
    done: subprocess.CompletedProcess[bytes] = subprocess.run(
        _words(kernel, folder, seed),
        env={**_environment(folder), "TERM": os.environ.get("TERM", "dumb")},
        cwd=folder,
        **user,  # type: ignore[call-overload]
    )
    return done.returncode
