# SPDX-License-Identifier: MIT
"""The report page of a plan in both worlds: figures, and both time sequences superimposed."""

from collections.abc import Sequence

from ackwise import engine
from ackwise.results import provenance
from ackwise.results.report.page import Drawn, asset, dumped, page
from ackwise_experiments.twin import table
from ackwise_experiments.twin.entries import CellEntry, Document
from ackwise_experiments.twin.run import FlowPair, Twin
from ackwise_experiments.twin.wire import Flow, Packet

# Maximum size of the data: browsers get slow beyond it, so packets far from a divergence are
# thinned.
DATA_BYTES_MAX = 9_000_000
_NEAR_PACKETS = 40  # packets of each world before and after the first divergence


def of_twin(twin: Twin, document: Document, command: str) -> bytes:
    """The page for a document of `ackwise twin`."""
    cells = [(shown, cell) for shown, cells in twin.tables() for cell in cells]
    texts = [
        [_text(cell, document["tolerance_ns"]) for cell in shown["cells"]]
        for shown in document["tables"]
    ]
    fixed = {
        "document": document,
        "command": command,
        "origins": {name: provenance.line(document["worlds"][name]) for name in table.WORLDS},
        "texts": [text for shown in texts for text in shown],
        "reasons": engine.reasons(),
    }
    most = 4000
    while True:
        drawn = [_drawn(cell.pair, most) for _, cell in cells]
        data = dumped({**fixed, "drawn": drawn})
        if len(data) <= DATA_BYTES_MAX or most < 100:
            title = f"ackwise twin: {twin.plan.title}"
            return page(title, data, asset("twin.js", "ackwise_experiments.twin"))
        most //= 2


def _text(cell: CellEntry, tolerance_ns: int) -> Drawn:
    """Text and figures of a cell, as on the terminal."""
    rows = []
    for title, unit, figure in table.rows_of(cell):
        name, texts = table.figures(unit, figure)
        rows.append(
            [
                title,
                name,
                *texts,
                table.percent(figure["difference_percent"]),
                table.percent(figure["again_percent"]),
            ]
        )
    return {"rows": rows, "story": list(table.story(cell, cell["policy"], tolerance_ns))}


def _drawn(pair: FlowPair | None, most: int) -> Drawn | None:
    if pair is None:
        return None
    worlds = {"simulator": pair.simulator, "linux": pair.linux}
    first_ns = pair.divergences[0].time_ns if pair.divergences else 0
    return {
        "divergences": [{"us": one.time_ns / 1000, "how": one.how} for one in pair.divergences],
        "whole": {name: _packets(_thin(flow.packets, most)) for name, flow in worlds.items()},
        "near": {name: _packets(_near(flow, first_ns)) for name, flow in worlds.items()},
        "cwnd": {
            name: {"us": [t / 1000 for t, _ in flow.cwnd], "bytes": [size for _, size in flow.cwnd]}
            for name, flow in worlds.items()
        },
    }


def _near(flow: Flow, at_ns: int) -> Sequence[Packet]:
    at = sum(p.time_ns < at_ns for p in flow.packets)
    return flow.packets[max(0, at - _NEAR_PACKETS) : at + _NEAR_PACKETS]


def _thin(packets: Sequence[Packet], most: int) -> list[Packet]:
    """Thins packets to about `most`, keeping all that were lost or retransmitted: these are few,
    and matter."""
    step = -(-len(packets) // most)
    return [p for n, p in enumerate(packets) if n % step == 0 or p.again or p.lost]


def _packets(packets: Sequence[Packet]) -> Drawn:
    data = [p for p in packets if p.by_sender and p.payload_bytes]
    acks = [p for p in packets if not p.by_sender]
    return {
        "data_us": [p.time_ns / 1000 for p in data],
        "data_end": [p.seq + p.payload_bytes for p in data],
        "again": [n for n, p in enumerate(data) if p.again],
        "data_lost": [n for n, p in enumerate(data) if p.lost],
        "ack_us": [p.time_ns / 1000 for p in acks],
        "ack": [p.ack for p in acks],
        "reason": [p.reason for p in acks],
        "ack_lost": [n for n, p in enumerate(acks) if p.lost],
    }
