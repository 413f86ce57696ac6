# SPDX-License-Identifier: MIT
"""The source's equations on cells that it names, and the shape of the fit."""

from typing import Any

import pytest

from ackwise_experiments import documents
from ackwise_experiments.deadlock import tables
from ackwise_experiments.reference import table_15_1, table_15_2


# [S5.1] [S5.2]
def test_the_equations_name_the_classes_that_the_source_names() -> None:
    # Section 15.2.4: 8/16 and 16/40 are of class II, 16/24, 16/32, 24/48 and 24/52 of class III.
    for pair in ((8, 16), (16, 40), (16, 24), (16, 32), (24, 48), (24, 52)):
        assert tables._by_equation(pair) == "II, III"
    # 4096 < 0.35 * 16384; 8192 > 0.35 * 16384.
    assert tables._by_equation((4, 16)) == "I"
    assert tables._by_equation((24, 40)) == ""


def test_what_the_equations_miss_in_the_measured_table_is_the_first_piece() -> None:
    wrong = {p for p, cell in table_15_1().items() if bool(tables._by_equation(p)) != cell.deadlock}
    assert wrong == {(4, 4), (4, 8), (8, 4), (8, 8)}
    assert all(bool(tables._by_rules(p)) == cell.deadlock for p, cell in table_15_1().items())


def test_only_the_deadlock_free_cells_are_fitted() -> None:
    free = tables._free()
    assert len(free) == 64 - 19
    assert not any(table_15_2()[pair].deadlock for pair in free)


def test_the_fitted_point_lies_on_the_grid_of_the_fit() -> None:
    beside = tables.neighbours(tables.FITTED)
    assert len(set(beside)) == len(beside)
    assert tables.FITTED not in beside
    assert tables.HEARTBEAT_MS in tables.CLOCKS_MS


def test_one_piece_a_round_trip_where_the_buffers_hold_one() -> None:
    # 4/4 KB: copied, sent, acknowledged; then the next piece.
    path = tables.FITTED
    made: dict[str, Any] = tables.scenario((4, 4), path, "bsd", {"heartbeat_ms": 560}, 0, 1_000_000)
    copied_s = 4096 * 8 / path.copy_bps
    wire_s = (4096 + 40 + 40) * 8 / path.rate_bps
    round_s = copied_s + wire_s + 2 * path.delay_us * 1e-6
    got = tables.bytes_per_s(documents.simulate(made))
    assert got == pytest.approx(4096 / round_s, rel=0.01)
