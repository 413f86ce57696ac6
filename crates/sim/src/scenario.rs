// SPDX-License-Identifier: MIT
//! The input of one simulation run: a resolved scenario, all numbers, units in names.
//!
//! The caller resolves a plan (links x workloads x policies x seeds) into scenarios; the engine
//! knows no names of links or workloads. Unknown keys are refused.
//!
//! Most keys are also keys of link and workload files: their doc comments are what users read in
//! docs/plan-format.md, and remarks for this crate's readers are plain comments.

use crate::keys::{choice, keys, KeyType};
pub use ackwise_core::PolicyChoice;
use serde::{Deserialize, Serialize};

const S: u64 = 1_000_000_000;
/// A terabit per second: 8 ps for each byte.
const RATE_MAX: u64 = 1_000_000_000_000;
const DELAY_MAX: u64 = 60 * S;
const PAUSE_MAX: u64 = 3600 * S;
const RUN_MAX: u64 = 100_000 * S;
const PPM_MAX: u64 = 1_000_000;
const PACKETS_MAX: u64 = 10_000_000;
const BUFFER_MAX: u64 = 1 << 32;
/// Maximum number of a flow's bytes.
const STREAM_MAX: u64 = 1 << 48;
/// Maximum window (RFC 7323, 2.3).
const WINDOW_MAX: u64 = 1 << 30;

keys! {
    /// One run: two hosts (client, server), one path between them, groups of flows over it.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Scenario {
        /// seed of every random number of the run
        pub seed: u64,
        /// longest simulated time
        pub duration_ns: u64 [1..=RUN_MAX],
        /// interval of the time series; 0: no series
        #[serde(default)]
        pub series_interval_ns: u64,
        /// interval at which the client pings the server (ICMP, 56 bytes of data); 0: not at all
        #[serde(default)]
        pub ping_interval_ns: u64 [0..=DELAY_MAX],
        /// largest IP packet
        // The MSS is `mtu_bytes - ip_tcp_header_bytes`, less the options in every segment.
        #[serde(default = "d::mtu")]
        pub mtu_bytes: u32 [116..=65_535],
        /// IP and TCP headers without options (IPv6: 60B)
        #[serde(default = "d::header")]
        pub ip_tcp_header_bytes: u32 [20..=100],
        /// link-layer bytes per packet
        #[serde(default)]
        pub link_overhead_bytes: u32 [0..=1500],
        /// packets with overhead fill whole ATM cells: 53 bytes per 48 bytes, rounded up
        #[serde(default)]
        pub link_cells: bool,
        /// Linux's hosts negotiate ECN (RFC 3168), and codel, fq-codel and cake mark packets of such
        /// connections that they would drop
        #[serde(default)]
        pub ecn: bool,
        /// server to client
        pub down: ChannelSpec,
        /// client to server
        pub up: ChannelSpec,
        /// an access link of its own for each flow, at both ends; absent: none
        #[serde(default)]
        pub access: Option<Access>,
        /// one processor, with the client's costs, serves both hosts
        #[serde(default)]
        pub one_processor: bool,
        /// the client's host
        #[serde(default)]
        pub client: HostSpec,
        /// the server's host
        #[serde(default)]
        pub server: HostSpec,
        /// groups of flows, at least one
        pub groups: Vec<FlowGroup>,
        /// what is kept besides the summary
        #[serde(default)]
        pub record: RecordSpec,
    }
}

keys! {
    /// What is kept besides the summary.
    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RecordSpec {
        /// keep a time-sequence trace (data, ACKs with reasons) of the first flow of each group
        pub trace: bool,
        /// maximum number of trace points per flow
        pub trace_limit: u32,
    }
}

