// SPDX-License-Identifier: MIT
//! Random numbers for tests.

/// Random numbers below a given limit, the same for each seed (Knuth's MMIX generator).
pub fn below(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |n| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % n
    }
}
