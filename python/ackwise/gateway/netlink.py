# SPDX-License-Identifier: MIT
"""Traffic control over rtnetlink: messages, dumps, and many changes in one datagram.

A datagram is worked off inside one system call. A process that is killed has therefore made all of
its changes or none: that is what `up` and `down` rest on.

Why no library: pyroute2 0.9.7 declares the instructions of a classic BPF filter as one 32-bit
number and so cannot send them, has no HTB link layers, and hands out decoded messages, whereas a
foreign queue is put back best by the kernel's own bytes.

Source: Linux, include/uapi/linux/{netlink,rtnetlink,pkt_sched,if_link}.h; rtnetlink(7).
"""

import contextlib
import errno
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from ackwise.errors import RunError

NEWLINK, GETLINK = 16, 18
NEWQDISC, DELQDISC, GETQDISC = 36, 37, 38
NEWTCLASS, GETTCLASS = 40, 42
NEWTFILTER, GETTFILTER = 44, 46

ROOT = 0xFFFFFFFF
INGRESS = 0xFFFFFFF1  # also clsact

_ERROR, _DONE = 2, 3
_REQUEST, _ACK, _DUMP = 0x1, 0x4, 0x300
CREATE_ONLY = 0x400 | 0x200  # NLM_F_CREATE | NLM_F_EXCL
_DUMP_INTERRUPTED = 0x10
_EXPLAINED = 0x200  # NLM_F_ACK_TLVS
_CAPPED = 0x100
_TEXT = 1  # NLMSGERR_ATTR_MSG
_SOL_NETLINK, _EXT_ACK, _CAP_ACK, _STRICT = 270, 11, 10, 12
_RECEIVE_BYTES = 1 << 18

TCA_KIND, TCA_OPTIONS, TCA_STATS2 = 1, 2, 7
NESTED = 0x8000
_TYPE_MASK = 0x3FFF


