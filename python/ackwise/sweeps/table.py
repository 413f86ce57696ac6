# SPDX-License-Identifier: MIT
"""The text output of `ackwise sweep show`."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from ackwise.errors import printable
from ackwise.results.console import Console
from ackwise.sweeps.evaluate import COMPARED

_WIDTH_PLAIN = 200  # width if the output is not a terminal
_LEGEND = (
    "best: share of points with the fewest ACKs among policies within 1% of the best goodput",
    "goodput, RTT p99: mean share of the point's best goodput, mean multiple of its lowest RTT p99",
    "on the front: share of points at which no other policy is at least as good in goodput, ACKs "
    "and RTT p99 and better in one; * by the means shown, none is",
)
_UNITS = (("days", 86400), ("h", 3600), ("min", 60), ("s", 1))


def duration(seconds: float) -> str:
    """A waiting time in a suitable unit."""
    name, scale = next(
        ((name, scale) for name, scale in _UNITS if seconds >= 2 * scale), _UNITS[-1]
    )
    return f"{seconds / scale:.0f} {name}"


def show(document: Mapping[str, Any], console: Console) -> None:
    """Progress, the candidates, and the best policy by region."""
    if not console.is_terminal:
        console.width = _WIDTH_PLAIN
    sweep = document["sweep"]
    console.print(Text(printable(f"{sweep['title']}  |  {sweep['sampling']}, {sweep['world']}")))
    for line in progress_lines(document["progress"]):
        console.print(Text(printable(line)), soft_wrap=True)
    if not document["progress"]["points_complete"]:
        console.print(Text("No point is complete yet."))
        return
    console.print()
    console.print(_candidates(document["candidates"]))
    console.print()
    for line in _LEGEND:
        console.print(Text(line, style="dim"), soft_wrap=True)
    for line in beside_lines(document["beside"]):
        console.print(Text(line), soft_wrap=True)
    for region in document["regions"][:1]:
        console.print()
        console.print(_region(region))
    if len(document["regions"]) > 1:
        console.print(
            Text("Other keys: --by KEY --by KEY; every pair, and surfaces: --report", style="dim")
        )


def progress_lines(progress: Mapping[str, Any]) -> Iterator[str]:
    """Progress of the sweep, and problems with it."""
    text = (
        f"{progress['cells_done']} of {progress['cells']} cells, {progress['points_complete']} of "
        f"{progress['points']} points complete"
    )
    if progress["remaining_s"] is not None:
        text += f"; about {duration(progress['remaining_s'])} left at the pace of the latest parts"
    yield text
    if progress["cells_not_run"]:
        yield f"{progress['cells_not_run']} cells could not be run: {progress['why_not_run']}"
    for problem in progress["damaged"][:3]:
        yield f"{problem}; `ackwise sweep run` makes it again"
    if len(progress["damaged"]) > 3:
        yield f"... and {len(progress['damaged']) - 3} more that cannot be read"


def beside_lines(beside: Mapping[str, Any] | None) -> Iterator[str]:
    """Difference between simulator and kernel, for a sweep in both worlds."""
    if beside is None or beside["best_agrees_share"] is None:
        return
    apart = [
        f"{COMPARED[name]} {one['median_percent']:.1f}% and {one['worst_percent']:.1f}%"
        for name, one in beside["differences"].items()
        if one["median_percent"] is not None
    ]
    yield ""
    yield f"Simulator from kernel, median and worst: {', '.join(apart)}"
    yield (
        f"The simulator's best policy is within 1% of the kernel's best goodput at "
        f"{_percent(beside['best_agrees_share'])} of points"
    )


def _candidates(rows: list[dict[str, Any]]) -> Table:
    made = Table(box=None, pad_edge=False)
    made.add_column("policy", no_wrap=True)
    heads = ("best", "goodput", "ACKs/segment", "RTT p99", "on the front")
    for head in heads:
        made.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        made.add_row(
            printable(row["candidate"]) + (" *" if row["front"] else ""),
            _percent(row["best_share"]),
            _percent(row["goodput_share"]),
            _figure(row["acks_per_segment"], "{:.3f}"),
            _figure(row["rtt_p99_ratio"], "x{:.2f}"),
            _percent(row["front_share"]),
        )
    return made


def _region(region: Mapping[str, Any]) -> Table:
    across, down = region["across"], region["down"]
    made = Table(box=None, pad_edge=False, title_justify="left")
    made.title = Text(
        printable(
            f"Best policy by {across['key']} (across)"
            + (f" and {down['key']} (down)" if down["key"] else "")
        )
    )
    made.add_column(printable(down["key"]), no_wrap=True)
    for label in across["classes"]:
        made.add_column(printable(label))
    rows = zip(down["classes"], region["best"], region["best_share"], strict=True)
    for label, best, share in rows:
        cells = [
            "-" if name is None else f"{printable(name)} {_percent(part)}"
            for name, part in zip(best, share, strict=True)
        ]
        made.add_row(printable(label), *cells)
    return made


def _percent(share: float | None) -> str:
    return _figure(None if share is None else 100 * share, "{:.0f}%")


def _figure(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)
