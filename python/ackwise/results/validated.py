# SPDX-License-Identifier: MIT
"""Parts of the simulator that were compared with the kernel, and how far they agree."""

from collections.abc import Iterator
from functools import cache

from ackwise import plans
from ackwise.plans import Link
from ackwise.plans.policy import PolicyChoice
from ackwise.results import agreement

# A larger difference in goodput is a deviation of the model, not of the random numbers.
AGREES_PERCENT = 10


@cache
def _shipped(name: str) -> Link:
    return plans.load_link(name)


def _differences_percent(link: str, policy: str) -> Iterator[float]:
    """Difference of the simulator's goodput from the kernel's in percent, for each workload."""
    for table in agreement.shipped():
        for row in table.goodputs:
            if (row.link, row.policy) == (link, policy):
                yield 100 * (row.simulator_bps - row.lab_bps) / row.lab_bps


def is_validated(link: Link, chosen: PolicyChoice) -> bool:
    """Whether the policy was compared with the kernel on this link, and goodput agreed for every
    workload."""
    found = [abs(one) for one in _differences_percent(link.name, chosen.label)]
    return (
        bool(found)
        and max(found) <= AGREES_PERCENT
        and _shipped(link.name).scenario == link.scenario  # not merely a file of that name
    )
