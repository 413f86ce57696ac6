# SPDX-License-Identifier: MIT
"""The simulator beside the kernel: the same plan gives nearly the same figures in both.

Needs a kernel that `ackwise lab build` made; ACKWISE_LAB_BUILD=1 lets the tests build it.
"""

from dataclasses import replace

import pytest
from conftest import lab_kernel

from ackwise import engine, plans
from ackwise.engine.scenario import Scenario
from ackwise.lab import compare as lab_compare
from ackwise.lab import run as lab_run
from ackwise.lab.measure import LabResult
from ackwise.plans import Plan, policy
from ackwise.results import compare
from ackwise.results.compare import Comparison

pytestmark = [pytest.mark.lab, pytest.mark.slow]

MS = 10**6
# Set before the first measurement.
GOODPUT_BY = 0.2
PING_BY = 0.2
SLOW_START_BY = 0.25
MSS = 1448


def plan(link: str, workload: str, chosen: str, duration_ms: int) -> Plan:
    """One run, as `ackwise compare --link --workload --policy --runs 1` makes it."""
    made = plans.build(
        title="test",
        source="test",
        file="",
        links=[plans.load_link(link)],
        workloads=[plans.load_workload(workload)],
        policies=[policy.parse(chosen, "test")],
        baseline=chosen,
        runs=1,
        seed=1,
        where="test",
    )
    return plans.with_duration(made, duration_ms * MS)


def means(comparison: Comparison, metric: str) -> list[float]:
    """The metric's mean, one for each group of flows."""
    (table,) = comparison.tables
    found = [cell.estimates[metric] for cell in table.cells]
    return [e.mean for e in found if e is not None]


def test_a3_gets_the_goodput_that_it_has_on_the_kernel() -> None:
    """Orders are clamped in both worlds. [D-26]"""
    kernel = lab_kernel(stock=False)
    made = plan("wan-10ms", "bulk", "a3", 5000)
    (on_kernel,) = means(lab_compare.run(made, kernel), "goodput_bps")
    assert means(compare.run(made), "goodput_bps") == pytest.approx([on_kernel], rel=GOODPUT_BY)


@pytest.mark.parametrize(("workload", "groups"), [("ping-under-load", 1), ("rrul", 2)])
def test_pings_wait_as_long_under_load_as_on_the_kernel(workload: str, groups: int) -> None:
    kernel = lab_kernel(stock=False)
    made = plan("lan-10m", workload, "linux", 10_000)
    on_kernel, here = lab_compare.run(made, kernel), compare.run(made)
    waited = means(on_kernel, "ping_rtt_p50_ns")
    assert len(waited) == len(means(here, "pings_lost")) == groups
    assert waited[0] > 20 * MS  # 1 ms without load
    assert means(here, "ping_rtt_p50_ns") == pytest.approx(waited, rel=PING_BY)


def slow_start_ends_here(given: Scenario) -> float:
    """The first window, in segments, at which slow start ends in the simulator."""
    (group,) = engine.simulate(replace(given, series_interval_ns=10 * MS)).groups
    series = group.flows[0].series
    assert series is not None
    return next(n for n in series.ssthresh_bytes if n) / MSS


def slow_start_ends_on_the_kernel(result: LabResult) -> float:
    """End of slow start on the kernel, which counts windows at which HyStart ends it."""
    counted = result.counters["server"]
    ends = [
        (counted[f"TcpExtTCPHystart{sign}Detect"], counted[f"TcpExtTCPHystart{sign}Cwnd"])
        for sign in ("Train", "Delay")
        if counted.get(f"TcpExtTCPHystart{sign}Detect")
    ]
    ((times, segments),) = ends
    assert times == 1
    return segments


@pytest.mark.parametrize(
    ("link", "duration_ms"),
    [("adsl", 4000), ("lan-10m", 2000), ("lan-100m", 1000), ("wan-100ms", 2000),
     ("satellite-narrow-return", 10_000)],
)  # fmt: skip
def test_slow_start_ends_at_the_window_at_which_it_ends_on_the_kernel(
    link: str, duration_ms: int
) -> None:
    given = plans.scenario_of(
        plans.load_link(link),
        replace(plans.load_workload("bulk"), duration_ns=duration_ms * MS),
        policy.parse("linux", "test"),
        1,
    )
    on_kernel = lab_run.simulate(given, link, "bulk", lab_kernel(stock=True))
    assert slow_start_ends_here(given) == pytest.approx(
        slow_start_ends_on_the_kernel(on_kernel), rel=SLOW_START_BY
    )
