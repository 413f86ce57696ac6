// SPDX-License-Identifier: MIT
//! Queueing disciplines: what holds the packets that wait for a transmitter, and chooses the next.
//!
//! ```text
//! Channel::enqueue --> Qdisc::enqueue --> [queues] --> Qdisc::dequeue --> Channel::leave
//!                      may drop, mark, filter          may drop, mark
//! ```
//!
//! The channel models rate, delay and faults, and asks for a packet whenever its transmitter is
//! free. Linux runs the same code at the root of a device and below a shaper; this is the model of a
//! root. A FIFO that nothing else forces to wait has no `Qdisc`: its departures are calculated
//! (`crate::fifo`).

mod ack_filter;
mod ack_separation;
mod cake;
mod cake_ack_filter;
mod cobalt;
mod codel;
mod drop_tail;
mod fq;
mod fq_codel;
mod qdisc;
mod queues;
#[cfg(test)]
mod tests;

use crate::rng::Rng;
use crate::scenario::{ChannelSpec, Discipline};
pub use qdisc::{count_drop, Limits, Qdisc};

/// The discipline of a direction: a line for each.
pub fn new(pipe: &ChannelSpec, mtu_bytes: u32, rng: Rng) -> Box<dyn Qdisc> {
    match pipe.discipline {
        Discipline::Fifo => Box::new(drop_tail::DropTail::new(pipe, 1)),
        Discipline::AckSeparation => Box::new(ack_separation::AckSeparation::new(pipe, false)),
        Discipline::AckFilter => Box::new(ack_filter::AckFilter::new(pipe)),
        Discipline::AckSeparationFilter => Box::new(ack_separation::AckSeparation::new(pipe, true)),
        Discipline::Codel => Box::new(codel::CodelQueue::new(pipe, mtu_bytes)),
        Discipline::FqCodel => Box::new(fq_codel::FqCodel::new(pipe, mtu_bytes, rng)),
        Discipline::Fq => Box::new(fq::Fq::new(pipe, mtu_bytes, rng)),
        Discipline::Cake => Box::new(cake::Cake::new(pipe, mtu_bytes, rng)),
    }
}
