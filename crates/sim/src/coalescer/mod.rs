// SPDX-License-Identifier: MIT
//! ACK coalescers of Wi-Fi drivers: what a station's driver does to its own ACKs before they reach
//! the air.
//!
//! ```text
//! host --> [access link] --> Coalescer --> queue of the direction (channel.rs)
//!                              ^   \--- holds the newest ACK of a flow until its count or its timer
//!                              |
//!                          packets that its host receives
//! ```
//!
//! One file for each rule, with its constants; the sources are in spec/6-rivals.md. A packet that is
//! no ACK alone passes at once unless its rule says otherwise.

mod aic;
mod broadcom;
mod qualcomm;
mod rule;
mod samsung;
#[cfg(test)]
mod tests;

use crate::packet::Packet;
use crate::ping::PING_FLOW;
use crate::scenario::Coalescing;
use crate::sender::NEVER;
use rule::{Out, Rule};

const IPV4_TCP_HEADER_BYTES: u32 = 40;

pub struct Coalescer {
    rule: Box<dyn Rule>,
    out: Out,
    /// Time of the pending event.
    scheduled_ns: u64,
}

impl Coalescer {
    /// None: no coalescer.
    pub fn new(kind: Coalescing, mtu_bytes: u32) -> Option<Self> {
        // As the host announces it: all of these look at IPv4 alone.
        let mss = u64::from(mtu_bytes.saturating_sub(IPV4_TCP_HEADER_BYTES));
        let rule: Box<dyn Rule> = match kind {
            Coalescing::Off => return None,
            Coalescing::Samsung => Box::new(samsung::Samsung::new(mss)),
            Coalescing::Qualcomm => Box::<qualcomm::Qualcomm>::default(),
            Coalescing::Broadcom => Box::<broadcom::Broadcom>::default(),
            Coalescing::Aic => Box::<aic::Aic>::default(),
        };
        Some(Coalescer { rule, out: Out::default(), scheduled_ns: NEVER })
    }

    pub fn send(&mut self, now: u64, packet: Box<Packet>) {
        if packet.flow == PING_FLOW {
            self.out.send(packet);
        } else {
            self.rule.send(now, packet, &mut self.out);
        }
    }

    pub fn receive(&mut self, now: u64, packet: &Packet) {
        self.rule.receive(now, packet);
    }

    /// The timer's event.
    pub fn expire(&mut self, now: u64) {
        self.scheduled_ns = NEVER;
        self.rule.expire(now, &mut self.out);
    }

    /// The next packet that leaves the driver now.
    pub fn next(&mut self) -> Option<Box<Packet>> {
        self.out.packets.pop_front()
    }

    /// Time of an event that has to be scheduled.
    pub fn wake(&mut self) -> Option<u64> {
        let due_ns = self.rule.due_ns();
        (due_ns < self.scheduled_ns).then(|| {
            self.scheduled_ns = due_ns;
            due_ns
        })
    }

    /// Number of ACKs that a newer one replaced, or that the rule dropped.
    pub fn dropped(&self) -> u64 {
        self.out.dropped
    }
}
