# SPDX-License-Identifier: MIT
"""Numbered claims and deviations, with the code that implements them and the tests that check them.

    python tools/claims.py              a table of all claims, then everything that is missing
    python tools/claims.py --check      only what is missing; exit code 1 if anything is
    python tools/claims.py --json       the same as data

Claims are the rows of the tables in spec/, named after the section of the RFC or numbered;
deviations are those of docs/deviations.md. A citation is that name in brackets on the line that
implements or checks it. A claim needs one in code and one in a test, unless its row says **not
yet**; a deviation needs one in either. Every citation must have its row, and every file and name in
backticks in the column "met" must exist.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent

SPEC = "spec"
DEVIATIONS = "docs/deviations.md"
# a section of an RFC, with a letter where several claims share it; a row of spec/; a deviation
NUMBER = r"RFC \d+, \d+(?:\.\d+)*(?: \([a-z]\))?|S\d+\.\d+|D-\d+"
CITATION = re.compile(rf"\[({NUMBER})\]")
NOT_YET = "**not yet**"
TEST_FOLDERS = {"test", "tests", "conform", "selftests"}
RUST_TESTS = "#[cfg(test)]"


class Role(Enum):
    """Role of a file that cites a claim."""

    CODE = "code"
    TEST = "test"
    TEXT = "text"


@dataclass(frozen=True)
class Citation:
    """One citation."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass
class Claim:
    """A claim or deviation (a row of a table), and its citations."""

    number: str
    page: str
    words: str
    met: str
    cited: dict[Role, list[Citation]] = field(default_factory=lambda: {kind: [] for kind in Role})

    @property
    def is_deviation(self) -> bool:
        """Whether it is a deviation from a source."""
        return self.number.startswith("D-")

    @property
    def is_open(self) -> bool:
        """Whether it is marked as not yet implemented."""
        return NOT_YET in self.met

    def missing(self) -> Iterator[str]:
        """Descriptions of missing citations."""
        code, test = self.cited[Role.CODE], self.cited[Role.TEST]
        if self.is_deviation:
            if not code and not test:
                yield f"{self.number} ({self.page}): not cited in code or a test"
        elif not self.is_open:
            if not code:
                yield f"{self.number} ({self.page}): no code cites it"
            if not test:
                yield f"{self.number} ({self.page}): no test cites it"


@dataclass
class Report:
    """All claims of a tree, and problems found."""

    claims: list[Claim]
    problems: list[str]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _rows(root: Path, page: str, problems: list[str]) -> Iterator[dict[str, str]]:
    """The rows of all tables of a page, by column heading; other rows are reported as problems."""
    heads: list[str] | None = None
    for number, line in enumerate((root / page).read_text(encoding="utf-8").splitlines(), 1):
        cells = _cells(line)
        if not line.startswith("|"):
            heads = None
        elif heads is None:
            heads = cells
            if re.fullmatch(NUMBER, cells[0]):
                problems.append(f"{page}:{number}: {cells[0]} stands in no table")
        elif len(cells) != len(heads):
            problems.append(f"{page}:{number}: {len(cells)} cells in a table of {len(heads)}")
        elif set(line) - set("|-: "):
            yield dict(zip(heads, cells, strict=True))


def _defined(root: Path, problems: list[str]) -> Iterator[Claim]:
    pages = sorted(p for p in (root / SPEC).glob("*.md") if p.name != "README.md")
    for page in pages:
        name = page.relative_to(root).as_posix()
        for row in _rows(root, name, problems):
            if "claim" in row:
                words = row.get("the RFC") or row["in our words"]
                yield Claim(row["claim"], name, words, row["met"])
    for row in _rows(root, DEVIATIONS, problems):
        if "number" in row:
            yield Claim(row["number"], DEVIATIONS, row["we do"], "")


def kind_of(path: str) -> Role:
    """Role of a file, from its path."""
    pure = PurePosixPath(path)
    if pure.suffix == ".md":
        return Role.TEXT
    if TEST_FOLDERS & set(pure.parts[:-1]) or pure.name.startswith("test_") or pure.stem == "tests":
        return Role.TEST
    return Role.CODE


