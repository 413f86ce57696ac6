// SPDX-License-Identifier: MIT
//! CUBIC (RFC 9438).

use super::{slow_start, AckSample, Controller, Window};
use crate::scenario::Counting;

/// RFC 9438, 5.1: C, in segments per second cubed.
const C: f64 = 0.4;
/// RFC 9438, 4.6: the multiplicative decrease.
const BETA: f64 = 0.7;
/// RFC 9438, 4.3: growth that is as fair to Reno as BETA allows, in segments per window.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// RFC 9438, 4.2: the target is at most this multiple of the window, one RTT from here.
const TARGET_MAX: f64 = 1.5;

pub struct Cubic {
    counting: Counting,
    /// Window before the last reduction, in segments; 0: no loss yet.
    w_max: f64,
    cwnd_prior: f64,
    /// Time from the epoch's start to the return to `w_max`.
    k_s: f64,
    /// The window Reno would have.
    w_est: f64,
    /// Start of congestion avoidance since the last reduction.
    epoch_ns: Option<u64>,
    /// Fraction of a segment gained and not yet in cwnd.
    credit: f64,
}

impl Cubic {
    pub fn new(counting: Counting) -> Self {
        Cubic { counting, w_max: 0.0, cwnd_prior: 0.0, k_s: 0.0, w_est: 0.0, epoch_ns: None, credit: 0.0 }
    }

    /// Starts an epoch unless one runs, and returns its start.
    fn epoch_start_ns(&mut self, window_segments: f64, now_ns: u64) -> u64 {
        *self.epoch_ns.get_or_insert_with(|| {
            self.w_est = window_segments;
            if self.w_max <= window_segments {
                self.w_max = window_segments;
                self.k_s = 0.0;
            } else {
                // RFC 9438, equation 2.
                self.k_s = ((self.w_max - window_segments) / C).cbrt();
            }
            now_ns
        })
    }

    /// RFC 9438, equation 1, one RTT ahead (4.2).
    fn target(&self, since_epoch_ns: u64, srtt_ns: u64, window_segments: f64) -> f64 {
        let t = (since_epoch_ns + srtt_ns) as f64 / 1e9;
        (C * (t - self.k_s).powi(3) + self.w_max).clamp(window_segments, TARGET_MAX * window_segments)
    }

    fn reduce(&mut self, mss: u64, window: &mut Window) {
        let segments = window.cwnd as f64 / mss as f64;
        // RFC 9438, 4.7: fast convergence.
        self.w_max = if segments < self.w_max { segments * (1.0 + BETA) / 2.0 } else { segments };
        self.cwnd_prior = segments;
        self.epoch_ns = None;
        self.credit = 0.0;
        window.ssthresh = ((window.cwnd as f64 * BETA) as u64).max(2 * mss);
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
        let step =
            if self.w_est > target { self.w_est - segments } else { (target - segments) / segments * acked };
        self.credit += step.max(0.0);
        if self.credit >= 1.0 {
            let whole = self.credit.floor();
            window.cwnd += (whole * mss) as u64;
            self.credit -= whole;
        }
    }

    fn on_loss(&mut self, _flight_bytes: u64, mss: u64, window: &mut Window) {
        self.reduce(mss, window);
        window.cwnd = window.ssthresh;
    }

    fn on_timeout(&mut self, _flight_bytes: u64, mss: u64, window: &mut Window) {
        self.reduce(mss, window);
    }
}
