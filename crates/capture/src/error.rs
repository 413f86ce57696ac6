// SPDX-License-Identifier: MIT
//! What went wrong, where, what was expected instead, and what to do about it.

use std::fmt;
use std::io;

/// The kinds of failure, for callers that react differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CaptureErrorKind {
    /// The operating system refused to open or read.
    Io,
    /// There is not one byte.
    Empty,
    /// The first bytes belong to no capture format.
    NotACapture,
    /// The first bytes belong to a capture format that is not read, but that `editcap` converts.
    OtherFormat,
    /// The first bytes belong to a compressed file of a format that is not unpacked.
    Compressed,
    /// A capture, but of a version or link type that is not read.
    Unsupported,
    /// A capture whose structure breaks off being one.
    Corrupt,
    /// Its open connections need more memory than [`crate::ReadOptions::max_held_bytes`].
    TooLarge,
    /// [`crate::ReadOptions::watch`] ended the reading.
    Stopped,
}

/// Why a capture could not be read.
#[derive(Debug)]
pub struct CaptureError {
    pub kind: CaptureErrorKind,
    /// Name of the input as the caller gave it.
    pub file: Box<str>,
    /// Byte offset in the input at which the trouble starts.
    pub offset: u64,
    /// The input is compressed, and `offset` counts in the unpacked data.
    pub unpacked: bool,
    /// Number of the packet there, counted from 1; none in front of the first.
    pub packet: Option<u64>,
    /// What was found.
    pub found: Box<str>,
    /// What should have been there.
    pub expected: Box<str>,
    /// What the user can do.
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
