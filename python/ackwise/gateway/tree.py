# SPDX-License-Identifier: MIT
"""The queues of one interface, generated from settings as netlink messages and as `tc` commands.

ac:  htb, default ac:20
 └─ ac:1   the uplink's rate
     ├─ ac:10  pure ACKs   prio 0   guarantee .. ceiling       └─ ac10: leaf
     └─ ac:20  all else    prio 1   the rest .. the whole      └─ ac20: leaf
"""

import struct
from dataclasses import dataclass
from string import Template

from ackwise.gateway import bpf
from ackwise.gateway.classifier import Framing, pure_ack
from ackwise.gateway.linklayer import HEADER_BYTES, LinkLayer
from ackwise.host import netlink
from ackwise.host.netlink import TCA_KIND, TCA_OPTIONS, Message, attribute

# Not 1:, which most scripts use: this handle identifies our tree.
ROOT = 0xAC0000
TOP, ACKS, DATA = ROOT | 1, ROOT | 0x10, ROOT | 0x20
ACK_LEAF, DATA_LEAF = 0xAC100000, 0xAC200000
CLASS_NAMES = {ACKS: "ack", DATA: "data"}
LEAVES = {ACKS: ACK_LEAF, DATA: DATA_LEAF}

_ETH_P_ALL = 0x0300  # 3, big-endian
_FILTER_INFO = 1 << 16 | _ETH_P_ALL  # priority 1
_HTB_PARMS, _HTB_INIT, _HTB_RATE64, _HTB_CEIL64 = 1, 2, 6, 7
_BPF_CLASSID, _BPF_OPS_LEN, _BPF_OPS = 3, 4, 5
_ETHERNET, _ATM = 1, 2  # enum tc_link_layer
_TICKS_PER_US = 15.625  # a tick of the packet schedulers is 64 ns
_U32_MAX = 0xFFFFFFFF
BURST_NS = 1_000_000  # timer slack; traffic above the rate waits in the modem's queue

# CUBIC falls to 0.7 of its window, so a link stays busy if that empties a queue of 3/7 of the RTT:
# 34 ms for 80 ms. With CoDel's 5 ms an upload alone loses 3 to 8% there. Other flows do not wait
# for a flow's own queue. CAKE's target is a twentieth of its rtt, as in tc.
TARGET_US, INTERVAL_US, CAKE_TARGETS = 40_000, 200_000, 20


@dataclass(frozen=True)
class Leaf:
    """A leaf queue. `limit`: packets (bfifo: bytes); cake has none."""

    kind: str
    limit: int = 0

    @property
    def words(self) -> list[str]:
        """The leaf as arguments of `tc`."""
        if self.kind == "cake":
            rtt = f"{CAKE_TARGETS * TARGET_US}us"
            return ["cake", "unlimited", "besteffort", "ack-filter", "rtt", rtt]
        codel = ["target", f"{TARGET_US}us", "interval", f"{INTERVAL_US}us"]
        return [self.kind, "limit", str(self.limit), *(codel if self.kind == "fq_codel" else [])]

    @property
    def options(self) -> bytes:
        """The leaf's options as netlink attributes."""
        limit, target = struct.pack("=I", self.limit), struct.pack("=I", TARGET_US)
        if self.kind == "fq_codel":
            return (
                attribute(2, limit)  # TCA_FQ_CODEL_LIMIT
                + attribute(1, target)  # TARGET
                + attribute(3, struct.pack("=I", INTERVAL_US))  # INTERVAL
            )
        if self.kind == "cake":
            return (
                attribute(2, struct.pack("=Q", 0))  # TCA_CAKE_BASE_RATE64: unlimited
                + attribute(3, struct.pack("=I", 3))  # DIFFSERV_MODE: besteffort
                + attribute(16, struct.pack("=I", 1))  # ACK_FILTER
                + attribute(7, struct.pack("=I", CAKE_TARGETS * TARGET_US))  # RTT
                + attribute(8, target)  # TARGET
            )
        return limit


LEAF_KINDS = ("pfifo", "pfifo_head_drop", "bfifo", "fq_codel", "cake")


