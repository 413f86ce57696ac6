# SPDX-License-Identifier: MIT
"""The types of the document of `ackwise twin`; `document.KEYS` explains each key."""

from typing import TypedDict

from ackwise.results.entries import Figure, PlanEntry
from ackwise.results.provenance import Record


class Compared(TypedDict):
    """A figure in each world, and the differences."""

    simulator: Figure
    linux: Figure
    again: Figure
    difference_percent: float | None
    again_percent: float | None


class PacketEntry(TypedDict):
    """A packet of the flow."""

    time_ns: int
    seq: int
    payload_bytes: int
    ack: int
    sacks: list[list[int]]
    lost: bool
    words: str


class DivergenceEntry(TypedDict):
    """A packet at which the worlds diverge."""

    how: str
    end: str
    number: int
    time_ns: int
    simulator: PacketEntry | None
    linux: PacketEntry | None


class Followed(TypedDict):
    """The first flow in both worlds."""

    agreed_packets: int | None
    first_data_ns: dict[str, int | None]
    divergences: list[DivergenceEntry]


class CellEntry(Followed):
    """A policy and group of flows on one link with one workload."""

    policy: str
    group: str
    metrics: dict[str, Compared]
    acks_by_reason: dict[str, Compared]


class TableEntry(TypedDict):
    """The cells of one link and workload."""

    link: str
    workload: str
    skipped: dict[str, str]
    cells: list[CellEntry]


class Document(TypedDict):
    """A plan in both worlds."""

    schema_version: int
    kind: str
    worlds: dict[str, Record]
    plan: PlanEntry
    tolerance_ns: int
    same_losses: bool
    tables: list[TableEntry]
