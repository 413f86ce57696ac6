# SPDX-License-Identifier: MIT
"""`ackwise diagnose`: what limits transfers, in captures and live."""

import re
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import click

from ackwise.cli import options
from ackwise.cli.options import Number, Quantity, Whole
from ackwise.cli.outputs import Outputs, outputs
from ackwise.cli.shape import Command, argument, group, option, others
from ackwise.diagnosis.rows import TABLES as ROWS
from ackwise.errors import InputError, RunError, quoted
from ackwise.host import rights
from ackwise.host.terminal import say

if TYPE_CHECKING:
    from collections.abc import Callable

    from ackwise.diagnosis.live.sampler import Sampler
    from ackwise.diagnosis.transfer import Transfer
    from ackwise.host.tcp_walk import Walker
    from ackwise.replays import ReplaySettings

_TEXT = """\
Says of each transfer in captures what limited it and when, and what to change: a slow transfer's
cause with its evidence. Captures are pcap or pcapng files, also compressed (gzip, zstd); several
files, such as a ring buffer's, are read as one, and - is standard input. docs/inside/diagnose.md
says how it judges.

With --policy or --regret: also what other ACK policies would have done with the data of each
transfer as it arrived, by a replay. `ackwise compare --capture` has the same replay in more detail:
ACKs by reason, processor cost, plots.

With --live: the same for each TCP socket of this network namespace. The account is the kernel's
own (`tcp_info`); no packet is captured and no privilege needed. FILTER is that of ss: `state NAME`,
`src` and `dst` with an address, `sport` and `dport` with an operator, and `and`, `or`, `not`,
parentheses. docs/live.md explains the table and each limit.

What lost most time comes first: time that a known limit took while there was something to send.
"""
_EXAMPLES = """\
ackwise diagnose slow.pcap
ackwise diagnose slow.pcap --report slow.html
tcpdump -i eth0 -s 128 -w - tcp | ackwise diagnose -
ackwise diagnose ring.pcap* --top 3 --json diagnosis.json
ackwise diagnose slow.pcap --regret
ackwise diagnose slow.pcap --policy a3 --policy delayed:segments=8
ackwise diagnose slow.pcap --anonymize --report shared.html
ackwise diagnose --live
ackwise diagnose --live --once --interval 10s dport = :443
ackwise diagnose --live dst 10.0.0.0/8 and not sport = :22
ackwise diagnose --live --json --pid 4711
ackwise diagnose --live --openmetrics 9810
ackwise diagnose --live --unit       # prints a systemd unit
ackwise diagnose --live --dashboard  # prints a dashboard for Grafana
"""
_LIVE = "--live"
_REPLAYED = "policies"  # the table that a replay fills
_REPLAYED_MAX = 1000  # transfers
_OF_CAPTURES = (
    "--anonymize",
    "--policy",
    "--regret",
    "--ack-price",
    "--table",
    "--csv",
    "--parquet",
    "--report",
)
_OF_SOCKETS = ("--once", "--interval", "--pid", "--uid", "--core-share", "--by", "--openmetrics")
_TRANSFERS_SHOWN, _SOCKETS_SHOWN = 5, 20
_PORT = re.compile(r"(?:(?P<address>[^/]*):)?(?P<port>[0-9]{1,5})")
_WAYS = ("auto", "bpf", "inet_diag")
_SECONDS_MIN, _SECONDS_MAX = 0.1, 3600.0
_NS = 10**9


@dataclass(frozen=True)
class _WhatIf:
    """Through which ACK policies arrivals are replayed, and at what price."""

    policy: tuple[str, ...]
    regret: bool
    ack_price: int  # ns of one segment's latency

    @property
    def is_wanted(self) -> bool:
        """Nothing is replayed unasked: it reads the capture again."""
        return bool(self.policy) or self.regret


@dataclass(frozen=True)
class _Watch:
    """How live sockets are looked at."""

    once: bool
    interval: int  # ns
    pid: tuple[int, ...]
    uid: str | None
    core_share: float
    by: str


