// SPDX-License-Identifier: MIT
//! Congestion control: how large the window may be.
//!
//! Reno (RFC 5681) and CUBIC (RFC 9438) with three ways of counting an ACK (RFC 3465), and a
//! rate-based sender in the manner of BBR (draft-cardwell-iccrg-bbr-congestion-control-00).

use crate::scenario::{CongestionControl, Counting};

/// What one ACK told the sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckSample {
    pub now_ns: u64,
    pub mss: u64,
    /// Bytes newly acknowledged, cumulatively.
    pub acked_bytes: u64,
    /// Bytes newly acknowledged or SACKed.
    pub delivered_bytes: u64,
    /// RTT of the oldest segment newly acknowledged, if it was sent once.
    pub rtt_ns: Option<u64>,
    pub srtt_ns: u64,
    /// Bytes in flight before this ACK.
    pub prior_in_flight: u64,
    /// The flow had as much in flight as the window allowed.
    pub window_limited: bool,
    /// Delivery rate, bytes a second, and whether the sender lacked data meanwhile.
    pub rate: Option<(f64, bool)>,
    /// All data sent before the round began is delivered.
    pub round_started: bool,
}

#[derive(Clone, Debug)]
pub struct Congestion {
    pub cwnd: u64,
    /// u64::MAX: not set yet.
    pub ssthresh: u64,
    counting: Counting,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Reno { credit: u64 },
    Cubic(Cubic),
    Bbr(Box<Bbr>),
}

/// RFC 9438, 5: C in segments per second cubed, and the multiplicative decrease.
const CUBIC_C: f64 = 0.4;
const CUBIC_BETA: f64 = 0.7;

#[derive(Clone, Debug, Default)]
struct Cubic {
    /// Segments; 0: no loss yet.
    w_max: f64,
    cwnd_prior: f64,
    k_s: f64,
    w_est: f64,
    epoch_ns: Option<u64>,
    /// Fraction of a segment gained and not yet in cwnd.
    credit: f64,
}

impl Congestion {
    pub fn new(kind: CongestionControl, counting: Counting, mss: u64, initial_segments: u64) -> Self {
        let kind = match kind {
            CongestionControl::Reno => Kind::Reno { credit: 0 },
            CongestionControl::Cubic => Kind::Cubic(Cubic::default()),
            CongestionControl::Bbr => Kind::Bbr(Box::default()),
        };
        Congestion { cwnd: mss * initial_segments.max(1), ssthresh: u64::MAX, counting, kind }
    }

    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Bytes a second at which segments leave; None: not paced by the algorithm.
    pub fn pacing_rate(&self) -> Option<f64> {
        match &self.kind {
            Kind::Bbr(b) if b.bandwidth() > 0.0 => Some(b.pacing_gain * b.bandwidth()),
            _ => None,
        }
    }

    /// An ACK arrived outside recovery (BBR: any ACK).
    pub fn on_ack(&mut self, s: &AckSample) {
        if let Kind::Bbr(bbr) = &mut self.kind {
            self.cwnd = bbr.on_ack(s, self.cwnd);
            return;
        }
        // A window that is not used says nothing about the path (RFC 9293, 3.8.6; RFC 7661).
        if s.acked_bytes == 0 || !s.window_limited {
            return;
        }
        let mut bytes = match self.counting {
            Counting::Bytes => s.acked_bytes,
            Counting::Bytes2smss => s.acked_bytes.min(2 * s.mss),
            Counting::Acks => s.acked_bytes.min(s.mss),
        };
        if self.in_slow_start() {
            let grow = bytes.min(self.ssthresh - self.cwnd);
            self.cwnd += grow;
            bytes -= grow;
            if bytes == 0 {
                return;
            }
        }
        match &mut self.kind {
            Kind::Reno { credit } => {
                // RFC 3465, 2.1: one segment for each window acknowledged.
                *credit += bytes;
                if *credit >= self.cwnd {
                    *credit -= self.cwnd;
                    self.cwnd += s.mss;
                }
            }
            Kind::Cubic(c) => c.grow(&mut self.cwnd, bytes, s),
            Kind::Bbr(_) => {}
        }
    }

    /// Loss was found by duplicate ACKs or SACK; `flight`: bytes outstanding.
    pub fn on_loss(&mut self, flight: u64, mss: u64) {
        match &mut self.kind {
            Kind::Reno { .. } => self.ssthresh = (flight / 2).max(2 * mss),
            Kind::Cubic(c) => self.ssthresh = c.reduce(self.cwnd, mss),
            Kind::Bbr(b) => {
                b.prior_cwnd = b.prior_cwnd.max(self.cwnd);
                return;
            }
        }
        self.cwnd = self.ssthresh;
    }

    /// The retransmission timer expired (RFC 5681, 3.1: equation 4, then one segment).
    pub fn on_timeout(&mut self, flight: u64, mss: u64) {
        match &mut self.kind {
            Kind::Reno { credit } => {
                self.ssthresh = (flight / 2).max(2 * mss);
                *credit = 0;
            }
            Kind::Cubic(c) => {
                self.ssthresh = c.reduce(self.cwnd, mss);
                c.epoch_ns = None;
            }
            Kind::Bbr(b) => b.prior_cwnd = b.prior_cwnd.max(self.cwnd),
        }
        self.cwnd = mss;
    }

