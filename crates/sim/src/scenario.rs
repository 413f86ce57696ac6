// SPDX-License-Identifier: MIT
//! The input of one simulation run: a resolved scenario, all numbers, units in names.
//!
//! A plan (links x workloads x policies x seeds) is resolved into scenarios by the caller; the
//! engine knows no names of links or workloads. Unknown keys are refused.

use crate::keys::keys;
pub use ackwise_core::PolicyChoice;
use serde::{Deserialize, Serialize};

const S: u64 = 1_000_000_000;
/// A terabit per second: 8 ps for each byte.
const RATE_MAX: u64 = 1_000_000_000_000;
const DELAY_MAX: u64 = 60 * S;
const PAUSE_MAX: u64 = 3600 * S;
const RUN_MAX: u64 = 100_000 * S;
const PPM_MAX: u64 = 1_000_000;
/// RFC 7323, 2.3.
const WINDOW_MAX: u64 = 1 << 30;

keys! {
    /// One run: two hosts (client, server), one path between them, groups of flows over it.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Scenario {
        /// Seed of every random number of the run.
        pub seed: u64,
        /// Simulated time after which the run ends at the latest.
        pub duration_ns: u64 [1..=RUN_MAX],
        /// Interval of the time series; 0: no series.
        #[serde(default)]
        pub series_interval_ns: u64,
        /// Largest IP packet; the MSS is `mtu_bytes - ip_tcp_header_bytes`.
        #[serde(default = "d::mtu")]
        pub mtu_bytes: u32,
        /// IP + TCP header of a data segment without options (40 for IPv4, 60 for IPv6).
        #[serde(default = "d::header")]
        pub ip_tcp_header_bytes: u32 [20..=120],
        /// Link-layer bytes added to every packet on the wire (Ethernet with gap: 38).
        #[serde(default)]
        pub link_overhead_bytes: u32 [0..=1500],
        /// Every packet, overhead included, fills whole ATM cells: 53 bytes on the wire for each 48 begun.
        #[serde(default)]
        pub link_cells: bool,
        /// Server to client.
        pub down: ChannelSpec,
        /// Client to server.
        pub up: ChannelSpec,
        /// Private links of every flow before and behind the shared link; absent: hosts are at its ends.
        #[serde(default)]
        pub access: Option<Access>,
        /// The client's host.
        #[serde(default)]
        pub client: HostSpec,
        /// The server's host.
        #[serde(default)]
        pub server: HostSpec,
        /// The flows, at least one group.
        pub groups: Vec<FlowGroup>,
        /// What is kept besides the summary.
        #[serde(default)]
        pub record: RecordSpec,
    }
}

keys! {
    /// What is kept besides the summary.
    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RecordSpec {
        /// Keep a time-sequence trace (data, ACKs with reasons) of the first flow of each group.
        pub trace: bool,
        /// Most trace points kept for a flow.
        pub trace_limit: u32,
    }
}

keys! {
    /// One direction of the shared path: a queue, a transmitter, a delay line.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ChannelSpec {
        /// Bits per second on the wire.
        pub rate_bps: u64 [1..=RATE_MAX],
        /// One-way propagation delay.
        pub delay_ns: u64 [0..=DELAY_MAX],
        /// Longest extra delay, uniform on [0, jitter_ns], order kept.
        #[serde(default)]
        pub jitter_ns: u64 [0..=DELAY_MAX],
        /// Queue limit in packets; 0: no limit in packets.
        #[serde(default)]
        pub queue_packets: u32,
        /// Queue limit in bytes; 0: no limit in bytes.
        #[serde(default)]
        pub queue_bytes: u64,
        /// How the queue serves and drops.
        #[serde(default)]
        pub discipline: Discipline,
        /// Separated ACKs take at most this part of the bytes while data waits, parts per million; what
        /// data leaves free is theirs.
        #[serde(default = "d::ack_share")]
        pub ack_share_ppm: u32 [10_000..=990_000],
        /// Independent loss of each packet, parts per million, behind the queue.
        #[serde(default)]
        pub loss_ppm: u32 [0..=PPM_MAX],
        /// Gilbert-Elliott burst loss.
        #[serde(default)]
        pub burst_loss: Option<BurstLoss>,
        /// Packets overtaken by later ones.
        #[serde(default)]
        pub reorder: Option<Reorder>,
        /// Copies delivered twice, parts per million.
        #[serde(default)]
        pub duplicate_ppm: u32 [0..=PPM_MAX],
        /// Intervals during which everything is lost: injected congestion.
        #[serde(default)]
        pub outages: Vec<Outage>,
        /// Packets leave only at multiples of this time (DOCSIS requests, LTE grants, Wi-Fi
        /// aggregation); 0: at any time.
        #[serde(default)]
        pub grant_interval_ns: u64 [0..=S],
        /// Medium time spent on every packet besides its bytes (Wi-Fi contention and preamble).
        #[serde(default)]
        pub per_packet_ns: u64 [0..=S],
        /// Both directions share one half-duplex medium (set on both).
        #[serde(default)]
        pub shared_medium: bool,
    }
}

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
    /// RFC 8289.
    Codel,
}

