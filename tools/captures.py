# SPDX-License-Identifier: MIT
"""Records the shipped captures: small real transfers, packet headers only. Needs root.

    python tools/captures.py [NAME...]

Real kernels, a virtual wire between two namespaces (set up as by `ackwise record`), offloads off.
The programs at both ends are below. Timing differs in every run, so recording again changes the
figures derived from a capture.
"""

import argparse
import random
import socket
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import ackwise
from ackwise.host import capture, files, programs
from ackwise.host.namespaces import inside

FOLDER = Path(ackwise.__file__).parent / "captures"
SENDER, RECEIVER, PORT = "10.199.0.1", "10.199.0.2", 5201
SNAP_BYTES = 96  # Ethernet, IPv4 and TCP with timestamps and SACK
NUMBER = struct.Struct("!I")


def bulk_sender(to: socket.socket) -> None:
    """Sends 600 000 bytes as fast as possible."""
    to.sendall(bytes(600_000))


def stream_sender(to: socket.socket) -> None:
    """Eight seconds of video: 25 frames a second, 1 to 5 KB each, every 25th of 12 KB."""
    sizes = random.Random(25)  # noqa: S311 - sizes
    start = time.monotonic()
    for frame in range(200):
        time.sleep(max(0.0, start + frame / 25 - time.monotonic()))
        to.sendall(bytes(12_000 if frame % 25 == 0 else sizes.randint(1_000, 5_000)))


def sink(received: socket.socket) -> None:
    """Reads until the other end closes."""
    while received.recv(1 << 16):
        pass


def answers(to: socket.socket) -> None:
    """Answers each number of 4 bytes with that many bytes."""
    while asked := to.recv(NUMBER.size, socket.MSG_WAITALL):
        to.sendall(bytes(NUMBER.unpack(asked)[0]))


def questions(received: socket.socket) -> None:
    """120 requests for 200 bytes to 10 KB, 30 ms apart on average."""
    sizes = random.Random(120)  # noqa: S311 - sizes
    for _ in range(120):
        wanted = round(200 * 50 ** sizes.random())
        received.sendall(NUMBER.pack(wanted))
        while wanted:
            wanted -= len(received.recv(wanted))
        time.sleep(sizes.expovariate(1 / 0.03))


@dataclass(frozen=True)
class RecordedTransfer:
    """A transfer: the programs at both ends and the wire between them."""

    rate_bps: int
    at_sender: Callable[[socket.socket], None]
    at_receiver: Callable[[socket.socket], None]


TRANSFERS = {
    "bulk": RecordedTransfer(10**7, bulk_sender, sink),
    "request-response": RecordedTransfer(10**8, answers, questions),
    "stream": RecordedTransfer(10**7, stream_sender, sink),
}


def play(name: str, receiver: bool) -> None:
    """Runs one end of a transfer inside its namespace; the receiver of the data listens."""
    transfer = TRANSFERS[name]
    if receiver:
        with socket.create_server((RECEIVER, PORT)) as server:
            connection, _ = server.accept()
    else:
        for attempt in range(100):
            try:
                connection = socket.create_connection((RECEIVER, PORT))
                break
            except ConnectionRefusedError:
                if attempt == 99:
                    raise
                time.sleep(0.05)
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        (transfer.at_receiver if receiver else transfer.at_sender)(connection)
        connection.shutdown(socket.SHUT_WR)
        sink(connection)


def make(name: str) -> None:
    """Records one capture."""
    transfer = TRANSFERS[name]
    target = FOLDER / f"{name}.pcap"
    program = (sys.executable, str(Path(__file__).resolve()), name)
    # No delay apart from the sender's queue: not every kernel has netem, and rate and application
    # already determine the arrival times.
    with (
        files.writing(str(target)) as stream,
        capture.wire(stream, transfer.rate_bps, 0, SNAP_BYTES) as (sender, receiver),
    ):
        listening = inside(receiver, *program, "--end", "receiver")
        with programs.started(listening) as other:
            talking = inside(sender, *program, "--end", "sender")
            programs.run(talking, timeout_s=60, check=True)
            if other.wait(timeout=10):
                raise SystemExit(f"{name}: the receiver failed:\n{other.communicate()[1]}")
    print(f"{target.name}: {target.stat().st_size} bytes")


def main() -> int:
    """Exit code 1 where no capture can be recorded."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="(default: every capture)")
    parser.add_argument("--end", choices=("sender", "receiver"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.end:
        play(args.names[0], args.end == "receiver")
        return 0
    if obstacle := capture.why_not():
        print(f"captures: {obstacle}", file=sys.stderr)
        return 1
    for name in args.names or TRANSFERS:
        make(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
