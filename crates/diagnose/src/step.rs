// SPDX-License-Identifier: MIT
//! The interpretation of one packet. `crate::flow` computes it once; observers read it.
//!
//! A packet does two things: it carries data of the endpoint that sent it ([`Data`]), and it
//! acknowledges data of the other ([`Ack`]). Times and bytes are those at the capture point;
//! [`SenderView`] holds the data sender's knowledge when it sent a packet.
//!
//! Sequence numbers are 64 bits wide and do not wrap around; their low 32 bits are those on the wire.

pub use crate::idents::Ident;
use serde::Serialize;

/// One packet of a connection.
#[derive(Clone, Debug)]
pub struct Step {
    /// Nanoseconds since the first packet of the capture; never decreases from step to step.
    pub time_ns: u64,
    /// Index of its file in [`ackwise_capture::CaptureNotes::files`].
    pub file: u32,
    /// Number in its file, counted from 1 as in Wireshark.
    pub number: u64,
    /// Endpoint that sent it: 0 opened the connection.
    pub from: usize,
    /// TCP flags, in the bits of [`ackwise_capture::tcp_flag`].
    pub flags: u16,
    /// TTL or hop limit.
    pub ttl: u8,
    /// ECN bits of the IP header: 3 is "congestion experienced".
    pub ecn: u8,
    /// Payload length according to the IP header, even if less was captured.
    pub payload_bytes: u32,
    /// Length of the IP packet including its header; above the MTU where offloads merged packets.
    pub ip_bytes: u32,
    /// Time since the previous packet in either direction, nanoseconds.
    pub silence_ns: u64,
    /// Queueing delay between `from` and the capture point, nanoseconds; None without timestamps.
    pub queued_ns: Option<u64>,
    /// Recent minimum RTT between the capture point and each endpoint, nanoseconds; None before the
    /// first sample.
    pub distance_ns: [Option<u64>; 2],
    /// Minimum RTT between the capture point and each endpoint, nanoseconds; None before the first
    /// sample.
    pub least_ns: [Option<u64>; 2],
    /// The packet as data of `from`.
    pub data: Data,
    /// The packet as an acknowledgment by `from`; None without the ACK flag.
    pub ack: Option<Ack>,
}

impl Step {
    /// Whether any bit of `flag` is set in [`Step::flags`].
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Whether the packet only acknowledges.
    pub fn is_pure_ack(&self) -> bool {
        use ackwise_capture::tcp_flag::{ACK, FIN, RST, SYN};
        self.payload_bytes == 0
            && self.flags & (ACK | SYN | FIN | RST) == ACK
            && self.data.kind == DataKind::None
    }

    /// Minimum RTT of the whole path without queues, nanoseconds.
    pub fn least_rtt_ns(&self) -> Option<u64> {
        self.least_ns.into_iter().flatten().reduce(|a, b| a + b)
    }

    /// Recent RTT of the whole path as far as samples show it, nanoseconds.
    pub fn rtt_ns(&self) -> Option<u64> {
        match self.distance_ns {
            [None, None] => None,
            [a, b] => Some(a.unwrap_or(0) + b.unwrap_or(0)),
        }
    }
}

/// Cause of a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Duplicate ACKs or SACK blocks reported a loss.
    Fast,
    /// The retransmission timer; includes everything sent again until all data in flight at that
    /// time is acknowledged.
    Timeout,
    /// A repetition of the last segment after about two RTTs of silence (RFC 8985, 7).
    TailLossProbe,
    /// No cause is visible: packets of the other direction may be missing.
    Unclear,
}

/// Type of a packet with regard to its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataKind {
    /// No data.
    #[default]
    None,
    /// A SYN, with or without ACK.
    Syn,
    /// A repeated SYN.
    SynAgain,
    /// Data above the highest number so far.
    New,
    /// Data below the highest number, never seen before and not retransmitted: the network, or the
    /// capture, changed the order.
    OutOfOrder,
    /// Data that was sent before.
    Retransmission(Cause),
    /// A number that is already acknowledged, sent to make the peer answer.
    KeepAlive,
    /// An acknowledged number, or one byte, sent into a window of 0.
    WindowProbe,
    /// Sequence numbers before the connection's first.
    Old,
}

