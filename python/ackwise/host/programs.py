# SPDX-License-Identifier: MIT
"""The only module that starts programs: run to completion, or for the duration of a block.

A program gets a clean environment and an empty standard input unless stated otherwise, and the
kernel kills it when the thread that started it ends, for whatever reason. (Only in the millisecond
between its fork and setpriv's prctl could it survive a SIGKILL of this process.)
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypedDict, Unpack

from ackwise.errors import RunError
from ackwise.host import environment, folders

CAPTURED, DISCARDED = subprocess.PIPE, subprocess.DEVNULL
SAME_AS_STDOUT = subprocess.STDOUT
Stream = int | IO[Any] | None  # or a file or descriptor; None: this process's own stream
Process = subprocess.Popen[str]
Finished = subprocess.CompletedProcess[str]
_SHORT_S = 30.0
_SHOWN_CHARACTERS = 300


class Options(TypedDict, total=False):
    """How a program is started.

    environment     all its variables; without it, `environment.passed_on()`
    file_bytes_max  what it may write to a file; beyond that SIGXFSZ ends it
    user            becomes that user and group, without other groups
    privileges      capabilities that it keeps as root, such as "net_admin"; without it, all
    new_session     has a session and process group, whose every process ends with it
    end_signal      sent when this thread ends; without it, SIGKILL
    """

    cwd: Path
    environment: Mapping[str, str]
    file_bytes_max: int
    user: int
    privileges: Sequence[str]
    new_session: bool
    end_signal: str
    pass_fds: Sequence[int]


def find_tool(name: str) -> str | None:
    """Path of a tool; see `environment.search_path`. None when it is not found."""
    return shutil.which(name, path=environment.search_path())


def program(name: str) -> str:
    """Path of a tool, or its bare name if not found, so that the error message contains the
    name. RunError for a path at which others could put another program."""
    if not name.startswith("/"):
        return find_tool(name) or name
    if whose := folders.stranger(Path(name)):
        raise RunError(f"{name}: not started: {whose}, who could exchange the program")
    return name


def tethered(words: Sequence[str], **options: Unpack[Options]) -> list[str]:
    """The command that runs `words` within the limits of these options."""
    if find_tool("setpriv") is None and not options.keys() & {"user", "privileges"}:
        # `ackwise doctor` reports the missing tool; commands that need it have complained before
        return [program(words[0]), *words[1:]]
    made = [program("setpriv")]
    if "privileges" in options:
        kept = ",".join(["-all", *(f"+{name}" for name in options["privileges"])])
        made += ["--no-new-privs", "--bounding-set", kept, "--inh-caps", kept]
    if "user" in options:
        user = str(options["user"])
        made += ["--reuid", user, "--regid", user, "--clear-groups"]
        if "privileges" in options:
            made += ["--ambient-caps", kept]
    # comes last: a change of user would undo it
    made += ["--pdeathsig", options.get("end_signal", "KILL"), "--"]
    if "file_bytes_max" in options:
        limit = options["file_bytes_max"]
        made += [program("prlimit"), f"--fsize={limit}:{limit}", "--core=0:0", "--"]
    return [*made, program(words[0]), *words[1:]]


def _called(words: Sequence[str]) -> str:
    text = " ".join(words)
    return f"`{text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + '...'}`"


def run(
    words: Sequence[str],
    *,
    given: str | None = None,
    stdin: Stream = DISCARDED,
    stdout: Stream = CAPTURED,
    stderr: Stream = CAPTURED,
    timeout_s: float | None = None,
    check: bool = False,
    **options: Unpack[Options],
) -> Finished:
    """Runs a program to its end. `given`: text for its standard input; `check`: it must exit with
    0.

    RunError when it took longer than `timeout_s`, or failed the check.
    """
    with started(
        words, stdin=stdin if given is None else CAPTURED, stdout=stdout, stderr=stderr, **options
    ) as process:
        done = await_end(process, _called(words), timeout_s, given)
    if check and done.returncode:
        raise RunError(f"{_called(words)} failed: {said(done)}")
    return done


def said(done: Finished) -> str:
    """The error message of a failed program, on one line."""
    message = " ".join((done.stderr or done.stdout).split())
    return message or ended(done.returncode)


def ended(code: int) -> str:
    """The meaning of an exit code."""
    if code == -signal.SIGXFSZ:
        return "its output exceeded the limit of a file's size"
    return f"signal {signal.Signals(-code).name} ended it" if code < 0 else f"exit code {code}"


def do(*words: str, **options: Unpack[Options]) -> None:
    """Runs one short command; RunError with its error message when it fails."""
    run(words, timeout_s=_SHORT_S, check=True, **options)


@contextmanager
def started(
    words: Sequence[str],
    *,
    stdin: Stream = DISCARDED,
    stdout: Stream = CAPTURED,
    stderr: Stream = CAPTURED,
    **options: Unpack[Options],
) -> Iterator[Process]:
    """A running process, stopped at the end of the block."""
    variables = options.get("environment")
    process = subprocess.Popen(
        tethered(words, **options),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=environment.passed_on() if variables is None else variables,
        cwd=options.get("cwd"),
        start_new_session=options.get("new_session", False),
        pass_fds=options.get("pass_fds", ()),
        text=True,
        errors="replace",
    )
    try:
        yield process
    finally:
        if options.get("new_session"):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        stop(process)


@contextmanager
def guarded(undo: Callable[[], object]) -> Iterator[None]:
    """Calls `undo` in a process of its own if this one dies in the block: a copy of this process
    waits for that, deaf to signals that are sent to both. It has this process's descriptors until
    then, so that locks stay held."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setsid()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            os.close(write)
            _silence()  # so that nobody waits for the end of our output
            if not os.read(read, 1):
                undo()
            code = 0
        finally:
            os._exit(code)
    os.close(read)
    try:
        yield
    finally:
        with suppress(BrokenPipeError):  # somebody has killed the guard
            os.write(write, b".")
        os.close(write)
        os.waitpid(child, 0)


