# SPDX-License-Identifier: MIT
"""Selection of sockets in the syntax of `ss`, compiled to `inet_diag` bytecode: the kernel filters.

    [state NAME]... [EXPRESSION]
    EXPRESSION  src|dst ADDRESS[/LENGTH][:PORT], src|dst :PORT, sport|dport OPERATOR :PORT,
                and, or, not, ( )

A condition that holds continues after the end of its bytecode; one that fails jumps 4 bytes beyond.
"""

import ipaddress
import re
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from ackwise.errors import InputError, quoted, suggestion
from ackwise.host.inet_diag import STATES

# inet_diag.h
_JMP, _S_GE, _S_LE, _D_GE, _D_LE, _S_COND, _D_COND = 1, 2, 3, 4, 5, 7, 8
_OP = struct.Struct("=BBH")
_HOST = struct.Struct("=BBxxi")
_PORT_MAX = 65_535
_ANY_PORT = -1
_BYTES_MAX = 32_768  # jumps have 16 bits
_DEPTH_MAX = 100

# States in which data may be in flight. Sockets in other states have no account.
_DEFAULT_STATES = (
    "established", "syn-sent", "fin-wait-1", "fin-wait-2", "close-wait", "last-ack", "closing",
)  # fmt: skip
_GROUPS = {
    "connected": _DEFAULT_STATES,
    "all": tuple(name for name in STATES if name not in ("time-wait", "syn-recv")),
}
_OPERATORS = {
    "=": "=", "==": "=", "eq": "=", "!=": "!=", "ne": "!=", "neq": "!=", "<": "<", "lt": "<",
    "<=": "<=", "le": "<=", "leq": "<=", ">": ">", "gt": ">", ">=": ">=", "ge": ">=", "geq": ">=",
}  # fmt: skip
_AND, _OR, _NOT = ("and", "&", "&&"), ("or", "|", "||"), ("not", "!")
_FIRST = ("src", "dst", "sport", "dport", "not", "(")
_TOKEN = re.compile(r"[()]|&&?|\|\|?|[=!<>]=?|[^\s()&|=!<>]+")


@dataclass(frozen=True)
class Selection:
    """States as bits, and bytecode; b"" selects every address and port."""

    states: int
    bytecode: bytes


def parse(words: Sequence[str]) -> Selection:
    """The selection for these words. Raises InputError that quotes the wrong word."""
    tokens = _Tokens(_TOKEN.findall(" ".join(words)))
    named: list[str] = []
    while tokens.accept("state"):
        name = tokens.take("a state")
        if name not in STATES and name not in _GROUPS:
            known = suggestion(name, [*STATES, *_GROUPS])
            raise InputError(f"filter: {quoted(name)} is not a state; {known}")
        named += _GROUPS.get(name, (name,))
    states = sum({1 << STATES[name] for name in named or _DEFAULT_STATES})
    code = b""
    if tokens.left:
        code = _either(tokens, 0)
        if tokens.left:
            raise InputError(f"filter: {quoted(tokens.left[0])} is unexpected; put `and` before it")
    if len(code) > _BYTES_MAX:
        raise InputError("filter: it is too long for the kernel; give fewer conditions")
    return Selection(states, code)


class _Tokens:
    """The remaining words."""

    def __init__(self, tokens: list[str]) -> None:
        self.left = tokens

    def accept(self, *words: str) -> str:
        """The next word if it is one of these, else ""."""
        return self.left.pop(0) if self.left and self.left[0] in words else ""

    def take(self, what: str) -> str:
        """The next word; InputError if there is none."""
        if not self.left:
            raise InputError(f"filter: it ends where {what} should follow")
        return self.left.pop(0)


def _either(tokens: _Tokens, depth: int) -> bytes:
    found = _both(tokens, depth)
    while tokens.accept(*_OR):
        found = _or(found, _both(tokens, depth))
    return found


def _both(tokens: _Tokens, depth: int) -> bytes:
    found = _one(tokens, depth)
    while tokens.accept(*_AND):
        found = _and(found, _one(tokens, depth))
    return found


