# SPDX-License-Identifier: MIT
"""`ackwise device`: builds kernels for emulated machines, and counts what policies cost on them."""

import click

from ackwise.cli import extension, options
from ackwise.cli import lab as lab_command
from ackwise.cli.options import Lab, Overrides
from ackwise.cli.outputs import Outputs, outputs
from ackwise.cli.shape import Group, group, option, others

_TEXT = """\
A device is a slow machine whose processor QEMU emulates: its clock advances by 8 ns per
instruction, 125 million a second. The cost of ACKs is therefore an exact number of instructions,
and the same image, policy and seed give the same bytes. Sender and receiver are network namespaces
of one machine, so both ends are counted. Nothing on this host is changed.
"""
_EXAMPLES = """\
ackwise device build                  # the kernel of a PC; takes minutes, once
ackwise device run --policy linux --policy delayed:segments=2 --policy ratelimit
ackwise device run --device mips --pace 20mbit --json costs.json
ackwise device compare --link lan-1g --policy linux --policy ratelimit
"""
_BUILD_EXAMPLES = """\
ackwise device build
ackwise device build --device mips --stock
ackwise device build --source linux-6.12.tar.xz --jobs 4
"""
_COMPARE_EXAMPLES = """\
ackwise device compare --link lan-1g --policy linux --policy ratelimit
ackwise device compare my-plan.toml --device mips --json results.json
"""


@click.group("device", cls=Group, text=_TEXT, examples=_EXAMPLES)
def command() -> None:
    """Group of subcommands."""


@command.command(
    "build",
    short_help="Build a machine's kernel, once for each change of its inputs",
    examples=_BUILD_EXAMPLES,
)
@group("Kernel", options.device("x86"), *lab_command.BUILD)
@others(option("--quiet", is_flag=True, help="no progress bar, no messages"))
@options.gathered("lab", Lab)
def build(lab: Lab, source: str | None, jobs: int | None, quiet: bool) -> int:
    """Exit code; raises InputError, RunError."""
    return lab_command.build_kernel(lab, lab.target, source, jobs, quiet=quiet)


@command.command(
    "compare",
    short_help="Compare policies on a machine, with plans as in `ackwise compare`",
    examples=_COMPARE_EXAMPLES,
)
@options.PLAN_WORD
@group("What to compare", options.LINKS, options.WORKLOADS)
@options.overrides
@group(
    "Kernel",
    options.device("the plan's, or x86"),
    options.STOCK,
    options.CACHE,
    *options.RUN_ON_LAB,
    options.CONFIG,
)
@outputs("json", "csv", "parquet", "report", "figure")
@others(options.QUIET)
@options.gathered("lab", Lab)
def compare(
    plan: str | None,
    link: tuple[str, ...],
    workload: tuple[str, ...],
    lab: Lab,
    overrides: Overrides,
    outputs: Outputs,
    quiet: bool,
) -> int:
    """Exit code; raises InputError, RunError, Interrupted."""
    from ackwise.lab.target import DEVICES

    outputs.check()
    made = options.plan_of(plan, link, workload, overrides)
    machine = DEVICES[lab.device or made.device]
    return lab_command.run_plan(made, lab, machine, overrides.jobs, outputs, quiet=quiet)


command.add_command(extension.command("device-run", "device run"), "run")
