# SPDX-License-Identifier: MIT
"""`ackwise capture`: options to values, and what is said about the capture made."""

import sys

import click

from ackwise.cli import options
from ackwise.cli.options import Quantity, Whole
from ackwise.cli.shape import Command, argument, group, option, others
from ackwise.errors import InputError

_DELAY_NS = 20_000_000  # unless given
_TEXT = """\
One iperf3 transfer runs between two new network namespaces, joined by a veth pair with offloads
off, while tcpdump captures at the data receiver. No packet leaves the namespaces; they are removed
at the end, even after Ctrl-C.
"""
_EXAMPLES = """\
sudo ackwise capture transfer.pcap
sudo ackwise capture adsl.pcap --rate 2.1mbit --delay 40ms --seconds 5
ackwise compare --capture transfer.pcap
"""


@click.command("capture", cls=Command, text=_TEXT, examples=_EXAMPLES)
@argument("file", metavar="OUT.pcap", type=options.FILE, help="capture to write")
@group(
    "Transfer",
    option(
        "--rate",
        type=Quantity("RATE", 10**4, 10**9),
        metavar="RATE",
        default="20mbit",
        help="link rate",
    ),
    option(
        "--delay",
        type=Quantity("TIME", 0, 2 * 10**9),
        metavar="TIME",
        help="RTT of the empty link",
        show_default="20ms, or none if the kernel lacks netem",
    ),
    option(
        "--seconds",
        type=Whole(1, 30),
        metavar="N",
        default=2,
        help="length of the transfer, 1 to 30",
    ),
)
@others(option("--quiet", is_flag=True, help="print nothing"))
def command(file: str, rate: int, delay: int | None, seconds: int, quiet: bool) -> int:
    """Exit code; raises InputError, RunError."""
    from ackwise.host import capture
    from ackwise.host.files import STDOUT, check_target

    if file == STDOUT:
        raise InputError("capture: cannot go to standard output; give a file name")
    check_target(file, "capture")
    obstacle = capture.why_not()
    if obstacle:
        raise InputError(f"capture: {obstacle}")
    delay_ns = _DELAY_NS if delay is None else delay
    if delay_ns and not capture.has_netem():
        lacking = "this kernel has no netem qdisc"
        if delay is not None:
            raise InputError(f"capture: --delay: {lacking}; load sch_netem or give --delay 0ms")
        delay_ns = 0
        if not quiet:
            print(f"ackwise: {lacking}: the link's only delay is its queue", file=sys.stderr)
    made = capture.make(file, rate, delay_ns, seconds)
    if not quiet:
        print(
            f"{file}: {made['sent_bytes'] / 1e6:.1f} MB sent in {seconds} s, goodput "
            f"{made['goodput_bps'] / 1e6:.2f} Mbit/s; {made['capture_bytes']} bytes of capture\n"
            f"next: ackwise compare --capture {file}",
            file=sys.stderr,
        )
    return 0
