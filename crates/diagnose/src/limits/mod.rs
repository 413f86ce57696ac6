// SPDX-License-Identifier: MIT
//! Limits of a transfer over time.
//!
//! | file | question |
//! |---|---|
//! | `wait.rs` | what did the sender wait for before it sent this packet? |
//! | `interval.rs` | sums of waits, bytes, RTTs and losses over about one RTT |
//! | `intervals.rs` | all intervals of a transfer, bounded in number |
//! | `packed.rs` | the same in less memory, until the transfer is over |
//! | `window.rs` | a sender that waits for ACKs: which window, or whose rate, is it that binds? |
//! | `writes.rs` | do ACKs set the times of the sender's bursts, or its application? |
//! | `answer.rs` | was the capture taken at the receiver? |
//! | `link.rs` | how fast is the slowest link? |
//! | `path_mtu.rs` | are packets above some size lost? |
//! | `policer.rs` | do the losses follow from a token bucket? |
//! | `judge.rs` | one limit for all time, and its share |
//! | `check.rs` | do the other figures contradict a limit? |
//! | `confidence.rs` | how sure is the largest limit? |
//! | `limit.rs`, `judgment.rs` | the limits, and the result |
//!
//! A wait is visible at one packet, but not which window caused it: a congestion window, a send
//! buffer and a full link look alike in a single gap, and differ in the development of flight, RTT
//! and losses.

mod answer;
mod check;
mod confidence;
mod interval;
mod intervals;
mod judge;
mod judgment;
mod limit;
mod link;
mod packed;
mod path_mtu;
mod policer;
mod review;
mod seen;
mod wait;
mod window;
mod writes;

use crate::observer::{End, Observer};
use crate::step::{Cause, DataKind, Step};
use answer::Bursts;
use intervals::Intervals;
use link::Link as LinkRate;
use path_mtu::Sizes;
use policer::Losses;
use wait::Waits;

pub use judgment::{Judgment, Share, Span};
pub use limit::Limit;
pub use path_mtu::{MtuSign, PathMtu, Told};
pub use review::{Because, Confidence, Doubt, Evidence, Refuted, Rival};
pub(crate) use seen::Seen;
pub use wait::{Answers, Blocks, Stall};

/// FASTER: multiple of the policer's rate; PASSED: share of packets above it.
const FASTER: f64 = 1.5;
const PASSED: f64 = 0.03;

/// Observer of one half: the limits of one endpoint's data.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    waits: Waits,
    intervals: Intervals,
    link: LinkRate,
    losses: Losses,
    bursts: Bursts,
    sizes: Sizes,
}

impl Observer for Limits {
    type Report = Judgment;
    const READS_QUEUES: bool = true;

    fn sent(&mut self, step: &Step) {
        let waited = self.waits.sent(step);
        self.intervals.sent(step, waited);
        self.link.sent(step);
        self.bursts.sent(step);
        self.sizes.sent(step);
        // A probe of the tail does not count as a loss yet.
        let is_loss = matches!(step.data.kind, DataKind::Retransmission(Cause::Fast | Cause::Timeout));
        if step.data.begins_recovery && is_loss {
            let before_ns = step.time_ns.saturating_sub(step.rtt_ns().unwrap_or(0));
            self.losses.add(step.data.lost_ns.unwrap_or(before_ns), step.data.start);
        }
    }

    fn acked(&mut self, step: &Step) {
        self.intervals.came(step);
        if let Some(ack) = &step.ack {
            self.waits.acked(step, ack);
            self.intervals.acked(step, ack);
            self.link.acked(step);
            self.bursts.acked(step, ack);
            self.sizes.acked(step, ack);
        }
    }

    fn finish(mut self, end: &End) -> Judgment {
        let mut hidden_ns = self.waits.settle();
        hidden_ns.extend(self.sizes.silence_ns());
        let near_receiver = end.distance_ns[1] < end.distance_ns[0];
        let intervals = self.intervals.finish();
        // After a link, nothing is faster than its rate; after a policer, each burst is.
        let is_passed = |rate: &f64| {
            self.link.share_above(FASTER * rate) > PASSED || intervals.fastest_bytes_per_s() > FASTER * rate
        };
        let policed_bytes_per_s = self.losses.rate(end.mss_bytes).filter(is_passed);
        let link = self.link.slowest(near_receiver);
        let at_receiver = |queued_bytes_per_s| self.bursts.is_at_receiver(end, queued_bytes_per_s);
        let mut judgment = judge::judge(
            &intervals,
            &self.waits,
            link,
            policed_bytes_per_s,
            &hidden_ns,
            end.handshake.is_some(),
            at_receiver,
        );
        judgment.path_mtu = self.sizes.black_hole();
        judgment.has_vanished = self.sizes.vanished;
        judgment.stuck_bytes = self.sizes.stuck_bytes();
        // The first packet after that silence is one.
        judgment.unseen_timers = self.waits.unseen.timers + u64::from(self.sizes.silence_ns().is_some());
        judgment.unseen_bytes = self.waits.unseen.bytes;
        // Without ACKs, nothing shows what a sender waited for.
        if end.is_answered {
            judgment
        } else {
            judgment.undecided()
        }
    }
}

/// Compares the judgment of a half with its other figures, and says how sure it is.
pub(crate) fn review(half: &mut Seen<'_>, end: &End) {
    check::check(half, end);
    confidence::weigh(half, end);
    half.limits.lose(half.counts.whole_bytes());
}
