# SPDX-License-Identifier: MIT
"""Table 15.2 cross-validated: what the fit says of cells that it has not seen, beside models that
know nothing of TCP.

The fit's rule makes a cell beyond the tolerance infinitely dear, so that all cells are within it by
selection. Here the mean deviation alone decides, over a part of the deadlock-free delayed-ACK
cells.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random
from statistics import fmean, median

from ackwise_experiments import check
from ackwise_experiments.check import Basis, Check, Kind, Origin
from ackwise_experiments.deadlock import tables
from ackwise_experiments.deadlock.tables import (
    CELL_PERCENT,
    CLOCKS_MS,
    COLUMNS,
    FIT_CLOCKS_MS,
    FIT_COPIES_BPS,
    FIT_DELAYS_US,
    FIT_RATES_BPS,
    TRANSFER_BYTES,
    TransferPath,
)
from ackwise_experiments.figure import Figure, Grid, Panel, Series
from ackwise_experiments.reference import BufferPair, table_15_2
from ackwise_experiments.runner import Runner

SOURCE = "table 15.2"
HALVES = 8  # random splits
CLOCKS = (FIT_CLOCKS_MS[0], FIT_CLOCKS_MS[-1])  # two of the fit's
ADAPTIVE = ("a3", "a3_fewer")
ALL_CELLS = Basis(Kind.FITTED, Origin.ASKED)
BEATS_NAIVE = Basis(Kind.FITTED, Origin.BEFORE)
REPEATED_FIT = Basis(Kind.OWN, Origin.BEFORE)

Deviations = dict[TransferPath, dict[BufferPair, float]]


@dataclass(frozen=True)
class Split:
    """Cells that a fit sees, and those that judge it."""

    name: str
    seen: Sequence[BufferPair]
    held_out: Sequence[BufferPair]


def splits(free: Sequence[BufferPair]) -> list[Split]:
    """Random halves, then each row of the table (a send buffer) left out."""
    made = []
    for number in range(HALVES):
        order = list(free)
        Random(f"half {number}").shuffle(order)  # noqa: S311 - a model's
        middle = len(order) // 2
        made.append(Split(f"half {number + 1}", order[:middle], order[middle:]))
    for send in sorted({pair[0] for pair in free}):
        row = [pair for pair in free if pair[0] == send]
        made.append(Split(f"without S = {send}", [p for p in free if p not in row], row))
    return made


def best_path(deviations: Deviations, seen: Sequence[BufferPair]) -> TransferPath:
    """The grid point with the lowest mean deviation over these cells."""
    return min(deviations, key=lambda path: (fmean(deviations[path][p] for p in seen), path))


def within(deviations: Mapping[BufferPair, float], pairs: Sequence[BufferPair]) -> int:
    """How many of these cells are within the tolerance."""
    return sum(100 * deviations[pair] <= CELL_PERCENT for pair in pairs)


def _free_deviations(runner: Runner, free: Sequence[BufferPair]) -> Deviations:
    """Deviations of deadlock-free delayed-ACK cells over the fit's grid and two clocks."""
    paths = [TransferPath(*one) for one in product(FIT_DELAYS_US, FIT_RATES_BPS, FIT_COPIES_BPS)]
    wanted = [(pair, path, ms) for path in paths for pair in free for ms in CLOCKS]
    found = iter(tables.deviations(runner, "cross-validation of table 15.2", wanted, 1))
    return {path: {pair: fmean(next(found) for _ in CLOCKS) for pair in free} for path in paths}


def _adaptive_within(
    runner: Runner, paths: Sequence[TransferPath]
) -> dict[TransferPath, list[int]]:
    """Cells of the A3 columns within the tolerance on each path, one run each."""
    table = table_15_2()
    params = {"silence_samples": 0}
    keys = list(product(paths, ADAPTIVE, table))
    made = [
        [tables.scenario(pair, path, COLUMNS[column], params, 0, TRANSFER_BYTES)]
        for path, column, pair in keys
    ]
    found = runner.map(f"{SOURCE}, A3 on the paths of the splits", tables.cell, made)
    counts = {path: dict.fromkeys(ADAPTIVE, 0) for path in paths}
    for (path, column, pair), got in zip(keys, found, strict=True):
        off = abs(got / 1000 / float(getattr(table[pair], column)) - 1)
        counts[path][column] += 100 * off <= CELL_PERCENT
    return {path: [counts[path][column] for column in ADAPTIVE] for path in paths}


def naive_within(column: str) -> tuple[int, int]:
    """Cells of a column within the tolerance of two models without TCP: the median of the column's
    cells with the same smaller buffer; the published delayed-ACK cell, where that has no deadlock.
    """
    table = table_15_2()

    def value(pair: BufferPair) -> float:
        return float(getattr(table[pair], column))

    medians = {
        least: median(value(pair) for pair in table if min(pair) == least)
        for least in {min(pair) for pair in table}
    }
    off = {pair: abs(medians[min(pair)] / value(pair) - 1) for pair in table}
    free = {p: abs(c.delack / value(p) - 1) for p, c in table.items() if not c.deadlock}
    return within(off, list(off)), within(free, list(free))


