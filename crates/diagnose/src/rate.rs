// SPDX-License-Identifier: MIT
//! Throughput, goodput and idle gaps.

use crate::observer::{End, Observer};
use crate::step::{AckKind, Step};
use serde::Serialize;

/// Silences, with and without data in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Gaps {
    /// Number of silences.
    pub count: u64,
    /// Total length, nanoseconds.
    pub total_ns: u64,
    /// Length of the longest, nanoseconds.
    pub longest_ns: u64,
}

impl Gaps {
    fn add(&mut self, gap_ns: u64) {
        self.count += 1;
        self.total_ns += gap_ns;
        self.longest_ns = self.longest_ns.max(gap_ns);
    }
}

/// Rates and silences of one direction.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Rate {
    /// Time of the first packet with data, nanoseconds since the start of the capture.
    pub first_data_ns: Option<u64>,
    /// Time of the last packet with data.
    pub last_data_ns: Option<u64>,
    /// Time of the last ACK that acknowledged data for the first time.
    pub last_advance_ns: Option<u64>,
    /// Rate of payload from the first to the last packet with data, bit/s, including
    /// retransmissions.
    pub throughput_bps: Option<f64>,
    /// Rate of acknowledged payload from the first packet with data to the last advancing ACK,
    /// bit/s.
    pub goodput_bps: Option<f64>,
    /// Longest time between two packets of the data sender, nanoseconds.
    pub longest_silence_ns: u64,
    /// Silences of both endpoints for more than two RTTs that ended with data of this one, while
    /// nothing was in flight at the capture point.
    pub idle: Gaps,
    /// Such silences while data was in flight.
    pub waiting: Gaps,
    #[serde(skip)]
    last_ns: Option<u64>,
    #[serde(skip)]
    payload_bytes: u64,
    #[serde(skip)]
    acked_bytes: u64,
}

impl Observer for Rate {
    type Report = Self;

    fn sent(&mut self, step: &Step) {
        let since_ns = self.last_ns.map_or(0, |last| step.time_ns - last);
        self.longest_silence_ns = self.longest_silence_ns.max(since_ns);
        self.last_ns = Some(step.time_ns);
        if !step.data.kind.is_data() {
            return;
        }
        self.first_data_ns = self.first_data_ns.or(Some(step.time_ns));
        self.last_data_ns = Some(step.time_ns);
        self.payload_bytes += u64::from(step.payload_bytes);
        if step.rtt_ns().is_some_and(|rtt| step.silence_ns > 2 * rtt) {
            match step.data.flight_before_bytes {
                0 => self.idle.add(step.silence_ns),
                _ => self.waiting.add(step.silence_ns),
            }
        }
    }

    fn acked(&mut self, step: &Step) {
        let Some(ack) = step.ack.as_ref().filter(|a| a.kind == AckKind::Advancing) else { return };
        if self.first_data_ns.is_some() {
            self.acked_bytes += ack.acked_bytes;
            self.last_advance_ns = Some(step.time_ns);
        }
    }

    fn finish(mut self, _end: &End) -> Self {
        let rate = |bytes: u64, until_ns: Option<u64>| {
            let ns = until_ns?.checked_sub(self.first_data_ns?).filter(|&ns| ns > 0)?;
            Some(bytes as f64 * 8e9 / ns as f64)
        };
        let throughput_bps = rate(self.payload_bytes, self.last_data_ns);
        let goodput_bps = rate(self.acked_bytes, self.last_advance_ns);
        (self.throughput_bps, self.goodput_bps) = (throughput_bps, goodput_bps);
        self
    }
}
