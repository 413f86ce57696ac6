# SPDX-License-Identifier: MIT
"""`ackwise diagnose`: what limits transfers."""

import re
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from ackwise.cli import options
from ackwise.cli.options import Number, Quantity, Whole
from ackwise.cli.shape import Command, argument, group, option
from ackwise.errors import InputError, quoted
from ackwise.host import rights

if TYPE_CHECKING:
    from collections.abc import Callable

    from ackwise.diagnose.live.sampler import Sampler

_TEXT = """\
With --live: says of each TCP socket of this network namespace what limited it, and what would
change that. The account is the kernel's own (`tcp_info`); no packet is captured and no privilege
needed. Sockets that lost most time come first: time that a known limit took while there was
something to send.

FILTER is that of ss: `state NAME`, `src` and `dst` with an address, `sport` and `dport` with an
operator, and `and`, `or`, `not`, parentheses. docs/live.md explains the table and each limit.
"""
_EXAMPLES = """\
ackwise diagnose --live
ackwise diagnose --live --once --interval 10s dport = :443
ackwise diagnose --live dst 10.0.0.0/8 and not sport = :22
ackwise diagnose --live --json --pid 4711
ackwise diagnose --live --openmetrics 9810
ackwise diagnose --live --unit       # prints a systemd unit
ackwise diagnose --live --dashboard  # prints a dashboard for Grafana
"""
_LIVE = "--live"
_PORT = re.compile(r"(?:(?P<address>[^/]*):)?(?P<port>[0-9]{1,5})")
_SECONDS_MIN, _SECONDS_MAX = 0.1, 3600.0
_NS = 10**9


@dataclass(frozen=True)
class _Watch:
    """How live sockets are looked at."""

    once: bool
    interval: int  # ns
    top: int
    pid: tuple[int, ...]
    uid: str | None
    core_share: float


@click.command(
    "diagnose",
    cls=Command,
    short_help="Say what limits live TCP connections, and what to change",
    text=_TEXT,
    examples=_EXAMPLES,
)
@argument("words", metavar="[FILTER]...", nargs=-1, help="which sockets", show_default="all")
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
    option("--top", type=Whole(1, 10**6), metavar="N", default=20, help="sockets in the table"),
    option("--pid", type=Whole(1, 2**31 - 1), metavar="PID", multiple=True, help="process"),
    option("--uid", metavar="USER", help="user, by name or number", show_default="everybody"),
    option(
        "--core-share",
        type=Number(0.001, 1),
        metavar="SHARE",
        default=0.1,
        help="share of one core to use at most; with more sockets each is looked at less often",
    ),
)
@group(
    "Output of --live",
    option("--json", "as_json", is_flag=True, help="print a line of JSON per socket and interval"),
    option(
        "--openmetrics",
        type=options.Target("file"),
        metavar="[ADDRESS:]PORT|FILE",
        help="export sums for Prometheus: answer HTTP on PORT of 127.0.0.1 unless ADDRESS is "
        "given, or write FILE in each interval",
    ),
    option("--unit", is_flag=True, help="print a systemd unit that exports the sums"),
    option("--dashboard", is_flag=True, help="print a dashboard of the sums for Grafana"),
)
@options.gathered("watch", _Watch)
def command(
    words: tuple[str, ...],
    live: bool,
    watch: _Watch,
    as_json: bool,
    openmetrics: str | None,
    unit: bool,
    dashboard: bool,
) -> int:
    """Exit code; raises InputError, RunError."""
    if not live:
        raise InputError("diagnose: give --live; captures are not diagnosed")
    for asked, name in ((unit, "--unit"), (dashboard, "--dashboard")):
        if asked:
            options.refuse(("--json", "--openmetrics", "--once"), name)
            print(_shipped(name), end="")
            return 0
    if openmetrics is not None:
        options.refuse(("--json",), "--openmetrics")
    from ackwise.diagnose.live import selection
    from ackwise.diagnose.live.sampler import Sampler

    if not watch.pid and openmetrics is None:
        rights.keep_only()  # another user's process and folder take root's rights
    uid = None if watch.uid is None else _uid(watch.uid)
    sampler = Sampler(selection.parse(words), uid=uid, pids=watch.pid, core_share=watch.core_share)
    with closing(sampler), ExitStack() as stack:
        if openmetrics is not None:
            export = _exporting(openmetrics, sampler, stack)
        elif as_json:
            export = _printing(sampler)
        else:
            export = _showing(sampler, watch, stack)
        _run(sampler, watch, export)
    return 0


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


def _showing(sampler: "Sampler", watch: _Watch, stack: ExitStack) -> "Callable[[], None]":
    from ackwise.diagnose.live.show import screen

    shown = stack.enter_context(screen(watch.top, once=watch.once))

    def show() -> None:
        shown.show(sampler.rows(shown.room), sampler.totals())

    return show


def _exporting(target: str, sampler: "Sampler", stack: ExitStack) -> "Callable[[], None]":
    from ackwise.diagnose.live.metrics import Exporter
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
    return (resources.files("ackwise.diagnose.live") / file).read_text(encoding="utf-8")
