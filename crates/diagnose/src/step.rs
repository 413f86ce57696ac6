// SPDX-License-Identifier: MIT
//! What one packet meant. [`crate::flow`] works it out once; observers read it.
//!
//! A packet does two things: it carries data of the endpoint that sent it ([`Data`]), and it
//! acknowledges data of the other ([`Ack`]). Times and bytes are those at the capture point; what
//! the data sender knew when it sent a packet is in [`SenderView`].
//!
//! Sequence numbers are 64 bits wide and do not wrap around; their low 32 bits are those on the wire.

pub use crate::idents::Ident;
use serde::Serialize;

/// One packet of a connection.
#[derive(Clone, Debug)]
pub struct Step {
    /// Nanoseconds since the first packet of the capture; never smaller than in the step before.
    pub time_ns: u64,
    /// Its file, and its number there as in Wireshark.
    pub file: u32,
    pub number: u64,
    /// Endpoint that sent it: 0 opened the connection.
    pub from: usize,
    /// As in [`ackwise_capture::tcp_flag`].
    pub flags: u16,
    /// ECN bits of the IP header: 3 is congestion experienced.
    pub ecn: u8,
    pub payload_bytes: u32,
    /// IP packet with its header; above the MTU where offloads merged packets.
    pub ip_bytes: u32,
    /// Since the packet before it, in either direction.
    pub silence_ns: u64,
    /// In queues between `from` and the capture point; none without timestamps.
    pub queued_ns: Option<u64>,
    /// RTT between the capture point and each endpoint, the smallest of late; none before the first
    /// sample.
    pub distance_ns: [Option<u64>; 2],
    /// The smallest of all.
    pub least_ns: [Option<u64>; 2],
    /// As data of `from`.
    pub data: Data,
    /// As an acknowledgment by `from`; none without the ACK flag.
    pub ack: Option<Ack>,
}

impl Step {
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Acknowledges and does nothing else.
    pub fn is_pure_ack(&self) -> bool {
        use ackwise_capture::tcp_flag::{ACK, FIN, RST, SYN};
        self.payload_bytes == 0
            && self.flags & (ACK | SYN | FIN | RST) == ACK
            && self.data.kind == DataKind::None
    }

    /// Smallest RTT of the whole path, without queues.
    pub fn least_rtt_ns(&self) -> Option<u64> {
        self.least_ns.into_iter().flatten().reduce(|a, b| a + b)
    }

    /// RTT of the whole path as far as samples tell.
    pub fn rtt_ns(&self) -> Option<u64> {
        match self.distance_ns {
            [None, None] => None,
            [a, b] => Some(a.unwrap_or(0) + b.unwrap_or(0)),
        }
    }
}

/// Why data was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Duplicate ACKs or SACK blocks reported a loss.
    Fast,
    /// The retransmission timer, and what was sent again until all that was in flight then is acknowledged.
    Timeout,
    /// The last segment again after about two RTTs of silence (RFC 8985, 7).
    TailLossProbe,
    /// None of these is visible: packets of the other direction may be missing.
    Unclear,
}

/// What a packet is as data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataKind {
    /// Carries none.
    #[default]
    None,
    Syn,
    /// The SYN again.
    SynAgain,
    New,
    /// Below the highest number, never seen before, and not sent again: the network, or the
    /// capture, changed the order.
    OutOfOrder,
    Retransmission(Cause),
    /// A number that is acknowledged already, to make the peer answer.
    KeepAlive,
    /// The same, or one byte, into a window of 0.
    WindowProbe,
    /// Its numbers lie before the connection's first.
    Old,
}

impl DataKind {
    pub fn is_retransmission(self) -> bool {
        matches!(self, DataKind::Retransmission(_))
    }

    /// Takes sequence numbers that the peer must acknowledge.
    pub fn is_data(self) -> bool {
        matches!(self, DataKind::New | DataKind::OutOfOrder | DataKind::Retransmission(_))
    }
}

