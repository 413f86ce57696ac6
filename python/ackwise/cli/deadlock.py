# SPDX-License-Identifier: MIT
"""`ackwise deadlock`: whether a pair can stall, which class, for how long, and what ends it."""

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from ackwise import __version__
from ackwise.cli import options
from ackwise.cli.options import OneOf, Quantity
from ackwise.cli.shape import Command, ParamType, group, option, others
from ackwise.errors import InputError, quoted

if TYPE_CHECKING:
    from ackwise.deadlock import Call, Cure, Pair
    from ackwise.engine.stalls import Verdict
    from ackwise.results.console import Console

SCHEMA_VERSION = 1
_MSS_BYTES_MAX = 65_535
_CALLS_MAX = 64
_SIZE = Quantity("SIZE", 1, 1 << 30, bare="B")
_RTT_NS_MIN = 1_000
_TEXT = """\
Checks whether Nagle's algorithm on the sender and delayed ACKs on the receiver can leave both hosts
waiting, for how long, and which changes end it.

This is not a simulation: the rules of both hosts are applied step by step, with the policy's own
code as the receiver, no loss and an unlimited congestion window. docs/experiments/deadlock.md
compares the answers with simulation.
"""
_EXAMPLES = """\
ackwise deadlock --mss 9148 --send-buffer 16KiB --recv-buffer 40KiB \\
    --nagle bsd43 --socket bsd43 --policy bsd
ackwise deadlock --link loopback --send-buffer 64KiB --recv-buffer 64KiB --policy delayed
ackwise deadlock --mss 1460 --write 2000 --send-buffer 64KiB --recv-buffer 64KiB --nagle bsd43
ackwise deadlock --mss 1448 --script 'write 100, write 100, read 1KiB'   # an answer to two writes
ackwise deadlock --mss 536 --send-buffer 1KiB --recv-buffer 4KiB --policy delayed --json
"""


class _Script(ParamType["tuple[Call, ...]"]):
    """`write SIZE` and `read SIZE`, with commas between them."""

    name = "CALLS"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from ackwise.deadlock import Call

        if not isinstance(value, str):
            return value
        calls = []
        for text in value.split(","):
            word, _, size = text.strip().partition(" ")
            if word not in ("write", "read") or not size.strip():
                raise InputError(
                    f"--script: {quoted(text.strip())} is not a call; give `write SIZE` or "
                    "`read SIZE`, with commas between them"
                )
            calls.append(Call(word, _SIZE.convert(size.strip(), param, ctx)))
        if not any(one.call == "write" for one in calls):
            raise InputError("--script: writes nothing; give at least one `write SIZE`")
        if len(calls) > _CALLS_MAX:
            raise InputError(f"--script: {len(calls)} calls; give at most {_CALLS_MAX}")
        return tuple(calls)


@dataclass(frozen=True)
class _Ends:
    """The two hosts and the path, as asked; None: from the link, or the default."""

    mss: int | None
    send_buffer: int
    recv_buffer: int
    nagle: str
    socket: str
    policy: str
    write: int | None
    script: "tuple[Call, ...]"
    no_timestamps: bool
    link: str | None
    rtt: int | None  # ns
    rate: int | None  # bit/s


def _pair(asked: _Ends) -> "Pair":
    from ackwise import plans
    from ackwise.deadlock import Pair
    from ackwise.plans import policy

    pair = Pair(
        mss_bytes=asked.mss or 0,
        send_buffer_bytes=asked.send_buffer,
        recv_buffer_bytes=asked.recv_buffer,
        policy=policy.parse(asked.policy, "--policy"),
        nagle=asked.nagle,
        socket=asked.socket,
        write_bytes=asked.write or 0,
        script=asked.script,
        timestamps=not asked.no_timestamps,
    )
    if asked.link:
        shape = plans.load_link(asked.link).scenario
        mss = shape.mtu_bytes - shape.ip_tcp_header_bytes
        pair = replace(
            pair,
            mss_bytes=pair.mss_bytes or min(mss, _MSS_BYTES_MAX),
            rtt_ns=max(shape.up.delay_ns + shape.down.delay_ns, _RTT_NS_MIN),
            rate_bps=shape.down.rate_bps,
        )
    if not pair.mss_bytes:
        raise InputError("--mss: is missing; give a size like 1460B, or a --link to take it from")
    return replace(pair, rtt_ns=asked.rtt or pair.rtt_ns, rate_bps=asked.rate or pair.rate_bps)


