// SPDX-License-Identifier: MIT
//! Counts by bucket, with memory for only the buckets in use and a few beside them.

/// Buckets are allocated in groups of this size, for fewer allocations. The first group is inline
/// and usually suffices.
const TOGETHER: usize = 8;

#[derive(Clone, Debug, Default)]
pub(crate) struct Buckets {
    /// Bucket number of the first count.
    first: usize,
    few: [u32; TOGETHER],
    /// All counts, if they do not fit inline.
    many: Vec<u32>,
}

impl Buckets {
    fn counts(&self) -> &[u32] {
        if self.many.is_empty() {
            &self.few
        } else {
            &self.many
        }
    }

    #[inline]
    pub fn add(&mut self, bucket: usize) {
        let counts = if self.many.is_empty() { &mut self.few[..] } else { &mut self.many };
        match counts.get_mut(bucket.wrapping_sub(self.first)) {
            Some(count) => *count = count.saturating_add(1),
            None => self.widen(bucket),
        }
    }

    #[cold]
    fn widen(&mut self, bucket: usize) {
        let from = bucket / TOGETHER * TOGETHER;
        if self.counts() == [0; TOGETHER] {
            self.first = from;
            self.few[bucket - from] = 1;
            return;
        }
        if self.many.is_empty() {
            self.many.reserve_exact(4 * TOGETHER);
            self.many.extend(self.few);
        }
        if from < self.first {
            let missing = self.first - from;
            self.many.splice(..0, std::iter::repeat(0).take(missing));
            self.first = from;
        }
        let at = bucket - self.first;
        let len = self.many.len().max(at / TOGETHER * TOGETHER + TOGETHER);
        self.many.resize(len, 0);
        self.many[at] += 1;
    }

    /// Count of this bucket.
    pub fn of(&self, bucket: usize) -> u32 {
        self.counts().get(bucket.wrapping_sub(self.first)).copied().unwrap_or(0)
    }

    /// Non-empty buckets with their counts, the lowest first.
    pub fn filled(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        let filled = self.counts().iter().enumerate().filter(|(_, &count)| count > 0);
        filled.map(|(at, &count)| (self.first + at, count))
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
