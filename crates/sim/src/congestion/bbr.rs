// SPDX-License-Identifier: MIT
//! BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00, "the draft" below) as in Linux 6.12
//! (net/ipv4/tcp_bbr.c): the window and the pacing rate follow the estimates of bottleneck bandwidth and
//! minimum RTT. It does not look for policers (bbr_lt_bw_sampling).

use super::controller::{AckSample, Controller, DeliveryRate, Flight, Restart, Window};
use crate::rng::Rng;

/// Linux's units: a gain in 256ths, a bandwidth in 2^-24 segments per microsecond, whole segments.
const GAIN_SCALE: u32 = 8;
const BANDWIDTH_SCALE: u32 = 24;
const UNIT: u64 = 1 << GAIN_SCALE;
/// 2/ln 2, the smallest gain that doubles the rate each round (the draft, 4.3.2.1), and its inverse.
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
/// Window as a multiple of the BDP in ProbeBW: room for delayed and stretch ACKs (the draft,
/// 4.2.3.2).
const CWND_GAIN: u64 = 2 * UNIT;
/// Pacing gains of ProbeBW, one phase per minimum RTT: probe, drain, then cruise (the draft, 4.3.4.1).
const PROBE_BW_GAINS: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// ProbeBW starts in any phase except the draining one (the draft, 4.3.4.2;
/// bbr_reset_probe_bw_mode).
const DRAIN_PHASE: usize = 1;
/// The draft, 4.1.1.2: number of rounds whose largest delivery rate is the bandwidth.
const BANDWIDTH_ROUNDS: u64 = 10;
/// The draft, 4.3.2.2: the pipe is full when the bandwidth did not grow by a quarter ...
const FULL_GROWTH: u64 = UNIT * 5 / 4;
/// ... for three rounds: one may be lost to the receive window's autotuning, two fill the pipe.
const FULL_ROUNDS: u32 = 3;
/// The draft, 4.1.2.2: a minimum RTT older than this is measured anew.
const MIN_RTT_WINDOW_NS: u64 = 10_000_000_000;
/// The draft, 4.3.5: duration and window of ProbeRTT, which keeps the queue empty.
const PROBE_RTT_NS: u64 = 200_000_000;
const MIN_WINDOW_SEGMENTS: u64 = 4;
/// Target window before there is an estimate (RFC 6928's initial window).
const INITIAL_TARGET_SEGMENTS: u64 = 10;
/// The draft, 4.2.3.2: room for this many bursts, for offloads at both ends.
const BURSTS: u64 = 3;
/// Linux (bbr_tso_segs_goal): a burst is the data sent in this fraction of a second, up to a
/// maximum (GSO_LEGACY_MAX_SIZE).
const BURST_SECOND_SHARE: u64 = 1024;
const BURST_MOST_BYTES: u64 = 65_215;
/// Linux (bbr_min_tso_segs): at this rate in bytes per second and above, a burst has at least two
/// segments.
pub const BURST_OF_TWO_FROM: u64 = 1_200_000 / 8;
/// Linux (bbr_pacing_margin_percent): percentage of the rate that is used, to keep the queue short.
const PACING_PERCENT: u64 = 99;
/// Linux (bbr_init_pacing_rate_from_rtt): assumed RTT where none is known.
const NOMINAL_RTT_US: u64 = 1_000;
/// Linux (tcp_bbr.c, bbr_extra_acked_win_rtts): length of each half of the aggregation window.
const EXTRA_ACKED_ROUNDS: u64 = 5;
/// Linux (bbr_extra_acked_max_us): aggregation is limited to the data that arrives in this time.
const EXTRA_ACKED_MAX_US: u64 = 100_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Doubles the rate each round until the pipe is full.
    Startup,
    /// Lets the queue of Startup drain.
    Drain,
    /// Cycles through `PROBE_BW_GAINS`.
    ProbeBandwidth { phase: usize, since_ns: u64 },
    /// Keeps few packets in flight, to see the path without a queue. Ends at `until_ns`, which is
    /// set once the flight has shrunk.
    ProbeRtt { until_ns: Option<u64> },
}

impl Mode {
    fn pacing_gain(self) -> u64 {
        match self {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeBandwidth { phase, .. } => PROBE_BW_GAINS[phase],
            Mode::ProbeRtt { .. } => UNIT,
        }
    }

