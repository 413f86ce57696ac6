# SPDX-License-Identifier: MIT
"""The tables of the deadlock over what their sources leave open."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from ackwise.results.stats import Estimate, mean_of
from ackwise_experiments import changes
from ackwise_experiments.band import Headline, Settings, bands, measured, shown
from ackwise_experiments.changes import Scenario
from ackwise_experiments.check import Basis, Kind, Origin
from ackwise_experiments.deadlock import tables
from ackwise_experiments.deadlock.tables import CELL_PERCENT, FITTED_CELLS
from ackwise_experiments.experiment import Outcome
from ackwise_experiments.reference import BufferPair, table_15_1, table_15_2
from ackwise_experiments.runner import Runner

RUNS = 5  # of each cell of table 15.2
ENDS = Basis(Kind.PREDICTED, Origin.BEFORE)
CELLS = len(table_15_2())
MEASURED, SIMULATED = "table 15.1", "table 15.2"
HEADLINES = (
    Headline("pairs classified as in the measurement", CELLS, None, FITTED_CELLS, "", MEASURED),
    Headline(f"delack: cells within {CELL_PERCENT:g}%", CELLS, None, FITTED_CELLS, "", SIMULATED),
    Headline(f"a3: cells within {CELL_PERCENT:g}%", CELLS, None, FITTED_CELLS, "", SIMULATED),
    Headline("deadlocked pairs: A3 / delayed ACKs, least", 1, None, ENDS, "", SIMULATED),
)
# Delay, rate, copying and, in table 15.2, the clock are fitted.
SETTINGS: Settings = {
    **changes.by_a_fifth("delay", changes.delays),
    **changes.by_a_fifth("rate", changes.rates),
    **changes.by_a_fifth("copying", changes.copying),
    **changes.by_a_fifth("clock", changes.clocks),
    "clock -2%": changes.clocks(0.98),
    "clock +2%": changes.clocks(1.02),
    "twice as long": changes.twice_the_bytes,
}


def _scenarios() -> list[Scenario]:
    """Table 15.1, then both columns of table 15.2; runs of a cell beside each other."""
    loopback = {"heartbeat_ms": tables.LOOPBACK_HEARTBEAT_MS}
    made = [
        tables.scenario(pair, tables.LOOPBACK, "bsd", loopback, run, tables.TRANSFER_MEASURED_BYTES)
        for pair in table_15_1()
        for run in range(tables.RUNS_MEASURED)
    ]
    columns = (("bsd", {"heartbeat_ms": tables.HEARTBEAT_MS}), ("a3", {"silence_samples": 0}))
    return made + [
        tables.scenario(pair, tables.FITTED, policy, params, run, tables.TRANSFER_BYTES)
        for policy, params in columns
        for pair in table_15_2()
        for run in range(RUNS)
    ]


def _cells(
    pairs: Sequence[BufferPair], rates: Sequence[float], runs: int
) -> Mapping[BufferPair, float]:
    """Mean of each cell's runs, bytes a second."""
    return {pair: fmean(rates[i * runs : (i + 1) * runs]) for i, pair in enumerate(pairs)}


def _within(cells: Mapping[BufferPair, float], column: str) -> int:
    table = table_15_2()
    off = (abs(got / 1000 / float(getattr(table[pair], column)) - 1) for pair, got in cells.items())
    return sum(100 * one <= CELL_PERCENT for one in off)


def _read(rates: Sequence[float]) -> list[Estimate]:
    first = len(table_15_1()) * tables.RUNS_MEASURED
    second = first + CELLS * RUNS
    loopback = _cells(list(table_15_1()), rates[:first], tables.RUNS_MEASURED)
    right = sum(
        (8 * got / 1e6 < tables.LOCKED_MBIT_S) == table_15_1()[pair].deadlock
        for pair, got in loopback.items()
    )
    delack, a3 = (
        _cells(list(table_15_2()), part, RUNS) for part in (rates[first:second], rates[second:])
    )
    least = min(a3[pair] / delack[pair] for pair, cell in table_15_2().items() if cell.deadlock)
    counts = (right, _within(delack, "delack"), _within(a3, "a3"))
    return [mean_of([value]) for value in (*counts, least)]


def band(runner: Runner) -> Outcome:
    """All four in each setting."""
    found = measured(runner, SETTINGS, _scenarios(), _read, tables.bytes_per_s)
    return shown("deadlock", bands(HEADLINES, found))
