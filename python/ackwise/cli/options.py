# SPDX-License-Identifier: MIT
"""Types of option values, what the shell completes for them, and options that commands share."""

import functools
import math
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ackwise.cli import shape
from ackwise.cli.shape import F, ParamType, argument, group, option
from ackwise.errors import InputError, quoted

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ackwise.lab import target as targets
    from ackwise.lab.image import Image
    from ackwise.lab.machine import Kernel
    from ackwise.plans import Plan
    from ackwise.plans.policy import PolicyChoice


# --- types of values -----------------------------------------------------------------------------


_DIGITS_MAX = 30  # Python refuses thousands


class Whole(ParamType[int]):
    """A whole number within bounds."""

    name = "number"

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        give = f"give {self.low} to {self.high}"
        digits = value.strip().removeprefix("-")
        if not (digits.isascii() and digits.isdigit()):
            self.fail(f"{quoted(value)} is not a whole number; {give}", param, ctx)
        beyond = self.low - 1 if value.strip().startswith("-") else self.high + 1
        number = int(value) if len(digits) <= _DIGITS_MAX else beyond
        if not self.low <= number <= self.high:
            size = "negative" if number < 0 else "too small" if number < self.low else "too large"
            self.fail(f"{quoted(value)} is {size}; {give}", param, ctx)
        return number


class Number(ParamType[float]):
    """A number within bounds."""

    name = "number"

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not self.low <= number <= self.high:
            wrong = "not a number" if math.isnan(number) else "out of range"
            give = f"give {self.low:g} to {self.high:g}"
            self.fail(f"{quoted(str(value))} is {wrong}; {give}", param, ctx)
        return number


class Quantity(ParamType[int]):
    """A quantity with a unit, in base units: `dimension` is a name of `plans.units`."""

    name = "quantity"

    def __init__(self, dimension: str, low: int, high: int, bare: str = "") -> None:
        self.dimension, self.low, self.high = dimension, low, high
        self.bare = bare  # the unit of a number without one

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        from ackwise.plans import units

        if self.bare and value.isascii() and value.isdigit():
            value += self.bare
        name = param.opts[-1] if param else self.name
        return units.read_option(name, value, (getattr(units, self.dimension), *self.bounds()))

    def bounds(self) -> tuple[int, int]:
        """Minimum and maximum."""
        return self.low, self.high


class Duration(Quantity):
    """Duration of a run or a wait, within the bounds of a plan's duration."""

    def __init__(self) -> None:
        super().__init__("TIME", 0, 0)

    def bounds(self) -> tuple[int, int]:
        from ackwise.plans import schema

        key = schema.duration()
        return int(key.low), int(key.high)


class OneOf(ParamType[str]):
    """One of a few words."""

    name = "choice"

    def __init__(self, *words: str) -> None:
        self.words = words

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return "|".join(self.words)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.words:
            self.fail(
                f"{quoted(value)} is not a choice; give one of {', '.join(self.words)}", param, ctx
            )
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem[Any]]":
        return _completions(((word, "") for word in self.words), incomplete)


class Folder(ParamType[Path]):
    """A directory for output, which is made if it does not exist."""

    name = "directory"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        from ackwise.host import files

        files.check_folder(Path(value), param.opts[-1] if param else self.name)
        return Path(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem[Any]]":
        return _paths(incomplete, "dir")


class OutputPath(ParamType[str]):
    """A file or directory that need not exist, as the user names it."""

    def __init__(self, kind: str = "file") -> None:
        self.name = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem[Any]]":
        return _paths(incomplete, "dir" if self.name == "directory" else "file")


class Known(ParamType[str]):
    """A name out of those that `known` yields with a line each; `files`: or the path of a file.

    The shell completes it; the command checks the name, since it knows what else is accepted.
    """

    name = "name"

    def __init__(self, known: Callable[[], Iterable[tuple[str, str]]], files: bool = False) -> None:
        self.known, self.files = known, files

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem[Any]]":
        found = _completions(self.known(), incomplete)
        return found or (_paths(incomplete, "file") if self.files else [])


