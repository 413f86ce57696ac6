// SPDX-License-Identifier: MIT
//! Reads packet captures (pcap, pcapng) into TCP connections.
//!
//! ```no_run
//! let capture = ackwise_capture::read_file("trace.pcapng")?;
//! for connection in &capture.connections {
//!     let [a, b] = connection.endpoints;
//!     println!("{a} -> {b}: {} segments", connection.directions[0].data_segments);
//! }
//! # Ok::<(), ackwise_capture::CaptureError>(())
//! ```
//!
//! Input is untrusted: nothing panics, and [`read_each`] holds the packets of open connections only
//! (48 bytes for each packet, 8 for each SACK block, at most 300 for each connection), up to a limit
//! ([`ReadOptions::max_held_bytes`]). What is odd but bearable is counted in the result: packets
//! skipped per cause, time that steps back, a last packet cut short. Connections between the same
//! endpoints are kept apart by their SYNs, and by four quiet minutes after an end.
//! Checksums are not verified: offloads leave them wrong in captures of the sending host.
#![forbid(unsafe_code)]

mod connection;
mod error;
mod file;
mod packet;
pub mod write;

pub use connection::{Connection, Direction, Ending, Handshake, MssSource, Record, SackBlock, Timeline};
pub use error::{CaptureError, CaptureErrorKind};
pub use file::{Format, Truncation, MAX_BLOCK_BYTES};
pub use packet::{link, tcp_flag, SkipCause, TcpSegment};

use libc::O_NONBLOCK;
use serde::Serialize;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A capture, read.
#[derive(Clone, Debug, Serialize)]
pub struct Capture {
    /// Name of the input as the caller gave it.
    pub name: String,
    pub format: Format,
    /// Packets of any kind in the file, as far as it was read.
    pub packets: u64,
    /// Packets that belong to no connection, by cause.
    pub skipped: BTreeMap<SkipCause, u64>,
    /// Time of the first TCP packet, nanoseconds since 1970; all other times count from it.
    pub start_unix_ns: u64,
    /// From the first TCP packet to the last.
    pub duration_ns: u64,
    /// TCP packets with a time before that of the packet in front of them; they were given its
    /// time, so that time never runs backwards.
    pub backward_steps: u64,
    /// The longest such step.
    pub largest_backward_ns: u64,
    /// The file ends inside a packet; all before it is here.
    pub truncated: Option<Truncation>,
    /// Reading stopped at [`ReadOptions::max_packets`].
    pub stopped_at_limit: bool,
    /// In the order of their first packets; empty from [`read_each`], which hands them out.
    pub connections: Vec<Connection>,
}

/// Limits of one reading.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Stop after this many packets of any kind; none: read to the end.
    pub max_packets: Option<u64>,
    /// Refuse a capture whose open connections take more memory than this at one time.
    pub max_held_bytes: u64,
}

impl Default for ReadOptions {
    /// 1 GiB holds 22 million packets: a transfer of 20 GB with its ACKs, or 3 million connections
    /// open at one time.
    fn default() -> Self {
        ReadOptions { max_packets: None, max_held_bytes: 1 << 30 }
    }
}

/// Reads a capture file.
///
/// # Errors
/// It cannot be opened or read, is no capture, or is damaged before its end; the error says where.
pub fn read_file(path: impl AsRef<Path>) -> Result<Capture, CaptureError> {
    let (file, name) = open(path)?;
    read(file, &name, &ReadOptions::default())
}

/// Opens a capture for [`read_each`] and [`segments`]; returns it with its name in errors.
///
/// A capture is a regular file: a FIFO would wait for ever, opening a device can act on it, and
/// reading some files of /proc takes from the kernel what others wait for.
///
/// # Errors
/// It is no regular file, is empty as most of /proc is, or cannot be opened.
pub fn open(path: impl AsRef<Path>) -> Result<(File, String), CaptureError> {
    let path = path.as_ref();
    let name = path.display().to_string();
    let refuse = |kind, found: String, remedy: &str, source| CaptureError {
        kind,
        file: name.as_str().into(),
        offset: 0,
        packet: None,
        found: found.into(),
        expected: "".into(),
        remedy: remedy.into(),
        source,
    };
    let check = |about: Metadata| match (about.is_file(), about.len()) {
        (true, 0) => {
            let remedy = "capture again, for example with tcpdump -w";
            Err(refuse(CaptureErrorKind::NotACapture, "the file is empty".into(), remedy, None))
        }
        (true, _) => Ok(()),
        (false, _) => {
            let what = if about.is_dir() { "a directory" } else { "not a regular file" };
            let remedy = "give a pcap or pcapng file";
            Err(refuse(CaptureErrorKind::NotACapture, what.into(), remedy, None))
        }
    };
    let failed = |e: io::Error| {
        let remedy = "check the path and its permissions";
        refuse(CaptureErrorKind::Io, format!("cannot open: {e}"), remedy, Some(e))
    };
    check(path.metadata().map_err(failed)?)?;
    // Whoever may write to the folder may put something else there before it is opened.
    let file = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path).map_err(failed)?;
    check(file.metadata().map_err(failed)?)?;
    Ok((file, name))
}

