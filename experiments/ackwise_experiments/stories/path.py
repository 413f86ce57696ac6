# SPDX-License-Identifier: MIT
"""The path of a story, in user space: a link as in `bottleneck.line`, and the middleboxes that
people complain about.

    python -m ackwise_experiments.stories.path SERVER CLIENT [offload] < settings

The settings are those of `bottleneck.line`. A direction may also have

    mtu_bytes           larger packets vanish without a message
    clamped_mss_bytes   the largest MSS that a SYN may announce
    stripped_options    kinds of TCP options that a SYN loses
    marked_packets      queue length from which ECN-capable packets are marked
    lost_pushes         one of so many segments that end a write is lost, not their repetitions
    late_ppm, late_ns   so many packets of a million take so much longer, and others overtake them
    burst_ns            packets arrive together, at multiples of this time

With `offload`, the server's device takes packets of 64 KB from the kernel, as one with TCP
segmentation offload, and cuts them into segments.
"""

import fcntl
import json
import os
import struct
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ackwise.bounded import parse_json
from ackwise.host.namespaces import enter
from ackwise_experiments.bottleneck import line
from ackwise_experiments.bottleneck.priority import hurry

_TUNSETIFF, _TUNSETOFFLOAD = 0x400454CA, 0x400454D0
_IFF_TUN, _IFF_NO_PI, _IFF_VNET_HDR = 1, 0x1000, 0x4000
_TUN_F_CSUM, _TUN_F_TSO4, _TUN_F_TSO6 = 1, 2, 4
_VNET_BYTES, _GSO_SIZE_AT = 10, 4  # struct virtio_net_hdr
_READ_BYTES_MAX = (1 << 16) + _VNET_BYTES
_TCP = 6
_FIN, _SYN, _PSH = 0x01, 0x02, 0x08
_END, _NOP, _MSS = 0, 1, 2
_CE = 3


def _folded(data: bytes) -> int:
    """Sum of 16-bit words in ones' complement, which is the number modulo 65535."""
    return int.from_bytes(data + b"\0" * (len(data) % 2), "big") % 0xFFFF


@dataclass
class Packet:
    """A TCP packet whose fields may be changed."""

    data: bytearray

    @property
    def is_ipv6(self) -> bool:
        """Otherwise IPv4."""
        return self.data[0] >> 4 == 6

    @property
    def is_tcp(self) -> bool:
        """Nothing else is forwarded."""
        return self.data[6 if self.is_ipv6 else 9] == _TCP

    @property
    def tcp(self) -> int:
        """Where its TCP header begins."""
        return 40 if self.is_ipv6 else 4 * (self.data[0] & 15)

    @property
    def payload(self) -> int:
        """Where its payload begins."""
        return self.tcp + 4 * (self.data[self.tcp + 12] >> 4)

    @property
    def flags(self) -> int:
        """The low eight flags."""
        return self.data[self.tcp + 13]

    @property
    def seq(self) -> int:
        """Sequence number."""
        return int.from_bytes(self.data[self.tcp + 4 : self.tcp + 8], "big")

    @property
    def ends(self) -> bytes:
        """Addresses and ports, the sender's first."""
        at = 8 if self.is_ipv6 else 12
        size = 32 if self.is_ipv6 else 8
        return bytes(self.data[at : at + size] + self.data[self.tcp : self.tcp + 4])

    def seal(self) -> None:
        """Both checksums and the IP length, after a change."""
        data, tcp = self.data, self.tcp
        at = 8 if self.is_ipv6 else 12
        addresses = bytes(data[at : at + (32 if self.is_ipv6 else 8)])
        if self.is_ipv6:
            data[4:6] = (len(data) - 40).to_bytes(2, "big")
        else:
            data[2:4] = len(data).to_bytes(2, "big")
            data[10:12] = b"\0\0"
            data[10:12] = (0xFFFF - _folded(bytes(data[:tcp]))).to_bytes(2, "big")
        data[tcp + 16 : tcp + 18] = b"\0\0"
        pseudo = addresses + struct.pack(">II", len(data) - tcp, _TCP)
        whole = _folded(pseudo + bytes(data[tcp:]))
        data[tcp + 16 : tcp + 18] = (0xFFFF - whole).to_bytes(2, "big")

    @property
    def ecn(self) -> int:
        """The ECN field of the IP header."""
        return self.data[1] >> 4 & 3 if self.is_ipv6 else self.data[1] & 3

    def mark(self) -> None:
        """Sets it to CE."""
        self.data[1] |= _CE << 4 if self.is_ipv6 else _CE
        self.seal()

    def options(self) -> Iterator[tuple[int, int, int]]:
        """Kind, place and length of each TCP option."""
        at = self.tcp + 20
        while at < self.payload and self.data[at] != _END:
            size = 1 if self.data[at] == _NOP else max(self.data[at + 1], 2)
            yield self.data[at], at, size
            at += size


