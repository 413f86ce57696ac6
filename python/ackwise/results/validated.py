# SPDX-License-Identifier: MIT
"""What of the simulator was compared with the kernel, and how far it agrees: unmodified Linux in
validated.toml, every policy in worlds.csv."""

from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from typing import Any

from ackwise import bounded, plans
from ackwise.plans import Link
from ackwise.plans.policy import PolicyChoice
from ackwise.results import agreement

# Goodput further from the kernel's is a deviation of the model, not of the random numbers.
AGREES_PERCENT = 10


@cache
def compared() -> list[dict[str, Any]]:
    """Each link, workload and policy that ran on both: pairs of (simulator, lab)."""
    data = (resources.files("ackwise.results") / "validated.toml").read_bytes()
    found: list[dict[str, Any]] = bounded.parse_toml(data)["compared"]
    return found


def change_percent(pair: Sequence[float]) -> float:
    """How far the simulator is above the lab."""
    simulator, lab = pair
    return 100 * (simulator - lab) / lab


@cache
def _shipped(name: str) -> Link:
    return plans.load_link(name)


def _goodputs(link: str, policy: str) -> Iterator[Sequence[float]]:
    """Pairs of (simulator, lab), one for each workload and kernel."""
    for one in compared():
        if (one["link"], one["policy"]) == (link, policy):
            yield one["goodput_mbps"]
    for table in agreement.shipped():
        for row in table.goodputs:
            if (row.link, row.policy) == (link, policy):
                yield row.simulator_bps, row.lab_bps


def is_validated(link: Link, chosen: PolicyChoice) -> bool:
    """The policy was compared with the kernel on this link, and every workload's goodput agreed."""
    found = [abs(change_percent(pair)) for pair in _goodputs(link.name, chosen.label)]
    return (
        bool(found)
        and max(found) <= AGREES_PERCENT
        and _shipped(link.name).scenario == link.scenario  # not a file of that name
    )
