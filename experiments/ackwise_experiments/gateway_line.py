# SPDX-License-Identifier: MIT
"""`ackwise gateway test`: what the gateway changes on a user's own line.

      each round:  download, upload, both  ─>  up  ─>  download, upload, both  ─>  down

iperf3 makes the transfers, and an ICMP echo every 50 ms beside them shows the latency. `down` runs
whatever happens; after a SIGKILL, `ackwise gateway down` restores the queues from the state file.
"""

import json
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass

import click

from ackwise import __version__
from ackwise.cli import options
from ackwise.cli.gateway import queues, request
from ackwise.cli.options import Whole
from ackwise.cli.shape import Command, group, option, others
from ackwise.errors import EXIT_FAILED, InputError, RunError, quoted
from ackwise.gateway import control
from ackwise.gateway.model import AccessLink, predict
from ackwise.gateway.selftest import checksum
from ackwise.gateway.settings import Request, Settled, settle
from ackwise.gateway.state import Keeper
from ackwise.host import programs, rights
from ackwise.results.progress import progress_bar

_TEST_EXAMPLES = """\
sudo ackwise gateway test eth0 --down 50mbit --up 5mbit --server iperf.example.net
"""
_TEST_EXIT_CODES = """\
0  nothing carried less with the queues
1  something carried over 5% less
"""
SCHEMA_VERSION = 1
HARM_PERCENT = 5.0  # lines in use vary more than the lab's
OMITTED_S = 2  # of each transfer: slow start
_PING_S = 0.05
_SLACK_S = 30.0
_WAYS = {"download": ("--reverse",), "upload": (), "both": ("--bidir",)}
_ECHO = {socket.AF_INET: (socket.IPPROTO_ICMP, 8, 0), socket.AF_INET6: (58, 128, 129)}


@dataclass(frozen=True)
class Peer:
    """An iperf3 server."""

    host: str
    port: int
    seconds: int

    @property
    def address(self) -> tuple[socket.AddressFamily, str]:
        """Family and address. InputError for a name without one."""
        try:
            found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        except OSError as problem:
            raise InputError(f"--server: {quoted(self.host)}: {problem.strerror}") from None
        return found[0][0], str(found[0][4][0])


@dataclass(frozen=True)
class Measured:
    """Received payload in bit/s, None: not part of it; RTTs of pings beside it in ns."""

    down_bps: float | None
    up_bps: float | None
    ping_p50_ns: int | None
    ping_p99_ns: int | None


Phase = dict[str, Measured]


def test(settled: Settled, keeper: Keeper, peer: Peer, *, replace: bool, as_json: bool) -> int:
    """Exit code: 1 when a transfer falls by more than HARM_PERCENT. Raises InputError, RunError."""
    if programs.find_tool("iperf3") is None:
        raise InputError("gateway test: iperf3 is missing; `apt-get install iperf3`")
    control.check_not_up(settled.settings.interface, keeper, replace_own=replace)
    _, address = peer.address
    with progress_bar(not as_json) as show:
        steps = 2 * len(_WAYS)

        def phase(first: int) -> Phase:
            found = {}
            for n, way in enumerate(_WAYS):
                show(way, first + n, steps)
                found[way] = _measured(way, peer, address)
            return found

        without = phase(0)
        with _up(settled, keeper, replace=replace):
            gateway = phase(len(_WAYS))
        show("done", steps, steps)
    link = settled.request.access.link()
    was, became = (_shares_percent(one, link) for one in (without, gateway))
    fallen = [way for way in _WAYS if became[way] < (1 - HARM_PERCENT / 100) * was[way]]
    if as_json:
        head = {"schema_version": SCHEMA_VERSION, "ackwise_version": __version__}
        phases = {"without": without, "gateway": gateway}
        told = {name: {k: asdict(v) for k, v in one.items()} for name, one in phases.items()}
        print(json.dumps(head | {"kind": "gateway-test"} | told, indent=2))
    else:
        print("\n".join(_lines(without, gateway)))
        shares = ", ".join(f"{way} {was[way]:.0f}% -> {became[way]:.0f}%" for way in _WAYS)
        print(f"shares of the line, both directions added: {shares}")
        print(f"over {HARM_PERCENT:g}% less of it: {', '.join(fallen) or 'none'}")
    return EXIT_FAILED if fallen else 0


@contextmanager
def _up(settled: Settled, keeper: Keeper, *, replace: bool) -> Iterator[None]:
    """The gateway's queues, and afterwards those that were there."""
    note = control.settings_document(settled.settings)
    try:
        control.up(settled.settings, note, keeper, replace_own=replace, self_test=False)
        yield
    finally:
        if keeper.read() is not None:
            control.down(settled.settings.interface, keeper)


