# SPDX-License-Identifier: MIT
"""The report page of a comparison."""

from typing import TypeVar

from ackwise import engine
from ackwise.plans.policy import PolicyChoice
from ackwise.results import provenance
from ackwise.results.compare import BELOW_PERCENT, Cell, Comparison
from ackwise.results.entries import CellEntry, Document
from ackwise.results.metrics import METRICS
from ackwise.results.report.page import Drawn, asset, dumped, page

# Size of the data; plotly.js adds 5 MB. Browsers get slow beyond it, so traces are thinned.
DATA_BYTES_MAX = 9_000_000
T = TypeVar("T")


def _thin(values: list[T], step: int) -> list[T]:
    return values if step <= 1 else values[::step]


def _detail(cell: Cell, step: int) -> Drawn | None:
    """Series, histogram and time-sequence of the first run; times in whole microseconds."""
    found = cell.runs[0].detail
    if found is None:
        return None
    trace = found.trace
    out: Drawn = {
        "series": {
            "t_us": [t // 1000 for t in found.time_ns],
            "bytes": found.delivered_bytes,
            "acks": {k: v for k, v in found.acks_by_reason.items() if any(v)},
        },
        "rtt": {
            "upper_us": [u / 1000 for u in found.rtt.bucket_upper],
            "count": found.rtt.bucket_count,
        },
        "trace": None,
    }
    if trace:
        # Retransmissions are few but matter: thinning keeps all of them.
        rows = list(
            zip(
                trace.data_time_ns,
                trace.data_seq,
                trace.data_bytes,
                trace.data_retransmitted,
                strict=True,
            )
        )
        kept = [r for i, r in enumerate(rows) if r[3] or i % max(step, 1) == 0]
        out["trace"] = {
            "data_us": [r[0] // 1000 for r in kept],
            "data_end": [r[1] + r[2] for r in kept],
            "again": [i for i, r in enumerate(kept) if r[3]],
            "ack_us": [t // 1000 for t in _thin(trace.ack_time_ns, step)],
            "ack_seq": _thin(trace.ack_seq, step),
            "ack_reason": _thin(trace.ack_reason, step),
            "truncated": trace.truncated,
        }
    return out


def _summary(policy: PolicyChoice) -> dict[str, str]:
    entry = next(p for p in engine.policies() if p["name"] == policy.name)
    return {"label": policy.label, "summary": entry["summary"], "source": entry["source"]}


def _ranges(cell: CellEntry) -> dict[str, tuple[float, float]]:
    """Least and most of the runs, of each metric whose interval would reach below zero."""
    wide = [k for k, one in cell["metrics"].items() if (one["ci95"] or 0) > (one["mean"] or 0)]
    values = {k: [v for r in cell["runs"] if (v := r["metrics"][k]) is not None] for k in wide}
    return {k: (min(found), max(found)) for k, found in values.items()}


def of_comparison(comparison: Comparison, document: Document, command: str) -> bytes:
    """The page of a comparison that was run with `detailed`."""
    plan = comparison.plan
    fixed = {
        "document": {
            **document,
            "tables": [
                {**table, "cells": [{**{k: v for k, v in cell.items() if k != "runs"},
                                     "ranges": _ranges(cell)} for cell in table["cells"]]}
                for table in document["tables"]
            ],
        },
        "command": command,
        "origin": provenance.line(document["provenance"]),
        "below_percent": BELOW_PERCENT,
        "metrics": [
            {"key": m.key, "title": m.title, "unit": m.unit, "shown": m.shown, "text": m.text}
            for m in METRICS
        ],
        "reasons": engine.reasons(),
        "policies": [_summary(p) for p in plan.policies],
    }  # fmt: skip
    step = 1
    while True:
        details = [[_detail(cell, step) for cell in table.cells] for table in comparison.tables]
        data = dumped({**fixed, "details": details})
        if len(data) <= DATA_BYTES_MAX or step > 64:
            return page(f"ackwise: {plan.title}", data, asset("compare.js"))
        step *= 2
