// SPDX-License-Identifier: MIT
//! pcap: every version and variant that libpcap reads (draft-ietf-opsawg-pcap, and libpcap for
//! what came before it).

use crate::error::{CaptureError, CaptureErrorKind};
use crate::input::{shown, Input};
use crate::link;
use crate::notes::InterfaceNotes;
use crate::order::ByteOrder;
use crate::raw::{RawPacket, MAX_BLOCK_BYTES};

const FILE_HEADER_BYTES: usize = 24;
/// Size of a record header in most files; some variants append fields.
const RECORD_HEADER_BYTES: usize = 16;

/// Properties that the magic number implies.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    order: ByteOrder,
    /// Unit of the second field of times, in nanoseconds.
    fraction_ns: u64,
    record_header_bytes: usize,
}

/// Order of the two lengths of a record.
#[derive(Clone, Copy)]
enum Lengths {
    InOrder,
    /// Captured and original length are swapped where the captured one would be the longer.
    PerhapsSwapped,
    Swapped,
}

pub(crate) struct Pcap {
    style: Style,
    lengths: Lengths,
    link: u32,
    snap_len: u32,
}

#[cold]
fn too_long(input: &Input<'_>, len: u32) -> CaptureError {
    input.damaged(format!("a packet of {len} captured bytes"), &format!("at most {MAX_BLOCK_BYTES}"))
}

impl Pcap {
    /// Format by the first 4 bytes; None if they are not those of a pcap file.
    pub fn begins(magic: &[u8]) -> Option<Style> {
        [ByteOrder::Little, ByteOrder::Big].into_iter().find_map(|order| {
            let style = |fraction_ns, record_header_bytes| Style { order, fraction_ns, record_header_bytes };
            match order.u32(magic, 0) {
                0xa1b2_c3d4 => Some(style(1_000, RECORD_HEADER_BYTES)),
                0xa1b2_3c4d => Some(style(1, RECORD_HEADER_BYTES)),
                // A libpcap modified by Kuznetsov, in Linux distributions of about 2000: interface,
                // protocol and packet type follow the lengths.
                0xa1b2_cd34 => Some(style(1_000, 24)),
                _ => None,
            }
        })
    }

    pub fn open(input: &mut Input<'_>, style: Style) -> Result<Self, CaptureError> {
        let have = input.fill(FILE_HEADER_BYTES)?;
        if have < FILE_HEADER_BYTES {
            return Err(input.error(
                CaptureErrorKind::NotACapture,
                format!("the file ends after {have} bytes, inside its header"),
                "a pcap header of 24 bytes",
                "capture again: this file holds no packet",
            ));
        }
        let head = input.peek(FILE_HEADER_BYTES);
        let order = style.order;
        let (major, minor) = (order.u16(head, 4), order.u16(head, 6));
        let snap_len = order.u32(head, 16);
        // The upper bits give the length of a frame check sequence.
        let link = order.u32(head, 20) & 0x03ff_ffff;
        let lengths = match (major, minor) {
            (2, 4) => Lengths::InOrder,
            (2, 3) => Lengths::PerhapsSwapped,
            // Version 543.0 was written by the tcpdump of DG/UX.
            (2, 0..=2) | (543, 0) => Lengths::Swapped,
            _ => {
                return Err(input.error(
                    CaptureErrorKind::Unsupported,
                    format!("pcap version {major}.{minor}"),
                    "version 2.0 to 2.4",
                    &format!("convert it: editcap -F pcap {} converted.pcap", shown(&input.name)),
                ));
            }
        };
        if !link::is_supported(link) {
            return Err(input.error(
                CaptureErrorKind::Unsupported,
                format!("link type {link}"),
                link::SUPPORTED,
                "capture on another interface, or choose a link type: tcpdump -L lists them, -y \
                 takes one",
            ));
        }
        input.take(FILE_HEADER_BYTES);
        Ok(Pcap { style, lengths, link, snap_len })
    }

    #[inline]
    fn time_ns(&self, head: &[u8]) -> u64 {
        let order = self.style.order;
        u64::from(order.u32(head, 0)) * 1_000_000_000 + u64::from(order.u32(head, 4)) * self.style.fraction_ns
    }

    #[inline(always)]
    pub fn next_packet<'i>(
        &mut self,
        input: &'i mut Input<'_>,
    ) -> Result<Option<RawPacket<'i>>, CaptureError> {
        let head_len = self.style.record_header_bytes;
        let have = input.fill(head_len)?;
        if have < head_len {
            input.cut(have, head_len);
            return Ok(None);
        }
        // With a length known at compile time, no bounds are checked for each field.
        let Some(head) = input.peek(head_len).first_chunk::<RECORD_HEADER_BYTES>() else { return Ok(None) };
        let time_ns = self.time_ns(head);
        let (len, wire_len) = (self.style.order.u32(head, 8), self.style.order.u32(head, 12));
        let (len, wire_len) = match self.lengths {
            Lengths::InOrder => (len, wire_len),
            Lengths::PerhapsSwapped => (len.min(wire_len), len.max(wire_len)),
            Lengths::Swapped => (wire_len, len),
        };
        if len > MAX_BLOCK_BYTES {
            return Err(too_long(input, len));
        }
        let total = head_len + len as usize;
        let have = input.fill(total)?;
        if have < total {
            input.cut(have, total);
            return Ok(None);
        }
        input.packets += 1;
        let number = input.packets;
        let data = &input.take(total)[head_len..];
        Ok(Some(RawPacket {
            time_ns: Some(time_ns),
            link: Some(self.link),
            interface: 0,
            number,
            data,
            wire_len,
        }))
    }

    pub fn first_time_ns(&mut self, input: &mut Input<'_>) -> Result<Option<u64>, CaptureError> {
        let have = input.fill(8)?;
        Ok((have == 8).then(|| self.time_ns(input.peek(8))))
    }

    pub fn into_notes(self, packets: u64) -> InterfaceNotes {
        InterfaceNotes { link: self.link, snap_len: self.snap_len, packets, ..InterfaceNotes::default() }
    }
}
