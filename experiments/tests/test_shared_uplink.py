# SPDX-License-Identifier: MIT
"""Bursts cost the goodput that the download loses beside an upload, lost ACKs do not."""

import math
from statistics import fmean

import pytest
import shared_uplink

from ackwise.engine.result import RunResult

POINT = 138  # 291 and 9.1 Mbit/s, 7 ms, queues of 58 packets and of two


@pytest.fixture(scope="module")
def as_drawn() -> tuple[float, float, float]:
    """adaptive's goodput in parts of linux's, and shares of ACKs that the uplink dropped."""
    found, stock, ours = shared_uplink.goodput("again", POINT, "as drawn", runs=3)
    return math.exp(found.high), _dropped(stock), _dropped(ours)


def _dropped(runs: list[RunResult]) -> float:
    return fmean(run.up.acks_dropped_queue / run.groups[0].acks_sent for run in runs if run.up)


def test_the_download_loses_without_lost_acks(as_drawn: tuple[float, float, float]) -> None:
    below, *dropped = as_drawn
    assert below < 0.7
    assert max(dropped) < 0.005


@pytest.mark.parametrize("change", ["fq uplink", "4 x queue", "paced", "no upload"])
def test_what_takes_the_bursts_away_takes_the_loss_away(change: str) -> None:
    found, _, _ = shared_uplink.goodput("again", POINT, change, runs=3)
    assert math.exp(found.mean) > 0.95


def test_the_point_is_the_sweeps() -> None:
    one = shared_uplink.scenarios("again", POINT, "linux", 2)
    assert [shape.seed for shape in one] == [one[0].seed, one[0].seed + 1]
    assert round(one[0].down.rate_bps / 1e6) == 291
    (other,) = shared_uplink.scenarios("judging", POINT, "linux", 1)
    assert other.down.rate_bps != one[0].down.rate_bps
