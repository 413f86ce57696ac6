// SPDX-License-Identifier: MIT
//! COBALT, the AQM of CAKE (Linux 6.12 net/sched/sch_cake.c, `cobalt_should_drop`): CoDel for flows
//! that respond to drops, BLUE for those that do not.
//!
//! CoDel differs from RFC 8289: a single time, `drop_next`, serves for the first drop and all
//! others; and while a queue is short, `count` decreases step by step instead of being kept for a
//! restart. BLUE drops at random with a probability that each overflow raises and an empty queue
//! lowers, at most once per target time.
//!
//! Constants (`cake_set_rate`): target rtt / 20, but at least one and a half frames at the shaper's
//! rate, because a slow link would never be below less; the interval grows by the same amount and
//! is at least two targets. BLUE: up by 1/256, down by 1/4096.
//!
//! Deviation: square roots are exact; from 16 on, Linux uses one step of Newton's method.

use super::codel::INTERVAL_NS;
use crate::rng::Rng;

/// Ratio of CAKE's `rtt` to its target.
const RTT_PER_TARGET: u64 = 20;
const UP: u32 = 1 << 24;
const DOWN: u32 = 1 << 20;

pub struct Target {
    target_ns: u64,
    interval_ns: u64,
    frame_ns: u64,
}

impl Target {
    /// `frame_ns`: transmission time of the largest frame at the shaper's rate.
    pub fn new(rtt_ns: Option<u64>, frame_ns: u64) -> Self {
        let rtt_ns = rtt_ns.unwrap_or(INTERVAL_NS);
        let wanted_ns = rtt_ns / RTT_PER_TARGET;
        let target_ns = wanted_ns.max(frame_ns * 3 / 2);
        let interval_ns = (rtt_ns + target_ns - wanted_ns).max(2 * target_ns);
        Target { target_ns, interval_ns, frame_ns }
    }

    /// One frame behind three others does not count as a queue.
    fn is_exceeded(&self, sojourn_ns: u64) -> bool {
        sojourn_ns > self.target_ns && sojourn_ns > 4 * self.frame_ns
    }
}

/// State of one queue.
#[derive(Clone, Default)]
pub struct Cobalt {
    count: u32,
    /// 1 / sqrt(count) as last calculated. It is 0 at first, as in Linux, so that the first drop of
    /// a queue comes with its second packet above the target, not after an interval.
    rate: f64,
    drop_next_ns: u64,
    blue_ns: u64,
    /// BLUE's drop probability, in units of 2^-32.
    chance: u32,
    dropping: bool,
}

impl Cobalt {
    /// Whether to drop the packet at the head, which waited for `sojourn_ns`. CoDel marks it
    /// instead if `mark` succeeds; BLUE is for flows that do not respond.
    pub fn drops(
        &mut self,
        t: &Target,
        now: u64,
        sojourn_ns: u64,
        rng: &mut Rng,
        mark: impl FnOnce() -> bool,
    ) -> bool {
        let mut due_ns = self.drop_next_ns;
        let is_due = self.count > 0 && now >= due_ns;
        let exceeded = t.is_exceeded(sojourn_ns);
        if exceeded {
            if !self.dropping {
                self.drop_next_ns = self.after(t, now);
            }
            self.count = self.count.max(1);
        }
        self.dropping = exceeded;
        let mut drops = false;
        if is_due && exceeded {
            drops = !mark();
            self.count_to(self.count.saturating_add(1));
            self.drop_next_ns = self.after(t, self.drop_next_ns);
            due_ns = self.drop_next_ns;
        } else if is_due {
            while self.count > 0 && now >= due_ns {
                self.count_to(self.count - 1);
                self.drop_next_ns = self.after(t, self.drop_next_ns);
                due_ns = self.drop_next_ns;
            }
        }
        if self.chance > 0 {
            drops |= rng.bits() < self.chance;
        }
        if self.count == 0 {
            // Until then the queue counts as active.
            self.drop_next_ns = now + t.interval_ns;
        } else if now > due_ns && !drops {
            self.drop_next_ns = now;
        }
        drops
    }

    /// Records that a packet of this queue was dropped because of the limit.
    pub fn overflowed(&mut self, t: &Target, now: u64) {
        if now.saturating_sub(self.blue_ns) > t.target_ns {
            self.chance = self.chance.saturating_add(UP);
            self.blue_ns = now;
        }
        self.dropping = true;
        self.drop_next_ns = now;
        self.count = self.count.max(1);
    }

