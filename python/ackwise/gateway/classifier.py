# SPDX-License-Identifier: MIT
"""The filter that matches pure ACKs, as classic BPF.

A pure ACK is a TCP segment without payload whose ACK flag is set and whose SYN, FIN, RST and URG
flags are not (RFC 9293). Its loss costs nothing as long as a later one arrives, so it may wait in a
short queue of its own.

- PSH is ignored: without payload there is nothing to push, and some stacks set it.
- ECE, CWR and the former NS bit are ignored: Accurate ECN (RFC 9768) uses them on every ACK to
  count marks, and with RFC 3168 an ACK with ECE is the more urgent.
- Keep-alives and window probes without payload look the same, and are as small and as rare.
- A fragment never matches. An atomic fragment (RFC 6946) is a whole datagram and is examined.
- Encrypted, tunnelled and damaged packets (a header longer than its packet) are data.

Lengths come from the IP header, never from the frame: short frames are padded, and a frame that
GRO has merged is as long as all its segments. A frame merged beyond 64 KiB has 0 there: data.

Frames: Ethernet with up to two VLAN tags (802.1Q, 802.1ad, 0x9100; a tag that the kernel keeps
beside the frame needs no handling) and PPPoE session (RFC 2516), or bare IP (ppp, tun). IPv4 with
options. IPv6 with up to five extension headers among hop-by-hop, routing, destination options and
fragment, the most that RFC 8200, 4.1 allows. Offsets count from the start of the frame, so that
loads reach every byte even where a driver left headers in pages. Loads are the expensive
instructions, so one load fetches all fields of a word.
"""

import re
from enum import Enum

from ackwise.gateway.bpf import Assembler, Instruction

MATCH = 0xFFFFFFFF  # class id returned to cls_bpf for a match
NO_MATCH = 0
VLAN_TYPES = (0x8100, 0x88A8, 0x9100)
VLAN_TAGS_MAX = 2
EXTENSION_HEADERS_MAX = 5

_END, _NETWORK, _WORD, _PROTOCOL = range(4)  # cells of M


class Framing(Enum):
    """The headers at the start of an interface's packets."""

    ETHERNET = "ethernet"
    IP = "ip"


# ARPHRD_* of if_arp.h. Loopback frames have an Ethernet header.
LOOPBACK = 772
FRAMING_OF_HARDWARE = {
    1: Framing.ETHERNET,
    LOOPBACK: Framing.ETHERNET,
    512: Framing.IP,  # ppp
    519: Framing.IP,  # raw IP of modems
    65534: Framing.IP,  # tun, WireGuard
    768: Framing.IP,  # IP in IP
    769: Framing.IP,
    776: Framing.IP,  # IPv6 in IPv4
}

# Interface names on other hosts, as Linux, systemd, pppd and OpenWrt assign them. Some are
# ambiguous and left out: wan is a port or a connection (pppoe-wan) on OpenWrt; wwan0 has Ethernet
# headers with MBIM and none with QMI.
_FRAMING_OF_NAME = (
    # a VLAN on any device: eth0.7
    (Framing.ETHERNET, r".+\.\d+"),
    (Framing.ETHERNET, r"(eth|lan|br|bond|team|veth|vlan|tap|dsl|wlan)\d*"),
    (Framing.ETHERNET, r"(en|wl)[a-zP]\w*\d\w*|br-.+"),
    (Framing.IP, r"(ppp|tun|wg|ipip|sit|tunl)\d*"),
    (Framing.IP, r"(ppp|pppoe|pppoa|pptp|l2tp|3g|tun|wg|ipip|6in4|6rd|6to4)-.+"),
)


def framing_of_name(name: str) -> Framing | None:
    """Framing that an interface's name implies by convention; None if it implies none."""
    matching = (f for f, pattern in _FRAMING_OF_NAME if re.fullmatch(pattern, name))
    return next(matching, None)


def pure_ack(framing: Framing) -> tuple[Instruction, ...]:
    """The program: MATCH for a pure ACK, NO_MATCH for anything else."""
    asm = Assembler()
    # From here on, X is the offset of the current header.
    if framing is Framing.ETHERNET:
        _ethernet(asm)
    else:
        asm.set_x(0)
        asm.load("b", 0)
        asm.compute("and", 0xF0)
        asm.branch("jeq", 0x40, "ipv4")
        asm.branch("jeq", 0x60, "ipv6", "no")
    _ipv4(asm)
    _ipv6(asm)
    _tcp(asm)
    asm.finish(MATCH)
    asm.label("no")
    asm.finish(NO_MATCH)
    return asm.assemble()


