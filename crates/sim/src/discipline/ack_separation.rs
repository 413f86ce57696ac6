// SPDX-License-Identifier: MIT
//! ACK separation: pure ACKs have a queue of their own, which is served first within a bounded share
//! (RFC 3449, 5.4); with `ack-separation-filter`, an ACK filter works in that queue.

use super::ack_filter::remove_redundant;
use super::drop_tail::DropTail;
use super::qdisc::Qdisc;
use super::queues::Queues;
use crate::packet::Packet;
use crate::result::ChannelResult;
use crate::scenario::ChannelSpec;

const DATA: usize = 0;
const ACKS: usize = 1;

/// Maximum credit or debt of ACKs at a 50% share: two full-size packets.
const CREDIT_BYTES: i64 = 3000;

pub struct AckSeparation {
    waiting: DropTail,
    filters: bool,
    ack_share_ppm: u32,
    /// Bytes that ACKs may still send before it is data's turn: the bound on their share.
    ack_credit: i64,
}

impl AckSeparation {
    pub fn new(pipe: &ChannelSpec, filters: bool) -> Self {
        let waiting = DropTail::new(pipe, 2);
        AckSeparation { waiting, filters, ack_share_ppm: pipe.ack_share_ppm, ack_credit: 0 }
    }
}

impl Qdisc for AckSeparation {
    fn enqueue(&mut self, now: u64, packet: Box<Packet>, is_idle: bool, stats: &mut ChannelResult) {
        // [S3.1] [S3.2] An ACK never takes a data packet's place.
        let queue = if packet.is_pure_ack() { ACKS } else { DATA };
        if self.filters {
            remove_redundant(&mut self.waiting.queues, ACKS, &packet, stats);
        }
        self.waiting.push(queue, now, packet, is_idle, stats);
    }

    fn dequeue(&mut self, _: u64, _: &mut ChannelResult) -> Option<Box<Packet>> {
        let queues = &mut self.waiting.queues;
        let may_send_ack = queues.packets_of(DATA) == 0 || self.ack_credit > 0;
        let queue = if may_send_ack && queues.packets_of(ACKS) > 0 { ACKS } else { DATA };
        let (_, packet) = queues.pop(queue)?;
        // [S3.5] [RFC 3449, 5.4] Data earns the credit that ACKs may spend: a bounded share, and a
        // burst of two large packets.
        let bytes = i64::from(packet.wire_bytes);
        let share = i64::from(self.ack_share_ppm);
        let worth = |data: i64| data * share / (1_000_000 - share);
        let earned = if queue == ACKS { -bytes } else { worth(bytes) };
        self.ack_credit =
            (self.ack_credit + earned).clamp(-CREDIT_BYTES, worth(CREDIT_BYTES).max(CREDIT_BYTES));
        Some(packet)
    }

    fn queues(&self) -> &Queues {
        &self.waiting.queues
    }
}
