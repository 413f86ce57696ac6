# SPDX-License-Identifier: MIT
"""`--figure` of `compare`, `sweep show` and `twin`: the document of a result as a figure."""

from collections.abc import Mapping, Sequence
from typing import Any

from ackwise.errors import InputError
from ackwise.host import files
from ackwise.results import provenance
from ackwise_experiments.figure import FORMATS, Figure, Panel, Series, drawn, format_of

_MBPS = 1e6
_COLUMNS = 2
Entry = Mapping[str, Any]


def check(file: str, named: str = "--figure") -> None:
    """Raises InputError where no figure can be written under that name."""
    if file == files.STDOUT:
        raise InputError(f"{named}: cannot go to standard output; give a file name")
    files.check_target(file, named)
    if format_of(file) not in FORMATS:
        *some, last = (f".{form}" for form in FORMATS)
        raise InputError(
            f"{named}: {file}: give a file name that ends in {', '.join(some)} or {last}"
        )


def write(file: str, document: Entry) -> None:
    """The figure of a result's document. InputError where it has nothing to draw."""
    panels = {"compare": _compared, "sweep": _swept, "twin": _twin}[document["kind"]](document)
    if not panels:
        raise InputError("--figure: there is nothing to draw: no cell has been measured")
    figure = Figure(document["kind"], "", panels, columns=_COLUMNS, note=_note(document))
    files.write_whole(file, drawn(figure, format_of(file)))


def _note(document: Entry) -> str:
    """The origin of the figures, and what the bars are."""
    if "plan" not in document:
        return ""
    runs = document["plan"]["runs"]
    means = f"means of {runs} runs; bars: 95% confidence intervals" if runs > 1 else "one run each"
    origin = [provenance.line(document["provenance"])] if "provenance" in document else []
    return "\n".join([*origin, means])


def _named(table: Entry) -> str:
    return f"{table['link']}, {table['workload']}"


def _label(cell: Entry, cells: Sequence[Entry]) -> str:
    """The policy, with its group of flows where the table has several."""
    several = len({one["group"] for one in cells}) > 1
    return f"{cell['policy']}, {cell['group']}" if several else str(cell["policy"])


def _compared(document: Entry) -> list[Panel]:
    """Goodput over ACKs for each link and workload."""
    panels = []
    for table in document["tables"]:
        series = []
        for cell in table["cells"]:
            goodput, acks = cell["metrics"]["goodput_bps"], cell["metrics"]["acks"]
            if goodput["mean"] is None or not acks["mean"]:
                continue
            spread = [(goodput["ci95"] or 0) / _MBPS]
            label = _label(cell, table["cells"])
            series.append(
                Series(label, [acks["mean"]], [goodput["mean"] / _MBPS], "points", spread=spread)
            )
        if series:
            name = _named(table)
            panels.append(Panel("ACKs", "goodput, Mbit/s", series, name, log_x=True, apart=True))
    return panels


def _swept(document: Entry) -> list[Panel]:
    """Goodput and RTT over ACKs for each policy: means over the points of the space."""
    panels = []
    for key, what in (
        ("goodput_share", "goodput, share of the best"),
        ("rtt_p99_ratio", "RTT p99, multiple of the lowest"),
    ):
        series = [
            Series(one["candidate"], [one["acks_per_segment"]], [one[key]], "points")
            for one in document["candidates"]
            if one[key] is not None and one["acks_per_segment"] is not None
        ]
        if series:
            panels.append(Panel("ACKs per segment", what, series, apart=True))
    return panels


def _twin(document: Entry) -> list[Panel]:
    """Goodput in both worlds for each link and workload."""
    panels = []
    for table in document["tables"]:
        found = [
            (_label(cell, table["cells"]), cell["metrics"]["goodput_bps"])
            for cell in table["cells"]
        ]
        known = [(x, one) for x, one in found if one["simulator"]["mean"] and one["linux"]["mean"]]
        series = [
            Series(
                label,
                [x.replace(":", "\n") for x, _ in known],
                [one[world]["mean"] / _MBPS for _, one in known],
                "bars",
                spread=[(one[world]["ci95"] or 0) / _MBPS for _, one in known],
            )
            for label, world in (("simulator", "simulator"), ("Linux", "linux"))
        ]
        if known:
            panels.append(Panel("", "goodput, Mbit/s", series, _named(table)))
    return panels