def _completions(known: Iterable[tuple[str, str]], begin: str) -> "list[CompletionItem[Any]]":
    from click.shell_completion import CompletionItem

    return [CompletionItem(n, help=text or None) for n, text in known if n.startswith(begin)]


def _paths(begin: str, kind: str) -> "list[CompletionItem[Any]]":
    from click.shell_completion import CompletionItem

    return [CompletionItem(begin, type=kind)]


def _shipped(kind: str) -> Iterator[tuple[str, str]]:
    from ackwise import plans

    return ((name, title) for name, title, _source in plans.titles(kind))


def _policies(*more: tuple[str, str]) -> Iterator[tuple[str, str]]:
    from ackwise import engine

    yield from more
    yield from ((entry["name"], entry["summary"]) for entry in engine.policies())


LINK = Known(lambda: _shipped("links"), files=True)
WORKLOAD = Known(lambda: _shipped("workloads"), files=True)
PLAN = Known(lambda: _shipped(""), files=True)
POLICY = Known(_policies)
POLICIES = Known(
    lambda: _policies(("all", "every policy"), ("rivals", "the rules of other stacks"))
)
FILE = OutputPath()
DIRECTORY = OutputPath("directory")


# --- options that were given ---------------------------------------------------------------------


def given(*names: str) -> list[str]:
    """The named options or arguments that are on the command line, in the order of the help."""
    ctx = click.get_current_context()
    return [
        param.opts[-1]
        for param in ctx.command.params
        if param.opts[-1] in names
        and param.name is not None
        and ctx.get_parameter_source(param.name) is click.core.ParameterSource.COMMANDLINE
    ]


def refuse(names: Sequence[str], beside: str, remedy: str = "leave one of them out") -> None:
    """Raises InputError for the first of the options named that is on the command line."""
    for name in given(*names):
        raise InputError(f"{name}: cannot be combined with {beside}; {remedy}")


def one_of(*names: str) -> None:
    """Raises InputError if several of the options named are on the command line."""
    for first, second in zip(found := given(*names), found[1:], strict=False):
        raise InputError(f"{first}: cannot be combined with {second}; leave one of them out")


def need(names: Sequence[str], beside: str) -> None:
    """Raises InputError for the first of the options named, which need what was not given."""
    for name in given(*names):
        raise InputError(f"{name}: needs {beside}")


def reader_of(path: str) -> str:
    """The option or argument of the current command that names `path` as input file; "" if none."""
    ctx = click.get_current_context()
    for param in ctx.command.params:
        if not isinstance(param.type, Known) or not param.type.files:
            continue
        words = ctx.params.get(param.name or "")
        for word in [words] if isinstance(words, str) else words or ():
            if Path(word).is_file() and Path(path).exists() and Path(word).samefile(path):
                return param.opts[-1] if isinstance(param, click.Option) else "the command"
    return ""


def command_line() -> str:
    """The command as it was given, for a shell."""
    return shlex.join(["ackwise", *(click.get_current_context().find_root().obj or [])])


def raw() -> dict[str, str]:
    """Values of the current command's options as they were given, by parameter name."""
    ctx = click.get_current_context()
    words = ctx.meta[shape.WORDS][ctx.command]
    values, _rest, _order = ctx.command.make_parser(ctx).parse_args(list(words))
    return {name: value for name, value in values.items() if isinstance(value, str)}


# --- options that commands share -----------------------------------------------------------------


def gathered(name: str, kind: type) -> Callable[[F], F]:
    """Decorates a command that takes one `kind` as `name`: a dataclass of option values."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(**values: Any) -> Any:
            known = [f.name for f in fields(kind) if f.name in values]
            whole = kind(**{n: values.pop(n) for n in known})
            return function(**values, **{name: whole})

        return call  # type: ignore[return-value]

    return decorate


@dataclass(frozen=True)
class Overrides:
    """Options that override a plan's runs."""

    policy: tuple[str, ...] = ()
    baseline: str | None = None
    runs: int | None = None
    seed: int | None = None
    duration: int | None = None  # ns
    jobs: int | None = None


