// SPDX-License-Identifier: MIT
//! The limits of one direction over time.

use super::interval::Interval;
use super::limit::Limit;
use super::path_mtu::PathMtu;
use super::review::{Because, Confidence, Doubt, Refuted, Rival};
use super::wait::{Answers, Blocks, Stall};
use ackwise_capture::TooBig;
use serde::Serialize;
use std::collections::BTreeMap;

/// A part of a transfer with one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// Start, nanoseconds since the start of the capture.
    pub from_ns: u64,
    /// End, counted in the same way.
    pub to_ns: u64,
    /// What limited throughput in this time.
    pub limit: Limit,
}

/// One limit's share of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Time with this limit, nanoseconds.
    pub ns: u64,
    /// Bytes acknowledged in that time.
    pub bytes: u64,
}

/// The judgment on one direction.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Judgment {
    /// Share of each limit; the times add up to the transfer's duration.
    pub limits: BTreeMap<Limit, Share>,
    /// How sure it is that the largest limit held.
    pub confidence: Confidence,
    /// Why it is not sure.
    pub doubts: Vec<Doubt>,
    /// Limits that look the same in this capture.
    pub rivals: Vec<Rival>,
    /// Limits that other figures contradict; their time is undecided.
    pub refuted: Vec<Refuted>,
    /// Time in ack-stall by the sender's reason to wait, nanoseconds.
    pub stalls_ns: BTreeMap<Stall, u64>,
    /// Time in sending-application spent waiting for the peer's data.
    pub answers: Answers,
    /// Retransmissions by timers that look like new data, because earlier copies were lost before the
    /// capture point, and their payload; among the retransmissions counted.
    #[serde(skip)]
    pub(crate) unseen_timers: u64,
    #[serde(skip)]
    pub(crate) unseen_bytes: u64,
    /// Whether the numbers of IP packets show that the sender sent more in its last silence, and none
    /// of its packets was a full one: nothing that arrived shows what it waited for.
    #[serde(skip)]
    pub(crate) has_vanished: bool,
    /// Length of an IP packet that is sent again and again and never arrives; 0: none.
    #[serde(skip)]
    pub(crate) stuck_bytes: u32,
    /// Time in sending-application spent waiting until everything sent was acknowledged.
    pub blocks: Blocks,
    /// Time in ack-stall in which Nagle's algorithm waited for an ACK that was not delayed.
    pub held: Answers,
    /// The packet sizes of a path MTU black hole; None where the capture shows none.
    pub path_mtu: Option<PathMtu>,
    /// Periods in order of time, without gaps, each with its dominant limit.
    pub spans: Vec<Span>,
    /// Minimum RTT of the whole path, nanoseconds.
    pub rtt_min_ns: Option<u64>,
    /// Mean of all RTT samples, nanoseconds.
    pub rtt_mean_ns: Option<u64>,
    /// Maximum bytes in flight.
    pub flight_max_bytes: u64,
    /// Largest window advertised.
    pub window_max_bytes: u64,
    /// Minimum of the bytes that the window still allowed after a packet.
    pub window_left_min_bytes: Option<u64>,
    /// Payload rate of the slowest link; None where packets do not show it.
    pub link_bytes_per_s: Option<f64>,
    /// The highest rate over several consecutive RTTs.
    pub sustained_bytes_per_s: f64,
    /// Time that would be saved if only the application and the slowest link limited the transfer,
    /// nanoseconds. 0 if that is less than a second and a tenth of its time: a connection that
    /// idles is not slow because of one late ACK.
    pub lost_ns: u64,
}

/// Time lost counts if it is as long as this, or this part of the transfer's time.
const LOST_MATTERS_NS: u64 = 1_000_000_000;
const LOST_MATTERS_SHARE: u64 = 10;

impl Judgment {
    /// Sets the time lost by a transfer of this many bytes.
    pub(super) fn lose(&mut self, bytes: u64) {
        let under = |limit| self.limits.get(&limit).map_or(0, |share| share.ns);
        let whole_ns: u64 = self.limits.values().map(|share| share.ns).sum();
        let busy_ns = whole_ns - under(Limit::SendingApplication);
        let link_ns = match self.link_bytes_per_s.filter(|&rate| rate > 0.0) {
            Some(rate) => (bytes as f64 / rate * 1e9) as u64,
            None => under(Limit::Link),
        };
        let lost_ns = busy_ns.saturating_sub(link_ns);
        let matters = lost_ns >= LOST_MATTERS_NS || lost_ns >= whole_ns / LOST_MATTERS_SHARE;
        self.lost_ns = if matters { lost_ns } else { 0 };
    }

    /// Marks all of the time as undecided.
    pub(super) fn undecided(self) -> Self {
        let mut undecided = Judgment { limits: BTreeMap::new(), spans: Vec::new(), ..self };
        if let (Some(first), Some(last)) = (self.spans.first(), self.spans.last()) {
            undecided.add(Limit::Undecided, first.from_ns, last.to_ns);
        }
        undecided
    }