impl Discipline {
    /// Pure ACKs have a queue of their own.
    pub fn separates(self) -> bool {
        matches!(self, Discipline::AckSeparation | Discipline::AckSeparationFilter)
    }

    /// A newer pure ACK replaces an older one.
    pub fn filters(self) -> bool {
        matches!(self, Discipline::AckFilter | Discipline::AckSeparationFilter)
    }
}

keys! {
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct BurstLoss {
        /// Chance for each packet to enter the bad state.
        pub enter_ppm: u32 [0..=PPM_MAX],
        /// Chance for each packet to leave it.
        pub leave_ppm: u32 [0..=PPM_MAX],
        /// Chance of loss while in it.
        pub loss_ppm: u32 [0..=PPM_MAX],
    }
}

keys! {
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Reorder {
        /// Chance for each packet to be overtaken.
        pub probability_ppm: u32 [0..=PPM_MAX],
        /// How much later a chosen packet arrives.
        pub delay_ns: u64 [0..=DELAY_MAX],
    }
}

keys! {
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Outage {
        /// When it begins.
        pub start_ns: u64 [0..=RUN_MAX],
        /// How long it lasts.
        pub length_ns: u64 [0..=RUN_MAX],
    }
}

keys! {
    /// Links private to each flow, the same at both ends and in both directions.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Access {
        /// Bits per second on the wire.
        pub rate_bps: u64 [1..=RATE_MAX],
        /// Propagation delay, one way.
        pub delay_ns: u64 [0..=DELAY_MAX],
    }
}

keys! {
    /// A host: its processor (zero costs: infinitely fast) and what its memory allows.
    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct HostSpec {
        /// Per data segment received (after aggregation).
        pub data_received_ns: u64 [0..=S],
        /// Per data segment sent.
        pub data_sent_ns: u64 [0..=S],
        /// Per ACK received.
        pub ack_received_ns: u64 [0..=S],
        /// Per ACK sent.
        pub ack_sent_ns: u64 [0..=S],
        /// Largest send buffer of a connection (tcp_wmem on a small host); 0: no bound.
        pub send_buffer_max_bytes: u64,
        /// Largest receive buffer of a connection (tcp_rmem); 0: no bound.
        pub recv_buffer_max_bytes: u64,
        /// Most packets waiting for the processor; arrivals beyond are dropped; 0: 1000.
        pub backlog_packets: u32,
        /// Merge neighbouring segments of a flow into one event (GRO) of at most this many bytes;
        /// 0: off.
        pub gro_max_bytes: u32,
        /// Arrivals are passed up together after this time (interrupt moderation, NAPI).
        pub gro_window_ns: u64 [0..=S],
        /// Cost of the application as a process, over which packet processing has priority. All zero: it
        /// reads and writes at once, at no cost.
        pub process: Process,
    }
}

keys! {
    /// What an application costs its processor.
    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Process {
        /// Per read: wake-up and system call. A read takes all there is.
        pub read_ns: u64 [0..=S],
        /// In addition, per 1024 bytes read.
        pub read_kib_ns: u64 [0..=S],
        /// Per 1024 bytes that a bulk writer writes.
        pub write_kib_ns: u64 [0..=S],
        /// Most arrivals handled in a row while it waits for its turn; 0: 64.
        pub turn_packets: u32,
    }
}

