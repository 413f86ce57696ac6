# SPDX-License-Identifier: MIT
"""`ackwise reproduce`: checks everything first, runs, then writes."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.text import Text

from ackwise import plans, reproduce
from ackwise.cli import options
from ackwise.errors import EXIT_FAILED, InputError
from ackwise.host import files
from ackwise.lab import build
from ackwise.reproduce import document, table
from ackwise.reproduce.document import Reproduced
from ackwise.reproduce.figure import svg
from ackwise.reproduce.lab_runner import LabRunner
from ackwise.reproduce.runner import Runner
from ackwise.results import compare, export
from ackwise.results.progress import progress_bar


def _list() -> int:
    console = Console(highlight=False)
    for on, names in reproduce.NAMES.items():
        option = "" if on == "simulator" else f" --on {on}"
        for name in names:
            one = reproduce.load(name, on)
            console.print(
                Text(name + option, style="bold") + Text(f"  {one.title}"), soft_wrap=True
            )
            console.print(Text(f"    {one.question}", style="dim"), soft_wrap=True)
    return 0


def _new_runner(args: argparse.Namespace, show: Callable[[str, int, int], None]) -> Runner:
    if args.on != "linux":
        return Runner(workers=args.jobs, on_progress=show)
    kernel = build.find(options.cache_of(args), stock=False)
    return LabRunner(kernel, workers=args.jobs, on_progress=show)


def _targets(args: argparse.Namespace) -> None:
    paths = []
    for option in ("json", "csv", "report"):
        path = getattr(args, option)
        if path is None:
            continue
        files.check_target(path, f"--{option}")
        if path == files.STDOUT and option == "report":
            raise InputError("--report: cannot go to standard output; give a file name")
        paths.append((option, path if path == files.STDOUT else str(Path(path).absolute())))
    names = [path for _, path in paths]
    if len(set(names)) < len(names):
        raise InputError(f"--{paths[-1][0]}: {names[-1]}: is written by another option too")
    for option in ("figures", "plans"):
        path = getattr(args, option)
        if path is not None and not Path(path).is_dir():
            raise InputError(f"--{option}: {path}: is no directory; create it first")


def _write_plans(folder: Path, done: Reproduced) -> None:
    """Every scenario that was run, one JSON document a line: what the engine takes."""
    for number, ran in enumerate(done.ran, 1):
        scenarios = list(ran.scenarios)
        if ran.plan is not None:
            scenarios = [
                plans.scenario_of(j.link, j.workload, j.policy, j.seed)
                for j in compare.jobs(ran.plan, detailed=False)
            ]
        lines = "".join(json.dumps(s, separators=(",", ":")) + "\n" for s in scenarios)
        path = folder / f"{done.experiment.name}-{number}.jsonl"
        files.write_whole(str(path), lines.encode())


def main(args: argparse.Namespace, command: str) -> int:
    """0 when every check passes, else 1; raises InputError, RunError, Interrupted."""
    if args.list:
        return _list()
    if args.name is None:
        raise InputError(
            "reproduce: no experiment named; give one of "
            f"{', '.join(reproduce.NAMES[args.on])}, or {reproduce.ALL}"
        )
    names = reproduce.NAMES[args.on] if args.name == reproduce.ALL else [args.name]
    experiments = [reproduce.load(name, args.on) for name in names]
    _targets(args)
    console = Console(highlight=False)
    to_terminal = files.STDOUT not in (args.json, args.csv)
    done = []
    for experiment in experiments:
        with progress_bar(not args.quiet) as show:
            runner = _new_runner(args, show)
            outcome = experiment.run(runner)
        done.append(Reproduced(experiment, outcome, runner.ran))
        if to_terminal:
            table.show(done[-1], console)
    if args.json is not None:
        files.write_whole(args.json, export.json_bytes(document.of_experiments(done)))
    if args.csv is not None:
        files.write_whole(args.csv, export.csv_bytes(document.rows(done)))
    drawn = {}
    if args.report is not None or args.figures is not None:
        drawn = {f.name: svg(f) for one in done for f in one.outcome.figures}
    if args.figures is not None:
        for name, picture in drawn.items():
            files.write_whole(str(Path(args.figures) / f"{name}.svg"), picture)
    if args.report is not None:
        from ackwise.reproduce import report

        page = report.of_experiments(done, drawn, command)
        files.write_whole(args.report, page)
    if args.plans is not None:
        for one in done:
            _write_plans(Path(args.plans), one)
    return 0 if all(c.passed for one in done for c in one.outcome.checks) else EXIT_FAILED
