# SPDX-License-Identifier: MIT
"""`ackwise recommend`: one command for this system and its undo, or nothing."""

import json
from contextlib import closing
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import click

from ackwise import __version__
from ackwise.cli import options
from ackwise.cli.options import Quantity
from ackwise.cli.shape import Command, group, option, others
from ackwise.errors import EXIT_FAILED, InputError
from ackwise.host import rights

if TYPE_CHECKING:
    from ackwise.recommend import Recommended

SCHEMA_VERSION = 1
_WATCH_S = 3.0
_TEXT = """\
Says which one command of this system would help most, what it changes, why, and how to undo it.
It changes nothing itself. The judgement is that of `ackwise diagnose` (--capture), `ackwise live`
(--live), `ackwise gateway model` (--down, --up) or `ackwise compare` (--link); they say more.
"""
_EXAMPLES = """\
ackwise recommend --capture slow.pcap
ackwise recommend --live                # while the slow transfer runs
ackwise recommend --down 50mbit --up 5mbit --rtt 20ms
ackwise recommend --link wifi           # ACK policies on a link, from runs in the simulator
"""
_EXIT_CODES = """\
0  there is something to type
1  no command here would help
"""
_RATE = Quantity("RATE", 8_000, 10**12)


@click.command("recommend", cls=Command, text=_TEXT, examples=_EXAMPLES, exit_codes=_EXIT_CODES)
@group(
    "What it is about",
    option(
        "--capture", type=options.FILE, metavar="FILE", help="the slowest transfer in a capture"
    ),
    option("--live", is_flag=True, help="this host's connections, for 3 s"),
    option("--down", "down_bps", type=_RATE, metavar="RATE", help="an access line: its downlink"),
    option("--up", "up_bps", type=_RATE, metavar="RATE", help="its uplink"),
    option("--link", type=options.LINK, metavar="NAME|FILE",
           help="a link as in `ackwise compare`: whether its receivers should send fewer ACKs"),
)  # fmt: skip
@group(
    "Access line",
    option("--rtt", "rtt_ns", type=Quantity("TIME", 0, 60 * 10**9), metavar="TIME", default="20ms",
           help="round-trip time with empty queues"),
    option("--interface", metavar="NAME", help="interface of the uplink",
           show_default="that of the default route"),
)  # fmt: skip
@others(options.AS_JSON, options.QUIET)
def command(
    capture: str | None, live: bool, down_bps: int | None, up_bps: int | None, link: str | None,
    rtt_ns: int, interface: str | None, as_json: bool, quiet: bool,
) -> int:  # fmt: skip
    """Exit code; raises InputError, RunError."""
    from ackwise import recommend
    from ackwise.gateway.settings import Access

    options.one_of("--capture", "--live", "--link", "--down")
    options.one_of("--capture", "--live", "--link", "--up")
    if down_bps is None:
        options.need(("--rtt", "--interface"), "--down and --up")
    if capture is not None:
        found = _of_capture(capture)
    elif live:
        rights.keep_only()
        found = _of_live()
    elif link is not None:
        found = _of_link(link, quiet=quiet)
    elif (down_bps is None) != (up_bps is None):
        lacking = "--down" if down_bps is None else "--up"
        raise InputError(
            f"recommend: {lacking} is missing; give the line's rates in both directions"
        )
    elif down_bps is None or up_bps is None:
        raise InputError(
            "recommend: give --capture FILE, --live, --link NAME, or both --down and --up"
        )
    else:
        found = recommend.of_line(Access(down_bps, up_bps, rtt_ns=rtt_ns), interface or "")
    if as_json:
        head = {"schema_version": SCHEMA_VERSION, "ackwise_version": __version__}
        print(json.dumps(head | {"kind": "recommendation"} | asdict(found), indent=2))
    elif found.line:
        print(f"{found.finding}\n\n    {found.line}\n")
        print(f"where:    {found.where}\nchanges:  {found.changes}\nundo:     {found.undo}")
    else:
        print(f"{found.finding}\n\nNo command here would help.\n{found.changes}")
    return 0 if found.line else EXIT_FAILED


def _of_capture(file: str) -> "Recommended":
    from ackwise import recommend
    from ackwise.diagnosis import document, table

    ranked = table.rank(document.of_captures([file], kept=1))
    worst = next((one for one in ranked if not table.is_minor(one)), None)
    if worst is None:
        raise InputError(f"{file}: no connection carries data; capture a transfer, both directions")
    return recommend.of_transfer(worst)


def _of_link(link: str, *, quiet: bool) -> "Recommended":
    from ackwise import recommend
    from ackwise.results.progress import progress_bar

    with progress_bar(not quiet) as show:
        return recommend.of_link(link, partial(show, "simulating"))


def _of_live() -> "Recommended":
    from ackwise import recommend
    from ackwise.diagnosis.live import selection
    from ackwise.diagnosis.live.sampler import Sampler

    with closing(Sampler(selection.parse(()))) as sampler:
        sampler.begin()
        sampler.interval(_WATCH_S)
        rows = sampler.rows(1)
    if rows:
        return recommend.of_socket(rows[0])
    return recommend.Recommended("no connection was active", "Run it while the slow one is.")
