# SPDX-License-Identifier: MIT
"""Results as text tables that fit the terminal."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10

from rich.console import Console
from rich.text import Text

from ackwise.results.agreement import differing
from ackwise.results.compare import Cell, Comparison, ResultTable
from ackwise.results.metrics import METRICS, Metric
from ackwise.results.stats import Estimate

PLAIN_WIDTH = 200  # when the output is not a terminal

_RATES = [("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0)]
_TIMES = [("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0)]


def unit_of(unit: str, largest: float) -> tuple[str, float]:
    """The unit that suits a column whose largest value is `largest`, and its size."""
    scales = {"bit/s": _RATES, "ns": _TIMES}.get(unit)
    if scales is None:
        return unit, 1.0
    for name, scale in scales:
        if largest >= scale:
            return name, scale
    return scales[-1]


def decimals(values: Sequence[float]) -> int:
    """Decimals of a column: enough for four significant digits of its largest value and two of
    its smallest non-zero value, but at most three."""
    sizes = [abs(v) for v in values if v]
    if not sizes:
        return 0
    digits = max(3 - floor(log10(max(sizes))), 1 - floor(log10(min(sizes))))
    return min(3, max(0, digits))


@dataclass(frozen=True)
class Column:
    """A heading and the cells below it."""

    head: str
    cells: list[str]
    marked: list[bool]
    left: bool = False

    @property
    def width(self) -> int:
        """Characters needed."""
        return max(len(self.head), max(map(len, self.cells)) + any(self.marked))


def _column(metric: Metric, cells: Sequence[Cell], intervals: bool) -> Column | None:
    estimates: list[Estimate | None] = [cell.estimates[metric.key] for cell in cells]
    means = [e.mean for e in estimates if e is not None]
    if not means:
        return None
    unit, scale = unit_of(metric.unit, max(means))
    whole = not metric.unit and all(mean.is_integer() for mean in means)
    digits = 0 if whole else decimals([mean / scale for mean in means])
    texts = []
    for found in estimates:
        if found is None:
            texts.append("-")
            continue
        text = f"{found.mean / scale:.{digits}f}"
        if intervals and found.ci95:  # not if all runs are equal
            text += f" ±{found.ci95 / scale:.{digits}f}"
        texts.append(text)
    head = metric.title + (f" {unit}" if unit and not metric.title.endswith(unit) else "")
    return Column(head, texts, [metric.key in cell.best for cell in cells])


def _columns(table: ResultTable) -> list[Column]:
    cells = table.cells
    names = [cell.policy.label + (" !" if cell.below_baseline else "") for cell in cells]
    columns = [Column("policy", names, [False] * len(cells), left=True)]
    if len(table.workload.measured_names) > 1:
        columns.append(Column("flows", [c.group for c in cells], [False] * len(cells), left=True))
    always = {"goodput_bps"}
    for metric in METRICS:
        if metric.shown:
            column = _column(
                metric, cells, intervals=metric.key in always or _varies(metric, cells)
            )
            if column:
                columns.append(column)
    return columns


def _varies(metric: Metric, cells: Sequence[Cell]) -> bool:
    """Whether any interval exceeds 2% of its mean; narrower ones appear only in the files."""
    found = [e for c in cells if (e := c.estimates[metric.key]) is not None]
    return any(e.ci95 is not None and e.ci95 > 0.02 * abs(e.mean) for e in found)


def blocks(columns: list[Column], width: int) -> list[list[Column]]:
    """Columns split into blocks that fit the width; each block repeats the names."""
    named = [c for c in columns if c.left]
    room = width - sum(c.width + 2 for c in named)
    blocks: list[list[Column]] = [[]]
    used = 0
    for column in columns[len(named) :]:
        if blocks[-1] and used + column.width + 2 > room:
            blocks.append([])
            used = 0
        blocks[-1].append(column)
        used += column.width + 2
    return [[*named, *block] for block in blocks]


def draw(console: Console, columns: list[Column], below: list[bool]) -> None:
    """Prints one block of columns; the rows of `below` in yellow."""
    head = Text(
        "  ".join(c.head.ljust(c.width) if c.left else c.head.rjust(c.width) for c in columns)
    )
    head.stylize("bold")
    console.print(head, no_wrap=True, crop=False, overflow="ignore")
    for i in range(len(columns[0].cells)):
        line = Text()
        for j, column in enumerate(columns):
            text = column.cells[i]
            style = ""
            if column.marked[i]:
                text += "*"
                style = "bold green"
            elif column.left and j == 0 and below[i]:
                style = "yellow"
            # unmarked figures leave room for the mark, so that digits line up
            text = text.ljust(column.width) if column.left else _right(text, column, i)
            line.append(("  " if j else "") + text, style=style)
        line.rstrip()
        console.print(line, no_wrap=True, crop=False, overflow="ignore")


def _right(text: str, column: Column, row: int) -> str:
    if any(column.marked) and not column.marked[row]:
        text += " "
    return text.rjust(column.width)


def below_sentence(cell: Cell, baseline: str) -> str:
    """The loss against the baseline as a sentence."""
    change = cell.goodput_change_percent
    lost = -change.mean if change else 0.0
    spread = f" ±{change.ci95:.1f}" if change and change.ci95 is not None else ""
    return (
        f"! {cell.policy.label}: goodput of {cell.group} is {lost:.1f}%{spread} below {baseline} "
        f"(link {cell.link.name}, workload {cell.workload.name})"
    )


def show(comparison: Comparison, console: Console) -> None:
    """Prints each table of a comparison, with its cheapest policies and losses."""
    plan = comparison.plan
    width = console.width if console.is_terminal else PLAIN_WIDTH
    for table in comparison.tables:
        console.print(
            Text(f"{table.link.title}  |  {table.workload.title}", style="bold cyan"),
            overflow="ignore",
            no_wrap=True,
            crop=False,
        )
        console.print(
            Text(
                f"link {table.link.name}, workload {table.workload.name}, {plan.runs} "
                f"{'run' if plan.runs == 1 else 'runs'}, seeds from {plan.seed}",
                style="dim",
            )
        )
        below = [cell.below_baseline for cell in table.cells]
        for block in blocks(_columns(table), width):
            draw(console, block, below)
            console.print()
        for group, label in table.cheapest.items():
            of_group = f" of {group}" if len(table.cheapest) > 1 else ""
            console.print(
                Text(f"Fewest ACKs within 1% of the best goodput{of_group}: {label}"),
                soft_wrap=True,
            )
        for cell in table.cells:
            if cell.below_baseline:
                console.print(
                    Text(below_sentence(cell, plan.baseline.label), style="yellow"), soft_wrap=True
                )
        pairs = differing(table.link.name, table.workload.name, [p.label for p in plan.policies])
        if pairs:
            console.print(
                Text(
                    "Simulator and kernel rank these policies differently on this link: "
                    + ", ".join(" and ".join(pair) for pair in pairs),
                    style="yellow",
                ),
                soft_wrap=True,
            )
        console.print()
    if any(cell.best for table in comparison.tables for cell in table.cells):
        console.print(
            Text(
                "* best value of its column; ± half width of the 95% confidence interval",
                style="dim",
            )
        )


def show_grid(
    head: str,
    rows: Sequence[str],
    columns: Sequence[str],
    cells: dict[tuple[str, str], str],
    console: Console,
) -> None:
    """Prints one word per row and column; "-" where there is none."""
    width = console.width if console.is_terminal else PLAIN_WIDTH
    no_marks = [False] * len(rows)
    drawn = [Column(head, list(rows), no_marks, left=True)]
    for column in columns:
        drawn.append(Column(column, [cells.get((row, column), "-") for row in rows], no_marks))
    for block in blocks(drawn, width):
        draw(console, block, no_marks)
        console.print()
