# SPDX-License-Identifier: MIT
"""A home's access line in network namespaces of this host: its kernel, TCP, queues and real time.

      host ────── gateway ═══════════ internet ────── server
        h0        g0   g1              i0   i1          s0
                  up: the queues that are compared
                  down: HTB and a FIFO at i0

One process holds all sockets and waits for them in one place: a socket stays in the namespace it
was made in. The namespaces are removed in any case, with their devices and queues.
"""

import os
import random
import selectors
import socket
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ackwise.errors import InputError
from ackwise.gateway.selftest import checksum
from ackwise.host import environment, namespaces, needs, rights
from ackwise.host.programs import do

SERVER = "10.77.2.2"
PAYLOAD_BYTES = 1448
_PORT = 7100
_SO_RCVBUFFORCE, _TCP_WINDOW_CLAMP = 33, 10
_ZEROS = bytes(1 << 16)
_PING_S = 0.2
_ECHO, _ECHO_REPLY = 8, 0
# Hosts of the 1990s had no SACK, RACK, early retransmit, tail loss probe or F-RTO. They
# retransmitted after three duplicate ACKs (RFC 2581), where Linux may wait for more. Their minimum
# RTO was 1 s (RFC 2988), which kernels before 6.11 cannot set for all sockets.
OLD = {
    "tcp_sack": 0,
    "tcp_recovery": 0,
    "tcp_early_retrans": 0,
    "tcp_frto": 0,
    "tcp_max_reordering": 3,
}
_OLD_IF_KNOWN = {"tcp_rto_min_us": 1_000_000}


def check() -> None:
    """InputError with the remedy when this host cannot make such a line."""
    missing = needs.complaint("host")
    if missing:
        raise InputError(f"reproduce --on host: {missing}")
    lacking = rights.missing_capabilities()
    if lacking:
        raise InputError(
            f"reproduce --on host: needs root (missing: {', '.join(lacking)}); run it with sudo"
        )


@dataclass(frozen=True)
class Testbed:
    """The four namespaces, by name."""

    host: str
    gateway: str
    internet: str
    server: str

    def inside(self, namespace: str, *words: str) -> None:
        """Runs a short command to its end; RunError with its message."""
        do(*namespaces.inside(namespace, *words))

    def ackwise(self, namespace: str, *words: str) -> None:
        """Runs a command of this ackwise in a namespace, wherever it was imported from."""
        do(
            *namespaces.inside(namespace, sys.executable, "-m", "ackwise", *words),
            environment=environment.passed_on(PYTHONPATH=os.pathsep.join(sys.path)),
        )


@contextmanager
def testbed(down: Sequence[str], *, every_packet: bool, old: bool) -> Iterator[Testbed]:
    """A line without queues on the uplink yet. `down`: `tc` lines of the provider, PORT being the
    device; `every_packet`: hosts send an ACK for each packet; `old`: their TCP recovers from losses
    as in the 1990s."""
    with ExitStack() as stack:
        names = [stack.enter_context(namespaces.namespace(end)) for end in "hgis"]
        made = Testbed(*names)
        host, gateway, internet, server = names
        for n, (left, right, a, b) in enumerate(
            (
                (host, gateway, "h0", "g0"),
                (gateway, internet, "g1", "i0"),
                (internet, server, "i1", "s0"),
            )
        ):
            do("ip", "link", "add", a, "netns", left, "type", "veth", "peer", b, "netns", right)
            for end, device, number in ((left, a, 1), (right, b, 2)):
                do("ip", "-n", end, "address", "add", f"10.77.{n}.{number}/24", "dev", device)
                # packets no larger than the MTU, as on a wire
                made.inside(end, "ethtool", "-K", device, "gso", "off", "tso", "off", "gro", "off")
                do("ip", "-n", end, "link", "set", device, "up")
        for end in (gateway, internet):
            _set(made, end, {"ip_forward": 1})
        for end in (host, server):
            _set(made, end, {"tcp_no_metrics_save": 1} | (_old() if old else {}))
        more = ("quickack", "1") if every_packet else ()
        first = ("initcwnd", "3") if old else ()
        for end, to, via in (
            (host, "10.77.2.0/24", "10.77.0.2"),
            (gateway, "10.77.2.0/24", "10.77.1.2"),
            (internet, "10.77.0.0/24", "10.77.1.1"),
            (server, "10.77.0.0/24", "10.77.2.1"),
        ):
            at_end = (*more, *first) if end in (host, server) else ()
            do("ip", "-n", end, "route", "add", to, "via", via, *at_end)
        for words in down:
            do("tc", "-n", internet, *words.replace("PORT", "i0").split())
        yield made


def _old() -> dict[str, int]:
    folder = Path("/proc/sys/net/ipv4")
    return OLD | {k: v for k, v in _OLD_IF_KNOWN.items() if (folder / k).exists()}


def _set(made: Testbed, namespace: str, values: dict[str, int]) -> None:
    made.inside(namespace, "sysctl", "-qw", *(f"net.ipv4.{k}={v}" for k, v in values.items()))


