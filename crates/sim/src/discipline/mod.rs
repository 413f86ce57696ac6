// SPDX-License-Identifier: MIT
//! Linux's queueing disciplines with a queue for each flow, and CoDel.
//!
//! A discipline stores waiting packets and chooses the next to leave; the channel models rate,
//! delay and faults. Linux runs the same code at the root of a device and below a shaper; this is
//! the model of a root, which is asked for packets until it has none.

mod ack_filter;
mod cake;
mod cobalt;
mod codel;
mod flow_queues;
mod fq;
mod fq_codel;
mod scheduler;
#[cfg(test)]
mod tests;

use crate::rng::Rng;
use crate::scenario::{ChannelSpec, Discipline};
pub use codel::{Codel, Target};
pub use scheduler::{count_drop, frame_bytes, mark, Scheduler};

/// The discipline of a direction; None: it does not distinguish flows.
pub fn scheduler(pipe: &ChannelSpec, mtu_bytes: u32, rng: Rng) -> Option<Box<dyn Scheduler>> {
    match pipe.discipline {
        Discipline::FqCodel => Some(Box::new(fq_codel::FqCodel::new(pipe, mtu_bytes, rng))),
        Discipline::Fq => Some(Box::new(fq::Fq::new(pipe, mtu_bytes, rng))),
        Discipline::Cake => Some(Box::new(cake::Cake::new(pipe, mtu_bytes, rng))),
        _ => None,
    }
}
