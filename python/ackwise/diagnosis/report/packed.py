# SPDX-License-Identifier: MIT
"""Compact encoding of a transfer's series: columns of differences."""

from collections.abc import Mapping, Sequence
from typing import Any

from ackwise.engine.diagnosis import Series, Span

Column = list[int | None]
# Columns that follow from the others for a single packet.
_SINGLE = ("to_ns", "last", "packets")
_TIMES = "_ns"


def differences(values: Sequence[int | None]) -> Column:
    """Differences between consecutive known values; null stays null."""
    before, found = 0, Column()
    for value in values:
        found.append(None if value is None else value - before)
        before = before if value is None else value
    return found


def track(columns: Mapping[str, Any]) -> dict[str, object]:
    """One track, with times in microseconds and without empty columns."""
    packed: dict[str, object] = {"each": columns["each"]}
    for name, values in columns.items():
        if name == "each" or (columns["each"] == 1 and name in _SINGLE):
            continue
        if name.endswith(_TIMES):
            name = name.removesuffix(_TIMES) + "_us"
            values = [None if ns is None else ns // 1000 for ns in values]
        if any(values) or name in ("from_us", "start"):
            packed[name] = differences(values)
    return packed


def series(found: Series) -> dict[str, object]:
    """All tracks of a transfer."""
    return {
        "data": track(found["data"]),
        "acks": track(found["acks"]),
        "marks": {name: track(columns) for name, columns in found["marks"].items()},
    }


def spans(found: Sequence[Span], most: int) -> dict[str, object]:
    """Limits in order of time. If there are more than `most`, equal parts with the limit that
    dominates each."""
    kept = found if len(found) <= most else _parts(found, most)
    edges = [span["from_ns"] // 1000 for span in kept]
    return {
        "from_us": differences(edges),
        "end_us": kept[-1]["to_ns"] // 1000 if kept else 0,
        "limit": [span["limit"] for span in kept],
    }


def _parts(found: Sequence[Span], most: int) -> list[Span]:
    """`most` parts of equal length, each with its dominant limit."""
    start, end = found[0]["from_ns"], found[-1]["to_ns"]
    parts: list[Span] = []
    at = 0
    for n in range(most):
        low = start + (end - start) * n // most
        high = start + (end - start) * (n + 1) // most
        shares: dict[str, int] = {}
        while at < len(found) and found[at]["to_ns"] <= low:
            at += 1
        place = at
        while place < len(found) and found[place]["from_ns"] < high:
            span = found[place]
            inside = min(high, span["to_ns"]) - max(low, span["from_ns"])
            shares[span["limit"]] = shares.get(span["limit"], 0) + inside
            place += 1
        if shares:
            limit = max(shares, key=lambda name: (shares[name], name))
            parts.append({"from_ns": low, "to_ns": high, "limit": limit})
    return parts
