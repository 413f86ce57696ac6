// SPDX-License-Identifier: MIT
//! The event queue: a 4-ary heap of (time, order of insertion).

/// What happens next: a kind and the index of the thing it happens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The head of a link's line reaches the far end.
    Link,
    /// A link's transmitter is free.
    Transmit,
    /// A packet held back by a link is delivered.
    Late,
    /// The head of a host's processor line is done.
    Host,
    /// An endpoint's earliest timer.
    Endpoint,
    /// A flow starts.
    Start,
    /// The next Poisson arrival of a group.
    Arrival,
    /// A point of the time series.
    Series,
}

const KINDS: [Kind; 8] = [
    Kind::Link,
    Kind::Transmit,
    Kind::Late,
    Kind::Host,
    Kind::Endpoint,
    Kind::Start,
    Kind::Arrival,
    Kind::Series,
];
const INDEX_BITS: u32 = 28;

/// Time above, insertion count below it, kind and index at the bottom: one comparison orders
/// entries by time and equal times by insertion.
type Entry = u128;

#[derive(Default)]
pub struct Heap {
    entries: Vec<Entry>,
    inserted: u32,
}

impl Heap {
    /// `index` below 2^28.
    #[inline]
    pub fn push(&mut self, time_ns: u64, kind: Kind, index: usize) {
        debug_assert!(index < 1 << INDEX_BITS);
        let what = u64::from(self.inserted) << 32 | (kind as u64) << INDEX_BITS | index as u64;
        let entry = u128::from(time_ns) << 64 | u128::from(what);
        self.inserted = self.inserted.wrapping_add(1);
        let mut at = self.entries.len();
        self.entries.push(entry);
        while at > 0 {
            let parent = (at - 1) / 4;
            if entry >= self.entries[parent] {
                break;
            }
            self.entries[at] = self.entries[parent];
            at = parent;
        }
        self.entries[at] = entry;
    }

    #[inline]
    pub fn pop(&mut self) -> Option<(u64, Kind, usize)> {
        let top = *self.entries.first()?;
        let last = self.entries.pop()?;
        if !self.entries.is_empty() {
            self.sift_down(last);
        }
        let what = top as u32;
        let kind = KINDS[(what >> INDEX_BITS) as usize];
        Some(((top >> 64) as u64, kind, (what & ((1 << INDEX_BITS) - 1)) as usize))
    }

    /// Puts `entry` where the root was. The children are compared without branches: which one is
    /// the earliest cannot be predicted.
    #[inline]
    fn sift_down(&mut self, entry: Entry) {
        let entries = self.entries.as_mut_slice();
        let mut at = 0;
        loop {
            let first = 4 * at + 1;
            let best = if let Some(&[a, b, c, d]) = entries.get(first..first + 4) {
                let (i, x) = if b < a { (1, b) } else { (0, a) };
                let (j, y) = if d < c { (3, d) } else { (2, c) };
                first + if y < x { j } else { i }
            } else {
                match (first..entries.len()).min_by_key(|&i| entries[i]) {
                    Some(best) => best,
                    None => break,
                }
            };
            if entries[best] >= entry {
                break;
            }
            entries[at] = entries[best];
            at = best;
        }
        entries[at] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn pops_by_time_then_by_insertion() {
        let mut heap = Heap::default();
        let mut rng = Rng::new(1, 0);
        let mut expected = Vec::new();
        for i in 0..5000 {
            let t = rng.up_to(700);
            heap.push(t, Kind::Link, i);
            expected.push((t, i));
        }
        expected.sort();
        let got: Vec<_> = std::iter::from_fn(|| heap.pop()).map(|(t, _, i)| (t, i)).collect();
        assert_eq!(got, expected);
    }
}
