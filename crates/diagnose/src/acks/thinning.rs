// SPDX-License-Identifier: MIT
//! ACKs that left the receiver but did not reach the capture point: removed by an ACK filter, or
//! lost.
//!
//! The receiver's IP identification shows them if it counts the connection's packets, as in Linux:
//! packets missing between two pure ACKs with equal sequence numbers must have been pure ACKs. A
//! receiver sends at most one ACK per segment, so identifications that grow faster than the
//! acknowledged data count something else and are no evidence.
//!
//! Timestamps show them, too: a receiver echoes the timestamp of the oldest segment that it had not
//! acknowledged (RFC 7323, 4.3). An ACK that echoes a later one of its segments follows an ACK that
//! is missing here; one that echoes the oldest is all that the receiver sent.

use super::habits::{keep, Example, STRETCH_SEGMENTS};
use crate::step::{Ack, Echo, Step};
use serde::Serialize;

/// Minimum number of identification steps that count as evidence.
const STEPS_MIN: u64 = 8;
/// At most one in this many identification steps may exceed the segments acknowledged (window
/// updates).
const ODD_SHARE: u64 = 20;
/// Minimum time in a queue, above what clock ticks and hosts leave uncertain.
const QUEUE_NS: u64 = 2_000_000;
/// Step of an identification that does not change and so counts nothing.
const REPEATED: i16 = -1;

/// Minimum number of stretch ACKs whose echoes decide, and the share of one kind that does.
const ECHOES_MIN: u64 = 5;
const ECHOES_SHARE: f64 = 0.8;
/// Share of missing ACKs from which stretch ACKs are the path's.
const MISSING_SHARE: f64 = 0.05;

/// Who made the stretch ACKs that passed the capture point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Thinner {
    /// There are too few.
    #[default]
    None,
    /// The receiver's TCP, which sent no others.
    Receiver,
    /// Something below it: its driver or queue, a filter, or losses on the way.
    Path,
    /// The packets at this point do not show it.
    NotVisible,
}

/// ACKs seen and missing, according to the identification of the receiver's packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AckThinning {
    /// Number of pure ACKs that arrived after an ACK with a known identification.
    pub seen_acks: u64,
    /// Number of pure ACKs that left the receiver but did not arrive.
    pub missing_acks: u64,
    /// Those before an ACK that itself waited in a queue, according to timestamps: an ACK filter works
    /// where ACKs queue.
    pub queued_acks: u64,
    /// Packets that arrived after a gap.
    pub missing_examples: Vec<Example>,
}

#[derive(Debug, Default)]
pub(super) struct Thinning {
    found: AckThinning,
    odd_steps: u64,
    /// Stretch ACKs that echo the oldest of their segments, and a later one.
    echoes_oldest: u64,
    echoes_later: u64,
    /// Sequence number of the previous packet if it was a pure ACK; None after data.
    last: Option<u64>,
}

impl Thinning {
    /// Processes a packet of the receiver.
    pub fn acked(&mut self, step: &Step, ack: &Ack) {
        if ack.segments >= STRETCH_SEGMENTS && !ack.is_recovery && ack.unseen_bytes == 0 {
            self.echoes_oldest += u64::from(ack.echo == Echo::Oldest);
            self.echoes_later += u64::from(ack.echo == Echo::Later);
        }
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
                    let is_queued = step.queued_ns.is_some_and(|ns| ns >= QUEUE_NS);
                    self.found.queued_acks += if is_queued { missing } else { 0 };
                    keep(&mut self.found.missing_examples, step);
                }
            }
            _ => self.odd_steps += 1,
        }
    }

    /// What is missing, None where identifications do not count the packets of the connection; and
    /// who made the `stretched` ACKs.
    pub fn finish(self, is_at_receiver: bool, stretched: u64) -> (Option<AckThinning>, Thinner) {
        let counts = self.odd_steps * ODD_SHARE <= self.found.seen_acks;
        let found = (self.found.seen_acks >= STEPS_MIN && counts).then_some(self.found);
        let echoes = self.echoes_oldest + self.echoes_later;
        let decides = |count: u64| echoes >= ECHOES_MIN && count as f64 >= ECHOES_SHARE * echoes as f64;
        let missing = found.as_ref().map(|f| f.missing_acks as f64 > MISSING_SHARE * f.seen_acks as f64);
        let whose = match missing {
            Some(true) => Thinner::Path,
            _ if stretched < ECHOES_MIN => Thinner::None,
            _ if is_at_receiver || missing == Some(false) || decides(self.echoes_oldest) => Thinner::Receiver,
            _ if decides(self.echoes_later) => Thinner::Path,
            _ => Thinner::NotVisible,
        };
        (found, whose)
    }
}
