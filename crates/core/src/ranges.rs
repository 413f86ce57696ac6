// SPDX-License-Identifier: MIT
//! A set of ranges [start, end) of sequence numbers, kept sorted and merged.

/// At most `MOST` ranges: beyond that, a range that touches no other is not stored. A driver that
/// generates its own packets needs no limit; a hostile capture may have any number of holes.
#[derive(Clone, Debug, Default)]
pub struct Ranges<const MOST: usize = { usize::MAX }> {
    list: Vec<(u64, u64)>,
    bytes: u64,
}

impl<const MOST: usize> Ranges<MOST> {
    /// Whether the set has no ranges.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Total length of all ranges, bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The ranges as (start, end), end not included, in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        self.list.iter().copied()
    }

    /// End of the highest range, 0 if there is none.
    pub fn highest(&self) -> u64 {
        self.list.last().map_or(0, |r| r.1)
    }

    /// The range that contains `at`.
    pub fn around(&self, at: u64) -> Option<(u64, u64)> {
        let i = self.list.partition_point(|r| r.1 <= at);
        self.list.get(i).copied().filter(|r| r.0 <= at)
    }

    /// Adds [start, end) and calls `new` for every part that was missing; returns the total length
    /// of these parts.
    pub fn insert(&mut self, start: u64, end: u64, mut new: impl FnMut(u64, u64)) -> u64 {
        if start >= end {
            return 0;
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
        if first == last && self.list.len() >= MOST {
            return 0;
        }
        if at < end {
            new(at, end);
        }
        let joined: u64 = self.list[first..last].iter().map(|r| r.1 - r.0).sum();
        let added = hi - lo - joined;
        self.bytes += added;
        match &mut self.list[first..last] {
            // Most ranges extend a single one.
            [joined] => *joined = (lo, hi),
            _ => drop(self.list.splice(first..last, [(lo, hi)])),
        }
        added
    }

    /// Removes [start, end); returns the number of bytes that were present.
    pub fn remove(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        let first = self.list.partition_point(|r| r.1 <= start);
        let last = self.list.partition_point(|r| r.0 < end);
        let Some(touched) = self.list.get(first..last).filter(|t| !t.is_empty()) else { return 0 };
        let removed: u64 = touched.iter().map(|r| r.1.min(end) - r.0.max(start)).sum();
        let left = (touched[0].0, start);
        let right = (end, touched[touched.len() - 1].1);
        let rest = [left, right].into_iter().filter(|r| r.0 < r.1);
        self.list.splice(first..last, rest);
        self.bytes -= removed;
        removed
    }

    /// Removes everything below `seq`; returns the number of bytes removed.
    pub fn cut_below(&mut self, seq: u64) -> u64 {
        if self.list.first().map_or(true, |lowest| lowest.0 >= seq) {
            return 0;
        }
        let before = self.bytes;
        let gone = self.list.partition_point(|r| r.1 <= seq);
        self.bytes -= self.list.drain(..gone).map(|r| r.1 - r.0).sum::<u64>();
        if let Some(r) = self.list.first_mut() {
            let cut = seq.saturating_sub(r.0);
            r.0 += cut;
            self.bytes -= cut;
        }
        before - self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random numbers below a given limit (SplitMix64).
    fn below(mut state: u64) -> impl FnMut(u64) -> u64 {
        move |most| {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            (mixed ^ (mixed >> 31)) % most
        }
    }

    #[test]
    fn agrees_with_a_set_of_single_bytes() {
        for seed in 0..300 {
            let mut below = below(seed);
            let mut ranges: Ranges = Ranges::default();
            let mut bytes = [false; 200];
            for _ in 0..60 {
                let start = below(180);
                let end = start + below(20);
                let held = |bytes: &[bool]| bytes.iter().filter(|&&b| b).count() as u64;
                match below(10) {
                    0 => {
                        let cut = below(60);
                        assert_eq!(ranges.cut_below(cut), held(&bytes[..cut as usize]));
                        bytes[..cut as usize].fill(false);
                    }
                    1..=3 => {
                        let part = &mut bytes[start as usize..end as usize];
                        assert_eq!(ranges.remove(start, end), held(part));
                        part.fill(false);
                    }
                    _ => {
                        let mut fresh = Vec::new();
                        let added = ranges.insert(start, end, |a, b| fresh.extend(a..b));
                        let wanted: Vec<u64> = (start..end).filter(|&b| !bytes[b as usize]).collect();
                        assert_eq!((added, &fresh), (wanted.len() as u64, &wanted));
                        bytes[start as usize..end as usize].fill(true);
                    }
                }
                let flat: Vec<u64> = ranges.iter().flat_map(|(a, b)| a..b).collect();
                let wanted: Vec<u64> = (0..200).filter(|&b| bytes[b as usize]).collect();
                assert_eq!((ranges.bytes(), &flat), (wanted.len() as u64, &wanted));
                assert!(ranges.list.windows(2).all(|w| w[0].1 < w[1].0), "merged");
                assert_eq!(ranges.highest(), wanted.last().map_or(0, |last| last + 1));
                let at = below(200);
                assert_eq!(ranges.around(at).is_some(), bytes[at as usize]);
            }
        }
    }

    #[test]
    fn a_full_set_takes_in_only_what_touches_a_range_of_it() {
        let mut ranges: Ranges<2> = Ranges::default();
        assert_eq!(ranges.insert(10, 20, |_, _| ()), 10);
        assert_eq!(ranges.insert(30, 40, |_, _| ()), 10);
        assert_eq!(ranges.insert(50, 60, |_, _| panic!("taken in")), 0);
        assert_eq!(ranges.insert(20, 25, |_, _| ()), 5);
        assert_eq!(ranges.iter().collect::<Vec<_>>(), [(10, 25), (30, 40)]);
    }
}
