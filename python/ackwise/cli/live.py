# SPDX-License-Identifier: MIT
"""`ackwise live`: what limits this host's TCP connections, from the kernel's account of them."""

import re
import shlex
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from ackwise.cli import options
from ackwise.cli.options import Number, Quantity, Whole
from ackwise.cli.shape import Command, argument, group, option
from ackwise.errors import InputError, RunError, quoted
from ackwise.host import rights

if TYPE_CHECKING:
    from ackwise.diagnosis.live.sampler import Sampler
    from ackwise.host.tcp_walk import Walker

_TEXT = """\
Shows what limits each TCP connection of this network namespace, and what to change. The kernel's
own account (`tcp_info`) is read once per interval: no packet capture, no root. docs/live.md
explains the table and each limit.

FILTER is that of ss: `state NAME`, `src` and `dst` with an address, `sport` and `dport` with an
operator, and `and`, `or`, `not`, parentheses. Sockets that lost the most time come first.
"""
_EXAMPLES = """\
ackwise live
ackwise live dst 10.0.0.0/8 and not sport = :22
ackwise live --once --interval 10s dport = :443
ackwise live --json --pid 4711
ackwise live --openmetrics 9810
ackwise live --unit       # a systemd unit that exports the sums
ackwise live --dashboard  # a Grafana dashboard of them
"""
_PORT = re.compile(r"(?:(?P<address>[^/]*):)?(?P<port>[0-9]{1,5})")
_WAYS = ("auto", "bpf", "inet_diag")
_SECONDS_MIN, _SECONDS_MAX = 0.1, 3600.0
_NS = 10**9


@dataclass(frozen=True)
class _Watch:
    """Which sockets are sampled, and how."""

    top: int
    once: bool
    interval: int  # ns
    pid: tuple[int, ...]
    uid: str | None
    core_share: float
    by: str


@dataclass(frozen=True)
class _Export:
    """Where samples go other than to the table."""

    as_json: bool
    openmetrics: str | None
    unit: bool
    dashboard: bool


@click.command("live", cls=Command, text=_TEXT, examples=_EXAMPLES)
@argument("words", metavar="[FILTER]", nargs=-1, help="which sockets", show_default="every one")
@group(
    "Sockets",
    option("--pid", type=Whole(1, 2**31 - 1), metavar="PID", multiple=True, help="process"),
    option("--uid", metavar="USER", help="user, by name or number", show_default="every user"),
    option("--top", type=Whole(1, 10**6), metavar="N", default=20, help="sockets in the table"),
)
@group(
    "Sampling",
    option("--once", is_flag=True, help="one interval only"),
    option(
        "--interval",
        type=Quantity("TIME", int(_SECONDS_MIN * _NS), int(_SECONDS_MAX * _NS)),
        metavar="TIME",
        default="1s",
        help="time between two samples",
    ),
    option(
        "--core-share",
        type=Number(0.001, 1),
        metavar="SHARE",
        default=0.1,
        help="maximum share of one core; with more sockets each is sampled less often",
    ),
    option(
        "--by",
        type=options.OneOf(*_WAYS),
        metavar="WAY",
        default="auto",
        help="kernel interface: inet_diag; bpf, which is cheaper and needs root; auto: bpf where "
        "possible",
    ),
)
@group(
    "Output (a table on the terminal unless one is given)",
    option("--json", "as_json", is_flag=True, help="print a JSON line per socket and interval"),
    option(
        "--openmetrics",
        type=options.OutputPath("file"),
        metavar="[ADDRESS:]PORT|FILE",
        help="export sums for Prometheus: over HTTP on PORT of 127.0.0.1 unless ADDRESS is given, "
        "or to FILE in each interval",
    ),
    option("--unit", is_flag=True, help="print a systemd unit that exports the sums"),
    option("--dashboard", is_flag=True, help="print a Grafana dashboard of the sums"),
)
@options.gathered("watch", _Watch)
@options.gathered("export", _Export)
def command(words: tuple[str, ...], watch: _Watch, export: _Export) -> int:
    """Exit code; raises InputError, RunError."""
    options.one_of("--json", "--openmetrics", "--unit", "--dashboard")
    if export.unit or export.dashboard:
        print(_shipped("ackwise-live.service" if export.unit else "dashboard.json"), end="")
        return 0
    from ackwise.diagnosis.live import selection
    from ackwise.diagnosis.live.sampler import Sampler
    from ackwise.host import files, tcp_walk

    for word in words:
        if ".pcap" in word or files.is_capture(word):  # compressed ones, too
            raise InputError(
                f"filter: {quoted(word)} is a capture, and `live` watches the connections of this "
                f"host; `ackwise diagnose {shlex.quote(word)}` reads it"
            )
    chosen = selection.parse(words)
    uid = None if watch.uid is None else _uid(watch.uid)
    # another user's process, or the folder of a file, needs root's rights for longer
    drop = not watch.pid and export.openmetrics is None
    if drop:
        rights.keep_only(*tcp_walk.RIGHTS)
    walker = _walker(watch.by, chosen.states)
    if drop:
        rights.keep_only()
    sampler = Sampler(chosen, uid=uid, pids=watch.pid, core_share=watch.core_share, walker=walker)
    with closing(sampler), ExitStack() as stack:
        if export.openmetrics is not None:
            write = _exporting(export.openmetrics, sampler, stack)
        elif export.as_json:
            write = _printing(sampler)
        else:
            write = _showing(sampler, watch, stack)
        _run(sampler, watch, write)
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


def _run(sampler: "Sampler", watch: _Watch, export: Callable[[], None]) -> None:
    seconds = watch.interval / _NS
    sampler.begin()
    while True:
        sampler.interval(seconds)
        export()
        if watch.once:
            return


def _printing(sampler: "Sampler") -> Callable[[], None]:
    def write() -> None:
        now = time.time_ns()
        lines = sampler.lines(2**62)
        # names of the kernel alone; a line begins with {
        print("".join(f'{{"time_unix_ns":{now},{line[1:]}\n' for line in lines), end="", flush=True)

    return write


def _showing(sampler: "Sampler", watch: _Watch, stack: ExitStack) -> Callable[[], None]:
    from ackwise.diagnosis.live.show import screen

    shown = stack.enter_context(screen(watch.top, once=watch.once))

    def show() -> None:
        shown.show(sampler.rows(shown.room), sampler.totals())

    return show


def _exporting(target: str, sampler: "Sampler", stack: ExitStack) -> Callable[[], None]:
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


def _shipped(file: str) -> str:
    from importlib import resources

    return (resources.files("ackwise.diagnosis.live") / file).read_text(encoding="utf-8")
