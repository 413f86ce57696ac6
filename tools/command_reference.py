# SPDX-License-Identifier: MIT
"""The command line's reference: the help text of `ackwise` and of every command below it."""

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

# One width for every terminal, so that the pages are the same wherever they are made.
WIDTH = 92

Help = tuple[tuple[str, ...], str]


def of_click(command: Any, path: tuple[str, ...], parent: Any = None) -> Iterator[Help]:
    """Path and help text of a click command and of all below it."""
    context = command.make_context(
        path[-1], [], parent=parent, resilient_parsing=True, terminal_width=WIDTH
    )
    yield path, re.sub(r"\x1b\[[0-9;]*m", "", command.get_help(context))
    if hasattr(command, "list_commands"):  # a group, also one that loads its commands late
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if not below.hidden:
                yield from of_click(below, (*path, name), context)


def of_program(path: tuple[str, ...]) -> Iterator[Help]:
    """The same of a program that is only asked for --help."""
    done = subprocess.run(
        [sys.executable, "-m", *path, "--help"],
        env={**os.environ, "COLUMNS": str(WIDTH), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    yield path, done.stdout
    listed = done.stdout.partition("positional arguments:\n")[2].partition("\n\n")[0]
    for name in re.findall(r"^    ([a-z]+)\b", listed, re.MULTILINE):
        yield from of_program((*path, name))


def commands() -> list[Help]:
    """Every command of ackwise, the root first."""
    try:
        root = importlib.import_module("ackwise.cli.main").cli
    except ModuleNotFoundError as missing:
        if missing.name != "ackwise.cli.main":
            raise
        return list(of_program(("ackwise",)))
    return list(of_click(root, ("ackwise",)))


def pages() -> dict[str, str]:
    """Markdown by file name: one page for `ackwise`, one for each of its commands."""
    made: dict[str, str] = {}
    for path, text in commands():
        page = f"{path[1] if len(path) > 1 else path[0]}.md"
        level = "#" if len(path) <= 2 else "##"
        made[page] = (
            made.get(page, "") + f"{level} {' '.join(path)}\n\n```text\n{text.rstrip()}\n```\n\n"
        )
    return made
