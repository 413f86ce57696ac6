// SPDX-License-Identifier: MIT
//! A transfer divided into intervals of about one RTT, or longer if there are too many.

use super::packed::Packed;
use super::wait::{Stall, Wait, Waited};
use crate::step::{Ack, AckKind, DataKind, Step};
use ackwise_capture::tcp_flag;

/// Maximum number kept; beyond it, neighbours are merged and intervals are twice as long from there
/// on.
const INTERVALS_MAX: usize = 2048;
const SHORTEST_NS: u64 = 5_000_000;
/// A gap of at least this many intervals becomes an interval of its own.
const LONG_GAPS: u64 = 2;
/// A receiver owes an ACK for two segments; with more pending, its host has not processed them.
const KEPT_PACKETS: u32 = 4;

pub(super) const WAITS: usize = 9;

impl Wait {
    pub fn index(self) -> usize {
        match self {
            Wait::Room => 0,
            Wait::ReceiveWindow => 1,
            Wait::ClosedWindow => 2,
            Wait::Application | Wait::Answer => 3,
            Wait::Stall(Stall::Nagle) => 4,
            Wait::Stall(Stall::ReceiveWindow) => 5,
            Wait::Stall(Stall::SendBuffer) => 6,
            Wait::Timer => 7,
            Wait::Recovery => 8,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Interval {
    pub from_ns: u64,
    pub to_ns: u64,
    pub waits_ns: [u64; WAITS],
    /// Payload bytes sent for the first time, and acknowledged.
    pub new_bytes: u64,
    pub acked_bytes: u64,
    /// Payload bytes retransmitted.
    pub again_bytes: u64,
    pub recoveries: u32,
    pub marks: u32,
    /// RTTs of the path, including the receiver's delay.
    pub rtt_min_ns: u64,
    pub rtt_sum_ns: u64,
    pub rtts: u32,
    /// Minimum RTT in this interval, or in the last one with a sample: a recovery has none (Karn).
    pub near_rtt_ns: Option<u64>,
    /// Maximum bytes in flight, as the sender saw it.
    pub flight_max_bytes: u64,
    /// Minimum of the bytes that the window still allowed after a packet.
    pub slack_min_bytes: u64,
    pub window_max_bytes: u64,
    pub window_min_bytes: u64,
    pub acks: u32,
    pub packets: u32,
    /// Queueing delay of ACKs: from the receiver to the capture point, and from there to the
    /// sender.
    pub queued_behind: Mean,
    pub queued_before: Mean,
    /// Time for which the receiver's host kept data that its ACK policy would have acknowledged.
    pub kept: Mean,
}

/// A mean of times, if any were seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    pub sum_ns: u64,
    pub samples: u32,
}

impl Mean {
    fn add(&mut self, ns: u64) {
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.samples = self.samples.saturating_add(1);
    }

    fn merge(&mut self, other: Mean) {
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.samples = self.samples.saturating_add(other.samples);
    }

    pub fn ns(&self) -> u64 {
        self.sum_ns.checked_div(self.samples.into()).unwrap_or(0)
    }
}

impl Interval {
    fn at(from_ns: u64) -> Self {
        Interval {
            from_ns,
            to_ns: from_ns,
            rtt_min_ns: u64::MAX,
            slack_min_bytes: u64::MAX,
            window_min_bytes: u64::MAX,
            ..Interval::default()
        }
    }

    pub fn ns(&self) -> u64 {
        self.to_ns - self.from_ns
    }

    /// Whether the sender spent more than half of the time in this wait.
    pub fn is_mostly(&self, wait: Wait) -> bool {
        2 * self.waits_ns[wait.index()] > self.ns()
    }

    pub fn rtt_ns(&self) -> Option<u64> {
        (self.rtts > 0).then(|| self.rtt_sum_ns / u64::from(self.rtts))
    }

    pub fn bytes_per_s(&self) -> f64 {
        self.acked_bytes as f64 * 1e9 / self.ns().max(1) as f64
    }

    fn merge(&mut self, next: &Interval) {
        self.to_ns = next.to_ns;
        for (sum, ns) in self.waits_ns.iter_mut().zip(next.waits_ns) {
            *sum += ns;
        }
        self.new_bytes += next.new_bytes;
        self.acked_bytes += next.acked_bytes;
        self.again_bytes += next.again_bytes;
        self.recoveries += next.recoveries;
        self.marks += next.marks;
        self.rtt_min_ns = self.rtt_min_ns.min(next.rtt_min_ns);
        self.rtt_sum_ns = self.rtt_sum_ns.saturating_add(next.rtt_sum_ns);
        self.rtts += next.rtts;
        self.flight_max_bytes = self.flight_max_bytes.max(next.flight_max_bytes);
        self.slack_min_bytes = self.slack_min_bytes.min(next.slack_min_bytes);
        self.window_max_bytes = self.window_max_bytes.max(next.window_max_bytes);
        self.window_min_bytes = self.window_min_bytes.min(next.window_min_bytes);
        self.acks += next.acks;
        self.packets += next.packets;
        self.queued_behind.merge(next.queued_behind);
        self.queued_before.merge(next.queued_before);
        self.kept.merge(next.kept);
    }

    /// Queueing delay of ACKs on the return path.
    pub fn return_queue_ns(&self) -> u64 {
        self.queued_behind.ns() + self.queued_before.ns()
    }
}

/// All intervals of a direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Intervals {
    done: Packed,
    /// All intervals, once the transfer is over.
    all: Vec<Interval>,
    now: Option<Interval>,
    shortest_ns: u64,
    /// Time of the last acknowledgment, and time since which nothing is in flight.
    answered_ns: u64,
    emptied_ns: Option<u64>,
    /// Time from which on everything sent is acknowledged.
    pub ended_ns: u64,
    /// Recent RTT between the capture point and the sender.
    distance_ns: Option<u64>,
    is_distance_known: bool,
    /// Times of the connection's first packet and of this direction's first data.
    pub began_ns: Option<u64>,
    pub opened_ns: Option<u64>,
    /// Time at which the application wrote its first data, if that could not leave earlier.
    pub wrote_ns: Option<u64>,
}

impl Intervals {
    /// Processes a packet of either endpoint.
    pub fn came(&mut self, step: &Step) {
        self.began_ns.get_or_insert(step.time_ns);
        if !step.has(tcp_flag::SYN) {
            self.opened_ns.get_or_insert(step.time_ns);
        }
    }

