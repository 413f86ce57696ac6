// SPDX-License-Identifier: MIT
//! Idle restart: after a pause the window is outdated, so it is halved for each RTO without data,
//! down to the initial window (RFC 2861; RFC 5681, 4.1, reduces it at once). As in Linux 6.12 with
//! tcp_slow_start_after_idle (tcp_slow_start_after_idle_check, tcp_cwnd_restart).

use super::recovery::LossState;
use super::Sender;
use crate::congestion::JIFFY_NS;

/// Jiffies between two times. Linux measures pauses in jiffies: messages about an RTO apart are no
/// pause.
pub(super) fn jiffies_between(from_ns: u64, now: u64) -> u64 {
    now / JIFFY_NS - from_ns / JIFFY_NS
}

impl Sender {
    /// RTO in jiffies, rounded up (Linux, __tcp_set_rto).
    pub(super) fn rto_jiffies(&self) -> u64 {
        self.rto_ns.div_ceil(JIFFY_NS)
    }

    /// Whether an unused window expires: for Linux's senders, except rate-based ones.
    pub(super) fn forgets_unused_window(&self) -> bool {
        self.sends_bursts && !self.cc.is_rate_based
    }

    /// Called when nothing is outstanding and new data is about to leave.
    // [RFC 2861, 3.2 (a)]
    pub(super) fn restart_after_idle(&mut self, now: u64) {
        let (mut left, rto) = (jiffies_between(self.last_sent_ns, now), self.rto_jiffies());
        if left <= rto || !self.forgets_unused_window() {
            return;
        }
        let mss = self.mss;
        let initial = self.cfg.initial_window_bytes(mss);
        let window = &mut self.cc.window;
        if self.loss_state == LossState::Open {
            window.ssthresh = window.known_good();
        }
        let least = window.cwnd.min(initial);
        while left > rto && window.cwnd > least {
            left -= rto;
            window.cwnd = window.cwnd / mss / 2 * mss;
        }
        window.cwnd = window.cwnd.max(least);
        self.window_use.start_anew(now);
    }
}
