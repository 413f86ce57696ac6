// SPDX-License-Identifier: MIT
//! Distribution of a value in a few hundred bytes.
//!
//! hdrhistogram allocates memory for the whole range at once. Here each of many thousand
//! connections has two dozen distributions, most of which span one or two orders of magnitude, so
//! buckets exist only between the lowest and the highest value.

use crate::buckets::Buckets;
use serde::ser::{Serialize, SerializeStruct, Serializer};

/// 16 buckets for each factor of two: a bucket is at most 1/16 wide.
const SUB_BITS: u32 = 4;

/// Counts, exact minimum and maximum, and quantiles of one value, in the unit of that value.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    samples: u64,
    sum: u64,
    min: u64,
    max: u64,
    counts: Buckets,
}

fn bucket_of(value: u64) -> usize {
    let least = (2 << SUB_BITS) - 1;
    let shift = (value | least).ilog2() - SUB_BITS;
    ((shift as usize) << SUB_BITS) + (value >> shift) as usize
}

/// The largest value of a bucket.
fn upper_of(bucket: usize) -> u64 {
    let sub = 1 << SUB_BITS;
    if bucket < 2 * sub {
        return bucket as u64;
    }
    let shift = (bucket >> SUB_BITS) - 1;
    let from = ((bucket - (shift << SUB_BITS)) as u64) << shift;
    from + ((1 << shift) - 1)
}

impl Distribution {
    /// Adds a sample.
    pub fn record(&mut self, value: u64) {
        if self.samples == 0 {
            self.min = value;
        }
        self.counts.add(bucket_of(value));
        self.samples += 1;
        self.sum = self.sum.saturating_add(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Number of samples.
    pub fn samples(&self) -> u64 {
        self.samples
    }
    /// Sum of the samples; stays at the largest number instead of wrapping.
    pub fn sum(&self) -> u64 {
        self.sum
    }
    /// The smallest sample; None without samples.
    pub fn min(&self) -> Option<u64> {
        (self.samples > 0).then_some(self.min)
    }
    /// The largest sample; None without samples.
    pub fn max(&self) -> Option<u64> {
        (self.samples > 0).then_some(self.max)
    }
    /// The mean; None without samples.
    pub fn mean(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.sum as f64 / self.samples as f64)
    }

    /// The value that a share `q` of the samples does not exceed; at most 1/16 too large.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let wanted = ((q * self.samples as f64).ceil() as u64).clamp(1, self.samples.max(1));
        let mut seen = 0;
        for (upper, count) in self.buckets() {
            seen += u64::from(count);
            if seen >= wanted {
                return Some(upper.clamp(self.min, self.max));
            }
        }
        self.max()
    }

    /// Largest value and count of each non-empty bucket.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.counts.filled().map(|(bucket, count)| (upper_of(bucket), count))
    }
}

impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (uppers, counts): (Vec<u64>, Vec<u32>) = self.buckets().unzip();
        let mut out = serializer.serialize_struct("Distribution", 9)?;
        out.serialize_field("samples", &self.samples)?;
        out.serialize_field("mean", &self.mean())?;
        out.serialize_field("min", &self.min())?;
        out.serialize_field("p50", &self.quantile(0.50))?;
        out.serialize_field("p95", &self.quantile(0.95))?;
        out.serialize_field("p99", &self.quantile(0.99))?;
        out.serialize_field("max", &self.max())?;
        out.serialize_field("bucket_upper", &uppers)?;
        out.serialize_field("bucket_count", &counts)?;
        out.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_and_buckets_are_narrow() {
        let edges = (0..64).flat_map(|n| [(1u64 << n) - 1, 1 << n, (1 << n) + 1]);
        for value in edges.chain(0..5000).chain([u64::MAX]) {
            let bucket = bucket_of(value);
            let lower = bucket.checked_sub(1).map_or(0, |b| upper_of(b) + 1);
            let upper = upper_of(bucket);
            assert!(lower <= value && value <= upper, "{value}: {lower} to {upper}");
            assert!(upper - lower <= value / 16, "{value}: {lower} to {upper}");
        }
    }

    #[test]
    fn quantiles_agree_with_sorted_values_in_any_order_of_recording() {
        let mut values: Vec<u64> = (0..2000u64).map(|n| n * n * 37 % 1_000_003).collect();
        let mut found = Distribution::default();
        values.iter().for_each(|&v| found.record(v));
        values.sort_unstable();
        for q in [0.0, 0.01, 0.5, 0.95, 1.0] {
            let exact = values[((q * 2000.0) as usize).clamp(1, 2000) - 1];
            let near = found.quantile(q).expect("there are samples");
            assert!(exact <= near && near <= exact + exact / 16, "{q}: {exact}, {near}");
        }
        assert_eq!((found.min(), found.max()), (Some(values[0]), Some(values[1999])));
        assert_eq!(found.buckets().map(|b| u64::from(b.1)).sum::<u64>(), found.samples());
        assert_eq!(Distribution::default().quantile(0.5), None);
    }
}
