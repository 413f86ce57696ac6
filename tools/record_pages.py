# SPDX-License-Identifier: MIT
"""Updates the pages of the experiments from their records.

    python tools/record_pages.py --check      fails when a page differs from its record
    python tools/record_pages.py --write      writes dates, tables and lists of flips into the pages

Made from the record are the line that begins with "Measured at", tables between `<!-- checks: GROUP
-->` and `<!-- end -->`, and the audit's list between `<!-- audit -->` and `<!-- end of audit -->`.
GROUP is a heading of the table of `ackwise reproduce`, `all`, `summary`, or `notes SUBJECT`: the
notes that begin with "SUBJECT:". A check that fails must appear, by its name in backquotes, under
"What does not come out". A line such as *Figure `NAME`: what it shows, drawn by `make site`.*
becomes a picture on the site.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import records
from records import Record

import ackwise_experiments as reproduce
from ackwise_experiments import document, figure, table, tally
from ackwise_experiments.check import Check, Kind, Origin

PAGES = records.ROOT / "docs" / "experiments"
FAILURES = "## What does not come out"
FIGURE = re.compile(r"^\*Figure `([\w-]+)`: (.+), drawn by `make site`\.\*$", re.MULTILINE)
_MEASURED = re.compile(r"^Measured at .*\n", re.MULTILINE)
_TABLE = re.compile(r"<!-- checks: (.*?) -->(.*?)(<!-- end -->|\Z)", re.DOTALL)
_AUDIT = re.compile(r"<!-- audit -->.*?<!-- end of audit -->", re.DOTALL)
AUDIT = "audit-"  # and the page's name: the record of its audit


def names() -> list[str]:
    """Every page that has a record: NAME, linux-NAME, ..."""
    return [reproduce.load(one, on).name for on, all_ in reproduce.NAMES.items() for one in all_]


def of_check(check: Check) -> dict[str, Any]:
    """A check in the form of a record: the texts of its row."""
    name, published, measured, away, allowed, bound, kind, _ = table.cells(check)
    texts = {"published": published, "measured": measured, "from_published": away}
    texts |= {"allowed": allowed, "bound": str(bound), "kind": str(kind)}
    return {"group": check.group, "name": name, **texts, "passed": check.passed}


def of_document(found: dict[str, Any], command: str, minutes: int) -> Record:
    """The record of a document of `ackwise reproduce`, for a run that has just ended."""
    (one,) = found["experiments"]
    checks = [Check(**_fields(check)) for check in found["checks"]]
    passed = sum(check.passed for check in checks)
    return records.made(
        "passed" if passed == len(checks) else f"{passed} of {len(checks)} checks passed",
        command,
        minutes,
        checks=[of_check(check) for check in checks],
        notes=one["notes"],
        figures=[records.small(made) for made in one["figures"]],
    )


def _fields(check: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in check.items() if key != "experiment"}
    return kept | {"kind": Kind(check["kind"]), "bound": Origin(check["bound"])}


def checks_of(record: Record) -> list[Check]:
    """The checks of a record; their rows are those of the run."""

    def text(value: str) -> str | None:
        return None if value == "-" else value

    return [
        Check(
            one["name"], text(one["published"]), text(one["measured"]),
            None if one["from_published"] == "-" else float(one["from_published"].rstrip("%")),
            one["allowed"], None, one["passed"], Kind(one["kind"]), Origin(one["bound"]),
            group=one["group"],
        )
        for one in record.checks
    ]  # fmt: skip


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _row(check: Check) -> str:
    cells = [text.replace("|", "\\|") for text in table.cells(check)]
    cells[-1] = "yes" if check.passed else "**no**"
    if check.kind == Kind.PREDICTED:
        cells[-2] = f"**{cells[-2]}**"
    return _line(cells)


def rows(checks: Sequence[Check], group: str, page: str, notes: Sequence[str] = ()) -> str:
    """The Markdown table of one group of checks, of all, or of how many pass; or notes."""
    if group == "summary":
        strong = {Kind.PREDICTED.value: f"**{Kind.PREDICTED}**"}
        lines = [_line(tally.HEADS), "| --- " * len(tally.HEADS) + "|"]
        lines += [_line((strong.get(kind, kind), *rest)) for kind, *rest in tally.rows(checks)]
        return "\n".join(lines)
    subject = group.removeprefix("notes ")
    if subject != group:
        lines = [f"```text\n{one}\n```\n" for one in notes if one.startswith(f"{subject}:")]
    else:
        lines = []
        for name, members in table.groups(checks):
            if group in ("all", name):
                heads = (name or table.HEADS[0], *table.HEADS[1:-1], "passed")
                lines += ["", _line(heads), "| --- " + "| ---: " * 4 + "| --- " * 3 + "|"]
                lines += [_row(check) for check in members]
    if not lines:
        known = ", ".join(n for n, _ in table.groups(checks))
        raise SystemExit(f"{page}: asks for {group!r}, which no run gave; the groups are: {known}")
    return "\n".join(lines).strip()


def with_tables(text: str, checks: Sequence[Check], page: str, notes: Sequence[str] = ()) -> str:
    """The page with every table replaced."""

    def made(found: re.Match[str]) -> str:
        if "<!-- checks: " in found[2] or not found[3]:
            raise SystemExit(f"{page}: the table of {found[1]!r} has no <!-- end -->")
        return f"<!-- checks: {found[1]} -->\n\n{rows(checks, found[1], page, notes)}\n\n{found[3]}"

    return _TABLE.sub(made, text)


def with_audit(text: str, audit: Record | None) -> str:
    """The page with the list of flips of its audit."""
    lines = ["The audit was not run."]
    if audit is not None:
        lines = [f"At {audit.commit}, {audit.when()}:", "", *(f"- {one}" for one in audit.notes)]
    made = "\n".join(("<!-- audit -->", "", *lines, "", "<!-- end of audit -->"))
    return _AUDIT.sub(lambda _: made, text)


def renewed(name: str, text: str, record: Record, audit: Record | None) -> str:
    """The page with the content of its records."""
    if not _MEASURED.search(text):
        raise SystemExit(f"{name}.md: has no line that begins with 'Measured at'")
    text = _MEASURED.sub(lambda _: record.measured() + "\n", text, count=1)
    return with_audit(with_tables(text, checks_of(record), name, record.notes), audit)


def undisclosed(text: str, checks: Sequence[Check]) -> list[str]:
    """Failed checks that the page does not mention."""
    _, _, section = text.partition(FAILURES)
    lacking = []
    for name in (c.name for c in checks if not c.passed):
        without_unit = name.rpartition(", ")[0] or name
        if f"`{name}`" not in section and f"`{without_unit}`" not in section:
            lacking.append(name)
    return lacking


def complaints(name: str, *, write: bool = False) -> Iterator[str]:
    """Problems with a page; with `write`, the problems that remain after writing it."""
    page, record = PAGES / f"{name}.md", records.read(name)
    if record is None:
        yield f"evidence/{name}.json is missing; run `make evidence ONLY={name}`"
        return
    if not page.exists():
        yield f"docs/experiments/{name}.md is missing"
        return
    old = page.read_text(encoding="utf-8")
    new = renewed(name, old, record, records.read(AUDIT + name))
    if write:
        page.write_text(new, encoding="utf-8")
    elif new != old:
        yield f"docs/experiments/{name}.md differs from its record; run `make docs`"
    for lost in undisclosed(old, checks_of(record)):
        yield f"docs/experiments/{name}.md: `{lost}` fails and is not mentioned under {FAILURES!r}"
    shown = {found[1] for found in FIGURE.finditer(old)}
    for odd in sorted(shown ^ {one["name"] for one in record.figures}):
        yield f"docs/experiments/{name}.md: figure {odd} is in the page or in the record only"


def draw(folder: Path) -> None:
    """Draws the figures of all records, as SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    for record in map(records.read, names()):
        for one in record.figures if record else ():
            picture = figure.drawn(document.figure_of(one))
            (folder / f"{one['name']}.svg").write_bytes(picture)


def main() -> int:
    """Exit code 1 when a page differs from its record, or fails to mention a failed check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true")
    what.add_argument("--write", action="store_true")
    args = parser.parse_args()
    found = [line for name in names() for line in complaints(name, write=args.write)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
