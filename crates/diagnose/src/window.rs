// SPDX-License-Identifier: MIT
//! Bytes in flight and the advertised window.

use crate::distribution::Distribution;
use crate::observer::{End, Observer};
use crate::step::Step;
use ackwise_capture::tcp_flag;
use serde::Serialize;

/// Bytes in flight and the windows that limit them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Window {
    /// Whether the window scale is known; otherwise windows are raw header fields.
    pub is_known: bool,
    /// Bytes in flight after each packet with data, at the capture point.
    pub flight_bytes: Distribution,
    /// Bytes in flight as the data sender saw them.
    pub sender_flight_bytes: Distribution,
    /// Window advertised by each packet of the receiver.
    pub window_bytes: Distribution,
    /// Number of packets with a zero window.
    pub zero_windows: u64,
    /// Number of times that the window closed.
    pub closures: u64,
    /// Total time for which the window was closed, nanoseconds.
    pub closed_ns: u64,
    /// Number of packets that filled the window.
    pub window_full_packets: u64,
    #[serde(skip)]
    closed_since_ns: Option<u64>,
    #[serde(skip)]
    edge: Option<u64>,
}

impl Observer for Window {
    type Report = Self;

    fn sent(&mut self, step: &Step) {
        if step.data.kind.is_data() {
            self.flight_bytes.record(step.data.flight_bytes);
            self.sender_flight_bytes.record(step.data.sender.flight_bytes(step.data.end));
            let is_full = self.is_known && self.edge == Some(step.data.end) && step.payload_bytes > 0;
            self.window_full_packets += u64::from(is_full);
        }
    }

    fn acked(&mut self, step: &Step) {
        let Some(ack) = &step.ack else { return };
        if step.has(tcp_flag::SYN) {
            return;
        }
        self.is_known = ack.window_known;
        self.edge = Some(ack.edge);
        self.window_bytes.record(ack.window_bytes);
        if ack.window_bytes > 0 {
            self.open(step.time_ns);
            return;
        }
        self.zero_windows += 1;
        if self.closed_since_ns.is_none() {
            self.closures += 1;
            self.closed_since_ns = Some(step.time_ns);
        }
    }

    fn finish(mut self, end: &End) -> Self {
        self.open(end.time_ns);
        self
    }
}

impl Window {
    fn open(&mut self, now_ns: u64) {
        self.closed_ns += self.closed_since_ns.take().map_or(0, |since| now_ns - since);
    }
}
