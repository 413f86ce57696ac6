# SPDX-License-Identifier: MIT
"""Traffic control over rtnetlink: messages, dumps, and many changes in one datagram.

The kernel processes a datagram within one system call, so a killed process has made all of its
changes or none. A datagram that is too large for the kernel is sent in halves; a change that must
not be left half done is therefore noted in the state file first.

Parsing is strict: a length that does not fit is a RunError, never a shorter list, because a queue
that was not read would not be restored. Only answers that the kernel sent to this socket for this
request count.

Why no library: pyroute2 0.9.7 declares the instructions of a classic BPF filter as one 32-bit
number and so cannot send them, has no HTB link layers, and returns decoded messages, whereas a
foreign queue is best restored from the kernel's own bytes.

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
NEWCHAIN, GETCHAIN = 100, 102

ROOT = 0xFFFFFFFF
INGRESS = 0xFFFFFFF1  # the same as clsact

_ERROR, _DONE = 2, 3
_REQUEST, _ACK, _DUMP = 0x1, 0x4, 0x300
CREATE_ONLY = 0x400 | 0x200  # NLM_F_CREATE | NLM_F_EXCL
_DUMP_INTERRUPTED = 0x10
_EXPLAINED = 0x200  # NLM_F_ACK_TLVS
_CAPPED = 0x100
_TEXT = 1  # NLMSGERR_ATTR_MSG
_SOL_NETLINK, _EXT_ACK, _CAP_ACK, _STRICT = 270, 11, 10, 12
_RECEIVE_BYTES = 1 << 18  # a dump comes in datagrams of at most 32 KiB
_SEND_BYTES = 1 << 22
_ANSWER_BYTES = 1 << 22
_SNDBUFFORCE, _RCVBUFFORCE = 32, 33
_TOO_LARGE = (errno.EMSGSIZE, errno.ENOBUFS, errno.ENOMEM)
_ANSWER_SECONDS = 30.0
_DUMPS_MAX = 8
_ERROR_MAX = 4095  # MAX_ERRNO

TCA_KIND, TCA_OPTIONS, TCA_STATS2 = 1, 2, 7
NESTED = 0x8000
_TYPE_MASK = 0x3FFF


_ATTRIBUTE = struct.Struct("=HH")  # struct nlattr
_HEADER = struct.Struct("=IHHII")  # struct nlmsghdr
_TRAFFIC = struct.Struct("=BxxxiIII")  # struct tcmsg
_LINK = struct.Struct("=BxHiII")  # struct ifinfomsg


def attribute(kind: int, payload: bytes) -> bytes:
    """One netlink attribute, padded."""
    return _ATTRIBUTE.pack(len(payload) + 4, kind) + payload + bytes(-len(payload) % 4)


def damaged(what: str) -> RunError:
    """The error for an answer that no correct kernel sends."""
    return RunError(f"the kernel's answer is damaged: {what}")


def attributes(data: bytes) -> list[tuple[int, bytes]]:
    """Type (without flags) and payload of each attribute. RunError when a length is wrong."""
    found = []
    at = 0
    while len(data) - at >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if not _ATTRIBUTE.size <= length <= len(data) - at:
            raise damaged(f"an attribute of {length} bytes among {len(data) - at}")
        found.append((kind & _TYPE_MASK, data[at + _ATTRIBUTE.size : at + length]))
        at += (length + 3) & ~3
    if any(data[at:]):
        raise damaged(f"{len(data) - at} bytes behind the attributes")
    return found


def number(payload: bytes, layout: str = "=I") -> int:
    """The integer in an attribute; RunError for another size."""
    if len(payload) != struct.calcsize(layout):
        raise damaged(f"a number of {len(payload)} bytes")
    return int(struct.unpack(layout, payload)[0])


def text(payload: bytes) -> str:
    """The string in an attribute, up to its NUL."""
    return payload.partition(b"\0")[0].decode(errors="replace")


def handle_text(handle: int) -> str:
    """A handle in tc's notation: "ac:10", "ac:"."""
    return f"{handle >> 16:x}:{handle & 0xFFFF:x}" if handle & 0xFFFF else f"{handle >> 16:x}:"


@dataclass(frozen=True)
class Message:
    """One change. `step` names it for the message when it fails."""

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
        """A message about a qdisc, a class, a filter or a chain."""
        head = _TRAFFIC.pack(socket.AF_UNSPEC, ifindex, handle, parent, info)
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
    """A qdisc, class, filter or chain as the kernel reports it."""

    ifindex: int
    handle: int
    parent: int
    info: int
    attrs: bytes


@dataclass(frozen=True)
class Interface:
    """A network interface as the kernel reports it."""

    name: str
    ifindex: int
    hardware: int  # ARPHRD_*
    mtu_bytes: int
    transmit_queues: int
    up: bool
    address: bytes  # link-layer address
    queue_packets: int  # txqueuelen, which HTB reports as direct_qlen


