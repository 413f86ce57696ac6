# SPDX-License-Identifier: MIT
"""TOML and JSON from files: size and structure are bounded before a parser sees them.

A parser creates an object for every two bytes, and a table for every part of a dotted key; tomllib
also takes time quadratic in the length of such a key. Counting brackets, dots and keys outside of
strings takes one pass, and is exact up to the first byte that the parser would refuse.
"""

import json
import re
import tomllib
from typing import Any

# The longest shipped plan has 5 kB; a workload of 300 000 arrivals fits.
BYTES_MAX = 4 * 2**20
# A plan nests at most five tables (`override.flows.receiver.process.segment`).
DEPTH_MAX = 16
# A workload of 2000 groups of flows with every possible key.
ITEMS_MAX = 100_000

# What begins text that is no structure, and what ends it or is an escape within it. An unterminated
# string extends to the end of its line or file, where parsers stop. Possessive quantifiers would
# say so in one pattern, but Python before 3.11.5 matches them wrongly.
_Ends = dict[bytes, re.Pattern[bytes]]
_TOML_TEXT: _Ends = {
    b'"""': re.compile(rb'\\.|"{3,5}', re.DOTALL),
    b"'''": re.compile(rb"'{3,5}"),
    b'"': re.compile(rb'\\.|["\n]', re.DOTALL),
    b"'": re.compile(rb"['\n]"),
    b"#": re.compile(rb"\n"),
}
_JSON_TEXT: _Ends = {b'"': re.compile(rb'\\.|"', re.DOTALL)}
_LONG_KEY = re.compile(rb"\.{%d}" % DEPTH_MAX)
_BRACKET = re.compile(rb"[\[\]{}]")
_OPEN = b"[{"
_NOT_STRUCTURE = bytes(set(range(256)) - set(b".,=:[]{}\n"))
_MARK = b"\xef\xbb\xbf"  # some editors begin UTF-8 with it
_LONG_NUMBER = re.compile(rb"0[xob][0-9a-fA-F_]{1000}")  # Python does not print some of these


def parse_toml(data: bytes) -> dict[str, Any]:
    """The document; ValueError says what is wrong with it, and where."""
    _check_size(data, BYTES_MAX)
    data = data.removeprefix(_MARK)
    bare = _bare(data, _TOML_TEXT)
    skeleton = bare.translate(None, _NOT_STRUCTURE)
    _check(skeleton, b"=", ITEMS_MAX)
    if found := _LONG_KEY.search(skeleton):
        line = skeleton.count(b"\n", 0, found.start()) + 1
        raise ValueError(
            f"line {line}: a key of more than {DEPTH_MAX} parts, the limit; use fewer dots"
        )
    try:
        if _LONG_NUMBER.search(bare):
            raise ValueError
        return tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as problem:
        raise ValueError(f"byte {problem.start} is not UTF-8; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as problem:
        raise ValueError(f"invalid TOML: {problem}") from None
    except ValueError:  # also Python's limit on the digits of an integer
        raise ValueError("invalid TOML: a number too long; give fewer digits") from None


def parse_json(data: bytes, bytes_max: int = BYTES_MAX, items_max: int = ITEMS_MAX) -> Any:
    """The document; ValueError says what is wrong with it, and where."""
    _check_size(data, bytes_max)
    data = data.removeprefix(_MARK)
    _check(_bare(data, _JSON_TEXT).translate(None, _NOT_STRUCTURE), b":", items_max)
    try:
        return json.loads(data)
    except UnicodeDecodeError as problem:
        raise ValueError(f"byte {problem.start} is not UTF-8") from None
    except ValueError as problem:
        raise ValueError(f"invalid JSON: {problem}") from None


def _check_size(data: bytes, bytes_max: int) -> None:
    if len(data) > bytes_max:
        raise ValueError(f"larger than {bytes_max} bytes, the limit; divide it into several files")


def _bare(data: bytes, text: _Ends) -> bytes:
    """All lines of the document, without strings and comments."""
    begin = re.compile(b"|".join(text))
    pieces, at = [], 0
    while found := begin.search(data, at):
        pieces.append(data[at : found.start()])
        at = _end(data, found.end(), text[found[0]])
        pieces.append(b"\n" * data.count(b"\n", found.start(), at))
    return b"".join((*pieces, data[at:]))


def _end(data: bytes, at: int, end: re.Pattern[bytes]) -> int:
    """Where text ends whose content begins at `at`."""
    while found := end.search(data, at):
        at = found.end()
        if found[0] == b"\n":
            return found.start()
        if not found[0].startswith(b"\\"):
            return at
    return len(data)


def _check(skeleton: bytes, assignment: bytes, items_max: int) -> None:
    for what, count in (
        ("keys", skeleton.count(assignment)),
        ("tables and lists", skeleton.count(b"[") + skeleton.count(b"{")),
    ):
        if count > items_max:
            raise ValueError(
                f"{count} {what}, more than {items_max}, the limit; divide it into several files"
            )
    depth = 0
    for bracket in _BRACKET.finditer(skeleton):
        # A parser refuses an unmatched closing bracket, so the rest does not count.
        depth = depth + 1 if bracket[0] in _OPEN else max(0, depth - 1)
        if depth > DEPTH_MAX:
            line = skeleton.count(b"\n", 0, bracket.start()) + 1
            raise ValueError(
                f"line {line}: nested too deep, more than {DEPTH_MAX} levels, the limit; "
                "use fewer brackets within brackets"
            )
