# SPDX-License-Identifier: MIT
"""Results as text tables that fit the terminal."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import floor, log10

from rich.text import Text

from ackwise.errors import printable
from ackwise.host import environment
from ackwise.results import provenance
from ackwise.results.agreement import differing
from ackwise.results.compare import Cell, Comparison, ResultTable
from ackwise.results.console import Console
from ackwise.results.metrics import GOODPUT, METRICS, Metric
from ackwise.results.stats import Estimate

PLAIN_WIDTH = 200  # width if the output is not a terminal

_RATES = [("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0)]
_TIMES = [("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0)]
_SHOWN_MIN = 0.01  # in a table's unit: three decimals leave two digits


def unit_of(unit: str, largest: float) -> tuple[str, float]:
    """The unit for a column with the maximum `largest`, and its size."""
    scales = {"bit/s": _RATES, "ns": _TIMES}.get(unit)
    if scales is None:
        return unit, 1.0
    for name, scale in scales:
        if largest >= scale:
            return name, scale
    return scales[-1]


def time_unit(largest: Iterable[float]) -> tuple[str, float]:
    """The unit for all times of a table, and its size in ns: ms, or smaller if a column with one of
    these maxima would not be visible in ms."""
    smallest = min((value for value in largest if value), default=0)
    units = [(name, scale) for name, scale in _TIMES if name != "s"]
    return next(((n, s) for n, s in units if smallest >= _SHOWN_MIN * s), units[0])


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
        """Number of characters needed."""
        return max(len(self.head), max(map(len, self.cells)) + any(self.marked))


def _column(
    metric: Metric, cells: Sequence[Cell], times: tuple[str, float], intervals: bool
) -> Column | None:
    estimates: list[Estimate | None] = [cell.estimates[metric.key] for cell in cells]
    means = [e.mean for e in estimates if e is not None]
    if not means:
        return None
    unit, scale = times if metric.unit == "ns" else unit_of(metric.unit, max(means))
    whole = not metric.unit and all(mean.is_integer() for mean in means)
    digits = 0 if whole else decimals([mean / scale for mean in means])
    texts = []
    for cell, found in zip(cells, estimates, strict=True):
        if found is None:
            texts.append("-")
            continue
        text = f"{found.mean / scale:.{digits}f}"
        if _below_zero(found):
            runs = [value / scale for r in cell.runs if (value := r.values[metric.key]) is not None]
            text += f" [{min(runs):.{digits}f}-{max(runs):.{digits}f}]"
        elif intervals and found.ci95:  # not shown if the metric is equal in all runs
            text += " " + _half_width(found.ci95 / scale, digits)
        texts.append(text)
    head = metric.title + (f" {unit}" if unit and not metric.title.endswith(unit) else "")
    return Column(head, texts, [metric.key in cell.best for cell in cells])


def _below_zero(found: Estimate | None) -> bool:
    """Whether the interval reaches below zero, as no metric can: too few runs, too far apart."""
    return found is not None and found.low < 0


def _half_width(value: float, digits: int) -> str:
    """Half width of an interval, such as ±0.4; never as zero, which only a single sample could
    claim."""
    text = f"{value:.{digits}f}"
    return f"±{text}" if float(text) else f"±<{10**-digits:.{digits}f}"


def _columns(comparison: Comparison, table: ResultTable) -> list[Column]:
    cells = table.cells
    names = [
        cell.policy.label
        + (" !" if cell.below_baseline else "")
        + (" ~" if comparison.validated(cell) is False else "")
        for cell in cells
    ]
    columns = [Column("policy", names, [False] * len(cells), left=True)]
    if len(table.workload.measured_names) > 1:
        columns.append(
            Column("flows", [printable(c.group) for c in cells], [False] * len(cells), left=True)
        )
    shown = [metric for metric in METRICS if metric.shown]
    times = time_unit(_largest(metric, cells) for metric in shown if metric.unit == "ns")
    for metric in shown:
        intervals = metric.key == GOODPUT or _varies(metric, cells)
        column = _column(metric, cells, times, intervals)
        if column:
            columns.append(column)
    return columns


def _largest(metric: Metric, cells: Sequence[Cell]) -> float:
    return max((e.mean for c in cells if (e := c.estimates[metric.key]) is not None), default=0)


def _varies(metric: Metric, cells: Sequence[Cell]) -> bool:
    """Whether any interval exceeds 2% of its mean; narrower ones appear only in the files."""
    found = [e for c in cells if (e := c.estimates[metric.key]) is not None]
    return any(e.ci95 is not None and e.ci95 > 0.02 * abs(e.mean) for e in found)


def width_of(console: Console) -> int:
    """Width of the terminal or the value of COLUMNS; without either, lines are wide."""
    return console.width if console.is_terminal or environment.value("COLUMNS") else PLAIN_WIDTH


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
            # figures without a mark leave room for one, so that digits are aligned
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
    spread = f" {_half_width(change.ci95, 1)}" if change and change.ci95 else ""
    known = ", run by run with the same seeds" if spread else ""
    if len(cell.runs) == 1:
        known = " in one run, which may be chance"
    elif change and change.ci95 is None:
        known = f" in {len(cell.runs)} identical runs"
    return (
        f"! {cell.policy.label}: goodput of {cell.group} is {lost:.1f}%{spread} below {baseline}"
        f"{known} (link {cell.link.name}, workload {cell.workload.name})"
    )


def _remarks(table: ResultTable, policies: list[str], baseline: str) -> Iterator[tuple[str, str]]:
    """Remarks on the evidence of the runs, each with its style."""
    several = len(table.cheapest) > 1

    def names(cells: Iterable[Cell]) -> str:
        return ", ".join(
            f"{c.policy.label} ({c.group})" if several else c.policy.label for c in cells
        )

    for group, label in table.cheapest.items():
        of_group = f" of {group}" if several else ""
        yield f"Fewest ACKs within 1% of the best goodput{of_group}: {label}", ""
    for cell in table.cells:
        if cell.below_baseline:
            yield below_sentence(cell, baseline), "yellow"
    undecided = [cell for cell in table.cells if cell.undecided]
    if undecided:
        yield (
            f"Undecided, as the interval of the difference from {baseline} contains zero: "
            f"{names(undecided)}; more runs (--runs) may decide",
            "",
        )
    for reason in dict.fromkeys(table.skipped.values()):
        labels = [label for label, why in table.skipped.items() if why == reason]
        yield f"Not run: {', '.join(labels) + ': ' if table.cells else ''}{reason}", "yellow"
    if table.cells and baseline in table.skipped:
        yield f"Without {baseline}, no policy can be said to be below it", ""
    identical = [cell for cell in table.cells if cell.identical]
    if identical:
        which = "every policy" if len(identical) == len(table.cells) else names(identical)
        yield f"Identical in {len(identical[0].runs)} runs, so without an interval: {which}", ""
    pairs = differing(table.link.name, table.workload.name, policies)
    if pairs:
        ranked = ", ".join(" and ".join(pair) for pair in pairs)
        yield (
            f"Simulator and kernel rank these policies differently on this link: {ranked}",
            "yellow",
        )


def show(comparison: Comparison, console: Console) -> None:
    """Prints each table of a comparison, with its cheapest policies and losses."""
    plan = comparison.plan
    width = width_of(console)
    origin = provenance.line(comparison.provenance)
    for table in comparison.tables:
        console.print(
            Text(printable(f"{table.link.title}  |  {table.workload.title}"), style="bold cyan"),
            overflow="ignore",
            no_wrap=True,
            crop=False,
        )
        console.print(
            Text(
                f"link {printable(table.link.name)}, workload {printable(table.workload.name)}, "
                f"{plan.runs} {'run' if plan.runs == 1 else 'runs'} of each policy\n{origin}",
                style="dim",
            ),
            soft_wrap=True,
        )
        below = [cell.below_baseline for cell in table.cells]
        for block in blocks(_columns(comparison, table), width) if table.cells else ():
            draw(console, block, below)
            console.print()
        labels = [policy.label for policy in plan.policies]
        for remark, style in _remarks(table, labels, plan.baseline.label):
            console.print(Text(printable(remark), style=style), soft_wrap=True)
        console.print()
    cells = [cell for table in comparison.tables for cell in table.cells]
    legend = []
    if any(cell.best for cell in cells):
        legend.append("* best value of its column")
    if any(comparison.validated(cell) is False for cell in cells):
        legend.append("~ not validated against the kernel on this link")
    if plan.runs > 1:
        legend.append("± half width of the 95% confidence interval")
        shown = [metric.key for metric in METRICS if metric.shown]
        if any(_below_zero(cell.estimates[key]) for cell in cells for key in shown):
            legend.append("[least-most] of the runs where that interval would reach below zero")
    else:
        legend.append("one run of each: no intervals (--runs 3)")
    if cells:
        console.print(Text("; ".join(legend), style="dim"), soft_wrap=True)


def show_grid(
    head: str,
    rows: Sequence[str],
    columns: Sequence[str],
    cells: dict[tuple[str, str], str],
    console: Console,
) -> None:
    """Prints one word per row and column; "-" where there is none."""
    width = width_of(console)
    no_marks = [False] * len(rows)
    drawn = [Column(head, list(rows), no_marks, left=True)]
    for column in columns:
        drawn.append(Column(column, [cells.get((row, column), "-") for row in rows], no_marks))
    for block in blocks(drawn, width):
        draw(console, block, no_marks)
        console.print()
