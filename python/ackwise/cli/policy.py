# SPDX-License-Identifier: MIT
"""`ackwise policy list|show|price|load|unload`: the engine's policies, and the running kernel's."""

import dataclasses
import json
import time
from typing import TYPE_CHECKING

import click

from ackwise.cli import options
from ackwise.cli.options import Duration, Quantity
from ackwise.cli.shape import Group, argument, group, option, others
from ackwise.errors import InputError

if TYPE_CHECKING:
    from ackwise.engine.catalogue import PolicyEntry
    from ackwise.host.sockets import LiveSocket
    from ackwise.results.console import Console

_EXAMPLES = """\
ackwise policy list
ackwise policy show delayed
ackwise policy list --json
ackwise policy price --uplink 1mbit --rate 50mbit
ackwise policy show --watch 1s
ackwise policy load delayed.bpf.o
"""
_LIST_EXAMPLES = """\
ackwise policy list
ackwise policy list --json
ackwise policy list --rivals
ackwise policy list --loaded
"""
_LOAD_TEXT = """\
FILE contains a policy as BPF programs; `make -C linux/bpf` builds such files from the policies of
core/. Loading needs root, libbpf, and a kernel with linux/patches, a JIT and BTF. Applications,
routes and sysctls can then select the policy by name. A loaded policy with the same name and
parameters is replaced: existing connections keep it, new connections get the new one.
"""
_LOAD_EXAMPLES = """\
ackwise policy load linux/bpf/build/delayed.bpf.o
ackwise policy load linux/bpf/build/delayed.bpf.o --json
"""
_UNLOAD_TEXT = """\
New connections no longer get the policy. Existing ones keep it, and the kernel frees it with the
last of them. Network namespaces that use it as their default return to the kernel's own rules.
"""
_UNLOAD_EXAMPLES = """\
ackwise policy unload bpfdelayed
"""
_PRICE_TEXT = """\
`greedy` and `dynamic` weigh the cost of an ACK against the time that segments wait for it. An ACK
takes time on a processor or on the air (--ack-cost), or on an uplink (--uplink). While data arrives
at RATE, ACKs may use SHARE of that resource, which allows one ACK per K segments. The price L is
the waiting time at which this is the cheapest schedule. `greedy` then sends exactly one ACK per K
segments; `dynamic`, whose threshold is random, sends a fifth more on average. A host
sends several ACKs per RTT whatever the policy; with --rtt, the answer says whether that is more.
"""
_PRICE_EXAMPLES = """\
ackwise policy price --uplink 1mbit --rate 50mbit
ackwise policy price --uplink 1mbit --ack-bytes 106B --rate 50mbit --share 5%   # two ATM cells
ackwise policy price --ack-cost 38us --rate 100mbit --share 2%   # as `ackwise device run` found
ackwise policy price --uplink 1mbit --rate 50mbit --rtt 10ms
ackwise policy price --ack-cost 120us --rate 200mbit --json      # airtime
"""
_SHOW_TEXT = """\
With NAME: the policy's parameters with units and ranges, and its state. Without NAME: the TCP
sockets of this network namespace, which needs a kernel with linux/patches. Each line has the
socket's policy, ACKs sent and data segments received, how long an ACK has been owed and when it is
due, and the policy's state, which `ackwise policy show NAME` explains.
"""
_SHOW_EXAMPLES = """\
ackwise policy show delayed
ackwise policy show delayed --json
ackwise policy show
ackwise policy show --watch 1s
"""


def _show(console: "Console", entry: "PolicyEntry") -> None:
    from rich.text import Text

    console.print(Text(entry["name"], style="bold"), Text(entry["summary"]), soft_wrap=True)
    if entry["kind"] == "rival":
        console.print(Text("the rule of another stack: in the simulator and in replays only"))
        console.print(Text(f"as published: --policy {entry['name']}:clamp=none"))
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


def _row(one: "LiveSocket") -> list[str]:
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
_INTERVAL_S_MIN = 0.1