/// Reads a capture packet by packet: calls `segment` for each TCP segment with the time at which
/// it was captured, nanoseconds since 1970. Other packets are skipped; `name` stands for the
/// capture in errors.
///
/// # Errors
/// As [`read_file`], and a file that ends inside a packet.
pub fn segments(
    reader: impl Read,
    name: &str,
    mut segment: impl FnMut(u64, &TcpSegment),
) -> Result<(), CaptureError> {
    let mut file = file::CaptureFile::open(reader, name)?;
    while let Some(packet) = file.next_packet()? {
        if let Ok((tcp, unix_ns)) = decode(&packet) {
            segment(unix_ns, &tcp);
        }
    }
    match file.truncated {
        Some(cut) => Err(CaptureError {
            kind: CaptureErrorKind::Corrupt,
            file: name.into(),
            offset: cut.offset,
            packet: Some(cut.packet),
            found: format!("the file ends inside a packet, after {} bytes of it", cut.present_bytes).into(),
            expected: format!("{}", cut.claimed_bytes).into(),
            remedy: "capture again, and end the capture before its file is read".into(),
            source: None,
        }),
        None => Ok(()),
    }
}

fn decode(packet: &file::RawPacket) -> Result<(TcpSegment, u64), SkipCause> {
    let link = packet.link.ok_or(SkipCause::UnknownLink)?;
    let unix_ns = packet.time_ns.ok_or(SkipCause::NoTime)?;
    Ok((packet::decode(link, packet.data, packet.wire_len)?, unix_ns))
}

/// Reads a capture from anywhere, in one pass; `name` stands for it in errors.
///
/// # Errors
/// As [`read_file`].
pub fn read(reader: impl Read, name: &str, options: &ReadOptions) -> Result<Capture, CaptureError> {
    let mut connections = Vec::new();
    let mut capture = read_each(reader, name, options, |index, connection| {
        connections.push((index, connection));
        ControlFlow::Continue(())
    })?;
    connections.sort_unstable_by_key(|c| c.0);
    capture.connections = connections.into_iter().map(|c| c.1).collect();
    Ok(capture)
}

/// The same without keeping connections: each goes to `over` when it is over, or at the end of the
/// capture, with its place in the order of first packets. [`ControlFlow::Break`] ends the reading.
///
/// # Errors
/// As [`read_file`].
pub fn read_each(
    reader: impl Read,
    name: &str,
    options: &ReadOptions,
    mut over: impl FnMut(usize, Connection) -> ControlFlow<()>,
) -> Result<Capture, CaptureError> {
    let stopped = Cell::new(false);
    let mut over = |index, connection| {
        if !stopped.get() {
            stopped.set(over(index, connection).is_break());
        }
    };
    let mut file = file::CaptureFile::open(reader, name)?;
    let mut tracker = connection::Tracker::default();
    let mut capture = Capture {
        name: name.to_owned(),
        format: file.format(),
        packets: 0,
        skipped: BTreeMap::new(),
        start_unix_ns: 0,
        duration_ns: 0,
        backward_steps: 0,
        largest_backward_ns: 0,
        truncated: None,
        stopped_at_limit: false,
        connections: Vec::new(),
    };
    let mut latest_ns = None;
    loop {
        if options.max_packets.is_some_and(|max| file.packets >= max) {
            capture.stopped_at_limit = true;
            break;
        }
        let Some(packet) = file.next_packet()? else { break };
        match decode(&packet) {
            Err(cause) => *capture.skipped.entry(cause).or_default() += 1,
            Ok((segment, unix_ns)) => {
                let latest = *latest_ns.get_or_insert_with(|| {
                    capture.start_unix_ns = unix_ns;
                    unix_ns
                });
                if unix_ns < latest {
                    capture.backward_steps += 1;
                    capture.largest_backward_ns = capture.largest_backward_ns.max(latest - unix_ns);
                }
                let now = latest.max(unix_ns);
                latest_ns = Some(now);
                capture.duration_ns = now - capture.start_unix_ns;
                tracker.add(&segment, capture.duration_ns, file.packets, &mut over);
                let (connections, bytes) = tracker.held();
                if bytes > options.max_held_bytes {
                    return Err(too_large(&file, connections, options.max_held_bytes));
                }
            }
        }
        if stopped.get() {
            break;
        }
    }
    capture.packets = file.packets;
    capture.truncated = file.truncated;
    for (index, connection) in tracker.finish() {
        if stopped.get() {
            break;
        }
        over(index, connection);
    }
    Ok(capture)
}

fn too_large<R: Read>(file: &file::CaptureFile<R>, connections: usize, max_held_bytes: u64) -> CaptureError {
    file.error(
        CaptureErrorKind::TooLarge,
        format!(
            "{connections} connections are open, with packets of more than {max_held_bytes} bytes in memory"
        ),
        "fewer at one time",
        "take a part of it: tcpdump -r in.pcap -w out.pcap 'host ADDRESS and tcp port PORT', or \
         editcap -r in.pcap out.pcap 1-N",
    )
}
