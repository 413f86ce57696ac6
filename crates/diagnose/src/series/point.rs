// SPDX-License-Identifier: MIT
//! Points of a plot: one packet each, or several consecutive ones.

use super::track::Point;
use crate::step::Step;
use serde::Serialize;

/// Time and packet numbers of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub from_ns: u64,
    pub to_ns: u64,
    pub file: u32,
    pub first: u64,
    pub last: u64,
    pub packets: u64,
}

impl Place {
    pub fn of(step: &Step) -> Self {
        let (time_ns, number) = (step.time_ns, step.number);
        Place { from_ns: time_ns, to_ns: time_ns, file: step.file, first: number, last: number, packets: 1 }
    }

    fn merge(&mut self, next: &Self) {
        self.to_ns = next.to_ns;
        self.packets += next.packets;
        // Numbers start anew in another file.
        if next.file == self.file {
            self.last = next.last;
        }
    }

    fn values(&self) -> [Option<i64>; 6] {
        let file = u64::from(self.file);
        [self.from_ns, self.to_ns, file, self.first, self.last, self.packets].map(value)
    }
}

fn value(value: u64) -> Option<i64> {
    i64::try_from(value).ok()
}

/// Minimum and maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range<T> {
    pub min: T,
    pub max: T,
}

impl<T: Copy + Ord> Range<T> {
    pub fn of(value: T) -> Self {
        Range { min: value, max: value }
    }

    fn merge(&mut self, next: &Self) {
        self.min = self.min.min(next.min);
        self.max = self.max.max(next.max);
    }
}

/// Data that passed for the first time. Sequence numbers are relative to the transfer's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Time and packet numbers.
    pub place: Place,
    /// Lowest first sequence number.
    pub start: i64,
    /// Sequence number after the highest byte.
    pub end: i64,
    /// Payload bytes.
    pub payload_bytes: u64,
    /// Bytes in flight as the data sender saw them.
    pub flight_bytes: Range<u64>,
    /// Advertised window.
    pub window_bytes: Range<u64>,
}

impl Point for Data {
    const COLUMNS: &'static [&'static str] = &[
        "from_ns",
        "to_ns",
        "file",
        "first",
        "last",
        "packets",
        "start",
        "end",
        "payload_bytes",
        "flight_min_bytes",
        "flight_max_bytes",
        "window_min_bytes",
        "window_max_bytes",
    ];

    fn merge(&mut self, next: &Self) {
        self.place.merge(&next.place);
        self.start = self.start.min(next.start);
        self.end = self.end.max(next.end);
        self.payload_bytes += next.payload_bytes;
        self.flight_bytes.merge(&next.flight_bytes);
        self.window_bytes.merge(&next.window_bytes);
    }

    fn values(&self) -> Vec<Option<i64>> {
        let (flight, window) = (self.flight_bytes, self.window_bytes);
        let mut values = self.place.values().to_vec();
        values.extend([Some(self.start), Some(self.end)]);
        values.extend([self.payload_bytes, flight.min, flight.max, window.min, window.max].map(value));
        values
    }
}

/// Number of ACKs of each type; a packet has one type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    pub pure: u64,
    pub piggybacked: u64,
    pub duplicate: u64,
    pub window_update: u64,
}

impl Kinds {
    fn merge(&mut self, next: &Self) {
        self.pure += next.pure;
        self.piggybacked += next.piggybacked;
        self.duplicate += next.duplicate;
        self.window_update += next.window_update;
    }
}

/// ACKs of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acks {
    /// Time and packet numbers.
    pub place: Place,
    /// Number of ACKs of each type.
    pub kinds: Kinds,
    /// Acknowledgment number.
    pub number: Range<i64>,
    /// Right edge of the window; None where its scale is unknown.
    pub edge: Option<Range<i64>>,
    /// Bytes that reached the receiver, according to acknowledgment number or SACK blocks.
    pub delivered_bytes: u64,
    /// RTT of the whole path, nanoseconds; None without a sample.
    pub rtt_ns: Option<Range<u64>>,
}

fn merge<T: Copy + Ord>(range: &mut Option<Range<T>>, next: &Option<Range<T>>) {
    match (range.as_mut(), next) {
        (Some(range), Some(next)) => range.merge(next),
        (None, Some(next)) => *range = Some(*next),
        (_, None) => {}
    }
}

impl Point for Acks {
    const COLUMNS: &'static [&'static str] = &[
        "from_ns",
        "to_ns",
        "file",
        "first",
        "last",
        "packets",
        "pure",
        "piggybacked",
        "duplicate",
        "window_update",
        "number_min",
        "number_max",
        "edge_min",
        "edge_max",
        "delivered_bytes",
        "rtt_min_ns",
        "rtt_max_ns",
    ];

    fn merge(&mut self, next: &Self) {
        self.place.merge(&next.place);
        self.kinds.merge(&next.kinds);
        self.number.merge(&next.number);
        merge(&mut self.edge, &next.edge);
        self.delivered_bytes += next.delivered_bytes;
        merge(&mut self.rtt_ns, &next.rtt_ns);
    }

    fn values(&self) -> Vec<Option<i64>> {
        let Kinds { pure, piggybacked, duplicate, window_update } = self.kinds;
        let mut values = self.place.values().to_vec();
        values.extend([pure, piggybacked, duplicate, window_update].map(value));
        values.extend([Some(self.number.min), Some(self.number.max)]);
        values.extend([self.edge.map(|edge| edge.min), self.edge.map(|edge| edge.max)]);
        values.push(value(self.delivered_bytes));
        values.extend(
            [self.rtt_ns.map(|rtt| rtt.min), self.rtt_ns.map(|rtt| rtt.max)].map(|ns| ns.and_then(value)),
        );
        values
    }
}

/// Events that a plot marks in addition to the lines of data and ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// Data sent again because duplicate ACKs or SACK blocks reported its loss.
    FastRetransmission,
    /// Data sent again by the retransmission timer.
    TimeoutRetransmission,
    /// A tail loss probe (RFC 8985, 7).
    TailLossProbe,
    /// Data sent again without a visible cause.
    UnclearRetransmission,
    /// Data that the network, or the capture, reordered.
    OutOfOrder,
    /// A keep-alive (RFC 9293, 3.8.4).
    KeepAlive,
    /// A window probe (RFC 9293, 3.8.6.1).
    WindowProbe,
    /// A block that the receiver holds above a hole.
    Sack,
    /// A block that the receiver got twice.
    DuplicateSack,
    /// A packet that a router marked as "congestion experienced".
    CongestionMark,
}

/// Range of sequence numbers that a mark refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Time and packet numbers.
    pub place: Place,
    /// Lowest sequence number.
    pub start: i64,
    /// Sequence number after the highest byte.
    pub end: i64,
    /// Total size of all.
    pub bytes: u64,
    /// Payload bytes that were not seen before.
    pub new_bytes: u64,
}

impl Point for Piece {
    const COLUMNS: &'static [&'static str] =
        &["from_ns", "to_ns", "file", "first", "last", "packets", "start", "end", "bytes", "new_bytes"];

    fn merge(&mut self, next: &Self) {
        self.place.merge(&next.place);
        self.start = self.start.min(next.start);
        self.end = self.end.max(next.end);
        self.bytes += next.bytes;
        self.new_bytes += next.new_bytes;
    }

    fn values(&self) -> Vec<Option<i64>> {
        let mut values = self.place.values().to_vec();
        values.extend([Some(self.start), Some(self.end), value(self.bytes), value(self.new_bytes)]);
        values
    }
}
