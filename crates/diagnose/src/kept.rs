// SPDX-License-Identifier: MIT
//! The connections that are reported: those worth most, and sums over the others. Neither depends
//! on the order in which they come.

use crate::report::Connection;
use serde::Serialize;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// What a direction is worth reporting: the time it lost, in tenths of a second, and its bytes.
pub(crate) type Worth = (u64, u64);

/// Sums over the connections that are not reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Number of connections.
    pub connections: u64,
    /// Packets of both endpoints.
    pub packets: u64,
    /// Payload in both directions, without retransmissions, bytes.
    pub new_bytes: u64,
}

pub(crate) struct Kept<H> {
    most: usize,
    worth: fn(&H) -> Worth,
    /// The least worth first.
    heap: BinaryHeap<Reverse<Valued<H>>>,
    left_out: LeftOut,
    /// A bit for each packet of the capture: whether a connection that is left out begins with it.
    begun: Vec<u64>,
    /// Number of connections that ended because too many were open.
    cut: u64,
}

struct Valued<H> {
    worth: Worth,
    /// A connection takes kilobytes: move a box instead.
    connection: Box<Connection<H>>,
}

impl<H> Valued<H> {
    fn rank(&self) -> (Worth, Reverse<u64>) {
        (self.worth, Reverse(self.connection.index))
    }
}

impl<H> PartialEq for Valued<H> {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl<H> Eq for Valued<H> {}

impl<H> PartialOrd for Valued<H> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<H> Ord for Valued<H> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl<H> Kept<H> {
    pub fn new(most: usize, worth: fn(&H) -> Worth) -> Self {
        let (heap, begun) = (BinaryHeap::new(), Vec::new());
        Kept { most, worth, heap, left_out: LeftOut::default(), begun, cut: 0 }
    }

    /// Adds connections, of which some ended because too many were open.
    pub fn add(&mut self, over: Vec<Box<Connection<H>>>, cut: u64) {
        self.cut += cut;
        for connection in over {
            let worth = connection.halves.each_ref().map(self.worth);
            self.heap.push(Reverse(Valued { worth: worth[0].max(worth[1]), connection }));
            if self.heap.len() > self.most {
                if let Some(Reverse(least)) = self.heap.pop() {
                    self.leave_out(&least.connection);
                }
            }
        }
    }

    fn leave_out(&mut self, connection: &Connection<H>) {
        self.left_out.connections += 1;
        self.left_out.packets += connection.packets;
        self.left_out.new_bytes +=
            connection.halves.each_ref().map(|half| (self.worth)(half).1).iter().sum::<u64>();
        let word = (connection.index / 64) as usize;
        if self.begun.len() <= word {
            self.begun.resize(word + 1, 0);
        }
        self.begun[word] |= 1 << (connection.index % 64);
    }

    /// The connections in the order of their first packets, numbered among all; the sums of the
    /// others; and how many ended early.
    pub fn finish(self) -> (Vec<Box<Connection<H>>>, LeftOut, u64) {
        let mut connections: Vec<_> = self.heap.into_iter().map(|Reverse(one)| one.connection).collect();
        connections.sort_unstable_by_key(|connection| connection.index);
        let (mut before, mut words) = (0, 0);
        for (connection, n) in connections.iter_mut().zip(0..) {
            let word = ((connection.index / 64) as usize).min(self.begun.len());
            before += self.begun[words..word].iter().map(|bits| u64::from(bits.count_ones())).sum::<u64>();
            words = word;
            let here = self.begun.get(word).map_or(0, |bits| bits & ((1 << (connection.index % 64)) - 1));
            connection.index = n + before + u64::from(here.count_ones());
        }
        (connections, self.left_out, self.cut)
    }
}
