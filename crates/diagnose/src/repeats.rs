// SPDX-License-Identifier: MIT
//! Copies of a packet, as captured at a mirror port of two sides, on several interfaces, or at two
//! points of the path whose captures were merged.

use crate::batch::Segment;
use ackwise_capture::tcp_flag;

const KEPT: usize = 16;
/// Maximum delay of a copy: one way through the path.
const COPY_NS: u64 = 1_000_000_000;
/// Without an IP identification a retransmission can look the same, but does not come sooner than
/// this.
const SAME_TICK_NS: u64 = 1_000_000;
/// A SYN is not sent again sooner than after a second (RFC 6298, 2).
const SYN_COPY_NS: u64 = 500_000_000;
/// Number of packets of one direction between a packet and its copy at another point.
const FAR: usize = 1 << 12;

/// How far apart a packet and its copy were captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copied {
    /// In one network.
    Near,
    /// At two points of the path: many packets may come in between.
    Far,
}

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
    /// More packets, by fingerprint, once there was a far copy.
    far: Option<Box<[(u64, u64)]>>,
}

impl Repeats {
    /// Whether the sender gives its packets numbers of their own.
    pub fn is_numbered(&self) -> bool {
        !self.is_fixed
    }

    /// Expects copies behind many other packets from now on.
    pub fn look_far(&mut self) {
        self.far.get_or_insert_with(|| vec![(0, 0); FAR].into());
    }

    /// Whether the packet is a copy of an earlier one; remembers it if not.
    pub fn find(
        &mut self,
        time_ns: u64,
        segment: &Segment<'_>,
        rtt_ns: Option<u64>,
        sack: bool,
    ) -> Option<Copied> {
        let ident = segment.ip_ident;
        self.is_fixed |= self.last.is_some_and(|(i, seq)| i == ident && seq != segment.seq);
        self.last = Some((ident, segment.seq));
        let print = print_of(segment);
        let is_known_far = self.far.is_some() && segment.timestamps().is_some();
        let most_ns = if ident != 0 && !self.is_fixed || is_known_far {
            COPY_NS
        } else if segment.has(tcp_flag::SYN) {
            SYN_COPY_NS
        } else if segment.payload_len > 0 || sack {
            SAME_TICK_NS.min(rtt_ns.map_or(SAME_TICK_NS / 10, |rtt| rtt / 2))
        } else {
            // Duplicate ACKs are all equal.
            0
        };
        let near = self.near(print);
        let far = self.far.as_mut().map(|far| &mut far[print as usize % FAR]);
        let before_ns = match (near, &far) {
            (Some(i), _) => Some(self.times_ns[i]),
            (None, Some((other, before_ns))) if *other == print => Some(*before_ns),
            _ => None,
        };
        let since_ns = before_ns.map(|before_ns| time_ns - before_ns).filter(|&since_ns| since_ns < most_ns);
        if let Some(since_ns) = since_ns {
            return Some(if since_ns < SAME_TICK_NS { Copied::Near } else { Copied::Far });
        }
        if let Some(place) = far {
            *place = (print, time_ns);
        }
        let at = near.unwrap_or(self.next);
        [self.prints[0][at], self.prints[1][at]] = halves(print);
        self.times_ns[at] = time_ns;
        if near.is_none() {
            self.next = (self.next + 1) % KEPT;
        }
        None
    }

    /// Place of this fingerprint among the latest.
    fn near(&self, print: u64) -> Option<usize> {
        let [low, high] = halves(print);
        let [lows, highs] = &self.prints;
        if !lows.iter().fold(false, |found, &other| found | (other == low)) {
            return None;
        }
        (0..KEPT).find(|&i| lows[i] == low && highs[i] == high)
    }
}

fn halves(print: u64) -> [u32; 2] {
    [print as u32, (print >> 32) as u32]
}

/// Fingerprint of everything that a copy has in common with its packet; not the TTL, which routers
/// change.
fn print_of(s: &Segment<'_>) -> u64 {
    let (value, echo) = s.timestamps().unwrap_or_default();
    let (from, to) = s.sack_blocks().first().copied().unwrap_or_default();
    let pairs = [
        (s.seq, s.ack),
        (value, echo),
        (from, to),
        (s.payload_len, u32::from(s.window)),
        (u32::from(s.ip_ident), u32::from(s.flags)),
    ];
    pairs.iter().fold(0x9e37_79b9_7f4a_7c15, |print: u64, &(a, b)| {
        let mixed = (print ^ (u64::from(a) << 32 | u64::from(b))).wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed ^ mixed >> 32
    })
}
