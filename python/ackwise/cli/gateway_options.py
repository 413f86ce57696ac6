# SPDX-License-Identifier: MIT
"""The options of `ackwise gateway`: quickly imported, as all parsers are built at once."""

import argparse
from typing import Any

from ackwise.errors import quoted
from ackwise.gateway import formats, linklayer, tree
from ackwise.gateway.classifier import Framing
from ackwise.gateway.state import RUN_DIRECTORY

EXAMPLES = """\
examples:
  ackwise gateway model --down 2.1mbit --up 800kbit
  ackwise gateway model --down 40mbit --up 800kbit --overhead atm --sweep --figure sweep.svg
  ackwise gateway plan eth0 --down 50mbit --up 5mbit            the tc commands, changes nothing
  sudo ackwise gateway up eth0 --down 50mbit --up 5mbit
  ackwise gateway status eth0 --watch 2
  sudo ackwise gateway down eth0
  ackwise gateway plan ppp0 --down 16mbit --up 1mbit --overhead atm-pppoa --format openwrt

Give rates as measured on the line, a few percent less for the uplink: the queue has to be here, not
in the modem.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """`ackwise gateway ...`."""
    raw = argparse.RawDescriptionHelpFormatter
    verbs = parser.add_subparsers(dest="verb", metavar="model|plan|up|down|status", required=True)

    def verb(name: str, text: str) -> argparse.ArgumentParser:
        return verbs.add_parser(
            name, help=text, description=text, epilog=EXAMPLES, formatter_class=raw
        )

    predict = verb("model", "what will ACKs do to an uplink, and which settings follow?")
    planned = verb("plan", "what `up` would do, as tc commands, scripts or units")
    raised = verb("up", "separate ACKs on an interface (root)")
    lowered = verb("down", "put back what was there before `up` (root)")
    told = verb("status", "what the kernel counts for each class; exit code 0 when all is up")

    for one in (predict, planned, raised):
        defaults = _add_link(one)
        one.set_defaults(defaults=defaults)
    predict.add_argument("--sweep", action="store_true", help="downlink 1 to 200 times the uplink")
    predict.add_argument(
        "--simulate",
        action="store_true",
        help="the model beside the simulator, on the link of spec page 3 (a minute)",
    )
    predict.add_argument("--figure", metavar="FILE", help="SVG, with --sweep or --simulate")
    predict.add_argument("--json", action="store_true", help="as JSON")
    for one in (planned, raised, lowered, told):
        one.add_argument("interface", metavar="INTERFACE")
    for one in (planned, raised):
        _add_queues(one)
    planned.add_argument("--format", choices=formats.FORMATS, default="tc", help="of what (tc)")
    planned.add_argument("--json", action="store_true", help="settings, commands, reasons as JSON")
    raised.add_argument(
        "--replace", action="store_true", help="put queues of your own aside until `down`"
    )
    raised.add_argument("--quiet", action="store_true", help="leave the reasons out")
    told.add_argument("--json", action="store_true", help="as JSON")
    told.add_argument("--prometheus", action="store_true", help="as Prometheus text")
    told.add_argument("--watch", metavar="SECONDS", type=_seconds, help="again and again")
    for one in (raised, lowered, told):
        one.add_argument(
            "--run-dir",
            metavar="DIR",
            default=RUN_DIRECTORY,
            help=f"where it is noted what was there before ({RUN_DIRECTORY})",
        )


def _number(option: str, low: float, high: float) -> "type[float]":
    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{quoted(text)}: give {low:g} to {high:g}")
        return value

    read.__name__ = option
    return read  # type: ignore[return-value]


def _seconds(text: str) -> float:
    return _number("--watch", 0.1, 3600)(text)


def _count(low: int, high: int) -> "type[int]":
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 10 and low <= int(text) <= high):
            raise argparse.ArgumentTypeError(f"{quoted(text)}: give {low} to {high}")
        return int(text)

    return read  # type: ignore[return-value]


def _add_link(parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Options of the link; their defaults, by name."""
    link = parser.add_argument_group("the link")
    link.add_argument("--down", metavar="RATE", required=True, help="downlink, such as 2.1mbit")
    link.add_argument("--up", metavar="RATE", required=True, help="uplink, such as 800kbit")
    link.add_argument("--mtu", metavar="SIZE", help="the interface's, or 1500B")
    layers = ", ".join(linklayer.LAYERS)
    link.add_argument(
        "--overhead",
        metavar="NAME|SIZE",
        default="header",
        help=f"around an IP packet: {layers}, or bytes such as 26B (header)",
    )
    link.add_argument("--ack-bytes", metavar="SIZE", help="an ACK's IP packet, if known")
    link.add_argument(
        "--timestamps", choices=("on", "off"), default="on", help="12 bytes in each header (on)"
    )
    link.add_argument(
        "--sack", metavar="N", type=_count(0, 4), default=0, help="SACK blocks in an ACK (0)"
    )
    link.add_argument("--ipv6", action="store_true", help="headers of 40 bytes")
    link.add_argument(
        "--segments-per-ack",
        metavar="N",
        type=_number("--segments-per-ack", 1, 1000),
        default=1.0,
        help="1: the worst case, as a gateway does not know the hosts (1)",
    )
    link.add_argument(
        "--window",
        metavar="N",
        type=_count(0, 10**8),
        default=0,
        help="packets in a download's window; 0: no bound (0)",
    )
    link.add_argument("--rtt", metavar="TIME", default="20ms", help="without queues (20ms)")
    names = ("overhead", "timestamps", "sack", "segments-per-ack")
    found: dict[str, Any] = {n: parser.get_default(n.replace("-", "_")) for n in names}
    queues = ("mtu", "down", "up", "ack-bytes", "framing", "ack-guarantee", "ack-ceiling")
    return found | dict.fromkeys((*queues, "ack-leaf", "burst")) | {"data-leaf": "pfifo"}


def _add_queues(parser: argparse.ArgumentParser) -> None:
    queues = parser.add_argument_group("the queues (from the model, unless given)")
    queues.add_argument("--ack-guarantee", metavar="RATE", help="what the ACK class gets always")
    queues.add_argument("--ack-ceiling", metavar="RATE", help="what it gets at most")
    kinds = ", ".join(tree.LEAF_KINDS)
    queues.add_argument("--ack-leaf", metavar="KIND[:LIMIT]", help=f"one of {kinds}")
    queues.add_argument("--data-leaf", metavar="KIND[:LIMIT]", default="pfifo", help="(pfifo)")
    queues.add_argument(
        "--burst",
        metavar="TIME",
        help="what classes may be ahead of their rates, as timers are not exact "
        "(1ms, or the step of this kernel's timers)",
    )
    queues.add_argument(
        "--framing", choices=[f.value for f in Framing], help="what packets begin with (asked)"
    )
