# SPDX-License-Identifier: MIT
"""Both ends of a case's connections on this host's kernel, in one process, with the kernel's
account of the first one.

    python -m ackwise_experiments.bottleneck.ends < settings > account

Says "ready" and reads one line of JSON: `server` and `client` (namespaces), `start_ns` (monotonic,
of time 0), `duration_ns` and `steps`, the flows as the traffic program of the lab takes them
(linux/lab/flow.c); its applications do the same here. Times of the account count from `start_ns`.
"""

import asyncio
import json
import selectors
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ackwise.bounded import parse_json
from ackwise.errors import RunError
from ackwise.host.namespaces import enter
from ackwise.lab.network import ADDRESS, CLIENT, SERVER
from ackwise_experiments.bottleneck.account import SECOND, Chronograph, Sample
from ackwise_experiments.bottleneck.from_result import CLIENT_PORT, SERVER_PORT
from ackwise_experiments.bottleneck.priority import hurry

POINTS = 1000  # at which the first connection is looked at
_US = 1000
_SEND_BYTES, _READ_BYTES = 256 << 10, 1 << 20
_ZEROS = bytes(_SEND_BYTES)
# A reader at a rate wakes for this much, and makes up for at most that much.
_SLOW_READ_BYTES, _SLOW_BURST_BYTES = 16_384, 131_072
_PORTS = {SERVER: SERVER_PORT, CLIENT: CLIENT_PORT}
# Linux's uapi: asm-generic/socket.h, linux/tcp.h, linux/sock_diag.h
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE, _SO_MEMINFO = 32, 33, 55
_TCP_WINDOW_CLAMP = 10
_INFO_BYTES = 256
# name: place and format in struct tcp_info
_INFO = {
    "snd_mss": (16, "I"), "unacked": (24, "I"), "snd_ssthresh": (76, "I"), "snd_cwnd": (80, "I"),
    "total_retrans": (100, "I"), "notsent_bytes": (144, "I"), "busy_us": (168, "Q"),
    "rwnd_limited_us": (176, "Q"), "sndbuf_limited_us": (184, "Q"), "snd_wnd": (228, "I"),
    "total_rto": (240, "H"),
}  # fmt: skip
_MEMORY = struct.Struct("=9I")
_SNDBUF, _WMEM_QUEUED = 3, 5
_INFINITE_SSTHRESH = 0x7FFFFFFF


def tcp_info(sock: socket.socket) -> dict[str, int]:
    """The kernel's account of a connection."""
    data = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    try:
        return {n: struct.unpack_from(f"={f}", data, at)[0] for n, (at, f) in _INFO.items()}
    except struct.error:
        raise RunError("the kernel's tcp_info is too short; Linux 6.7 or later is needed") from None


def _send_buffer_full(sock: socket.socket, info: Mapping[str, int]) -> bool:
    """A writer is woken when a third is free."""
    memory = _MEMORY.unpack(sock.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMORY.size))
    return (
        3 * memory[_WMEM_QUEUED] >= 2 * memory[_SNDBUF]
        and not info["notsent_bytes"]
        and info["unacked"] < info["snd_cwnd"]
    )


def _pieces(whole: int, size: int) -> Iterator[int]:
    """Writes of `size`, until all is written."""
    for at in range(0, whole, size):
        yield min(size, whole - at)


@dataclass
class Message:
    """What is delivered when so many bytes have been read."""

    end: int
    since_ns: int
    delivered: "asyncio.Future[None]"


