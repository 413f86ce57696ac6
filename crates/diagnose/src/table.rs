// SPDX-License-Identifier: MIT
//! Finds the connection of each packet, and which connections are over.

use crate::batch::Batch;
use crate::key::{Key, Seeds};
use crate::report::Ending;
use ackwise_capture::{tcp_flag, Packet, TcpSegment};
use std::collections::{HashMap, VecDeque};

/// Twice the MSL of RFC 9293, 3.4.2: the longest time in which a packet of a connection that ended
/// may still arrive.
const QUIET_NS: u64 = 240_000_000_000;

/// A packet on its way to its connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'p> {
    pub packet: &'p Packet,
    pub key: Key,
    /// As in [`Key::of`].
    pub from_upper: bool,
    /// Since the first packet of the capture.
    pub now_ns: u64,
    /// Packets in front of it.
    pub ordinal: u64,
}

/// Takes the packets of connections, some at a time and in order.
pub(crate) trait Follow {
    /// What it keeps of a connection, once packets of it came.
    type Case;

    /// The next packets, taken out of the batch.
    fn packets(&mut self, name: &Name, case: &mut Option<Self::Case>, batch: &mut Batch);

    /// The last packets.
    fn over(&mut self, name: &Name, case: Option<Self::Case>, batch: Batch, ending: Ending);
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

/// Connections that ended and when they may be handed out, in order of time.
type Ended = VecDeque<(u64, Key, u64)>;

struct Open<C> {
    life: Life,
    waiting: Batch,
    case: Option<C>,
}

impl<C> Open<C> {
    fn add(&mut self, arrival: &Arrival<'_>, follow: &mut impl Follow<Case = C>, ended: &mut Ended) {
        self.waiting.push(arrival.packet, arrival.now_ns, arrival.from_upper);
        if self.waiting.is_full() {
            let name = Name { key: arrival.key, index: self.life.index };
            follow.packets(&name, &mut self.case, &mut self.waiting);
        }
        if self.life.add(arrival) {
            ended.push_back((arrival.now_ns.saturating_add(QUIET_NS), arrival.key, self.life.index));
        }
    }
}

impl<F: Follow> Table<F> {
    pub fn new(follow: F) -> Self {
        Table { follow, open: HashMap::default(), ended: VecDeque::new() }
    }

    /// Adds a packet, and hands out connections to which it and later ones cannot belong.
    pub fn add(&mut self, arrival: &Arrival<'_>) {
        self.hand_out(arrival.now_ns);
        if let Some(open) = self.open.get_mut(&arrival.key).filter(|open| open.life.goes_on(arrival)) {
            return open.add(arrival, &mut self.follow, &mut self.ended);
        }
        self.close(&arrival.key);
        let mut open = Open { life: Life::new(arrival), waiting: Batch::default(), case: None };
        open.add(arrival, &mut self.follow, &mut self.ended);
        self.open.insert(arrival.key, open);
    }

    fn hand_out(&mut self, now_ns: u64) {
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
        if let Some(Open { life, waiting, case }) = self.open.remove(key) {
            self.follow.over(&Name { key: *key, index: life.index }, case, waiting, life.ending);
        }
    }

    /// The rest, in the order of first packets.
    pub fn finish(mut self) -> F {
        let mut rest: Vec<_> = self.open.into_iter().collect();
        rest.sort_unstable_by_key(|(_, open)| open.life.index);
        for (key, Open { life, waiting, case }) in rest {
            self.follow.over(&Name { key, index: life.index }, case, waiting, life.ending);
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
    fn new(first: &Arrival<'_>) -> Self {
        Life {
            index: first.ordinal,
            last_ns: first.now_ns,
            isns: [None; 2],
            finished: [false; 2],
            ending: Ending::Open,
        }
    }

    fn goes_on(&self, next: &Arrival<'_>) -> bool {
        !self.is_over(next.now_ns) && !self.is_reopened_by(&next.packet.segment, next.from_upper)
    }

    fn is_over(&self, now_ns: u64) -> bool {
        self.ending != Ending::Open && now_ns - self.last_ns > QUIET_NS
    }

    /// A SYN that is no repetition starts another connection between the same endpoints.
    fn is_reopened_by(&self, segment: &TcpSegment, from_upper: bool) -> bool {
        segment.flags & (tcp_flag::SYN | tcp_flag::ACK) == tcp_flag::SYN
            && self.isns[usize::from(from_upper)] != Some(segment.seq)
    }

    /// Whether the packet ends the connection.
    fn add(&mut self, arrival: &Arrival<'_>) -> bool {
        self.last_ns = arrival.now_ns;
        let segment = &arrival.packet.segment;
        let from = usize::from(arrival.from_upper);
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
