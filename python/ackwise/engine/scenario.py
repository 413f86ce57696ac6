# SPDX-License-Identifier: MIT
"""The input of a run, as the engine takes it.

Made by tools/classes.py from crates/sim/src/scenario.rs: do not edit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Discipline = Literal[
    "fifo",
    "ack-separation",
    "ack-filter",
    "ack-separation-filter",
    "codel",
    "fq-codel",
    "fq",
    "cake",
]
AckFilter = Literal["off", "on", "aggressive"]
Coalescing = Literal["off", "samsung", "qualcomm", "broadcom", "aic"]
DataDirection = Literal["down", "up"]
CongestionControl = Literal["reno", "cubic", "bbr"]
Counting = Literal["bytes", "bytes2smss", "acks"]
Hystart = Literal["linux", "rfc9406", "off"]
Nagle = Literal["bsd43", "unsent", "minshall", "off"]
Recovery = Literal["sack", "newreno", "timeout"]
SocketLayer = Literal["linux", "bsd43"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A policy by name and its parameters, on a host."""

    name: str
    params: Mapping[str, int] = field(default_factory=dict)
    """values by parameter; those not named keep their initial value"""
    host: str = "linux"
    """whose rules its orders stand on; a host's own name without a policy"""
    clamp: bool = True
    """whether a quarter of flight and window bounds its orders; else only the longest delay"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstLoss:
    """Gilbert-Elliott burst loss."""

    enter_ppm: int
    """probability that a packet enters the bad state"""
    leave_ppm: int
    """probability that a packet leaves it"""
    loss_ppm: int = 1000000
    """loss probability in the bad state"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reorder:
    """Packets overtaken by later ones."""

    probability_ppm: int
    """share of packets that are delayed"""
    delay_ns: int
    """extra delay of these packets"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A period in which every packet is lost."""

    start_ns: int
    """start time"""
    length_ns: int
    """duration"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lose:
    """A packet identified by its position in the byte stream, so that it is the same one whenever
    it is sent.
    """

    at_bytes: int | None = None
    """offset of a byte that it carries, of those of its direction from 0; absent: packets without
    data are counted, those of the handshake included
    """
    nth: int
    """the first, the second ... of the packets that carry that byte"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Links private to each flow, the same at both ends and in both directions."""

    rate_bps: int
    """link rate"""
    delay_ns: int
    """one-way propagation delay"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """Processor costs of an application."""

    read_ns: int = 0
    """processor time per read: wake-up and system call"""
    read_kib_ns: int = 0
    """additional processor time per KiB read"""
    write_ns: int = 0
    """processor time per write of bulk: wake-up and system call"""
    write_kib_ns: int = 0
    """additional processor time per KiB written by bulk"""
    turn_bytes: int = 0
    """bytes that bulk writes before another process gets its turn; 0: one segment"""
    turn_packets: int = 64
    """maximum number of packets processed in a row while the process waits"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is kept besides the summary."""

    trace: bool = False
    """keep a time-sequence trace (data, ACKs with reasons) of the first flow of each group"""
    trace_limit: int = 0
    """maximum number of trace points per flow"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """TCP of the data sender."""

    congestion_control: CongestionControl = "cubic"
    """congestion control algorithm"""
    counting: Counting = "bytes"
    """what makes the congestion window grow: acknowledged bytes, acknowledged bytes up to 2 SMSS
    per ACK (ABC, RFC 3465), or ACKs
    """
    hystart: Hystart = "linux"
    """what ends slow start before a loss: HyStart as in Linux (cubic only), HyStart++ (RFC 9406;
    reno, cubic), or nothing
    """
    nagle: Nagle = "minshall"
    """variant of Nagle's algorithm"""
    recovery: Recovery = "sack"
    """loss recovery"""
    socket: SocketLayer = "linux"
    """socket layer; bsd43: 1024-byte clusters, output after every 4096 bytes"""
    initial_window_segments: int = 10
    """initial congestion window"""
    send_buffer_bytes: int = 4194304
    """send buffer: maximum bytes written and not yet acknowledged"""
    send_buffer_grows: bool = False
    """the send buffer grows with the congestion window, to twice its size"""
    low_water_bytes: int = 0
    """socket bsd43: a blocked writer wakes when this much of the send buffer is free, or all of it
    if it is smaller; 0: one cluster
    """
    copy_bps: int = 0
    """socket bsd43: rate at which a write is copied into the send buffer; 0: no limit"""
    max_window_segments: int = 0
    """largest congestion window; 0: no limit"""
    pacing: bool = False
    """pace segments (bbr always does)"""
    tail_loss_probe: bool = True
    """tail loss probe (RFC 8985)"""
    min_rto_ns: int = 200000000
    """minimum RTO"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receiver:
    """TCP of the data receiver."""

    recv_buffer_bytes: int = 131072
    """initial receive buffer; memory if it grows"""
    recv_buffer_max_bytes: int = 6291456
    """limit of receive-buffer autotuning, in memory (Linux, tcp_rmem): a segment takes its payload
    and 896 bytes; 0: fixed buffer
    """
    window_scaling: bool = True
    """window scaling; without it the window is at most 65535 bytes"""
    timestamps: bool = True
    """timestamps option: 12 bytes per segment"""
    slow_window: bool = True
    """the advertised window starts at 64 KiB and grows as data arrives (Linux)"""
    window_clamp_bytes: int = 0
    """the advertised window is never larger (Linux, TCP_WINDOW_CLAMP); 0: no clamp"""
    reader_lag_ns: int = 0
    """the application reads this long after data arrives"""
    reader_bps: int = 0
    """highest rate at which the application reads; 0: no limit"""
    ack_after_read: bool = False
    """an ACK is sent once the application has read the data it covers (4.3BSD)"""
    ack_delay_max_ns: int = 500000000
    """maximum delay of an ACK on this host, whatever the policy (Linux, tcp_delack_max)"""
    socket: SocketLayer = "linux"
    """socket layer"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bulk:
    """Writes as fast as the socket accepts."""

    kind: Literal["bulk"] = field(default="bulk", init=False)
    bytes: int = 0
    """bytes to send; 0: until the run ends"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestResponse:
    """The data receiver sends a request and the data sender answers, one exchange at a time."""

    kind: Literal["request-response"] = field(default="request-response", init=False)
    request_bytes: int
    """size of a request"""
    response_bytes: int
    """size of a response"""
    think_ns: int = 0
    """pause before the next request"""
    count: int = 0
    """number of requests; 0: until the run ends"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomSpacing:
    """Writes of equal size at random distances, uniform on [min_gap_ns, max_gap_ns]; a stream of a
    fixed rate if both are the same.
    """

    kind: Literal["random-spacing"] = field(default="random-spacing", init=False)
    packets: int
    """number of writes"""
    bytes: int
    """size of a write"""
    min_gap_ns: int = 0
    """time between writes, whether or not the last one was delivered: uniform from this"""
    max_gap_ns: int
    """to this, if it is longer"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OddWrites:
    """`writes` writes of `write_bytes` back to back form a message; the next message follows
    `gap_ns` after this one was delivered.
    """

    kind: Literal["odd-writes"] = field(default="odd-writes", init=False)
    write_bytes: int
    """size of a write"""
    writes: int
    """writes per message"""
    gap_ns: int = 0
    """pause after a message is delivered"""
    count: int = 0
    """number of messages; 0: until the run ends"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParetoBulk:
    """Flow sizes drawn from a bounded Pareto distribution (shape 1.2) with this mean."""

    kind: Literal["pareto-bulk"] = field(default="pareto-bulk", init=False)
    mean_bytes: int
    """mean flow size"""
    max_bytes: int
    """largest flow size"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Writes at given times, from a capture."""

    kind: Literal["replay"] = field(default="replay", init=False)
    times_ns: tuple[int, ...]
    """time of each write, non-decreasing"""
    bytes: tuple[int, ...]
    """size of each write"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """One direction of the shared path: a queue, a transmitter, a delay line."""

    rate_bps: int
    """link rate, link-layer overhead included"""
    delay_ns: int
    """one-way propagation delay"""
    jitter_ns: int = 0
    """extra delay, uniform from 0 to this, order kept"""
    queue_packets: int = 0
    """queue limit in packets; 0: not limited, or Linux's default: fq-codel 10240, fq 10000"""
    queue_bytes: int = 0
    """queue limit in bytes; 0: not limited, or Linux's default: fq-codel 32 MiB, cake four RTTs, at
    least 4 MiB
    """
    discipline: Discipline = "fifo"
    """queueing discipline"""
    ack_share_ppm: int = 500000
    """largest share of the bytes for separated ACKs while data is queued; absent: 50%"""
    target_ns: int | None = None
    """CoDel: longest standing delay; absent: 5 ms"""
    interval_ns: int | None = None
    """CoDel: time to react, about the longest RTT (CAKE: `rtt`, target 1/20 of it); absent: 100 ms
    """
    quantum_bytes: int | None = None
    """bytes that a flow sends in a turn; absent: fq-codel 1 frame, fq 2"""
    initial_quantum_bytes: int | None = None
    """bytes that a flow sends in its first turn; absent: 10 frames"""
    flow_limit_packets: int | None = None
    """queue limit in packets of each flow; absent: 100"""
    shaper_rate_bps: int | None = None
    """rate of CAKE's shaper, at most the link's; absent: the link's"""
    ack_filter: AckFilter = "off"
    """pure ACKs that CAKE drops because a later packet of the flow makes them redundant"""
    ack_compression_ns: int = 0
    """a pure ACK replaces the last packet of its flow's queue if that is one too, for so long from
    the first of them on (XNU: 5 ms); 0: never
    """
    coalescer: Coalescing = "off"
    """what the driver of the host that sends in this direction does to its ACKs, before the queue
    """
    loss_ppm: int = 0
    """independent random packet loss, after the queue"""
    burst_loss: BurstLoss | None = None
    """Gilbert-Elliott burst loss"""
    reorder: Reorder | None = None
    """reordering: packets overtaken by later ones"""
    duplicate_ppm: int = 0
    """share of packets delivered twice"""
    outages: tuple[Outage, ...] = ()
    """a period in which every packet is lost"""
    lose: tuple[Lose, ...] = ()
    """a packet of the first flow that is lost in front of the queue"""
    grant_interval_ns: int = 0
    """packets leave only at multiples of this (DOCSIS requests, LTE grants); 0: at any time"""
    per_packet_ns: int = 0
    """medium time per packet in addition to its bytes (Wi-Fi)"""
    shared_medium: bool = False
    """up and down share one half-duplex medium (set it in both)"""
    lab_clock: bool = False
    """packet times as on the lab's links: HTB, netem and a clock of 256 ns"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A host: its processor (zero costs: infinitely fast) and what its memory allows."""

    data_received_ns: int = 0
    """processor time per data segment received"""
    data_sent_ns: int = 0
    """processor time per data segment sent"""
    ack_received_ns: int = 0
    """processor time per ACK received"""
    acknowledged_kib_ns: int = 0
    """additional processor time per KiB that an arriving packet acknowledges"""
    ack_sent_ns: int = 0
    """processor time per ACK sent"""
    policy_ns: int = 0
    """processor time per question to a policy"""
    send_buffer_max_bytes: int | None = None
    """largest send buffer of a connection; absent: no limit"""
    recv_buffer_max_bytes: int | None = None
    """largest receive buffer of a connection; absent: no limit"""
    backlog_packets: int = 1000
    """maximum number of packets waiting for the processor"""
    gro_max_bytes: int = 0
    """largest merged segment"""
    gro_window_ns: int = 0
    """time for which arrivals are collected before TCP processes them"""
    process: Process = Process()
    """the application as a process: packet processing has priority over it; absent: it reads and
    writes at once and at no cost
    """


