# SPDX-License-Identifier: MIT
"""A netlink socket that replays recorded answers.

Format: datagrams, each preceded by its length in two bytes. A sequence number or port of 0 stands
for that of the request being answered, so that a recording fits any order of requests.
"""

import contextlib
import struct
from collections.abc import Iterator
from typing import Any
from unittest import mock

_LENGTH = struct.Struct("<H")
_SEQUENCE, _PORT = struct.Struct("=I"), 4711


class NothingMore(Exception):
    """The answers are used up; a real kernel would have continued."""


def split(data: bytes) -> list[bytes]:
    """The datagrams of a recording; the last may be cut short."""
    found = []
    while len(data) >= _LENGTH.size:
        (length,) = _LENGTH.unpack_from(data)
        found.append(data[_LENGTH.size : _LENGTH.size + length])
        data = data[_LENGTH.size + length :]
    return found


def joined(datagrams: list[bytes]) -> bytes:
    """The recording that contains these datagrams."""
    return b"".join(_LENGTH.pack(len(one)) + one for one in datagrams)


def _headers(datagram: bytes | bytearray) -> Iterator[int]:
    """Offsets of a datagram's messages."""
    at = 0
    while at + 16 <= len(datagram):
        yield at
        (length,) = _SEQUENCE.unpack_from(datagram, at)
        at += max(16, length + 3 & ~3)


def unnumbered(datagram: bytes) -> bytes:
    """The datagram with sequence numbers and ports set to 0, as in a recording."""
    made = bytearray(datagram)
    for at in _headers(datagram):
        made[at + 8 : at + 16] = bytes(8)
    return bytes(made)


class AnsweringSocket:
    """A socket that accepts any request and returns the recorded datagrams one after the other."""

    def __init__(self, datagrams: list[bytes]) -> None:
        self._left = iter(datagrams)
        self._sequence = 0

    def send(self, request: bytes) -> int:
        """Notes the request's sequence number; the last one sent is the one answered."""
        for at in _headers(request):
            (self._sequence,) = _SEQUENCE.unpack_from(request, at + 8)
        return len(request)

    def recv(self, _size: int) -> bytes:
        """The next datagram; NothingMore at the end."""
        datagram = bytearray(next(self._left, None) or self._end())
        for at in _headers(datagram):
            for place, value in ((8, self._sequence), (12, _PORT)):
                if not any(datagram[at + place : at + place + 4]):
                    _SEQUENCE.pack_into(datagram, at + place, value)
        return bytes(datagram)

    def recvmsg(self, size: int) -> tuple[bytes, list[Any], int, tuple[int, int]]:
        """Like recv(), with the kernel as the sender."""
        return self.recv(size), [], 0, (0, 0)

    def _end(self) -> bytes:
        raise NothingMore

    def getsockname(self) -> tuple[int, int]:
        """The socket's address."""
        return _PORT, 0

    def bind(self, _address: object) -> None:
        """Nothing to do."""

    def setsockopt(self, *_option: object) -> None:
        """Nothing to do."""

    def settimeout(self, _seconds: object) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""

    def __enter__(self) -> "AnsweringSocket":
        return self

    def __exit__(self, *_problem: object) -> None:
        pass


@contextlib.contextmanager
def answering(datagrams: list[bytes]) -> Iterator[None]:
    """Every socket opened in the block replays these answers; the block ends quietly when they are
    used up."""
    with (
        mock.patch("socket.socket", lambda *_kind: AnsweringSocket(datagrams)),
        contextlib.suppress(NothingMore),
    ):
        yield
