// SPDX-License-Identifier: MIT
//! One capture file: detects its format and reads its records one at a time, in bounded memory.
//!
//! The framing is parsed here and not by a library: lengths are what a hostile file manipulates,
//! every error has to name its byte, and a truncated last packet must not cost those before it.

use crate::error::{CaptureError, CaptureErrorKind};
use crate::foreign;
use crate::input::{Input, Source, Watch};
use crate::notes::{FileNotes, Format};
use crate::pcap::Pcap;
use crate::pcapng::Pcapng;

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

enum Layout {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

/// The records of one input.
pub(crate) struct CaptureFile<'a> {
    input: Input<'a>,
    layout: Layout,
}

impl<'a> CaptureFile<'a> {
    /// Reads the file header.
    pub fn open(source: Source<'a>, watch: &'a Watch<'a>) -> Result<Self, CaptureError> {
        let mut input = Input::open(source, watch)?;
        let have = input.fill(4)?;
        if have < 4 {
            let expected = "a pcap or pcapng file of at least 24 bytes";
            let remedy = "capture again, for example with tcpdump -w";
            return Err(match have {
                _ if input.broken_off => input.error(
                    CaptureErrorKind::NotACapture,
                    format!("the compressed data breaks off after {have} bytes of the capture"),
                    expected,
                    "copy the file again",
                ),
                0 => input.error(CaptureErrorKind::Empty, "the file is empty".into(), expected, remedy),
                _ => input.error(CaptureErrorKind::NotACapture, format!("{have} bytes"), expected, remedy),
            });
        }
        let layout = if Pcapng::begins(input.peek(4)) {
            Layout::Pcapng(Pcapng::default())
        } else if let Some(style) = Pcap::begins(input.peek(4)) {
            Layout::Pcap(Pcap::open(&mut input, style)?)
        } else {
            return Err(foreign::refused(&mut input));
        };
        Ok(CaptureFile { input, layout })
    }

    /// The next packet; None at the end of the input or where it is truncated.
    #[inline(always)]
    pub fn next_packet(&mut self) -> Result<Option<RawPacket<'_>>, CaptureError> {
        match &mut self.layout {
            Layout::Pcap(pcap) => pcap.next_packet(&mut self.input),
            Layout::Pcapng(pcapng) => pcapng.next_packet(&mut self.input),
        }
    }

    /// Time of the next packet without consuming it; None if there is none or it carries no time.
    pub fn first_time_ns(&mut self) -> Result<Option<u64>, CaptureError> {
        match &mut self.layout {
            Layout::Pcap(pcap) => pcap.first_time_ns(&mut self.input),
            Layout::Pcapng(pcapng) => pcapng.first_time_ns(&mut self.input),
        }
    }

    pub fn into_notes(self) -> FileNotes {
        let Input { name, compression, offset: bytes, packets, truncated, .. } = self.input;
        let (format, interfaces) = match self.layout {
            Layout::Pcap(pcap) => (Format::Pcap, vec![pcap.into_notes(packets)]),
            Layout::Pcapng(pcapng) => (Format::Pcapng, pcapng.into_notes()),
        };
        FileNotes { name, format: Some(format), compression, bytes, packets, truncated, interfaces }
    }
}