impl DataKind {
    /// Whether the packet repeats data.
    pub fn is_retransmission(self) -> bool {
        matches!(self, DataKind::Retransmission(_))
    }

    /// Whether it takes sequence numbers that the peer must acknowledge.
    pub fn is_data(self) -> bool {
        matches!(self, DataKind::New | DataKind::OutOfOrder | DataKind::Retransmission(_))
    }
}

/// A packet's data, in the direction of its sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct Data {
    /// What kind of data the packet carries.
    pub kind: DataKind,
    /// First sequence number of payload and FIN.
    pub start: u64,
    /// Sequence number after payload and FIN.
    pub end: u64,
    /// Wire segments: more than one where an offload merged them.
    pub segments: u32,
    /// Largest segment of this direction, bytes.
    pub mss_bytes: u32,
    /// Payload bytes never seen before.
    pub new_bytes: u32,
    /// Payload bytes that were acknowledged before they passed.
    pub needless_bytes: u32,
    /// Bytes that had been acknowledged before they passed, without evidence that they were sent
    /// twice: the capture has reordered the two directions.
    pub behind_ack_bytes: u64,
    /// Bytes skipped before this packet and not seen so far.
    pub skipped_bytes: u64,
    /// IP identification, which shows packets of this endpoint that were sent earlier but did not
    /// arrive.
    pub ident: Ident,
    /// Whether it is the first retransmission of a recovery, or was sent by a timer.
    pub begins_recovery: bool,
    /// For a retransmission: when the data had passed before, or its loss became visible; in
    /// nanoseconds as in [`Step::time_ns`].
    pub lost_ns: Option<u64>,
    /// Time since data of this endpoint last passed, nanoseconds; None for the first.
    pub since_data_ns: Option<u64>,
    /// Highest number minus highest acknowledgment before this packet; 0 where no packet of the
    /// peer was seen.
    pub flight_before_bytes: u64,
    /// Bytes in flight after this packet, counted in the same way.
    pub flight_bytes: u64,
    /// What the data sender knew when it sent the packet.
    pub sender: SenderView,
}

/// The data sender's knowledge when it sent the packet: the ACKs that had passed the capture point
/// one RTT between it and the sender earlier.
#[derive(Clone, Copy, Debug, Default)]
pub struct SenderView {
    /// Highest number acknowledged.
    pub una: u64,
    /// Right edge of the window.
    pub edge: u64,
    /// Sequence number up to which the sender had sent before this packet.
    pub nxt: u64,
    /// Time since an ACK reached the sender, nanoseconds.
    pub since_ack_ns: Option<u64>,
    /// Number of ACKs of new data that reached the sender since it last sent data.
    pub advances: u32,
    /// Time since the first of them did, nanoseconds.
    pub since_advance_ns: Option<u64>,
    /// The peer's data that reached the sender since it last sent data.
    pub answer: Option<Answer>,
    /// RTT between the capture point and the sender, nanoseconds, including queueing at the time.
    pub distance_ns: u64,
}

/// Data of the peer that reached a sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answer {
    /// Time since the last of it did, over a path without queues, nanoseconds.
    pub since_ns: u64,
    /// Acknowledgment number of the last of it.
    pub una: u64,
    /// Payload bytes in all.
    pub bytes: u64,
}

impl SenderView {
    /// Bytes in flight after a packet that ends at `end`.
    pub fn flight_bytes(&self, end: u64) -> u64 {
        end.max(self.nxt).saturating_sub(self.una)
    }

    /// Bytes that the window still allowed after a packet that ends at `end`.
    pub fn slack_bytes(&self, end: u64) -> u64 {
        self.edge.saturating_sub(end.max(self.nxt))
    }
}

/// Type of a packet with regard to its acknowledgment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AckKind {
    /// Acknowledges data for the first time.
    Advancing,
    /// A pure ACK that repeats the number: with the same window while data is in flight (RFC 5681,
    /// 2), or with SACK or D-SACK blocks not seen before (RFC 6675, 2).
    Duplicate,
    /// A pure ACK that changes only the window.
    WindowUpdate,
    /// Repeats number and window, on a packet with data or while nothing is in flight.
    Unchanged,
    /// Answers a keep-alive.
    KeepAliveReply,
    /// Answers a window probe.
    WindowProbeReply,
    /// Below the highest number: overtaken on its way.
    #[default]
    Old,
}

