// SPDX-License-Identifier: MIT
//! HyStart as in Linux 6.12 (net/ipv4/tcp_cubic.c): slow start ends before the queue overflows.
//!
//! A round lasts until everything outstanding at its start is acknowledged. Slow start ends in a
//! round in which closely spaced ACKs last for half of the minimum RTT (the train: the window fills
//! half of the path), or in which the RTT no longer falls to its minimum (the delay: a queue
//! stands).

use super::controller::{AckSample, Window};

/// hystart_low_window: slow start continues below this many segments.
const LOW_WINDOW_SEGMENTS: u64 = 16;
/// hystart_ack_delta_us: ACKs further apart end the train of the round.
const TRAIN_GAP_NS: u64 = 2_000_000;
/// HYSTART_MIN_SAMPLES: number of a round's RTTs before its minimum counts.
const MIN_SAMPLES: u32 = 8;
/// HYSTART_DELAY_THRESH: an RTT an eighth above the minimum shows a queue, within these bounds.
const DELAY_SHARE: u64 = 8;
const DELAY_LEAST_NS: u64 = 4_000_000;
const DELAY_MOST_NS: u64 = 16_000_000;
/// hystart_ack_delay: the delay from merging segments, four bursts of TCP segmentation offload, ...
const MERGED_BYTES: f64 = 4.0 * 65536.0;
/// ... at most.
const MERGING_MOST_NS: f64 = 1_000_000.0;

/// State of one connection in slow start.
#[derive(Clone, Debug)]
pub struct HyStart {
    /// Whether it ends slow start; if not, it only tracks the minimum RTT.
    is_on: bool,
    is_paced: bool,
    /// Whether the end of slow start was found; reset by a timeout.
    found: bool,
    /// Minimum RTT of the connection; u64::MAX: none was measured.
    shortest_ns: u64,
    /// SND.NXT at the start of the round.
    round_end: u64,
    round_start_ns: u64,
    /// Time of the newest ACK of the round's train.
    train_ns: u64,
    round_shortest_ns: u64,
    round_samples: u32,
}

impl HyStart {
    pub fn new(is_on: bool, is_paced: bool) -> Self {
        HyStart {
            is_on,
            is_paced,
            found: false,
            shortest_ns: u64::MAX,
            round_end: 0,
            round_start_ns: 0,
            train_ns: 0,
            round_shortest_ns: u64::MAX,
            round_samples: 0,
        }
    }

    /// Minimum RTT, if one was measured.
    pub fn shortest_ns(&self) -> Option<u64> {
        (self.shortest_ns < u64::MAX).then_some(self.shortest_ns)
    }

    /// Starts anew after a timeout; the round ends with the outstanding data.
    pub fn restart(&mut self, nxt: u64) {
        *self = HyStart { round_end: nxt, ..HyStart::new(self.is_on, self.is_paced) };
    }

    /// cubictcp_acked() and hystart_update(): evaluates the newest segment's RTT and the time of
    /// this ACK.
    pub fn on_rtt(&mut self, ack: &AckSample, window: &mut Window) {
        let Some(rtt_ns) = ack.newest_rtt_ns else { return };
        self.shortest_ns = self.shortest_ns.min(rtt_ns);
        if !self.is_on || self.found || !window.in_slow_start() {
            return;
        }
        if ack.una > self.round_end {
            self.start_round(ack);
        }
        if window.cwnd < LOW_WINDOW_SEGMENTS * ack.mss {
            return;
        }
        let train_is_long = self.train_is_long(ack, window);
        if self.delay_has_grown(rtt_ns) || train_is_long {
            self.found = true;
            window.ssthresh = window.cwnd;
        }
    }

    fn start_round(&mut self, ack: &AckSample) {
        self.round_end = ack.nxt;
        self.round_start_ns = ack.now_ns;
        self.train_ns = ack.now_ns;
        self.round_shortest_ns = u64::MAX;
        self.round_samples = 0;
    }

