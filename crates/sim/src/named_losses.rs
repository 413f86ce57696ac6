// SPDX-License-Identifier: MIT
//! Packets that a direction loses by name: the nth that carries a byte of the stream, or the nth
//! without data. A name by time or by count of all packets would mean another segment as soon as
//! one more is sent; these names mean the same segment in both worlds until the segment itself is
//! not sent.

use crate::packet::Packet;
use crate::scenario::Lose;
use std::collections::BTreeMap;

#[derive(Default)]
struct Seen {
    count: u32,
    /// Ordinals of the packets to lose, in order.
    nth: Vec<u32>,
}

impl Seen {
    fn loses_next(&mut self) -> bool {
        self.count += 1;
        self.nth.binary_search(&self.count).is_ok()
    }
}

pub struct NamedLosses {
    data: BTreeMap<u64, Seen>,
    without_data: Seen,
}

impl NamedLosses {
    /// The losses of a direction; None if there are none.
    pub fn new(named: &[Lose]) -> Option<Self> {
        let mut losses = NamedLosses { data: BTreeMap::new(), without_data: Seen::default() };
        for lose in named {
            let seen = match lose.at_bytes {
                Some(at) => losses.data.entry(at).or_default(),
                None => &mut losses.without_data,
            };
            seen.nth.push(lose.nth);
        }
        losses.data.values_mut().chain([&mut losses.without_data]).for_each(|seen| seen.nth.sort_unstable());
        (!named.is_empty()).then_some(losses)
    }

    /// Whether this packet, the next of its direction, is lost.
    pub fn take(&mut self, packet: &Packet) -> bool {
        if packet.flow != 0 {
            return false;
        }
        if packet.len == 0 {
            return self.without_data.loses_next();
        }
        // each byte counts, even in a packet lost for another byte
        self.data.range_mut(packet.seq..packet.end()).fold(false, |lost, (_, seen)| seen.loses_next() | lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(named: &[(Option<u64>, u32)]) -> NamedLosses {
        let named: Vec<_> = named.iter().map(|&(at_bytes, nth)| Lose { at_bytes, nth }).collect();
        NamedLosses::new(&named).expect("some")
    }

    fn data(seq: u64, len: u32) -> Packet {
        let packet = crate::channel::tests::packet(0, len + 52, len, 0);
        Packet { seq, ..*packet }
    }

    #[test]
    fn a_byte_is_lost_with_the_nth_packet_that_carries_it_however_it_is_cut() {
        let mut l = losses(&[(Some(1000), 1), (Some(1000), 3)]);
        let took = [data(0, 1000), data(500, 501), data(1000, 100), data(900, 500), data(1000, 100)];
        assert_eq!(took.map(|p| l.take(&p)), [false, true, false, true, false]);
    }

    #[test]
    fn a_packet_counts_for_each_byte_that_it_carries() {
        let mut l = losses(&[(Some(0), 1), (Some(100), 2)]);
        assert_eq!([0, 100, 100].map(|seq| l.take(&data(seq, 200))), [true, true, false]);
    }

    #[test]
    fn packets_without_data_are_counted_apart_and_other_flows_not_at_all() {
        let mut l = losses(&[(None, 2)]);
        let other = Packet { flow: 1, ..data(0, 0) };
        let took = [data(0, 0), other, data(0, 100), data(0, 0), data(0, 0)];
        assert_eq!(took.map(|p| l.take(&p)), [false, false, false, true, false]);
    }
}