/// Payload bytes by the codepoint with which they reached the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnBytes {
    /// Bytes that arrived as ECT(0).
    pub ect0: u32,
    /// Bytes that arrived CE-marked.
    pub ce: u32,
    /// Bytes that arrived as ECT(1).
    pub ect1: u32,
}

/// Which of the packets that an ACK acknowledges has the timestamp that it echoes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Echo {
    /// Without timestamps, all in one tick, or an earlier one.
    #[default]
    Unclear,
    /// The first that was not acknowledged before.
    Oldest,
    /// One sent after it: an ACK in between is missing.
    Later,
}

/// A packet's acknowledgment of the other endpoint's data.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack {
    /// What the ACK does.
    pub kind: AckKind,
    /// Acknowledgment number: the next byte that its sender expects.
    pub number: u64,
    /// Bytes acknowledged for the first time by number.
    pub acked_bytes: u64,
    /// Bytes acknowledged for the first time by SACK.
    pub sacked_bytes: u64,
    /// Part of `acked_bytes` never seen, because the capture lost it or started later.
    pub unseen_bytes: u64,
    /// Part of `unseen_bytes` that was not sent before the capture started.
    pub missed_bytes: u64,
    /// Block received twice, according to the receiver (RFC 2883).
    pub dsack: Option<(u64, u64)>,
    /// Number of blocks in the option.
    pub sack_blocks: u32,
    /// Whether one of them lies outside the data of this connection.
    pub foreign_sacks: bool,
    /// Advertised window; the raw header field where `window_known` is false.
    pub window_bytes: u64,
    /// Whether the window scale is known.
    pub window_known: bool,
    /// Right edge of the window.
    pub edge: u64,
    /// Distance by which the right edge moved, bytes; negative where the window shrank.
    pub edge_moved_bytes: i64,
    /// Bytes in flight at the capture point before this ACK.
    pub flight_before_bytes: u64,
    /// Bytes in flight at the capture point after this ACK.
    pub flight_bytes: u64,
    /// Bytes that the receiver holds above a hole.
    pub sacked_in_all_bytes: u64,
    /// Largest segment of the acknowledged direction, bytes.
    pub mss_bytes: u32,
    /// Number of packets acknowledged.
    pub packets: u32,
    /// Number of wire segments in these packets.
    pub segments: u32,
    /// Time since the oldest of these packets passed, nanoseconds; None if there are none.
    pub oldest_ns: Option<u64>,
    /// Time since the newest of these packets passed, nanoseconds; None if there are none.
    pub newest_ns: Option<u64>,
    /// Payload of the longest of these packets that is one segment and was sent once, bytes.
    pub largest_bytes: u32,
    /// Whether the number is the end of a packet.
    pub is_exact: bool,
    /// Whether the newest of them had PSH or FIN.
    pub is_pushed: bool,
    /// Whether the receiver had a hole, or one of the packets was retransmitted: such an ACK is no
    /// sample of the RTT (Karn), nor of how ACKs are delayed.
    pub is_recovery: bool,
    /// Time since the first packet with the echoed timestamp, nanoseconds.
    pub timestamp_rtt_ns: Option<u64>,
    /// Whose timestamp it echoes.
    pub echo: Echo,
    /// Packets newly reported as CE-marked, modulo 8; None without Accurate ECN (RFC 9768).
    pub ce_marks: Option<u32>,
    /// Payload newly reported; None without an AccECN option.
    pub ecn_bytes: Option<EcnBytes>,
    /// Number of data packets that passed and are not acknowledged.
    pub packets_left: u32,
}

impl Ack {
    /// RTT between the capture point and the receiver, including the receiver's delay: from a
    /// packet that was sent once to the ACK of its end.
    pub fn rtt_ns(&self) -> Option<u64> {
        self.newest_ns.filter(|_| self.is_exact && !self.is_recovery)
    }
}
