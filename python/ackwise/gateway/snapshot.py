# SPDX-License-Identifier: MIT
"""The queues of an interface, kept as the kernel's own bytes so that they can be restored.

The kernel's default has the handle 0 and is not kept: it returns when the root is deleted. Ingress
queues are not touched.

Everything that the kernel reports is kept and compared, including objects that no request creates,
such as the first hash table of u32: the rehearsal shows whether they return by themselves. A
property that cannot be compared, because it is not reported in full or changes while packets pass,
is an obstacle, and such a tree is not replaced.
"""

import string
import struct
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from ackwise.errors import RunError
from ackwise.gateway import tree
from ackwise.host import netlink
from ackwise.host.netlink import (
    TCA_KIND,
    TCA_OPTIONS,
    TCA_STATS2,
    Message,
    Rtnetlink,
    TcObject,
    attribute,
    attributes,
    damaged,
    handle_text,
    number,
    text,
)

_STAB, _CHAIN = 8, 11
_BLOCKS = (13, 14)  # TCA_INGRESS_BLOCK, TCA_EGRESS_BLOCK
_ESTIMATES = (2, 5)  # TCA_STATS_RATE_EST, TCA_STATS_RATE_EST64
_KEPT = {TCA_KIND, TCA_OPTIONS, _STAB, _CHAIN}
_KIND_BYTES_MAX = 16  # IFNAMSIZ
_ATTRIBUTES_BYTES_MAX = 1 << 17
_MAKERS = {  # kinds whose classes are created one by one; in other kinds they come with the queue
    "htb",
    "hfsc",
    "drr",
    "qfq",
}
_CREATING = {
    "qdisc": netlink.NEWQDISC,
    "class": netlink.NEWTCLASS,
    "chain": netlink.NEWCHAIN,
    "filter": netlink.NEWTFILTER,
}
# Attribute number of each filter kind's actions and policer.
_ACTIONS = {
    "basic": (3, 4),
    "bpf": (1, 2),
    "cgroup": (1, 2),
    "flow": (9, 10),
    "flower": (3,),
    "fw": (2, 4),
    "matchall": (2,),
    "route": (5, 6),
    "u32": (6, 7),
}
_BPF_OPS = 5
_CAKE_ACK_FILTER = 16  # TCA_CAKE_ACK_FILTER
_NEWEST_FIRST = {"basic", "bpf"}  # kinds that insert a filter before those of the same priority
_U32_OWN_TABLES = 0x800  # lowest number of the hash tables that come with each u32 priority


@dataclass(frozen=True)
class Kept:
    """A qdisc, class, filter or chain of filters. `attrs`: the attributes that recreate it, in hex.
    `info`: a class's leaf queue, or a filter's priority and protocol."""

    what: str
    kind: str
    handle: int
    parent: int
    info: int
    attrs: str

    def __str__(self) -> str:
        where = "root" if self.parent == netlink.ROOT else f"parent {handle_text(self.parent)}"
        name = f" {handle_text(self.handle)}" if self.what in ("qdisc", "class") else ""
        return f"{' '.join((self.what, self.kind)).strip()}{name} {where}"

    @property
    def is_made(self) -> bool:
        """Whether a request creates it; other parts come with a part that is created."""
        if self.what == "class":  # the root class of hfsc comes with its queue
            return self.kind in _MAKERS and bool(self.handle & 0xFFFF)
        if self.what == "filter":  # with handle 0: the head of a priority
            own = self.kind == "u32" and not self.handle & 0xFFFFF
            return bool(self.handle) and not (own and self.handle >> 20 >= _U32_OWN_TABLES)
        return True

    def message(self, ifindex: int) -> Message:
        """The request that recreates it."""
        return Message.traffic(
            f"add {self}",
            _CREATING[self.what],
            ifindex,
            handle=self.handle,
            parent=self.parent,
            info=self.info if self.what == "filter" else 0,
            attrs=bytes.fromhex(self.attrs),
        )

    @classmethod
    def of_document(cls, found: Any) -> Self:
        """The part read from a state file. ValueError for anything that `Snapshot.of` does not
        produce."""
        if not isinstance(found, dict) or set(found) != set(cls.__dataclass_fields__):
            raise ValueError("a part without its fields")
        what, kind, attrs = (found[key] for key in ("what", "kind", "attrs"))
        numbers = [found[key] for key in ("handle", "parent", "info")]
        if not all(isinstance(words, str) for words in (what, kind, attrs)):
            raise ValueError("a part whose words are not text")
        if what not in _CREATING:
            raise ValueError("a part that is not a qdisc, class, filter or chain")
        if not all(type(n) is int and 0 <= n <= 0xFFFFFFFF for n in numbers):
            raise ValueError("a handle that is not a number of 32 bits")
        if len(attrs) > 2 * _ATTRIBUTES_BYTES_MAX or not set(attrs) <= set(string.hexdigits):
            raise ValueError("attributes that are not bytes in hex")
        try:
            inside = dict(attributes(bytes.fromhex(attrs)))
        except RunError:
            raise ValueError("attributes with a wrong length") from None
        if not set(inside) <= _KEPT or text(inside.get(TCA_KIND, b"")) != kind:
            raise ValueError("attributes that do not belong to their part")
        handle, parent, info = numbers
        return cls(what, kind, handle, parent, info, attrs)


