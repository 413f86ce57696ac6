// SPDX-License-Identifier: MIT
//! Access links: each flow has its own link at both ends and in both directions, a FIFO without
//! limits or faults. There are thousands of links where there are thousands of flows, so a link is
//! a single number.

use crate::channel::{Crossing, Rate, CHANNELS};
use crate::packet::Packet;
use crate::ping::PING_FLOW;

/// Number of links per flow: two directions at two ends.
pub const LINKS_OF_FLOW: usize = 4;
const _: () = assert!(PING_FLOW.wrapping_add(1) == 0);

pub struct Access {
    rate: Rate,
    delay_ns: u64,
    /// Arrival time of the last packet of each link at its far end. Its transmitter is free one
    /// delay earlier.
    last_arrival_ns: Vec<u64>,
}

impl Access {
    /// Access links, including those for pings, whose flow number precedes the first.
    pub fn new(rate_bps: u64, delay_ns: u64) -> Self {
        Access { rate: Rate::new(rate_bps), delay_ns, last_arrival_ns: vec![0; LINKS_OF_FLOW] }
    }

    /// Adds links for one more flow, after those of all others.
    pub fn add_flow(&mut self) {
        self.last_arrival_ns.extend([0; LINKS_OF_FLOW]);
    }

    /// Time from entering an empty link to arrival at the far end.
    pub fn empty_time_ns(&self, bytes: u32) -> u64 {
        self.rate.time_ns(bytes) + self.delay_ns
    }

    /// Adds a packet to the first or the last link of its direction.
    // Inlined always: see channel.rs.
    #[inline(always)]
    pub fn enqueue(&mut self, now: u64, packet: &Packet) -> Crossing {
        let place = packet.flow.wrapping_add(1) as usize;
        let link = LINKS_OF_FLOW * place + 2 * usize::from(packet.down) + usize::from(packet.hop != 0);
        let last_arrival_ns = &mut self.last_arrival_ns[link];
        let before_ns = *last_arrival_ns;
        let (since_ns, is_behind) = (now.max(before_ns), before_ns > now);
        let start_ns = now.saturating_add(self.delay_ns).max(before_ns);
        let arrival_ns = start_ns.saturating_add(self.rate.time_ns(packet.wire_bytes));
        *last_arrival_ns = arrival_ns;
        Crossing { arrival_ns, since_ns, is_behind, link: CHANNELS + link as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::tests::packet;
    use crate::rng::Rng;

    /// Bytes at 8 Mbit/s take a microsecond each; a delay of 500 us.
    const BYTE_NS: u64 = 1_000;
    const DELAY_NS: u64 = 500_000;

    /// Compares each link with a separate queue, followed from arrival to arrival.
    #[test]
    fn each_link_sends_one_packet_after_the_other_and_they_arrive_in_order() {
        let mut access = Access::new(8_000_000, DELAY_NS);
        access.add_flow();
        let mut rng = Rng::new(3, 0);
        let mut now = 0;
        let mut on_the_way: [Vec<u64>; LINKS_OF_FLOW] = Default::default();
        let mut free_ns = [0u64; LINKS_OF_FLOW];
        let (mut alone, mut behind) = (0, 0);
        for _ in 0..4000 {
            now += rng.up_to(600_000);
            let (down, is_last) = (rng.up_to(1), rng.up_to(1));
            let link = (2 * down + is_last) as usize;
            let bytes = 40 + rng.up_to(1460);
            let mut entering = packet(0, bytes as u32, 0, 0);
            entering.down = down == 1;
            entering.hop = 2 * is_last as u8;
            free_ns[link] = free_ns[link].max(now) + bytes * BYTE_NS;
            let others = &mut on_the_way[link];
            others.retain(|&arrival_ns| arrival_ns > now);
            let since_ns = others.last().copied().unwrap_or(now);
            *(if others.is_empty() { &mut alone } else { &mut behind }) += 1;
            let arrival_ns = free_ns[link] + DELAY_NS;
            let crossing = Crossing {
                arrival_ns,
                since_ns,
                is_behind: !others.is_empty(),
                // Follows the links of the pings.
                link: CHANNELS + (LINKS_OF_FLOW + link) as u32,
            };
            assert_eq!(access.enqueue(now, &entering), crossing);
            others.push(arrival_ns);
        }
        assert!(alone > 100 && behind > 100, "{alone} {behind}");
    }
}
