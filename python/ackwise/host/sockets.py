# SPDX-License-Identifier: MIT
"""Live TCP sockets with their ACK policy and its state, as the kernel reports them by `inet_diag`.

The patch series (`linux/patches`) adds the attribute. The request is the one that `ss` sends, for
the network namespace of the process; it does not need root.
"""

import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ackwise.errors import RunError

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_ack_policies")
STOCK = "stock"

# netlink.h, sock_diag.h, inet_diag.h and tcp_states.h of Linux's uapi
_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY = 4, 20
_REQUEST, _DUMP = 0x1, 0x300
_ERROR, _DONE = 2, 3
_ERROR_MAX = 4095  # MAX_ERRNO
_INFO, _ACK_POLICY = 2, 23  # INET_DIAG_INFO, INET_DIAG_ACK_POLICY
_CHOICE, _REASON, _ACK_INFO, _STATE = 1, 2, 3, 4  # INET_ACK_POLICY_*
_TYPE = 0x3FFF  # without NLA_F_NESTED, NLA_F_NET_BYTEORDER
_STATES = (
    "", "established", "syn-sent", "syn-recv", "fin-wait-1", "fin-wait-2", "time-wait", "close",
    "close-wait", "last-ack", "listen", "closing", "syn-recv",
)  # fmt: skip
_PORTS = struct.Struct(">HH")
_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_ACK_COUNTS = struct.Struct("=QQQQ")


@dataclass(frozen=True)
class LiveSocket:
    """One TCP socket. Fields that only a policy provides are None on stock sockets."""

    local: str  # address:port
    peer: str
    state: str
    choice: str  # the policy with its parameters; "stock": unmodified Linux
    last_reason: str | None = None  # why the last ACK was sent
    acks: int | None = None  # ACKs of data sent
    segments: int | None = None  # data segments received
    owed_ns: int | None = None  # how long an ACK has been owed; 0: no ACK is owed
    wait_ns: int | None = None  # time until the ACK is due; 0: due now, or no ACK is owed
    values: dict[str, int] | None = None  # the policy's state, by name


def has_policies() -> bool:
    """Whether the running kernel has ACK policies."""
    return AVAILABLE.exists()


def live() -> list[LiveSocket]:
    """Every TCP socket of this network namespace except those in time-wait or close.

    Raises RunError when the running kernel has no ACK policies or no `inet_diag`, or when its
    answer is damaged.
    """
    if not has_policies():
        raise RunError(
            f"policy show: the running kernel ({os.uname().release}) has no ACK policies: "
            f"{AVAILABLE} does not exist; in a checkout, linux/README.md says how to build one; "
            "`ackwise lab shell` boots it; `ackwise policy show NAME` describes a policy"
        )
    try:
        found = [s for family in (socket.AF_INET, socket.AF_INET6) for s in _dump(family)]
    except OSError as problem:
        raise RunError(
            f"policy show: the kernel does not list its sockets: {problem.strerror}; this needs "
            "CONFIG_INET_TCP_DIAG (module tcp_diag)"
        ) from None
    except (struct.error, LookupError, ValueError):
        raise RunError("policy show: the kernel's list of its sockets is damaged") from None
    return sorted(found, key=lambda s: (s.choice == STOCK, s.state, s.local, s.peer))


def _dump(family: int) -> Iterator[LiveSocket]:
    states = sum(1 << i for i, name in enumerate(_STATES) if name not in ("", "time-wait", "close"))
    wanted = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 1 << (_INFO - 1), 0, states)
    request = wanted + bytes(48)  # any address
    head = _HEADER.pack(16 + len(request), _SOCK_DIAG_BY_FAMILY, _REQUEST | _DUMP, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as netlink:
        netlink.send(head + request)
        while True:
            for kind, body in _messages(netlink.recv(1 << 18)):
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    code = min(-struct.unpack_from("=i", body)[0], _ERROR_MAX)
                    raise OSError(code, os.strerror(code))
                yield read_message(body)


def _messages(datagram: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and body of each message; ValueError for a length that does not fit."""
    while datagram:
        length, kind, *_ = _HEADER.unpack_from(datagram)
        if not _HEADER.size <= length <= len(datagram):
            raise ValueError
        yield kind, datagram[_HEADER.size : length]
        datagram = datagram[(length + 3) & ~3 :]


def read_message(body: bytes) -> LiveSocket:
    """One `struct inet_diag_msg` with its attributes. struct.error, LookupError or ValueError when
    it is damaged."""
    family, state = body[0], body[1]
    local_port, peer_port = _PORTS.unpack_from(body, 4)
    size = 4 if family == socket.AF_INET else 16
    local, peer = (
        _address(family, body[at : at + size], port)
        for at, port in ((8, local_port), (24, peer_port))
    )
    name = _STATES[state] if state < len(_STATES) else str(state)
    policy = dict(_attributes(body[72:])).get(_ACK_POLICY)
    if policy is None:
        return LiveSocket(local, peer, name, STOCK)
    fields = dict(_attributes(policy))
    acks, segments, owed_ns, wait_ns = _ACK_COUNTS.unpack_from(fields[_ACK_INFO])
    return LiveSocket(
        local, peer, name, _text(fields[_CHOICE]), _text(fields[_REASON]) if acks else None,
        acks, segments, owed_ns, wait_ns, read_values(_text(fields.get(_STATE, b""))),
    )  # fmt: skip


def read_values(text: str) -> dict[str, int]:
    """Values parsed from the kernel's format `name=value,...`."""
    pairs = (item.partition("=") for item in text.split(",") if item)
    return {name: int(value) for name, _, value in pairs}


def _address(family: int, packed: bytes, port: int) -> str:
    text = socket.inet_ntop(family, packed)
    return f"[{text}]:{port or '*'}" if family == socket.AF_INET6 else f"{text}:{port or '*'}"


def _text(data: bytes) -> str:
    return data.split(b"\0", 1)[0].decode("ascii", "replace")


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < 4:
            return
        yield kind & _TYPE, data[at + 4 : at + length]
        at += (length + 3) & ~3
