# SPDX-License-Identifier: MIT
"""The path in user space: what it delays, drops and lets pass, held against arithmetic."""

import random
from typing import Any

import pytest

from ackwise_experiments.bottleneck.line import TokenBucket, Way

MS, SECOND = 10**6, 10**9
SIZE = 1250  # bytes: 10 000 bits


def _way(**keys: Any) -> Way:
    return Way({"rate_bps": 10_000_000, "delay_ns": 0, **keys}, 0, "seed")


def test_packets_leave_one_after_the_other_at_the_rate() -> None:
    way = _way()
    assert [way.leaves(0, SIZE) for _ in range(3)] == [MS, 2 * MS, 3 * MS]
    # idle in between
    assert way.leaves(10 * MS, SIZE) == 11 * MS
    assert way.busy_ns[-1] == 4 * MS


def test_as_many_packets_wait_as_the_queue_holds_beside_the_one_on_the_wire() -> None:
    way = _way(queue_packets=2)
    assert [way.leaves(0, SIZE) for _ in range(5)] == [MS, 2 * MS, 3 * MS, None, None]
    assert way.leaves(MS, SIZE) == 4 * MS
    assert (way.dropped, way.bytes) == (2, 4 * SIZE)


def test_a_queue_of_bytes_counts_what_waits() -> None:
    way = _way(queue_bytes=2 * SIZE)
    assert [way.leaves(0, SIZE) for _ in range(4)] == [MS, 2 * MS, 3 * MS, None]
    assert way.leaves(MS + 1, 1) is not None


@pytest.mark.parametrize("seed", range(5))
def test_a_policer_never_passes_more_than_its_rate_and_its_burst(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311
    rate_bps, burst = 2_000_000, 15_000
    bucket = TokenBucket(rate_bps, burst, 1600)
    now_ns, passed = 0, [(0, 0)]
    for _ in range(3000):
        now_ns += chance.randrange(2 * MS)
        size = chance.choice((52, 600, 1500))
        goes_ns = bucket.passes(now_ns, size)
        if goes_ns is not None:
            assert goes_ns >= now_ns
            passed.append((goes_ns, passed[-1][1] + size))
    assert [a for a, _ in passed] == sorted(a for a, _ in passed)
    for first in range(0, len(passed), 37):
        for later in range(first + 1, len(passed), 11):
            (began_ns, before), (ended_ns, after) = passed[first], passed[later]
            assert after - before <= burst + (ended_ns - began_ns) * rate_bps / (8 * SECOND) + 1
    # and it passes all that this allows, but for one packet
    whole = passed[-1][1]
    assert whole >= 0.98 * now_ns * rate_bps / (8 * SECOND)


def test_a_policer_comes_from_a_line_of_tc() -> None:
    way = _way(tc=["qdisc add dev PORT root handle 1: tbf rate 1000000bit burst 2500 limit 1600"])
    left = [way.leaves(0, SIZE) for _ in range(4)]
    # two at once from the bucket; the third waits for 10 ms of tokens, the fourth has no room
    assert left == [MS, 2 * MS, 11 * MS, None]
    with pytest.raises(ValueError, match="tc"):
        _way(tc=["qdisc add dev PORT root handle 1: pfifo"])


def test_losses_come_as_often_as_asked_and_the_same_with_the_same_seed() -> None:
    first, again = (_way(loss_ppm=20_000) for _ in range(2))
    lost = [first.loses(0) for _ in range(50_000)]
    assert lost == [again.loses(0) for _ in range(50_000)]
    assert sum(lost) == pytest.approx(1000, rel=0.15)


def test_nothing_passes_a_dead_link() -> None:
    way = Way(
        {"rate_bps": 10**7, "delay_ns": 0, "outages": [{"start_ns": 5, "length_ns": 10}]}, 100, ""
    )
    assert [way.loses(at) for at in (104, 105, 114, 115)] == [False, True, True, False]
