# SPDX-License-Identifier: MIT
"""How long a message waits behind the bulk data of its own host, by queueing discipline, on the
kernel that is running.

    linux/stock/boot IMAGE python linux/stock/flows.py [--json]

The host's device is slow itself: SLIP on a pseudoterminal, whose bytes this program carries at 10
Mbit/s, so that packets wait in the discipline, and up to 12 kB behind it. Beside as many bulk
connections as stated, one sends a message and waits for its answer; the way back is free.
"""

import argparse
import fcntl
import json
import os
import socket
import struct
import threading
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from cost import DEVICE, HOST, held, usual
from measure import do, inside
from report import exceeded_by

DISCIPLINES = ("pfifo_fast", "fq_codel", "fq")
POLICY = "adaptive"
BULK = (0, 1, 8)  # connections
RATE_BPS = 10_000_000
PEER = "peer"
ADDRESSES = {HOST: "10.9.0.1", PEER: "10.9.0.2"}
MESSAGES, MESSAGE_BYTES, PAUSE_S = 100, 100, 0.0131
TURN_BYTES = 512  # carried at a time
_TIOCSETD, _N_SLIP = 0x5423, 1
_SIOCSIFENCAP, _PLAIN = 0x8926, 0  # no compression of headers


@dataclass(frozen=True)
class Row:
    """Of one discipline, beside so many connections."""

    discipline: str
    bulk: int
    median_ms: float
    p99_ms: float
    bulk_bps: float


def serial(host: str) -> int:
    """The line of a host's device: its other end."""
    do(f"ip netns add {host}")
    line, own = os.openpty()
    tty.setraw(own)
    fcntl.ioctl(own, _TIOCSETD, struct.pack("i", _N_SLIP))
    fcntl.ioctl(own, _SIOCSIFENCAP, struct.pack("i", _PLAIN))
    (made,) = [one.name for one in Path("/sys/class/net").glob("sl*")]
    do(f"ip link set {made} netns {host} name {DEVICE} mtu 1500")
    other = ADDRESSES[PEER if host == HOST else HOST]
    do(f"ip -n {host} address add {ADDRESSES[host]} peer {other} dev {DEVICE}")
    return line


def carry(taken: int, given: int, rate_bps: float) -> None:
    """Bytes of one line to the other, until one is gone; rate 0: at once."""
    free_at = 0.0
    with suppress(OSError):
        while some := os.read(taken, TURN_BYTES):
            if rate_bps:
                free_at = max(free_at, time.monotonic()) + len(some) * 8 / rate_bps
                time.sleep(max(free_at - time.monotonic(), 0))
            while some:
                some = some[os.write(given, some) :]


@contextmanager
def hosts() -> Iterator[Callable[[], None]]:
    """The two; the function joins them."""
    host, peer = serial(HOST), serial(PEER)

    def join() -> None:
        for name in (HOST, PEER):
            do(f"ip -n {name} link set {DEVICE} up")
        for args in ((host, peer, RATE_BPS), (peer, host, 0)):
            threading.Thread(target=carry, args=args, daemon=True).start()

    try:
        yield join
    finally:
        os.close(host)
        os.close(peer)
        for name in (HOST, PEER):
            do(f"ip netns del {name}")


def accept(listener: socket.socket, came: list[int]) -> None:
    """Each connection in a thread: answers a message, reads bulk data."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=take, args=(connection, came), daemon=True).start()


def take(connection: socket.socket, came: list[int]) -> None:
    """Answers what is a message's length, counts the rest."""
    with connection:
        while data := connection.recv(1 << 16):
            if len(data) == MESSAGE_BYTES:
                connection.send(b".")
            else:
                came[0] += len(data)


def fill(sender: socket.socket, stop: threading.Event) -> None:
    """Bulk data."""
    sender.settimeout(0.1)
    while not stop.is_set():
        try:
            sender.send(bytes(1 << 14))
        except TimeoutError:
            continue
    sender.close()


def measured(discipline: str, bulk: int) -> Row:
    """With the discipline in force."""
    came, stop = [0], threading.Event()
    with inside(PEER):
        listener = socket.create_server((ADDRESSES[PEER], 0), backlog=bulk + 1)
    threading.Thread(target=accept, args=(listener, came), daemon=True).start()
    with inside(HOST):
        senders = [socket.create_connection(listener.getsockname()) for _ in range(bulk + 1)]
    asking, *others = senders
    asking.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for one in others:
        threading.Thread(target=fill, args=(one, stop), daemon=True).start()
    time.sleep(3)
    took, begun, before = [], time.monotonic(), came[0]
    for _ in range(MESSAGES):
        asked = time.monotonic()
        asking.send(bytes(MESSAGE_BYTES))
        asking.recv(1)
        took.append((time.monotonic() - asked) * 1000)
        time.sleep(PAUSE_S)
    rate = (came[0] - before) * 8 / (time.monotonic() - begun)
    stop.set()
    time.sleep(0.5)
    asking.close()
    listener.close()
    return Row(discipline, bulk, exceeded_by(50, took), exceeded_by(1, took), rate)


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    terminals = Path("/dev/pts")
    if not (terminals / "ptmx").exists():
        terminals.mkdir(exist_ok=True)
        do(f"mount -t devpts devpts {terminals}")
    rows = []
    for name in (*DISCIPLINES, POLICY):
        for bulk in BULK:
            with ExitStack() as stack:
                join = stack.enter_context(hosts())
                stack.enter_context(held(name) if name == POLICY else usual(name))
                join()
                rows.append(measured(name, bulk))
    if given.json:
        print(json.dumps([asdict(one) for one in rows], indent=2))
        return
    print("| discipline | bulk connections | answer, median | p99 | bulk |\n|---|---|---|---|---|")
    for one in rows:
        print(
            f"| {one.discipline} | {one.bulk} | {one.median_ms:.1f} ms | {one.p99_ms:.1f} ms | "
            f"{one.bulk_bps / 1e6:.2f} Mbit/s |"
        )


if __name__ == "__main__":
    main()
