# SPDX-License-Identifier: MIT
"""What of the simulator was compared with the kernel, and how far it agrees: validated.toml."""

from functools import cache
from importlib import resources
from typing import Any

from ackwise import bounded, plans
from ackwise.plans import Link
from ackwise.plans.policy import PolicyChoice

# Goodput further from the kernel's is a deviation of the model, not of the random numbers.
AGREES_PERCENT = 10


@cache
def compared() -> list[dict[str, Any]]:
    """Each link, workload and policy that ran on both: pairs of (simulator, lab)."""
    data = (resources.files("ackwise.results") / "validated.toml").read_bytes()
    found: list[dict[str, Any]] = bounded.parse_toml(data)["compared"]
    return found


def change_percent(pair: list[float]) -> float:
    """How far the simulator is above the lab."""
    simulator, lab = pair
    return 100 * (simulator - lab) / lab


@cache
def _shipped(name: str) -> Link:
    return plans.load_link(name)


def is_validated(link: Link, chosen: PolicyChoice) -> bool:
    """The policy was compared with the kernel on this link, and every workload's goodput agreed."""
    found = [
        one
        for one in compared()
        if (one["link"], one["policy"]) == (link.name, chosen.label)
        and _shipped(link.name).scenario == link.scenario  # not a file of that name
    ]
    return bool(found) and all(
        abs(change_percent(one["goodput_mbps"])) <= AGREES_PERCENT for one in found
    )
