# SPDX-License-Identifier: MIT
"""What the hosts of the lab are, for a simulator that is set beside it."""

from dataclasses import replace

from ackwise.engine.scenario import Channel, FlowGroup, Receiver, Scenario

# Linux lets no ACK wait longer than the least RTO less a tick. [D-17]
ACK_DELAY_MAX_NS = 190_000_000


def like_the_lab(scenario: Scenario) -> Scenario:
    """A scenario whose receivers delay ACKs no longer than the lab's, unless it says how long, and
    whose links have rates of whole bytes a second, as `tc` has, and the times of its clock."""
    access = scenario.access
    return replace(
        scenario,
        groups=tuple(map(_limited, scenario.groups)),
        down=_timed(scenario.down),
        up=_timed(scenario.up),
        access=access and replace(access, rate_bps=_of_tc(access.rate_bps)),
    )


def _limited(group: FlowGroup) -> FlowGroup:
    if group.receiver.ack_delay_max_ns != Receiver().ack_delay_max_ns:
        return group
    return replace(group, receiver=replace(group.receiver, ack_delay_max_ns=ACK_DELAY_MAX_NS))


def _timed(pipe: Channel) -> Channel:
    return replace(pipe, rate_bps=_of_tc(pipe.rate_bps), lab_clock=True)


def _of_tc(rate_bps: int) -> int:
    return max(8, rate_bps // 8 * 8)