@dataclass(frozen=True)
class Snapshot:
    """All egress queues of an interface except the kernel's default, in order of creation.

    `obstacle`: why they cannot be restored exactly, whatever a rehearsal shows; "" if no reason is
    known.
    """

    parts: tuple[Kept, ...] = ()
    obstacle: str = field(default="", compare=False)

    @property
    def is_default(self) -> bool:
        """Whether there is only the kernel's default queue."""
        return not self.parts

    @property
    def has_our_root(self) -> bool:
        """Whether the root is the one that `up` creates."""
        return (
            bool(self.parts) and self.parts[0].handle == tree.ROOT and self.parts[0].kind == "htb"
        )

    @property
    def is_ours(self) -> bool:
        """Whether there is nothing but what `up` or its commands set up."""
        made = [p for p in self.parts if p.is_made]
        classes = {p.handle for p in made if p.what == "class"}
        leaves = {p.handle for p in made[1:] if p.what == "qdisc"}
        rest = [p for p in made if p.what not in ("class", "qdisc")]
        return (
            self.has_our_root
            and classes == {tree.TOP, tree.ACKS, tree.DATA}
            and leaves <= set(tree.LEAVES.values())
            and [p.kind for p in rest] in ([], ["bpf"])
        )

    @property
    def thins_acks(self) -> bool:
        """Whether the root is CAKE with an ACK filter."""
        if self.is_default or self.parts[0].kind != "cake":
            return False
        attrs = dict(attributes(bytes.fromhex(self.parts[0].attrs)))
        return bool(number(dict(attributes(attrs[TCA_OPTIONS]))[_CAKE_ACK_FILTER]))

    @property
    def skeleton(self) -> set[tuple[str, str, int, int]]:
        """Kind and place of every part, without its settings."""
        return {(p.what, p.kind, p.handle, p.parent) for p in self.parts}

    @property
    def words(self) -> str:
        """Short description for a message: the root and its children."""
        if self.is_default:
            return "the kernel's default queue"
        count = sum(p.is_made for p in self.parts) - 1
        more = f" and {count} more" if count else ""
        return f"{self.parts[0].kind} {handle_text(self.parts[0].handle)}{more}"

    def messages(self, ifindex: int) -> list[Message]:
        """The messages that recreate the queues on an interface with the default queue."""
        return [part.message(ifindex) for part in self.parts if part.is_made]

    def document(self) -> list[dict[str, Any]]:
        """The snapshot for the state file; `of_document` reads it back."""
        return [asdict(part) for part in self.parts]

    @classmethod
    def of_document(cls, found: Any) -> Self:
        """The snapshot in a state file. ValueError for any other document: below the root, each
        part must follow its parent."""
        if not isinstance(found, list):
            raise ValueError("no list of parts")
        parts = tuple(Kept.of_document(part) for part in found)
        roots = [p.what == "qdisc" and p.parent == netlink.ROOT for p in parts]
        if roots != [True, *[False] * (len(parts) - 1)][: len(parts)]:
            raise ValueError("not exactly one root queue, and it first")
        astray = _without_parent(parts)
        if astray:
            raise ValueError(f"{astray} belongs to nothing")
        return cls(parts)

    @classmethod
    def take(cls, kernel: Rtnetlink, ifindex: int) -> Self:
        """A snapshot of the interface's current queues. RunError when the kernel does not report
        them."""
        qdiscs = kernel.traffic(netlink.GETQDISC, ifindex)
        if not any(q.handle for q in qdiscs):
            return cls.of(qdiscs, [], {}, {})
        classes = kernel.traffic(netlink.GETTCLASS, ifindex)
        filters, chains = {}, {}
        for parent in (*(q.handle for q in qdiscs if q.handle), *(c.handle for c in classes)):
            found = kernel.known_traffic(netlink.GETCHAIN, ifindex, parent=parent)
            if found != []:  # Linux before 4.19 does not list chains
                chains[parent] = found or []
                filters[parent] = kernel.traffic(netlink.GETTFILTER, ifindex, parent=parent)
        return cls.of(qdiscs, classes, filters, chains)

    @classmethod
    def of(
        cls,
        qdiscs: Sequence[TcObject],
        classes: Sequence[TcObject],
        filters: Mapping[int, Sequence[TcObject]],
        chains: Mapping[int, Sequence[TcObject]],
    ) -> Self:
        """A snapshot built from the kernel's reports; filters and chains are keyed by the parent
        they were listed for. RunError when a report is damaged."""
        mine = [q for q in qdiscs if q.parent != netlink.INGRESS]
        root = next((q for q in mine if q.parent == netlink.ROOT), None)
        named = [q for q in mine if q.handle]
        if root is None or not root.handle:
            return cls((), f"{_kept('qdisc', named[0])} is below no root" if named else "")
        below = _by_major(named, lambda q: q.parent)
        of_queue = _by_major(classes, lambda c: c.handle)
        parts: list[Kept] = []
        seen: set[int] = set()
        waiting = deque([root])
        while waiting:
            qdisc = waiting.pop()
            if qdisc.handle in seen:
                raise damaged(f"{_kept('qdisc', qdisc)} is there twice")
            seen.add(qdisc.handle)
            kept = _kept("qdisc", qdisc)
            parts.append(kept)
            major = qdisc.handle >> 16
            inner = of_queue.get(major, [])
            if kept.kind in _MAKERS:
                parts.extend(_kept("class", c) for c in _parents_first(inner))
            for parent in (qdisc.handle, *(c.handle for c in inner)):
                parts.extend(_filters(parent, filters.get(parent, ()), chains.get(parent, ())))
            # The kernel lists them in order of hash bucket and age, which carries no meaning.
            inner_queues = (q for q in below.get(major, []) if q.parent != netlink.ROOT)
            waiting.extend(sorted(inner_queues, key=lambda q: -q.handle))
        astray = next((q for q in named if q.handle not in seen), None)
        if astray is not None:
            return cls(tuple(parts), f"{_kept('qdisc', astray)} is below no root")
        why = _obstacle(named, classes, filters)
        if not why and (lost := _without_parent(parts)):
            why = f"{lost} belongs to nothing"
        return cls(tuple(parts), why)


