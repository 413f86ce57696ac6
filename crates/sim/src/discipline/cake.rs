// SPDX-License-Identifier: MIT
//! CAKE (Linux 6.12 net/sched/sch_cake.c): a shaper, a queue for each flow, COBALT in each queue,
//! and an ACK filter.
//!
//! ```text
//! arrival --> queue of its flow --> ACK filter | COBALT --> shaper --> transmitter
//! lists of flows:  new (sparse) --quantum used up--> old (bulk) --found empty--> decaying
//! ```
//!
//! - Shaper (`cake_advance_shaper`): each packet takes the transmission time of its bytes on the
//!   link, with overhead and cells, at the shaper's rate; a packet that leaves late does not delay
//!   the others.
//! - Turns (`cake_dequeue`, DRR++): as in fq_codel, but a flow that used up its quantum while its
//!   queue was empty stays sparse until it has a backlog, and an empty queue whose AQM is still
//!   active is kept in the list `decaying`, one of which is checked first at each turn.
//! - Queues (`cake_hash`): 8-way set-associative, so that two of 1024 flows rarely share one.
//! - Limit (`cake_drop`): the longest queue drops its head and informs BLUE.
//! - ACK filter: cake_ack_filter.rs. AQM: cobalt.rs.
//!
//! Constants: quantum 1/4096 s of the shaper's rate, 300 to 1514 bytes (`cake_set_rate`); limit four
//! RTTs of the shaper's rate, at least 4 MiB and at most 10240 frames (`cake_reconfigure`).
//!
//! Isolation of hosts: all packets of a direction have one source and one destination, so
//! `triple-isolate` (the default), `dual-srchost` and `dual-dsthost` are the same here: a flow's
//! quantum is divided by the number of bulk flows (`cake_get_flow_quantum`), dithered at random.
//!
//! Deviations: one tin (`besteffort`), as no packet has a DSCP; a limit in bytes counts bytes on the
//! link, Linux counts memory; no `ingress`, `autorate`, `nat`, `wash`.

use super::cake_ack_filter;
use super::cobalt::{Cobalt, Target};
use super::qdisc::{count_drop, frame_bytes, limit_or, mark, Qdisc};
use super::queues::{FlowHash, Queues, QUEUES};
use crate::packet::Packet;
use crate::result::ChannelResult;
use crate::rng::Rng;
use crate::scenario::{AckFilter, ChannelSpec};
use std::collections::VecDeque;

const WAYS: usize = 8;
const QUANTUM_BYTES: std::ops::RangeInclusive<u64> = 300..=1514;
const LIMIT_FRAMES: u64 = 10_240;
const LIMIT_BYTES: u64 = 4 << 20;

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Set {
    #[default]
    None,
    Sparse,
    /// In the list `old`, empty, but still counted as sparse.
    SparseWait,
    Bulk,
    Decaying,
}

#[derive(Clone, Default)]
struct Flow {
    /// Bytes that it may send before the others' turn.
    deficit: i64,
    set: Set,
    /// Hash of the flow that uses the queue.
    tag: u32,
    cobalt: Cobalt,
}

pub struct Cake {
    queues: Queues,
    flows: Vec<Flow>,
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    decaying: VecDeque<u16>,
    hash: FlowHash,
    rng: Rng,
    target: Target,
    quantum: u64,
    bulk_flows: u64,
    limit_bytes: u64,
    filter: AckFilter,
    ps_per_byte: u64,
    next_ns: u64,
}

impl Cake {
    pub fn new(pipe: &ChannelSpec, mtu_bytes: u32, mut rng: Rng) -> Self {
        let rate_bps = pipe.shaper_rate_bps.unwrap_or(pipe.rate_bps);
        let frame = u64::from(frame_bytes(mtu_bytes));
        let target = Target::new(pipe.interval_ns, frame * 8_000_000_000 / rate_bps);
        let rtt_ns = pipe.interval_ns.unwrap_or(super::codel::INTERVAL_NS);
        let four_rtts = (u128::from(rate_bps) * u128::from(rtt_ns) * 4 / 8_000_000_000) as u64;
        let otherwise = four_rtts.max(LIMIT_BYTES).min(LIMIT_FRAMES * frame);
        Cake {
            queues: Queues::new(QUEUES),
            flows: vec![Flow::default(); QUEUES],
            new: VecDeque::with_capacity(QUEUES),
            old: VecDeque::with_capacity(QUEUES),
            decaying: VecDeque::with_capacity(QUEUES),
            hash: FlowHash::new(&mut rng),
            rng,
            target,
            quantum: (rate_bps / 8 / 4096).clamp(*QUANTUM_BYTES.start(), *QUANTUM_BYTES.end()),
            bulk_flows: 0,
            limit_bytes: limit_or(pipe.queue_bytes, otherwise),
            filter: pipe.ack_filter,
            ps_per_byte: 8_000_000_000_000u64.div_ceil(rate_bps),
            next_ns: 0,
        }
    }

    /// The queue that a flow gets if it is free.
    pub fn home_of(&self, flow: u32) -> usize {
        self.hash.of(flow) as usize % QUEUES
    }

    /// The queue of a flow: its own if it has one, otherwise an unused one of its set, otherwise a
    /// shared one.
    fn queue_of(&mut self, flow: u32) -> usize {
        let tag = self.hash.of(flow);
        let home = self.home_of(flow);
        let flows = &mut self.flows;
        if flows[home].tag == tag && flows[home].set != Set::None {
            return home;
        }
        let set = home - home % WAYS;
        let ways = || (0..WAYS).map(|i| set + (home + i) % WAYS);
        let own = ways().find(|&q| flows[q].tag == tag);
        let queue = own.or_else(|| ways().find(|&q| flows[q].set == Set::None)).unwrap_or(home);
        flows[queue].tag = tag;
        queue
    }

