// SPDX-License-Identifier: MIT
//! Inputs: files, standard input or any reader; decompressed, buffered, and with byte positions for
//! errors.

use crate::error::{CaptureError, CaptureErrorKind};
use crate::notes::Truncation;
use crate::stdin::Ahead;
use crate::unpack::{self, Compression};
use libc::O_NONBLOCK;
use std::cell::Cell;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, IsTerminal, Read};
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Progress of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read from all sources, compressed where they are.
    pub bytes_read: u64,
    /// Size of all sources; None where one is not a file.
    pub bytes_total: Option<u64>,
}

/// Fits into a processor's second-level cache together with the data being processed.
const READ_BYTES: usize = 256 << 10;

/// A source from which a capture can be read.
pub struct Source<'a> {
    name: String,
    origin: Origin<'a>,
}

enum Origin<'a> {
    File(PathBuf),
    Stdin,
    Reader(Box<dyn Read + 'a>),
}

impl<'a> Source<'a> {
    /// A file, opened when it is needed.
    ///
    /// The file must be a regular one: a FIFO would block forever, opening a device can have side
    /// effects, and reading some files of /proc consumes data that others wait for.
    pub fn file(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        Source { name: path.display().to_string(), origin: Origin::File(path.to_owned()) }
    }

    /// Standard input; a terminal is refused when reading starts.
    pub fn stdin() -> Self {
        Source { name: STDIN.to_owned(), origin: Origin::Stdin }
    }

    /// A source as named on command lines: `-` is standard input, anything else a file.
    pub fn named(word: impl AsRef<Path>) -> Self {
        match word.as_ref().as_os_str() == "-" {
            true => Source::stdin(),
            false => Source::file(word),
        }
    }

    /// Any reader; `name` represents it in errors.
    pub fn reader(reader: impl Read + 'a, name: &str) -> Self {
        Source { name: name.to_owned(), origin: Origin::Reader(Box::new(reader)) }
    }

    /// The name in errors and notes: path, "stdin" or the name of the reader.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A second source for the same input, if it can be opened more than once.
    pub(crate) fn again(&self) -> Option<Source<'a>> {
        match &self.origin {
            Origin::File(path) => Some(Source::file(path)),
            Origin::Stdin | Origin::Reader(_) => None,
        }
    }

    /// Size in bytes, if it is a file.
    fn bytes(&self) -> Option<u64> {
        match &self.origin {
            Origin::File(path) => path.metadata().ok().map(|about| about.len()),
            Origin::Stdin | Origin::Reader(_) => None,
        }
    }

    fn open(self) -> Result<Box<dyn Read + 'a>, CaptureError> {
        match self.origin {
            Origin::File(path) => Ok(Box::new(open_file(&path, &self.name)?)),
            Origin::Reader(reader) => Ok(reader),
            Origin::Stdin => {
                let stdin = io::stdin();
                if stdin.is_terminal() {
                    return Err(refused(
                        &self.name,
                        CaptureErrorKind::NotACapture,
                        "a terminal".into(),
                        "pipe a capture into it: tcpdump -w - | ...",
                        None,
                    ));
                }
                Ok(Box::new(Ahead::new(stdin)))
            }
        }
    }
}

const STDIN: &str = "stdin";

