// SPDX-License-Identifier: MIT
//! Segments above a hole share ACKs, on a host configured like Linux (`net.ipv4.tcp_comp_sack_*`).

use crate::Conn;

/// The longest time that such a segment waits for an ACK, in microseconds.
const WAIT_US: u16 = 1000;
/// The most segments that share one.
const SEGMENTS: u8 = 44;

impl Conn {
    /// [`Event::sack_delay_us`](crate::Event::sack_delay_us). `has_room`: the SACK option has room
    /// for the segment beside those already waiting.
    #[inline]
    pub fn sack_delay_us(&self, has_room: bool) -> u16 {
        let waiting = self.raw.compress.waiting;
        if waiting >= SEGMENTS || (waiting > 0 && !has_room) {
            0
        } else {
            WAIT_US
        }
    }

    /// Counts an ACK that left as one of the duplicates before segments share an ACK (Linux also
    /// counts the ACK of a segment that leaves a hole open).
    #[inline]
    pub fn count_duplicate(&mut self) {
        self.raw.compress.duplicate_acks = self.raw.compress.duplicate_acks.max(1);
    }
}
