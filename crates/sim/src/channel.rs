// SPDX-License-Identifier: MIT
//! One direction of a link: a queue, a transmitter, a delay line, and faults after it.
//!
//! ```text
//!          +--> fifo: the departure is calculated ----------+
//! packet --+                                                +--> transmitter --> line --> far end
//!          +--> qdisc: waits until the transmitter is free -+                    (faults)
//! ```
//!
//! In a FIFO, a packet's departure time is known when it enters. The packet therefore costs no event,
//! and leaves the channel at once with its arrival time (`fifo`). What has to choose when the
//! transmitter becomes free keeps a queue and costs an event: every other discipline, a shared
//! medium, losses by name (`discipline`). Faults are applied at the far end and cost one more event
//! (`line`). A FIFO has the same times either way; a test checks it.

use crate::coalescer::Coalescer;
use crate::discipline::{self, count_drop, Qdisc};
use crate::emulator::Emulator;
use crate::fifo::Fifo;
use crate::named_losses::NamedLosses;
use crate::packet::{Flags, Packet};
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
    Crosses(Box<Packet>, Crossing),
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

struct InFlight {
    arrival_ns: u64,
    /// Additional delay, during which others overtake it.
    late_ns: u64,
    twice: bool,
    packet: Box<Packet>,
}

