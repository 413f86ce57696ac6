# SPDX-License-Identifier: MIT
"""A case in the simulator, whose own state is the account."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from ackwise.engine import typed
from ackwise_experiments import documents
from ackwise_experiments.bottleneck import from_result
from ackwise_experiments.bottleneck.account import Account
from ackwise_experiments.bottleneck.scenario import payload_bps

ROLES = {"down": ("server", "client"), "up": ("client", "server")}  # sender, receiver


def _busy(
    scenario: Mapping[str, Any], queue: Mapping[str, Sequence[int]], delivered: Sequence[int]
) -> Sequence[int]:
    """How long the link had been busy by each point: all of an interval at whose end something
    waits, else as long as what was delivered took."""
    interval_ns = scenario["series_interval_ns"]
    bps = payload_bps(scenario)
    waits = (acks + data for acks, data in zip(queue["acks"], queue["data"], strict=True))
    return list(
        accumulate(
            interval_ns if waiting else min(interval_ns, round(read * 8e9 / bps))
            for waiting, read in zip(waits, delivered, strict=True)
        )
    )


def run(scenario: Mapping[str, Any]) -> tuple[Account, dict[str, bytes]]:
    """The account of a run, and its captures by the name of their file."""
    captured = documents.captured(dict(scenario))
    result = typed.document(captured.result)
    direction = scenario["groups"][0]["direction"]
    (first, *_) = result["groups"][0]["flows"]
    series = result[direction]["series"]
    account = from_result.account(
        scenario,
        result,
        start_ns=captured.start_ns,
        chronographs=(),
        link=(
            series["time_ns"],
            _busy(scenario, series, first["series"]["delivered_bytes"]),
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
