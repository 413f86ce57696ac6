# SPDX-License-Identifier: MIT
"""`ackwise diagnose`: what limits the transfers in captures."""

from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

import click

from ackwise.cli import options
from ackwise.cli.options import Quantity, Whole
from ackwise.cli.outputs import Outputs, outputs
from ackwise.cli.shape import Command, argument, group, option, others
from ackwise.diagnosis.rows import TABLES as ROWS
from ackwise.errors import InputError
from ackwise.host.terminal import say

if TYPE_CHECKING:
    from collections.abc import Callable

    from ackwise.diagnosis.transfer import Transfer
    from ackwise.engine.diagnosis import Document
    from ackwise.replays import ReplaySettings

_TEXT = """\
Shows what limited each transfer in captures and when, with the evidence and what to change.
Captures are pcap or pcapng files, also compressed (gzip, zstd); several files, such as a ring
buffer's, are read as one, and - is standard input. docs/inside/diagnose.md explains the method.

With --policy or --regret: also what other ACK policies would have done with the same arrivals.
`ackwise replay` shows that in more detail: ACKs by reason, CPU cost, plots. For this host's live
connections: `ackwise live`.

Transfers that lost the most time come first: time that a known limit took while there was data to
send.
"""
_EXAMPLES = """\
ackwise diagnose slow.pcap
ackwise diagnose slow.pcap --report slow.html
tcpdump -i eth0 -s 128 -w - tcp | ackwise diagnose -
ackwise diagnose ring.pcap* --top 3 --json diagnosis.json
ackwise diagnose slow.pcap --regret
ackwise diagnose slow.pcap --policy a3 --policy delayed:segments=8
ackwise diagnose slow.pcap --anonymize --report shared.html
"""
_REPLAYED = "policies"  # the table that a replay fills
_REPLAYED_MAX = 1000  # transfers


@dataclass(frozen=True)
class _Shown:
    """Which part of the diagnosis is shown, and how."""

    top: int
    anonymize: bool
    rows: str  # a name of ROWS


@dataclass(frozen=True)
class _WhatIf:
    """ACK policies for the replay of the arrivals, and their price."""

    policy: tuple[str, ...]
    regret: bool
    ack_price: int  # ns of one segment's latency

    @property
    def is_wanted(self) -> bool:
        """A replay reads the capture again, so it runs only on request."""
        return bool(self.policy) or self.regret


@click.command("diagnose", cls=Command, text=_TEXT, examples=_EXAMPLES)
@argument("captures", metavar="CAPTURE...", nargs=-1, required=True, type=options.FILE,
          help="capture files; - is standard input")  # fmt: skip
