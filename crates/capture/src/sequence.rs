// SPDX-License-Identifier: MIT
//! Sequence numbers that do not wrap around.

/// The 64-bit number nearest to `reference` whose low 32 bits are `raw`. It thus contains the
/// number on the wire, and the first number of a connection may be followed by lower ones.
#[inline]
pub fn near(reference: u64, raw: u32) -> u64 {
    let distance = raw.wrapping_sub(reference as u32) as i32;
    reference.wrapping_add_signed(distance.into())
}

/// The 64-bit number for the first `raw` number of a connection.
#[inline]
pub fn first(raw: u32) -> u64 {
    near(1 << 33, raw)
}

/// Sequence numbers of one direction relative to the first one, unwrapped next to the highest so
/// far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offsets {
    /// Both are 0 while nothing was seen.
    zero: u64,
    highest: u64,
}

impl Offsets {
    /// Sets the origin to `raw`, whatever was seen before.
    #[inline]
    pub fn start(&mut self, raw: u32) {
        self.zero = first(raw);
        self.highest = self.zero;
    }

    /// Offset of `raw`; 0 while nothing was seen.
    #[inline]
    pub fn of(&self, raw: u32) -> i64 {
        match self.highest {
            0 => 0,
            highest => near(highest, raw).wrapping_sub(self.zero) as i64,
        }
    }

    /// Offset of `raw`, which then counts as seen.
    #[inline]
    pub fn see(&mut self, raw: u32) -> i64 {
        match self.highest {
            0 => self.start(raw),
            highest => self.highest = highest.max(near(highest, raw)),
        }
        self.of(raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_continue_over_the_wrap_in_both_directions() {
        let mut at = first(u32::MAX - 10);
        for step in [5u64, 100, 2_000_000_000, 2_000_000_000, 1_000] {
            let next = near(at, (at + step) as u32);
            assert_eq!(next, at + step);
            assert_eq!(near(next, at as u32), at, "an older one");
            at = next;
        }
    }

    #[test]
    fn offsets_count_from_the_first_number_and_follow_the_highest() {
        let mut offsets = Offsets::default();
        assert_eq!(offsets.of(77), 0, "nothing was seen");
        assert_eq!(offsets.see(u32::MAX - 9), 0);
        assert_eq!(offsets.see(90), 100, "over the wrap");
        assert_eq!(offsets.see(u32::MAX - 19), -10, "an older one");
        assert_eq!(offsets.of(2_000_000_090), 2_000_000_100);
        assert_eq!(offsets.of(90), 100, "looking on moved nothing");
        offsets.start(50);
        assert_eq!((offsets.of(50), offsets.see(49)), (0, -1));
    }
}
