// SPDX-License-Identifier: MIT
//! Errors of reading: what went wrong, where, what was expected instead, and the remedy.

use std::fmt;
use std::io;

/// The kind of failure, for callers that react differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CaptureErrorKind {
    /// The operating system refused to open or read.
    Io,
    /// The input is empty.
    Empty,
    /// The first bytes are those of no capture format.
    NotACapture,
    /// The first bytes are those of a capture format that is not supported but that `editcap`
    /// converts.
    OtherFormat,
    /// The first bytes are those of a compressed format that is not supported.
    Compressed,
    /// A capture of an unsupported version or link type.
    Unsupported,
    /// A capture that is damaged from some byte on.
    Corrupt,
    /// Open connections need more memory than [`crate::ReadOptions::max_held_bytes`].
    TooLarge,
    /// [`crate::ReadOptions::watch`] stopped the reading.
    Stopped,
}

/// Why a capture could not be read.
#[derive(Debug)]
pub struct CaptureError {
    /// The kind of failure.
    pub kind: CaptureErrorKind,
    /// Name of the input as the caller gave it.
    pub file: Box<str>,
    /// Byte offset in the input at which the problem starts.
    pub offset: u64,
    /// Whether the input is compressed, so that `offset` refers to the unpacked data.
    pub unpacked: bool,
    /// Number of the packet there, counted from 1; None before the first packet.
    pub packet: Option<u64>,
    /// What was found.
    pub found: Box<str>,
    /// What was expected instead.
    pub expected: Box<str>,
    /// What the user can do about it.
    pub remedy: Box<str>,
    /// The operating system's error, for [`CaptureErrorKind::Io`].
    pub source: Option<io::Error>,
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unpacked = if self.unpacked { " unpacked" } else { "" };
        write!(f, "{}: byte {}{unpacked}", self.file, self.offset)?;
        if let Some(n) = self.packet {
            write!(f, " (packet {n})")?;
        }
        write!(f, ": {}", self.found)?;
        if !self.expected.is_empty() {
            write!(f, "; expected {}", self.expected)?;
        }
        if !self.remedy.is_empty() {
            write!(f, "; {}", self.remedy)?;
        }
        Ok(())
    }
}

impl std::error::Error for CaptureError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|e| e as _)
    }
}