class Flow:
    """One connection and its applications."""

    def __init__(self, index: int, words: list[str], run: "Connections") -> None:
        given = dict(word.split("=", 1) for word in words)
        self.number = {name: int(value) for name, value in given.items() if value.isdigit()}
        self.app = given["app"]
        self.congestion_control = given["congestion"]
        self.tx, self.rx = (CLIENT, SERVER) if given["direction"] == "up" else (SERVER, CLIENT)
        self.index = index
        self.run = run
        self.schedule: list[tuple[int, int]] = []
        loop = asyncio.get_running_loop()
        self.at: dict[str, asyncio.Future[socket.socket]] = {
            end: loop.create_future() for end in (SERVER, CLIENT)
        }
        self.opened_ns = self.first_ns = self.last_ns = 0
        self.read_bytes = self.written = 0
        self.messages: deque[Message] = deque()
        self.latencies_ns: list[int] = []
        self.info: dict[str, int] = {}  # when it ended

    # --- the connection --------------------------------------------------------------------------

    def _socket(self, end: str) -> socket.socket:
        enter(self.run.namespaces[end])
        made = socket.socket()
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self.congestion_control.encode())
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, self.number["nodelay"])
        force = partial(made.setsockopt, socket.SOL_SOCKET)
        if end == self.tx:
            if "send-buffer" in self.number:
                force(_SO_SNDBUFFORCE, self.number["send-buffer"])
        else:
            window = self.number.get("window", 0)
            # a fixed buffer stops autotuning
            if buffer := self.number.get("receive-buffer", 4 * window):
                force(_SO_RCVBUFFORCE, buffer)
            if window:
                made.setsockopt(socket.IPPROTO_TCP, _TCP_WINDOW_CLAMP, window)
        made.bind((ADDRESS[end], _PORTS[end] + self.index))
        return made

    async def _accept(self, listening: socket.socket) -> None:
        with listening:
            accepted, _ = await asyncio.get_running_loop().sock_accept(listening)
        self.at[SERVER].set_result(accepted)

    async def carry(self) -> None:
        """All of it."""
        listening = self._socket(SERVER)
        listening.listen(1)
        accepts = asyncio.create_task(self._accept(listening))
        await self.run.until(self.number["start"])
        client = self._socket(CLIENT)
        self.opened_ns = self.run.now_ns()
        connects = asyncio.get_running_loop().sock_connect(
            client, (ADDRESS[SERVER], SERVER_PORT + self.index)
        )
        await connects
        self.at[CLIENT].set_result(client)
        await asyncio.gather(accepts, self._write(), self._read())

    # --- writing ---------------------------------------------------------------------------------

    async def _put(self, end: str, sizes: Iterator[int]) -> None:
        loop, sock = asyncio.get_running_loop(), await self.at[end]
        for size in sizes:
            if end == self.tx and not self.first_ns:
                self.first_ns = self.run.now_ns()
            await loop.sock_sendall(sock, _ZEROS[:size] if size <= _SEND_BYTES else bytes(size))

    def _expect(self, size: int) -> Message:
        """The next message that the writer writes, or is asked for."""
        self.written += size
        delivered = asyncio.get_running_loop().create_future()
        made = Message(self.written, self.run.now_ns(), delivered)
        self.messages.append(made)
        return made

    async def _write(self) -> None:
        sock = await self.at[self.tx]
        await {
            "bulk": self._write_bulk,
            "messages": self._write_messages,
            "schedule": self._write_schedule,
            "ask": self._ask_and_answer,
        }[self.app]()
        sock.shutdown(socket.SHUT_WR)

    async def _write_bulk(self) -> None:
        if size := self.number["bytes"]:
            self._expect(size)
            await self._put(self.tx, _pieces(size, _SEND_BYTES))
            return
        while True:
            await self._put(self.tx, iter([_SEND_BYTES]))

    def _more(self, done: int) -> bool:
        return not self.number["count"] or done < self.number["count"]

    async def _write_messages(self) -> None:
        done = 0
        while self._more(done):
            size, writes = self.number["size"], self.number["writes"]
            message = self._expect(size * writes)
            await self._put(self.tx, _pieces(size * writes, size))
            await message.delivered
            done += 1
            await asyncio.sleep(self.number["gap"] / SECOND)

    async def _write_schedule(self) -> None:
        start_ns = self.run.now_ns()
        for at_ns, size in self.schedule:
            await self.run.until(start_ns + at_ns)
            self._expect(size)
            await self._put(self.tx, iter([size]))

    async def _ask_and_answer(self) -> None:
        answers = asyncio.create_task(self._answer())
        done = 0
        while self._more(done):
            message = self._expect(self.number["size"])
            await self._put(self.rx, iter([self.number["request"]]))
            await message.delivered
            done += 1
            await asyncio.sleep(self.number["gap"] / SECOND)
        answers.cancel()

    async def _answer(self) -> None:
        loop, sock = asyncio.get_running_loop(), await self.at[self.tx]
        size = self.number["size"]
        asked = 0
        while got := len(await loop.sock_recv(sock, _READ_BYTES)):
            asked += got
            while asked >= self.number["request"]:
                asked -= self.number["request"]
                await self._put(self.tx, _pieces(size, self.number["write"] or size))

    # --- reading ---------------------------------------------------------------------------------

    def _has_read(self, count: int) -> None:
        self.read_bytes += count
        self.last_ns = self.run.now_ns()
        while self.messages and self.messages[0].end <= self.read_bytes:
            one = self.messages.popleft()
            self.latencies_ns.append(self.last_ns - one.since_ns)
            one.delivered.set_result(None)

    async def _read(self) -> None:
        sock = await self.at[self.rx]
        slow = self.number["lag"] or self.number["rate"]
        await (self._read_slowly(sock) if slow else self._read_at_once(sock))
        self.info = tcp_info(self.at[self.tx].result())

    async def _read_at_once(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while got := len(await loop.sock_recv(sock, _READ_BYTES)):
            self._has_read(got)

    async def _readable(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        there = loop.create_future()
        loop.add_reader(sock, there.set_result, None)
        try:
            await there
        finally:
            loop.remove_reader(sock)

    async def _read_slowly(self, sock: socket.socket) -> None:
        """What the rate has allowed since it last read, or all that is there after each pause."""
        rate_bps = self.number["rate"]
        wait_ns = max(
            self.number["lag"], _SLOW_READ_BYTES * 8 * SECOND // rate_bps if rate_bps else 0
        )
        credit_ns = self.run.now_ns()
        while True:
            await self._readable(sock)
            await asyncio.sleep(wait_ns / SECOND)
            allowed = _READ_BYTES
            if rate_bps:
                now_ns = self.run.now_ns()
                burst_ns = _SLOW_BURST_BYTES * 8 * SECOND // rate_bps
                credit_ns = max(credit_ns, now_ns - burst_ns)
                allowed = min(_READ_BYTES, (now_ns - credit_ns) * rate_bps // (8 * SECOND))
            if not allowed:
                continue
            got = len(sock.recv(allowed))
            if not got:
                return
            credit_ns += got * 8 * SECOND // rate_bps if rate_bps else 0
            self._has_read(got)

    # --- the account -----------------------------------------------------------------------------

    def look(self) -> tuple[Sample, Chronograph] | None:
        """Both ends; None while it is not connected."""
        if not all(one.done() for one in self.at.values()):
            return None
        sock = self.at[self.tx].result()
        info, now_ns = tcp_info(sock), self.run.now_ns()
        mss_bytes, ssthresh = info["snd_mss"], info["snd_ssthresh"]
        sample = Sample(
            now_ns,
            self.read_bytes,
            info["snd_cwnd"] * mss_bytes,
            0 if ssthresh >= _INFINITE_SSTHRESH else ssthresh * mss_bytes,
            info["unacked"] * mss_bytes,
            info["snd_wnd"],
        )
        times_ns = [_US * info[f"{name}_us"] for name in ("busy", "rwnd_limited", "sndbuf_limited")]
        busy_ns, window_ns, buffer_ns = times_ns
        full = _send_buffer_full(sock, info)
        return sample, Chronograph(now_ns, busy_ns, window_ns, buffer_ns, full)

    def document(self) -> dict[str, Any]:
        """When it did what, and what it lost."""
        if not self.info and self.at[self.tx].done():
            self.info = tcp_info(self.at[self.tx].result())
        return {
            "group": self.number["group"],
            "opened_ns": self.opened_ns,
            "first_ns": self.first_ns,
            "last_ns": self.last_ns,
            "retransmitted": self.info.get("total_retrans", 0),
            "timeouts": self.info.get("total_rto", 0),
            "messages_ns": self.latencies_ns,
        }


class Connections:
    """All connections of a case."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.namespaces = {end: settings[end] for end in (SERVER, CLIENT)}
        self._start_ns: int = settings["start_ns"]
        self._duration_ns: int = settings["duration_ns"]
        self.flows: list[Flow] = []
        for step in settings["steps"]:
            verb, *words = step.split()
            if verb == "flow":
                self.flows.append(Flow(len(self.flows), words, self))
            else:  # write-at
                index, at_ns, size = map(int, words)
                self.flows[index].schedule.append((at_ns, size))

    def now_ns(self) -> int:
        """Since the start."""
        return time.monotonic_ns() - self._start_ns

    async def until(self, time_ns: int) -> None:
        """Sleeps; not at all for a time that has passed."""
        await asyncio.sleep(max(0, time_ns - self.now_ns()) / SECOND)

    async def account(self) -> dict[str, Any]:
        """Carries the connections to the end of the run."""
        carried = [asyncio.create_task(flow.carry()) for flow in self.flows]
        looks = []
        for point in range(POINTS):
            await self.until(self._duration_ns * point // POINTS)
            if (look := self.flows[0].look()) is not None:
                looks.append(look)
            for task in carried:
                if task.done():
                    task.result()  # raises what went wrong
        await self.until(self._duration_ns)
        documents = [flow.document() for flow in self.flows]
        for task in carried:
            task.cancel()
        return {
            "flows": documents,
            "samples": [sample for sample, _ in looks],
            "chronographs": [chronograph for _, chronograph in looks],
        }


async def _account(settings: Mapping[str, Any]) -> dict[str, Any]:
    return await Connections(settings).account()


def main() -> None:
    """Reads the settings, writes the account."""
    print("ready", flush=True)
    settings = parse_json(sys.stdin.readline().encode())
    hurry()
    # `select` sleeps to the microsecond, epoll to the millisecond
    loop = asyncio.SelectorEventLoop(selectors.SelectSelector())
    found = loop.run_until_complete(_account(settings))
    json.dump(found, sys.stdout, default=lambda one: [getattr(one, n) for n in one.__slots__])


if __name__ == "__main__":
    main()
