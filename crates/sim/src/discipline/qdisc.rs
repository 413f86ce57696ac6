// SPDX-License-Identifier: MIT
//! What a channel expects of a queueing discipline, and what disciplines share.

use super::queues::Queues;
use crate::packet::Packet;
use crate::result::ChannelResult;
use crate::scenario::ChannelSpec;

/// Frame size that Linux counts for a device of this MTU (`psched_mtu`), including the Ethernet
/// header.
pub fn frame_bytes(mtu_bytes: u32) -> u32 {
    mtu_bytes + 14
}

/// A queueing discipline.
pub trait Qdisc {
    /// Adds an arriving packet, and may drop it or others. `is_idle`: the transmitter takes a packet
    /// next, so that any length fits a limit in bytes.
    fn enqueue(&mut self, now: u64, packet: Box<Packet>, is_idle: bool, stats: &mut ChannelResult);

    /// Removes the packet that leaves; may drop others before it.
    fn dequeue(&mut self, now: u64, stats: &mut ChannelResult) -> Option<Box<Packet>>;

    /// The waiting packets.
    fn queues(&self) -> &Queues;

    /// Earliest time at which a packet may leave.
    fn ready_ns(&self) -> u64 {
        0
    }
}

/// Limits of a queue that drops arrivals.
pub struct Limits {
    packets: usize,
    bytes: u64,
}

impl Limits {
    pub fn new(pipe: &ChannelSpec) -> Self {
        Limits {
            packets: limit_or(pipe.queue_packets.into(), u64::MAX) as usize,
            bytes: limit_or(pipe.queue_bytes, u64::MAX),
        }
    }

    /// Whether there is room for a packet behind so many.
    #[inline]
    pub fn have_room(&self, packets: usize, bytes: u64, packet: &Packet) -> bool {
        packets < self.packets && bytes + u64::from(packet.wire_bytes) <= self.bytes
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
