// SPDX-License-Identifier: MIT
//! ACK filter (RFC 3449, 5.2.1): a FIFO in which a newer pure ACK replaces an older one of its flow.
//! CAKE's own filter is in cake_ack_filter.rs.

use super::drop_tail::DropTail;
use super::qdisc::Qdisc;
use super::queues::Queues;
use crate::packet::{Flags, Packet};
use crate::result::ChannelResult;
use crate::scenario::ChannelSpec;

pub struct AckFilter {
    fifo: DropTail,
}

impl AckFilter {
    pub fn new(pipe: &ChannelSpec) -> Self {
        AckFilter { fifo: DropTail::new(pipe, 1) }
    }
}

impl Qdisc for AckFilter {
    fn enqueue(&mut self, now: u64, packet: Box<Packet>, is_idle: bool, stats: &mut ChannelResult) {
        remove_redundant(&mut self.fifo.queues, 0, &packet, stats);
        self.fifo.enqueue(now, packet, is_idle, stats);
    }

    fn dequeue(&mut self, now: u64, stats: &mut ChannelResult) -> Option<Box<Packet>> {
        self.fifo.dequeue(now, stats)
    }

    fn queues(&self) -> &Queues {
        self.fifo.queues()
    }
}

/// Removes the first pure ACK of a queue that an arriving one makes redundant: same flow and
/// direction, lower ACK number, no SACK blocks (they may report other holes). A duplicate ACK is
/// never dropped: its number is not lower, and the sender counts it. An ACK whose flags the newer
/// one does not repeat is kept, too (RFC 3168, 6.1.3). At most one is replaced for each arrival
/// (RFC 3449, 5.2.1).
// [RFC 3449, 5.2.1]
pub fn remove_redundant(queues: &mut Queues, queue: usize, newer: &Packet, stats: &mut ChannelResult) {
    let is_redundant = |p: &Packet| {
        p.is_pure_ack()
            && p.flow == newer.flow
            && p.down == newer.down
            && p.ack < newer.ack
            && p.has(Flags::ECE) == newer.has(Flags::ECE)
            && p.sack.is_none()
    };
    if !newer.is_pure_ack() {
        return;
    }
    let found = queues.iter(queue).position(is_redundant);
    if let Some(at) = found {
        queues.remove(queue, at);
        stats.acks_filtered += 1;
    }
}