    fn train_is_long(&mut self, ack: &AckSample, window: &Window) -> bool {
        if ack.now_ns - self.train_ns > TRAIN_GAP_NS {
            return false;
        }
        self.train_ns = ack.now_ns;
        let merging_ns = (MERGED_BYTES * 1e9 / window.pacing_rate(ack.srtt_ns)).min(MERGING_MOST_NS);
        let path_ns = self.shortest_ns + merging_ns as u64;
        // A sender that paces spreads a window over up to half an RTT by itself.
        let enough_ns = if self.is_paced { path_ns } else { path_ns / 2 };
        ack.now_ns - self.round_start_ns > enough_ns
    }

    fn delay_has_grown(&mut self, rtt_ns: u64) -> bool {
        self.round_shortest_ns = self.round_shortest_ns.min(rtt_ns);
        if self.round_samples < MIN_SAMPLES {
            self.round_samples += 1;
            return false;
        }
        let queue_ns = (self.shortest_ns / DELAY_SHARE).clamp(DELAY_LEAST_NS, DELAY_MOST_NS);
        self.round_shortest_ns > self.shortest_ns + queue_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const US: u64 = 1_000;
    const MSS: u64 = 1_000;

    /// A flow in slow start with a constant window; each ACK covers one segment.
    struct Flow {
        hystart: HyStart,
        window: Window,
        una: u64,
    }

    impl Flow {
        fn new(segments: u64) -> Self {
            let window = Window { cwnd: segments * MSS, ssthresh: u64::MAX };
            Flow { hystart: HyStart::new(true, false), window, una: 0 }
        }

        fn paced(self) -> Self {
            Flow { hystart: HyStart::new(true, true), ..self }
        }

        fn segments_at_end(&self) -> Option<u64> {
            (self.window.ssthresh < u64::MAX).then_some(self.window.ssthresh / MSS)
        }

        /// An ACK at this time with this RTT, with 1000 segments outstanding. True when slow start
        /// is over.
        fn ack(&mut self, now_ns: u64, rtt_ns: u64) -> bool {
            self.una += MSS;
            let nxt = self.una + 1000 * MSS;
            let newest_rtt_ns = Some(rtt_ns);
            let sample = AckSample {
                now_ns,
                mss: MSS,
                newest_rtt_ns,
                srtt_ns: rtt_ns,
                una: self.una,
                nxt,
                ..AckSample::default()
            };
            self.hystart.on_rtt(&sample, &mut self.window);
            self.segments_at_end().is_some()
        }

        /// Makes the next ACK start a new round.
        fn next_round(&mut self) {
            self.una = self.hystart.round_end;
        }
    }

    #[test]
    fn a_train_of_half_the_shortest_rtt_ends_slow_start() {
        // 20 segments in 40 ms, sent at twice that rate, 1 MB/s: 4 * 65536 bytes take 262 ms, of which
        // 1 ms counts. Half of 41 ms: the train from 100 ms on is long enough after 120.5 ms.
        let mut flow = Flow::new(20);
        for ms in (100..=120).step_by(2) {
            assert!(!flow.ack(ms * MS, 40 * MS), "{ms}");
        }
        assert!(flow.ack(122 * MS, 40 * MS));
        assert_eq!(flow.segments_at_end(), Some(20));
    }

    #[test]
    fn off_it_ends_nothing_and_knows_the_shortest_rtt() {
        let mut flow = Flow::new(20);
        flow.hystart = HyStart::new(false, false);
        for ms in (100..=400).step_by(2) {
            assert!(!flow.ack(ms * MS, ms * MS), "{ms}");
        }
        assert_eq!(flow.hystart.shortest_ns(), Some(100 * MS));
    }

    #[test]
    fn a_gap_ends_the_train_until_the_next_round() {
        let mut flow = Flow::new(20);
        for us in [100_000, 102_000, 104_001, 105_000, 106_000, 119_000, 120_000, 121_000, 122_000] {
            assert!(!flow.ack(us * US, 40 * MS), "{us}");
        }
        flow.next_round();
        for ms in (140..=160).step_by(2) {
            assert!(!flow.ack(ms * MS, 40 * MS), "{ms}");
        }
        assert!(flow.ack(162 * MS, 40 * MS));
    }

    #[test]
    fn a_paced_train_is_a_whole_rtt() {
        let mut flow = Flow::new(20).paced();
        for ms in (100..=140).step_by(2) {
            assert!(!flow.ack(ms * MS, 40 * MS), "{ms}");
        }
        assert!(flow.ack(142 * MS, 40 * MS));
    }

    #[test]
    fn merging_lengthens_the_train_of_a_fast_path_by_less() {
        // 20 segments in 0.1 ms at twice the rate, 400 MB/s: 262144 bytes take 655.36 us. Half of
        // 755.36 us is 377.68 us.
        let mut flow = Flow::new(20);
        for us in (1000..=1370).step_by(10) {
            assert!(!flow.ack(us * US, 100 * US), "{us}");
        }
        assert!(flow.ack(1380 * US, 100 * US));
    }

    #[test]
    fn a_small_window_goes_on_and_has_no_train() {
        // With 16 segments, the earlier ACKs, which were ignored, are a gap.
        let mut flow = Flow::new(15);
        for ms in (100..=130).step_by(2) {
            assert!(!flow.ack(ms * MS, 40 * MS), "{ms}");
        }
        flow.window.cwnd = 16 * MSS;
        for ms in (132..=139).step_by(1) {
            assert!(!flow.ack(ms * MS, 40 * MS), "{ms}");
        }
    }

    /// Number of ACKs, 3 ms apart, that a round with this RTT needs after a round with the minimum
    /// RTT.
    fn acks_until_delayed(shortest_ns: u64, rtt_ns: u64) -> Option<usize> {
        let mut flow = Flow::new(20);
        assert!(!flow.ack(1000 * MS, shortest_ns));
        flow.next_round();
        (1..=30).find(|&n| flow.ack((2000 + 3 * n as u64) * MS, rtt_ns))
    }

    #[test]
    fn the_ninth_rtt_of_a_round_shows_a_queue_of_an_eighth() {
        assert_eq!(acks_until_delayed(80 * MS, 90 * MS), None);
        assert_eq!(acks_until_delayed(80 * MS, 90 * MS + 1), Some(9));
        // HYSTART_DELAY_MIN and HYSTART_DELAY_MAX.
        assert_eq!(acks_until_delayed(8 * MS, 12 * MS), None);
        assert_eq!(acks_until_delayed(8 * MS, 12 * MS + 1), Some(9));
        assert_eq!(acks_until_delayed(400 * MS, 416 * MS), None);
        assert_eq!(acks_until_delayed(400 * MS, 416 * MS + 1), Some(9));
    }

    #[test]
    fn one_short_rtt_in_a_round_shows_that_no_queue_stands() {
        let mut flow = Flow::new(20);
        flow.ack(1000 * MS, 80 * MS);
        flow.next_round();
        for n in 0..30 {
            let rtt_ns = if n == 5 { 85 * MS } else { 150 * MS };
            assert!(!flow.ack((2000 + 3 * n) * MS, rtt_ns), "{n}");
        }
    }

    #[test]
    fn an_ack_without_an_rtt_says_nothing() {
        let mut flow = Flow::new(20);
        for ms in (100..=150).step_by(2) {
            let sample =
                AckSample { now_ns: ms * MS, mss: MSS, una: ms, nxt: 10_000, ..AckSample::default() };
            flow.hystart.on_rtt(&sample, &mut flow.window);
        }
        assert_eq!(flow.segments_at_end(), None);
    }

    #[test]
    fn a_timeout_starts_it_anew_once_what_was_out_is_acknowledged() {
        let mut flow = Flow::new(20);
        for ms in (100..=122).step_by(2) {
            flow.ack(ms * MS, 40 * MS);
        }
        assert_eq!(flow.segments_at_end(), Some(20));
        // The end was found: a larger window is not examined.
        flow.window = Window { cwnd: 30 * MSS, ssthresh: u64::MAX };
        flow.next_round();
        for ms in (200..=300).step_by(2) {
            assert!(!flow.ack(ms * MS, 40 * MS), "{ms}");
        }
        flow.hystart.restart(flow.una + 50 * MSS);
        // The round in progress has no train, and its minimum RTT is its own.
        for ms in (400..500).step_by(2) {
            assert!(!flow.ack(ms * MS, 90 * MS), "{ms}");
        }
        // Half of 91 ms.
        for ms in (500..=545).step_by(1) {
            assert!(!flow.ack(ms * MS, 90 * MS), "{ms}");
        }
        assert!(flow.ack(546 * MS, 90 * MS));
    }
}
