// SPDX-License-Identifier: MIT
//! The receive buffer. A growing buffer counts memory as in Linux 6.12 (net/ipv4/tcp_input.c): each
//! packet takes memory in addition to its payload, data that follows an earlier packet is merged
//! with it, and the window is the share that payload has had so far. A fixed buffer counts payload.
//!
//! Merged data takes less memory than that share assumes, so the window advances before the data is
//! read. A packet that the sender, on the same kernel, still keeps for a retransmission is not
//! merged (skb_try_coalesce, skb_cloned).

use crate::scenario::{ReceiverSpec, SocketLayer, SEGMENT_MEMORY_BYTES};
use ackwise_core::ranges::Ranges;
use std::collections::VecDeque;

/// TCP_RMEM_TO_WIN_SCALE: unit of the payload's share of memory, ...
const PARTS: u64 = 256;
/// ... half of which is assumed before the first full segment (TCP_DEFAULT_SCALING_RATIO).
const FIRST_SHARE: u64 = 128;
/// Maximum number of merged segments (MAX_SKB_FRAGS).
const MERGED_MAX: u32 = 17;
/// Dynamic right-sizing leaves room for this many more segments (tcp_rcv_space_adjust).
const CUSHION_SEGMENTS: u64 = 16;

/// Merged segments: the end of their data, and their number.
#[derive(Clone, Copy, Debug)]
struct Held {
    end: u64,
    segments: u32,
}

pub struct ReceiveBuffer {
    /// Whether it counts memory, and may grow.
    pub grows: bool,
    is_linux: bool,
    mss: u64,
    bytes: u64,
    most_bytes: u64,
    share: u64,
    /// Whether packets are never merged.
    apart: bool,
    /// Segments in order that were not read; not tracked if packets are never merged.
    unread: VecDeque<Held>,
}

impl ReceiveBuffer {
    pub fn new(cfg: &ReceiverSpec, mss: u32, apart: bool) -> Self {
        let grows = cfg.counts_memory();
        ReceiveBuffer {
            grows,
            is_linux: cfg.socket == SocketLayer::Linux,
            mss: mss.into(),
            bytes: cfg.recv_buffer_bytes,
            most_bytes: cfg.recv_buffer_bytes.max(cfg.recv_buffer_max_bytes),
            share: if grows { FIRST_SHARE } else { PARTS },
            apart,
            unread: VecDeque::new(),
        }
    }

    /// Payload that this much memory can hold (tcp_win_from_space).
    fn payload_of(&self, bytes: u64) -> u64 {
        bytes * self.share / PARTS
    }

    /// Payload that the buffer can hold.
    pub fn window(&self) -> u64 {
        self.payload_of(self.bytes)
    }

    /// Room for payload. As in Linux, data above a hole takes room, too (tcp_space).
    pub fn free(&self, unread_bytes: u64, above: &Ranges) -> u64 {
        let above_bytes = if self.is_linux { above.bytes() } else { 0 };
        let mut used = unread_bytes + above_bytes;
        if self.grows {
            let packets = if self.apart {
                used.div_ceil(self.mss)
            } else {
                self.unread.len() as u64 + self.held_above(above)
            };
            used += SEGMENT_MEMORY_BYTES * packets;
        }
        self.payload_of(self.bytes.saturating_sub(used))
    }

    /// Memory of packets above a hole, after merging.
    fn held_above(&self, above: &Ranges) -> u64 {
        let runs = above.iter().count() as u64;
        let added = above.bytes().saturating_sub(runs * self.mss);
        runs + added / (u64::from(MERGED_MAX) * self.mss)
    }

    /// Learns the payload's share from a segment longer than all before (tcp_measure_rcv_mss).
    pub fn learn_share(&mut self, len: u32) {
        if self.grows {
            let len = u64::from(len);
            self.share = (len * PARTS / (len + SEGMENT_MEMORY_BYTES)).max(1);
        }
    }

    /// Scale for the largest window that it may have (tcp_select_initial_window).
    pub fn window_scale(&self) -> u32 {
        if self.grows {
            return self.most_bytes.max(1).ilog2().saturating_sub(15).min(14);
        }
        (0..14).find(|s| self.most_bytes >> s <= 65_535).unwrap_or(14)
    }

    /// Adds data in order up to `end`: a segment, or everything above the hole that it filled.
    pub fn queue(&mut self, from: u64, end: u64) {
        if !self.grows || self.apart {
            return;
        }
        let mut at = from;
        while at < end {
            let piece = (end - at).min(u64::from(MERGED_MAX) * self.mss);
            let segments = piece.div_ceil(self.mss) as u32;
            at += piece;
            match self.unread.back_mut() {
                Some(last) if last.segments + segments <= MERGED_MAX => {
                    *last = Held { end: at, segments: last.segments + segments };
                }
                _ => self.unread.push_back(Held { end: at, segments }),
            }
        }
    }

