// SPDX-License-Identifier: MIT
//! A FIFO without a queue: when a packet enters, its departure is known, start = max(now, free). The
//! packet leaves at once with its arrival time and costs no event; kept is only what the limits
//! count, the packets whose transmission has not started.

use crate::discipline::Limits;
use crate::packet::Packet;
use crate::rng::Rng;
use crate::scenario::ChannelSpec;
use std::collections::VecDeque;

/// A packet whose transmission has not started yet.
struct Waiting {
    start_ns: u64,
    wire_bytes: u32,
    is_ack: bool,
}

pub struct Fifo {
    limits: Limits,
    /// Packets that had not started when it was last inspected, and their bytes.
    waiting: VecDeque<Waiting>,
    waiting_bytes: u64,
    ties: Ties,
}

impl Fifo {
    /// `rng` orders simultaneous arrivals and departures.
    pub fn new(pipe: &ChannelSpec, rng: Rng) -> Self {
        Fifo {
            limits: Limits::new(pipe),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            ties: Ties { rng, at_ns: u64::MAX, leaves: true },
        }
    }

    /// Removes the packets that have started by `now`. `is_exact`: also those that start just now;
    /// otherwise this is drawn.
    // Inlined always: see engine.rs.
    #[inline(always)]
    pub fn release(&mut self, now: u64, is_exact: bool) {
        while let Some(head) = self.waiting.front().filter(|head| head.start_ns <= now) {
            if head.start_ns == now && !is_exact && !self.ties.leaves_first(now) {
                break;
            }
            self.waiting_bytes -= u64::from(head.wire_bytes);
            self.waiting.pop_front();
        }
    }

    /// Number of packets that wait, as of the last `release`.
    #[inline]
    pub fn packets(&self) -> usize {
        self.waiting.len()
    }

    /// Their bytes.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.waiting_bytes
    }

    #[inline]
    pub fn has_room(&self, packet: &Packet) -> bool {
        self.limits.have_room(self.waiting.len(), self.waiting_bytes, packet)
    }

    /// Counts a packet until it starts.
    #[inline]
    pub fn hold(&mut self, start_ns: u64, packet: &Packet) {
        self.waiting_bytes += u64::from(packet.wire_bytes);
        let (wire_bytes, is_ack) = (packet.wire_bytes, packet.is_pure_ack());
        self.waiting.push_back(Waiting { start_ns, wire_bytes, is_ack });
    }

    /// Number of packets that wait at `now`, and of pure ACKs among them.
    pub fn count(&self, now: u64) -> (usize, usize) {
        let waiting = self.waiting.iter().filter(|w| w.start_ns > now);
        waiting.fold((0, 0), |(all, acks), w| (all + 1, acks + usize::from(w.is_ack)))
    }
}

/// Random order of a simultaneous arrival and departure: the departing packet may or may not make
/// room for the arriving one.
///
/// Such ties are frequent: the departing packet brings back the ACK that triggers the next arrival,
/// one round trip later to the nanosecond (Floyd and Jacobson, "On traffic phase effects in
/// packet-switched gateways", 1992). No real link is that exact, so the order is drawn at random;
/// with a queue of a few packets it determines whether a transfer keeps losing.
struct Ties {
    rng: Rng,
    at_ns: u64,
    leaves: bool,
}

/// Probability that the departing packet comes first: 1124 of 1223 times at full queues of five
/// links of the lab whose timers are late at random (`emulator.rs`, docs/findings/disagreement.md).
const LEAVES_FIRST_PPM: u32 = 920_000;

impl Ties {
    #[inline]
    fn leaves_first(&mut self, now: u64) -> bool {
        if self.at_ns != now {
            self.at_ns = now;
            self.leaves = self.rng.chance_ppm(LEAVES_FIRST_PPM);
        }
        self.leaves
    }
}
