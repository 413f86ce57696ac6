# SPDX-License-Identifier: MIT
"""The report page of a capture's replay."""

from ackwise import engine
from ackwise.engine.replayed import AckTrace
from ackwise.replays import CAPTURED, DIRECTIONS_SHOWN, Replay
from ackwise.replays.table import LIMITS
from ackwise.results import provenance
from ackwise.results.report.page import Drawn, asset, dumped, page


def _acks(trace: AckTrace | None, start_ns: int) -> Drawn | None:
    """The first ACKs individually, and the rate of all ACKs by reason."""
    if not trace or not trace["first"]:
        return None
    first = trace["first"]
    return {
        "step_us": trace["part_ns"] / 1000,
        "rate": dict(trace["counts"]),
        "t_us": [(p["time_ns"] - start_ns) / 1000 for p in first],
        "ack": [p["ack"] for p in first],
        "reason": [p["reason"] for p in first],
    }


def of_replay(replayed: Replay, command: str) -> bytes:
    """The report page; the plots show the directions with the most data."""
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
            [_acks(trace, one["start_ns"]) for trace in traces]
            for one, traces in zip(shown, replayed.traces, strict=False)
        ],
    }
    return page(
        f"ackwise: {document['capture']}", dumped(data), asset("capture.js", "ackwise.replays")
    )