@click.command(
    "diagnose",
    cls=Command,
    short_help="Say what limits transfers, in captures or live, and what to change",
    text=_TEXT,
    examples=_EXAMPLES,
)
@argument(
    "words", metavar="CAPTURE...|FILTER...", nargs=-1, help="captures; with --live, which sockets"
)
@group(
    "What to show",
    option("--top", type=Whole(1, 10**6), metavar="N",
           help="transfers or sockets in the table; --json holds details of these transfers only",
           show_default="5 transfers, 20 sockets"),
    option("--anonymize", is_flag=True,
           help="replace addresses, ports and file names in all that is written"),
    option("--table", "rows", type=options.OneOf(*ROWS), metavar="NAME", default="halves",
           help=f"what --csv and --parquet write: {', '.join(ROWS)} (of connections)"),
)  # fmt: skip
@group(
    "Other ACK policies on the same arrivals",
    option("--policy", type=options.POLICIES, metavar="NAME[:KEY=VALUE,...]", multiple=True,
           help="ACKs that this policy would have saved, and the latency it would have added; "
           "`all` for every one"),
    option("--regret", is_flag=True,
           help="also how far from the best schedule in hindsight; every policy unless --policy is "
           "given"),
    option("--ack-price", type=Quantity("TIME", 1, 1000 * _NS), metavar="TIME", default="10ms",
           help="with --regret: latency of one segment that costs as much as one ACK"),
)  # fmt: skip
@group(
    "Live sockets",
    option(_LIVE, is_flag=True, help="diagnose this host's sockets"),
    option("--once", is_flag=True, help="one interval only"),
    option(
        "--interval",
        type=Quantity("TIME", int(_SECONDS_MIN * _NS), int(_SECONDS_MAX * _NS)),
        metavar="TIME",
        default="1s",
        help="time between two looks",
    ),
    option("--pid", type=Whole(1, 2**31 - 1), metavar="PID", multiple=True, help="process"),
    option("--uid", metavar="USER", help="user, by name or number", show_default="everybody"),
    option(
        "--core-share",
        type=Number(0.001, 1),
        metavar="SHARE",
        default=0.1,
        help="share of one core to use at most; with more sockets each is looked at less often",
    ),
    option(
        "--by",
        type=options.OneOf(*_WAYS),
        metavar="WAY",
        default="auto",
        help="how the kernel is asked: inet_diag; bpf, which costs less and needs root; auto: by "
        "bpf where that is possible",
    ),
    option(
        "--openmetrics",
        type=options.OutputPath("file"),
        metavar="[ADDRESS:]PORT|FILE",
        help="export sums for Prometheus: answer HTTP on PORT of 127.0.0.1 unless ADDRESS is "
        "given, or write FILE in each interval",
    ),
    option("--unit", is_flag=True, help="print a systemd unit that exports the sums"),
    option("--dashboard", is_flag=True, help="print a dashboard of the sums for Grafana"),
)
@outputs("json", "csv", "parquet", "report")
@others(options.QUIET)
@options.gathered("what_if", _WhatIf)
@options.gathered("watch", _Watch)
def command(
    words: tuple[str, ...],
    top: int | None,
    anonymize: bool,
    rows: str,
    what_if: _WhatIf,
    live: bool,
    watch: _Watch,
    openmetrics: str | None,
    unit: bool,
    dashboard: bool,
    outputs: Outputs,
    quiet: bool,
) -> int:
    """Exit code; raises InputError, RunError."""
    if live or unit or dashboard:
        options.refuse(_OF_CAPTURES, _LIVE)
        return _live(words, watch, top or _SOCKETS_SHOWN, openmetrics, unit, dashboard, outputs)
    options.refuse(_OF_SOCKETS, "captures", "give --live")
    if not what_if.regret:
        options.need(("--ack-price",), "--regret")
    return _captures(
        words, top or _TRANSFERS_SHOWN, outputs, rows, what_if, anonymize=anonymize, quiet=quiet
    )


def _captures(
    paths: tuple[str, ...],
    top: int,
    outputs: Outputs,
    rows: str,
    what_if: _WhatIf,
    *,
    anonymize: bool,
    quiet: bool,
) -> int:
    from ackwise import replays
    from ackwise.diagnosis import document, table, whatif
    from ackwise.diagnosis.anonymize import anonymized
    from ackwise.diagnosis.report import chosen, of_diagnosis
    from ackwise.results.console import Console
    from ackwise.results.progress import progress_bar

    if not paths:
        raise InputError("diagnose: give captures, or --live for this host's sockets")
    if rows == _REPLAYED and not what_if.is_wanted:
        raise InputError(f"--table: {_REPLAYED} needs --policy or --regret")
    settings = _replay_settings(paths, what_if) if what_if.is_wanted else None
    outputs.check()
    with progress_bar(not quiet) as show:
        show("reading", 0, 1)
        named = document.of_captures(paths)
        order = cache(partial(table.order, named))
        if settings:
            show("replaying", 0, 1)
            first = order()[:_REPLAYED_MAX]
            replayed = replays.run(paths[0], settings, trace=False, only=first)
            named = whatif.joined(named, replayed.document)
    diagnosis = anonymized(named) if anonymize else named

    def page() -> bytes:
        drawn = chosen.series(table.ranked_by(order(), named), paths)
        ranked = table.ranked_by(order(), diagnosis)
        return of_diagnosis(diagnosis, ranked, drawn, options.command_line())

    shown = {n for n, _ in order()[:top]} if outputs.json else set()
    written = document.brief(diagnosis, shown)
    outputs.write(written, lambda: ROWS[rows](diagnosis), page)
    if not quiet:
        for note in document.notes(named):
            say(f"ackwise: {note}")
    if outputs.to_terminal:
        below = _policies(diagnosis, what_if) if what_if.is_wanted else None
        table.show(table.ranked_by(order(), diagnosis), Console(), most=top, below=below)
    return 0


