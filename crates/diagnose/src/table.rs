// SPDX-License-Identifier: MIT
//! Finds the connection of each packet, and which connections are over.

use crate::batch::{Headers, Segment};
use crate::key::{Key, Seeds};
use crate::report::Ending;
use ackwise_capture::{tcp_flag, AccEcn};
use std::collections::{HashMap, VecDeque};
use std::iter;
use std::mem::take;

/// Twice the MSL of RFC 9293, 3.4.2: the longest time in which a packet of a connection that ended
/// may still arrive.
const QUIET_NS: u64 = 240_000_000_000;

/// A packet on its way to its connection.
#[derive(Debug)]
pub(crate) struct Arrival<'p> {
    pub key: Key,
    /// Packets in front of it.
    pub ordinal: u64,
    pub headers: Headers,
    pub sacks: &'p [(u32, u32)],
    pub accecn: Option<&'p AccEcn>,
}

/// Takes packets of all connections in the order in which they came.
pub(crate) trait Arrive {
    fn arrive(&mut self, arrival: Arrival<'_>);
}

/// Takes the packets of connections in order.
pub(crate) trait Follow {
    /// What it keeps of a connection.
    type Case;

    /// Before the first packet, which is taken then.
    fn begin(&mut self, name: &Name, first: &Headers) -> Self::Case;

    /// Some that wait together, one after the other.
    fn packets<'p>(&mut self, case: &mut Self::Case, segments: impl Iterator<Item = Segment<'p>>);

    /// No more packets will come.
    fn over(&mut self, case: Self::Case, ending: Ending);
}

/// Which connection it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    pub key: Key,
    /// Packets of the capture in front of its first.
    pub index: u64,
}

pub(crate) struct Table<F: Follow> {
    follow: F,
    open: HashMap<Key, Open<F::Case>, Seeds>,
    ended: Ended,
}

/// Connections that ended and when they may be handed out, roughly in order of time.
type Ended = VecDeque<(u64, Key, u64)>;

struct Open<C> {
    life: Life,
    case: C,
}

impl<F: Follow> Table<F> {
    pub fn new(follow: F) -> Self {
        Table { follow, open: HashMap::default(), ended: VecDeque::new() }
    }

    /// Adds packets between the same endpoints, in the order of time, each with the number of packets in
    /// front of it.
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

    /// Connections that more packets may belong to.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Hands out connections to which no packet belongs that comes from this time on; all before it came.
    pub fn hand_out(&mut self, now_ns: u64) {
        while let Some(&(_, key, index)) = self.ended.front().filter(|e| e.0 < now_ns) {
            self.ended.pop_front();
            match self.open.get(&key).filter(|open| open.life.index == index) {
                Some(open) if open.life.is_over(now_ns) => self.close(&key),
                // Packets came after its end: looked at again when they are old enough.
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

    /// The rest, in any order.
    pub fn finish(mut self) -> F {
        for (_, Open { life, case }) in self.open.drain() {
            self.follow.over(case, life.ending);
        }
        self.follow
    }
}

/// When a connection ends, as its flags say.
#[derive(Debug)]
struct Life {
    /// Packets of the capture in front of its first.
    index: u64,
    last_ns: u64,
    /// By endpoint, the lower one first.
    isns: [Option<u32>; 2],
    finished: [bool; 2],
    ending: Ending,
}

impl Life {
    fn new(index: u64, now_ns: u64) -> Self {
        Life { index, last_ns: now_ns, isns: [None; 2], finished: [false; 2], ending: Ending::Open }
    }

    /// When its last packet may have come, if this was one that ended it.
    fn leaves(&self, key: &Key) -> (u64, Key, u64) {
        (self.last_ns.saturating_add(QUIET_NS), *key, self.index)
    }

    fn goes_on(&self, next: &Headers) -> bool {
        !self.is_over(next.time_ns) && !self.is_reopened_by(next)
    }

    fn is_over(&self, now_ns: u64) -> bool {
        self.ending != Ending::Open && now_ns - self.last_ns > QUIET_NS
    }

    /// A SYN that is no repetition starts another connection between the same endpoints.
    fn is_reopened_by(&self, next: &Headers) -> bool {
        next.flags & (tcp_flag::SYN | tcp_flag::ACK) == tcp_flag::SYN
            && self.isns[usize::from(next.from_upper)] != Some(next.seq)
    }

    /// Whether the packet ends the connection.
    fn add(&mut self, segment: &Headers) -> bool {
        self.last_ns = segment.time_ns;
        let from = usize::from(segment.from_upper);
        if segment.flags & (tcp_flag::SYN | tcp_flag::FIN | tcp_flag::RST) == 0 {
            return false;
        }
        // The number of a reset need not be one of the connection's.
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
