# SPDX-License-Identifier: MIT
"""The most memory that a command takes."""

import subprocess
import sys

# The most memory since exec: ru_maxrss begins with that of the process that forked.
_MEASURED = """
import sys
from ackwise.cli import main
code = main.main(sys.argv[1:])
with open("/proc/self/status") as status:
    print(code, next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


def resident_kb(*words: str) -> tuple[int, int, str]:
    """Exit code of `ackwise ...`, the most memory that it had, and what it said."""
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, *words], capture_output=True, text=True, check=True
    )
    code, kb = map(int, done.stdout.split()[-2:])
    return code, kb, done.stderr
