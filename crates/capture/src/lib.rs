// SPDX-License-Identifier: MIT
//! Reads packet captures: pcap and pcapng, compressed or not, from files, sets of files and
//! streams.
//!
//! [`packets`] delivers each TCP packet, whatever link layer or tunnel it came through:
//!
//! ```no_run
//! use ackwise_capture::{packets, ReadOptions, Source};
//! use std::ops::ControlFlow;
//!
//! let sources = ["ring.pcap0", "ring.pcap1"].map(Source::file);
//! let notes = packets(sources, &ReadOptions::default(), |packet| {
//!     println!("{} ns: {} -> {}", packet.time_ns, packet.segment.src, packet.segment.dst);
//!     ControlFlow::Continue(())
//! })?;
//! println!("{} packets, {:?} of them no TCP", notes.packets, notes.skipped);
//! # Ok::<(), ackwise_capture::CaptureError>(())
//! ```
//!
//! [`read_file`], [`read`] and [`read_each`] group them into connections.
//!
//! Input is untrusted: nothing panics, [`packets`] holds one buffer for each open source, and
//! [`read_each`] the packets of open connections only (48 bytes for each packet, 8 for each SACK
//! block, at most 300 for each connection), up to a limit ([`ReadOptions::max_held_bytes`]).
//! Tolerable anomalies are counted in [`CaptureNotes`]: packets skipped per cause, time that steps
//! back, a truncated last packet. Connections between the same endpoints are kept apart by their
//! SYNs, and by four quiet minutes after an end. Checksums are not verified: offloads leave them
//! wrong in captures of the sending host.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod connection;
mod error;
mod ethertype;
mod file;
mod foreign;
mod fragment;
mod input;
pub mod life;
pub mod link;
mod notes;
mod order;
mod packet;
mod packets;
mod pcap;
mod pcapng;
mod raw;
mod reading;
mod segment;
pub mod sequence;
mod sort;
mod stdin;
mod too_big;
mod tunnel;
mod unpack;
mod wifi;
pub mod write;

pub use connection::{Connection, Direction, Handshake, MssSource, Record, SackBlock, Timeline};
pub use error::{CaptureError, CaptureErrorKind};
pub use input::{Progress, Source};
pub use life::Ending;
pub use notes::{CaptureNotes, FileNotes, Format, InterfaceNotes, Truncation};
pub use packets::{packets, packets_into};
pub use raw::MAX_BLOCK_BYTES;
pub use reading::{Packet, ReadOptions, Take};
pub use segment::{tcp_flag, AccEcn, Cut, Fragment, Protocol, SkipCause, TcpOptions, TcpSegment, Tunnel};
pub use sort::in_order;
pub use too_big::TooBig;
pub use unpack::Compression;

use serde::Serialize;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

/// The connections of one source.
#[derive(Clone, Debug, Serialize)]
pub struct Capture {
    /// Name of the source as the caller gave it.
    pub name: String,
    /// Where the file ends inside a packet; everything before it is included.
    pub truncated: Option<Truncation>,
    /// Everything else about the reading; its keys stand beside the others in the serialized form.
    #[serde(flatten)]
    pub notes: CaptureNotes,
    /// Connections in the order of their first packets; empty after [`read_each`], which delivers
    /// them.
    pub connections: Vec<Connection>,
}

/// Reads a capture file.
///
/// # Errors
/// The file cannot be opened or read, is no capture, or is damaged before its end; the error says
/// where.
pub fn read_file(path: impl AsRef<Path>) -> Result<Capture, CaptureError> {
    collect(Source::file(path), &ReadOptions::default())
}

/// Reads a capture from any reader, in one pass; `name` represents it in errors.
///
/// # Errors
/// The errors of [`read_file`].
pub fn read(reader: impl Read, name: &str, options: &ReadOptions<'_>) -> Result<Capture, CaptureError> {
    collect(Source::reader(reader, name), options)
}

