// SPDX-License-Identifier: MIT
//! Holds each limit to the other figures of its half.
//!
//! Rules that follow a transfer packet by packet can be wrong in ways that its sums show: a
//! retransmission timeout where nothing was retransmitted. What a row of [`RULES`] contradicts
//! becomes undecided.

use super::judgment::{Judgment, Share};
use super::limit::Limit;
use super::review::{Because, Refuted};
use super::seen::Seen;
use super::wait::DELAYED_ACK_NS;
use crate::distance::is_at_host;
use crate::observer::End;
use crate::report::Ecn;

pub(super) const MS: u64 = 1_000_000;
pub(super) const SECOND: u64 = 1_000 * MS;
/// Data that passes a link within this share above its rate; its estimate is not more precise.
const PASSES: f64 = 1.25;
/// Multiple of the rate reached while a link was busy, beyond which the rate is not that link's.
const TOO_FAST: f64 = 4.0;
/// Minimum share by which queues lengthen the mean RTT.
const QUEUE_SHARE: f64 = 0.05;
/// Minimum number of segments that a send buffer holds.
pub(super) const BUFFER_SEGMENTS: u64 = 2;
/// Minimum number of messages that grant more data.
const GRANTS: u64 = 4;
/// Minimum time of a constant flight, in RTTs.
const CONSTANT_RTTS: u64 = 4;
/// RTTs of slow start: for each doubling with one ACK for two segments, and at both ends.
const RTTS_PER_DOUBLING: f64 = 2.0;
const RTTS_AROUND: f64 = 4.0;
/// Minimum length of an interval, and maximum number of intervals (see `intervals.rs`).
const INTERVAL_NS: u64 = 5 * MS;
const INTERVALS: u64 = 1024;
/// First expiry of a retransmission timer: twice its initial value (RFC 6298, 2.1), for hosts that
/// wait longer. Each further one doubles, up to two minutes (Linux's maximum).
const TIMER_NS: u64 = 2 * SECOND;
const TIMER_MAX_NS: u64 = 120 * SECOND;
/// Maximum delay of an ACK (RFC 9293, 3.8.6.3).
const LATE_ACK_MAX_NS: u64 = 500 * MS;

/// What a limit is compared with.
struct Figures<'a> {
    half: &'a Seen<'a>,
    end: &'a End,
    limit: Limit,
    share: Share,
}

