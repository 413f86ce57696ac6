# SPDX-License-Identifier: MIT
"""The gateway against no gateway: throughput and latency of each cell, in the lab or on this host.

    python gateway_cells.py                              the default cells
    python gateway_cells.py --page docs/findings/gateway-cells.md    also writes them there
    python gateway_cells.py --lines 300/10,20/1 --rtts 5 --leaves pfifo_head_drop+pfifo
    python gateway_cells.py --leaves chosen,chosen@30    with 30% of the uplink guaranteed to ACKs
    python gateway_cells.py --all --json cells.json      the full product: days
    sudo python gateway_cells.py --on host               this kernel, in real time: half an hour

An option that names an axis replaces the default cells by a product: axes not named keep one value
each (CUBIC, one flow, the leaves that `up` chooses) or all of theirs (lines, RTTs, directions). Raw
results are kept in a folder, so a cut run continues where it stopped. Needs the lab's stock kernel
(`ackwise lab build --stock`). On this host there is no delay but the queues', no flow but one each
way, and no leaf but those that `up` chooses on its kernel.

A page's table stands between `<!-- generated: cells -->` and `<!-- end of cells -->`, or with
another name that --part gives.
Exit code 1 when a cell falls by more than 2%.
"""

import argparse
import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from ackwise.errors import InputError, RunError
from ackwise.host import files
from ackwise.lab import build
from ackwise.results.progress import progress_bar
from ackwise_experiments.lab_runner import LabRunner
from ackwise_experiments.runner import Runner
from ackwise_experiments.separation import cells, host_cells
from ackwise_experiments.separation.cells import CHOSEN, HARM_PERCENT, Cell, Compared, Measured

COLUMNS = (
    "Mbit/s", "RTT, ms", "hosts", "leaves", "transfer", "down, Mbit/s", "up, Mbit/s", "change",
    "ping p50, ms", "ping p99, ms", "",
)  # fmt: skip


def _pair(before: float | None, after: float | None, scale: float, digits: int) -> str:
    if not before and not after:
        return ""
    shown = (
        "none" if value is None else f"{value / scale:.{digits}f}" for value in (before, after)
    )
    return " → ".join(shown)


def row(one: Compared) -> list[str]:
    """A cell as the table's texts; pairs are without → with the gateway."""
    cell, before, after = one.cell, one.without, one.gateway

    def pair(key: str, scale: float, digits: int) -> str:
        return _pair(getattr(before, key), getattr(after, key), scale, digits)

    down_bps, up_bps = cell.rates_bps
    return [
        cell.line,
        f"{cell.rtt_ms:g}",
        f"{cell.control.upper()}{f' x {cell.flows}' if cell.flows > 1 else ''}",
        cell.leaves,
        cell.direction,
        pair("down_bps", 1e6, 1 if down_bps >= 5e7 else 2),
        pair("up_bps", 1e6, 2 if up_bps >= 2e6 else 3),
        f"{one.percent:+.1f}%",
        pair("ping_p50_ns", 1e6, 1),
        pair("ping_p99_ns", 1e6, 1),
        one.verdict,
    ]


def table(found: Sequence[Compared]) -> str:
    """The table in Markdown."""
    rows = [list(COLUMNS), ["---"] * len(COLUMNS), *map(row, found)]
    return "".join(f"| {' | '.join(one)} |\n" for one in rows)


def summary(found: Sequence[Compared]) -> str:
    """One sentence for each verdict."""
    worst = min(found, key=lambda one: one.percent)
    counts = {name: sum(one.verdict == name for one in found) for name in ("ok", "traded", "harm")}
    least = (
        f"the largest fall is {-worst.percent:.1f}%"
        if worst.percent < 0
        else f"no cell falls, the smallest gain is {worst.percent:.1f}%"
    )
    return (
        f"{len(found)} cells: {counts['ok']} ok, {counts['traded']} traded, {counts['harm']} with "
        f"harm; {least}, the bound {HARM_PERCENT:g}%."
    )


def document(found: Sequence[Compared], kernel: str) -> dict[str, object]:
    """Every cell as JSON."""

    def run(one: Measured) -> dict[str, object]:
        return asdict(one)

    return {
        "kernel": kernel,
        "bound_percent": HARM_PERCENT,
        "cells": [
            asdict(one.cell)
            | {"without": run(one.without), "gateway": run(one.gateway)}
            | {"change_percent": one.percent, "verdict": one.verdict}
            for one in found
        ],
    }


