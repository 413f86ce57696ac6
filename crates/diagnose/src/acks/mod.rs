// SPDX-License-Identifier: MIT
//! How the receiver acknowledges: how ACKs follow data, and which policy explains them.
//!
//! | file | question |
//! |---|---|
//! | `arrivals.rs` | which data had the receiver when an ACK left? |
//! | `follower.rs` | what would a policy of the core have done then? |
//! | `habits.rs` | without any policy: how many segments, how late, what came first? |
//! | `system.rs` | which stock systems and devices acknowledge so? |
//! | `thinning.rs` | which ACKs did not come this far? |
//! | `verdict.rs` | a pure function from these to an answer |
//!
//! An ACK is judged when it passes, together with the data that it acknowledges. In a capture at
//! the receiver this is what the receiver knew; elsewhere the arrival times of data are computed
//! from the recent RTT between the capture point and the receiver.

mod arrivals;
mod follower;
mod habits;
mod system;
mod thinning;
mod verdict;

use crate::distance::is_at_host;
use crate::distribution::Distribution;
use crate::observer::{End, Observer};
use crate::step::{Ack, AckKind, Step};
use ackwise_capture::tcp_flag;
use ackwise_core::{flag, Event, EventKind, Seq};
use arrivals::{Answer, Arrival, Arrivals, Reassembly};
use follower::{followers, Follower};
use habits::Habits;
use serde::Serialize;
use system::Systems;
use thinning::Thinning;

pub use follower::Score;
pub use habits::{AckHabits, Example, Offload};
pub use system::AckSystem;
pub use thinning::{AckThinning, Thinner};
pub use verdict::{judge, AckFeatures, AckVerdict, Confidence, Undecided};

const MS: u64 = 1_000_000;
/// Maximum number of a connection's ACKs that policies follow: enough for a verdict, with bounded
/// work.
const FOLLOWED_ACKS: u32 = 20_000;
/// RFC 9293, 3.7.1: the segment size that a receiver assumes before it has seen one.
const MSS_GUESS_BYTES: u32 = 536;
/// A host's own processing time: a few times the minimum, plus its scheduler's delay.
const PROMPT_NS: u64 = MS / 20;
const PROMPT_TIMES: u64 = 4;
const PROMPT_MOST_NS: u64 = MS / 2;
/// On a quiet path, no host that does not wait deliberately answers later than this.
const REACTION_NS: u64 = MS / 50;
/// Kernels count delayed-ACK timers in ticks of at most this length.
const TICK_NS: u64 = 10 * MS;
const TICKED_FROM_NS: u64 = 2 * TICK_NS;
/// Price of an ACK in policy `dynamic`, and period of the fast timer in `bsd`, as in the core.
const PRICE_NS: u64 = 10 * MS;
const FAST_TIMER_NS: u64 = 200 * MS;
/// `dynamic` draws once; its value is the median of this many ACKs.
const DRAWS: usize = 5;

/// How the receiver acknowledges.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Acking {
    /// Segments per advancing ACK.
    pub segments: Distribution,
    /// Time from the newest packet that an ACK acknowledges to the ACK, at the capture point. The
    /// excess over the minimum is the delay of the receiver and the path.
    pub newest_ns: Distribution,
    /// Time from the oldest acknowledged packet to the ACK: the longest time that an ACK was owed.
    pub oldest_ns: Distribution,
    /// Properties of the ACKs that need no policy to describe.
    pub habits: AckHabits,
    /// The stock systems or devices that acknowledge so.
    pub system: AckSystem,
    /// ACKs removed between the receiver and the capture point; None where unknown.
    pub thinning: Option<AckThinning>,
    /// Whose stretch ACKs these are.
    pub thinned_by: Thinner,
    /// The policy or policies that explain the ACKs.
    pub verdict: AckVerdict,
}