keys! {
    /// One direction of the shared path: a queue, a transmitter, a delay line.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ChannelSpec {
        /// link rate, link-layer overhead included
        pub rate_bps: u64 [1..=RATE_MAX],
        /// one-way propagation delay
        pub delay_ns: u64 [0..=DELAY_MAX],
        /// extra delay, uniform from 0 to this, order kept
        #[serde(default)]
        pub jitter_ns: u64 [0..=DELAY_MAX],
        /// queue limit in packets; 0: not limited, or Linux's default: fq-codel 10240, fq 10000
        #[serde(default)]
        pub queue_packets: u32 [0..=PACKETS_MAX],
        /// queue limit in bytes; 0: not limited, or Linux's default: fq-codel 32 MiB, cake four RTTs,
        /// at least 4 MiB
        #[serde(default)]
        pub queue_bytes: u64 [0..=BUFFER_MAX],
        /// queueing discipline
        #[serde(default)]
        pub discipline: Discipline,
        /// largest share of the bytes for separated ACKs while data is queued; absent: 50%
        // ACKs may use all the capacity that data leaves free.
        #[serde(default = "d::ack_share")]
        pub ack_share_ppm: u32 [10_000..=990_000],
        /// CoDel: longest standing delay; absent: 5 ms
        #[serde(default)]
        pub target_ns: Option<u64> [1_000..=S],
        /// CoDel: time to react, about the longest RTT (CAKE: `rtt`, target 1/20 of it); absent: 100 ms
        #[serde(default)]
        pub interval_ns: Option<u64> [20_000..=10 * S],
        /// bytes that a flow sends in a turn; absent: fq-codel 1 frame, fq 2
        #[serde(default)]
        pub quantum_bytes: Option<u32> [256..=1 << 20],
        /// bytes that a flow sends in its first turn; absent: 10 frames
        #[serde(default)]
        pub initial_quantum_bytes: Option<u32> [1..=1 << 20],
        /// queue limit in packets of each flow; absent: 100
        #[serde(default)]
        pub flow_limit_packets: Option<u32> [1..=PACKETS_MAX],
        /// rate of CAKE's shaper, at most the link's; absent: the link's
        #[serde(default)]
        pub shaper_rate_bps: Option<u64> [1_000..=RATE_MAX],
        /// pure ACKs that CAKE drops because a later packet of the flow makes them redundant
        #[serde(default)]
        pub ack_filter: AckFilter,
        /// a pure ACK replaces the last packet of its flow's queue if that is one too, for so long from
        /// the first of them on (XNU: 5 ms); 0: never
        #[serde(default)]
        pub ack_compression_ns: u64 [0..=S],
        /// what the driver of the host that sends in this direction does to its ACKs, before the queue
        #[serde(default)]
        pub coalescer: Coalescing,
        /// independent random packet loss, after the queue
        #[serde(default)]
        pub loss_ppm: u32 [0..=PPM_MAX],
        /// Gilbert-Elliott burst loss
        #[serde(default)]
        pub burst_loss: Option<BurstLoss>,
        /// reordering: packets overtaken by later ones
        #[serde(default)]
        pub reorder: Option<Reorder>,
        /// share of packets delivered twice
        #[serde(default)]
        pub duplicate_ppm: u32 [0..=PPM_MAX],
        /// a period in which every packet is lost
        // Experiments use them as injected congestion.
        #[serde(default)]
        pub outages: Vec<Outage>,
        /// a packet of the first flow that is lost in front of the queue
        // `ackwise twin --same-losses` gives those that the kernel's run lost.
        #[serde(default)]
        pub lose: Vec<Lose>,
        /// packets leave only at multiples of this (DOCSIS requests, LTE grants); 0: at any time
        #[serde(default)]
        pub grant_interval_ns: u64 [0..=S],
        /// medium time per packet in addition to its bytes (Wi-Fi)
        #[serde(default)]
        pub per_packet_ns: u64 [0..=S],
        /// up and down share one half-duplex medium (set it in both)
        #[serde(default)]
        pub shared_medium: bool,
        /// packet times as on the lab's links: HTB, netem and a clock of 256 ns
        #[serde(default)]
        pub lab_clock: bool,
    }
}

choice! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Discipline {
        /// First in, first out; arrivals beyond the limit are dropped.
        #[default]
        Fifo,
        /// Pure ACKs in a queue of their own, served first within a bounded share.
        AckSeparation,
        /// FIFO in which a newer pure ACK of a flow replaces an older one (RFC 3449, 5.2.1).
        AckFilter,
        /// `AckSeparation` with `AckFilter` in the ACKs' own queue.
        AckSeparationFilter,
        /// CoDel (RFC 8289).
        Codel,
        /// fq_codel (RFC 8290).
        FqCodel,
        /// Linux's packet scheduler: flows in turns, no AQM.
        Fq,
        /// A shaper with fair queueing, an AQM and an ACK filter.
        Cake,
    }
}