    fn dithered_quantum(&mut self) -> i64 {
        let share = 65_535 / self.bulk_flows.max(1);
        let dither = u64::from(self.rng.bits() >> 16);
        ((self.quantum * share + dither) >> 16) as i64
    }

    fn filter_acks(&mut self, queue: usize, stats: &mut ChannelResult) {
        let length = self.queues.packets_of(queue);
        let Some((_, newest)) = self.queues.last(queue) else { return };
        let aggressive = self.filter == AckFilter::Aggressive;
        if let Some(at) = cake_ack_filter::redundant(self.queues.iter(queue), length, newest, aggressive) {
            self.queues.remove(queue, at);
            stats.acks_filtered += 1;
        }
    }

    /// The list from which the next flow is taken, and that flow. At most one decaying flow is
    /// checked before others, because they would delay flows with packets.
    fn next_flow(&mut self, is_first: bool) -> Option<usize> {
        let lists = [&self.new, &self.old, &self.decaying];
        let decaying = if is_first { self.decaying.front() } else { None };
        decaying.or_else(|| lists.iter().find_map(|list| list.front())).map(|&at| at.into())
    }

    /// Removes a flow from the head of its list.
    fn unlist(&mut self, at: usize) {
        for list in [&mut self.new, &mut self.old, &mut self.decaying] {
            if list.front().is_some_and(|&head| usize::from(head) == at) {
                list.pop_front();
                return;
            }
        }
    }

    /// Moves a flow to the end of the round when its quantum is used up.
    fn end_turn(&mut self, at: usize) {
        self.unlist(at);
        self.old.push_back(at as u16);
        if self.flows[at].set == Set::Sparse {
            if self.queues.packets_of(at) > 0 {
                self.flows[at].set = Set::Bulk;
                self.bulk_flows += 1;
            } else {
                self.flows[at].set = Set::SparseWait;
            }
        }
        self.flows[at].deficit += self.dithered_quantum();
    }

    /// Handles a flow whose queue was found empty.
    fn retire(&mut self, at: usize, now: u64) {
        self.unlist(at);
        let flow = &mut self.flows[at];
        self.bulk_flows -= u64::from(flow.set == Set::Bulk);
        if flow.cobalt.found_empty(&self.target, now) {
            flow.set = Set::Decaying;
            self.decaying.push_back(at as u16);
        } else {
            flow.set = Set::None;
        }
    }

    /// The next packet of a flow that COBALT lets pass, possibly marked; the last one always
    /// passes.
    fn pull(&mut self, at: usize, now: u64, stats: &mut ChannelResult) -> Option<Box<Packet>> {
        let cobalt = &mut self.flows[at].cobalt;
        while let Some((since_ns, mut packet)) = self.queues.pop(at) {
            let waited_ns = now - since_ns;
            let mark = || mark(stats, &mut packet);
            let drops = cobalt.drops(&self.target, now, waited_ns, &mut self.rng, mark);
            if !drops || self.queues.packets_of(at) == 0 {
                return Some(packet);
            }
            count_drop(stats, &packet);
        }
        None
    }
}

impl Qdisc for Cake {
    fn enqueue(&mut self, now: u64, packet: Box<Packet>, _: bool, stats: &mut ChannelResult) {
        let at = self.queue_of(packet.flow);
        if self.queues.packets() == 0 {
            self.next_ns = self.next_ns.max(now);
        }
        self.queues.push(at, now, packet);
        if self.filter != AckFilter::Off {
            self.filter_acks(at, stats);
        }
        match self.flows[at].set {
            Set::None | Set::Decaying => {
                if self.flows[at].set == Set::Decaying {
                    self.decaying.retain(|&flow| usize::from(flow) != at);
                }
                self.new.push_back(at as u16);
                self.flows[at].set = Set::Sparse;
                self.flows[at].deficit = self.dithered_quantum();
            }
            Set::SparseWait => {
                self.flows[at].set = Set::Bulk;
                self.bulk_flows += 1;
            }
            Set::Sparse | Set::Bulk => {}
        }
        // A single packet always fits, however long.
        while self.queues.bytes() > self.limit_bytes && self.queues.packets() > 1 {
            let longest = self.queues.fattest();
            let Some((_, packet)) = self.queues.pop(longest) else { break };
            self.flows[longest].cobalt.overflowed(&self.target, now);
            count_drop(stats, &packet);
        }
    }

    fn dequeue(&mut self, now: u64, stats: &mut ChannelResult) -> Option<Box<Packet>> {
        let mut is_first = true;
        while self.queues.packets() > 0 {
            let at = self.next_flow(std::mem::take(&mut is_first))?;
            if self.flows[at].deficit <= 0 {
                self.end_turn(at);
            } else if let Some(packet) = self.pull(at, now, stats) {
                self.flows[at].deficit -= i64::from(packet.wire_bytes);
                self.next_ns += (u64::from(packet.wire_bytes) * self.ps_per_byte).div_ceil(1000);
                return Some(packet);
            } else {
                self.retire(at, now);
            }
        }
        None
    }

    fn queues(&self) -> &Queues {
        &self.queues
    }

    fn ready_ns(&self) -> u64 {
        self.next_ns
    }
}
