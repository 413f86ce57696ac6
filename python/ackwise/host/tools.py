# SPDX-License-Identifier: MIT
"""Programs of this host: found, run to completion, or run during a block."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ackwise.errors import RunError


def find_tool(name: str) -> str | None:
    """Path of a tool, also in the sbin folders that a user's PATH may lack."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/local/sbin")


def program(name: str) -> str:
    """Path of a tool, or its bare name if not found, so that the error names it."""
    return find_tool(name) or name


def do(*words: str) -> None:
    """Runs one short command; RunError with its error message when it fails."""
    done = subprocess.run(
        [program(words[0]), *words[1:]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=30,
    )
    if done.returncode:
        message = " ".join((done.stderr or done.stdout).split())
        raise RunError(f"`{' '.join(words)}` failed: {message or f'exit code {done.returncode}'}")


def tethered(words: list[str], signal: str = "KILL") -> list[str]:
    """The command that runs `words` and has the kernel send `signal` to it when this thread ends,
    however it ends."""
    return [program("setpriv"), "--pdeathsig", signal, "--", *words]


@contextmanager
def started(words: list[str], stdout: int = subprocess.PIPE) -> Iterator[subprocess.Popen[str]]:
    """A process that is stopped at the end of the block; `stdout`: a descriptor."""
    process = subprocess.Popen(
        tethered(words),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    try:
        yield process
    finally:
        stop(process)


def stop(process: subprocess.Popen[str]) -> None:
    """Stops a process: SIGTERM first, then SIGKILL."""
    if process.poll() is None:
        process.terminate()
        try:
            process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def await_ready(
    ready: Callable[[], bool], what: str, process: subprocess.Popen[str], seconds: float = 10
) -> None:
    """Waits until `ready()`; RunError if the process exits first or time runs out."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if ready():
            return
        if process.poll() is not None:
            message = " ".join(process.communicate()[1].split())
            raise RunError(f"{what} exited at once: {message or f'exit code {process.returncode}'}")
        time.sleep(0.02)
    raise RunError(f"{what} was not ready after {seconds:.0f} s")