/// Keys of a direction that apply to certain disciplines only: they have no effect with others, so
/// they are refused there.
pub const KEYS_OF_DISCIPLINES: &[(&str, &[Discipline])] = {
    use Discipline::*;
    &[
        ("queue_packets", &[Fifo, AckSeparation, AckFilter, AckSeparationFilter, Codel, FqCodel, Fq]),
        ("queue_bytes", &[Fifo, AckSeparation, AckFilter, AckSeparationFilter, Codel, FqCodel, Cake]),
        ("ack_share_ppm", &[AckSeparation, AckSeparationFilter]),
        ("target_ns", &[Codel, FqCodel]),
        ("interval_ns", &[Codel, FqCodel, Cake]),
        ("quantum_bytes", &[FqCodel, Fq]),
        ("initial_quantum_bytes", &[Fq]),
        ("flow_limit_packets", &[Fq]),
        ("shaper_rate_bps", &[Cake]),
        ("ack_filter", &[Cake]),
        ("ack_compression_ns", &[FqCodel]),
    ]
};

choice! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum AckFilter {
        #[default]
        Off,
        /// Drops the older of two redundant ACKs.
        On,
        /// Drops any redundant ACK.
        Aggressive,
    }
}

choice! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Coalescing {
        #[default]
        Off,
        /// Samsung SCSC.
        Samsung,
        /// Qualcomm qcacld.
        Qualcomm,
        /// Broadcom DHD, mode HOLD.
        Broadcom,
        /// AIC8800.
        Aic,
    }
}

keys! {
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct BurstLoss {
        /// probability that a packet enters the bad state
        pub enter_ppm: u32 [0..=PPM_MAX],
        /// probability that a packet leaves it
        pub leave_ppm: u32 [1..=PPM_MAX],
        /// loss probability in the bad state
        #[serde(default = "d::all")]
        pub loss_ppm: u32 [0..=PPM_MAX],
    }
}

keys! {
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Reorder {
        /// share of packets that are delayed
        pub probability_ppm: u32 [0..=PPM_MAX],
        /// extra delay of these packets
        pub delay_ns: u64 [0..=DELAY_MAX],
    }
}

keys! {
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Outage {
        /// start time
        pub start_ns: u64 [0..=RUN_MAX],
        /// duration
        pub length_ns: u64 [1..=RUN_MAX],
    }
}

keys! {
    /// A packet identified by its position in the byte stream, so that it is the same one whenever
    /// it is sent.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Lose {
        /// offset of a byte that it carries, of those of its direction from 0; absent: packets without
        /// data are counted, those of the handshake included
        #[serde(default)]
        pub at_bytes: Option<u64> [0..=STREAM_MAX],
        /// the first, the second ... of the packets that carry that byte
        pub nth: u32 [1..=PACKETS_MAX],
    }
}

keys! {
    /// Links private to each flow, the same at both ends and in both directions.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Access {
        /// link rate
        pub rate_bps: u64 [1..=RATE_MAX],
        /// one-way propagation delay
        pub delay_ns: u64 [0..=DELAY_MAX],
    }
}

keys! {
    /// A host: its processor (zero costs: infinitely fast) and what its memory allows.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct HostSpec {
        /// processor time per data segment received
        // After aggregation (`gro_max_bytes`).
        pub data_received_ns: u64 [0..=S],
        /// processor time per data segment sent
        pub data_sent_ns: u64 [0..=S],
        /// processor time per ACK received
        pub ack_received_ns: u64 [0..=S],
        /// additional processor time per KiB that an arriving packet acknowledges
        // A sender frees each segment, so an ACK for many costs more than one for two.
        pub acknowledged_kib_ns: u64 [0..=S],
        /// processor time per ACK sent
        pub ack_sent_ns: u64 [0..=S],
        /// processor time per question to a policy
        // A host alone asks none.
        pub policy_ns: u64 [0..=S],
        /// largest send buffer of a connection; absent: no limit
        pub send_buffer_max_bytes: Option<u64> [256..=BUFFER_MAX],
        /// largest receive buffer of a connection; absent: no limit
        pub recv_buffer_max_bytes: Option<u64> [256..=WINDOW_MAX],
        /// maximum number of packets waiting for the processor
        // Later arrivals are dropped (Linux `net.core.netdev_max_backlog`).
        pub backlog_packets: u32 [1..=PACKETS_MAX],
        /// largest merged segment
        // 0: neighbouring segments of a flow are not merged.
        pub gro_max_bytes: u32 [0..=1 << 20],
        /// time for which arrivals are collected before TCP processes them
        // Interrupt moderation, NAPI.
        pub gro_window_ns: u64 [0..=S],
        /// the application as a process: packet processing has priority over it; absent: it reads and
        /// writes at once and at no cost
        pub process: Process,
    }
}

