# SPDX-License-Identifier: MIT
"""The gateway's experiment in the lab: what is run, and what is read from a run."""

from dataclasses import replace
from typing import Any

import pytest

from ackwise_experiments.separation import access, lab_runs
from ackwise_experiments.separation.access import APART, HEAD_DROP, HOME, THINNED, AccessLine
from ackwise_experiments.separation.lab_runs import PAPER_HOSTS, TODAY, GatewayJob
from ackwise_experiments.separation.paper import BOTH, DOWN, FIFO, UP

_S = 10**9


def _result(speeds_kbps: dict[str, float], line: AccessLine, first_sample: int) -> dict[str, Any]:
    """A result of the lab: nothing before the line has settled, then these speeds, in a hundred
    samples, of which the last is missing and the first come late."""
    step = line.duration_ns // 100
    times = [step * i for i in range(first_sample, 100)]

    def delivered(kbps: float, at: int) -> float:
        since = max(at - step, line.settled_ns)
        return max(0, at - since) * kbps / 8e-3 / _S

    def group(name: str) -> dict[str, Any]:
        counts = [delivered(speeds_kbps[name], at) for at in times]
        return {
            "name": name,
            "flows": [{"series": {"time_ns": times, "delivered_bytes": counts}}],
            "rtt_ns": {"p99": 0.0},
            "timeouts": 0,
            "retransmitted_segments": 0,
        }

    path = {"data_bytes": 0}
    return {"groups": [group(n) for n in BOTH], "ack_paths": [path, path], "ping": {}}


@pytest.mark.parametrize("seconds", [360, 300, 70])
def test_a_speed_is_that_of_the_settled_part(seconds: int) -> None:
    # a third of the run: between two samples
    line = replace(HOME, duration_ns=seconds * _S, settled_ns=seconds * _S // 3)
    speeds = {UP: 700.0, DOWN: 1900.0}
    job = GatewayJob(line, PAPER_HOSTS, FIFO, BOTH)
    run = lab_runs.settled_run(job, _result(speeds, line, 3))
    assert (run.up, run.down) == pytest.approx((700.0, 1900.0))


def test_hosts_of_the_source_wait_for_three_duplicate_acks() -> None:
    for hosts, there in ((PAPER_HOSTS, True), (TODAY, False), (lab_runs.UNSACKED, False)):
        made = lab_runs.scenario(GatewayJob(HOME, hosts, FIFO, BOTH), 1)
        assert ("tcp_max_reordering" in made["extras"]["sysctls"]) == there
    assert PAPER_HOSTS.sysctls["tcp_max_reordering"] == 3


def test_whatever_a_check_rests_on_is_run_again() -> None:
    jobs = lab_runs.jobs()
    for hosts in (PAPER_HOSTS, TODAY):
        for queue, flows in (
            (FIFO, (UP,)),
            (FIFO, (DOWN,)),
            (FIFO, BOTH),
            (APART, BOTH),
            (THINNED, BOTH),
        ):
            assert jobs[GatewayJob(HOME, hosts, queue, flows)] >= 5
    for line in (*map(access.narrow, lab_runs.EXTREME), lab_runs.SATELLITE):
        for queue in (THINNED, HEAD_DROP):
            assert jobs[GatewayJob(line, TODAY, queue, BOTH)] >= 3
    assert jobs[GatewayJob(access.narrow(100.0), lab_runs.FLOOD, APART, BOTH)] >= 3
