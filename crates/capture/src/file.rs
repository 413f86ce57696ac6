// SPDX-License-Identifier: MIT
//! Capture files: pcap and pcapng records, one at a time, in bounded memory.
//!
//! The framing is read here and not by a library: lengths are where a hostile file attacks, every
//! error has to name its byte, and a last packet cut short must not cost those before it.
//! Source: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.

use crate::error::{CaptureError, CaptureErrorKind};
use crate::packet::link_is_supported;
use serde::Serialize;
use std::io::{self, Read};

/// Longest record or block accepted. The longest snap length in use is 256 KiB; pcapng blocks with
/// names or secrets may be longer, and anything beyond this is a damaged length.
pub const MAX_BLOCK_BYTES: u32 = 16 << 20;
const READ_BYTES: usize = 64 << 10;
/// As many as the number of an interface in an obsolete packet block can name.
const INTERFACES_MAX: usize = 1 << 16;

const PCAPNG_SECTION: u32 = 0x0a0d_0d0a;
const PCAPNG_BYTE_ORDER: u32 = 0x1a2b_3c4d;
const PCAPNG_INTERFACE: u32 = 1;
const PCAPNG_OBSOLETE_PACKET: u32 = 2;
const PCAPNG_SIMPLE_PACKET: u32 = 3;
const PCAPNG_ENHANCED_PACKET: u32 = 6;

/// File format of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    Pcap,
    Pcapng,
}

/// The input ended inside a record; everything before it was kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Truncation {
    /// Byte offset at which the incomplete record starts.
    pub offset: u64,
    /// Number that its packet would have had, counted from 1.
    pub packet: u64,
    /// Bytes of it that are there.
    pub present_bytes: u64,
    /// Bytes that it claims to have.
    pub claimed_bytes: u64,
}

/// One packet as the file holds it.
pub(crate) struct RawPacket<'a> {
    /// Nanoseconds since 1970; none where the record carries no time.
    pub time_ns: Option<u64>,
    /// Link type; none where the record names an interface that was not described.
    pub link: Option<u32>,
    pub data: &'a [u8],
    /// Length of the packet on the wire.
    pub wire_len: u32,
}

#[derive(Clone, Copy)]
enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    fn u16(self, b: &[u8], at: usize) -> u16 {
        let raw = [b[at], b[at + 1]];
        match self {
            ByteOrder::Little => u16::from_le_bytes(raw),
            ByteOrder::Big => u16::from_be_bytes(raw),
        }
    }
    fn u32(self, b: &[u8], at: usize) -> u32 {
        let raw = [b[at], b[at + 1], b[at + 2], b[at + 3]];
        match self {
            ByteOrder::Little => u32::from_le_bytes(raw),
            ByteOrder::Big => u32::from_be_bytes(raw),
        }
    }
    fn i64(self, b: &[u8], at: usize) -> i64 {
        let mut raw = [0; 8];
        raw.copy_from_slice(&b[at..at + 8]);
        match self {
            ByteOrder::Little => i64::from_le_bytes(raw),
            ByteOrder::Big => i64::from_be_bytes(raw),
        }
    }
}

/// Buffered input that knows its byte offset and never holds more than one block plus one read.
struct Input<R> {
    reader: R,
    name: String,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset of `buffer[start]` in the input.
    offset: u64,
}