fn collect(source: Source<'_>, options: &ReadOptions<'_>) -> Result<Capture, CaptureError> {
    let mut connections = Vec::new();
    let mut capture = read_each(source, options, |index, connection| {
        connections.push((index, connection));
        ControlFlow::Continue(())
    })?;
    connections.sort_unstable_by_key(|c| c.0);
    capture.connections = connections.into_iter().map(|c| c.1).collect();
    Ok(capture)
}

/// Like [`read`], without storing connections: each is passed to `over` when it is over, or at the
/// end of the capture, with its index in the order of first packets. [`ControlFlow::Break`] ends
/// the reading.
///
/// # Errors
/// The errors of [`read_file`], and connections that need too much memory.
pub fn read_each(
    source: Source<'_>,
    options: &ReadOptions<'_>,
    mut over: impl FnMut(usize, Connection) -> ControlFlow<()>,
) -> Result<Capture, CaptureError> {
    let name = source.name().to_owned();
    let mut tracker = connection::Tracker::default();
    let mut start_ns = None;
    let mut stopped = false;
    let mut too_many = None;
    let notes = packets([source], options, |packet| {
        let since_ns = packet.time_ns - *start_ns.get_or_insert(packet.time_ns);
        tracker.add(&packet.segment, since_ns, packet.number, |index, connection| {
            stopped = stopped || over(index, connection).is_break();
        });
        let (connections, bytes) = tracker.held();
        if bytes > options.max_held_bytes {
            too_many = Some(connections);
        }
        match stopped || too_many.is_some() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    if let Some(connections) = too_many {
        return Err(too_large(&name, &notes, connections, options.max_held_bytes));
    }
    for (index, connection) in tracker.finish() {
        if stopped || over(index, connection).is_break() {
            break;
        }
    }
    let truncated = notes.files.iter().find_map(|f| f.truncated.clone());
    Ok(Capture { name, truncated, notes, connections: Vec::new() })
}

fn too_large(name: &str, notes: &CaptureNotes, connections: usize, max_held_bytes: u64) -> CaptureError {
    let file = notes.files.first();
    CaptureError {
        kind: CaptureErrorKind::TooLarge,
        file: name.into(),
        offset: file.map_or(0, |f| f.bytes),
        unpacked: file.is_some_and(|f| f.compression.is_some()),
        packet: Some(notes.packets),
        found: format!(
            "{connections} connections are open, with packets of more than {max_held_bytes} bytes in memory"
        )
        .into(),
        expected: "fewer at one time".into(),
        remedy: "take a part of it: tcpdump -r in.pcap -w out.pcap 'host ADDRESS and tcp port PORT', or \
                 editcap -r in.pcap out.pcap 1-N"
            .into(),
        source: None,
    }
}

/// Calls `segment` for each TCP segment of a source with the time at which it was captured,
/// nanoseconds since 1970.
///
/// # Errors
/// The errors of [`packets`], and a source that ends inside a packet.
pub fn segments(
    source: Source<'_>,
    options: &ReadOptions<'_>,
    mut segment: impl FnMut(u64, &TcpSegment),
) -> Result<(), CaptureError> {
    let notes = packets([source], options, |packet| {
        segment(packet.time_ns, &packet.segment);
        ControlFlow::Continue(())
    })?;
    let Some((file, cut)) = notes.files.iter().find_map(|f| Some((f, f.truncated.as_ref()?))) else {
        return Ok(());
    };
    Err(CaptureError {
        kind: CaptureErrorKind::Corrupt,
        file: file.name.as_str().into(),
        offset: cut.offset,
        unpacked: file.compression.is_some(),
        packet: Some(cut.packet),
        found: format!("the file ends inside a packet, after {} bytes of it", cut.present_bytes).into(),
        expected: format!("{}", cut.claimed_bytes).into(),
        remedy: "capture again, and end the capture before its file is read".into(),
        source: None,
    })
}
