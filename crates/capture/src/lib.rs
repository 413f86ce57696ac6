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
//! Input is untrusted: nothing panics, and memory grows only with the number of TCP packets
//! (64 bytes for each packet, 16 for each SACK block, about 700 for each connection). What is
//! odd but bearable is counted in the result: packets skipped per cause, time that steps back,
//! a last packet cut short. Connections between the same endpoints are kept apart by their SYNs.
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

use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
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
    /// In the order of their first packets.
    pub connections: Vec<Connection>,
}

/// Limits of one reading.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Stop after this many packets of any kind; none: read to the end.
    pub max_packets: Option<u64>,
}

/// Reads a capture file.
///
/// # Errors
/// It cannot be opened or read, is no capture, or is damaged before its end; the error says where.
pub fn read_file(path: impl AsRef<Path>) -> Result<Capture, CaptureError> {
    let (file, name) = open(path.as_ref())?;
    read(file, &name, &ReadOptions::default())
}

fn open(path: &Path) -> Result<(File, String), CaptureError> {
    let name = path.display().to_string();
    match File::open(path) {
        Ok(file) => Ok((file, name)),
        Err(e) => Err(CaptureError {
            kind: CaptureErrorKind::Io,
            file: name.into(),
            offset: 0,
            packet: None,
            found: format!("cannot open: {e}").into(),
            expected: "".into(),
            remedy: "check the path and its permissions".into(),
            source: Some(e),
        }),
    }
}

/// Reads a capture file packet by packet: calls `segment` for each TCP segment with the time at
/// which it was captured, nanoseconds since 1970. Other packets are skipped.
///
/// # Errors
/// As [`read_file`], and a file that ends inside a packet.
pub fn read_segments(
    path: impl AsRef<Path>,
    segment: impl FnMut(u64, &TcpSegment),
) -> Result<(), CaptureError> {
    let (file, name) = open(path.as_ref())?;
    segments(file, &name, segment)
}

/// Reads from anywhere as [`read_segments`] does; `name` stands for the input in errors.
///
/// # Errors
/// As [`read_segments`].
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
                tracker.add(&segment, capture.duration_ns, file.packets);
            }
        }
    }
    capture.packets = file.packets;
    capture.truncated = file.truncated;
    capture.connections = tracker.finish();
    Ok(capture)
}
