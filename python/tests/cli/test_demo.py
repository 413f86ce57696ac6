# SPDX-License-Identifier: MIT
"""`make demo` shows a page and says where the rest is."""

import os
import subprocess
import sys
from pathlib import Path

# Short runs; no capture, which needs root.
STUB = """#!/bin/sh
case $1 in
doctor | capture) exit 1 ;;
esac
exec {python} -m ackwise "$@" --duration 50ms --quiet
"""


def test_the_demo_prints_a_page_and_names_the_rest(root: Path, tmp_path: Path) -> None:
    stub = tmp_path / "ackwise"
    stub.write_text(STUB.format(python=sys.executable))
    stub.chmod(0o755)
    made = tmp_path / "demo"
    said = subprocess.run(
        [root / "tools/demo.sh", stub, made],
        capture_output=True, text=True, check=True, env={**os.environ, "TERM": "vt100"},
    ).stdout.splitlines()  # fmt: skip
    assert len(said) < 45
    assert sum(line.startswith("policy ") for line in said) == 1
    assert sum(line.startswith("linux ") for line in said) == 1
    assert f"{made}/report.html" in said
    assert f"{made}/tables.txt" in said
    tables = (made / "tables.txt").read_text(encoding="utf-8")
    assert tables.count("\nlink ") == 8 - tables.startswith("link ")
    assert all(len(line) <= 80 for line in said if line.startswith(("policy ", "linux ")))
