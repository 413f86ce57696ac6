// SPDX-License-Identifier: MIT
//! Distributions of times, in bounded memory.

use crate::result::Quantiles;
use hdrhistogram::Histogram;

/// Times in nanoseconds from 1 us to an hour, three significant digits.
pub struct Times {
    histogram: Histogram<u32>,
    sum: f64,
}

/// Recorded in units of this, so that the histogram stays small.
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
