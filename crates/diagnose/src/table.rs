// SPDX-License-Identifier: MIT
//! Finds the connection of each packet, and the connections that are over.

use crate::batch::{Arrival, Headers, Segment};
use crate::key::{Key, Seeds};
use crate::report::Ending;
use ackwise_capture::tcp_flag;
use std::collections::{HashMap, VecDeque};
use std::iter;
use std::mem::take;

/// Twice the MSL of RFC 9293, 3.4.2: the longest time for which packets of an ended connection may
/// still arrive.
const QUIET_NS: u64 = 240_000_000_000;

/// Consumer of packets of all connections, in order of arrival.
pub(crate) trait Arrive {
    fn arrive(&mut self, arrival: Arrival<'_>);
}

/// Consumer of the packets of each connection, in order.
pub(crate) trait Follow {
    /// State kept for a connection.
    type Case;

    /// Called before the first packet, which follows in [`Follow::packets`].
    fn begin(&mut self, name: &Name, first: &Headers) -> Self::Case;

    /// Processes packets that waited together, in order.
    fn packets<'p>(&mut self, case: &mut Self::Case, segments: impl Iterator<Item = Segment<'p>>);

    /// Ends a connection: no more packets will come.
    fn over(&mut self, case: Self::Case, ending: Ending);
}

/// Identity of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    pub key: Key,
    /// Number of packets in the capture before its first.
    pub index: u64,
}

pub(crate) struct Table<F: Follow> {
    follow: F,
    open: HashMap<Key, Open<F::Case>, Seeds>,
    ended: Ended,
}

/// Ended connections and the times at which they may be delivered, roughly in order of time.
type Ended = VecDeque<(u64, Key, u64)>;

struct Open<C> {
    life: Life,
    case: C,
}

impl<F: Follow> Table<F> {
    pub fn new(follow: F) -> Self {
        Table { follow, open: HashMap::default(), ended: VecDeque::new() }
    }

    /// Adds packets between the same endpoints in order of time, each with the number of packets
    /// before it in the capture.
    pub fn add<'p>(&mut self, key: &Key, packets: impl IntoIterator<Item = (u64, Segment<'p>)>) {
        let mut packets = packets.into_iter().peekable();
        let mut begins = false;
        loop {
            if let Some(Open { life, case }) = self.open.get_mut(key) {
                let ended = &mut self.ended;
                let its = iter::from_fn(|| {
                    let (_, segment) = packets.next_if(|(_, s)| take(&mut begins) || life.goes_on(s))?;
                    if life.add(&segment) {
                        ended.push_back(life.leaves(key));
                    }
                    Some(segment)
                });
                self.follow.packets(case, its);
            }
            let Some(&(index, first)) = packets.peek() else { return };
            self.close(key);
            let life = Life::new(index, first.time_ns);
            let case = self.follow.begin(&Name { key: *key, index }, &first);
            self.open.insert(*key, Open { life, case });
            begins = true;
        }
    }

    /// Number of connections to which more packets may belong.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Delivers connections to which no packet from this time on belongs; all earlier packets have
    /// been added.
    pub fn hand_out(&mut self, now_ns: u64) {
        while let Some(&(_, key, index)) = self.ended.front().filter(|e| e.0 < now_ns) {
            self.ended.pop_front();
            match self.open.get(&key).filter(|open| open.life.index == index) {
                Some(open) if open.life.is_over(now_ns) => self.close(&key),
                // Packets arrived after its end: check again when they are old enough.
                Some(_) => self.ended.push_back((now_ns.saturating_add(QUIET_NS), key, index)),
                None => {}
            }
        }
    }

    fn close(&mut self, key: &Key) {
        if let Some(Open { life, case }) = self.open.remove(key) {
            self.follow.over(case, life.ending);
        }
    }

    /// Delivers the remaining connections, in any order.
    pub fn finish(mut self) -> F {
        for (_, Open { life, case }) in self.open.drain() {
            self.follow.over(case, life.ending);
        }
        self.follow
    }
}

/// Life cycle of a connection, from its flags.
#[derive(Debug)]
struct Life {
    /// Number of packets in the capture before its first.
    index: u64,
    last_ns: u64,
    /// Initial sequence numbers by endpoint, the lower endpoint first.
    isns: [Option<u32>; 2],
    finished: [bool; 2],
    ending: Ending,
}

impl Life {
    fn new(index: u64, now_ns: u64) -> Self {
        Life { index, last_ns: now_ns, isns: [None; 2], finished: [false; 2], ending: Ending::Open }
    }

    /// Time until which more packets may arrive, if this packet ended the connection.
    fn leaves(&self, key: &Key) -> (u64, Key, u64) {
        (self.last_ns.saturating_add(QUIET_NS), *key, self.index)
    }

    fn goes_on(&self, next: &Headers) -> bool {
        !self.is_over(next.time_ns) && !self.is_reopened_by(next)
    }

    fn is_over(&self, now_ns: u64) -> bool {
        self.ending != Ending::Open && now_ns - self.last_ns > QUIET_NS
    }

    /// Whether a SYN, unless repeated, starts another connection between the same endpoints.
    fn is_reopened_by(&self, next: &Headers) -> bool {
        next.flags & (tcp_flag::SYN | tcp_flag::ACK) == tcp_flag::SYN
            && self.isns[usize::from(next.from_upper)] != Some(next.seq)
    }

    /// Adds a packet; returns whether it ends the connection.
    fn add(&mut self, segment: &Headers) -> bool {
        self.last_ns = segment.time_ns;
        let from = usize::from(segment.from_upper);
        if segment.flags & (tcp_flag::SYN | tcp_flag::FIN | tcp_flag::RST) == 0 {
            return false;
        }
        // The sequence number of a reset need not belong to the connection.
        if segment.has(tcp_flag::SYN) && !segment.has(tcp_flag::RST) {
            self.isns[from].get_or_insert(segment.seq);
        }
        self.finished[from] |= segment.has(tcp_flag::FIN);
        let was_open = self.ending == Ending::Open;
        if segment.has(tcp_flag::RST) {
            self.ending = Ending::Reset;
        } else if self.finished == [true; 2] && was_open {
            self.ending = Ending::Finished;
        }
        was_open && self.ending != Ending::Open
    }
}
