# SPDX-License-Identifier: MIT
"""The pages of the reproduced experiments: runs them, and puts tables and figures into the pages.

    python experiments.py --check [NAME...]     fails when a page or a figure differs
    python experiments.py --write [NAME...]     writes them, and lists what the prose quotes
                                                      of tables that are no more; read it again

Without a NAME, those of the simulator; with `--on linux`, those of the kernel that `ackwise lab
build` made. The page of NAME on linux is linux-NAME.md. `make evidence` calls this for stale pages.

A table stands between `<!-- checks: GROUP -->` and `<!-- end -->`, GROUP being a heading of the
table that `ackwise reproduce` prints, `all`, `summary`: how many pass, by kind, or `notes SUBJECT`:
the notes that begin with "SUBJECT:". A check that
fails must appear, by its name in backquotes, under the heading "What does not come out". The last
line of a page records the run, see evidence.py.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import audit
import evidence
import quotes
from evidence import FIGURES, PAGES

import ackwise_experiments as reproduce
from ackwise.errors import InputError
from ackwise.host import files
from ackwise_experiments import table, tally
from ackwise_experiments.check import Check, Kind, Origin

FAILURES = "## What does not come out"


def run(name: str, on: str, folder: Path) -> tuple[list[Check], list[str]]:
    """Runs an experiment, for its checks and notes; its figures go into `folder`."""
    out = folder / f"{name}.json"
    command = [sys.executable, "-m", "ackwise", "reproduce", name, "--on", on, "--json", str(out)]
    command += ["--figures", str(folder)]
    if on != "host":
        command += ["--results", str(files.cache_folder() / "results")]
    done = subprocess.run(command, stdout=subprocess.DEVNULL)
    if done.returncode not in (0, 1) or not out.exists():
        raise SystemExit(f"{name}: could not be run (exit code {done.returncode})")
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    out.unlink()
    (one,) = found["experiments"]
    return [read(c) for c in found["checks"]], one["notes"]


def read(check: dict[str, Any]) -> Check:
    """A check from the document."""
    kept = {k: v for k, v in check.items() if k != "experiment"}
    return Check(**kept | {"kind": Kind(check["kind"]), "bound": Origin(check["bound"])})


def _row(check: Check) -> str:
    cells = [text.replace("|", "\\|") for text in table.cells(check)]
    cells[-1] = "yes" if check.passed else "**no**"
    if check.kind == Kind.PREDICTED:
        cells[-2] = f"**{cells[-2]}**"
    return f"| {' | '.join(cells)} |"


def _summary(checks: list[Check]) -> str:
    lines = [f"| {' | '.join(tally.HEADS)} |", "| --- " * len(tally.HEADS) + "|"]
    for kind, *rest in tally.rows(checks):
        shown = f"**{kind}**" if kind == Kind.PREDICTED else kind
        lines.append(f"| {' | '.join((shown, *rest))} |")
    return "\n".join(lines)


def _shown(notes: Sequence[str], subject: str, page: str) -> str:
    chosen = [note for note in notes if note.startswith(f"{subject}:")]
    if not chosen:
        raise SystemExit(f"{page}: asks for notes of {subject!r}, and there are none")
    return "\n\n".join(f"```text\n{note}\n```" for note in chosen)


def rows(checks: list[Check], group: str, page: str, notes: Sequence[str] = ()) -> str:
    """The Markdown table of one group of checks, of all, or of how many pass; or notes."""
    if group == "summary":
        return _summary(checks)
    if group.startswith("notes "):
        return _shown(notes, group.removeprefix("notes "), page)
    lines = []
    for name, members in table.groups(checks):
        if group not in ("all", name):
            continue
        heads = (name or table.HEADS[0], *table.HEADS[1:-1], "passed")
        lines += ["", f"| {' | '.join(heads)} |", "| --- " + "| ---: " * 4 + "| --- " * 3 + "|"]
        lines += [_row(check) for check in members]
    if not lines:
        known = ", ".join(n for n, _ in table.groups(checks))
        raise SystemExit(f"{page}: asks for a table of {group!r}, but the groups are: {known}")
    return "\n".join(lines).strip()


def renewed(text: str, checks: list[Check], page: str, notes: Sequence[str] = ()) -> str:
    """The page with every table replaced."""
    head, *parts = text.split("<!-- checks: ")
    out = [head]
    for part in parts:
        group, rest = part.split(" -->", 1)
        if "<!-- end -->" not in rest:
            raise SystemExit(f"{page}: the table of {group!r} has no <!-- end -->")
        _, after = rest.split("<!-- end -->", 1)
        out.append(f"{group} -->\n\n{rows(checks, group, page, notes)}\n\n<!-- end -->{after}")
    return "<!-- checks: ".join(out)


def undisclosed(text: str, checks: list[Check]) -> list[str]:
    """Failed checks that the page does not mention."""
    _, _, section = text.partition(FAILURES)
    return [c.name for c in checks if not c.passed and f"`{c.name}`" not in section]


def complaints(
    name: str, checks: list[Check], notes: Sequence[str], folder: Path, write: bool
) -> list[str]:
    """What is wrong with the page of one experiment; with `write`, what writing it did not mend."""
    page = PAGES / f"{name}.md"
    if not page.exists():
        return [f"docs/experiments/{name}.md: is missing"]
    old = page.read_text(encoding="utf-8")
    new = renewed(old, checks, page.name, notes)
    found = [
        f"docs/experiments/{name}.md: `{lost}` fails and is not mentioned under {FAILURES!r}"
        for lost in undisclosed(old, checks)
    ]
    drawn = {p.name: p.read_bytes() for p in folder.glob("*.svg")}
    kept = {p.name: p.read_bytes() for p in FIGURES.glob(f"{name}-*.svg")}
    found += [
        f"docs/experiments/figures/{figure}: its name does not begin with {name}-"
        for figure in drawn
        if not figure.startswith(f"{name}-")
    ]
    if write:
        FIGURES.mkdir(exist_ok=True)
        page.write_text(new, encoding="utf-8")
        for quoted, line in quotes.outdated(old, new).items():
            print(f"docs/experiments/{name}.md:{line}: {quoted} was in its tables; read it again")
        for figure in kept.keys() - drawn.keys():
            (FIGURES / figure).unlink()
        for figure, picture in drawn.items():
            (FIGURES / figure).write_bytes(picture)
        return found
    if new != old:
        found.append(f"docs/experiments/{name}.md: its tables differ")
    found += [
        f"docs/experiments/figures/{figure}: differs"
        for figure in sorted(drawn.keys() | kept.keys())
        if drawn.get(figure) != kept.get(figure)
    ]
    return found


def main() -> int:
    """Exit code 1 when a page differs, or fails to mention a failed check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true")
    what.add_argument("--write", action="store_true")
    parser.add_argument("--on", choices=tuple(reproduce.NAMES), default="simulator")
    parser.add_argument("names", nargs="*", metavar="NAME", help="(default: every experiment)")
    args = parser.parse_args()
    found = []
    for name in args.names or reproduce.NAMES[args.on]:
        try:
            page = reproduce.load(name, args.on).name
        except InputError as problem:
            raise SystemExit(str(problem)) from None
        inputs = evidence.item(page).inputs()
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            checks, notes = run(name, args.on, Path(folder))
            seconds = time.monotonic() - began
            print(f"{page}: {tally.summary(checks)}", flush=True)
            wrong = complaints(page, checks, notes, Path(folder), args.write)
        if args.write:
            evidence.keep_page(page, passed=not wrong, inputs=inputs, seconds=seconds)
            if page in audit.places():
                audit.mark(page)
        found += wrong
    for complaint in found:
        print(complaint)
    if found and args.check:
        print("if the change is intended: `make evidence`, read the pages again, commit the diff")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
