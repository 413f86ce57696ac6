# SPDX-License-Identifier: MIT
"""`ackwise policy list|show`: what the engine tells of policies, and the kernel of live sockets."""

import argparse
import dataclasses
import json
import time
from typing import Any

from rich.console import Console
from rich.text import Text

from ackwise import engine
from ackwise.errors import InputError
from ackwise.host import sockets
from ackwise.host.sockets import LiveSocket
from ackwise.plans import policy, schema


def _show(console: Console, entry: dict[str, Any]) -> None:
    console.print(Text(entry["name"], style="bold"), Text(entry["summary"]), soft_wrap=True)
    console.print(Text(f"source: {entry['source']}"), soft_wrap=True)
    console.print(Text(f"state: {entry['state_bytes']} bytes for each connection"))
    if entry["values"]:
        console.print(Text("values over time, in a result's series:"))
        wide = max(len(v["name"]) for v in entry["values"])
        for v in entry["values"]:
            console.print(
                Text(f"  {v['name'].ljust(wide)}  {v['unit']}: {v['text']}"), soft_wrap=True
            )
    if not entry["params"]:
        console.print("no parameters")
        return
    console.print(Text("parameters:"))
    wide = max(len(p["name"]) for p in entry["params"])
    for p in entry["params"]:
        console.print(
            Text(
                f"  {p['name'].ljust(wide)}  {p['min']} to {p['max']} {p['unit']}, "
                f"default {p['initial']}: {p['text']}"
            ),
            soft_wrap=True,
        )
    console.print(
        Text(
            f"use: --policy {entry['name']}:{entry['params'][0]['name']}="
            f"{entry['params'][0]['initial']}"
        ),
        soft_wrap=True,
    )


def _row(one: LiveSocket) -> list[str]:
    if one.acks is None or one.segments is None or one.owed_ns is None or one.wait_ns is None:
        return [one.local, one.peer, one.state, one.choice, *[""] * 6]
    return [
        one.local, one.peer, one.state, one.choice, one.last_reason or "",
        str(one.acks), str(one.segments),
        f"{one.owed_ns / 1e6:.1f}" if one.owed_ns else "",
        f"{one.wait_ns / 1e6:.1f}" if one.wait_ns else "",
        " ".join(f"{name}={value}" for name, value in (one.values or {}).items()),
    ]  # fmt: skip


_HEADS = (
    "local", "peer", "state", "policy", "last ACK", "ACKs", "segments", "owed ms", "due in ms",
    "policy's state",
)  # fmt: skip
_RIGHT = range(5, 9)
_SHORTEST_S = 0.1  # between two looks


def _show_sockets(console: Console, found: list[LiveSocket]) -> None:
    rows = [list(_HEADS), *map(_row, found)]
    wide = [max(len(row[i]) for row in rows) for i in range(len(_HEADS))]
    for number, row in enumerate(rows):
        cells = (
            cell.rjust(wide[i]) if i in _RIGHT else cell.ljust(wide[i])
            for i, cell in enumerate(row)
        )
        console.print(
            Text("  ".join(cells).rstrip(), style="" if number else "bold"), soft_wrap=True
        )
    if not found:
        console.print("no TCP sockets in this network namespace")


def _interval_s(text: str) -> float:
    try:
        interval_ns: int = schema.read_key(schema.DURATION, text)
    except ValueError as problem:
        raise InputError(f"--watch: {problem}") from None
    return max(interval_ns / 1e9, _SHORTEST_S)


def _live(args: argparse.Namespace) -> int:
    console = Console(highlight=False)
    interval_s = _interval_s(args.watch) if args.watch else None
    while True:
        found = sockets.live()
        if args.json:
            # one line for each look, so that a reader knows where it ends
            told = [dataclasses.asdict(one) for one in found]
            print(json.dumps(told, indent=None if interval_s else 2), flush=True)
        else:
            if interval_s and console.is_terminal:
                console.clear()
            _show_sockets(console, found)
        if interval_s is None:
            return 0
        time.sleep(interval_s)


def main(args: argparse.Namespace) -> int:
    """Exit code; raises InputError for an unknown name, RunError without policies in the kernel."""
    if args.verb == "show" and args.name is None:
        return _live(args)
    if args.verb == "show":
        if args.watch:
            raise InputError("policy show: --watch is for live sockets; leave NAME out")
        entry = policy.find(args.name, "policy show")
        if args.json:
            print(json.dumps(entry, indent=2))
        else:
            _show(Console(highlight=False), entry)
        return 0
    if args.json:
        print(json.dumps(engine.policies(), indent=2))
        return 0
    console = Console(highlight=False)
    wide = max(len(p["name"]) for p in engine.policies())
    for entry in engine.policies():
        console.print(
            Text(entry["name"].ljust(wide), style="bold"),
            Text(f" {entry['summary']}"),
            soft_wrap=True,
        )
    console.print(Text("`ackwise policy show NAME` tells parameters and source", style="dim"))
    return 0
