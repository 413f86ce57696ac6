# SPDX-License-Identifier: MIT
"""Hashes what files mean, not how they are written.

A comment, a docstring, the layout of code, the message of a patch or the `source` of a plan can be
edited without a change of the hash; a constant, a string or a line of code cannot. A file's own
name counts, its folder does not.
"""

import ast
import hashlib
import io
import json
import re
import tokenize
import tomllib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

DIGITS = 16  # 64 bits guard against oversight, not against an attack


def of_files(files: Iterable[Path]) -> str:
    """One hash for all, whatever their order."""
    parts = sorted(f"{file.name} {_digest(meaning(file))}" for file in files)
    return _digest("\n".join(parts).encode())[:DIGITS]


def meaning(file: Path) -> bytes:
    """What is left of a file when everything that only people read is taken out."""
    data = file.read_bytes()
    kind = file.suffix
    if not kind and re.match(rb"#!\S+[ /](ba)?sh\b", data):
        kind = ".sh"
    return _reduced(kind, data) if kind in _REDUCED else data


@cache
def _reduced(kind: str, data: bytes) -> bytes:
    return _REDUCED[kind](data.decode("utf-8")).encode()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# --- one function for each kind of file ----------------------------------------------------------

_C = re.compile(
    r"""(?P<kept> "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\\n])+' )
      | (?P<dropped> //[^\n]* | /\*.*?\*/ | \s+ )
      | [^"'/\s]+ | .""",
    re.DOTALL | re.VERBOSE,
)
# A quote may also begin a lifetime, which has no second one.
_RUST = re.compile(
    r"""(?P<kept> r(?P<hashes>\#*)".*?"(?P=hashes) | "(?:\\.|[^"\\])*" | '(?:\\[^']+|[^\\'])' )
      | (?P<dropped> //[^\n]* | /\*.*?\*/ | \s+ )
      | [^"'/\sr]+ | .""",
    re.DOTALL | re.VERBOSE,
)
_RUST_TESTS = re.compile(r"^#\[cfg\(test\)\]\nmod \w+ \{\n.*?^\}$", re.DOTALL | re.MULTILINE)


def _without_comments(text: str, pattern: re.Pattern[str]) -> str:
    parts: list[str] = []
    gap = False
    for match in pattern.finditer(text):
        if match["dropped"]:
            gap = True
            continue
        found = match[0]
        # Layout may put a gap anywhere; it only counts where it separates two words.
        if gap and parts and _is_word(parts[-1][-1]) and _is_word(found[0]):
            parts.append(" ")
        parts.append(found)
        gap = False
    return "".join(parts)


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _c(text: str) -> str:
    return _without_comments(text, _C)


def _rust(text: str) -> str:
    return _without_comments(_RUST_TESTS.sub("", text), _RUST)


def _python(text: str) -> str:
    """The tokens, without comments and strings that stand alone, such as docstrings."""
    documentation = {
        (node.lineno, node.col_offset)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }
    lines = text.splitlines(keepends=True)
    out: list[str] = []
    depth = 0  # of f-strings, which Python 3.12 and later split into tokens
    began = (0, 0)
    skipping = False
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        name = tokenize.tok_name[token.type]
        if name == "FSTRING_START":
            if depth == 0:
                began = token.start
            depth += 1
        elif name == "FSTRING_END":
            depth -= 1
            if depth == 0:
                out.append(_between(lines, began, token.end))
        elif depth or name in ("COMMENT", "NL", "ENCODING", "ENDMARKER"):
            continue
        elif name in ("NEWLINE", "INDENT", "DEDENT"):
            if not skipping:
                out.append(name)
            skipping = False
        elif token.start in documentation:
            skipping = True
        elif not skipping:
            out.append(token.string)
    return "\n".join(out)


def _between(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    """The source text from one position to another, as tokenize gives positions."""
    first, last = start[0] - 1, end[0] - 1
    if first == last:
        return lines[first][start[1] : end[1]]
    return "".join([lines[first][start[1] :], *lines[first + 1 : last], lines[last][: end[1]]])


def _shell(text: str) -> str:
    """Only comments that have a line of their own go: within quotes, # is text."""
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("#"))


def _toml(text: str) -> str:
    values = tomllib.loads(text)
    values.pop("source", None)
    return json.dumps(values, sort_keys=True, default=str)


def _patch(text: str) -> str:
    """The changes, without the message before and the signature after them."""
    _, begin, changes = text.partition("\ndiff --git ")
    return (begin + changes).rpartition("\n-- \n")[0] or begin + changes


_REDUCED: dict[str, Callable[[str], str]] = {
    ".c": _c,
    ".h": _c,
    ".def": _c,
    ".inc": _c,
    ".rs": _rust,
    ".py": _python,
    ".sh": _shell,
    ".toml": _toml,
    ".lock": _toml,
    ".patch": _patch,
}
