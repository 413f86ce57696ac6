# SPDX-License-Identifier: MIT
"""Additional settings of a run in the lab, for experiments."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Extras:
    """Settings that neither link and workload files nor the simulator have."""

    tc: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """by way: ready-made lines with PORT for the device, such as a gateway's plan, in place of the
    direction's rate and queue"""
    sysctls: Mapping[str, object] = field(default_factory=dict)
    """of both hosts, below /proc/sys/net/ipv4"""
    write_bytes: int = 0
    """an answer (request-response) is written in pieces of this size; 0: at once"""
    steady_window_bytes: int = 0
    """the receivers' window, which what they have not read does not narrow; 0: Linux's own"""
    paths_from_ns: int | None = None
    """from when on the ways of the ACKs are followed, and pings count"""


NOTHING = Extras()
