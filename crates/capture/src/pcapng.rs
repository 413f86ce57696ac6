// SPDX-License-Identifier: MIT
//! pcapng (draft-ietf-opsawg-pcapng): sections, interfaces, packets and drop counters.

use crate::error::{CaptureError, CaptureErrorKind};
use crate::input::Input;
use crate::notes::InterfaceNotes;
use crate::order::ByteOrder;
use crate::raw::{RawPacket, MAX_BLOCK_BYTES};

/// Number of interfaces that an obsolete packet block can address.
const INTERFACES_MAX: usize = 1 << 16;
/// Maximum length of names and filters; longer ones are cut.
const TEXT_BYTES_MAX: usize = 1024;

const SECTION: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

/// Data of an interface needed for each packet.
struct Interface {
    link: u32,
    snap_len: u32,
    /// Nanoseconds per tick, if that is an integer and there is no offset.
    tick_ns: Option<u64>,
    /// Resolution as in the option: power of 10, or of 2 with the top bit set.
    resolution: u8,
    offset_s: i64,
}

impl Interface {
    /// Converts ticks of the interface to nanoseconds since 1970, clamped to the range.
    #[inline]
    fn time_ns(&self, ticks: u64) -> u64 {
        match self.tick_ns.and_then(|tick_ns| ticks.checked_mul(tick_ns)) {
            Some(time_ns) => time_ns,
            None => self.any_time_ns(ticks),
        }
    }

    fn any_time_ns(&self, ticks: u64) -> u64 {
        let ticks = u128::from(ticks);
        let exponent = u32::from(self.resolution & 0x7f);
        let ns = if self.resolution & 0x80 != 0 {
            (ticks * 1_000_000_000) >> exponent
        } else if exponent <= 9 {
            ticks * 10u128.pow(9 - exponent)
        } else {
            10u128.checked_pow(exponent - 9).map_or(0, |unit| ticks / unit)
        };
        let ns = ns as i128 + i128::from(self.offset_s) * 1_000_000_000;
        ns.clamp(0, i128::from(u64::MAX)) as u64
    }
}

/// A complete block in the input buffer.
#[derive(Clone, Copy)]
struct Block {
    kind: u32,
    len: usize,
}

impl Block {
    /// Body of the block, between the head (8 bytes) and the trailing length (4), which are already
    /// checked.
    fn body<'i>(self, input: &'i Input<'_>) -> &'i [u8] {
        &input.peek(self.len)[8..self.len - 4]
    }

    fn is_packet(self) -> bool {
        matches!(self.kind, ENHANCED_PACKET | OBSOLETE_PACKET | SIMPLE_PACKET)
    }
}

pub(crate) struct Pcapng {
    order: ByteOrder,
    /// Interfaces of the current section.
    interfaces: Vec<Interface>,
    /// Index in `notes` of the section's first interface.
    section_at: usize,
    /// Interfaces of all sections.
    notes: Vec<InterfaceNotes>,
}

impl Default for Pcapng {
    fn default() -> Self {
        Pcapng { order: ByteOrder::Little, interfaces: Vec::new(), section_at: 0, notes: Vec::new() }
    }
}

impl Pcapng {
    /// Whether the first 4 bytes are those of pcapng; they are the same in both byte orders.
    pub fn begins(magic: &[u8]) -> bool {
        ByteOrder::Little.u32(magic, 0) == SECTION
    }

