// SPDX-License-Identifier: MIT
//! fq (Linux 6.12 net/sched/sch_fq.c) as the discipline of a bottleneck: a queue for each flow,
//! served round robin by bytes, without an AQM.
//!
//! ```text
//! arrival --nothing of a flow waits, short FIFO--> FIFO ----------------------> first
//!         --else--> queue of its flow --> lists of flows: new, then old (round robin)
//! ```
//!
//! Flows take turns as in fq_codel, with two differences (`fq_enqueue`, `fq_dequeue`): credit
//! persists when a queue is empty and is raised to one quantum only after a pause of 40 ms; and up
//! to 8 packets that arrive while no flow waits bypass the flows (`fq_fastpath_check`).
//!
//! Constants: those of `fq_init`. Quantum 2 frames, 10 for a flow's first turn (the initial window
//! of RFC 6928); limits of 100 packets per flow and 10000 in total. Arrivals beyond a limit are
//! dropped.
//!
//! Pacing is absent: fq paces packets of the host's own sockets, and a forwarded packet has no
//! socket (`ip_rcv_core` removes it), so on a router fq is round robin only. Senders that pace
//! (`bbr`) do so at the host.
//!
//! Deviations: one band of three, as all packets have the same priority; times are nanoseconds, not
//! jiffies; a flow that pauses for 3 s is not forgotten.

use super::qdisc::{count_drop, frame_bytes, limit_or, Qdisc};
use super::queues::{FlowHash, Queues, QUEUES};
use crate::packet::Packet;
use crate::result::ChannelResult;
use crate::rng::Rng;
use crate::scenario::ChannelSpec;
use std::collections::VecDeque;

const LIMIT_PACKETS: u64 = 10_000;
const FLOW_LIMIT_PACKETS: u32 = 100;
const REFILL_NS: u64 = 40_000_000;
/// Maximum number of packets that bypass the flows.
const FAST_PACKETS: usize = 8;
/// The queue of those packets, after the flows' own.
const FAST: usize = QUEUES;

#[derive(Clone)]
struct Flow {
    /// Bytes that it may send before the others' turn.
    credit: i64,
    is_listed: bool,
    /// Time at which it left the lists; MAX: it was never in one.
    unlisted_ns: u64,
}

pub struct Fq {
    queues: Queues,
    flows: Vec<Flow>,
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    hash: FlowHash,
    quantum: i64,
    limit_packets: usize,
    flow_limit_packets: usize,
}

impl Fq {
    pub fn new(pipe: &ChannelSpec, mtu_bytes: u32, mut rng: Rng) -> Self {
        let frame = frame_bytes(mtu_bytes);
        let credit = pipe.initial_quantum_bytes.unwrap_or(10 * frame).into();
        Fq {
            queues: Queues::new(QUEUES + 1),
            flows: vec![Flow { credit, is_listed: false, unlisted_ns: u64::MAX }; QUEUES],
            new: VecDeque::with_capacity(QUEUES),
            old: VecDeque::with_capacity(QUEUES),
            hash: FlowHash::new(&mut rng),
            quantum: pipe.quantum_bytes.unwrap_or(2 * frame).into(),
            limit_packets: limit_or(pipe.queue_packets.into(), LIMIT_PACKETS) as usize,
            flow_limit_packets: pipe.flow_limit_packets.unwrap_or(FLOW_LIMIT_PACKETS) as usize,
        }
    }
}

impl Qdisc for Fq {
    fn enqueue(&mut self, now: u64, packet: Box<Packet>, _: bool, stats: &mut ChannelResult) {
        let fast = self.queues.packets_of(FAST);
        let of_flows = self.queues.packets() - fast;
        if of_flows == 0 && fast < FAST_PACKETS {
            self.queues.push(FAST, now, packet);
            return;
        }
        let queue = self.hash.of(packet.flow) as usize % QUEUES;
        if of_flows >= self.limit_packets || self.queues.packets_of(queue) >= self.flow_limit_packets {
            count_drop(stats, &packet);
            return;
        }
        self.queues.push(queue, now, packet);
        let flow = &mut self.flows[queue];
        if !flow.is_listed {
            flow.is_listed = true;
            if now > flow.unlisted_ns.saturating_add(REFILL_NS) {
                flow.credit = flow.credit.max(self.quantum);
            }
            self.new.push_back(queue as u16);
        }
    }

    fn dequeue(&mut self, now: u64, _: &mut ChannelResult) -> Option<Box<Packet>> {
        // Linux does not inspect its lists while nothing waits, so they keep empty flows.
        if self.queues.packets() == 0 {
            return None;
        }
        if let Some((_, packet)) = self.queues.pop(FAST) {
            return Some(packet);
        }
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let number = *list.front()?;
            let flow = &mut self.flows[usize::from(number)];
            if flow.credit <= 0 {
                flow.credit += self.quantum;
                list.pop_front();
                self.old.push_back(number);
            } else if let Some((_, packet)) = self.queues.pop(number.into()) {
                flow.credit -= i64::from(packet.wire_bytes);
                return Some(packet);
            } else {
                list.pop_front();
                if is_new {
                    self.old.push_back(number);
                } else {
                    flow.is_listed = false;
                    flow.unlisted_ns = now;
                }
            }
        }
    }

    fn queues(&self) -> &Queues {
        &self.queues
    }
}
