// SPDX-License-Identifier: MIT
//! Numbers in either byte order.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    #[inline]
    pub fn u16(self, b: &[u8], at: usize) -> u16 {
        let raw = [b[at], b[at + 1]];
        match self {
            ByteOrder::Little => u16::from_le_bytes(raw),
            ByteOrder::Big => u16::from_be_bytes(raw),
        }
    }

    #[inline]
    pub fn u32(self, b: &[u8], at: usize) -> u32 {
        let raw = [b[at], b[at + 1], b[at + 2], b[at + 3]];
        match self {
            ByteOrder::Little => u32::from_le_bytes(raw),
            ByteOrder::Big => u32::from_be_bytes(raw),
        }
    }

    pub fn u64(self, b: &[u8], at: usize) -> u64 {
        let (first, second) = (u64::from(self.u32(b, at)), u64::from(self.u32(b, at + 4)));
        match self {
            ByteOrder::Little => second << 32 | first,
            ByteOrder::Big => first << 32 | second,
        }
    }
}
