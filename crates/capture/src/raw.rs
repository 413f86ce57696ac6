// SPDX-License-Identifier: MIT
//! One packet as its file stores it, before it is decoded.

/// Maximum length of a record or block. The longest snap length in use is 256 KiB; pcapng blocks
/// with names or secrets may be longer, and a length above this is damaged.
pub const MAX_BLOCK_BYTES: u32 = 16 << 20;

/// One packet as stored in the file.
pub(crate) struct RawPacket<'a> {
    /// Nanoseconds since 1970; None where the record carries no time.
    pub time_ns: Option<u64>,
    /// Link type; None where the record refers to an undescribed interface.
    pub link: Option<u32>,
    /// Interface index, as in [`crate::Packet::interface`].
    pub interface: u32,
    /// Number of the packet, counted from 1.
    pub number: u64,
    pub data: &'a [u8],
    /// Length of the packet on the wire.
    pub wire_len: u32,
}