def _without_parent(parts: Sequence[Kept]) -> Kept | None:
    """The first part after the root whose parent does not precede it."""
    handles: set[int] = set()
    for part in parts:
        # Classes of most kinds come with their queue and are not parts.
        if handles and not {part.parent, part.parent & 0xFFFF0000} & handles:
            return part
        if part.what in ("qdisc", "class"):
            handles.add(part.handle)
    return None


def _by_major(
    found: Sequence[TcObject], handle: Callable[[TcObject], int]
) -> dict[int, list[TcObject]]:
    """The objects grouped by the major number of a handle."""
    grouped: dict[int, list[TcObject]] = {}
    for one in found:
        grouped.setdefault(handle(one) >> 16, []).append(one)
    return grouped


def _parents_first(classes: Sequence[TcObject]) -> list[TcObject]:
    """The classes level by level, sorted by handle within a level."""
    handles = {c.handle for c in classes}
    below: dict[int, list[TcObject]] = {}
    for one in sorted(classes, key=lambda c: c.handle):
        top = one.parent not in handles or one.parent == one.handle
        below.setdefault(0 if top else one.parent, []).append(one)
    ordered = below.pop(0, [])
    for one in ordered:  # grows during the loop
        ordered += below.pop(one.handle, [])
    if below:
        raise damaged("a class is below itself")
    return ordered


def _filters(parent: int, found: Sequence[TcObject], chains: Sequence[TcObject]) -> list[Kept]:
    """The filters of a queue or class, preceded by the chains that do not come with a filter.

    Filters of a priority are in order of creation; u32 numbers the tables of its priorities in that
    order, too."""
    filled = {_chain(one) for one in found}
    kept = [
        Kept("chain", _kind(one), 0, parent, 0, _attrs("chain", one))
        for one in chains
        if _kind(one) or _chain(one) not in filled
    ]
    priorities: dict[tuple[int, int], list[Kept]] = {}
    for one in found:
        priorities.setdefault((_chain(one), one.info), []).append(_kept("filter", one))
    for filters in sorted(priorities.values(), key=_u32_table):
        newest_first = filters[0].kind in _NEWEST_FIRST
        kept += reversed(filters) if newest_first else filters
    return kept


def _u32_table(filters: Sequence[Kept]) -> int:
    """Number of the table that came with the first filter of a priority; 0: none."""
    own = (p.handle >> 20 for p in filters if p.handle and not p.is_made)
    return next(own, 0)