def _shown(path: TransferPath) -> str:
    rates = f"{path.rate_bps / 1e6:g} and {path.copy_bps / 1e6:g} Mbit/s"
    return f"{path.delay_us // 1000} ms, {rates}"


def run(runner: Runner) -> tuple[list[Check], list[Figure], list[str]]:
    """Checks, figures and notes."""
    table = table_15_2()
    free = [pair for pair, cell in table.items() if not cell.deadlock]
    deviations = _free_deviations(runner, free)
    judged = [(split, best_path(deviations, split.seen)) for split in splits(free)]
    held = [within(deviations[path], split.held_out) for split, path in judged]
    adaptive = _adaptive_within(runner, list(dict.fromkeys(path for _, path in judged)))
    halves, rows = judged[:HALVES], judged[HALVES:]
    medians = {column: naive_within(column)[0] for column in ADAPTIVE}
    checks = [
        check.same(
            f"delack: held-out deadlock-free cells within {CELL_PERCENT:g}%, {words}",
            sum(len(split.held_out) for split, _ in part),
            sum(held[judged.index(one)] for one in part),
            basis=ALL_CELLS,
            source=SOURCE,
        )
        for words, part in ((f"{HALVES} random halves", halves), ("each row left out", rows))
    ]
    for column, least in zip(ADAPTIVE, map(min, zip(*adaptive.values(), strict=True)), strict=True):
        checks += [
            check.same(
                f"{column}: cells within {CELL_PERCENT:g}%, lowest of the splits' paths",
                len(table),
                least,
                basis=ALL_CELLS,
                source=SOURCE,
            ),
            check.at_least(
                f"{column}: the same minus the median by min(S, R)",
                1,
                least - medians[column],
                basis=BEATS_NAIVE,
            ),
        ]
    clocks = tables.clock_costs(runner, tables.FITTED)
    checks += _repeated(runner, clocks)
    checks.append(
        check.at_most(
            f"delack: deadlocked cells, largest deviation over clocks of {CLOCKS_MS[0]} to "
            f"{CLOCKS_MS[-1]} ms, %",
            CELL_PERCENT,
            100 * max(clocks.values()),
            basis=ALL_CELLS,
            source=SOURCE,
        )
    )
    figures = [_table(judged, held, adaptive, deviations), _clocks(clocks)]
    return check.grouped("table 15.2, cells that the fit has not seen", checks), figures, []


def _repeated(runner: Runner, clocks: Mapping[int, float]) -> list[Check]:
    """The shipped fit is what its rule finds: the grid around it, and the clock."""
    points = [tables.FITTED, *tables.neighbours(tables.FITTED)]
    costs = tables.costs(runner, points)
    better = sum(costs[path] < costs[tables.FITTED] for path in points[1:])
    best = min(clocks, key=lambda ms: (clocks[ms], ms))
    return [
        check.same("fit: neighbouring grid points that fit better", 0, better, basis=REPEATED_FIT),
        check.same("fit: period of the clock, ms", tables.HEARTBEAT_MS, best, basis=REPEATED_FIT),
    ]


def _table(
    judged: Sequence[tuple[Split, TransferPath]],
    held: Sequence[int],
    adaptive: Mapping[TransferPath, Sequence[int]],
    deviations: Deviations,
) -> Figure:
    rows = []
    for (split, path), count in zip(judged, held, strict=True):
        mean = fmean(deviations[path][pair] for pair in split.held_out)
        cells = [f"{count} of {len(split.held_out)}", f"{100 * mean:.1f}%"]
        rows.append((split.name, [_shown(path), *cells, *map(str, adaptive[path])]))
    free = sum(not cell.deadlock for cell in table_15_2().values())
    by_median, by_cell = zip(*(naive_within(column) for column in ADAPTIVE), strict=True)
    rows += [
        ("median by min(S, R)", ["no TCP", "-", "-", *map(str, by_median)]),
        ("the delayed-ACK cell", ["no TCP", "-", "-", *(f"{n} of {free}" for n in by_cell)]),
    ]
    columns = [
        "path: delay, rate and copying",
        "held out",
        "deviation",
        "a3 of 64",
        "a3_fewer of 64",
    ]
    return Figure(
        "deadlock-held-out",
        f"Cells within {CELL_PERCENT:g}% that the fit has not seen",
        [
            Grid(
                "fitted to",
                "",
                [name for name, _ in rows],
                columns,
                [cells for _, cells in rows],
                [["naive" if cells[0] == "no TCP" else ""] * len(columns) for _, cells in rows],
            )
        ],
        SOURCE,
    )


def _clocks(clocks: Mapping[int, float]) -> Figure:
    return Figure(
        "deadlock-clock",
        "Deadlocked delayed-ACK cells over the period of the receiver's clock",
        [
            Panel(
                "period, ms",
                "largest deviation, %",
                [Series("", list(clocks), [100 * cost for cost in clocks.values()])],
                lines=[("allowed", CELL_PERCENT)],
            )
        ],
        SOURCE,
    )
