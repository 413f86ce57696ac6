# SPDX-License-Identifier: MIT
"""The root of the command line, and the exit code that every error becomes."""

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from ackwise import __version__
from ackwise.cli.shape import COMPLETE, LazyGroup, Option, complaint
from ackwise.errors import (
    EXIT_BAD_INPUT,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    InputError,
    Interrupted,
    RunError,
)

COMMANDS = {
    "Compare and explain": {
        "compare": "Compare ACK policies on a link, a workload or a capture",
        "deadlock": "Predict Nagle / delayed-ACK deadlocks between two hosts, and what ends them",
        "reproduce": "Run published experiments again, beside their published figures",
        "policy": "List ACK policies, show their parameters, or watch live sockets",
    },
    "On a real kernel": {
        "lab": "Run plans and conformance claims on a real Linux kernel in virtual time",
        "capture": "Make a packet capture between two network namespaces (needs root)",
        "gateway": "Keep a download's ACKs from slowing uploads on a slow uplink",
    },
    "Tools": {
        "doctor": "Check what each command needs on this host, and how to install it",
        "completion": "Print the completion script for bash, zsh or fish",
    },
}
EXIT_CODES = """\
0    success
1    the run failed, or a check of it did
2    the command line or a file cannot be used as given
130  interrupted by Ctrl-C
"""


def _version(ctx: click.Context, _param: click.Parameter, asked: bool) -> None:
    if asked:
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
    """The root; its commands do the work."""


def _say(message: str) -> None:
    print(message, file=sys.stderr)


def _interrupt(_signal: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _run(words: list[str]) -> int:
    instruction = os.environ.get(COMPLETE)
    if instruction:
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, "ackwise", COMPLETE, instruction)
    try:
        with cli.make_context("ackwise", list(words), obj=words) as ctx:
            return int(cli.invoke(ctx) or 0)
    except click.exceptions.Exit as end:
        return end.exit_code


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0, 1 failed, 2 bad input, 130 interrupted."""
    words = list(sys.argv[1:] if argv is None else argv)
    with contextlib.suppress(ValueError):  # not the main thread: whoever calls handles signals
        signal.signal(signal.SIGTERM, _interrupt)  # a polite kill cleans up as Ctrl-C does
    try:
        return _run(words)
    except click.UsageError as problem:
        _say(complaint(problem))
        return EXIT_BAD_INPUT
    except InputError as problem:
        _say(f"ackwise: {problem}")
        return EXIT_BAD_INPUT
    except RunError as problem:
        _say(f"ackwise: {problem}")
        return EXIT_FAILED
    except (Interrupted, KeyboardInterrupt):
        _say("ackwise: interrupted")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader (`| head`) left: nothing more to say, also not at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except SystemExit:
        raise
    except BaseException as problem:  # a panic of the engine is not an Exception
        if os.environ.get("ACKWISE_DEBUG"):
            raise
        _say(
            f"ackwise: internal error: {type(problem).__name__}: {problem} "
            "(set ACKWISE_DEBUG=1 for the traceback, and please report it)"
        )
        return EXIT_FAILED
