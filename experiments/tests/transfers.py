# SPDX-License-Identifier: MIT
"""Transfers between two network namespaces, each made to be limited by one cause.

sender 10.99.0.1 <──line──> 10.99.0.2 receiver

Both programs and the path run before all ordinary processes: on a busy host they would stand still
now and then, and that would limit the transfer.
"""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from netns import Namespace, namespace

from ackwise_experiments.bottleneck.priority import hurry

PORT = 5001
SENDER, RECEIVER = "10.99.0.1", "10.99.0.2"

_LINE = "ackwise_experiments.bottleneck.line"
_FAST_BPS = 10**8
_RECEIVE = """
import socket, sys, time
rcvbuf, read_bytes, pause_s = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
if rcvbuf:
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
server.bind(("10.99.0.2", 5001))
server.listen()
print("ready", flush=True)
peer, _ = server.accept()
while peer.recv(read_bytes):
    if pause_s:
        time.sleep(pause_s)
"""
_SEND = """
import socket, sys, time
sndbuf, writes, pause_s = int(sys.argv[1]), sys.argv[2].split(","), float(sys.argv[3])
to = socket.socket()
to.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
if sndbuf:
    to.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, sndbuf)
to.connect(("10.99.0.2", 5001))
print("ready", flush=True)
parts = [bytes(int(size)) for size in writes]
while True:
    for part in parts:
        to.sendall(part)
    if pause_s:
        time.sleep(pause_s)
"""


@dataclass(frozen=True)
class Transfer:
    """How it is made slow; 0: the kernel's default, or none."""

    rcvbuf: int = 0
    read_bytes: int = 1 << 20
    read_pause_s: float = 0
    sndbuf: int = 0
    writes: Sequence[int] = (1 << 16,)
    write_pause_s: float = 0
    delay_s: float = 0  # each way
    rate_bps: int = 0  # of the sender's packets
    queue_packets: int = 0
    lost_of: int = 0  # one packet of so many of the sender, on average

    def path(self) -> str:
        """The path in the format of the line."""
        delay = {"rate_bps": _FAST_BPS, "delay_ns": round(self.delay_s * 1e9)}
        down = delay | {
            "rate_bps": self.rate_bps or _FAST_BPS,
            "queue_packets": self.queue_packets,
            "loss_ppm": 10**6 // self.lost_of if self.lost_of else 0,
        }
        return json.dumps({"down": down, "up": delay, "seed": 1, "start_ns": 0, "router": ""})


@dataclass(frozen=True)
class Ends:
    """The namespaces of a transfer that goes on."""

    sender: Namespace
    receiver: Namespace


@contextmanager
def connected(
    how: Transfer, capture: Path | None = None, arrived: Path | None = None
) -> Iterator[Ends]:
    """Both ends and the path between them; `capture` gets what passes the sender's interface,
    `arrived` what passes the receiver's."""
    with ExitStack() as stack:
        sender = stack.enter_context(namespace())
        receiver = stack.enter_context(namespace())
        for end in (sender, receiver):
            end.tool("ip", "link", "del", "v0")
        line = stack.enter_context(_program(["-m", _LINE, sender.name, receiver.name]))
        _await_ready(line)
        assert line.stdin is not None
        line.stdin.write(how.path() + "\n")
        line.stdin.flush()
        for end, address in ((sender, SENDER), (receiver, RECEIVER)):
            end.tool("ip", "address", "add", f"{address}/24", "dev", "v0")
            end.tool("ip", "link", "set", "v0", "up")
        for end, path in ((sender, capture), (receiver, arrived)):
            if path is not None:
                stack.enter_context(_captured(end, path))
        yield Ends(sender, receiver)


@contextmanager
def transferring(
    how: Transfer,
    warm_up_s: float = 1.5,
    capture: Path | None = None,
    arrived: Path | None = None,
) -> Iterator[Ends]:
    """The transfer goes on during the block; captures as in `connected`."""
    with ExitStack() as stack:
        ends = stack.enter_context(connected(how, capture, arrived))
        reading = (how.rcvbuf, how.read_bytes, how.read_pause_s)
        listens = stack.enter_context(_program(["-c", _RECEIVE, *map(str, reading)], ends.receiver))
        _await_ready(listens)
        writing = (how.sndbuf, ",".join(map(str, how.writes)), how.write_pause_s)
        _await_ready(stack.enter_context(_program(["-c", _SEND, *map(str, writing)], ends.sender)))
        time.sleep(warm_up_s)
        yield ends


def _await_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


@contextmanager
def _captured(where: Namespace, path: Path) -> Iterator[None]:
    words = ["tcpdump", "-i", "v0", "-s", "96", "-B", "16384", "-U", "-w", str(path), "tcp"]
    process = subprocess.Popen(
        ["ip", "netns", "exec", where.name, *words], stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        while "listening on" not in process.stderr.readline():
            assert process.poll() is None
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()


@contextmanager
def _program(
    words: Sequence[str], where: Namespace | None = None
) -> Iterator[subprocess.Popen[str]]:
    inside = ["ip", "netns", "exec", where.name] if where else []
    process = subprocess.Popen(
        [*inside, sys.executable, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    hurry(process.pid)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
