// SPDX-License-Identifier: MIT
//! Linux sends in bursts: a socket buffer holds several segments and is split below TCP (TSO, GSO).
//! As in net/ipv4/tcp_output.c of Linux 6.12, the last segment of a burst is pushed, and a partial
//! burst waits for the next ACK if that is expected soon.

use super::socket::{Head, BUFFER_BYTES_MAX};
use super::Sender;
use crate::congestion::BURST_OF_TWO_FROM;
use crate::scenario::{Nagle, Recovery, SenderSpec, SocketLayer};

/// A burst is the data sent in this fraction of a second at the pacing rate (sk_pacing_shift), ...
const SECOND_SHARE: f64 = 1024.0;
/// ... more with a short RTT: up to a whole maximum burst, halved for each 512 us
/// (tcp_tso_rtt_log), ...
const RTT_STEP_NS: u64 = 512_000;
/// ... and at least this many segments (tcp_min_tso_segs).
const SEGMENTS_MIN: u64 = 2;
/// A partial burst waits for an ACK expected within this time, and only for this time after data
/// last left (tcp_tso_should_defer), ...
const SOON_NS: u64 = 1_000_000;
/// ... unless it is at least this fraction of the window (tcp_tso_win_divisor).
const WINDOW_SHARE: u64 = 3;

/// Segments that leave together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Burst {
    /// Bytes that have not left yet.
    left_bytes: u64,
    /// Whether its first segment is the next to leave.
    begins: bool,
    /// Whether it has several segments, or its end was pushed.
    psh: bool,
    /// Time at which data last left.
    sent_ns: u64,
}

/// Whether this sender sends bursts. Senders of published sources send single segments, for which
/// Nagle's rule was made.
pub(super) fn sends_bursts(cfg: &SenderSpec) -> bool {
    let has_own_rule = matches!(cfg.nagle, Nagle::Minshall | Nagle::Off);
    cfg.socket == SocketLayer::Linux && cfg.recovery == Recovery::Sack && has_own_rule
}

impl Sender {
    #[inline]
    pub(super) fn burst_goes_on(&self) -> bool {
        self.burst.left_bytes > 0
    }

    pub(super) fn burst_left(&self) -> u64 {
        self.burst.left_bytes
    }

    /// Takes the next burst from the socket buffers (Linux, tcp_write_xmit). False: nothing may
    /// leave.
    pub(super) fn begin_burst(&mut self, now: u64) -> bool {
        if self.queue.has_sent_its_one() || self.pacer_waits(now) {
            return false;
        }
        let mss = self.mss;
        // tcp_cwnd_test: at most half of the window, and always one segment.
        let room = if self.bytes_in_flight() == 0 { self.window().max(mss) } else { self.window_room() };
        if room < mss {
            return false;
        }
        let most = self.full_burst_bytes();
        let quota = room.min((self.window() / 2).max(mss)).min(most) / mss * mss;
        self.queue.grow_head(quota);
        let Some(head) = self.queue.head() else { return false };
        let bytes = if head.bytes <= mss {
            let waits = head.is_last && head.bytes < mss && self.nxt + head.bytes != self.fin_at;
            if waits && !self.short_may_leave(head.bytes, head.bytes) {
                return false;
            }
            head.bytes
        } else {
            if !self.queue.asks_for_one() && self.defers_burst(now, head, most) {
                return false;
            }
            self.split_point(head, quota)
        };
        if !self.pace(now, bytes) {
            return false;
        }
        let psh = self.queue.take(bytes);
        self.burst = Burst { left_bytes: bytes, begins: true, psh: psh || bytes > mss, sent_ns: now };
        self.queue.note_burst();
        true
    }

    /// Length of the burst's part that may leave (Linux, tcp_mss_split_point).
    fn split_point(&self, head: Head, quota: u64) -> u64 {
        let room = self.peer_room();
        if quota <= room && !head.is_last {
            return quota.min(head.bytes);
        }
        let needed = head.bytes.min(room);
        let part = needed % self.mss;
        if quota <= needed {
            quota
        } else if part > 0 && self.nxt + needed != self.fin_at && !self.short_may_leave(part, part) {
            needed - part
        } else {
            needed
        }
    }

    /// Takes a segment of new data from the burst. Returns whether it begins a socket buffer, and
    /// whether it has PSH (Linux, __tcp_transmit_skb: the last of several).
    pub(super) fn take_from_burst(&mut self, now: u64, len: u64) -> (bool, bool) {
        if self.burst.left_bytes == 0 {
            // A single segment.
            let psh = self.queue.take(len) || self.nxt + len == self.written;
            self.burst.sent_ns = now;
            return (true, psh);
        }
        self.burst.left_bytes -= len;
        let begins = std::mem::take(&mut self.burst.begins);
        (begins, self.burst.left_bytes == 0 && self.burst.psh)
    }

    /// Whether the segment that left was the last of its burst.
    pub(super) fn ends_burst(&self) -> bool {
        self.burst.left_bytes == 0
    }

    /// Ends the burst when everything that may leave has left.
    pub(super) fn end_burst(&mut self) {
        self.burst.left_bytes = 0;
    }

    /// Size of a full burst (Linux, tcp_tso_autosize).
    fn full_burst_bytes(&self) -> u64 {
        let rate = self.cc.pacing_rate();
        let paced = rate.unwrap_or_else(|| self.cc.window.pacing_rate(self.srtt_ns.max(1))) / SECOND_SHARE;
        let near = BUFFER_BYTES_MAX >> (self.min_rtt_ns / RTT_STEP_NS).min(63);
        let bytes = (paced as u64).saturating_add(near).min(BUFFER_BYTES_MAX);
        // Linux, bbr_min_tso_segs.
        let is_slow = rate.is_some_and(|rate| rate < BURST_OF_TWO_FROM as f64);
        let least = if is_slow { 1 } else { SEGMENTS_MIN };
        (bytes / self.mss).max(least).min((BUFFER_BYTES_MAX / self.mss).max(1)) * self.mss
    }

    fn window_room(&self) -> u64 {
        self.window().saturating_sub(self.bytes_in_flight())
    }

    fn peer_room(&self) -> u64 {
        self.wnd_right.saturating_sub(self.nxt)
    }

    /// Whether data that may leave waits for the next ACK (Linux, tcp_tso_should_defer).
    fn defers_burst(&mut self, now: u64, head: Head, most: u64) -> bool {
        if self.loss_state.repairs() || now > self.burst.sent_ns + SOON_NS {
            return false;
        }
        let (window_room, peer_room) = (self.window_room(), self.peer_room());
        let may_leave = window_room.min(peer_room);
        let is_whole_buffer = !head.is_last && may_leave >= head.bytes;
        let is_large = may_leave >= (self.wnd_right - self.una).min(self.window()) / WINDOW_SHARE;
        if may_leave >= most || is_whole_buffer || is_large || !self.expects_ack_soon(now) {
            return false;
        }
        let is_held_by_window = window_room < peer_room && window_room <= head.bytes;
        self.window_use.defers = is_held_by_window;
        let is_held_by_peer = window_room >= peer_room && peer_room <= head.bytes;
        let is_end = self.nxt + head.bytes == self.fin_at;
        is_held_by_window || is_held_by_peer || !is_end
    }

    fn expects_ack_soon(&self, now: u64) -> bool {
        let soon_ns = now + SOON_NS.min(self.srtt_ns / 2);
        self.segments.front().is_some_and(|head| head.departure.sent_ns + self.srtt_ns <= soon_ns)
    }
}