    fn cwnd_gain(self) -> u64 {
        match self {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBandwidth { .. } | Mode::ProbeRtt { .. } => CWND_GAIN,
        }
    }
}

/// Bandwidth in 2^-24 segments per microsecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Bandwidth(u64);

impl Bandwidth {
    fn of(rate: &DeliveryRate, mss: u64) -> Self {
        Bandwidth((rate.bytes << BANDWIDTH_SCALE) / (mss * rate.interval_us))
    }

    /// Number of segments that arrive in this time.
    fn segments_in(self, us: u64) -> u64 {
        ((u128::from(self.0) * u128::from(us)) >> BANDWIDTH_SCALE) as u64
    }

    /// Pacing rate in bytes per second (bbr_bw_to_pacing_rate).
    fn pacing_rate(self, gain: u64, mss: u64) -> u64 {
        let bytes_per_us = (u128::from(self.0) * u128::from(mss * gain)) >> GAIN_SCALE;
        let percent = bytes_per_us * u128::from(1_000_000 / 100 * PACING_PERCENT);
        (percent >> BANDWIDTH_SCALE) as u64
    }
}

/// Detects whether Startup still finds more bandwidth.
#[derive(Clone, Copy, Debug, Default)]
struct Plateau {
    bandwidth: Bandwidth,
    rounds: u32,
}

impl Plateau {
    fn on_round(&mut self, bandwidth: Bandwidth) {
        if bandwidth.0 >= (self.bandwidth.0 * FULL_GROWTH) >> GAIN_SCALE {
            *self = Plateau { bandwidth, rounds: 0 };
        } else {
            self.rounds += 1;
        }
    }

    fn is_reached(&self) -> bool {
        self.rounds >= FULL_ROUNDS
    }
}

/// Bytes acknowledged beyond what the bandwidth explains, because ACKs arrive in bursts (Linux
/// since 5.1).
#[derive(Clone, Copy, Debug, Default)]
struct Aggregation {
    /// Largest excess in the current half of the window and in the previous one.
    largest: [u64; 2],
    half_began_round: u64,
    /// Start and bytes of the current burst.
    since_ns: u64,
    bytes: u64,
}

impl Aggregation {
    fn on_ack(&mut self, ack: &AckSample, cwnd: u64, bandwidth: Bandwidth, round: u64) {
        let elapsed_us = (ack.now_ns / 1000).saturating_sub(self.since_ns / 1000);
        let mut expected = bandwidth.segments_in(elapsed_us) * ack.mss;
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
        self.largest[0] = self.largest[0].max(self.bytes.saturating_sub(expected).min(cwnd));
    }

    fn allowance(&self, bandwidth: Bandwidth, mss: u64) -> u64 {
        let most = bandwidth.segments_in(EXTRA_ACKED_MAX_US) * mss;
        self.largest[0].max(self.largest[1]).min(most)
    }
}

/// The largest rate of the last rounds, as three candidates (Linux, lib/win_minmax.c), best and
/// oldest first, each with its round.
#[derive(Clone, Copy, Debug, Default)]
struct LargestRate([(u64, Bandwidth); 3]);

impl LargestRate {
    fn get(&self) -> Bandwidth {
        self.0[0].1
    }

    /// minmax_running_max.
    fn add(&mut self, round: u64, rate: Bandwidth) {
        let new = (round, rate);
        let best = &mut self.0;
        if rate >= best[0].1 || round - best[2].0 > BANDWIDTH_ROUNDS {
            *best = [new; 3];
            return;
        }
        if rate >= best[1].1 {
            best[1] = new;
            best[2] = new;
        } else if rate >= best[2].1 {
            best[2] = new;
        }
        // minmax_subwin_update.
        let age = round - best[0].0;
        if age > BANDWIDTH_ROUNDS {
            *best = [best[1], best[2], new];
            if round - best[0].0 > BANDWIDTH_ROUNDS {
                *best = [best[1], best[2], new];
            }
        } else if best[1].0 == best[0].0 && age > BANDWIDTH_ROUNDS / 4 {
            best[1] = new;
            best[2] = new;
        } else if best[2].0 == best[1].0 && age > BANDWIDTH_ROUNDS / 2 {
            best[2] = new;
        }
    }
}

