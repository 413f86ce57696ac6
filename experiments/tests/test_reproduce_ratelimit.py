# SPDX-License-Identifier: MIT
"""The ratelimit experiment: what it derives its answers by, against figures made by hand."""

from typing import Any

import pytest

from ackwise_experiments import documents
from ackwise_experiments.ratelimit import devices
from ackwise_experiments.ratelimit import simulator as ratelimit
from ackwise_experiments.ratelimit.devices import FlowRun


# [D-16]
def test_costs_give_the_published_gain() -> None:
    """(d + a / 2) / (d + a / 5.2) = 1.3, and 60% where ACKs are gone."""

    def host(link: str, side: str) -> dict[str, Any]:
        made: dict[str, Any] = devices.scenario(link, devices.STOCK, 1)[side]
        return made

    cpu = host(devices.MACHINE, "client")
    d, a = cpu["data_received_ns"], cpu["ack_sent_ns"]
    assert (d + a / 2) / (d + a / 5.2) == pytest.approx(1.3, rel=0.01)
    server = host(devices.DEVICE, "server")
    segment_kib = ratelimit.SEGMENT_BYTES / 1024
    d = server["data_sent_ns"] + server["process"]["write_kib_ns"] * segment_kib
    assert (d + server["ack_received_ns"] / 2) / d == pytest.approx(1.6, rel=0.001)
    router = host("fitted-router", "server")
    assert router["data_sent_ns"] == pytest.approx(d, rel=0.001)


def test_falls_are_counted_once_for_each_time() -> None:
    times = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert ratelimit.falls_after(times, [1, 2, 1, 2, 3, 2], [1.5, 4.5]) == 2
    assert ratelimit.falls_after(times, [3, 2, 1, 1, 1, 1], [1.5, 4.5]) == 1
    assert ratelimit.falls_after(times, [1, 2, 3, 4, 5, 6], [1.5, 4.5]) == 0


def test_the_mode_is_the_middle_of_the_fullest_millisecond() -> None:
    bins = ratelimit.histogram_ms(
        {"bucket_upper": [5_100_000, 5_900_000, 9_000_000], "bucket_count": [2, 2, 3]}
    )
    assert bins == {5: 4, 9: 3}
    assert ratelimit.mode_ms(bins) == 5.5
    assert ratelimit.mode_ms({}) is None


def test_a_load_is_the_load_asked_for() -> None:
    result = documents.simulate(ratelimit.loaded(devices.ONE_PER_TWO, 40) | {"duration_ns": 10**9})
    assert result["client"]["cpu_share"] == pytest.approx(0.4, rel=0.02)


def test_means_leave_out_what_was_not_measured() -> None:
    series = {"time_ns": [0, 10**9, 2 * 10**9, 3 * 10**9], "rtt_ns": [0, 4_000_000, 0, 8_000_000]}
    run = FlowRun({"groups": [{"flows": [{"series": series}]}]})
    assert run.mean(run.rtt_ms, 0, 3) == 6
    assert run.mean(run.rtt_ms, 1, 2) == 0


def test_a_starved_reader_thins_acks_and_a_free_one_does_not() -> None:
    """Costs are equal with and without the process, so only it makes the difference."""
    made = devices.scenario("fitted-reader", devices.STOCK, 4, series=True)
    starved = FlowRun(documents.simulate(made))
    del made["client"]["process"]
    free = FlowRun(documents.simulate(made))
    late = (2.0, 4.0)
    per_ack = [
        run.mean(run.mbit_s, *late) * 1e6 / 8 / ratelimit.SEGMENT_BYTES
        / run.mean(run.acks_s, *late)
        for run in (starved, free)
    ]  # fmt: skip
    assert per_ack[0] > 20
    assert per_ack[1] == pytest.approx(2, rel=0.1)
