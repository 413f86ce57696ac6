# SPDX-License-Identifier: MIT
"""Marks of the time-sequence graph: their names and colours."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Look:
    """A mark in the legend; `again`: for retransmissions."""

    words: str
    color: str
    again: bool = False


MARKS = {
    "fast-retransmission": Look("fast retransmission", "#d7191c", again=True),
    "timeout-retransmission": Look("retransmission after timeout", "#8b0000", again=True),
    "tail-loss-probe": Look("tail loss probe", "#e6550d", again=True),
    "unclear-retransmission": Look("retransmission, cause unclear", "#f08080", again=True),
    "out-of-order": Look("out of order", "#b58900"),
    "keep-alive": Look("keep-alive", "#8a95a3"),
    "window-probe": Look("window probe", "#7f3fbf"),
    "sack": Look("SACK block", "#9467bd"),
    "duplicate-sack": Look("D-SACK block", "#c51b8a"),
    "congestion-mark": Look("CE mark", "#e31a73"),
}
