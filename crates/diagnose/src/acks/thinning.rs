// SPDX-License-Identifier: MIT
//! ACKs that left the receiver but did not reach the capture point: removed by an ACK filter, or
//! lost.
//!
//! The receiver's IP identification shows them if it counts the connection's packets, as in Linux:
//! packets missing between two pure ACKs with equal sequence numbers must have been pure ACKs. A
//! receiver sends at most one ACK per segment, so identifications that grow faster than the
//! acknowledged data count something else and are no evidence.

use super::habits::{keep, Example};
use crate::step::{Ack, Step};
use serde::Serialize;

/// Minimum number of identification steps that count as evidence.
const STEPS_MIN: u64 = 8;
/// At most one in this many identification steps may exceed the segments acknowledged (window
/// updates).
const ODD_SHARE: u64 = 20;
/// Step of an identification that does not change and so counts nothing.
const REPEATED: i16 = -1;

/// ACKs seen and missing, according to the identification of the receiver's packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AckThinning {
    /// Number of pure ACKs that arrived after an ACK with a known identification.
    pub seen_acks: u64,
    /// Number of pure ACKs that left the receiver but did not arrive.
    pub missing_acks: u64,
    /// Packets that arrived after a gap.
    pub missing_examples: Vec<Example>,
}

#[derive(Debug, Default)]
pub(super) struct Thinning {
    found: AckThinning,
    odd_steps: u64,
    /// Sequence number of the previous packet if it was a pure ACK; None after data.
    last: Option<u64>,
}

impl Thinning {
    /// Processes a packet of the receiver.
    pub fn acked(&mut self, step: &Step, ack: &Ack) {
        // Data uses one identification for each segment that an offload creates from it.
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
            // Overtaken, and already counted as missing.
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

    /// None where identifications do not count the packets of the connection.
    pub fn finish(self) -> Option<AckThinning> {
        let counts = self.odd_steps * ODD_SHARE <= self.found.seen_acks;
        (self.found.seen_acks >= STEPS_MIN && counts).then_some(self.found)
    }
}
