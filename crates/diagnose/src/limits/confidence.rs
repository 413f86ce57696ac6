// SPDX-License-Identifier: MIT
//! How sure the verdict on a transfer is: its largest limit, after [`super::check`].
//!
//! It is sure if nothing speaks against it: no row of [`DOUBTS`] and none of [`RIVALS`].

use super::check::{is_lossless, BUFFER_SEGMENTS};
use super::judgment::{Judgment, Share};
use super::limit::Limit;
use super::review::{Confidence, Doubt, Evidence, Rival};
use super::seen::Seen;
use super::wait::DELAYED_ACK_NS;
use crate::distance::is_at_host;
use crate::observer::End;

/// Minimum share of the time, and maximum share that the next limit may have of it.
const MOST: f64 = 0.5;
const NEXT: f64 = 0.5;
/// Minimum time in RTTs, in all and between changes of the limit.
const RTTS: u64 = 10;
const SPAN_RTTS: u64 = 3;
/// Minimum number of losses, timers or late ACKs.
const EVENTS: u64 = 3;
/// Maximum share of segments that the capture lost.
const LOST: f64 = 0.002;
/// Share by which a standing queue lengthens the mean RTT.
const QUEUE: f64 = 0.2;
/// Maximum ratio of a transfer's highest rate over several RTTs to that through its link. It is 1.4 where
/// the link is shared.
const EVEN: f64 = 1.5;
/// Minimum number of losses of a policer (see `policer.rs`).
const POLICED: u64 = 12;
/// Minimum share of an application's time in pauses with nothing in flight.
const PAUSES: f64 = 0.8;

/// The verdict and the figures around it.
struct Verdict<'a> {
    half: &'a Seen<'a>,
    end: &'a End,
    limit: Limit,
    share: Share,
}

impl Verdict<'_> {
    fn judgment(&self) -> &Judgment {
        self.half.limits
    }

    fn rtt_ns(&self) -> u64 {
        self.judgment().rtt_mean_ns.unwrap_or(0)
    }

    fn queue_share(&self) -> f64 {
        let least = self.judgment().rtt_min_ns.unwrap_or(0).max(1);
        self.rtt_ns() as f64 / least as f64 - 1.0
    }

    fn is_at_sender(&self) -> bool {
        is_at_host(self.end.distance_ns[0]) || self.end.distance_ns[0] < self.end.distance_ns[1]
    }

    /// Whether packets were lost before the capture point, however near it is to the sender.
    fn has_lost_before(&self) -> bool {
        self.half.counts.sent.unseen_retransmissions > 0
    }

    fn is_at_receiver(&self) -> bool {
        is_at_host(self.end.distance_ns[1])
    }

    fn another_is_close(&self) -> bool {
        let limits = &self.judgment().limits;
        let whole_ns: u64 = limits.values().map(|share| share.ns).sum();
        let others = limits.iter().filter(|(&limit, _)| limit != self.limit);
        let next_ns = others.map(|(_, share)| share.ns).max().unwrap_or(0);
        (self.share.ns as f64) < MOST * whole_ns as f64 || next_ns as f64 > NEXT * self.share.ns as f64
    }

    fn changes_often(&self) -> bool {
        let spans = self.judgment().spans.iter().filter(|span| span.limit == self.limit).count();
        self.share.ns < SPAN_RTTS * self.rtt_ns() * spans as u64
    }

    fn events(&self) -> u64 {
        let sent = &self.half.counts.sent;
        match self.limit {
            Limit::CongestionWindow | Limit::Policer => sent.recoveries.total(),
            Limit::Timeout => sent.retransmissions.total() + sent.window_probes,
            Limit::AckStall => self.late_acks() + self.judgment().held.waits,
            _ => u64::MAX,
        }
    }

    fn late_acks(&self) -> u64 {
        let buckets = self.half.acking.newest_ns.buckets();
        buckets.filter(|&(upper, _)| upper >= DELAYED_ACK_NS).map(|(_, count)| u64::from(count)).sum()
    }

    fn fills_a_buffer(&self) -> bool {
        self.judgment().flight_max_bytes >= BUFFER_SEGMENTS * u64::from(self.end.mss_bytes)
    }

    fn few_pauses(&self) -> bool {
        let Judgment { answers, blocks, .. } = self.judgment();
        let paused_ns = self.half.rate.idle.total_ns + answers.ns + blocks.ns;
        (paused_ns as f64) < PAUSES * self.share.ns as f64
    }

    /// Whether more passed for a while than a link that is always busy would carry.
    fn is_uneven(&self) -> bool {
        let bytes_per_s = self.share.bytes as f64 * 1e9 / self.share.ns.max(1) as f64;
        self.judgment().sustained_bytes_per_s > EVEN * bytes_per_s
    }

    fn is_unfinished(&self) -> bool {
        self.half.counts.sent.fin_packets == 0 && self.end.peer_bytes == 0
    }

    /// Whether silences may be those of timers: of packets lost before the capture point, or after the
    /// last that arrived.
    fn may_hide_timers(&self) -> bool {
        let sent = &self.half.counts.sent;
        let silent_ns =
            self.end.time_ns.saturating_sub(self.half.rate.last_data_ns.unwrap_or(self.end.time_ns));
        let ends_in_silence = sent.fin_packets == 0 && 2 * silent_ns > self.share.ns;
        sent.retransmissions.total() > 0 && (!self.is_at_sender() || self.has_lost_before())
            || ends_in_silence && !self.is_at_sender()
    }

    /// Whether the stalls were no delayed ACKs, but RTTs.
    fn waits_for_prompt_acks(&self) -> bool {
        2 * self.judgment().held.ns > self.share.ns
    }

    fn lost_packets(&self) -> bool {
        let counts = &self.half.counts;
        counts.acks.missed_segments as f64 > LOST * counts.sent.segments as f64
    }
}

