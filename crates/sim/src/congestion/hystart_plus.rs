// SPDX-License-Identifier: MIT
//! HyStart++ (RFC 9406): when the RTT grows, slow start becomes conservative, and ends some rounds
//! later unless the RTT falls again. Applies to the first slow start of a connection (4.3); later
//! ones end at a known window.

use super::controller::{AckSample, Window};

// RFC 9406, 4.2 and 4.3: growth of a round's minimum RTT that shows a queue, as a fraction of the
// previous round's, within these bounds.
const MIN_RTT_THRESH_NS: u64 = 4_000_000;
const MAX_RTT_THRESH_NS: u64 = 16_000_000;
const MIN_RTT_DIVISOR: u64 = 8;
/// Number of a round's RTTs before its minimum counts.
const N_RTT_SAMPLE: u32 = 8;
/// In conservative slow start the window grows by this fraction of the normal growth, ...
const CSS_GROWTH_DIVISOR: u64 = 4;
/// ... for this many rounds, including the one in which it began.
const CSS_ROUNDS: u32 = 5;
/// L: maximum growth in segments per ACK, unless the sender paces.
const L: u64 = 8;

/// State of conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// Minimum RTT of the round in which it began: a smaller one shows that no queue stands.
    baseline_ns: u64,
    rounds: u32,
}

/// State of one connection in its first slow start.
#[derive(Clone, Debug)]
pub struct HyStartPlus {
    is_paced: bool,
    conservative: Option<Conservative>,
    /// SND.NXT at the start of the round; None: no ACK has arrived.
    round_end: Option<u64>,
    /// Minimum RTTs of the previous and the current round; u64::MAX: none.
    last_shortest_ns: u64,
    shortest_ns: u64,
    samples: u32,
}

impl HyStartPlus {
    pub fn new(is_paced: bool) -> Self {
        HyStartPlus {
            is_paced,
            conservative: None,
            round_end: None,
            last_shortest_ns: u64::MAX,
            shortest_ns: u64::MAX,
            samples: 0,
        }
    }

    /// Bytes by which the window may grow for this ACK.
    pub fn growth(&self, ack: &AckSample) -> u64 {
        let most = if self.is_paced { u64::MAX } else { L * ack.mss };
        ack.acked_bytes.min(most) / if self.conservative.is_some() { CSS_GROWTH_DIVISOR } else { 1 }
    }

    /// Processes an ACK, after the window has grown for it.
    pub fn on_ack(&mut self, ack: &AckSample, window: &mut Window) {
        if let Some(rtt_ns) = ack.newest_rtt_ns {
            self.shortest_ns = self.shortest_ns.min(rtt_ns);
            self.samples += 1;
        }
        if self.samples >= N_RTT_SAMPLE {
            self.judge_rtt();
        }
        if ack.una >= *self.round_end.get_or_insert(ack.nxt) {
            self.end_round(ack.nxt, window);
        }
    }

    /// RFC 9406, 4.2: whether a queue stands, or stands no more.
    // [RFC 9406, 4.2]
    fn judge_rtt(&mut self) {
        match self.conservative {
            None if self.last_shortest_ns < u64::MAX => {
                let queue_ns =
                    (self.last_shortest_ns / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH_NS, MAX_RTT_THRESH_NS);
                if self.shortest_ns >= self.last_shortest_ns + queue_ns {
                    self.conservative = Some(Conservative { baseline_ns: self.shortest_ns, rounds: 0 });
                }
            }
            Some(Conservative { baseline_ns, .. }) if self.shortest_ns < baseline_ns => {
                self.conservative = None;
            }
            _ => {}
        }
    }