impl HostSpec {
    /// Whether its processor takes any time.
    pub(crate) fn is_paid(&self) -> bool {
        let packets = self.data_received_ns
            + self.data_sent_ns
            + self.ack_received_ns
            + self.acknowledged_kib_ns
            + self.ack_sent_ns
            + self.policy_ns;
        packets > 0 || self.process.is_modelled()
    }
}

impl Default for HostSpec {
    fn default() -> Self {
        HostSpec {
            data_received_ns: 0,
            data_sent_ns: 0,
            ack_received_ns: 0,
            acknowledged_kib_ns: 0,
            ack_sent_ns: 0,
            policy_ns: 0,
            send_buffer_max_bytes: None,
            recv_buffer_max_bytes: None,
            backlog_packets: 1000,
            gro_max_bytes: 0,
            gro_window_ns: 0,
            process: Process::default(),
        }
    }
}

keys! {
    /// Processor costs of an application.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Process {
        /// processor time per read: wake-up and system call
        // A read takes all there is.
        pub read_ns: u64 [0..=S],
        /// additional processor time per KiB read
        pub read_kib_ns: u64 [0..=S],
        /// processor time per write of bulk: wake-up and system call
        // A write is one segment, or what `turn_bytes` allows.
        pub write_ns: u64 [0..=S],
        /// additional processor time per KiB written by bulk
        pub write_kib_ns: u64 [0..=S],
        /// bytes that bulk writes before another process gets its turn; 0: one segment
        pub turn_bytes: u64 [0..=BUFFER_MAX],
        /// maximum number of packets processed in a row while the process waits
        // The default is what Linux takes from a card in one poll (NAPI_POLL_WEIGHT).
        pub turn_packets: u32 [1..=PACKETS_MAX],
    }
}

impl Default for Process {
    fn default() -> Self {
        Process { read_ns: 0, read_kib_ns: 0, write_ns: 0, write_kib_ns: 0, turn_bytes: 0, turn_packets: 64 }
    }
}

impl Process {
    /// Whether it costs anything.
    pub(crate) fn is_modelled(&self) -> bool {
        self.read_ns + self.read_kib_ns + self.write_ns + self.write_kib_ns > 0
    }
}

choice! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum DataDirection {
        /// Data goes from server to client.
        #[default]
        Down,
        Up,
    }
}

keys! {
    /// Flows of one kind.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct FlowGroup {
        /// unique name of the group
        pub name: String,
        /// number of flows; with Poisson arrivals, the maximum
        #[serde(default = "d::count")]
        pub count: u32 [1..=100_000],
        /// down: the server sends the data; up: the client does
        #[serde(default)]
        pub direction: DataDirection,
        /// start time of the flows
        #[serde(default)]
        pub start_ns: u64 [0..=RUN_MAX],
        /// random extra start delay of each flow, uniform from 0 to this
        #[serde(default)]
        pub start_jitter_ns: u64 [0..=RUN_MAX],
        /// rate of Poisson flow arrivals; 0: none
        #[serde(default)]
        pub arrivals_per_s: f64 [0..=1_000_000],
        /// policy of the receiving host, or its host alone
        pub policy: PolicyChoice,
        /// policy of the sending host, or its host alone
        #[serde(default)]
        pub peer_policy: PolicyChoice,
        /// TCP of the data sender
        #[serde(default)]
        pub sender: SenderSpec,
        /// TCP of the data receiver
        #[serde(default)]
        pub receiver: ReceiverSpec,
        /// connections open with a handshake where both ends are Linux (recovery sack, socket linux);
        /// otherwise, and with false, they start established
        #[serde(default = "d::handshake")]
        pub handshake: bool,
        /// the application
        pub app: AppSpec,
    }
}

