# SPDX-License-Identifier: MIT
"""The result of a run, of the lab too: None where only the simulator can know.

Made by tools/classes.py from crates/sim/src/result.rs: do not edit.
"""

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class Quantiles:
    """A distribution."""

    samples: int
    mean: float
    p50: float
    p95: float
    p99: float
    max: float
    bucket_upper: list[int]
    """Histogram: upper bounds and counts of the non-empty buckets."""
    bucket_count: list[int]


@dataclass(slots=True, kw_only=True)
class Series:
    """One value for each interval of `series_interval_ns`, from time 0."""

    time_ns: list[int]
    delivered_bytes: list[int]
    acks: list[int]
    acks_by_reason: dict[str, list[int]]
    """Reason label -> number of ACKs in the interval."""
    cwnd_bytes: list[int]
    ssthresh_bytes: list[int]
    """0: not set yet."""
    srtt_ns: list[int]
    rtt_ns: list[int] | None = None
    """Mean of the RTTs measured in the interval; 0: there were none."""
    bytes_in_flight: list[int]
    rcv_wnd_bytes: list[int]
    policy: dict[str, list[int]]
    """Name of a value of the receiver's policy (see `ackwise policy show`) -> its values."""


@dataclass(slots=True, kw_only=True)
class Trace:
    """Time-sequence points of one flow, in order of time."""

    data_time_ns: list[int]
    data_seq: list[int]
    data_bytes: list[int]
    data_retransmitted: list[bool]
    ack_time_ns: list[int]
    ack_seq: list[int]
    ack_reason: list[str]
    arrival_time_ns: list[int] | None = None
    """Arrivals of data at the receiving TCP: time, and number of segments in one arrival (GRO)."""
    arrival_segments: list[int] | None = None
    truncated: bool


@dataclass(slots=True, kw_only=True)
class ChannelSeries:
    """Content of a channel's queue at each multiple of `series_interval_ns`, from time 0."""

    time_ns: list[int]
    acks: list[int]
    """Number of pure ACKs."""
    data: list[int]
    """Number of other packets."""


@dataclass(slots=True, kw_only=True)
class HostResult:
    """A host's processor."""

    cpu_busy_ns: int | None = None
    cpu_share: float | None = None
    cpu_s_per_gb: float | None = None
    """Processor seconds per 10^9 bytes delivered, all groups."""
    dropped_backlog: int | None = None


@dataclass(slots=True, kw_only=True)
class PingResult:
    """Echo requests of the client, up to the last that was answered."""

    sent: int
    lost: int
    rtt_ns: Quantiles


@dataclass(slots=True, kw_only=True)
class FlowResult:
    """One flow."""

    start_ns: int
    end_ns: int
    """Time at which the last byte was delivered; 0: none was."""
    delivered_bytes: int
    goodput_bps: float
    segments_received: int
    acks_sent: int
    retransmitted_segments: int
    timeouts: int
    stalls: int | None = None
    completed: bool
    series: Series | None = None
    trace: Trace | None = None


@dataclass(slots=True, kw_only=True)
class ChannelResult:
    """One direction of the link."""

    packets: int
    bytes: int
    ack_bytes: int
    """Part of `bytes` that pure ACKs account for."""
    dropped_queue: int
    acks_dropped_queue: int
    """Number of pure ACKs among `dropped_queue`."""
    dropped_link: int
    marked: int
    """Number of packets marked by the queue instead of dropped (RFC 3168)."""
    acks_filtered: int
    """Number of pure ACKs dropped as redundant: by the queue, or by the sending host's driver."""
    max_queue_packets: int
    """Most packets, and most bytes, that waited at a time; the one in transmission does not."""
    max_queue_bytes: int
    busy_share: float
    series: ChannelSeries | None = None


@dataclass(slots=True, kw_only=True)
class GroupResult:
    """All flows of one group. Rates are over the time from the group's first byte sent to its last
    byte delivered.
    """

    name: str
    policy: str
    flows_started: int
    flows_completed: int
    delivered_bytes: int
    """Payload read by the receiving applications, all flows."""
    goodput_bps: float
    fairness: float
    """Jain's index of the flows' goodputs; 1 for a single flow."""
    segments_received: int
    acks_sent: int
    """ACK-only segments sent by the data receiver."""
    acks_piggybacked: int
    """ACKs carried by data of the receiver."""
    segments_per_ack: float
    """Segments received per ACK (pure or piggybacked)."""
    acks_by_reason: dict[str, int]
    """Number of pure ACKs by reason label, without zero counts."""
    rtt_ns: Quantiles
    """RTTs measured by the sender."""
    ack_latency_ns: Quantiles
    """Time from the arrival of a segment at the receiving TCP to the ACK that covers it."""
    message_latency_ns: Quantiles
    """Latency of messages (requests, writes, flows), from first write to last byte delivered."""
    retransmitted_segments: int
    timeouts: int
    fast_recoveries: int | None = None
    stalls: int | None = None
    """Number of times the sender had data but could not send until a delayed-ACK timer expired."""
    stalled_ns: int | None = None
    flows: list[FlowResult]


@dataclass(slots=True, kw_only=True)
class RunResult:
    """A run."""

    schema_version: int
    seed: int
    duration_ns: int
    """Simulated time at the end of the run."""
    events: int | None = None
    packet_hops: int | None = None
    """Number of packets that crossed a link, summed over all links."""
    groups: list[GroupResult]
    ping: PingResult | None = None
    down: ChannelResult | None = None
    up: ChannelResult | None = None
    client: HostResult
    server: HostResult
