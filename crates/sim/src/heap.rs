// SPDX-License-Identifier: MIT
//! The event queue, by (time, order of insertion): 4-ary heaps.

use crate::endpoint::{EndpointId, Role, Side};

/// What happens next, and to what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimEvent {
    /// The head of the shared link's delay line reaches the far end.
    Delivery(usize),
    /// The head of an access link does.
    Access(usize),
    /// The shared link's transmitter is free.
    Transmitter(usize),
    /// A packet delayed by reordering is delivered.
    Late(usize),
    /// A host's processor is done with its work.
    Host(Side),
    /// An endpoint's earliest timer.
    Endpoint(EndpointId),
    /// A flow of this group starts.
    Start(usize),
    /// The next Poisson arrival of this group.
    Arrival(usize),
    /// A point of the time series.
    Series,
    /// The next echo request.
    Ping,
}

/// An entry holds an event as a kind and a number of this many bits.
const NUMBER_BITS: u32 = 28;

impl SimEvent {
    // Always: callers know the kind, so that no branch is left.
    #[inline(always)]
    fn encode(self) -> Code {
        let (kind, number) = match self {
            SimEvent::Delivery(channel) => (0, channel),
            SimEvent::Transmitter(channel) => (1, channel),
            SimEvent::Late(slot) => (2, slot),
            SimEvent::Host(side) => (3, side as usize),
            SimEvent::Endpoint(id) => (4, (id.flow as usize) << 1 | id.role as usize),
            SimEvent::Start(group) => (5, group),
            SimEvent::Arrival(group) => (6, group),
            SimEvent::Series => (7, 0),
            SimEvent::Ping => (8, 0),
            SimEvent::Access(link) => (9, link),
        };
        debug_assert!(number < 1 << NUMBER_BITS);
        Code(kind << NUMBER_BITS | number as u32)
    }
}

/// An event as the heap keeps it. Decoding where the event is matched leaves a single branch.
#[derive(Clone, Copy)]
pub struct Code(u32);

impl Code {
    #[inline(always)]
    pub fn event(self) -> SimEvent {
        let number = (self.0 & ((1 << NUMBER_BITS) - 1)) as usize;
        match self.0 >> NUMBER_BITS {
            0 => SimEvent::Delivery(number),
            1 => SimEvent::Transmitter(number),
            2 => SimEvent::Late(number),
            3 => SimEvent::Host(if number == 1 { Side::Server } else { Side::Client }),
            4 => {
                let role = if number & 1 == 1 { Role::DataReceiver } else { Role::DataSender };
                SimEvent::Endpoint(EndpointId { flow: (number >> 1) as u32, role })
            }
            5 => SimEvent::Start(number),
            6 => SimEvent::Arrival(number),
            7 => SimEvent::Series,
            8 => SimEvent::Ping,
            _ => SimEvent::Access(number),
        }
    }
}

/// Time above, insertion count below it, the event at the bottom: one comparison orders
/// entries by time and equal times by insertion.
type Entry = u128;

/// Packets on their way and timers apart: nearly all events are packets', of which few are on their way
/// at one time, while each endpoint has a timer that seldom expires.
#[derive(Default)]
pub struct Heap {
    packets: Tree,
    timers: Tree,
    inserted: u32,
}

impl Heap {
    #[inline(always)]
    pub fn push(&mut self, time_ns: u64, event: SimEvent) {
        let what = u64::from(self.inserted) << 32 | u64::from(event.encode().0);
        let entry = u128::from(time_ns) << 64 | u128::from(what);
        self.inserted = self.inserted.wrapping_add(1);
        let tree = if matches!(event, SimEvent::Endpoint(_)) { &mut self.timers } else { &mut self.packets };
        tree.insert(entry);
    }

    #[inline]
    pub fn pop(&mut self) -> Option<(u64, Code)> {
        let (packet, timer) = (self.packets.top(), self.timers.top());
        let tree = if packet < timer { &mut self.packets } else { &mut self.timers };
        let top = packet.min(timer);
        if top == NOTHING {
            return None;
        }
        tree.root_is_free = true;
        Some(((top >> 64) as u64, Code(top as u32)))
    }
}

/// Comes after every entry.
const NOTHING: Entry = Entry::MAX;

