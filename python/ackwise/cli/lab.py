# SPDX-License-Identifier: MIT
"""`ackwise lab`: builds the lab's kernel, runs plans on it, holds claims against it, opens a shell
in it."""

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from ackwise.cli import compare, conform, options
from ackwise.lab import build, machine
from ackwise.results.progress import progress_bar


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
            options.cache_of(args),
            stock=args.stock,
            source=Path(args.source) if args.source else None,
            extra_configs=options.configs_of(args),
            jobs=args.jobs,
            say=partial(phase, show),
            warn=lambda text: print(f"ackwise: {text}", file=sys.stderr, flush=True),
        )
    if not args.quiet:
        print(f"{kernel.label}: {kernel.linux}{'' if told else ' (built before)'}")
    return 0


def _run(args: argparse.Namespace, command: str) -> int:
    args.link = args.workload = None
    compare.check_outputs(args)
    result = compare.on_linux(compare.plan_of(args), args)
    compare.write(args, result, command)
    return 0


def _shell(args: argparse.Namespace) -> int:
    kernel = build.find(options.cache_of(args), args.stock, options.configs_of(args))
    with machine.run_folder(kernel) as folder:
        return machine.shell(kernel, folder, ["shell /bin/sh"], seed=1)


def main(args: argparse.Namespace, command: str) -> int:
    """Exit code; raises InputError, RunError, Interrupted."""
    if args.verb == "build":
        return _build(args)
    if args.verb == "run":
        return _run(args, command)
    if args.verb == "conform":
        return conform.main(args, options.cache_of(args), options.configs_of(args))
    return _shell(args)
