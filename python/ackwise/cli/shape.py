# SPDX-License-Identifier: MIT
"""The one shape of every command: its help, its usage errors, and how options are declared.

    Usage; what it does; arguments; groups of options with their defaults; commands; examples;
    exit codes

A command's `short_help` is its one line, its `text` what stands below that line.
"""

import importlib
import keyword
import textwrap
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ackwise.errors import quoted

F = TypeVar("F", bound=Callable[..., Any])
NAMES_WIDTH_MAX = 30  # wider names have their meaning on the next line
COMPLETE = "_ACKWISE_COMPLETE"  # environment variable that the completion scripts set
_OTHER = "Other options"


if TYPE_CHECKING:
    from click import ParamType as ParamType
else:

    class ParamType(click.ParamType):
        """Generic before click 8.4, too: Debian 13 has 8.1."""

        __class_getitem__ = classmethod(lambda cls, _kind: cls)


_METAVAR_OF_CONTEXT = click.Parameter.make_metavar.__code__.co_argcount > 1  # from click 8.2 on


def _metavar(make: Callable[..., str], ctx: click.Context | None) -> str:
    return make(ctx) if _METAVAR_OF_CONTEXT else make()


# --- options -------------------------------------------------------------------------------------


class Option(click.Option):
    """An option that belongs to a titled group of the help."""

    def __init__(self, *declarations: Any, group: str = _OTHER, **attributes: Any) -> None:
        super().__init__(*declarations, **attributes)
        self.group = group

    def make_metavar(self, ctx: click.Context | None = None) -> str:
        return _metavar(super().make_metavar, ctx)


class Argument(click.Argument):
    """An argument whose help can state a default in words."""

    def __init__(
        self, *declarations: Any, help: str = "", show_default: str = "", **attributes: Any
    ) -> None:
        super().__init__(*declarations, **attributes)
        self.help = help or None
        self.show_default = show_default or None

    def make_metavar(self, ctx: click.Context | None = None) -> str:
        return _metavar(super().make_metavar, ctx)


def argument(name: str, **attributes: Any) -> Callable[[F], F]:
    """Decorates a command with an argument; the attributes are click's."""
    return click.argument(name, cls=Argument, **attributes)


def option(*names: str, **attributes: Any) -> "partial[Callable[[Any], Any]]":
    """An option for `group`; the attributes are click's."""
    return partial(click.option, *names, cls=Option, **attributes)


def group(title: str, *options: "partial[Callable[[Any], Any]]") -> Callable[[F], F]:
    """Decorates a command with options that the help shows under `title`."""

    def decorate(function: F) -> F:
        for one in reversed(options):
            function = one(group=title)(function)
        return function

    return decorate


def others(*options: "partial[Callable[[Any], Any]]") -> Callable[[F], F]:
    """Decorates a command with options that belong to no group of their own."""
    return group(_OTHER, *options)


def names_of(one: click.Option, ctx: click.Context) -> str:
    """`--json [FILE]`: the names and what follows them."""
    names = ", ".join(one.opts)
    if one.is_flag:
        return names
    value = one.make_metavar(ctx)
    return f"{names} [{value}]" if isinstance(one.flag_value, str) else f"{names} {value}"


def default_of(one: click.Parameter) -> str | None:
    """The default as the help states it; None where there is none to state."""
    said = getattr(one, "show_default", None)
    if isinstance(said, str):
        return said
    if getattr(one, "is_flag", False) or isinstance(one.default, bool):
        return None
    return f"{one.default}" if isinstance(one.default, str | int | float) else None


def meaning_of(one: click.Parameter) -> str:
    """The help of an option or argument, with what can be known from its declaration."""
    text = getattr(one, "help", None) or ""
    if getattr(one, "multiple", False):
        text += "; may be repeated"
    default = default_of(one)
    if default is not None:
        return f"{text} (default: {default})"
    return f"{text} (required)" if one.required and isinstance(one, click.Option) else text


# --- commands ------------------------------------------------------------------------------------


