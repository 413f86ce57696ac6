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
    """Histogram: upper bounds and counts of the buckets that are not empty."""
    bucket_count: list[int]


@dataclass(slots=True, kw_only=True)
class Series:
    """One value for each interval of `series_interval_ns`, from time 0."""

    time_ns: list[int]
    delivered_bytes: list[int]
    acks: list[int]
    acks_by_reason: dict[str, list[int]]
    """Reason label -> ACKs in the interval."""
    cwnd_bytes: list[int]
    ssthresh_bytes: list[int]
    """0: not set yet."""
    srtt_ns: list[int]
    rtt_ns: list[int] | None = None
    """Mean of the RTTs measured in the interval; 0: there were none."""
    bytes_in_flight: list[int]
    rcv_wnd_bytes: list[int]
    policy: dict[str, list[int]]
    """Value of the receiver's policy (`ackwise policy show` lists them) -> what it was."""


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
    """Data at the receiving TCP: when it came, and the segments of one arrival (GRO)."""
    arrival_segments: list[int] | None = None
    truncated: bool


@dataclass(slots=True, kw_only=True)
class ChannelSeries:
    """What waits in a channel's queue at each multiple of `series_interval_ns`, from time 0."""

    time_ns: list[int]
    acks: list[int]
    """Pure ACKs."""
    data: list[int]
    """All other packets."""


@dataclass(slots=True, kw_only=True)
class HostResult:
    """A host's processor."""

    cpu_busy_ns: int | None = None
    cpu_share: float | None = None
    cpu_s_per_gb: float | None = None
    """Processor seconds for each 10^9 bytes delivered, all groups."""
    dropped_backlog: int | None = None


@dataclass(slots=True, kw_only=True)
class PingResult:
    """Echo requests from the client, up to the last that was answered."""

    sent: int
    lost: int
    rtt_ns: Quantiles


@dataclass(slots=True, kw_only=True)
class FlowResult:
    """One flow."""

    start_ns: int
    end_ns: int
    """Last byte delivered; 0: none was."""
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
    """Of `bytes`, those of pure ACKs."""
    dropped_queue: int
    acks_dropped_queue: int
    """Of `dropped_queue`, pure ACKs."""
    dropped_link: int
    marked: int
    """Marked by the queue instead of dropped (RFC 3168)."""
    acks_filtered: int
    max_queue_packets: int
    busy_share: float
    series: ChannelSeries | None = None


@dataclass(slots=True, kw_only=True)
class GroupResult:
    """The flows of one group taken together. Rates are over the time from the group's first byte
    sent to its last byte delivered.
    """

    name: str
    policy: str
    flows_started: int
    flows_completed: int
    delivered_bytes: int
    """Payload read by the receiving application, all flows."""
    goodput_bps: float
    fairness: float
    """Jain's index of the flows' goodputs; 1 for a single flow."""
    segments_received: int
    acks_sent: int
    """ACK-only segments sent by the data receiver."""
    acks_piggybacked: int
    """ACKs that rode on data of the receiver."""
    segments_per_ack: float
    """Segments received per ACK (pure or piggybacked)."""
    acks_by_reason: dict[str, int]
    """Pure ACKs by reason label, zero counts left out."""
    rtt_ns: Quantiles
    """Round-trip times measured by the sender."""
    ack_latency_ns: Quantiles
    """From the arrival of a segment at the receiving TCP to the ACK that covers it."""
    message_latency_ns: Quantiles
    """Messages (requests, writes, whole flows): from first write to last byte delivered."""
    retransmitted_segments: int
    timeouts: int
    fast_recoveries: int | None = None
    stalls: int | None = None
    """Times in which the sender had data and could not send until a delayed-ACK deadline passed."""
    stalled_ns: int | None = None
    flows: list[FlowResult]


@dataclass(slots=True, kw_only=True)
class RunResult:
    """A run."""

    schema_version: int
    seed: int
    duration_ns: int
    """Simulated time at the end."""
    events: int | None = None
    packet_hops: int | None = None
    """Packets that crossed a link, all links added up."""
    groups: list[GroupResult]
    ping: PingResult | None = None
    down: ChannelResult | None = None
    up: ChannelResult | None = None
    client: HostResult
    server: HostResult
