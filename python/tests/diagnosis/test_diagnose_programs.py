# SPDX-License-Identifier: MIT
"""What ordinary programs do on this host's kernel, between two network namespaces: an HTTP
download, many small answers on one connection, a bulk transfer, and a client with a small receive
buffer. The limit, and the three lines that are read first."""

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from netns import Namespace, needs_root
from transfers import RECEIVER, SENDER, Ends, Transfer, connected

from ackwise import engine
from ackwise.diagnosis import table

MB = 10**6
HTTP_PORT = 8000
# As an embedded client asks for its answer.
_SMALL_BUFFER = f"""
import http.client, socket
class Small(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        self.sock.connect((self.host, self.port))
asked = Small("{SENDER}", {HTTP_PORT})
asked.request("GET", "/large")
while asked.sock.recv(4096):
    pass
"""


@contextmanager
def _serving(where: Namespace, *words: str) -> Iterator[None]:
    """A server in a namespace, once it listens."""
    server = subprocess.Popen(
        ["ip", "netns", "exec", where.name, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 300
        while not where.tool("ss", "-Htln").strip():
            assert server.poll() is None
            assert time.monotonic() < deadline, "the server does not listen"
            time.sleep(0.02)
        yield
    finally:
        server.kill()
        server.wait()


@contextmanager
def _http(ends: Ends, folder: Path) -> Iterator[None]:
    """Python's file server at the sender, with a large file and a hundred small ones."""
    served = folder / "served"
    served.mkdir()
    (served / "large").write_bytes(bytes(4 * MB))
    for n in range(100):
        (served / f"small-{n}").write_bytes(bytes(300))
    words = ["-m", "http.server", str(HTTP_PORT), "--bind", SENDER, "--protocol", "HTTP/1.1"]
    with _serving(ends.sender, sys.executable, *words, "--directory", str(served)):
        yield


def _curl(ends: Ends, folder: Path, *files: str, seconds: int = 20) -> None:
    urls = [f"http://{SENDER}:{HTTP_PORT}/{file}" for file in files]
    sinks = [word for _ in urls for word in ("-o", "/dev/null")]
    with _http(ends, folder):
        ends.receiver.tool("curl", "-sS", "--max-time", str(seconds), *sinks, *urls)


def _download(ends: Ends, folder: Path) -> None:
    _curl(ends, folder, "large")


def _answers(ends: Ends, folder: Path) -> None:
    _curl(ends, folder, *(f"small-{n}" for n in range(100)))


def _iperf3(ends: Ends, _folder: Path) -> None:
    with _serving(ends.receiver, "iperf3", "-s", "-1"):
        ends.sender.tool("iperf3", "-c", RECEIVER, "-t", "3", "-C", "cubic")


def _embedded(ends: Ends, folder: Path) -> None:
    with _http(ends, folder):
        ends.receiver.tool("timeout", "6", sys.executable, "-c", _SMALL_BUFFER, check=False)


@dataclass(frozen=True)
class Program:
    """What runs over which path, what it needs, and patterns of its first three lines."""

    run: Callable[[Ends, Path], None]
    path: Transfer
    needs: str
    lines: tuple[str, str, str]
    never: str = "undecided"


PROGRAMS = {
    "an HTTP download": Program(
        _download, Transfer(rate_bps=8_000_000, queue_packets=100, delay_s=0.01), "curl",
        (
            rf"^{SENDER}:8000 -> {RECEIVER}:\d+: 4 MB in 4\.\d* s, [67]\.\d+ Mbit/s$",
            r"^9\d% of the time: link \([^)]*\)\. The slowest link of the path carries "
            r"7\.\d+ Mbit/s",
            r"^Fix \(path\): (none needed; )?more throughput needs a faster link",
        ),
        "tcp_rmem|lost",
    ),
    "a hundred answers, one after the other": Program(
        _answers, Transfer(delay_s=0.01), "curl",
        (
            # The server writes the head and the body of an answer one after the other, and leaves
            # Nagle's algorithm on.
            rf"^{SENDER}:8000 -> {RECEIVER}:\d+: \d+(\.\d+)? kB in [89](\.\d+)? s, ",
            r"^[67]\d% of the time: Nagle / delayed-ACK stall \([^)]*\)\. A short segment "
            r"waits for the ACK of the previous one, which the receiver delays: "
            r"[56](\.\d+)? s in total",
            rf"^Fix \(sender {SENDER}:8000\): set TCP_NODELAY .*head and body in one call",
        ),
        "top -H|tcp_.mem",
    ),
    "a bulk transfer by iperf3": Program(
        _iperf3, Transfer(rate_bps=20_000_000, queue_packets=200, delay_s=0.005), "iperf3",
        (
            rf"^{SENDER}:\d+ -> {RECEIVER}:5201: \d(\.\d+)? MB in 3(\.\d+)? s, "
            r"1[89](\.\d+)? Mbit/s$",
            r"^\d\d% of the time: link \([^)]*\)\. The slowest link of the path carries "
            r"19(\.\d)? Mbit/s",
            r"^Fix \(path\): (none needed; )?more throughput needs a faster link",
        ),
        "tcp_.mem",
    ),
    "a client with a receive buffer of 8 KiB": Program(
        _embedded, Transfer(delay_s=0.02), sys.executable,
        (
            rf"^{SENDER}:8000 -> {RECEIVER}:\d+: ",
            r"^\d\d% of the time: receive window \([^)]*\)\. "
            r"A window of \d+(\.\d+)? kB per RTT of 4\d(\.\d+)? ms",
            r"^Fix \(receiver 10.99.0.2:\d+\): .*SO_RCVBUF",
        ),
        "sysctl -w",
    ),
}  # fmt: skip


@needs_root
@pytest.mark.real_time
@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_s_transfer_is_read_in_three_lines(name: str, tmp_path: Path) -> None:
    program = PROGRAMS[name]
    for tool in (program.needs, "tcpdump"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed (apt-get install {tool})")
    capture = tmp_path / "sender.pcap"
    with connected(program.path, capture) as ends:
        program.run(ends, tmp_path)
        time.sleep(1.5)  # the kernel hands packets over in blocks, of a second at most
    # iperf3 has a connection of its own for control
    largest = max(table.rank(engine.diagnose([str(capture)])), key=lambda one: one.bytes)
    said = [line.strip() for line, _ in table.lines(largest)]
    for pattern, line in zip(program.lines, said, strict=False):
        assert re.search(pattern, line), said
    assert not re.search(program.never, "\n".join(said[:4])), said
    assert not largest.missed_segments
