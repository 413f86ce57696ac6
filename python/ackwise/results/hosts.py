# SPDX-License-Identifier: MIT
"""Properties of the lab's hosts, for a simulator whose results are compared with the lab's."""

from dataclasses import replace

from ackwise.engine.scenario import Channel, FlowGroup, Receiver, Scenario

# Linux delays no ACK beyond the minimum RTO minus a tick. [D-17]
ACK_DELAY_MAX_NS = 190_000_000


def like_the_lab(scenario: Scenario) -> Scenario:
    """A scenario whose receivers limit ACK delays like the lab's, unless it sets the limit, and
    whose links have rates in whole bytes per second, as in `tc`, and the lab's clock."""
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
