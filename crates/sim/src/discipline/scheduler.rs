// SPDX-License-Identifier: MIT
//! What a channel expects of a discipline, and what disciplines share.

use super::flow_queues::FlowQueues;
use crate::packet::{Packet, Parcel};
use crate::result::ChannelResult;

/// Frame size that Linux counts for a device of this MTU (`psched_mtu`), including the Ethernet
/// header.
pub fn frame_bytes(mtu_bytes: u32) -> u32 {
    mtu_bytes + 14
}

/// A discipline with a queue for each flow.
pub trait Scheduler {
    /// Adds an arriving packet, and may drop it or others.
    fn enqueue(&mut self, now: u64, packet: Parcel, stats: &mut ChannelResult);

    /// Removes the packet that leaves; may drop others before it.
    fn dequeue(&mut self, now: u64, stats: &mut ChannelResult) -> Option<Parcel>;

    /// The waiting packets.
    fn queues(&self) -> &FlowQueues;

    /// Earliest time at which a packet may leave.
    fn ready_ns(&self) -> u64 {
        0
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

/// A limit, with `otherwise` in place of 0.
pub fn limit_or(given: u64, otherwise: u64) -> u64 {
    if given == 0 {
        otherwise
    } else {
        given
    }
}
