# SPDX-License-Identifier: MIT
"""Slow transfers from public bug reports, rebuilt with real applications; and how many of them a
diagnosis gets right.

    python stories.py list [--split tuning]
    python stories.py make FOLDER [NAME...] [--split tuning]
    python stories.py judge FOLDER [--split tuning] [--json FILE] [--details]

    FOLDER/SPLIT/NAME/sender.pcap, receiver.pcap, router.pcap
    FOLDER/SPLIT/NAME/truth.json        the cause, and what the kernel and the path show of it

`make` needs root, the programs of docs/inside/stories.md, and a host that does little else. What is
already in FOLDER is kept. A case whose run does not show its cause is made again, at most three
times, and then left out.
"""

import argparse
import json
import shutil
import sys
import time
from pathlib import Path

from ackwise.errors import InputError, RunError
from ackwise_experiments.stories import judging, making
from ackwise_experiments.stories.cases import Case, cases
from ackwise_experiments.stories.told import SPLITS, STORIES

_TRIES = 3


def _chosen(args: argparse.Namespace) -> list[Case]:
    names = getattr(args, "names", [])
    return [
        case
        for case in cases()
        if args.split in (None, case.split)
        and (not names or case.name in names or case.story in names)
    ]


def show(args: argparse.Namespace) -> int:
    """Stories with their addresses, and the cases of each."""
    chosen = _chosen(args)
    for story in STORIES:
        causes = [case.cause for case in chosen if case.story == story.name]
        if causes:
            print(f"{story.name} ({story.split}): {story.title}")
            print(f"    {len(causes)} cases: {', '.join(dict.fromkeys(causes))}")
            for address in story.addresses:
                print(f"    {address}")
    print(f"{len(chosen)} cases")
    return 0


def _make(case: Case, folder: Path) -> bool:
    """A case is in its place only once it is whole and shows its cause."""
    made = folder.parent.parent / "left-out" / folder.name
    for _ in range(_TRIES):
        began = time.monotonic()
        shutil.rmtree(made, ignore_errors=True)
        try:
            known = making.run_once(case, made)
        except RunError as problem:
            print(f"{case.name}: {problem}", flush=True)
            continue
        verdict = "" if known.holds else f"  DOES NOT SHOW IT {known.evidence}"
        took = time.monotonic() - began
        print(f"{case.name:26} {known.share:5.3f} {took:5.1f} s{verdict}", flush=True)
        if known.holds:
            folder.parent.mkdir(exist_ok=True)
            made.rename(folder)
            return True
    return False


def make(args: argparse.Namespace) -> int:
    """Exit code 1 when a case was left out."""
    making.check()
    left_out = []
    for case in _chosen(args):
        folder = args.folder / case.split / case.name
        if not (folder / "truth.json").exists() and not _make(case, folder):
            left_out.append(case.name)
    print(f"left out: {' '.join(left_out) or 'none'}")
    return 1 if left_out else 0


def judge(args: argparse.Namespace) -> int:
    """Exit code 1 when a verdict is wrong."""
    found = [
        verdict
        for split in SPLITS
        if args.split in (None, split)
        for verdict in judging.verdicts(args.folder / split)
    ]
    if not found:
        print(f"stories: {args.folder}: no case of these", file=sys.stderr)
        return 2
    judging.show(found, args.details)
    if args.json:
        document = json.dumps(judging.document(found, args.details), indent=1)
        args.json.write_text(document + "\n", encoding="utf-8")
    return 0 if all(verdict.outcome == judging.RIGHT for verdict in found) else 1


def main() -> int:
    """Lists, makes or judges."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    for act in (show, make, judge):
        command = commands.add_parser("list" if act is show else act.__name__)
        command.set_defaults(act=act)
        if act is not show:
            command.add_argument("folder", type=Path)
        command.add_argument("--split", choices=SPLITS)
        if act is make:
            command.add_argument("names", nargs="*", help="stories or cases")
        if act is judge:
            command.add_argument("--json", type=Path, help="also to this file")
            command.add_argument("--details", action="store_true", help="each verdict")
    args = parser.parse_args()
    try:
        return int(args.act(args))
    except (InputError, RunError) as problem:
        print(f"stories: {problem}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
