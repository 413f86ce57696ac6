# SPDX-License-Identifier: MIT
"""The page of a capture."""

from typing import Any

from ackwise import engine
from ackwise.replay import CAPTURED, Replay
from ackwise.replay.table import DIRECTIONS_SHOWN, LIMITS
from ackwise.results import provenance
from ackwise.results.report.page import asset, dumped, page

TRACE_POINTS = 2500
RATE_POINTS = 100


def _acks(trace: list[dict[str, Any]] | None, start_ns: int, end_ns: int) -> dict[str, Any] | None:
    """The first ACKs one by one, and the rate of all ACKs by reason."""
    if not trace:
        return None
    step = max(1, -(-(end_ns - start_ns) // RATE_POINTS))
    rate: dict[str, list[int]] = {}
    for point in trace:
        counts = rate.setdefault(point["reason"], [0] * RATE_POINTS)
        place = (max(point["time_ns"], start_ns) - start_ns) // step
        counts[min(place, RATE_POINTS - 1)] += 1
    first = trace[:TRACE_POINTS]
    return {
        "step_us": step / 1000,
        "rate": rate,
        "t_us": [(p["time_ns"] - start_ns) / 1000 for p in first],
        "ack": [p["ack"] for p in first],
        "reason": [p["reason"] for p in first],
    }


def of_replay(replayed: Replay, command: str) -> bytes:
    """The page of a capture; the plots show the directions with most data."""
    document = replayed.document
    shown = document["directions"][:DIRECTIONS_SHOWN]
    data = {
        "document": {**document, "directions": shown},
        "more": len(document["directions"]) - len(shown),
        "command": command,
        "origin": provenance.line(document["provenance"]),
        "limits": LIMITS,
        "reasons": engine.reasons(),
        "captured": CAPTURED,
        "details": [
            [_acks(trace, one["start_ns"], one["end_ns"]) for trace in traces]
            for one, traces in zip(shown, replayed.traces, strict=False)
        ],
    }
    return page(
        f"ackwise: {document['capture']}", dumped(data), asset("capture.js", "ackwise.replay")
    )
