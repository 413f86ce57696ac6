# SPDX-License-Identifier: MIT
"""`ackwise sweep`: a space of links, workloads, senders and policies, on this host or a cluster."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ackwise.cli import options
from ackwise.cli.options import Lab
from ackwise.cli.outputs import Outputs, outputs
from ackwise.cli.shape import Group, argument, group, option, others
from ackwise.errors import InputError
from ackwise.host.terminal import say

if TYPE_CHECKING:
    from ackwise.sweeps.run import Spread
    from ackwise.sweeps.world import World

_TEXT = """\
A space lists keys of links, workloads, senders and policies, and how they vary. Each policy runs at
each point; the results are a data set that pandas, polars and DuckDB read directly.
"""
_EXAMPLES = """\
ackwise sweep run space.toml results/
ackwise sweep show results/ --report results.html
"""
_RUN_TEXT = """\
Runs the missing parts. Each part of the data set is written whole or not at all, so an
interrupted sweep loses nothing; the same command resumes it. The same space gives
the same bytes on any number of cores and workers.
"""
_RUN_EXAMPLES = """\
ackwise sweep run space.toml results/
ackwise sweep run space.toml results/ --jobs 2
ackwise sweep run space.toml kernel/ --on linux --stock
ackwise sweep run space.toml both/ --on twin                # simulator, and the kernel beside it
ackwise sweep run space.toml results/ --scheduler tcp://10.0.0.1:8786   # a Dask cluster
"""
_SHOW_TEXT = """\
Shows how far a sweep is, how often each policy is best, and which one is best where, also while the
sweep runs.
"""
_SHOW_EXAMPLES = """\
ackwise sweep show results/
ackwise sweep show results/ --by link.down.rate --by rtt
ackwise sweep show results/ --report results.html --json results.json
"""
_LAB_ONLY = ("--stock", "--cache", "--wall-limit")


@click.group("sweep", cls=Group, text=_TEXT, examples=_EXAMPLES)
def command() -> None:
    """Group of subcommands."""


@command.command(
    "run",
    short_help="Run a space, or resume it",
    text=_RUN_TEXT,
    examples=_RUN_EXAMPLES,
)
@argument("space", type=options.FILE, metavar="SPACE", help="TOML file, see docs/sweep.md")
@argument(
    "folder", type=options.Folder(), metavar="DIR", help="directory of the results, made if absent"
)
@group(
    "Where to run",
    option(
        "--on",
        type=options.OneOf("simulator", "linux", "twin"),
        default="simulator",
        help="where cells run; linux: the lab's kernel; twin: both",
    ),
    options.STOCK,
    options.CACHE,
    options.WALL_LIMIT,
    option(
        "--scheduler",
        metavar="ADDRESS",
        help="Dask scheduler whose workers run the cells, instead of this host "
        "(`pip install 'ackwise[cluster]'`)",
    ),
    options.jobs("cells in parallel on this host"),
)
@others(options.QUIET)
@options.gathered("lab", Lab)
def run_space(
    space: str,
    folder: Path,
    on: str,
    scheduler: str | None,
    jobs: int | None,
    quiet: bool,
    lab: Lab,
) -> int:
    """Exit code; raises InputError, RunError, Interrupted."""
    from ackwise.results.progress import progress_bar
    from ackwise.sweeps import run
    from ackwise.sweeps import space as spaces

    if on == "simulator":
        options.refuse(_LAB_ONLY, "--on simulator", "give --on linux")
    if scheduler is not None:
        options.refuse(("--jobs",), "--scheduler", "its workers decide")
    loaded = spaces.load(space)
    world = _world(on, lab)
    spread = _spread(scheduler, jobs)

    def tell(text: str) -> None:
        if not quiet:
            say(f"ackwise: {text}")

    with progress_bar(not quiet) as show:
        made = run.run(
            loaded,
            world,
            folder,
            spread,
            say=tell,
            on_progress=partial(show, "parts of the sweep"),
        )
    if made.not_run == loaded.cells:
        raise InputError(f"{space}: no cell could be run: {made.why}")
    if made.not_run:
        tell(f"{made.not_run} of {loaded.cells} cells have no figures: {made.why}")
    print(f"{loaded.cells} cells in {folder}; `ackwise sweep show {folder}` shows them")
    return 0


def _world(on: str, lab: Lab) -> "World":
    from ackwise.sweeps.world import Both, Linux, Simulator

    if on == "simulator":
        return Simulator.here()
    lab.kernel()  # says what this host lacks
    limit_s = None if lab.wall_limit is None else lab.wall_limit / 1e9
    linux = Linux.here(lab.folder, lab.stock, limit_s)
    return linux if on == "linux" else Both(Simulator.here(), linux)


def _spread(scheduler: str | None, jobs: int | None) -> "Spread":
    from ackwise.sweeps import run

    if scheduler is None:
        return run.on_this_host(jobs)
    from ackwise.sweeps import cluster

    return cluster.on_cluster(scheduler)


@command.command(
    "show",
    short_help="Show progress, the best policy by region, surfaces and Pareto fronts",
    text=_SHOW_TEXT,
    examples=_SHOW_EXAMPLES,
)
@argument("folder", type=options.DIRECTORY, metavar="DIR", help="directory of a sweep")
@group(
    "What to show",
    option(
        "--by",
        metavar="KEY",
        multiple=True,
        help="varied key that divides the points into regions; give two",
        show_default="every pair",
    ),
    option(
        "--group",
        "flows",
        metavar="NAME",
        help="group of flows",
        show_default="the first that is measured",
    ),
)
@outputs("json", "report", "figure")
@others(options.QUIET)
def show_folder(
    folder: str, by: tuple[str, ...], flows: str | None, outputs: Outputs, quiet: bool
) -> int:
    """Exit code; raises InputError, RunError."""
    from ackwise.results.console import Console
    from ackwise.results.progress import progress_bar
    from ackwise.sweeps import dataset, document, evaluate, pace, report, table

    outputs.check()
    found = dataset.open_existing(Path(folder))
    with progress_bar(not quiet) as show:
        seen = evaluate.evaluate(found, flows, partial(show, "reading"))
    written = document.of_sweep(
        found, seen, document.chosen_pair(seen, by), pace.remaining_s(found)
    )
    outputs.write(written, list, lambda: report.of_sweep(written, options.command_line()))
    if outputs.to_terminal:
        table.show(written, Console())
    return 0