/// Limits that hold for many RTTs or not at all.
const STEADY: &[Limit] = &[
    Limit::CongestionWindow,
    Limit::Link,
    Limit::Policer,
    Limit::ReceiveWindow,
    Limit::ReceivingApplication,
    Limit::SendBuffer,
    Limit::ApplicationWindow,
    Limit::ReturnPath,
    Limit::Processor,
];
/// Limits that rest on options of the handshake, or on the RTT of an empty path.
const FROM_START: &[Limit] = &[
    Limit::Handshake,
    Limit::SlowStart,
    Limit::CongestionWindow,
    Limit::Link,
    Limit::ReceiveWindow,
    Limit::SendBuffer,
    Limit::ReturnPath,
    Limit::Processor,
];
const EVENTFUL: &[Limit] = &[Limit::CongestionWindow, Limit::Policer, Limit::Timeout, Limit::AckStall];
const QUEUED: &[Limit] = &[Limit::Link, Limit::ReturnPath, Limit::Processor];

/// Which limits a doubt concerns (none named: all), and when.
struct Row<T> {
    limits: &'static [Limit],
    is: T,
    holds: fn(&Verdict<'_>) -> bool,
}

const fn row<T>(limits: &'static [Limit], is: T, holds: fn(&Verdict<'_>) -> bool) -> Row<T> {
    Row { limits, is, holds }
}

impl<T: Copy> Row<T> {
    fn of(rows: &[Self], verdict: &Verdict<'_>) -> Vec<T> {
        let concerns = |row: &&Self| row.limits.is_empty() || row.limits.contains(&verdict.limit);
        rows.iter().filter(concerns).filter(|row| (row.holds)(verdict)).map(|row| row.is).collect()
    }
}

#[rustfmt::skip]
const DOUBTS: [Row<Doubt>; 10] = [
    row(&[], Doubt::AnotherIsClose, |v| v.another_is_close()),
    row(&[], Doubt::LostPackets, |v| v.lost_packets()),
    row(STEADY, Doubt::FewRtts, |v| v.share.ns < RTTS * v.rtt_ns()),
    row(STEADY, Doubt::ChangesOften, |v| v.changes_often()),
    row(EVENTFUL, Doubt::FewEvents, |v| v.events() < EVENTS),
    row(FROM_START, Doubt::NoHandshake, |v| v.end.handshake.is_none()),
    row(&[Limit::SendingApplication], Doubt::FewPauses, |v| v.few_pauses()),
    row(&[Limit::Handshake, Limit::SlowStart], Doubt::Unfinished, |v| v.is_unfinished()),
    row(&[Limit::Link], Doubt::UnevenRate, |v| v.is_uneven()),
    row(QUEUED, Doubt::NoQueue, |v| v.queue_share() < QUEUE),
];

const fn rival(limit: Limit, told_by: Evidence) -> Rival {
    Rival { limit, told_by }
}

