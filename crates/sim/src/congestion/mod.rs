// SPDX-License-Identifier: MIT
//! Congestion control: the size of the window. One file per controller; `Controller` is the
//! interface to the sender.

mod bbr;
mod controller;
mod cubic;
mod hystart;
mod hystart_plus;
mod reno;

pub use bbr::BURST_OF_TWO_FROM;
pub use controller::{AckSample, DeliveryRate, Flight, Restart, Window, JIFFY_NS};

use crate::rng::Rng;
use crate::scenario::{CongestionControl, Hystart, SenderSpec};
use controller::Controller;
use hystart_plus::HyStartPlus;

/// A sender's window and the controller that sets it.
pub struct Congestion {
    pub window: Window,
    /// Copy of the controller's property, because every ACK needs it.
    pub is_rate_based: bool,
    controller: Box<dyn Controller>,
    /// Boxed: few senders have it, and a run may have many senders.
    hystart_plus: Option<Box<HyStartPlus>>,
}

impl Congestion {
    pub fn new(cfg: &SenderSpec, mss: u64, rng: Rng) -> Self {
        let controller: Box<dyn Controller> = match cfg.congestion_control {
            CongestionControl::Reno => Box::new(reno::Reno::new(cfg.counting)),
            CongestionControl::Cubic => Box::new(cubic::Cubic::new(cfg)),
            CongestionControl::Bbr => Box::new(bbr::Bbr::new(rng)),
        };
        let window = Window { cwnd: cfg.initial_window_bytes(mss), ssthresh: u64::MAX };
        let is_rate_based = controller.is_rate_based();
        let has_plus = cfg.hystart == Hystart::Rfc9406 && !is_rate_based;
        let hystart_plus = has_plus.then(|| Box::new(HyStartPlus::new(cfg.pacing)));
        Congestion { window, is_rate_based, controller, hystart_plus }
    }

    pub fn on_established(&mut self, now_ns: u64, rtt_ns: Option<u64>) {
        self.controller.on_established(now_ns, rtt_ns, &self.window);
    }

    pub fn on_restart(&mut self, restart: &Restart) {
        self.controller.on_restart(restart);
    }

    pub fn on_ack(&mut self, ack: &AckSample) {
        if self.hystart_plus.is_some() && self.window.in_first_slow_start() {
            self.on_ack_with_hystart_plus(ack);
        } else {
            self.controller.on_ack(ack, &mut self.window);
        }
    }

    // Out of line, so that `on_ack` can be inlined.
    #[cold]
    fn on_ack_with_hystart_plus(&mut self, ack: &AckSample) {
        if let Some(hystart_plus) = &mut self.hystart_plus {
            let acked_bytes = hystart_plus.growth(ack);
            self.controller.on_ack(&AckSample { acked_bytes, ..*ack }, &mut self.window);
            hystart_plus.on_ack(ack, &mut self.window);
        }
    }

    pub fn on_rtt(&mut self, ack: &AckSample) {
        self.controller.on_rtt(ack, &mut self.window);
    }

    pub fn on_loss(&mut self, flight: &Flight) {
        self.controller.on_loss(flight, &mut self.window);
    }

    pub fn on_timeout(&mut self, flight: &Flight) {
        self.controller.on_timeout(flight, &mut self.window);
        // RFC 5681, 3.1: the loss window is one full-sized segment.
        self.window.cwnd = flight.mss;
    }

    /// Restores the window: nothing was lost, so it is at least what it was before its reduction
    /// (Linux, tcp_undo_cwnd_reduction).
    pub fn on_undo(&mut self, before: &Window) {
        if !self.is_rate_based {
            self.window.cwnd = self.window.cwnd.max(before.cwnd);
            self.window.ssthresh = self.window.ssthresh.max(before.ssthresh);
        }
    }

    pub fn on_recovered(&mut self) {
        self.controller.on_recovered(&mut self.window);
    }

    pub fn pacing_rate(&self) -> Option<f64> {
        // Each burst calls this, and only a rate-based controller has a rate.
        if self.is_rate_based {
            self.controller.pacing_rate()
        } else {
            None
        }
    }
}
