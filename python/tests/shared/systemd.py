# SPDX-License-Identifier: MIT
"""What systemd says of units."""

import shutil
import subprocess
from pathlib import Path

import pytest

from ackwise.gateway.formats import PROGRAM

needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")


def complaints(*units: Path) -> list[str]:
    """Its complaints about these files, but that ackwise is not installed here."""
    words = ["systemd-analyze", "verify", "--man=no", *map(str, units)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return [
        line
        for line in done.stderr.splitlines()
        if "ackwise-" in line and f"Command {PROGRAM} is not exec" not in line
    ]
