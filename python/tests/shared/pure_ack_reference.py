# SPDX-License-Identifier: MIT
"""What a pure ACK is, a second time: a decoder written from the RFCs, none of it shared with the
classifier. It says why a frame is none."""

import struct
from dataclasses import dataclass


class NotAnAck(Exception):
    """The reason why."""


def _take(data: bytes, count: int, what: str) -> tuple[bytes, bytes]:
    if len(data) < count:
        raise NotAnAck(f"{what} is cut short")
    return data[:count], data[count:]


def why_not(frame: bytes, framing: str = "ethernet") -> str:
    """Empty for a pure ACK, else why it is none. `framing`: ethernet, or ip for bare packets."""
    try:
        if framing == "ethernet":
            version, datagram = _ether(frame)
        else:
            version, datagram = _take(frame, 1, "IP")[0][0] >> 4, frame
        if version not in (4, 6):
            raise NotAnAck("neither IPv4 nor IPv6")
        _tcp(_ipv4(datagram) if version == 4 else _ipv6(datagram))
    except NotAnAck as reason:
        return str(reason)
    return ""


def _ether(frame: bytes) -> tuple[int, bytes]:
    """IP version by the type fields, and what follows."""
    _, rest = _take(frame, 12, "Ethernet")
    tags = 0
    while True:
        head, rest = _take(rest, 2, "Ethernet type")
        (kind,) = struct.unpack("!H", head)
        if kind not in (0x8100, 0x88A8, 0x9100):
            break
        tags += 1
        if tags > 2:
            raise NotAnAck("more than two VLAN tags")
        _, rest = _take(rest, 2, "VLAN tag")
    if kind == 0x8864:
        head, rest = _take(rest, 6, "PPPoE")
        version_type, code, _session, _length = struct.unpack("!BBHH", head)
        if (version_type, code) != (0x11, 0):
            raise NotAnAck("no PPPoE session data")
        first, _ = _take(rest, 1, "PPP protocol")
        # RFC 1661, 6.5: the low bit ends the field
        octets, rest = _take(rest, 1 if first[0] % 2 else 2, "PPP protocol")
        kind = {0x21: 0x0800, 0x57: 0x86DD}.get(int.from_bytes(octets, "big"), 0)
    if kind == 0x0800:
        return 4, rest
    if kind == 0x86DD:
        return 6, rest
    raise NotAnAck("no IP")


def _ipv4(data: bytes) -> bytes:
    head, _ = _take(data, 20, "IPv4")
    (first, _tos, total, _id, fragment, _ttl, protocol, _sum, _src, _dst) = struct.unpack(
        "!BBHHHBBH4s4s", head
    )
    if first >> 4 != 4:
        raise NotAnAck("version is not 4")
    length = (first & 15) * 4
    if length < 20:
        raise NotAnAck("IPv4 header shorter than 20 bytes")
    if fragment & 0x2000 or fragment & 0x1FFF:
        raise NotAnAck("fragment")
    if protocol != 6:
        raise NotAnAck("no TCP")
    if total < length:
        raise NotAnAck("IPv4 shorter than its header")
    datagram, _ = _take(data, total, "IPv4")
    return datagram[length:]


def _ipv6(data: bytes) -> bytes:
    head, rest = _take(data, 40, "IPv6")
    (first, payload, following, _hops) = struct.unpack("!IHBB", head[:8])
    if first >> 28 != 6:
        raise NotAnAck("version is not 6")
    datagram, _ = _take(rest, payload, "IPv6")
    # RFC 8200, 4.1: each at most once, destination options twice
    for _ in range(5 + 1):
        if following == 6:
            return datagram
        if following == 44:
            extension, datagram = _take(datagram, 8, "fragment header")
            following, _zero, offset_more = struct.unpack("!BBH", extension[:4])
            if offset_more >> 3 or offset_more & 1:
                raise NotAnAck("fragment")
        elif following in (0, 43, 60):
            start, _ = _take(datagram, 2, "extension header")
            following = start[0]
            _, datagram = _take(datagram, 8 * (1 + start[1]), "extension header")
        else:
            raise NotAnAck("no TCP")
    raise NotAnAck("more extension headers than RFC 8200 has")


@dataclass(frozen=True)
class Flags:
    """Flags of a TCP header."""

    fin: int
    syn: int
    rst: int
    psh: int
    ack: int
    urg: int


def _tcp(segment: bytes) -> None:
    head, _ = _take(segment, 20, "TCP")
    offset, bits = head[12] >> 4, head[13]
    flags = Flags(*((bits >> i) & 1 for i in range(6)))
    if not flags.ack:
        raise NotAnAck("no ACK flag")
    if flags.syn or flags.fin or flags.rst or flags.urg:
        raise NotAnAck("SYN, FIN, RST or URG")
    if offset < 5:
        raise NotAnAck("TCP header shorter than 20 bytes")
    if offset * 4 > len(segment):
        raise NotAnAck("TCP header longer than its segment")
    if offset * 4 < len(segment):
        raise NotAnAck("payload")
