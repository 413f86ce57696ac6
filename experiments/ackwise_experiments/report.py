# SPDX-License-Identifier: MIT
"""The HTML report of reproduced experiments."""

from base64 import b64encode
from collections.abc import Sequence
from html import escape

from ackwise.results.report.page import asset, filled
from ackwise_experiments import table, tally
from ackwise_experiments.check import Check, Kind
from ackwise_experiments.document import Reproduced


def _check_rows(done: Reproduced) -> str:
    rows = []
    for group, checks in table.groups(done.outcome.checks):
        heads = (group or table.HEADS[0], *table.HEADS[1:])
        rows.append("<tr>" + "".join(f"<th>{escape(head)}</th>" for head in heads) + "</tr>")
        for check in checks:
            *texts, verdict = (escape(text) for text in table.cells(check))
            cells = "".join(f"<td>{text}</td>" for text in texts)
            rows.append(
                f'<tr title="{escape(check.source)}">{cells}'
                f'<td class="{_mark(check)}">{verdict}</td></tr>'
            )
    return "\n".join(rows)


def _mark(check: Check) -> str:
    """Green is for predictions that hold."""
    if not check.passed:
        return "failed"
    return "best" if check.kind == Kind.PREDICTED else ""


def _tally_rows(checks: Sequence[Check]) -> str:
    heads = "".join(f"<th>{escape(head)}</th>" for head in tally.HEADS)
    rows = (
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in tally.rows(checks)
    )
    return f"<tr>{heads}</tr>" + "".join(rows)


def _experiment(done: Reproduced, drawn: dict[str, bytes]) -> str:
    """An experiment's section: question, figures, checks."""
    one = done.experiment
    checks = done.outcome.checks
    failed = any(not check.passed for check in checks)
    pictures = "".join(
        # As images, not inline: identifiers inside one SVG cannot clash with those of another.
        f'<figure><img alt="{escape(f.title)}" src="data:image/svg+xml;base64,'
        f'{b64encode(drawn[f.name]).decode()}"><figcaption>{escape(f.title)}'
        f"{escape(f' ({f.source})' if f.source else '')}</figcaption></figure>"
        for f in done.outcome.figures
    )
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in done.outcome.notes)
    return (
        f'<section id="{escape(one.name)}"><h2>{escape(one.title)}</h2>'
        f'<p class="note">{escape(one.source)}</p><p>{escape(one.question)}</p>{pictures}</section>'
        f'<section class="{"" if failed else "callout fine"}">'
        f"<h3>{escape(tally.summary(checks))}</h3>{notes}"
        f'<div class="scroll"><table>{_tally_rows(checks)}</table></div>'
        f'<div class="scroll"><table>{_check_rows(done)}</table></div></section>'
    )


def of_experiments(done: list[Reproduced], drawn: dict[str, bytes], command: str) -> bytes:
    """The whole report; `drawn`: the SVG of each figure by name."""
    title = ", ".join(one.experiment.name for one in done)
    parts = {
        "TITLE": escape(f"ackwise reproduce: {title}"),
        "STYLE": asset("page.css"),
        "COMMAND": escape(command),
        "BODY": "\n".join(_experiment(one, drawn) for one in done),
    }
    return filled(asset("experiments.html", "ackwise_experiments"), parts)
