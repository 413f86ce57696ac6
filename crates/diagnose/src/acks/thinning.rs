// SPDX-License-Identifier: MIT
//! ACKs that left the receiver and did not come to the capture point: taken out by an ACK filter, or
//! lost.
//!
//! The receiver's IP identification shows them where it counts the packets of the connection, as that
//! of Linux does: what lacks between two pure ACKs with the same sequence number were pure ACKs too.
//! A receiver sends at most one ACK for a segment, so numbers that grow faster than what is
//! acknowledged count something else, and say nothing.

use super::habits::{keep, Example};
use crate::step::{Ack, Step};
use serde::Serialize;

/// Fewer steps from one number to the next are no evidence.
const STEPS_LEAST: u64 = 8;
/// Of them: that may be larger than what was acknowledged, for window updates.
const ODD_SHARE: u64 = 20;
/// A number that does not change counts nothing.
const REPEATED: i16 = -1;

/// What the numbers of the receiver's packets show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AckThinning {
    /// Pure ACKs that came, each with the number of the ACK in front of it known.
    pub seen_acks: u64,
    pub missing_acks: u64,
    /// Packets that came after a gap.
    pub missing_examples: Vec<Example>,
}

#[derive(Debug, Default)]
pub(super) struct Thinning {
    found: AckThinning,
    odd_steps: u64,
    /// Sequence number of the pure ACK in front; none behind data.
    last: Option<u64>,
}

impl Thinning {
    /// A packet of the receiver.
    pub fn acked(&mut self, step: &Step, ack: &Ack) {
        // Data takes a number for each segment that an offload makes of it.
        let before = self.last.take();
        if !step.is_pure_ack() {
            return;
        }
        self.last = Some(step.data.start);
        if before != self.last {
            return;
        }
        let ahead = step.data.ident.ahead;
        if ahead < REPEATED {
            // Overtaken on its way, and counted as missing then.
            self.found.missing_acks = self.found.missing_acks.saturating_sub(1);
            return;
        }
        self.found.seen_acks += 1;
        let sacked = ack.sacked_bytes.div_ceil(u64::from(ack.mss_bytes.max(1)));
        match u64::try_from(ahead) {
            Ok(missing) if missing < u64::from(ack.segments).max(sacked).max(1) => {
                if missing > 0 {
                    self.found.missing_acks += missing;
                    keep(&mut self.found.missing_examples, step);
                }
            }
            _ => self.odd_steps += 1,
        }
    }

    /// None where the numbers do not count the packets of the connection.
    pub fn finish(self) -> Option<AckThinning> {
        let counts = self.odd_steps * ODD_SHARE <= self.found.seen_acks;
        (self.found.seen_acks >= STEPS_LEAST && counts).then_some(self.found)
    }
}
