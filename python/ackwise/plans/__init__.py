# SPDX-License-Identifier: MIT
"""Links, workloads and plans: TOML files, their keys, and the scenarios made from them."""

from ackwise.plans.load import (
    load_link,
    load_plan,
    load_workload,
    read_link,
    read_workload,
    shipped,
    shipped_dir,
    titles,
)
from ackwise.plans.scenario import (
    Flows,
    Link,
    Plan,
    Workload,
    build,
    check_work,
    packets_estimate,
    scenario_of,
    start_jitter_ns,
    with_duration,
)

__all__ = [
    "Flows",
    "Link",
    "Plan",
    "Workload",
    "build",
    "check_work",
    "load_link",
    "load_plan",
    "load_workload",
    "packets_estimate",
    "read_link",
    "read_workload",
    "scenario_of",
    "shipped",
    "shipped_dir",
    "start_jitter_ns",
    "titles",
    "with_duration",
]
