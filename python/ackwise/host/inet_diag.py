# SPDX-License-Identifier: MIT
"""The kernel's list of TCP sockets, read through `inet_diag` one datagram at a time, and its
description of single sockets. Neither needs root.

The kernel fills a datagram when the previous one is read. A list that is read slowly therefore
costs nothing in between, and each socket is described at the moment its datagram was filled.
"""

import os
import socket
import struct
import time
from dataclasses import dataclass

from ackwise.errors import RunError

# netlink.h and inet_diag.h of Linux's uapi
_NETLINK_SOCK_DIAG = 4
_TCPDIAG_GETSOCK = 18  # lists IPv4 and IPv6 in one walk; the newer request needs two walks
_BY_FAMILY = 20  # SOCK_DIAG_BY_FAMILY
_REQUEST, _REQUEST_DUMP = 0x1, 0x301
_ERROR, _DONE = 2, 3
_ANY_COOKIE = b"\xff" * 8
_BYTECODE = 1  # INET_DIAG_REQ_BYTECODE
# bits for INET_DIAG_INFO, VEGASINFO (which BBR answers), CONG and SKMEMINFO
_EXTENSIONS = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 6
_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_DATAGRAM_BYTES_MAX = 1 << 16

STATES = {
    "established": 1, "syn-sent": 2, "syn-recv": 3, "fin-wait-1": 4, "fin-wait-2": 5,
    "time-wait": 6, "closed": 7, "close-wait": 8, "last-ack": 9, "listening": 10, "closing": 11,
}  # fmt: skip


@dataclass(frozen=True)
class Datagram:
    """A datagram from the kernel, and the time it was written."""

    data: bytes
    time_us: int  # time.monotonic() in microseconds


class Listing:
    """One walk through the sockets of this network namespace; RunError when it cannot start."""

    def __init__(self, states: int, bytecode: bytes = b"") -> None:
        asked = struct.pack("=BBBB48xII", socket.AF_UNSPEC, 0, 0, _EXTENSIONS, states, 0)
        if bytecode:
            asked += _ATTRIBUTE.pack(_ATTRIBUTE.size + len(bytecode), _BYTECODE) + bytecode
        head = _HEADER.pack(_HEADER.size + len(asked), _TCPDIAG_GETSOCK, _REQUEST_DUMP, 0, 0)
        self._netlink = _netlink()
        _send(self._netlink, head + asked)
        self._filled_us = now_us()

    def receive(self) -> Datagram:
        """The next datagram; RunError when there is none."""
        data = _receive(self._netlink)
        filled_us, self._filled_us = self._filled_us, now_us()
        return Datagram(data, filled_us)

    def close(self) -> None:
        """Ends the walk."""
        self._netlink.close()


class Single:
    """Requests for single sockets of this network namespace, identified by their endpoints."""

    def __init__(self) -> None:
        self._netlink = _netlink()

    def describe(self, family: int, ends: bytes) -> bytes:
        """The message about the socket with these endpoints, which are the start of a `struct
        inet_diag_sockid`; b"" when the socket is gone. The request gives the socket a cookie."""
        asked = struct.pack("=BBBxI", family, socket.IPPROTO_TCP, _EXTENSIONS, 0)
        asked += ends + _ANY_COOKIE
        head = _HEADER.pack(_HEADER.size + len(asked), _BY_FAMILY, _REQUEST, 0, 0)
        _send(self._netlink, head + asked)
        data = _receive(self._netlink)
        _length, kind, *_ = _HEADER.unpack_from(data)
        # when the connection is gone, the listening server's socket answers instead
        if kind == _ERROR or data[_HEADER.size + 1] == STATES["listening"]:
            return b""
        return data

    def close(self) -> None:
        """Closes the netlink socket."""
        self._netlink.close()


def done() -> bytes:
    """The message that ends a list."""
    return _HEADER.pack(_HEADER.size + 4, _DONE, 0, 0, 0) + bytes(4)


def now_us() -> int:
    """Current time.monotonic() in microseconds."""
    return time.monotonic_ns() // 1000


def _netlink() -> socket.socket:
    try:
        return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
    except OSError as problem:
        raise refused(problem.errno or 0) from None


def _send(netlink: socket.socket, request: bytes) -> None:
    try:
        netlink.send(request)
    except OSError as problem:
        raise refused(problem.errno or 0) from None


def _receive(netlink: socket.socket) -> bytes:
    try:
        return netlink.recv(_DATAGRAM_BYTES_MAX)
    except OSError as problem:
        raise refused(problem.errno or 0) from None


def refused(errno: int) -> RunError:
    """The error when the kernel lists no sockets, with the remedy."""
    remedies = {
        1: "a filter of system calls or a security module forbids it",  # EPERM
        2: "it needs CONFIG_INET_TCP_DIAG (module tcp_diag)",  # ENOENT
        13: "a security module forbids it",  # EACCES
        22: "this kernel does not know the filter",  # EINVAL
        97: "AF_NETLINK is not allowed here, see RestrictAddressFamilies= of the unit",
    }
    more = f"; {remedies[errno]}" if errno in remedies else ""
    return RunError(f"the kernel does not list its TCP sockets: {os.strerror(errno)}{more}")