    /// Recovery is over.
    pub fn on_recovered(&mut self) {
        if let Kind::Bbr(b) = &mut self.kind {
            self.cwnd = self.cwnd.max(b.prior_cwnd);
            b.prior_cwnd = 0;
        }
    }

    /// Rate-based senders do not cut the window on loss.
    pub fn is_rate_based(&self) -> bool {
        matches!(self.kind, Kind::Bbr(_))
    }
}

impl Cubic {
    fn reduce(&mut self, cwnd: u64, mss: u64) -> u64 {
        let segments = cwnd as f64 / mss as f64;
        // RFC 9438, 4.7: fast convergence.
        self.w_max = if segments < self.w_max { segments * (1.0 + CUBIC_BETA) / 2.0 } else { segments };
        self.cwnd_prior = segments;
        self.epoch_ns = None;
        self.credit = 0.0;
        ((cwnd as f64 * CUBIC_BETA) as u64).max(2 * mss)
    }

    fn grow(&mut self, cwnd: &mut u64, bytes: u64, s: &AckSample) {
        let mss = s.mss as f64;
        let window = *cwnd as f64 / mss;
        let epoch = *self.epoch_ns.get_or_insert_with(|| {
            self.w_est = window;
            if self.w_max <= window {
                self.w_max = window;
                self.k_s = 0.0;
            } else {
                // RFC 9438, equation 2.
                self.k_s = ((self.w_max - window) / CUBIC_C).cbrt();
            }
            s.now_ns
        });
        let acked = bytes as f64 / mss;
        let t = (s.now_ns - epoch + s.srtt_ns) as f64 / 1e9;
        let target = (CUBIC_C * (t - self.k_s).powi(3) + self.w_max).clamp(window, 1.5 * window);
        // RFC 9438, 4.3: grow at least as Reno would.
        let alpha =
            if self.w_est < self.cwnd_prior { 3.0 * (1.0 - CUBIC_BETA) / (1.0 + CUBIC_BETA) } else { 1.0 };
        self.w_est += alpha * acked / window;
        let step = if self.w_est > target { self.w_est - window } else { (target - window) / window * acked };
        self.credit += step.max(0.0);
        if self.credit >= 1.0 {
            let whole = self.credit.floor();
            *cwnd += (whole * mss) as u64;
            self.credit -= whole;
        }
    }
}

