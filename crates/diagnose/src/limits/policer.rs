// SPDX-License-Identifier: MIT
//! Detects a token bucket that drops packets above its rate.
//!
//! When such a policer drops a packet, its bucket is empty: it has passed its burst, plus its rate
//! times the time. The losses therefore lie on a straight line of bytes over time. Random losses do
//! not, and losses of a full queue come with a longer RTT (compare Flach and others, SIGCOMM 2016,
//! 3).

/// Maximum number of losses kept; beyond it, every second one is dropped.
const KEPT: usize = 256;
/// Minimum number, and number from which on they hardly lie on a line by chance. Fewer have to lie
/// on a straighter one.
const LOSSES_MIN: usize = 6;
const LOSSES_ENOUGH: usize = 12;
/// Maximum distance from the line, relative to the bytes between two losses plus a packet. It is at
/// most 0.06 in transfers through a policer, except where the bucket is full now and then. Sawteeth
/// before a short queue, whose peaks are similar but not equal, have 0.13 and more.
const STRAIGHT: f64 = 0.1;

#[derive(Clone, Debug, Default)]
pub(super) struct Losses {
    points: Vec<(f64, f64)>,
    every: usize,
    skipped: usize,
}

impl Losses {
    /// Records the loss of a packet that started with this byte, sent at about this time.
    pub fn add(&mut self, sent_ns: u64, byte: u64) {
        if self.skipped < self.every {
            self.skipped += 1;
            return;
        }
        self.skipped = 0;
        self.points.push((sent_ns as f64 * 1e-9, byte as f64));
        if self.points.len() == KEPT {
            let mut n = 0;
            self.points.retain(|_| {
                n += 1;
                n % 2 == 1
            });
            self.every = 2 * self.every + 1;
        }
    }

    /// Rate in bytes per second, if the losses are those of a token bucket.
    pub fn rate(&self, mss_bytes: u32) -> Option<f64> {
        let n = self.points.len();
        if n < LOSSES_MIN {
            return None;
        }
        let mean = |of: fn(&(f64, f64)) -> f64| self.points.iter().map(of).sum::<f64>() / n as f64;
        let (mean_s, mean_bytes) = (mean(|p| p.0), mean(|p| p.1));
        let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            self.points.iter().map(|(s, bytes)| of(s - mean_s, bytes - mean_bytes)).sum()
        };
        let spread = sum(&|s, _| s * s);
        let rate = sum(&|s, bytes| s * bytes) / spread;
        if !(rate.is_finite() && rate > 0.0) {
            return None;
        }
        let off_bytes = (sum(&|s, bytes| (bytes - rate * s).powi(2)) / n as f64).sqrt();
        let between_bytes = (self.points[n - 1].1 - self.points[0].1) / (n - 1) as f64;
        let share = (n as f64 / LOSSES_ENOUGH as f64).min(1.0);
        let spare_bytes = if n < LOSSES_ENOUGH { 0.0 } else { f64::from(mss_bytes) };
        (off_bytes <= STRAIGHT * share * share * between_bytes + spare_bytes).then_some(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::below;

    /// Losses of a token bucket of 250 kB/s from a sender with a varying rate.
    fn policed(burst: f64, growth: f64) -> Losses {
        let rate = 250_000.0;
        let (mut losses, mut tokens, mut byte, mut speed) = (Losses::default(), burst, 0.0, 400_000.0);
        for ms in 0..20_000u64 {
            tokens = f64::min(tokens + rate * 1e-3, burst);
            let sent = speed * 1e-3;
            if sent > tokens {
                losses.add(ms * 1_000_000, byte as u64);
                speed *= 0.5;
            } else {
                tokens -= sent;
                byte += sent;
                speed += growth;
            }
        }
        losses
    }

    #[test]
    fn losses_of_a_token_bucket_are_found_with_its_rate() {
        // Few losses are enough if they lie on a line: the bucket is deep, and the sender slow.
        for (burst, growth, most) in [(30e3, 100.0, 256), (200e3, 50.0, 11), (500e3, 50.0, 8)] {
            let losses = policed(burst, growth);
            let found = losses.rate(1448).expect("a policer");
            assert!((found / 250_000.0 - 1.0).abs() < 0.05, "{found}");
            assert!(losses.points.len() <= most, "{}", losses.points.len());
        }
        assert_eq!(
            Losses { points: policed(500e3, 50.0).points[..5].to_vec(), ..Losses::default() }.rate(1448),
            None
        );
    }

    /// The window is halved at each loss, and the next loss comes at about the same window.
    #[test]
    fn sawteeth_in_front_of_a_short_queue_are_none_of_a_policer() {
        let mut below = below(7);
        let (mut losses, mut byte, mut window, mut rtts) = (Losses::default(), 0u64, 7, 0);
        for _ in 0..40 {
            let most = 12 + below(6);
            while window < most {
                byte += window * 1448;
                window += 1;
                rtts += 1;
            }
            losses.add(rtts * 80_000_000, byte);
            window = most / 2;
        }
        assert_eq!(losses.rate(1448), None);
    }

    #[test]
    fn losses_by_chance_are_none_of_a_policer() {
        let mut below = below(1);
        let (mut losses, mut byte, mut speed) = (Losses::default(), 0.0, 400_000.0);
        for ms in 0..60_000u64 {
            byte += speed * 1e-3;
            speed += 50.0;
            if below(65_536) < 40 {
                losses.add(ms * 1_000_000, byte as u64);
                speed *= 0.5;
            }
        }
        assert_eq!(losses.rate(1448), None);
    }
}
