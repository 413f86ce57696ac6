# SPDX-License-Identifier: MIT
"""`ackwise reproduce`: checks everything first, runs, then writes."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ackwise.cli import options
from ackwise.cli.options import Lab
from ackwise.cli.outputs import Outputs, outputs
from ackwise.cli.shape import Command, argument, group, option, others
from ackwise.errors import EXIT_FAILED, InputError
from ackwise_experiments import documents

if TYPE_CHECKING:
    from ackwise_experiments.document import Reproduced
    from ackwise_experiments.runner import Runner

_TEXT = """\
Runs a published experiment in the simulator or on a real kernel and shows every figure beside the
published one. Each check says how far they may differ, who set that bound and when, and whether the
figure is a prediction: `predicted` checks could have failed; `fitted`, `injected`, `identity` and
`own` ones are counted apart.
"""
_EXAMPLES = """\
ackwise reproduce separation
ackwise reproduce all --report published.html --json checks.json
ackwise reproduce deadlock --figures figures/
ackwise reproduce ratelimit --on linux   # the real kernel, see `ackwise lab`
ackwise reproduce ratelimit --on device  # the real kernel on slow processors, see `ackwise device`
ackwise reproduce --list
"""
_EXIT_CODES = """\
0  every check passes
1  a check fails, or a run did
"""


def _experiments() -> Iterator[tuple[str, str]]:
    import ackwise_experiments as reproduce

    yield reproduce.ALL, "every experiment"
    yield from ((name, "") for name in reproduce.NAMES["simulator"])


def _list() -> int:
    from rich.text import Text

    import ackwise_experiments as reproduce
    from ackwise.results.console import Console

    console = Console()
    for on, names in reproduce.NAMES.items():
        place = "" if on == "simulator" else f" --on {on}"
        for name in names:
            one = reproduce.load(name, on)
            head = Text(name + place, style="bold") + Text(f"  {one.title}")
            lasts = Text(f"  ({one.minutes} min on two cores)", style="dim")
            console.print(head + lasts, soft_wrap=True)
            console.print(Text(f"    {one.question}", style="dim"), soft_wrap=True)
    return 0


def _runner(
    on: str, lab: Lab, jobs: int | None, keep: Path | None, show: Callable[[str, int, int], None]
) -> "Runner":
    from ackwise.lab import build
    from ackwise.lab.target import DEVICES
    from ackwise_experiments.lab_runner import DeviceRunner, LabRunner
    from ackwise_experiments.runner import Runner

    if on == "device":
        kernels = {one.name: build.find(lab.folder, False, (), one) for one in DEVICES.values()}
        return DeviceRunner(kernels, workers=jobs, keep=keep, on_progress=show)
    if on != "linux":
        return Runner(workers=jobs, keep=keep, on_progress=show)
    return LabRunner(lab.kernel(), workers=jobs, keep=keep, on_progress=show)


def _write_plans(folder: Path, done: "Reproduced") -> None:
    """Every scenario that was run, one JSON document a line: what the engine takes."""
    from ackwise.host import files
    from ackwise.results import compare

    for number, ran in enumerate(done.ran, 1):
        scenarios = list(ran.scenarios)
        if ran.plan is not None:
            scenarios = [
                documents.of(compare.scenario(j)) for j in compare.jobs(ran.plan, detailed=False)
            ]
        lines = "".join(json.dumps(s, separators=(",", ":")) + "\n" for s in scenarios)
        path = folder / f"{done.experiment.name}-{number}.jsonl"
        files.write_whole(str(path), lines.encode())


def _write(
    done: list["Reproduced"], outputs: Outputs, figures: Path | None, plans: Path | None
) -> None:
    from ackwise.host import files
    from ackwise_experiments import document
    from ackwise_experiments.figure import drawn

    pictures = {}
    if outputs.report is not None or figures is not None:
        pictures = {f.name: drawn(f) for one in done for f in one.outcome.figures}
    if figures is not None:
        files.make_folder(figures)
        for figure, picture in pictures.items():
            files.write_whole(str(figures / f"{figure}.svg"), picture)

    def page() -> bytes:
        from ackwise_experiments import report

        return report.of_experiments(done, pictures, options.command_line())

    outputs.write(document.of_experiments(done), lambda: document.rows(done), page)
    if plans is not None:
        files.make_folder(plans)
        for one in done:
            _write_plans(plans, one)


@click.command("reproduce", cls=Command, text=_TEXT, examples=_EXAMPLES, exit_codes=_EXIT_CODES)
@argument(
    "name",
    required=False,
    type=options.Known(_experiments),
    help="experiment to run, or `all`",
)
@group(
    "Where to run",
    option(
        "--on",
        type=options.OneOf("simulator", "linux", "device", "host"),
        default="simulator",
        help="what runs it: the simulator, the lab's kernel (linux), the kernels of emulated "
        "machines (device), or this host's kernel (host, needs root)",
    ),
    options.CACHE,
    options.jobs(),
    option(
        "--results",
        type=options.Folder(),
        metavar="DIR",
        help="keep raw results in DIR and reuse those of the same engine or kernel, so that a run "
        "that was cut goes on",
    ),
)
@outputs(
    "json",
    "csv",
    "report",
    more=(
        option("--figures", type=options.Folder(), metavar="DIR", help="write each figure as SVG"),
        option(
            "--plans",
            type=options.Folder(),
            metavar="DIR",
            help="write every scenario that was run, one JSON document per line",
        ),
    ),
)
@others(
    option(
        "--list",
        "listing",
        is_flag=True,
        help="list the experiments: what each asks, how long it takes",
    ),
    options.QUIET,
)
@options.gathered("lab", Lab)
def command(
    name: str | None,
    on: str,
    lab: Lab,
    jobs: int | None,
    results: Path | None,
    outputs: Outputs,
    figures: Path | None,
    plans: Path | None,
    listing: bool,
    quiet: bool,
) -> int:
    """0 when every check passes, else 1; raises InputError, RunError, Interrupted."""
    if listing:
        return _list()

    import ackwise_experiments as reproduce
    from ackwise.host import rights
    from ackwise.results.console import Console
    from ackwise.results.progress import progress_bar
    from ackwise_experiments import table
    from ackwise_experiments.document import Reproduced

    if name is None:
        raise InputError(
            "reproduce: no experiment named; give one of "
            f"{', '.join(reproduce.NAMES[on])}, or {reproduce.ALL}"
        )
    if on == "host":
        options.refuse(["--results"], "--on host", "its runs are in real time and never the same")
        rights.keep_only(*rights.NETWORK, *rights.CONFINING, *rights.FILES)
    names = reproduce.NAMES[on] if name == reproduce.ALL else [name]
    experiments = [reproduce.load(one, on) for one in names]
    outputs.check()
    console = Console()
    done: list[Reproduced] = []
    try:
        for experiment in experiments:
            with progress_bar(not quiet) as show:
                runner = _runner(on, lab, jobs, results, show)
                outcome = experiment.whole(runner)
            done.append(Reproduced(experiment, outcome, runner.ran))
            if outputs.to_terminal:
                table.show(done[-1], console)
    finally:  # a run that is cut leaves the experiments that it finished
        if done:
            _write(done, outputs, figures, plans)
    return 0 if all(c.passed for one in done for c in one.outcome.checks) else EXIT_FAILED
