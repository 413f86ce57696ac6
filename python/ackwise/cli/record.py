# SPDX-License-Identifier: MIT
"""`ackwise record`: options to values, and what is said about the capture made."""

import shlex
import sys
from pathlib import Path

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
sudo ackwise record transfer.pcap
sudo ackwise record adsl.pcap --rate 2.1mbit --delay 40ms --seconds 5
ackwise replay transfer.pcap
"""


def _check_target(file: str, *, force: bool) -> None:
    from ackwise.host import files

    if file == files.STDOUT:
        raise InputError("record: cannot go to standard output; give a file name")
    if not force and files.is_capture(file):
        raise InputError(
            f"record: {file}: is a capture already; `ackwise replay "
            f"{shlex.quote(file)}` analyses it, --force replaces it"
        )
    files.check_target(file, "record", replace_capture=True)
    if not force and Path(file).is_file():
        raise InputError(f"record: {file}: exists; give another file name, or --force")


@click.command("record", cls=Command, text=_TEXT, examples=_EXAMPLES)
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
@others(
    option("--force", is_flag=True, help="replace OUT.pcap if it exists"),
    option("--quiet", is_flag=True, help="print nothing"),
)
def command(file: str, rate: int, delay: int | None, seconds: int, force: bool, quiet: bool) -> int:
    """Exit code; raises InputError, RunError."""
    from ackwise.host import capture, rights

    rights.keep_only(*rights.NETWORK, *rights.CONFINING, *rights.FILES)
    _check_target(file, force=force)
    obstacle = capture.why_not()
    if obstacle:
        raise InputError(f"record: {obstacle}")
    delay_ns = _DELAY_NS if delay is None else delay
    if delay_ns and not capture.has_netem():
        lacking = "this kernel has no netem qdisc"
        if delay is not None:
            raise InputError(f"record: --delay: {lacking}; load sch_netem or give --delay 0ms")
        delay_ns = 0
        if not quiet:
            print(f"ackwise: {lacking}: the link's only delay is its queue", file=sys.stderr)
    made = capture.make(file, rate, delay_ns, seconds)
    if not quiet:
        print(
            f"{file}: {made['sent_bytes'] / 1e6:.1f} MB sent in {seconds} s, goodput "
            f"{made['goodput_bps'] / 1e6:.2f} Mbit/s; {made['capture_bytes']} bytes of capture\n"
            f"next: ackwise replay {shlex.quote(file)}",
            file=sys.stderr,
        )
    return 0
