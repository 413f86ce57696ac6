// SPDX-License-Identifier: MIT
//! Compressed captures: gzip and zstd, unpacked as they are read.
//!
//! Memory is bounded whatever the data claims: 32 KiB of history for gzip, at most 100 MiB for zstd
//! (larger windows are refused) in a buffer of up to twice that, and data is unpacked only as
//! needed.

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use serde::Serialize;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

const PACKED_BYTES: usize = 64 << 10;
const GZIP_MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

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
        Some(Compression::Zstd) => Box::new(Frames {
            packed: BufReader::with_capacity(PACKED_BYTES, whole),
            decoder: FrameDecoder::new(),
            in_frame: false,
            broken_off: false,
        }),
    };
    Ok((unpacking, compression))
}

/// The frames of a zstd file in sequence: `zstd` writes one, `cat` and `pzstd` produce several.
struct Frames<R> {
    packed: R,
    decoder: FrameDecoder,
    in_frame: bool,
    /// Whether the input ends inside a frame.
    broken_off: bool,
}

/// An empty last block and a checksum: the decoder keeps its output as history for further blocks,
/// and releases the rest only at the end of a frame.
const END_OF_FRAME: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

impl<R: BufRead> Frames<R> {
    /// Advances to the next frame with data; false at the end.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.packed.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.packed) {
                Ok(()) => {
                    self.in_frame = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    io::copy(&mut self.packed.by_ref().take(length.into()), &mut io::sink())?;
                }
                Err(e) => return Err(self.failed(e)),
            }
        }
        Ok(false)
    }

    fn failed(&mut self, e: FrameDecoderError) -> io::Error {
        match self.packed.fill_buf() {
            // The decoder needed more input than there is.
            Ok([]) => io::Error::new(io::ErrorKind::UnexpectedEof, e),
            Ok(_) => io::Error::new(io::ErrorKind::InvalidData, e),
            Err(e) => e,
        }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.in_frame && !self.begin()? {
                return Ok(0);
            }
            let n = self.decoder.read(buffer)?;
            if n > 0 || buffer.is_empty() {
                return Ok(n);
            }
            if self.broken_off {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                if let Err(e) = self.decoder.decode_blocks(&mut self.packed, one) {
                    let e = self.failed(e);
                    if e.kind() != io::ErrorKind::UnexpectedEof {
                        return Err(e);
                    }
                    self.broken_off = true;
                    // Decoding errors have been reported already.
                    self.decoder.decode_blocks(&END_OF_FRAME[..], BlockDecodingStrategy::All).ok();
                }
                continue;
            }
            self.in_frame = false;
            let stated = self.decoder.get_checksum_from_data();
            if stated.is_some() && stated != self.decoder.get_calculated_checksum() {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "wrong checksum"));
            }
        }
    }
}
