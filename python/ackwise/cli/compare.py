# SPDX-License-Identifier: MIT
"""`ackwise compare`: policies on links and workloads, in the simulator."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import click

from ackwise.cli import options
from ackwise.cli.options import Overrides
from ackwise.cli.outputs import Outputs, outputs
from ackwise.cli.shape import Command, group, option, others
from ackwise.host.terminal import say

if TYPE_CHECKING:
    from ackwise.results.compare import Comparison

_TEXT = """\
Simulates ACK policies on links and workloads, and shows what each gains and costs. For the same
plan on a real kernel: `ackwise lab run`; on an emulated slow CPU: `ackwise device compare`; for
the arrivals in a capture: `ackwise replay`.
"""
_EXAMPLES = """\
ackwise compare --link adsl --workload bulk --policy linux --policy delayed:segments=8
ackwise compare --link docsis --policy all --runs 5 --report docsis.html
ackwise compare --link adsl --policy linux --policy ./mine.c:segments=4
ackwise compare --plan demo --json results.json --csv results.csv
ackwise compare --plan my-plan.toml --parquet results.parquet
ackwise compare --list
"""
_SIMULATOR = "simulator"
_BOTH = "simulator, lab"


def _list() -> int:
    from rich.text import Text

    from ackwise import plans
    from ackwise.lab import compare as lab_compare
    from ackwise.results.console import Console

    lacks: dict[str, Callable[[str], str]] = {
        "links": lambda name: lab_compare.lacks_link(plans.load_link(name)),
        "workloads": lambda name: lab_compare.lacks_workload(plans.load_workload(name)),
        "": lambda _name: "",
    }
    console = Console()
    for heading, kind in (("links", "links"), ("workloads", "workloads"), ("plans", "")):
        entries = list(plans.titles(kind))
        wide = max(len(name) for name, _, _ in entries)
        console.print(Text(heading, style="bold"))
        for name, title, _source in entries:
            why = lacks[kind](name)
            where = (_SIMULATOR if why else _BOTH).ljust(len(_BOTH) + 2) if kind else ""
            console.print(Text(f"  {name.ljust(wide)}  {where}{title}"), soft_wrap=True)
            if why:
                text = f"  {' ' * wide}  not in the lab: {why}"
                console.print(Text(text, style="dim"), soft_wrap=True)
    console.print(
        Text(
            "A plan runs what it can, and says what it leaves out. Each is a TOML file that names "
            f"the source of its figures, in {plans.shipped_dir('links').parent}",
            style="dim",
        ),
        soft_wrap=True,
    )
    return 0


def write(result: "Comparison", outputs: Outputs) -> None:
    """A comparison to where the output options say."""
    from ackwise.results import document, export, table
    from ackwise.results.console import Console

    written = document.of_comparison(result)

    def page() -> bytes:
        from ackwise.results.report import comparison as report

        return report.of_comparison(result, written, options.command_line())

    def about() -> dict[str, str]:
        return {part: export.json_bytes(written[part]).decode() for part in ("provenance", "plan")}

    outputs.write(written, lambda: document.rows(result), page, about)
    if outputs.to_terminal:
        table.show(result, Console())


@click.command("compare", cls=Command, text=_TEXT, examples=_EXAMPLES)
@group(
    "What to compare",
    option(
        "--plan",
        type=options.PLAN,
        metavar="NAME|FILE",
        help="plan with links, workloads and policies",
    ),
    options.LINKS,
    options.WORKLOADS,
    option(
        "--list",
        "listing",
        is_flag=True,
        help="list shipped links, workloads and plans, and where they run",
    ),
)
@options.overrides
@outputs("json", "csv", "parquet", "report", "figure")
@others(option("--allow-long", is_flag=True, help="allow a very long run"), options.QUIET)
def command(
    plan: str | None,
    link: tuple[str, ...],
    workload: tuple[str, ...],
    listing: bool,
    overrides: Overrides,
    outputs: Outputs,
    allow_long: bool,
    quiet: bool,
) -> int:
    """Exit code; raises InputError, RunError, Interrupted."""
    if listing:
        return _list()
    from ackwise import plans
    from ackwise.results import compare
    from ackwise.results.progress import progress_bar

    outputs.check()
    made = options.plan_of(plan, link, workload, overrides, policy_files=True)
    warning = plans.check_work(made, allow_long)
    if warning and not quiet:
        say(f"ackwise: {warning}")
    with progress_bar(not quiet) as show:
        result = compare.run(
            made,
            detailed=outputs.report is not None,
            workers=overrides.jobs,
            on_progress=partial(show, "simulating"),
        )
    write(result, outputs)
    return 0
