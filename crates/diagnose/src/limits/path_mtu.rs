// SPDX-License-Identifier: MIT
//! Path MTU black holes: a hop drops packets above some size, and no ICMP message tells the sender
//! (RFC 2923, 2.1). All copies of a large packet are lost, and smaller packets arrive.
//!
//! Behind that hop, only what passed shows it: a silence, and then data in packets smaller than
//! both ends allow, as from a sender that has found a smaller size (RFC 4821); or numbers of IP
//! packets that a sender of small packets alone skipped.
//!
//! Where the capture holds ICMP, the router's message is the proof: the sender has not heard it, or
//! ignores it. Without one, such a hop says nothing, or what it says takes another way.

use super::wait::MIN_RTO_NS;
use crate::step::{Ack, AckKind, Step};
use ackwise_capture::{tcp_flag, TooBig};
use serde::Serialize;
use std::net::IpAddr;

/// Minimum number of copies lost: one where the same data arrives in smaller packets, and more where
/// the sender never tries that.
const COPIES: u32 = 2;
const COPIES_ALONE: u32 = 4;

/// Minimum silence before a sender tries smaller packets: it takes several timers.
const SILENCE_NS: u64 = 4 * MIN_RTO_NS;
/// Share of a segment that such a packet at most has, and minimum number of packets of its size.
const SMALLER: f64 = 0.95;
const ALIKE: u32 = 4;
/// Minimum number of IP packets that a silent sender sent.
const VANISHED: i16 = 3;
const NEAR: i16 = 256;

/// What shows a path MTU black hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MtuSign {
    /// The same data, or data sent after it, arrived in smaller packets.
    SmallerArrived,
    /// Nothing arrived since the sender's packets have that size: the path may as well be down.
    NothingSince,
    /// After a silence, all data comes in packets smaller than both ends allow: seen behind the hop.
    SmallerAfterSilence,
    /// A router said so, and the sender's packets are not seen to become smaller.
    RouterTold,
}

/// A router's messages about packets that are too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Told {
    /// The router.
    pub router: IpAddr,
    /// MTU of the next link, bytes.
    pub mtu_bytes: u32,
    /// Number of messages.
    pub messages: u64,
}

/// A packet size that never arrives, and one that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PathMtu {
    /// Length of the smallest IP packet whose copies were all lost.
    pub lost_bytes: u32,
    /// Length of the largest IP packet that arrived.
    pub passed_bytes: u32,
    /// What shows it.
    pub shown_by: MtuSign,
    /// The router's message; None where the capture holds none.
    pub told: Option<Told>,
    /// Whether the capture holds other packets than TCP, and so would hold such a message.
    pub holds_others: bool,
}

impl PathMtu {
    fn new(lost_bytes: u32, passed_bytes: u32, shown_by: MtuSign) -> Self {
        PathMtu { lost_bytes, passed_bytes, shown_by, told: None, holds_others: false }
    }

    /// The black hole that a router's messages explain: its packets are lost, and not those of the
    /// next link's MTU.
    pub(super) fn told(known: Option<Self>, told: &TooBig) -> Option<Self> {
        let &TooBig { router, mtu_bytes, messages, packet_bytes, .. } = told;
        let known = known.unwrap_or(PathMtu::new(packet_bytes, mtu_bytes, MtuSign::RouterTold));
        if mtu_bytes == 0 || mtu_bytes >= known.lost_bytes {
            return None;
        }
        let is_proof = known.shown_by == MtuSign::NothingSince;
        Some(PathMtu {
            passed_bytes: if is_proof { mtu_bytes } else { known.passed_bytes },
            shown_by: if is_proof { MtuSign::RouterTold } else { known.shown_by },
            told: Some(Told { router, mtu_bytes, messages }),
            ..known
        })
    }
}

/// Data in smaller packets after a silence.
#[derive(Clone, Copy, Debug)]
struct Smaller {
    silence_ns: (u64, u64),
    payload_bytes: u32,
    full_bytes: u32,
    header_bytes: u32,
    packets: u32,
}

/// The first unacknowledged data, once it is retransmitted.
#[derive(Clone, Copy, Debug)]
struct Stuck {
    start: u64,
    payload_bytes: u32,
    /// Number of copies of this size or more.
    copies: u32,
    /// Payload of the last copy, if it is smaller.
    smaller_bytes: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sizes {
    una: u64,
    header_bytes: u32,
    stuck: Option<Stuck>,
    /// Data that the receiver holds above a hole.
    sacked_bytes: u64,
    /// Payload of the largest packet that arrived, and of the smallest that never did.
    arrived_bytes: u32,
    lost_bytes: Option<u32>,
    /// Payload of the largest packet that passed, and whether the peer closed since any did.
    passed_bytes: u32,
    is_closed: bool,
    smaller: Option<Smaller>,
    /// IP packets that this end sent before the peer closed, and that did not arrive.
    pub vanished: bool,
}

impl Sizes {
    pub fn sent(&mut self, step: &Step) {
        self.passed(step);
        let data = &step.data;
        // Offloads merge packets: their own size does not show.
        let is_single = step.payload_bytes > 0 && data.segments == 1;
        if !is_single || !data.kind.is_retransmission() || data.start != self.una {
            return;
        }
        let bytes = step.payload_bytes;
        self.header_bytes = step.ip_bytes.saturating_sub(bytes);
        match &mut self.stuck {
            Some(stuck) if stuck.start == data.start => {
                if bytes < stuck.payload_bytes {
                    stuck.smaller_bytes = Some(bytes);
                } else {
                    stuck.copies += 1;
                    stuck.smaller_bytes = None;
                }
            }
            _ => {
                self.stuck = Some(Stuck {
                    start: data.start,
                    payload_bytes: bytes,
                    copies: COPIES,
                    smaller_bytes: None,
                });
            }
        }
    }

