// SPDX-License-Identifier: MIT
//! One direction of a link: a queue, a transmitter, a delay line, and faults after it.
//!
//! In a FIFO, a packet's departure time is known when it enters: start = max(now, free). The packet
//! therefore costs no event, and leaves the channel at once with its arrival time. Disciplines that
//! decide when the transmitter becomes free (CoDel, ACK separation, ACK filter, a queue for each
//! flow, a shared medium) keep a queue and cost an event (`Queue`). Faults are applied at the far
//! end and cost one more event (`line`). A FIFO has the same times with and without a queue; a test
//! checks it.

use crate::discipline::{count_drop, frame_bytes, mark, scheduler, Codel, Scheduler, Target};
use crate::emulator::Emulator;
use crate::lose::Losses;
use crate::packet::{Flags, Packet, Parcel};
use crate::result::{ChannelResult, ChannelSeries};
use crate::rng::Rng;
use crate::scenario::{ChannelSpec, Discipline};
use std::collections::VecDeque;

/// The next step after a packet was offered to a link.
#[derive(Debug)]
pub enum Wake {
    /// Nothing new to schedule.
    None,
    /// Nothing else can happen to this packet: it reaches the far end at the time in the crossing.
    Crosses(Parcel, Crossing),
    /// The delay line was empty: its head arrives at this time.
    Deliver(u64),
    /// The transmitter was idle: serve the queue at this time.
    Transmit(u64),
}

/// A packet's transit over a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    pub arrival_ns: u64,
    /// From this time on, no other packet of this link is ahead of it.
    pub since_ns: u64,
    /// True if a packet was queued ahead of it on entry.
    pub is_behind: bool,
    /// Number of the link.
    pub link: u32,
}

/// A packet whose transmission has not started yet.
struct Waiting {
    start_ns: u64,
    wire_bytes: u32,
    is_ack: bool,
}

struct InFlight {
    arrival_ns: u64,
    /// Additional delay, during which others overtake it.
    late_ns: u64,
    twice: bool,
    packet: Parcel,
}

/// A packet that arrives at the far end.
pub struct Arrived {
    pub packet: Parcel,
    /// Additional delay before delivery.
    pub late_ns: u64,
    /// Whether it is delivered twice.
    pub twice: bool,
}

/// Loss, duplication, reordering and jitter after the transmitter.
struct Faults {
    jitter_ns: u64,
    loss_ppm: u32,
    duplicate_ppm: u32,
    burst: Option<(u32, u32, u32)>,
    in_burst: bool,
    reorder: Option<(u32, u64)>,
    outages: Vec<(u64, u64)>,
    rng: Rng,
}

impl Faults {
    fn lost(&mut self, at_ns: u64) -> bool {
        let mut lost = self.rng.chance_ppm(self.loss_ppm);
        if let Some((enter, leave, loss)) = self.burst {
            let turn = if self.in_burst { leave } else { enter };
            if self.rng.chance_ppm(turn) {
                self.in_burst = !self.in_burst;
            }
            lost |= self.in_burst && self.rng.chance_ppm(loss);
        }
        lost | self.outages.iter().any(|&(start, end)| (start..end).contains(&at_ns))
    }
}

/// Random order of a simultaneous arrival and departure: the departing packet may or may not make
/// room for the arriving one.
///
/// Such ties are frequent: the departing packet brings back the ACK that triggers the next arrival,
/// one round trip later to the nanosecond (Floyd and Jacobson, "On traffic phase effects in
/// packet-switched gateways", 1992). No real link is that exact, so the order is drawn at random;
/// with a queue of a few packets it determines whether a transfer keeps losing.
struct Ties {
    rng: Rng,
    at_ns: u64,
    leaves: bool,
}

/// Probability that the departing packet comes first: 1124 of 1223 times at full queues of five
/// links of the lab whose timers are late at random (`emulator.rs`, docs/findings/disagreement.md).
const LEAVES_FIRST_PPM: u32 = 920_000;

impl Ties {
    #[inline]
    fn leaves_first(&mut self, now: u64) -> bool {
        if self.at_ns != now {
            self.at_ns = now;
            self.leaves = self.rng.chance_ppm(LEAVES_FIRST_PPM);
        }
        self.leaves
    }
}

/// Waiting packets, for disciplines that decide when the transmitter becomes free.
enum Queue {
    Lanes(Lanes),
    Scheduled {
        scheduler: Box<dyn Scheduler>,
        /// Packet chosen for an idle transmitter, whose event is still pending.
        starting: Option<Parcel>,
    },
}

/// One queue, or separate queues for data and ACKs.
struct Lanes {
    discipline: Discipline,
    ack_share_ppm: u32,
    /// Data and, unless ACKs are kept apart, ACKs: (time of entry, packet).
    data: VecDeque<(u64, Parcel)>,
    acks: VecDeque<(u64, Parcel)>,
    /// Bytes that ACKs may still send before it is data's turn: the bound on their share.
    ack_credit: i64,
    codel: Codel,
    target: Target,
}