    /// End of the next piece of a read that ends at `end`: the kernel inspects its buffer after
    /// each piece (tcp_recvmsg_locked).
    pub fn read_piece(&mut self, end: u64) -> u64 {
        match self.unread.front() {
            Some(first) if first.end <= end => {
                let end = first.end;
                self.unread.pop_front();
                end
            }
            _ => end,
        }
    }

    /// Dynamic right-sizing (tcp_rcv_space_adjust): twice the data read in one RTT, plus four times
    /// its growth since `before`. Returns whether the buffer grew.
    pub fn grow(&mut self, read: u64, before: u64) -> bool {
        let wanted = 2 * read + CUSHION_SEGMENTS * self.mss;
        let wanted = wanted + 2 * (wanted * (read - before) / before.max(1));
        let bytes = (wanted * PARTS / self.share).min(self.most_bytes);
        let grows = bytes > self.bytes;
        self.bytes = self.bytes.max(bytes);
        grows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1448;

    fn spec() -> ReceiverSpec {
        ReceiverSpec {
            recv_buffer_bytes: 131_072,
            recv_buffer_max_bytes: 6_291_456,
            ..ReceiverSpec::default()
        }
    }

    fn buffer() -> ReceiveBuffer {
        ReceiveBuffer::new(&spec(), MSS, false)
    }

    fn above(segments: u64) -> Ranges {
        let mut above = Ranges::default();
        above.insert(10_000, 10_000 + segments * u64::from(MSS), |_, _| {});
        above
    }

    #[test]
    fn windows_are_those_that_the_kernel_offered() {
        // Captured on Linux 6.12 (11.3 Mbit/s, 15.9 ms), in units of 128 bytes, rounded up: 80896
        // with nothing unread, 79488 with a segment unread, 78592 with two above a hole, which are
        // merged.
        let mut buffer = buffer();
        assert_eq!((buffer.window(), buffer.window_scale()), (65_536, 7));
        buffer.learn_share(MSS);
        let offered = |free: u64| free.next_multiple_of(128);
        assert_eq!(offered(buffer.free(0, &above(0))), 80_896);
        buffer.queue(0, MSS.into());
        assert_eq!(offered(buffer.free(MSS.into(), &above(0))), 79_488);
        assert_eq!(buffer.read_piece(MSS.into()), u64::from(MSS));
        assert_eq!(offered(buffer.free(0, &above(2))), 78_592);
    }

    #[test]
    fn a_read_of_what_filled_a_hole_goes_by_packets_of_17_segments() {
        // MAX_SKB_FRAGS; none of the 17 segments above the hole is merged with the one that fills
        // it.
        let (mut buffer, mss) = (buffer(), u64::from(MSS));
        buffer.queue(0, mss);
        buffer.queue(mss, 19 * mss);
        let end = 19 * mss;
        let pieces: Vec<_> = std::iter::from_fn(|| Some(buffer.read_piece(end) / mss)).take(3).collect();
        assert_eq!(pieces, [1, 18, 19]);
    }

    #[test]
    fn the_window_moves_on_before_a_read_only_where_packets_are_kept_together() {
        // The right edge is the data received plus the free room. A separate packet takes as much
        // memory as the payload's share assumes (1448 of 1448 + 896); a merged one takes 1448, of
        // which 894 is payload.
        let edges = |apart: bool| {
            let mut buffer = ReceiveBuffer::new(&spec(), MSS, apart);
            buffer.learn_share(MSS);
            let edge = |segments: u64, buffer: &ReceiveBuffer| {
                segments * u64::from(MSS) + buffer.free(segments * u64::from(MSS), &Ranges::default())
            };
            let mut seen = vec![edge(0, &buffer)];
            for n in 0..10 {
                buffer.queue(n * u64::from(MSS), (n + 1) * u64::from(MSS));
                seen.push(edge(n + 1, &buffer));
            }
            seen.windows(2).map(|w| w[1].saturating_sub(w[0])).collect::<Vec<_>>()
        };
        assert!(edges(true).iter().all(|&moved| moved <= 2), "{:?}", edges(true));
        assert!(edges(false)[1..].iter().all(|&moved| (553..=556).contains(&moved)), "{:?}", edges(false));
    }

    #[test]
    fn the_buffer_grows_by_what_was_read_in_a_round() {
        // Captured on the same kernel: 17376 bytes after rounds of 14480 give 81088 bytes of
        // payload; with a segment unread the kernel offers 79744.
        let mut buffer = buffer();
        buffer.learn_share(MSS);
        assert!(buffer.grow(17_376, 14_480));
        buffer.queue(0, MSS.into());
        assert_eq!(buffer.free(MSS.into(), &Ranges::default()).next_multiple_of(128), 79_744);
        assert!(!buffer.grow(14_480, 14_480));
    }
}