    /// Packets as seen behind the hop.
    fn passed(&mut self, step: &Step) {
        let (data, bytes) = (&step.data, step.payload_bytes);
        let is_full = self.passed_bytes >= data.mss_bytes;
        if std::mem::take(&mut self.is_closed) && !is_full {
            self.vanished |= (VANISHED..=NEAR).contains(&data.ident.ahead);
        }
        if bytes == 0 {
            return;
        }
        // An application that writes so little at a time pushes each write.
        let is_single = data.segments == 1 && !step.has(tcp_flag::PSH);
        match &mut self.smaller {
            Some(smaller) if bytes == smaller.payload_bytes => smaller.packets += u32::from(is_single),
            Some(smaller) if bytes >= smaller.full_bytes => self.smaller = None,
            None if is_single
                && !is_full
                && data.start == self.una
                && step.silence_ns > SILENCE_NS
                && f64::from(bytes) < SMALLER * f64::from(data.mss_bytes) =>
            {
                self.smaller = Some(Smaller {
                    silence_ns: (step.time_ns - step.silence_ns, step.time_ns),
                    payload_bytes: bytes,
                    full_bytes: data.mss_bytes,
                    header_bytes: step.ip_bytes.saturating_sub(bytes),
                    packets: 1,
                });
            }
            _ => {}
        }
        self.passed_bytes = self.passed_bytes.max(bytes);
    }

    /// The silence before smaller packets, if they show a black hole before the capture point.
    pub fn silence_ns(&self) -> Option<(u64, u64)> {
        self.smaller.filter(|smaller| smaller.packets >= ALIKE).map(|smaller| smaller.silence_ns)
    }

    pub fn acked(&mut self, step: &Step, ack: &Ack) {
        self.is_closed |= step.has(tcp_flag::FIN | tcp_flag::RST);
        self.una = self.una.max(ack.number);
        self.arrived_bytes = self.arrived_bytes.max(ack.largest_bytes);
        self.sacked_bytes = ack.sacked_in_all_bytes;
        let Some(stuck) = self.stuck else { return };
        if ack.kind != AckKind::Advancing || ack.number <= stuck.start {
            return;
        }
        match stuck.smaller_bytes {
            Some(smaller) => {
                let bytes = stuck.payload_bytes;
                self.lost_bytes = Some(self.lost_bytes.map_or(bytes, |least| least.min(bytes)));
                self.arrived_bytes = self.arrived_bytes.max(smaller);
            }
            None => self.arrived_bytes = self.arrived_bytes.max(stuck.payload_bytes),
        }
        self.stuck = None;
    }

    /// The sizes, if all packets from one size on were lost.
    pub fn black_hole(&self) -> Option<PathMtu> {
        self.lost().or(self.smaller.filter(|smaller| smaller.packets >= ALIKE).map(|smaller| {
            PathMtu::new(
                smaller.full_bytes + smaller.header_bytes,
                smaller.payload_bytes + smaller.header_bytes,
                MtuSign::SmallerAfterSilence,
            )
        }))
    }

    /// Length of an IP packet that is sent again and again and never arrives, and no smaller one in its
    /// place; 0: none.
    pub fn stuck_bytes(&self) -> u32 {
        let stuck = self.stuck.filter(|stuck| stuck.copies >= COPIES_ALONE && stuck.smaller_bytes.is_none());
        stuck.map_or(0, |stuck| stuck.payload_bytes + self.header_bytes)
    }

    fn lost(&self) -> Option<PathMtu> {
        // What the receiver has of data sent after it is less than such a packet, or nothing.
        let is_passed = |stuck: &Stuck| self.sacked_bytes < u64::from(stuck.payload_bytes);
        let alone = self.stuck.filter(|stuck| stuck.copies >= COPIES_ALONE && is_passed(stuck));
        let lost_bytes = self.lost_bytes.or(alone.map(|stuck| stuck.payload_bytes))?;
        let (arrived_bytes, shown_by) = match alone {
            Some(_) if self.lost_bytes.is_none() && self.sacked_bytes == 0 => {
                (self.arrived_bytes, MtuSign::NothingSince)
            }
            Some(_) => (self.arrived_bytes.max(self.sacked_bytes as u32), MtuSign::SmallerArrived),
            None => (self.arrived_bytes, MtuSign::SmallerArrived),
        };
        (0 < arrived_bytes && arrived_bytes < lost_bytes).then(|| {
            PathMtu::new(lost_bytes + self.header_bytes, arrived_bytes + self.header_bytes, shown_by)
        })
    }
}
