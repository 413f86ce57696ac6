// SPDX-License-Identifier: MIT
//! Finds the connection of each packet, and the connections that are over.

use crate::batch::{Arrival, Headers, Segment};
use crate::key::{Key, Seeds};
use crate::report::Ending;
use ackwise_capture::life::Life;
use std::collections::{HashMap, VecDeque};
use std::iter;
use std::mem::take;

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

/// Time of the last packet, and number of packets in the capture before the first: what has been
/// idle longest is the least.
pub(crate) type Idle = (u64, u64);

/// Ended connections and the times at which they may be delivered, roughly in order of time.
type Ended = VecDeque<(u64, Key, u64)>;

struct Open<C> {
    /// Number of packets in the capture before its first.
    index: u64,
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
            if let Some(Open { index, life, case }) = self.open.get_mut(key) {
                let ended = &mut self.ended;
                let its = iter::from_fn(|| {
                    let (_, segment) =
                        packets.next_if(|(_, s)| take(&mut begins) || life.goes_on(&s.sign()))?;
                    if life.add(&segment.sign()) {
                        ended.push_back((life.leaves_ns(), *key, *index));
                    }
                    Some(segment)
                });
                self.follow.packets(case, its);
            }
            let Some(&(index, first)) = packets.peek() else { return };
            self.close(key);
            let life = Life::new(first.time_ns);
            let case = self.follow.begin(&Name { key: *key, index }, &first);
            self.open.insert(*key, Open { index, life, case });
            begins = true;
        }
    }

    /// What consumes the packets.
    pub fn follow(&mut self) -> &mut F {
        &mut self.follow
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
            match self.open.get(&key).filter(|open| open.index == index) {
                Some(open) if open.life.is_over(now_ns) => self.close(&key),
                // Packets arrived after its end: check again when they are old enough.
                Some(open) => self.ended.push_back((open.life.leaves_ns(), key, index)),
                None => {}
            }
        }
    }

    /// How long each open connection has been idle.
    pub fn idle(&self) -> impl Iterator<Item = Idle> + '_ {
        self.open.values().map(|open| (open.life.last_ns(), open.index))
    }

    /// Delivers the open connections that have been idle longer than this one, and returns how many
    /// of them no packet had ended.
    pub fn let_go(&mut self, than: Idle) -> u64 {
        let is_idle = |(_, open): &(&Key, &Open<_>)| (open.life.last_ns(), open.index) < than;
        let idle: Vec<Key> = self.open.iter().filter(is_idle).map(|(key, _)| *key).collect();
        let cut = idle.iter().filter(|key| self.open[key].life.ending() == Ending::Open).count();
        idle.iter().for_each(|key| self.close(key));
        let open = &self.open;
        self.ended.retain(|(_, key, index)| open.get(key).is_some_and(|open| open.index == *index));
        cut as u64
    }

    fn close(&mut self, key: &Key) {
        if let Some(Open { life, case, .. }) = self.open.remove(key) {
            self.follow.over(case, life.ending());
        }
    }

    /// Delivers the remaining connections, in any order.
    pub fn finish(mut self) -> F {
        for (_, Open { life, case, .. }) in self.open.drain() {
            self.follow.over(case, life.ending());
        }
        self.follow
    }
}
