// SPDX-License-Identifier: MIT
//! The event queue, ordered by (time, order of insertion): sorted lanes of packets, and 4-ary
//! heaps.

use crate::channel::Crossing;
use crate::endpoint::{EndpointId, Role, Side};
use crate::packet::Packet;
use crate::sender::NEVER;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimEvent {
    /// The head of the shared link's delay line reaches the far end.
    Delivery(usize),
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
    /// A driver's ACKs have waited long enough.
    Coalescer(usize),
}

/// Number of bits for the number in an event's code; the rest is its type.
const NUMBER_BITS: u32 = 28;

impl SimEvent {
    // Callers know the type: inlined, no branch remains.
    #[inline]
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
            SimEvent::Coalescer(channel) => (9, channel),
        };
        debug_assert!(number < 1 << NUMBER_BITS);
        Code(kind << NUMBER_BITS | number as u32)
    }
}

/// An event as stored in the heap. Decoding where the event is matched leaves a single branch.
#[derive(Clone, Copy)]
pub struct Code(u32);

impl Code {
    #[inline]
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
            _ => SimEvent::Coalescer(number),
        }
    }
}

/// Order of an entry. The upper bits are the time; below it the time for which no other event was
/// ahead of it, the longest first; below that the insertion count. For most entries the second part
/// is the time since insertion, so one comparison orders by time, and by insertion at equal times.
/// A packet behind another on its link is inserted early, but ordered as if it had been inserted
/// when the other arrived.
type Key = u128;

/// Bits of the insertion count.
const COUNT: Key = u32::MAX as Key;

#[inline]
fn time_ns(key: Key) -> u64 {
    (key >> 64) as u64
}

/// The next thing to process.
pub enum Turn {
    /// A packet that arrives at the far end of a link.
    Packet(Box<Packet>),
    Event(SimEvent),
}

/// Packet arrivals in lanes; other events and timers in separate heaps, because each endpoint has a
/// timer that seldom expires.
#[derive(Default)]
pub struct Heap {
    lanes: [Lane; LANES],
    /// Number of lanes in use, minus one; two for each link at whose far end packets are handled.
    last_link: usize,
    events: Tree,
    timers: Tree,
    /// Whether the root of one of the trees may be free.
    root_is_free: bool,
    /// Insertion count at the last arrival of each link.
    arrivals: Vec<u32>,
    now_ns: u64,
    inserted: u32,
}

/// Number of lanes: up to three links on a path, in both directions.
const LANES: usize = 6;
/// Index of the first tree, after the lanes.
const EVENTS: usize = LANES;
const TIMERS: usize = LANES + 1;

impl Heap {
    /// A heap for paths on which packets are handled at the far end of this many links.
    pub fn new(met: usize) -> Self {
        assert!((1..=LANES / 2).contains(&met));
        Heap { last_link: met - 1, ..Heap::default() }
    }

    /// Adds this many links; `Crossing` numbers them from 0.
    pub fn add_links(&mut self, links: usize) {
        self.arrivals.resize(self.arrivals.len() + links, 0);
    }

    #[inline]
    fn key(&mut self, time_ns: u64, since_ns: u64) -> Key {
        let inserted = self.inserted;
        self.inserted = inserted.wrapping_add(1);
        let ahead = (time_ns - since_ns).min(u32::MAX.into());
        u128::from(time_ns) << 64 | u128::from(!ahead << 32 | u64::from(inserted))
    }

    // `inline(always)` here and on `push_packet` saves 1.4% of all instructions, on `Lane::push` some more
    // (channel.rs).
    #[inline(always)]
    pub fn push(&mut self, time_ns: u64, event: SimEvent) {
        let key = self.key(time_ns, self.now_ns);
        let tree = if matches!(event, SimEvent::Endpoint(_)) { &mut self.timers } else { &mut self.events };
        tree.insert(Entry { key, code: event.encode() });
    }

