# SPDX-License-Identifier: MIT
"""The report page of a diagnosis: transfers by time lost, and graphs of the first ones."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ackwise import __version__
from ackwise.diagnosis import whatif
from ackwise.diagnosis.report import filters, packed
from ackwise.diagnosis.report.marks import MARKS
from ackwise.diagnosis.sentences import COLORS, SAYINGS
from ackwise.diagnosis.table import lines, lost_s
from ackwise.diagnosis.transfer import Transfer
from ackwise.engine.diagnosis import Document, ReplayedHalf, Series
from ackwise.engine.replayed import Figure
from ackwise.results.lazy import outlines
from ackwise.results.report.page import asset, dumped, page

# Size of the data; the plotting library adds 5 MB.
DATA_BYTES_MAX = 5_000_000
LISTED_MAX = 20_000  # maximum transfers in the list
TOLD_MAX = 500  # maximum transfers with details and limits over time
_SPANS_DRAWN, _SPANS_TOLD = 2000, 100
_NAMED_MAX = 3
_COLUMNS = ("sender", "receiver", "bytes", "ms", "lost_ms", "limit", "share", "confidence")
_PACKAGE = "ackwise.diagnosis.report"


def of_diagnosis(
    diagnosis: Document,
    ranked: Sequence[Transfer],
    series: Sequence[Series] | None,
    command: str,
    origin: str = "",
) -> bytes:
    """The report page; `command` contains file names, so an anonymous page omits it.

    `series` belong to the first transfers (`chosen.series`); None: the capture was not read again.
    `origin` is what made the page, by default this version.
    """
    drawn, listed = list(series or []), LISTED_MAX
    while True:
        data = dumped(
            {
                **_about(diagnosis, command, origin, again=series is not None),
                "list": _list(outlines(ranked[:listed])),
                "left_out": _left_out(outlines(ranked[listed:])),
                "details": [
                    {
                        **_detail(transfer, drawn[n] if n < len(drawn) else None),
                        "policies": _policies(whatif.of(diagnosis, transfer)),
                    }
                    for n, transfer in enumerate(ranked[: min(TOLD_MAX, listed)])
                ],
            }
        )
        if len(data) <= DATA_BYTES_MAX or (not drawn and listed == 1):
            script = asset("series.js", _PACKAGE) + asset("report.js", _PACKAGE)
            return page(
                f"ackwise: {heading(diagnosis)}", data, script, asset("report.css", _PACKAGE)
            )
        if drawn:
            drawn.pop()
        else:
            listed = max(1, listed // 2)


# Columns for a policy replayed on a transfer's arrivals: key and heading.
_OF_POLICY: dict[Figure, str] = {
    "acks": "ACKs",
    "acks_saved": "saved",
    "acks_saved_stock": "saved vs linux",
    "segments_per_ack": "segments per ACK",
    "ack_latency_mean_ns": "ACK latency, mean",
    "ack_latency_p99_ns": "ACK latency, p99",
    "cost_ratio": "cost, by the optimum's",
}


def _policies(one: ReplayedHalf | None) -> dict[str, object] | None:
    if one is None:
        return None
    rows = [[cell["policy"], *(cell[key] for key in _OF_POLICY)] for cell in one["cells"]]
    return {"notes": one["notes"], "acks_best": one["optimum"]["acks"], "rows": rows}


def heading(diagnosis: Document) -> str:
    """The names of the first captures; the files of a ring buffer are one capture in parts."""
    names = [file["name"] for file in diagnosis["files"]]
    more = len(names) - _NAMED_MAX
    shown = ", ".join(names[:_NAMED_MAX])
    return f"{shown} and {more} more files" if more > 0 else shown


def _about(diagnosis: Document, command: str, origin: str, *, again: bool) -> dict[str, object]:
    """Information common to all transfers."""
    return {
        "heading": heading(diagnosis),
        "files": [file["name"] for file in diagnosis["files"]],
        "packets": diagnosis["packets"],
        "tcp_packets": diagnosis["tcp_packets"],
        "duration_ns": diagnosis["duration_ns"],
        "connections": len(diagnosis["connections"]) + diagnosis["left_out"]["connections"],
        "counted": diagnosis["left_out"],
        "command": "" if diagnosis.get("anonymized") else command,
        "origin": origin or f"ackwise {__version__}",
        "read_again": again,
        "limits": {
            name: {"words": saying.words, "meaning": saying.meaning, "color": COLORS[name]}
            for name, saying in SAYINGS.items()
        },
        "of_policy": dict([("policy", "policy"), *_OF_POLICY.items()]),
        "price": diagnosis["replay"]["price"] if "replay" in diagnosis else None,
        "marks": {name: asdict(look) for name, look in MARKS.items()},
    }


def _list(ranked: Sequence[Transfer]) -> dict[str, list[Any]]:
    """The list of transfers, column by column."""
    limits = list(SAYINGS)
    columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    for transfer in ranked:
        limit, share = transfer.limits[0]
        row = (
            transfer.sender,
            transfer.receiver,
            transfer.bytes,
            round(1000 * transfer.seconds, 3),
            round(1000 * lost_s(transfer), 3),
            limits.index(limit),
            round(share, 3),
            transfer.confidence,
        )
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
    return columns


def _left_out(rest: Sequence[Transfer]) -> dict[str, object]:
    return {
        "transfers": len(rest),
        "bytes": sum(transfer.bytes for transfer in rest),
        "lost_ms": round(1000 * sum(map(lost_s, rest))),
    }


def _detail(transfer: Transfer, series: Series | None) -> dict[str, object]:
    endpoints = transfer.connection["endpoints"]
    found = transfer.judgment["spans"]
    return {
        "lines": [list(line) for line in lines(transfer)],
        "shares": transfer.limits,
        "filter": filters.of_connection((endpoints[0], endpoints[1])),
        "spans": packed.spans(found, _SPANS_TOLD if series is None else _SPANS_DRAWN),
        "series": None if series is None else packed.series(series),
    }