def attribute(kind: int, payload: bytes) -> bytes:
    """One attribute (struct nlattr), padded."""
    return struct.pack("=HH", len(payload) + 4, kind) + payload + bytes(-len(payload) % 4)


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Type (without flags) and payload of each attribute; what is damaged ends the list."""
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if not 4 <= length <= len(data):
            return
        yield kind & _TYPE_MASK, data[4:length]
        data = data[(length + 3) & ~3 :]


def handle_text(handle: int) -> str:
    """As tc writes it: "ac:10", "ac:"."""
    return f"{handle >> 16:x}:{handle & 0xFFFF:x}" if handle & 0xFFFF else f"{handle >> 16:x}:"


@dataclass(frozen=True)
class Message:
    """One change. `step` says in words what it does, for the message when it fails."""

    step: str
    kind: int
    flags: int
    body: bytes

    @classmethod
    def traffic(
        cls,
        step: str,
        kind: int,
        ifindex: int,
        *,
        handle: int = 0,
        parent: int = 0,
        info: int = 0,
        attrs: bytes = b"",
        flags: int = CREATE_ONLY,
    ) -> Self:
        """A message about a qdisc, a class or a filter (struct tcmsg)."""
        head = struct.pack("=BxxxiIII", socket.AF_UNSPEC, ifindex, handle, parent, info)
        return cls(step, kind, flags, head + attrs)


@dataclass(frozen=True)
class Refused:
    """A change that the kernel refused, with its message."""

    step: str
    number: int
    words: str

    def __str__(self) -> str:
        return f"{self.step}: {self.words}"


@dataclass(frozen=True)
class TcObject:
    """A qdisc, class or filter as the kernel reports it."""

    ifindex: int
    handle: int
    parent: int
    info: int
    attrs: bytes


@dataclass(frozen=True)
class Interface:
    """An interface."""

    name: str
    ifindex: int
    hardware: int  # ARPHRD_*
    mtu_bytes: int
    transmit_queues: int
    up: bool
    address: bytes  # of the link layer
    queue_packets: int  # txqueuelen, which HTB reports as direct_qlen


class Rtnetlink:
    """A socket to the kernel, in the network namespace of the thread that opens it."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._sequence = 0
        for option in (_EXT_ACK, _CAP_ACK, _STRICT):
            with contextlib.suppress(OSError):  # older than 4.12, 4.2, 4.20: fewer words
                self._socket.setsockopt(_SOL_NETLINK, option, 1)
        self._socket.bind((0, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _value: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def change(self, messages: Sequence[Message]) -> list[Refused]:
        """Sends all messages to the kernel in one datagram; returns what it refused. The kernel
        goes on with the messages behind a refused one."""
        first = self._sequence + 1
        datagram = b"".join(self._framed(m.kind, m.flags | _ACK, m.body) for m in messages)
        self._socket.send(datagram)
        refused = []
        open_ends = len(messages)
        while open_ends:
            for kind, flags, sequence, body in self._received():
                place = sequence - first
                if kind != _ERROR or not 0 <= place < len(messages):
                    continue
                open_ends -= 1
                (code,) = struct.unpack_from("=i", body)
                if code:
                    step = messages[place].step
                    refused.append(Refused(step, -code, _words(-code, flags, body)))
        return refused

    def traffic(self, kind: int, ifindex: int, *, parent: int = 0) -> list[TcObject]:
        """All objects of a kind (GETQDISC, GETTCLASS, GETTFILTER) on an interface."""
        head = struct.pack("=BxxxiIII", socket.AF_UNSPEC, ifindex, 0, parent, 0)
        found = []
        for body in self._dump(kind, head):
            at, handle, above, info = struct.unpack_from("=iIII", body, 4)
            if at == ifindex:
                found.append(TcObject(at, handle, above, info, body[20:]))
        return found

    def link(self, name: str) -> Interface | None:
        """The interface of that name in this namespace."""
        head = struct.pack("=BxHiII", socket.AF_UNSPEC, 0, 0, 0, 0)
        for body in self._dump(GETLINK, head):
            hardware, ifindex, flags = struct.unpack_from("=HiI", body, 2)
            told = dict(attributes(body[16:]))
            if told.get(3, b"").rstrip(b"\0") != os.fsencode(name):
                continue
            mtu = struct.unpack("=I", told.get(4, bytes(4)))[0]
            queues = struct.unpack("=I", told.get(31, b"\1\0\0\0"))[0]
            length = struct.unpack("=I", told.get(13, bytes(4)))[0]
            address = told.get(1, b"")
            return Interface(name, ifindex, hardware, mtu, queues, bool(flags & 1), address, length)
        return None

    def _framed(self, kind: int, flags: int, body: bytes) -> bytes:
        self._sequence += 1
        head = struct.pack("=IHHII", len(body) + 16, kind, flags | _REQUEST, self._sequence, 0)
        return head + body + bytes(-len(body) % 4)

    def _received(self) -> list[tuple[int, int, int, bytes]]:
        data = self._socket.recv(_RECEIVE_BYTES)
        found = []
        while len(data) >= 16:
            length, kind, flags, sequence, _port = struct.unpack_from("=IHHII", data)
            if not 16 <= length <= len(data):
                break
            found.append((kind, flags, sequence, data[16:length]))
            data = data[(length + 3) & ~3 :]
        return found

    def _dump(self, kind: int, head: bytes) -> list[bytes]:
        for _ in range(8):  # repeated when it changed during the dump
            self._socket.send(self._framed(kind, _DUMP, head))
            bodies, whole = self._dumped(kind)
            if whole:
                return bodies
        raise RunError("the interface changes faster than it can be read")

    def _dumped(self, asked: int) -> tuple[list[bytes], bool]:
        bodies: list[bytes] = []
        whole = True
        while True:
            for kind, flags, sequence, body in self._received():
                if sequence != self._sequence:
                    continue
                whole = whole and not flags & _DUMP_INTERRUPTED
                if kind in (_DONE, _ERROR):
                    code = -struct.unpack_from("=i", body)[0] if len(body) >= 4 else 0
                    if code > 0 and code not in (errno.ENODEV, errno.EINVAL, errno.EOPNOTSUPP):
                        raise RunError(f"the kernel does not tell: {os.strerror(code)}")
                    return bodies, whole
                if kind == asked - 2:  # RTM_GETx is RTM_NEWx + 2
                    bodies.append(body)


def _words(code: int, flags: int, body: bytes) -> str:
    said = os.strerror(code)
    if flags & _EXPLAINED:
        start = 4 + 16  # error code, header of what was asked
        if not flags & _CAPPED:
            start = 4 + ((struct.unpack_from("=I", body, 4)[0] + 3) & ~3)
        text = dict(attributes(body[start:])).get(_TEXT, b"").rstrip(b"\0").decode(errors="replace")
        if text:
            return f"{text.rstrip('.')} ({said})"
    return said
