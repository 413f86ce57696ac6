// SPDX-License-Identifier: MIT
//! Counts by bucket, with memory for only the buckets in use and a few beside them.

use std::iter::repeat;
use std::mem::take;

/// Buckets are allocated in groups of this size, for fewer allocations. The first group is inline
/// and usually suffices.
const TOGETHER: usize = 8;

/// Counts, and the bucket number of the first of them.
#[derive(Clone, Debug)]
pub(crate) enum Buckets {
    /// All in one group.
    Few {
        first: u32,
        counts: [u32; TOGETHER],
    },
    Many {
        first: u32,
        counts: Vec<u32>,
    },
}

// A connection has dozens.
const _: () = assert!(std::mem::size_of::<Buckets>() == 40);

impl Default for Buckets {
    fn default() -> Self {
        Buckets::Few { first: 0, counts: [0; TOGETHER] }
    }
}

impl Buckets {
    fn counts(&self) -> (usize, &[u32]) {
        match self {
            Buckets::Few { first, counts } => (*first as usize, counts),
            Buckets::Many { first, counts } => (*first as usize, counts),
        }
    }

    #[inline]
    pub fn add(&mut self, bucket: usize) {
        let (first, counts) = match self {
            Buckets::Few { first, counts } => (*first as usize, &mut counts[..]),
            Buckets::Many { first, counts } => (*first as usize, &mut counts[..]),
        };
        match counts.get_mut(bucket.wrapping_sub(first)) {
            Some(count) => *count = count.saturating_add(1),
            None => self.widen(bucket),
        }
    }

    #[cold]
    fn widen(&mut self, bucket: usize) {
        let from = bucket / TOGETHER * TOGETHER;
        let (first, mut counts) = match self {
            Buckets::Few { first, counts } if *counts == [0; TOGETHER] => {
                *first = from as u32;
                counts[bucket - from] = 1;
                return;
            }
            Buckets::Few { first, counts } => {
                let mut many = Vec::with_capacity(4 * TOGETHER);
                many.extend_from_slice(counts);
                (*first as usize, many)
            }
            Buckets::Many { first, counts } => (*first as usize, take(counts)),
        };
        counts.splice(..0, repeat(0).take(first.saturating_sub(from)));
        let first = first.min(from);
        let at = bucket - first;
        counts.resize(counts.len().max(at / TOGETHER * TOGETHER + TOGETHER), 0);
        counts[at] += 1;
        *self = Buckets::Many { first: first as u32, counts };
    }

    /// Count of this bucket.
    pub fn of(&self, bucket: usize) -> u32 {
        let (first, counts) = self.counts();
        counts.get(bucket.wrapping_sub(first)).copied().unwrap_or(0)
    }

    /// Non-empty buckets with their counts, the lowest first.
    pub fn filled(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        let (first, counts) = self.counts();
        let filled = counts.iter().enumerate().filter(|(_, &count)| count > 0);
        filled.map(move |(at, &count)| (first + at, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::below;
    use std::collections::BTreeMap;

    #[test]
    fn agrees_with_a_map_in_any_order() {
        let mut chance = below(7);
        let mut below = move |n| chance(n) as usize;
        for _ in 0..200 {
            let (mut buckets, mut map) = (Buckets::default(), BTreeMap::new());
            let (least, most) = (below(300), 1 + below(400) as u64);
            for _ in 0..below(60) {
                let bucket = least + below(most);
                buckets.add(bucket);
                *map.entry(bucket).or_insert(0) += 1;
            }
            assert!(buckets.filled().eq(map.iter().map(|(&bucket, &count)| (bucket, count))));
            assert!((0..800).all(|b| buckets.of(b) == map.get(&b).copied().unwrap_or(0)));
        }
    }
}
