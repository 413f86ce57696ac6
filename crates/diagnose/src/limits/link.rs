// SPDX-License-Identifier: MIT
//! The payload rate of the path's slowest link, from packets that left it back to back.
//!
//! After that link, queued packets are spaced by their transmission time; before it, the ACKs of
//! these packets are. In a transfer that fills the link, most pairs agree. Pairs spaced by the
//! application, a window or the return path spread over all rates (Jacobson, 1988, on
//! self-clocking; Dovrolis and others, 2001, on packet dispersion).

use crate::buckets::Buckets;
use crate::step::{AckKind, Step};

/// Number of rates for each factor of two.
const SUB: f64 = 16.0;
/// Lowest rate, bytes per second: 1 kbit/s.
const RATE_MIN: f64 = 125.0;
const RATES: usize = 16 * 28;
/// Minimum share of all samples near the most frequent rate.
const AGREE_MIN: f64 = 0.2;
/// Minimum share of all samples at a busy link's rate. The ACKs of a small window keep their former
/// spacing, some of which may match a link's by chance.
const BUSY_SHARE_MIN: f64 = 0.5;
const SAMPLES_MIN: u32 = 20;
/// ACKs that waited this long on their way are as far apart as an ACK takes on the return path.
const ACK_QUEUE_NS: u64 = 2_000_000;

/// The slowest link of the path, payload rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Slowest {
    pub bytes_per_s: f64,
    /// Whether at least half of the packets came at this rate.
    pub is_of_most: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Link {
    /// Rates of data after the link, and of ACKs before it.
    data: Rates,
    acks: Rates,
    acked_ns: Option<u64>,
}

#[derive(Clone, Debug, Default)]
struct Rates {
    counts: Buckets,
    samples: u32,
}

impl Rates {
    fn add(&mut self, bytes: u64, ns: u64) {
        if bytes == 0 || ns == 0 {
            return;
        }
        let at = (bytes as f64 * 1e9 / ns as f64 / RATE_MIN).log2() * SUB;
        self.counts.add((at.max(0.0) as usize).min(RATES - 1));
        self.samples = self.samples.saturating_add(1);
    }

    /// Share of all samples with a higher rate.
    fn share_above(&self, bytes_per_s: f64) -> f64 {
        let from = ((bytes_per_s / RATE_MIN).log2() * SUB).max(0.0) as usize;
        let above: u32 = self.counts.filled().filter(|(at, _)| *at >= from).map(|(_, count)| count).sum();
        f64::from(above) / f64::from(self.samples.max(1))
    }

    /// Mean of the most frequent rate and its neighbours.
    fn most_frequent(&self) -> Option<Slowest> {
        if self.samples < SAMPLES_MIN {
            return None;
        }
        let around =
            |at: usize| (at.saturating_sub(1)..(at + 2).min(RATES)).map(|at| (at, self.counts.of(at)));
        let near = |at: usize| around(at).map(|(_, count)| count).sum::<u32>();
        let at = (0..RATES).max_by_key(|&at| near(at))?;
        let count = f64::from(near(at));
        let mean = around(at).map(|(at, count)| (at as f64 + 0.5) * f64::from(count)).sum::<f64>() / count;
        let share = count / f64::from(self.samples);
        let bytes_per_s = RATE_MIN * (mean / SUB).exp2();
        (share >= AGREE_MIN).then_some(Slowest { bytes_per_s, is_of_most: share >= BUSY_SHARE_MIN })
    }
}

impl Link {
    pub fn sent(&mut self, step: &Step) {
        let data = &step.data;
        // A packet that waited for the ACK of the one before it is as far behind it as an RTT.
        let follows = data.sender.nxt.saturating_sub(data.sender.una) >= u64::from(data.mss_bytes);
        if let (true, Some(gap_ns)) = (follows && data.new_bytes >= data.mss_bytes, data.since_data_ns) {
            self.data.add(data.new_bytes.into(), gap_ns);
        }
    }

    pub fn acked(&mut self, step: &Step) {
        let Some(ack) = step.ack.as_ref().filter(|ack| ack.kind == AckKind::Advancing) else { return };
        let waited = step.queued_ns.is_some_and(|ns| ns > ACK_QUEUE_NS);
        let is_followed = ack.flight_bytes >= u64::from(ack.mss_bytes);
        if let (Some(before_ns), true) = (self.acked_ns, is_followed && !waited) {
            self.acks.add(ack.acked_bytes, step.time_ns - before_ns);
        }
        self.acked_ns = Some(step.time_ns);
    }

    /// Share of packets that came faster than this rate, which their ACKs show anywhere on the
    /// path.
    pub fn share_above(&self, bytes_per_s: f64) -> f64 {
        self.acks.share_above(bytes_per_s)
    }

    /// The slowest link. `near_receiver`: data passes the capture point after the link.
    pub fn slowest(&self, near_receiver: bool) -> Option<Slowest> {
        if near_receiver {
            self.data.most_frequent()
        } else {
            self.acks.most_frequent()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slowest(gaps: &[(u64, u64)]) -> Slowest {
        let mut rates = Rates::default();
        gaps.iter().for_each(|&(bytes, tenths)| rates.add(bytes, tenths * 100_000));
        rates.most_frequent().expect("a rate")
    }

    #[test]
    fn most_acks_of_a_busy_link_are_as_far_apart_and_few_of_those_of_a_window() {
        let link: Vec<_> = (0..60).map(|n| if n % 3 == 0 { (2920, 20) } else { (2920, 157) }).collect();
        let found = slowest(&link);
        assert!((found.bytes_per_s / 186e3 - 1.0).abs() < 0.03 && found.is_of_most);
        // Three samples in each RTT of 40 ms: one at the mean rate, the others varying.
        let window: Vec<_> =
            (0..20).flat_map(|n| [(2920, 183 + n % 5 * 10), (2920, 157), (1580, 60 - n % 5 * 10)]).collect();
        let found = slowest(&window);
        assert!((found.bytes_per_s / 186e3 - 1.0).abs() < 0.03 && !found.is_of_most);
    }
}
