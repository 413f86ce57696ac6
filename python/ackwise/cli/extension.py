# SPDX-License-Identifier: MIT
"""Parts of the command that come with ackwise-experiments, found by its entry points."""

from importlib.metadata import entry_points
from typing import Any

import click

from ackwise.cli.shape import Command, argument
from ackwise.errors import InputError

GROUP = "ackwise.commands"
REMEDY = (
    "needs the package of experiments: `pip install ackwise-experiments`, or `make build` in a"
    " checkout"
)


def installed(name: str) -> bool:
    """Whether a package provides that entry point."""
    return bool(entry_points(group=GROUP, name=name))


def load(name: str, wanted_by: str) -> Any:
    """The object that the entry point names; InputError with the remedy where no package has it."""
    for found in entry_points(group=GROUP, name=name):
        return found.load()
    raise InputError(f"{wanted_by}: {REMEDY}")


def command(name: str, words: str = "") -> click.Command:
    """The command of that entry point, or one that says how to get it; `words`: what is typed, the
    name if not given."""
    if installed(name):
        found: click.Command = load(name, name)
        return found
    words = words or name

    @click.command(
        words.split()[-1], cls=Command, text=f"This command {REMEDY}.", add_help_option=True
    )
    @argument("rest", nargs=-1, type=click.UNPROCESSED)
    def missing(rest: tuple[str, ...]) -> int:
        del rest
        raise InputError(f"{words}: {REMEDY}")

    missing.context_settings["ignore_unknown_options"] = True
    return missing