def document(
    pair: "Pair", verdict: "Verdict", every_bps: float, cures: "list[Cure]"
) -> dict[str, Any]:
    """The document of --json; deadlock.KEYS describes its keys."""
    from ackwise import deadlock
    from ackwise.results.document import number

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
            "script": [asdict(one) for one in pair.script],
            "timestamps": pair.timestamps,
            "policy": pair.policy.label,
            "rtt_ns": pair.rtt_ns,
            "rate_bps": pair.rate_bps,
        },
        "answer": verdict["answer"],
        "class": verdict["class"],
        "meaning": verdict["class"] and deadlock.CLASSES[verdict["class"]],
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
        "turns_per_s": number(verdict["goodput_bps"] / 8 / pair.turn_bytes)
        if pair.script
        else None,
        "goodput_every_bps": number(every_bps),
        "cures": [asdict(c) | {"goodput_bps": number(c.goodput_bps)} for c in cures],
    }


def _shown(value: float, unit: str) -> str:
    from ackwise.results.table import unit_of

    name, scale = unit_of(unit, value)
    return f"{value / scale:.3g} {name}"


def _print(console: "Console", found: dict[str, Any], covers: str) -> None:
    from rich.text import Text

    from ackwise import deadlock
    from ackwise.plans import units

    pair, stall = found["pair"], found["stall"]
    answer = deadlock.ANSWERS[found["answer"]]
    calm = found["answer"] in deadlock.CALM
    console.print(
        Text(f"{covers}; no loss, no limit by the congestion window, a reader that reads at once"),
        soft_wrap=True,
    )
    head = f"{'does not stall' if calm else 'STALLS'}: {answer}"
    console.print(Text(head, style="bold green" if calm else "bold red"), soft_wrap=True)

    def line(label: str, text: str) -> None:
        console.print(Text(f"  {label.ljust(15)} {text}"), soft_wrap=True)

    if stall:
        line("class", f"{found['class']}: {found['meaning']}")
        line(
            "at a stall",
            f"{stall['outstanding_bytes']} B sent but not acknowledged, {stall['held_bytes']} B "
            f"unsent, {stall['room_bytes']} B free in the send buffer",
        )
        waits = (stall["shortest_ns"], stall["longest_ns"])
        wait = " to ".join(dict.fromkeys(_shown(w, "ns") for w in waits))
        often = found["bytes_per_stall"]
        each = f", one in {often:.0f} B" if often and not calm else ""
        line("lasts", f"{wait}, until {stall['reason']}{each}")
    if found["start_stalls"] and calm:
        line("at the start", f"{found['start_stalls']} stalls, "
             f"{_shown(found['start_stalled_ns'], 'ns')} in all")  # fmt: skip
    left, every = found["goodput_bps"], found["goodput_every_bps"]
    line(
        "goodput",
        f"{_shown(left, 'bit/s')}; {_shown(every, 'bit/s')} if each segment were acknowledged "
        f"(RTT {units.show(pair['rtt_ns'], units.TIME)}, {_shown(pair['rate_bps'], 'bit/s')})",
    )
    if found["turns_per_s"]:
        line("turns", f"{found['turns_per_s']:.3g} a second")
    met = [n for n in ("1", "2") if found[f"equation_{n}"]]
    line("the paper", f"equation {' and '.join(met)} met" if met else "neither equation is met")
    if calm:
        return
    if not found["cures"]:
        console.print("none of the single changes tried ends it")
        return
    console.print(Text("changes that end it (each was tried):", style="bold"))
    wide = max(len(c["change"]) for c in found["cures"])
    for cure in found["cures"]:
        late = ", after stalls while it adapts" if cure["answer"] == deadlock.AT_START else ""
        text = f"  {cure['change'].ljust(wide)}  {_shown(cure['goodput_bps'], 'bit/s')}{late}"
        console.print(Text(text), soft_wrap=True)


