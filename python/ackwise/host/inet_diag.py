# SPDX-License-Identifier: MIT
"""The kernel's list of TCP sockets by `inet_diag`, datagram by datagram; it does not need root.

The kernel fills a datagram when the one before it is taken: a list that is read slowly costs
nothing meanwhile, and each socket is described at the moment its datagram was filled.
"""

import os
import socket
import struct
import time
from dataclasses import dataclass

from ackwise.errors import RunError

# Linux's uapi: netlink.h, inet_diag.h
_NETLINK_SOCK_DIAG = 4
_TCPDIAG_GETSOCK = 18  # lists IPv4 and IPv6 in one walk; the newer request needs two
_REQUEST_DUMP = 0x301
_BYTECODE = 1  # INET_DIAG_REQ_BYTECODE
# INET_DIAG_INFO, VEGASINFO (BBR answers it), CONG and SKMEMINFO, as bits
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
    """Bytes of the kernel, and when it wrote them."""

    data: bytes
    time_us: int  # of time.monotonic


class Listing:
    """One walk through the sockets of this network namespace; RunError when it cannot begin."""

    def __init__(self, states: int, bytecode: bytes = b"") -> None:
        asked = struct.pack("=BBBB48xII", socket.AF_UNSPEC, 0, 0, _EXTENSIONS, states, 0)
        if bytecode:
            asked += _ATTRIBUTE.pack(_ATTRIBUTE.size + len(bytecode), _BYTECODE) + bytecode
        head = _HEADER.pack(_HEADER.size + len(asked), _TCPDIAG_GETSOCK, _REQUEST_DUMP, 0, 0)
        try:
            self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
            self._netlink.send(head + asked)
        except OSError as problem:
            raise refused(problem.errno or 0) from None
        self._filled_us = _now_us()

    def receive(self) -> Datagram:
        """The next datagram; RunError when there is none."""
        try:
            data = self._netlink.recv(_DATAGRAM_BYTES_MAX)
        except OSError as problem:
            raise refused(problem.errno or 0) from None
        filled_us, self._filled_us = self._filled_us, _now_us()
        return Datagram(data, filled_us)

    def close(self) -> None:
        """Ends the walk."""
        self._netlink.close()


def _now_us() -> int:
    return time.monotonic_ns() // 1000


def refused(errno: int) -> RunError:
    """Why the kernel lists no sockets, with the remedy."""
    remedies = {
        1: "a filter of system calls or a security module forbids it",  # EPERM
        2: "it needs CONFIG_INET_TCP_DIAG (module tcp_diag)",  # ENOENT
        13: "a security module forbids it",  # EACCES
        22: "this kernel does not know the filter",  # EINVAL
        97: "AF_NETLINK is not allowed here, see RestrictAddressFamilies= of the unit",
    }
    more = f"; {remedies[errno]}" if errno in remedies else ""
    return RunError(f"the kernel does not list its TCP sockets: {os.strerror(errno)}{more}")