impl<R: Read> Input<R> {
    /// Makes up to `wanted` bytes available; returns how many there are (fewer only at the end).
    fn fill(&mut self, wanted: usize) -> Result<usize, io::Error> {
        while self.end - self.start < wanted {
            let room = wanted.max(READ_BYTES);
            if self.buffer.len() < room {
                // A new one instead of a resized one: zeroed memory costs nothing until used.
                let mut larger = vec![0; room];
                larger[..self.end - self.start].copy_from_slice(&self.buffer[self.start..self.end]);
                self.buffer = larger;
            } else if self.start > 0 {
                self.buffer.copy_within(self.start..self.end, 0);
            }
            self.end -= self.start;
            self.start = 0;
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                Ok(n) => self.end += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok((self.end - self.start).min(wanted))
    }

    fn peek(&self, len: usize) -> &[u8] {
        &self.buffer[self.start..self.start + len]
    }

    /// Steps over `len` available bytes; the returned slice stays valid until the next `fill`.
    fn take(&mut self, len: usize) -> &[u8] {
        let at = self.start;
        self.start += len;
        self.offset += len as u64;
        &self.buffer[at..at + len]
    }
}

struct Interface {
    link: u32,
    /// As in the option: power of 10, or of 2 with the top bit set.
    resolution: u8,
    offset_s: i64,
}

impl Interface {
    /// Ticks of the interface in nanoseconds since 1970, clamped to what fits.
    fn time_ns(&self, ticks: u64) -> u64 {
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

enum Layout {
    Pcap { order: ByteOrder, link: u32, fraction_ns: u64 },
    Pcapng { order: ByteOrder, interfaces: Vec<Interface> },
}

/// The records of one input.
pub(crate) struct CaptureFile<R> {
    input: Input<R>,
    kind: Layout,
    /// Packets returned so far.
    pub packets: u64,
    pub truncated: Option<Truncation>,
}

impl<R: Read> CaptureFile<R> {
    /// Reads the file header.
    pub fn open(reader: R, name: &str) -> Result<Self, CaptureError> {
        let input = Input { reader, name: name.to_owned(), buffer: Vec::new(), start: 0, end: 0, offset: 0 };
        let kind = Layout::Pcapng { order: ByteOrder::Little, interfaces: Vec::new() };
        let mut file = CaptureFile { input, kind, packets: 0, truncated: None };
        let have = file.fill(24)?;
        if have < 4 {
            return Err(file.error(
                CaptureErrorKind::NotACapture,
                if have == 0 { "the file is empty".into() } else { format!("{have} bytes") },
                "a pcap or pcapng file of at least 24 bytes",
                "capture again, for example with tcpdump -w",
            ));
        }
        let head = file.input.peek(have).to_vec();
        let magic = ByteOrder::Little.u32(&head, 0);
        let (order, fraction_ns) = match magic {
            PCAPNG_SECTION => return Ok(file),
            0xa1b2_c3d4 => (ByteOrder::Little, 1_000),
            0xa1b2_3c4d => (ByteOrder::Little, 1),
            0xd4c3_b2a1 => (ByteOrder::Big, 1_000),
            0x4d3c_b2a1 => (ByteOrder::Big, 1),
            _ => return Err(file.unknown_magic(&head)),
        };
        if have < 24 {
            return Err(file.error(
                CaptureErrorKind::NotACapture,
                format!("the file ends after {have} bytes, inside its header"),
                "a pcap header of 24 bytes",
                "capture again: this file holds no packet",
            ));
        }
        let major = order.u16(&head, 4);
        if major != 2 {
            return Err(file.error(
                CaptureErrorKind::Unsupported,
                format!("pcap version {major}.{}", order.u16(&head, 6)),
                "version 2",
                "convert it: editcap -F pcap in.pcap out.pcap",
            ));
        }
        // The upper bits give the length of a frame check sequence.
        let link = order.u32(&head, 20) & 0x03ff_ffff;
        if !link_is_supported(link) {
            return Err(file.error(
                CaptureErrorKind::Unsupported,
                format!("link type {link}"),
                "Ethernet (1), raw IP (101, 228, 229, 12, 14), Linux cooked (113, 276), loopback \
                 (0, 108)",
                "capture on another interface, or choose a link type: tcpdump -L lists them, -y \
                 takes one",
            ));
        }
        file.input.take(24);
        file.kind = Layout::Pcap { order, link, fraction_ns };
        Ok(file)
    }

    pub fn format(&self) -> Format {
        match self.kind {
            Layout::Pcap { .. } => Format::Pcap,
            Layout::Pcapng { .. } => Format::Pcapng,
        }
    }

    /// The next packet; none at the end of the input or where it breaks off.
    pub fn next_packet(&mut self) -> Result<Option<RawPacket<'_>>, CaptureError> {
        match self.kind {
            Layout::Pcap { order, link, fraction_ns } => self.next_pcap(order, link, fraction_ns),
            Layout::Pcapng { .. } => self.next_pcapng(),
        }
    }

    fn next_pcap(
        &mut self,
        order: ByteOrder,
        link: u32,
        fraction_ns: u64,
    ) -> Result<Option<RawPacket<'_>>, CaptureError> {
        let have = self.fill(16)?;
        if have < 16 {
            self.cut(have, 16);
            return Ok(None);
        }
        let head = self.input.peek(16);
        let time_ns =
            u64::from(order.u32(head, 0)) * 1_000_000_000 + u64::from(order.u32(head, 4)) * fraction_ns;
        let len = order.u32(head, 8);
        let wire_len = order.u32(head, 12);
        if len > MAX_BLOCK_BYTES {
            return Err(self.error(
                CaptureErrorKind::Corrupt,
                format!("a packet of {len} captured bytes"),
                &format!("at most {MAX_BLOCK_BYTES}"),
                "the file is damaged here; keep the packets before it: editcap -r in.pcap out.pcap \
                 1-N",
            ));
        }
        let total = 16 + len as usize;
        let have = self.fill(total)?;
        if have < total {
            self.cut(have, total);
            return Ok(None);
        }
        self.packets += 1;
        let data = &self.input.take(total)[16..];
        Ok(Some(RawPacket { time_ns: Some(time_ns), link: Some(link), data, wire_len }))
    }

