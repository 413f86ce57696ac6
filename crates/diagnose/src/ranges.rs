// SPDX-License-Identifier: MIT
//! A few ranges [start, end) of sequence numbers, sorted and apart from each other.

/// More are not kept: a hostile capture may have any number of holes.
const RANGES_MAX: usize = 1024;

#[derive(Clone, Debug, Default)]
pub struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Numbers in all ranges.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|r| r.1 - r.0).sum()
    }

    /// End of the highest range, 0 if there is none.
    pub fn highest(&self) -> u64 {
        self.0.last().map_or(0, |r| r.1)
    }

    /// Adds [start, end); returns how many of its numbers were not there.
    pub fn insert(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        let first = self.0.partition_point(|r| r.1 < start);
        let last = self.0.partition_point(|r| r.0 <= end);
        let Some(touched) = self.0.get(first..last).filter(|t| !t.is_empty()) else {
            if self.0.len() == RANGES_MAX {
                return 0;
            }
            self.0.insert(first, (start, end));
            return end - start;
        };
        let held: u64 = touched.iter().map(|r| r.1 - r.0).sum();
        let merged = (touched[0].0.min(start), touched[touched.len() - 1].1.max(end));
        self.0[first] = merged;
        self.0.drain(first + 1..last);
        merged.1 - merged.0 - held
    }

    /// Takes [start, end) out; returns how many of its numbers were there.
    pub fn remove(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        let first = self.0.partition_point(|r| r.1 <= start);
        let last = self.0.partition_point(|r| r.0 < end);
        let Some(touched) = self.0.get(first..last).filter(|t| !t.is_empty()) else { return 0 };
        let removed = touched.iter().map(|r| r.1.min(end) - r.0.max(start)).sum();
        let left = (touched[0].0, start);
        let right = (end, touched[touched.len() - 1].1);
        let rest = [left, right].into_iter().filter(|r| r.0 < r.1);
        self.0.splice(first..last, rest);
        removed
    }

    /// Drops everything below `seq`; returns how many numbers that were.
    pub fn cut_below(&mut self, seq: u64) -> u64 {
        match self.0.first() {
            Some(lowest) if lowest.0 < seq => self.remove(0, seq),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::below;

    #[test]
    fn agrees_with_a_set_of_single_numbers() {
        let mut below = below(7);
        for _ in 0..300 {
            let (mut ranges, mut numbers) = (Ranges::default(), [false; 200]);
            for _ in 0..60 {
                let start = below(180);
                let end = start + below(20);
                let part = &mut numbers[start as usize..end as usize];
                let held = part.iter().filter(|&&n| n).count() as u64;
                match below(3) {
                    0 => {
                        assert_eq!(ranges.remove(start, end), held);
                        part.fill(false);
                    }
                    _ => {
                        assert_eq!(ranges.insert(start, end), end - start - held);
                        part.fill(true);
                    }
                }
                assert_eq!(ranges.total(), numbers.iter().filter(|&&n| n).count() as u64);
                assert!(ranges.0.iter().all(|r| (r.0..r.1).all(|n| numbers[n as usize])));
                assert!(ranges.0.windows(2).all(|w| w[0].1 < w[1].0), "sorted and apart");
            }
        }
    }
}
