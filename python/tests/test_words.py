# SPDX-License-Identifier: MIT
"""Help, error messages and docs are written in plain English, with the words of the trade."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import man
import pytest

# Words that a reader has to parse twice, and what is meant.
UNWANTED = {
    r"has no meaning": "cannot be combined with",
    r"(?<![Tt]here )(?:is|are) no (?!longer|larger|slower|better|more )": "is not a",
    r"(?<![Tt]here )(?:is|are) none": "is not one",
    r"told(?! apart)": "says, distinguished, informed",
    r"(?<!cannot )tells?\b(?! (?:\w+ )?apart)": "says, distinguishes",
    r"shall": "must, should",
    r"all the same": "nevertheless",
    r"(?:of )?one's own": "own",
    r"lone": "solo, single",
    r"round trips?": "RTT",
    r"this machine": "this host",
}
# Also in help, where there is no room for a second reading.
UNWANTED_IN_HELP = {r"of what": "name the thing"}

# Not read by this test: what changes with results, and what the kernel compiles.
PAGES_APART = ("docs/experiments/", "linux/", "core/")
CODE_APART = ("reproduce", "diagnose")  # packages of ackwise
CRATES = ("capture", "core", "deadlock", "python", "replay", "sockets")


def complaints(text: str, unwanted: dict[str, str]) -> list[str]:
    words = " ".join(text.split())
    return [
        f"...{words[max(0, at.start() - 40) : at.end() + 20]}...: write {better!r}"
        for pattern, better in unwanted.items()
        for at in re.finditer(rf"\b{pattern}\b" if pattern[-1] != ")" else rf"\b{pattern}", words)
    ]


_NOT_PROSE = re.compile(
    r"<!-- generated: .*?<!-- end of .*?-->|<!--.*?-->"
    r"|^ {4}[^\n]*$|`[^`]*`|\]\([^)]*\)",
    re.DOTALL | re.MULTILINE,
)


def prose(page: str) -> str:
    """A page without code, what is made from code, comments and the targets of links."""
    return _NOT_PROSE.sub(" X ", page)


def messages_of_python(source: str) -> Iterator[str]:
    """Each text in a raise statement, with X for what it is filled with."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Raise) or not isinstance(node.exc, ast.Call):
            continue
        for word in node.exc.args:
            if isinstance(word, ast.Constant) and isinstance(word.value, str):
                yield word.value
            elif isinstance(word, ast.JoinedStr):
                yield "".join(
                    str(p.value) if isinstance(p, ast.Constant) else "X" for p in word.values
                )


def texts_of_rust(source: str) -> Iterator[str]:
    """Each string in code, without tests and comments."""
    code = source.split("#[cfg(test)]\nmod tests", maxsplit=1)[0]
    for line in code.splitlines():
        if not line.strip().startswith("//"):
            yield from re.findall(r'"((?:[^"\\]|\\.)*)"', line)


def pages(root: Path) -> list[str]:
    folders = (root / name for name in ("docs", "spec", "bench"))
    found = [*root.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))]
    names = sorted(str(page.relative_to(root)) for page in found)
    return [name for name in names if not name.startswith(PAGES_APART)]


@pytest.mark.parametrize("path", [ctx.command_path for _, ctx in man.pages()])
def test_the_help_is_plain_english(path: str) -> None:
    command, ctx = next((c, ctx) for c, ctx in man.pages() if ctx.command_path == path)
    assert complaints(command.get_help(ctx), UNWANTED | UNWANTED_IN_HELP) == []


def test_pages_are_plain_english(root: Path) -> None:
    found = pages(root)
    assert len(found) > 30
    for name in found:
        text = prose((root / name).read_text(encoding="utf-8"))
        assert [f"{name}: {one}" for one in complaints(text, UNWANTED)] == []


def test_error_messages_are_plain_english(root: Path) -> None:
    seen = 0
    for path in sorted((root / "python/ackwise").rglob("*.py")):
        if path.relative_to(root / "python/ackwise").parts[0] in CODE_APART:
            continue
        for text in messages_of_python(path.read_text(encoding="utf-8")):
            seen += 1
            assert [f"{path}: {one}" for one in complaints(text, UNWANTED)] == []
    assert seen > 300
    for crate in CRATES:
        for path in sorted((root / "crates" / crate / "src").rglob("*.rs")):
            for text in texts_of_rust(path.read_text(encoding="utf-8")):
                assert [f"{path}: {one}" for one in complaints(text, UNWANTED)] == []


@pytest.mark.parametrize(
    "text",
    [
        "a FIN is no data", "such a file is none", "it is told of each ACK", "the tag tells which",
        "packets shall be dropped", "one RTT is a round trip",
    ],
)  # fmt: skip
def test_unwanted_words_are_found(text: str) -> None:
    assert complaints(text, UNWANTED)


@pytest.mark.parametrize(
    "text",
    [
        "there is no such interface", "there is none", "it is no longer than that",
        "which tells them apart", "cannot be told apart", "the round-trip time",
    ],
)  # fmt: skip
def test_ordinary_words_are_not(text: str) -> None:
    assert not complaints(text, UNWANTED)