/// Rate of a transmitter.
#[derive(Clone, Copy)]
pub struct Rate {
    /// Rate as picoseconds per byte.
    ps_per_byte: u64,
}

impl Rate {
    pub fn new(bps: u64) -> Self {
        Rate { ps_per_byte: 8_000_000_000_000u64.div_ceil(bps.max(1)) }
    }

    #[inline]
    // `div_ceil` computes the remainder in case the sum overflows. It cannot here, and every hop
    // waits for the result.
    #[allow(clippy::manual_div_ceil)]
    pub fn time_ns(self, bytes: u32) -> u64 {
        (u64::from(bytes) * self.ps_per_byte + 999) / 1000
    }
}

/// Number of directions.
pub const CHANNELS: u32 = 2;

pub struct Channel {
    rate: Rate,
    delay_ns: u64,
    per_packet_ns: u64,
    grant_ns: u64,
    limit_packets: usize,
    limit_bytes: u64,
    faults: Option<Box<Faults>>,
    queue: Option<Box<Queue>>,
    /// Losses by name. Some force a FIFO onto the slow path with a queue; None keeps the fast path.
    losses: Option<Box<Losses>>,
    /// Packets in order of arrival at the far end, where faults are applied.
    line: VecDeque<InFlight>,
    /// For a FIFO: packets that had not started when it was last inspected.
    starts: VecDeque<Waiting>,
    ties: Ties,
    emulator: Option<Emulator>,
    /// Number and bytes of packets that have not started to leave.
    waiting: usize,
    waiting_bytes: u64,
    free_ns: u64,
    last_arrival_ns: u64,
    transmitting: bool,
    /// Packet that starts to leave now, whose event is still pending: (whether it is in the ACKs'
    /// own queue, bytes).
    starting: Option<(bool, u32)>,
    /// Whether it is served alternately with the other direction on one medium.
    pub shared: bool,
    /// Whether it is a FIFO without faults, on a medium of its own and not emulated as in the lab.
    is_plain: bool,
    busy_ns: u64,
    pub stats: ChannelResult,
}

/// Offset of the random stream id of a channel's discipline.
const DISCIPLINES: u64 = 1 << 43;
/// Offset of the random stream id of a channel's ties.
const TIES: u64 = 1 << 45;
/// Offset of the random stream id of the lab's timers.
const EMULATOR: u64 = 1 << 46;

/// Maximum credit or debt of ACKs at a 50% share: two full-size packets.
const CREDIT_BYTES: i64 = 3000;

/// Start of a transmission that is ready at `ready_ns` on an idle transmitter.
#[inline]
fn granted_ns(grant_ns: u64, ready_ns: u64) -> u64 {
    if grant_ns == 0 {
        ready_ns
    } else {
        ready_ns.div_ceil(grant_ns).saturating_mul(grant_ns)
    }
}

impl Channel {
    pub fn new(pipe: &ChannelSpec, mtu_bytes: u32, seed: u64, place: u64) -> Self {
        let burst = pipe.burst_loss.as_ref().map(|b| (b.enter_ppm, b.leave_ppm, b.loss_ppm));
        let reorder = pipe.reorder.as_ref().map(|r| (r.probability_ppm, r.delay_ns));
        let faulty = pipe.jitter_ns > 0
            || pipe.loss_ppm > 0
            || pipe.duplicate_ppm > 0
            || burst.is_some()
            || reorder.is_some()
            || !pipe.outages.is_empty();
        let faults = faulty.then(|| {
            Box::new(Faults {
                jitter_ns: pipe.jitter_ns,
                loss_ppm: pipe.loss_ppm,
                duplicate_ppm: pipe.duplicate_ppm,
                burst,
                in_burst: false,
                reorder,
                outages: pipe.outages.iter().map(|o| (o.start_ns, o.start_ns + o.length_ns)).collect(),
                rng: Rng::new(seed, place),
            })
        });
        let limit_packets = if pipe.queue_packets == 0 { usize::MAX } else { pipe.queue_packets as usize };
        let mut link = Channel {
            rate: Rate::new(pipe.rate_bps),
            delay_ns: pipe.delay_ns,
            per_packet_ns: pipe.per_packet_ns,
            grant_ns: pipe.grant_interval_ns,
            limit_packets,
            limit_bytes: if pipe.queue_bytes == 0 { u64::MAX } else { pipe.queue_bytes },
            faults,
            queue: None,
            losses: Losses::new(&pipe.lose).map(Box::new),
            line: VecDeque::new(),
            starts: VecDeque::new(),
            ties: Ties { rng: Rng::new(seed, place | TIES), at_ns: u64::MAX, leaves: true },
            emulator: pipe
                .lab_clock
                .then(|| Emulator::new(pipe.rate_bps, pipe.delay_ns, Rng::new(seed, place | EMULATOR))),
            waiting: 0,
            waiting_bytes: 0,
            free_ns: 0,
            last_arrival_ns: 0,
            transmitting: false,
            starting: None,
            shared: pipe.shared_medium,
            is_plain: false,
            busy_ns: 0,
            stats: ChannelResult::default(),
        };
        if let Some(scheduler) = scheduler(pipe, mtu_bytes, Rng::new(seed, place | DISCIPLINES)) {
            link.queue = Some(Box::new(Queue::Scheduled { scheduler, starting: None }));
        } else if pipe.discipline != Discipline::Fifo || pipe.shared_medium || link.losses.is_some() {
            link.use_lanes(pipe, mtu_bytes);
        }
        link.is_plain = link.queue.is_none() && link.faults.is_none() && link.emulator.is_none();
        link
    }

