// SPDX-License-Identifier: MIT
//! The application's interface to a sender: the send buffer, and the socket layer that fills it.

use super::{Sender, NEVER};
use crate::scenario::SocketLayer;

/// Bytes of one write in a bulk transfer, whose last segment carries PSH (iperf3's size).
const BULK_WRITE_BYTES: u64 = 128 * 1024;
/// 4.3BSD (spec page 5): size of an mbuf cluster, and bytes copied before TCP output runs.
const CLUSTER_BYTES: u64 = 1024;
const PIECE_BYTES: u64 = 4096;

/// Time that this many bytes take at this rate.
fn transfer_ns(bytes: u64, bps: u64) -> u64 {
    (u128::from(bytes) * 8_000_000_000).div_ceil(bps.into()) as u64
}

impl Sender {
    /// Bytes that the application may write now.
    // [S4.5]
    pub fn room(&self) -> u64 {
        (self.una + self.buffer_bytes()).saturating_sub(self.written)
    }

    fn buffer_bytes(&self) -> u64 {
        if self.cfg.send_buffer_grows {
            self.grown_bytes.min(self.cfg.send_buffer_bytes)
        } else {
            self.cfg.send_buffer_bytes
        }
    }

    /// Grows the buffer with the congestion window.
    pub(super) fn grow_buffer(&mut self) {
        self.grown_bytes = self.grown_bytes.max(2 * self.cc.window.cwnd);
    }

    /// The application writes one message, whose end is pushed.
    pub fn write(&mut self, bytes: u64) {
        if self.sends_bursts {
            self.write_to_queue(bytes, true);
            return;
        }
        self.written += bytes;
        self.pushes.push_back(self.written);
    }

    /// Bytes that a bulk writer up to `limit` writes into a Linux socket if it runs now.
    pub fn fillable(&self, limit: u64) -> u64 {
        if let Some(piece) = self.fillable_piece(limit) {
            return piece;
        }
        let room = self.room().min(limit.saturating_sub(self.written));
        // The writer wakes when a third of the buffer is free (sk_stream_write_space).
        let at_end = self.written + room == limit;
        if self.written > self.una && !at_end && room < self.buffer_bytes() / 3 {
            return 0;
        }
        room
    }

    /// A bulk writer fills the buffer as far as the socket layer allows, with at most `most` bytes.
    /// Returns true if TCP output has to run (again) and more may be written afterwards.
    pub fn fill(&mut self, now: u64, limit: u64, most: u64) -> bool {
        match self.cfg.socket {
            SocketLayer::Linux => {
                if let Some(again) = self.fill_queue(limit, most) {
                    return again;
                }
                // The kernel fills its last buffer before it starts another: whole segments.
                let fillable = self.fillable(limit);
                let mut take = fillable.min(most);
                self.writes_on = most < fillable;
                self.queue.is_full = !self.writes_on && self.written + fillable < limit;
                let at_end = self.written + take == limit;
                if !at_end && take >= self.mss {
                    take -= (self.written + take) % self.mss;
                }
                if take == 0 {
                    return false;
                }
                if self.sends_bursts {
                    self.write_to_queue(take, !self.writes_on);
                    return false;
                }
                let before = self.written / BULK_WRITE_BYTES;
                self.written += take;
                for n in before + 1..=self.written / BULK_WRITE_BYTES {
                    self.pushes.push_back(n * BULK_WRITE_BYTES);
                }
                if at_end {
                    self.pushes.push_back(self.written);
                }
                false
            }
            SocketLayer::Bsd43 => self.copy_piece(now, limit),
        }
    }

    /// The 4.3BSD writer's next step: a chunk of at most 4096 bytes, in whole clusters unless it is
    /// the last. Returns true when a chunk is in the buffer and TCP output has to run.
    // [S5.3]
    fn copy_piece(&mut self, now: u64, limit: u64) -> bool {
        if let Some((bytes, done_ns)) = self.copying {
            if now < done_ns {
                return false;
            }
            self.copying = None;
            self.written += bytes;
            return true;
        }
        let left = limit - self.written;
        let room = self.room().min(left);
        let cluster = CLUSTER_BYTES.min(self.cfg.send_buffer_bytes);
        let least = self.cfg.low_water_bytes.clamp(cluster, self.cfg.send_buffer_bytes);
        if room == 0 || (room < least && room < left) {
            return false;
        }
        let piece = room.min(PIECE_BYTES);
        // Room of less than a cluster is not used.
        let bytes = if room == left { piece } else { piece - piece % cluster };
        if self.cfg.copy_bps == 0 {
            self.written += bytes;
            return true;
        }
        self.copying = Some((bytes, now + transfer_ns(bytes, self.cfg.copy_bps)));
        false
    }

    /// Time at which the chunk being copied will be in the send buffer.
    pub fn copied_ns(&self) -> u64 {
        self.copying.map_or(NEVER, |(_, done_ns)| done_ns)
    }

    /// Whether output runs before the writer that waits for room: input processing ends with TCP
    /// output. Therefore a short segment released by an ACK leaves alone in 4.3BSD (spec page 5,
    /// class I), and in Linux a burst depends only on data written before.
    pub fn sends_before_the_writer_wakes(&self) -> bool {
        self.cfg.socket == SocketLayer::Bsd43 || self.sends_bursts
    }

    /// Whether a bulk writer fills the buffer at once, not in pieces with output after each.
    pub fn may_fill_in_turns(&self) -> bool {
        self.cfg.socket == SocketLayer::Linux
    }
}