/// A packet as data of the endpoint that sent it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Data {
    pub kind: DataKind,
    /// Numbers of payload and FIN: [start, end).
    pub start: u64,
    pub end: u64,
    /// Segments on the wire: more than one where an offload merged them.
    pub segments: u32,
    /// Largest segment of this direction.
    pub mss_bytes: u32,
    /// Payload never seen before.
    pub new_bytes: u32,
    /// Payload that was acknowledged before it passed.
    pub needless_bytes: u32,
    /// Numbers that had been acknowledged before they passed, and that nothing showed to be sent
    /// twice: the capture has the two directions in another order.
    pub behind_ack_bytes: u64,
    /// Numbers skipped in front of it, not seen so far.
    pub skipped_bytes: u64,
    /// Shows packets of this endpoint that were sent in front of it and did not come.
    pub ident: Ident,
    /// The first retransmission of a recovery, and each that a timer sent.
    pub begins_recovery: bool,
    /// Of data sent again: when it had passed before, or its loss was seen.
    pub lost_ns: Option<u64>,
    /// Since data of this endpoint passed; none for the first.
    pub since_data_ns: Option<u64>,
    /// Highest number minus highest acknowledgment; 0 where no packet of the peer was seen.
    pub flight_before_bytes: u64,
    pub flight_bytes: u64,
    pub sender: SenderView,
}

/// What the data sender had heard when it sent the packet: the ACKs that passed the capture point
/// one RTT between it and the sender earlier.
#[derive(Clone, Copy, Debug, Default)]
pub struct SenderView {
    /// Highest acknowledgment and right edge of the window.
    pub una: u64,
    pub edge: u64,
    /// Behind the packet in front, up to which the sender had sent.
    pub nxt: u64,
    /// Since an ACK reached it.
    pub since_ack_ns: Option<u64>,
    /// RTT between the capture point and the sender, with what queues there added then.
    pub distance_ns: u64,
}

impl SenderView {
    /// Bytes in flight after a packet that ends at `end`.
    pub fn flight_bytes(&self, end: u64) -> u64 {
        end.max(self.nxt).saturating_sub(self.una)
    }

    /// What the window still allowed after a packet that ends at `end`.
    pub fn slack_bytes(&self, end: u64) -> u64 {
        self.edge.saturating_sub(end.max(self.nxt))
    }
}

/// What a packet is as an acknowledgment.
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
    /// Repeats number and window on a packet with data, or while nothing is in flight.
    Unchanged,
    /// Answers a keep-alive.
    KeepAliveReply,
    /// Answers a window probe.
    WindowProbeReply,
    /// Below the highest number: overtaken on its way.
    #[default]
    Old,
}

/// Payload by the code point with which it came to the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnBytes {
    pub ect0: u32,
    pub ce: u32,
    pub ect1: u32,
}

/// A packet as an acknowledgment of the other endpoint's data.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack {
    pub kind: AckKind,
    pub number: u64,
    /// Acknowledged for the first time, by number and by SACK.
    pub acked_bytes: u64,
    pub sacked_bytes: u64,
    /// Of `acked_bytes`: never seen, as the capture lost them or began later.
    pub unseen_bytes: u64,
    /// Of these: not sent before the capture began.
    pub missed_bytes: u64,
    /// Received twice, says the receiver (RFC 2883).
    pub dsack: Option<(u64, u64)>,
    /// Blocks in the option.
    pub sack_blocks: u32,
    /// Advertised window; as in the header where `window_known` is false.
    pub window_bytes: u64,
    pub window_known: bool,
    /// Right edge of the window, and how far it moved.
    pub edge: u64,
    pub edge_moved_bytes: i64,
    /// In flight at the capture point.
    pub flight_before_bytes: u64,
    pub flight_bytes: u64,
    /// Held by the receiver behind a hole.
    pub sacked_in_all_bytes: u64,
    pub mss_bytes: u32,
    /// Packets and segments acknowledged.
    pub packets: u32,
    pub segments: u32,
    /// Since the oldest and the newest of these packets passed; none if there are none.
    pub oldest_ns: Option<u64>,
    pub newest_ns: Option<u64>,
    /// The number is the end of a packet.
    pub is_exact: bool,
    /// The newest of them had PSH or FIN.
    pub is_pushed: bool,
    /// The receiver had a hole, or one of the packets was sent again: not a sample of the RTT
    /// (Karn), nor of how ACKs are delayed.
    pub is_recovery: bool,
    /// From the first packet with the timestamp that is echoed.
    pub timestamp_rtt_ns: Option<u64>,
    /// Packets that the receiver reports as CE-marked for the first time, modulo 8; none without
    /// Accurate ECN (RFC 9768).
    pub ce_marks: Option<u32>,
    /// Payload that it reports for the first time; none without an AccECN option.
    pub ecn_bytes: Option<EcnBytes>,
    /// Data that passed and is not acknowledged.
    pub packets_left: u32,
}

impl Ack {
    /// RTT between the capture point and the receiver, its delay included: from a packet that was
    /// sent once to the ACK with its end.
    pub fn rtt_ns(&self) -> Option<u64> {
        self.newest_ns.filter(|_| self.is_exact && !self.is_recovery)
    }
}
