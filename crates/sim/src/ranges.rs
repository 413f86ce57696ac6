// SPDX-License-Identifier: MIT
//! A set of byte ranges [start, end), kept sorted and merged.

#[derive(Clone, Debug, Default)]
pub struct Ranges {
    list: Vec<(u64, u64)>,
    bytes: u64,
}

impl Ranges {
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Bytes in all ranges.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        self.list.iter().copied()
    }

    /// End of the highest range, 0 if there is none.
    pub fn highest(&self) -> u64 {
        self.list.last().map_or(0, |r| r.1)
    }

    /// The range that holds `at`.
    pub fn around(&self, at: u64) -> Option<(u64, u64)> {
        let i = self.list.partition_point(|r| r.1 <= at);
        self.list.get(i).copied().filter(|r| r.0 <= at)
    }

    /// Adds [start, end) and calls `new` for every part that was not there before.
    pub fn insert(&mut self, start: u64, end: u64, mut new: impl FnMut(u64, u64)) {
        if start >= end {
            return;
        }
        let first = self.list.partition_point(|r| r.1 < start);
        let mut last = first;
        let (mut lo, mut hi, mut at) = (start, end, start);
        while let Some(&(s, e)) = self.list.get(last) {
            if s > end {
                break;
            }
            if at < s {
                new(at, s.min(end));
            }
            at = at.max(e);
            lo = lo.min(s);
            hi = hi.max(e);
            last += 1;
        }
        if at < end {
            new(at, end);
        }
        let joined: u64 = self.list[first..last].iter().map(|r| r.1 - r.0).sum();
        self.bytes += hi - lo - joined;
        match &mut self.list[first..last] {
            // Most go on with one range.
            [joined] => *joined = (lo, hi),
            _ => drop(self.list.splice(first..last, [(lo, hi)])),
        }
    }

    /// Drops everything below `seq`.
    pub fn cut_below(&mut self, seq: u64) {
        if self.list.is_empty() {
            return;
        }
        let gone = self.list.partition_point(|r| r.1 <= seq);
        self.bytes -= self.list.drain(..gone).map(|r| r.1 - r.0).sum::<u64>();
        if let Some(r) = self.list.first_mut() {
            let cut = seq.saturating_sub(r.0);
            r.0 += cut;
            self.bytes -= cut;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn agrees_with_a_set_of_single_bytes() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed, 1);
            let mut ranges = Ranges::default();
            let mut bytes = [false; 200];
            for _ in 0..60 {
                if rng.up_to(9) == 0 {
                    let cut = rng.up_to(60);
                    ranges.cut_below(cut);
                    bytes[..cut as usize].fill(false);
                    continue;
                }
                let start = rng.up_to(180);
                let end = start + rng.up_to(19);
                let mut fresh = Vec::new();
                ranges.insert(start, end, |a, b| fresh.extend(a..b));
                let wanted: Vec<u64> = (start..end).filter(|&b| !bytes[b as usize]).collect();
                assert_eq!(fresh, wanted);
                bytes[start as usize..end as usize].fill(true);
                let flat: Vec<u64> = ranges.iter().flat_map(|(a, b)| a..b).collect();
                let wanted: Vec<u64> = (0..200).filter(|&b| bytes[b as usize]).collect();
                assert_eq!((ranges.bytes(), &flat), (wanted.len() as u64, &wanted));
                assert!(ranges.list.windows(2).all(|w| w[0].1 < w[1].0), "merged");
            }
        }
    }
}
