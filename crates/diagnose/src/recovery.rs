// SPDX-License-Identifier: MIT
//! Causes of retransmissions.
//!
//! A timer has expired if the sender was silent for an RTT and heard nothing; otherwise an ACK
//! triggered the retransmission. Later retransmissions belong to the same recovery until everything
//! that was in flight at its start is acknowledged (RFC 6582, 3.2; RFC 5681, 4.3).

use crate::distance::Recent;
use crate::step::Cause;

/// Minimum delay of a tail loss probe, whatever the RTT, and of a retransmission timer (FreeBSD: 30
/// ms).
const PROBE_NS: u64 = 1_000_000;
const TIMER_NS: u64 = 25_000_000;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recovery {
    /// Cause of the recovery in progress, and the number whose acknowledgment ends it.
    open: Option<(Cause, u64)>,
    duplicates: u32,
    /// Whether a probe was sent since the last advancing ACK.
    is_probed: bool,
}

/// The evidence about a retransmission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clue {
    /// Whether it starts with the first unacknowledged number.
    pub is_first: bool,
    /// Whether it ends with the highest number sent.
    pub is_tail: bool,
    /// Whether SACK blocks lie above it, or data sent later is acknowledged.
    pub is_reported: bool,
    /// Whether the peer's packets are in the capture.
    pub is_answered: bool,
    /// Time for which the sender had neither sent nor received.
    pub silence_ns: u64,
    pub rtt: Recent,
    pub sack: bool,
    pub nxt: u64,
}

impl Recovery {
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Records a duplicate ACK. One that only reports data received twice shows that nothing is
    /// missing: it answers a probe (RFC 8985, 7.4).
    pub fn duplicate(&mut self, only_dsack: bool) {
        match only_dsack {
            true => self.is_probed = false,
            false => self.duplicates = self.duplicates.saturating_add(1),
        }
    }

    pub fn advance(&mut self, una: u64) {
        self.duplicates = 0;
        self.is_probed = false;
        self.open = self.open.filter(|&(_, end)| una < end);
    }

    /// The cause, and whether it starts a recovery.
    pub fn retransmission(&mut self, clue: &Clue) -> (Cause, bool) {
        if !clue.is_answered {
            return (Cause::Unclear, false);
        }
        let has_evidence = clue.is_reported || self.duplicates > 0 || self.open.is_some();
        let by_timer = match has_evidence {
            // Queues stretch the sender's pace as seen at the capture point.
            true => clue.silence_ns >= (2 * clue.rtt.max_ns).max(TIMER_NS),
            false => clue.silence_ns >= clue.rtt.min_ns.max(PROBE_NS),
        };
        let (cause, begins) = match self.open {
            // The ACK clock never pauses that long unless the retransmission was lost too.
            Some(_) if by_timer && clue.is_first => (Cause::Timeout, true),
            Some((cause, _)) => (cause, false),
            None if by_timer && clue.is_tail && clue.sack && !has_evidence && !self.is_probed => {
                self.is_probed = true;
                return (Cause::TailLossProbe, true);
            }
            None if by_timer => (Cause::Timeout, true),
            None if has_evidence => (Cause::Fast, true),
            None => return (Cause::Unclear, true),
        };
        if begins {
            self.open = Some((cause, clue.nxt));
        }
        (cause, begins)
    }
}
