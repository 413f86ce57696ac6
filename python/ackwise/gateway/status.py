# SPDX-License-Identifier: MIT
"""The kernel's counters of each class, as a table, as JSON and for Prometheus."""

import struct
from dataclasses import asdict, dataclass
from typing import Any

from ackwise.errors import printable
from ackwise.gateway import tree
from ackwise.gateway.snapshot import Snapshot
from ackwise.gateway.state import UP, SelfTest, State, namespace
from ackwise.host import netlink
from ackwise.host.netlink import TCA_STATS2, Rtnetlink, TcObject, attributes, damaged, number

_BASIC, _QUEUE, _PACKETS_64 = 1, 3, 8
SUSPICIOUS_PACKETS = 1000  # that many packets without one pure ACK are hardly TCP downloads


@dataclass(frozen=True)
class Counters:
    """Counters of one class since `up`. `dropped`: packets dropped by its leaf queue."""

    name: str
    sent_packets: int
    sent_bytes: int
    dropped_packets: int
    waiting_packets: int
    waiting_bytes: int


@dataclass(frozen=True)
class Status:
    """`condition`: up, down, or why neither. `ack_share`: ACKs' share of the bytes sent, 0 to 1."""

    interface: str
    condition: str
    classes: tuple[Counters, ...]
    settings: dict[str, Any]
    self_test: SelfTest | None = None  # outcome of the test after `up`

    @property
    def is_up(self) -> bool:
        """Whether everything is as `up` left it."""
        return self.condition == "up"

    @property
    def ack_share(self) -> float | None:
        """ACKs' share of the bytes sent, 0 to 1; None when nothing was sent."""
        total = sum(c.sent_bytes for c in self.classes)
        acks = sum(c.sent_bytes for c in self.classes if c.name == "ack")
        return acks / total if total else None

    @property
    def warning(self) -> str | None:
        """A warning when the counters suggest a wrong classification, whatever the self-test
        said."""
        taken = {c.name: c.sent_packets for c in self.classes}
        if taken.get("ack") or taken.get("data", 0) < SUSPICIOUS_PACKETS:
            return None
        return (
            f"no pure ACK among {taken['data']} packets sent: no download by TCP, or is --framing "
            "wrong?"
        )


def read(
    kernel: Rtnetlink, interface: str, state: State | None, *, unreadable: bool = False
) -> Status:
    """The current counters; changes nothing. `unreadable`: a state file exists that this user may
    not read, so the queues are not compared with it."""
    link = kernel.link(interface)
    settings = state.settings if state else {}

    def without(condition: str) -> Status:
        return Status(interface, condition, (), settings)

    if link is None:
        return without("the interface is gone" if state else "there is no such interface")
    snapshot = Snapshot.take(kernel, link.ifindex)
    if not snapshot.has_our_root:
        if state is None:
            return without("interrupted; run `up` or `down`" if unreadable else "down")
        if state.namespace != namespace():
            return without(
                "down; `up` was run on an interface of this name in another network namespace"
            )
        if state.ifindex != link.ifindex:
            return without("the interface was created anew; run `up` again")
        if snapshot == state.before and state.phase == UP:
            return without(
                "the queues were removed by someone else; `up` sets them up again, `down` forgets "
                "them"
            )
        if snapshot == state.before:
            return without("interrupted before anything was changed; run `up` or `down`")
        return without(f"the queues were replaced by someone else: {snapshot.words}")
    condition = "up"
    if state is None and not unreadable:
        condition = "up, but its state file is missing; `up --replace` writes a new one"
    elif state is not None and state.phase != UP:
        condition = "interrupted; run `up` or `down`"
    elif state is not None and snapshot != state.after:
        condition = (
            "up, but classes or filters were changed by someone else; run `up` to restore them"
        )
    tested = state.self_test if state else None
    return Status(interface, condition, counters(kernel, link.ifindex), settings, tested)


def counters(kernel: Rtnetlink, ifindex: int) -> tuple[Counters, ...]:
    """Counters of each class of our tree on an interface."""
    leaves = {q.parent: q for q in kernel.traffic(netlink.GETQDISC, ifindex)}
    found = []
    for one in sorted(kernel.traffic(netlink.GETTCLASS, ifindex), key=lambda c: c.handle):
        name = tree.CLASS_NAMES.get(one.handle)
        if name is None:
            continue
        packets, size, _, _, _ = _figures(one)
        _, _, waiting, waiting_bytes, dropped = _figures(leaves.get(one.handle, one))
        found.append(Counters(name, packets, size, dropped, waiting, waiting_bytes))
    return tuple(found)


