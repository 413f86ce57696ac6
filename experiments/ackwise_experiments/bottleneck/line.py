# SPDX-License-Identifier: MIT
"""A path between two network namespaces of this host, in user space, as a kernel may lack netem.

    python -m ackwise_experiments.bottleneck.line SERVER CLIENT < settings

    server v0 ──► token bucket ──► queue, rate ──► router ──► losses ──► delay ──► v0 client

and the same back, with the router behind all of it. It makes the device v0 in each namespace and
says "ready". Then it reads one line of JSON: `down` and `up` as in a scenario, `seed`, `start_ns`
(monotonic, of time 0) and `router`, a capture to write ("": none). It forwards IPv4 packets until
its standard input ends. At last it writes what passed each way.
"""

import fcntl
import heapq
import json
import os
import random
import re
import select
import struct
import sys
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ackwise.bounded import parse_json
from ackwise.host import files
from ackwise.host.namespaces import enter
from ackwise_experiments.bottleneck.priority import hurry

_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 1, 0x1000
_PACKET_BYTES_MAX = 1 << 16
AT_ONCE = 64  # packets read from one side before the other has its turn
_SNAP_BYTES = 96
_RAW_IP, _PCAP_NS = 101, 0xA1B23C4D
_SECOND = 10**9


@dataclass
class TokenBucket:
    """A policer: what finds no tokens is dropped, but for `limit_bytes` that may wait for them."""

    rate_bps: int
    burst_bytes: int
    limit_bytes: int
    full_ns: int = 0  # when it is full again
    waiting: deque[tuple[int, int]] = field(default_factory=deque)  # until when, bytes

    def passes(self, now_ns: int, size: int) -> int | None:
        """When the packet goes on; None: it is dropped."""
        while self.waiting and self.waiting[0][0] <= now_ns:
            self.waiting.popleft()
        full_ns = max(now_ns, self.full_ns) + size * 8 * _SECOND // self.rate_bps
        goes_ns = max(now_ns, full_ns - self.burst_bytes * 8 * _SECOND // self.rate_bps)
        if goes_ns > now_ns:
            if size + sum(held for _, held in self.waiting) > self.limit_bytes:
                return None
            self.waiting.append((goes_ns, size))
        self.full_ns = full_ns
        return goes_ns


class Way:
    """One direction of the link, with what passed it."""

    def __init__(self, channel: Mapping[str, Any], start_ns: int, seed: str) -> None:
        self._rate_bps: int = channel["rate_bps"]
        self._delay_ns: int = channel["delay_ns"]
        self._packets_max = channel.get("queue_packets") or sys.maxsize
        self._bytes_max = channel.get("queue_bytes") or sys.maxsize
        self._loss = channel.get("loss_ppm", 0) / 10**6
        self._outages = [
            (start_ns + o["start_ns"], start_ns + o["start_ns"] + o["length_ns"])
            for o in channel.get("outages", ())
        ]
        self._policer = _policer(channel)
        self.chance = random.Random(seed)  # noqa: S311
        self._sent: deque[tuple[int, int]] = deque()  # when each has left, its bytes
        self._sent_bytes = 0  # of these
        self.bytes = self.dropped = self._busy_ns = 0
        self.times_ns: list[int] = []
        self.busy_ns: list[int] = []

    def takes_ns(self, size: int) -> int:
        """Transmission time."""
        return size * 8 * _SECOND // self._rate_bps

    def leaves(self, now_ns: int, size: int) -> int | None:
        """When the last bit of a packet has left the link's queue; None: it is dropped."""
        at_ns = self._policer.passes(now_ns, size) if self._policer else now_ns
        if at_ns is None or not self._has_room(at_ns, size):
            self.dropped += 1
            return None
        takes_ns = self.takes_ns(size)
        begins_ns = max(at_ns, self._sent[-1][0]) if self._sent else at_ns
        self._sent.append((begins_ns + takes_ns, size))
        self._sent_bytes += size
        self.bytes += size
        self._busy_ns += takes_ns
        self.times_ns.append(begins_ns + takes_ns)
        self.busy_ns.append(self._busy_ns)
        return begins_ns + takes_ns

    def _has_room(self, now_ns: int, size: int) -> bool:
        """The first packet is on the wire and does not wait."""
        while self._sent and self._sent[0][0] <= now_ns:
            self._sent_bytes -= self._sent.popleft()[1]
        if not self._sent:
            return True
        waiting_bytes = self._sent_bytes - self._sent[0][1]
        return len(self._sent) <= self._packets_max and waiting_bytes + size <= self._bytes_max

    def loses(self, time_ns: int) -> bool:
        """Whether a packet that left the queue then is lost on the wire."""
        out = any(begins_ns <= time_ns < ends_ns for begins_ns, ends_ns in self._outages)
        return self.chance.random() < self._loss or out

    def arrives(self, left_ns: int) -> int:
        """When a packet that left the queue then is at the other end."""
        return left_ns + self._delay_ns

    def document(self) -> dict[str, Any]:
        """What passed."""
        names = ("bytes", "dropped", "times_ns", "busy_ns")
        return {name: getattr(self, name) for name in names}


def _policer(channel: Mapping[str, Any]) -> TokenBucket | None:
    """The policer of a direction: its `tc` lines may hold one `tbf`."""
    lines = channel.get("tc", ())
    if not lines:
        return None
    found = re.search(r" tbf rate (\d+)bit burst (\d+) limit (\d+)$", lines[0])
    if found is None or len(lines) > 1:
        raise ValueError(f"tc: {lines}")
    rate_bps, burst_bytes, limit_bytes = map(int, found.groups())
    return TokenBucket(rate_bps, burst_bytes, limit_bytes)


@dataclass
class Capture:
    """The packets at the router, kept until the end as they come out of order."""

    path: str
    _kept: list[tuple[int, int, bytes]] = field(default_factory=list)

    def add(self, time_ns: int, packet: bytes) -> None:
        """One packet, at a monotonic time."""
        if self.path:
            self._kept.append((time_ns, len(packet), packet[:_SNAP_BYTES]))

    def write(self) -> None:
        """Writes the capture in order of time, with times of day."""
        if not self.path:
            return
        day_ns = time.time_ns() - time.monotonic_ns()
        head = struct.pack("=IHHIIII", _PCAP_NS, 2, 4, 0, 0, _SNAP_BYTES, _RAW_IP)
        with files.writing(self.path) as out:
            out.write(head)
            for time_ns, size, kept in sorted(self._kept, key=lambda one: one[0]):
                seconds, rest_ns = divmod(day_ns + time_ns, _SECOND)
                out.write(struct.pack("=IIII", seconds, rest_ns, len(kept), size) + kept)


class Line:
    """Both directions between two devices."""

    def __init__(self, server: int, client: int, settings: Mapping[str, Any]) -> None:
        start_ns = settings["start_ns"]
        self.ways = {
            name: Way(settings[name], start_ns, f"{settings['seed']}/{name}")
            for name in ("down", "up")
        }
        self.router = Capture(settings["router"])
        self._down = server  # where packets of that direction come from
        self._to = {server: client, client: server}
        self._coming: list[tuple[int, int, int, bytes]] = []  # when, which, whereto, packet
        self._count = 0

    def forward(self) -> None:
        """Until the standard input ends."""
        ends = sys.stdin.fileno()
        while True:
            wait_s = (
                max(0, self._coming[0][0] - time.monotonic_ns()) / _SECOND if self._coming else None
            )
            ready, _, _ = select.select([*self._to, ends], [], [], wait_s)
            if ends in ready:
                return
            for device in ready:
                self._take(device)
            self._deliver()

    def _take(self, device: int) -> None:
        name = "down" if device == self._down else "up"
        for _ in range(AT_ONCE):
            try:
                packet = os.read(device, _PACKET_BYTES_MAX)
            except BlockingIOError:
                return
            if packet[0] >> 4 != 4:
                continue
            left_ns = self.ways[name].leaves(time.monotonic_ns(), len(packet))
            if left_ns is not None:
                self.send(name, device, packet, left_ns)

    def send(self, name: str, device: int, packet: bytes, left_ns: int) -> None:
        """A packet of this device over the wire of that direction."""
        way = self.ways[name]
        if device == self._down:
            # a router captures what it takes from its queue, before it is sent
            self.router.add(left_ns - way.takes_ns(len(packet)), packet)
        if not way.loses(left_ns):
            self._count += 1
            one = (way.arrives(left_ns), self._count, self._to[device], packet)
            heapq.heappush(self._coming, one)

    def put(self, device: int, packet: bytes) -> None:
        """Gives a packet to an end."""
        os.write(device, packet)

    def _deliver(self) -> None:
        now_ns = time.monotonic_ns()
        while self._coming and self._coming[0][0] <= now_ns:
            _, _, device, packet = heapq.heappop(self._coming)
            if device == self._down:
                self.router.add(now_ns, packet)
            self.put(device, packet)


def _device(namespace: str) -> int:
    """A descriptor of a new device `v0` there."""
    enter(namespace)
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", b"v0", _IFF_TUN | _IFF_NO_PI))
    return descriptor


def main() -> None:
    """Forwards, then writes its account."""
    server, client = map(_device, sys.argv[1:3])
    print("ready", flush=True)
    line = Line(server, client, parse_json(sys.stdin.readline().encode()))
    hurry()
    line.forward()
    line.router.write()
    print(json.dumps({name: way.document() for name, way in line.ways.items()}))


if __name__ == "__main__":
    main()