    /// Takes a router's messages into account that packets of this direction are too large. Where
    /// nothing else tells what a silent sender sent, they do.
    pub(crate) fn told(&mut self, told: &TooBig) {
        let vanished = |one: &Refuted| one.because == Because::PacketsVanished;
        let is_silent = !self.refuted.is_empty() && self.refuted.iter().all(vanished);
        let is_stuck = told.mtu_bytes < self.stuck_bytes;
        if self.path_mtu.is_none() && !is_silent && !is_stuck {
            return; // the sender heeds them, or other packets are lost
        }
        let Some(path_mtu) = PathMtu::told(self.path_mtu, told) else { return };
        self.path_mtu = Some(path_mtu);
        if is_silent {
            let share = self.limits.remove(&Limit::Undecided).unwrap_or_default();
            let timeout = self.limits.entry(Limit::Timeout).or_default();
            timeout.ns += share.ns;
            timeout.bytes += share.bytes;
            for span in &mut self.spans {
                if span.limit == Limit::Undecided {
                    span.limit = Limit::Timeout;
                }
            }
            self.refuted.clear();
            self.confidence = Confidence::Likely;
        }
    }

    /// The limit with the most time, if any time passed.
    pub(super) fn largest(&self) -> Option<(Limit, Share)> {
        let limits = self.limits.iter().map(|(&limit, &share)| (limit, share));
        limits.filter(|(_, share)| share.ns > 0).max_by_key(|(_, share)| share.ns)
    }

    /// Marks the time of these limits as undecided.
    pub(super) fn refute(&mut self, refuted: Vec<Refuted>) {
        for one in &refuted {
            let share = self.limits.remove(&one.limit).unwrap_or_default();
            let undecided = self.limits.entry(Limit::Undecided).or_default();
            undecided.ns += share.ns;
            undecided.bytes += share.bytes;
            if one.limit == Limit::AckStall {
                self.stalls_ns.clear();
            }
        }
        if refuted.is_empty() {
            return;
        }
        for mut span in std::mem::take(&mut self.spans) {
            if refuted.iter().any(|one| one.limit == span.limit) {
                span.limit = Limit::Undecided;
            }
            self.span(span.limit, span.from_ns, span.to_ns);
        }
        self.refuted = refuted;
    }

    pub(super) fn add(&mut self, limit: Limit, from_ns: u64, to_ns: u64) {
        if to_ns > from_ns {
            self.limits.entry(limit).or_default().ns += to_ns - from_ns;
            self.span(limit, from_ns, to_ns);
        }
    }

    fn span(&mut self, limit: Limit, from_ns: u64, to_ns: u64) {
        match self.spans.last_mut() {
            Some(last) if last.limit == limit => last.to_ns = to_ns,
            _ => self.spans.push(Span { from_ns, to_ns, limit }),
        }
    }

    /// Divides the time of an interval by its waits; the remainder goes to the largest.
    pub(super) fn interval(&mut self, interval: &Interval, shares: &BTreeMap<Limit, u64>, room: Limit) {
        let largest = shares.iter().max_by_key(|(_, ns)| **ns).map_or(room, |(limit, _)| *limit);
        let mut left_ns = interval.ns();
        for (limit, ns) in shares {
            let ns = (*ns).min(left_ns);
            self.limits.entry(*limit).or_default().ns += ns;
            left_ns -= ns;
        }
        let share = self.limits.entry(largest).or_default();
        share.ns += left_ns;
        share.bytes += interval.acked_bytes;
        self.span(largest, interval.from_ns, interval.to_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_the_application_and_the_slowest_link_is_not_lost() {
        let of = |limit, link_bytes_per_s| {
            let share = Share { ns: 10_000_000_000, bytes: 0 };
            let limits = BTreeMap::from([(limit, share)]);
            let mut judgment = Judgment { limits, link_bytes_per_s, ..Judgment::default() };
            judgment.lose(1_000_000);
            judgment.lost_ns
        };
        assert_eq!(of(Limit::SendingApplication, None), 0);
        assert_eq!(of(Limit::Link, None), 0);
        assert_eq!(of(Limit::ReceiveWindow, None), 10_000_000_000);
        // 1 MB at 1 MB/s takes 1 s, and at 50 kB/s longer than it took.
        assert_eq!(of(Limit::ReceiveWindow, Some(1e6)), 9_000_000_000);
        assert_eq!(of(Limit::ReceiveWindow, Some(5e4)), 0);
        assert_eq!(of(Limit::Link, Some(1e6)), 9_000_000_000);
    }

    #[test]
    fn a_late_ack_does_not_make_an_idle_connection_slow() {
        let lost_ns = |ms: [u64; 2]| {
            let share = |ms| Share { ns: ms * 1_000_000, bytes: 0 };
            let limits =
                BTreeMap::from([(Limit::SendingApplication, share(ms[0])), (Limit::Timeout, share(ms[1]))]);
            let mut judgment = Judgment { limits, ..Judgment::default() };
            judgment.lose(1_000);
            judgment.lost_ns
        };
        assert_eq!(lost_ns([6_800, 300]), 0);
        assert_eq!(lost_ns([2_000, 300]), 300_000_000);
        assert_eq!(lost_ns([60_000, 1_200]), 1_200_000_000);
    }
}
