// SPDX-License-Identifier: MIT
//! Copies of a packet, as captured at a mirror port of two sides or on several interfaces.

use crate::batch::Segment;

const KEPT: usize = 16;
/// Maximum delay of a copy, which takes another way within one network.
const COPY_NS: u64 = 1_000_000_000;
/// Without an IP identification a retransmission can look the same, but does not come sooner than
/// this.
const SAME_TICK_NS: u64 = 1_000_000;

/// The latest packets of one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repeats {
    /// Low and high halves of fingerprints: all low ones are compared in a few instructions.
    prints: [[u32; KEPT]; 2],
    times_ns: [u64; KEPT],
    next: usize,
    last: Option<(u16, u32)>,
    /// Whether the sender does not number its packets.
    is_fixed: bool,
}

impl Repeats {
    /// Whether the packet is a copy of an earlier one; remembers it if not.
    pub fn is_repeat(
        &mut self,
        time_ns: u64,
        segment: &Segment<'_>,
        rtt_ns: Option<u64>,
        sack: bool,
    ) -> bool {
        let ident = segment.ip_ident;
        self.is_fixed |= self.last.is_some_and(|(i, seq)| i == ident && seq != segment.seq);
        self.last = Some((ident, segment.seq));
        let print = print_of(segment);
        if let Some(i) = self.find(print) {
            let most_ns = if ident != 0 && !self.is_fixed {
                COPY_NS
            } else if segment.payload_len > 0 || sack {
                SAME_TICK_NS.min(rtt_ns.map_or(SAME_TICK_NS / 10, |rtt| rtt / 2))
            } else {
                // Duplicate ACKs are all equal.
                0
            };
            if time_ns - self.times_ns[i] < most_ns {
                return true;
            }
            self.times_ns[i] = time_ns;
            return false;
        }
        for (half, prints) in print.into_iter().zip(&mut self.prints) {
            prints[self.next] = half;
        }
        self.times_ns[self.next] = time_ns;
        self.next = (self.next + 1) % KEPT;
        false
    }

    fn find(&self, [low, high]: [u32; 2]) -> Option<usize> {
        let [lows, highs] = &self.prints;
        if !lows.iter().fold(false, |found, &other| found | (other == low)) {
            return None;
        }
        (0..KEPT).find(|&i| lows[i] == low && highs[i] == high)
    }
}

/// Fingerprint of everything that a copy has in common with its packet; not the TTL, which routers
/// change.
fn print_of(s: &Segment<'_>) -> [u32; 2] {
    let (value, echo) = s.timestamps().unwrap_or_default();
    let (from, to) = s.sack_blocks().first().copied().unwrap_or_default();
    let pairs = [
        (s.seq, s.ack),
        (value, echo),
        (from, to),
        (s.payload_len, u32::from(s.window)),
        (u32::from(s.ip_ident), u32::from(s.flags)),
    ];
    let print = pairs.iter().fold(0x9e37_79b9_7f4a_7c15, |print: u64, &(a, b)| {
        let mixed = (print ^ (u64::from(a) << 32 | u64::from(b))).wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed ^ mixed >> 32
    });
    [print as u32, (print >> 32) as u32]
}
