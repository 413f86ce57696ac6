# SPDX-License-Identifier: MIT
"""The document of a diagnosis: the keys of crates/diagnose that Python reads; it has more."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from ackwise.engine.replayed import Cells, Price


class Example(TypedDict):
    """A packet that shows something."""

    number: int


class Distribution(TypedDict):
    """A distribution; None: no samples."""

    samples: int
    p50: int


class Habits(TypedDict):
    """How a receiver acknowledges."""

    prompt_segments: Distribution
    prompt_examples: list[Example]
    late_ns: Distribution
    late_examples: list[Example]
    quick_acks: int
    stretch_acks: int
    stretch_examples: list[Example]
    window_bound_acks: int
    window_bound_examples: list[Example]
    window_updates: int
    window_update_examples: list[Example]
    compressed_acks: int
    compressed_below: int
    compressed_by_receiver: int
    merged_packets: int
    merged_examples: list[Example]
    offload: str | None


class Verdict(TypedDict):
    """The policies that explain a receiver's ACKs, or why none is named."""

    undecided: str | None
    policies: list[str]
    share: float
    judged_acks: int
    confidence: str | None


class System(TypedDict):
    """The stock systems or devices that acknowledge so."""

    names: list[str]
    share: float
    judged_acks: int
    confidence: str | None
    held_acks: int
    held_ns: Distribution


class Thinning(TypedDict):
    """ACKs that did not reach the capture point."""

    seen_acks: int
    missing_acks: int
    queued_acks: int
    missing_examples: list[Example]


class Acking(TypedDict):
    """How one endpoint acknowledges what the other sends."""

    habits: Habits
    system: System
    verdict: Verdict
    thinning: Thinning | None
    thinned_by: str
    segments: Distribution


class SentCounts(TypedDict):
    """Packets with data."""

    new_bytes: int
    segments: int
    data_packets: int
    ce_packets: int
    retransmissions: dict[str, int]
    syn_retransmissions: int
    fin_packets: int
    rst_packets: int
    recoveries: dict[str, int]
    timeouts_despite_sack: int
    unseen_retransmissions: int
    unacknowledged_bytes: int


class AckCounts(TypedDict):
    """Packets of the other endpoint."""

    pure: int
    piggybacked: int
    advancing: int
    missed_bytes: int
    missed_segments: int
    ece_packets: int
    ce_reported_packets: int
    ce_reported_bytes: int
    ce_unclear_acks: int
    triple_duplicates: int
    with_sack: int
    with_dsack: int
    with_foreign_sack: int


class Counts(TypedDict):
    """What one endpoint sent and the other acknowledged."""

    sent: SentCounts
    acks: AckCounts


class Share(TypedDict):
    """Time under a limit, and data sent in it."""

    ns: int
    bytes: int


class Span(TypedDict):
    """A period in which one limit held."""

    from_ns: int
    to_ns: int
    limit: str


class Answers(TypedDict):
    """Waits for data of the peer."""

    waits: int
    ns: int


class Rival(TypedDict):
    """A limit that looks the same in a capture, and what tells them apart."""

    limit: str
    told_by: str


class Refuted(TypedDict):
    """A limit that other figures contradict."""

    limit: str
    ns: int
    because: str


class Blocks(TypedDict):
    """Waits until everything sent was acknowledged."""

    waits: int
    ns: int
    delayed_ns: int


class Told(TypedDict):
    """A router's messages about packets that are too large."""

    router: str
    mtu_bytes: int
    messages: int


class PathMtu(TypedDict):
    """IP packet lengths of a path MTU black hole."""

    lost_bytes: int
    passed_bytes: int
    shown_by: str
    told: Told | None
    holds_others: bool


class Judgment(TypedDict):
    """What limited a direction."""

    limits: dict[str, Share]
    confidence: str  # "sure", "likely" or "undecided"
    doubts: list[str]
    rivals: list[Rival]
    refuted: list[Refuted]
    spans: list[Span]
    stalls_ns: dict[str, int]
    rtt_mean_ns: int | None
    rtt_min_ns: int | None
    lost_ns: int
    link_bytes_per_s: float | None
    sustained_bytes_per_s: float
    window_max_bytes: int
    flight_max_bytes: int
    answers: Answers
    blocks: Blocks
    held: Answers
    path_mtu: PathMtu | None
    next_limits_bps: NotRequired[dict[str, float]]


class Window(TypedDict):
    """The receive window."""

    is_known: bool
    closures: int
    closed_ns: int


class Hops(TypedDict):
    """TTLs of an endpoint's packets, and of those that somebody else sent in its place."""

    own_ttl: int | None
    foreign_ack_ttl: int | None
    foreign_rst_ttl: int | None


class Half(TypedDict):
    """What one endpoint of a connection sends, and the other acknowledges."""

    counts: Counts
    limits: Judgment
    window: Window
    acking: Acking
    hops: Hops


class Options(TypedDict):
    """Options of a SYN."""

    mss_bytes: int | None
    window_scale: int | None
    sack_permitted: bool
    timestamps: bool
    is_cut: bool


class Connection(TypedDict):
    """A connection; half 0 is what endpoint 0 sends."""

    index: int
    endpoints: list[str]
    initiator_known: bool
    start_ns: int
    end_ns: int
    ending: str
    packets: int
    handshake: dict[str, int] | None
    repeated_packets: list[int]
    distance_ns: list[int | None]
    options: list[Options | None]
    ecn: str | None
    halves: list[Half]


class Cut(TypedDict):
    """Where a file ends inside a packet."""

    offset: int
    packet: int


class File(TypedDict):
    """One of the captures."""

    name: str
    truncated: NotRequired[Cut | None]
    interfaces: list[dict[str, object]]


class ReplayedHalf(Cells):
    """Policies on the arrivals of one half."""

    connection: int
    half: int


class Replayed(TypedDict):
    """The replay of other policies."""

    price: Price
    directions: list[ReplayedHalf]


class LeftOut(TypedDict):
    """Sums over connections."""

    connections: int
    packets: int
    new_bytes: int


class Notes(TypedDict):
    """What is said of the captures themselves."""

    files: list[File]
    packets: int
    tcp_packets: int
    duration_ns: int
    dropped_packets: int | None
    left_out: LeftOut  # connections beyond those kept
    cut_connections: int  # ended early, because too many were open
    cut_options: NotRequired[int]
    skipped: NotRequired[dict[str, int]]
    protocols: NotRequired[dict[str, int]]
    backward_steps: NotRequired[int]
    largest_backward_ns: NotRequired[int]
    is_sorted: NotRequired[bool]


class Document(Notes):
    """A diagnosis."""

    schema_version: NotRequired[int]
    kind: NotRequired[str]
    provenance: NotRequired[dict[str, str]]
    connections: Sequence[Connection]
    connections_left_out: NotRequired[int]
    replay: NotRequired[Replayed]
    anonymized: NotRequired[bool]


class Series(TypedDict):
    """Tracks of one transfer, each as columns."""

    data: dict[str, object]
    acks: dict[str, object]
    marks: dict[str, dict[str, object]]
