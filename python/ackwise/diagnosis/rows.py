# SPDX-License-Identifier: MIT
"""A diagnosis as tables for CSV and Parquet: connections, their halves, limits over time, and the
replay of other ACK policies.

The columns `connection` and `half` join the tables: half 0 is the direction from the first
endpoint. Rows are generated one by one and need not all have the same columns.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from ackwise.diagnosis.sentences import SAYINGS
from ackwise.engine.diagnosis import Connection, Document, Judgment
from ackwise.results.export import Row
from ackwise.results.lazy import outlines

Value = str | int | float | None


def connections(diagnosis: Document) -> Iterator[Row]:
    """One row for each connection."""
    for one in diagnosis["connections"]:
        yield {"connection": one["index"], **dict(_connection(one))}


def _connection(one: Connection) -> Iterator[tuple[str, Value]]:
    yield from zip(("endpoint_0", "endpoint_1"), one["endpoints"], strict=True)
    for key in ("initiator_known", "start_ns", "end_ns", "ending", "packets"):
        yield key, _plain(one[key])
    for name in ("syn_ns", "syn_ack_ns", "ack_ns"):
        yield f"handshake_{name}", (one["handshake"] or {}).get(name)
    for of in (0, 1):
        yield f"repeated_packets_{of}", one["repeated_packets"][of]
        yield f"distance_{of}_ns", one["distance_ns"][of]
        offered: Mapping[str, Any] = one["options"][of] or {}
        for name in ("mss_bytes", "window_scale", "sack_permitted", "timestamps"):
            yield f"option_{name}_{of}", _plain(offered.get(name))


def halves(diagnosis: Document) -> Iterator[Row]:
    """Two rows for each connection: one endpoint's sending, and the other's acknowledging."""
    for one in diagnosis["connections"]:
        for of, half in enumerate(one["halves"]):
            limits = half["limits"]["limits"]
            yield {
                "connection": one["index"],
                "half": of,
                "sender": one["endpoints"][of],
                "receiver": one["endpoints"][1 - of],
                **{f"limit_{n}_ns": limits.get(n, {"ns": 0})["ns"] for n in SAYINGS},
                **dict(_flat("", {**half, "limits": _judged(half["limits"])})),
            }


def _judged(judgment: Judgment) -> dict[str, object]:
    """A judgment's figures. Shares have columns of their own, spans a table."""
    apart = ("limits", "spans", "stalls_ns", "" if judgment["path_mtu"] else "path_mtu")
    return {k: v for k, v in judgment.items() if k not in apart}


def spans(diagnosis: Document) -> Iterator[Row]:
    """One row for each period in which one limit held."""
    for one in diagnosis["connections"]:
        for of, half in enumerate(one["halves"]):
            for span in half["limits"]["spans"]:
                yield {"connection": one["index"], "half": of, **cast(Row, span)}


def policies(diagnosis: Document) -> Iterator[Row]:
    """One row for each policy replayed on a half; no rows without a replay."""
    ends = {one["index"]: one["endpoints"] for one in outlines(diagnosis["connections"])}
    for one in diagnosis["replay"]["directions"] if "replay" in diagnosis else ():
        endpoints = ends[one["connection"]]
        for cell in one["cells"]:
            yield {
                "connection": one["connection"],
                "half": one["half"],
                "sender": endpoints[one["half"]],
                "receiver": endpoints[1 - one["half"]],
                **dict(_flat("", cell)),
                **dict(_flat("optimum_", one["optimum"])),
            }


TABLES: dict[str, Callable[[Document], Iterator[Row]]] = {
    "connections": connections,
    "halves": halves,
    "spans": spans,
    "policies": policies,
}


def _plain(value: Any) -> Value:
    """A value that fits Parquet, which has no column of booleans and nulls mixed."""
    return int(value) if isinstance(value, bool) else value


def _flat(prefix: str, tree: Mapping[str, Any]) -> Iterator[tuple[str, Value]]:
    """Leaves of a tree, named by their path; lists are omitted."""
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(f"{prefix}{key}_", value)
        elif not isinstance(value, list):
            yield f"{prefix}{key}", _plain(value)
