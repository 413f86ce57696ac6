# SPDX-License-Identifier: MIT
"""A capture's replay as text tables."""

from rich.text import Text

from ackwise.engine.replayed import Cell, Cells, Figure
from ackwise.errors import printable
from ackwise.plans.policy import STOCK
from ackwise.replays import DIRECTIONS_SHOWN
from ackwise.replays.document import Document
from ackwise.results import provenance
from ackwise.results.console import Console
from ackwise.results.table import Column, blocks, decimals, draw, time_unit, width_of

Columns = tuple[tuple[Figure, str, str], ...]  # key of a cell, heading, unit

_COLUMNS: Columns = (
    ("acks", "ACKs", ""),
    ("acks_piggybacked", "piggybacked", ""),
    ("segments_per_ack", "segs/ACK", ""),
    ("ack_latency_mean_ns", "ACK lat. mean", "ns"),
    ("ack_latency_p50_ns", "ACK lat. p50", "ns"),
    ("ack_latency_p99_ns", "ACK lat. p99", "ns"),
    ("cost", "cost", ""),
    ("cost_ratio", "x optimum", ""),
    ("cpu_s_per_gb", "CPU s/GB", ""),
)
# What another policy would have saved and cost, next to columns for how good that is.
SAVED: Columns = (
    ("acks", "ACKs", ""),
    ("acks_saved", "saved", "%"),
    ("acks_saved_stock", f"saved vs {STOCK}", "%"),
    ("segments_per_ack", "segs/ACK", ""),
    ("ack_latency_mean_ns", "ACK lat. mean", "ns"),
    ("ack_latency_p99_ns", "ACK lat. p99", "ns"),
)
REGRET: Columns = (*SAVED, ("cost", "cost", ""), ("cost_ratio", "x optimum", ""))
LIMITS = (
    "arrivals stay as captured: a replay cannot know how the sender would have reacted to other "
    "ACKs, so goodput, RTTs and losses need the simulator or the lab"
)


def _present(key: Figure, cells: list[Cell]) -> list[float]:
    return [float(value) for cell in cells if (value := cell[key]) is not None]


def _column(key: Figure, title: str, unit: tuple[str, float], cells: list[Cell]) -> Column | None:
    values = [cell[key] for cell in cells]
    present = _present(key, cells)
    if not present:
        return None
    name, scale = unit
    whole = not name and all(v.is_integer() for v in present)
    digits = 1 if name == "%" else 0 if whole else decimals([v / scale for v in present])
    texts = ["-" if v is None else f"{v / scale:.{digits}f}" for v in values]
    return Column(f"{title} {name}".rstrip(), texts, [key in cell["best"] for cell in cells])


def show_cells(one: Cells, console: Console, columns: Columns) -> None:
    """Prints the policies' results on one direction, and notes on what is not exact."""
    cells = one["cells"]
    for note in one["notes"]:
        console.print(Text(note, style="yellow"), soft_wrap=True)
    shown = [Column("policy", [c["policy"] for c in cells], [False] * len(cells), left=True)]
    times = time_unit(max(_present(key, cells)) for key, _, unit in columns if unit == "ns")
    for key, title, unit in columns:
        scale = {"ns": times, "%": ("%", 0.01)}.get(unit, ("", 1.0))
        column = _column(key, title, scale, cells)
        if column:
            shown.append(column)
    for number, block in enumerate(blocks(shown, width_of(console))):
        if number:
            console.print()
        draw(console, block, [False] * len(cells))


def show(document: Document, console: Console) -> None:
    """Prints a table for each direction of a capture, those with the most data first."""
    price = document["price"]
    for one in document["directions"][:DIRECTIONS_SHOWN]:
        console.print(
            Text(
                f"{printable(document['capture'])}: {one['from']} -> {one['to']}",
                style="bold cyan",
            ),
            soft_wrap=True,
        )
        console.print(
            Text(
                f"{one['payload_bytes']} bytes in {one['data_segments']} segments over "
                f"{(one['end_ns'] - one['start_ns']) / 1e9:.3f} s; best possible in hindsight: "
                f"{one['optimum']['acks']} ACKs, cost {one['optimum']['cost']:.1f} "
                f"(ACK price {price['rho_permille'] / 10:g}%, "
                f"latency unit {price['unit_ns'] / 1e6:g} ms)\n"
                f"{provenance.line(document['provenance'])}\n{LIMITS}",
                style="dim",
            ),
            soft_wrap=True,
        )
        show_cells(one, console, _COLUMNS)
        console.print()
        console.print(Text(f"Lowest cost: {one['cheapest']}"), soft_wrap=True)
        console.print()
    more = len(document["directions"]) - DIRECTIONS_SHOWN
    if more > 0:
        console.print(Text(f"Directions with less data, shown by --json and --csv only: {more}"))
    left_out = document["directions_left_out"]
    if left_out["directions"]:
        console.print(
            Text(
                f"Directions with less data, left out: {left_out['directions']} "
                f"({left_out['data_segments']} segments, {left_out['payload_bytes']} bytes)"
            ),
            soft_wrap=True,
        )
    if document["directions_skipped"]:
        console.print(Text(f"Directions with too little data: {document['directions_skipped']}"))
    console.print(Text("* best value of its column", style="dim"))
