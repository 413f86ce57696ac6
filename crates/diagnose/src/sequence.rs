// SPDX-License-Identifier: MIT
//! Sequence numbers that do not wrap around.

/// The 64-bit number whose low 32 bits are `raw`, next to `reference`. So a number shows the one
/// on the wire, and the first of a connection may be followed by lower ones.
pub fn near(reference: u64, raw: u32) -> u64 {
    let distance = raw.wrapping_sub(reference as u32) as i32;
    reference.wrapping_add_signed(distance.into())
}

/// The first number seen.
pub fn first(raw: u32) -> u64 {
    near(1 << 33, raw)
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
}