/// 2/ln 2: the smallest gain that doubles the rate each round.
const BBR_HIGH_GAIN: f64 = 2.885;
const BBR_CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const BBR_BANDWIDTH_ROUNDS: u64 = 10;
const BBR_MIN_RTT_WINDOW_NS: u64 = 10_000_000_000;
const BBR_PROBE_RTT_NS: u64 = 200_000_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum BbrMode {
    #[default]
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

#[derive(Clone, Debug)]
struct Bbr {
    mode: BbrMode,
    round: u64,
    /// (round, bytes a second): candidates for the windowed maximum, best first.
    rates: Vec<(u64, f64)>,
    min_rtt_ns: u64,
    min_rtt_at_ns: u64,
    full_rate: f64,
    full_rounds: u32,
    pacing_gain: f64,
    cwnd_gain: f64,
    cycle: usize,
    cycle_start_ns: u64,
    probe_until_ns: Option<u64>,
    prior_cwnd: u64,
    /// Bytes acknowledged beyond what the rate explains: ACKs come in lumps.
    extra_acked: [u64; 2],
    extra_round: u64,
    extra_start_ns: u64,
    extra_bytes: u64,
}

impl Default for Bbr {
    fn default() -> Self {
        Bbr {
            mode: BbrMode::Startup,
            round: 0,
            rates: Vec::new(),
            min_rtt_ns: u64::MAX,
            min_rtt_at_ns: 0,
            full_rate: 0.0,
            full_rounds: 0,
            pacing_gain: BBR_HIGH_GAIN,
            cwnd_gain: BBR_HIGH_GAIN,
            cycle: 2,
            cycle_start_ns: 0,
            probe_until_ns: None,
            prior_cwnd: 0,
            extra_acked: [0; 2],
            extra_round: 0,
            extra_start_ns: 0,
            extra_bytes: 0,
        }
    }
}

impl Bbr {
    fn bandwidth(&self) -> f64 {
        self.rates.first().map_or(0.0, |r| r.1)
    }

    fn note_rate(&mut self, rate: f64) {
        let round = self.round;
        self.rates.retain(|&(r, v)| r + BBR_BANDWIDTH_ROUNDS > round && v > rate);
        self.rates.push((round, rate));
    }

    fn in_flight_target(&self, gain: f64, mss: u64) -> u64 {
        if self.min_rtt_ns == u64::MAX || self.bandwidth() == 0.0 {
            return 10 * mss;
        }
        let bdp = self.bandwidth() * self.min_rtt_ns as f64 / 1e9;
        (gain * bdp) as u64 + 3 * mss
    }

    /// RFC-less but in Linux since 5.1: room for what arrives acknowledged in one lump.
    fn note_aggregation(&mut self, s: &AckSample) {
        let elapsed = s.now_ns.saturating_sub(self.extra_start_ns) as f64 / 1e9;
        let expected = (self.bandwidth() * elapsed) as u64;
        if self.extra_bytes <= expected {
            self.extra_start_ns = s.now_ns;
            self.extra_bytes = 0;
        }
        let expected = if self.extra_bytes == 0 { 0 } else { expected };
        self.extra_bytes += s.delivered_bytes;
        let extra = self.extra_bytes.saturating_sub(expected);
        if self.round >= self.extra_round + 5 {
            self.extra_round = self.round;
            self.extra_acked = [0, self.extra_acked[0]];
        }
        self.extra_acked[0] = self.extra_acked[0].max(extra);
    }

    fn on_ack(&mut self, s: &AckSample, cwnd: u64) -> u64 {
        if s.round_started {
            self.round += 1;
        }
        if let Some((rate, app_limited)) = s.rate {
            if !app_limited || rate >= self.bandwidth() {
                self.note_rate(rate);
            }
        }
        self.note_aggregation(s);
        let expired = s.now_ns > self.min_rtt_at_ns + BBR_MIN_RTT_WINDOW_NS;
        if let Some(rtt) = s.rtt_ns {
            if rtt <= self.min_rtt_ns || expired {
                self.min_rtt_ns = rtt;
                self.min_rtt_at_ns = s.now_ns;
            }
        }
        let in_flight = s.prior_in_flight.saturating_sub(s.delivered_bytes);
        match self.mode {
            BbrMode::Startup => {
                let app_limited = s.rate.is_some_and(|r| r.1);
                if s.round_started && !app_limited {
                    if self.bandwidth() >= self.full_rate * 1.25 {
                        self.full_rate = self.bandwidth();
                        self.full_rounds = 0;
                    } else {
                        self.full_rounds += 1;
                    }
                }
                if self.full_rounds >= 3 {
                    self.mode = BbrMode::Drain;
                    self.pacing_gain = 1.0 / BBR_HIGH_GAIN;
                }
            }
            BbrMode::Drain => {
                if in_flight <= self.in_flight_target(1.0, s.mss) {
                    self.enter_probe_bandwidth(s.now_ns);
                }
            }
            BbrMode::ProbeBandwidth => {
                let long = s.now_ns - self.cycle_start_ns > self.min_rtt_ns;
                let gain = BBR_CYCLE[self.cycle];
                let next = if gain > 1.0 {
                    long && s.prior_in_flight >= self.in_flight_target(gain, s.mss)
                        || s.now_ns - self.cycle_start_ns > 4 * self.min_rtt_ns
                } else if gain < 1.0 {
                    long || in_flight <= self.in_flight_target(1.0, s.mss)
                } else {
                    long
                };
                if next {
                    self.cycle = (self.cycle + 1) % BBR_CYCLE.len();
                    self.cycle_start_ns = s.now_ns;
                }
                self.pacing_gain = BBR_CYCLE[self.cycle];
            }
            BbrMode::ProbeRtt => {
                if self.probe_until_ns.is_none() && in_flight <= 4 * s.mss {
                    self.probe_until_ns = Some(s.now_ns + BBR_PROBE_RTT_NS);
                }
                if self.probe_until_ns.is_some_and(|t| s.now_ns >= t) {
                    self.min_rtt_at_ns = s.now_ns;
                    self.probe_until_ns = None;
                    if self.full_rounds >= 3 {
                        self.enter_probe_bandwidth(s.now_ns);
                    } else {
                        self.mode = BbrMode::Startup;
                        self.pacing_gain = BBR_HIGH_GAIN;
                        self.cwnd_gain = BBR_HIGH_GAIN;
                    }
                    return cwnd.max(std::mem::take(&mut self.prior_cwnd));
                }
            }
        }
        if expired && self.mode != BbrMode::ProbeRtt {
            self.mode = BbrMode::ProbeRtt;
            self.pacing_gain = 1.0;
            self.prior_cwnd = cwnd;
            self.probe_until_ns = None;
        }
        if self.mode == BbrMode::ProbeRtt {
            return cwnd.min(4 * s.mss);
        }
        let extra = self.extra_acked.iter().copied().max().unwrap_or(0);
        let cap = (self.bandwidth() * 0.1) as u64;
        let target = self.in_flight_target(self.cwnd_gain, s.mss) + extra.min(cap);
        let grown = cwnd + s.delivered_bytes;
        let full = self.full_rounds >= 3;
        if full {
            grown.min(target).max(4 * s.mss)
        } else if cwnd < target || s.window_limited {
            grown.max(4 * s.mss)
        } else {
            cwnd
        }
    }

    fn enter_probe_bandwidth(&mut self, now: u64) {
        self.mode = BbrMode::ProbeBandwidth;
        self.cwnd_gain = 2.0;
        self.cycle = 2;
        self.pacing_gain = 1.0;
        self.cycle_start_ns = now;
    }
}