    /// Adds a packet in transit over a link.
    #[inline(always)]
    pub fn push_packet(&mut self, crossing: Crossing, packet: Box<Packet>) {
        let key = self.key(crossing.arrival_ns, crossing.since_ns);
        let lane = 2 * usize::from(packet.hop).min(self.last_link) + usize::from(packet.down);
        let arrival = Arrival { key, packet, link: crossing.link, is_behind: crossing.is_behind };
        self.lanes[lane].push(arrival, &self.arrivals);
    }

    /// Removes the next turn, with its time; None: there is none up to `until_ns`.
    #[inline]
    pub fn pop(&mut self, until_ns: u64) -> Option<(u64, Turn)> {
        if std::mem::take(&mut self.root_is_free) {
            self.close_roots();
        }
        let (time_ns, source) = match self.last_link {
            0 => self.first::<2>(),
            1 => self.first::<4>(),
            _ => self.first::<LANES>(),
        };
        if time_ns > until_ns || time_ns == NEVER {
            return None;
        }
        self.now_ns = time_ns;
        let tree = match source {
            EVENTS => &mut self.events,
            TIMERS => &mut self.timers,
            lane => {
                let arrival = self.lanes[lane].pop()?;
                self.arrivals[arrival.link as usize] = self.inserted;
                self.inserted = self.inserted.wrapping_add(1);
                self.lanes[lane].find_head(&self.arrivals);
                return Some((time_ns, Turn::Packet(arrival.packet)));
            }
        };
        self.root_is_free = true;
        Some((time_ns, Turn::Event(tree.take_top().event())))
    }

    /// The earliest time, and the place of its turn: one of the lanes (their number is const, to
    /// compare without a loop) or a tree.
    #[inline]
    fn first<const USED: usize>(&self) -> (u64, usize) {
        let (mut first_ns, mut source) = (self.timers.head_ns, TIMERS);
        let mut is_tied = false;
        let mut compare = |head_ns: u64, n: usize| {
            is_tied |= head_ns == first_ns;
            if head_ns < first_ns {
                (first_ns, source) = (head_ns, n);
            }
        };
        compare(self.events.head_ns, EVENTS);
        for n in 0..USED {
            compare(self.lanes[n].head_ns, n);
        }
        if is_tied {
            source = self.first_by_key();
        }
        (first_ns, source)
    }

    /// The place of the first turn by key.
    #[cold]
    #[inline(never)]
    fn first_by_key(&self) -> usize {
        let lanes = self.lanes.iter().enumerate().map(|(n, lane)| (lane.head(&self.arrivals), n));
        let trees = [(self.events.head(), EVENTS), (self.timers.head(), TIMERS)];
        let heads = lanes.chain(trees).filter_map(|(key, source)| Some((key?, source)));
        heads.min().map_or(EVENTS, |(_, source)| source)
    }

    /// Restores the heaps whose popped root was not replaced.
    #[inline(never)]
    fn close_roots(&mut self) {
        self.events.close_root();
        self.timers.close_root();
    }

    pub fn is_empty(&mut self) -> bool {
        self.close_roots();
        let has_lane = |lane: &Lane| lane.head(&self.arrivals).is_some();
        self.events.head().or(self.timers.head()).is_none() && !self.lanes.iter().any(has_lane)
    }
}

#[derive(Clone, Copy)]
struct Entry {
    key: Key,
    code: Code,
}

struct Tree {
    entries: Vec<Entry>,
    /// The earliest time; NEVER: the heap is empty.
    head_ns: u64,
    /// Whether the root was popped. Most events push another that comes soon: it takes this place,
    /// which saves moving the last entry there.
    root_is_free: bool,
}

impl Default for Tree {
    fn default() -> Self {
        Tree { entries: Vec::new(), head_ns: NEVER, root_is_free: false }
    }
}

impl Tree {
    #[inline]
    fn insert(&mut self, entry: Entry) {
        if std::mem::take(&mut self.root_is_free) {
            self.sift_down(entry);
            return;
        }
        self.head_ns = self.head_ns.min(time_ns(entry.key));
        let mut at = self.entries.len();
        self.entries.push(entry);
        while at > 0 {
            let parent = (at - 1) / 4;
            if entry.key >= self.entries[parent].key {
                break;
            }
            self.entries[at] = self.entries[parent];
            at = parent;
        }
        self.entries[at] = entry;
    }

