// SPDX-License-Identifier: MIT
//! The send queue of a Linux socket (net/ipv4/tcp.c, tcp_sendmsg_locked; tcp_input.c,
//! tcp_new_space): a writer fills buffers of many segments, which output splits, and waits when
//! their memory is used up. The memory grows with the congestion window.

use super::Sender;
use crate::scenario::{SenderSpec, SEGMENT_MEMORY_BYTES};
use std::collections::VecDeque;

/// Size of a bulk writer's system call.
const CALL_BYTES: u64 = 256 << 10;
/// Maximum payload of a buffer (sk_gso_max_size).
pub(super) const BUFFER_BYTES_MAX: u64 = 65_536 - 257;
/// Memory of a separate segment in addition to its payload (tcp_sndbuf_expand): options, headers
/// and the kernel's overhead per packet, rounded up to a power of two, and its descriptor.
const HEADERS_BYTES: u64 = 12 + 256 + 320;
const DESCRIPTOR_BYTES: u64 = 256;
/// The memory suffices for this many windows, and for more with BBR (bbr_sndbuf_expand), ...
const WINDOWS: u64 = 2;
const WINDOWS_OF_BBR: u64 = 3;
/// ... of at least this many segments (TCP_INIT_CWND).
const SEGMENTS_MIN: u64 = 10;

/// Data that was written and has not left.
#[derive(Clone, Copy, Debug)]
struct Buffer {
    bytes: u64,
    psh: bool,
}

#[derive(Clone, Debug, Default)]
pub struct SendQueue {
    buffers: VecDeque<Buffer>,
    /// Maximum memory of the socket (sk_sndbuf).
    limit_bytes: u64,
    /// Remaining bytes of the writer's current call; None: it is in none.
    call_left: Option<u64>,
    /// Whether the writer found no room (SOCK_NOSPACE), ...
    pub is_full: bool,
    /// ... and whether it sleeps until there is room.
    sleeps: bool,
    /// End of the pushed data (pushed_seq).
    pushed_to: u64,
    /// Whether output was asked for a single burst (tcp_push_one), which has left.
    one_only: bool,
    one_left: bool,
    /// Whether an ACK arrived, so that the writer may find room.
    ack_came: bool,
}

/// The buffer that leaves next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub bytes: u64,
    /// Whether it may still be filled.
    pub is_last: bool,
}

impl SendQueue {
    pub(super) fn head(&self) -> Option<Head> {
        self.buffers.front().map(|head| Head { bytes: head.bytes, is_last: self.buffers.len() == 1 })
    }

    /// Extends the next burst with data from the following buffer (tcp_grow_skb).
    pub(super) fn grow_head(&mut self, to_bytes: u64) {
        if self.buffers.len() < 2 || self.buffers[0].bytes >= to_bytes {
            return;
        }
        let moved = (to_bytes - self.buffers[0].bytes).min(self.buffers[1].bytes);
        self.buffers[0].bytes += moved;
        self.buffers[1].bytes -= moved;
        if self.buffers[1].bytes == 0 {
            self.buffers[0].psh |= self.buffers[1].psh;
            self.buffers.remove(1);
        }
    }

    /// Removes departing bytes. Returns whether their end was pushed.
    pub(super) fn take(&mut self, bytes: u64) -> bool {
        let mut left = bytes;
        while let Some(head) = self.buffers.front_mut() {
            if head.bytes > left {
                head.bytes -= left;
                return false;
            }
            left -= head.bytes;
            let psh = head.psh;
            self.buffers.pop_front();
            if left == 0 {
                return psh;
            }
        }
        false
    }

    /// Whether no more may leave in this run of output.
    #[inline]
    pub(super) fn has_sent_its_one(&self) -> bool {
        self.one_left
    }

    pub(super) fn asks_for_one(&self) -> bool {
        self.one_only
    }

    pub(super) fn note_burst(&mut self) {
        self.one_left = self.one_only;
    }

    pub(super) fn note_ack(&mut self) {
        self.ack_came = true;
    }
}

impl Sender {
    /// Whether it is Linux's send buffer without another bound from the plan.
    fn autotunes(&self) -> bool {
        let has_default = self.cfg.send_buffer_bytes == SenderSpec::LINUX_SEND_BUFFER_BYTES;
        self.sends_bursts && has_default && !self.cfg.send_buffer_grows
    }

    /// Size of a full buffer: half of the peer's largest window (tcp_xmit_size_goal).
    fn full_buffer_bytes(&self) -> u64 {
        (BUFFER_BYTES_MAX.min(self.wnd_max / 2) / self.mss).max(1) * self.mss
    }

    /// Memory in use (sk_wmem_queued).
    fn memory_bytes(&self) -> u64 {
        let buffers = self.queue.buffers.len() as u64 + self.tally.buffers;
        self.written - self.una + buffers * SEGMENT_MEMORY_BYTES
    }

    /// Grows the socket's memory (tcp_sndbuf_expand).
    pub(super) fn grow_socket_memory(&mut self) {
        let each = (self.mss + HEADERS_BYTES).next_power_of_two() + DESCRIPTOR_BYTES;
        let window = self.cc.window.cwnd / self.mss;
        let segments = window.max(SEGMENTS_MIN).max(self.rack.reordering + 1);
        let windows = if self.cc.is_rate_based { WINDOWS_OF_BBR } else { WINDOWS };
        let wanted = (windows * segments * each).min(self.cfg.send_buffer_bytes);
        self.queue.limit_bytes = self.queue.limit_bytes.max(wanted);
    }