    fn use_lanes(&mut self, pipe: &ChannelSpec, mtu_bytes: u32) {
        self.queue = Some(Box::new(Queue::Lanes(Lanes {
            discipline: pipe.discipline,
            ack_share_ppm: pipe.ack_share_ppm,
            data: VecDeque::new(),
            acks: VecDeque::new(),
            ack_credit: 0,
            codel: Codel::default(),
            target: Target::new(pipe, frame_bytes(mtu_bytes)),
        })));
    }

    /// The lab's emulator. PLAIN is const, so that the check folds away for a plain link, which has
    /// none.
    #[inline(always)]
    fn emulator<const PLAIN: bool>(&self) -> Option<&Emulator> {
        self.emulator.as_ref().filter(|_| !PLAIN)
    }

    #[inline(always)]
    fn transmit_time_ns<const PLAIN: bool>(&self, bytes: u32) -> u64 {
        let emulator = self.emulator::<PLAIN>();
        let bytes_ns = emulator.map_or_else(|| self.rate.time_ns(bytes), |e| e.transmit_time_ns(bytes));
        bytes_ns + self.per_packet_ns
    }

    /// Time from entering an empty link to arrival at the far end.
    pub fn empty_time_ns(&self, bytes: u32) -> u64 {
        self.transmit_time_ns::<false>(bytes) + self.delay_ns
    }

    /// Adds a packet at `now`; drops it when the queue is full.
    #[inline]
    pub fn enqueue(&mut self, now: u64, packet: Parcel) -> Wake {
        if self.queue.is_some() {
            return self.enqueue_slow(now, packet);
        }
        match self.start_ns::<false>(now, &packet) {
            Some(start_ns) => self.leave(now, start_ns, packet),
            None => Wake::None,
        }
    }

    /// Whether a packet's fate is decided when it enters, independent of later events.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Adds a packet to a plain link; None: it is dropped.
    #[inline(always)]
    pub fn cross(&mut self, now: u64, packet: &Packet) -> Option<Crossing> {
        let start_ns = self.start_ns::<true>(now, packet)?;
        let arrival_ns = self.send::<true>(start_ns, packet);
        Some(self.crossing(now, arrival_ns, packet))
    }

    /// Start of transmission of a packet that enters a FIFO; None: its queue is full.
    #[inline(always)]
    fn start_ns<const PLAIN: bool>(&mut self, now: u64, packet: &Packet) -> Option<u64> {
        while let Some(head) = self.starts.front().filter(|head| head.start_ns <= now) {
            if head.start_ns == now && self.emulator::<PLAIN>().is_none() && !self.ties.leaves_first(now) {
                break;
            }
            self.waiting -= 1;
            self.waiting_bytes -= u64::from(head.wire_bytes);
            self.starts.pop_front();
        }
        let ready_ns = self.emulator::<PLAIN>().map_or(self.free_ns, Emulator::ready_ns);
        let busy = if self.waiting == 0 { ready_ns > now } else { self.free_ns > now };
        if busy
            && (self.waiting >= self.limit_packets
                || self.waiting_bytes + u64::from(packet.wire_bytes) > self.limit_bytes)
        {
            count_drop(&mut self.stats, packet);
            return None;
        }
        let start_ns = if busy { self.free_ns } else { granted_ns(self.grant_ns, now) };
        if start_ns > now {
            self.waiting += 1;
            self.waiting_bytes += u64::from(packet.wire_bytes);
            self.stats.max_queue_packets = self.stats.max_queue_packets.max(self.waiting as u64);
            let (wire_bytes, is_ack) = (packet.wire_bytes, packet.is_pure_ack());
            self.starts.push_back(Waiting { start_ns: start_ns.min(ready_ns), wire_bytes, is_ack });
        }
        Some(start_ns)
    }

    /// Starts the packet's transmission at `start_ns`; returns its arrival time at the far end.
    #[inline(always)]
    fn send<const PLAIN: bool>(&mut self, start_ns: u64, packet: &Packet) -> u64 {
        let busy = self.transmit_time_ns::<PLAIN>(packet.wire_bytes);
        // At 1 bit/s, a queue of millions of packets takes longer than 64 bits of nanoseconds.
        let arrival_ns = if let Some(emulator) = self.emulator.as_mut().filter(|_| !PLAIN) {
            let (free_ns, arrival_ns) = emulator.pass(start_ns, busy);
            self.free_ns = free_ns;
            arrival_ns
        } else {
            self.free_ns = start_ns.saturating_add(busy);
            self.free_ns.saturating_add(self.delay_ns)
        };
        self.busy_ns = self.busy_ns.saturating_add(busy);
        self.stats.packets += 1;
        self.stats.bytes += u64::from(packet.wire_bytes);
        if packet.is_pure_ack() {
            self.stats.ack_bytes += u64::from(packet.wire_bytes);
        }
        arrival_ns
    }

