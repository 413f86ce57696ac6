# SPDX-License-Identifier: MIT
"""Scenarios of one judged transfer: a path, a sender, a receiver and what the applications do."""

from collections.abc import Mapping, Sequence
from typing import Any

from ackwise.engine import typed
from ackwise.plans import policy
from ackwise_experiments.bottleneck.account import SECOND

MTU_BYTES = 1500
MSS_BYTES = 1448  # with timestamps
ACK_BYTES = 52
KIB = 1024
MS = 10**6
PAYLOAD_SHARE = MSS_BYTES / MTU_BYTES
LINUX, SIMULATOR, HOST = "linux", "simulator", "host"
# Of the round trip, by each of the four crossings of an access link: the simulator shows a router
# only between an access link and the shared one.
ACCESS_SHARE = 1 / 16
ACCESS_BPS = 10**11
POINTS = 4000  # at which a run is sampled

Keys = Mapping[str, Any]


def bdp_packets(rate_bps: float, rtt_ms: float) -> float:
    """Packets that the path holds without its queue."""
    return rate_bps * rtt_ms / 1000 / 8 / MTU_BYTES


def way(rate_bps: float, rtt_ms: float, queue_packets: float, **keys: Any) -> dict[str, Any]:
    """One direction of the link, with half of the round trip."""
    return {
        "rate_bps": round(rate_bps),
        "delay_ns": round(rtt_ms * MS / 2),
        "queue_packets": max(1, round(queue_packets)),
        **keys,
    }


def group(app: Keys, sender: Keys | None = None, receiver: Keys | None = None, **keys: Any) -> Any:
    """One connection with stock ACKs."""
    return {
        "name": "transfer",
        "count": 1,
        "direction": "down",
        "policy": typed.document(policy.parse("linux", "bottleneck").for_engine()),
        "sender": dict(sender or {}),
        "receiver": dict(receiver or {}),
        "app": dict(app),
        **keys,
    }


def build(
    world: str, seconds: float, down: Keys, up: Keys, groups: Sequence[Any], **keys: Any
) -> dict[str, Any]:
    """The engine's scenario; the first group is judged."""
    made = {
        "duration_ns": round(seconds * SECOND),
        "mtu_bytes": MTU_BYTES,
        "down": dict(down),
        "up": dict(up),
        "groups": list(groups),
        **keys,
    }
    if world == SIMULATOR:
        made["series_interval_ns"] = max(1, made["duration_ns"] // POINTS)
        rtt_ns = made["down"]["delay_ns"] + made["up"]["delay_ns"]
        each_ns = round(rtt_ns * ACCESS_SHARE)
        made["access"] = {"rate_bps": ACCESS_BPS, "delay_ns": each_ns}
        for one in ("down", "up"):
            made[one]["delay_ns"] -= 2 * each_ns
    return made


def rtt_ns(scenario: Keys) -> int:
    """RTT of the empty path, without transmission times."""
    access = 4 * scenario["access"]["delay_ns"] if "access" in scenario else 0
    return int(scenario["down"]["delay_ns"] + scenario["up"]["delay_ns"] + access)


def payload_bps(scenario: Keys) -> float:
    """What the link carries of full segments' payload towards the judged receiver."""
    return float(scenario[scenario["groups"][0]["direction"]]["rate_bps"]) * PAYLOAD_SHARE
