// SPDX-License-Identifier: MIT
//! Queues that drop arrivals beyond their limit, and a FIFO of one of them (Linux `pfifo`, `bfifo`).
//!
//! A FIFO usually needs no queue (`crate::fifo`). It has this one where a packet's departure is not
//! known on arrival: on a shared medium, and beside losses by name.

use super::qdisc::{count_drop, Limits, Qdisc};
use super::queues::Queues;
use crate::packet::Packet;
use crate::result::ChannelResult;
use crate::scenario::ChannelSpec;

pub struct DropTail {
    pub queues: Queues,
    limits: Limits,
}

impl DropTail {
    pub fn new(pipe: &ChannelSpec, queues: usize) -> Self {
        DropTail { queues: Queues::new(queues), limits: Limits::new(pipe) }
    }

    /// Adds a packet to a queue, or drops it. The limit in packets is each queue's own, so that none
    /// takes another's place; that in bytes is all queues' together.
    pub fn push(
        &mut self,
        queue: usize,
        now: u64,
        packet: Box<Packet>,
        is_idle: bool,
        stats: &mut ChannelResult,
    ) {
        let (packets, bytes) = (self.queues.packets_of(queue), self.queues.bytes());
        if is_idle || self.limits.have_room(packets, bytes, &packet) {
            self.queues.push(queue, now, packet);
        } else {
            count_drop(stats, &packet);
        }
    }
}

impl Qdisc for DropTail {
    fn enqueue(&mut self, now: u64, packet: Box<Packet>, is_idle: bool, stats: &mut ChannelResult) {
        self.push(0, now, packet, is_idle, stats);
    }

    fn dequeue(&mut self, _: u64, _: &mut ChannelResult) -> Option<Box<Packet>> {
        self.queues.pop(0).map(|(_, packet)| packet)
    }

    fn queues(&self) -> &Queues {
        &self.queues
    }
}
