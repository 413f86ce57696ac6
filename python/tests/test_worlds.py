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
GOODPUT_BY = 0.2  # set before the first measurement


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


def goodput_bps(comparison: Comparison) -> float:
    (table,) = comparison.tables
    (cell,) = table.cells
    found = cell.estimates["goodput_bps"]
    assert found is not None
    return found.mean


def test_a3_gets_the_goodput_that_it_has_on_the_kernel() -> None:
    kernel = lab_kernel(stock=False)
    made = plan("wan-10ms", "bulk", "a3", 5000)
    on_kernel = goodput_bps(lab_compare.run(made, kernel))
    assert goodput_bps(compare.run(made)) == pytest.approx(on_kernel, rel=GOODPUT_BY)
