# SPDX-License-Identifier: MIT
"""The command line's reference: the help text of `ackwise` and of every command below it."""

import re
from collections.abc import Iterator

import click

from ackwise.cli.main import cli

# A fixed terminal width, so that the pages are the same wherever they are generated.
WIDTH = 92

Help = tuple[tuple[str, ...], str]


def help_texts(
    command: click.Command, path: tuple[str, ...], parent: click.Context | None = None
) -> Iterator[Help]:
    """Path and help text of a command and of all commands below it."""
    context = command.make_context(
        path[-1], [], parent=parent, resilient_parsing=True, terminal_width=WIDTH
    )
    yield path, re.sub(r"\x1b\[[0-9;]*m", "", command.get_help(context))
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below and not below.hidden:
                yield from help_texts(below, (*path, name), context)


def pages() -> dict[str, str]:
    """Markdown by file name: one page for `ackwise`, one for each of its commands."""
    made: dict[str, str] = {}
    for path, text in help_texts(cli, ("ackwise",)):
        page = f"{path[1] if len(path) > 1 else path[0]}.md"
        level = "#" if len(path) <= 2 else "##"
        made[page] = (
            made.get(page, "") + f"{level} {' '.join(path)}\n\n```text\n{text.rstrip()}\n```\n\n"
        )
    return made
