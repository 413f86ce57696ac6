// SPDX-License-Identifier: MIT
//! What the TCP connections of a capture did: one pass over its packets, which are not kept.
//!
//! ```no_run
//! use ackwise_capture::{ReadOptions, Source};
//!
//! let diagnosis = ackwise_diagnose::diagnose([Source::file("trace.pcap")], &ReadOptions::default())?;
//! for connection in &diagnosis.connections {
//!     let [there, back] = &connection.halves;
//!     println!("{} bytes there, {} back", there.counts.sent.new_bytes, back.counts.sent.new_bytes);
//! }
//! # Ok::<(), ackwise_capture::CaptureError>(())
//! ```
//!
//! [`table`] finds the connection of a packet; [`flow`] works out once what the packet means, as a
//! [`step::Step`]; [`observers`] watch the steps. A connection has two halves: what one endpoint
//! sends, and what the other acknowledges.
//!
//! Input is untrusted: nothing panics, and memory is bounded for each connection.
#![forbid(unsafe_code)]

pub mod acks;
mod counts;
mod distance;
pub mod distribution;
mod flow;
mod half;
pub mod limits;
mod observers;
mod ranges;
mod rate;
mod recovery;
mod repeats;
mod report;
mod rtt;
mod sequence;
pub mod step;
mod table;
mod transit;
mod window;

pub use acks::Acking;
pub use counts::{AckCounts, ByCause, Counts, SentCounts};
pub use observers::{End, Half, Observer};
pub use rate::{Gaps, Rate};
pub use report::{Connection, Ending, Handshake, Options};
pub use rtt::Rtt;
pub use window::Window;

use ackwise_capture::{packets, CaptureError, CaptureNotes, Packet, ReadOptions, Source};
use serde::Serialize;
use std::ops::ControlFlow;

/// A capture, diagnosed.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnosis {
    #[serde(flatten)]
    pub notes: CaptureNotes,
    /// In the order of their first packets.
    pub connections: Vec<Connection>,
}

/// Diagnoses the connections of all sources together, in one pass.
///
/// # Errors
/// As [`ackwise_capture::packets`].
pub fn diagnose<'a>(
    sources: impl IntoIterator<Item = Source<'a>>,
    options: &ReadOptions<'_>,
) -> Result<Diagnosis, CaptureError> {
    let mut connections = Vec::new();
    let notes = diagnose_each(sources, options, |connection| connections.push(connection))?;
    connections.sort_unstable_by_key(|c: &Connection| c.index);
    Ok(Diagnosis { notes, connections })
}

/// The same without keeping connections: each goes to `over` when it is over, or at the end of the
/// capture.
///
/// # Errors
/// As [`diagnose`].
pub fn diagnose_each<'a>(
    sources: impl IntoIterator<Item = Source<'a>>,
    options: &ReadOptions<'_>,
    mut over: impl FnMut(Connection),
) -> Result<CaptureNotes, CaptureError> {
    let mut table = table::Table::default();
    let mut start_ns = None;
    let notes = packets(sources, options, |packet: &Packet| {
        let now_ns = packet.time_ns - *start_ns.get_or_insert(packet.time_ns);
        table.add(packet, now_ns, &mut over);
        ControlFlow::Continue(())
    })?;
    table.finish(&mut over);
    Ok(notes)
}
