// SPDX-License-Identifier: MIT
//! RTT between the capture point and the receiver, including the receiver's delay.

use crate::distribution::Distribution;
use crate::observer::{End, Observer};
use crate::step::Step;
use serde::Serialize;

/// Samples of the RTT between the capture point and the receiver, nanoseconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Rtt {
    /// Time from a packet that was sent once to the ACK of its end (Karn's rule).
    pub data_ns: Distribution,
    /// Time from the packet with a timestamp to the ACK that echoes it.
    pub timestamp_ns: Distribution,
}

impl Observer for Rtt {
    type Report = Self;

    fn acked(&mut self, step: &Step) {
        let Some(ack) = &step.ack else { return };
        if let Some(rtt_ns) = ack.rtt_ns() {
            self.data_ns.record(rtt_ns);
        }
        if let Some(rtt_ns) = ack.timestamp_rtt_ns {
            self.timestamp_ns.record(rtt_ns);
        }
    }

    fn finish(self, _end: &End) -> Self {
        self
    }
}
