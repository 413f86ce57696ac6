# SPDX-License-Identifier: MIT
"""`ackwise policy list|show`: what the engine has, as it tells it."""

import argparse
import json
from typing import Any

from rich.console import Console
from rich.text import Text

from ackwise import engine, policy


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


def main(args: argparse.Namespace) -> int:
    """Exit code; raises InputError for an unknown name."""
    if args.verb == "show":
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
