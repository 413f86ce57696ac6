# SPDX-License-Identifier: MIT
"""The result document of `ackwise reproduce`. KEYS documents every key.

It holds neither time nor host name: the same version writes the same bytes.
"""

from dataclasses import asdict, dataclass
from typing import Any

from ackwise import __version__
from ackwise.results.document import number
from ackwise_experiments.check import Check, Kind, Value
from ackwise_experiments.experiment import Experiment, Outcome
from ackwise_experiments.figure import Figure, Grid, Panel, Series
from ackwise_experiments.runner import Ran

SCHEMA_VERSION = 3

KEYS: dict[str, str] = {
    "schema_version": "version of these keys; increases when one is removed or changes meaning",
    "ackwise_version": "version of ackwise",
    "kind": '"reproduce"',
    "passed": "true: every check passed",
    "predicted.passed": "how many of the checks of kind predicted passed",
    "predicted.checks": "how many there are",
    "checks[].experiment": "name of the experiment; on the real kernel linux-NAME",
    "checks[].group": "heading under which tables show it",
    "checks[].name": "what is compared",
    "checks[].source": "where it is published: table, figure, section",
    "checks[].unit": 'unit of both values; "": a count, ratio, class or answer',
    "checks[].published":
        "the published figure, range or wording; null: nothing is published, as for a run of ours",
    "checks[].measured": "the measured figure; null: could not be measured",
    "checks[].from_published_percent":
        "distance of the measured from the published figure; null unless both are numbers",
    "checks[].allowed":
        "what passes: a tolerance around the published figure, a bound, a range, or equality",
    "checks[].bound":
        "where the bound comes from: published, asked (set with the question), before or after "
        "(set by us, before the run or with exploratory runs in view)",
    "checks[].kind":
        "what passing shows: predicted (nothing of it was fitted or injected), fitted, injected, "
        "identity (follows by construction), own (compared with a run of ours)",
    "checks[].beyond_allowed_percent":
        "distance beyond the bound or range, in percent of its nearest end; 0: inside; null: not a "
        "bound or range",
    "checks[].passed": "true: the measured figure is allowed",
    "experiments[].name": "name of the experiment",
    "experiments[].title": "its title",
    "experiments[].source": "where it was published",
    "experiments[].question": "the question it answers",
    "experiments[].notes[]": "figures and remarks that complete the table",
    "experiments[].plans[].label": "what was run; a shipped plan by its name",
    "experiments[].plans[].command":
        "command that runs this plan only; null: scenarios, see --plans",
    "experiments[].plans[].runs": "runs of the engine",
    "experiments[].figures[].name": "stem of its file",
    "experiments[].figures[].title": "its title",
    "experiments[].figures[].source": "the published figure it stands for",
    "experiments[].figures[].panels[]":
        "axes with their series, or a grid of cells: the figure's data",
    "experiments[].figures[].columns": "how many panels stand side by side",
}  # fmt: skip


@dataclass(frozen=True)
class Reproduced:
    """An experiment with its outcome."""

    experiment: Experiment
    outcome: Outcome
    ran: list[Ran]


def _value(value: Value) -> Value:
    return number(value) if isinstance(value, float) else value


def of_check(name: str, check: Check) -> dict[str, Any]:
    """One check as the document has it."""
    return {
        "experiment": name,
        "group": check.group,
        "name": check.name,
        "source": check.source,
        "unit": check.unit,
        "published": _value(check.published),
        "measured": _value(check.measured),
        "from_published_percent": _value(check.from_published_percent),
        "allowed": check.allowed,
        "bound": check.bound.value,
        "kind": check.kind.value,
        "beyond_allowed_percent": _value(check.beyond_allowed_percent),
        "passed": check.passed,
    }


def _series(one: Series) -> dict[str, Any]:
    return {
        "label": one.label,
        "kind": one.kind,
        "published": one.published,
        "x": [x if isinstance(x, str) else number(x) for x in one.x],
        "y": [number(y) for y in one.y],
        "spread": None if one.spread is None else [number(s) for s in one.spread],
    }


def _panel(panel: Panel | Grid) -> dict[str, Any]:
    if isinstance(panel, Grid):
        return {"kind": "grid", **asdict(panel)}
    return {
        "kind": "panel",
        "title": panel.title,
        "x_label": panel.x_label,
        "y_label": panel.y_label,
        "log_x": panel.log_x,
        "log_y": panel.log_y,
        "y_from_zero": panel.y_from_zero,
        "lines": [{"label": label, "y": number(y)} for label, y in panel.lines],
        "series": [_series(one) for one in panel.series],
    }


def _figure(figure: Figure) -> dict[str, Any]:
    return {
        "name": figure.name,
        "title": figure.title,
        "source": figure.source,
        "columns": figure.columns,
        "panels": [_panel(panel) for panel in figure.panels],
    }


def figure_of(made: dict[str, Any]) -> Figure:
    """A figure from its data in a document."""
    panels = [_grid_of(one) if one["kind"] == "grid" else _panel_of(one) for one in made["panels"]]
    return Figure(made["name"], made["title"], panels, made["source"], made["columns"])


def _grid_of(made: dict[str, Any]) -> Grid:
    return Grid(**{key: value for key, value in made.items() if key != "kind"})


def _panel_of(made: dict[str, Any]) -> Panel:
    kept = {key: value for key, value in made.items() if key != "kind"}
    lines = [(line["label"], line["y"]) for line in made["lines"]]
    series = [Series(**one) for one in made["series"]]
    return Panel(**kept | {"lines": lines, "series": series})


def command(ran: Ran) -> str | None:
    """The command that runs only this shipped plan."""
    shipped = ran.plan is not None and not ran.plan.file and ran.label != ran.plan.title
    on = "" if ran.on == "simulator" else f" --on {ran.on}"
    return f"ackwise compare{on} --plan {ran.label}" if shipped else None


def of_experiments(done: list[Reproduced]) -> dict[str, Any]:
    """The document of one or several experiments."""
    checks = [of_check(one.experiment.name, c) for one in done for c in one.outcome.checks]
    predicted = [check for check in checks if check["kind"] == Kind.PREDICTED]
    return {
        "schema_version": SCHEMA_VERSION,
        "ackwise_version": __version__,
        "kind": "reproduce",
        "passed": all(check["passed"] for check in checks),
        "predicted": {
            "passed": sum(check["passed"] for check in predicted),
            "checks": len(predicted),
        },
        "checks": checks,
        "experiments": [
            {
                "name": one.experiment.name,
                "title": one.experiment.title,
                "source": one.experiment.source,
                "question": one.experiment.question,
                "notes": list(one.outcome.notes),
                "plans": [
                    {"label": r.label, "command": command(r), "runs": r.runs} for r in one.ran
                ],
                "figures": [_figure(figure) for figure in one.outcome.figures],
            }
            for one in done
        ],
    }


def rows(done: list[Reproduced]) -> list[dict[str, str | int | float | None]]:
    """One flat row for each check: what --csv writes."""
    return [
        {k: int(v) if isinstance(v, bool) else v for k, v in check.items()}
        for check in of_experiments(done)["checks"]
    ]
