// SPDX-License-Identifier: MIT
//! A few ranges of sequence numbers.

/// More are not kept: a hostile capture may have any number of holes.
const RANGES_MAX: usize = 1024;

pub type Ranges = ackwise_core::ranges::Ranges<RANGES_MAX>;