def _citations(path: str, text: str) -> Iterator[tuple[str, Role, Citation]]:
    kind = kind_of(path)
    for number, line in enumerate(text.splitlines(), 1):
        if path.endswith(".rs") and line.strip() == RUST_TESTS:
            kind = Role.TEST
        for match in CITATION.finditer(line):
            yield match[1], kind, Citation(path, number)


def _listed(root: Path) -> list[str]:
    """The files of a git tree, including untracked ones."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    out = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout.decode()
    return sorted(set(filter(None, out.split("\0"))))


def _texts(root: Path, paths: Iterable[str]) -> dict[str, str]:
    texts = {}
    for path in paths:
        file = root / path
        if file.is_symlink() or not file.is_file():
            continue
        try:
            texts[path] = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a capture or a fuzzing seed
    return texts


def _absent(claim: Claim, root: Path, words: set[str]) -> Iterator[str]:
    """Files and names in the column "met" that do not exist."""
    for token in re.findall(r"`([^`]+)`", claim.met):
        if "/" in token:
            if not (root / token).exists():
                yield f"{claim.number} ({claim.page}): there is no file {token}"
            continue
        for word in re.findall(r"[A-Za-z_][\w-]*", token):
            if word not in words:
                yield f"{claim.number} ({claim.page}): nothing is called {word}"


def examine(root: Path, paths: Iterable[str] | None = None) -> Report:
    """The claims of a tree and their problems. `paths`: its files; default: those known to git."""
    claims: dict[str, Claim] = {}
    problems: list[str] = []
    for claim in _defined(root, problems):
        if not re.fullmatch(NUMBER, claim.number):
            problems.append(f"{claim.page}: {claim.number!r} is not a valid number of a claim")
        elif claim.number in claims:
            problems.append(f"{claim.number}: in {claims[claim.number].page} and {claim.page}")
        else:
            claims[claim.number] = claim
    texts = _texts(root, _listed(root) if paths is None else paths)
    for path, text in texts.items():
        for number, kind, place in _citations(path, text):
            if number in claims:
                claims[number].cited[kind].append(place)
            else:
                problems.append(f"{place}: there is no claim {number}")
    words = {
        word
        for path, text in texts.items()
        if kind_of(path) is not Role.TEXT
        for word in re.findall(r"[A-Za-z_][\w-]*", f"{PurePosixPath(path).stem} {text}")
    }
    for claim in claims.values():
        problems += [*claim.missing(), *_absent(claim, root, words)]
    return Report(list(claims.values()), problems)


def _places(places: list[Citation]) -> str:
    if not places:
        return "-"
    return str(places[0]) + (f" +{len(places) - 1}" if len(places) > 1 else "")


def table(report: Report) -> str:
    """All claims with the first citation in code and in tests, then the problems."""
    rows = [("claim", "code", "test")]
    rows += [
        (c.number, _places(c.cited[Role.CODE]), _places(c.cited[Role.TEST]))
        for c in report.claims
        if not c.is_open
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    not_met = [f"{c.number}: {c.words}" for c in report.claims if c.is_open]
    if not_met:
        lines += ["", "Not yet met:", *not_met]
    if report.problems:
        lines += ["", "Missing:", *report.problems]
    return "\n".join(lines)


def document(report: Report) -> str:
    """The report as JSON."""
    claims = [
        {
            "number": c.number,
            "page": c.page,
            "words": c.words,
            "met": not c.is_open,
            **{kind.value: [str(place) for place in c.cited[kind]] for kind in Role},
        }
        for c in report.claims
    ]
    return json.dumps({"claims": claims, "problems": report.problems}, indent=2, ensure_ascii=False)


def main() -> int:
    """Exit code 1 when --check finds anything missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--root", type=Path, default=ROOT, help="a git tree (default: this one)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--check", action="store_true", help="show only what is missing")
    how.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    report = examine(args.root)
    if args.json:
        print(document(report))
    elif not args.check:
        print(table(report))
    elif report.problems:
        print("\n".join(report.problems))
    return 1 if args.check and report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