    fn close_root(&mut self) {
        if std::mem::take(&mut self.root_is_free) {
            self.head_ns = NEVER;
            if let Some(last) = self.entries.pop() {
                if !self.entries.is_empty() {
                    self.sift_down(last);
                }
            }
        }
    }

    /// The first key, unless the root is free.
    fn head(&self) -> Option<Key> {
        self.entries.first().map(|entry| entry.key)
    }

    /// Removes the root, which must exist.
    #[inline]
    fn take_top(&mut self) -> Code {
        self.root_is_free = true;
        self.entries[0].code
    }

    /// Moves `entry` down from the root. The children are compared without branches, because the
    /// earliest cannot be predicted.
    fn sift_down(&mut self, entry: Entry) {
        let entries = self.entries.as_mut_slice();
        let mut at = 0;
        loop {
            let first = 4 * at + 1;
            let best = if let Some([a, b, c, d]) = entries.get(first..first + 4) {
                let (i, x) = if b.key < a.key { (1, b.key) } else { (0, a.key) };
                let (j, y) = if d.key < c.key { (3, d.key) } else { (2, c.key) };
                first + if y < x { j } else { i }
            } else {
                match (first..entries.len()).min_by_key(|&i| entries[i].key) {
                    Some(best) => best,
                    None => break,
                }
            };
            if entries[best].key >= entry.key {
                break;
            }
            entries[at] = entries[best];
            at = best;
        }
        entries[at] = entry;
        self.head_ns = time_ns(entries[0].key);
    }
}

/// Maximum distance from the end of a lane at which a packet out of order is inserted; further away
/// it is a stray.
const NEAR: usize = 8;

/// Packets that nearly all arrive in order: those of one flow do, and all flows have the same
/// delay. A packet in order costs only an append.
struct Lane {
    /// The earliest time; NEVER: the lane is empty.
    head_ns: u64,
    /// The key of the last packet.
    tail: Key,
    line: VecDeque<Arrival>,
    strays: BinaryHeap<Reverse<Arrival>>,
    stray_is_head: bool,
}

impl Default for Lane {
    fn default() -> Self {
        Lane {
            head_ns: NEVER,
            tail: 0,
            line: VecDeque::new(),
            strays: BinaryHeap::new(),
            stray_is_head: false,
        }
    }
}

struct Arrival {
    key: Key,
    packet: Box<Packet>,
    link: u32,
    is_behind: bool,
}

impl Arrival {
    /// Its key, once everything before it on its link has arrived.
    #[inline]
    fn settled(&self, arrivals: &[u32]) -> Key {
        if self.is_behind {
            self.key & !COUNT | Key::from(arrivals[self.link as usize])
        } else {
            self.key
        }
    }
}