    /// The transit of a packet with this arrival time over a link without faults.
    #[inline(always)]
    fn crossing(&mut self, now: u64, arrival_ns: u64, packet: &Packet) -> Crossing {
        let before_ns = std::mem::replace(&mut self.last_arrival_ns, arrival_ns);
        let (since_ns, is_behind) = (before_ns.max(now), before_ns > now);
        Crossing { arrival_ns, since_ns, is_behind, link: u32::from(packet.down) }
    }

    /// Starts the packet's transmission at `start_ns`.
    fn leave(&mut self, now: u64, start_ns: u64, mut packet: Parcel) -> Wake {
        let arrival_ns = self.send::<false>(start_ns, &packet);
        let Some(f) = &mut self.faults else {
            let crossing = self.crossing(now, arrival_ns, &packet);
            return Wake::Crosses(packet, crossing);
        };
        let jittered_ns = arrival_ns.saturating_add(f.rng.up_to(f.jitter_ns));
        packet.flags.set(Flags::LOST, f.lost(arrival_ns.saturating_sub(self.delay_ns)));
        let twice = f.rng.chance_ppm(f.duplicate_ppm);
        let late_ns = f.reorder.map_or(0, |(ppm, delay_ns)| if f.rng.chance_ppm(ppm) { delay_ns } else { 0 });
        let arrival_ns = jittered_ns.max(self.last_arrival_ns);
        self.last_arrival_ns = arrival_ns;
        let was_empty = self.line.is_empty();
        self.line.push_back(InFlight { arrival_ns, late_ns, twice, packet });
        if was_empty {
            Wake::Deliver(arrival_ns)
        } else {
            Wake::None
        }
    }

    /// Removes the head of the line at the far end. Returns the packet (None: lost), and the
    /// arrival time of the next head.
    #[inline]
    pub fn deliver(&mut self) -> (Option<Arrived>, Option<u64>) {
        let Some(head) = self.line.pop_front() else { return (None, None) };
        let next = self.line.front().map(|f| f.arrival_ns);
        if head.packet.has(Flags::LOST) {
            self.stats.dropped_link += 1;
            return (None, next);
        }
        let InFlight { late_ns, twice, packet, .. } = head;
        (Some(Arrived { packet, late_ns, twice }), next)
    }

    fn enqueue_slow(&mut self, now: u64, packet: Parcel) -> Wake {
        if self.losses.as_mut().is_some_and(|losses| losses.take(&packet)) {
            self.stats.dropped_link += 1;
            return Wake::None;
        }
        match self.queue.as_deref() {
            Some(Queue::Lanes(_)) => self.enqueue_in_lane(now, packet),
            _ => self.enqueue_scheduled(now, packet),
        }
    }

    fn enqueue_scheduled(&mut self, now: u64, packet: Parcel) -> Wake {
        let Some(Queue::Scheduled { scheduler, starting }) = self.queue.as_deref_mut() else {
            return Wake::None;
        };
        scheduler.enqueue(now, packet, &mut self.stats);
        let mut wake = Wake::None;
        if !self.transmitting && scheduler.queues().packets() > 0 {
            self.transmitting = true;
            let start_ns = granted_ns(self.grant_ns, scheduler.ready_ns().max(now));
            if start_ns == now {
                *starting = scheduler.dequeue(now, &mut self.stats);
            }
            wake = Wake::Transmit(start_ns);
        }
        let waiting = scheduler.queues().packets() as u64;
        self.stats.max_queue_packets = self.stats.max_queue_packets.max(waiting);
        wake
    }