impl Figures<'_> {
    fn judgment(&self) -> &Judgment {
        self.half.limits
    }

    fn rtt_ns(&self) -> u64 {
        self.judgment().rtt_mean_ns.unwrap_or(0)
    }

    fn has_queue(&self) -> bool {
        let (least, mean) = (self.judgment().rtt_min_ns.unwrap_or(0), self.rtt_ns());
        mean as f64 > (1.0 + QUEUE_SHARE) * least as f64
    }

    fn whole_ns(&self) -> u64 {
        self.judgment().limits.values().map(|share| share.ns).sum()
    }

    fn handshake_was_shorter(&self) -> bool {
        let Some(handshake) = self.end.handshake else { return false };
        let began_ns = self.judgment().spans.first().map_or(0, |span| span.from_ns);
        let packets_ns = handshake.ack_ns.saturating_sub(began_ns);
        // The last ACK still has to reach the sender, and the first data the capture point.
        self.share.ns > packets_ns + self.rtt_ns() + (self.rtt_ns() / 4).max(INTERVAL_NS)
    }

    /// Whether more than half of the time is in spans too long for slow start.
    fn grew_too_little(&self) -> bool {
        let segments = self.judgment().flight_max_bytes as f64 / f64::from(self.end.mss_bytes.max(1));
        let rtts = RTTS_PER_DOUBLING * segments.max(1.0).log2() + RTTS_AROUND;
        let rtt_ns = (2 * self.rtt_ns()).max(INTERVAL_NS).max(self.whole_ns() / INTERVALS);
        let most_ns = (rtts * rtt_ns as f64) as u64;
        let spans = self.judgment().spans.iter().filter(|span| span.limit == self.limit);
        let (all_ns, long_ns) = spans.fold((0, 0), |(all, long), span| {
            let ns = span.to_ns - span.from_ns;
            (all + ns, long + if ns > most_ns { ns } else { 0 })
        });
        2 * long_ns > all_ns
    }

    fn no_queue(&self) -> bool {
        !self.has_queue() && self.judgment().link_bytes_per_s.is_none()
    }

    fn window_had_room(&self) -> bool {
        let left_bytes = self.judgment().window_left_min_bytes;
        !self.half.window.is_known || left_bytes.map_or(true, |left| left >= self.end.mss_bytes.into())
    }

    fn window_stayed_open(&self) -> bool {
        let window = &self.half.window;
        let (least, most) = (window.window_bytes.min().unwrap_or(0), window.window_bytes.max().unwrap_or(0));
        window.closures + self.half.counts.sent.window_probes == 0 && least > most / 2
    }

    fn no_late_ack(&self) -> bool {
        let late_ns = self.half.acking.newest_ns.max().unwrap_or(0);
        let each_ns = if late_ns < DELAYED_ACK_NS { 0 } else { LATE_ACK_MAX_NS + self.rtt_ns() };
        // Intervals are given to the limit with most of them.
        self.share.ns > 2 * self.judgment().held.ns + self.half.counts.acks.advancing * each_ns
    }

    /// Whether a sender elsewhere may have sent more than arrived.
    fn is_unfinished(&self) -> bool {
        let is_away = self.end.distance_ns[0] > self.end.distance_ns[1];
        is_away
            && 2 * self.share.ns > self.whole_ns()
            && self.half.counts.sent.fin_packets == 0
            && self.end.peer_bytes == 0
    }

    /// Packets that a timer may have sent.
    fn sent_again(&self) -> u64 {
        let sent = &self.half.counts.sent;
        sent.retransmissions.total() + sent.window_probes
    }

    /// Near the receiver some may be missing: they were lost before the capture point.
    fn timers_were_shorter(&self) -> bool {
        let first_ns = TIMER_NS + 4 * self.rtt_ns();
        let timers = self.sent_again();
        let most_ns = (0..timers).take(64).fold(0u64, |sum, n| {
            sum.saturating_add(first_ns.saturating_mul(1 << n.min(32)).min(TIMER_MAX_NS))
        });
        self.end.distance_ns[0] <= self.end.distance_ns[1] && self.share.ns > most_ns
    }
}

/// Whether nothing was lost or marked on the way.
pub(super) fn is_lossless(half: &Seen<'_>, end: &End) -> bool {
    let counts = &half.counts;
    // One bit of Accurate ECN's counter is that of ECE, and a SYN-ACK agrees to ECN by it.
    let marks = match end.ecn {
        Some(Ecn::Accurate) => counts.acks.ce_reported_packets,
        _ => counts.acks.ece_packets.saturating_sub(1),
    };
    counts.sent.retransmissions.total() + marks == 0
}

