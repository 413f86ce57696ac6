# SPDX-License-Identifier: MIT
"""Throughput deadlock on the real kernel: how it is told from a capture, a pair that stalls, and
its cure. The guests need the kernel of `ackwise lab build`."""

from itertools import pairwise
from typing import Any

import pytest
from conftest import lab_kernel

from ackwise.lab.machine import Kernel
from ackwise_experiments import documents
from ackwise_experiments.deadlock import ablation, transfers
from ackwise_experiments.deadlock.transfers import (
    A3,
    A3_AS_PUBLISHED,
    CSA3,
    KIB,
    STOCK,
    ObservedTransfer,
    TransferSetup,
)

MS = 10**6
PAIR = TransferSetup(9180, 6 * KIB, 16 * KIB)


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return lab_kernel(stock=False)


def told(times_ms: list[int]) -> ObservedTransfer:
    """Segments of 1000 bytes at these times."""
    trace = {
        "data_time_ns": [t * MS for t in times_ms],
        "data_seq": [1000 * i for i in range(len(times_ms))],
        "data_bytes": [1000] * len(times_ms),
    }
    group: dict[str, Any] = {
        "goodput_bps": 1.0,
        "acks_by_reason": {},
        "acks_sent": 1,
        "segments_received": len(times_ms),
        "flows": [{"trace": trace}],
    }
    return transfers.observed({"groups": [group], "counters": {"client": {"TcpExtDelayedACKs": 3}}})


def test_silence_of_a_sender_that_has_data_is_a_stall() -> None:
    one = told([0, 1, 41, 42, 43, 52, 53, 63, 123, 124])
    assert (one.stalls, one.stalls_late) == (3, 2)
    assert one.repeats
    assert one.timers == 3
    # 5 of 10 segments are out at 43 ms, the others by 124 ms
    assert one.steady_bps == pytest.approx(5 * 8000 / 0.081)


def test_stalls_at_the_start_do_not_repeat() -> None:
    assert not told([0, 40, 80, 120, 121, 122, 123, 124, 125, 165]).repeats


def test_a_stall_is_left_or_caused_by_a_policy() -> None:
    still = told([0, 1, 41, 42, 43, 62, 63, 83, 123, 124])
    brisk = told(list(range(10)))
    left, caused, ended = (TransferSetup(9180, n * KIB, 16 * KIB) for n in (2, 6, 16))
    found = {
        (left, STOCK): still, (left, A3): still,
        (caused, STOCK): brisk, (caused, A3): still,
        (ended, STOCK): still, (ended, A3): brisk,
    }  # fmt: skip
    assert ablation.stalls(found, [left, caused, ended], A3) == ablation.Stalls(1, 1)


def test_a_transfer_s_length_is_all_that_differs() -> None:
    (short,) = ablation.lasting([PAIR], 150)
    long, less = (transfers.transfer(one, STOCK) for one in (PAIR, short))
    assert long["groups"][0]["app"]["bytes"] == 4 * less["groups"][0]["app"]["bytes"]
    for made in (long, less):
        del made["groups"][0]["app"]
    assert long == less


@pytest.mark.lab
@pytest.mark.slow
def test_a_pair_of_buffers_waits_for_the_delayed_ack_and_is_cured(kernel: Kernel) -> None:
    def run(spec: str) -> tuple[ObservedTransfer, dict[str, Any]]:
        result = documents.in_lab(transfers.transfer(PAIR, spec), "link x", "workload x", kernel)
        return transfers.observed(result), result["groups"][0]["flows"][0]["trace"]

    stock, trace = run(STOCK)
    assert stock.repeats
    gaps = [b - a for a, b in pairwise(trace["data_time_ns"]) if b - a > 5 * MS]
    # a timer of 40 ms that counts in ticks of 10 ms
    assert all(40 * MS < gap < 62 * MS for gap in gaps)
    assert len(gaps) == pytest.approx(stock.timers, abs=2)
    for spec in (A3, CSA3, A3_AS_PUBLISHED):
        cured, _ = run(spec)
        assert not cured.repeats, spec
        assert cured.steady_bps > 10 * stock.steady_bps, spec


@pytest.mark.lab
@pytest.mark.slow
def test_an_answer_in_two_writes_waits_unless_the_receiver_learns(kernel: Kernel) -> None:
    def median_ms(spec: str) -> float:
        made = transfers.answer(spec, 0)
        return transfers.answered_ms(documents.in_lab(made, "link x", "workload x", kernel))

    assert median_ms(STOCK) > 40
    assert median_ms(A3) < 3
