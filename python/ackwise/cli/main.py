# SPDX-License-Identifier: MIT
"""The root of the command line, and the exit code that every error becomes."""

import contextlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, TextIO

import click

from ackwise.cli import renamed
from ackwise.cli.shape import COMPLETE, LazyGroup, Option, complaint
from ackwise.errors import (
    EXIT_BAD_INPUT,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    InputError,
    Interrupted,
    RunError,
    printable,
)
from ackwise.host import environment, files, terminal

COMMANDS = {
    "Compare and explain": {
        "diagnose": "Show what limits the transfers in captures, and what to change",
        "live": "Show what limits this host's TCP connections, and what to change",
        "recommend": "Say which one command of a stock system would help, and its undo",
        "compare": "Compare ACK policies on a link and workload, in the simulator",
        "replay": "Compare ACK policies on the arrivals in a capture",
        "sweep": "Compare policies over a space of links and workloads, on one host or a cluster",
        "deadlock": "Predict Nagle / delayed-ACK deadlocks between two hosts, and how to end them",
        "reproduce": "Re-run published experiments, beside their published figures",
        "policy": "List ACK policies, show their parameters, or watch live sockets",
    },
    "On the kernel that is running": {
        "run": "Put an ACK policy in force until Ctrl-C, by what this kernel has (needs root)",
        "try": "Run a command under stock and a policy in turn: does it help here? (needs root)",
    },
    "On a real kernel": {
        "lab": "Compare policies and check ACKs on a real Linux kernel, in virtual time",
        "twin": "Run a plan in the simulator and on the kernel, and show where they diverge",
        "device": "Compare policies on an emulated slow CPU, and count what ACKs cost there",
        "record": "Record a transfer between two network namespaces as a capture (needs root)",
        "gateway": "Keep a download's ACKs from slowing uploads on a slow uplink",
    },
    "Tools": {
        "doctor": "Check what each command needs on this host, and how to install it",
        "completion": "Print the completion script for bash, zsh or fish",
    },
}
_AGAIN_S = 0.01
EXIT_CODES = """\
0    success
1    the run failed, or a check of it did
2    the command line or a file cannot be used as given
130  interrupted by Ctrl-C
"""


_STDOUT = "standard output"


def _version(ctx: click.Context, _param: click.Parameter, asked: bool) -> None:
    if asked:
        from ackwise import __version__

        print(f"ackwise {__version__}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    name="ackwise",
    package="ackwise.cli",
    titles=COMMANDS,
    short_help="Compare TCP ACK policies: which one is best on a link, and what each costs",
    text="Run `ackwise COMMAND --help` for a command's options and examples.",
    exit_codes=EXIT_CODES,
)
@click.option(
    "--version", cls=Option, is_flag=True, is_eager=True, expose_value=False, callback=_version,
    help="show the version",
)  # fmt: skip
def cli() -> None:
    """Entry point; commands are loaded on demand."""


def _say(message: str) -> None:
    try:
        terminal.say(message)
    except OSError:
        _abandon(sys.stderr)  # nowhere left to say it; the exit code does


def _abandon(stream: TextIO) -> None:
    """Drops what a stream still holds, so that the interpreter's exit does not fail on it."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


class _Stdout(io.FileIO):
    """Standard output, named in its errors like a file."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as problem:
            problem.filename = _STDOUT
            raise


def _prepare_streams() -> None:
    """Streams that accept every character and escape control characters. Writing to a standard
    output that is closed fails, as on a full disk; it is not ignored."""
    for number, name, mode in ((1, "stdout", os.O_RDONLY), (2, "stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            # takes the free descriptor, so that no file of a result gets it
            while os.open(os.devnull, mode) < number:
                pass
            setattr(sys, name, os.fdopen(number, "w", closefd=False))
    if sys.stdout is sys.__stdout__ or sys.__stdout__ is None:
        sys.stdout = _escaping(_Stdout(1, "w", closefd=False), sys.stdout)
    if sys.stderr is sys.__stderr__ or sys.__stderr__ is None:
        sys.stderr = _escaping(io.FileIO(2, "w", closefd=False), sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _escaping(file: io.FileIO, old: TextIO) -> terminal.Terminal:
    return terminal.Terminal(
        io.BufferedWriter(file),
        encoding=old.encoding,
        line_buffering=bool(
            getattr(old, "line_buffering", False) or environment.value("PYTHONUNBUFFERED")
        ),
    )


def _failed(problem: OSError) -> str:
    """The one line for an error of the system that no command has explained."""
    if problem.filename == _STDOUT:
        _abandon(sys.stdout)
    if problem.filename is None:
        return files.reason(problem)
    return f"{os.fsdecode(problem.filename)}: {files.reason(problem)}"


def _interrupt(_signal: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """A polite kill ends the block as Ctrl-C does, and neither is lost.

    Python drops an exception inside a finalizer or the callback of a weak reference; an interrupt
    comes again a little later.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # whoever calls handles signals
        return
    reported = sys.unraisablehook

    def again(dropped: "sys.UnraisableHookArgs") -> None:
        if issubclass(dropped.exc_type, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
        else:
            reported(dropped)

    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGALRM, _interrupt)
    sys.unraisablehook = again
    try:
        if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:  # see __main__
            signal.signal(signal.SIGINT, _interrupt)
        yield
    finally:
        sys.unraisablehook = reported


def _run(words: list[str]) -> int:
    instruction = environment.value(COMPLETE)
    if instruction:
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, "ackwise", COMPLETE, instruction)
    words, hint = renamed.current(words)
    if hint:
        _say(f"ackwise: {hint}; the old words go in the next version")
    try:
        with cli.make_context("ackwise", list(words), obj=words) as ctx:
            return int(cli.invoke(ctx) or 0)
    except click.exceptions.Exit as end:
        return end.exit_code


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0, 1 failed, 2 bad input, 130 interrupted."""
    words = list(sys.argv[1:] if argv is None else argv)
    _prepare_streams()
    try:
        with _interruptible():
            code = _run(words)
        sys.stdout.flush()
        return code
    except click.UsageError as problem:
        _say(printable(complaint(problem)))
        return EXIT_BAD_INPUT
    except InputError as problem:
        _say(f"ackwise: {printable(str(problem))}")
        return EXIT_BAD_INPUT
    except RunError as problem:
        _say(f"ackwise: {problem}")
        return EXIT_FAILED
    except (Interrupted, KeyboardInterrupt):
        _say("ackwise: interrupted")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader (`| head`) left: nothing more to say, also not at exit.
        _abandon(sys.stdout)
        return EXIT_FAILED
    except OSError as problem:
        _say(f"ackwise: {_failed(problem)}")
        return EXIT_FAILED
    except SystemExit:
        raise
    except BaseException as problem:  # a panic of the engine is not an Exception
        if environment.value("ACKWISE_DEBUG"):
            raise
        _say(
            f"ackwise: internal error: {type(problem).__name__}: {problem} "
            "(set ACKWISE_DEBUG=1 for the traceback, and please report it)"
        )
        return EXIT_FAILED