/// What a limit needs, and what contradicts it otherwise.
struct Rule {
    limit: Limit,
    because: Because,
    is_broken: fn(&Figures<'_>) -> bool,
}

const fn rule(limit: Limit, because: Because, is_broken: fn(&Figures<'_>) -> bool) -> Rule {
    Rule { limit, because, is_broken }
}

/// The first broken row of a limit counts.
#[rustfmt::skip]
const RULES: [Rule; 18] = [
    rule(Limit::Handshake, Because::HandshakeWasShorter, |f| f.handshake_was_shorter()),
    rule(Limit::Handshake, Because::Unfinished, |f| f.is_unfinished()),
    rule(Limit::SlowStart, Because::GrewTooLittle, |f| f.grew_too_little()),
    rule(Limit::CongestionWindow, Because::NothingLost, |f| is_lossless(f.half, f.end)),
    rule(Limit::Policer, Because::NothingLost, |f| is_lossless(f.half, f.end)),
    rule(Limit::Link, Because::NoQueue, |f| f.no_queue()),
    rule(Limit::ReturnPath, Because::NoQueue, |f| !f.has_queue()),
    rule(Limit::ReceiveWindow, Because::WindowHadRoom, |f| f.window_had_room()),
    rule(Limit::ReceivingApplication, Because::WindowStayedOpen, |f| f.window_stayed_open()),
    rule(Limit::SendBuffer, Because::NoRtt, |f| f.judgment().rtt_mean_ns.is_none()),
    rule(Limit::SendBuffer, Because::FewRtts, |f| f.share.ns < CONSTANT_RTTS * f.rtt_ns()),
    rule(Limit::SendBuffer, Because::FewBytesInFlight, |f| f.judgment().flight_max_bytes < BUFFER_SEGMENTS * u64::from(f.end.mss_bytes)),
    rule(Limit::SendingApplication, Because::PacketsVanished, |f| f.judgment().has_vanished),
    rule(Limit::ApplicationWindow, Because::FewMessages, |f| f.half.counts.acks.piggybacked < GRANTS),
    rule(Limit::AckStall, Because::NoLateAck, |f| f.no_late_ack()),
    rule(Limit::Timeout, Because::NothingRetransmitted, |f| f.sent_again() == 0),
    rule(Limit::Timeout, Because::TimersWereShorter, |f| f.timers_were_shorter()),
    rule(Limit::Processor, Because::FarFromReceiver, |f| is_at_host(f.end.distance_ns[0]) && !is_at_host(f.end.distance_ns[1])),
];

/// Whether the rate of the slowest link cannot be right: more was transferred, or several times less
/// while it was busy.
fn is_no_link(judgment: &Judgment) -> bool {
    let Some(link) = judgment.link_bytes_per_s else { return false };
    let rate = |share: Share| share.bytes as f64 * 1e9 / share.ns.max(1) as f64;
    let add = |a: Share, b: &Share| Share { ns: a.ns + b.ns, bytes: a.bytes + b.bytes };
    let busy = judgment.limits.get(&Limit::Link).copied().unwrap_or_default();
    rate(judgment.limits.values().fold(Share::default(), add)) > PASSES * link
        || busy.ns > CONSTANT_RTTS * judgment.rtt_mean_ns.unwrap_or(0) && link > TOO_FAST * rate(busy)
}

/// Turns the time of contradicted limits into undecided time.
pub(super) fn check(half: &mut Seen<'_>, end: &End) {
    if is_no_link(half.limits) {
        half.limits.link_bytes_per_s = None;
    }
    let broken = |(&limit, &share): (&Limit, &Share)| {
        let figures = Figures { half, end, limit, share };
        let rule = RULES.iter().find(|rule| rule.limit == limit && (rule.is_broken)(&figures))?;
        Some(Refuted { limit, ns: share.ns, because: rule.because })
    };
    let refuted: Vec<_> = half.limits.limits.iter().filter_map(broken).collect();
    half.limits.refute(refuted);
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::observer::Observer;
    use crate::observers::All;
    use crate::observers::Half;
    use crate::report::Handshake;
    use std::collections::BTreeMap;

    const MSS: u64 = 1000;

    /// 10 s under one limit with an RTT of 50 ms, twice the minimum, after a handshake of 25 ms.
    /// Every need of every limit is met.
    pub fn sound(limit: Limit) -> (Half, End) {
        let handshake = Handshake { syn_ns: 0, syn_ack_ns: 25 * MS, ack_ns: 25 * MS };
        let end = End {
            time_ns: 10 * SECOND,
            first: Some(0),
            nxt: 0,
            una: 0,
            is_answered: true,
            peer_bytes: 0,
            mss_bytes: MSS as u32,
            distance_ns: [Some(MS), Some(24 * MS)],
            ecn: Some(Ecn::Classic),
            handshake: Some(handshake),
            handshake_ns: Some(25 * MS),
        };
        let mut half = All::default().finish(&end);
        let sent = &mut half.counts.sent;
        sent.retransmissions.timeout = 4;
        sent.fin_packets = 1;
        sent.recoveries.timeout = 4;
        half.counts.acks.advancing = 100;
        half.counts.acks.piggybacked = 4;
        (0..4).for_each(|_| half.acking.newest_ns.record(40 * MS));
        half.counts.sent.segments = 400;
        half.rate.idle.total_ns = 9 * SECOND;
        half.window.is_known = true;
        half.window.closures = 1;
        half.limits = Judgment {
            rtt_min_ns: Some(25 * MS),
            rtt_mean_ns: Some(50 * MS),
            flight_max_bytes: 64 * MSS,
            window_left_min_bytes: Some(0),
            link_bytes_per_s: Some(1e5),
            ..Judgment::default()
        };
        held(&mut half, limit, 10 * SECOND);
        (half, end)
    }

    /// Gives all time to a limit.
    pub fn held(half: &mut Half, limit: Limit, ns: u64) {
        half.limits.limits = BTreeMap::new();
        half.limits.spans.clear();
        half.limits.add(limit, 0, ns);
        half.limits.limits.insert(limit, Share { ns, bytes: ns / 10_000 });
    }

    type Change = fn(&mut Half, &mut End);

    /// What breaks each rule, alone.
    const BREAKS: [(Limit, Because, Change); 22] = [
        (Limit::Handshake, Because::HandshakeWasShorter, |h, _| held(h, Limit::Handshake, 88 * MS)),
        (Limit::Handshake, Because::Unfinished, |h, e| {
            h.counts.sent.fin_packets = 0;
            e.distance_ns = [Some(25 * MS), Some(MS / 10)];
        }),
        (Limit::SlowStart, Because::GrewTooLittle, |h, _| held(h, Limit::SlowStart, 2 * SECOND)),
        (Limit::CongestionWindow, Because::NothingLost, |h, _| h.counts.sent.retransmissions.timeout = 0),
        (Limit::Policer, Because::NothingLost, |h, _| h.counts.sent.retransmissions.timeout = 0),
        (Limit::Link, Because::NoQueue, |h, _| {
            h.limits.rtt_mean_ns = Some(26 * MS);
            h.limits.link_bytes_per_s = Some(79e3);
        }),
        (Limit::Link, Because::NoQueue, |h, _| {
            h.limits.rtt_mean_ns = Some(26 * MS);
            h.limits.link_bytes_per_s = None;
        }),
        (Limit::Link, Because::NoQueue, |h, _| {
            h.limits.rtt_mean_ns = Some(26 * MS);
            h.limits.link_bytes_per_s = Some(401e3);
        }),
        (Limit::ReturnPath, Because::NoQueue, |h, _| h.limits.rtt_mean_ns = Some(26 * MS)),
        (Limit::ReceiveWindow, Because::WindowHadRoom, |h, _| h.limits.window_left_min_bytes = Some(MSS)),
        (Limit::ReceiveWindow, Because::WindowHadRoom, |h, _| h.window.is_known = false),
        (Limit::ReceivingApplication, Because::WindowStayedOpen, |h, _| {
            h.window.closures = 0;
            h.window.window_bytes.record(6000);
            h.window.window_bytes.record(10_000);
        }),
        (Limit::SendBuffer, Because::NoRtt, |h, _| h.limits.rtt_mean_ns = None),
        (Limit::SendBuffer, Because::FewRtts, |h, _| held(h, Limit::SendBuffer, 199 * MS)),
        (Limit::SendBuffer, Because::FewBytesInFlight, |h, _| h.limits.flight_max_bytes = 2 * MSS - 1),
        (Limit::ApplicationWindow, Because::FewMessages, |h, _| h.counts.acks.piggybacked = 3),
        (Limit::AckStall, Because::NoLateAck, |h, _| {
            h.acking.newest_ns = Default::default();
            h.acking.newest_ns.record(24 * MS);
        }),
        (Limit::AckStall, Because::NoLateAck, |h, _| h.counts.acks.advancing = 18),
        (Limit::Timeout, Because::NothingRetransmitted, |h, _| h.counts.sent.retransmissions.timeout = 0),
        (Limit::SendingApplication, Because::PacketsVanished, |h, _| h.limits.has_vanished = true),
        (Limit::Timeout, Because::TimersWereShorter, |h, _| {
            h.counts.sent.retransmissions.timeout = 1;
            h.counts.sent.recoveries.timeout = 1;
        }),
        (Limit::Processor, Because::FarFromReceiver, |_, e| e.distance_ns = [Some(MS / 10), Some(25 * MS)]),
    ];

    #[test]
    fn a_limit_is_refuted_by_each_figure_that_contradicts_it_and_by_no_other() {
        for (limit, because, change) in BREAKS {
            let (mut half, mut end) = sound(limit);
            if matches!(limit, Limit::Handshake | Limit::SlowStart) {
                held(&mut half, limit, 70 * MS);
            }
            let before = half.limits.limits.clone();
            let mut untouched = half.clone();
            check(&mut untouched.seen(), &end);
            assert_eq!(untouched.limits.limits, before, "{limit:?} needs {because:?}");
            assert!(untouched.limits.refuted.is_empty());
            change(&mut half, &mut end);
            let given = half.limits.limits[&limit];
            check(&mut half.seen(), &end);
            assert_eq!(half.limits.refuted, [Refuted { limit, ns: given.ns, because }]);
            assert_eq!(half.limits.limits, BTreeMap::from([(Limit::Undecided, given)]));
            assert!(half.limits.spans.iter().all(|span| span.limit == Limit::Undecided));
        }
    }

    #[test]
    fn every_rule_is_broken_by_a_case_above() {
        for rule in &RULES {
            let is_tested = |&(limit, because, _): &(Limit, Because, Change)| {
                (limit, because) == (rule.limit, rule.because)
            };
            assert!(BREAKS.iter().any(|case| is_tested(case)), "{:?} {:?}", rule.limit, rule.because);
        }
    }

    #[test]
    fn a_link_of_a_wrong_rate_is_a_link_of_unknown_rate_while_a_queue_stands() {
        for (rate, kept) in [(79e3, None), (81e3, Some(81e3)), (399e3, Some(399e3)), (401e3, None)] {
            let (mut half, end) = sound(Limit::Link);
            half.limits.link_bytes_per_s = Some(rate);
            check(&mut half.seen(), &end);
            assert_eq!(half.limits.link_bytes_per_s, kept);
            assert!(half.limits.refuted.is_empty());
        }
    }

    #[test]
    fn marks_reduce_a_congestion_window_as_losses_do() {
        let is_refuted = |ecn, ece_packets, ce_reported_packets| {
            let (mut half, end) = sound(Limit::CongestionWindow);
            half.counts.sent.retransmissions = Default::default();
            half.counts.acks.ece_packets = ece_packets;
            half.counts.acks.ce_reported_packets = ce_reported_packets;
            check(&mut half.seen(), &End { ecn: Some(ecn), ..end });
            !half.limits.refuted.is_empty()
        };
        assert!(!is_refuted(Ecn::Classic, 2, 0));
        assert!(is_refuted(Ecn::Classic, 1, 0), "the SYN-ACK's");
        assert!(!is_refuted(Ecn::Accurate, 100, 1));
        assert!(is_refuted(Ecn::Accurate, 100, 0), "bits of the counter");
    }

    #[test]
    fn what_remains_keeps_its_time_and_its_order() {
        let (mut half, end) = sound(Limit::Link);
        half.limits = Judgment { rtt_mean_ns: Some(26 * MS), rtt_min_ns: Some(25 * MS), ..half.limits };
        half.limits.limits.clear();
        half.limits.spans.clear();
        half.limits.add(Limit::Timeout, 0, SECOND);
        half.limits.add(Limit::ReturnPath, SECOND, 2 * SECOND);
        half.limits.add(Limit::Undecided, 2 * SECOND, 3 * SECOND);
        half.limits.add(Limit::Timeout, 3 * SECOND, 4 * SECOND);
        check(&mut half.seen(), &end);
        let spans: Vec<_> =
            half.limits.spans.iter().map(|s| (s.from_ns / SECOND, s.to_ns / SECOND, s.limit)).collect();
        assert_eq!(spans, [(0, 1, Limit::Timeout), (1, 3, Limit::Undecided), (3, 4, Limit::Timeout)]);
        assert_eq!(half.limits.limits[&Limit::Undecided].ns, 2 * SECOND);
    }
}
