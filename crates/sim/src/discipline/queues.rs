// SPDX-License-Identifier: MIT
//! FIFO queues by number in one arena, whose memory grows with the maximum number of packets
//! waiting at a time, without an allocation per packet. Also the hash that assigns a flow to a
//! queue.

use crate::packet::Packet;
use crate::rng::Rng;

/// Number of queues of a discipline: the default of fq_codel (`flows 1024`) and fq (`orphan_mask
/// 1023`), and the fixed number of CAKE.
pub const QUEUES: usize = 1024;

const NONE: u32 = u32::MAX;

struct Node {
    since_ns: u64,
    next: u32,
    /// The packet; None: the node is free.
    packet: Option<Box<Packet>>,
}

#[derive(Clone, Copy)]
struct Fifo {
    head: u32,
    tail: u32,
    packets: u32,
    bytes: u64,
}

pub struct Queues {
    nodes: Vec<Node>,
    free: u32,
    queues: Vec<Fifo>,
    packets: usize,
    acks: usize,
    bytes: u64,
}

impl Queues {
    pub fn new(queues: usize) -> Self {
        Queues {
            nodes: Vec::new(),
            free: NONE,
            queues: vec![Fifo { head: NONE, tail: NONE, packets: 0, bytes: 0 }; queues],
            packets: 0,
            acks: 0,
            bytes: 0,
        }
    }

    pub fn push(&mut self, queue: usize, now: u64, packet: Box<Packet>) {
        let bytes = u64::from(packet.wire_bytes);
        self.packets += 1;
        self.acks += usize::from(packet.is_pure_ack());
        self.bytes += bytes;
        let node = Node { since_ns: now, next: NONE, packet: Some(packet) };
        let at = self.free;
        let at = if at == NONE {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            self.free = self.nodes[at as usize].next;
            self.nodes[at as usize] = node;
            at
        };
        let fifo = &mut self.queues[queue];
        fifo.packets += 1;
        fifo.bytes += bytes;
        let last = std::mem::replace(&mut fifo.tail, at);
        if last == NONE {
            fifo.head = at;
        } else {
            self.nodes[last as usize].next = at;
        }
    }

    /// Removes the head of a queue; returns it with its time of entry.
    pub fn pop(&mut self, queue: usize) -> Option<(u64, Box<Packet>)> {
        (self.queues[queue].head != NONE).then(|| self.take(queue, NONE))
    }

    /// Removes the packet at position `at` of a queue, counted from its head; it must exist.
    pub fn remove(&mut self, queue: usize, at: usize) -> Box<Packet> {
        let before = (0..at).fold(NONE, |node, _| self.after(queue, node));
        self.take(queue, before).1
    }

    /// The node after `node`; NONE is before the head.
    fn after(&self, queue: usize, node: u32) -> u32 {
        if node == NONE {
            self.queues[queue].head
        } else {
            self.nodes[node as usize].next
        }
    }

    fn take(&mut self, queue: usize, before: u32) -> (u64, Box<Packet>) {
        let at = self.after(queue, before);
        let free = self.free;
        let node = &mut self.nodes[at as usize];
        let packet = node.packet.take().expect("a packet in the queue");
        let since_ns = node.since_ns;
        let next = std::mem::replace(&mut node.next, free);
        self.free = at;
        let bytes = u64::from(packet.wire_bytes);
        let fifo = &mut self.queues[queue];
        fifo.packets -= 1;
        fifo.bytes -= bytes;
        if next == NONE {
            fifo.tail = before;
        }
        if before == NONE {
            fifo.head = next;
        } else {
            self.nodes[before as usize].next = next;
        }
        self.packets -= 1;
        self.acks -= usize::from(packet.is_pure_ack());
        self.bytes -= bytes;
        (since_ns, packet)
    }

    /// The packets of a queue from its head.
    pub fn iter(&self, queue: usize) -> impl Iterator<Item = &Packet> {
        let node = |at: u32| self.nodes.get(at as usize);
        std::iter::successors(node(self.queues[queue].head), move |n| node(n.next))
            .map(|n| n.packet.as_deref().expect("a packet in the queue"))
    }

    /// The packet that last entered a queue, and when.
    pub fn last(&self, queue: usize) -> Option<(u64, &Packet)> {
        let node = self.nodes.get(self.queues[queue].tail as usize)?;
        Some((node.since_ns, node.packet.as_deref()?))
    }

