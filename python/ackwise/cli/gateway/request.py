# SPDX-License-Identifier: MIT
"""The options that describe a link and its queues, and the request they become."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

from ackwise.cli import options
from ackwise.cli.options import Known, Number, OneOf, Quantity, Whole
from ackwise.cli.shape import F, argument, group, option
from ackwise.gateway import linklayer, tree
from ackwise.gateway.classifier import Framing
from ackwise.gateway.linklayer import LinkLayer
from ackwise.gateway.settings import MTU_BYTES_MAX, Access, LeafChoice, Request, leaf_choice


class _Layer(Known):
    """A link layer by name, or the bytes around an IP packet."""

    def __init__(self) -> None:
        super().__init__(lambda: ((x.name, x.what) for x in linklayer.LAYERS.values()))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return linklayer.read(value, param.opts[-1] if param else self.name)


class _Leaf(Known):
    """KIND or KIND:LIMIT."""

    def __init__(self) -> None:
        super().__init__(lambda: ((kind, "") for kind in tree.LEAF_KINDS))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return leaf_choice(value, param.opts[-1] if param else self.name)


def _interfaces() -> Iterator[tuple[str, str]]:
    import socket

    return ((name, "") for _index, name in socket.if_nameindex())


@dataclass(frozen=True)
class LinkOptions:
    """The link as given; None: to be found out."""

    down: int  # bit/s
    up: int  # bit/s
    mtu: int | None
    overhead: LinkLayer
    ack_bytes: int | None
    timestamps: str
    sack: int
    ipv6: bool
    segments_per_ack: float
    window: int
    rtt: int  # ns

    def access(self) -> Access:
        """What the gateway starts from."""
        return Access(
            down_bps=self.down,
            up_bps=self.up,
            layer=self.overhead,
            mtu_bytes=self.mtu,
            ack_bytes=self.ack_bytes,
            timestamps=self.timestamps == "on",
            sack_blocks=self.sack,
            ipv6=self.ipv6,
            segments_per_ack=self.segments_per_ack,
            window_packets=self.window,
            rtt_ns=self.rtt,
        )


@dataclass(frozen=True)
class QueueOptions:
    """The queues as given; None: from the model, the interface or the kernel."""

    ack_guarantee: int | None  # bit/s
    ack_ceiling: int | None  # bit/s
    ack_leaf: LeafChoice | None
    data_leaf: LeafChoice
    burst: int | None  # ns
    framing: str | None

    def request(self, interface: str, link: LinkOptions) -> Request:
        """What is asked for on `interface`."""
        return Request(
            interface=interface,
            access=link.access(),
            framing=Framing(self.framing) if self.framing else None,
            ack_guarantee_bps=self.ack_guarantee,
            ack_ceiling_bps=self.ack_ceiling,
            ack_leaf=self.ack_leaf,
            data_leaf=self.data_leaf,
            burst_ns=self.burst,
        )


def interface(function: F) -> F:
    """The argument INTERFACE."""
    return argument(
        "interface", metavar="INTERFACE", type=Known(_interfaces), help="network interface"
    )(function)


def link(function: F) -> F:
    """The options of the link; the command takes `link`."""
    rate = Quantity("RATE", 8_000, 10**12)
    return group(
        "Link",
        option("--down", type=rate, metavar="RATE", required=True, help="downlink rate"),
        option("--up", type=rate, metavar="RATE", required=True, help="uplink rate"),
        option(
            "--mtu", type=Quantity("SIZE", 576, MTU_BYTES_MAX), metavar="SIZE",
            help="largest IP packet", show_default="the interface's, or 1500B",
        ),
        option(
            "--overhead", type=_Layer(), metavar="NAME|SIZE", default="header",
            help=f"what surrounds an IP packet: {', '.join(linklayer.LAYERS)}, or bytes such as "
            "26B",
        ),
        option(
            "--ack-bytes", type=Quantity("SIZE", 40, 256), metavar="SIZE",
            help="size of an ACK's IP packet", show_default="from the next three options",
        ),
        option(
            "--timestamps", type=OneOf("on", "off"), default="on",
            help="TCP timestamps, 12 bytes in each header",
        ),
        option("--sack", type=Whole(0, 4), metavar="N", default=0, help="SACK blocks in each ACK"),
        option("--ipv6", is_flag=True, help="IPv6 headers of 40 bytes instead of IPv4's 20"),
        option(
            "--segments-per-ack", type=Number(1, 1000), metavar="N", default=1,
            help="data segments per ACK; 1 is the worst case",
        ),
        option(
            "--window", type=Whole(0, 10**8), metavar="N", default=0,
            help="packets in a download's window; 0 means unlimited",
        ),
        option(
            "--rtt", type=Quantity("TIME", 0, 60 * 10**9), metavar="TIME", default="20ms",
            help="round-trip time with empty queues",
        ),
    )(options.gathered("link", LinkOptions)(function))  # fmt: skip


def queues(function: F) -> F:
    """The options of the queues; the command takes `queues`."""
    rate = Quantity("RATE", 8, 10**12)
    kinds = ", ".join(tree.LEAF_KINDS)
    return group(
        "Queues",
        option(
            "--framing", type=OneOf(*(f.value for f in Framing)),
            help="framing of the interface: Ethernet headers, or IP packets alone",
            show_default="detected",
        ),
        option(
            "--ack-guarantee", type=rate, metavar="RATE", help="guaranteed rate of the ACK class",
            show_default="from the model",
        ),
        option(
            "--ack-ceiling", type=rate, metavar="RATE", help="highest rate of the ACK class",
            show_default="from the model",
        ),
        option(
            "--ack-leaf", type=_Leaf(), metavar="KIND[:LIMIT]",
            help=f"qdisc of the ACK class: {kinds}", show_default="from the model",
        ),
        option(
            "--data-leaf", type=_Leaf(), metavar="KIND[:LIMIT]", default="pfifo",
            help="qdisc of the data class",
        ),
        option(
            "--burst", type=Quantity("TIME", 1000, 10**9), metavar="TIME",
            help="HTB burst allowance",
            show_default="1ms, or the step of this kernel's timers if that is longer",
        ),
    )(options.gathered("queues", QueueOptions)(function))  # fmt: skip


# Options that the settings depend on.
_REPEATED = (
    "--down", "--up", "--mtu", "--overhead", "--ack-bytes", "--timestamps", "--sack",
    "--segments-per-ack", "--framing", "--ack-guarantee", "--ack-ceiling", "--ack-leaf",
    "--data-leaf", "--burst",
)  # fmt: skip


def _default(ctx: click.Context, param: click.Parameter) -> Any:
    known = isinstance(param.default, str | int | float)
    return param.type_cast_value(ctx, param.default) if known else None


def arguments(interface: str) -> str:
    """The arguments of `up` that lead to the same settings, for units and hooks."""
    ctx = click.get_current_context()
    raw = options.raw()
    words = [interface]
    for param in ctx.command.params:
        text = raw.get(param.name or "")
        if param.opts[-1] not in _REPEATED or text is None:
            continue
        if param.type_cast_value(ctx, text) != _default(ctx, param):
            words += [param.opts[-1], text]
    return shlex.join(words + (["--ipv6"] if ctx.params["ipv6"] else []))
