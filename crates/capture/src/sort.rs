// SPDX-License-Identifier: MIT
//! Packets whose times are out of order, as several queues of a network card or several interfaces
//! leave them: sorted by time in a bounded buffer.

use crate::error::CaptureError;
use crate::notes::CaptureNotes;
use crate::reading::{Packet, ReadOptions, Take};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

/// Maximum number of packets held: 16 MB.
const HELD_MAX: usize = 1 << 16;

/// Reads with `read`, and again, sorted by time, if the times turn out to be out of order.
/// `read` must be able to read its sources twice. A clock that is set back is not mended: the time
/// then stands still until it is reached again.
///
/// # Errors Those of `read`.
pub fn in_order<R>(
    options: &ReadOptions<'_>,
    mut read: impl FnMut(&ReadOptions<'_>) -> Result<R, CaptureError>,
    notes: impl Fn(&R) -> &CaptureNotes,
) -> Result<R, CaptureError> {
    let found = read(options)?;
    match notes(&found).disorder_ns() {
        Some(sort_ns) => read(&ReadOptions { sort_ns, ..*options }),
        None => Ok(found),
    }
}

/// Holds packets until no earlier one can follow.
pub(crate) struct Sorter<'t> {
    back_ns: u64,
    held: BinaryHeap<Held>,
    /// Number of packets that came, which orders those of one time.
    came: u64,
    newest_ns: u64,
    handed_out_ns: u64,
    to: &'t mut dyn FnMut(&Packet) -> ControlFlow<()>,
}

impl<'t> Sorter<'t> {
    pub fn new(back_ns: u64, to: &'t mut dyn FnMut(&Packet) -> ControlFlow<()>) -> Self {
        Sorter { back_ns, held: BinaryHeap::new(), came: 0, newest_ns: 0, handed_out_ns: 0, to }
    }

    /// Hands out packets from before this time, and those that do not fit.
    fn hand_out(&mut self, before_ns: u64) -> ControlFlow<()> {
        while self.held.len() > HELD_MAX || self.held.peek().is_some_and(|h| h.packet.time_ns < before_ns) {
            let Some(Held { mut packet, .. }) = self.held.pop() else { break };
            self.handed_out_ns = self.handed_out_ns.max(packet.time_ns);
            packet.time_ns = self.handed_out_ns;
            (self.to)(&packet)?;
        }
        ControlFlow::Continue(())
    }

    pub fn finish(mut self) {
        let _ = self.hand_out(u64::MAX);
    }
}

impl Take for Sorter<'_> {
    fn take(&mut self, packet: &Packet) -> ControlFlow<()> {
        self.came += 1;
        self.newest_ns = self.newest_ns.max(packet.time_ns);
        self.held.push(Held { came: self.came, packet: packet.clone() });
        self.hand_out(self.newest_ns.saturating_sub(self.back_ns))
    }
}

/// A packet in the heap; the earliest one is the greatest.
struct Held {
    came: u64,
    packet: Packet,
}

impl Held {
    fn place(&self) -> (u64, u64) {
        (self.packet.time_ns, self.came)
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Self) -> Ordering {
        other.place().cmp(&self.place())
    }
}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for Held {}
