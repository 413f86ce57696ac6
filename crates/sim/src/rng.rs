// SPDX-License-Identifier: MIT
//! The one door through which chance enters: each user gets a stream of its own, named by the
//! run's seed and the user's place, so that adding a flow does not shift another's numbers.

/// A deterministic stream of random numbers.
#[derive(Clone, Debug)]
pub struct Rng(fastrand::Rng);

impl Rng {
    /// `place` tells streams of one run apart.
    pub fn new(seed: u64, place: u64) -> Self {
        // A full-period mix, so that neighbouring places are not neighbouring states.
        let mut z = seed ^ place.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Rng(fastrand::Rng::with_seed(z ^ (z >> 31)))
    }

    pub fn bits(&mut self) -> u32 {
        self.0.u32(..)
    }

    /// Uniform on [0, 1).
    pub fn unit(&mut self) -> f64 {
        self.0.f64()
    }

    /// Uniform on [0, max].
    pub fn up_to(&mut self, max: u64) -> u64 {
        if max == 0 {
            0
        } else {
            self.0.u64(0..=max)
        }
    }

    /// True with a chance of `ppm` in a million; draws nothing when it cannot be true.
    pub fn chance_ppm(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.0.u32(0..1_000_000) < ppm
    }

    /// Exponential with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}