    pub fn sent(&mut self, step: &Step, waited: Option<Waited>) {
        self.came(step);
        // The time of the handshake counts separately.
        let began_ns = self.opened_ns.or(self.began_ns).unwrap_or(step.time_ns).min(step.time_ns);
        let Some(waited) = waited else { return };
        let data = &step.data;
        self.emptied_ns = None;
        let waited_ns = data.sender.since_ack_ns.unwrap_or(0);
        self.wrote_ns.get_or_insert(step.time_ns.saturating_sub(waited_ns));
        let gap_ns = waited.until_ack.1 + waited.since_ack.1;
        let length_ns = self.length_ns(step);
        let now = self.now.get_or_insert_with(|| Interval::at((step.time_ns - gap_ns).max(began_ns)));
        // The gap belongs to the interval that contains it, or is an interval of its own if it is
        // long.
        if gap_ns > LONG_GAPS * length_ns && now.packets > 0 {
            self.close(step.time_ns - gap_ns);
        }
        let now = self.now.get_or_insert_with(|| Interval::at(step.time_ns - gap_ns));
        now.to_ns = now.to_ns.max(step.time_ns);
        for (wait, ns) in [waited.until_ack, waited.since_ack] {
            now.waits_ns[wait.index()] += ns;
        }
        if gap_ns > LONG_GAPS * length_ns {
            self.close(step.time_ns);
        }
        let now = self.now.get_or_insert_with(|| Interval::at(step.time_ns));
        now.packets += 1;
        match data.kind {
            DataKind::New | DataKind::OutOfOrder => now.new_bytes += u64::from(data.new_bytes),
            _ => now.again_bytes += data.end - data.start,
        }
        now.recoveries += u32::from(data.begins_recovery);
        // Data used part of the RTT to the sender on its way here, and an ACK the rest.
        let distance_ns = data.sender.distance_ns;
        self.distance_ns = Some(distance_ns);
        if !self.is_distance_known && step.least_ns[step.from].is_some() {
            self.is_distance_known = true;
            self.forget_rtts();
        }
        let Some(now) = &mut self.now else { return };
        // A timer's packet answers an ACK of long ago.
        let answers = waited.until_ack.0 != Wait::Timer;
        if let (Some(least_ns), Some(queued_ns), true) = (step.least_ns[step.from], step.queued_ns, answers) {
            now.queued_before.add(distance_ns.saturating_sub(least_ns + queued_ns));
        }
        now.flight_max_bytes = now.flight_max_bytes.max(data.sender.flight_bytes(data.end));
        now.slack_min_bytes = now.slack_min_bytes.min(data.sender.slack_bytes(data.end));
        if now.ns() >= length_ns {
            self.close(step.time_ns);
        }
    }