JOBS = Whole(1, 1024)


def jobs(what: str = "runs in parallel") -> "functools.partial[Any]":
    """--jobs."""
    return option("--jobs", type=JOBS, metavar="N", help=what, show_default="one per core")


def overrides(function: F) -> F:
    """The options that a plan's runs have; the command takes `overrides`."""
    return group(
        "Runs",
        option(
            "--policy", type=POLICIES, metavar="NAME[:KEY=VALUE,...]", multiple=True,
            help="policy to run, `all` for every one, `rivals` for those of other stacks, "
            "`path` for stock with ACKs thinned on their way",
            show_default="the plan's, or linux and adaptive",
        ),
        option(
            "--baseline", type=POLICY, metavar="POLICY", help="policy to compare the others with",
            show_default="the plan's, or linux",
        ),
        option(
            "--runs", type=Whole(1, 1000), metavar="N",
            help="runs of each combination, each with its own seed",
            show_default="the plan's, or 3",
        ),
        option(
            "--seed", type=Whole(0, 2**63 - 1), metavar="N", help="first run's seed",
            show_default="the plan's, or 1",
        ),
        option(
            "--duration", type=Duration(), metavar="TIME", help="simulated time, such as 5s",
            show_default="the workload's",
        ),
        jobs(),
    )(gathered("overrides", Overrides)(function))  # fmt: skip


def policies_of(given: Sequence[str], *, files: bool) -> "list[PolicyChoice]":
    """The policies of --policy. `files`: C files are among them. Raises InputError."""
    from ackwise.plans import own, policy

    named = [own.add(one, "--policy") if files and own.is_file(one) else one for one in given]
    return policy.parse_all(named or [policy.ALL], "--policy")


def _usual(baseline: str | None) -> tuple[str, ...]:
    """Stock, the policy to switch on, and what both shall be compared with."""
    return tuple(dict.fromkeys(("linux", "adaptive", *filter(None, [baseline]))))


def plan_of(
    plan: str | None,
    links: Sequence[str],
    workloads: Sequence[str],
    more: Overrides,
    *,
    policy_files: bool = False,
) -> "Plan":
    """The plan that the command line names, or makes of --link and --workload. Raises
    InputError."""
    from ackwise import plans

    ctx = click.get_current_context()
    word = next(p for p in ctx.command.params if p.name == "plan")
    name = word.opts[-1] if isinstance(word, click.Option) else "PLAN"
    if not (plan or links):
        what = "--workload: needs --link" if workloads else f"{ctx.info_name}: nothing to run"
        raise InputError(
            f"{what}; give {name}, or --link with --workload, for example "
            f"`{ctx.command_path} --link adsl`; `ackwise compare --list` shows what is shipped"
        )
    if plan is not None:
        refuse(("--link", "--workload"), name, "a plan names links and workloads itself")
        made = plans.load_plan(plan)
        made = plans.build(
            title=made.title,
            source=made.source,
            file=made.file,
            links=made.links,
            workloads=made.workloads,
            policies=policies_of(more.policy, files=policy_files) if more.policy else made.policies,
            baseline=more.baseline or made.baseline.label,
            runs=more.runs or made.runs,
            seed=made.seed if more.seed is None else more.seed,
            clamp=made.clamp,
            device=made.device,
            where="--plan",
        )
    else:
        named_links = [plans.load_link(spec) for spec in links]
        named_workloads = [plans.load_workload(spec) for spec in workloads or ["bulk"]]
        titles = ", ".join(x.name for x in named_links), ", ".join(w.name for w in named_workloads)
        made = plans.build(
            title=": ".join(titles),
            source="command line",
            file="",
            links=named_links,
            workloads=named_workloads,
            policies=policies_of(more.policy or _usual(more.baseline), files=policy_files),
            baseline=more.baseline or "linux",
            runs=more.runs or 3,
            seed=1 if more.seed is None else more.seed,
            where="--link and --workload",
        )
    return made if more.duration is None else plans.with_duration(made, more.duration)


