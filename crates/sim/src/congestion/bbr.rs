// SPDX-License-Identifier: MIT
//! A rate-based controller in the manner of BBR (draft-cardwell-iccrg-bbr-congestion-control-00,
//! "the draft" below): the window and the pacing rate follow the estimates of bottleneck bandwidth
//! and minimum RTT.

use super::{AckSample, Controller, Flight, Window};

/// 2/ln 2, the smallest gain that doubles the rate each round (the draft, 4.3.2.1).
const HIGH_GAIN: f64 = 2.885;
/// Window over the BDP in ProbeBW: room for delayed and stretch ACKs (the draft, 4.2.3.2).
const CWND_GAIN: f64 = 2.0;
/// Pacing gains of ProbeBW, one phase per minimum RTT: probe, drain, then cruise (the draft, 4.3.4.1).
const PROBE_BW_GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// ProbeBW is entered in the first phase that cruises. The draft (4.3.4.2) draws the phase at random.
const CRUISE_PHASE: usize = 2;
/// A probing phase ends after this many minimum RTTs even if the flight never reached its target,
/// as when the window or the application holds it back.
const PROBE_MAX_MIN_RTTS: u64 = 4;
/// The draft, 4.1.1.2: rounds over which the largest delivery rate is the bandwidth.
const BANDWIDTH_ROUNDS: u64 = 10;
/// The draft, 4.3.2.2: the pipe is full when the bandwidth did not grow by a quarter ...
const FULL_GROWTH: f64 = 1.25;
/// ... for three rounds: one may be lost to the receive window's autotuning, two fill the pipe.
const FULL_ROUNDS: u32 = 3;
/// The draft, 4.1.2.2: a minimum RTT older than this is measured again.
const MIN_RTT_WINDOW_NS: u64 = 10_000_000_000;
/// The draft, 4.3.5: how long, and at which window, ProbeRTT keeps the queue empty.
const PROBE_RTT_NS: u64 = 200_000_000;
const MIN_WINDOW_SEGMENTS: u64 = 4;
/// The target before there is an estimate (RFC 6928's initial window).
const INITIAL_TARGET_SEGMENTS: u64 = 10;
/// The draft, 4.2.3.2: three send quanta, here of one segment, for offloads at both ends.
const QUANTA_SEGMENTS: u64 = 3;
/// Linux (tcp_bbr.c, bbr_extra_acked_win_rtts): length of each half of the aggregation window.
const EXTRA_ACKED_ROUNDS: u64 = 5;
/// Linux (bbr_extra_acked_max_us = 100 ms): at most this part of a second's data counts as
/// aggregated.
const EXTRA_ACKED_MAX_S: f64 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Doubles the rate each round until the pipe is full.
    Startup,
    /// Lets the queue of Startup drain.
    Drain,
    /// Cycles through `PROBE_BW_GAINS`.
    ProbeBandwidth { phase: usize, since_ns: u64 },
    /// Few packets in flight, to see the path without a queue; ends at `until_ns`, which is set
    /// once the flight has shrunk.
    ProbeRtt { until_ns: Option<u64> },
}

impl Mode {
    fn cruise(now_ns: u64) -> Mode {
        Mode::ProbeBandwidth { phase: CRUISE_PHASE, since_ns: now_ns }
    }

    fn pacing_gain(self) -> f64 {
        match self {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => 1.0 / HIGH_GAIN,
            Mode::ProbeBandwidth { phase, .. } => PROBE_BW_GAINS[phase],
            Mode::ProbeRtt { .. } => 1.0,
        }
    }

    fn cwnd_gain(self) -> f64 {
        match self {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBandwidth { .. } | Mode::ProbeRtt { .. } => CWND_GAIN,
        }
    }
}

/// Whether Startup still finds more bandwidth.
#[derive(Clone, Copy, Debug, Default)]
struct Plateau {
    bandwidth: f64,
    rounds: u32,
}

impl Plateau {
    fn on_round(&mut self, bandwidth: f64) {
        if bandwidth >= self.bandwidth * FULL_GROWTH {
            *self = Plateau { bandwidth, rounds: 0 };
        } else {
            self.rounds += 1;
        }
    }

    fn is_reached(&self) -> bool {
        self.rounds >= FULL_ROUNDS
    }
}

