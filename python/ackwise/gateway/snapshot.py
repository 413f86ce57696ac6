# SPDX-License-Identifier: MIT
"""The queues of an interface, kept as the kernel's own bytes so that they can be restored.

What is the kernel's default has the handle 0 and needs no keeping: it comes when the root is
deleted. Ingress queues are nobody's business here and stay.
"""

import struct
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Self

from ackwise.gateway import netlink, tree
from ackwise.gateway.netlink import (
    TCA_KIND,
    TCA_OPTIONS,
    Message,
    Rtnetlink,
    TcObject,
    attribute,
    attributes,
    handle_text,
)

_STAB, _CHAIN = 8, 11
_KEPT = {TCA_KIND, TCA_OPTIONS, _STAB, _CHAIN}
_MAKERS = {  # kinds whose classes are made one by one; those of others come with the queue
    "htb",
    "hfsc",
    "drr",
    "qfq",
}
_CREATING = {
    "qdisc": netlink.NEWQDISC,
    "class": netlink.NEWTCLASS,
    "filter": netlink.NEWTFILTER,
}
_U32_OWN_TABLES = 0x800  # the hash table that comes with each u32 priority, and above


@dataclass(frozen=True)
class Kept:
    """A qdisc, class or filter. `attrs`: the attributes that create it again, in hex."""

    what: str
    kind: str
    handle: int
    parent: int
    info: int
    attrs: str

    def __str__(self) -> str:
        where = "root" if self.parent == netlink.ROOT else f"parent {handle_text(self.parent)}"
        name = f" {handle_text(self.handle)}" if self.what != "filter" else ""
        return f"{self.what} {self.kind}{name} {where}"


@dataclass(frozen=True)
class Snapshot:
    """All egress queues of an interface that are not the kernel's default; in order of making."""

    parts: tuple[Kept, ...] = ()

    @property
    def is_default(self) -> bool:
        """Only the kernel's default queue."""
        return not self.parts

    @property
    def is_ours(self) -> bool:
        """Set up by `up` or by its commands."""
        return (
            bool(self.parts) and self.parts[0].handle == tree.ROOT and self.parts[0].kind == "htb"
        )

    @property
    def words(self) -> str:
        """For a message: the root and what hangs on it."""
        if self.is_default:
            return "the kernel's default queue"
        count = len(self.parts) - 1
        more = f" and {count} more" if count else ""
        return f"{self.parts[0].kind} {handle_text(self.parts[0].handle)}{more}"

    def messages(self, ifindex: int) -> list[Message]:
        """The messages that create them on an interface with the default queue."""
        return [
            Message.traffic(
                f"add {part}",
                _CREATING[part.what],
                ifindex,
                handle=part.handle,
                parent=part.parent,
                info=part.info,
                attrs=bytes.fromhex(part.attrs),
            )
            for part in self.parts
        ]

    def document(self) -> list[dict[str, Any]]:
        """For the state file; `of_document` reads it back."""
        return [asdict(part) for part in self.parts]

    @classmethod
    def of_document(cls, told: list[dict[str, Any]]) -> Self:
        """KeyError, TypeError or ValueError for a document that is not a snapshot."""
        return cls(tuple(Kept(**part) for part in told))

    @classmethod
    def take(cls, kernel: Rtnetlink, ifindex: int) -> Self:
        """As the kernel reports it."""
        qdiscs = [q for q in kernel.traffic(netlink.GETQDISC, ifindex) if q.handle]
        root = next((q for q in qdiscs if q.parent == netlink.ROOT), None)
        if root is None:
            return cls()
        classes = kernel.traffic(netlink.GETTCLASS, ifindex)
        parts: list[Kept] = []

        def add(qdisc: TcObject) -> None:
            kept = _kept("qdisc", qdisc)
            parts.append(kept)
            major = qdisc.handle >> 16
            mine = [c for c in classes if c.handle >> 16 == major]
            if kept.kind in _MAKERS:
                parts.extend(_kept("class", c) for c in _parents_first(mine))
            for child in qdiscs:
                if child.parent >> 16 == major and child.parent not in (
                    netlink.ROOT,
                    netlink.INGRESS,
                ):
                    add(child)
            for parent in (qdisc.handle, *(c.handle for c in mine)):
                found = kernel.traffic(netlink.GETTFILTER, ifindex, parent=parent)
                parts.extend(_kept("filter", f) for f in found if _is_made(f))

        add(root)
        return cls(tuple(parts))


