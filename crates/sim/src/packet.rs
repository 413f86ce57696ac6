// SPDX-License-Identifier: MIT
//! What travels: one TCP segment of one flow.

/// At most this many SACK blocks fit beside timestamps (RFC 2018, 3).
pub const SACK_BLOCKS: usize = 3;
pub type Sack = Vec<(u64, u64)>;

/// A packet on its way: six owners pass it on, so it moves by reference.
pub type Parcel = Box<Packet>;

#[derive(Clone, Debug)]
pub struct Packet {
    pub flow: u32,
    /// IP length plus link overhead.
    pub wire_bytes: u32,
    /// Payload; 0: a pure ACK.
    pub len: u32,
    /// Wire segments it stands for after aggregation.
    pub segments: u16,
    /// Towards the client.
    pub down: bool,
    /// Links crossed so far.
    pub hop: u8,
    pub fin: bool,
    pub psh: bool,
    pub retransmitted: bool,
    /// Window probe: below the window, holds nothing new.
    pub probe: bool,
    /// Lost behind the queue: takes its time, then is gone.
    pub lost: bool,
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

impl Packet {
    pub fn is_pure_ack(&self) -> bool {
        self.len == 0 && !self.fin && !self.probe
    }

    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }
}
