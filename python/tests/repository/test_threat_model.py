# SPDX-License-Identifier: MIT
"""The threat model promises nothing without a test."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from conftest import ROOT

PAGE = (ROOT / "docs/inside/threat-model.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(test_\w+\.py)::(test_\w+)`", PAGE)))


@cache
def names_in(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {one.name for one in tree.body if isinstance(one, ast.FunctionDef)}


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_promise_names_a_test_that_exists(file: str, name: str) -> None:
    (place,) = (ROOT / "python/tests").rglob(file)
    assert name in names_in(place)


def test_every_promise_names_a_test() -> None:
    promises = PAGE.split("\n## What is promised", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in promises.splitlines() if line.startswith("| ")]
    assert len(rows) > 20
    for row in rows:
        assert row.endswith("| tests |") or "::test_" in row, row


def test_every_fuzzed_target_is_in_the_table() -> None:
    fuzzed = PAGE.split("\n## What is fuzzed", 1)[1].split("\n## ", 1)[0]
    named = {word for line in fuzzed.splitlines() for word in re.findall(r"`([a-z-]+)`", line)}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    listed = re.findall(r"^FUZZ_(?:CAPTURES|PYTHON|ALL) := (.*)$", makefile, re.MULTILINE)
    words = re.sub(r"\$\(addprefix fuzz-,([^)]*)\)", r"\1", " ".join(listed))
    words = re.sub(r"\$\(\w+\)", "", words)
    assert {word.removeprefix("fuzz-") for word in words.split()} == named
