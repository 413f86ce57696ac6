# SPDX-License-Identifier: MIT
"""Self-test: one pure ACK is sent through the interface's queues and must be counted in the ACK
class.

The probe disturbs nobody: its addresses are reserved for documentation (RFC 5737), its port is the
discard port, and its TTL is 1, so that the next router drops it. The kernel writes the link header,
as for every packet, so the test does not depend on the framing under test. On Ethernet the frame
goes to the interface's own address, which no other station accepts and no switch sends back.
"""

import socket
import struct
import time

from ackwise.gateway import status
from ackwise.gateway.state import SelfTest
from ackwise.host.netlink import Interface, Rtnetlink

WAIT_S = 2.0
_POLL_S = 0.02
_ETH_P_IP = 0x0800
_ACK = 0x10
_SOURCE, _DESTINATION = "192.0.2.2", "192.0.2.1"
_PORT, _DISCARD_PORT = 49_151, 9


def run(kernel: Rtnetlink, link: Interface) -> SelfTest:
    """Sends one pure ACK and waits until a class has counted it."""
    before = _acks(kernel, link)
    if before is None:
        return SelfTest(None, "the queues were replaced meanwhile")
    try:
        with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0) as sender:
            there = (link.name, _ETH_P_IP, 0, link.hardware, link.address)
            sender.sendto(probe(), there)
    except OSError as problem:
        return SelfTest(None, f"no probe could be sent: {problem.strerror}")
    except UnicodeEncodeError:
        return SelfTest(None, "no probe can be sent through an interface whose name is not UTF-8")
    end = time.monotonic() + WAIT_S
    while True:
        after = _acks(kernel, link)
        if after is not None and after > before:
            return SelfTest(True, "a pure ACK reached the ACK class")
        if time.monotonic() > end:
            return SelfTest(
                False,
                f"a pure ACK did not reach the ACK class within {WAIT_S:g} s: is --framing right?",
            )
        time.sleep(_POLL_S)


def _acks(kernel: Rtnetlink, link: Interface) -> int | None:
    """Packets counted in the ACK class; None if there is no such class."""
    for one in status.counters(kernel, link.ifindex):
        if one.name == "ack":
            return one.sent_packets + one.waiting_packets + one.dropped_packets
    return None


def probe() -> bytes:
    """The probe's IP packet."""
    source, destination = (socket.inet_aton(a) for a in (_SOURCE, _DESTINATION))
    tcp = struct.pack("!HHIIBBHHH", _PORT, _DISCARD_PORT, 1, 1, 5 << 4, _ACK, 0, 0, 0)
    pseudo = source + destination + struct.pack("!BBH", 0, socket.IPPROTO_TCP, len(tcp))
    tcp = tcp[:16] + checksum(pseudo + tcp) + tcp[18:]
    ip = struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0, 1, socket.IPPROTO_TCP, 0, source, destination
    )
    return ip[:10] + checksum(ip) + ip[12:] + tcp


def checksum(data: bytes) -> bytes:
    """Internet checksum (RFC 1071) of an even number of bytes."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", ~total & 0xFFFF)
