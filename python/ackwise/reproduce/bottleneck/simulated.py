# SPDX-License-Identifier: MIT
"""A case in the simulator, whose own state is the account."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from ackwise import engine
from ackwise.reproduce.bottleneck import ran
from ackwise.reproduce.bottleneck.account import Account
from ackwise.reproduce.bottleneck.scenario import ACK_BYTES

ROLES = {"down": ("server", "client"), "up": ("client", "server")}  # sender, receiver


def _empty_ns(scenario: Mapping[str, Any], way: str) -> int:
    """How long an empty segment takes on an empty path."""
    channel, access = scenario[way], scenario["access"]
    times = [ACK_BYTES * 8 * 10**9 // hop["rate_bps"] for hop in (channel, access, access)]
    return int(sum(times) + channel["delay_ns"] + 2 * access["delay_ns"])


def _busy(series: Mapping[str, Sequence[int]], interval_ns: int) -> Sequence[int]:
    """How long packets had waited by each point: meanwhile the link was busy."""
    waits = (acks + data > 0 for acks, data in zip(series["acks"], series["data"], strict=True))
    return list(accumulate(interval_ns * waiting for waiting in waits))


def run(scenario: Mapping[str, Any]) -> tuple[Account, dict[str, bytes]]:
    """The account of a run, and its captures by the name of their file."""
    captured = engine.simulate_captured(dict(scenario))
    result = captured.result
    direction = scenario["groups"][0]["direction"]
    down_ns, up_ns = (_empty_ns(scenario, way) for way in ("down", "up"))
    # as the engine places the handshake that it does not simulate
    handshake_ns = down_ns + up_ns + (0 if direction == "up" else up_ns)
    account = ran.account(
        scenario,
        result,
        start_ns=captured.start_ns,
        handshake_ns=handshake_ns,
        chronographs=(),
        link=(
            result[direction]["series"]["time_ns"],
            _busy(result[direction]["series"], scenario["series_interval_ns"]),
        ),
        down=(result["down"]["bytes"], result["down"]["dropped_queue"]),
        up_bytes=result["up"]["bytes"],
    )
    sender, receiver = ROLES[direction]
    return account, {
        "sender": getattr(captured, sender),
        "receiver": getattr(captured, receiver),
        "router": captured.router,
    }
