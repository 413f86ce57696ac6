# SPDX-License-Identifier: MIT
"""`ackwise lab`: builds the lab's kernel, runs plans on it, checks claims, opens a shell in it."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ackwise.cli import compare, extension, options
from ackwise.cli.options import Lab, Overrides
from ackwise.cli.outputs import Outputs, outputs
from ackwise.cli.shape import Group, group, option, others
from ackwise.host.terminal import say

if TYPE_CHECKING:
    from ackwise.lab.target import Target
    from ackwise.plans import Plan

_TEXT = """\
The lab runs Linux as an ordinary process in virtual time. Sender, routers and receiver are network
namespaces of one guest, and its clock advances only while nothing runs, so the same plan and seed
give the same packets. Nothing on this host is changed.
"""
_EXAMPLES = """\
ackwise lab build                # the kernel with ackwise's patches; takes minutes, once
ackwise lab build --stock        # Linux without patches
ackwise lab run --link adsl --policy linux --policy a3
ackwise lab conform
ackwise lab shell
"""
_BUILD_EXAMPLES = """\
ackwise lab build
ackwise lab build --stock
ackwise lab build --source linux-6.12.tar.xz --jobs 4
"""
_RUN_EXAMPLES = """\
ackwise lab run demo
ackwise lab run --link adsl --workload bulk --stock --policy linux
ackwise lab run my-plan.toml --runs 5 --report my-plan.html
ackwise lab run stretch --stock --policy linux --keep runs/
ackwise lab run --image debian-7.3/ --link adsl --policy linux --policy adaptive
"""
_SHELL_EXAMPLES = """\
ackwise lab shell
ackwise lab shell --stock
"""


# Options of a build.
BUILD = (
    options.STOCK,
    options.CACHE,
    option(
        "--source",
        type=options.FILE,
        metavar="TARBALL|DIR",
        help="Linux 6.12 sources",
        show_default="Debian's linux-source-6.12, downloaded with apt",
    ),
    option(
        "--config",
        type=options.FILE,
        metavar="FILE",
        multiple=True,
        help="file with additional CONFIG_ lines",
    ),
    options.jobs("parallel jobs of make"),
)


@click.group("lab", cls=Group, text=_TEXT, examples=_EXAMPLES)
def command() -> None:
    """Group of subcommands."""


@command.command(
    "build",
    short_help="Build the kernel, once for each change of its inputs",
    examples=_BUILD_EXAMPLES,
)
@group("Kernel", *BUILD)
@others(option("--quiet", is_flag=True, help="no progress bar, no messages"))
@options.gathered("lab", Lab)
def build(lab: Lab, source: str | None, jobs: int | None, quiet: bool) -> int:
    """Exit code; raises InputError, RunError."""
    from ackwise.lab.target import UML

    return build_kernel(lab, UML, source, jobs, quiet=quiet)


def build_kernel(
    lab: Lab, target: "Target", source: str | None, jobs: int | None, *, quiet: bool
) -> int:
    """Builds a target's kernel and says where it is; the exit code. Raises InputError, RunError."""
    from ackwise.host import rights
    from ackwise.lab import build as kernels
    from ackwise.results.progress import progress_bar

    rights.keep_only()
    phases: list[str] = []

    def phase(show: Any, what: str, done: int, all_: int) -> None:
        show(what, done, all_)
        if what not in phases:
            phases.append(what)
            if not quiet and not sys.stderr.isatty():
                say(f"ackwise: {what}")

    with progress_bar(not quiet) as show:
        kernel = kernels.build(
            lab.folder,
            stock=lab.stock,
            source=Path(source) if source else None,
            extra_configs=lab.configs,
            jobs=jobs,
            target=target,
            say=partial(phase, show),
            warn=lambda text: say(f"ackwise: {text}"),
        )
    if not quiet:
        print(f"{kernel.label}: {kernel.linux}{'' if phases else ' (built before)'}")
    return 0


@command.command(
    "run",
    short_help="Compare policies on the kernel, with plans as in `ackwise compare`",
    examples=_RUN_EXAMPLES,
)
@options.PLAN_WORD
@group("What to run", options.LINKS, options.WORKLOADS)
@options.overrides
@group("Kernel", options.STOCK, options.IMAGE, options.CACHE, *options.RUN_ON_LAB, options.CONFIG)
@outputs("json", "csv", "parquet", "report", "figure")
@others(options.QUIET)
@options.gathered("lab", Lab)
def run(
    plan: str | None,
    link: tuple[str, ...],
    workload: tuple[str, ...],
    lab: Lab,
    overrides: Overrides,
    outputs: Outputs,
    quiet: bool,
) -> int:
    """Exit code; raises InputError, RunError, Interrupted."""
    outputs.check()
    if lab.image is not None:
        options.refuse(("--stock", "--config"), "--image", "its kernel is not built here")
    made = options.plan_of(plan, link, workload, overrides)
    return run_plan(made, lab, None, overrides.jobs, outputs, quiet=quiet)


def run_plan(
    plan: "Plan",
    lab: Lab,
    device: "Target | None",
    jobs: int | None,
    outputs: Outputs,
    *,
    quiet: bool,
) -> int:
    """Runs a plan on the lab's kernel, or on an emulated `device`, and writes its results; the
    exit code. Raises as `lab.compare.run`."""
    from ackwise.lab import compare as on_kernel
    from ackwise.results.progress import progress_bar

    if device is None:
        on_kernel.check_runs_something(plan)
    image = None
    if lab.image is not None:
        kernel, image = lab.image_kernel()
    else:
        kernel = lab.device_kernel(device) if device else lab.kernel()
    with progress_bar(not quiet) as show:
        result = on_kernel.run(
            plan,
            kernel,
            detailed=outputs.report is not None,
            keep=Path(lab.keep) if lab.keep else None,
            limit_s=None if lab.wall_limit is None else lab.wall_limit / 1e9,
            workers=jobs,
            on_progress=partial(show, f"running on {kernel.label}"),
            device=device,
            image=image,
        )
    skipped = sum(len(table.skipped) for table in result.tables)
    if skipped and not quiet:
        place = on_kernel.place_of(kernel, device, image)
        say(
            f"ackwise: not run, as {place.said} does not support them: "
            f"{skipped} combinations of link, workload and policy"
        )
    compare.write(result, outputs)
    return 0


command.add_command(extension.command("lab-conform", "lab conform"), "conform")


@command.command("shell", short_help="Open a shell in a guest", examples=_SHELL_EXAMPLES)
@group("Kernel", options.STOCK, options.CACHE, options.CONFIG)
@options.gathered("lab", Lab)
def shell(lab: Lab) -> int:
    """The shell's exit code; raises RunError."""
    from ackwise.lab import machine

    kernel = lab.kernel()
    with machine.run_folder(kernel) as folder:
        return machine.shell(kernel, folder, ["shell /bin/sh"], seed=1)
