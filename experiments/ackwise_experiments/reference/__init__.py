# SPDX-License-Identifier: MIT
"""The published figures, as data: `experiments/ackwise_experiments/reference/*.csv`."""

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources


def _rows(name: str) -> list[dict[str, str]]:
    text = (resources.files(__name__) / name).read_text(encoding="utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


@dataclass(frozen=True)
class PublishedFigure:
    """One figure as printed in its paper; `value` may be a range or "up to ..."."""

    source: str
    experiment: str
    quantity: str
    condition: str
    value: str
    unit: str

    @property
    def number(self) -> float:
        """The value, or the bound of an "up to"; ValueError for a range."""
        return float(self.value.removeprefix("up to "))


@cache
def results() -> list[PublishedFigure]:
    """Every single figure."""
    return [PublishedFigure(**row) for row in _rows("published_results.csv")]


def published(experiment: str, quantity: str, condition: str = "") -> PublishedFigure:
    """The one figure of that experiment and quantity; KeyError when there is none or more."""
    found = [
        p
        for p in results()
        if (p.experiment, p.quantity) == (experiment, quantity) and condition in ("", p.condition)
    ]
    if len(found) != 1:
        raise KeyError(f"{experiment}: {quantity}: {condition}: {len(found)} published figures")
    return found[0]


BufferPair = tuple[int, int]  # send and receive buffer in KiB


@dataclass(frozen=True)
class MeasuredCell:
    """A cell of table 15.1: SunOS 4.1.3 over loopback."""

    throughput_mbit_s: float
    deadlock: bool


@dataclass(frozen=True)
class SimulatedCell:
    """A cell of table 15.2, in KB for each simulated second."""

    delack: float
    a3: float
    a3_fewer: float
    deadlock: bool


@cache
def table_15_1() -> dict[BufferPair, MeasuredCell]:
    """All 64 cells, by send and receive buffer in KiB."""
    return {
        _pair(row): MeasuredCell(float(row["throughput_mbit_s"]), row["deadlock"] == "1")
        for row in _rows("a3_table_15_1.csv")
    }


@cache
def table_15_2() -> dict[BufferPair, SimulatedCell]:
    """All 64 cells, by send and receive buffer in KiB."""
    return {
        _pair(row): SimulatedCell(
            float(row["delack"]),
            float(row["a3"]),
            float(row["a3_fewer"]),
            row["deadlock"] == "1",
        )
        for row in _rows("a3_table_15_2.csv")
    }


def _pair(row: dict[str, str]) -> BufferPair:
    return int(row["send_buffer_kib"]), int(row["recv_buffer_kib"])
