# SPDX-License-Identifier: MIT
"""tools/fresh-machine refuses what it cannot do, and its help names every option."""

import os
import re
import subprocess
from pathlib import Path

import pytest


def said_by(root: Path, *words: str) -> tuple[int, str]:
    script = str(root / "tools/fresh-machine")
    done = subprocess.run([script, *words], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_the_help_names_every_option(root: Path) -> None:
    code, said = said_by(root, "--help")
    assert code == 0
    script = (root / "tools/fresh-machine").read_text(encoding="utf-8")
    parser = re.search(r"^options\(\) \{.*?^\}", script, re.DOTALL | re.MULTILINE)
    assert parser
    options = set(re.findall(r"--[a-z]+(?=[ )])", parser[0]))
    assert len(options) == 7
    assert options <= set(re.findall(r"--[a-z]+", said))


@pytest.mark.parametrize("words", [("tests",), ("--release",), ("--Keep", "demo")])
def test_bad_options_are_refused_before_anything_is_made(
    root: Path, words: tuple[str, ...]
) -> None:
    code, said = said_by(root, *words)
    assert code == 2
    assert said.startswith(f"fresh-machine: {words[0]}")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to drop it")
def test_it_says_that_it_needs_root(root: Path) -> None:
    """The script comes by standard input: nobody may be unable to read the checkout."""
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--clear-groups", "bash", "-s", "--", "demo"],
        input=(root / "tools/fresh-machine").read_text(encoding="utf-8"),
        capture_output=True,
        text=True,
        cwd="/",
    )
    assert done.returncode == 2
    assert "needs root" in done.stderr