@dataclass
class LiveTransfer:
    """A transfer without end. `counted`: bytes read after the settling time."""

    sends: socket.socket
    reads: socket.socket
    counted: int = 0


@dataclass
class LineTraffic:
    """Transfers and pings over one line."""

    transfers: dict[str, LiveTransfer] = field(default_factory=dict)
    sent_at: dict[int, float] = field(default_factory=dict)
    rtts_s: list[float] = field(default_factory=list)
    ping: socket.socket | None = None


def _transfer(
    made: Testbed, direction: str, congestion_control: str, window_packets: int
) -> LiveTransfer:
    """Connected; `direction` "upload" or "download"."""
    window = window_packets * PAYLOAD_BYTES

    def prepared(namespace: str, *, receives: bool) -> socket.socket:
        with namespaces.within(namespace):
            one = socket.socket()
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control.encode())
        if receives:
            one.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 4 * window)
            one.setsockopt(socket.IPPROTO_TCP, _TCP_WINDOW_CLAMP, window)
        return one

    up = direction == "upload"
    with prepared(made.server, receives=up) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        port = _PORT + (0 if up else 1)
        listening.bind((SERVER, port))
        listening.listen(1)
        client = prepared(made.host, receives=not up)
        client.settimeout(10)
        client.connect((SERVER, port))
        accepted, _ = listening.accept()
    for one in (client, accepted):
        one.setblocking(False)
    return LiveTransfer(client, accepted) if up else LiveTransfer(accepted, client)


def _ping(traffic: LineTraffic, now: float) -> None:
    assert traffic.ping is not None
    number = len(traffic.sent_at)
    packet = struct.pack("!BBHHH", _ECHO, 0, 0, 1, number) + bytes(56)
    packet = packet[:2] + checksum(packet) + packet[4:]
    with suppress(BlockingIOError):
        traffic.ping.sendto(packet, (SERVER, 0))
        traffic.sent_at[number] = now


def _pinged(traffic: LineTraffic, settled: float) -> None:
    assert traffic.ping is not None
    with suppress(BlockingIOError):
        while True:
            packet = traffic.ping.recv(256)
            header = (packet[0] & 15) * 4
            kind, _, _, _, number = struct.unpack_from("!BBHHH", packet, header)
            sent = traffic.sent_at.get(number)
            if kind == _ECHO_REPLY and sent is not None and sent >= settled:
                traffic.rtts_s.append(time.monotonic() - sent)


@dataclass(frozen=True)
class MeasuredLine:
    """After the settling time: goodput by direction in kbit/s, RTTs of pings in s."""

    speeds: dict[str, float]
    rtts_s: list[float]


def run(
    lines: Sequence[tuple[Testbed, Sequence[str], str]],
    *,
    window_packets: int,
    seconds: float,
    settled_seconds: float,
    seed: int,
) -> list[MeasuredLine]:
    """Transfers over all lines at once, for `seconds`. `lines`: testbed, directions, the senders'
    congestion control. They start within a second, at times drawn from `seed`."""
    chance = random.Random(seed)  # noqa: S311
    with ExitStack() as stack:
        all_traffic: list[LineTraffic] = []
        poller = stack.enter_context(selectors.DefaultSelector())
        for made, _, _ in lines:
            traffic = LineTraffic()
            with namespaces.within(made.host):
                traffic.ping = stack.enter_context(
                    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
                )
            traffic.ping.setblocking(False)
            poller.register(traffic.ping, selectors.EVENT_READ, (traffic, None))
            all_traffic.append(traffic)
        waiting = sorted(
            (chance.random(), index, direction)
            for index, (_, directions, _) in enumerate(lines)
            for direction in directions
        )
        begin = time.monotonic()
        settled, end, next_ping = begin + settled_seconds, begin + seconds, begin
        while (now := time.monotonic()) < end:
            while waiting and begin + waiting[0][0] <= now:
                _, index, direction = waiting.pop(0)
                made, _, control = lines[index]
                one = _transfer(made, direction, control, window_packets)
                all_traffic[index].transfers[direction] = one
                stack.callback(one.sends.close)
                stack.callback(one.reads.close)
                poller.register(one.sends, selectors.EVENT_WRITE, (all_traffic[index], one))
                poller.register(one.reads, selectors.EVENT_READ, (all_traffic[index], one))
            if now >= next_ping:
                next_ping += _PING_S
                for traffic in all_traffic:
                    _ping(traffic, now)
            for key, event in poller.select(max(0.0, min(next_ping, end) - time.monotonic())):
                traffic, of = key.data
                if of is None:
                    _pinged(traffic, settled)
                elif event == selectors.EVENT_WRITE:
                    with suppress(BlockingIOError):
                        of.sends.send(_ZEROS)
                else:
                    with suppress(BlockingIOError):
                        count = len(of.reads.recv(1 << 18))
                        of.counted += count if time.monotonic() >= settled else 0
        took = seconds - settled_seconds
        return [
            MeasuredLine({d: t.counted * 8e-3 / took for d, t in x.transfers.items()}, x.rtts_s)
            for x in all_traffic
        ]