impl FlowGroup {
    /// Whether connections start with a handshake. Hosts of published sources start established, as
    /// in their experiments.
    pub(crate) fn opens_with_handshake(&self) -> bool {
        self.handshake && self.has_linux_ends()
    }

    pub(crate) fn has_linux_ends(&self) -> bool {
        self.sender.recovery == Recovery::Sack
            && self.sender.socket == SocketLayer::Linux
            && self.receiver.socket == SocketLayer::Linux
    }
}

choice! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum CongestionControl {
        Reno,
        #[default]
        Cubic,
        /// Rate-based and paced, like BBR.
        Bbr,
    }
}

choice! {
    /// Unit in which ACKs make the congestion window grow.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Counting {
        /// Acknowledged bytes, without a limit in slow start (Linux).
        #[default]
        Bytes,
        /// Acknowledged bytes, at most 2 SMSS per ACK (RFC 3465, L = 2).
        Bytes2smss,
        /// One SMSS per ACK, whatever it acknowledges (RFC 5681's oldest form).
        Acks,
    }
}

choice! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Hystart {
        /// HyStart as in Linux, for CUBIC.
        #[default]
        Linux,
        /// HyStart++, for Reno and CUBIC.
        Rfc9406,
        Off,
    }
}

choice! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Nagle {
        /// A short segment waits while anything is unacknowledged.
        Bsd43,
        /// Like `bsd43`, but the unsent data decides, not the part that the window allows: it waits
        /// while it is less than a segment and no more than half of the peer's largest window (the
        /// rule in figure 15.2 of the deadlock paper).
        Unsent,
        /// A short segment waits while a short segment is unacknowledged (Linux).
        #[default]
        Minshall,
        Off,
    }
}

choice! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum SocketLayer {
        #[default]
        Linux,
        /// 1024-byte clusters, with output after each 4096 bytes copied (spec page 5).
        Bsd43,
    }
}

choice! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Recovery {
        /// RFC 6675, with tail-loss probe.
        #[default]
        Sack,
        /// NewReno (RFC 6582).
        Newreno,
        /// Retransmission timeout only.
        Timeout,
    }
}

keys! {
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct SenderSpec {
        /// congestion control algorithm
        pub congestion_control: CongestionControl,
        /// what makes the congestion window grow: acknowledged bytes, acknowledged bytes up to
        /// 2 SMSS per ACK (ABC, RFC 3465), or ACKs
        pub counting: Counting,
        /// what ends slow start before a loss: HyStart as in Linux (cubic only), HyStart++ (RFC 9406;
        /// reno, cubic), or nothing
        pub hystart: Hystart,
        /// variant of Nagle's algorithm
        pub nagle: Nagle,
        /// loss recovery
        pub recovery: Recovery,
        /// socket layer; bsd43: 1024-byte clusters, output after every 4096 bytes
        pub socket: SocketLayer,
        /// initial congestion window
        // RFC 6928: 10.
        pub initial_window_segments: u32 [1..=10_000],
        /// send buffer: maximum bytes written and not yet acknowledged
        pub send_buffer_bytes: u64 [1..=BUFFER_MAX],
        /// the send buffer grows with the congestion window, to twice its size
        // Linux's growth (tcp_sndbuf_expand); otherwise the buffer has its full size from the
        // start.
        pub send_buffer_grows: bool,
        /// socket bsd43: a blocked writer wakes when this much of the send buffer is free, or all of it
        /// if it is smaller; 0: one cluster
        // SO_SNDLOWAT.
        pub low_water_bytes: u64 [0..=BUFFER_MAX],
        /// socket bsd43: rate at which a write is copied into the send buffer; 0: no limit
        pub copy_bps: u64 [0..=RATE_MAX],
        /// largest congestion window; 0: no limit
        pub max_window_segments: u32 [0..=PACKETS_MAX],
        /// pace segments (bbr always does)
        // At a multiple of cwnd/srtt.
        pub pacing: bool,
        /// tail loss probe (RFC 8985)
        pub tail_loss_probe: bool,
        /// minimum RTO
        // Linux: 200 ms; RFC 6298: 1 s.
        pub min_rto_ns: u64 [1_000_000..=DELAY_MAX],
    }
}

