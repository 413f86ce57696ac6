# SPDX-License-Identifier: MIT
"""Means and intervals against values worked out by hand or taken from tables."""

import pytest

from ackwise.results.stats import estimate, paired_percent, t95


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 12.706), (4, 2.776), (30, 2.042), (40, 2.021), (120, 1.980)]
)
def test_student_quantiles(freedom: int, quantile: float) -> None:
    assert t95(freedom) == pytest.approx(quantile, rel=1e-3)


def test_interval_of_five_values() -> None:
    # 1..5: mean 3, s = sqrt(2.5), half width 2.776 * sqrt(2.5 / 5)
    found = estimate([1, 2, 3, 4, 5])
    assert found is not None
    assert found.mean == 3
    assert found.ci95 == pytest.approx(2.776 * 0.5**0.5)


def test_one_value_has_no_interval_and_none_has_no_mean() -> None:
    found = estimate([4.0])
    assert found is not None
    assert (found.mean, found.ci95) == (4.0, None)
    assert estimate([]) is None


def test_the_ends_of_an_interval_lie_around_its_mean() -> None:
    found = estimate([1, 2, 3, 4, 5])
    assert found is not None
    assert found.high == pytest.approx(3 + 2.776 * 0.5**0.5)
    assert found.low == pytest.approx(3 - 2.776 * 0.5**0.5)
    alone = estimate([4.0])
    assert alone is not None
    assert (alone.low, alone.high) == (4.0, 4.0)


def test_fewer_runs_of_the_same_spread_reach_further() -> None:
    few, many = estimate([1, 3]), estimate([1, 3] * 10)
    assert few is not None
    assert many is not None
    assert few.low < many.low < many.high < few.high


def test_runs_that_came_out_the_same_are_one_sample() -> None:
    found = estimate([4.0, 4.0, 4.0])
    assert found is not None
    assert (found.mean, found.ci95) == (4.0, None)
    paired = paired_percent([99, 99], [100, 100])
    assert paired is not None
    assert paired.ci95 is None


def test_pairs_cancel_what_the_seed_decides() -> None:
    found = paired_percent([99, 198, 297], [100, 200, 300])
    assert found is not None
    assert found.mean == pytest.approx(-1)
    assert found.ci95 == pytest.approx(12.4, abs=20)  # of -0.5, -1, -1.5 percent of the mean
    assert paired_percent([1, 2], [0, 0]) is None
