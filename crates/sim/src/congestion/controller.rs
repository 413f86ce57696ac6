// SPDX-License-Identifier: MIT
//! What the sender tells a congestion controller, and what it expects of each.

use crate::scenario::Counting;

/// Linux paces at twice the window per RTT in slow start, and at 1.2 times near its end and later,
/// so that pacing does not limit the window's growth (tcp_pacing_ss_ratio, tcp_pacing_ca_ratio).
const PACING_GAIN_SLOW_START: f64 = 2.0;
const PACING_GAIN: f64 = 1.2;

/// The lab's kernel has 100 jiffies a second.
pub const JIFFY_NS: u64 = 10_000_000;

/// Information from one ACK.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckSample {
    pub now_ns: u64,
    pub mss: u64,
    /// Bytes newly acknowledged by the cumulative number.
    pub acked_bytes: u64,
    /// Bytes newly acknowledged or SACKed.
    pub delivered_bytes: u64,
    /// RTT of the oldest segment newly acknowledged, if it was sent once.
    pub rtt_ns: Option<u64>,
    /// RTT of the newest segment newly acknowledged or SACKed, if it was sent once.
    pub newest_rtt_ns: Option<u64>,
    pub srtt_ns: u64,
    /// SND.UNA and SND.NXT after this ACK.
    pub una: u64,
    pub nxt: u64,
    /// Bytes in flight before this ACK, and when it is evaluated.
    pub prior_in_flight: u64,
    pub in_flight: u64,
    /// Bytes that this ACK showed to be lost.
    pub lost_bytes: u64,
    /// Whether fast recovery has begun and not ended.
    pub in_recovery: bool,
    /// Time at which the pacer releases the next segment.
    pub next_departure_ns: u64,
    /// Whether the flow had as much in flight as the window allowed.
    pub window_limited: bool,
    pub rate: Option<DeliveryRate>,
    /// Whether all data sent before the round began is delivered.
    pub round_started: bool,
}

/// Rate at which data reached the receiver (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug)]
pub struct DeliveryRate {
    pub bytes: u64,
    /// Interval in microseconds, the resolution of Linux's clocks.
    pub interval_us: u64,
    /// Whether the sender ran out of data in the interval, so that the path may be faster.
    pub app_limited: bool,
}

/// The pause before data that leaves while nothing is outstanding (Linux, CA_EVENT_TX_START).
#[derive(Clone, Copy, Debug)]
pub struct Restart {
    pub now_ns: u64,
    pub mss: u64,
    /// Time at which data last left.
    pub last_sent_ns: u64,
    /// Whether the application had no data during the pause.
    pub app_limited: bool,
}

/// Data outstanding when a loss was detected.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// RFC 5681's FlightSize.
    pub bytes: u64,
    /// SND.NXT.
    pub end: u64,
    pub mss: u64,
}

/// The congestion window, and the window at which slow start ends.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub cwnd: u64,
    /// u64::MAX: not set yet.
    pub ssthresh: u64,
}

impl Window {
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Whether neither a loss nor a queue was found so far.
    pub fn in_first_slow_start(&self) -> bool {
        self.ssthresh == u64::MAX
    }

    /// Linux, tcp_current_ssthresh: a window of this size is known to be safe.
    pub fn known_good(&self) -> u64 {
        self.ssthresh.max(self.cwnd / 2 + self.cwnd / 4)
    }

    /// Bytes per second with which Linux spreads a window over an RTT (tcp_update_pacing_rate).
    pub fn pacing_rate(&self, srtt_ns: u64) -> f64 {
        let gain = if self.cwnd < self.ssthresh / 2 { PACING_GAIN_SLOW_START } else { PACING_GAIN };
        gain * self.cwnd as f64 * 1e9 / srtt_ns as f64
    }
}

/// A congestion control algorithm, which sets the window as ACKs and losses arrive.
pub trait Controller {
    /// The connection is established, with this window.
    fn on_established(&mut self, _now_ns: u64, _rtt_ns: Option<u64>, _window: &Window) {}

    /// Data leaves while nothing is outstanding.
    fn on_restart(&mut self, _restart: &Restart) {}

    /// An ACK arrived outside fast recovery (rate-based: any ACK).
    fn on_ack(&mut self, ack: &AckSample, window: &mut Window);

    /// An ACK arrived, in any state, before its losses are evaluated.
    fn on_rtt(&mut self, _ack: &AckSample, _window: &mut Window) {}

    /// Duplicate ACKs or SACK showed a loss.
    fn on_loss(&mut self, flight: &Flight, window: &mut Window);

    /// The retransmission timer expired; the caller sets the loss window afterwards.
    fn on_timeout(&mut self, flight: &Flight, window: &mut Window);

    /// Recovery ended.
    fn on_recovered(&mut self, _window: &mut Window) {}

    /// Pacing rate in bytes per second; None: the algorithm does not pace.
    fn pacing_rate(&self) -> Option<f64> {
        None
    }

    /// Whether it follows the delivery rate and does not reduce the window on loss.
    fn is_rate_based(&self) -> bool {
        false
    }
}

/// Slow start, shared by the loss-based controllers: grows the window up to ssthresh and returns
/// the bytes left for congestion avoidance.
pub fn slow_start(counting: Counting, ack: &AckSample, window: &mut Window) -> u64 {
    // An unused window is no evidence about the path (RFC 9293, 3.8.6; RFC 7661).
    if ack.acked_bytes == 0 || !ack.window_limited {
        return 0;
    }
    let bytes = match counting {
        Counting::Bytes => ack.acked_bytes,
        // L = 2 SMSS [RFC 3465, 2.2]
        Counting::Bytes2smss => ack.acked_bytes.min(2 * ack.mss),
        Counting::Acks => ack.acked_bytes.min(ack.mss),
    };
    if !window.in_slow_start() {
        return bytes;
    }
    let grow = bytes.min(window.ssthresh - window.cwnd);
    window.cwnd += grow;
    bytes - grow
}
