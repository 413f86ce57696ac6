// SPDX-License-Identifier: MIT
//! Reno (RFC 5681), with appropriate byte counting (RFC 3465).

use super::controller::{slow_start, AckSample, Controller, Flight, Window};
use crate::scenario::Counting;

pub struct Reno {
    counting: Counting,
    /// Bytes acknowledged in congestion avoidance for which the window has not grown yet.
    credit: u64,
}

impl Reno {
    pub fn new(counting: Counting) -> Self {
        Reno { counting, credit: 0 }
    }
}

/// Half of the flight (RFC 5681, equation 4).
fn halved(flight: &Flight) -> u64 {
    (flight.bytes / 2).max(2 * flight.mss)
}

impl Controller for Reno {
    fn on_ack(&mut self, ack: &AckSample, window: &mut Window) {
        let bytes = slow_start(self.counting, ack, window);
        if bytes == 0 {
            return;
        }
        // RFC 3465, 2.1: one segment for each window acknowledged.
        self.credit += bytes;
        if self.credit >= window.cwnd {
            self.credit -= window.cwnd;
            window.cwnd += ack.mss;
        }
    }

    fn on_loss(&mut self, flight: &Flight, window: &mut Window) {
        window.ssthresh = halved(flight);
        window.cwnd = window.ssthresh;
    }

    fn on_timeout(&mut self, flight: &Flight, window: &mut Window) {
        window.ssthresh = halved(flight);
        self.credit = 0;
    }
}
