# SPDX-License-Identifier: MIT
"""`ackwise twin`: a plan in the simulator and on the lab's kernel, side by side."""

from pathlib import Path

import click

from ackwise.cli import options
from ackwise.cli.options import Lab, Overrides
from ackwise.cli.outputs import Outputs, outputs
from ackwise.cli.shape import Command, group, option, others
from ackwise.host.terminal import say

_TEXT = """\
Runs a plan, or a link with workloads, in the simulator and on the lab's kernel, and shows both side
by side: the figures with their differences, and the first packet at which the two diverge. The
kernel runs once more with other seeds, as a yardstick: a difference as large as that is chance.
"""
_EXAMPLES = """\
ackwise twin --link wan-10ms --policy linux --runs 1 --duration 5s
ackwise twin my-plan.toml --report twin.html
ackwise twin --link lan-10m --workload bulk --workload short-flows --json twin.json
ackwise twin --link wan-lossy --policy linux --runs 1 --same-losses --duration 8s
ackwise twin --link wan-lossy --policy linux --runs 1 --keep captures/   # both worlds' captures
"""


@click.command("twin", cls=Command, text=_TEXT, examples=_EXAMPLES)
@options.PLAN_WORD
@group(
    "What to compare",
    options.LINKS,
    options.WORKLOADS,
    option(
        "--tolerance",
        type=options.Quantity("TIME", 0, 10**9),
        metavar="TIME",
        default="100us",
        help="tolerance for the time at which a packet leaves",
    ),
    option(
        "--same-losses",
        is_flag=True,
        help="the simulator loses the packets that the kernel's run lost, and no others",
    ),
)
@options.overrides
@group("Kernel", options.STOCK, options.CACHE, *options.RUN_ON_LAB)
@outputs("json", "report", "figure")
@others(options.QUIET)
@options.gathered("lab", Lab)
def command(
    plan: str | None,
    link: tuple[str, ...],
    workload: tuple[str, ...],
    tolerance: int,
    same_losses: bool,
    overrides: Overrides,
    lab: Lab,
    outputs: Outputs,
    quiet: bool,
) -> int:
    """Exit code; raises InputError, RunError, Interrupted."""
    from ackwise.results.console import Console
    from ackwise.results.progress import progress_bar
    from ackwise_experiments.twin import document, report, run, table

    outputs.check()
    made = options.plan_of(plan, link, workload, overrides)
    with progress_bar(not quiet) as show:
        twin = run.run(
            made,
            lab.kernel(),
            tolerance_ns=tolerance,
            keep=Path(lab.keep) if lab.keep else None,
            limit_s=None if lab.wall_limit is None else lab.wall_limit / 1e9,
            workers=overrides.jobs,
            same_losses=same_losses,
            on_progress=show,
        )
    skipped = sum(len(one.skipped) for one in twin.linux.tables)
    if skipped and not quiet:
        say(f"ackwise: not run, as the lab does not support them: {skipped} combinations of link, "
            "workload and policy")  # fmt: skip
    written = document.of_twin(twin)
    outputs.write(written, list, lambda: report.of_twin(twin, written, options.command_line()))
    if outputs.to_terminal:
        table.show(written, Console())
    return 0