    #[inline]
    pub fn next_packet<'i>(
        &mut self,
        input: &'i mut Input<'_>,
    ) -> Result<Option<RawPacket<'i>>, CaptureError> {
        let Some(block) = self.next_packet_block(input)? else { return Ok(None) };
        let (order, body) = (self.order, block.body(input));
        let (id, ticks, at, captured, wire_len) = if block.kind == SIMPLE_PACKET {
            let wire_len = order.u32(body, 0);
            let snap_len = self.interfaces.first().map_or(0, |i| i.snap_len);
            let kept = if snap_len == 0 { wire_len } else { wire_len.min(snap_len) };
            (0, None, 4, (body.len() - 4).min(kept as usize), wire_len)
        } else {
            let id = match block.kind {
                ENHANCED_PACKET => order.u32(body, 0) as usize,
                _ => order.u16(body, 0).into(),
            };
            (id, Some(self.ticks(body)), 20, order.u32(body, 12) as usize, order.u32(body, 16))
        };
        if captured > body.len() - at {
            let expected = format!("at most {}", body.len() - at);
            return Err(
                input.damaged(format!("a packet of {captured} bytes in a block of {}", block.len), &expected)
            );
        }
        input.packets += 1;
        let described = self.interfaces.get(id);
        if described.is_some() {
            self.notes[self.section_at + id].packets += 1;
        }
        let number = input.packets;
        Ok(Some(RawPacket {
            time_ns: ticks.and_then(|ticks| described.map(|i| i.time_ns(ticks))),
            link: described.map(|i| i.link),
            interface: (self.section_at + id) as u32,
            number,
            data: &input.take(block.len)[8 + at..8 + at + captured],
            wire_len,
        }))
    }

    /// Time stamp of an enhanced or obsolete packet block, in ticks.
    #[inline]
    fn ticks(&self, body: &[u8]) -> u64 {
        u64::from(self.order.u32(body, 4)) << 32 | u64::from(self.order.u32(body, 8))
    }

    pub fn first_time_ns(&mut self, input: &mut Input<'_>) -> Result<Option<u64>, CaptureError> {
        let Some(block) = self.next_packet_block(input)? else { return Ok(None) };
        if block.kind == SIMPLE_PACKET {
            return Ok(None);
        }
        let body = block.body(input);
        let id = match block.kind {
            ENHANCED_PACKET => self.order.u32(body, 0) as usize,
            _ => self.order.u16(body, 0).into(),
        };
        Ok(self.interfaces.get(id).map(|i| i.time_ns(self.ticks(body))))
    }

    /// Consumes everything up to the next packet block, which is left in the input.
    fn next_packet_block(&mut self, input: &mut Input<'_>) -> Result<Option<Block>, CaptureError> {
        loop {
            let Some(block) = self.next_block(input)? else { return Ok(None) };
            let body = block.body(input);
            let least = match block.kind {
                ENHANCED_PACKET | OBSOLETE_PACKET => 20,
                INTERFACE => 8,
                SIMPLE_PACKET => 4,
                STATISTICS => 12,
                _ => 0,
            };
            if body.len() < least {
                return Err(input.error(
                    CaptureErrorKind::Corrupt,
                    format!("a block of type {} with {} bytes", block.kind, block.len),
                    "room for its fixed fields",
                    "the file is damaged here",
                ));
            }
            match block.kind {
                _ if block.is_packet() => return Ok(Some(block)),
                SECTION => {
                    self.interfaces.clear();
                    self.section_at = self.notes.len();
                }
                INTERFACE => {
                    if self.notes.len() == INTERFACES_MAX {
                        return Err(input.error(
                            CaptureErrorKind::Corrupt,
                            format!("more than {INTERFACES_MAX} interfaces"),
                            "one for each interface that was captured on",
                            "the file is damaged, or was not made by capturing",
                        ));
                    }
                    let (interface, notes) = interface(self.order, body);
                    self.interfaces.push(interface);
                    self.notes.push(notes);
                }
                STATISTICS => self.statistics(body),
                // Names, secrets, comments of vendors: no packets.
                _ => {}
            }
            input.take(block.len);
        }
    }

    /// Counters of an interface; the latest block counts.
    fn statistics(&mut self, body: &[u8]) {
        let order = self.order;
        let id = order.u32(body, 0) as usize;
        let Some(interface) = self.interfaces.get(id) else { return };
        let notes = &mut self.notes[self.section_at + id];
        for (code, value) in options(order, &body[12..]) {
            if value.len() < 8 {
                continue;
            }
            match code {
                // Two halves, the upper one first, as in packet blocks.
                2 => {
                    let ticks = u64::from(order.u32(value, 0)) << 32 | u64::from(order.u32(value, 4));
                    notes.capture_start_ns = Some(interface.time_ns(ticks));
                }
                4 => notes.received_packets = Some(order.u64(value, 0)),
                5 => notes.interface_dropped_packets = Some(order.u64(value, 0)),
                7 => notes.system_dropped_packets = Some(order.u64(value, 0)),
                _ => {}
            }
        }
    }

    /// Makes the next whole block available.
    #[inline]
    fn next_block(&mut self, input: &mut Input<'_>) -> Result<Option<Block>, CaptureError> {
        let have = input.fill(12)?;
        if have < 12 {
            input.cut(have, 12);
            return Ok(None);
        }
        let is_section = Self::begins(input.peek(12));
        if is_section {
            self.order = section_order(input)?;
        }
        let order = self.order;
        let (kind, len) = (order.u32(input.peek(12), 0), order.u32(input.peek(12), 4));
        let least = if is_section { 28 } else { 12 };
        if len < least || len % 4 != 0 || len > MAX_BLOCK_BYTES {
            return Err(input.error(
                CaptureErrorKind::Corrupt,
                format!("a block of type {kind:#x} that claims {len} bytes"),
                &format!("a multiple of 4 from {least} to {MAX_BLOCK_BYTES}"),
                "the file is damaged here",
            ));
        }
        let have = input.fill(len as usize)?;
        if have < len as usize {
            input.cut(have, len as usize);
            return Ok(None);
        }
        let block = input.peek(len as usize);
        let again = order.u32(block, len as usize - 4);
        if again != len {
            return Err(input.error(
                CaptureErrorKind::Corrupt,
                format!("a block that starts with length {len} and ends with {again}"),
                "the same length twice",
                "the file is damaged here",
            ));
        }
        if is_section && order.u16(block, 12) != 1 {
            return Err(input.error(
                CaptureErrorKind::Unsupported,
                format!("pcapng version {}", order.u16(block, 12)),
                "version 1",
                "convert it with a current editcap",
            ));
        }
        Ok(Some(Block { kind, len: len as usize }))
    }

    pub fn into_notes(self) -> Vec<InterfaceNotes> {
        self.notes
    }
}

