// SPDX-License-Identifier: MIT
//! The only source of randomness. Each user gets its own stream, identified by the run's seed and
//! the user's id, so that adding a flow does not shift another flow's numbers.

/// A deterministic stream of random numbers.
#[derive(Clone, Debug)]
pub struct Rng(fastrand::Rng);

impl Rng {
    /// The stream with the id `place` of the run with this seed.
    pub fn new(seed: u64, place: u64) -> Self {
        // A full-period mix, so that neighbouring ids do not give neighbouring states.
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

    /// Uniform on [0, max]; draws nothing if `max` is 0.
    pub fn up_to(&mut self, max: u64) -> u64 {
        if max == 0 {
            0
        } else {
            self.0.u64(0..=max)
        }
    }

    /// True with a probability of `ppm` per million; draws nothing if that is 0.
    pub fn chance_ppm(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.0.u32(0..1_000_000) < ppm
    }

    /// Exponential with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are from an independent integer calculation of the mix and of wyrand.
    #[test]
    fn the_draws_of_a_seed_and_a_place_stay_what_they_are() {
        let mut rng = Rng::new(7, 1 << 42 | 3);
        let units = [0x3fdf_c3ae_6eb7_ec94, 0x3fd7_6827_546d_2678, 0x3fea_96d1_cde0_6334];
        assert_eq!([(); 3].map(|()| rng.unit().to_bits()), units);
        assert_eq!(rng.up_to(0), 0, "draws nothing");
        assert_eq!([(); 3].map(|()| rng.up_to(1_000_000_000)), [517_822_679, 139_848_894, 240_774_881]);
        let wide = [4_023_565_867_622_059_684, 433_136_688_096_752_559, 6_661_401_866_169_328_016];
        assert_eq!([(); 3].map(|()| rng.up_to((1 << 63) + 5)), wide);
        let gaps = [0x4100_8196_6b4c_3bbc, 0x4111_a922_f54c_dac5];
        assert_eq!([(); 2].map(|()| rng.exponential(1e6).to_bits()), gaps);
    }
}
