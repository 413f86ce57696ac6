# SPDX-License-Identifier: MIT
"""Documents whose structure would cost a parser memory or time are refused before it starts, and
no other: what counts is found outside of strings and comments only."""

import random
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT

from ackwise import bounded

# Readers that do not go through `bounded`, with the reason.
OWN_READERS = {
    "bounded.py": "the door itself",
    "engine/__init__.py": "what the engine returns, made in this process",
    "engine/both_ends.py": "what the engine returns, made in this process",
    "gateway/state.py": "has bounds of its own",
}


@pytest.mark.parametrize(
    "text",
    [
        'a = "[[[[[[[[[[[[[[[[[[[[[[[[[["',
        "a = '{{{{{{{{{{{{{{{{{{{{{{{{{{'",
        "a = 1 # ..........................",
        '# """\na = 1',
        'a = """\n[[[[[[[[[[[[[[[[[[[[[[[[[\n"""',
        'a = """x""""',
        'a = """"x"""""',
        'a = """\\"""[[[[[[[[[[[[[[[[[[[[[[["""',
        "a = '''\n''[[[[[[[[[[[[[[[[[[[[[[['''''",
        'a = "\\\\"\nb = "\\"[[[[[[[[[[[[[[[[[[[[[["',
        "a = '\\'\nb = 1",
        '"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t" = 1',
        "a = [[1.5, 2.5], [3.5]]",
        f"a = [{', '.join(f'{n}.5' for n in range(40))}]",
        "[a]\nb.c.d = {e.f = {g = 1}}",
    ],
)
def test_what_strings_and_comments_hold_does_not_count(text: str) -> None:
    assert bounded.parse_toml(text.encode()) == tomllib.loads(text)


@pytest.mark.parametrize(
    ("parse", "text"), [(bounded.parse_toml, "a = 1"), (bounded.parse_json, '{"a": 1}')]
)
def test_a_byte_order_mark_is_passed_over(parse: Callable[[bytes], object], text: str) -> None:
    """Editors of Windows write it; TOML 1.1 and RFC 8259, 8.1, let a parser ignore it."""
    assert parse(text.encode("utf-8-sig")) == {"a": 1}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a" + ".a" * 16 + " = 1", "line 1: a key of more than 16 parts"),
        ("\n\n[a" + ' . "a"' * 16 + "]", "line 3: a key of more than 16 parts"),
        ("x = 'a'\ny = " + "[" * 17 + "]" * 17, "line 2: nested too deep, more than 16 levels"),
        ('x = """\n\n"""\ny = ' + "{a=" * 17 + "1" + "}" * 17, "line 4: nested too deep"),
        (f"x = 0x{'f' * 5000}", "invalid TOML: a number too long"),
        ('x = """\\""" [' + "]" * 9 + "[" * 17, "invalid TOML"),
    ],
)
def test_structure_is_counted_where_it_stands(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        bounded.parse_toml(text.encode())


def test_at_the_limits_a_document_is_read() -> None:
    key = "a" + ".a" * 15
    depth = "[" * 16 + "]" * 16
    assert (
        bounded.parse_toml(f"{key} = 1\nb = {depth}".encode())["b"]
        == tomllib.loads(f"b = {depth}")["b"]
    )
    keys = b"".join(b"k%d=1\n" % i for i in range(bounded.ITEMS_MAX))
    assert len(bounded.parse_toml(keys)) == bounded.ITEMS_MAX


def test_no_depth_gets_past_the_count() -> None:
    """Whatever tomllib reads, its values are no deeper than was counted."""

    def depth(value: object) -> int:
        below = value.values() if isinstance(value, dict) else value
        if not isinstance(value, dict | list):
            return 0
        return 1 + max(map(depth, below), default=0)  # type: ignore[call-overload]

    dice = random.Random(5)  # noqa: S311
    pieces = ['"', "'", '"""', "'''", "#", "\n", "\\", "[", "]", "{", "}", ".", ",", "a", "=", "1"]
    whole = ['a="x"\n', "b=[1,[2]]\n", "[c.d]\n", "e={f=1}\n", 'g="""', "h='''", '"""\n', "'''\n"]
    read = 0
    for _ in range(30_000):
        text = "".join(dice.choice(pieces if dice.random() < 0.2 else whole) for _ in range(9))
        try:
            found = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError):
            continue
        read += 1
        bare = bounded._bare(text.encode(), bounded._TOML_TEXT)
        skeleton = bare.translate(None, bounded._NOT_STRUCTURE)
        openings = skeleton.count(b"[") + skeleton.count(b"{") + skeleton.count(b".")
        assert depth(found) <= 1 + openings, text
        assert bounded.parse_toml(text.encode()) == found
    assert read > 500


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"[" * 100_000, "nested too deep"),
        (b'{"a":' * 17 + b"1" + b"}" * 17, "nested too deep, more than 16 levels"),
        (b"[" + b"[]," * 200_000 + b"1]", "200001 tables and lists, more than 100000"),
        (b'{"a": "' + b"x" * bounded.BYTES_MAX + b'"}', "larger than"),
        (b"\xff", "UTF-8"),
        (b"{", "invalid JSON"),
    ],
)
def test_hostile_json_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        bounded.parse_json(data)


def test_json_text_does_not_count() -> None:
    assert bounded.parse_json(b'{"a": "[[[[[[[[[[[[[[[[[[[[[[\\"[["}')["a"].count("[") == 24


def test_every_reader_of_toml_and_json_uses_this_door() -> None:
    package = ROOT / "python" / "ackwise"
    found = {
        str(file.relative_to(package))
        for file in Path(package).rglob("*.py")
        if re.search(r"\b(tomllib|json)\.loads?\(", file.read_text(encoding="utf-8"))
    }
    assert found == set(OWN_READERS)
