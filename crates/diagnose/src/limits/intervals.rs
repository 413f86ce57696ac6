// SPDX-License-Identifier: MIT
//! A transfer divided into intervals of about one RTT, or longer if there are too many.

use super::interval::Interval;
use super::packed::Packed;
use super::wait::{Wait, Waited};
use super::writes::{Burst, Writes};
use crate::step::{Ack, AckKind, DataKind, Step};
use ackwise_capture::tcp_flag;

/// Maximum number kept; beyond it, neighbours are merged and intervals are twice as long from there
/// on.
const INTERVALS_MAX: usize = 2048;
const SHORTEST_NS: u64 = 5_000_000;
/// A gap of at least this many intervals becomes an interval of its own.
const LONG_GAPS: u64 = 2;
/// RTTs for which the last sample stands for those that a recovery does not have.
const REMEMBERED_RTTS: u64 = 8;
/// A receiver owes an ACK for two segments; with more pending, its host has not processed them.
const KEPT_PACKETS: u32 = 4;
const OWED_PACKETS: u32 = 2;

/// All intervals of a direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Intervals {
    done: Packed,
    /// All intervals, once the transfer is over.
    all: Vec<Interval>,
    now: Option<Interval>,
    shortest_ns: u64,
    writes: Writes,
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
    /// Time from which on the sender's first data could have passed: the handshake's last packet
    /// has reached it, and the data its way to the capture point.
    pub ready_ns: Option<u64>,
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
        self.ready_ns.get_or_insert_with(|| {
            // The opener sends that packet itself.
            let away_ns = if step.from == 0 { 0 } else { data.sender.distance_ns };
            (began_ns + away_ns).min(step.time_ns)
        });
        let gap_ns = waited.until_ack.1 + waited.since_ack.1;
        let length_ns = self.length_ns(step);
        let burst = self.writes.sent(step, gap_ns);
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
        now.bursts += u32::from(burst.is_some());
        now.own_bursts += u32::from(burst == Some(Burst::Own));
        if matches!(data.kind, DataKind::New | DataKind::OutOfOrder) {
            now.new_bytes += u64::from(data.new_bytes);
        }
        now.recoveries += u32::from(data.begins_recovery);
        let is_partial =
            data.kind == DataKind::New && (data.end - data.start) % u64::from(data.mss_bytes) != 0;
        now.partial_packets += u32::from(is_partial);
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
        if let (DataKind::New, Some(queued_ns)) = (data.kind, step.queued_ns) {
            now.data_before_ns = now.data_before_ns.min(queued_ns);
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
        if let Some(bytes_per_s) = self.writes.acked(step, ack) {
            now.passed_bytes_per_s = now.passed_bytes_per_s.max(bytes_per_s);
        }
        if let Some(queued_ns) = step.queued_ns {
            now.queued_behind.add(queued_ns);
            if let (Some(rtt_ns), Some(least_ns)) = (ack.rtt_ns(), step.least_ns[step.from]) {
                now.data_behind_ns = now.data_behind_ns.min(rtt_ns.saturating_sub(least_ns + queued_ns));
            }
        }
        // What lies above a hole that is filled now arrived long ago.
        let fills_hole = ack.is_recovery && ack.packets > OWED_PACKETS;
        let is_kept = ack.packets_left >= KEPT_PACKETS && !fills_hole;
        if let (Some(newest_ns), true) = (ack.newest_ns, is_kept) {
            now.kept.add(newest_ns.saturating_sub(step.least_ns[step.from].unwrap_or(0)));
        }
        now.acked_bytes += ack.acked_bytes;
        // Accurate ECN uses the flag as a bit of its counter.
        now.marks += ack.ce_marks.unwrap_or(step.has(tcp_flag::ECE).into());
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
        near_rtts(&mut self.all);
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

/// Sets the RTT near each interval. A single sample may be that of a delayed ACK: it shows a longer
/// RTT only together with another one.
fn near_rtts(list: &mut [Interval]) {
    let first = list.iter().find(|i| i.rtts > 0).map(|i| (i.rtt_min_ns, i.to_ns));
    let mut near = first;
    let mut single_ns = None;
    for interval in list {
        if interval.rtts > 0 {
            let before_ns = near.map_or(u64::MAX, |(rtt_ns, _)| rtt_ns);
            let least_ns = interval.rtt_min_ns;
            let rtt_ns = match (interval.rtts, single_ns) {
                (1, None) => least_ns.min(before_ns),
                (1, Some(other_ns)) => least_ns.min(before_ns.max(other_ns)),
                _ => least_ns,
            };
            single_ns = (interval.rtts == 1).then_some(least_ns);
            near = Some((rtt_ns, interval.to_ns));
        }
        let is_recent = |&(rtt_ns, at_ns): &(u64, u64)| {
            interval.from_ns <= at_ns.saturating_add(REMEMBERED_RTTS.saturating_mul(rtt_ns))
        };
        interval.near_rtt_ns = near.filter(is_recent).map(|(rtt_ns, _)| rtt_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// RTTs near intervals of 10 ms, each with its number of samples and their minimum.
    fn near(samples: &[(u32, u64)]) -> Vec<Option<u64>> {
        let interval = |(n, &(rtts, ms)): (u64, &(u32, u64))| Interval {
            from_ns: 10 * n * MS,
            to_ns: 10 * (n + 1) * MS,
            rtts,
            rtt_min_ns: ms * MS,
            ..Interval::default()
        };
        let mut list: Vec<_> = (0..).zip(samples).map(interval).collect();
        near_rtts(&mut list);
        list.iter().map(|i| i.near_rtt_ns.map(|ns| ns / MS)).collect()
    }

    #[test]
    fn one_late_ack_is_no_queue() {
        let near = |samples: &[_]| near(samples).into_iter().flatten().collect::<Vec<_>>();
        assert_eq!(near(&[(9, 10), (1, 50), (9, 10)]), [10, 10, 10]);
        assert_eq!(near(&[(9, 10), (1, 50), (1, 40), (1, 60)]), [10, 10, 40, 40]);
        assert_eq!(near(&[(9, 10), (2, 50)]), [10, 50]);
        assert_eq!(near(&[(9, 30), (1, 10)]), [30, 10]);
    }

    #[test]
    fn a_recovery_has_the_rtt_before_it_but_not_for_ever() {
        let mut samples = vec![(9, 10)];
        samples.extend([(0, 0); 12]);
        let found = near(&samples);
        assert_eq!(found[..9], [Some(10); 9]);
        assert_eq!(found[10..], [None; 3]);
        assert_eq!(near(&[(0, 0), (9, 10)]), [Some(10); 2], "nor has the beginning any");
    }
}