@dataclass(frozen=True)
class TreeSettings:
    """All settings of the tree. Rates in bit/s."""

    interface: str
    up_bps: int
    ack_guarantee_bps: int
    ack_ceiling_bps: int
    ack_leaf: Leaf
    data_leaf: Leaf
    layer: LinkLayer
    mtu_bytes: int
    framing: Framing
    burst_ns: int = BURST_NS

    @property
    def frame_bytes(self) -> int:
        """Length of the longest packet as the queue sees it."""
        return self.mtu_bytes + HEADER_BYTES[self.framing]


@dataclass(frozen=True)
class _Class:
    handle: int
    parent: int
    rate: str  # of rates()
    ceiling: str
    priority: int
    what: str


# [S3.5] [S3.6] [D-24]
_CLASSES = (
    _Class(TOP, ROOT, "up", "up", 0, "the class of the uplink's rate"),
    _Class(ACKS, TOP, "acks", "ceiling", 0, "the ACK class"),
    _Class(DATA, TOP, "data", "up", 1, "the data class"),
)


def rates(settings: TreeSettings) -> dict[str, int]:
    """The rates of the classes by name, bit/s."""
    up, acks = settings.up_bps, settings.ack_guarantee_bps
    return {"up": up, "acks": acks, "ceiling": settings.ack_ceiling_bps, "data": up - acks}


