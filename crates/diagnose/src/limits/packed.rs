// SPDX-License-Identifier: MIT
//! Intervals compressed to a sixth of their memory, because each of many thousand transfers has
//! hundreds: which figures are not 0, and these in 7 bits per byte.

use super::interval::{Interval, Mean, WAITS};

const FIGURES: usize = WAITS + 27;
/// Bytes that tell which figures are not 0.
const FILLED: usize = FIGURES.div_ceil(8);

#[derive(Clone, Debug, Default)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    len: usize,
    /// End of the last interval, where most start.
    to_ns: u64,
}

impl Packed {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn push(&mut self, interval: &Interval) {
        let figures = figures(interval, self.to_ns);
        self.to_ns = interval.to_ns;
        self.len += 1;
        let most = FILLED + 10 * FIGURES;
        if self.bytes.capacity() - self.bytes.len() < most {
            self.bytes.reserve_exact(most + self.bytes.len() / 4);
        }
        let filled = figures.iter().rev().fold(0u64, |bits, &figure| bits << 1 | u64::from(figure != 0));
        self.bytes.extend(&filled.to_le_bytes()[..FILLED]);
        for mut figure in figures.into_iter().filter(|&figure| figure != 0) {
            while figure > 0x7f {
                self.bytes.push(figure as u8 | 0x80);
                figure >>= 7;
            }
            self.bytes.push(figure as u8);
        }
    }

    pub fn unpack(&self) -> Vec<Interval> {
        let mut bytes = self.bytes.iter().copied();
        let mut next = || bytes.next().unwrap_or(0);
        let mut to_ns = 0;
        let one = |_| {
            let filled = (0..FILLED).fold(0u64, |bits, n| bits | u64::from(next()) << (8 * n));
            let figures = std::array::from_fn(|bit| match filled >> bit & 1 {
                0 => 0,
                _ => figure(&mut next),
            });
            let interval = interval(figures, to_ns);
            to_ns = interval.to_ns;
            interval
        };
        (0..self.len).map(one).collect()
    }
}

fn figure(mut next: impl FnMut() -> u8) -> u64 {
    let mut figure = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = next();
        figure |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    figure
}

/// Figures that are small for most intervals: times count from the end of the previous one, and an
/// unset minimum is 0.
fn figures(interval: &Interval, before_ns: u64) -> [u64; FIGURES] {
    let i = interval;
    let mut all = [0; FIGURES];
    all[..WAITS].copy_from_slice(&i.waits_ns);
    all[WAITS..].copy_from_slice(&[
        i.from_ns.wrapping_sub(before_ns),
        i.to_ns.wrapping_sub(i.from_ns),
        i.new_bytes,
        i.acked_bytes,
        i.recoveries.into(),
        i.marks.into(),
        i.rtt_min_ns.wrapping_add(1),
        i.rtt_sum_ns,
        i.rtts.into(),
        i.flight_max_bytes,
        i.slack_min_bytes.wrapping_add(1),
        i.window_max_bytes,
        i.window_min_bytes.wrapping_add(1),
        i.acks.into(),
        i.packets.into(),
        i.queued_behind.sum_ns,
        i.queued_behind.samples.into(),
        i.queued_before.sum_ns,
        i.queued_before.samples.into(),
        i.data_before_ns.wrapping_add(1),
        i.data_behind_ns.wrapping_add(1),
        i.kept.sum_ns,
        i.kept.samples.into(),
        i.bursts.into(),
        i.own_bursts.into(),
        i.partial_packets.into(),
        i.passed_bytes_per_s,
    ]);
    all
}

fn interval(figures: [u64; FIGURES], before_ns: u64) -> Interval {
    let [w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, from, ns, new_bytes, acked_bytes, recoveries, marks, rtt_min, rtt_sum_ns, rtts, flight_max_bytes, slack_min, window_max_bytes, window_min, acks, packets, behind_ns, behind, before_queue_ns, before, data_before, data_behind, kept_ns, kept, bursts, own_bursts, partial_packets, passed_bytes_per_s] =
        figures;
    let from_ns = before_ns.wrapping_add(from);
    let mean = |sum_ns, samples| Mean { sum_ns, samples: samples as u32 };
    // All fields are named, so that the compiler reports a missing one.
    Interval {
        from_ns,
        to_ns: from_ns.wrapping_add(ns),
        waits_ns: [w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10],
        new_bytes,
        acked_bytes,
        recoveries: recoveries as u32,
        marks: marks as u32,
        rtt_min_ns: rtt_min.wrapping_sub(1),
        rtt_sum_ns,
        rtts: rtts as u32,
        // Refers to the whole transfer.
        near_rtt_ns: None,
        flight_max_bytes,
        slack_min_bytes: slack_min.wrapping_sub(1),
        window_max_bytes,
        window_min_bytes: window_min.wrapping_sub(1),
        acks: acks as u32,
        packets: packets as u32,
        queued_behind: mean(behind_ns, behind),
        queued_before: mean(before_queue_ns, before),
        data_before_ns: data_before.wrapping_sub(1),
        data_behind_ns: data_behind.wrapping_sub(1),
        kept: mean(kept_ns, kept),
        bursts: bursts as u32,
        own_bursts: own_bursts as u32,
        partial_packets: partial_packets as u32,
        passed_bytes_per_s,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_come_out_as_they_went_in() {
        let mut state = 7u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Values of every size, often the minimum and the maximum.
            match state >> 61 {
                0 => 0,
                1 => u64::MAX,
                _ => (state >> 2) >> (state >> 40 & 63),
            }
        };
        let (mut packed, mut all) = (Packed::default(), Vec::new());
        for _ in 0..2000 {
            let mut one = interval(std::array::from_fn(|_| random()), random());
            one.recoveries = u32::MAX - one.recoveries;
            packed.push(&one);
            all.push(one);
        }
        assert_eq!(packed.len(), all.len());
        assert_eq!(format!("{:?}", packed.unpack()), format!("{all:?}"));
    }
}
