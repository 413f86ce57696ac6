# SPDX-License-Identifier: MIT
"""Checks as rows, for the terminal, the report and the docs."""

from collections.abc import Iterator, Sequence
from math import floor, log10

from rich.text import Text

from ackwise.results.console import Console
from ackwise_experiments import tally
from ackwise_experiments.check import Check, Kind, Value
from ackwise_experiments.document import Reproduced

HEADS = ("check", "published", "measured", "from published", "allowed", "bound", "kind", "")
TEXTS = {0, 5, 6, 7}  # columns of words


def shown(value: Value) -> str:
    """A value as tables show it: four significant digits."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return (
        f"{value:.{max(0, 3 - floor(log10(abs(value))))}f}" if abs(value) < 1e15 else f"{value:g}"
    )


def cells(check: Check) -> tuple[str, ...]:
    """A check's row, the same in every table."""
    name = f"{check.name}, {check.unit}" if check.unit else check.name
    away, beyond = check.from_published_percent, check.beyond_allowed_percent
    missed = f" (missed by {abs(beyond):.1f}%)" if beyond else ""
    return (
        name,
        shown(check.published),
        shown(check.measured),
        "-" if away is None else f"{away:+.1f}%",
        check.allowed + missed,
        check.bound,
        check.kind,
        "pass" if check.passed else "FAIL",
    )


def groups(checks: Sequence[Check]) -> Iterator[tuple[str, list[Check]]]:
    """Checks under their headings, in order of first appearance."""
    for name in dict.fromkeys(check.group for check in checks):
        yield name, [check for check in checks if check.group == name]


def show(done: Reproduced, console: Console) -> None:
    """An experiment's checks and notes."""
    outcome = done.outcome
    console.print(Text(done.experiment.title, style="bold cyan"), soft_wrap=True)
    console.print(Text(f"{done.experiment.source}\n", style="dim"), soft_wrap=True)
    show_checks(outcome.checks, console)
    for note in outcome.notes:
        console.print(Text(note, style="dim"), soft_wrap=True)
    passed = all(check.passed for check in outcome.checks)
    console.print(
        Text(
            f"{done.experiment.name}: {tally.summary(outcome.checks)}\n"
            f"{sum(r.runs for r in done.ran)} runs; "
            f"details: docs/experiments/{done.experiment.name}.md\n",
            style="bold" if passed else "bold red",
        ),
        soft_wrap=True,
    )


def show_checks(shown_checks: Sequence[Check], console: Console) -> None:
    """Checks under their headings."""
    rows = [cells(check) for check in shown_checks]
    wide = [max(len(row[i]) for row in (HEADS, *rows)) for i in range(len(HEADS))]

    def line(row: tuple[str, ...], style: str = "") -> None:
        shown_cells = (t.ljust(w) if i in TEXTS else t.rjust(w)
                       for i, (t, w) in enumerate(zip(row, wide, strict=True)))  # fmt: skip
        console.print(
            Text("  ".join(shown_cells).rstrip(), style=style),
            no_wrap=True, crop=False, overflow="ignore",
        )  # fmt: skip

    for group, checks in groups(shown_checks):
        line((group or HEADS[0], *HEADS[1:]), "bold")
        for check in checks:
            line(cells(check), _style(check))
        console.print()


def _style(check: Check) -> str:
    """Only a prediction that passes stands out as a result."""
    if not check.passed:
        return "bold red"
    return "" if check.kind == Kind.PREDICTED else "dim"