/// A packet that arrives at the far end.
pub struct Arrived {
    pub packet: Box<Packet>,
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
    /// Counts what waits in a FIFO that keeps no queue.
    fifo: Fifo,
    /// Holds what waits; None: `fifo`.
    qdisc: Option<Box<dyn Qdisc>>,
    /// The packet chosen for an idle transmitter, whose event is still pending.
    starting: Option<Box<Packet>>,
    /// The driver of the host that sends here: `Engine::offer` asks it before `enqueue`.
    pub coalescer: Option<Box<Coalescer>>,
    /// Losses by name, before the queue.
    losses: Option<Box<NamedLosses>>,
    faults: Option<Box<Faults>>,
    /// Packets in order of arrival at the far end, where faults are applied.
    line: VecDeque<InFlight>,
    emulator: Option<Emulator>,
    free_ns: u64,
    last_arrival_ns: u64,
    /// Whether an event of the transmitter is pending, on a medium of its own.
    transmitting: bool,
    /// Whether it is served alternately with the other direction on one medium.
    pub shared: bool,
    /// Whether it is a FIFO without faults, on a medium of its own, not emulated as in the lab, and no
    /// driver holds packets before it.
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
        let losses = NamedLosses::new(&pipe.lose).map(Box::new);
        let waits = pipe.discipline != Discipline::Fifo || pipe.shared_medium || losses.is_some();
        let qdisc = waits.then(|| discipline::new(pipe, mtu_bytes, Rng::new(seed, place | DISCIPLINES)));
        let emulator = pipe
            .lab_clock
            .then(|| Emulator::new(pipe.rate_bps, pipe.delay_ns, Rng::new(seed, place | EMULATOR)));
        let coalescer = Coalescer::new(pipe.coalescer, mtu_bytes).map(Box::new);
        let is_plain = qdisc.is_none() && faults.is_none() && emulator.is_none() && coalescer.is_none();
        Channel {
            rate: Rate::new(pipe.rate_bps),
            delay_ns: pipe.delay_ns,
            per_packet_ns: pipe.per_packet_ns,
            grant_ns: pipe.grant_interval_ns,
            fifo: Fifo::new(pipe, Rng::new(seed, place | TIES)),
            qdisc,
            starting: None,
            coalescer,
            losses,
            faults,
            line: VecDeque::new(),
            emulator,
            free_ns: 0,
            last_arrival_ns: 0,
            transmitting: false,
            shared: pipe.shared_medium,
            is_plain,
            busy_ns: 0,
            stats: ChannelResult::default(),
        }
    }

    /// The lab's emulator. PLAIN is const, so that the check folds away for a plain link, which has
    /// none.
    #[inline]
    fn emulator<const PLAIN: bool>(&self) -> Option<&Emulator> {
        self.emulator.as_ref().filter(|_| !PLAIN)
    }

    #[inline]
    fn transmit_time_ns<const PLAIN: bool>(&self, bytes: u32) -> u64 {
        let emulator = self.emulator::<PLAIN>();
        let bytes_ns = emulator.map_or_else(|| self.rate.time_ns(bytes), |e| e.transmit_time_ns(bytes));
        bytes_ns + self.per_packet_ns
    }

    /// Time from entering an empty link to arrival at the far end.
    pub fn empty_time_ns(&self, bytes: u32) -> u64 {
        self.transmit_time_ns::<false>(bytes) + self.delay_ns
    }

    /// Adds a packet at `now`; it may be dropped. An idle transmitter takes the next one of its queue at
    /// once.
    pub fn enqueue(&mut self, now: u64, packet: Box<Packet>) -> Wake {
        if self.losses.as_mut().is_some_and(|losses| losses.take(&packet)) {
            self.stats.dropped_link += 1;
            return Wake::None;
        }
        let Some(qdisc) = &mut self.qdisc else {
            let start_ns = self.start_ns::<false>(now, &packet);
            return start_ns.map_or(Wake::None, |at| self.leave(now, at, packet));
        };
        let is_idle = if self.shared { qdisc.queues().packets() == 0 } else { !self.transmitting };
        qdisc.enqueue(now, packet, is_idle, &mut self.stats);
        let mut wake = Wake::None;
        if is_idle && !self.shared && qdisc.queues().packets() > 0 {
            self.transmitting = true;
            let start_ns = granted_ns(self.grant_ns, qdisc.ready_ns().max(now));
            if start_ns == now {
                self.starting = qdisc.dequeue(now, &mut self.stats);
            }
            wake = Wake::Transmit(start_ns);
        }
        let queues = qdisc.queues();
        self.stats.waits(queues.packets(), queues.bytes());
        wake
    }

    /// Whether a packet's fate is decided when it enters, independent of later events.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Adds a packet to a plain link; None: it is dropped.
    // `inline(always)` on `start_ns` saves 0.9% of all instructions; on `send`, `crossing`, the lanes of
    // heap.rs and `Access::enqueue` 0.6%; on `cross`: see engine.rs.
    #[inline(always)]
    pub fn cross(&mut self, now: u64, packet: &Packet) -> Option<Crossing> {
        let start_ns = self.start_ns::<true>(now, packet)?;
        let arrival_ns = self.send::<true>(start_ns, packet);
        Some(self.crossing(now, arrival_ns, packet))
    }

    /// Start of transmission of a packet that enters a FIFO; None: its queue is full.
    #[inline(always)]
    fn start_ns<const PLAIN: bool>(&mut self, now: u64, packet: &Packet) -> Option<u64> {
        let emulator = self.emulator.as_ref().filter(|_| !PLAIN);
        self.fifo.release(now, emulator.is_some());
        let ready_ns = emulator.map_or(self.free_ns, Emulator::ready_ns);
        let busy = if self.fifo.packets() == 0 { ready_ns > now } else { self.free_ns > now };
        if busy && !self.fifo.has_room(packet) {
            count_drop(&mut self.stats, packet);
            return None;
        }
        let start_ns = if busy { self.free_ns } else { granted_ns(self.grant_ns, now) };
        if start_ns > now {
            self.fifo.hold(start_ns.min(ready_ns), packet);
            self.stats.waits(self.fifo.packets(), self.fifo.bytes());
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
    fn leave(&mut self, now: u64, start_ns: u64, mut packet: Box<Packet>) -> Wake {
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

    /// Whether a packet waits for its turn on the medium.
    pub fn has_waiting(&self) -> bool {
        self.qdisc.as_ref().is_some_and(|qdisc| qdisc.queues().packets() > 0)
    }

    /// The transmitter is free: takes the next packet. Returns the event for the line and the time
    /// at which the transmitter is free again (None: it is idle).
    pub fn transmit(&mut self, now: u64) -> (Wake, Option<u64>) {
        let Some(qdisc) = &mut self.qdisc else { return (Wake::None, None) };
        let next = self.starting.take().or_else(|| qdisc.dequeue(now, &mut self.stats));
        let ready_ns = qdisc.ready_ns();
        let Some(packet) = next else {
            self.transmitting = false;
            return (Wake::None, None);
        };
        let wake = self.leave(now, now, packet);
        (wake, Some(self.free_ns.max(ready_ns)))
    }

    /// Records the packets waiting at `now`, without the one in transmission.
    pub fn sample(&mut self, now: u64) {
        let (all, acks) = match &self.qdisc {
            Some(qdisc) => (qdisc.queues().packets(), qdisc.queues().acks()),
            None => self.fifo.count(now),
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
        self.stats.acks_filtered += self.coalescer.as_ref().map_or(0, |driver| driver.dropped());
        self.stats.busy_share = busy_ns as f64 / duration_ns.max(1) as f64;
        self.stats.clone()
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn packet(flow: u32, wire_bytes: u32, len: u32, ack: u64) -> Box<Packet> {
        Box::new(Packet { flow, wire_bytes, len, segments: 1, ack, ..Packet::default() })
    }

    pub fn pipe(discipline: Discipline) -> ChannelSpec {
        let others = r#"{"rate_bps": 8000000, "delay_ns": 1000, "queue_packets": 5}"#;
        ChannelSpec { discipline, ..serde_json::from_str(others).unwrap() }
    }

    impl Channel {
        /// Lets packets wait in a queue, although their departure could be calculated.
        fn keep_queue(&mut self, pipe: &ChannelSpec) {
            self.qdisc = Some(discipline::new(pipe, 1500, Rng::new(1, 1)));
        }
    }

    /// Offers packets at the given times and returns (arrival time, ACK number) of those that come
    /// out.
    pub fn run(link: &mut Channel, offers: &[(u64, Box<Packet>)]) -> Vec<(u64, u64)> {
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
            slow.keep_queue(&pipe(Discipline::Fifo));
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
    fn a_packet_that_starts_is_not_overtaken_by_an_ack_of_the_same_instant() {
        // The first data packet earns credit for ACKs; ten milliseconds later the link is idle.
        let mut link = Channel::new(&pipe(Discipline::AckSeparation), 1500, 1, 1);
        let later_ns = 10_000_000;
        assert_eq!(run(&mut link, &[(0, packet(0, 1000, 1, 1))]).len(), 1);
        assert!(
            matches!(link.enqueue(later_ns, packet(0, 1000, 1, 2)), Wake::Transmit(at) if at == later_ns)
        );
        for offer in [packet(0, 1000, 1, 3), packet(1, 100, 0, 4)] {
            assert!(matches!(link.enqueue(later_ns, offer), Wake::None));
        }
        let mut order = Vec::new();
        let mut next = Some(later_ns);
        while let Some(now) = next {
            let (wake, again) = link.transmit(now);
            if let Wake::Crosses(p, _) = wake {
                order.push(p.ack);
            }
            next = again;
        }
        assert_eq!(order, [2, 4, 3]);
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
        kept.keep_queue(&pipe(Discipline::Fifo));
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
