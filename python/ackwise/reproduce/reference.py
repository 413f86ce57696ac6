# SPDX-License-Identifier: MIT
"""The published figures, as data: `python/ackwise/reference/*.csv`."""

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources


def _rows(name: str) -> list[dict[str, str]]:
    text = (resources.files("ackwise") / "reference" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


@dataclass(frozen=True)
class Published:
    """One figure as its source prints it; `value` may be a range or "up to ..."."""

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
def results() -> list[Published]:
    """Every single figure."""
    return [Published(**row) for row in _rows("published_results.csv")]


def published(experiment: str, quantity: str, condition: str = "") -> Published:
    """The one figure of that experiment and quantity; KeyError when there is none or more."""
    found = [
        p
        for p in results()
        if (p.experiment, p.quantity) == (experiment, quantity) and condition in ("", p.condition)
    ]
    if len(found) != 1:
        raise KeyError(f"{experiment}: {quantity}: {condition}: {len(found)} published figures")
    return found[0]


Pair = tuple[int, int]  # send and receive buffer in KiB


@dataclass(frozen=True)
class Measured:
    """A cell of table 15.1: SunOS 4.1.3 over loopback."""

    throughput_mbit_s: float
    deadlock: bool


@dataclass(frozen=True)
class Simulated:
    """A cell of table 15.2, in KB for each simulated second."""

    delack: float
    a3: float
    a3_fewer: float
    deadlock: bool


@cache
def table_15_1() -> dict[Pair, Measured]:
    """All 64 cells, by send and receive buffer in KiB."""
    return {
        _pair(row): Measured(float(row["throughput_mbit_s"]), row["deadlock"] == "1")
        for row in _rows("a3_table_15_1.csv")
    }


@cache
def table_15_2() -> dict[Pair, Simulated]:
    """All 64 cells, by send and receive buffer in KiB."""
    return {
        _pair(row): Simulated(
            float(row["delack"]),
            float(row["a3"]),
            float(row["a3_fewer"]),
            row["deadlock"] == "1",
        )
        for row in _rows("a3_table_15_2.csv")
    }


def _pair(row: dict[str, str]) -> Pair:
    return int(row["send_buffer_kib"]), int(row["recv_buffer_kib"])