def _replay_settings(paths: tuple[str, ...], what_if: _WhatIf) -> "ReplaySettings":
    """Through which policies to replay: those asked for and stock Linux. Raises InputError."""
    from ackwise import engine, replays
    from ackwise.plans import policy

    asked = "--policy" if what_if.policy else "--regret"
    if len(paths) > 1:
        raise InputError(
            f"{asked}: give one capture; mergecap -w all.pcap FILE... makes one of many"
        )
    if paths == (engine.STDIN,):
        raise InputError(f"{asked}: the capture is read twice; give a file instead of -")
    chosen = policy.parse_all(what_if.policy or [policy.ALL], "--policy")
    if all(one.label != policy.STOCK for one in chosen):
        chosen.insert(0, policy.parse(policy.STOCK, "--policy"))
    return replays.ReplaySettings(
        policies=chosen,
        rho_permille=500,
        unit_ns=what_if.ack_price,
        seed=1,
        ack_ns=None,
        data_ns=None,
        rails="network",
    )


def _policies(diagnosis: dict[str, Any], what_if: _WhatIf) -> "Callable[[Transfer], None]":
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


def _live(
    words: tuple[str, ...],
    watch: _Watch,
    top: int,
    openmetrics: str | None,
    unit: bool,
    dashboard: bool,
    outputs: Outputs,
) -> int:
    for asked, name in ((unit, "--unit"), (dashboard, "--dashboard")):
        if asked:
            options.refuse(("--json", "--openmetrics", "--once"), name)
            print(_shipped(name), end="")
            return 0
    if outputs.json not in (None, "-"):
        raise InputError("--json: with --live it goes to standard output; leave FILE out")
    if openmetrics is not None:
        options.refuse(("--json",), "--openmetrics")
    from ackwise.diagnosis.live import selection
    from ackwise.diagnosis.live.sampler import Sampler
    from ackwise.host import tcp_walk

    chosen = selection.parse(words)
    uid = None if watch.uid is None else _uid(watch.uid)
    drop = not watch.pid and openmetrics is None  # another's process and folder take root's rights
    if drop:
        rights.keep_only(*tcp_walk.RIGHTS)
    walker = _walker(watch.by, chosen.states)
    if drop:
        rights.keep_only()
    sampler = Sampler(chosen, uid=uid, pids=watch.pid, core_share=watch.core_share, walker=walker)
    with closing(sampler), ExitStack() as stack:
        if openmetrics is not None:
            export = _exporting(openmetrics, sampler, stack)
        elif outputs.json is not None:
            export = _printing(sampler)
        else:
            export = _showing(sampler, watch, top, stack)
        _run(sampler, watch, export)
    return 0


def _walker(by: str, states: int) -> "Walker | None":
    """None: inet_diag lists the sockets."""
    from ackwise.host import tcp_walk

    if by == "inet_diag":
        return None
    if states & ~tcp_walk.STATES:
        if by == "bpf":
            raise InputError("--by bpf: it finds connections only; leave other states to inet_diag")
        return None
    try:
        return tcp_walk.Walker(states)
    except RunError as problem:
        if by == "bpf":
            raise RunError(f"--by bpf: {problem}") from None
        return None


def _run(sampler: "Sampler", watch: _Watch, export: "Callable[[], None]") -> None:
    seconds = watch.interval / _NS
    sampler.begin()
    while True:
        sampler.interval(seconds)
        export()
        if watch.once:
            return


def _printing(sampler: "Sampler") -> "Callable[[], None]":
    def write() -> None:
        now = time.time_ns()
        lines = sampler.lines(2**62)
        # names of the kernel alone; a line begins with {
        print("".join(f'{{"time_unix_ns":{now},{line[1:]}\n' for line in lines), end="", flush=True)

    return write


def _showing(sampler: "Sampler", watch: _Watch, top: int, stack: ExitStack) -> "Callable[[], None]":
    from ackwise.diagnosis.live.show import screen

    shown = stack.enter_context(screen(top, once=watch.once))

    def show() -> None:
        shown.show(sampler.rows(shown.room), sampler.totals())

    return show


def _exporting(target: str, sampler: "Sampler", stack: ExitStack) -> "Callable[[], None]":
    from ackwise.diagnosis.live.metrics import Exporter
    from ackwise.host import files

    exporter = Exporter(sampler.totals())

    def next_interval() -> None:
        sampler.rows(0)
        exporter.totals = sampler.totals()

    place = _PORT.fullmatch(target)
    if place is None:
        files.check_target(target, "--openmetrics")

        def write() -> None:
            next_interval()
            files.write_whole(target, exporter.text())

        return write
    port = int(place["port"])
    if not 0 < port < 2**16:
        raise InputError(f"--openmetrics: {quoted(target)}: give a port from 1 to 65535")
    address = (place["address"] or "127.0.0.1").strip("[]")
    stack.enter_context(exporter.serving(address, port))
    return next_interval


def _uid(user: str) -> int:
    if user.isascii() and user.isdigit() and len(user) < 11:
        return int(user)
    import pwd

    try:
        return pwd.getpwnam(user).pw_uid
    except (KeyError, ValueError):
        raise InputError(f"--uid: there is no user {quoted(user)}") from None


def _shipped(name: str) -> str:
    from importlib import resources

    file = {"--unit": "ackwise-diagnose.service", "--dashboard": "dashboard.json"}[name]
    return (resources.files("ackwise.diagnosis.live") / file).read_text(encoding="utf-8")
