# SPDX-License-Identifier: MIT
"""Frames to judge: one of every kind by hand, and random ones that are often nearly right."""

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace

MACS = bytes.fromhex("02000000000102000000 0002".replace(" ", ""))
ACK, PSH, URG, SYN, FIN, RST, ECE, CWR = 0x10, 0x08, 0x20, 0x02, 0x01, 0x04, 0x40, 0x80
TIMESTAMPS = bytes.fromhex("0101080a0000000100000002")
SACK_1 = b"\x01\x01\x05\x0a" + bytes(8)
SACK_3 = b"\x01\x01\x05\x1a" + bytes(24)
SACK_4 = b"\x01\x01\x05\x22" + bytes(32)
ROUTER_ALERT = b"\x94\x04\x00\x00"  # router alert


@dataclass(frozen=True)
class Packet:
    """What a frame is made of; the defaults make a bare pure ACK over IPv4 on Ethernet."""

    tags: tuple[int, ...] = ()
    pppoe: bytes = b""  # protocol field; empty: none
    version: int = 4
    ip_options: bytes = b""
    extensions: tuple[tuple[int, bytes], ...] = ()  # type, body without the next-header byte
    fragment: int = 0x4000  # IPv4: flags and offset
    protocol: int = 6
    flags: int = ACK
    reserved: int = 0  # low half of TCP's byte 12
    options: bytes = b""
    payload: bytes = b""
    length_lie: int = 0
    data_offset_lie: int = 0
    padded: bool = True
    cut: int = 0  # bytes missing at the end

    def tcp(self) -> bytes:
        """The segment."""
        offset = (5 + len(self.options) // 4 + self.data_offset_lie) & 15
        head = struct.pack(
            "!HHIIBBHHH", 80, 4000, 1, 2, offset << 4 | self.reserved, self.flags, 500, 0, 0
        )
        return head + self.options + self.payload

    def ip(self) -> bytes:
        """The datagram."""
        segment = self.tcp()
        if self.version == 4:
            length = 20 + len(self.ip_options)
            total = (length + len(segment) + self.length_lie) & 0xFFFF
            head = struct.pack(
                "!BBHHHBBH4s4s", 0x40 | length // 4, 0, total, 7, self.fragment, 64,
                self.protocol, 0, b"\x0a\0\0\1", b"\x0a\0\0\2",
            )  # fmt: skip
            return head + self.ip_options + segment
        chain = b""
        kinds = [kind for kind, _ in self.extensions] + [self.protocol]
        for (_, body), following in zip(self.extensions, kinds[1:], strict=True):
            chain += bytes([following]) + body
        payload = (len(chain) + len(segment) + self.length_lie) & 0xFFFF
        head = struct.pack("!IHBB", 6 << 28, payload, kinds[0], 64) + bytes(15) + b"\1" + bytes(16)
        return head + chain + segment

    def frame(self) -> bytes:
        """The Ethernet frame, as long as the shortest one at least."""
        datagram = self.ip()
        kind = 0x0800 if self.version == 4 else 0x86DD
        link = MACS + b"".join(struct.pack("!HH", tag, 5) for tag in self.tags)
        if self.pppoe:
            session = struct.pack("!BBHH", 0x11, 0, 9, len(datagram) + len(self.pppoe))
            link += b"\x88\x64" + session + self.pppoe
        else:
            link += struct.pack("!H", kind)
        whole = link + datagram
        if self.padded:
            whole = whole.ljust(60, b"\0")
        return whole[: len(whole) - self.cut] if self.cut else whole


def extension(words: int) -> bytes:
    """Body of an extension header of 8 * (1 + words) bytes, padded by Pad1 options."""
    return bytes([words]) + bytes(8 * words + 6)


def fragment(offset: int, more: int) -> bytes:
    """Body of a fragment header."""
    return struct.pack("!BHI", 0, offset << 3 | more, 0x1234)


HOP, ROUTE, DEST = (0, extension(0)), (43, extension(2)), (60, extension(1))
ATOMIC, FIRST, LAST = (44, fragment(0, 0)), (44, fragment(0, 1)), (44, fragment(100, 0))
SIX = Packet(version=6)


def corpus() -> dict[str, tuple[Packet, bool]]:
    """Every kind, by name, with what it is."""
    bare = Packet()
    yes = {
        "bare ACK": bare,
        "with timestamps": Packet(options=TIMESTAMPS),
        "with one SACK block": Packet(options=SACK_1),
        "timestamps and one SACK block": Packet(options=TIMESTAMPS + SACK_1),
        "timestamps and three SACK blocks": Packet(options=TIMESTAMPS + SACK_3),
        "four SACK blocks": Packet(options=SACK_4),
        "TCP header of 60 bytes": Packet(options=bytes([1]) * 40),
        "ECE": Packet(flags=ACK | ECE),
        "CWR": Packet(flags=ACK | CWR),
        "Accurate ECN, all bits": Packet(flags=ACK | ECE | CWR, reserved=1),
        "PSH": Packet(flags=ACK | PSH),
        "IPv4 options": Packet(ip_options=ROUTER_ALERT),
        "IPv4 header of 60 bytes": Packet(ip_options=bytes([1]) * 40, options=TIMESTAMPS),
        "may be fragmented": Packet(fragment=0),
        "not padded": Packet(padded=False),
        "IPv6": SIX,
        "IPv6 with timestamps": replace(SIX, options=TIMESTAMPS),
        "IPv6 hop-by-hop": replace(SIX, extensions=(HOP,)),
        "IPv6 routing": replace(SIX, extensions=(ROUTE,)),
        "IPv6 destination options": replace(SIX, extensions=(DEST,), options=TIMESTAMPS),
        "IPv6 atomic fragment": replace(SIX, extensions=(ATOMIC,)),
        "IPv6 all extension headers": replace(SIX, extensions=(HOP, DEST, ROUTE, ATOMIC, DEST)),
        "IPv6 longest extension header": replace(SIX, extensions=((60, extension(255)),)),
        "VLAN": Packet(tags=(0x8100,)),
        "VLAN and IPv6": replace(SIX, tags=(0x8100,)),
        "provider's VLAN": Packet(tags=(0x88A8,)),
        "two VLAN tags": Packet(tags=(0x88A8, 0x8100)),
        "two old VLAN tags, IPv6": replace(SIX, tags=(0x9100, 0x8100)),
        "PPPoE": Packet(pppoe=b"\x00\x21"),
        "PPPoE and IPv6": replace(SIX, pppoe=b"\x00\x57", options=TIMESTAMPS),
        "PPPoE, compressed protocol": Packet(pppoe=b"\x21"),
        "PPPoE in a VLAN": Packet(tags=(0x8100,), pppoe=b"\x00\x21", options=TIMESTAMPS),
    }
    no = {
        "one byte of payload": Packet(payload=b"x"),
        "six bytes of payload": Packet(payload=b"x" * 6),
        "ten bytes and timestamps": Packet(options=TIMESTAMPS, payload=b"x" * 10),
        "full segment": Packet(options=TIMESTAMPS, payload=b"x" * 1448),
        "merged by GRO": Packet(options=TIMESTAMPS, payload=b"x" * 40_000),
        "GRO beyond 64 KiB, IPv4": Packet(payload=b"x" * 30_000, length_lie=-30_040),
        "GRO beyond 64 KiB, IPv6": replace(SIX, payload=b"x" * 30_000, length_lie=-30_020),
        "SYN": Packet(flags=SYN, options=TIMESTAMPS),
        "SYN ACK": Packet(flags=SYN | ACK, options=TIMESTAMPS),
        "FIN ACK": Packet(flags=FIN | ACK),
        "RST": Packet(flags=RST),
        "RST ACK": Packet(flags=RST | ACK),
        "URG ACK": Packet(flags=URG | ACK),
        "no flags": Packet(flags=0),
        "first fragment": Packet(fragment=0x2000),
        "later fragment": Packet(fragment=0x0010),
        "last fragment": Packet(fragment=0x00B9),
        "IPv6 first fragment": replace(SIX, extensions=(FIRST,)),
        "IPv6 last fragment": replace(SIX, extensions=(LAST,)),
        "IPv6 six extension headers": replace(SIX, extensions=(HOP, DEST, DEST, ROUTE, DEST, DEST)),
        "IPv6 with payload": replace(SIX, payload=b"x"),
        "IPv6 SYN": replace(SIX, flags=SYN),
        "IPv6 unknown header": replace(SIX, extensions=((253, extension(0)),)),
        "IPv6 no next header": replace(SIX, protocol=59),
        "UDP": Packet(protocol=17),
        "ICMP": Packet(protocol=1),
        "ESP": Packet(protocol=50),
        "IPv6 UDP": replace(SIX, protocol=17),
        "three VLAN tags": Packet(tags=(0x88A8, 0x8100, 0x8100)),
        "PPPoE control": Packet(pppoe=b"\xc0\x21"),
        "VLAN with data": Packet(tags=(0x8100,), payload=b"x"),
        "PPPoE with data": Packet(pppoe=b"\x00\x21", payload=b"x"),
        "TCP header shorter than 20 bytes": Packet(data_offset_lie=-1),
        "TCP header longer than its packet": Packet(data_offset_lie=1),
        "cut inside the options": Packet(options=SACK_4, cut=5),
        "cut inside TCP": Packet(padded=False, cut=8),
        "longer than its frame": Packet(length_lie=30, padded=False),
    }
    return {
        **{name: (packet, True) for name, packet in yes.items()},
        **{name: (packet, False) for name, packet in no.items()},
    }


_OPTIONS = (b"", TIMESTAMPS, SACK_1, TIMESTAMPS + SACK_1, TIMESTAMPS + SACK_3, SACK_4, bytes(40))
_FLAGS = (*(ACK,) * 9, ACK | PSH, ACK | ECE, ACK | CWR, ACK | FIN, SYN, SYN | ACK, RST, URG | ACK)


def random_packet(dice: random.Random) -> Packet:
    """One that is a pure ACK in about a third of all cases."""
    v6 = dice.random() < 0.5
    rare = dice.random
    tags = tuple(
        dice.choice((0x8100, 0x88A8, 0x9100))
        for _ in range(dice.choice((0, 0, 0, 0, 0, 1, 1, 2, 3)))
    )
    pppoe = b""
    if rare() < 0.25:
        pppoe = dice.choice((b"\x00\x57", b"\x57") if v6 else (b"\x00\x21", b"\x21"))
        if rare() < 0.05:
            pppoe = dice.randbytes(2)
    extensions = []
    if v6:
        for _ in range(dice.choice((0, 0, 0, 1, 1, 2, 3, 4, 5, 6))):
            kind = dice.choice((0, 0, 43, 43, 60, 60, 60, 44, dice.randrange(256)))
            if kind == 44:
                body = fragment(*dice.choice(((0, 0), (0, 0), (0, 1), (dice.randrange(8192), 0))))
            else:
                body = extension(dice.choice((0, 1, 2, dice.randrange(40))))
            extensions.append((kind, body))
    return Packet(
        tags=tags,
        pppoe=pppoe,
        version=6 if v6 else 4,
        ip_options=bytes([1]) * (4 * dice.choice((0, 0, 0, dice.randrange(11)))),
        extensions=tuple(extensions),
        fragment=dice.choice((0, 0x4000, 0x4000, 0x4000, 0x8000, 0x2000, dice.randrange(65_536))),
        protocol=6 if rare() < 0.9 else dice.randrange(256),
        flags=dice.choice(_FLAGS) if rare() < 0.9 else dice.randrange(256),
        reserved=dice.choice((0, 1, dice.randrange(16))),
        options=dice.choice(_OPTIONS) if rare() < 0.7 else dice.randbytes(4 * dice.randrange(11)),
        payload=b"" if rare() < 0.7 else dice.randbytes(dice.choice((1, 2, 6, 12, 24, 600, 1448))),
        length_lie=0 if rare() < 0.9 else dice.randrange(-80, 80),
        data_offset_lie=0 if rare() < 0.9 else dice.randrange(-15, 15),
        padded=rare() < 0.7,
        cut=0 if rare() < 0.9 else dice.randrange(1, 40),
    )


def random_frames(seed: int, count: int, *, bare: bool = False) -> Iterator[bytes]:
    """Made of random_packet, of damage to it, and some of nothing but noise; `bare`: IP alone."""
    dice = random.Random(seed)  # noqa: S311
    for _ in range(count):
        way = dice.random()
        if way < 0.02:
            yield dice.randbytes(dice.randrange(1, 200))
            continue
        packet = random_packet(dice)
        frame = packet.ip() + bytes(dice.choice((0, 0, 6))) if bare else packet.frame()
        if way < 0.25:
            bent = bytearray(frame)
            for _ in range(dice.randint(1, 3)):
                bent[dice.randrange(0 if bare else 12, min(len(bent), 110))] ^= 1 << dice.randrange(
                    8
                )
            frame = bytes(bent)
        elif way < 0.3:
            frame = frame[: dice.randrange(1, len(frame))]
        yield frame
