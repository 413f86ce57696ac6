# SPDX-License-Identifier: MIT
"""Capabilities of this process."""

import os
from pathlib import Path

# CAP_NET_ADMIN makes links and queues, CAP_SYS_ADMIN makes namespaces, CAP_NET_RAW captures.
CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13, "CAP_SYS_ADMIN": 21}


def missing_capabilities() -> list[str]:
    """Capabilities that `ackwise capture` needs and this process lacks."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        line = next(x for x in status.splitlines() if x.startswith("CapEff:"))
        held = int(line.split()[1], 16)
    except (OSError, StopIteration, ValueError):
        held = -1 if os.geteuid() == 0 else 0
    return [name for name, bit in CAPABILITIES.items() if not held >> bit & 1]
