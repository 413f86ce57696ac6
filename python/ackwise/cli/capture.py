# SPDX-License-Identifier: MIT
"""`ackwise capture`: options to values, and what is said about the capture made."""

import argparse
import sys

from ackwise.errors import InputError
from ackwise.host import capture
from ackwise.host.files import STDOUT, check_target
from ackwise.plans import schema, units

_RATE = schema.Key("rate", units.RATE, "", low=10**4, high=10**9)
_DELAY_UNASKED = "20ms"
_DELAY = schema.Key("delay", units.TIME, "", high=2 * 10**9)


def main(args: argparse.Namespace) -> int:
    """Exit code; raises InputError, RunError."""
    values = {}
    for key, text in ((_RATE, args.rate), (_DELAY, args.delay or _DELAY_UNASKED)):
        try:
            values[key.name] = schema.read_key(key, text)
        except ValueError as problem:
            raise InputError(f"--{key.name}: {problem}") from None
    if args.file == STDOUT:
        raise InputError("capture: cannot go to standard output; give a file name")
    check_target(args.file, "capture")
    obstacle = capture.why_not()
    if obstacle:
        raise InputError(f"capture: {obstacle}")
    if values["delay"] and not capture.has_netem():
        remedy = "this kernel has no netem queue"
        if args.delay is not None:
            raise InputError(f"capture: --delay: {remedy}; load sch_netem or give --delay 0ms")
        values["delay"] = 0
        if not args.quiet:
            print(f"ackwise: {remedy}: the wire gets no delay but its queue", file=sys.stderr)
    made = capture.make(args.file, values["rate"], values["delay"], args.seconds)
    if not args.quiet:
        print(
            f"{args.file}: {made['sent_bytes'] / 1e6:.1f} MB sent in {args.seconds} s, goodput "
            f"{made['goodput_bps'] / 1e6:.2f} Mbit/s; {made['capture_bytes']} bytes of capture\n"
            f"next: ackwise compare --capture {args.file}",
            file=sys.stderr,
        )
    return 0