    /// Puts a packet in the place, and the time, of the last one; there must be one.
    pub fn replace_last(&mut self, queue: usize, packet: Box<Packet>) {
        let fifo = &mut self.queues[queue];
        let node = &mut self.nodes[fifo.tail as usize];
        let bytes = u64::from(packet.wire_bytes);
        self.acks += usize::from(packet.is_pure_ack());
        let old = node.packet.replace(packet).expect("a packet in the queue");
        self.acks -= usize::from(old.is_pure_ack());
        let old_bytes = u64::from(old.wire_bytes);
        self.bytes = self.bytes + bytes - old_bytes;
        fifo.bytes = fifo.bytes + bytes - old_bytes;
    }

    /// The queue with the most bytes; the first in a tie.
    pub fn fattest(&self) -> usize {
        let fatter = |a: usize, b: usize| if self.queues[b].bytes > self.queues[a].bytes { b } else { a };
        (0..self.queues.len()).reduce(fatter).unwrap_or(0)
    }

    pub fn packets_of(&self, queue: usize) -> usize {
        self.queues[queue].packets as usize
    }

    pub fn bytes_of(&self, queue: usize) -> u64 {
        self.queues[queue].bytes
    }

    /// Number of packets in all queues.
    pub fn packets(&self) -> usize {
        self.packets
    }

    /// Number of pure ACKs among `packets`.
    pub fn acks(&self) -> usize {
        self.acks
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// A keyed hash of a flow. The kernel's key is drawn at each boot, too, so the flows that collide
/// differ from seed to seed.
pub struct FlowHash(u64);

impl FlowHash {
    pub fn new(rng: &mut Rng) -> Self {
        FlowHash(u64::from(rng.bits()) << 32 | u64::from(rng.bits()))
    }

    pub fn of(&self, flow: u32) -> u32 {
        // The mixing function of SplitMix64 (Steele, Lea, Flood 2014).
        let z = (self.0 ^ u64::from(flow)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::tests::packet;
    use std::collections::VecDeque;

    #[test]
    fn queues_are_those_of_a_plain_model_under_random_use() {
        let mut rng = Rng::new(3, 3);
        let mut ours = Queues::new(5);
        let mut model: Vec<VecDeque<(u64, u32, u64)>> = vec![VecDeque::new(); 5];
        for now in 0..20_000u64 {
            let q = rng.up_to(4) as usize;
            match rng.up_to(5) {
                0..=2 => {
                    let bytes = 40 + rng.up_to(1460) as u32;
                    ours.push(q, now, packet(0, bytes, bytes % 2, now));
                    model[q].push_back((now, bytes, now));
                }
                3..=4 => {
                    let got = ours.pop(q).map(|(since, p)| (since, p.wire_bytes, p.ack));
                    assert_eq!(got, model[q].pop_front());
                }
                _ if rng.up_to(1) == 0 && !model[q].is_empty() => {
                    let bytes = 40 + rng.up_to(1460) as u32;
                    ours.replace_last(q, packet(0, bytes, bytes % 2, now));
                    let last = model[q].back_mut().expect("one");
                    (last.1, last.2) = (bytes, now);
                }
                _ if !model[q].is_empty() => {
                    let at = rng.up_to(model[q].len() as u64 - 1) as usize;
                    let got = ours.remove(q, at);
                    assert_eq!(Some(got.ack), model[q].remove(at).map(|m| m.2));
                }
                _ => {}
            }
            assert!(ours.iter(q).map(|p| p.ack).eq(model[q].iter().map(|m| m.2)));
            assert_eq!(ours.last(q).map(|(since, p)| (since, p.ack)), model[q].back().map(|m| (m.0, m.2)));
            let bytes = model.iter().map(|m| m.iter().map(|m| u64::from(m.1)).sum::<u64>());
            assert_eq!(ours.packets(), model.iter().flatten().count());
            assert_eq!(ours.acks(), model.iter().flatten().filter(|m| m.1 % 2 == 0).count());
            assert_eq!(ours.bytes(), bytes.clone().sum::<u64>());
            assert_eq!(ours.bytes_of(ours.fattest()), bytes.max().expect("five"));
        }
        assert!(ours.nodes.len() < 8_000, "nodes are used again: {}", ours.nodes.len());
    }

    #[test]
    fn flows_spread_evenly_over_the_queues() {
        let hash = FlowHash::new(&mut Rng::new(1, 1));
        let mut counts = [0u32; 16];
        for flow in 0..16_000 {
            counts[(hash.of(flow) % 16) as usize] += 1;
        }
        // Five standard deviations of a binomial.
        assert!(counts.iter().all(|&n| n.abs_diff(1000) < 155), "{counts:?}");
    }
}
