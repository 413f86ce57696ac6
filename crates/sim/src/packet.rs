// SPDX-License-Identifier: MIT
//! A packet: one TCP segment of one flow.

use bitflags::bitflags;

/// Maximum number of SACK blocks that fit beside timestamps (RFC 2018, 3).
pub const SACK_BLOCKS: usize = 3;
pub type Sack = Vec<(u64, u64)>;

/// Size of an ATM cell, and of its payload (ITU-T I.361).
const CELL_BYTES: u32 = 53;
const CELL_PAYLOAD_BYTES: u32 = 48;

/// The ECN field of the IP header, with its values there (RFC 3168, 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    #[default]
    NotEct = 0,
    /// ECT(0): a queue may mark it.
    Ect = 2,
    /// Congestion experienced.
    Ce = 3,
}

bitflags! {
    /// Properties of a packet, one bit each, so that a packet takes one cache line.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Flags: u8 {
        const SYN = 1;
        const FIN = 1 << 1;
        const PSH = 1 << 2;
        /// ECN-Echo and congestion window reduced (RFC 3168, 6.1).
        const ECE = 1 << 3;
        const CWR = 1 << 4;
        /// Window probe: below the window, without new data.
        const PROBE = 1 << 5;
        /// Lost after the queue: takes its transmission time, then disappears.
        const LOST = 1 << 6;
    }
}

/// Six owners pass a packet on, so it travels as a `Box`.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
pub struct Packet {
    pub flow: u32,
    /// Length on the wire: see `Framing`.
    pub wire_bytes: u32,
    /// Payload bytes; 0: a pure ACK.
    pub len: u32,
    /// Number of wire segments that it represents after aggregation.
    pub segments: u16,
    /// Whether it travels towards the client.
    pub down: bool,
    /// Number of links crossed so far.
    pub hop: u8,
    pub flags: Flags,
    pub ecn: Ecn,
    /// Sequence number of the first byte, from 0.
    pub seq: u64,
    pub ack: u64,
    pub wnd_bytes: u32,
    /// Time of sending (TSval) and the peer's time echoed (TSecr; 0: none), nanoseconds.
    pub sent_ns: u64,
    pub echo_ns: u64,
    /// SACK blocks, the newest first; absent on nearly every packet.
    pub sack: Option<Box<Sack>>,
}

const _: () = assert!(size_of::<Packet>() == 64);

/// Overhead around a flow's payload.
#[derive(Clone, Copy, Debug)]
pub struct Framing {
    /// Headers, timestamps and the link's own bytes.
    pub overhead_bytes: u32,
    /// Whether packets are carried in whole cells, the last one padded.
    pub cells: bool,
    /// Length of the options that only a SYN has.
    pub syn_option_bytes: u32,
}

impl Framing {
    /// Length on the wire of a packet with this many bytes of payload and SACK option.
    #[inline]
    pub fn wire_bytes(self, bytes: u32) -> u32 {
        let length = self.overhead_bytes + bytes;
        if self.cells {
            length.div_ceil(CELL_PAYLOAD_BYTES) * CELL_BYTES
        } else {
            length
        }
    }
}

impl Packet {
    pub fn has(&self, flags: Flags) -> bool {
        self.flags.contains(flags)
    }

    // [S3.3]
    pub fn is_pure_ack(&self) -> bool {
        self.len == 0 && !self.flags.intersects(Flags::SYN | Flags::FIN | Flags::PROBE)
    }

    /// Payload of each wire segment.
    pub fn segment_bytes(&self) -> u32 {
        // Nearly all packets are one segment, and a division is slow.
        if self.segments <= 1 {
            self.len
        } else {
            self.len / u32::from(self.segments)
        }
    }

    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }

    /// Marks the packet instead of dropping it; false: its sender does not support marks (RFC 3168,
    /// 5).
    pub fn mark(&mut self) -> bool {
        if self.ecn == Ecn::NotEct {
            return false;
        }
        self.ecn = Ecn::Ce;
        true
    }
}
