# SPDX-License-Identifier: MIT
"""Both worlds side by side on the terminal, and where they diverge."""

from collections.abc import Iterator, Sequence
from typing import Literal, get_args

from rich.text import Text

from ackwise.errors import printable
from ackwise.results import provenance
from ackwise.results.console import Console
from ackwise.results.table import Column, blocks, decimals, draw, unit_of, width_of
from ackwise_experiments.twin.entries import CellEntry, Compared, Document
from ackwise_experiments.twin.run import MEASURES

World = Literal["simulator", "linux", "again"]
WORLDS: tuple[World, ...] = get_args(World)
_HEADS = ("simulator", "kernel", "kernel, other seeds")


def show(document: Document, console: Console) -> None:
    """Prints a document of `ackwise twin`."""
    plan = document["plan"]
    titles = {one["name"]: one["title"] for one in plan["links"]}
    titles |= {one["name"]: one["title"] for one in plan["workloads"]}
    origins = [provenance.line(document["worlds"][name]) for name in WORLDS]
    for table in document["tables"]:
        names = table["link"], table["workload"]
        _print(console, "  |  ".join(titles[name] for name in names), "bold cyan")
        _print(console, "link {}, workload {}".format(*names), "dim")
        _print(console, "\n".join(dict.fromkeys(origins)), "dim")
        columns = _columns(table["cells"])
        for block in blocks(columns, width_of(console)) if table["cells"] else ():
            draw(console, block, [False] * len(columns[0].cells))
            console.print()
        for line in stories(table["cells"], document["tolerance_ns"]):
            _print(console, line)
        for reason in dict.fromkeys(table["skipped"].values()):
            labels = [label for label, why in table["skipped"].items() if why == reason]
            _print(console, f"Not run: {', '.join(labels)}: {reason}", "yellow")
        console.print()
    _print(
        console,
        "difference: how far the simulator lies above the kernel; yardstick: how far the kernel "
        "with other seeds does",
        "dim",
    )


def _print(console: Console, text: str, style: str = "") -> None:
    console.print(Text(printable(text, keep="\n"), style=style), soft_wrap=True)


def rows_of(cell: CellEntry) -> Iterator[tuple[str, str, Compared]]:
    """Title, unit and figure of every measure, with ACKs by reason below ACKs."""
    for key, figure in cell["metrics"].items():
        if all(figure[world]["mean"] is None for world in WORLDS):
            continue
        yield MEASURES[key].title, MEASURES[key].unit, figure
        if key == "acks":
            for label, count in cell["acks_by_reason"].items():
                yield f"  {label}", "", count


def figures(unit: str, figure: Compared) -> tuple[str, list[str]]:
    """The unit, and the figure of each world with its interval."""
    means = [figure[world]["mean"] for world in WORLDS]
    known = [mean for mean in means if mean is not None]
    name, scale = unit_of(unit, max(known))
    whole = not unit and all(float(mean).is_integer() for mean in known)
    digits = 0 if whole else decimals([mean / scale for mean in known])
    texts = []
    for world, mean in zip(WORLDS, means, strict=True):
        text = "-" if mean is None else f"{mean / scale:.{digits}f}"
        ci95 = figure[world]["ci95"]
        texts.append(text + (f" ±{ci95 / scale:.{digits}f}" if ci95 else ""))
    return name, texts


def percent(value: float | None) -> str:
    """A percentage with its sign; "-" if there is none."""
    return "-" if value is None else f"{value:+.1f}%" if round(value, 1) else "0.0%"


def _columns(cells: Sequence[CellEntry]) -> list[Column]:
    named: list[str] = []
    measures: list[str] = []
    worlds: list[list[str]] = [[], [], []]
    shares: list[list[str]] = [[], []]
    for cell, label in _labelled(cells):
        for title, unit, figure in rows_of(cell):
            unit_name, texts = figures(unit, figure)
            named.append(label)
            label = ""  # shown only once
            measures.append(f"{title} {unit_name}".rstrip())
            for column, text in zip(worlds, texts, strict=True):
                column.append(text)
            shares[0].append(percent(figure["difference_percent"]))
            shares[1].append(percent(figure["again_percent"]))
    plain = [False] * len(named)
    return [
        Column("policy", named, plain, left=True),
        Column("measure", measures, plain, left=True),
        Column(_HEADS[0], worlds[0], plain),
        Column(_HEADS[1], worlds[1], plain),
        Column("difference", shares[0], plain),
        Column(_HEADS[2], worlds[2], plain),
        Column("yardstick", shares[1], plain),
    ]


def _packets(count: int) -> str:
    return f"{count} {'packet' if count == 1 else 'packets'}"


def _labelled(cells: Sequence[CellEntry]) -> Iterator[tuple[CellEntry, str]]:
    """Each cell with its policy and, if there are several, its group of flows."""
    several = len({cell["group"] for cell in cells}) > 1
    for cell in cells:
        yield cell, cell["policy"] + (f", {printable(cell['group'])}" if several else "")


def stories(cells: Sequence[CellEntry], tolerance_ns: int) -> Iterator[str]:
    """Where the runs of each cell's first flow diverge."""
    for cell, label in _labelled(cells):
        yield from story(cell, label, tolerance_ns)


def story(cell: CellEntry, name: str, tolerance_ns: int) -> Iterator[str]:
    """Where the runs of the first flow diverge; `name` comes first."""
    if cell["agreed_packets"] is None:
        yield f"{name}: the first flow sent no data in one of the worlds"
        return
    if not cell["divergences"]:
        yield f"{name}: the worlds do not diverge in {_packets(cell['agreed_packets'])}"
        return
    for number, one in enumerate(cell["divergences"]):
        after = f", {_packets(cell['agreed_packets'])} in" if number == 0 else ""
        how = {
            "content": "send different packets",
            "time": f"are more than {tolerance_ns / 1e3:g} µs apart",
        }[one["how"]]
        yield (
            f"{name}: {one['time_ns'] / 1e9:.6f} s after the first data{after}, the worlds {how}, "
            f"at packet {one['number']} of the data's {one['end']}"
        )
        for title, packet in (("simulator", one["simulator"]), ("kernel", one["linux"])):
            yield f"    {title}: {packet['words'] if packet else 'nothing more'}"
