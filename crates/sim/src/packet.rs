// SPDX-License-Identifier: MIT
//! What travels: one TCP segment of one flow.

use bitflags::bitflags;

/// At most this many SACK blocks fit beside timestamps (RFC 2018, 3).
pub const SACK_BLOCKS: usize = 3;
pub type Sack = Vec<(u64, u64)>;

/// An ATM cell and what it carries (ITU-T I.361).
const CELL_BYTES: u32 = 53;
const CELL_PAYLOAD_BYTES: u32 = 48;

/// A packet on its way: six owners pass it on, so it moves by reference.
pub type Parcel = Box<Packet>;

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
    /// What a packet is and has, each in a bit, so that a packet takes one line of the processor's cache.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Flags: u8 {
        const SYN = 1;
        const FIN = 1 << 1;
        const PSH = 1 << 2;
        /// ECN-Echo and congestion window reduced (RFC 3168, 6.1).
        const ECE = 1 << 3;
        const CWR = 1 << 4;
        /// Window probe: below the window, holds nothing new.
        const PROBE = 1 << 5;
        /// Lost behind the queue: takes its time, then is gone.
        const LOST = 1 << 6;
    }
}

#[derive(Clone, Debug, Default)]
#[repr(align(64))]
pub struct Packet {
    pub flow: u32,
    /// Length on the wire: see `Framing`.
    pub wire_bytes: u32,
    /// Payload; 0: a pure ACK.
    pub len: u32,
    /// Wire segments it stands for after aggregation.
    pub segments: u16,
    /// Towards the client.
    pub down: bool,
    /// Links crossed so far.
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
    /// The newest block first; absent on nearly every packet.
    pub sack: Option<Box<Sack>>,
}

const _: () = assert!(size_of::<Packet>() == 64);

/// What stands around a flow's payload.
#[derive(Clone, Copy, Debug)]
pub struct Framing {
    /// Headers, timestamps and the link's own bytes.
    pub overhead_bytes: u32,
    /// All of it in whole cells, the last one padded.
    pub cells: bool,
    /// Options of a SYN that other segments do not have.
    pub syn_option_bytes: u32,
}

impl Framing {
    /// Length on the wire of a packet with so many bytes of payload and SACK option.
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
        // Nearly all are one, and a division takes long.
        if self.segments <= 1 {
            self.len
        } else {
            self.len / u32::from(self.segments)
        }
    }

    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }

    /// Marks it instead of dropping it; false: its sender cannot take a mark (RFC 3168, 5).
    pub fn mark(&mut self) -> bool {
        if self.ecn == Ecn::NotEct {
            return false;
        }
        self.ecn = Ecn::Ce;
        true
    }
}