def burst_bytes(rate_bps: int, burst_ns: int = BURST_NS) -> int:
    """Burst of an HTB class in bytes. It may be smaller than a packet: HTB sends while its tokens
    are not negative."""
    return max(1, rate_bps * burst_ns // (8 * 10**9))


def _bytes_per_second(rate_bps: int) -> int:
    return rate_bps // 8


def _ticks(rate_bps: int, size_bytes: int) -> int:
    """Transmission time in scheduler ticks, computed as tc does, so that netlink and `tc` create
    the same class."""
    microseconds = int(1_000_000 * (size_bytes / _bytes_per_second(rate_bps)))
    return min(_U32_MAX, int(microseconds * _TICKS_PER_US))


def _rate(settings: TreeSettings, rate_bps: int) -> bytes:
    layer = settings.layer
    return struct.pack(
        "=BBHhHI",
        0,
        _ATM if layer.cells else _ETHERNET,
        layer.beyond(settings.framing),
        -1,
        layer.least_bytes,
        min(_U32_MAX, _bytes_per_second(rate_bps)),
    )


def _class_message(settings: TreeSettings, ifindex: int, one: _Class) -> Message:
    rate_bps, ceiling_bps = (rates(settings)[name] for name in (one.rate, one.ceiling))
    parms = (
        _rate(settings, rate_bps)
        + _rate(settings, ceiling_bps)
        + struct.pack(
            "=IIIII",
            _ticks(rate_bps, burst_bytes(rate_bps, settings.burst_ns)),
            _ticks(ceiling_bps, burst_bytes(ceiling_bps, settings.burst_ns)),
            settings.frame_bytes,
            0,
            one.priority,
        )
    )
    options = attribute(_HTB_PARMS, parms)
    for kind, rate in ((_HTB_RATE64, rate_bps), (_HTB_CEIL64, ceiling_bps)):
        if _bytes_per_second(rate) > _U32_MAX:
            options += attribute(kind, struct.pack("=Q", _bytes_per_second(rate)))
    return Message.traffic(
        f"add {one.what} {netlink.handle_text(one.handle)}",
        netlink.NEWTCLASS,
        ifindex,
        handle=one.handle,
        parent=one.parent,
        attrs=attribute(TCA_KIND, b"htb\0") + attribute(TCA_OPTIONS, options),
    )


def delete_root(ifindex: int) -> Message:
    """Removes the interface's queues; the kernel's default replaces them."""
    return Message.traffic(
        "delete the root queue", netlink.DELQDISC, ifindex, parent=netlink.ROOT, flags=0
    )


def messages(settings: TreeSettings, ifindex: int) -> list[Message]:
    """The messages that set up the tree on an interface with the default queue, in order."""
    init = struct.pack("=IIIII", 3, 10, DATA & 0xFFFF, 0, 0)
    made = [
        Message.traffic(
            f"add the htb root {netlink.handle_text(ROOT)}",
            netlink.NEWQDISC,
            ifindex,
            handle=ROOT,
            parent=netlink.ROOT,
            attrs=attribute(TCA_KIND, b"htb\0")
            + attribute(TCA_OPTIONS, attribute(_HTB_INIT, init)),
        )
    ]
    made += [_class_message(settings, ifindex, one) for one in _CLASSES]
    for parent, leaf in ((ACKS, settings.ack_leaf), (DATA, settings.data_leaf)):
        kind = leaf.kind.encode() + b"\0"
        made.append(
            Message.traffic(
                f"add the {leaf.kind} leaf of the {CLASS_NAMES[parent]} class",
                netlink.NEWQDISC,
                ifindex,
                handle=LEAVES[parent],
                parent=parent,
                attrs=attribute(TCA_KIND, kind) + attribute(TCA_OPTIONS, leaf.options),
            )
        )
    program = pure_ack(settings.framing)
    options = (
        attribute(_BPF_OPS_LEN, struct.pack("=H", len(program)))
        + attribute(_BPF_OPS, bpf.packed(program))
        + attribute(_BPF_CLASSID, struct.pack("=I", ACKS))
    )
    made.append(
        Message.traffic(
            "add the bpf filter of pure ACKs",
            netlink.NEWTFILTER,
            ifindex,
            handle=1,
            parent=ROOT,
            info=_FILTER_INFO,
            attrs=attribute(TCA_KIND, b"bpf\0") + attribute(TCA_OPTIONS, options),
        )
    )
    return made


def accounting(layer: LinkLayer, framing: Framing) -> list[str]:
    """Arguments of an HTB class for the link-layer overhead."""
    words = []
    if layer.beyond(framing):
        words += ["overhead", str(layer.beyond(framing))]
    if layer.least_bytes:
        words += ["mpu", str(layer.least_bytes)]
    if layer.cells:
        words += ["linklayer", "atm"]
    return words


ACCOUNTING = "$accounting"  # any number of words


def template() -> list[list[str]]:
    """The tree without its leaves as arguments of `tc`, with names of figures as a shell writes
    them."""
    text = netlink.handle_text
    on = ["dev", "$DEVICE"]
    root = ["qdisc", "add", *on, "root", "handle", text(ROOT), "htb"]
    made = [[*root, "default", f"{DATA & 0xFFFF:x}"]]
    made += [
        [
            "class", "add", *on, "parent", text(one.parent), "classid", text(one.handle), "htb",
            "rate", f"${{{one.rate}}}bit", "ceil", f"${{{one.ceiling}}}bit",
            "burst", f"${one.rate}_burst", "cburst", f"${one.ceiling}_burst",
            "quantum", "$quantum", "prio", str(one.priority), ACCOUNTING,
        ]
        for one in _CLASSES
    ]  # fmt: skip
    made.append(
        [
            "filter", "add", *on, "parent", text(ROOT), "protocol", "all", "prio", "1",
            "handle", "1", "bpf", "bytecode", "$program", "flowid", text(ACKS),
        ]
    )  # fmt: skip
    return made


def shape(settings: TreeSettings) -> dict[str, str]:
    """Rates and bursts of the classes, by the names of `template`."""
    named = rates(settings)
    made = {name: str(bps) for name, bps in named.items()}
    for name, bps in named.items():
        made[f"{name}_burst"] = str(burst_bytes(bps, settings.burst_ns))
    return made


def commands(settings: TreeSettings) -> list[list[str]]:
    """The tree as arguments of `tc`."""
    figures = shape(settings) | {
        "DEVICE": settings.interface,
        "quantum": str(settings.frame_bytes),
        "program": bpf.text(pure_ack(settings.framing)),
    }
    layer = accounting(settings.layer, settings.framing)
    made = [
        [
            given
            for word in words
            for given in (layer if word == ACCOUNTING else [Template(word).substitute(figures)])
        ]
        for words in template()
    ]
    leaves = [
        ["qdisc", "add", "dev", settings.interface, "parent", netlink.handle_text(parent),
         "handle", netlink.handle_text(LEAVES[parent]), *leaf.words]
        for parent, leaf in ((ACKS, settings.ack_leaf), (DATA, settings.data_leaf))
    ]  # fmt: skip
    return [*made[:-1], *leaves, made[-1]]