class Command(click.Command):
    """A command with examples and exit codes."""

    def __init__(
        self,
        *given: Any,
        text: str = "",
        examples: str = "",
        exit_codes: str = "",
        **attributes: Any,
    ) -> None:
        attributes.setdefault("context_settings", {"help_option_names": ["-h", "--help"]})
        attributes["help"] = text  # not the docstring, which is for readers of the code
        super().__init__(*given, **attributes)
        self.examples = examples
        self.exit_codes = exit_codes

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Required options are named: without them there is no run."""
        required = [p for p in self.params if isinstance(p, click.Option) and p.required]
        return [*(names_of(p, ctx) for p in required), *super().collect_usage_pieces(ctx)]

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        found = super().get_help_option(ctx)
        if found is not None:
            found.help = "show this help"
        return found

    def sections(self, ctx: click.Context) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Titles of the help, and the names and meanings below each."""
        shown = [p for p in self.get_params(ctx) if not getattr(p, "hidden", False)]
        arguments = [
            (p.make_metavar(ctx), meaning_of(p)) for p in shown if isinstance(p, click.Argument)
        ]
        if arguments:
            yield "Arguments", arguments
        groups: dict[str, list[tuple[str, str]]] = {}
        for one in shown:
            if isinstance(one, click.Option):
                title = getattr(one, "group", _OTHER)
                groups.setdefault(title, []).append((names_of(one, ctx), meaning_of(one)))
        rest = groups.pop(_OTHER, [])
        yield from groups.items()
        if rest:
            yield (_OTHER if groups else "Options"), rest

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_usage(ctx, formatter)
        for text in (self.short_help, self.help):
            if text:
                formatter.write_paragraph()
                formatter.write_text(text)
        sections = list(self.sections(ctx))
        widths = [len(name) for _, rows in sections for name, _ in rows]
        width = max((w for w in widths if w <= NAMES_WIDTH_MAX), default=0)
        for title, rows in sections:
            formatter.write(f"\n{title}:\n")
            for name, text in rows:
                formatter.write(_row(name, text, width, formatter.width))
        for title, block in (("Examples", self.examples), ("Exit codes", self.exit_codes)):
            if block:
                formatter.write(f"\n{title}:\n")
                formatter.write("".join(f"  {line}\n" for line in block.strip("\n").splitlines()))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta.setdefault(WORDS, {})[self] = list(args)
        if not isinstance(self, click.Group):
            ctx.allow_extra_args = True  # refused below, in our words
        try:
            rest = super().parse_args(ctx, args)
        except click.UsageError as problem:
            problem.ctx = problem.ctx or ctx
            raise
        if rest and not ctx.resilient_parsing and not isinstance(self, click.Group):
            raise click.UsageError(f"unexpected argument {quoted(rest[0])}", ctx)
        return rest


WORDS = "ackwise.words"  # in a context's meta: what each command was given


