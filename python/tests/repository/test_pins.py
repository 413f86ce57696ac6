# SPDX-License-Identifier: MIT
"""What is installed from outside is pinned by the hash of its bytes."""

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import pins

LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")


def test_every_entry_of_the_lock_has_hashes() -> None:
    entries = re.split(r"^(?=[a-z0-9])", LOCK, flags=re.MULTILINE)[1:]
    assert len(entries) > 50
    for entry in entries:
        assert re.match(r"[a-z0-9.-]+==\S+", entry), entry
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry), entry


@pytest.mark.parametrize(
    "extras", [[], ["dev"], ["docs"], ["fuzz"], ["types"], ["dev", "docs", "fuzz"]]
)
def test_what_is_chosen_is_closed(extras: list[str]) -> None:
    """Whatever an installed package says it needs is among the pins."""
    chosen = pins.chosen(LOCK, pins.requirements(extras))
    names = {pins._name(line) for line in chosen.splitlines() if "==" in line}
    assert {pins._name(one) for one in pins.requirements(extras)} <= names
    for name in names:
        try:
            needs = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        always = {pins._name(one) for one in needs if ";" not in one}
        assert always <= names, name


def test_a_requirement_without_a_pin_is_an_error() -> None:
    with pytest.raises(SystemExit, match="lacks unheard-of: make lock"):
        pins.chosen(LOCK, ["unheard_of>=1"])


def test_whatever_is_fetched_is_compared_with_its_hash() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    fetching = [
        line for line in makefile.splitlines() if re.search(r"pip (install|download)", line)
    ]
    assert len(fetching) >= 3
    for line in fetching:
        assert "--require-hashes" in line or "--no-index" in line, line


def test_pip_refuses_other_bytes(tmp_path: Path) -> None:
    wheel = tmp_path / "made-1-py3-none-any.whl"
    wheel.write_bytes(b"other bytes")
    wanted = tmp_path / "pins.txt"
    wanted.write_text(f"{wheel} --hash=sha256:{'0' * 64}\n")
    words = ["install", "--dry-run", "--no-index", "--require-hashes", "--no-deps", "-r"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *words, str(wanted)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr
