# SPDX-License-Identifier: MIT
"""Fewer ACKs on the real kernel: how runs are read, one ACK for N segments, and no collapse. The
guests need the kernel of `ackwise lab build`."""

from dataclasses import replace
from statistics import NormalDist

import pytest
from conftest import lab_kernel

from ackwise import plans
from ackwise.lab.machine import Kernel
from ackwise.plans import Link
from ackwise_experiments import documents
from ackwise_experiments.ratelimit import lab as linux_ratelimit
from ackwise_experiments.ratelimit import lab_runs
from ackwise_experiments.ratelimit.lab_runs import SEGMENT_BYTES, STOCK, KernelRun


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return lab_kernel(stock=False)


def test_the_second_half_of_a_run_tells_its_segments_for_each_ack() -> None:
    series = {
        "time_ns": [1, 2, 3, 4],
        "delivered_bytes": [9 * SEGMENT_BYTES] * 4,
        "acks": [9, 9, 3, 3],
    }
    group = {
        "goodput_bps": 2e6,
        "acks_sent": 24,
        "segments_per_ack": 1.5,
        "message_latency_ns": {"p99": 3e6},
        "flows": [{"series": series}],
    }
    found = lab_runs.kernel_run({"groups": [group], "duration_ns": 4})
    assert found == KernelRun(2.0, 24, 1.5, 3.0, 3.0)
    group["flows"] = [{}]
    assert lab_runs.kernel_run({"groups": [group], "duration_ns": 4}).late_segments_per_ack is None


def test_a_deep_link_differs_in_queue_and_faults_alone() -> None:
    shipped, deep = plans.load_link("wan-10ms"), lab_runs.deep("wan-10ms", loss_ppm=100)
    assert deep.scenario.down == replace(
        shipped.scenario.down, queue_packets=lab_runs.DEEP_QUEUE, loss_ppm=100
    )
    assert deep.scenario.up.loss_ppm == 0
    assert shipped.scenario.down.queue_packets == 50


def test_a_loss_counts_by_the_pair_and_both_ends_of_its_interval_are_known() -> None:
    # differences of 0, -2 and -4 percent of the mean, 100: -2 +- 4.303 * 2 / sqrt(3)
    found = linux_ratelimit.share_kept([50, 98, 146], [50, 100, 150])
    assert found is not None
    assert found.mean == pytest.approx(0.98)
    assert found.low == pytest.approx(0.98 - 0.04303 * 2 / 3**0.5)
    assert found.high == pytest.approx(0.98 + 0.04303 * 2 / 3**0.5)
    assert linux_ratelimit.share_kept([1, 1], [0, 0]) is None


def test_enough_runs_show_that_a_policy_keeps_what_stock_has() -> None:
    """The spread of paired runs at a loss of 5%, 4.8%, with as many runs as are planned."""
    _, runs = linux_ratelimit.FAULTS["loss 5%"]
    power = NormalDist().cdf(2 / (4.8 / runs**0.5) - 1.96)
    assert power >= 0.89


def _run(kernel: Kernel, link: Link, spec: str, seconds: float, sender: str) -> KernelRun:
    made = lab_runs.scenario(link, spec, seconds, sender, series=True)
    return lab_runs.kernel_run(documents.in_lab(made, "link x", "workload x", kernel))


@pytest.mark.lab
@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 8, 32])
def test_one_ack_for_n_segments_is_exact_after_the_start(kernel: Kernel, n: int) -> None:
    link = lab_runs.deep("wan-10ms")
    # for up to four seconds the window grows, and TCP itself sends quick ACKs
    found = _run(kernel, link, f"delayed:segments={n}", 8, "cubic")
    assert found.late_segments_per_ack == pytest.approx(n, rel=0.01)


@pytest.mark.lab
@pytest.mark.slow
@pytest.mark.parametrize("sender", ["cubic", "reno"])
def test_no_number_of_segments_brings_a_connection_down(kernel: Kernel, sender: str) -> None:
    link = plans.load_link("wan-10ms")
    stock = _run(kernel, link, STOCK, 3, sender)
    found = _run(kernel, link, "delayed:segments=64", 3, sender)
    assert found.mbit_s > stock.mbit_s / 2