#[derive(Default)]
struct Tree {
    entries: Vec<Entry>,
    /// The root was popped. Most events push one that comes soon: it takes that place, which saves
    /// moving the last entry there.
    root_is_free: bool,
}

impl Tree {
    #[inline]
    fn insert(&mut self, entry: Entry) {
        if std::mem::take(&mut self.root_is_free) {
            self.sift_down(entry);
            return;
        }
        let mut at = self.entries.len();
        self.entries.push(entry);
        while at > 0 {
            let parent = (at - 1) / 4;
            if entry >= self.entries[parent] {
                break;
            }
            self.entries[at] = self.entries[parent];
            at = parent;
        }
        self.entries[at] = entry;
    }

    #[inline]
    fn top(&mut self) -> Entry {
        if std::mem::take(&mut self.root_is_free) {
            if let Some(last) = self.entries.pop() {
                if !self.entries.is_empty() {
                    self.sift_down(last);
                }
            }
        }
        self.entries.first().copied().unwrap_or(NOTHING)
    }

    /// Puts `entry` where the root was. The children are compared without branches: which one is
    /// the earliest cannot be predicted.
    fn sift_down(&mut self, entry: Entry) {
        let entries = self.entries.as_mut_slice();
        let mut at = 0;
        loop {
            let first = 4 * at + 1;
            let best = if let Some(&[a, b, c, d]) = entries.get(first..first + 4) {
                let (i, x) = if b < a { (1, b) } else { (0, a) };
                let (j, y) = if d < c { (3, d) } else { (2, c) };
                first + if y < x { j } else { i }
            } else {
                match (first..entries.len()).min_by_key(|&i| entries[i]) {
                    Some(best) => best,
                    None => break,
                }
            };
            if entries[best] >= entry {
                break;
            }
            entries[at] = entries[best];
            at = best;
        }
        entries[at] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn pops_by_time_then_by_insertion() {
        let mut heap = Heap::default();
        let mut rng = Rng::new(1, 0);
        let mut expected = Vec::new();
        for i in 0..5000 {
            let t = rng.up_to(700);
            heap.push(t, numbered(i));
            expected.push((t, i));
        }
        expected.sort();
        let got: Vec<_> = std::iter::from_fn(|| heap.pop()).map(|(t, code)| (t, code.event())).collect();
        let expected: Vec<_> = expected.into_iter().map(|(t, i)| (t, numbered(i))).collect();
        assert_eq!(got, expected);
    }

    /// Packets' events and timers in turn.
    fn numbered(n: usize) -> SimEvent {
        if n % 2 == 0 {
            return SimEvent::Delivery(n);
        }
        SimEvent::Endpoint(EndpointId { flow: n as u32, role: Role::DataSender })
    }

    #[test]
    fn pushes_between_pops_keep_the_order() {
        let mut heap = Heap::default();
        let mut rng = Rng::new(2, 0);
        let mut waiting = std::collections::BTreeSet::new();
        let (mut now, mut pushed) = (0, 0);
        for _ in 0..5000 {
            for _ in 0..rng.up_to(2) {
                let t = now + rng.up_to(50);
                heap.push(t, numbered(pushed));
                waiting.insert((t, pushed));
                pushed += 1;
            }
            let got = heap.pop().map(|(t, code)| (t, code.event()));
            let expected = waiting.pop_first().map(|(t, i)| (t, numbered(i)));
            assert_eq!(got, expected);
            now = got.map_or(now, |(t, _)| t);
        }
        assert!(pushed > 4000);
    }

    #[test]
    fn every_event_comes_back_as_it_was_pushed() {
        let largest = (1 << NUMBER_BITS) - 1;
        let mut events = vec![SimEvent::Series, SimEvent::Ping];
        for n in [0, 1, 2, largest] {
            events.extend([SimEvent::Delivery(n), SimEvent::Transmitter(n), SimEvent::Late(n)]);
            events.extend([SimEvent::Start(n), SimEvent::Arrival(n), SimEvent::Access(n)]);
        }
        for role in [Role::DataSender, Role::DataReceiver] {
            for flow in [0, 1, largest as u32 >> 1] {
                events.push(SimEvent::Endpoint(EndpointId { flow, role }));
            }
        }
        events.extend([Side::Client, Side::Server].map(SimEvent::Host));
        for event in events {
            assert_eq!(event.encode().event(), event);
        }
    }
}
