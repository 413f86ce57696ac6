// SPDX-License-Identifier: MIT
//! What acknowledgement policies would have done on the arrivals of a capture, and what the best
//! schedule known afterwards would have cost.
#![forbid(unsafe_code)]

pub mod optimum;
mod random;
