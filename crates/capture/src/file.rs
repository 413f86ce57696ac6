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
use crate::raw::RawPacket;

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
