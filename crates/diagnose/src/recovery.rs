// SPDX-License-Identifier: MIT
//! Why a sender sends again.
//!
//! A timer has run off when the sender was silent for an RTT and heard nothing; else an ACK made it
//! send. What follows belongs to the same recovery until all that was in flight at its start is
//! acknowledged (RFC 6582, 3.2; RFC 5681, 4.3).

use crate::distance::Recent;
use crate::step::Cause;

/// A tail loss probe comes no sooner, whatever the RTT; a retransmission timer neither (FreeBSD: 30 ms).
const PROBE_NS: u64 = 1_000_000;
const TIMER_NS: u64 = 25_000_000;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recovery {
    /// What it is, and the number whose acknowledgment ends it.
    open: Option<(Cause, u64)>,
    duplicates: u32,
    /// A probe was sent since the last advancing ACK.
    is_probed: bool,
}

/// What is known about a retransmission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clue {
    /// It begins with the first number that is not acknowledged.
    pub is_first: bool,
    /// It ends with the highest number sent.
    pub is_tail: bool,
    /// SACK blocks lie above it, or something sent later is acknowledged.
    pub is_reported: bool,
    /// The peer's packets are seen.
    pub is_answered: bool,
    /// How long the sender had neither sent nor heard.
    pub silence_ns: u64,
    pub rtt: Recent,
    pub sack: bool,
    pub nxt: u64,
}

impl Recovery {
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// A duplicate ACK; one that only reports data received twice says that nothing is missing, and
    /// answers a probe (RFC 8985, 7.4).
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

    /// The cause, and whether it begins a recovery.
    pub fn retransmission(&mut self, clue: &Clue) -> (Cause, bool) {
        if !clue.is_answered {
            return (Cause::Unclear, false);
        }
        let has_evidence = clue.is_reported || self.duplicates > 0 || self.open.is_some();
        let by_timer = match has_evidence {
            // Queues stretch what the capture point sees of the sender's pace.
            true => clue.silence_ns >= (2 * clue.rtt.max_ns).max(TIMER_NS),
            false => clue.silence_ns >= clue.rtt.min_ns.max(PROBE_NS),
        };
        let (cause, begins) = match self.open {
            // The ACK clock never rests that long unless the retransmission was lost too.
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
