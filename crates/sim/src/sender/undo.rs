// SPDX-License-Identifier: MIT
//! Undo of a window reduction when nothing was lost: the echoed timestamp shows that the original
//! arrived (Eifel, RFC 3522), or D-SACK that every retransmission was a copy (RFC 3708), as in
//! Linux 6.12 (tcp_try_undo_recovery and related functions in net/ipv4/tcp_input.c).

use super::segment::is_earlier;
use super::Sender;
use crate::congestion::Window;

/// Data needed to undo a reduction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Undo {
    /// The last reduction, if it can still be undone.
    reduction: Option<Reduction>,
    /// Time of the first retransmission since nothing was lost.
    first_resent_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Reduction {
    /// SND.UNA at the reduction.
    una: u64,
    window: Window,
    /// Retransmissions that no D-SACK has reported; None: nothing was retransmitted.
    resent: Option<u64>,
}

impl Undo {
    /// Remembers the window before a reduction, with this many retransmissions in flight.
    pub fn remember(&mut self, una: u64, window: Window, resent_in_flight: u64) {
        let window = Window { ssthresh: window.known_good(), ..window };
        let resent = (resent_in_flight > 0).then_some(resent_in_flight);
        self.reduction = Some(Reduction { una, window, resent });
    }

    pub fn resend(&mut self, now: u64) {
        self.first_resent_ns.get_or_insert(now);
        if let Some(reduction) = &mut self.reduction {
            *reduction.resent.get_or_insert(0) += 1;
        }
    }

    /// Makes the reduction final.
    pub fn forget_reduction(&mut self) {
        self.reduction = None;
    }

    /// Makes the reduction final because congestion is proven (RFC 3168), even if nothing was lost
    /// (Linux, prior_ssthresh).
    pub fn forbid(&mut self) {
        if let Some(reduction) = &mut self.reduction {
            reduction.window = Window { cwnd: 0, ssthresh: 0 };
        }
    }

    /// Records that D-SACK reported `segments` up to `end` as copies.
    pub fn take_dsack(&mut self, end: u64, segments: u64) {
        if let Some(reduction) = self.reduction.as_mut().filter(|r| end > r.una) {
            reduction.resent = reduction.resent.map(|n| n.saturating_sub(segments));
        }
    }

    /// Records that no retransmission is outstanding.
    pub fn forget_retransmissions(&mut self) {
        self.first_resent_ns = None;
    }

    fn all_were_copies(&self) -> bool {
        self.reduction.is_some_and(|r| r.resent == Some(0))
    }

    /// Whether the arriving data left before the first retransmission; `echo_ns` is 0 without
    /// timestamps.
    fn original_arrived(&self, echo_ns: u64) -> bool {
        self.reduction.is_some() && self.first_resent_ns.map_or(true, |at| is_earlier(echo_ns, at))
    }

    fn is_due(&self, echo_ns: u64) -> bool {
        self.all_were_copies() || self.original_arrived(echo_ns)
    }
}

impl Sender {
    /// Remembers the window, which is about to be reduced.
    pub(super) fn remember_window(&mut self) {
        let probes = u64::from(self.tail_probe.is_some_and(|probe| probe.is_copy));
        let resent_in_flight = self.tally.again.div_ceil(self.mss) + probes;
        self.undo.remember(self.una, self.cc.window, resent_in_flight);
    }

    /// Whether a retransmission may still be in flight, or acknowledge the segment that blocks all
    /// others.
    pub(super) fn resent_is_out(&self) -> bool {
        self.tally.again > 0 || self.segments.front().is_some_and(|s| s.retransmitted)
    }

    pub(super) fn forget_old_retransmissions(&mut self) {
        if !self.resent_is_out() {
            self.undo.forget_retransmissions();
        }
    }

    fn undo_reduction(&mut self) {
        if let Some(reduction) = self.undo.reduction.take() {
            if reduction.window.ssthresh > self.cc.window.ssthresh {
                self.ecn.withdraw_cwr();
            }
            self.cc.on_undo(&reduction.window);
        }
        self.rack.look_again(self.una);
    }

    /// Unmarks segments that were wrongly marked as lost.
    fn unmark_lost(&mut self) {
        if self.tally.lost > 0 {
            for segment in &mut self.segments {
                segment.lost = false;
            }
            self.tally.lost = 0;
        }
    }

    /// Called when all data outstanding at the reduction is acknowledged. Returns whether the
    /// reduction stands.
    pub(super) fn confirm_reduction(&mut self, echo_ns: u64) -> bool {
        if self.undo.is_due(echo_ns) {
            self.undo_reduction();
            return false;
        }
        self.rack.end_recovery();
        true
    }

    /// In fast recovery, after a partial ACK: true if it showed the original. Then nothing more is
    /// marked as lost or retransmitted until the retransmissions in flight are accounted for.
    pub(super) fn undo_by_partial_ack(&mut self, prior_una: u64, echo_ns: u64) -> bool {
        if !self.undo.original_arrived(echo_ns) {
            return false;
        }
        self.rack.note_reordering(prior_una, self.highest_sacked(), self.mss);
        if self.tally.again > 0 {
            return true;
        }
        self.forget_old_retransmissions();
        self.undo_reduction();
        self.unmark_lost();
        self.end_recovery();
        false
    }

    /// Undoes the reduction if D-SACKs have accounted for every retransmission.
    pub(super) fn undo_by_dsack(&mut self) {
        if self.undo.all_were_copies() {
            self.rack.keep_window();
            self.undo_reduction();
            self.end_recovery();
            self.forget_old_retransmissions();
        }
    }

    /// After a timeout: undoes it if an advancing ACK showed the original.
    pub(super) fn undo_timeout(&mut self, echo_ns: u64) -> bool {
        let is_due = self.undo.is_due(echo_ns);
        if is_due {
            self.undo_spurious_timeout();
        }
        is_due
    }

    /// Undoes a timeout that expired although nothing was lost.
    pub(super) fn undo_spurious_timeout(&mut self) {
        self.unmark_lost();
        self.undo_reduction();
        self.end_recovery();
    }
}