def segments(packet: Packet, mss_bytes: int) -> Iterator[bytes]:
    """A large packet as the segments that segmentation offload makes of it."""
    data, start = packet.data, packet.payload
    last = max(start, start + (len(data) - start - 1) // mss_bytes * mss_bytes)
    for number, at in enumerate(range(start, last + 1, mss_bytes)):
        one = Packet(data[:start] + data[at : at + mss_bytes])
        one.data[one.tcp + 4 : one.tcp + 8] = ((packet.seq + at - start) % 2**32).to_bytes(4, "big")
        if at != last:
            one.data[one.tcp + 13] &= ~(_PSH | _FIN) & 0xFF
        if not one.is_ipv6:
            identification = int.from_bytes(data[4:6], "big") + number
            one.data[4:6] = (identification % 2**16).to_bytes(2, "big")
        one.seal()
        yield bytes(one.data)


class Box:
    """What stands in front of one direction of the link."""

    def __init__(self, channel: Mapping[str, Any]) -> None:
        self._mtu_bytes = channel.get("mtu_bytes") or sys.maxsize
        self._mss_bytes = channel.get("clamped_mss_bytes") or sys.maxsize
        self._stripped = frozenset(channel.get("stripped_options", ()))
        self.marked_packets = channel.get("marked_packets") or sys.maxsize
        self._lost_pushes = channel.get("lost_pushes", 0)
        self._pushes: dict[bytes, int] = {}  # the highest sequence number of each connection
        self._pushed = 0
        self.vanished = self.lost = self.marks = 0

    def passes(self, packet: Packet) -> bool:
        """Changes the packet; False where it ends here."""
        if len(packet.data) > self._mtu_bytes:
            self.vanished += 1
            return False
        if packet.flags & _SYN:
            self._rewrite(packet)
        if self._lost_pushes and packet.flags & _PSH and len(packet.data) > packet.payload:
            return not self._is_lost(packet)
        return True

    def _rewrite(self, syn: Packet) -> None:
        for kind, at, size in syn.options():
            if kind == _MSS:
                mss_bytes = int.from_bytes(syn.data[at + 2 : at + 4], "big")
                syn.data[at + 2 : at + 4] = min(mss_bytes, self._mss_bytes).to_bytes(2, "big")
            if kind in self._stripped:
                syn.data[at : at + size] = bytes([_NOP]) * size
        syn.seal()

    def _is_lost(self, packet: Packet) -> bool:
        newest = self._pushes.get(packet.ends)
        is_new = newest is None or (packet.seq - newest) % 2**32 - 1 < 2**31 - 1
        if not is_new:
            return False
        self._pushes[packet.ends] = packet.seq
        self._pushed += 1
        lost: bool = self._pushed % self._lost_pushes == 0
        self.lost += lost
        return lost

    def document(self) -> dict[str, int]:
        """What it did."""
        return {"vanished": self.vanished, "lost": self.lost, "marks": self.marks}


class Way(line.Way):
    """A direction of the link, with the length of its queue, and wires that are not all alike."""

    def __init__(self, channel: Mapping[str, Any], start_ns: int, seed: str) -> None:
        super().__init__(channel, start_ns, seed)
        self._late = channel.get("late_ppm", 0) / 10**6
        self._late_ns = channel.get("late_ns", 0)
        self._burst_ns = channel.get("burst_ns") or 1

    def arrives(self, left_ns: int) -> int:
        """Later than usual, or with others."""
        at_ns = super().arrives(left_ns)
        if self._late and self.chance.random() < self._late:
            at_ns += self._late_ns
        return -(-at_ns // self._burst_ns) * self._burst_ns

    def waiting(self, now_ns: int) -> int:
        """Packets that have not left it."""
        while self._sent and self._sent[0][0] <= now_ns:
            self._sent_bytes -= self._sent.popleft()[1]
        return len(self._sent)


class Path(line.Line):
    """Both directions, with their boxes."""

    def __init__(
        self, server: int, client: int, settings: Mapping[str, Any], offload: bool
    ) -> None:
        super().__init__(server, client, settings)
        start_ns = settings["start_ns"]
        self.queues = {
            name: Way(settings[name], start_ns, f"{settings['seed']}/{name}")
            for name in ("down", "up")
        }
        self.ways = dict(self.queues)
        self.boxes = {name: Box(settings[name]) for name in ("down", "up")}
        self._offload = offload

    def _take(self, device: int) -> None:
        name = "down" if device == self._down else "up"
        for _ in range(line.AT_ONCE):
            try:
                packet = os.read(device, _READ_BYTES_MAX)
            except BlockingIOError:
                return
            for one in self._packets(packet, name == "down"):
                self._carry(one, name, device)

    def _packets(self, data: bytes, is_servers: bool) -> Iterator[Packet]:
        if not (self._offload and is_servers):
            packet = Packet(bytearray(data))
            if packet.is_tcp:
                yield packet
            return
        packet = Packet(bytearray(data[_VNET_BYTES:]))
        if packet.is_tcp:  # whose checksum was left to the device
            (mss_bytes,) = struct.unpack_from("=H", data, _GSO_SIZE_AT)
            for one in segments(packet, mss_bytes or len(data)):
                yield Packet(bytearray(one))

    def _carry(self, packet: Packet, name: str, device: int) -> None:
        way, box = self.queues[name], self.boxes[name]
        if not box.passes(packet):
            return
        size, now_ns = len(packet.data), time.monotonic_ns()
        if packet.ecn and way.waiting(now_ns) >= box.marked_packets:
            packet.mark()
            box.marks += 1
        left_ns = way.leaves(now_ns, size)
        if left_ns is not None:
            self.send(name, device, bytes(packet.data), left_ns)

    def put(self, device: int, packet: bytes) -> None:
        """Gives a packet to an end."""
        large = self._offload and device == self._down
        os.write(device, bytes(_VNET_BYTES) + packet if large else packet)


def _device(namespace: str, offload: bool) -> int:
    enter(namespace)
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    flags = _IFF_TUN | _IFF_NO_PI | (_IFF_VNET_HDR if offload else 0)
    fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", b"v0", flags))
    if offload:
        fcntl.ioctl(descriptor, _TUNSETOFFLOAD, _TUN_F_CSUM | _TUN_F_TSO4 | _TUN_F_TSO6)
    return descriptor


def main() -> None:
    """Forwards, then writes its account."""
    offload = sys.argv[3:] == ["offload"]
    server, client = _device(sys.argv[1], offload), _device(sys.argv[2], False)
    print("ready", flush=True)
    settings = parse_json(sys.stdin.readline().encode())
    path = Path(server, client, settings, offload)
    hurry()
    path.forward()
    path.router.write()
    account = {n: path.ways[n].document() | path.boxes[n].document() for n in path.ways}
    print(json.dumps(account))


if __name__ == "__main__":
    main()
