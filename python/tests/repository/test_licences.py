# SPDX-License-Identifier: MIT
"""Whoever gets a package gets the licences of all that is in it."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import linked

pytestmark = pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")
TEXTS = (ROOT / "LICENSES/THIRD-PARTY.txt").read_text(encoding="utf-8")


def test_all_that_is_linked_has_its_texts() -> None:
    """Each crate that the lock has for the engine, and the C libraries in crates."""
    names = [name for name, _, _ in linked.crates()]
    assert len(names) > 20
    heads = TEXTS.split(linked._RULE)[1::2]
    for name in (*names, linked._STANDARD):
        assert any(name in head for head in heads), f"{name}: python tools/linked.py --write"
    assert linked.whole() == TEXTS, "python tools/linked.py --write"
    assert "Copyright (c) Meta Platforms, Inc. and affiliates" in TEXTS  # libzstd
    assert "Microsoft Corporation, Daan Leijen" in TEXTS  # mimalloc


def test_a_crate_without_a_text_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(linked, "crates", lambda: [("made 1.0", "MIT", tmp_path)])
    with pytest.raises(SystemExit, match=r"made 1\.0: .* has no text of its licence, MIT"):
        linked.whole()


@pytest.mark.parametrize("crate", ["core", "capture", "diagnose"])
def test_a_crate_is_packaged_with_its_licence(crate: str) -> None:
    words = ["cargo", "package", "--list", "--offline", "--allow-dirty", "-p", f"ackwise-{crate}"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "LICENSE" in listed.splitlines()
    assert "MIT License" in (ROOT / "crates" / crate / "LICENSE").read_text(encoding="utf-8")


@pytest.mark.parametrize("folder", ["", "experiments"])
def test_a_python_package_names_the_texts(folder: str) -> None:
    """tools/check_wheel.sh finds them in the wheel."""
    place = ROOT / folder
    project = tomllib.loads((place / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = [path for glob in project["license-files"] for path in place.glob(glob)]
    assert any("MIT License" in path.read_text(encoding="utf-8") for path in found)
    if not folder:
        assert linked.FILE in found
