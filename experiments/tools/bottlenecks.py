# SPDX-License-Identifier: MIT
"""Makes transfers with a known bottleneck, to tune and to judge a diagnosis with.

    python bottlenecks.py list [--kind KIND] [--split tuning]
    python bottlenecks.py make FOLDER [--kind KIND] [--split SIDE] [--number N]

    FOLDER/KIND/NN/sender.pcap, receiver.pcap, router.pcap
    FOLDER/KIND/NN/truth.json, account.json     which limit held when, and what shows it

Cases in the lab need its kernel (`ackwise lab build --stock`); those on this host need root, and
that it does little else meanwhile. What is already in FOLDER is kept.
Exit code 1 when the account of a run does not show its limit for 90% of its steady time.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from ackwise.errors import InputError, RunError
from ackwise.host import files
from ackwise.lab import build
from ackwise.lab.machine import Kernel
from ackwise_experiments.bottleneck import JUDGING, TUNING, Case, cases, make, priority
from ackwise_experiments.bottleneck.scenario import HOST, LINUX, SIMULATOR
from ackwise_experiments.bottleneck.truth import ENOUGH

LATE = (
    "this host refuses SCHED_FIFO, so that what else it does limits the transfers, too; "
    "cpu.rt_runtime_us of the control group may be 0"
)


def chosen(args: argparse.Namespace) -> Iterator[Case]:
    """The first cases of all kinds before the second ones."""
    found = cases(args.kind, args.split)
    for case in sorted(found, key=lambda c: c.number):
        if args.world in (None, case.world) and args.number in (None, case.number):
            yield case


def show(args: argparse.Namespace) -> int:
    """One line for each case."""
    for case in cases(args.kind, args.split):
        drawn = ", ".join(f"{name} {value}" for name, value in case.parameters.items())
        print(f"{case.name:26} {case.kind.limit:22} {case.world:10} {case.split:8} {drawn}")
    return 0


def make_one(case: Case, folder: Path, kernel: Kernel | None) -> bool:
    """False when the account does not agree with the kind."""
    made = folder / "truth.json"
    if made.exists():
        share = json.loads(made.read_text(encoding="utf-8"))["share"]
        return bool(share >= ENOUGH)
    began = time.monotonic()
    truth = make(case, folder, kernel).truth
    verdict = "" if truth.holds else "  NOT LIMITED AS IT SHOULD BE"
    took = time.monotonic() - began
    print(
        f"{case.name:26} {case.world:10} share {truth.share:.3f}  {took:5.1f} s{verdict}",
        flush=True,
    )
    return truth.holds


def make_all(args: argparse.Namespace) -> int:
    """Every chosen case that is not there yet."""
    todo = list(chosen(args))
    lab = any(case.world == LINUX for case in todo)
    kernel = build.find(files.cache_folder(), stock=True) if lab else None
    if any(case.world == HOST for case in todo) and not priority.granted():
        print(f"bottlenecks: {LATE}", file=sys.stderr)
    wrong = []
    for case in todo:
        try:
            if not make_one(case, args.folder / case.name, kernel):
                wrong.append(case.name)
        except (InputError, RunError) as problem:
            print(f"{case.name}: {problem}", flush=True)
            wrong.append(case.name)
    print(f"{len(todo)} cases, {len(wrong)} not as they should be: {' '.join(wrong)}")
    return 1 if wrong else 0


def main() -> int:
    """Exit code 1 where a case is not what it should be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(required=True)
    for name, act in (("list", show), ("make", make_all)):
        command = commands.add_parser(name)
        command.set_defaults(act=act)
        if act is not show:
            command.add_argument("folder", type=Path)
            command.add_argument("--world", choices=(LINUX, SIMULATOR, HOST))
            command.add_argument("--number", type=int)
        command.add_argument("--kind")
        command.add_argument("--split", choices=(TUNING, JUDGING))
    args = parser.parse_args()
    try:
        return int(args.act(args))
    except (InputError, RunError) as problem:
        print(f"bottlenecks: {problem}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
