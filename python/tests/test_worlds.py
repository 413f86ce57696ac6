# SPDX-License-Identifier: MIT
"""The simulator beside the kernel: the same plan gives nearly the same figures in both.

Needs a kernel that `ackwise lab build` made; ACKWISE_LAB_BUILD=1 lets the tests build it.
"""

import pytest
from conftest import lab_kernel

from ackwise import plans
from ackwise.lab import compare as lab_compare
from ackwise.plans import Plan, policy
from ackwise.results import compare
from ackwise.results.compare import Comparison

pytestmark = [pytest.mark.lab, pytest.mark.slow]

MS = 10**6
# Set before the first measurement.
GOODPUT_BY = 0.2
PING_BY = 0.2


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
    """Rail FLIGHT is in force in both worlds. [D-26]"""
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