#[rustfmt::skip]
const RIVALS: [Row<Rival>; 12] = [
    row(&[Limit::Link], rival(Limit::SendingApplication, Evidence::CountersAtSender), |v| v.queue_share() < QUEUE),
    row(&[Limit::Link], rival(Limit::Processor, Evidence::CaptureAtReceiver), |v| !v.is_at_receiver()),
    row(&[Limit::Link], rival(Limit::Processor, Evidence::CaptureFromStart), |v| v.is_at_receiver() && v.end.handshake.is_none()),
    row(&[Limit::Link], rival(Limit::ReturnPath, Evidence::CaptureAtSender), |v| v.is_uneven() && !v.is_at_sender()),
    row(&[Limit::SendBuffer], rival(Limit::SendingApplication, Evidence::CountersAtSender), |_| true),
    row(&[Limit::SendBuffer], rival(Limit::CongestionWindow, Evidence::CountersAtSender), |v| !is_lossless(v.half, v.end)),
    row(&[Limit::CongestionWindow], rival(Limit::Policer, Evidence::SlowerSender), |v| v.half.counts.sent.retransmissions.total() >= POLICED && v.queue_share() < QUEUE),
    row(&[Limit::Policer], rival(Limit::CongestionWindow, Evidence::CaptureAtSender), |v| !v.is_at_sender()),
    row(&[Limit::Timeout], rival(Limit::SendingApplication, Evidence::CaptureAtSender), |v| !v.is_at_sender() || v.has_lost_before()),
    row(&[Limit::SendingApplication], rival(Limit::SendBuffer, Evidence::CountersAtSender), |v| v.few_pauses() && v.fills_a_buffer()),
    row(&[Limit::AckStall], rival(Limit::SendingApplication, Evidence::CountersAtSender), |v| v.waits_for_prompt_acks()),
    row(&[Limit::SendingApplication], rival(Limit::Timeout, Evidence::CaptureAtSender), |v| v.may_hide_timers()),
];

/// Says how sure the verdict is, and what would make it surer.
pub(super) fn weigh(half: &mut Seen<'_>, end: &End) {
    let Some((limit, share)) = half.limits.largest() else { return };
    let verdict = Verdict { half, end, limit, share };
    let (doubts, rivals) = match limit {
        Limit::Undecided => (Vec::new(), Vec::new()),
        _ => (Row::of(&DOUBTS, &verdict), Row::of(&RIVALS, &verdict)),
    };
    let confidence = match limit {
        Limit::Undecided => Confidence::Undecided,
        _ if doubts.is_empty() && rivals.is_empty() => Confidence::Sure,
        _ => Confidence::Likely,
    };
    half.limits.confidence = confidence;
    half.limits.doubts = doubts;
    half.limits.rivals = rivals;
}

#[cfg(test)]
mod tests {
    use super::super::check::tests::{held, sound};
    use super::super::check::{MS, SECOND};
    use super::*;
    use crate::observers::Half;

    /// The verdict's confidence, doubts and rivals after a change.
    fn weighed(
        limit: Limit,
        change: impl FnOnce(&mut Half, &mut End),
    ) -> (Confidence, Vec<Doubt>, Vec<Limit>) {
        let (mut half, mut end) = sound(limit);
        change(&mut half, &mut end);
        weigh(&mut half.seen(), &end);
        let Judgment { confidence, doubts, rivals, .. } = half.limits;
        (confidence, doubts, rivals.into_iter().map(|rival| rival.limit).collect())
    }

    type Change = fn(&mut Half, &mut End);

    const RAISES: [(Limit, Doubt, Change); 12] = [
        (Limit::Timeout, Doubt::AnotherIsClose, |h, _| h.limits.add(Limit::ReturnPath, 0, 6 * SECOND)),
        (Limit::Timeout, Doubt::LostPackets, |h, _| h.counts.acks.missed_segments = 1),
        (Limit::ReceiveWindow, Doubt::FewRtts, |h, _| held(h, Limit::ReceiveWindow, 499 * MS)),
        (Limit::ReceiveWindow, Doubt::ChangesOften, |h, _| {
            for n in 0..70 {
                h.limits.add(Limit::Timeout, n, n + 1);
                h.limits.add(Limit::ReceiveWindow, n, n + 1);
            }
            h.limits.limits.retain(|&limit, _| limit == Limit::ReceiveWindow);
        }),
        (Limit::Timeout, Doubt::FewEvents, |h, _| h.counts.sent.retransmissions.timeout = 2),
        (Limit::AckStall, Doubt::FewEvents, |h, _| {
            h.acking.newest_ns = Default::default();
            (0..100).for_each(|n| h.acking.newest_ns.record(if n < 2 { 40 * MS } else { MS }));
        }),
        (Limit::ReceiveWindow, Doubt::NoHandshake, |_, e| e.handshake = None),
        (Limit::SendingApplication, Doubt::FewPauses, |h, _| h.rate.idle.total_ns = 7 * SECOND),
        (Limit::ReturnPath, Doubt::NoQueue, |h, _| h.limits.rtt_mean_ns = Some(29 * MS)),
        (Limit::Handshake, Doubt::Unfinished, |h, _| h.counts.sent.fin_packets = 0),
        (Limit::SlowStart, Doubt::Unfinished, |h, _| h.counts.sent.fin_packets = 0),
        (Limit::Link, Doubt::UnevenRate, |h, _| h.limits.sustained_bytes_per_s = 160e3),
    ];