/// A source as typed in a shell, for programs that read standard input as "-".
pub(crate) fn shown(name: &str) -> String {
    if name == STDIN {
        return "-".to_owned();
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+:@%,=".contains(c);
    match !name.is_empty() && !name.starts_with('-') && name.chars().all(plain) {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', r"'\''")),
    }
}

fn refused(
    name: &str,
    kind: CaptureErrorKind,
    found: String,
    remedy: &str,
    source: Option<io::Error>,
) -> CaptureError {
    CaptureError {
        kind,
        file: name.into(),
        offset: 0,
        unpacked: false,
        packet: None,
        found: found.into(),
        expected: "".into(),
        remedy: remedy.into(),
        source,
    }
}

fn open_file(path: &Path, name: &str) -> Result<File, CaptureError> {
    let check = |about: Metadata| match (about.is_file(), about.len()) {
        (true, 0) => {
            let remedy = "capture again, for example with tcpdump -w";
            Err(refused(name, CaptureErrorKind::Empty, "the file is empty".into(), remedy, None))
        }
        (true, _) => Ok(()),
        (false, _) => {
            let what = if about.is_dir() { "a directory" } else { "not a regular file" };
            let remedy = "give a pcap or pcapng file";
            Err(refused(name, CaptureErrorKind::NotACapture, what.into(), remedy, None))
        }
    };
    let failed = |e: io::Error| {
        let remedy = "check the path and its permissions";
        refused(name, CaptureErrorKind::Io, format!("cannot open: {e}"), remedy, Some(e))
    };
    check(path.metadata().map_err(failed)?)?;
    // Whoever may write to the folder may replace the file before it is opened.
    let file = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path).map_err(failed)?;
    check(file.metadata().map_err(failed)?)?;
    Ok(file)
}

/// Counts the bytes read, and asks the caller whether to continue.
pub(crate) struct Watch<'w> {
    call: Option<&'w (dyn Fn(Progress) -> ControlFlow<()> + Sync)>,
    read_bytes: Cell<u64>,
    total_bytes: Option<u64>,
    stopped: Cell<bool>,
}

impl<'w> Watch<'w> {
    pub fn new(
        sources: &[Source<'_>],
        call: Option<&'w (dyn Fn(Progress) -> ControlFlow<()> + Sync)>,
    ) -> Self {
        let total_bytes = sources.iter().map(Source::bytes).sum();
        Watch { call, read_bytes: Cell::new(0), total_bytes, stopped: Cell::new(false) }
    }

    pub fn read_bytes(&self) -> u64 {
        self.read_bytes.get()
    }

    pub fn set_read_bytes(&self, bytes: u64) {
        self.read_bytes.set(bytes);
    }

    fn goes_on(&self) -> bool {
        let progress = Progress { bytes_read: self.read_bytes.get(), bytes_total: self.total_bytes };
        self.stopped.set(self.stopped.get() || self.call.is_some_and(|call| call(progress).is_break()));
        !self.stopped.get()
    }
}

/// Bytes as stored on the medium.
pub(crate) struct Counted<'a> {
    reader: Box<dyn Read + 'a>,
    watch: &'a Watch<'a>,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.reader.read(buffer) {
                // A signal, or a silent pipe.
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {
                    if !self.watch.goes_on() {
                        return Err(io::Error::other("stopped"));
                    }
                }
                Ok(n) => {
                    self.watch.read_bytes.set(self.watch.read_bytes.get() + n as u64);
                    return Ok(n);
                }
                failed => return failed,
            }
        }
    }
}

/// Buffered input that knows its byte offset and never holds more than one block plus one read.
pub(crate) struct Input<'a> {
    reader: Box<dyn Read + 'a>,
    watch: &'a Watch<'a>,
    pub name: String,
    pub compression: Option<Compression>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset of `buffer[start]` in the unpacked input.
    pub offset: u64,
    /// Number of packets read so far.
    pub packets: u64,
    /// Whether the compressed data is truncated.
    pub broken_off: bool,
    pub truncated: Option<Truncation>,
}

impl<'a> Input<'a> {
    pub fn open(source: Source<'a>, watch: &'a Watch<'a>) -> Result<Self, CaptureError> {
        let name = source.name.clone();
        let mut input = Input {
            reader: Box::new(io::empty()),
            watch,
            name,
            compression: None,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            offset: 0,
            packets: 0,
            broken_off: false,
            truncated: None,
        };
        let counted = Counted { reader: source.open()?, watch };
        (input.reader, input.compression) = unpack::unpacked(counted).map_err(|e| input.failed(e))?;
        Ok(input)
    }

