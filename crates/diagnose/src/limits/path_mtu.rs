// SPDX-License-Identifier: MIT
//! Path MTU black holes: a hop drops packets above some size, and no ICMP message tells the sender
//! (RFC 2923, 2.1). All copies of a large packet are lost, and smaller packets arrive.

use crate::step::{Ack, AckKind, Step};
use serde::Serialize;

/// Minimum number of copies lost: one where the same data arrives in smaller packets, and more where
/// the sender never tries that.
const COPIES: u32 = 2;
const COPIES_ALONE: u32 = 4;

/// A packet size that never arrives, and one that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PathMtu {
    /// Length of the smallest IP packet whose copies were all lost.
    pub lost_bytes: u32,
    /// Length of the largest IP packet that arrived.
    pub passed_bytes: u32,
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
}

impl Sizes {
    pub fn sent(&mut self, step: &Step) {
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

    pub fn acked(&mut self, ack: &Ack) {
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
        // The receiver has data sent after it, but less than such a packet.
        let is_passed = |stuck: &Stuck| (1..u64::from(stuck.payload_bytes)).contains(&self.sacked_bytes);
        let alone = self.stuck.filter(|stuck| stuck.copies >= COPIES_ALONE && is_passed(stuck));
        let lost_bytes = self.lost_bytes.or(alone.map(|stuck| stuck.payload_bytes))?;
        let arrived_bytes = match alone {
            Some(_) => self.arrived_bytes.max(self.sacked_bytes as u32),
            None => self.arrived_bytes,
        };
        (0 < arrived_bytes && arrived_bytes < lost_bytes).then(|| PathMtu {
            lost_bytes: lost_bytes + self.header_bytes,
            passed_bytes: arrived_bytes + self.header_bytes,
        })
    }
}