impl Default for SenderSpec {
    fn default() -> Self {
        SenderSpec {
            congestion_control: Default::default(),
            counting: Default::default(),
            hystart: Default::default(),
            nagle: Default::default(),
            recovery: Default::default(),
            socket: Default::default(),
            // "min (10*MSS, max (2*MSS, 14600))" [RFC 6928, 2]
            initial_window_segments: 10,
            send_buffer_bytes: SenderSpec::LINUX_SEND_BUFFER_BYTES,
            send_buffer_grows: false,
            low_water_bytes: 0,
            copy_bps: 0,
            max_window_segments: 0,
            pacing: false,
            tail_loss_probe: true,
            min_rto_ns: 200_000_000,
        }
    }
}

impl SenderSpec {
    /// Linux's limit (tcp_wmem) of the memory up to which its buffer grows; any other limit counts
    /// payload.
    pub(crate) const LINUX_SEND_BUFFER_BYTES: u64 = 4 << 20;

    pub(crate) fn initial_window_bytes(&self, mss: u64) -> u64 {
        u64::from(self.initial_window_segments.max(1)) * mss
    }

    /// The sender's settings on a host that allows a send buffer of at most `max_bytes`.
    pub(crate) fn bounded(&self, max_bytes: Option<u64>) -> SenderSpec {
        let mut bounded = self.clone();
        if let Some(max_bytes) = max_bytes {
            bounded.send_buffer_bytes = bounded.send_buffer_bytes.min(max_bytes);
        }
        bounded
    }
}

keys! {
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct ReceiverSpec {
        /// initial receive buffer; memory if it grows
        // The largest window at the start.
        pub recv_buffer_bytes: u64 [256..=WINDOW_MAX],
        /// limit of receive-buffer autotuning, in memory (Linux, tcp_rmem): a segment takes its payload
        /// and 896 bytes; 0: fixed buffer
        // Fixed too if it is less than the buffer.
        pub recv_buffer_max_bytes: u64 [0..=WINDOW_MAX],
        /// window scaling; without it the window is at most 65535 bytes
        // RFC 7323.
        pub window_scaling: bool,
        /// timestamps option: 12 bytes per segment
        // They give the receiver an RTT estimate.
        pub timestamps: bool,
        /// the advertised window starts at 64 KiB and grows as data arrives (Linux)
        // The window grows by two segments with each segment; otherwise it is open from the start.
        pub slow_window: bool,
        /// the advertised window is never larger (Linux, TCP_WINDOW_CLAMP); 0: no clamp
        pub window_clamp_bytes: u64 [0..=WINDOW_MAX],
        /// the application reads this long after data arrives
        pub reader_lag_ns: u64 [0..=DELAY_MAX],
        /// highest rate at which the application reads; 0: no limit
        pub reader_bps: u64 [0..=RATE_MAX],
        /// an ACK is sent once the application has read the data it covers (4.3BSD)
        // TCP output runs at the end of a read; the ACK offers the room that the read made.
        pub ack_after_read: bool,
        /// maximum delay of an ACK on this host, whatever the policy (Linux, tcp_delack_max)
        pub ack_delay_max_ns: u64 [1_000_000..=ackwise_core::DELAY_MAX_NS],
        /// socket layer
        pub socket: SocketLayer,
    }
}

impl Default for ReceiverSpec {
    fn default() -> Self {
        ReceiverSpec {
            recv_buffer_bytes: 131_072,
            recv_buffer_max_bytes: 6 << 20,
            window_scaling: true,
            timestamps: true,
            slow_window: true,
            window_clamp_bytes: 0,
            reader_lag_ns: 0,
            reader_bps: 0,
            ack_after_read: false,
            ack_delay_max_ns: ackwise_core::DELAY_MAX_NS,
            socket: Default::default(),
        }
    }
}