def _parents_first(classes: list[TcObject]) -> list[TcObject]:
    handles = {c.handle for c in classes}
    ordered: list[TcObject] = []
    waiting = sorted(classes, key=lambda c: c.handle)
    while waiting:
        done = {c.handle for c in ordered}
        ready = [c for c in waiting if c.parent not in handles or c.parent in done]
        if not ready:  # a circle: the kernel has none
            return ordered + waiting
        ordered += ready
        waiting = [c for c in waiting if c not in ready]
    return ordered


def _kind(traffic: TcObject) -> str:
    return dict(attributes(traffic.attrs)).get(TCA_KIND, b"").rstrip(b"\0").decode(errors="replace")


def _is_made(found: TcObject) -> bool:
    """Whether it has to be made; the head of a priority and its first table come by themselves."""
    if not found.handle:
        return False
    if _kind(found) != "u32" or found.handle & 0xFFFFF:
        return True
    return found.handle >> 20 < _U32_OWN_TABLES


def _kept(what: str, found: TcObject) -> Kept:
    kind = _kind(found)
    attrs = b""
    for number, payload in attributes(found.attrs):
        if number in _KEPT:
            if number == TCA_OPTIONS:
                settle = _SETTLED.get((what, kind))
                payload = settle(payload) if settle else payload
            attrs += attribute(number, payload)
    # A class names its parent; a qdisc's info counts its users.
    info = found.info if what == "filter" else 0
    # HTB reports a class below its root as a root
    parent = found.parent
    if what == "class" and parent == netlink.ROOT:
        parent = found.handle & 0xFFFF0000
    return Kept(what, kind, found.handle, parent, info, attrs.hex())


def _without(*numbers: int, flags: int = 0) -> Callable[[bytes], bytes]:
    """Drops counters; of `flags`, keeps what a request may hold (TCA_CLS_FLAGS_SKIP_*)."""

    def settle(options: bytes) -> bytes:
        made = b""
        for number, payload in attributes(options):
            if number in numbers:
                continue
            if number == flags:
                payload = struct.pack("=I", struct.unpack("=I", payload)[0] & 3)
            made += attribute(number, payload)
        return made

    return settle


def _htb_root(options: bytes) -> bytes:
    """Without the counter of direct packets; of the version (major and minor), only the major,
    which is what a request must name."""
    made = b""
    for number, payload in attributes(options):
        settled = payload
        if number == 2:  # struct tc_htb_glob
            (version,) = struct.unpack_from("=I", payload)
            settled = struct.pack("=I", version >> 16 or version) + payload[4:16] + bytes(4)
        made += attribute(number, settled)
    return made


def _htb_class(options: bytes) -> bytes:
    """Without the level, which follows from the classes below."""
    made = b""
    for number, payload in attributes(options):
        settled = payload[:36] + bytes(4) + payload[40:] if number == 1 else payload
        made += attribute(number, settled)
    return made


_SETTLED: dict[tuple[str, str], Callable[[bytes], bytes]] = {
    ("qdisc", "htb"): _htb_root,
    ("class", "htb"): _htb_class,
    ("filter", "u32"): _without(9, flags=11),  # TCA_U32_PCNT
    ("filter", "bpf"): _without(flags=9),
    ("filter", "matchall"): _without(4, flags=3),
    ("filter", "flower"): _without(flags=22),
}