    /// Wakes a waiting writer once a third of the memory is free, and grows the memory where the
    /// window is not full (tcp_check_space).
    pub(super) fn check_space(&mut self, now: u64) {
        if !self.queue.is_full || !self.autotunes() {
            return;
        }
        if self.bytes_in_flight() + self.mss <= self.window() {
            self.grow_socket_memory();
            self.window_use.since_ns = now;
        }
        let used = self.memory_bytes();
        if self.queue.limit_bytes.saturating_sub(used) >= used / 2 && used < self.queue.limit_bytes {
            self.queue.is_full = false;
            self.queue.sleeps = false;
        }
    }

    /// Ends a run of output.
    pub(super) fn end_output(&mut self, now: u64) {
        self.queue.one_only = false;
        self.queue.one_left = false;
        if std::mem::take(&mut self.queue.ack_came) {
            self.check_space(now);
        }
    }

    /// Whether an ACK requires a check of the writer's room.
    #[inline]
    pub fn owes_space_check(&self) -> bool {
        self.queue.ack_came && self.queue.is_full
    }

    /// Marks a lack of data at the start of each write (tcp_rate_check_app_limited).
    fn note_lack_of_data(&mut self) {
        let in_flight = self.bytes_in_flight();
        let has_room = in_flight + self.mss <= self.window();
        if self.written - self.nxt < self.mss && has_room && self.tally.lost <= self.tally.again {
            self.app_limited_until = (self.delivered + in_flight).max(1);
        }
    }

    /// Appends written data to the queue; the first part of a write removes PSH from the buffer
    /// that it fills.
    fn append(&mut self, bytes: u64, begins_write: bool) {
        let full = self.full_buffer_bytes();
        let mut left = bytes;
        let mut begins = begins_write;
        while left > 0 {
            let queue = &mut self.queue.buffers;
            if queue.back().map_or(true, |tail| tail.bytes >= full) {
                queue.push_back(Buffer { bytes: 0, psh: false });
            }
            let Some(tail) = queue.back_mut() else { return };
            let taken = left.min(full - tail.bytes);
            tail.bytes += taken;
            tail.psh &= !begins;
            begins = false;
            left -= taken;
            self.written += taken;
        }
    }

    /// Marks the end of the data as pushed (tcp_mark_push).
    fn mark_push(&mut self) {
        self.queue.pushed_to = self.written;
        if let Some(tail) = self.queue.buffers.back_mut() {
            tail.psh = true;
        }
    }

    /// Appends one write, for which there is room; if not `is_whole`, the write continues.
    pub(super) fn write_to_queue(&mut self, bytes: u64, is_whole: bool) {
        self.note_lack_of_data();
        self.append(bytes, true);
        if is_whole {
            self.mark_push();
        }
    }

    /// Bytes that a bulk writer can add to the buffer being filled, or to a new one.
    fn next_piece(&self) -> u64 {
        let full = self.full_buffer_bytes();
        match self.queue.buffers.back().map_or(0, |tail| full.saturating_sub(tail.bytes)) {
            0 if self.memory_bytes() >= self.queue.limit_bytes => 0,
            0 => full,
            room => room,
        }
    }

    /// Bytes that a bulk writer up to `limit` may write next; None: the plan's bound applies, not
    /// memory.
    pub(super) fn fillable_piece(&self, limit: u64) -> Option<u64> {
        let piece = || if self.queue.sleeps { 0 } else { self.next_piece().min(limit - self.written) };
        self.autotunes().then(piece)
    }

    /// A bulk writer continues until output has to run. None: the plan's bound applies. True: call
    /// again after output.
    pub(super) fn fill_queue(&mut self, limit: u64, most: u64) -> Option<bool> {
        if !self.autotunes() {
            return None;
        }
        if self.queue.sleeps || self.written == limit {
            return Some(false);
        }
        loop {
            let begins = self.queue.call_left.is_none();
            if begins {
                self.note_lack_of_data();
            }
            let call = CALL_BYTES.min(limit - self.written);
            let left = self.queue.call_left.unwrap_or(call);
            let piece = self.next_piece().min(left).min(most);
            if piece == 0 {
                self.queue.is_full = true;
                self.queue.call_left = None;
                if begins {
                    self.queue.sleeps = true;
                    return Some(false);
                }
                self.mark_push();
                return Some(true);
            }
            self.append(piece, begins);
            self.queue.call_left = Some(left - piece).filter(|&left| left > 0);
            if most < u64::MAX {
                // It gets its next turn only if there is room.
                self.queue.is_full = self.next_piece() == 0;
                self.queue.sleeps = self.queue.is_full;
                if self.queue.is_full || self.written == limit {
                    self.mark_push();
                }
                return Some(false);
            }
            if self.queue.call_left.is_none() {
                self.mark_push();
                return Some(true);
            }
            // forced_push
            if self.written > self.queue.pushed_to + self.wnd_max / 2 {
                self.mark_push();
                return Some(true);
            }
            if self.queue.buffers.len() == 1 {
                self.queue.one_only = true;
                return Some(true);
            }
        }
    }
}