def _silence() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    os.close(null)


def detached(do: Callable[[Callable[[], None]], int]) -> int:
    """`do(ready)` in a process of its own, which goes on when `ready` is called; this one returns
    0 then, and otherwise what `do` does. Its output goes nowhere after `ready`."""
    read, write = os.pipe()
    if os.fork() != 0:
        os.close(write)
        try:
            return int(os.read(read, 1) or b"1")
        finally:
            os.close(read)
    os.close(read)
    os.setsid()

    def ready() -> None:
        _silence()
        os.write(write, b"0")
        os.close(write)

    return do(ready)


def await_end(
    process: Process, what: str, timeout_s: float | None, given: str | None = None
) -> Finished:
    """Waits for a process to end and returns its output. `given`: the rest of its standard input,
    which then ends. RunError when it takes longer than `timeout_s`."""
    try:
        out, err = process.communicate(given, timeout_s)
    except subprocess.TimeoutExpired:
        raise RunError(f"{what} did not finish within {timeout_s:g} s") from None
    return Finished(process.args, process.returncode, out or "", err or "")


def stop(process: Process) -> None:
    """Stops a process: SIGTERM first, then SIGKILL."""
    if process.poll() is None:
        process.terminate()
        try:
            process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def await_ready(
    ready: Callable[[], bool], what: str, process: Process, seconds: float = 10
) -> None:
    """Waits until `ready()`; RunError if the process exits first or time runs out."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if ready():
            return
        if process.poll() is not None:
            message = " ".join((process.communicate()[1] or "").split())
            raise RunError(f"{what} exited at once: {message or ended(process.returncode)}")
        time.sleep(0.02)
    raise RunError(f"{what} was not ready after {seconds:.0f} s")
