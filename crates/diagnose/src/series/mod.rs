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
use crate::report::Ending;
use crate::table::{Arrival, Follow, Table};
use ackwise_capture::{CaptureError, ReadOptions, Source};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
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

type Pair = (SocketAddr, SocketAddr);

impl Wanted {
    fn pair(&self) -> Pair {
        let [a, b] = self.endpoints;
        (a.min(b), a.max(b))
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
    let mut places: HashMap<Pair, Vec<usize>> = HashMap::new();
    for (place, one) in wanted.iter().enumerate() {
        places.entry(one.pair()).or_default().push(place);
    }
    let recorders = wanted.iter().map(|w| Recorder::new(w.most_points)).collect();
    let mut table = Table::new(Plotting { wanted, recorders });
    arrivals(sources, options, |arrival| {
        let (src, dst) = (arrival.packet.segment.src, arrival.packet.segment.dst);
        // Connections do not depend on one another: the others need not be followed.
        if places.contains_key(&(src.min(dst), src.max(dst))) {
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

impl Plotting<'_> {
    fn add(&mut self, case: &mut Case, batch: &mut Batch) {
        batch.drain(|segment| {
            case.flow.add(segment, |step| {
                for &place in &case.places {
                    self.recorders[place].add(segment.sack_blocks(), step, self.wanted[place].of);
                }
            });
        });
    }
}

struct Case {
    flow: Box<Flow<()>>,
    /// In the list of wanted transfers.
    places: Vec<usize>,
}

impl Follow for Plotting<'_> {
    type Case = Case;

    fn begin(&mut self, first: &Arrival<'_>) -> Case {
        let (src, dst) = (first.packet.segment.src, first.packet.segment.dst);
        let pair = (src.min(dst), src.max(dst));
        let is_it = |w: &Wanted| w.start_ns == first.now_ns && w.pair() == pair;
        let places = (0..self.wanted.len()).filter(|&place| is_it(&self.wanted[place])).collect();
        Case { flow: Box::new(Flow::new(first)), places }
    }

    fn packets(&mut self, case: &mut Case, batch: &mut Batch) {
        self.add(case, batch);
    }

    fn over(&mut self, mut case: Case, mut batch: Batch, _ending: Ending) {
        self.add(&mut case, &mut batch);
    }
}
