# SPDX-License-Identifier: MIT
"""The verdict of crates/deadlock."""

from typing import TypedDict


class Stall(TypedDict):
    """One period that only a timer could end; the engine's has more keys."""

    reason: str
    outstanding_bytes: int
    held_bytes: int
    room_bytes: int


_Class = TypedDict("_Class", {"class": str | None})


class Verdict(_Class):
    """Whether a pair stalls, and what the stalls are like; the engine's has more keys."""

    answer: str
    stall: Stall | None
    shortest_ns: int
    longest_ns: int
    start_stalls: int
    start_ns: int
    bytes_per_stall: float
    goodput_bps: float