@dataclass(frozen=True)
class Answer:
    """One message from the kernel. `port`: the socket whose request it answers."""

    kind: int
    flags: int
    sequence: int
    port: int
    body: bytes

    @property
    def error(self) -> int:
        """The error number of an error message or of the end of a dump; 0: success."""
        code = int(struct.unpack_from("=i", self.body)[0]) if self.body else 0
        return min(abs(code), _ERROR_MAX)


def answers(datagram: bytes) -> list[Answer]:
    """The messages of a datagram. RunError when a length is wrong."""
    found = []
    at = 0
    while at < len(datagram):
        if len(datagram) - at < _HEADER.size:
            raise damaged(f"{len(datagram) - at} bytes behind the messages")
        length, kind, flags, sequence, port = _HEADER.unpack_from(datagram, at)
        if not _HEADER.size <= length <= len(datagram) - at:
            raise damaged(f"a message of {length} bytes among {len(datagram) - at}")
        body = datagram[at + _HEADER.size : at + length]
        if (kind == _ERROR and len(body) < 4) or (kind == _DONE and 0 < len(body) < 4):
            raise damaged("an error message without an error number")
        found.append(Answer(kind, flags, sequence, port, body))
        at += (length + 3) & ~3
    return found


def traffic_object(body: bytes) -> TcObject:
    """A qdisc, class, filter or chain. RunError for a message that is too short."""
    if len(body) < _TRAFFIC.size:
        raise damaged(f"a queue in {len(body)} bytes")
    _, ifindex, handle, parent, info = _TRAFFIC.unpack_from(body)
    return TcObject(ifindex, handle, parent, info, body[_TRAFFIC.size :])


def interface(body: bytes) -> Interface:
    """A network interface. RunError for a message that is too short or holds a wrong length."""
    if len(body) < _LINK.size:
        raise damaged(f"an interface in {len(body)} bytes")
    _, hardware, ifindex, flags, _ = _LINK.unpack_from(body)
    found = dict(attributes(body[_LINK.size :]))
    return Interface(
        name=os.fsdecode(found.get(3, b"").partition(b"\0")[0]),
        ifindex=ifindex,
        hardware=hardware,
        mtu_bytes=number(found.get(4, bytes(4))),
        transmit_queues=number(found.get(31, struct.pack("=I", 1))),
        up=bool(flags & 1),
        address=found.get(1, b""),
        queue_packets=number(found.get(13, bytes(4))),
    )