class Group(Command, click.Group):
    """A command with verbs."""

    command_class = Command

    def __init__(self, *given: Any, **attributes: Any) -> None:
        attributes.setdefault("no_args_is_help", False)  # a missing verb is an error, in one line
        super().__init__(*given, **attributes)

    def sections(self, ctx: click.Context) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        yield from self.command_sections(ctx)
        yield from super().sections(ctx)

    def command_sections(self, ctx: click.Context) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Titles, and the commands below each with their one line."""
        found = ((name, self.get_command(ctx, name)) for name in self.commands)
        yield "Commands", [(name, (one.short_help or "") if one else "") for name, one in found]

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        found = self.get_command(ctx, args[0])
        if found is None and not ctx.resilient_parsing:
            raise _NoSuchCommand(args[0], self.list_commands(ctx), ctx)
        return (args[0] if found else None), found, args[1:]


class _NoSuchCommand(click.UsageError):
    def __init__(self, name: str, known: list[str], ctx: click.Context) -> None:
        super().__init__(f"no such command: {quoted(name)}", ctx)
        self.name, self.known = name, known


class LazyGroup(Group):
    """A group whose commands are imported when they are asked for: `PACKAGE.NAME`'s `command`, of
    `NAME_` where Python keeps the word for itself."""

    def __init__(
        self, *given: Any, package: str, titles: Mapping[str, Mapping[str, str]], **attributes: Any
    ) -> None:
        super().__init__(*given, **attributes)
        self._package = package
        self._titles = titles

    def command_sections(self, ctx: click.Context) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        for title, commands in self._titles.items():
            yield title, list(commands.items())

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for commands in self._titles.values() for name in commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for commands in self._titles.values():
            if cmd_name in commands:
                module = importlib.import_module(
                    f"{self._package}.{cmd_name}{'_' * keyword.iskeyword(cmd_name)}"
                )
                found: click.Command = module.command
                found.short_help = commands[cmd_name]
                return found
        return None


def _row(name: str, text: str, width: int, line: int) -> str:
    """A name and its meaning beside it, or below it when the name is wider than `width`."""
    margin = " " * (width + 4)
    wrapped = textwrap.wrap(text, max(line - len(margin), 20), break_on_hyphens=False) or [""]
    if len(name) <= width:
        first = f"  {name.ljust(width)}  {wrapped.pop(0)}".rstrip()
    else:
        first = f"  {name}"
    return "".join(f"{text}\n" for text in (first, *(margin + text for text in wrapped)))


# --- usage errors --------------------------------------------------------------------------------


def complaint(problem: click.UsageError) -> str:
    """The one line for a command line that cannot be understood."""
    if isinstance(problem, click.BadParameter) and not isinstance(problem, click.MissingParameter):
        # the value is at fault, not the way the command is used
        return f"ackwise: {_named(problem)}: {problem.message}"
    path = problem.ctx.command_path if problem.ctx else "ackwise"
    return f"{path}: {_what(problem)}; see `{path} --help`"


def _named(problem: click.BadParameter) -> str:
    one = problem.param
    if isinstance(one, click.Option):
        return one.opts[-1]
    return one.human_readable_name if one is not None else "command line"


def _what(problem: click.UsageError) -> str:
    if isinstance(problem, click.MissingParameter):
        return f"{_named(problem)} is missing"
    if isinstance(problem, _NoSuchCommand):
        return f"unknown command {quoted(problem.name)}" + _near(problem.name, problem.known)
    if isinstance(problem, click.NoSuchOption):
        return f"unknown option {problem.option_name}" + (
            _near(problem.option_name, problem.possibilities) or _elsewhere(problem)
        )
    if isinstance(problem, click.BadOptionUsage):
        params = problem.ctx.command.params if problem.ctx else []
        flags = [name for p in params if getattr(p, "is_flag", False) for name in p.opts]
        name = problem.option_name
        return f"{name} takes no value" if name in flags else f"{name} needs a value"
    text = problem.message.rstrip(".")
    return text[:1].lower() + text[1:]


def _elsewhere(problem: click.NoSuchOption) -> str:
    """The command that has such an option, where this one has none."""
    if problem.ctx is None:
        return ""
    owners: dict[str, str] = {}
    for command, path in _below(problem.ctx.find_root().command, problem.ctx.find_root()):
        for name in (n for p in command.params for n in p.opts if n.startswith("--")):
            owners.setdefault(name, path)
    near = get_close_matches(problem.option_name, list(owners), n=1, cutoff=0.8)
    return f"; did you mean {near[0]} of `{owners[near[0]]}`?" if near else ""


def _below(command: click.Command, ctx: click.Context) -> Iterator[tuple[click.Command, str]]:
    yield command, ctx.command_path
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            found = command.get_command(ctx, name)
            if found is not None:
                yield from _below(found, click.Context(found, parent=ctx, info_name=name))


def _near(name: str, known: list[str] | None) -> str:
    near = get_close_matches(name, known or [], n=1, cutoff=0.7)
    return f"; did you mean {near[0]}?" if near else ""