impl PartialEq for Arrival {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Arrival {}

impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Arrival {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl Lane {
    #[inline(always)]
    fn push(&mut self, arrival: Arrival, arrivals: &[u32]) {
        let arrival_ns = time_ns(arrival.key);
        let is_head =
            arrival_ns < self.head_ns || (arrival_ns == self.head_ns && self.is_first(arrival.key, arrivals));
        if is_head {
            (self.head_ns, self.stray_is_head) = (arrival_ns, false);
        }
        if arrival.key > self.tail {
            self.tail = arrival.key;
            self.line.push_back(arrival);
        } else {
            self.push_out_of_order(arrival, is_head);
        }
    }

    /// The first key.
    fn head(&self, arrivals: &[u32]) -> Option<Key> {
        let stray = self.strays.peek().filter(|_| self.stray_is_head).map(|stray| &stray.0);
        stray.or(self.line.front()).map(|first| first.settled(arrivals))
    }

    #[cold]
    fn is_first(&self, key: Key, arrivals: &[u32]) -> bool {
        self.head(arrivals).map_or(true, |head| key < head)
    }

    #[cold]
    fn push_out_of_order(&mut self, arrival: Arrival, is_head: bool) {
        let later = self.line.iter().rev().take(NEAR + 1).take_while(|other| other.key > arrival.key).count();
        if later > NEAR {
            self.stray_is_head |= is_head;
            self.strays.push(Reverse(arrival));
        } else {
            self.line.insert(self.line.len() - later, arrival);
            self.tail = self.line.back().map_or(0, |last| last.key);
        }
    }

    /// Removes the head; afterwards the next one has to be found.
    #[inline]
    fn pop(&mut self) -> Option<Arrival> {
        if !self.strays.is_empty() && self.stray_is_head {
            return self.strays.pop().map(|stray| stray.0);
        }
        self.line.pop_front()
    }

    #[inline]
    fn find_head(&mut self, arrivals: &[u32]) {
        let Some(first) = self.line.front() else {
            self.head_ns = NEVER;
            return self.compare_stray(arrivals);
        };
        self.head_ns = time_ns(first.key);
        let is_tied = self.line.get(1).is_some_and(|second| (second.key ^ first.key) <= COUNT);
        if is_tied {
            self.break_tie(arrivals);
        }
        self.stray_is_head = false;
        if !self.strays.is_empty() {
            self.compare_stray(arrivals);
        }
    }

    /// Orders simultaneous arrivals of several links that were next on their links for equally
    /// long: the one whose predecessor arrived first comes first.
    #[cold]
    fn break_tie(&mut self, arrivals: &[u32]) {
        let Some(moment) = self.line.front().map(|first| first.key | COUNT) else { return };
        let tied = self.line.iter().take_while(|arrival| arrival.key | COUNT == moment);
        let keys = tied.map(|arrival| arrival.settled(arrivals));
        if let Some((first, _)) = keys.enumerate().min_by_key(|&(_, key)| key) {
            self.line.swap(0, first);
        }
    }

    fn compare_stray(&mut self, arrivals: &[u32]) {
        let Some(stray) = self.strays.peek().map(|stray| stray.0.settled(arrivals)) else { return };
        let first = self.line.front().map(|first| first.settled(arrivals));
        self.stray_is_head = first.map_or(true, |first| stray < first);
        self.head_ns = self.head_ns.min(time_ns(stray));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::tests::packet;
    use crate::rng::Rng;

    #[test]
    fn turns_come_by_time_then_by_insertion() {
        let mut heap = with_links();
        let mut rng = Rng::new(1, 0);
        let mut expected = Vec::new();
        for i in 0..5000 {
            let t = rng.up_to(700);
            push(&mut heap, t, 0, i);
            expected.push((t, i));
        }
        expected.sort();
        let got: Vec<_> = std::iter::from_fn(|| pop(&mut heap)).collect();
        assert_eq!(got, expected);
        assert!(heap.is_empty());
    }

    fn with_links() -> Heap {
        let mut heap = Heap::new(3);
        heap.add_links(3);
        heap
    }

    /// Pushes packets in both directions over both links, other events, and timers, in turn.
    fn push(heap: &mut Heap, time_ns: u64, since_ns: u64, n: usize) {
        match n % 4 {
            0 => heap.push(time_ns, SimEvent::Delivery(n)),
            1 => {
                heap.push(time_ns, SimEvent::Endpoint(EndpointId { flow: n as u32, role: Role::DataSender }))
            }
            _ => {
                let mut packet = packet(n as u32, 40, 0, 0);
                packet.down = n % 8 < 4;
                let crossing = Crossing { arrival_ns: time_ns, since_ns, is_behind: false, link: 0 };
                packet.hop = (n % 3) as u8;
                heap.push_packet(crossing, packet);
            }
        }
    }

    /// Time and number of the next event.
    fn pop(heap: &mut Heap) -> Option<(u64, usize)> {
        heap.pop(u64::MAX).map(|(time_ns, turn)| {
            let number = match turn {
                Turn::Packet(packet) => packet.flow as usize,
                Turn::Event(SimEvent::Endpoint(id)) => id.flow as usize,
                Turn::Event(SimEvent::Delivery(n)) => n,
                Turn::Event(other) => panic!("{other:?}"),
            };
            (time_ns, number)
        })
    }

    #[test]
    fn pushes_between_pops_keep_the_order() {
        // Distances between packets that are nearly in order, and far from it.
        for most in [4, 50, 5000] {
            let mut heap = with_links();
            let mut rng = Rng::new(most, 0);
            let mut waiting = std::collections::BTreeSet::new();
            let (mut now, mut pushed) = (0, 0);
            for round in 0..5000 {
                for _ in 0..rng.up_to(if round < 2500 { 4 } else { 1 }) {
                    let t = now + rng.up_to(most);
                    push(&mut heap, t, now, pushed);
                    waiting.insert((t, now, pushed));
                    pushed += 1;
                }
                let expected = waiting.pop_first().map(|(t, _, pushed)| (t, pushed));
                assert_eq!(pop(&mut heap), expected);
                now = expected.map_or(now, |(t, _)| t);
            }
            assert!(pushed > 6000);
        }
    }

    #[test]
    fn nothing_comes_that_is_later_than_asked_for() {
        let mut heap = with_links();
        assert!(heap.pop(u64::MAX).is_none() && heap.is_empty());
        for n in 0..4 {
            push(&mut heap, 10 + n as u64, 0, n);
        }
        assert!(heap.pop(9).is_none() && !heap.is_empty());
        assert!(heap.pop(10).is_some() && heap.pop(10).is_none());
        assert_eq!(pop(&mut heap), Some((11, 1)));
    }

    #[test]
    fn of_equal_times_a_packet_comes_as_of_when_it_became_the_first_of_its_line() {
        // Inserted first, but behind another until 70; the timer's time is 50, the event's 80.
        let mut heap = with_links();
        push(&mut heap, 100, 70, 2);
        for (now, n) in [(50, 1), (80, 4)] {
            push(&mut heap, now, now, 2);
            assert_eq!(pop(&mut heap), Some((now, 2)));
            push(&mut heap, 100, now, n);
        }
        let order: Vec<_> = std::iter::from_fn(|| pop(&mut heap)).map(|(_, n)| n).collect();
        assert_eq!(order, [1, 2, 4]);
    }

    #[test]
    fn of_two_links_in_step_the_one_stays_first_that_began_first() {
        // From 10 on, each link has a packet that arrives at 20, 30, ... The other link sent the
        // packets behind first.
        let mut heap = with_links();
        let send = |heap: &mut Heap, link: u32, arrival_ns: u64| {
            let is_behind = arrival_ns > 20;
            let since_ns = if is_behind { arrival_ns - 10 } else { 10 };
            let crossing = Crossing { arrival_ns, since_ns, is_behind, link };
            heap.push_packet(crossing, packet(link, 40, 0, 0));
        };
        push(&mut heap, 10, 0, 0);
        assert_eq!(pop(&mut heap), Some((10, 0)));
        for (link, arrival_ns) in [(1, 20), (2, 20), (2, 30), (1, 30), (2, 40), (1, 40)] {
            send(&mut heap, link, arrival_ns);
        }
        let order: Vec<_> = std::iter::from_fn(|| pop(&mut heap)).collect();
        assert_eq!(order, [(20, 1), (20, 2), (30, 1), (30, 2), (40, 1), (40, 2)]);
    }

    #[test]
    fn every_event_comes_back_as_it_was_pushed() {
        let largest = (1 << NUMBER_BITS) - 1;
        let mut events = vec![SimEvent::Series, SimEvent::Ping];
        for n in [0, 1, 2, largest] {
            events.extend([SimEvent::Delivery(n), SimEvent::Transmitter(n), SimEvent::Late(n)]);
            events.extend([SimEvent::Start(n), SimEvent::Arrival(n)]);
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