def _show_sockets(console: "Console", found: "list[LiveSocket]") -> None:
    from rich.text import Text

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


@click.group("policy", cls=Group, examples=_EXAMPLES)
def command() -> None:
    """Group of subcommands."""


@command.command("list", short_help="List every policy in one line", examples=_LIST_EXAMPLES)
@others(
    option("--loaded", is_flag=True, help="only policies loaded with `ackwise policy load`"),
    option("--rivals", is_flag=True, help="only the rules of other stacks"),
    options.AS_JSON,
)
def list_(loaded: bool, rivals: bool, as_json: bool) -> int:
    """Exit code."""
    if loaded:
        options.refuse(("--rivals",), "--loaded")
        return _list_loaded(as_json=as_json)
    from rich.text import Text

    from ackwise import engine
    from ackwise.results.console import Console

    every = engine.policies()
    of_others = [p for p in every if p["kind"] == "rival"]
    listed = of_others if rivals else [p for p in every if p["kind"] != "rival"]
    if as_json:
        print(json.dumps(of_others if rivals else every, indent=2))
        return 0
    console = Console()
    wide = max(len(p["name"]) for p in listed)
    for entry in listed:
        console.print(
            Text(entry["name"].ljust(wide), style="bold"),
            Text(f" {entry['summary']}"),
            soft_wrap=True,
        )
    if not rivals:
        names = ", ".join(p["name"] for p in of_others)
        console.print(
            Text(f"of other stacks, `ackwise policy list --rivals`: {names}"), soft_wrap=True
        )
    console.print(Text("`ackwise policy show NAME` shows parameters and source", style="dim"))
    return 0


def _list_loaded(*, as_json: bool) -> int:
    from ackwise.host import bpf

    names = bpf.loaded()
    if as_json:
        print(json.dumps(names, indent=2))
    else:
        print("\n".join(names) or "no policy is loaded")
    return 0


@command.command(
    "load",
    short_help="Load a policy of BPF programs into the running kernel",
    text=_LOAD_TEXT,
    examples=_LOAD_EXAMPLES,
)
@argument("file", type=options.FILE, help="object file of BPF programs")
@others(options.AS_JSON)
def load(file: str, as_json: bool) -> int:
    """Exit code; raises InputError for a file without a policy, RunError if it cannot be loaded."""
    from ackwise.host import bpf, rights

    rights.keep_only(*bpf.RIGHTS)
    done = bpf.load(file)
    if as_json:
        print(json.dumps(dataclasses.asdict(done), indent=2))
    else:
        print(f"{done.name}: {'replaced' if done.replaced else 'loaded'}")
    return 0


@command.command(
    "unload",
    short_help="Unload a policy from the running kernel",
    text=_UNLOAD_TEXT,
    examples=_UNLOAD_EXAMPLES,
)
@argument("name", help="policy loaded with `ackwise policy load`")
def unload(name: str) -> int:
    """Exit code; raises InputError for a name that is not loaded."""
    from ackwise.host import bpf, rights

    rights.keep_only(*bpf.RIGHTS)
    bpf.unload(name)
    print(f"{name}: unloaded")
    return 0


