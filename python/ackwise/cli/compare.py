# SPDX-License-Identifier: MIT
"""`ackwise compare`: checks everything first, runs, then writes."""

import argparse
import sys
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.text import Text

from ackwise import __version__, plans
from ackwise.cli import options
from ackwise.errors import InputError
from ackwise.host import files
from ackwise.lab import build
from ackwise.lab import compare as lab_compare
from ackwise.plans import Plan, policy, schema
from ackwise.results import compare, document, export, table
from ackwise.results.progress import progress_bar


def _only_with(args: argparse.Namespace, source: str, names: tuple[str, ...]) -> None:
    for name in names:
        if getattr(args, name) is not None:
            raise InputError(f"--{name.replace('_', '-')}: has no meaning with {source}")


def plan_of(args: argparse.Namespace) -> Plan:
    """The plan that --plan, or --link and --workload, ask for."""
    if args.plan is not None:
        if args.link or args.workload:
            raise InputError(
                "--plan: names links and workloads itself; leave out --link and --workload, "
                "or leave out --plan"
            )
        made = plans.load_plan(args.plan)
        policies = made.policies
        if args.policy:
            policies = policy.parse_all(args.policy, "--policy")
        made = plans.build(
            title=made.title,
            source=made.source,
            file=made.file,
            links=made.links,
            workloads=made.workloads,
            policies=policies,
            baseline=args.baseline or made.baseline.label,
            runs=args.runs or made.runs,
            seed=made.seed if args.seed is None else args.seed,
            where="--plan",
        )
    else:
        links = [plans.load_link(spec) for spec in args.link]
        workloads = [plans.load_workload(spec) for spec in args.workload or ["bulk"]]
        made = plans.build(
            title=f"{', '.join(x.name for x in links)}: {', '.join(w.name for w in workloads)}",
            source="command line",
            file="",
            links=links,
            workloads=workloads,
            policies=policy.parse_all(args.policy or [policy.ALL], "--policy"),
            baseline=args.baseline or "linux",
            runs=args.runs or 3,
            seed=1 if args.seed is None else args.seed,
            where="--link and --workload",
        )
    if args.duration is not None:
        try:
            duration = schema.read_key(schema.duration(), args.duration)
        except ValueError as problem:
            raise InputError(f"--duration: {problem}") from None
        made = plans.with_duration(made, duration)
    return made


def _list() -> int:
    console = Console(highlight=False)
    for heading, kind in (("links", "links"), ("workloads", "workloads"), ("plans", "")):
        entries = list(plans.titles(kind))
        wide = max(len(name) for name, _, _ in entries)
        console.print(Text(heading, style="bold"))
        for name, title, _source in entries:
            console.print(Text(f"  {name.ljust(wide)}  {title}"), soft_wrap=True)
    console.print(
        Text(
            "each is a TOML file that names the source of its figures; read one in "
            f"{plans.shipped_dir('links').parent}",
            style="dim",
        ),
        soft_wrap=True,
    )
    return 0


def check_outputs(args: argparse.Namespace) -> None:
    """Refuses output files that cannot be written, or that two options name."""
    targets = [("--" + n, getattr(args, n)) for n in ("json", "csv", "parquet", "report")]
    chosen = [(option, path) for option, path in targets if path is not None]
    for option, path in chosen:
        files.check_target(path, option)
        if path == files.STDOUT and option in ("--parquet", "--report"):
            raise InputError(f"{option}: cannot go to standard output; give a file name")
    paths = [str(Path(path).absolute()) for _, path in chosen if path != files.STDOUT]
    if len(set(paths)) < len(paths) or sum(p == files.STDOUT for _, p in chosen) > 1:
        raise InputError(f"{chosen[-1][0]}: {chosen[-1][1]}: is written by another option too")


def main(args: argparse.Namespace, command: str) -> int:
    """Exit code; raises InputError, RunError, Interrupted."""
    if args.list:
        return _list()
    given = [name for name in ("plan", "link", "capture") if getattr(args, name) is not None]
    if "capture" in given and len(given) > 1:
        raise InputError(f"--capture: has no meaning with --{given[0]}; give one of them")
    if not given:
        what = "--workload: needs --link" if args.workload else "compare: nothing to compare"
        raise InputError(
            f"{what}; give --plan, --link (with --workload) or --capture, "
            "for example `ackwise compare --link adsl`; --list shows what is shipped"
        )
    check_outputs(args)

    if args.on == "simulator":
        _only_with(args, "--on simulator", ("cache", "wall_limit", "keep"))
        if args.stock:
            raise InputError("--stock: has no meaning with --on simulator; give --on linux")
    elif args.capture is not None:
        raise InputError("--on: has no meaning with --capture; give --plan or --link")
    if args.capture is not None:
        from ackwise.cli import replay

        _only_with(args, "--capture", ("workload", "runs", "duration", "baseline"))
        return replay.main(args, command)
    _only_with(args, "--plan or --link", ("cost_ratio", "unit", "ack_cost", "data_cost"))
    made = plan_of(args)
    if args.on == "linux":
        write(args, on_linux(made, args), command)
        return 0
    warning = plans.check_work(made, args.allow_long)
    if warning and not args.quiet:
        print(f"ackwise: {warning}", file=sys.stderr)
    with progress_bar(not args.quiet) as show:
        result = compare.run(
            made,
            detailed=args.report is not None,
            workers=args.jobs,
            on_progress=partial(show, "simulating"),
        )
    write(args, result, command)
    return 0


def write(args: argparse.Namespace, result: compare.Comparison, command: str) -> None:
    """A comparison to where the output options say."""
    written = document.of_comparison(result)
    if args.json is not None:
        files.write_whole(args.json, export.json_bytes(written))
    if args.csv is not None:
        files.write_whole(args.csv, export.csv_bytes(document.rows(result)))
    if args.parquet is not None:
        about = {
            "ackwise_version": __version__,
            "plan": export.json_bytes(written["plan"]).decode(),
        }
        files.write_whole(args.parquet, export.parquet_bytes(document.rows(result), about))
    if args.report is not None:
        from ackwise.results.report import comparison as report

        files.write_whole(args.report, report.of_comparison(result, written, command))
    if files.STDOUT not in (args.json, args.csv):
        table.show(result, Console(highlight=False))


def on_linux(plan: Plan, args: argparse.Namespace) -> compare.Comparison:
    """A plan on the lab's kernel; raises as `lab.compare.run`."""
    kernel = build.find(options.cache_of(args), args.stock, options.configs_of(args))
    with progress_bar(not args.quiet) as show:
        return lab_compare.run(
            plan,
            kernel,
            detailed=args.report is not None,
            keep=Path(args.keep) if args.keep else None,
            limit_s=options.limit_s(args),
            workers=args.jobs,
            on_progress=partial(show, f"running on {kernel.label}"),
        )