class Rtnetlink:
    """A socket to the kernel, in the network namespace of the thread that opens it.

    RunError whenever the kernel cannot be asked, or does not answer as it should.
    """

    def __init__(self) -> None:
        with _explained():
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
            self._sequence = 0
            for option in (_EXT_ACK, _CAP_ACK, _STRICT):
                with contextlib.suppress(OSError):  # Linux 4.20 or newer explains more
                    self._socket.setsockopt(_SOL_NETLINK, option, 1)
            for forced, plain, size_bytes in (
                (_SNDBUFFORCE, socket.SO_SNDBUF, _SEND_BYTES),
                (_RCVBUFFORCE, socket.SO_RCVBUF, _ANSWER_BYTES),
            ):
                try:
                    self._socket.setsockopt(socket.SOL_SOCKET, forced, size_bytes)
                except OSError:  # in a user namespace the sysctl is the limit
                    self._socket.setsockopt(socket.SOL_SOCKET, plain, size_bytes)
            self._socket.bind((0, 0))
            self._port = int(self._socket.getsockname()[0])

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
        """Sends all messages to the kernel, in one datagram if it fits, and returns the refused
        changes. The kernel continues with the messages after a refused one."""
        if not messages:
            return []
        first = self._sequence + 1
        # The kernel reports every error but acknowledges only the last message: thousands of
        # acknowledgments would overflow the socket.
        last = len(messages) - 1
        datagram = b"".join(
            self._framed(m.kind, m.flags | (_ACK if i == last else 0), m.body)
            for i, m in enumerate(messages)
        )
        with _explained():
            try:
                self._socket.send(datagram)
            except OSError as problem:
                if problem.errno not in _TOO_LARGE or not last:
                    raise
                half = len(messages) // 2
                return self.change(messages[:half]) + self.change(messages[half:])
        return self._refused(messages, first)

    def _refused(self, messages: Sequence[Message], first: int) -> list[Refused]:
        """The errors of a datagram whose first message has the number `first`."""
        refused: list[Refused] = []
        complete = True
        while True:
            try:
                received = self._received(wait=complete)
            except OverflowError:
                complete = False  # the datagrams that fitted are still to be read
                continue
            except BlockingIOError:
                lost = "there were more errors than the socket has room for"
                return [*refused, Refused("read the kernel's answers", errno.ENOBUFS, lost)]
            for answer in received:
                place = answer.sequence - first
                if answer.kind != _ERROR or not 0 <= place < len(messages):
                    continue
                if answer.error:
                    refused.append(Refused(messages[place].step, answer.error, _words(answer)))
                if place == len(messages) - 1 and complete:
                    return refused

    def traffic(self, kind: int, ifindex: int, *, parent: int = 0) -> list[TcObject]:
        """All objects of a kind (GETQDISC, GETTCLASS, GETTFILTER, GETCHAIN) on an interface."""
        return self.known_traffic(kind, ifindex, parent=parent) or []

    def known_traffic(self, kind: int, ifindex: int, *, parent: int = 0) -> list[TcObject] | None:
        """Like `traffic`; None from a kernel that does not know such objects."""
        head = _TRAFFIC.pack(socket.AF_UNSPEC, ifindex, 0, parent, 0)
        bodies = self._dump(kind, head)
        if bodies is None:
            return None
        found = [traffic_object(body) for body in bodies]
        return [one for one in found if one.ifindex == ifindex]

    def link(self, name: str) -> Interface | None:
        """The interface of that name in this namespace."""
        return next((one for one in self.links() if one.name == name), None)

    def links(self) -> list[Interface]:
        """The interfaces of this namespace."""
        head = _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0)
        return [interface(body) for body in self._dump(GETLINK, head) or ()]

    def _framed(self, kind: int, flags: int, body: bytes) -> bytes:
        self._sequence += 1
        head = _HEADER.pack(len(body) + 16, kind, flags | _REQUEST, self._sequence, 0)
        return head + body + bytes(-len(body) % 4)

    def _received(self, *, wait: bool = True) -> list[Answer]:
        """The next datagram from the kernel to this socket. OverflowError when answers were lost;
        BlockingIOError when there is none and `wait` is false."""
        self._socket.settimeout(_ANSWER_SECONDS if wait else 0)
        while True:
            try:
                data, _, flags, (sender, _) = self._socket.recvmsg(_RECEIVE_BYTES)
            except BlockingIOError:
                raise
            except OSError as problem:
                if problem.errno == errno.ENOBUFS:
                    raise OverflowError from None
                raise _unanswered(problem) from None
            if sender:  # from another process, which may send to any port
                continue
            if flags & socket.MSG_TRUNC:
                raise damaged(f"a datagram of more than {_RECEIVE_BYTES} bytes")
            return [one for one in answers(data) if one.port == self._port]

    def _dump(self, kind: int, head: bytes) -> list[bytes] | None:
        """The bodies of a dump; None when the kernel does not know this kind of dump."""
        for _ in range(_DUMPS_MAX):  # repeated when it changed during the dump
            with _explained():
                self._socket.send(self._framed(kind, _DUMP, head))
            bodies, whole = self._dumped(kind)
            if whole:
                return bodies
        raise RunError("the interface changes faster than it can be read; try again")

    def _dumped(self, asked: int) -> tuple[list[bytes] | None, bool]:
        """The bodies, and whether the objects stayed unchanged during the dump."""
        bodies: list[bytes] = []
        whole = True
        while True:
            try:
                received = self._received()
            except OverflowError:
                whole = False
                continue
            for answer in received:
                if answer.sequence != self._sequence:
                    continue
                whole = whole and not answer.flags & _DUMP_INTERRUPTED
                if answer.kind in (_DONE, _ERROR):
                    if answer.error == errno.EOPNOTSUPP:
                        return None, True
                    if answer.error:
                        said = os.strerror(answer.error)
                        raise RunError(f"the kernel does not list the queues: {said}")
                    return bodies, whole
                if answer.kind == asked - 2:  # RTM_GETx is RTM_NEWx + 2
                    bodies.append(answer.body)


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise _unanswered(problem) from None


def _unanswered(problem: OSError) -> RunError:
    if isinstance(problem, TimeoutError):
        return RunError(f"the kernel did not answer within {_ANSWER_SECONDS:.0f} s")
    return RunError(f"the kernel cannot be asked about queues: {problem.strerror}")


def _words(answer: Answer) -> str:
    """The error in words, with the kernel's own explanation if there is one."""
    said = os.strerror(answer.error)
    if not answer.flags & _EXPLAINED:
        return said
    start = 4 + _HEADER.size  # error number, header of the request
    if not answer.flags & _CAPPED:
        (asked,) = struct.unpack_from("=I", answer.body, 4) if len(answer.body) >= 8 else (0,)
        start = 4 + ((asked + 3) & ~3)
    explained = text(dict(attributes(answer.body[start:])).get(_TEXT, b""))
    return f"{explained.rstrip('.')} ({said})" if explained else said