def _ethernet(asm: Assembler) -> None:
    asm.set_x(14)
    asm.load("h", 12)
    for tag in range(VLAN_TAGS_MAX):
        for vlan in VLAN_TYPES:
            asm.branch("jeq", vlan, f"tag {tag}")
        asm.jump("type")
        asm.label(f"tag {tag}")
        asm.set_x(18 + 4 * tag)
        asm.load("h", 16 + 4 * tag)
    asm.label("type")
    asm.branch("jeq", 0x0800, "ipv4")
    asm.branch("jeq", 0x86DD, "ipv6")
    asm.branch("jeq", 0x8864, "pppoe", "no")
    asm.label("pppoe")
    asm.load_x("h", 0)
    asm.branch("jeq", 0x1100, no="no")  # version 1, type 1, code 0: session data
    asm.load_x("b", 6)
    asm.branch("jset", 1, "short protocol")  # RFC 1661, 6.5: compressed to one byte
    asm.load_x("h", 6)
    asm.store(_PROTOCOL)
    asm.advance(8)
    asm.jump("ppp")
    asm.label("short protocol")
    asm.store(_PROTOCOL)
    asm.advance(7)
    asm.label("ppp")
    asm.recall(_PROTOCOL)
    asm.branch("jeq", 0x0021, "ipv4")
    asm.branch("jeq", 0x0057, "ipv6", "no")


def _ends_inside(asm: Assembler) -> None:
    """Stores A, the end of the datagram, and rejects a frame that ends before it. Keeps X."""
    asm.store(_END)
    asm.store_x(_NETWORK)
    asm.recall_x(_END)
    asm.load_length()
    asm.branch_x("jge", no="no")
    asm.recall_x(_NETWORK)


def _ipv4(asm: Assembler) -> None:
    asm.label("ipv4")
    asm.load_x("w", 6)  # fragment, time to live, protocol
    asm.branch("jset", 0x3FFF0000, yes="no")  # more fragments, or an offset
    asm.compute("and", 0xFF)
    asm.branch("jeq", 6, no="no")
    asm.load_x("w", 0)  # version, header length, type of service, total length
    asm.store(_WORD)
    asm.compute("and", 0xFFFF)
    asm.add_x()
    _ends_inside(asm)
    asm.recall(_WORD)
    asm.compute("rsh", 24)
    asm.branch("jge", 0x45, no="no")  # version 4, header of at least 20 bytes
    asm.branch("jge", 0x50, yes="no")
    asm.compute("and", 0x0F)
    asm.compute("lsh", 2)
    asm.add_x()
    asm.a_to_x()
    asm.jump("tcp")


def _ipv6(asm: Assembler) -> None:
    asm.label("ipv6")
    asm.load_x("b", 0)
    asm.compute("and", 0xF0)
    asm.branch("jeq", 0x60, no="no")
    asm.load_x("w", 4)  # payload length, next header, hop limit
    asm.store(_WORD)
    asm.compute("rsh", 16)
    asm.compute("add", 40)
    asm.add_x()
    _ends_inside(asm)
    asm.recall(_WORD)
    asm.compute("rsh", 8)
    asm.compute("and", 0xFF)
    asm.store(_PROTOCOL)
    asm.advance(40)
    for i in range(EXTENSION_HEADERS_MAX):
        asm.recall(_PROTOCOL)
        asm.branch("jeq", 6, "tcp")
        asm.branch("jeq", 44, f"fragment {i}")
        for header in (0, 43, 60):
            asm.branch("jeq", header, f"options {i}")
        asm.jump("no")
        asm.label(f"fragment {i}")
        asm.load_x("w", 0)  # next header, reserved, offset and more
        asm.branch("jset", 0xFFF9, yes="no")
        asm.compute("rsh", 24)
        asm.store(_PROTOCOL)
        asm.advance(8)
        asm.jump(f"behind {i}")
        asm.label(f"options {i}")
        asm.load_x("w", 0)  # next header, length in 8-byte words minus one
        asm.store(_WORD)
        asm.compute("and", 0xFF0000)
        asm.compute("rsh", 13)
        asm.compute("add", 8)
        asm.add_x()
        asm.a_to_x()
        asm.recall(_WORD)
        asm.compute("rsh", 24)
        asm.store(_PROTOCOL)
        asm.label(f"behind {i}")
    asm.recall(_PROTOCOL)
    asm.branch("jeq", 6, no="no")


# [S3.3]
def _tcp(asm: Assembler) -> None:
    asm.label("tcp")
    asm.load_x("h", 12)  # data offset, reserved, flags
    asm.store(_WORD)
    asm.compute("and", 0x37)  # URG, ACK, RST, SYN, FIN
    asm.branch("jeq", 0x10, no="no")
    asm.recall(_WORD)
    asm.compute("rsh", 12)
    asm.branch("jge", 5, no="no")
    asm.compute("lsh", 2)
    asm.add_x()
    asm.recall_x(_END)
    asm.branch_x("jeq", no="no")  # the datagram ends with the TCP header
