# SPDX-License-Identifier: MIT
"""What others have written reaches a terminal as text that is shown, not obeyed."""

import ast
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, Ackwise, spawn
from hostile import CONTROL, DIRECTION, TITLES, is_inert

from ackwise.errors import RunError, printable
from ackwise.host import terminal

# What rich sends: colours, and the cursor of a progress bar. A title must not send even these.
OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[[0-9]*[AGKJ]|\x1b\[\?25[lh]|\r")


def in_toml(text: str) -> str:
    """A string that holds any text."""
    return '"' + "".join(f"\\U{ord(c):08x}" for c in text) + '"'


def link(folder: Path, name: str, title: str) -> str:
    """A fast link with that file name and title; its path."""
    path = folder / f"{name}.toml"
    path.write_text(
        f"title = {in_toml(title)}\nsource = {in_toml(title)}\n"
        '[down]\nrate = "1mbit"\ndelay = "5ms"\nqueue_packets = 20\n'
        '[up]\nrate = "1mbit"\ndelay = "5ms"\nqueue_packets = 20\n',
        encoding="utf-8",
    )
    return str(path)


def compare(*links: str) -> list[str]:
    """The words of a short comparison on these links."""
    words = [word for one in links for word in ("--link", one)]
    return ["compare", *words, "--policy", "linux", "--duration", "50ms", "--runs", "1"]


def on_a_terminal(*words: str) -> str:
    """What `ackwise ...` sends to a terminal on both its streams."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "ackwise", *words],
        stdin=theirs, stdout=theirs, stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "200"},
    )  # fmt: skip
    os.close(theirs)
    told = b""
    try:
        while some := os.read(ours, 1 << 16):
            told += some
    except OSError:
        pass  # the child has ended
    os.close(ours)
    child.wait(300)
    return told.decode().replace("\r\n", "\n")


def test_titles_and_file_names_do_not_reach_a_terminal_as_orders(tmp_path: Path) -> None:
    files = [
        link(tmp_path, f"{i}\n\x1b[2J\u202e", f"<{i}>{title}<") for i, title in enumerate(TITLES)
    ]
    seen = on_a_terminal(*compare(*files))
    assert "\x1b[1;36m" in seen, "our own colours"
    assert "\x1b[8m" not in seen
    text = OURS.sub("", seen)
    assert is_inert(text), [line for line in text.splitlines() if not is_inert(line)]
    for i, title in enumerate(TITLES):
        assert f"<{i}>{printable(title)}<  |  " in text
    assert text.count("\nackwise: ") == 0


@pytest.mark.parametrize("words", [
    ("compare", "--link", "a\nackwise: all is well\x1b[2J.toml"),
    ("replay", "\x1b]0;owned\x07\n\u202e"),
    ("compare", "--link", "adsl", "--json", "\x1b[2J\nno/such/folder"),
    ("compare", "--link", "adsl", "--policy", "\x1b[2J\n"),
    ("policy", "show", "\x9b2J\n"),
    ("\x1b[2J\n",),
    ("compare", "--\x1b[2J\n"),
    ("compare", "--link", "adsl", "\x1b[2J\n"),
    ("gateway", "plan", "\x1b[2J\nx", "--down", "1mbit", "--up", "1mbit"),
])  # fmt: skip
def test_a_message_about_a_hostile_word_is_one_inert_line(
    ackwise: Ackwise, words: tuple[str, ...]
) -> None:
    said = ackwise(*words)
    assert said.code != 0
    text = said.err + said.out
    assert text.startswith(("ackwise: ", "ackwise compare: "))
    assert text.count("\n") == 1
    assert is_inert(text), text


@pytest.mark.parametrize("toml", [
    '"\\u001b[2J\\n" = 1',
    'title = "x"\nsource = "x"\n"\\u009b2J\\nackwise: fine" = 1',
    'title = "x"\nsource = "x"\n[down]\nrate = "\\u001b[2J"',
    "title = \x1b[2J",
])  # fmt: skip
def test_an_error_in_a_hostile_file_is_one_inert_line(
    ackwise: Ackwise, tmp_path: Path, toml: str
) -> None:
    (tmp_path / "x.toml").write_text(toml, encoding="utf-8")
    said = ackwise("compare", "--link", str(tmp_path / "x.toml"))
    assert said.code == 2
    assert said.err.count("\n") == 1
    assert is_inert(said.err), said.err


def test_what_is_printed_is_inert(tmp_path: Path) -> None:
    """Whatever prints it: here a table without colours, and the traceback of a mistake of ours."""
    child = spawn(*compare(link(tmp_path, "a", "\x1b[2J\x9b2J")))
    out, err = child.communicate()
    assert is_inert(out + err)
    assert "\\u001b[2J\\u009b2J" in out
    child = spawn("gateway", "status", "a\x1bb")
    assert child.communicate()[0] == "a\\u001bb: there is no such interface\n"
    code = (
        "import sys; from ackwise.cli import main; main.main(['--version']); "
        f"print({CONTROL!r}, {DIRECTION[0]!r}, chr(27)); print(chr(27), file=sys.stderr); "
        "raise ValueError(chr(27))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert is_inert(done.stdout + done.stderr)
    assert done.stderr.startswith("\\u001b\n")
    assert "ValueError: \\u001b" in done.stderr


def test_a_message_of_several_lines_cannot_pass_for_several(
    capfd: pytest.CaptureFixture[str],
) -> None:
    terminal.say(f"ackwise: {RunError('end of its console:' + chr(10) + 'ackwise: fine')}")
    assert capfd.readouterr().err == "ackwise: end of its console:\n    ackwise: fine\n"


def test_every_console_is_made_in_one_place() -> None:
    """Others would pass control characters on."""
    allowed = ROOT / "python/ackwise/results/console.py"
    for file in sorted((ROOT / "python/ackwise").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [f"{node.module}.{a.name}" for a in node.names] if isinstance(
                node, ast.ImportFrom) else []  # fmt: skip
            assert file == allowed or not {"rich.console.Console", "rich.print"} & {*names}, file
