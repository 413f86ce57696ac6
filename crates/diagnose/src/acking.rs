// SPDX-License-Identifier: MIT
//! How ACKs follow data.

use crate::distribution::Distribution;
use crate::observers::{End, Observer};
use crate::step::{AckKind, Step};
use serde::Serialize;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Acking {
    /// Segments that an advancing ACK acknowledges.
    pub segments: Distribution,
    /// From the newest packet that an ACK acknowledges to the ACK, at the capture point. What
    /// exceeds the smallest is the receiver's delay and the path's.
    pub newest_ns: Distribution,
    /// The same from the oldest packet: the longest that an ACK was owed.
    pub oldest_ns: Distribution,
}

impl Observer for Acking {
    type Report = Self;

    fn acked(&mut self, step: &Step) {
        let Some(ack) = step.ack.as_ref().filter(|a| a.kind == AckKind::Advancing && !a.is_recovery) else {
            return;
        };
        let (Some(newest_ns), Some(oldest_ns)) = (ack.newest_ns, ack.oldest_ns) else { return };
        self.segments.record(ack.segments.into());
        self.newest_ns.record(newest_ns);
        self.oldest_ns.record(oldest_ns);
    }

    fn finish(self, _end: &End) -> Self {
        self
    }
}
