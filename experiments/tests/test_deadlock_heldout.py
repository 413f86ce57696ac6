# SPDX-License-Identifier: MIT
"""Cross-validation of table 15.2: splits, the choice of a path, and the naive models."""

from ackwise_experiments.deadlock import heldout, tables
from ackwise_experiments.deadlock.tables import FITTED, TransferPath


def test_no_cell_judges_a_fit_that_has_seen_it() -> None:
    free = tables._free()
    made = heldout.splits(free)
    assert len(made) == heldout.HALVES + 8
    for split in made:
        assert not set(split.seen) & set(split.held_out)
        assert sorted([*split.seen, *split.held_out]) == sorted(free)
    rows = made[heldout.HALVES :]
    assert sorted(pair for split in rows for pair in split.held_out) == sorted(free)
    assert all(len({send for send, _ in split.held_out}) == 1 for split in rows)


def test_a_path_is_chosen_by_what_the_fit_has_seen_alone() -> None:
    near, far = FITTED, TransferPath(91_000, 4_000_000, 2_000_000)
    deviations = {near: {(4, 4): 0.1, (8, 8): 0.9}, far: {(4, 4): 0.2, (8, 8): 0.0}}
    assert heldout.best_path(deviations, [(4, 4)]) == near
    assert heldout.best_path(deviations, [(8, 8)]) == far
    assert heldout.within(deviations[near], [(4, 4), (8, 8)]) == 1


def test_models_without_tcp_come_near_the_published_a3_columns() -> None:
    """From the published table alone: 53 of 64 cells, and all 45 that have no deadlock."""
    assert heldout.naive_within("a3") == (53, 45)
