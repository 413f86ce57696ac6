// SPDX-License-Identifier: MIT
//! Reno (RFC 5681), with appropriate byte counting (RFC 3465).

use super::{slow_start, AckSample, Controller, Window};
use crate::scenario::Counting;

pub struct Reno {
    counting: Counting,
    /// Bytes acknowledged in congestion avoidance and not yet turned into a segment.
    credit: u64,
}

impl Reno {
    pub fn new(counting: Counting) -> Self {
        Reno { counting, credit: 0 }
    }
}

/// RFC 5681, equation 4.
fn halved(flight_bytes: u64, mss: u64) -> u64 {
    (flight_bytes / 2).max(2 * mss)
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

    fn on_loss(&mut self, flight_bytes: u64, mss: u64, window: &mut Window) {
        window.ssthresh = halved(flight_bytes, mss);
        window.cwnd = window.ssthresh;
    }

    fn on_timeout(&mut self, flight_bytes: u64, mss: u64, window: &mut Window) {
        window.ssthresh = halved(flight_bytes, mss);
        self.credit = 0;
    }
}