def renewed(page: str, name: str, part: str) -> str:
    """The page with one of its tables renewed. Raises InputError."""
    begin, end = f"<!-- generated: {name} -->", f"<!-- end of {name} -->"
    head, found, rest = page.partition(begin)
    _, found_end, tail = rest.partition(end)
    if not (found and found_end):
        raise InputError(f"--page: has no part {begin} ... {end}")
    return f"{head}{begin}\n\n{part}\n{end}{tail}"


def _axis(text: str) -> list[str]:
    return text.split(",")


def chosen(args: argparse.Namespace) -> list[Cell]:
    """The cells asked for. Raises InputError."""
    if args.all:
        return list(cells.cells())
    named = {
        "lines": (args.lines, cells.LINES),
        "leaves": (args.leaves, (*cells.LEAVES, cells.CAKE_ALONE)),
        "controls": (args.controls, cells.CONTROLS),
        "directions": (args.directions, cells.DIRECTIONS),
    }
    for name, (values, known) in named.items():
        for value in values or ():
            bare = re.sub(":[1-9][0-9]*$|@[1-9][0-9]?$", "", value) if name == "leaves" else value
            if name != "lines" and bare not in known:
                raise InputError(f"--{name}: {value} is not one of {', '.join(known)}")
    if not any((args.rtts, args.flows, *(values for values, _ in named.values()))):
        return cells.default_cells()
    try:
        rtts = [float(rtt) for rtt in args.rtts or cells.RTTS_MS]
        counts = [int(count) for count in args.flows or (1,)]
        made = list(
            cells.cells(
                args.lines or cells.LINES,
                rtts,
                args.leaves or (CHOSEN,),
                args.controls or ("cubic",),
                counts,
                args.directions or tuple(cells.DIRECTIONS),
            )
        )
        if not all(min(cell.rates_bps) > 0 and cell.rtt_ms > 0 < cell.flows for cell in made):
            raise ValueError
    except ValueError:
        raise InputError("--lines are DOWN/UP in Mbit/s, --rtts in ms, --flows counts") from None
    return made


def in_lab(wanted: Sequence[Cell], args: argparse.Namespace) -> tuple[str, list[Compared]]:
    """The kernel's name, and its cells."""
    keep = args.results or files.cache_folder() / "results"
    kernel = build.find(files.cache_folder(), stock=True)
    with progress_bar(True) as show:
        runner = LabRunner(kernel, workers=args.jobs, keep=keep, on_progress=show)
        return kernel.label, cells.compared(runner, wanted)


def on_host(wanted: Sequence[Cell]) -> tuple[str, list[Compared]]:
    """The same, of this host."""
    with progress_bar(True) as show:
        found = host_cells.compared(Runner(workers=1, on_progress=show), wanted)
    return f"Linux {os.uname().release}, in real time", found


def main() -> int:
    """Exit code 1 when a cell falls by more than the bound."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for axis in ("lines", "rtts", "leaves", "controls", "flows", "directions"):
        parser.add_argument(f"--{axis}", type=_axis, metavar="A,B")
    parser.add_argument("--on", choices=("lab", "host"), default="lab")
    parser.add_argument("--all", action="store_true", help="the full product")
    parser.add_argument("--list", action="store_true", help="name the cells and run nothing")
    parser.add_argument("--jobs", type=int, help="runs at the same time")
    parser.add_argument("--results", type=Path, help="folder of raw results")
    parser.add_argument("--page", type=Path, metavar="FILE", help="page whose table is renewed")
    parser.add_argument("--part", default="cells", metavar="NAME", help="which of its tables")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    try:
        wanted = chosen(args)
        if args.list:
            for cell in wanted:
                print(*asdict(cell).values())
            return 0
        page = args.page.read_text(encoding="utf-8") if args.page else ""
        if args.page:
            renewed(page, args.part, "")  # before hours of runs
        label, found = on_host(wanted) if args.on == "host" else in_lab(wanted, args)
    except (InputError, RunError, OSError) as problem:
        print(f"gateway_cells: {problem}", file=sys.stderr)
        return 2
    print(table(found), summary(found), sep="\n")
    if args.page:
        part = f"{label}: {summary(found)}\n\n{table(found)}"
        args.page.write_text(renewed(page, args.part, part), encoding="utf-8")
    if args.json:
        args.json.write_text(json.dumps(document(found, label), indent=1) + "\n")
    return 1 if any(one.verdict == "harm" for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
