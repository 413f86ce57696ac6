// SPDX-License-Identifier: MIT
//! Access links: each flow has its own at both ends and in both directions, FIFOs without limits and
//! faults. There are thousands where there are thousands of flows, so a link is small.

use crate::channel::Rate;
use crate::packet::Parcel;
use std::collections::VecDeque;

/// Two directions at two ends.
const LINKS_OF_FLOW: usize = 4;

pub struct Access {
    rate: Rate,
    delay_ns: u64,
    links: Vec<Link>,
}

#[derive(Default)]
struct Link {
    /// Its transmitter is free then.
    free_ns: u64,
    /// The packet that reaches the far end next, and when. Most links carry no other.
    head: Option<(u64, Parcel)>,
    /// Those behind it, in order.
    line: VecDeque<(u64, Parcel)>,
}

impl Access {
    pub fn new(rate_bps: u64, delay_ns: u64) -> Self {
        Access { rate: Rate::new(rate_bps), delay_ns, links: Vec::new() }
    }

    /// Links for one more flow, behind those of all others.
    pub fn add_flow(&mut self) {
        self.links.extend((0..LINKS_OF_FLOW).map(|_| Link::default()));
    }

    /// Time from entering an empty link to the far end.
    pub fn empty_time_ns(&self, bytes: u32) -> u64 {
        self.rate.time_ns(bytes) + self.delay_ns
    }

    /// The link of a flow, by its place among all flows, at the first or the last end of a direction.
    #[inline]
    pub fn link(place: usize, down: bool, is_last: bool) -> usize {
        LINKS_OF_FLOW * place + 2 * usize::from(!down) + usize::from(is_last)
    }

    /// A packet enters at `now`. Some: it is the head, and arrives then.
    #[inline]
    pub fn enqueue(&mut self, link: usize, now: u64, packet: Parcel) -> Option<u64> {
        let link = &mut self.links[link];
        link.free_ns = link.free_ns.max(now).saturating_add(self.rate.time_ns(packet.wire_bytes));
        let arrival_ns = link.free_ns.saturating_add(self.delay_ns);
        if link.head.is_some() {
            link.line.push_back((arrival_ns, packet));
            return None;
        }
        link.head = Some((arrival_ns, packet));
        Some(arrival_ns)
    }

    /// The head is at the far end: the packet, and when the next one arrives.
    #[inline]
    pub fn deliver(&mut self, link: usize) -> Option<(Parcel, Option<u64>)> {
        let link = &mut self.links[link];
        let (_, packet) = link.head.take()?;
        link.head = link.line.pop_front();
        Some((packet, link.head.as_ref().map(|next| next.0)))
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

    #[test]
    fn each_link_sends_one_packet_after_the_other_and_they_arrive_in_order() {
        let mut access = Access::new(8_000_000, DELAY_NS);
        access.add_flow();
        let mut rng = Rng::new(3, 0);
        let (mut now, mut arrived, mut left) = (0, Vec::new(), Vec::new());
        let mut free_ns = [0u64; LINKS_OF_FLOW];
        // When the head of each link arrives, as the event queue would know it.
        let mut due: [Option<u64>; LINKS_OF_FLOW] = [None; LINKS_OF_FLOW];
        for number in 0..4000 {
            now += rng.up_to(600_000);
            while let Some(link) = (0..LINKS_OF_FLOW).find(|&l| due[l].is_some_and(|at| at <= now)) {
                let (packet, next) = access.deliver(link).expect("a packet is due");
                arrived.push((packet.flow, due[link].take().expect("due")));
                due[link] = next;
            }
            let link = Access::link(0, rng.up_to(1) == 1, rng.up_to(1) == 1);
            let bytes = 40 + rng.up_to(1460);
            free_ns[link] = free_ns[link].max(now) + bytes * BYTE_NS;
            left.push((number, free_ns[link] + DELAY_NS));
            if let Some(at) = access.enqueue(link, now, packet(number, bytes as u32, 0, 0)) {
                assert_eq!(due[link].replace(at), None, "only an empty link has a new head");
            }
        }
        assert!(arrived.len() > 3900);
        arrived.sort_unstable();
        left.retain(|sent| arrived.binary_search_by_key(&sent.0, |a| a.0).is_ok());
        assert_eq!(arrived, left);
    }
}
