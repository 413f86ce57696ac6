# SPDX-License-Identifier: MIT
"""Man pages of every command, generated from the parsers: `python man.py [DIRECTORY]`."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click

from ackwise.cli.main import cli
from ackwise.cli.shape import Command, Group
from ackwise.host import files

DEFAULT = Path(__file__).resolve().parent.parent / "build" / "man"


def _roff(text: str) -> str:
    """`text` escaped so that roff sees neither requests nor escapes in it."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    escaped = escaped.replace("`", "\\(ga").replace("~", "\\(ti").replace("^", "\\(ha")
    return "\n".join(f"\\&{x}" if x.startswith(".") else x for x in escaped.splitlines())


def _block(text: str) -> Iterator[str]:
    """Lines in a block without filling."""
    yield ".nf"
    yield from (_roff(line) for line in text.strip("\n").splitlines())
    yield ".fi"


def _date() -> str:
    """Today's date, or the one that a reproducible build prescribes."""
    said = os.environ.get("SOURCE_DATE_EPOCH")
    return time.strftime("%Y-%m-%d", time.gmtime(int(said) if said else None))


def page(command: Command, ctx: click.Context) -> str:
    """One man page, in the order of the command's help."""
    name = ctx.command_path.replace(" ", "-")
    usage = " ".join(command.collect_usage_pieces(ctx))
    lines = [
        f'.TH "{_roff(name.upper())}" "1" "{_date()}" "ackwise" "ackwise"',
        ".SH NAME",
        f"{_roff(name)} \\- {_roff(command.short_help or '')}",
        ".SH SYNOPSIS",
        f"\\fB{_roff(ctx.command_path)}\\fR {_roff(usage)}",
    ]
    if command.help:
        lines.append(".SH DESCRIPTION")
        for number, paragraph in enumerate(command.help.strip().split("\n\n")):
            lines += [*([".PP"] if number else []), _roff(paragraph)]
    for title, rows in command.sections(ctx):
        lines.append(f'.SH "{_roff(title.upper())}"')
        for term, meaning in rows:
            lines += [".TP", f"\\fB{_roff(term)}\\fR", _roff(meaning)]
    for title, block in (("EXAMPLES", command.examples), ("EXIT STATUS", command.exit_codes)):
        if block:
            lines += [f".SH {title}" if " " not in title else f'.SH "{title}"', *_block(block)]
    relatives = [] if ctx.parent is None else [ctx.parent.command_path.replace(" ", "-")]
    if isinstance(command, Group):
        relatives += [f"{name}-{verb}" for verb in command.list_commands(ctx)]
    lines.append('.SH "SEE ALSO"')
    lines.append(",\n".join(f"\\fB{_roff(one)}\\fR(1)" for one in relatives))
    return "\n".join(lines) + "\n"


def pages(
    command: click.Command = cli, parent: click.Context | None = None
) -> Iterator[tuple[Command, click.Context]]:
    """Every command from `command` downwards, each with its own context."""
    assert isinstance(command, Command)
    settings = command.context_settings
    ctx = click.Context(command, info_name=command.name, parent=parent, **settings)
    yield command, ctx
    if isinstance(command, Group):
        for name in command.list_commands(ctx):
            verb = command.get_command(ctx, name)
            assert verb is not None
            yield from pages(verb, ctx)


def write(folder: Path) -> list[Path]:
    """Writes the pages `ackwise.1`, `ackwise-compare.1` and so on, and returns their files."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for command, ctx in pages():
        made.append(folder / f"{ctx.command_path.replace(' ', '-')}.1")
        files.write_whole(str(made[-1]), page(command, ctx).encode())
    return made


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT)
