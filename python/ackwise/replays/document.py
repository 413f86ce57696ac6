# SPDX-License-Identifier: MIT
"""The document of a replay; `replays.KEYS` explains each key."""

from typing import TypedDict

from ackwise.engine.replayed import Cells, Measured, Price
from ackwise.results.entries import PolicyGiven
from ackwise.results.provenance import Record


class Direction(Measured, Cells):
    """Policies on the arrivals of one direction."""

    cheapest: str | None


class Document(TypedDict):
    """The replay of a capture."""

    schema_version: int
    kind: str
    provenance: Record
    capture: str
    truncated: dict[str, int] | None
    price: Price
    ack_delay_max_ns: int
    device: dict[str, int] | None
    policies: list[PolicyGiven]
    directions_skipped: int
    directions_left_out: dict[str, int]
    directions: list[Direction]
