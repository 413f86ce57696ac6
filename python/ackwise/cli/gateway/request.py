# SPDX-License-Identifier: MIT
"""The options that describe a link and its queues, and the request they become."""

from collections.abc import Iterator
from typing import Any

import click

from ackwise.cli import options
from ackwise.cli.options import Known, Number, OneOf, Quantity, Whole
from ackwise.cli.shape import F, argument, group, option
from ackwise.gateway import formats, linklayer, tree
from ackwise.gateway.classifier import Framing
from ackwise.gateway.settings import MTU_BYTES_MAX, Access, Request, leaf_choice


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

    # a shell would complete to the bare name, and obey it
    return ((name, "") for _index, name in socket.if_nameindex() if formats.sh_word(name) == name)


class _Switch(OneOf):
    """On or off, as a truth value."""

    def __init__(self) -> None:
        super().__init__("on", "off")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(value, param, ctx) == "on"


class _Framing(OneOf):
    """The framing of an interface."""

    def __init__(self) -> None:
        super().__init__(*(framing.value for framing in Framing))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return Framing(super().convert(value, param, ctx))


def interface(function: F) -> F:
    """The argument INTERFACE."""
    return argument(
        "interface", metavar="INTERFACE", type=Known(_interfaces), help="network interface"
    )(function)


def link(function: F) -> F:
    """The options of the link; the command takes `access`."""
    rate = Quantity("RATE", 8_000, 10**12)
    return group(
        "Link",
        option(
            "--down", "down_bps", type=rate, metavar="RATE", required=True, help="downlink rate",
        ),
        option("--up", "up_bps", type=rate, metavar="RATE", required=True, help="uplink rate"),
        option(
            "--mtu", "mtu_bytes", type=Quantity("SIZE", 576, MTU_BYTES_MAX), metavar="SIZE",
            help="largest IP packet", show_default="the interface's, or 1500B",
        ),
        option(
            "--overhead", "layer", type=_Layer(), metavar="NAME|SIZE", default="header",
            help=f"overhead per IP packet: {', '.join(linklayer.LAYERS)}, or bytes such as "
            "26B",
        ),
        option(
            "--ack-bytes", type=Quantity("SIZE", 40, 256), metavar="SIZE",
            help="size of an ACK's IP packet", show_default="from the next three options",
        ),
        option(
            "--timestamps", type=_Switch(), default="on",
            help="TCP timestamps, 12 bytes in each header",
        ),
        option(
            "--sack", "sack_blocks", type=Whole(0, 4), metavar="N", default=0,
            help="SACK blocks in each ACK",
        ),
        option("--ipv6", is_flag=True, help="IPv6 headers of 40 bytes instead of IPv4's 20"),
        option(
            "--segments-per-ack", type=Number(1, 1000), metavar="N", default=1,
            help="data segments per ACK; 1 is the worst case",
        ),
        option(
            "--window", "window_packets", type=Whole(0, 10**8), metavar="N", default=0,
            help="packets in a download's window; 0 means unlimited",
        ),
        option(
            "--rtt", "rtt_ns", type=Quantity("TIME", 0, 60 * 10**9), metavar="TIME", default="20ms",
            help="round-trip time with empty queues",
        ),
    )(options.gathered("access", Access)(function))  # fmt: skip


def queues(function: F) -> F:
    """The options of the queues, below those of the link; the command takes `asked`, which has its
    interface and its link."""
    rate = Quantity("RATE", 8, 10**12)
    kinds = ", ".join(tree.LEAF_KINDS)
    return group(
        "Queues",
        option(
            "--framing", type=_Framing(),
            help="framing of the interface: Ethernet headers, or IP packets alone",
            show_default="from the interface's kind; if it is not on this host, from its name",
        ),
        option(
            "--ack-guarantee", "ack_guarantee_bps", type=rate, metavar="RATE",
            help="guaranteed rate of the ACK class", show_default="from the model",
        ),
        option(
            "--ack-ceiling", "ack_ceiling_bps", type=rate, metavar="RATE",
            help="maximum rate of the ACK class", show_default="the uplink's rate",
        ),
        option(
            "--ack-leaf", type=_Leaf(), metavar="KIND[:LIMIT]",
            help=f"qdisc of the ACK class: {kinds}", show_default="from the model",
        ),
        option(
            "--data-leaf", type=_Leaf(), metavar="KIND[:LIMIT]",
            help="qdisc of the data class; pfifo as in the paper",
            show_default="fq_codel where the kernel has it, else pfifo",
        ),
        option(
            "--burst", "burst_ns", type=Quantity("TIME", 1000, 10**9), metavar="TIME",
            help="HTB burst allowance",
            show_default="1ms, or the step of this kernel's timers if that is longer",
        ),
        option(
            "--no-self-test", "self_test", is_flag=True, default=True, flag_value=False,
            help="do not test whether pure ACKs reach the ACK class",
        ),
        option("--force", is_flag=True, help="also where the queues would gain nothing"),
    )(options.gathered("asked", Request)(function))  # fmt: skip


# Options that the settings depend on.
_REPEATED = (
    "--down", "--up", "--mtu", "--overhead", "--ack-bytes", "--timestamps", "--sack",
    "--segments-per-ack", "--framing", "--ack-guarantee", "--ack-ceiling", "--ack-leaf",
    "--data-leaf", "--burst",
)  # fmt: skip


def _default(ctx: click.Context, param: click.Parameter) -> Any:
    known = isinstance(param.default, str | int | float)
    return param.type_cast_value(ctx, param.default) if known else None


def repeated() -> list[str]:
    """The options of `up` that lead to the same settings, for units and hooks."""
    ctx = click.get_current_context()
    raw = options.raw()
    words: list[str] = []
    for param in ctx.command.params:
        text = raw.get(param.name or "")
        if param.opts[-1] not in _REPEATED or text is None:
            continue
        if param.type_cast_value(ctx, text) != _default(ctx, param):
            words += [param.opts[-1], text]
    words += ["--ipv6"] if ctx.params["ipv6"] else []
    words += [] if ctx.params["self_test"] else ["--no-self-test"]
    words += ["--force"] if ctx.params["force"] else []
    return words
