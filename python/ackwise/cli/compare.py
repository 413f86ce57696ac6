# SPDX-License-Identifier: MIT
"""`ackwise compare`: checks everything first, runs, then writes."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ackwise.cli import options, replay
from ackwise.cli.options import Lab, Overrides
from ackwise.cli.outputs import Outputs, outputs
from ackwise.cli.shape import Command, group, option, others
from ackwise.errors import InputError
from ackwise.host.terminal import say

if TYPE_CHECKING:
    from ackwise.plans import Plan
    from ackwise.results.compare import Comparison

_TEXT = """\
Simulates policies on links and workloads, or replays a capture's arrivals through them, and shows
what each policy gains and costs. Give one of --plan, --link and --capture.
"""
_EXAMPLES = """\
ackwise compare --link adsl --workload bulk --policy linux --policy delayed:segments=8
ackwise compare --link docsis --policy all --runs 5 --report docsis.html
ackwise compare --plan demo --json results.json --csv results.csv
ackwise compare --plan my-plan.toml --parquet results.parquet
ackwise compare --capture transfer.pcap --policy all
ackwise compare --on linux --link adsl --policy linux   # the real kernel, see `ackwise lab`
ackwise compare --on device --link lan-1g --policy linux --policy ratelimit
ackwise compare --list
"""
_SIMULATOR = "simulator"
_BOTH = "simulator, linux"  # as --on names them
_WHERE = {"linux": "the lab", "device": "a device"}
_LAB_ONLY = ("--stock", "--cache", "--wall-limit", "--keep", "--device")


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
                text = f"  {' ' * wide}  not on linux: {why}"
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


def on_linux(
    plan: "Plan",
    lab: Lab,
    more: Overrides,
    *,
    detailed: bool,
    quiet: bool,
    emulated: bool = False,
) -> "Comparison":
    """A plan on the lab's kernel, or on an emulated machine; raises as `lab.compare.run`."""
    from ackwise.lab import compare as lab_compare
    from ackwise.results.progress import progress_bar

    kernel = lab.device_kernel() if emulated else lab.kernel()
    with progress_bar(not quiet) as show:
        return lab_compare.run(
            plan,
            kernel,
            detailed=detailed,
            keep=Path(lab.keep) if lab.keep else None,
            limit_s=None if lab.wall_limit is None else lab.wall_limit / 1e9,
            workers=more.jobs,
            on_progress=partial(show, f"running on {kernel.label}"),
            device=lab.target if emulated else None,
        )


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
        "--capture",
        type=options.FILE,
        metavar="FILE",
        help="pcap or pcapng file, as it is or packed by gzip or zstd, or - for the standard "
        "input; best taken at the data receiver",
    ),
    option(
        "--list",
        "listing",
        is_flag=True,
        help="list shipped links, workloads and plans, and where they run",
    ),
)
@options.overrides
@group(
    "Where to run",
    options.on("plan", "device"),
    options.DEVICE,
    options.STOCK,
    options.CACHE,
    *options.RUN_ON_LAB,
)
@group("With --capture", *replay.OPTIONS)
@outputs("json", "csv", "parquet", "report")
@others(
    option("--allow-long", is_flag=True, help="start even if the plan takes very long"),
    options.QUIET,
)
@options.gathered("costs", replay.ReceiverCosts)
@options.gathered("lab", Lab)
def command(
    plan: str | None,
    link: tuple[str, ...],
    workload: tuple[str, ...],
    capture: str | None,
    listing: bool,
    overrides: Overrides,
    on: str,
    lab: Lab,
    costs: replay.ReceiverCosts,
    outputs: Outputs,
    allow_long: bool,
    quiet: bool,
) -> int:
    """Exit code; raises InputError, RunError, Interrupted."""
    if listing:
        return _list()
    if not (plan or link or capture):
        what = "--workload: needs --link" if workload else "compare: nothing to compare"
        raise InputError(
            f"{what}; give --plan, --link (with --workload) or --capture, "
            "for example `ackwise compare --link adsl`; --list shows what is shipped"
        )
    outputs.check()
    if on == "simulator":
        options.refuse(_LAB_ONLY, "--on simulator", "give --on linux or --on device")
    if on == "linux":
        options.refuse(("--device",), "--on linux", "give --on device")
    if capture is not None:
        options.refuse(("--plan", "--link", "--workload"), "--capture", "give one of them")
        options.refuse(("--on",), "--capture", "give --plan or --link")
        options.refuse(
            ("--runs", "--duration", "--baseline"), "--capture", "a capture is replayed once"
        )
        return replay.main(capture, overrides, costs, outputs, quiet=quiet)
    options.need(
        ("--cost-ratio", "--unit", "--ack-delay-max", "--ack-cost", "--data-cost"), "--capture"
    )
    made = options.plan_of(plan, link, workload, overrides)
    if not options.given("--device"):
        lab = replace(lab, device=made.device)
    if on != "simulator":
        result = on_linux(
            made,
            lab,
            overrides,
            detailed=outputs.report is not None,
            quiet=quiet,
            emulated=on == "device",
        )
        skipped = sum(len(table.skipped) for table in result.tables)
        if skipped and not quiet:
            say(
                f"ackwise: not run, as {_WHERE[on]} does not support them: {skipped} "
                "combinations of link, workload and policy"
            )
        write(result, outputs)
        return 0
    write(_simulated(made, overrides, outputs, allow_long=allow_long, quiet=quiet), outputs)
    return 0


def _simulated(
    plan: "Plan", more: Overrides, outputs: Outputs, *, allow_long: bool, quiet: bool
) -> "Comparison":
    from ackwise import plans
    from ackwise.results import compare
    from ackwise.results.progress import progress_bar

    warning = plans.check_work(plan, allow_long)
    if warning and not quiet:
        say(f"ackwise: {warning}")
    with progress_bar(not quiet) as show:
        return compare.run(
            plan,
            detailed=outputs.report is not None,
            workers=more.jobs,
            on_progress=partial(show, "simulating"),
        )
