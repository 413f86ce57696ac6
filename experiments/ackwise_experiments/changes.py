# SPDX-License-Identifier: MIT
"""Changes of a scenario: what a source leaves open, and what should make no difference."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

Scenario = dict[str, Any]
Change = Callable[[Scenario], None]

WAYS = ("down", "up", "access")
ENDS = ("client", "server")
BUFFERS = ("max_window_segments", "send_buffer_bytes", "recv_buffer_bytes", "recv_buffer_max_bytes")
ACK_COSTS = ("ack_sent_ns", "ack_received_ns")


def scaled(tables: Sequence[dict[str, Any]], keys: Sequence[str], factor: float) -> None:
    """Multiplies those of the keys that are set; a table that stands twice, as a path that is the
    same both ways may, is multiplied once."""
    for one in {id(one): one for one in tables}.values():
        for key in keys:
            if one.get(key):
                one[key] = max(1, round(one[key] * factor))


def _ways(made: Scenario) -> list[dict[str, Any]]:
    return [made[way] for way in WAYS if way in made]


def _ends(made: Scenario) -> list[dict[str, Any]]:
    return [made[end] for end in ENDS if end in made]


def unchanged(_made: Scenario) -> None:
    """The scenario of the experiment."""


def queues(factor: float) -> Change:
    """Scales the queues of the link."""
    return lambda made: scaled(_ways(made), ("queue_packets", "queue_bytes"), factor)


def delays(factor: float) -> Change:
    """Scales the delays of the link and its access links."""
    return lambda made: scaled(_ways(made), ("delay_ns",), factor)


def rates(factor: float) -> Change:
    """Scales the rates of the link and its access links."""
    return lambda made: scaled(_ways(made), ("rate_bps",), factor)


def windows(factor: float) -> Change:
    """Buffers of hosts and sockets, and windows that are set."""

    def change(made: Scenario) -> None:
        sockets = [
            group[end] for group in made["groups"] for end in ("sender", "receiver") if end in group
        ]
        scaled([*_ends(made), *sockets], BUFFERS, factor)

    return change


def clocks(factor: float) -> Change:
    """The period of a 4.3BSD receiver's clock."""
    return lambda made: scaled(
        [group["policy"]["params"] for group in made["groups"]], ("heartbeat_ms",), factor
    )


def copying(factor: float) -> Change:
    """The rate at which a writer copies into its send buffer."""
    return lambda made: scaled([g["sender"] for g in made["groups"]], ("copy_bps",), factor)


def ack_costs(factor: float) -> Change:
    """What an ACK costs the processors."""
    return lambda made: scaled(_ends(made), ACK_COSTS, factor)


def other_seed(made: Scenario) -> None:
    """Other random numbers."""
    made["seed"] += 1_000_003


def twice_as_long(made: Scenario) -> None:
    """Doubles the duration."""
    made["duration_ns"] *= 2


def half_as_long(made: Scenario) -> None:
    """Halves the duration."""
    made["duration_ns"] //= 2


def twice_the_bytes(made: Scenario) -> None:
    """Doubles the bytes of transfers that end with their last byte, and the duration."""
    twice_as_long(made)
    scaled([g["app"] for g in made["groups"] if g["app"]["kind"] == "bulk"], ("bytes",), 2)


def by_a_fifth(what: str, change: Callable[[float], Change]) -> dict[str, Change]:
    """Both ways, by name."""
    return {f"{what} -20%": change(0.8), f"{what} +20%": change(1.2)}


def changed(made: Scenario, change: Change) -> Scenario:
    """A changed copy."""
    other = copy.deepcopy(made)
    change(other)
    return other
