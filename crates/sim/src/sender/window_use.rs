// SPDX-License-Identifier: MIT
//! Whether the congestion window holds the sender back: a window that is not used does not grow (RFC 7661;
//! Linux, tcp_cwnd_validate and tcp_is_cwnd_limited).

use super::Sender;

#[derive(Clone, Copy, Debug, Default)]
pub struct WindowUse {
    /// It did in the window of data that ends at `until`.
    limited: bool,
    /// Most bytes that were out in it.
    most_out: u64,
    until: u64,
    /// New data left since the window was judged last.
    pub sent: bool,
    /// Data waits for an ACK although the window has room for part of it.
    pub defers: bool,
}

impl Sender {
    /// All that may leave has left.
    pub(super) fn judge_window_use(&mut self) {
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
    }

    /// In slow start a window is in use when half of it is.
    pub(super) fn uses_window(&self) -> bool {
        let half_used = self.window() < 2 * self.window_use.most_out;
        self.window_use.limited || (self.cc.window.in_slow_start() && half_used)
    }
}