    fn next_pcapng(&mut self) -> Result<Option<RawPacket<'_>>, CaptureError> {
        loop {
            let Some((kind, len)) = self.next_block()? else { return Ok(None) };
            let Layout::Pcapng { order, interfaces } = &mut self.kind else { return Ok(None) };
            let order = *order;
            // Head (8 bytes) and trailing length (4) are checked; the body lies between.
            let body_len = len - 12;
            let body = &self.input.peek(len)[8..8 + body_len];
            match kind {
                PCAPNG_SECTION => interfaces.clear(),
                PCAPNG_INTERFACE if body_len >= 8 => {
                    if interfaces.len() == INTERFACES_MAX {
                        return Err(self.error(
                            CaptureErrorKind::Corrupt,
                            format!("more than {INTERFACES_MAX} interfaces in a section"),
                            "one for each interface that was captured on",
                            "the file is damaged, or was not made by capturing",
                        ));
                    }
                    let described = interface(order, body);
                    interfaces.push(described);
                }
                PCAPNG_ENHANCED_PACKET | PCAPNG_OBSOLETE_PACKET if body_len >= 20 => {
                    let id = match kind {
                        PCAPNG_ENHANCED_PACKET => order.u32(body, 0) as usize,
                        _ => order.u16(body, 0) as usize,
                    };
                    let ticks = u64::from(order.u32(body, 4)) << 32 | u64::from(order.u32(body, 8));
                    let captured = order.u32(body, 12) as usize;
                    let wire_len = order.u32(body, 16);
                    if captured > body_len - 20 {
                        return Err(self.error(
                            CaptureErrorKind::Corrupt,
                            format!("a packet of {captured} bytes in a block of {len}"),
                            &format!("at most {}", body_len - 20),
                            "the file is damaged here; keep the packets before it: editcap -r \
                             in.pcapng out.pcapng 1-N",
                        ));
                    }
                    let described = interfaces.get(id);
                    let time_ns = described.map(|i| i.time_ns(ticks));
                    let link = described.map(|i| i.link);
                    self.packets += 1;
                    let data = &self.input.take(len)[28..28 + captured];
                    return Ok(Some(RawPacket { time_ns, link, data, wire_len }));
                }
                PCAPNG_SIMPLE_PACKET if body_len >= 4 => {
                    let wire_len = order.u32(body, 0);
                    let link = interfaces.first().map(|i| i.link);
                    let captured = (body_len - 4).min(wire_len as usize);
                    self.packets += 1;
                    let data = &self.input.take(len)[12..12 + captured];
                    return Ok(Some(RawPacket { time_ns: None, link, data, wire_len }));
                }
                PCAPNG_INTERFACE | PCAPNG_ENHANCED_PACKET | PCAPNG_OBSOLETE_PACKET | PCAPNG_SIMPLE_PACKET => {
                    return Err(self.error(
                        CaptureErrorKind::Corrupt,
                        format!("a block of type {kind} with {len} bytes"),
                        "room for its fixed fields",
                        "the file is damaged here",
                    ));
                }
                // Names, statistics, secrets, comments of vendors: nothing about packets.
                _ => {}
            }
            self.input.take(len);
        }
    }

    /// Makes the next whole block available and returns its type and length.
    fn next_block(&mut self) -> Result<Option<(u32, usize)>, CaptureError> {
        let have = self.fill(12)?;
        if have < 12 {
            self.cut(have, 12);
            return Ok(None);
        }
        let head: [u8; 12] = {
            let mut raw = [0; 12];
            raw.copy_from_slice(self.input.peek(12));
            raw
        };
        // The section's type reads the same in both byte orders.
        let is_section = ByteOrder::Little.u32(&head, 0) == PCAPNG_SECTION;
        if is_section {
            let found = if ByteOrder::Little.u32(&head, 8) == PCAPNG_BYTE_ORDER {
                ByteOrder::Little
            } else if ByteOrder::Big.u32(&head, 8) == PCAPNG_BYTE_ORDER {
                ByteOrder::Big
            } else {
                return Err(self.error(
                    CaptureErrorKind::Corrupt,
                    format!("byte-order magic {:#010x}", ByteOrder::Little.u32(&head, 8)),
                    "0x1a2b3c4d in either byte order",
                    "the section header is damaged",
                ));
            };
            if let Layout::Pcapng { order, .. } = &mut self.kind {
                *order = found;
            }
        }
        let Layout::Pcapng { order, .. } = &self.kind else { return Ok(None) };
        let order = *order;
        let kind = order.u32(&head, 0);
        let len = order.u32(&head, 4);
        let least = if is_section { 28 } else { 12 };
        if len < least || len % 4 != 0 || len > MAX_BLOCK_BYTES {
            return Err(self.error(
                CaptureErrorKind::Corrupt,
                format!("a block of type {kind:#x} that claims {len} bytes"),
                &format!("a multiple of 4 from {least} to {MAX_BLOCK_BYTES}"),
                "the file is damaged here",
            ));
        }
        let have = self.fill(len as usize)?;
        if have < len as usize {
            self.cut(have, len as usize);
            return Ok(None);
        }
        let block = self.input.peek(len as usize);
        let again = order.u32(block, len as usize - 4);
        let version = order.u16(block, 12.min(len as usize - 2));
        if again != len {
            return Err(self.error(
                CaptureErrorKind::Corrupt,
                format!("a block that starts with length {len} and ends with {again}"),
                "the same length twice",
                "the file is damaged here",
            ));
        }
        if is_section && version != 1 {
            return Err(self.error(
                CaptureErrorKind::Unsupported,
                format!("pcapng version {version}"),
                "version 1",
                "convert it with a current editcap",
            ));
        }
        Ok(Some((kind, len as usize)))
    }