/// The byte order of the section that starts here.
fn section_order(input: &Input<'_>) -> Result<ByteOrder, CaptureError> {
    let head = input.peek(12);
    let found = [ByteOrder::Little, ByteOrder::Big].into_iter().find(|o| o.u32(head, 8) == BYTE_ORDER);
    found.ok_or_else(|| {
        input.error(
            CaptureErrorKind::Corrupt,
            format!("byte-order magic {:#010x}", ByteOrder::Little.u32(head, 8)),
            "0x1a2b3c4d in either byte order",
            "the section header is damaged",
        )
    })
}

/// Codes and values of options up to the end, or to the first that does not fit.
fn options(order: ByteOrder, mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (head, behind) = rest.split_first_chunk::<4>()?;
        let (code, len) = (order.u16(head, 0), usize::from(order.u16(head, 2)));
        let value = behind.get(..len).filter(|_| code != 0)?;
        rest = behind.get(len.next_multiple_of(4)..)?;
        Some((code, value))
    })
}

fn interface(order: ByteOrder, body: &[u8]) -> (Interface, InterfaceNotes) {
    let mut found = Interface {
        link: order.u16(body, 0).into(),
        snap_len: order.u32(body, 4),
        tick_ns: None,
        resolution: 6,
        offset_s: 0,
    };
    let mut notes =
        InterfaceNotes { link: found.link, snap_len: found.snap_len, ..InterfaceNotes::default() };
    for (code, value) in options(order, &body[8..]) {
        match (code, value) {
            (2, _) => notes.name = Some(text(value)),
            (9, &[resolution]) => found.resolution = resolution,
            // The first byte of a filter gives its type; 0: text.
            (11, [0, filter @ ..]) => notes.filter = Some(text(filter)),
            (14, _) if value.len() == 8 => found.offset_s = order.u64(value, 0) as i64,
            _ => {}
        }
    }
    if found.resolution <= 9 && found.offset_s == 0 {
        found.tick_ns = Some(10u64.pow(9 - u32::from(found.resolution)));
    }
    (found, notes)
}

fn text(raw: &[u8]) -> String {
    let raw = &raw[..raw.len().min(TEXT_BYTES_MAX)];
    String::from_utf8_lossy(raw).trim_end_matches('\0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_every_resolution_become_nanoseconds() {
        let at = |resolution: u8, offset_s: i64, ticks| {
            let mut options = vec![9, 0, 1, 0, resolution, 0, 0, 0, 14, 0, 8, 0];
            options.extend(offset_s.to_le_bytes());
            let body = [&[1, 0, 0, 0, 0, 0, 0, 0], &options[..]].concat();
            let with_offset = interface(ByteOrder::Little, &body).0.time_ns(ticks);
            if offset_s == 0 {
                assert_eq!(interface(ByteOrder::Little, &body[..16]).0.time_ns(ticks), with_offset);
            }
            with_offset
        };
        assert_eq!(at(6, 0, 1_500_000), 1_500_000_000);
        assert_eq!(at(9, 0, 7), 7);
        assert_eq!(at(0, 0, 3), 3_000_000_000);
        assert_eq!(at(0, 0, u64::MAX), u64::MAX);
        assert_eq!(at(12, 0, 5_999), 5);
        assert_eq!(at(0x80 | 10, 0, 1536), 1_500_000_000);
        assert_eq!(at(6, -1, 1_500_000), 500_000_000);
        assert_eq!(at(6, -9, 0), 0);
        assert_eq!(at(127, 0, u64::MAX), 0);
        assert_eq!(at(0xff, 0, u64::MAX), 0);
        assert_eq!(at(0, i64::MAX, u64::MAX), u64::MAX);
    }
}
