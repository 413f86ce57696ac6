# SPDX-License-Identifier: MIT
"""The options and results of crates/replay: the keys that Python uses; there are more."""

from collections.abc import Sequence
from typing import Literal, NotRequired, TypedDict

from ackwise.engine.scenario import Policy


class Price(TypedDict):
    """What an ACK costs beside latency."""

    rho_permille: int
    unit_ns: int


class Options(TypedDict, total=False):
    """How captures are replayed; crates/replay has the defaults."""

    policies: list[Policy]
    min_data_segments: int
    price: Price
    reader_lag_ns: int
    ack_delay_max_ns: float
    seed: int
    device: dict[str, int] | None
    only: Sequence[tuple[int, int]] | None
    max_directions: int
    traced_directions: int


class Arrivals(TypedDict):
    """Synthetic arrivals: `times_ns` does not decrease; `rtt_ns` is the receiver's estimate."""

    times_ns: list[int]
    bytes: list[int]
    mss_bytes: int
    rtt_ns: NotRequired[int]


_Ends = TypedDict("_Ends", {"from": str, "to": str})


class CapturedArrivals(_Ends):
    """Times and sizes of new data in a capture's largest direction."""

    truncated: dict[str, int] | None
    times_ns: list[int]
    bytes: list[int]


class Optimum(TypedDict):
    """The cheapest schedule in hindsight."""

    acks: int
    latency_ns: int
    cost: float


class Schedule(Optimum):
    """The cheapest schedule, with the time of each ACK."""

    schedule_ns: list[int]


class AckPoint(TypedDict):
    """One ACK."""

    time_ns: int
    ack: int
    reason: str


class AckTrace(TypedDict):
    """The first ACKs, and the number in each part of the time by reason."""

    first: list[AckPoint]
    part_ns: int
    counts: list[tuple[str, list[int]]]


class PolicyResult(TypedDict):
    """A policy, or the capture's own receiver, on the arrivals of one direction."""

    policy: str
    acks: int
    acks_piggybacked: int
    acks_by_reason: dict[str, int]
    segments_per_ack: float
    ack_latency_ns: dict[str, float]
    latency_ns: int
    cost: float
    cost_ratio: float | None
    cpu_s_per_gb: float | None
    closing_ack: bool
    trace: NotRequired[AckTrace]


class ArrivalsResult(TypedDict):
    """Policies on synthetic arrivals."""

    segments: int
    optimum: Optimum
    policies: list[PolicyResult]


class Measured(_Ends):
    """What a direction of a capture shows, whatever the policy."""

    connection: int
    direction: int
    start_ns: int
    end_ns: int
    data_segments: int
    payload_bytes: int
    packets_above_mss: int
    window_known: bool
    receiver_distance_ns: int
    unseen_bytes: int


class DirectionResult(Measured):
    """Policies on the arrivals of one direction."""

    optimum: Optimum
    policies: list[PolicyResult]


class ReplayResult(TypedDict):
    """The replay of a capture."""

    price: Price
    truncated: dict[str, int] | None
    directions_skipped: int
    directions_left_out: dict[str, int]
    directions: list[DirectionResult]


# Figures of a policy, in the order of their columns; None: not known.
Figure = Literal[
    "acks",
    "acks_saved",
    "acks_saved_stock",
    "acks_piggybacked",
    "segments_per_ack",
    "ack_latency_mean_ns",
    "ack_latency_p50_ns",
    "ack_latency_p95_ns",
    "ack_latency_p99_ns",
    "ack_latency_max_ns",
    "latency_ns",
    "cost",
    "cost_ratio",
    "cpu_s_per_gb",
]


class Cell(TypedDict):
    """A policy on one direction, beside the others."""

    policy: str
    acks: int
    acks_piggybacked: int
    acks_by_reason: dict[str, int]
    segments_per_ack: float
    ack_latency_mean_ns: float
    ack_latency_p50_ns: float
    ack_latency_p95_ns: float
    ack_latency_p99_ns: float
    ack_latency_max_ns: float
    latency_ns: int
    cost: float
    cost_ratio: float | None
    cpu_s_per_gb: float | None
    closing_ack: bool
    acks_saved: float | None
    acks_saved_stock: float | None
    best: list[Figure]


class Cells(TypedDict):
    """Policies beside each other, and what is said of them."""

    notes: list[str]
    optimum: Optimum
    cells: list[Cell]