def _one(tokens: _Tokens, depth: int) -> bytes:
    if depth > _DEPTH_MAX:
        raise InputError("filter: it is nested too deeply")
    word = tokens.take("a condition")
    if word in _NOT:
        return _not(_one(tokens, depth + 1))
    if word == "(":
        found = _either(tokens, depth + 1)
        if not tokens.accept(")"):
            raise InputError("filter: a ) is missing")
        return found
    if word in ("sport", "dport"):
        return _port_condition(word, tokens)
    if word in ("src", "dst"):
        operator = _OPERATORS.get(tokens.accept("=", "==", "eq", "!=", "ne", "neq"), "=")
        found = _host(word, tokens.take("an address"))
        return found if operator == "=" else _not(found)
    raise InputError(f"filter: {quoted(word)} is not a condition; {suggestion(word, _FIRST)}")


def _port_condition(word: str, tokens: _Tokens) -> bytes:
    operator = _OPERATORS[tokens.accept(*_OPERATORS) or "="]
    port = _port(tokens.take("a port"))
    at_least, at_most = (_S_GE, _S_LE) if word == "sport" else (_D_GE, _D_LE)
    exactly = _and(_bound(at_least, port), _bound(at_most, port))
    return {
        "=": lambda: exactly,
        "!=": lambda: _not(exactly),
        ">=": lambda: _bound(at_least, port),
        "<=": lambda: _bound(at_most, port),
        ">": lambda: _not(_bound(at_most, port)),
        "<": lambda: _not(_bound(at_least, port)),
    }[operator]()


def _port(text: str) -> int:
    name = text.removeprefix(":")
    if name.isascii() and name.isdigit() and len(name) < 10:
        if int(name) > _PORT_MAX:
            raise InputError(f"filter: port {quoted(name)} is too large; give 0 to {_PORT_MAX}")
        return int(name)
    try:
        return socket.getservbyname(name, "tcp")
    except (OSError, UnicodeError, ValueError):
        raise InputError(
            f"filter: {quoted(text)} is not a port; give a number or a name of /etc/services"
        ) from None


def _host(word: str, text: str) -> bytes:
    code = _S_COND if word == "src" else _D_COND
    address, port = _split(text)
    wanted = _ANY_PORT if port is None else _port(port)
    if address in ("", "*"):
        return _condition(code, socket.AF_UNSPEC, 0, wanted, b"")
    try:
        net = ipaddress.ip_network(address, strict=False)
    except ValueError:
        raise InputError(
            f"filter: {quoted(text)} is not an address; give one such as 192.0.2.1, 10.0.0.0/8, "
            "[2001:db8::1]:443 or :443"
        ) from None
    family = socket.AF_INET if net.version == 4 else socket.AF_INET6
    return _condition(code, family, net.prefixlen, wanted, net.network_address.packed)


def _split(text: str) -> tuple[str, str | None]:
    """Address and port. An IPv6 address with a port is in brackets, which may include a prefix
    length."""
    bracketed = re.fullmatch(r"\[([^]]*)\](/\d+)?(?::(.*))?", text)
    if bracketed:
        return bracketed[1] + (bracketed[2] or ""), bracketed[3]
    if text.count(":") == 1:
        address, _, port = text.partition(":")
        return address, port
    return text, None


# --- bytecode ------------------------------------------------------------------------------------


def _condition(code: int, family: int, length: int, port: int, address: bytes) -> bytes:
    host = _HOST.pack(family, length, port) + address
    size = _OP.size + len(host)
    return _OP.pack(code, size, size + 4) + host


def _bound(code: int, port: int) -> bytes:
    return _OP.pack(code, 8, 12) + _OP.pack(0, 0, port)


def _and(first: bytes, second: bytes) -> bytes:
    return _failing_later(first, len(second)) + second


def _or(first: bytes, second: bytes) -> bytes:
    return first + _OP.pack(_JMP, 4, 4 + len(second)) + second


def _not(inner: bytes) -> bytes:
    return inner + _OP.pack(_JMP, 4, 8)


def _failing_later(code: bytes, by: int) -> bytes:
    """Bytecode whose failing jumps (4 bytes beyond the end) go `by` bytes further."""
    made = bytearray(code)
    at = 0
    while at < len(code):
        kind, size, no = _OP.unpack_from(code, at)
        if at + no == len(code) + 4:
            if no + by > _BYTES_MAX:
                raise InputError("filter: it is too long for the kernel; give fewer conditions")
            _OP.pack_into(made, at, kind, size, no + by)
        at += size
    return bytes(made)