@click.command("deadlock", cls=Command, text=_TEXT, examples=_EXAMPLES)
@group(
    "Hosts",
    option(
        "--mss",
        type=Quantity("SIZE", 64, _MSS_BYTES_MAX, bare="B"),
        metavar="SIZE",
        help="maximum segment size",
        show_default="the link's",
    ),
    option(
        "--send-buffer",
        type=Quantity("SIZE", 1, 1 << 30, bare="B"),
        metavar="SIZE",
        default="4MiB",
        help="sender's send buffer; 4MiB is as far as Linux grows it",
    ),
    option(
        "--recv-buffer",
        type=Quantity("SIZE", 256, 1 << 30, bare="B"),
        metavar="SIZE",
        default="128KiB",
        help="receiver's receive buffer, fixed; 128KiB is what Linux begins with",
    ),
    option(
        "--nagle",
        type=OneOf("bsd43", "minshall", "off"),
        default="minshall",
        help="sender's Nagle algorithm; Linux uses minshall",
    ),
    option(
        "--socket",
        type=OneOf("linux", "bsd43"),
        default="linux",
        help="sender's socket layer: how it copies what the application writes",
    ),
    option(
        "--policy",
        type=options.POLICY,
        metavar="NAME[:KEY=VALUE,...]",
        default="linux",
        help="receiver's ACK policy",
    ),
    option(
        "--write",
        type=Quantity("SIZE", 1, 1 << 30, bare="B"),
        metavar="SIZE",
        help="size of each message the application writes",
        show_default="one endless stream",
    ),
    option(
        "--script",
        type=_Script(),
        metavar="CALLS",
        default=(),
        help="what the application does in each turn: up to 64 of `write SIZE` and `read SIZE`, "
        "with commas between them; a read waits for an answer of that size",
        show_default="one endless stream",
    ),
    option(
        "--no-timestamps",
        is_flag=True,
        help="no RFC 7323 timestamps: Linux then estimates the RTT from the duration of a window",
    ),
)
@group(
    "Path",
    option(
        "--link",
        type=options.LINK,
        metavar="NAME|FILE",
        help="link to take the MSS, RTT and rate from",
    ),
    option(
        "--rtt",
        type=Quantity("TIME", _RTT_NS_MIN, 60 * 10**9),
        metavar="TIME",
        help="round-trip time",
        show_default="the link's, or 1ms",
    ),
    option(
        "--rate",
        type=Quantity("RATE", 1_000, 10**12),
        metavar="RATE",
        help="link rate",
        show_default="the link's, or 100mbit",
    ),
)
@others(
    option("--no-cures", is_flag=True, help="do not search for changes that end a stall"),
    option("--json", "as_json", is_flag=True, help="print JSON, see docs/results.md"),
)
@options.gathered("ends", _Ends)
def command(ends: _Ends, no_cures: bool, as_json: bool) -> int:
    """0 whatever the answer is; raises InputError."""
    from ackwise import deadlock
    from ackwise.plans import policy
    from ackwise.results.console import Console

    options.one_of("--write", "--script")
    pair = _pair(ends)
    verdict = deadlock.judge(pair)
    every = replace(pair, policy=policy.parse("every", "--policy"))
    every_bps = float(deadlock.judge(every)["goodput_bps"])
    calm = verdict["answer"] in deadlock.CALM
    cures = [] if calm or no_cures else list(deadlock.cures(pair))
    found = document(pair, verdict, every_bps, cures)
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        _print(Console(), found, pair.covers)
    return 0