impl Process {
    /// Whether it costs anything.
    pub(crate) fn is_modelled(&self) -> bool {
        self.read_ns + self.read_kib_ns + self.write_kib_ns > 0
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DataDirection {
    /// Data goes from server to client.
    #[default]
    Down,
    Up,
}

keys! {
    /// Flows of one kind.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct FlowGroup {
        /// Name of the group.
        pub name: String,
        /// Flows started; with Poisson arrivals: the most that may start.
        pub count: u32 [1..=100_000],
        /// Which way the data goes.
        #[serde(default)]
        pub direction: DataDirection,
        /// When the flows start.
        #[serde(default)]
        pub start_ns: u64 [0..=RUN_MAX],
        /// Each flow starts up to this much later, uniformly.
        #[serde(default)]
        pub start_jitter_ns: u64 [0..=RUN_MAX],
        /// Poisson arrivals of flows: mean arrivals per second; 0: all at the start.
        #[serde(default)]
        pub arrivals_per_s: f64,
        /// The policy of the host that receives the data.
        pub policy: PolicyChoice,
        /// The policy of the other host, for the data that it receives.
        #[serde(default)]
        pub peer_policy: PolicyChoice,
        /// TCP of the host that sends the data.
        #[serde(default)]
        pub sender: SenderSpec,
        /// TCP of the host that receives the data.
        #[serde(default)]
        pub receiver: ReceiverSpec,
        /// What the application does.
        pub app: AppSpec,
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionControl {
    Reno,
    #[default]
    Cubic,
    /// Rate-based, paced, in the manner of BBR.
    Bbr,
}

/// How an ACK makes the congestion window grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counting {
    /// By the bytes acknowledged, without limit in slow start (Linux).
    #[default]
    Bytes,
    /// By the bytes acknowledged, at most 2 SMSS for each ACK (RFC 3465, L = 2).
    Bytes2smss,
    /// One SMSS for each ACK, whatever it acknowledges (RFC 5681's oldest form).
    Acks,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Nagle {
    /// A short segment waits while anything is unacknowledged.
    Bsd43,
    /// As `bsd43`, but what is unsent decides, not what the window lets go: it waits while it is
    /// less than a segment and no more than half of the peer's largest window (the rule as the
    /// deadlock paper's figure 15.2 has it).
    Unsent,
    /// A short segment waits while a short segment is unacknowledged (Linux).
    #[default]
    Minshall,
    Off,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SocketLayer {
    #[default]
    Linux,
    /// 1024-byte clusters, output after each 4096 bytes copied (spec page 5).
    Bsd43,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// RFC 6675, with tail-loss probe.
    #[default]
    Sack,
    /// RFC 6582.
    Newreno,
    /// Retransmission timeout only.
    Timeout,
}

keys! {
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct SenderSpec {
        /// How the congestion window moves.
        pub congestion_control: CongestionControl,
        /// How an ACK makes the window grow.
        pub counting: Counting,
        /// When a short segment waits.
        pub nagle: Nagle,
        /// How losses are recovered.
        pub recovery: Recovery,
        /// Socket layer of the sending host.
        pub socket: SocketLayer,
        /// Initial window in segments (RFC 6928: 10).
        pub initial_window_segments: u32 [1..=10_000],
        /// Send buffer; bytes written and not yet acknowledged never exceed it.
        pub send_buffer_bytes: u64 [1..=1 << 32],
        /// The 4.3BSD writer sleeps until this much room is in the send buffer, or all of it if it is
        /// smaller (SO_SNDLOWAT); 0: one cluster.
        pub low_water_bytes: u64 [0..=1 << 32],
        /// A 4.3BSD write is copied into the send buffer at this rate, piece by piece; 0: at once.
        pub copy_bps: u64 [0..=RATE_MAX],
        /// Upper bound of the congestion window; 0: none.
        pub max_window_segments: u32,
        /// Space segments at a multiple of cwnd/srtt (BBR always does).
        pub pacing: bool,
        /// Tail-loss probe (RFC 8985, 7).
        pub tail_loss_probe: bool,
        /// Lower bound of the retransmission timeout (Linux 200 ms, RFC 6298 1 s).
        pub min_rto_ns: u64 [1_000_000..=DELAY_MAX],
    }
}

impl Default for SenderSpec {
    fn default() -> Self {
        SenderSpec {
            congestion_control: Default::default(),
            counting: Default::default(),
            nagle: Default::default(),
            recovery: Default::default(),
            socket: Default::default(),
            // [RFC6928.1]
            initial_window_segments: 10,
            send_buffer_bytes: 4 << 20,
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
    /// The same on a host that allows a send buffer of at most `max_bytes` (0: no bound).
    pub(crate) fn bounded(&self, max_bytes: u64) -> SenderSpec {
        let mut bounded = self.clone();
        if max_bytes > 0 {
            bounded.send_buffer_bytes = bounded.send_buffer_bytes.min(max_bytes);
        }
        bounded
    }
}

keys! {
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct ReceiverSpec {
        /// Receive buffer (largest window) at the start.
        pub recv_buffer_bytes: u64 [256..=WINDOW_MAX],
        /// Autotuning may grow the buffer up to this; 0 or less than the buffer: fixed.
        pub recv_buffer_max_bytes: u64 [0..=WINDOW_MAX],
        /// Window scaling (RFC 7323); without it the window is at most 65 535 bytes.
        pub window_scaling: bool,
        /// Timestamps option: 12 bytes in every segment, RTT estimate at the receiver.
        pub timestamps: bool,
        /// The window starts at 64 KiB and opens by two segments with each segment (Linux), or is
        /// open from the start.
        pub slow_window: bool,
        /// The application reads this long after data arrived; 0: at once.
        pub reader_lag_ns: u64 [0..=DELAY_MAX],
        /// The application reads at most this fast; 0: no limit.
        pub reader_bps: u64,
        /// An ACK of data in order leaves when the application has read it, and offers the room that
        /// the read made: TCP output runs at the end of a read (4.3BSD).
        pub ack_after_read: bool,
        /// Socket layer of the receiving host.
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
            reader_lag_ns: 0,
            reader_bps: 0,
            ack_after_read: false,
            socket: Default::default(),
        }
    }
}

impl ReceiverSpec {
    /// The same on a host that allows a receive buffer of at most `max_bytes` (0: no bound).
    pub(crate) fn bounded(&self, max_bytes: u64) -> ReceiverSpec {
        let mut bounded = self.clone();
        if max_bytes > 0 {
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

keys! {
    /// Writes as fast as the socket takes it.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Bulk {
        /// Bytes of a flow; 0: until the run ends.
        #[serde(default)]
        pub bytes: u64 [0..=1 << 50],
    }
}

keys! {
    /// The receiver of the data asks, the sender answers; one after another.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RequestResponse {
        /// Size of a request.
        pub request_bytes: u32 [1..=u32::MAX as u64],
        /// Size of a response.
        pub response_bytes: u64 [1..=1 << 40],
        /// Pause between a response and the next request.
        #[serde(default)]
        pub think_ns: u64 [0..=PAUSE_MAX],
        /// Requests; 0: until the run ends.
        #[serde(default)]
        pub count: u32,
    }
}

keys! {
    /// Writes of equal size at random distances, uniform on [0, max_gap_ns].
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RandomSpacing {
        /// Writes.
        pub packets: u32 [1..=10_000_000],
        /// Size of a write.
        pub bytes: u32 [1..=1 << 24],
        /// Longest distance between two writes.
        pub max_gap_ns: u64 [0..=PAUSE_MAX],
    }
}

keys! {
    /// `writes` writes of `write_bytes` back to back make a message; the next message follows when
    /// this one was delivered and `gap_ns` went by.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct OddWrites {
        /// Size of a write.
        pub write_bytes: u32 [1..=1 << 30],
        /// Writes of a message.
        pub writes: u32 [1..=100_000],
        /// Pause after a message was delivered.
        #[serde(default)]
        pub gap_ns: u64 [0..=PAUSE_MAX],
        /// Messages; 0: until the run ends.
        #[serde(default)]
        pub count: u32,
    }
}

keys! {
    /// Flow sizes drawn from a bounded Pareto distribution (shape 1.2) of this mean.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ParetoBulk {
        /// Mean size of a flow, below `max_bytes`.
        pub mean_bytes: u64,
        /// Largest size of a flow.
        pub max_bytes: u64 [2..=1 << 44],
    }
}

keys! {
    /// Writes at given times, from a capture.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Replay {
        /// When each write happens, counted from the flow's start, in order.
        pub times_ns: Vec<u64>,
        /// Size of each write: 1 to 2^30.
        pub bytes: Vec<u32>,
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
}