/// Watches the ACKs for one half.
#[derive(Debug, Default)]
pub struct Watch {
    /// As in [`Acking`].
    segments: Distribution,
    newest_ns: Distribution,
    oldest_ns: Distribution,
    arrivals: Arrivals,
    reassembly: Reassembly,
    habits: Habits,
    systems: Systems,
    thinning: Thinning,
    followers: Vec<Follower>,
    judged: u32,
    /// Whether the capture was taken at the receiver, as far as the packets so far show.
    is_near: bool,
    acked: u64,
    window_bytes: u32,
    window_most_bytes: u32,
    rcv_mss_bytes: u32,
    rtt_ns: u64,
    last_ns: u64,
    /// Largest rectangles under the arrivals of late ACKs, which give the price that `dynamic`
    /// drew.
    draws_ns: Vec<u64>,
}

impl Observer for Watch {
    type Report = Acking;

    fn sent(&mut self, step: &Step) {
        self.arrivals.add(step);
        self.habits.sent(step);
    }

    fn acked(&mut self, step: &Step) {
        let Some(ack) = &step.ack else { return };
        if step.has(tcp_flag::SYN) {
            self.window_bytes = clamp(ack.window_bytes);
            self.habits.window(step, ack);
            return;
        }
        if ack.kind == AckKind::Advancing && !ack.is_recovery {
            if let (Some(newest_ns), Some(oldest_ns)) = (ack.newest_ns, ack.oldest_ns) {
                self.segments.record(ack.segments.into());
                self.newest_ns.record(newest_ns);
                self.oldest_ns.record(oldest_ns);
            }
        }
        if ack.kind != AckKind::Old {
            self.habits.window(step, ack);
        }
        self.habits.other(step, ack);
        self.thinning.acked(step, ack);
        self.follow(step, ack);
    }

    fn finish(self, end: &End) -> Acking {
        let habits = self.habits.finish(end);
        let is_near = is_at_host(end.distance_ns[1]);
        let (thinning, thinned_by) = self.thinning.finish(is_near, habits.stretch_acks);
        let is_thinned = match thinned_by {
            Thinner::Path => Some(true),
            // A driver's ACKs are thinned below a capture at its own host.
            Thinner::Receiver if !is_near => Some(false),
            Thinner::Receiver | Thinner::None | Thinner::NotVisible => None,
        };
        let features = AckFeatures {
            scores: self.followers.iter().map(|f| (f.name(), f.score())).collect(),
            advancing: self.segments.samples(),
            window_bound: habits.window_bound_acks,
            is_answered: end.is_answered,
            has_data: end.first.is_some_and(|first| end.nxt > first + 1),
            distance_ns: end.distance_ns[1],
        };
        Acking {
            segments: self.segments,
            newest_ns: self.newest_ns,
            oldest_ns: self.oldest_ns,
            habits,
            system: self.systems.finish(end.distance_ns[1], is_thinned),
            thinning,
            thinned_by,
            verdict: judge(&features),
        }
    }
}