    fn enqueue_in_lane(&mut self, now: u64, packet: Parcel) -> Wake {
        let Some(Queue::Lanes(q)) = self.queue.as_deref_mut() else { return Wake::None };
        let ack = packet.is_pure_ack();
        // [S3.1] [S3.2] Separate queues have the limit each, so an ACK never takes a data packet's
        // place.
        let apart = q.discipline.separates();
        let lane = if apart && ack { &mut q.acks } else { &mut q.data };
        if ack && q.discipline.filters() {
            // The packet that starts to leave now cannot be dropped.
            let first = usize::from(self.starting.is_some_and(|(in_acks, _)| in_acks == apart));
            if let Some(at) = redundant_ack(lane, first, &packet) {
                let (_, old) = lane.remove(at).expect("index found in the queue");
                self.waiting -= 1;
                self.waiting_bytes -= u64::from(old.wire_bytes);
                self.stats.acks_filtered += 1;
            }
        }
        let bytes = packet.wire_bytes;
        let (leaving, leaving_bytes) = match self.starting {
            Some((in_acks, bytes)) => (usize::from(!apart || in_acks == ack), u64::from(bytes)),
            None => (0, 0),
        };
        let held = (if apart { lane.len() } else { self.waiting }) - leaving;
        let held_bytes = self.waiting_bytes - leaving_bytes;
        // An idle transmitter takes a packet of any length, as in a FIFO.
        let idle = if self.shared { self.waiting == 0 } else { !self.transmitting };
        if !idle && (held >= self.limit_packets || held_bytes + u64::from(bytes) > self.limit_bytes) {
            count_drop(&mut self.stats, &packet);
            return Wake::None;
        }
        self.waiting += 1;
        self.waiting_bytes += u64::from(bytes);
        lane.push_back((now, packet));
        if self.transmitting {
            let waiting = (self.waiting - usize::from(self.starting.is_some())) as u64;
            self.stats.max_queue_packets = self.stats.max_queue_packets.max(waiting);
            return Wake::None;
        }
        self.transmitting = true;
        let start_ns = granted_ns(self.grant_ns, now);
        if start_ns == now {
            self.starting = Some((apart && ack, bytes));
        } else {
            self.stats.max_queue_packets = self.stats.max_queue_packets.max(self.waiting as u64);
        }
        Wake::Transmit(start_ns)
    }

    /// Whether a packet waits for its turn on the medium.
    pub fn has_waiting(&self) -> bool {
        match self.queue.as_deref() {
            Some(Queue::Lanes(q)) => !q.data.is_empty() || !q.acks.is_empty(),
            Some(Queue::Scheduled { scheduler, .. }) => scheduler.queues().packets() > 0,
            None => false,
        }
    }

    /// Keeps an arrival on a shared medium from starting a transmission by itself.
    pub fn hold(&mut self) {
        self.transmitting = true;
    }

    /// The transmitter is free: takes the next packet. Returns the event for the line and the time
    /// at which the transmitter is free again (None: it is idle).
    pub fn transmit(&mut self, now: u64) -> (Wake, Option<u64>) {
        self.starting = None;
        let Some(packet) = self.take(now) else {
            self.transmitting = false;
            return (Wake::None, None);
        };
        let wake = self.leave(now, now, packet);
        let ready_ns = match self.queue.as_deref() {
            Some(Queue::Scheduled { scheduler, .. }) => scheduler.ready_ns(),
            _ => 0,
        };
        (wake, Some(self.free_ns.max(ready_ns)))
    }

    fn take(&mut self, now: u64) -> Option<Parcel> {
        if let Some(Queue::Scheduled { scheduler, starting }) = self.queue.as_deref_mut() {
            return starting.take().or_else(|| scheduler.dequeue(now, &mut self.stats));
        }
        loop {
            let Some(Queue::Lanes(q)) = self.queue.as_deref_mut() else { return None };
            let from_acks = !q.acks.is_empty() && (q.data.is_empty() || q.ack_credit > 0);
            let lane = if from_acks { &mut q.acks } else { &mut q.data };
            let (since, mut packet) = lane.pop_front()?;
            let bytes = i64::from(packet.wire_bytes);
            self.waiting -= 1;
            self.waiting_bytes -= u64::from(packet.wire_bytes);
            // [S3.5] [RFC 3449, 5.4] Data earns the credit that ACKs may spend: a bounded share,
            // and a burst of two large packets.
            let share = i64::from(q.ack_share_ppm);
            let worth = |data: i64| data * share / (1_000_000 - share);
            let earned = if from_acks { -bytes } else { worth(bytes) };
            q.ack_credit =
                (q.ack_credit + earned).clamp(-CREDIT_BYTES, worth(CREDIT_BYTES).max(CREDIT_BYTES));
            if q.discipline == Discipline::Codel
                && q.codel.drops(&q.target, now, now - since, self.waiting_bytes)
            {
                if mark(&mut self.stats, &mut packet) {
                    q.codel.marked(&q.target);
                    return Some(packet);
                }
                count_drop(&mut self.stats, &packet);
                continue;
            }
            return Some(packet);
        }
    }

    /// Records the packets waiting at `now`, without the one in transmission.
    pub fn sample(&mut self, now: u64) {
        let count = |waiting: &mut dyn Iterator<Item = bool>| {
            waiting.fold((0, 0), |(all, acks), ack| (all + 1, acks + usize::from(ack)))
        };
        let (all, acks) = match self.queue.as_deref() {
            Some(Queue::Lanes(q)) => {
                let (from_acks, from_data) = match self.starting {
                    Some((in_acks, _)) => (usize::from(in_acks), usize::from(!in_acks)),
                    None => (0, 0),
                };
                let lanes = q.acks.iter().skip(from_acks).chain(q.data.iter().skip(from_data));
                count(&mut lanes.map(|(_, p)| p.is_pure_ack()))
            }
            Some(Queue::Scheduled { scheduler, .. }) => {
                (scheduler.queues().packets(), scheduler.queues().acks())
            }
            None => count(&mut self.starts.iter().filter(|w| w.start_ns > now).map(|w| w.is_ack)),
        };
        let series = self.stats.series.get_or_insert_with(ChannelSeries::default);
        series.time_ns.push(now);
        series.acks.push(acks as u32);
        series.data.push((all - acks) as u32);
    }

