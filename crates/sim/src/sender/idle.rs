// SPDX-License-Identifier: MIT
//! After a pause the window says less about the path: it is halved for each RTO without data, down to the initial
//! one (RFC 2861; RFC 5681, 4.1, goes there at once). As in Linux 6.12 with tcp_slow_start_after_idle
//! (tcp_slow_start_after_idle_check, tcp_cwnd_restart).

use super::recovery::LossState;
use super::Sender;

impl Sender {
    /// Nothing is out, and new data is about to leave.
    pub(super) fn restart_after_idle(&mut self, now: u64) {
        let idle_ns = now - self.last_sent_ns;
        if idle_ns <= self.rto_ns || self.cc.is_rate_based || !self.sends_bursts() {
            return;
        }
        let mss = self.mss;
        let window = &mut self.cc.window;
        if self.loss_state == LossState::Open {
            window.ssthresh = window.known_good();
        }
        let least = window.cwnd.min(u64::from(self.cfg.initial_window_segments.max(1)) * mss);
        let mut left_ns = idle_ns;
        while left_ns > self.rto_ns && window.cwnd > least {
            left_ns -= self.rto_ns;
            window.cwnd = window.cwnd / mss / 2 * mss;
        }
        window.cwnd = window.cwnd.max(least);
    }
}
