# SPDX-License-Identifier: MIT
"""The price of an ACK from what a user knows, against arithmetic by hand, the spec's definition of
L, the offline optimum, and what the policies do with it."""

import json
import math

import pytest
from conftest import Ackwise

from ackwise import engine
from ackwise.engine.replayed import Arrivals, Options
from ackwise.errors import InputError
from ackwise.plans import policy
from ackwise.plans.price import Price, on_uplink, price

MBIT = 10**6
US, MS = 1000, 10**6
SEGMENTS = 6000


def arrivals(found: Price) -> list[int]:
    """Evenly spaced, at the rate of the price."""
    gap_ns = 1e9 / float(found.segments_per_s)
    return [round(i * gap_ns) for i in range(SEGMENTS)]


def test_the_price_is_what_a_hand_finds() -> None:
    # 52 bytes take 416 us of 1 Mbit/s, so a tenth of it carries 240.4 ACKs a second; 50 Mbit/s are
    # 4166.7 segments a second: K = 17.33, and L = 17.33^2 / 2 * 240 us = 36.05 ms
    found = price(on_uplink(MBIT, 52), 100_000, 50 * MBIT)
    assert found.ack_cost_ns == 416 * US
    assert float(found.segments_per_ack) == pytest.approx(17.333, abs=0.001)
    assert found.price_ns == pytest.approx(36.053 * MS, abs=US)


def test_half_the_share_makes_an_ack_four_times_as_dear() -> None:
    whole, half = (price(40 * US, share, 100 * MBIT).price_ns for share in (20_000, 10_000))
    assert half == pytest.approx(4 * whole, abs=4 * US)


@pytest.mark.parametrize("name", ["greedy", "dynamic"])
def test_parameters_mean_that_price_by_the_specs_definition(name: str) -> None:
    # spec page 2: L = unit * rho / (1 - rho)
    found = price(38 * US, 20_000, 100 * MBIT)
    spec = next(one for one in found.policies if one.startswith(f"{name}:"))
    params = policy.parse(spec, "test").params
    rho = params["cost_permille"] / 1000
    assert 1000 * params["unit_us"] * rho / (1 - rho) == pytest.approx(found.price_ns)


@pytest.mark.parametrize(
    ("cost_ns", "share_ppm", "rate_bps"),
    [(416 * US, 100_000, 50 * MBIT), (38 * US, 20_000, 100 * MBIT), (120 * US, 50_000, 20 * MBIT)],
)
def test_the_offline_optimum_at_that_price_takes_the_share(
    cost_ns: int, share_ppm: int, rate_bps: int
) -> None:
    found = price(cost_ns, share_ppm, rate_bps)
    best = engine.optimum(arrivals(found), 500, found.price_ns)
    # a schedule has whole segments in an ACK
    low, high = math.floor(found.segments_per_ack), math.ceil(found.segments_per_ack)
    assert SEGMENTS / high - 1 <= best["acks"] <= SEGMENTS / low + 1


def acks(spec: str, found: Price, seed: int = 1, more: str = "host=model") -> int:
    """Number of ACKs in a replay."""
    chosen = policy.parse(f"{spec},{more}", "test")
    given: Arrivals = {
        "times_ns": arrivals(found),
        "bytes": [1448] * SEGMENTS,
        "mss_bytes": 1448,
        "rtt_ns": found.rtt_ns,
    }
    options: Options = {"policies": [chosen.for_engine()], "seed": seed}
    return int(engine.replay_arrivals(given, options)["policies"][0]["acks"])


def test_greedy_takes_the_share_and_dynamic_a_fifth_more_on_average() -> None:
    found = price(416 * US, 100_000, 50 * MBIT)
    greedy, dynamic = found.policies
    allowed = SEGMENTS / float(found.segments_per_ack)
    assert acks(greedy, found) == pytest.approx(allowed, rel=0.05)
    drawn = [acks(dynamic, found, seed) for seed in range(64)]
    assert sum(drawn) / len(drawn) == pytest.approx(1.2 * allowed, rel=0.1)


# The clamp allows a quarter of the segments of an RTT: 2.1, 5.2, 10.4, 20.8 and 41.7, and K = 17.3.
@pytest.mark.parametrize(
    ("rtt_ms", "segments"), [(2, 3), (5, 6), (10, 11), (20, 17.33), (40, 17.33)]
)
def test_under_a_clamp_greedy_takes_what_is_said(rtt_ms: int, segments: float) -> None:
    found = price(416 * US, 100_000, 50 * MBIT, rtt_ms * MS)
    clamped, share_ppm = found.clamped_segments_per_ack, found.clamped_share_ppm
    assert clamped is not None and share_ppm is not None
    assert float(clamped) == pytest.approx(segments, abs=0.01)
    # in the first RTT the flight is not known, and two segments may wait
    first = float(found.segments_per_s) * rtt_ms / 1000
    sent = acks(found.policies[0], found, more="host=rfc,clamp=flight") - first / 2
    assert sent == pytest.approx((SEGMENTS - first) / segments, rel=0.05)
    # the share is time that ACKs take, by the time that the arrivals took
    took = sent * found.ack_cost_ns / ((SEGMENTS - first) * 1e9 / float(found.segments_per_s))
    assert took == pytest.approx(share_ppm / 1e6, rel=0.05)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((416 * US, 10**6, MBIT), "takes only 3.4667%.*the policy `every`"),
        ((10 * MS, 1000, 50 * MBIT), "more than the 1s that policies take; give a larger share"),
    ],
)
def test_a_price_that_is_none_or_too_high_is_refused(given: tuple[int, ...], says: str) -> None:
    with pytest.raises(InputError, match=f"^--share: .*{says}"):
        price(*given)


def test_the_command_says_what_it_found(ackwise: Ackwise) -> None:
    line = ("policy", "price", "--uplink", "1mbit", "--rate", "50mbit")
    said = ackwise(*line)
    assert said.code == 0
    found = json.loads(ackwise(*line, "--json").out)
    assert found["price_ns"] == price(416 * US, 100_000, 50 * MBIT).price_ns
    for spec in found["policies"]:
        assert f"use: --policy {spec}" in said.out
        assert policy.parse(spec, "test").label == spec


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--rate", "1mbit"), "give what an ACK costs, --ack-cost or --uplink"),
        (
            ("--rate", "1mbit", "--ack-cost", "1us", "--uplink", "1mbit"),
            "--uplink: cannot be combined with --ack-cost",
        ),
    ],
)
def test_one_cost_has_to_be_given(ackwise: Ackwise, words: tuple[str, ...], says: str) -> None:
    said = ackwise("policy", "price", *words)
    assert said.code == 2
    assert says in said.err
