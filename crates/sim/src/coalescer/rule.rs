// SPDX-License-Identifier: MIT
//! What a coalescer expects of a driver's rule, and what rules share.

use crate::packet::{Flags, Packet};
use std::collections::VecDeque;

pub const MS: u64 = 1_000_000;

/// What leaves a driver, and the number of ACKs that never will.
#[derive(Default)]
pub struct Out {
    pub packets: VecDeque<Box<Packet>>,
    pub dropped: u64,
}

impl Out {
    pub fn send(&mut self, packet: Box<Packet>) {
        self.packets.push_back(packet);
    }

    pub fn drop(&mut self, packet: Option<Box<Packet>>) {
        self.dropped += u64::from(packet.is_some());
    }
}

/// The rule of a driver.
pub trait Rule {
    /// Its host sends a TCP packet.
    fn send(&mut self, now: u64, packet: Box<Packet>, out: &mut Out);

    /// A packet reached its host.
    fn receive(&mut self, _now: u64, _packet: &Packet) {}

    /// Sends what has waited long enough.
    fn expire(&mut self, now: u64, out: &mut Out);

    /// When that will be the case for the first one that waits.
    fn due_ns(&self) -> u64;
}

/// Whether the only flag is ACK, and no data is with it.
pub fn is_ack_alone(packet: &Packet) -> bool {
    packet.is_pure_ack() && !packet.flags.intersects(Flags::PSH | Flags::ECE | Flags::CWR)
}