/// Bytes acknowledged beyond what the bandwidth explains: ACKs come in lumps (Linux since 5.1).
#[derive(Clone, Copy, Debug, Default)]
struct Aggregation {
    /// Largest excess in this half of the window and in the one before.
    largest: [u64; 2],
    half_began_round: u64,
    /// The current lump: since when, and its bytes.
    since_ns: u64,
    bytes: u64,
}

impl Aggregation {
    fn on_ack(&mut self, ack: &AckSample, bandwidth: f64, round: u64) {
        let elapsed_s = ack.now_ns.saturating_sub(self.since_ns) as f64 / 1e9;
        let mut expected = (bandwidth * elapsed_s) as u64;
        if self.bytes <= expected {
            self.since_ns = ack.now_ns;
            self.bytes = 0;
        }
        if self.bytes == 0 {
            expected = 0;
        }
        self.bytes += ack.delivered_bytes;
        if round >= self.half_began_round + EXTRA_ACKED_ROUNDS {
            self.half_began_round = round;
            self.largest = [0, self.largest[0]];
        }
        self.largest[0] = self.largest[0].max(self.bytes.saturating_sub(expected));
    }

    fn allowance(&self, bandwidth: f64) -> u64 {
        let most = (bandwidth * EXTRA_ACKED_MAX_S) as u64;
        self.largest[0].max(self.largest[1]).min(most)
    }
}

pub struct Bbr {
    mode: Mode,
    round: u64,
    /// (round, bytes per second): candidates for the windowed maximum, best first.
    rates: Vec<(u64, f64)>,
    /// u64::MAX: not measured yet.
    min_rtt_ns: u64,
    min_rtt_at_ns: u64,
    plateau: Plateau,
    aggregation: Aggregation,
    /// Window to return to after ProbeRTT or a loss.
    prior_cwnd: u64,
}

impl Default for Bbr {
    fn default() -> Self {
        Bbr {
            mode: Mode::Startup,
            round: 0,
            rates: Vec::new(),
            min_rtt_ns: u64::MAX,
            min_rtt_at_ns: 0,
            plateau: Plateau::default(),
            aggregation: Aggregation::default(),
            prior_cwnd: 0,
        }
    }
}

impl Bbr {
    fn bandwidth(&self) -> f64 {
        self.rates.first().map_or(0.0, |r| r.1)
    }

    /// The draft, 4.2.3.2: so much in flight for this gain.
    fn in_flight_target(&self, gain: f64, mss: u64) -> u64 {
        if self.min_rtt_ns == u64::MAX || self.bandwidth() == 0.0 {
            return INITIAL_TARGET_SEGMENTS * mss;
        }
        let bdp = self.bandwidth() * self.min_rtt_ns as f64 / 1e9;
        (gain * bdp) as u64 + QUANTA_SEGMENTS * mss
    }

    /// The draft, 4.1.1: the largest delivery rate of the last rounds. A rate limited by the
    /// application counts only if it raises the estimate.
    fn update_bandwidth(&mut self, ack: &AckSample) {
        let Some(sample) = ack.rate else { return };
        let (rate, round) = (sample.bytes_per_s(), self.round);
        if !sample.app_limited || rate >= self.bandwidth() {
            self.rates.retain(|&(r, v)| r + BANDWIDTH_ROUNDS > round && v > rate);
            self.rates.push((round, rate));
        }
    }

    /// The draft, 4.1.2. Returns true when the estimate had expired.
    fn update_min_rtt(&mut self, ack: &AckSample) -> bool {
        let expired = ack.now_ns > self.min_rtt_at_ns + MIN_RTT_WINDOW_NS;
        if let Some(rtt_ns) = ack.rtt_ns.filter(|&rtt_ns| rtt_ns <= self.min_rtt_ns || expired) {
            self.min_rtt_ns = rtt_ns;
            self.min_rtt_at_ns = ack.now_ns;
        }
        expired
    }