pub struct Bbr {
    rng: Rng,
    mode: Mode,
    round: u64,
    largest_rate: LargestRate,
    /// u64::MAX: not measured yet.
    min_rtt_ns: u64,
    min_rtt_at_ns: u64,
    plateau: Plateau,
    aggregation: Aggregation,
    /// Window to restore after ProbeRTT or a loss.
    prior_cwnd: u64,
    /// Pacing rate in bytes per second.
    pacing_rate: u64,
    delivered: u64,
    in_recovery: bool,
    /// Whether this is the first round of a recovery, which sends only as much as arrived
    /// (packet_conservation).
    conserves: bool,
    /// Whether data left after a pause and no ACK arrived since.
    idle_restart: bool,
}

impl Bbr {
    pub fn new(rng: Rng) -> Self {
        Bbr {
            rng,
            mode: Mode::Startup,
            round: 0,
            largest_rate: LargestRate::default(),
            min_rtt_ns: u64::MAX,
            min_rtt_at_ns: 0,
            plateau: Plateau::default(),
            aggregation: Aggregation::default(),
            prior_cwnd: 0,
            pacing_rate: 0,
            delivered: 0,
            in_recovery: false,
            conserves: false,
            idle_restart: false,
        }
    }

    fn bandwidth(&self) -> Bandwidth {
        self.largest_rate.get()
    }

    fn probe_bandwidth(&mut self, now_ns: u64) -> Mode {
        let drawn = self.rng.up_to(PROBE_BW_GAINS.len() as u64 - 2) as usize;
        let phase = if drawn < DRAIN_PHASE { drawn } else { drawn + 1 };
        Mode::ProbeBandwidth { phase, since_ns: now_ns }
    }

    /// The draft, 4.2.3.2: the path's bandwidth-delay product, times this gain.
    fn bdp(&self, gain: u64, mss: u64) -> u64 {
        if self.min_rtt_ns == u64::MAX {
            return INITIAL_TARGET_SEGMENTS * mss;
        }
        let product = u128::from(self.bandwidth().0) * u128::from(self.min_rtt_ns / 1000);
        let scaled = (product * u128::from(gain)) >> GAIN_SCALE;
        scaled.div_ceil(1 << BANDWIDTH_SCALE) as u64 * mss
    }

    /// Linux, bbr_tso_segs_goal.
    fn burst_segments(&self, mss: u64) -> u64 {
        let least = if self.pacing_rate < BURST_OF_TWO_FROM { 1 } else { 2 };
        let bytes = (self.pacing_rate / BURST_SECOND_SHARE).min(BURST_MOST_BYTES);
        (bytes / mss).max(least)
    }

    /// Linux, bbr_quantization_budget: an even number of whole segments, plus room for bursts.
    fn with_bursts(&self, bytes: u64, mss: u64) -> u64 {
        let segments = bytes.div_ceil(mss) + BURSTS * self.burst_segments(mss);
        let is_probing = matches!(self.mode, Mode::ProbeBandwidth { phase: 0, .. });
        (segments.next_multiple_of(2) + if is_probing { 2 } else { 0 }) * mss
    }

    /// Target for the data in flight with this gain.
    fn in_flight_target(&self, gain: u64, mss: u64) -> u64 {
        self.with_bursts(self.bdp(gain, mss), mss)
    }

    /// Linux, bbr_packets_in_net_at_edt: data in flight when the pacer releases the next burst.
    fn in_flight_then(&self, in_flight: u64, ack: &AckSample) -> u64 {
        let wait_us = ack.next_departure_ns.saturating_sub(ack.now_ns) / 1000;
        let delivered = self.bandwidth().segments_in(wait_us) * ack.mss;
        let burst = if self.mode.pacing_gain() > UNIT { self.burst_segments(ack.mss) * ack.mss } else { 0 };
        (in_flight + burst).saturating_sub(delivered)
    }

