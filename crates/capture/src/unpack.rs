// SPDX-License-Identifier: MIT
//! Compressed captures: gzip and zstd, unpacked as they are read.
//!
//! Memory is bounded whatever the data claims: 32 KiB of history for gzip, 8 MiB for zstd, whose
//! frames with a larger window are refused; data is unpacked only as needed.

use flate2::bufread::MultiGzDecoder;
use serde::Serialize;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use zstd_safe::zstd_sys::ZSTD_ErrorCode;
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

const PACKED_BYTES: usize = 64 << 10;
const GZIP_MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// 8 MiB, what a decoder should take and an encoder should not exceed (RFC 8878, 3.1.1.1.2).
const WINDOW_LOG_MAX: u32 = 23;

/// Compression of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compression {
    /// gzip (RFC 1952), with any number of members.
    Gzip,
    /// Zstandard (RFC 8878), with any number of frames.
    Zstd,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        })
    }
}

/// Decompresses the input if its first bytes are those of a compressed file.
pub(crate) fn unpacked<'a>(
    mut reader: impl Read + 'a,
) -> io::Result<(Box<dyn Read + 'a>, Option<Compression>)> {
    let mut head = Vec::with_capacity(4);
    reader.by_ref().take(4).read_to_end(&mut head)?;
    let compression = if head.starts_with(&GZIP_MAGIC) {
        Some(Compression::Gzip)
    } else if head.starts_with(&ZSTD_MAGIC) {
        Some(Compression::Zstd)
    } else {
        None
    };
    let whole = io::Cursor::new(head).chain(reader);
    let unpacking: Box<dyn Read + 'a> = match compression {
        None => Box::new(whole),
        Some(Compression::Gzip) => {
            Box::new(MultiGzDecoder::new(BufReader::with_capacity(PACKED_BYTES, whole)))
        }
        Some(Compression::Zstd) => Box::new(Frames::new(BufReader::with_capacity(PACKED_BYTES, whole))?),
    };
    Ok((unpacking, compression))
}

/// The frames of a zstd file in sequence: `zstd` writes one, `cat` and `pzstd` produce several.
struct Frames<R> {
    packed: R,
    decoder: DCtx<'static>,
    in_frame: bool,
}

impl<R> Frames<R> {
    fn new(packed: R) -> io::Result<Self> {
        let mut decoder = DCtx::create();
        decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX)).map_err(failed)?;
        Ok(Frames { packed, decoder, in_frame: false })
    }
}

/// `libzstd` numbers errors downwards from 0.
fn failed(code: usize) -> io::Error {
    match code.wrapping_neg() == ZSTD_ErrorCode::ZSTD_error_frameParameter_windowTooLarge as usize {
        true => io::Error::new(io::ErrorKind::Unsupported, "needs a window of more than 8 MiB"),
        false => io::Error::new(io::ErrorKind::InvalidData, zstd_safe::get_error_name(code)),
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let packed = self.packed.fill_buf()?;
            let at_end = packed.is_empty();
            if at_end && !self.in_frame {
                return Ok(0);
            }
            let mut input = InBuffer::around(packed);
            let mut output = OutBuffer::around(&mut *buffer);
            let hint = self.decoder.decompress_stream(&mut output, &mut input).map_err(failed)?;
            let (taken, unpacked) = (input.pos(), output.pos());
            self.packed.consume(taken);
            self.in_frame = hint > 0;
            if unpacked > 0 {
                return Ok(unpacked);
            }
            if at_end && self.in_frame {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}