def _measured(way: str, peer: Peer, address: str) -> Measured:
    words = [
        "iperf3", "--client", address, "--port", str(peer.port), "--time", str(peer.seconds),
        "--omit", str(OMITTED_S), "--json", *_WAYS[way],
    ]  # fmt: skip
    with _pinged(peer) as rtts_ns:
        done = programs.run(words, timeout_s=peer.seconds + OMITTED_S + _SLACK_S)
    try:
        told = json.loads(done.stdout)
    except ValueError:
        raise RunError(f"iperf3: {programs.said(done)}") from None
    if "error" in told:
        start = f"; start `iperf3 -s -p {peer.port}` there" if "refused" in told["error"] else ""
        raise RunError(f"iperf3 at {peer.host}: {told['error']}{start}")
    end = told["end"]
    received = float(end["sum_received"]["bits_per_second"])
    rtts = sorted(rtts_ns)
    p50, p99 = (rtts[int(share * (len(rtts) - 1))] if rtts else None for share in (0.5, 0.99))
    if way == "download":
        return Measured(received, None, p50, p99)
    back = end["sum_received_bidir_reverse"]["bits_per_second"] if way == "both" else None
    return Measured(back, received, p50, p99)


@contextmanager
def _pinged(peer: Peer) -> Iterator[list[int]]:
    """Pings the peer; RTTs in ns."""
    family, address = peer.address
    protocol, request, reply = _ECHO[family]
    rtts: list[int] = []
    over = threading.Event()

    def ping(raw: socket.socket) -> None:
        number, at, mine = 0, time.monotonic(), os.getpid() & 0xFFFF
        while not over.is_set():
            if time.monotonic() >= at:
                at += _PING_S
                number += 1
                head = struct.pack("!BBHHHQ", request, 0, 0, mine, number % 2**16, _now_ns())
                with suppress(OSError):  # a full queue
                    raw.sendto(head[:2] + checksum(head) + head[4:], (address, 0))
            raw.settimeout(max(0.001, at - time.monotonic()))
            try:
                packet = raw.recv(2048)
            except OSError:
                continue
            packet = packet[4 * (packet[0] & 15) :] if family == socket.AF_INET else packet
            if len(packet) == 16 and packet[0] == reply and packet[4:6] == mine.to_bytes(2, "big"):
                rtts.append(_now_ns() - int.from_bytes(packet[8:], "big"))

    with socket.socket(family, socket.SOCK_RAW, protocol) as raw:
        thread = threading.Thread(target=ping, args=(raw,))
        thread.start()
        try:
            yield rtts
        finally:
            over.set()
            thread.join()


def _now_ns() -> int:
    return time.monotonic_ns()


def _shares_percent(phase: Phase, link: AccessLink) -> dict[str, float]:
    """What each transfer carries, in shares of the line, both directions added. An upload was asked
    for no more than the rate that the queues were given."""
    alone = predict(link).alone

    def share(bps: float | None, most_bps: float) -> float:
        return 100 * min(1.0, (bps or 0) / most_bps)

    return {
        way: share(one.down_bps, alone.down_bps) + share(one.up_bps, alone.up_bps)
        for way, one in phase.items()
    }


def _lines(without: Phase, gateway: Phase) -> Iterator[str]:
    """The table, without -> with the gateway, and what changed."""
    form = "{:10} {:>20} {:>20} {:>20} {:>20}"
    yield form.format("transfer", "down, Mbit/s", "up, Mbit/s", "ping p50, ms", "ping p99, ms")
    for way in _WAYS:
        pair = asdict(without[way]), asdict(gateway[way])
        cells = [
            " -> ".join("none" if one[key] is None else f"{one[key] / 1e6:.4g}" for one in pair)
            for key in pair[0]
        ]
        shown = ("" if cell == "none -> none" else cell for cell in cells)
        yield form.format(way, *shown).rstrip()
    yield f"changes of {HARM_PERCENT:g}% or more:"
    for way in _WAYS:
        found = ", ".join(_changes(without[way], gateway[way]))
        yield f"  {way:10} {found or 'none'}"


def _changes(without: Measured, gateway: Measured) -> Iterator[str]:
    """What a gateway changes by HARM_PERCENT or more, for better or worse."""
    names = ("down", "up", "ping p50", "ping p99")
    pairs = zip(names, asdict(without).values(), asdict(gateway).values(), strict=True)
    for name, was, became in pairs:
        if was and became is not None:
            percent = 100 * (became / was - 1)
            if abs(percent) >= HARM_PERCENT:
                yield f"{name} {percent:+.0f}%"


@click.command(
    "test",
    cls=Command,
    short_help="Measure this line without and with the queues (needs root, and iperf3 elsewhere)",
    examples=_TEST_EXAMPLES,
    exit_codes=_TEST_EXIT_CODES,
)
@request.interface
@request.link
@request.queues
@group(
    "Test",
    option("--server", metavar="HOST", required=True, help="where `iperf3 --server` listens"),
    option("--port", type=Whole(1, 65535), metavar="PORT", default=5201, help="its port"),
    option("--seconds", type=Whole(1, 600), metavar="N", default=10, help="of each transfer"),
)
@others(queues.REPLACE, options.AS_JSON, queues.RUN_DIR)
def command(
    asked: Request, server: str, port: int, seconds: int, replace: bool, as_json: bool, run_dir: str
) -> int:
    """Exit code; raises InputError, RunError."""
    rights.keep_only(*queues.REHEARSAL)
    control.check_rights()
    control.check_present(asked.interface)
    settled = settle(asked)
    queues.warn(settled)
    keeper, peer = Keeper(run_dir, asked.interface), Peer(server, port, seconds)
    return test(settled, keeper, peer, replace=replace, as_json=as_json)
