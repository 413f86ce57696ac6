# SPDX-License-Identifier: MIT
"""Transfers between two network namespaces, each made to be limited by one cause.

sender 10.99.0.1 <──veth──> 10.99.0.2 receiver
"""

import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from netns import Namespace, namespace

PORT = 5001
SENDER, RECEIVER = "10.99.0.1", "10.99.0.2"

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
if sndbuf:
    to.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, sndbuf)
to.connect(("10.99.0.2", 5001))
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
    there: str = ""  # qdisc of the sender's device
    back: str = ""  # qdisc of the receiver's device


@dataclass(frozen=True)
class Ends:
    """The namespaces of a transfer that goes on."""

    sender: Namespace
    receiver: Namespace


@contextmanager
def transferring(how: Transfer, warm_up_s: float = 1.5) -> Iterator[Ends]:
    """The transfer goes on during the block."""
    with ExitStack() as stack:
        sender = stack.enter_context(namespace())
        receiver = stack.enter_context(namespace())
        sender.tool("ip", "link", "del", "v0")
        receiver.tool("ip", "link", "del", "v0")
        sender.tool(
            *("ip", "link", "add", "v0", "type", "veth"),
            *("peer", "name", "v0", "netns", receiver.name),
        )
        for end, address, qdisc in (
            (sender, SENDER, how.there),
            (receiver, RECEIVER, how.back),
        ):
            end.tool("ip", "address", "add", f"{address}/24", "dev", "v0")
            end.tool("ip", "link", "set", "v0", "up")
            end.tool("ip", "link", "set", "lo", "up")
            if qdisc:
                end.tool("tc", "qdisc", "add", "dev", "v0", "root", *qdisc.split())
        listens = stack.enter_context(
            _program(receiver, _RECEIVE, how.rcvbuf, how.read_bytes, how.read_pause_s)
        )
        assert listens.stdout is not None
        assert listens.stdout.readline() == "ready\n"
        writes = ",".join(map(str, how.writes))
        stack.enter_context(_program(sender, _SEND, how.sndbuf, writes, how.write_pause_s))
        time.sleep(warm_up_s)
        yield Ends(sender, receiver)


@contextmanager
def _program(where: Namespace, text: str, *words: object) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        ["ip", "netns", "exec", where.name, sys.executable, "-c", textwrap.dedent(text)]
        + [str(word) for word in words],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
