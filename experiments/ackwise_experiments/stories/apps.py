# SPDX-License-Identifier: MIT
"""Small applications for what ready-made ones cannot be told to do.

    python -m ackwise_experiments.stories.apps NAME KEY=VALUE...

Each has the faults of its story and no others.
"""

import fcntl
import os
import socket
import struct
import sys
import termios
import time
from collections.abc import Callable

_LISTEN_BACKLOG = 16
_HEAD_END = b"\r\n\r\n"


def _accepting(port: int, family: int = socket.AF_INET) -> socket.socket:
    server = socket.socket(family, socket.SOCK_STREAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("", port))
    server.listen(_LISTEN_BACKLOG)
    return server


def _nodelay(peer: socket.socket, nodelay: int) -> None:
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, nodelay)


def _read_exactly(peer: socket.socket, size: int) -> bool:
    while size:
        part = peer.recv(size)
        if not part:
            return False
        size -= len(part)
    return True


def web(port: int, head_bytes: int, body_bytes: int, think_ms: int = 0, nodelay: int = 0) -> None:
    """Answers each request with a write for the head and one for the body."""
    server = _accepting(port)
    while True:
        peer, _ = server.accept()
        _nodelay(peer, nodelay)
        waiting = b""
        while part := peer.recv(1 << 16):
            waiting += part
            while _HEAD_END in waiting:
                _, _, waiting = waiting.partition(_HEAD_END)
                time.sleep(think_ms / 1000)
                head = f"HTTP/1.1 200 OK\r\nContent-Length: {body_bytes}\r\nX-Pad: "
                peer.sendall(head.encode().ljust(head_bytes - 4, b"x") + _HEAD_END)
                peer.sendall(bytes(body_bytes))
        peer.close()


def upload(port: int) -> None:
    """Takes uploads, but does not know `Expect: 100-continue`."""
    server = _accepting(port)
    while True:
        peer, _ = server.accept()
        _nodelay(peer, 1)
        waiting = b""
        while part := peer.recv(1 << 16):
            waiting += part
            head, end, body = waiting.partition(_HEAD_END)
            if not end:
                continue
            size = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or b"0")
            if len(body) >= size:
                waiting = b""
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        peer.close()


def sink(port: int, reply: int = 0, of_bytes: int = 0, rcvbuf: int = 0) -> None:
    """Reads; with `reply`, confirms each `of_bytes` with so many bytes."""
    server = _accepting(port)
    if rcvbuf:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
    while True:
        peer, _ = server.accept()
        _nodelay(peer, 1)
        if reply:
            while _read_exactly(peer, of_bytes):
                peer.sendall(bytes(reply))
        else:
            while peer.recv(1 << 16):
                pass
        peer.close()


def write(
    host: str,
    port: int,
    seconds: float,
    write_bytes: int = 65536,
    pause_ms: float = 0,
    nodelay: int = 0,
    sndbuf: int = 0,
    confirmed: int = 0,
    drained: int = 0,
) -> None:
    """Writes parts, with a pause between them; with `confirmed`, after an answer of so many bytes;
    with `drained`, once everything has been acknowledged."""
    peer = socket.socket()
    if sndbuf:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, sndbuf)
    peer.connect((host, port))
    _nodelay(peer, nodelay)
    end = time.monotonic() + seconds
    due = time.monotonic()
    while time.monotonic() < end:
        peer.sendall(bytes(write_bytes))
        if confirmed and not _read_exactly(peer, confirmed):
            return
        while drained and struct.unpack("i", fcntl.ioctl(peer, termios.TIOCOUTQ, b"    "))[0]:
            time.sleep(0.001)
        due += pause_ms / 1000
        time.sleep(max(0.0, due - time.monotonic()))
    peer.close()


def ask(
    host: str,
    port: int,
    seconds: float,
    parts: str | int,
    answer_bytes: int,
    pause_ms: float = 0,
    nodelay: int = 0,
) -> None:
    """Asks again and again, each request in several writes."""
    peer = socket.create_connection((host, port))
    _nodelay(peer, nodelay)
    end = time.monotonic() + seconds
    sizes = [int(part) for part in str(parts).split("+")]
    while time.monotonic() < end:
        for size in sizes:
            peer.sendall(bytes(size))
        if not _read_exactly(peer, answer_bytes):
            return
        time.sleep(pause_ms / 1000)
    peer.close()


def give(
    port: int,
    total_bytes: int,
    abort: int = 0,
    idle_ms: int = 0,
    write_bytes: int = 65536,
    pause_ms: float = 0,
    sndbuf: int = 0,
    nodelay: int = 0,
) -> None:
    """Sends so many bytes to each client, with a pause after each write, waits, and closes, or
    resets the connection."""
    server = _accepting(port)
    if sndbuf:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, sndbuf)
    while True:
        peer, _ = server.accept()
        _nodelay(peer, nodelay)
        left = total_bytes
        try:
            while left > 0:
                left -= peer.send(b"x" * min(write_bytes, left))
                time.sleep(pause_ms / 1000)
        except OSError:
            continue
        time.sleep(idle_ms / 1000)
        if abort:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()


def take(
    host: str,
    port: int,
    read_bytes: int = 65536,
    pause_ms: float = 0,
    every_bytes: int = 0,
    clamp: int = 0,
    rcvbuf: int = 0,
    seconds: float = 30,
) -> None:
    """Reads; with `every_bytes`, pauses after so many, else after each read."""
    peer = socket.socket()
    if rcvbuf:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
    if clamp:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, clamp)
    peer.connect((host, port))
    end = time.monotonic() + seconds
    since = 0
    while time.monotonic() < end:
        part = peer.recv(read_bytes)
        if not part:
            return
        since += len(part)
        if pause_ms and since >= every_bytes:
            since = 0
            time.sleep(pause_ms / 1000)


def unpack(seconds: float, work: int) -> None:
    """Reads the standard input and spends time of the processor on each byte."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and (part := os.read(0, 1 << 14)):
        for _ in range(work):
            part = bytes(255 - byte for byte in part)


APPLICATIONS: dict[str, Callable[..., None]] = {
    one.__name__: one for one in (web, upload, sink, write, ask, give, take, unpack)
}


def _value(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def main() -> None:
    """Runs one."""
    keys = (word.partition("=") for word in sys.argv[2:])
    APPLICATIONS[sys.argv[1]](**{key: _value(value) for key, _, value in keys})


if __name__ == "__main__":
    main()
