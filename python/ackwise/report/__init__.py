# SPDX-License-Identifier: MIT
"""One self-contained page: tables and interactive plots, no network, no second file."""

import json
from base64 import b64encode
from html import escape
from importlib import resources
from typing import Any

from plotly.offline import get_plotlyjs

from ackwise import engine
from ackwise.compare import BELOW_PERCENT, Cell, Comparison
from ackwise.metrics import METRICS
from ackwise.policy import PolicyChoice
from ackwise.replay import CAPTURED, Replay
from ackwise.reproduce import table
from ackwise.reproduce.document import Reproduced
from ackwise.table import DIRECTIONS_SHOWN

# Of the data alone; plotly.js adds 5 MB. Beyond this browsers get slow: traces are thinned.
DATA_BYTES_MAX = 9_000_000


def _asset(name: str) -> str:
    return (resources.files("ackwise.report") / name).read_text(encoding="utf-8")


def _thin(values: list[Any], step: int) -> list[Any]:
    return values if step <= 1 else values[::step]


def _detail(cell: Cell, step: int) -> dict[str, Any] | None:
    """Series, histogram and time-sequence of the first run, small: times in whole microseconds."""
    found = cell.runs[0].detail
    if found is None:
        return None
    series = found["series"]
    trace = found["trace"]
    out: dict[str, Any] = {
        "series": {
            "t_us": [t // 1000 for t in series["time_ns"]],
            "bytes": series["delivered_bytes"],
            "acks": {k: v for k, v in series["acks_by_reason"].items() if any(v)},
        },
        "rtt": {
            "upper_us": [u / 1000 for u in found["rtt"]["upper_ns"]],
            "count": found["rtt"]["count"],
        },
        "trace": None,
    }
    if trace:
        # Retransmissions are few and matter: they are kept when the rest is thinned.
        rows = list(
            zip(
                trace["data_time_ns"],
                trace["data_seq"],
                trace["data_bytes"],
                trace["data_retransmitted"],
                strict=True,
            )
        )
        kept = [r for i, r in enumerate(rows) if r[3] or i % max(step, 1) == 0]
        out["trace"] = {
            "data_us": [r[0] // 1000 for r in kept],
            "data_end": [r[1] + r[2] for r in kept],
            "again": [i for i, r in enumerate(kept) if r[3]],
            "ack_us": [t // 1000 for t in _thin(trace["ack_time_ns"], step)],
            "ack_seq": _thin(trace["ack_seq"], step),
            "ack_reason": _thin(trace["ack_reason"], step),
            "truncated": trace["truncated"],
        }
    return out


def _dumped(value: Any) -> str:
    """JSON that may stand inside a script element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _summary(policy: PolicyChoice) -> dict[str, str]:
    entry = next(p for p in engine.policies() if p["name"] == policy.name)
    return {"label": policy.label, "summary": entry["summary"], "source": entry["source"]}


def _filled(template: str, parts: dict[str, str]) -> bytes:
    # One pass over the template, so that nothing inside a part is taken for a mark.
    head, *rest = _asset(template).split("@@")
    out = [head]
    for piece in rest:
        name, _, tail = piece.partition("@")
        out.append(parts[name] + tail)
    return "".join(out).encode()


def _page(title: str, data: str, script: str) -> bytes:
    parts = {
        "TITLE": escape(title),
        "STYLE": _asset("page.css"),
        "DATA": data,
        "PLOTLY": get_plotlyjs().replace("</script", "<\\/script"),
        "SCRIPT": _asset("page.js") + _asset(script),
    }
    return _filled("page.html", parts)


def of_comparison(comparison: Comparison, document: dict[str, Any], command: str) -> bytes:
    """The page of a comparison that was run with `detailed`."""
    plan = comparison.plan
    fixed = {
        "document": {
            **document,
            "tables": [
                {**table, "cells": [{k: v for k, v in cell.items() if k != "runs"}
                                    for cell in table["cells"]]}
                for table in document["tables"]
            ],
        },
        "command": command,
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
        data = _dumped({**fixed, "details": details})
        if len(data) <= DATA_BYTES_MAX or step > 64:
            return _page(f"ackwise: {plan.title}", data, "compare.js")
        step *= 2


TRACE_POINTS = 2500
RATE_POINTS = 100


def _acks(trace: list[dict[str, Any]] | None, start_ns: int, end_ns: int) -> dict[str, Any] | None:
    """The first ACKs one by one, and all of them as a rate by reason."""
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
        "reasons": engine.reasons(),
        "captured": CAPTURED,
        "details": [
            [_acks(trace, one["start_ns"], one["end_ns"]) for trace in traces]
            for one, traces in zip(shown, replayed.traces, strict=False)
        ],
    }
    return _page(f"ackwise: {document['capture']}", _dumped(data), "capture.js")


def _check_rows(done: Reproduced) -> str:
    rows = []
    for group, checks in table.groups(done.outcome.checks):
        heads = (group or table.HEADS[0], *table.HEADS[1:])
        rows.append("<tr>" + "".join(f"<th>{escape(head)}</th>" for head in heads) + "</tr>")
        for check in checks:
            mark = "best" if check.passed else "failed"
            *told, verdict = (escape(text) for text in table.cells(check))
            cells = "".join(f"<td>{text}</td>" for text in told)
            rows.append(
                f'<tr title="{escape(check.source)}">{cells}<td class="{mark}">{verdict}</td></tr>'
            )
    return "\n".join(rows)


def _experiment(done: Reproduced, drawn: dict[str, bytes]) -> str:
    """An experiment's section: the question, the pictures, the checks."""
    one = done.experiment
    failed = sum(not check.passed for check in done.outcome.checks)
    count = len(done.outcome.checks)
    pictures = "".join(
        # An image and no inline drawing: names inside one SVG cannot meet those of another.
        f'<figure><img alt="{escape(f.title)}" src="data:image/svg+xml;base64,'
        f'{b64encode(drawn[f.name]).decode()}"><figcaption>{escape(f.title)}'
        f"{escape(f' ({f.source})' if f.source else '')}</figcaption></figure>"
        for f in done.outcome.figures
    )
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in done.outcome.notes)
    return (
        f'<section id="{escape(one.name)}"><h2>{escape(one.title)}</h2>'
        f'<p class="note">{escape(one.source)}</p><p>{escape(one.question)}</p>{pictures}</section>'
        f'<section class="{"" if failed else "callout fine"}"><h3>{count - failed} of {count} '
        f'checks pass</h3>{notes}<div class="scroll"><table>{_check_rows(done)}</table></div>'
        "</section>"
    )


def of_experiments(done: list[Reproduced], drawn: dict[str, bytes], command: str) -> bytes:
    """The page of reproduced experiments; `drawn` holds the SVG of each figure by its name."""
    title = ", ".join(one.experiment.name for one in done)
    parts = {
        "TITLE": escape(f"ackwise reproduce: {title}"),
        "STYLE": _asset("page.css"),
        "COMMAND": escape(command),
        "BODY": "\n".join(_experiment(one, drawn) for one in done),
    }
    return _filled("experiments.html", parts)
