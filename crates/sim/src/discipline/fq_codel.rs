// SPDX-License-Identifier: MIT
//! fq_codel (RFC 8290; Linux 6.12 net/sched/sch_fq_codel.c): a queue for each flow, served round
//! robin by bytes, flows without a backlog first, with CoDel in each queue.
//!
//! ```text
//! arrival --> queue of its flow --> CoDel --> transmitter
//! lists of flows:  new  --quantum used up, or found empty-->  old (round robin)
//! ```
//!
//! A flow enters the list `new` with one quantum. The head of `new`, or of `old` if `new` is empty,
//! sends while its deficit is positive; then it gets another quantum and moves to the end of `old`
//! (RFC 8290, 4.2; `fq_codel_dequeue`). A `new` flow that was found empty passes through `old`
//! once, so that it cannot be new again at once and starve the others.
//!
//! Beyond a limit, the flow with the most bytes drops packets from its head: half of its bytes, at
//! most 64 packets, so that the search for this flow is rare; its CoDel counts them
//! (`fq_codel_drop`). This happens once per arrival, so bytes may exceed their limit if a batch was
//! smaller than the arrival.
//!
//! With `ack_compression`, an ACK alone replaces the last packet of its flow's queue, if that is one
//! too, as XNU's fq_codel does (`fq_compressor()`): both must have been made in the same period,
//! which lasts 5 ms there, from its first ACK on. ECE keeps an ACK out of this, SACK blocks do not.
//!
//! Constants: those of `fq_codel_init`. Limit 10240 packets, 1024 queues, quantum of one frame.
//! Flows are hashed, so two may share a queue: among n flows, each does with a probability of about
//! n/1024.
//!
//! Deviations: a limit in bytes counts bytes on the link, whereas Linux counts memory (in the lab
//! 2344 bytes for a packet of 1500 and 896 for an ACK). CoDel's deviations are in codel.rs.

use super::codel::{Codel, Target};
use super::qdisc::{count_drop, frame_bytes, limit_or, Qdisc};
use super::queues::{FlowHash, Queues, QUEUES};
use crate::packet::{Flags, Packet};
use crate::result::ChannelResult;
use crate::rng::Rng;
use crate::scenario::ChannelSpec;
use std::collections::VecDeque;

const LIMIT_PACKETS: u64 = 10_240;
const LIMIT_BYTES: u64 = 32 << 20;
const DROP_BATCH: usize = 64;

#[derive(Clone, Default)]
struct Flow {
    /// Bytes that it may send before the others' turn.
    deficit: i64,
    is_listed: bool,
    codel: Codel,
    /// When the period of ACKs that replace each other began.
    compressed_since_ns: Option<u64>,
}

pub struct FqCodel {
    queues: Queues,
    flows: Vec<Flow>,
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    hash: FlowHash,
    target: Target,
    quantum: i64,
    limit_packets: usize,
    limit_bytes: u64,
    compression_ns: u64,
}

impl FqCodel {
    pub fn new(pipe: &ChannelSpec, mtu_bytes: u32, mut rng: Rng) -> Self {
        let frame = frame_bytes(mtu_bytes);
        FqCodel {
            queues: Queues::new(QUEUES),
            flows: vec![Flow::default(); QUEUES],
            new: VecDeque::with_capacity(QUEUES),
            old: VecDeque::with_capacity(QUEUES),
            hash: FlowHash::new(&mut rng),
            target: Target::new(pipe, frame),
            quantum: pipe.quantum_bytes.unwrap_or(frame).into(),
            limit_packets: limit_or(pipe.queue_packets.into(), LIMIT_PACKETS) as usize,
            limit_bytes: limit_or(pipe.queue_bytes, LIMIT_BYTES),
            compression_ns: pipe.ack_compression_ns,
        }
    }

    fn queue_of(&self, packet: &Packet) -> usize {
        ((u64::from(self.hash.of(packet.flow)) * QUEUES as u64) >> 32) as usize
    }

    /// Puts an ACK in the place of the one before it; returns the packet that needs a place of its own.
    // [S6.16]
    fn compress(
        &mut self,
        queue: usize,
        now: u64,
        packet: Box<Packet>,
        stats: &mut ChannelResult,
    ) -> Option<Box<Packet>> {
        let is_compressible = |p: &Packet| p.is_pure_ack() && !p.has(Flags::ECE);
        if self.compression_ns == 0 || !is_compressible(&packet) {
            return Some(packet);
        }
        let since = &mut self.flows[queue].compressed_since_ns;
        let began = match *since {
            Some(began) if now <= began + self.compression_ns => began,
            _ => {
                *since = Some(now);
                return Some(packet);
            }
        };
        match self.queues.last(queue) {
            Some((since_ns, last))
                if since_ns >= began && last.flow == packet.flow && is_compressible(last) =>
            {
                self.queues.replace_last(queue, packet);
                stats.acks_filtered += 1;
                None
            }
            _ => Some(packet),
        }
    }

    fn drop_from_fattest(&mut self, stats: &mut ChannelResult) {
        let fattest = self.queues.fattest();
        let keep = self.queues.bytes_of(fattest).div_ceil(2);
        let mut dropped = 0;
        while dropped < DROP_BATCH && (dropped == 0 || self.queues.bytes_of(fattest) > keep) {
            let Some((_, packet)) = self.queues.pop(fattest) else { break };
            count_drop(stats, &packet);
            dropped += 1;
        }
        self.flows[fattest].codel.dropped_at_limit(dropped as u32);
    }
}

impl Qdisc for FqCodel {
    fn enqueue(&mut self, now: u64, packet: Box<Packet>, _: bool, stats: &mut ChannelResult) {
        let queue = self.queue_of(&packet);
        let Some(packet) = self.compress(queue, now, packet, stats) else { return };
        self.queues.push(queue, now, packet);
        let flow = &mut self.flows[queue];
        if !flow.is_listed {
            flow.is_listed = true;
            flow.deficit = self.quantum;
            self.new.push_back(queue as u16);
        }
        // A single packet always fits, however long.
        let many_bytes = self.queues.bytes() > self.limit_bytes && self.queues.packets() > 1;
        if many_bytes || self.queues.packets() > self.limit_packets {
            self.drop_from_fattest(stats);
        }
    }

    fn dequeue(&mut self, now: u64, stats: &mut ChannelResult) -> Option<Box<Packet>> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let number = *list.front()?;
            let at = usize::from(number);
            let flow = &mut self.flows[at];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                list.pop_front();
                self.old.push_back(number);
                continue;
            }
            if let Some(packet) = flow.codel.pull(&self.target, &mut self.queues, at, now, stats) {
                flow.deficit -= i64::from(packet.wire_bytes);
                return Some(packet);
            }
            list.pop_front();
            if is_new && !self.old.is_empty() {
                self.old.push_back(number);
            } else {
                flow.is_listed = false;
            }
        }
    }

    fn queues(&self) -> &Queues {
        &self.queues
    }
}