@group(
    "What to show",
    option("--top", type=Whole(1, 10**6), metavar="N", default=5,
           help="transfers in the table; --json holds details of these transfers only, and lists "
           "1000 connections, or N if that is more"),
    option("--anonymize", is_flag=True,
           help="replace addresses, ports and file names in all output"),
    option("--table", "rows", type=options.OneOf(*ROWS), metavar="NAME", default="halves",
           help=f"rows of --csv and --parquet: {', '.join(ROWS)} (of connections)"),
)  # fmt: skip
@group(
    "Other ACK policies on the same arrivals",
    option("--policy", type=options.POLICIES, metavar="NAME[:KEY=VALUE,...]", multiple=True,
           help="ACKs that this policy would have saved, and the latency it would have added; "
           "`all` for every one, `rivals` for those of other stacks"),
    option("--regret", is_flag=True,
           help="also the distance from the best schedule in hindsight; every policy unless "
           "--policy is given"),
    option("--ack-price", type=Quantity("TIME", 1, 1000 * 10**9), metavar="TIME", default="10ms",
           help="with --regret: latency of one segment that costs as much as one ACK"),
)  # fmt: skip
@outputs("json", "csv", "parquet", "report")
@others(options.QUIET)
@options.gathered("shown", _Shown)
@options.gathered("what_if", _WhatIf)
def command(
    captures: tuple[str, ...], shown: _Shown, what_if: _WhatIf, outputs: Outputs, quiet: bool
) -> int:
    """Exit code; raises InputError, RunError."""
    from ackwise import replays
    from ackwise.diagnosis import captured, document, table, whatif
    from ackwise.diagnosis.anonymize import anonymized
    from ackwise.diagnosis.report import chosen, of_diagnosis
    from ackwise.results.console import Console
    from ackwise.results.lazy import outlines
    from ackwise.results.progress import progress_bar

    if not what_if.regret:
        options.need(("--ack-price",), "--regret")
    if shown.rows == _REPLAYED and not what_if.is_wanted:
        raise InputError(f"--table: {_REPLAYED} needs --policy or --regret")
    settings = _replay_settings(captures, what_if) if what_if.is_wanted else None
    outputs.check()
    with progress_bar(not quiet) as show:
        show("reading", 0, 1)
        named = document.of_captures(
            captures,
            lambda done, whole: show("reading (MB)", done // 10**6, (whole or done) // 10**6),
            shown.top,
        )
        order = cache(partial(table.order, named))
        if settings:
            show("replaying", 0, 1)
            if named["cut_connections"]:
                raise InputError(
                    "--policy, --regret: more connections are open at once than can be followed; "
                    "give a part of the capture: tcpdump -r IN -w OUT FILTER"
                )
            parts = outlines(named["connections"])
            first = [(parts[n]["index"], of) for n, of in order()[:_REPLAYED_MAX]]
            replayed = replays.run(captures[0], settings, trace=False, only=first)
            named = whatif.joined(named, replayed.document)
    diagnosis = anonymized(named) if shown.anonymize else named

    def page() -> bytes:
        drawn = chosen.series(table.ranked_by(order(), named), captures)
        ranked = table.ranked_by(order(), diagnosis)
        return of_diagnosis(diagnosis, ranked, drawn, options.command_line())

    written = document.brief(diagnosis, order() if outputs.json else (), shown.top)
    outputs.write(written, lambda: ROWS[shown.rows](diagnosis), page)
    if not quiet:
        for note in document.notes(named):
            say(f"ackwise: {note}")
        if outputs.json and (left_out := written["connections_left_out"]):
            say(
                f"ackwise: {left_out} connections that lost less time are left out of the "
                "JSON; a larger --top lists more"
            )
        if outputs.report and document.STDIN in captures:
            say("ackwise: the page has no graphs: standard input cannot be read twice; give a file")
    if outputs.to_terminal:
        below = _policies(diagnosis, what_if) if what_if.is_wanted else None
        ranked = table.ranked_by(order(), diagnosis)
        unanswered = "" if ranked else captured.unanswered(diagnosis)
        table.show(ranked, Console(), most=shown.top, below=below, unanswered=unanswered)
    return 0


def _replay_settings(paths: tuple[str, ...], what_if: _WhatIf) -> "ReplaySettings":
    """Through which policies to replay: those asked for and stock Linux. Raises InputError."""
    from ackwise import engine, replays
    from ackwise.plans import policy
    from ackwise.plans.policy import CLAMPED

    asked = "--policy" if what_if.policy else "--regret"
    if len(paths) > 1:
        raise InputError(
            f"{asked}: give one capture; mergecap -w all.pcap FILE... makes one of many"
        )
    if paths == (engine.STDIN,):
        raise InputError(f"{asked}: the capture is read twice; give a file instead of -")
    chosen = options.policies_of(what_if.policy, files=True)
    if all(one.label != policy.STOCK for one in chosen):
        chosen.insert(0, policy.parse(policy.STOCK, "--policy"))
    return replays.ReplaySettings(
        policies=chosen,
        rho_permille=500,
        unit_ns=what_if.ack_price,
        seed=1,
        ack_ns=None,
        data_ns=None,
        clamp=CLAMPED,
    )


def _policies(diagnosis: "Document", what_if: _WhatIf) -> "Callable[[Transfer], None]":
    """Shows the policies below a transfer."""
    from ackwise.diagnosis import whatif
    from ackwise.plans import units
    from ackwise.replays import table
    from ackwise.results.console import Console

    columns = table.REGRET if what_if.regret else table.SAVED

    def show(transfer: "Transfer") -> None:
        one = whatif.of(diagnosis, transfer)
        if one is None:
            print("  Other ACK policies: too few segments for a replay.")
            return
        print(
            "  Other ACK policies on the same arrivals (how the sender would react is not known):"
        )
        table.show_cells(one, Console(), columns)
        if what_if.regret:
            best = one["optimum"]
            price = units.show(what_if.ack_price, units.TIME)
            print(
                f"  Best schedule in hindsight: {best['acks']} ACKs, cost {best['cost']:.1f}; an "
                f"ACK costs as much as {price} of one segment's latency"
            )

    return show
