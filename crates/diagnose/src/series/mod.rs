// SPDX-License-Identifier: MIT
//! What a plot of a transfer needs, packet by packet, in bounded memory: a second reading of a
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
use crate::batch::Batch;
use crate::flow::Flow;
use crate::key::{Key, Seeds};
use crate::report::Ending;
use crate::table::{Follow, Name, Table};
use ackwise_capture::{CaptureError, ReadOptions, Source};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::net::SocketAddr;

pub use point::{Acks, Data, Mark, Piece};
pub use recorder::Series;
pub use track::{Point, Track};

use recorder::Recorder;

/// A transfer, as the diagnosis of the same capture names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    pub endpoints: [SocketAddr; 2],
    /// First packet of the connection, since the start of the capture.
    pub start_ns: u64,
    /// The endpoint that sends.
    pub of: usize,
    /// Most points of a track.
    pub most_points: usize,
}

impl Wanted {
    fn key(&self) -> Key {
        let [a, b] = &self.endpoints;
        Key::between(a, b).0
    }
}

/// The series of each wanted transfer, in their order; empty where the capture has no such transfer.
///
/// # Errors
/// As [`ackwise_capture::packets`].
pub fn series<'a>(
    sources: impl IntoIterator<Item = Source<'a>>,
    options: &ReadOptions<'_>,
    wanted: &[Wanted],
) -> Result<Vec<Series>, CaptureError> {
    let keys: HashSet<Key, Seeds> = wanted.iter().map(Wanted::key).collect();
    let recorders = wanted.iter().map(|w| Recorder::new(w.most_points)).collect();
    let mut table = Table::new(Plotting { wanted, recorders });
    arrivals(sources, options, |arrival| {
        // Connections do not depend on one another: the others need not be followed.
        if keys.contains(&arrival.key) {
            table.add(arrival);
        }
    })?;
    Ok(table.finish().recorders.into_iter().map(Recorder::finish).collect())
}

/// Records the wanted transfers of each connection.
struct Plotting<'w> {
    wanted: &'w [Wanted],
    recorders: Vec<Recorder>,
}

/// A connection with wanted transfers.
struct Case {
    flow: Flow<()>,
    /// In the list of wanted transfers.
    places: Vec<usize>,
}

impl Plotting<'_> {
    fn case(&self, name: &Name, batch: &Batch) -> Case {
        let start_ns = batch.first().map(|first| first.time_ns);
        let is_it = |w: &Wanted| Some(w.start_ns) == start_ns && w.key() == name.key;
        let places = (0..self.wanted.len()).filter(|&place| is_it(&self.wanted[place])).collect();
        Case { flow: Flow::new(name, batch), places }
    }
}

impl Follow for Plotting<'_> {
    type Case = Box<Case>;

    fn packets(&mut self, name: &Name, case: &mut Option<Self::Case>, batch: &mut Batch) {
        let Case { flow, places } = &mut **case.get_or_insert_with(|| Box::new(self.case(name, batch)));
        flow.take(batch, |segment, step| {
            for &place in &*places {
                self.recorders[place].add(segment.sack_blocks(), step, self.wanted[place].of);
            }
        });
    }

    fn over(&mut self, name: &Name, mut case: Option<Self::Case>, mut batch: Batch, _ending: Ending) {
        self.packets(name, &mut case, &mut batch);
    }
}
