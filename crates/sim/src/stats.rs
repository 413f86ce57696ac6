// SPDX-License-Identifier: MIT
//! Distributions of times: in bounded memory, or exact if all values are available.

use crate::result::Quantiles;
use hdrhistogram::Histogram;

/// Times in nanoseconds from 1 us to an hour, three significant digits.
pub struct Times {
    histogram: Histogram<u32>,
    sum: f64,
}

/// Recording unit, which keeps the histogram small.
const UNIT_NS: u64 = 1_000;

impl Default for Times {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, 3_600_000_000, 3)
            .expect("bounds and digits are in the library's range");
        Times { histogram, sum: 0.0 }
    }
}

impl Times {
    pub fn record(&mut self, ns: u64) {
        self.histogram.saturating_record((ns + UNIT_NS / 2) / UNIT_NS);
        self.sum += ns as f64;
    }

    pub fn quantiles(&self) -> Quantiles {
        let h = &self.histogram;
        if h.is_empty() {
            return Quantiles::default();
        }
        let at = |q| (h.value_at_quantile(q) * UNIT_NS) as f64;
        // Coarser buckets for the plot: about 40 for every factor of ten.
        let mut bucket_upper: Vec<u64> = Vec::new();
        let mut bucket_count: Vec<u64> = Vec::new();
        for step in h.iter_log(1, 10f64.powf(0.025)) {
            let count = step.count_since_last_iteration();
            if count > 0 {
                bucket_upper.push((step.value_iterated_to() + 1) * UNIT_NS);
                bucket_count.push(count);
            }
        }
        Quantiles {
            samples: h.len(),
            mean: self.sum / h.len() as f64,
            p50: at(0.50),
            p95: at(0.95),
            p99: at(0.99),
            max: (h.max() * UNIT_NS) as f64,
            bucket_upper,
            bucket_count,
        }
    }
}

/// Buckets for each factor of ten.
const PER_DECADE: f64 = 40.0;

impl Quantiles {
    /// Exact quantiles in nanoseconds: quantile q is the smallest value that at least a share q of
    /// all values does not exceed. The buckets are those of `Times`.
    pub fn exact(mut values: Vec<u64>) -> Quantiles {
        values.sort_unstable();
        let Some(&max) = values.last() else { return Quantiles::default() };
        let count = values.len();
        let at = |share: f64| values[((share * count as f64).ceil() as usize).clamp(1, count) - 1] as f64;
        let mut found = Quantiles {
            samples: count as u64,
            mean: mean(&values),
            p50: at(0.50),
            p95: at(0.95),
            p99: at(0.99),
            max: max as f64,
            ..Quantiles::default()
        };
        let mut taken = 0;
        let mut step = 0.0f64;
        while let Some(&lowest) = values.get(taken) {
            let units = (lowest as f64 / UNIT_NS as f64).max(1.0);
            step = step.max((PER_DECADE * units.log10()).floor());
            let upper = (UNIT_NS as f64 * 10f64.powf((step + 1.0) / PER_DECADE)) as u64;
            let below = values.partition_point(|&value| value < upper);
            if below > taken {
                found.bucket_upper.push(upper);
                found.bucket_count.push((below - taken) as u64);
                taken = below;
            } else if upper == u64::MAX {
                break;
            }
            step += 1.0;
        }
        found
    }
}

/// The double nearest to the exact mean of one or more values.
fn mean(values: &[u64]) -> f64 {
    let sum: u128 = values.iter().map(|&value| u128::from(value)).sum();
    let count = values.len() as u128;
    // All digits that fit, plus a sticky digit that shows whether more follow.
    let shift = sum.leading_zeros().min(127);
    let quotient = (sum << shift) / count;
    let has_rest = (sum << shift) % count > 0;
    (quotient | u128::from(has_rest)) as f64 / (1u128 << shift) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_quantiles_are_values_and_buckets_hold_all_of_them() {
        let found = Quantiles::exact((1..=1000).rev().map(|v| v * 1000).collect());
        assert_eq!(
            [found.mean, found.p50, found.p95, found.p99, found.max],
            [500_500.0, 5e5, 9.5e5, 9.9e5, 1e6]
        );
        assert_eq!(found.bucket_count.iter().sum::<u64>(), 1000);
        assert!(found.bucket_upper.windows(2).all(|w| w[0] < w[1]));
        assert!(found.bucket_upper.last() > Some(&1_000_000));
        assert_eq!(Quantiles::exact(vec![0, 0, 7]).bucket_count, [3]);
        assert_eq!(Quantiles::exact(vec![u64::MAX; 2]).p50, u64::MAX as f64);
        assert_eq!(Quantiles::exact(vec![]).samples, 0);
    }

    #[test]
    fn means_are_the_nearest_number_where_sums_have_more_digits_than_a_double() {
        assert_eq!(mean(&[0, 0]), 0.0);
        assert_eq!(mean(&[1, 0, 0]), 1.0 / 3.0);
        assert_eq!(mean(&[(1 << 53) + 1]), 9_007_199_254_740_992.0);
        // Half way between two doubles, and just above.
        assert_eq!(mean(&[(1 << 53) + 1, (1 << 53) + 1, (1 << 53) + 2]), 9_007_199_254_740_994.0);
    }
}
