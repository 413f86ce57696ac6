# SPDX-License-Identifier: MIT
"""The simulator with the losses of the kernel's run: any remaining difference is due to the sender
and the receiver, not to chance or the queue."""

from dataclasses import replace

from ackwise.engine.both_ends import RunCaptures
from ackwise.engine.scenario import Channel, Lose, Scenario
from ackwise.plans import Plan
from ackwise.results import compare
from ackwise.results.compare import Combination


def fed(scenario: Scenario, captures: RunCaptures) -> Scenario:
    """The scenario with the losses that the captures of both hosts show, in the queue or on the
    path, and no others."""
    client, server = captures.losses()

    def losing(pipe: Channel, lost: list[Lose]) -> Channel:
        return replace(
            pipe,
            loss_ppm=0,
            burst_loss=None,
            outages=(),
            queue_packets=0,
            queue_bytes=0,
            lose=tuple(lost),
        )

    return replace(
        scenario,
        down=losing(scenario.down, server),
        up=losing(scenario.up, client),
    )


def lacking(plan: Plan) -> dict[Combination, str]:
    """Combinations of a plan that do not support this, and why."""
    found = {}
    for job in compare.jobs(plan, False):
        scenario = compare.scenario(job)
        flows = sum(group.count for group in scenario.groups)
        others = {scenario.down.discipline, scenario.up.discipline} - {"fifo"}
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
