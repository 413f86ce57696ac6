// SPDX-License-Identifier: MIT
//! Threads and bounds of a diagnosis.

use std::num::NonZeroUsize;

/// What a diagnosis may use.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Threads, of which one reads.
    pub threads: NonZeroUsize,
    /// Connections that are followed at a time, about 10 kB each.
    pub open_most: usize,
    /// Connections that are reported, about 5 kB each: those that lost most time, then those with
    /// most bytes.
    pub kept_most: usize,
}

impl Default for Effort {
    fn default() -> Self {
        Effort { threads: NonZeroUsize::MIN, open_most: 10 << 10, kept_most: 10_000 }
    }
}
