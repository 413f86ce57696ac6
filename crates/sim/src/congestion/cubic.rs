// SPDX-License-Identifier: MIT
//! CUBIC (RFC 9438), with HyStart and in whole segments, as in Linux 6.12 (net/ipv4/tcp_cubic.c).

use super::hystart::HyStart;
use super::{slow_start, AckSample, Controller, Flight, Window};
use crate::scenario::Counting;

/// RFC 9438, 5.1: C, in segments per second cubed.
const C: f64 = 0.4;
/// RFC 9438, 4.6: the multiplicative decrease, 0.7, in Linux's binary fraction.
const BETA: f64 = 717.0 / 1024.0;
/// RFC 9438, 4.3: growth that is as fair to Reno as BETA allows, in segments per window.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// RFC 9438, 4.2: the target is at most this multiple of the window, one RTT from here.
const TARGET_MAX: f64 = 1.5;
/// Linux: until a loss shows what the path carries, the window grows by one segment for at most so
/// many acknowledged (bictcp_update).
// [D-29]
const MOST_ACKED_BEFORE_LOSS: f64 = 20.0;
/// Linux: RTTs measured this soon after a reduction are those of the queue that it drains
/// (cubictcp_acked).
const RTT_UNSETTLED_NS: u64 = 1_000_000_000;

pub struct Cubic {
    counting: Counting,
    /// Window before the last reduction, in segments; 0: what the path carries is not known.
    w_max: f64,
    /// Where the epoch's curve is flat: `w_max`, or the window at its start if that is larger.
    origin: f64,
    cwnd_prior: f64,
    /// Time from the epoch's start to the return to `origin`.
    k_s: f64,
    /// The window Reno would have.
    w_est: f64,
    /// Start of congestion avoidance since the last reduction.
    epoch_ns: Option<u64>,
    /// Fraction of a segment gained and not yet in cwnd.
    credit: f64,
    hystart: HyStart,
}

impl Cubic {
    pub fn new(counting: Counting, is_paced: bool) -> Self {
        Cubic {
            counting,
            w_max: 0.0,
            origin: 0.0,
            cwnd_prior: 0.0,
            k_s: 0.0,
            w_est: 0.0,
            epoch_ns: None,
            credit: 0.0,
            hystart: HyStart::new(is_paced),
        }
    }

    /// Starts an epoch unless one runs, and returns its start.
    fn epoch_start_ns(&mut self, window_segments: f64, now_ns: u64) -> u64 {
        *self.epoch_ns.get_or_insert_with(|| {
            self.w_est = window_segments;
            self.origin = self.w_max.max(window_segments);
            // RFC 9438, equation 2.
            self.k_s = ((self.origin - window_segments) / C).cbrt();
            now_ns
        })
    }

    /// RFC 9438, equation 1, one RTT ahead (4.2).
    fn target(&self, since_epoch_ns: u64, srtt_ns: u64, window_segments: f64) -> f64 {
        let t = (since_epoch_ns + srtt_ns) as f64 / 1e9;
        (C * (t - self.k_s).powi(3) + self.origin).clamp(window_segments, TARGET_MAX * window_segments)
    }

    fn reduce(&mut self, mss: u64, window: &mut Window) {
        let segments = window.cwnd as f64 / mss as f64;
        // RFC 9438, 4.7: fast convergence.
        self.w_max = if segments < self.w_max { segments * (1.0 + BETA) / 2.0 } else { segments };
        self.cwnd_prior = segments;
        self.epoch_ns = None;
        self.credit = 0.0;
        window.ssthresh = ((segments.floor() * BETA) as u64).max(2) * mss;
    }
}

impl Controller for Cubic {
    fn on_ack(&mut self, ack: &AckSample, window: &mut Window) {
        let bytes = slow_start(self.counting, ack, window);
        if bytes == 0 {
            return;
        }
        let mss = ack.mss as f64;
        let segments = window.cwnd as f64 / mss;
        let epoch_ns = self.epoch_start_ns(segments, ack.now_ns);
        let acked = bytes as f64 / mss;
        let target = self.target(ack.now_ns - epoch_ns, ack.srtt_ns, segments);
        // RFC 9438, 4.3: grow at least as Reno would.
        let alpha = if self.w_est < self.cwnd_prior { ALPHA } else { 1.0 };
        self.w_est += alpha * acked / segments;
        let least = if self.w_max == 0.0 { acked / MOST_ACKED_BEFORE_LOSS } else { 0.0 };
        self.credit += ((target - segments) / segments * acked).max(least);
        self.credit = self.credit.max(self.w_est - segments);
        if self.credit >= 1.0 {
            let whole = self.credit.floor();
            window.cwnd += (whole * mss) as u64;
            self.credit -= whole;
        }
    }

