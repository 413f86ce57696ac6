# SPDX-License-Identifier: MIT
"""Captures made by hand."""

import socket
import struct
from collections.abc import Iterator


def packet(src: int, dst: int, seq: int, ack: int, flags: int, payload: int) -> bytes:
    """Ethernet, IPv4 and TCP around `payload` bytes; addresses 10.0.0.1 and 10.0.0.2 by port."""
    address = {4000: "10.0.0.1", 5001: "10.0.0.2"}
    tcp = struct.pack("!HHIIBBHHH", src, dst, seq, ack, 5 << 4, flags, 65_535, 0, 0)
    ends = socket.inet_aton(address[src]) + socket.inet_aton(address[dst])
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 40 + payload, 0, 0, 64, 6, 0) + ends
    return b"\0" * 12 + b"\x08\x00" + ip + tcp + b"x" * payload


def steady_transfer(segments: int, gap_us: int) -> Iterator[tuple[int, bytes]]:
    """Times and packets: a handshake, then a segment every `gap_us`, every second one ACKed."""
    yield 0, packet(4000, 5001, 0, 0, 0x02, 0)
    yield 10, packet(5001, 4000, 0, 1, 0x12, 0)
    yield 20, packet(4000, 5001, 1, 1, 0x10, 0)
    for i in range(segments):
        at = 1000 + i * gap_us
        yield at, packet(4000, 5001, 1 + i * 1000, 1, 0x10, 1000)
        if i % 2:
            yield at + 5, packet(5001, 4000, 1, 1 + (i + 1) * 1000, 0x10, 0)


def pcap(packets: Iterator[tuple[int, bytes]]) -> bytes:
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1)
    return head + b"".join(
        struct.pack("<IIII", at // 10**6, at % 10**6, len(data), len(data)) + data
        for at, data in packets
    )