    pub fn finish(&mut self, duration_ns: u64) -> ChannelResult {
        // A FIFO counts a packet when it enters: subtract transmissions that have not taken place.
        let to_come = self.free_ns.saturating_sub(duration_ns);
        let busy_ns = self.busy_ns.saturating_sub(to_come);
        self.stats.busy_share = busy_ns as f64 / duration_ns.max(1) as f64;
        self.stats.clone()
    }
}

/// Position of the queued pure ACK that `newer` makes redundant: same flow and direction, lower ACK
/// number, no SACK blocks (they may report other holes). A duplicate ACK is never dropped: its
/// number is not lower, and the sender counts it. An ACK whose flags the newer one does not repeat
/// is kept, too (RFC 3168, 6.1.3). At most one is replaced for each arrival (RFC 3449, 5.2.1).
// [RFC 3449, 5.2.1]
fn redundant_ack(queue: &VecDeque<(u64, Parcel)>, first: usize, newer: &Packet) -> Option<usize> {
    let worthless = |p: &Packet| {
        p.is_pure_ack()
            && p.flow == newer.flow
            && p.down == newer.down
            && p.ack < newer.ack
            && p.has(Flags::ECE) == newer.has(Flags::ECE)
            && p.sack.is_none()
    };
    (first..queue.len()).find(|&i| worthless(&queue[i].1))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn packet(flow: u32, wire_bytes: u32, len: u32, ack: u64) -> Parcel {
        Box::new(Packet { flow, wire_bytes, len, segments: 1, ack, ..Packet::default() })
    }

    pub fn pipe(discipline: Discipline) -> ChannelSpec {
        let others = r#"{"rate_bps": 8000000, "delay_ns": 1000, "queue_packets": 5}"#;
        ChannelSpec { discipline, ..serde_json::from_str(others).unwrap() }
    }

    /// Offers packets at the given times and returns (arrival time, ACK number) of those that come
    /// out.
    pub fn run(link: &mut Channel, offers: &[(u64, Parcel)]) -> Vec<(u64, u64)> {
        let mut out = Vec::new();
        let mut line: Option<u64> = None;
        let mut tx: Option<u64> = None;
        let mut offers = offers.iter().cloned().peekable();
        loop {
            let offer = offers.peek().map(|o| o.0);
            let next = [line, tx, offer].into_iter().flatten().min();
            let Some(now) = next else { return out };
            if line == Some(now) {
                let (p, then) = link.deliver();
                out.extend(p.map(|a| (now, a.packet.ack)));
                line = then;
                continue;
            }
            let wake = if tx == Some(now) {
                let (wake, again) = link.transmit(now);
                tx = again;
                wake
            } else {
                let Some((_, p)) = offers.next() else { return out };
                link.enqueue(now, p)
            };
            match wake {
                Wake::Crosses(p, crossing) => out.push((crossing.arrival_ns, p.ack)),
                Wake::Deliver(t) => line = Some(t),
                Wake::Transmit(t) => tx = Some(t),
                Wake::None => {}
            }
        }
    }

    #[test]
    fn a_fifo_gives_the_same_times_by_calculation_and_by_queue() {
        let mut dropped = 0;
        for seed in 0..300 {
            let mut rng = Rng::new(seed, 9);
            let mut now = 0;
            let offers: Vec<_> = (0..200)
                .map(|i| {
                    now += rng.up_to(2_000_000);
                    (now, packet(0, 40 + rng.up_to(1460) as u32, 1, i))
                })
                .collect();
            let mut fast = Channel::new(&pipe(Discipline::Fifo), 1500, 1, 1);
            let mut slow = Channel::new(&pipe(Discipline::Fifo), 1500, 1, 1);
            slow.use_lanes(&pipe(Discipline::Fifo), 1500);
            assert_eq!(run(&mut fast, &offers), run(&mut slow, &offers), "seed {seed}");
            assert_eq!(fast.stats.dropped_queue, slow.stats.dropped_queue);
            dropped += fast.stats.dropped_queue;
        }
        assert!(dropped > 0, "the queue must have been full at times");
    }

    #[test]
    fn a_packet_that_comes_as_another_leaves_finds_room_eleven_times_in_twelve() {
        // Room for one packet: of those of 1000 bytes (1 ms at 8 Mbit/s), one leaves, one waits,
        // and one arrives as that one starts. Arrivals at the same instant find the same state.
        let mut pipe = pipe(Discipline::Fifo);
        pipe.queue_packets = 1;
        let mut dropped = 0;
        for seed in 0..2000 {
            let mut link = Channel::new(&pipe, 1500, seed, 1);
            let busy_ns = link.transmit_time_ns::<true>(1000);
            let mut offers = vec![(0, packet(0, 1000, 1, 1)), (0, packet(0, 1000, 1, 2))];
            offers.push((busy_ns, packet(0, 1000, 1, 3)));
            offers.push((busy_ns, packet(0, 1000, 1, 4)));
            run(&mut link, &offers);
            assert!([1, 2].contains(&link.stats.dropped_queue), "one of two at least");
            dropped += link.stats.dropped_queue - 1;
        }
        assert!((120..200).contains(&dropped), "{dropped} of 2000");
        let mut later = Channel::new(&pipe, 1500, 1, 1);
        let busy_ns = later.transmit_time_ns::<true>(1000);
        let offers: Vec<_> = [0, 0, busy_ns + 1].map(|at_ns| (at_ns, packet(0, 1000, 1, 1))).into();
        run(&mut later, &offers);
        assert_eq!(later.stats.dropped_queue, 0, "a nanosecond later there is room");
    }

    #[test]
    fn transmission_takes_length_over_rate_then_the_delay() {
        // 1000 bytes at 8 Mbit/s: 1 ms. Back to back, the second leaves when the first has left.
        let mut link = Channel::new(&pipe(Discipline::Fifo), 1500, 1, 1);
        let offers = [(0, packet(0, 1000, 1, 1)), (0, packet(0, 500, 1, 2))];
        assert_eq!(run(&mut link, &offers), [(1_001_000, 1), (1_501_000, 2)]);
    }

    #[test]
    // [S3.1] [S3.2] [RFC 3449, 5.4]
    fn separated_acks_pass_data_but_leave_it_its_share() {
        let mut p = pipe(Discipline::AckSeparation);
        p.queue_packets = 100;
        let mut link = Channel::new(&p, 1500, 1, 1);
        let mut offers: Vec<_> = (0..20).map(|_| (0, packet(0, 1000, 1, 0))).collect();
        offers.extend((0..100).map(|i| (1, packet(1, 100, 0, i + 1))));
        let out = run(&mut link, &offers);
        assert_eq!(out.len(), 120);
        // While both wait, bytes are shared evenly: about 10 ACKs for each data packet.
        let first_half: Vec<_> = out.iter().take(60).collect();
        let data = first_half.iter().filter(|(_, ack)| *ack == 0).count();
        assert!((4..=9).contains(&data), "{data} data packets among the first 60");
        assert!(out[1].1 != 0 || out[2].1 != 0, "an ACK passes waiting data");
    }

    #[test]
    // [S3.5]
    fn a_flood_of_acks_leaves_data_at_least_its_share() {
        for (share_ppm, discipline) in [
            (10_000, Discipline::AckSeparation),
            (150_000, Discipline::AckSeparation),
            (150_000, Discipline::AckSeparationFilter),
            (500_000, Discipline::AckSeparation),
            (900_000, Discipline::AckSeparation),
        ] {
            let mut p = pipe(discipline);
            p.queue_packets = 100;
            p.ack_share_ppm = share_ppm;
            let mut link = Channel::new(&p, 1500, 1, 1);
            // Data occupies the link of 1000 bytes per millisecond; so would each flow's ACKs
            // alone.
            let mut offers = Vec::new();
            for i in 0..20_000u64 {
                offers.push((i * 50_000, packet(1 + (i % 50) as u32, 66, 0, i + 1)));
                if i % 20 == 0 {
                    offers.push((i * 50_000, packet(0, 1000, 1, 0)));
                }
            }
            let out = run(&mut link, &offers);
            let busy: Vec<_> = out.iter().take_while(|(at, _)| *at <= 1_000_000_000).collect();
            let data = 1000 * busy.iter().filter(|(_, ack)| *ack == 0).count();
            let acks = 66 * busy.iter().filter(|(_, ack)| *ack != 0).count();
            let share = acks as f64 / (acks + data) as f64;
            let bound = f64::from(share_ppm) / 1e6;
            assert!((share / bound - 1.0).abs() < 0.03, "{share} of {bound}, {discipline:?}");
        }
    }

    #[test]
    fn separated_acks_have_what_data_leaves_free() {
        let mut p = pipe(Discipline::AckSeparation);
        p.queue_packets = 100;
        p.ack_share_ppm = 10_000;
        let mut link = Channel::new(&p, 1500, 1, 1);
        // 100 bytes of ACKs and 500 of data per millisecond, of 1000 that the link carries.
        let mut offers = Vec::new();
        for i in 0..1000u64 {
            offers.push((i * 1_000_000, packet(0, 500, 1, 0)));
            offers.push((i * 1_000_000 + 1, packet(1, 100, 0, i + 1)));
        }
        assert_eq!(run(&mut link, &offers).len(), 2000);
        assert_eq!(link.stats.dropped_queue, 0);
        assert_eq!(link.stats.ack_bytes, 100_000);
    }

    #[test]
    fn separated_and_filtered_acks_are_never_more_than_one_a_flow_without_duplicates() {
        let mut p = pipe(Discipline::AckSeparationFilter);
        p.queue_packets = 100;
        let mut link = Channel::new(&p, 1500, 1, 1);
        let mut offers = vec![(0, packet(0, 1000, 1, 0)), (0, packet(0, 1000, 1, 0))];
        offers.extend((1..=50).map(|i| (i, packet(1 + (i % 2) as u32, 66, 0, i))));
        offers.push((60, packet(1, 66, 0, 50))); // a duplicate is kept
        let acks: Vec<u64> = run(&mut link, &offers).iter().map(|o| o.1).filter(|ack| *ack > 0).collect();
        assert_eq!(acks, [49, 50, 50]);
        assert_eq!(link.stats.acks_filtered, 48);
    }

    #[test]
    fn a_sample_reports_the_same_packets_for_a_calculated_and_a_kept_queue() {
        let offers: Vec<_> = (0..6)
            .map(|i| (0, packet(0, if i % 3 == 0 { 1000 } else { 66 }, u32::from(i % 3 == 0), i)))
            .collect();
        let mut calculated = Channel::new(&pipe(Discipline::Fifo), 1500, 1, 1);
        let mut kept = Channel::new(&pipe(Discipline::Fifo), 1500, 1, 1);
        kept.use_lanes(&pipe(Discipline::Fifo), 1500);
        for link in [&mut calculated, &mut kept] {
            for (at, p) in &offers {
                link.enqueue(*at, p.clone());
            }
            link.sample(0);
            let series = link.stats.series.clone().expect("sampled");
            assert_eq!((series.acks, series.data), (vec![4], vec![1]));
        }
    }

    #[test]
    // [RFC 3449, 5.2.1]
    fn the_ack_filter_keeps_duplicates_and_sacks() {
        let mut p = pipe(Discipline::AckFilter);
        p.queue_packets = 100;
        let mut link = Channel::new(&p, 1500, 1, 1);
        let mut with_sack = packet(1, 64, 0, 4);
        with_sack.sack = Some(Box::new(vec![(6, 7)]));
        let offers = [
            (0, packet(0, 1000, 1, 0)),
            (1, packet(1, 52, 0, 2)),
            (2, packet(1, 52, 0, 3)), // replaces 2
            (3, packet(2, 52, 0, 9)), // another flow
            (4, packet(1, 52, 0, 3)), // duplicate: kept
            (5, with_sack),           // replaces one 3
            (6, packet(1, 52, 0, 5)), // replaces the other 3, not the one with SACK
        ];
        let acks: Vec<u64> = run(&mut link, &offers).iter().skip(1).map(|o| o.1).collect();
        assert_eq!(acks, [9, 4, 5]);
        assert_eq!(link.stats.acks_filtered, 3);
    }

    #[test]
    fn the_ack_filter_keeps_an_echo_that_the_newer_ack_does_not_repeat() {
        let mut p = pipe(Discipline::AckFilter);
        p.queue_packets = 100;
        let mut link = Channel::new(&p, 1500, 1, 1);
        let ack = |ack: u64, ece: bool| {
            let mut packet = packet(1, 52, 0, ack);
            packet.flags.set(Flags::ECE, ece);
            packet
        };
        let offers = [(0, packet(0, 1000, 1, 0)), (1, ack(2, true)), (2, ack(3, true)), (3, ack(4, false))];
        let acks: Vec<u64> = run(&mut link, &offers).iter().skip(1).map(|o| o.1).collect();
        assert_eq!(acks, [3, 4]);
    }

    #[test]
    fn codel_leaves_a_short_queue_alone_and_cuts_a_standing_one() {
        let mut p = pipe(Discipline::Codel);
        p.queue_packets = 1000;
        let calm: Vec<_> = (0..2000).map(|i| (i * 1_100_000, packet(0, 1000, 1, i))).collect();
        let mut link = Channel::new(&p, 1500, 1, 1);
        assert_eq!(run(&mut link, &calm).len(), 2000);
        let flood: Vec<_> = (0..2000).map(|i| (i * 900_000, packet(0, 1000, 1, i))).collect();
        let mut link = Channel::new(&p, 1500, 1, 1);
        run(&mut link, &flood);
        assert!(link.stats.dropped_queue > 5, "{}", link.stats.dropped_queue);
    }

    #[test]
    fn loss_comes_at_the_given_rate() {
        let mut p = pipe(Discipline::Fifo);
        p.loss_ppm = 50_000;
        let mut link = Channel::new(&p, 1500, 7, 1);
        let offers: Vec<_> = (0..40_000).map(|i| (i * 2_000_000, packet(0, 100, 1, i))).collect();
        let out = run(&mut link, &offers).len() as f64 / 40_000.0;
        // Five standard deviations of a binomial.
        assert!((out - 0.95).abs() < 5.0 * (0.05f64 * 0.95 / 40_000.0).sqrt(), "{out}");
    }
}