    fn on_rtt(&mut self, ack: &AckSample, window: &mut Window) {
        if self.epoch_ns.map_or(true, |epoch_ns| ack.now_ns - epoch_ns >= RTT_UNSETTLED_NS) {
            self.hystart.on_rtt(ack, window);
        }
    }

    fn on_loss(&mut self, flight: &Flight, window: &mut Window) {
        self.reduce(flight.mss, window);
        window.cwnd = window.ssthresh;
    }

    fn on_timeout(&mut self, flight: &Flight, window: &mut Window) {
        self.reduce(flight.mss, window);
        // RFC 9438, 4.8: what the window was is forgotten (Linux: bictcp_reset).
        self.w_max = 0.0;
        self.hystart.restart(flight.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;
    const MS: u64 = 1_000_000;

    /// In congestion avoidance with so many segments; a round trip takes 50 ms.
    struct Flow {
        cubic: Cubic,
        window: Window,
        now_ns: u64,
    }

    impl Flow {
        fn new(segments: u64) -> Self {
            let window = Window { cwnd: segments * MSS, ssthresh: segments * MSS };
            Flow { cubic: Cubic::new(Counting::Bytes, false), window, now_ns: MS }
        }

        fn segments(&self) -> u64 {
            assert_eq!(self.window.cwnd % MSS, 0);
            self.window.cwnd / MSS
        }

        fn flight(&self) -> Flight {
            Flight { bytes: self.window.cwnd, end: 0, mss: MSS }
        }

        /// An ACK for one segment; a window's take a round trip.
        fn ack(&mut self) -> u64 {
            self.now_ns += 50 * MS / self.segments();
            let sample = AckSample {
                now_ns: self.now_ns,
                mss: MSS,
                acked_bytes: MSS,
                srtt_ns: 50 * MS,
                window_limited: true,
                ..AckSample::default()
            };
            self.cubic.on_ack(&sample, &mut self.window);
            self.segments()
        }
    }

    #[test]
    fn a_loss_leaves_whole_segments_and_at_least_two() {
        for (before, after) in [(10, 7), (9, 6), (8, 5), (7, 4), (3, 2), (2, 2)] {
            let mut flow = Flow::new(before);
            flow.cubic.on_loss(&flow.flight(), &mut flow.window);
            assert_eq!(flow.segments(), after);
        }
    }

    #[test]
    // [D-29]
    fn until_a_loss_one_segment_is_gained_for_twenty() {
        let mut flow = Flow::new(100);
        let grown: Vec<u64> = (0..60).map(|_| flow.ack()).collect();
        assert_eq!((grown[18], grown[19], grown[38], grown[39], grown[59]), (100, 101, 101, 102, 103));
    }

    #[test]
    fn a_timeout_forgets_the_window_before_it() {
        let mut flow = Flow::new(100);
        flow.cubic.on_loss(&flow.flight(), &mut flow.window);
        assert_eq!(flow.segments(), 70);
        // K = cbrt(30 / 0.4) = 4.2 s: in the first RTT 2.5 of the 30 segments, and none of 20 is whole.
        let before: Vec<u64> = (0..20).map(|_| flow.ack()).collect();
        assert_eq!(before, [70; 20]);
        flow.cubic.on_timeout(&flow.flight(), &mut flow.window);
        flow.window.cwnd = flow.window.ssthresh;
        let after: Vec<u64> = (0..20).map(|_| flow.ack()).collect();
        assert_eq!((after[18], after[19]), (49, 50));
    }

    #[test]
    fn the_window_that_reno_would_have_grows_by_whole_segments() {
        // RFC 9438, 4.3: W_est gains 0.53 / cwnd for each segment. From 5 after a loss at 8 (K = 2 s,
        // so the cubic function is slower) it passes 6 with the tenth: 9.4 = 5 / 0.53.
        let mut flow = Flow::new(8);
        flow.cubic.on_loss(&flow.flight(), &mut flow.window);
        let grown: Vec<u64> = (0..10).map(|_| flow.ack()).collect();
        assert_eq!(grown, [5, 5, 5, 5, 5, 5, 5, 5, 5, 6]);
    }
}