@dataclass(frozen=True)
class Lab:
    """A kernel of the lab, and what a run on it keeps."""

    stock: bool = False
    cache: str | None = None
    config: tuple[str, ...] = ()
    wall_limit: int | None = None  # ns
    keep: str | None = None
    device: str | None = None
    image: str | None = None

    @property
    def folder(self) -> Path:
        """Folder of built kernels."""
        from ackwise.host import files

        return Path(self.cache).absolute() if self.cache else files.cache_folder()

    @property
    def configs(self) -> list[Path]:
        """Files with more lines of kernel configuration."""
        return [Path(name) for name in self.config]

    def kernel(self) -> "Kernel":
        """The kernel, which must have been built; a host that cannot confine guests is reported.
        Raises RunError."""
        from ackwise.lab import build, machine

        kernel = build.find(self.folder, self.stock, self.configs)
        weak = machine.unconfined(kernel)
        if weak:
            print(f"ackwise: {weak}", file=sys.stderr, flush=True)
        return kernel

    def device_kernel(self, target: "targets.Target | None" = None) -> "Kernel":
        """The kernel of the emulated machine, or of another, which must have been built. Raises
        RunError."""
        from ackwise.lab import build

        return build.find(self.folder, self.stock, self.configs, target or self.target)

    def image_kernel(self) -> "tuple[Kernel, Image]":
        """A distribution's kernel, with the guest program of the lab's. Raises InputError,
        RunError."""
        from ackwise.lab import build
        from ackwise.lab import image as images

        assert self.image is not None
        image = images.find(Path(self.image))
        return images.kernel_of(image, build.find_guest(self.folder)), image

    @property
    def target(self) -> "targets.Target":
        """The emulated machine."""
        from ackwise.lab.target import DEVICES

        return DEVICES[self.device or "x86"]


STOCK = option("--stock", is_flag=True, help="the kernel without ackwise's patches")
PLAN_WORD = argument(
    "plan", metavar="[PLAN]", type=PLAN, required=False,
    help="name or file of a plan, instead of --link",
)  # fmt: skip
IMAGE = option(
    "--image", type=DIRECTORY, metavar="DIR",
    help="a distribution's own kernel, whose packages are unpacked in DIR",
    show_default="the lab's kernel",
)  # fmt: skip
LINKS = option("--link", type=LINK, metavar="NAME|FILE", multiple=True, help="link")
WORKLOADS = option(
    "--workload", type=WORKLOAD, metavar="NAME|FILE", multiple=True, help="workload on each link",
    show_default="bulk",
)  # fmt: skip
CACHE = option(
    "--cache", type=DIRECTORY, metavar="DIR", help="directory for built kernels",
    show_default="~/.cache/ackwise",
)  # fmt: skip


def device(default: str) -> "functools.partial[Any]":
    """--device; `default` as the help states it."""
    return option(
        "--device", type=OneOf("x86", "mips"), show_default=default,
        help="emulated machine: a PC, or a big-endian MIPS board",
    )  # fmt: skip


CONFIG = option("--config", type=FILE, metavar="FILE", multiple=True, hidden=True)
WALL_LIMIT = option(
    "--wall-limit", type=Duration(), metavar="TIME",
    help="real time after which a run counts as hung and is stopped",
)  # fmt: skip
RUN_ON_LAB = (
    WALL_LIMIT,
    option(
        "--keep", type=DIRECTORY, metavar="DIR",
        help="save captures, samples, counters and console output of every run there",
    ),
)  # fmt: skip
QUIET = option("--quiet", is_flag=True, help="no progress bar, no warnings")
AS_JSON = option("--json", "as_json", is_flag=True, help="print JSON")
