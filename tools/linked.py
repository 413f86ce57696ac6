# SPDX-License-Identifier: MIT
"""Licences of what is linked into the engine: their texts in LICENSES/THIRD-PARTY.txt, which the
wheel carries.

python tools/linked.py [--write]    compares, or writes
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "LICENSES/THIRD-PARTY.txt"
TARGET = "x86_64-unknown-linux-gnu"
HEAD = """\
Software of others that is linked into ackwise's engine, and the texts of its licences.
Where a choice is offered, the MIT licence was chosen. Written by tools/linked.py.
"""
_RULE = "=" * 80
_TEXT = re.compile(r"(licen[cs]e|copying|unlicense)([-.].*)?", re.IGNORECASE)
_STANDARD = "Rust's standard library"


def crates() -> list[tuple[str, str, Path]]:
    """Name and version, licence and folder of each crate of others that is linked."""
    fixed = ["--offline", "--locked"]
    tree = ["tree", *fixed, "-p", "ackwise-python", "-e", "normal,no-proc-macro"]
    listed = _cargo(*tree, "--target", TARGET, "--prefix", "none", "-f", "{p}")
    linked = {tuple(line.split()[:2]) for line in listed.splitlines() if line.strip()}
    about = json.loads(_cargo("metadata", *fixed, "--format-version", "1"))
    return sorted(
        (f"{one['name']} {one['version']}", one["license"], Path(one["manifest_path"]).parent)
        for one in about["packages"]
        if one["source"] and (one["name"], f"v{one['version']}") in linked
    )


def texts(licence: str, folder: Path) -> list[str]:
    """The texts that a crate's licence asks to pass on, those of the C code in it included."""
    found = sorted(path for path in folder.rglob("*") if _TEXT.fullmatch(path.name))
    own = [path for path in found if path.parent == folder]
    # Licences of alternatives: one is chosen.
    if "MIT" in licence and ("OR" in licence or "/" in licence):
        own = [path for path in own if "mit" in path.name.lower()] or own
    # Of a program or test that is not linked, or GPL-2.0-only as an alternative to BSD (zstd).
    inner = [
        path
        for path in found
        if path.parent != folder and path.name == "LICENSE" and "tests" not in path.parts
    ]
    return [path.read_text(encoding="utf-8").strip() for path in (*own, *inner)]


def whole() -> str:
    """The file: each text once, below the names of those that it is for."""
    mit = (ROOT / "LICENSES/MIT.txt").read_text(encoding="utf-8").strip()
    of_rust = re.sub(r"Copyright .*", "Copyright (c) The Rust Project Contributors", mit, count=1)
    names: dict[str, list[str]] = defaultdict(list)
    names[of_rust].append(_STANDARD)
    for name, licence, folder in crates():
        found = texts(licence, folder)
        if not found:
            raise SystemExit(f"{name}: {folder} has no text of its licence, {licence}")
        for text in found:
            names[text].append(name)
    parts = [
        f"{_RULE}\n{', '.join(dict.fromkeys(of))}\n{_RULE}\n\n{text}\n"
        for text, of in sorted(names.items(), key=lambda item: item[1])
    ]
    return "\n".join((HEAD, *parts))


def _cargo(*words: str) -> str:
    done = subprocess.run(["cargo", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    made = whole()
    if sys.argv[1:] == ["--write"]:
        FILE.write_text(made, encoding="utf-8")
    elif not FILE.is_file() or FILE.read_text(encoding="utf-8") != made:
        raise SystemExit("LICENSES/THIRD-PARTY.txt is out of date: python tools/linked.py --write")