    /// Records that the queue was found empty. Returns whether its state must be kept.
    pub fn found_empty(&mut self, t: &Target, now: u64) -> bool {
        if self.chance > 0 && now.saturating_sub(self.blue_ns) > t.target_ns {
            self.chance = self.chance.saturating_sub(DOWN);
            self.blue_ns = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next_ns {
            self.count_to(self.count - 1);
            self.drop_next_ns = self.after(t, self.drop_next_ns);
        }
        self.chance > 0 || self.count > 0 || now < self.drop_next_ns
    }

    fn count_to(&mut self, count: u32) {
        self.count = count;
        self.rate = 1.0 / f64::from(count.max(1)).sqrt();
    }

    fn after(&self, t: &Target, time_ns: u64) -> u64 {
        time_ns + (t.interval_ns as f64 * self.rate) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_target_is_a_twentieth_of_the_rtt_or_one_and_a_half_frames() {
        let fast = Target::new(None, MS);
        assert_eq!((fast.target_ns, fast.interval_ns), (5 * MS, 100 * MS));
        // 1514 bytes at 800 kbit/s.
        let slow = Target::new(None, 15_140_000);
        assert_eq!((slow.target_ns, slow.interval_ns), (22_710_000, 117_710_000));
        // 1514 bytes at 64 kbit/s: twice the target exceeds the RTT plus the target's growth.
        let slowest = Target::new(None, 189_250_000);
        assert_eq!((slowest.target_ns, slowest.interval_ns), (283_875_000, 567_750_000));
        let near = Target::new(Some(10 * MS), 100_000);
        assert_eq!((near.target_ns, near.interval_ns), (MS / 2, 10 * MS));
    }

    /// Times of the drops among packets that leave every millisecond after the given sojourn time.
    fn drops(queue: &mut Cobalt, t: &Target, ms: std::ops::Range<u64>, sojourn_ns: u64) -> Vec<u64> {
        let mut rng = Rng::new(1, 1);
        ms.filter(|ms| queue.drops(t, ms * MS, sojourn_ns, &mut rng, || false)).collect()
    }

    #[test]
    fn a_standing_queue_is_cut_at_interval_over_the_root_of_count() {
        let t = Target::new(None, MS);
        let got = drops(&mut Cobalt::default(), &t, 1_000..3_000, 6 * MS);
        // The second packet above the target, then after 100 ms / sqrt(2), / sqrt(3) ...
        let mut due = 1_000.0_f64;
        let mut expected = vec![1_001];
        for n in 2..200 {
            due += 100.0 / f64::from(n).sqrt();
            expected.push(due.ceil() as u64);
        }
        expected.retain(|&at| at < 3_000);
        assert!(expected.len() > 80);
        assert_eq!(got, expected);
    }

    #[test]
    fn the_rate_goes_down_as_it_went_up() {
        let t = Target::new(None, MS);
        let mut queue = Cobalt::default();
        let high = drops(&mut queue, &t, 1_000..2_000, 6 * MS).len() as u32;
        assert_eq!(queue.count, high + 1);
        assert!(drops(&mut queue, &t, 2_000..2_100, MS).is_empty());
        assert!(queue.count < high && queue.count > 1, "{}", queue.count);
        assert!(drops(&mut queue, &t, 2_100..4_000, MS).is_empty());
        assert_eq!(queue.count, 0);
        // Above the target again: an interval passes before the first drop.
        assert_eq!(drops(&mut queue, &t, 4_000..4_200, 6 * MS)[0], 4_100);
    }

    #[test]
    fn four_frames_are_no_queue_on_a_slow_link() {
        let t = Target::new(None, 15 * MS);
        assert!(drops(&mut Cobalt::default(), &t, 1_000..9_000, 60 * MS).is_empty());
        assert!(!drops(&mut Cobalt::default(), &t, 1_000..9_000, 61 * MS).is_empty());
    }

    #[test]
    fn blue_goes_up_with_overflows_and_down_when_the_queue_is_empty() {
        let t = Target::new(None, MS);
        let mut queue = Cobalt::default();
        for ms in 0..60 {
            queue.overflowed(&t, (1_000 + ms) * MS);
        }
        // At most once in 5 ms: 0, 6, 12 ... 54.
        assert_eq!(queue.chance, 10 * UP);
        let mut rng = Rng::new(1, 1);
        let dropped = (0..20_000).filter(|_| queue.drops(&t, 1_060 * MS, 0, &mut rng, || false)).count();
        let share = dropped as f64 / 20_000.0;
        let wanted = 10.0 / 256.0;
        // Five standard deviations of a binomial.
        assert!((share - wanted).abs() < 5.0 * (wanted * (1.0 - wanted) / 20_000.0).sqrt(), "{share}");
        for n in 0..160 {
            assert_eq!(queue.found_empty(&t, (2_000 + 6 * n) * MS), n < 159, "{n}");
        }
        assert_eq!(queue.chance, 0);
    }
}