    fn length_ns(&self, step: &Step) -> u64 {
        step.rtt_ns().unwrap_or(0).max(self.shortest_ns).max(SHORTEST_NS)
    }

    pub fn acked(&mut self, step: &Step, ack: &Ack) {
        let Some(now) = &mut self.now else { return };
        // The gap belongs to the packet after it.
        self.answered_ns = step.time_ns;
        if ack.flight_bytes == 0 {
            self.emptied_ns.get_or_insert(step.time_ns);
        }
        now.acks += 1;
        if let Some(queued_ns) = step.queued_ns {
            now.queued_behind.add(queued_ns);
        }
        if let (Some(newest_ns), true) = (ack.newest_ns, ack.packets_left >= KEPT_PACKETS) {
            now.kept.add(newest_ns.saturating_sub(step.least_ns[step.from].unwrap_or(0)));
        }
        now.acked_bytes += ack.acked_bytes;
        now.marks += u32::from(step.has(tcp_flag::ECE));
        now.window_max_bytes = now.window_max_bytes.max(ack.window_bytes);
        now.window_min_bytes = now.window_min_bytes.min(ack.window_bytes);
        let to_sender_ns = self.distance_ns;
        if let (AckKind::Advancing, Some(rtt_ns), Some(rest_ns)) = (ack.kind, ack.rtt_ns(), to_sender_ns) {
            let rtt_ns = rtt_ns + rest_ns;
            now.rtt_min_ns = now.rtt_min_ns.min(rtt_ns);
            now.rtt_sum_ns = now.rtt_sum_ns.saturating_add(rtt_ns);
            now.rtts += 1;
        }
    }

    /// Discards RTTs: without a handshake, those so far lack the part between capture point and
    /// sender.
    fn forget_rtts(&mut self) {
        let mut done = self.done.unpack();
        self.done = Packed::default();
        for interval in done.iter_mut().chain(&mut self.now) {
            (interval.rtt_min_ns, interval.rtt_sum_ns, interval.rtts) = (u64::MAX, 0, 0);
        }
        done.iter().for_each(|interval| self.done.push(interval));
    }

    fn close(&mut self, at_ns: u64) {
        let Some(mut now) = self.now.take() else { return };
        now.to_ns = now.to_ns.max(at_ns);
        self.done.push(&now);
        self.now = Some(Interval::at(now.to_ns));
        if self.done.len() == INTERVALS_MAX {
            let mut kept = Vec::with_capacity(INTERVALS_MAX);
            for pair in self.done.unpack().chunks(2) {
                let mut first = pair[0];
                if let Some(second) = pair.get(1) {
                    first.merge(second);
                }
                kept.push(first);
            }
            self.shortest_ns = 2 * kept.iter().map(Interval::ns).sum::<u64>() / INTERVALS_MAX as u64;
            self.done = Packed::default();
            kept.iter().for_each(|interval| self.done.push(interval));
        }
    }

    pub fn finish(mut self) -> Self {
        if let Some(mut now) = self.now.take().filter(|now| now.packets > 0 || now.acked_bytes > 0) {
            now.to_ns = now.to_ns.max(self.emptied_ns.unwrap_or(self.answered_ns));
            self.done.push(&now);
        }
        self.ended_ns = self.emptied_ns.map_or(0, |_| self.answered_ns);
        self.all = std::mem::take(&mut self.done).unpack();
        let mut near_rtt_ns = self.all.iter().find(|i| i.rtts > 0).map(|i| i.rtt_min_ns);
        for interval in &mut self.all {
            if interval.rtts > 0 {
                near_rtt_ns = Some(interval.rtt_min_ns);
            }
            interval.near_rtt_ns = near_rtt_ns;
        }
        self
    }

    /// The highest rate of an interval before the first loss: after one, an ACK may stand for many
    /// RTTs.
    pub fn fastest_bytes_per_s(&self) -> f64 {
        let before = self.all.iter().take_while(|interval| interval.recoveries == 0);
        before.map(Interval::bytes_per_s).fold(0.0, f64::max)
    }

    pub fn all(&self) -> &[Interval] {
        &self.all
    }
}