def _figures(of: TcObject) -> tuple[int, int, int, int, int]:
    """Packets and bytes sent; packets and bytes waiting; packets dropped."""
    stats = dict(attributes(dict(attributes(of.attrs)).get(TCA_STATS2, b"")))
    basic, queue = stats.get(_BASIC, bytes(16)), stats.get(_QUEUE, bytes(20))
    if len(basic) < 12 or len(queue) < 12:
        raise damaged(f"counters of {len(basic)} and {len(queue)} bytes")
    size, packets = struct.unpack_from("=QI", basic)
    if _PACKETS_64 in stats:
        packets = number(stats[_PACKETS_64], "=Q")
    waiting, backlog, dropped = struct.unpack_from("=III", queue)
    return packets, size, waiting, backlog, dropped


def document(status: Status) -> dict[str, Any]:
    """The status as JSON."""
    return {
        "interface": status.interface,
        "up": status.is_up,
        "condition": status.condition,
        "ack_share": status.ack_share,
        "classes": {
            c.name: {
                "sent_packets": c.sent_packets,
                "sent_bytes": c.sent_bytes,
                "dropped_packets": c.dropped_packets,
                "waiting_packets": c.waiting_packets,
                "waiting_bytes": c.waiting_bytes,
            }
            for c in status.classes
        },
        "settings": status.settings,
        "self_test": None if status.self_test is None else asdict(status.self_test),
        "warning": status.warning,
    }


_METRICS = (
    ("sent_packets", "sent_packets_total", "counter", "Packets sent."),
    ("sent_bytes", "sent_bytes_total", "counter", "Bytes sent, with the link header."),
    ("dropped_packets", "dropped_packets_total", "counter", "Packets dropped by the leaf queue."),
    ("waiting_packets", "waiting_packets", "gauge", "Packets in the leaf queue."),
    ("waiting_bytes", "waiting_bytes", "gauge", "Bytes in the leaf queue."),
)


def prometheus(status: Status) -> str:
    """The status in Prometheus's text exposition format 0.0.4."""
    device = printable(status.interface).replace("\\", "\\\\").replace('"', '\\"')
    lines = [
        "# HELP ackwise_gateway_up Whether ACK separation is in place.",
        "# TYPE ackwise_gateway_up gauge",
        f'ackwise_gateway_up{{interface="{device}"}} {int(status.is_up)}',
    ]
    if status.self_test is not None and status.self_test.passed is not None:
        lines += [
            "# HELP ackwise_gateway_self_test_passed Whether a pure ACK reached its class at `up`.",
            "# TYPE ackwise_gateway_self_test_passed gauge",
            f'ackwise_gateway_self_test_passed{{interface="{device}"}} '
            f"{int(status.self_test.passed)}",
        ]
    for attribute, name, kind, text in _METRICS if status.classes else ():
        full = f"ackwise_gateway_{name}"
        lines += [f"# HELP {full} {text}", f"# TYPE {full} {kind}"]
        lines += [
            f'{full}{{interface="{device}",class="{c.name}"}} {getattr(c, attribute)}'
            for c in status.classes
        ]
    return "\n".join(lines) + "\n"


def table(status: Status, before: Status | None = None, seconds: float = 0.0) -> list[str]:
    """The status as a table; with an earlier reading also the rates since then."""
    lines = [f"{status.interface}: {status.condition}"]
    if not status.classes:
        return lines
    earlier = {c.name: c for c in before.classes} if before else {}
    head = f"{'class':6} {'packets':>12} {'bytes':>15} {'dropped':>10} {'waiting':>8} {'bytes':>9}"
    lines.append(head + (f" {'kbit/s':>9}" if earlier and seconds else ""))
    for c in status.classes:
        line = (
            f"{c.name:6} {c.sent_packets:>12} {c.sent_bytes:>15} {c.dropped_packets:>10} "
            f"{c.waiting_packets:>8} {c.waiting_bytes:>9}"
        )
        if c.name in earlier and seconds:
            rate = max(0, c.sent_bytes - earlier[c.name].sent_bytes) * 8e-3 / seconds
            line += f" {rate:>9.1f}"
        lines.append(line)
    share = status.ack_share
    lines.append("ACK share of the bytes: " + ("-" if share is None else f"{100 * share:.2f}%"))
    if status.self_test is not None:
        lines.append(status.self_test.line)
    if status.warning is not None:
        lines.append(f"warning: {status.warning}")
    return lines
