# SPDX-License-Identifier: MIT
"""The simulator on the losses of the kernel's run: what is left of a difference is the sender's and
the receiver's, not chance's or the queue's."""

from pathlib import Path
from typing import Any

from ackwise.lab.network import CLIENT, SERVER
from ackwise.plans import Plan
from ackwise.results import compare
from ackwise.results.compare import Combination
from ackwise.twin import wire

_OWN = ("loss_ppm", "burst_loss", "outages", "queue_packets", "queue_bytes")  # what loses packets
_SENDERS = {"down": SERVER, "up": CLIENT}  # of each direction's packets


def fed(scenario: dict[str, Any], captures: dict[str, Path]) -> dict[str, Any]:
    """A scenario that loses what the captures of both hosts show as lost, in the queue as on the
    way, and nothing else."""
    lost = wire.losses(captures)
    return scenario | {
        way: {key: value for key, value in scenario[way].items() if key not in _OWN}
        | {"lose": lost[sender]}
        for way, sender in _SENDERS.items()
    }


def lacking(plan: Plan) -> dict[Combination, str]:
    """What of a plan cannot be fed, and why."""
    found = {}
    for job in compare.jobs(plan, False):
        scenario = compare.scenario(job)
        flows = sum(group["count"] for group in scenario["groups"])
        others = {scenario[way].get("discipline", "fifo") for way in _SENDERS} - {"fifo"}
        if flows > 1:
            found[job.combination] = (
                f"workload {job.workload.name}: --same-losses follows one flow, and it has {flows}"
            )
        elif others:
            found[job.combination] = (
                f"link {job.link.name}: --same-losses replaces what a fifo drops, and "
                f"{', '.join(sorted(others))} chooses"
            )
    return found