impl Watch {
    /// Processes an ACK: the events before it, the policies' decisions, and its departure.
    fn follow(&mut self, step: &Step, ack: &Ack) {
        let is_over = self.judged >= FOLLOWED_ACKS;
        let is_near = is_at_host(step.least_ns[step.from]);
        self.is_near = is_near;
        let is_holed = self.reassembly.has_hole() || ack.kind == AckKind::Duplicate;
        let arrivals = match ack.kind {
            AckKind::Old => return,
            // Above a hole each packet is answered, and acknowledgment numbers do not show which.
            _ if is_holed && is_near => self.arrivals.take_first(usize::MAX),
            AckKind::Duplicate => self.arrivals.take_first(1),
            _ => self.arrivals.take(ack.number),
        };
        if is_over || (arrivals.is_empty() && self.followers.is_empty()) {
            return;
        }
        if self.followers.is_empty() {
            self.followers = followers();
            let first = arrivals.first().map_or(ack.number, |a| a.start);
            self.reassembly.acknowledged(first);
            self.acked = first;
            self.rcv_mss_bytes = ack.mss_bytes.min(MSS_GUESS_BYTES);
        }
        if ack.kind == AckKind::Advancing {
            self.measure_rtt(step);
        }
        let answer = self.answer(step, ack, arrivals);
        let had_hole = self.reassembly.has_hole();
        let window_bytes = clamp(ack.window_bytes);
        let unread_bytes = self.window_bytes.saturating_sub(window_bytes);
        let is_held = unread_bytes > self.rcv_mss_bytes;
        self.arrive(&answer, window_bytes, if is_held { unread_bytes } else { 0 });
        self.reassembly.acknowledged(ack.number);
        let is_scored = ack.kind == AckKind::Advancing
            && step.is_pure_ack()
            && !(ack.is_recovery || had_hole || is_held || self.arrivals.is_cut)
            && ack.unseen_bytes == 0
            && !answer.arrivals.is_empty();
        let sent = self.event(EventKind::AckSent, answer.time_ns, window_bytes);
        for follower in &mut self.followers {
            follower.expire(answer.time_ns + answer.tolerance_ns, &sent, self.reassembly.rcv_nxt);
        }
        if is_scored {
            self.judged += 1;
            self.habits.answered(step, ack, answer.is_late(), answer.since_oldest_ns());
            self.systems.answered(&answer, ack, self.rcv_mss_bytes, is_near);
            self.score(&answer);
        }
        self.acked = ack.number.max(self.acked);
        self.window_bytes = window_bytes;
        self.window_most_bytes = self.window_most_bytes.max(window_bytes);
        let flags = if step.payload_bytes > 0 { flag::PIGGYBACK } else { 0 };
        let sent = Event { flags, ..self.event(EventKind::AckSent, answer.time_ns, window_bytes) };
        for follower in &mut self.followers {
            follower.acked(&sent);
        }
        self.last_ns = answer.time_ns;
    }

    /// Updates the RTT estimate with Linux's smoothing by 1/8.
    fn measure_rtt(&mut self, step: &Step) {
        let Some(rtt_ns) = step.rtt_ns() else { return };
        self.rtt_ns = if self.rtt_ns == 0 { rtt_ns } else { self.rtt_ns - self.rtt_ns / 8 + rtt_ns / 8 };
    }

    /// Converts arrivals to the receiver's time, which is that of the ACK at the capture point.
    fn answer(&self, step: &Step, ack: &Ack, mut arrivals: Vec<Arrival>) -> Answer {
        let least_ns = step.least_ns[step.from].unwrap_or(0);
        let is_near = self.is_near;
        let shift_ns = if is_near { 0 } else { step.distance_ns[step.from].unwrap_or(least_ns) };
        let prompt_ns = self.newest_ns.min().map_or(PROMPT_MOST_NS, |ns| PROMPT_NS + PROMPT_TIMES * ns);
        let prompt_ns = prompt_ns.min(PROMPT_MOST_NS);
        let mut last_ns = self.last_ns;
        for arrival in &mut arrivals {
            last_ns = (arrival.time_ns + shift_ns).clamp(last_ns.min(step.time_ns), step.time_ns);
            arrival.time_ns = last_ns;
        }
        Answer {
            time_ns: step.time_ns,
            number: ack.number,
            arrivals,
            tolerance_ns: if is_near { prompt_ns } else { MS + shift_ns / 8 },
        }
    }

    fn arrive(&mut self, answer: &Answer, window_bytes: u32, unread_bytes: u32) {
        let grew = window_bytes > self.window_bytes;
        let last = answer.arrivals.len();
        for (i, arrival) in answer.arrivals.iter().enumerate() {
            let at_ns = arrival.time_ns;
            let before = self.event(EventKind::Data, at_ns, window_bytes);
            let before_nxt = self.reassembly.rcv_nxt;
            let payload = clamp(arrival.end - arrival.start) - u32::from(arrival.is_fin);
            let each = payload / u32::from(arrival.segments);
            self.rcv_mss_bytes = self.rcv_mss_bytes.max(each).max(1);
            let seq = self.reassembly.add(arrival);
            let mut event = self.event(EventKind::Data, at_ns, window_bytes);
            event.bytes = payload;
            event.segments = arrival.segments;
            event.seq = seq;
            event.unread_bytes = unread_bytes.max(payload);
            let is_last = i + 1 == last;
            for (is_set, bit) in [
                (arrival.is_pushed, flag::PSH),
                (arrival.is_fin, flag::FIN),
                (grew && is_last, flag::WND_GREW),
            ] {
                event.flags |= if is_set { bit } else { 0 };
            }
            let flags = event.flags & flag::HOLE_OPEN;
            let read = Event { kind: EventKind::AppRead, seq: Seq::In, unread_bytes: 0, flags, ..event };
            let is_read = unread_bytes == 0 && matches!(seq, Seq::In | Seq::Fills);
            let rcv_nxt = self.reassembly.rcv_nxt;
            // One after the other, each stays in the processor's first cache for all events.
            for follower in &mut self.followers {
                follower.expire(at_ns.saturating_sub(1), &before, before_nxt);
                follower.decide(&event, rcv_nxt);
                if is_read {
                    follower.read(&read, rcv_nxt);
                }
            }
        }
    }