App = Bulk | RequestResponse | RandomSpacing | OddWrites | ParetoBulk | Replay


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowGroup:
    """Flows of one kind."""

    name: str
    """unique name of the group"""
    count: int = 1
    """number of flows; with Poisson arrivals, the maximum"""
    direction: DataDirection = "down"
    """down: the server sends the data; up: the client does"""
    start_ns: int = 0
    """start time of the flows"""
    start_jitter_ns: int = 0
    """random extra start delay of each flow, uniform from 0 to this"""
    arrivals_per_s: float = 0.0
    """rate of Poisson flow arrivals; 0: none"""
    policy: Policy
    """policy of the receiving host, or its host alone"""
    peer_policy: Policy = Policy(name="linux")
    """policy of the sending host, or its host alone"""
    sender: Sender = Sender()
    """TCP of the data sender"""
    receiver: Receiver = Receiver()
    """TCP of the data receiver"""
    handshake: bool = True
    """connections open with a handshake where both ends are Linux (recovery sack, socket linux);
    otherwise, and with false, they start established
    """
    app: App
    """the application"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One run: two hosts (client, server), one path between them, groups of flows over it."""

    seed: int
    """seed of every random number of the run"""
    duration_ns: int
    """longest simulated time"""
    series_interval_ns: int = 0
    """interval of the time series; 0: no series"""
    ping_interval_ns: int = 0
    """interval at which the client pings the server (ICMP, 56 bytes of data); 0: not at all"""
    mtu_bytes: int = 1500
    """largest IP packet"""
    ip_tcp_header_bytes: int = 40
    """IP and TCP headers without options (IPv6: 60B)"""
    link_overhead_bytes: int = 0
    """link-layer bytes per packet"""
    link_cells: bool = False
    """packets with overhead fill whole ATM cells: 53 bytes per 48 bytes, rounded up"""
    ecn: bool = False
    """Linux's hosts negotiate ECN (RFC 3168), and codel, fq-codel and cake mark packets of such
    connections that they would drop
    """
    down: Channel
    """server to client"""
    up: Channel
    """client to server"""
    access: Access | None = None
    """an access link of its own for each flow, at both ends; absent: none"""
    one_processor: bool = False
    """one processor, with the client's costs, serves both hosts"""
    client: Host = Host()
    """the client's host"""
    server: Host = Host()
    """the server's host"""
    groups: tuple[FlowGroup, ...]
    """groups of flows, at least one"""
    record: Record = Record()
    """what is kept besides the summary"""
