// SPDX-License-Identifier: MIT
//! Use of the congestion window: a window that does not limit the sender does not grow, and shrinks
//! after an RTO (RFC 2861, 3.2; RFC 7661; Linux, tcp_cwnd_validate and tcp_is_cwnd_limited).

use super::idle::jiffies_between;
use super::Sender;

#[derive(Clone, Copy, Debug, Default)]
pub struct WindowUse {
    /// Whether it limited in the window of data that ends at `until`.
    limited: bool,
    /// Maximum bytes outstanding in it.
    most_out: u64,
    until: u64,
    /// Whether new data left since the last evaluation.
    pub sent: bool,
    /// Whether data waits for an ACK although the window has room for part of it.
    pub defers: bool,
    /// Time at which the window was last in use, or could grow with an ACK (Linux, snd_cwnd_stamp),
    /// ...
    pub since_ns: u64,
    /// ... and the maximum number of segments outstanding since then (snd_cwnd_used).
    used_segments: u64,
}

impl WindowUse {
    /// Restarts the measurement, with the window as it is.
    pub fn start_anew(&mut self, now: u64) {
        self.since_ns = now;
        self.used_segments = 0;
    }
}

impl Sender {
    /// Evaluates the use of the window when everything that may leave has left.
    pub(super) fn judge_window_use(&mut self, now: u64) {
        let defers = std::mem::take(&mut self.window_use.defers);
        let sent = std::mem::take(&mut self.window_use.sent);
        let data_waits = self.written > self.nxt;
        if !sent && !data_waits {
            return;
        }
        let limited = defers || self.bytes_in_flight() + self.mss > self.window();
        if !sent && !limited {
            return;
        }
        let out = self.nxt - self.una;
        let window_use = &mut self.window_use;
        let is_more = !window_use.limited && out > window_use.most_out;
        if self.una >= window_use.until || limited || is_more {
            *window_use = WindowUse { limited, most_out: out, until: self.nxt, ..*window_use };
        }
        if self.uses_window() {
            self.window_use.start_anew(now);
            return;
        }
        let used_segments = &mut self.window_use.used_segments;
        *used_segments = (*used_segments).max(self.segments.len() as u64);
        let unused = jiffies_between(self.window_use.since_ns, now);
        if unused >= self.rto_jiffies() && self.forgets_unused_window() {
            self.shrink_unused_window(now);
        }
    }

    /// Whether the window is in use; in slow start, half of it suffices.
    pub(super) fn uses_window(&self) -> bool {
        let half_used = self.window() < 2 * self.window_use.most_out;
        self.window_use.limited || (self.cc.window.in_slow_start() && half_used)
    }

    /// Reduces the window half of the way to the used part, unless the application waits for room
    /// in the send buffer (tcp_cwnd_application_limited).
    // [RFC 2861, 3.2 (b)]
    #[cold]
    fn shrink_unused_window(&mut self, now: u64) {
        self.window_use.since_ns = now;
        if !self.is_in_order() || self.queue.is_full {
            return;
        }
        let initial = self.cfg.initial_window_bytes(self.mss) / self.mss;
        let used = std::mem::take(&mut self.window_use.used_segments).max(initial);
        let window = &mut self.cc.window;
        let segments = window.cwnd / self.mss;
        if used < segments {
            window.ssthresh = window.known_good();
            window.cwnd = (segments + used) / 2 * self.mss;
        }
    }
}
