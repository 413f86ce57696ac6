// SPDX-License-Identifier: MIT
//! Linux sends in bursts: a socket buffer holds several segments and is split below TCP (TSO, GSO). As
//! net/ipv4/tcp_output.c of Linux 6.12 does, the last segment of a burst is pushed, and what would be
//! only part of a burst waits for the next ACK if that comes soon.

use super::Sender;
use crate::congestion::BURST_OF_TWO_FROM;
use crate::scenario::{Recovery, SocketLayer};

/// Payload of a burst at most (sk_gso_max_size).
const MOST_BYTES: u64 = 65_536 - 257;
/// A burst is what leaves in this part of a second at the pacing rate (sk_pacing_shift), ...
const SECOND_SHARE: f64 = 1024.0;
/// ... with a short RTT more, the whole at most and half as much for each 512 us (tcp_tso_rtt_log), ...
const RTT_STEP_NS: u64 = 512_000;
/// ... and so many segments at least (tcp_min_tso_segs).
const LEAST_SEGMENTS: u64 = 2;
/// Part of a burst waits for an ACK expected within this time, and only so long after data left
/// (tcp_tso_should_defer), ...
const SOON_NS: u64 = 1_000_000;
/// ... unless it is this part of the window (tcp_tso_win_divisor).
const WINDOW_SHARE: u64 = 3;

#[derive(Clone, Copy, Debug, Default)]
pub struct Burst {
    /// What the burst that is leaving still takes.
    left_bytes: u64,
    /// When data left last.
    sent_ns: u64,
}

impl Sender {
    /// Those of published sources send single segments.
    pub(super) fn sends_bursts(&self) -> bool {
        self.cfg.socket == SocketLayer::Linux && self.cfg.recovery == Recovery::Sack
    }

    /// A segment of this length leaves in the burst that has begun.
    pub(super) fn goes_on(&self, len: u64) -> bool {
        self.burst.left_bytes >= len
    }

    /// How much leaves together with a segment of new data of this length.
    pub(super) fn burst_with(&self, len: u64) -> u64 {
        if self.sends_bursts() {
            self.next_burst_bytes().max(len)
        } else {
            len
        }
    }

    /// A segment of new data is about to leave. Returns true for the last of several (Linux,
    /// __tcp_transmit_skb: it has PSH).
    pub(super) fn send_in_burst(&mut self, now: u64, len: u64) -> bool {
        if !self.sends_bursts() {
            return false;
        }
        let goes_on = self.goes_on(len);
        let bytes = if goes_on { self.burst.left_bytes } else { self.next_burst_bytes().max(len) };
        self.burst = Burst { left_bytes: bytes - len, sent_ns: now };
        goes_on && bytes == len
    }

    /// All that may leave has left.
    pub(super) fn end_burst(&mut self) {
        self.burst.left_bytes = 0;
    }

    /// The burst that may leave next (Linux, tcp_write_xmit and tcp_cwnd_test: half of the window at most):
    /// whole segments, and what is left of all data if it may leave as well (tcp_mss_split_point).
    fn next_burst_bytes(&self) -> u64 {
        let unsent = self.written - self.nxt;
        let most = self.window_room().min(self.peer_room()).min(self.window() / 2);
        let most = most.min(self.full_burst_bytes());
        let left = unsent % self.mss;
        if unsent <= most && self.short_may_leave(left, left) {
            return unsent;
        }
        most.min(unsent) / self.mss * self.mss
    }

    /// Linux, tcp_tso_autosize.
    fn full_burst_bytes(&self) -> u64 {
        let rate = self.cc.pacing_rate();
        let paced = rate.unwrap_or_else(|| self.cc.window.pacing_rate(self.srtt_ns.max(1))) / SECOND_SHARE;
        let near = MOST_BYTES >> (self.min_rtt_ns / RTT_STEP_NS).min(63);
        let bytes = (paced as u64).saturating_add(near).min(MOST_BYTES);
        // Linux, bbr_min_tso_segs.
        let is_slow = rate.is_some_and(|rate| rate < BURST_OF_TWO_FROM as f64);
        let least = if is_slow { 1 } else { LEAST_SEGMENTS };
        (bytes / self.mss).max(least) * self.mss
    }

    /// Unsent data in the socket buffer that leaves next (Linux, tcp_xmit_size_goal).
    fn unsent_in_buffer(&self) -> u64 {
        let most = (MOST_BYTES.min(self.wnd_max / 2) / self.mss).max(1) * self.mss;
        most.min(self.written - self.nxt)
    }

    fn window_room(&self) -> u64 {
        self.window().saturating_sub(self.bytes_in_flight())
    }

    fn peer_room(&self) -> u64 {
        self.wnd_right.saturating_sub(self.nxt)
    }

    /// Linux, tcp_tso_should_defer: true if data that may leave waits for the next ACK.
    pub(super) fn defers_burst(&mut self, now: u64) -> bool {
        let unsent = self.written - self.nxt;
        let may_defer = self.sends_bursts() && self.burst.left_bytes == 0 && unsent > self.mss;
        if !may_defer || self.loss_state.repairs() || now > self.burst.sent_ns + SOON_NS {
            return false;
        }
        let (window_room, peer_room) = (self.window_room(), self.peer_room());
        let in_buffer = self.unsent_in_buffer();
        let may_leave = window_room.min(peer_room);
        let is_whole_buffer = unsent > in_buffer && may_leave >= in_buffer;
        let is_large = may_leave >= self.wnd_max.min(self.window()) / WINDOW_SHARE;
        if is_large || is_whole_buffer || !self.expects_ack_soon(now) || may_leave >= self.full_burst_bytes()
        {
            return false;
        }
        let is_held_by_window = window_room < peer_room && window_room <= in_buffer;
        self.window_use.defers = is_held_by_window;
        let is_end = self.written == self.fin_at && unsent == in_buffer;
        is_held_by_window || peer_room <= in_buffer.min(window_room) || !is_end
    }

    fn expects_ack_soon(&self, now: u64) -> bool {
        let soon_ns = now + SOON_NS.min(self.srtt_ns / 2);
        self.segments.front().is_some_and(|head| head.departure.sent_ns + self.srtt_ns <= soon_ns)
    }
}