    fn fill(&mut self, wanted: usize) -> Result<usize, CaptureError> {
        self.input.fill(wanted).map_err(|e| {
            let mut error = self.error(
                CaptureErrorKind::Io,
                format!("cannot read: {e}"),
                "",
                "check the file and the medium it lies on",
            );
            error.source = Some(e);
            error
        })
    }

    fn cut(&mut self, present: usize, claimed: usize) {
        if present > 0 {
            self.truncated = Some(Truncation {
                offset: self.input.offset,
                packet: self.packets + 1,
                present_bytes: present as u64,
                claimed_bytes: claimed as u64,
            });
        }
    }

    pub fn error(&self, kind: CaptureErrorKind, found: String, expected: &str, remedy: &str) -> CaptureError {
        CaptureError {
            kind,
            file: self.input.name.as_str().into(),
            offset: self.input.offset,
            packet: (self.input.offset > 0).then_some(self.packets + 1),
            found: found.into(),
            expected: expected.into(),
            remedy: remedy.into(),
            source: None,
        }
    }

    fn unknown_magic(&self, head: &[u8]) -> CaptureError {
        let tool = match head {
            [0x1f, 0x8b, ..] => Some(("gzip", "gunzip")),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(("zstd", "unzstd")),
            [0xfd, b'7', b'z', b'X', ..] => Some(("xz", "unxz")),
            [b'B', b'Z', b'h', ..] => Some(("bzip2", "bunzip2")),
            [0x04, 0x22, 0x4d, 0x18, ..] => Some(("lz4", "unlz4")),
            _ => None,
        };
        let expected = "pcap or pcapng";
        match tool {
            Some((format, tool)) => self.error(
                CaptureErrorKind::Compressed,
                format!("a file compressed with {format}"),
                expected,
                &format!("unpack it first: {tool} FILE"),
            ),
            None => self.error(
                CaptureErrorKind::NotACapture,
                format!("a file that starts with {:02x?}", &head[..4]),
                expected,
                "capture with tcpdump -w, or convert: editcap -F pcapng in out.pcapng",
            ),
        }
    }
}

fn interface(order: ByteOrder, body: &[u8]) -> Interface {
    let mut found = Interface { link: order.u16(body, 0).into(), resolution: 6, offset_s: 0 };
    let mut options = &body[8..];
    while options.len() >= 4 {
        let code = order.u16(options, 0);
        let len = order.u16(options, 2) as usize;
        let padded = len.div_ceil(4) * 4;
        let rest = &options[4..];
        if code == 0 || padded > rest.len() {
            break;
        }
        match (code, len) {
            (9, 1) => found.resolution = rest[0],
            (14, 8) => found.offset_s = order.i64(rest, 0),
            _ => {}
        }
        options = &rest[padded..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_every_resolution_become_nanoseconds() {
        let at = |resolution, offset_s, ticks| Interface { link: 1, resolution, offset_s }.time_ns(ticks);
        assert_eq!(at(6, 0, 1_500_000), 1_500_000_000);
        assert_eq!(at(9, 0, 7), 7);
        assert_eq!(at(0, 0, 3), 3_000_000_000);
        assert_eq!(at(12, 0, 5_999), 5);
        assert_eq!(at(0x80 | 10, 0, 1536), 1_500_000_000);
        assert_eq!(at(6, -1, 1_500_000), 500_000_000);
        assert_eq!(at(6, -9, 0), 0);
        assert_eq!(at(127, 0, u64::MAX), 0);
        assert_eq!(at(0xff, 0, u64::MAX), 0);
        assert_eq!(at(0, i64::MAX, u64::MAX), u64::MAX);
    }
}