@command.command(
    "price",
    short_help="Convert the cost of an ACK into the price parameter of greedy and dynamic",
    text=_PRICE_TEXT,
    examples=_PRICE_EXAMPLES,
)
@group(
    "What an ACK costs",
    option(
        "--ack-cost",
        type=Quantity("TIME", 1, 10**9),
        metavar="TIME",
        help="time for which an ACK occupies the processor, or the air",
    ),
    option(
        "--uplink",
        type=Quantity("RATE", 1000, 10**12),
        metavar="RATE",
        help="rate of the link that ACKs share with other traffic",
    ),
    option(
        "--ack-bytes",
        type=Quantity("SIZE", 40, 2000),
        metavar="SIZE",
        default="52B",
        help="size of an ACK on the uplink, with link-layer headers",
    ),
)
@group(
    "What it may cost",
    option(
        "--rate",
        type=Quantity("RATE", 1000, 10**12),
        metavar="RATE",
        required=True,
        help="rate at which data arrives",
    ),
    option(
        "--share",
        type=Quantity("SHARE", 1, 10**6),
        metavar="SHARE",
        default="10%",
        help="share of the processor, the air or the uplink for ACKs",
    ),
    option(
        "--rtt",
        type=Duration(),
        metavar="TIME",
        help="round-trip time, to add the share that ACKs take under a host's clamp",
    ),
)
@others(options.AS_JSON)
def price(
    ack_cost: int | None,
    uplink: int | None,
    ack_bytes: int,
    rate: int,
    share: int,
    rtt: int | None,
    as_json: bool,
) -> int:
    """Exit code; raises InputError."""
    from ackwise.plans import price as prices
    from ackwise.plans import units

    if ack_cost is None:
        if uplink is None:
            raise InputError("policy price: give what an ACK costs, --ack-cost or --uplink")
        cost_ns = prices.on_uplink(uplink, ack_bytes)
    else:
        options.refuse(("--uplink", "--ack-bytes"), "--ack-cost", "give one of them")
        cost_ns = ack_cost
    found = prices.price(cost_ns, share, rate, rtt or 0)
    if as_json:
        print(json.dumps(found.document(), indent=2))
        return 0
    print(
        f"an ACK takes {cost_ns / 1000:.3g} us: {units.show(share, units.SHARE)} of the time is "
        f"{float(found.acks_per_s):.0f} ACKs per second"
    )
    print(
        f"{units.show(rate, units.RATE)} is {float(found.segments_per_s):.0f} segments per second: "
        f"one ACK per {float(found.segments_per_ack):.1f} segments"
    )
    if found.clamped_segments_per_ack is not None and found.clamped_share_ppm is not None:
        if found.clamped_segments_per_ack < found.segments_per_ack:
            print(
                f"a host sends one per {float(found.clamped_segments_per_ack):.0f} at "
                f"this RTT: ACKs take {units.show(found.clamped_share_ppm, units.SHARE)}"
            )
        else:
            print("a host sends no more than that at this RTT")
    print(f"price of an ACK: L = {found.price_ns / 1e6:.3f} ms of waiting")
    for spec in found.policies:
        print(f"use: --policy {spec}")
    return 0


@command.command(
    "show",
    short_help="Show one policy, or the policies of live sockets",
    text=_SHOW_TEXT,
    examples=_SHOW_EXAMPLES,
)
@argument(
    "name", required=False, type=options.POLICY, help="policy to show", show_default="live sockets"
)
@others(
    option(
        "--watch",
        type=Duration(),
        metavar="TIME",
        help="repeat the live sockets every TIME, until Ctrl-C",
    ),
    options.AS_JSON,
)
def show(name: str | None, watch: int | None, as_json: bool) -> int:
    """Exit code; raises InputError for an unknown name, RunError without policies in the kernel."""
    from ackwise.plans import policy
    from ackwise.results.console import Console

    if name is None:
        interval_s = None if watch is None else max(watch / 1e9, _INTERVAL_S_MIN)
        return _live(interval_s, as_json=as_json)
    if watch is not None:
        raise InputError("--watch: cannot be combined with NAME; it is for live sockets")
    entry = policy.find(name, "policy show")
    if as_json:
        print(json.dumps(entry, indent=2))
    else:
        _show(Console(), entry)
    return 0


def _live(interval_s: float | None, *, as_json: bool) -> int:
    from ackwise.host import sockets
    from ackwise.results.console import Console

    console = Console()
    while True:
        found = sockets.live()
        if as_json:
            # one line for each look, so that a reader knows where it ends
            shown = [dataclasses.asdict(one) for one in found]
            print(json.dumps(shown, indent=None if interval_s else 2), flush=True)
        else:
            if interval_s and console.is_terminal:
                console.clear()
            _show_sockets(console, found)
        if interval_s is None:
            return 0
        time.sleep(interval_s)