    /// Makes up to `wanted` bytes available; returns how many there are (fewer only at the end).
    #[inline]
    pub fn fill(&mut self, wanted: usize) -> Result<usize, CaptureError> {
        if self.end - self.start >= wanted {
            return Ok(wanted);
        }
        self.refill(wanted)
    }

    #[cold]
    fn refill(&mut self, wanted: usize) -> Result<usize, CaptureError> {
        let room = wanted.max(READ_BYTES);
        if self.buffer.len() < room {
            // A new buffer instead of a resized one: zeroed memory costs nothing until it is used.
            let mut larger = vec![0; room];
            larger[..self.end - self.start].copy_from_slice(&self.buffer[self.start..self.end]);
            self.buffer = larger;
        } else {
            self.buffer.copy_within(self.start..self.end, 0);
        }
        self.end -= self.start;
        self.start = 0;
        while self.end < wanted && !self.broken_off {
            if !self.watch.goes_on() {
                return Err(self.failed(io::Error::other("stopped")));
            }
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                Ok(n) => self.end += n,
                Err(e) if self.compression.is_some() && e.kind() == io::ErrorKind::UnexpectedEof => {
                    self.broken_off = true;
                }
                Err(e) => return Err(self.failed(e)),
            }
        }
        Ok(self.end.min(wanted))
    }

    /// The next `len` bytes, which are available.
    #[inline]
    pub fn peek(&self, len: usize) -> &[u8] {
        &self.buffer[self.start..self.start + len]
    }

    /// Steps over `len` available bytes; the returned slice stays valid until the next `fill`.
    #[inline]
    pub fn take(&mut self, len: usize) -> &[u8] {
        let at = self.start;
        self.start += len;
        self.offset += len as u64;
        &self.buffer[at..at + len]
    }

    /// Records that the input ends inside a record.
    pub fn cut(&mut self, present: usize, claimed: usize) {
        if present > 0 || self.broken_off {
            self.truncated = Some(Truncation {
                offset: self.offset,
                packet: self.packets + 1,
                present_bytes: present as u64,
                claimed_bytes: claimed as u64,
            });
        }
    }

    /// The error for a packet with an impossible length.
    pub fn damaged(&self, found: String, expected: &str) -> CaptureError {
        let keep = match self.packets {
            0 => "the file is damaged here".to_owned(),
            n => format!(
                "the file is damaged here; keep the packets before it: editcap -r {} whole.pcapng 1-{n}",
                shown(&self.name)
            ),
        };
        self.error(CaptureErrorKind::Corrupt, found, expected, &keep)
    }

    fn failed(&self, e: io::Error) -> CaptureError {
        if self.watch.stopped.get() {
            return self.error(CaptureErrorKind::Stopped, "stopped".into(), "", "");
        }
        let mut error = match self.compression {
            Some(_) if e.kind() == io::ErrorKind::Unsupported => self.error(
                CaptureErrorKind::Unsupported,
                e.to_string(),
                "",
                &format!("unpack it first: zstd -d --long=31 {}", shown(&self.name)),
            ),
            // Errors of the operating system are about the medium.
            Some(compression) if e.raw_os_error().is_none() => self.error(
                CaptureErrorKind::Corrupt,
                format!("damaged {compression} data: {e}"),
                "",
                "copy the file again",
            ),
            _ => self.error(
                CaptureErrorKind::Io,
                format!("cannot read: {e}"),
                "",
                "check the file and the medium it lies on",
            ),
        };
        error.source = Some(e);
        error
    }

    pub fn error(&self, kind: CaptureErrorKind, found: String, expected: &str, remedy: &str) -> CaptureError {
        CaptureError {
            kind,
            file: self.name.as_str().into(),
            offset: self.offset,
            unpacked: self.compression.is_some(),
            packet: (self.offset > 0).then_some(self.packets + 1),
            found: found.into(),
            expected: expected.into(),
            remedy: remedy.into(),
            source: None,
        }
    }
}
