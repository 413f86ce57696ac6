# SPDX-License-Identifier: MIT
"""The figures that the prose of an experiment's page quotes from the tables of the page.

    python quotes.py [NAME...]    lists the figures of the prose that stand in no table

Figures that were settled, published elsewhere or computed stand in no table either, so the list is
read, not enforced. `experiments.py --write` lists what a renewed page quotes from its tables
of before and not from its new ones.
"""

import argparse
import re
import sys
from collections.abc import Iterable

from evidence import PAGES

_TABLE = re.compile(r"<!-- checks: .*?<!-- end -->", re.DOTALL)
# Not prose: the audit's list, comments, code, targets of links, headings.
_OTHER = re.compile(
    r"<!-- audit.*?<!-- end of audit -->|<!--.*?-->"
    r"|`[^`\n]*`|^ {4}\S[^\n]*$|\]\([^)]*\)|^#[^\n]*$",
    re.DOTALL | re.MULTILINE,
)
# Thousands may stand apart: 12 015. What belongs to a name is no figure: D-26, x2.
_FIGURE = re.compile(r"(?<![\w.-])(?:\d{1,3}(?: \d{3})+(?![\w.])|\d+(?:\.\d+)?(?!\w))")
_CELL = re.compile(r"-?\d+(?:\.\d+)?")


def figures(prose: str) -> dict[str, int]:
    """Each figure of a text, and the line at which it stands first."""
    found: dict[str, int] = {}
    for at in _FIGURE.finditer(prose):
        found.setdefault(at[0], prose.count("\n", 0, at.start()) + 1)
    return found


def _kept_lines(at: re.Match[str]) -> str:
    return "\n" * at[0].count("\n") or " "


def prose_of(page: str) -> str:
    """A page without its tables and all else that is not prose; lines keep their numbers."""
    return _OTHER.sub(_kept_lines, _TABLE.sub(_kept_lines, page))


def cells_of(page: str) -> list[float]:
    """The figures in the tables of a page."""
    return [float(n) for part in _TABLE.findall(page) for n in _CELL.findall(part)]


def is_quoted(figure: str, cells: Iterable[float]) -> bool:
    """Whether a cell shows the figure, to as many digits as the prose has: as it is, without its
    sign, as percent, or as what is left of 1."""
    digits = figure.replace(" ", "")
    decimals = len(digits.partition(".")[2])
    wanted = float(digits)
    return any(
        abs(round(value, decimals) - wanted) < 10**-9
        for cell in cells
        for value in (abs(cell), 100 * abs(cell), 100 * (1 - abs(cell)))
    )


def unquoted(page: str) -> dict[str, int]:
    """Figures of the prose that stand in no table of the page, with their lines."""
    cells = set(cells_of(page))
    return {n: line for n, line in figures(prose_of(page)).items() if not is_quoted(n, cells)}


def outdated(before: str, after: str) -> dict[str, int]:
    """Figures that the prose of a renewed page quotes from its tables of before only."""
    old = unquoted(before)
    return {n: line for n, line in unquoted(after).items() if n not in old}


def main() -> int:
    """See the text at the top."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="(default: every page)")
    for name in parser.parse_args().names or sorted(page.stem for page in PAGES.glob("*.md")):
        text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
        if _TABLE.search(text):
            found = ", ".join(f"{n} (line {line})" for n, line in unquoted(text).items())
            print(f"{name}: {found or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
