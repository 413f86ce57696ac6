# SPDX-License-Identifier: MIT
"""`ackwise deadlock`: whether a pair can stall, which class, for how long, and what ends it."""

import argparse
import json
from dataclasses import asdict, replace
from typing import Any

from rich.console import Console
from rich.text import Text

from ackwise import __version__, deadlock, plans
from ackwise.deadlock import Cure, Pair
from ackwise.errors import InputError
from ackwise.plans import policy, units
from ackwise.plans.units import RATE, SIZE, TIME, Dimension
from ackwise.results.document import number
from ackwise.results.table import unit_of

SCHEMA_VERSION = 1
BOUNDS: dict[str, tuple[Dimension, int, int]] = {
    "--mss": (SIZE, 64, 65_535),
    "--send-buffer": (SIZE, 1, 1 << 30),
    "--recv-buffer": (SIZE, 256, 1 << 30),
    "--write": (SIZE, 1, 1 << 30),
    "--rtt": (TIME, 1_000, 60 * 10**9),
    "--rate": (RATE, 1_000, 10**12),
}


def _quantity(option: str, text: str) -> int:
    if BOUNDS[option][0] is SIZE and text.isascii() and text.isdigit():
        text += "B"  # nobody counts an MSS or a buffer in anything else
    return units.read_option(option, text, BOUNDS[option])


def _pair(args: argparse.Namespace) -> Pair:
    def given(option: str) -> int | None:
        text = getattr(args, option.removeprefix("--"))
        return _quantity(option, text) if text else None

    pair = Pair(
        mss_bytes=given("--mss") or 0,
        send_buffer_bytes=_quantity("--send-buffer", args.send_buffer),
        recv_buffer_bytes=_quantity("--recv-buffer", args.recv_buffer),
        policy=policy.parse(args.policy, "--policy"),
        nagle=args.nagle,
        socket=args.socket,
        write_bytes=given("--write") or 0,
    )
    if args.link:
        shape = plans.load_link(args.link).scenario
        up, down = shape["up"], shape["down"]
        mss = shape["mtu_bytes"] - shape["ip_tcp_header_bytes"]
        pair = replace(
            pair,
            mss_bytes=pair.mss_bytes or min(mss, BOUNDS["--mss"][2]),
            rtt_ns=max(up["delay_ns"] + down["delay_ns"], BOUNDS["--rtt"][1]),
            rate_bps=down["rate_bps"],
        )
    if not pair.mss_bytes:
        raise InputError("--mss: is missing; give a size like 1460B, or a --link to take it from")
    return replace(
        pair,
        rtt_ns=given("--rtt") or pair.rtt_ns,
        rate_bps=given("--rate") or pair.rate_bps,
    )


def document(pair: Pair, verdict: dict[str, Any], every_bps: float, cures: list[Cure]) -> Any:
    """What --json writes; deadlock.KEYS documents it."""
    stall = verdict["stall"]
    return {
        "schema_version": SCHEMA_VERSION,
        "ackwise_version": __version__,
        "kind": "deadlock",
        "pair": {
            "mss_bytes": pair.mss_bytes,
            "send_buffer_bytes": pair.send_buffer_bytes,
            "recv_buffer_bytes": pair.recv_buffer_bytes,
            "nagle": pair.nagle,
            "socket": pair.socket,
            "write_bytes": pair.write_bytes,
            "policy": pair.policy.label,
            "rtt_ns": pair.rtt_ns,
            "rate_bps": pair.rate_bps,
        },
        "answer": verdict["answer"],
        "class": verdict["class"],
        "meaning": deadlock.CLASSES.get(verdict["class"]),
        "equation_1": pair.equation_1,
        "equation_2": pair.equation_2,
        "stall": stall
        and {
            "reason": stall["reason"],
            "outstanding_bytes": stall["outstanding_bytes"],
            "held_bytes": stall["held_bytes"],
            "room_bytes": stall["room_bytes"],
            "shortest_ns": verdict["shortest_ns"],
            "longest_ns": verdict["longest_ns"],
        },
        "start_stalls": verdict["start_stalls"],
        "start_stalled_ns": verdict["start_ns"],
        "bytes_per_stall": number(verdict["bytes_per_stall"]) or None,
        "goodput_bps": number(verdict["goodput_bps"]),
        "goodput_every_bps": number(every_bps),
        "cures": [asdict(c) | {"goodput_bps": number(c.goodput_bps)} for c in cures],
    }


def _shown(value: float, unit: str) -> str:
    name, scale = unit_of(unit, value)
    return f"{value / scale:.3g} {name}"


def _print(console: Console, told: dict[str, Any]) -> None:
    pair, stall = told["pair"], told["stall"]
    answer = deadlock.ANSWERS[told["answer"]]
    calm = told["answer"] in deadlock.CALM
    head = f"{'does not stall' if calm else 'STALLS'}: {answer}"
    console.print(Text(head, style="bold green" if calm else "bold red"), soft_wrap=True)

    def line(label: str, text: str) -> None:
        console.print(Text(f"  {label.ljust(15)} {text}"), soft_wrap=True)

    if stall:
        line("class", f"{told['class']}: {told['meaning']}")
        line(
            "at a stall",
            f"{stall['outstanding_bytes']} B sent and not acknowledged, {stall['held_bytes']} B "
            f"held back, {stall['room_bytes']} B free in the send buffer",
        )
        waits = (stall["shortest_ns"], stall["longest_ns"])
        wait = " to ".join(dict.fromkeys(_shown(w, "ns") for w in waits))
        often = told["bytes_per_stall"]
        each = f", one in {often:.0f} B" if often and not calm else ""
        line("lasts", f"{wait}, until {stall['reason']}{each}")
    if told["start_stalls"] and calm:
        line("at the start", f"{told['start_stalls']} stalls, "
             f"{_shown(told['start_stalled_ns'], 'ns')} in all")  # fmt: skip
    left, every = told["goodput_bps"], told["goodput_every_bps"]
    line(
        "goodput",
        f"{_shown(left, 'bit/s')}; {_shown(every, 'bit/s')} if each segment were acknowledged "
        f"(round trip {units.show(pair['rtt_ns'], TIME)}, {_shown(pair['rate_bps'], 'bit/s')})",
    )
    met = [n for n in ("1", "2") if told[f"equation_{n}"]]
    line("the source", f"equation {' and '.join(met)} met" if met else "neither equation is met")
    if calm:
        return
    if not told["cures"]:
        console.print("no single change that was tried ends it")
        return
    console.print(Text("ends it (each was tried):", style="bold"))
    wide = max(len(c["change"]) for c in told["cures"])
    for cure in told["cures"]:
        late = ", stalls while it learns" if cure["answer"] == deadlock.AT_START else ""
        text = f"  {cure['change'].ljust(wide)}  {_shown(cure['goodput_bps'], 'bit/s')}{late}"
        console.print(Text(text), soft_wrap=True)


def main(args: argparse.Namespace) -> int:
    """0 whatever the answer is; raises InputError."""
    pair = _pair(args)
    verdict = deadlock.judge(pair)
    every = replace(pair, policy=policy.parse("every", "--policy"))
    every_bps = float(deadlock.judge(every)["goodput_bps"])
    calm = verdict["answer"] in deadlock.CALM
    found = [] if calm or args.no_cures else list(deadlock.cures(pair))
    told = document(pair, verdict, every_bps, found)
    if args.json:
        print(json.dumps(told, indent=2))
    else:
        _print(Console(highlight=False), told)
    return 0