    fn end_round(&mut self, nxt: u64, window: &mut Window) {
        if let Some(conservative) = &mut self.conservative {
            conservative.rounds += 1;
            if conservative.rounds == CSS_ROUNDS {
                window.ssthresh = window.cwnd;
            }
        }
        self.round_end = Some(nxt);
        self.last_shortest_ns = self.shortest_ns;
        self.shortest_ns = u64::MAX;
        self.samples = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const US: u64 = 1_000;
    const MSS: u64 = 1_000;

    /// Segments in a round; the last ones are acknowledged one by one.
    const ROUND: u64 = 1000;

    struct Flow {
        plus: HyStartPlus,
        window: Window,
        una: u64,
    }

    impl Flow {
        fn new() -> Self {
            let window = Window { cwnd: 10 * MSS, ssthresh: u64::MAX };
            Flow { plus: HyStartPlus::new(false), window, una: 0 }
        }

        fn sample(&self, rtt_ns: Option<u64>) -> AckSample {
            AckSample {
                mss: MSS,
                acked_bytes: MSS,
                newest_rtt_ns: rtt_ns,
                una: self.una,
                nxt: (self.una / MSS / ROUND + 1) * ROUND * MSS,
                ..AckSample::default()
            }
        }

        fn ack(&mut self, rtt_ns: u64) {
            self.una += MSS;
            let sample = self.sample(Some(rtt_ns));
            self.plus.on_ack(&sample, &mut self.window);
        }

        /// A round of this many ACKs with this RTT; returns the window's growth for one ACK after
        /// each.
        fn round(&mut self, acks: u64, rtt_ns: u64) -> Vec<u64> {
            self.una = (self.una / MSS / ROUND + 1) * ROUND * MSS - acks * MSS;
            (0..acks)
                .map(|_| {
                    self.ack(rtt_ns);
                    self.plus.growth(&self.sample(None))
                })
                .collect()
        }

        fn is_over(&self) -> bool {
            self.window.ssthresh < u64::MAX
        }
    }

    /// The first ACK with which the window grows by a quarter, after a round with another RTT.
    fn conservative_from(last_ns: u64, rtt_ns: u64) -> Option<usize> {
        let mut flow = Flow::new();
        flow.round(2, last_ns);
        flow.round(20, rtt_ns).iter().position(|&bytes| bytes == MSS / 4).map(|at| at + 1)
    }

    #[test]
    // [RFC 9406, 4.2]
    fn the_eighth_rtt_of_a_round_shows_a_queue_of_an_eighth() {
        // RttThresh = max(4 ms, min(lastRoundMinRTT / 8, 16 ms)); currentRoundMinRTT >= lastRoundMinRTT + it.
        for (last_us, least_us) in [
            (80_000, 90_000),
            // An eighth would be 1 ms, and 50 ms.
            (8_000, 12_000),
            (400_000, 416_000),
            (32_000, 36_000),
            (128_000, 144_000),
        ] {
            assert_eq!(conservative_from(last_us * US, least_us * US), Some(8), "{last_us}");
            assert_eq!(conservative_from(last_us * US, least_us * US - 1), None, "{last_us}");
        }
    }

    #[test]
    fn the_shortest_rtt_of_a_round_counts_and_only_rounds_with_rtts() {
        let mut flow = Flow::new();
        flow.round(2, 80 * MS);
        flow.ack(85 * MS);
        assert_eq!(flow.round(20, 150 * MS), [MSS; 20]);
        // The previous round had 85 ms: 95.625 ms show a queue.
        assert_eq!(flow.round(20, 95_624 * US), [MSS; 20]);
        // lastRoundMinRTT is infinite in the first round.
        assert_eq!(Flow::new().round(20, 80 * MS), [MSS; 20]);
    }

    #[test]
    // [RFC 9406, 4.2]
    fn after_five_rounds_congestion_avoidance_begins() {
        // The round in which the RTT grew is the first of the five.
        let mut flow = Flow::new();
        flow.round(10, 80 * MS);
        flow.round(10, 90 * MS);
        for _ in 0..3 {
            assert_eq!(flow.round(10, 90 * MS), [MSS / 4; 10]);
            assert!(!flow.is_over());
        }
        flow.window.cwnd = 55 * MSS;
        flow.round(10, 500 * MS);
        assert_eq!(flow.window.ssthresh, 55 * MSS);
    }

    #[test]
    // [RFC 9406, 4.2]
    fn a_shorter_rtt_resumes_slow_start() {
        // Below the baseline of 90 ms by 1 ns, seen with the eighth RTT of a round; the queue is
        // found again in the next round, by an eighth more.
        let mut flow = Flow::new();
        flow.round(10, 80 * MS);
        flow.round(10, 90 * MS);
        let growth = flow.round(10, 90 * MS - 1);
        assert_eq!(growth[6..8], [MSS / 4, MSS]);
        let growth = flow.round(10, 102 * MS);
        assert_eq!(growth[6..8], [MSS, MSS / 4]);
        // Five rounds from there on.
        for _ in 0..3 {
            flow.round(10, 102 * MS);
            assert!(!flow.is_over());
        }
        flow.round(10, 102 * MS);
        assert!(flow.is_over());
    }

    #[test]
    fn an_ack_opens_the_window_by_eight_segments_at_most_unless_paced() {
        for (acked, is_paced, bytes) in [(8, false, 8), (9, false, 8), (100, false, 8), (100, true, 100)] {
            let sample = AckSample { mss: MSS, acked_bytes: acked * MSS, ..AckSample::default() };
            assert_eq!(HyStartPlus::new(is_paced).growth(&sample), bytes * MSS);
        }
        // In conservative slow start a quarter of that: two segments out of 100.
        let mut flow = Flow::new();
        flow.round(10, 80 * MS);
        flow.round(10, 90 * MS);
        let sample = AckSample { acked_bytes: 100 * MSS, ..flow.sample(None) };
        assert_eq!(flow.plus.growth(&sample), 2 * MSS);
    }

    #[test]
    fn acks_that_measure_nothing_are_no_samples() {
        let mut flow = Flow::new();
        flow.round(2, 80 * MS);
        for _ in 0..20 {
            flow.una += MSS;
            let sample = flow.sample(None);
            flow.plus.on_ack(&sample, &mut flow.window);
        }
        flow.plus.shortest_ns = 100 * MS;
        flow.ack(100 * MS);
        assert!(flow.plus.conservative.is_none());
    }
}
