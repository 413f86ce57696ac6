// SPDX-License-Identifier: MIT
//! Data for a plot of a transfer, packet by packet, in bounded memory: a second reading of a
//! capture, for chosen transfers only.
//!
//! | file | what it is |
//! |---|---|
//! | `recorder.rs` | puts each step of a transfer into its tracks |
//! | `point.rs` | packets that stand together in a plot, and how two such points become one |
//! | `track.rs` | points in order of time; when there are too many, neighbours become one |

mod point;
mod recorder;
mod track;

use crate::arrivals;
use crate::batch::{Arrival, Headers, Segment};
use crate::flow::Flow;
use crate::key::{Key, Seeds};
use crate::report::Ending;
use crate::table::{Arrive, Follow, Name, Table};
use ackwise_capture::{CaptureError, CaptureNotes, ReadOptions, Source};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::net::SocketAddr;

pub use point::{Acks, Data, Mark, Piece};
pub use recorder::Series;
pub use track::{Point, Track};

use recorder::Recorder;

/// A transfer as identified by the diagnosis of the same capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// The two endpoints of the connection, in either order.
    pub endpoints: [SocketAddr; 2],
    /// Time of the connection's first packet, nanoseconds since the start of the capture.
    pub start_ns: u64,
    /// Index of the endpoint that sends, as in [`crate::Connection::endpoints`].
    pub of: usize,
    /// Maximum number of points per track.
    pub most_points: usize,
}

impl Wanted {
    fn key(&self) -> Key {
        let [a, b] = &self.endpoints;
        Key::between(a, b).0
    }
}

/// The series of each wanted transfer, in order; empty where the capture has no such transfer. Also
/// the notes of the reading.
///
/// # Errors
/// The errors of [`ackwise_capture::packets`].
pub fn series<'a>(
    sources: impl IntoIterator<Item = Source<'a>>,
    options: &ReadOptions<'_>,
    wanted: &[Wanted],
) -> Result<(CaptureNotes, Vec<Series>), CaptureError> {
    let keys: HashSet<Key, Seeds> = wanted.iter().map(Wanted::key).collect();
    let recorders = wanted.iter().map(|w| Recorder::new(w.most_points)).collect();
    let mut chosen = Chosen { keys, table: Table::new(Plotting { wanted, recorders }) };
    let notes = arrivals(sources, options, &mut chosen)?;
    Ok((notes, chosen.table.finish().recorders.into_iter().map(Recorder::finish).collect()))
}

/// Follows the connections with wanted transfers. The others can be skipped, because connections
/// are independent.
struct Chosen<'w> {
    keys: HashSet<Key, Seeds>,
    table: Table<Plotting<'w>>,
}

impl Arrive for Chosen<'_> {
    fn arrive(&mut self, arrival: Arrival<'_>) {
        if self.keys.contains(&arrival.key) {
            let Arrival { headers, sacks, accecn, .. } = &arrival;
            let segment = Segment { headers, sacks, accecn: *accecn };
            self.table.hand_out(segment.time_ns);
            self.table.add(&arrival.key, [(arrival.ordinal, segment)]);
        }
    }
}

/// Records the wanted transfers of each connection.
struct Plotting<'w> {
    wanted: &'w [Wanted],
    recorders: Vec<Recorder>,
}

/// A connection with wanted transfers.
struct Case {
    flow: Flow<()>,
    /// Indices in the list of wanted transfers.
    places: Vec<usize>,
}

impl Follow for Plotting<'_> {
    type Case = Box<Case>;

    fn begin(&mut self, name: &Name, first: &Headers) -> Self::Case {
        let is_it = |w: &Wanted| w.start_ns == first.time_ns && w.key() == name.key;
        let places = (0..self.wanted.len()).filter(|&place| is_it(&self.wanted[place])).collect();
        Box::new(Case { flow: Flow::new(name, first), places })
    }

    fn packets<'p>(&mut self, case: &mut Self::Case, segments: impl Iterator<Item = Segment<'p>>) {
        let Case { flow, places } = &mut **case;
        let mut steps = Vec::with_capacity(1);
        for segment in segments {
            flow.add(&segment, &mut steps);
            for step in steps.drain(..) {
                for &place in &*places {
                    self.recorders[place].add(segment.sacks, &step, self.wanted[place].of);
                }
            }
        }
    }

    fn over(&mut self, _case: Self::Case, _ending: Ending) {}
}
