// SPDX-License-Identifier: MIT
//! Queueing disciplines of Linux that keep a queue for each flow, and CoDel.
//!
//! A discipline holds what waits and chooses what leaves; rate, delay and faults are the
//! channel's. Linux runs the same code at the root of a device and below a shaper; what is
//! modelled here is a root, which is asked for a packet until it has none.

mod ack_filter;
mod cake;
mod cobalt;
mod codel;
mod flow_queues;
mod fq;
mod fq_codel;
#[cfg(test)]
mod tests;

use crate::packet::{Packet, Parcel};
use crate::result::ChannelResult;
use crate::rng::Rng;
use crate::scenario::{ChannelSpec, Discipline};
pub use codel::{Codel, Target};
use flow_queues::FlowQueues;

/// What Linux counts for a device of this MTU (`psched_mtu`): with an Ethernet header.
pub fn frame_bytes(mtu_bytes: u32) -> u32 {
    mtu_bytes + 14
}

/// A queue for each flow, and a choice among them.
pub trait Scheduler {
    /// A packet arrives. It may be dropped, and so may others.
    fn enqueue(&mut self, now: u64, packet: Parcel, stats: &mut ChannelResult);

    /// The packet that leaves; some may be dropped before it.
    fn dequeue(&mut self, now: u64, stats: &mut ChannelResult) -> Option<Parcel>;

    /// What waits.
    fn queues(&self) -> &FlowQueues;

    /// Nothing may leave before this time.
    fn ready_ns(&self) -> u64 {
        0
    }
}

/// The discipline of a direction; None: one that does not tell flows apart.
pub fn scheduler(pipe: &ChannelSpec, mtu_bytes: u32, rng: Rng) -> Option<Box<dyn Scheduler>> {
    match pipe.discipline {
        Discipline::FqCodel => Some(Box::new(fq_codel::FqCodel::new(pipe, mtu_bytes, rng))),
        Discipline::Fq => Some(Box::new(fq::Fq::new(pipe, mtu_bytes, rng))),
        Discipline::Cake => Some(Box::new(cake::Cake::new(pipe, mtu_bytes, rng))),
        _ => None,
    }
}

/// Counts a packet that the queue dropped.
pub fn count_drop(stats: &mut ChannelResult, packet: &Packet) {
    stats.dropped_queue += 1;
    stats.acks_dropped_queue += u64::from(packet.is_pure_ack());
}

/// Marks a packet that an AQM would drop; false: it cannot be marked.
pub fn mark(stats: &mut ChannelResult, packet: &mut Packet) -> bool {
    let is_marked = packet.mark();
    stats.marked += u64::from(is_marked);
    is_marked
}

/// A limit of which 0 means another one.
fn limit_or(given: u64, otherwise: u64) -> u64 {
    if given == 0 {
        otherwise
    } else {
        given
    }
}
