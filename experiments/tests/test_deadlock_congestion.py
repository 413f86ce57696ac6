# SPDX-License-Identifier: MIT
"""What a congestion costs and how fair a mix is, on curves whose answer is known."""

import pytest

from ackwise_experiments import documents
from ackwise_experiments.deadlock import congestion, fairness
from ackwise_experiments.deadlock.congestion import A3, CSA3, LARGE, ThroughputCurve


def test_time_lost_is_what_is_missing_in_units_of_full_throughput() -> None:
    calm = ThroughputCurve([100] * 1000, [500.0])
    gap = ThroughputCurve([100] * 500 + [0] * 3 + [50] * 4 + [100] * 493, [500.0])
    assert congestion._lost_s(calm, gap, 500.0) == pytest.approx(3 + 4 / 2)
    assert congestion._lost_s(calm, calm, 500.0) == 0


def test_congestion_stops_a_transfer_and_ends() -> None:

    for policy in (A3, CSA3):
        made = congestion._scenario(LARGE, policy, 0, congested=True)
        calm = congestion._scenario(LARGE, policy, 0, congested=False)
        made["duration_ns"] = calm["duration_ns"] = 600 * congestion.NS
        curves = [congestion._curve(documents.simulate(s), 0) for s in (made, calm)]
        assert curves[0].between(0, 500) == curves[1].between(0, 500) > 0
        assert curves[0].bytes_per_s[501] == 0
        assert curves[0].between(520, 600) == pytest.approx(curves[1].between(520, 600), rel=0.02)


def test_jain_s_index_knows_the_fair_and_the_greedy() -> None:
    assert fairness._jain([5.0] * 8) == pytest.approx(1)
    assert fairness._jain([1.0, 0, 0, 0]) == pytest.approx(1 / 4)