    #[test]
    fn a_verdict_is_sure_until_one_figure_speaks_against_it() {
        for (limit, doubt, change) in RAISES {
            let (_, doubts, rivals) = weighed(limit, |_, _| ());
            assert!(doubts.is_empty() && (rivals.is_empty() || limit == Limit::Link), "{limit:?}");
            let (confidence, doubts, _) = weighed(limit, change);
            assert_eq!((confidence, doubts), (Confidence::Likely, vec![doubt]));
        }
        let has_case = |row: &Row<Doubt>| RAISES.iter().any(|(_, doubt, _)| *doubt == row.is);
        assert!(DOUBTS.iter().all(has_case));
    }

    #[test]
    fn what_looks_the_same_from_here_is_named() {
        let rivals = |limit, change: Change| weighed(limit, change).2;
        const AT_RECEIVER: Change = |_, e| e.distance_ns = [Some(24 * MS), Some(MS / 10)];
        assert_eq!(rivals(Limit::Link, |_, _| ()), [Limit::Processor]);
        assert_eq!(rivals(Limit::Link, AT_RECEIVER), []);
        assert_eq!(
            rivals(Limit::Link, |_, e| {
                e.distance_ns = [Some(24 * MS), Some(MS / 10)];
                e.handshake = None;
            }),
            [Limit::Processor]
        );
        assert_eq!(
            rivals(Limit::Link, |h, _| h.limits.rtt_mean_ns = Some(26 * MS)),
            [Limit::SendingApplication, Limit::Processor]
        );
        assert_eq!(
            rivals(Limit::Link, |h, e| {
                AT_RECEIVER(h, e);
                h.limits.sustained_bytes_per_s = 160e3;
            }),
            [Limit::ReturnPath]
        );
        assert_eq!(rivals(Limit::AckStall, |_, _| ()), []);
        let prompt: Change = |h, _| h.limits.held.ns = 6 * SECOND;
        assert_eq!(rivals(Limit::AckStall, prompt), [Limit::SendingApplication]);
        const SILENT: Change = |h, e| {
            AT_RECEIVER(h, e);
            h.counts.sent.retransmissions = Default::default();
            h.counts.sent.fin_packets = 0;
            h.rate.last_data_ns = Some(4 * SECOND);
        };
        assert_eq!(rivals(Limit::SendingApplication, SILENT), [Limit::Timeout]);
        assert_eq!(
            rivals(Limit::SendingApplication, |h, e| {
                SILENT(h, e);
                h.counts.sent.fin_packets = 1;
            }),
            []
        );
        assert_eq!(
            rivals(Limit::SendBuffer, |h, _| h.counts.sent.retransmissions = Default::default()),
            [Limit::SendingApplication]
        );
        assert_eq!(
            rivals(Limit::SendBuffer, |_, _| ()),
            [Limit::SendingApplication, Limit::CongestionWindow]
        );
        let lossy: Change = |h, _| {
            h.limits.rtt_mean_ns = Some(29 * MS);
            h.counts.sent.retransmissions.fast = 8;
        };
        assert_eq!(
            rivals(Limit::SendingApplication, |h, _| h.rate.idle.total_ns = 7 * SECOND),
            [Limit::SendBuffer]
        );
        let asks: Change = |h, _| h.limits.answers.ns = SECOND;
        assert_eq!(weighed(Limit::SendingApplication, asks), (Confidence::Sure, vec![], vec![]));
        let small: Change = |h, _| {
            h.rate.idle.total_ns = SECOND;
            h.limits.flight_max_bytes = 1999;
        };
        assert_eq!(rivals(Limit::SendingApplication, small), []);
        assert_eq!(rivals(Limit::CongestionWindow, |_, _| ()), []);
        assert_eq!(rivals(Limit::CongestionWindow, lossy), [Limit::Policer]);
        for (limit, rival) in [
            (Limit::Policer, Limit::CongestionWindow),
            (Limit::Timeout, Limit::SendingApplication),
            (Limit::SendingApplication, Limit::Timeout),
        ] {
            assert_eq!(rivals(limit, |_, _| ()), []);
            assert_eq!(rivals(limit, AT_RECEIVER), [rival]);
        }
    }

    #[test]
    fn nothing_is_sure_of_what_is_undecided() {
        let undecided: Change = |h, _| held(h, Limit::Undecided, SECOND);
        assert_eq!(weighed(Limit::Link, undecided), (Confidence::Undecided, vec![], vec![]));
        let at_once: Change = |h, _| h.limits.limits = [(Limit::SlowStart, Share::default())].into();
        assert_eq!(weighed(Limit::Link, at_once), (Confidence::Undecided, vec![], vec![]));
    }
}