    /// The fields common to all events of this moment.
    fn event(&self, kind: EventKind, now_ns: u64, window_bytes: u32) -> Event {
        let unacked_bytes = clamp(self.reassembly.rcv_nxt.saturating_sub(self.acked));
        let left_bytes = self.window_bytes.saturating_sub(unacked_bytes);
        let mut event = Event::new(kind, now_ns);
        event.unacked_bytes = unacked_bytes;
        event.wnd_bytes = self.window_bytes;
        event.wnd_next_bytes = window_bytes.max(left_bytes);
        event.wnd_max_bytes = self.window_most_bytes.max(window_bytes);
        event.rcv_mss_bytes = self.rcv_mss_bytes.max(1);
        event.rtt_us = clamp(self.rtt_ns / 1000);
        event.rto_us = clamp((self.rtt_ns + (2 * self.rtt_ns).max(200 * MS)) / 1000);
        event.flags = if self.reassembly.has_hole() { flag::HOLE_OPEN } else { 0 };
        event
    }

    fn score(&mut self, answer: &Answer) {
        let (late, area_ns) = (answer.is_late(), answer.area_ns());
        let waits = answer.since_newest_ns() > REACTION_NS;
        let waited_ns = answer.since_oldest_ns();
        let coarse_ns = answer.tolerance_ns.max(waited_ns / 32);
        // Away from the receiver, its random values would be fitted to the path.
        let is_near = self.is_near;
        for follower in &mut self.followers {
            let explained = follower.fired().is_some_and(|fire| {
                let is_ticked = late && fire.time_ns + TICKED_FROM_NS < answer.time_ns + waited_ns;
                let late_ns = if is_ticked && waited_ns > TICKED_FROM_NS { TICK_NS / 2 } else { 0 };
                fire.number == answer.number
                    && fire.time_ns <= answer.time_ns + coarse_ns
                    && answer.time_ns <= fire.time_ns + coarse_ns.max(late_ns)
            });
            follower.count(explained);
            if waits && !explained {
                match follower.name() {
                    "bsd" if late => follower.learn(phase(answer.time_ns), 1),
                    "dynamic" if is_near && self.draws_ns.len() < DRAWS => {
                        self.draws_ns.push(area_ns);
                        let mut sorted = self.draws_ns.clone();
                        sorted.sort_unstable();
                        follower.learn(draw(sorted[sorted.len() / 2]), DRAWS as u8);
                    }
                    _ => {}
                }
            }
        }
    }
}

/// The random bits with which `bsd`'s clock ticks at this time.
fn phase(time_ns: u64) -> u32 {
    (((time_ns % FAST_TIMER_NS) << 32) / FAST_TIMER_NS).min(u32::MAX.into()) as u32
}

/// The random bits with which `dynamic` waits for this area: z has the density e^z / (e - 1).
fn draw(area_ns: u64) -> u32 {
    let z = (area_ns as f64 / PRICE_NS as f64).min(1.0);
    let u = z.exp_m1() / (std::f64::consts::E - 1.0);
    u32::from(((u * 256.0) as u8).reverse_bits()) << 24
}

fn clamp(bytes: u64) -> u32 {
    bytes.min(u32::MAX.into()) as u32
}