    /// Linux, bbr_set_pacing_rate: until the pipe is full the rate only rises.
    fn set_pacing_rate(&mut self, gain: u64, mss: u64) {
        let rate = self.bandwidth().pacing_rate(gain, mss);
        if self.plateau.is_reached() || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// The draft, 4.1.1: the largest delivery rate of the last rounds. A rate limited by the
    /// application counts only if it raises the estimate.
    fn update_bandwidth(&mut self, ack: &AckSample) {
        let Some(sample) = ack.rate else { return };
        let rate = Bandwidth::of(&sample, ack.mss);
        if !sample.app_limited || rate >= self.bandwidth() {
            self.largest_rate.add(self.round, rate);
        }
    }

    /// The draft, 4.1.2: updates the minimum RTT. Returns true when the estimate had expired.
    fn update_min_rtt(&mut self, ack: &AckSample) -> bool {
        let expired = ack.now_ns > self.min_rtt_at_ns + MIN_RTT_WINDOW_NS;
        if let Some(rtt_ns) = ack.newest_rtt_ns.filter(|&rtt_ns| rtt_ns < self.min_rtt_ns || expired) {
            self.min_rtt_ns = rtt_ns;
            self.min_rtt_at_ns = ack.now_ns;
        }
        expired
    }

    /// The draft, 4.3: the mode after this ACK.
    fn next_mode(&mut self, ack: &AckSample) -> Mode {
        match self.mode {
            Mode::Startup => {
                let app_limited = ack.rate.is_some_and(|r| r.app_limited);
                if ack.round_started && !app_limited {
                    self.plateau.on_round(self.bandwidth());
                }
                if self.plateau.is_reached() {
                    self.mode = Mode::Drain;
                    self.drained(ack)
                } else {
                    Mode::Startup
                }
            }
            Mode::Drain => self.drained(ack),
            Mode::ProbeBandwidth { phase, since_ns } => {
                if self.phase_is_over(PROBE_BW_GAINS[phase], since_ns, ack) {
                    let phase = (phase + 1) % PROBE_BW_GAINS.len();
                    Mode::ProbeBandwidth { phase, since_ns: ack.now_ns }
                } else {
                    self.mode
                }
            }
            Mode::ProbeRtt { until_ns: None } if ack.in_flight <= MIN_WINDOW_SEGMENTS * ack.mss => {
                Mode::ProbeRtt { until_ns: Some(ack.now_ns + PROBE_RTT_NS) }
            }
            Mode::ProbeRtt { until_ns: Some(until_ns) } if ack.now_ns >= until_ns => {
                if self.plateau.is_reached() {
                    self.probe_bandwidth(ack.now_ns)
                } else {
                    Mode::Startup
                }
            }
            Mode::ProbeRtt { .. } => self.mode,
        }
    }

    /// The draft, 4.3.3: the mode after Drain.
    fn drained(&mut self, ack: &AckSample) -> Mode {
        if self.in_flight_then(ack.in_flight, ack) <= self.in_flight_target(UNIT, ack.mss) {
            self.probe_bandwidth(ack.now_ns)
        } else {
            Mode::Drain
        }
    }

    /// The draft, 4.3.4.3: whether ProbeBW proceeds to its next gain (bbr_is_next_cycle_phase).
    fn phase_is_over(&self, gain: u64, since_ns: u64, ack: &AckSample) -> bool {
        let full_length = ack.now_ns / 1000 - since_ns / 1000 > self.min_rtt_ns / 1000;
        let in_flight = self.in_flight_then(ack.prior_in_flight, ack);
        if gain > UNIT {
            full_length && (ack.lost_bytes > 0 || in_flight >= self.in_flight_target(gain, ack.mss))
        } else if gain < UNIT {
            full_length || in_flight <= self.in_flight_target(UNIT, ack.mss)
        } else {
            full_length
        }
    }

    /// Linux, bbr_set_cwnd_to_recover_or_restore: subtracts losses from the window. Returns true
    /// while only as much is sent as arrived.
    fn conserve(&mut self, ack: &AckSample, window: &mut Window) -> bool {
        window.cwnd = window.cwnd.saturating_sub(ack.lost_bytes).max(ack.mss);
        if ack.in_recovery && !self.in_recovery {
            self.conserves = true;
            window.cwnd = ack.in_flight + ack.delivered_bytes;
        } else if !ack.in_recovery && self.in_recovery {
            self.conserves = false;
        }
        self.in_recovery = ack.in_recovery;
        if self.conserves {
            window.cwnd = window.cwnd.max(ack.in_flight + ack.delivered_bytes);
        }
        self.conserves
    }

    /// The draft, 4.2.3: the window after this ACK, outside ProbeRTT.
    fn grown(&self, ack: &AckSample, cwnd: u64) -> u64 {
        let path = self.bdp(self.mode.cwnd_gain(), ack.mss);
        let is_full = self.plateau.is_reached();
        // Linux, bbr_ack_aggregation_cwnd.
        let allowance = if is_full { self.aggregation.allowance(self.bandwidth(), ack.mss) } else { 0 };
        let target = self.with_bursts(path + allowance, ack.mss);
        let grown = cwnd + ack.delivered_bytes;
        let least = MIN_WINDOW_SEGMENTS * ack.mss;
        if is_full {
            grown.min(target).max(least)
        } else if cwnd < target || self.delivered + ack.mss < INITIAL_TARGET_SEGMENTS * ack.mss {
            // The SYN counts as delivered.
            grown.max(least)
        } else {
            cwnd.max(least)
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
    /// Linux, bbr_init.
    fn on_established(&mut self, now_ns: u64, rtt_ns: Option<u64>, window: &Window) {
        self.min_rtt_ns = rtt_ns.unwrap_or(u64::MAX);
        self.min_rtt_at_ns = now_ns;
        self.aggregation.since_ns = now_ns;
        let rtt_us = rtt_ns.map_or(NOMINAL_RTT_US, |rtt_ns| (rtt_ns / 1000).max(1));
        let bandwidth = Bandwidth((window.cwnd << BANDWIDTH_SCALE) / rtt_us);
        self.pacing_rate = bandwidth.pacing_rate(HIGH_GAIN, 1);
    }

    /// Linux, bbr_cwnd_event: restarts no faster than the known bandwidth.
    fn on_restart(&mut self, restart: &Restart) {
        if !restart.app_limited {
            return;
        }
        self.idle_restart = true;
        self.aggregation.since_ns = restart.now_ns;
        self.aggregation.bytes = 0;
        if matches!(self.mode, Mode::ProbeBandwidth { .. }) {
            self.set_pacing_rate(UNIT, restart.mss);
        }
    }

    fn on_ack(&mut self, ack: &AckSample, window: &mut Window) {
        self.delivered += ack.delivered_bytes;
        self.round += u64::from(ack.round_started);
        self.conserves &= !ack.round_started;
        self.update_bandwidth(ack);
        if ack.rate.is_some() && ack.delivered_bytes > 0 {
            self.aggregation.on_ack(ack, window.cwnd, self.bandwidth(), self.round);
        }
        let before = self.mode;
        self.mode = self.next_mode(ack);
        let min_rtt_expired = self.update_min_rtt(ack);
        let is_probing = |mode| matches!(mode, Mode::ProbeRtt { .. });
        if is_probing(before) && !is_probing(self.mode) {
            self.min_rtt_at_ns = ack.now_ns;
            self.restore_cwnd(window);
        } else if min_rtt_expired && !is_probing(self.mode) && !self.idle_restart {
            self.mode = Mode::ProbeRtt { until_ns: None };
            self.save_cwnd(window);
        }
        self.idle_restart &= ack.delivered_bytes == 0;
        self.set_pacing_rate(self.mode.pacing_gain(), ack.mss);
        if ack.delivered_bytes > 0 && !self.conserve(ack, window) {
            window.cwnd = self.grown(ack, window.cwnd);
        }
        if is_probing(self.mode) {
            window.cwnd = window.cwnd.min(MIN_WINDOW_SEGMENTS * ack.mss);
        }
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
        Some(self.pacing_rate as f64)
    }

    fn is_rate_based(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    //! Linux 6.12, net/ipv4/tcp_bbr.c, on a path of 1 MB/s and 40 ms, with segments of 1000 bytes.

    use super::*;

    const MS: u64 = 1_000_000;
    const MSS: u64 = 1_000;

    fn begun() -> (Bbr, Window) {
        let mut bbr = Bbr::new(Rng::new(1, 1));
        let window = Window { cwnd: 10 * MSS, ssthresh: u64::MAX };
        bbr.on_established(0, Some(40 * MS), &window);
        (bbr, window)
    }

    /// Delivers one segment after the other at 1 MB/s, `per_round` in a round.
    fn deliver(bbr: &mut Bbr, window: &mut Window, from_ms: u64, segments: u64, per_round: u64) {
        for n in 0..segments {
            let ack = AckSample {
                now_ns: (from_ms + n) * MS,
                mss: MSS,
                acked_bytes: MSS,
                delivered_bytes: MSS,
                newest_rtt_ns: Some(40 * MS),
                in_flight: window.cwnd - MSS,
                prior_in_flight: window.cwnd,
                rate: Some(DeliveryRate { bytes: 40 * MSS, interval_us: 40_000, app_limited: false }),
                round_started: n % per_round == 0,
                ..AckSample::default()
            };
            bbr.on_ack(&ack, window);
        }
    }

    #[test]
    fn the_rate_begins_with_the_window_over_the_rtt_and_only_rises_until_the_pipe_is_full() {
        // bbr_init_pacing_rate_from_rtt and bbr_set_pacing_rate.
        let (mut bbr, mut window) = begun();
        let gain = HIGH_GAIN as f64 / 256.0;
        let first = gain * 0.99 * 10_000.0 / 0.04;
        assert!((bbr.pacing_rate as f64 - first).abs() < 2.0);
        let slow = AckSample {
            now_ns: 40 * MS,
            mss: MSS,
            delivered_bytes: MSS,
            newest_rtt_ns: Some(40 * MS),
            rate: Some(DeliveryRate { bytes: MSS, interval_us: 40_000, app_limited: true }),
            ..AckSample::default()
        };
        bbr.on_ack(&slow, &mut window);
        assert!((bbr.pacing_rate as f64 - first).abs() < 2.0, "a slow sample lowers nothing");
        deliver(&mut bbr, &mut window, 41, 1, 40);
        // 2^-24 segments per microsecond are 60 bytes per second.
        assert!((bbr.pacing_rate as f64 - gain * 0.99 * 1e6).abs() < gain * 60.0);
        deliver(&mut bbr, &mut window, 42, 200, 40);
        assert!(bbr.plateau.is_reached());
        assert!(bbr.pacing_rate < 1_300_000);
    }

    #[test]
    fn without_an_rtt_a_nominal_one_counts() {
        let mut bbr = Bbr::new(Rng::new(1, 1));
        bbr.on_established(0, None, &Window { cwnd: 10 * MSS, ssthresh: u64::MAX });
        assert!((bbr.pacing_rate as f64 - HIGH_GAIN as f64 / 256.0 * 0.99 * 1e7).abs() < 2.0);
    }

    #[test]
    fn in_the_first_round_of_a_recovery_what_arrived_leaves_again_and_no_more() {
        // bbr_set_cwnd_to_recover_or_restore.
        let (mut bbr, mut window) = begun();
        deliver(&mut bbr, &mut window, 40, 300, 40);
        let before = window.cwnd;
        bbr.on_loss(&Flight { bytes: before, end: 0, mss: MSS }, &mut window);
        let ack = |lost, round_started| AckSample {
            now_ns: 400 * MS,
            mss: MSS,
            delivered_bytes: 2 * MSS,
            newest_rtt_ns: Some(41 * MS),
            in_flight: 20 * MSS,
            lost_bytes: lost,
            in_recovery: true,
            round_started,
            ..AckSample::default()
        };
        bbr.on_ack(&ack(MSS, false), &mut window);
        assert_eq!(window.cwnd, 22 * MSS);
        bbr.on_ack(&ack(0, false), &mut window);
        assert_eq!(window.cwnd, 22 * MSS);
        // From the next round on it grows by the arrivals, less the losses.
        bbr.on_ack(&ack(0, true), &mut window);
        assert_eq!(window.cwnd, 24 * MSS);
        bbr.on_ack(&ack(MSS, false), &mut window);
        assert_eq!(window.cwnd, 25 * MSS);
        bbr.on_recovered(&mut window);
        assert_eq!(window.cwnd, before);
    }

    #[test]
    fn the_window_has_room_for_three_bursts_and_is_even() {
        // bbr_quantization_budget: the path's 40 segments, and twice that; bursts of two at 1 MB/s.
        let (mut bbr, mut window) = begun();
        deliver(&mut bbr, &mut window, 40, 400, 40);
        assert_eq!(bbr.burst_segments(MSS), 2);
        assert_eq!(bbr.with_bursts(39_001, MSS) - if is_phase_0(&bbr) { 2 * MSS } else { 0 }, 46 * MSS);
        assert_eq!(bbr.with_bursts(40_001, MSS) - if is_phase_0(&bbr) { 2 * MSS } else { 0 }, 48 * MSS);
    }

    #[test]
    fn probing_begins_in_any_phase_but_the_one_that_drains() {
        // bbr_reset_probe_bw_mode: 7 minus a draw below 7, and then the following phase.
        let begun_in = |seed| {
            let mut bbr = Bbr::new(Rng::new(seed, 0));
            match bbr.probe_bandwidth(0) {
                Mode::ProbeBandwidth { phase, .. } => phase,
                mode => panic!("{mode:?}"),
            }
        };
        let mut count = [0; 8];
        (0..700).for_each(|seed| count[begun_in(seed)] += 1);
        assert_eq!(count[1], 0);
        assert!(
            count.iter().enumerate().all(|(phase, &n)| phase == 1 || (60..150).contains(&n)),
            "{count:?}"
        );
    }

    #[test]
    fn the_largest_rate_is_kept_for_ten_rounds_and_then_the_next() {
        // minmax_running_max with a window of ten.
        let mut largest = LargestRate::default();
        let mut add = |round, rate| {
            largest.add(round, Bandwidth(rate));
            largest.get().0
        };
        assert_eq!(add(1, 100), 100);
        assert!((2..=11).all(|round| add(round, 200 - 10 * round.max(11)) == 100));
        // The later candidates are from the rounds in which a quarter and half of the window had
        // passed.
        assert_eq!(add(12, 50), 90);
        assert_eq!(add(13, 90), 90);
        assert_eq!(add(14, 95), 95);
        assert!((15..=24).all(|round| add(round, 10) == 95));
        assert_eq!(add(25, 10), 10);
    }

    #[test]
    fn what_is_no_whole_segment_was_not_expected() {
        // bbr_update_ack_aggregation, on the lab's link of 10 Mbit/s: two segments every 2460.8 us,
        // at ten in 12 304 us. Fewer than two are expected in 2460 us, so a burst starts with an
        // excess of three. Without rounding the expectation down, each ACK would start another
        // burst, of two.
        let bandwidth =
            Bandwidth::of(&DeliveryRate { bytes: 10 * MSS, interval_us: 12_304, app_limited: false }, MSS);
        let mut lump = Aggregation::default();
        for n in 1..100 {
            let ack = AckSample {
                now_ns: n * 2_460_800,
                mss: MSS,
                delivered_bytes: 2 * MSS,
                ..AckSample::default()
            };
            lump.on_ack(&ack, 100 * MSS, bandwidth, 0);
        }
        assert_eq!(lump.largest, [3 * MSS, 0]);
    }

    #[test]
    fn lumps_widen_the_window_only_once_the_pipe_is_full() {
        // bbr_ack_aggregation_cwnd.
        let (mut bbr, mut window) = begun();
        deliver(&mut bbr, &mut window, 40, 2, 40);
        bbr.aggregation.largest = [30 * MSS, 0];
        let ack = AckSample { mss: MSS, delivered_bytes: MSS, ..AckSample::default() };
        bbr.delivered = 100 * MSS;
        // 2.887 times 40 segments and three bursts of two.
        assert_eq!(bbr.grown(&ack, 120 * MSS), 121 * MSS);
        assert_eq!(bbr.grown(&ack, 122 * MSS), 122 * MSS);
        bbr.plateau.rounds = FULL_ROUNDS;
        assert_eq!(bbr.grown(&ack, 200 * MSS), 152 * MSS);
    }

    #[test]
    fn the_syn_counts_as_delivered() {
        // tcp_rcv_state_process: tp->delivered++. Until ten segments are delivered, the window
        // grows regardless of the estimate: eight of data and the SYN.
        let (mut bbr, mut window) = begun();
        for n in 1..=12 {
            let ack = AckSample {
                now_ns: 40 * MS + n * MS,
                mss: MSS,
                delivered_bytes: MSS,
                newest_rtt_ns: Some(40 * MS),
                rate: Some(DeliveryRate { bytes: MSS, interval_us: 40_000, app_limited: false }),
                ..AckSample::default()
            };
            bbr.on_ack(&ack, &mut window);
        }
        assert_eq!(window.cwnd, 18 * MSS);
    }

    fn is_phase_0(bbr: &Bbr) -> bool {
        matches!(bbr.mode, Mode::ProbeBandwidth { phase: 0, .. })
    }
}