def _obstacle(
    qdiscs: Sequence[TcObject],
    classes: Sequence[TcObject],
    filters: Mapping[int, Sequence[TcObject]],
) -> str:
    """Why the queues cannot be restored exactly; "" if no reason is known."""
    parents = {q.handle: q.parent for q in qdiscs}
    for one in classes:
        name = f"class {_kind(one)} {handle_text(one.handle)}"
        if one.info and one.info in parents and parents[one.info] != one.handle:
            return f"{name} shares its queue with another class"
        if _kind(one) not in _MAKERS and dict(attributes(one.attrs)).get(TCA_OPTIONS):
            return f"{name} is of a kind that is not known here"
    for one in (*qdiscs, *classes):
        inside = dict(attributes(one.attrs))
        estimates = dict(attributes(inside.get(TCA_STATS2, b"")))
        if any(kind in estimates for kind in _ESTIMATES):
            return f"{_kind(one)} {handle_text(one.handle)} has a rate estimator"
        if any(number(inside[kind]) for kind in _BLOCKS if kind in inside):
            return f"{_kind(one)} {handle_text(one.handle)} has a shared block of filters"
    for parent, found in filters.items():
        for one in found:
            why = _filter_obstacle(one)
            if why:
                return f"a {_kind(one)} filter of {handle_text(parent)} {why}"
    return ""


def _filter_obstacle(found: TcObject) -> str:
    kind = _kind(found)
    if kind not in _ACTIONS:
        return "is of a kind that is not known here"
    options = dict(attributes(found.attrs)).get(TCA_OPTIONS)
    if options is None or not found.handle:
        return ""
    inside = dict(attributes(options))
    if any(inside.get(number) for number in _ACTIONS[kind]):
        return "has an action, whose counters and times no request can set"
    if kind == "bpf" and _BPF_OPS not in inside:
        return "is an eBPF program, which cannot be read back"
    return ""


def _kind(found: TcObject) -> str:
    return text(dict(attributes(found.attrs)).get(TCA_KIND, b""))


def _chain(found: TcObject) -> int:
    return number(dict(attributes(found.attrs)).get(_CHAIN, bytes(4)))


def _attrs(what: str, found: TcObject) -> str:
    """The attributes that recreate the object, without counters, in hex."""
    settle = _SETTLED.get((what, _kind(found)))
    attrs = b""
    for kind, payload in attributes(found.attrs):
        if kind in _KEPT:
            settled = settle(payload) if settle and kind == TCA_OPTIONS else payload
            attrs += attribute(kind, settled)
    return attrs.hex()


def _kept(what: str, found: TcObject) -> Kept:
    info = 0 if what == "qdisc" else found.info  # `info` of a qdisc counts its users
    # HTB reports a class below its root as a root
    parent = found.parent
    if what == "class" and parent == netlink.ROOT:
        parent = found.handle & 0xFFFF0000
    return Kept(what, _kind(found), found.handle, parent, info, _attrs(what, found))


def _without(*numbers: int, flags: int = 0) -> Callable[[bytes], bytes]:
    """A function that drops counters and padding; of `flags` it keeps those that a request may
    hold: skip hardware, skip software."""

    def settle(options: bytes) -> bytes:
        made = b""
        for kind, payload in attributes(options):
            if kind in numbers:
                continue
            kept = struct.pack("=I", number(payload) & 3) if kind == flags else payload
            made += attribute(kind, kept)
        return made

    return settle


def _htb_root(options: bytes) -> bytes:
    """Options of an HTB root without the counter of direct packets, and with only the major
    version, the part that a request must name."""
    made = b""
    for kind, payload in attributes(options):
        settled = payload
        if kind == 2:  # struct tc_htb_glob
            if len(payload) != 20:
                raise damaged(f"an htb root of {len(payload)} bytes")
            version = number(payload[:4])
            settled = struct.pack("=I", version >> 16 or version) + payload[4:16] + bytes(4)
        made += attribute(kind, settled)
    return made


def _htb_class(options: bytes) -> bytes:
    """Options of an HTB class without its level, which follows from the classes below."""
    made = b""
    for kind, payload in attributes(options):
        settled = payload
        if kind == 1:  # struct tc_htb_opt
            if len(payload) != 44:
                raise damaged(f"an htb class of {len(payload)} bytes")
            settled = payload[:36] + bytes(4) + payload[40:]
        made += attribute(kind, settled)
    return made


def _u32(options: bytes) -> bytes:
    """Options of a u32 filter without hit counters: TCA_U32_PCNT, and the last word of
    TCA_U32_MARK."""
    made = b""
    for kind, payload in attributes(_without(9, 12, flags=11)(options)):
        made += attribute(kind, payload[:8] + bytes(4) if kind == 10 else payload)
    return made


_SETTLED: dict[tuple[str, str], Callable[[bytes], bytes]] = {
    ("qdisc", "htb"): _htb_root,
    ("class", "htb"): _htb_class,
    ("filter", "u32"): _u32,
    ("filter", "basic"): _without(5, 6),
    ("filter", "bpf"): _without(flags=9),
    ("filter", "matchall"): _without(4, 5, flags=3),
    ("filter", "flower"): _without(86, flags=22),
}
