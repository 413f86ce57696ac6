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

#[derive(Clone, Copy)]
struct Entry {
    time_ns: u64,
    /// Insertion count above, kind and index below: equal times keep their order.
    key: u64,
}

impl Entry {
    #[inline]
    fn before(&self, other: &Entry) -> bool {
        (self.time_ns, self.key) < (other.time_ns, other.key)
    }
}

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
        let what = (kind as u64) << INDEX_BITS | index as u64;
        let entry = Entry { time_ns, key: u64::from(self.inserted) << 32 | what };
        self.inserted = self.inserted.wrapping_add(1);
        let mut at = self.entries.len();
        self.entries.push(entry);
        while at > 0 {
            let parent = (at - 1) / 4;
            if !entry.before(&self.entries[parent]) {
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
        let len = self.entries.len();
        if len > 0 {
            let mut at = 0;
            loop {
                let first = 4 * at + 1;
                if first >= len {
                    break;
                }
                let end = (first + 4).min(len);
                let mut best = first;
                for child in first + 1..end {
                    if self.entries[child].before(&self.entries[best]) {
                        best = child;
                    }
                }
                if !self.entries[best].before(&last) {
                    break;
                }
                self.entries[at] = self.entries[best];
                at = best;
            }
            self.entries[at] = last;
        }
        let what = top.key as u32;
        let kind = KINDS[(what >> INDEX_BITS) as usize];
        Some((top.time_ns, kind, (what & ((1 << INDEX_BITS) - 1)) as usize))
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
