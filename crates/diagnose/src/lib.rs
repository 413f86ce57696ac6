// SPDX-License-Identifier: MIT
//! Diagnosis of the TCP connections of a capture, in one pass over its packets, which are not kept.
//!
//! ```no_run
//! use ackwise_capture::{ReadOptions, Source};
//! use ackwise_diagnose::{diagnose, Effort};
//!
//! let sources = [Source::file("trace.pcap")];
//! let diagnosis = diagnose(sources, &ReadOptions::default(), &Effort::default())?;
//! for connection in &diagnosis.connections {
//!     let [there, back] = &connection.halves;
//!     println!("{} bytes there, {} back", there.counts.sent.new_bytes, back.counts.sent.new_bytes);
//! }
//! # Ok::<(), ackwise_capture::CaptureError>(())
//! ```
//!
//! `shelves` collects packets until those of the same few connections can be followed together,
//! in one thread or several; `table` finds the connection of a packet; `flow` interprets the
//! packet once, as a [`step::Step`]; `observers` watch the steps. A connection has two halves:
//! the data of one endpoint, with its acknowledgment by the other.
//!
//! Input is untrusted: nothing panics. Memory is bounded for each connection, and so is the number
//! of connections that are followed and reported ([`Effort`]).
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod ace;
pub mod acks;
mod batch;
pub mod both_ends;
mod buckets;
#[cfg(test)]
mod chance;
mod counts;
mod distance;
pub mod distribution;
mod ecn;
mod ecn_bytes;
mod effort;
mod flow;
mod half;
mod hops;
mod idents;
mod kept;
mod key;
mod lately;
pub mod limits;
mod observer;
mod observers;
mod ranges;
mod rate;
mod recovery;
mod repeats;
mod report;
mod rtt;
mod scale;
pub mod series;
mod shelves;
pub mod step;
mod table;
mod transit;
mod window;

pub use acks::Acking;
pub use counts::{AckCounts, ByCause, Counts, SentCounts};
pub use distance::AT_HOST_NS;
pub use effort::Effort;
pub use hops::Hops;
pub use kept::LeftOut;
pub use observer::{End, Observer};
pub use observers::{Half, Statistics};
pub use rate::{Gaps, Rate};
pub use report::{Connection, Ecn, Ending, Handshake, Options};
pub use rtt::Rtt;
pub use window::Window;

use ackwise_capture::{packets_into, CaptureError, CaptureNotes, Packet, ReadOptions, Source, Take, TooBig};
#[cfg(test)]
use ackwise_link as _;
use batch::{Arrival, Headers};
use kept::Worth;
use key::Key;
use observers::{All, Counted};
use serde::Serialize;
use shelves::Shelves;
use std::ops::ControlFlow;
use table::Arrive;

/// The diagnosis of a capture.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnosis<H = Half> {
    /// Everything about the reading that is not a connection; its keys stand beside `connections`
    /// in the serialized form.
    #[serde(flatten)]
    pub notes: CaptureNotes,
    /// Connections in the order of their first packets.
    pub connections: Vec<Box<Connection<H>>>,
    /// Connections beyond [`Effort::kept_most`].
    pub left_out: LeftOut,
    /// Number of connections that ended because [`Effort::open_most`] others were open and less
    /// idle; their later packets count as another connection.
    pub cut_connections: u64,
}

/// Diagnoses the connections of all sources together, in one pass and bounded memory. The result is
/// the same for any number of threads.
///
/// # Errors
/// The errors of [`ackwise_capture::packets`].
pub fn diagnose<'a>(
    sources: impl IntoIterator<Item = Source<'a>>,
    options: &ReadOptions<'_>,
    effort: &Effort,
) -> Result<Diagnosis, CaptureError> {
    let mut found = observe::<All>(sources, options, effort, |half| {
        let lost_ns = half.limits.lost_ns;
        ((lost_ns + LOST_NS / 2) / LOST_NS, half.counts.whole_bytes())
    })?;
    hear(&mut found);
    Ok(found)
}

/// Tells each direction what routers said about the size of its packets.
fn hear(found: &mut Diagnosis) {
    let Diagnosis { notes, connections, .. } = found;
    let holds_others = !notes.protocols.is_empty();
    for connection in connections {
        let is_after_start = |told: &&TooBig| told.time_ns >= notes.start_unix_ns + connection.start_ns;
        let ends = connection.endpoints;
        for (e, half) in connection.halves.iter_mut().enumerate() {
            let is_its = |told: &&TooBig| (told.from, told.to) == (ends[e], ends[1 - e]);
            for told in notes.too_big.iter().filter(is_its).filter(is_after_start) {
                half.limits.told(told);
            }
            if let Some(path_mtu) = &mut half.limits.path_mtu {
                path_mtu.holds_others = holds_others;
            }
        }
    }
}

/// Like [`diagnose`], without judgments: statistics only, in a third of the time.
///
/// # Errors
/// The errors of [`diagnose`].
pub fn statistics<'a>(
    sources: impl IntoIterator<Item = Source<'a>>,
    options: &ReadOptions<'_>,
    effort: &Effort,
) -> Result<Diagnosis<Statistics>, CaptureError> {
    observe::<Counted>(sources, options, effort, |half| (0, half.counts.whole_bytes()))
}

fn observe<'a, O: Observer + Send>(
    sources: impl IntoIterator<Item = Source<'a>>,
    options: &ReadOptions<'_>,
    effort: &Effort,
    worth: fn(&O::Report) -> Worth,
) -> Result<Diagnosis<O::Report>, CaptureError>
where
    O::Report: Send,
{
    let read = |shelves: &mut Shelves<'_, O>| arrivals(sources, options, shelves);
    let (notes, kept) = shelves::follow(effort, worth, read)?;
    let (connections, left_out, cut_connections) = kept.finish();
    Ok(Diagnosis { notes, connections, left_out, cut_connections })
}

/// Times lost are compared in steps of 0.1 s.
const LOST_NS: u64 = 100_000_000;

/// Assigns each packet its time and its position in the capture.
struct Arrivals<'t, T> {
    to: &'t mut T,
    start_ns: Option<u64>,
    ordinal: u64,
}

fn arrivals<'a>(
    sources: impl IntoIterator<Item = Source<'a>>,
    options: &ReadOptions<'_>,
    to: &mut impl Arrive,
) -> Result<CaptureNotes, CaptureError> {
    packets_into(sources, options, &mut Arrivals { to, start_ns: None, ordinal: 0 })
}

impl<T: Arrive> Take for Arrivals<'_, T> {
    #[inline(always)]
    fn take(&mut self, packet: &Packet) -> ControlFlow<()> {
        let now_ns = packet.time_ns - *self.start_ns.get_or_insert(packet.time_ns);
        let (key, from_upper) = Key::of(&packet.segment);
        let headers = Headers::of(packet, now_ns, from_upper);
        let options = &packet.segment.options;
        let (sacks, accecn) = (options.sack_blocks(), options.accecn.as_ref());
        self.to.arrive(Arrival { key, ordinal: self.ordinal, headers, sacks, accecn });
        self.ordinal += 1;
        ControlFlow::Continue(())
    }
}
