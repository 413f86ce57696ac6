# SPDX-License-Identifier: MIT
"""`ackwise lab`: builds the lab's kernel, runs plans on it, holds claims against it, opens a shell
in it."""

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from ackwise import compare, compare_command, conform_command, schema
from ackwise.compare import Comparison, Job
from ackwise.engine import Cancel
from ackwise.errors import InputError
from ackwise.lab import build, machine
from ackwise.lab import run as lab_run
from ackwise.lab.machine import Kernel
from ackwise.plan import Plan
from ackwise.progress import progress_bar


def cache_of(args: argparse.Namespace) -> Path:
    """The folder of built kernels."""
    return Path(args.cache).absolute() if args.cache else build.default_cache()


def _configs(args: argparse.Namespace) -> list[Path]:
    return [Path(name) for name in getattr(args, "config", None) or []]


def _build(args: argparse.Namespace) -> int:
    told: list[str] = []

    def phase(show: Any, what: str, done: int, all_: int) -> None:
        show(what, done, all_)
        if what not in told:
            told.append(what)
            if not args.quiet and not sys.stderr.isatty():
                print(f"ackwise: {what}", file=sys.stderr, flush=True)

    with progress_bar(not args.quiet) as show:
        kernel = build.build(
            cache_of(args),
            stock=args.stock,
            source=Path(args.source) if args.source else None,
            extra_configs=_configs(args),
            jobs=args.jobs,
            say=partial(phase, show),
            warn=lambda text: print(f"ackwise: {text}", file=sys.stderr, flush=True),
        )
    if not args.quiet:
        print(f"{kernel.label}: {kernel.linux}{'' if told else ' (built before)'}")
    return 0


def _limit_s(args: argparse.Namespace) -> float | None:
    if args.wall_limit is None:
        return None
    try:
        limit: int = schema.read_key(schema.DURATION, args.wall_limit)
    except ValueError as problem:
        raise InputError(f"--wall-limit: {problem}") from None
    return limit / 1e9


def compare_on_linux(plan: Plan, args: argparse.Namespace) -> Comparison:
    """Every run of a plan in a guest of its own, as `compare.run` does in the simulator.

    Raises InputError before the first run for what the lab has no counterpart of.
    """
    kernel = build.find(cache_of(args), args.stock, _configs(args))
    keep = Path(args.keep) if args.keep else None
    limit_s = _limit_s(args)
    for job in compare.jobs(plan, False):
        _prepared(job, kernel)

    def simulate(job: Job, scenario: dict[str, Any], cancel: Cancel) -> dict[str, Any]:
        name = f"{job.link.name}-{job.workload.name}-{job.policy.label}-{job.seed}"
        return lab_run.simulate(
            scenario,
            f"link {job.link.name}",
            f"workload {job.workload.name}",
            kernel,
            cancel=cancel,
            limit_s=limit_s,
            keep=keep / name.replace("/", "_").replace(":", "_") if keep else None,
        )

    with progress_bar(not args.quiet) as show:
        return compare.run(
            plan,
            detailed=args.report is not None,
            workers=args.jobs,
            on_progress=partial(show, f"running on {kernel.label}"),
            simulate=simulate,
        )


def _prepared(job: Job, kernel: Kernel) -> None:
    from ackwise import plan as plans

    scenario = plans.scenario(job.link, job.workload, job.policy, job.seed)
    lab_run.Prepared(scenario, f"link {job.link.name}", f"workload {job.workload.name}", kernel)


def _run(args: argparse.Namespace, command: str) -> int:
    args.link = args.workload = None
    compare_command.check_outputs(args)
    result = compare_on_linux(compare_command.plan_of(args), args)
    compare_command.write(args, result, command)
    return 0


def _shell(args: argparse.Namespace) -> int:
    kernel = build.find(cache_of(args), args.stock, _configs(args))
    with machine.run_folder(kernel) as folder:
        return machine.shell(kernel, folder, ["shell /bin/sh"], seed=1)


def main(args: argparse.Namespace, command: str) -> int:
    """Exit code; raises InputError, RunError, Interrupted."""
    if args.verb == "build":
        return _build(args)
    if args.verb == "run":
        return _run(args, command)
    if args.verb == "conform":
        return conform_command.main(args, cache_of(args), _configs(args))
    return _shell(args)