    /// The draft, 4.3: the mode after this ACK.
    fn next_mode(&mut self, ack: &AckSample) -> Mode {
        let in_flight = ack.prior_in_flight.saturating_sub(ack.delivered_bytes);
        match self.mode {
            Mode::Startup => {
                let app_limited = ack.rate.is_some_and(|r| r.app_limited);
                if ack.round_started && !app_limited {
                    self.plateau.on_round(self.bandwidth());
                }
                if self.plateau.is_reached() {
                    Mode::Drain
                } else {
                    Mode::Startup
                }
            }
            Mode::Drain if in_flight <= self.in_flight_target(1.0, ack.mss) => Mode::cruise(ack.now_ns),
            Mode::Drain => Mode::Drain,
            Mode::ProbeBandwidth { phase, since_ns } => {
                if self.phase_is_over(PROBE_BW_GAINS[phase], ack.now_ns - since_ns, in_flight, ack) {
                    let phase = (phase + 1) % PROBE_BW_GAINS.len();
                    Mode::ProbeBandwidth { phase, since_ns: ack.now_ns }
                } else {
                    self.mode
                }
            }
            Mode::ProbeRtt { until_ns: None } if in_flight <= MIN_WINDOW_SEGMENTS * ack.mss => {
                Mode::ProbeRtt { until_ns: Some(ack.now_ns + PROBE_RTT_NS) }
            }
            Mode::ProbeRtt { until_ns: Some(until_ns) } if ack.now_ns >= until_ns => {
                if self.plateau.is_reached() {
                    Mode::cruise(ack.now_ns)
                } else {
                    Mode::Startup
                }
            }
            Mode::ProbeRtt { .. } => self.mode,
        }
    }

    /// The draft, 4.3.4.3: whether ProbeBW goes on to its next gain.
    fn phase_is_over(&self, gain: f64, elapsed_ns: u64, in_flight: u64, ack: &AckSample) -> bool {
        let full_length = elapsed_ns > self.min_rtt_ns;
        if gain > 1.0 {
            full_length && ack.prior_in_flight >= self.in_flight_target(gain, ack.mss)
                || elapsed_ns > PROBE_MAX_MIN_RTTS * self.min_rtt_ns
        } else if gain < 1.0 {
            full_length || in_flight <= self.in_flight_target(1.0, ack.mss)
        } else {
            full_length
        }
    }

    /// The draft, 4.2.3: the window after this ACK, outside ProbeRTT.
    fn grown(&self, ack: &AckSample, cwnd: u64) -> u64 {
        let allowance = self.aggregation.allowance(self.bandwidth());
        let target = self.in_flight_target(self.mode.cwnd_gain(), ack.mss) + allowance;
        let grown = cwnd + ack.delivered_bytes;
        let least = MIN_WINDOW_SEGMENTS * ack.mss;
        if self.plateau.is_reached() {
            grown.min(target).max(least)
        } else if cwnd < target || ack.window_limited {
            grown.max(least)
        } else {
            cwnd
        }
    }

    fn save_cwnd(&mut self, window: &Window) {
        self.prior_cwnd = self.prior_cwnd.max(window.cwnd);
    }

    fn restore_cwnd(&mut self, window: &mut Window) {
        window.cwnd = window.cwnd.max(std::mem::take(&mut self.prior_cwnd));
    }
}

impl Controller for Bbr {
    fn on_ack(&mut self, ack: &AckSample, window: &mut Window) {
        self.round += u64::from(ack.round_started);
        self.update_bandwidth(ack);
        self.aggregation.on_ack(ack, self.bandwidth(), self.round);
        let min_rtt_expired = self.update_min_rtt(ack);
        let before = self.mode;
        self.mode = self.next_mode(ack);
        let is_probing = |mode| matches!(mode, Mode::ProbeRtt { .. });
        if is_probing(before) && !is_probing(self.mode) {
            self.min_rtt_at_ns = ack.now_ns;
            self.restore_cwnd(window);
            return;
        }
        if min_rtt_expired && !is_probing(self.mode) {
            self.mode = Mode::ProbeRtt { until_ns: None };
            self.prior_cwnd = window.cwnd;
        }
        window.cwnd = if is_probing(self.mode) {
            window.cwnd.min(MIN_WINDOW_SEGMENTS * ack.mss)
        } else {
            self.grown(ack, window.cwnd)
        };
    }

    fn on_loss(&mut self, _flight: &Flight, window: &mut Window) {
        self.save_cwnd(window);
    }

    fn on_timeout(&mut self, _flight: &Flight, window: &mut Window) {
        self.save_cwnd(window);
    }

    fn on_recovered(&mut self, window: &mut Window) {
        self.restore_cwnd(window);
    }

    fn pacing_rate(&self) -> Option<f64> {
        let bandwidth = self.bandwidth();
        (bandwidth > 0.0).then(|| self.mode.pacing_gain() * bandwidth)
    }

    fn is_rate_based(&self) -> bool {
        true
    }
}