/// Memory that Linux counts for a segment in addition to its payload: 2344 bytes for 1448.
pub(crate) const SEGMENT_MEMORY_BYTES: u64 = 896;
impl ReceiverSpec {
    /// Whether the buffer counts memory as in Linux (tcp_rmem): a growing one does; for a fixed
    /// one, Linux doubles the size.
    pub(crate) fn counts_memory(&self) -> bool {
        self.socket == SocketLayer::Linux && self.recv_buffer_max_bytes > self.recv_buffer_bytes
    }

    /// The receiver's settings on a host that allows a receive buffer of at most `max_bytes`.
    pub(crate) fn bounded(&self, max_bytes: Option<u64>) -> ReceiverSpec {
        let mut bounded = self.clone();
        if let Some(max_bytes) = max_bytes {
            let max_bytes = if self.counts_memory() { 2 * max_bytes } else { max_bytes };
            bounded.recv_buffer_bytes = bounded.recv_buffer_bytes.min(max_bytes);
            bounded.recv_buffer_max_bytes = bounded.recv_buffer_max_bytes.min(max_bytes);
        }
        bounded
    }
}

/// What the application does.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum AppSpec {
    Bulk(Bulk),
    RequestResponse(RequestResponse),
    RandomSpacing(RandomSpacing),
    OddWrites(OddWrites),
    ParetoBulk(ParetoBulk),
    Replay(Replay),
}

impl KeyType for AppSpec {}

keys! {
    /// Writes as fast as the socket accepts.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Bulk {
        /// bytes to send; 0: until the run ends
        #[serde(default)]
        pub bytes: u64 [0..=1_000_000_000_000_000],
    }
}

keys! {
    /// The data receiver sends a request and the data sender answers, one exchange at a time.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RequestResponse {
        /// size of a request
        pub request_bytes: u32 [1..=u32::MAX as u64],
        /// size of a response
        pub response_bytes: u64 [1..=1_000_000_000_000],
        /// pause before the next request
        #[serde(default)]
        pub think_ns: u64 [0..=PAUSE_MAX],
        /// number of requests; 0: until the run ends
        #[serde(default)]
        pub count: u32,
    }
}

keys! {
    /// Writes of equal size at random distances, uniform on [min_gap_ns, max_gap_ns]; a stream of a
    /// fixed rate if both are the same.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RandomSpacing {
        /// number of writes
        pub packets: u32 [1..=PACKETS_MAX],
        /// size of a write
        pub bytes: u32 [1..=1 << 20],
        /// time between writes, whether or not the last one was delivered: uniform from this
        #[serde(default)]
        pub min_gap_ns: u64 [0..=DELAY_MAX],
        /// to this, if it is longer
        pub max_gap_ns: u64 [0..=DELAY_MAX],
    }
}

keys! {
    /// `writes` writes of `write_bytes` back to back form a message; the next message follows
    /// `gap_ns` after this one was delivered.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct OddWrites {
        /// size of a write
        pub write_bytes: u32 [1..=1 << 30],
        /// writes per message
        pub writes: u32 [1..=100_000],
        /// pause after a message is delivered
        #[serde(default)]
        pub gap_ns: u64 [0..=DELAY_MAX],
        /// number of messages; 0: until the run ends
        #[serde(default)]
        pub count: u32,
    }
}

keys! {
    /// Flow sizes drawn from a bounded Pareto distribution (shape 1.2) with this mean.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ParetoBulk {
        /// mean flow size
        // Below `max_bytes`.
        pub mean_bytes: u64 [1..=1_000_000_000_000],
        /// largest flow size
        pub max_bytes: u64 [2..=10_000_000_000_000],
    }
}

keys! {
    /// Writes at given times, from a capture.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Replay {
        /// time of each write, non-decreasing
        // Counted from the flow's start.
        pub times_ns: Vec<u64> [0..=RUN_MAX],
        /// size of each write
        pub bytes: Vec<u32> [1..=1 << 30],
    }
}

mod d {
    pub fn mtu() -> u32 {
        1500
    }
    pub fn header() -> u32 {
        40
    }
    pub fn ack_share() -> u32 {
        500_000
    }
    pub fn all() -> u32 {
        1_000_000
    }
    pub fn count() -> u32 {
        1
    }
    pub fn handshake() -> bool {
        true
    }
}
