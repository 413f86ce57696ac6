# SPDX-License-Identifier: MIT
"""A result of the simulator or of the lab as an account: both have one schema."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from ackwise_experiments.bottleneck.account import Account, Chronograph, FlowTimes, Sample

CLIENT_PORT, SERVER_PORT = 20_001, 5_001  # of the first flow; each has the next ones


def samples(series: Mapping[str, Sequence[int]]) -> list[Sample]:
    """The points of a series."""
    return [
        Sample(*point)
        for point in zip(
            series["time_ns"],
            accumulate(series["delivered_bytes"]),
            series["cwnd_bytes"],
            series["ssthresh_bytes"],
            series["bytes_in_flight"],
            series["rcv_wnd_bytes"],
            strict=True,
        )
    ]


def flow_times(scenario: Mapping[str, Any], result: Mapping[str, Any]) -> list[FlowTimes]:
    """Every connection, in order of its port. It is opened when its group starts."""
    found: list[FlowTimes] = []
    for spec, group in zip(scenario["groups"], result["groups"], strict=True):
        for flow in group["flows"]:
            found.append(
                FlowTimes(
                    group["name"],
                    SERVER_PORT + len(found),
                    CLIENT_PORT + len(found),
                    spec.get("start_ns", 0),
                    flow["start_ns"],
                    flow["end_ns"],
                    flow["retransmitted_segments"],
                    flow["timeouts"],
                )
            )
    return found


def account(
    scenario: Mapping[str, Any],
    result: Mapping[str, Any],
    *,
    start_ns: int,
    chronographs: Sequence[Chronograph],
    link: tuple[Sequence[int], Sequence[int]],
    down: tuple[int, int],
    up_bytes: int,
) -> Account:
    """`link`: times, and how long the way of the data had been busy by then; `down`: bytes that
    crossed the link, packets that its queue dropped."""
    first = result["groups"][0]
    latency = first["message_latency_ns"]
    return Account(
        start_ns=start_ns,
        duration_ns=result["duration_ns"],
        flows=flow_times(scenario, result),
        # a connection of the lab that ends before it was ever looked at has none
        samples=samples(series) if (series := first["flows"][0].get("series")) else [],
        chronographs=chronographs,
        messages_ns=[
            upper
            for upper, count in zip(latency["bucket_upper"], latency["bucket_count"], strict=True)
            for _ in range(count)
        ],
        link_times_ns=link[0],
        link_busy_ns=link[1],
        down_bytes=down[0],
        down_dropped=down[1],
        up_bytes=up_bytes,
        processor_share=result["client"]["cpu_share"] or 0.0,
        stalled_ns=first["stalled_ns"] or 0,
    )
