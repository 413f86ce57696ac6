// SPDX-License-Identifier: MIT
//! Congestion control: how large the window may be. One file per controller; `Controller` is what
//! the sender expects of each.

mod bbr;
mod cubic;
mod reno;

use crate::scenario::{CongestionControl, Counting};

/// What the sender learned from one ACK.
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
    pub rate: Option<DeliveryRate>,
    /// All data sent before the round began is delivered.
    pub round_started: bool,
}

/// How fast data reached the receiver (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug)]
pub struct DeliveryRate {
    pub bytes_per_s: f64,
    /// The sender lacked data meanwhile: the path may be faster.
    pub app_limited: bool,
}

/// The window and the size at which slow start ends.
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
}

/// One congestion control algorithm: sets the window as ACKs and losses come in.
trait Controller {
    /// An ACK arrived outside fast recovery (rate-based: any ACK).
    fn on_ack(&mut self, ack: &AckSample, window: &mut Window);

    /// Duplicate ACKs or SACK showed a loss; `flight_bytes` is RFC 5681's FlightSize.
    fn on_loss(&mut self, flight_bytes: u64, mss: u64, window: &mut Window);

    /// The retransmission timer expired; the caller sets the loss window afterwards.
    fn on_timeout(&mut self, flight_bytes: u64, mss: u64, window: &mut Window);

    /// Recovery ended.
    fn on_recovered(&mut self, _window: &mut Window) {}

    /// Bytes per second at which segments leave; None: the algorithm does not pace.
    fn pacing_rate(&self) -> Option<f64> {
        None
    }

    /// It follows the delivery rate and does not cut the window on loss.
    fn is_rate_based(&self) -> bool {
        false
    }
}

/// A sender's window and the controller that sets it.
pub struct Congestion {
    pub window: Window,
    controller: Box<dyn Controller>,
}

impl Congestion {
    pub fn new(kind: CongestionControl, counting: Counting, mss: u64, initial_segments: u64) -> Self {
        let controller: Box<dyn Controller> = match kind {
            CongestionControl::Reno => Box::new(reno::Reno::new(counting)),
            CongestionControl::Cubic => Box::new(cubic::Cubic::new(counting)),
            CongestionControl::Bbr => Box::<bbr::Bbr>::default(),
        };
        let window = Window { cwnd: mss * initial_segments.max(1), ssthresh: u64::MAX };
        Congestion { window, controller }
    }

    pub fn on_ack(&mut self, ack: &AckSample) {
        self.controller.on_ack(ack, &mut self.window);
    }

    pub fn on_loss(&mut self, flight_bytes: u64, mss: u64) {
        self.controller.on_loss(flight_bytes, mss, &mut self.window);
    }

    pub fn on_timeout(&mut self, flight_bytes: u64, mss: u64) {
        self.controller.on_timeout(flight_bytes, mss, &mut self.window);
        // RFC 5681, 3.1: the loss window is one full-sized segment.
        self.window.cwnd = mss;
    }

    pub fn on_recovered(&mut self) {
        self.controller.on_recovered(&mut self.window);
    }

    pub fn pacing_rate(&self) -> Option<f64> {
        self.controller.pacing_rate()
    }

    pub fn is_rate_based(&self) -> bool {
        self.controller.is_rate_based()
    }
}

/// Slow start, shared by the loss-based controllers: grows the window up to ssthresh and returns
/// the bytes left for congestion avoidance.
fn slow_start(counting: Counting, ack: &AckSample, window: &mut Window) -> u64 {
    // A window that is not used says nothing about the path (RFC 9293, 3.8.6; RFC 7661).
    if ack.acked_bytes == 0 || !ack.window_limited {
        return 0;
    }
    let bytes = match counting {
        Counting::Bytes => ack.acked_bytes,
        // RFC 3465, 2.2: L = 2 SMSS.
        // [RFC3465.1]
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
