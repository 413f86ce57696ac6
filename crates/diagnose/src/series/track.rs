// SPDX-License-Identifier: MIT
//! Points in order of time, bounded in number.

use serde::ser::{Serialize, SerializeMap, Serializer};

/// An item with a time that a plot shows.
pub trait Point: Clone {
    /// Names of its columns.
    const COLUMNS: &'static [&'static str];

    /// Merges the following point: adds sums, extends minimum and maximum.
    fn merge(&mut self, next: &Self);

    /// Values in the order of the columns; None where not measured.
    fn values(&self) -> Vec<Option<i64>>;
}

/// At most `most` points, each with the same number of packets: one, until there are too many. A
/// busy second therefore has points in proportion to its packets, however long the transfer is.
#[derive(Clone, Debug)]
pub struct Track<P> {
    points: Vec<P>,
    most: usize,
    /// Number of packets per point, and in the last one.
    each: usize,
    in_last: usize,
}

impl<P: Point> Track<P> {
    /// A track of at most `most` points, but at least two.
    pub fn new(most: usize) -> Self {
        Track { points: Vec::new(), most: most.max(2), each: 1, in_last: 0 }
    }

    /// Adds a point; merges neighbours where the track is full.
    pub fn push(&mut self, point: P) {
        match self.points.last_mut() {
            Some(last) if self.in_last < self.each => {
                last.merge(&point);
                self.in_last += 1;
                return;
            }
            _ => {}
        }
        if self.points.len() == self.most {
            self.halve();
            return self.push(point);
        }
        self.points.push(point);
        self.in_last = 1;
    }

    fn halve(&mut self) {
        let is_odd = self.points.len() % 2 == 1;
        self.points = std::mem::take(&mut self.points)
            .chunks(2)
            .filter_map(|pair| {
                let (first, rest) = pair.split_first()?;
                let mut merged = first.clone();
                rest.iter().for_each(|next| merged.merge(next));
                Some(merged)
            })
            .collect();
        self.in_last = if is_odd { self.each } else { 2 * self.each };
        self.each *= 2;
    }

    /// The points in order of time.
    pub fn points(&self) -> &[P] {
        &self.points
    }

    /// Number of packets per point; 1: nothing was merged.
    pub fn each(&self) -> usize {
        self.each
    }
}

/// Serialized as columns, which take less space than rows.
impl<P: Point> Serialize for Track<P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows: Vec<_> = self.points.iter().map(Point::values).collect();
        let mut out = serializer.serialize_map(Some(P::COLUMNS.len() + 1))?;
        out.serialize_entry("each", &self.each)?;
        for (column, name) in P::COLUMNS.iter().enumerate() {
            let values: Vec<_> = rows.iter().map(|row| row.get(column).copied().flatten()).collect();
            out.serialize_entry(name, &values)?;
        }
        out.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Span(i64, i64, i64);

    impl Point for Span {
        const COLUMNS: &'static [&'static str] = &["from", "to", "count"];

        fn merge(&mut self, next: &Self) {
            (self.1, self.2) = (next.1, self.2 + next.2);
        }

        fn values(&self) -> Vec<Option<i64>> {
            vec![Some(self.0), Some(self.1), Some(self.2)]
        }
    }

    #[test]
    fn every_packet_is_in_one_point_whatever_their_number() {
        for most in [2, 3, 5, 8] {
            for packets in 0..200 {
                let mut track = Track::new(most);
                (0..packets).for_each(|n| track.push(Span(n, n, 1)));
                let points = track.points();
                assert!(points.len() <= most, "{most} {packets}");
                assert_eq!(points.iter().map(|p| p.2).sum::<i64>(), packets);
                assert!(points.windows(2).all(|w| w[0].1 + 1 == w[1].0), "{most} {packets}: {points:?}");
                if packets as usize <= most {
                    assert_eq!((track.each(), points.len()), (1, packets as usize));
                } else {
                    assert!(2 * points.len() >= most, "{most} {packets}: {points:?}");
                }
            }
        }
    }
}
