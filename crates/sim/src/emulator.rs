// SPDX-License-Identifier: MIT
//! Timing of a link as the lab emulates it: HTB, then netem, with the timers of user-mode Linux in
//! virtual time.
//!
//! A transfer over a short queue can depend repeatedly on which of two packets is first by less
//! than a microsecond, because a departing packet brings back the ACK that triggers the next
//! arrival, one round trip later to the nanosecond (Floyd and Jacobson, "On traffic phase effects
//! in packet-switched gateways", 1992).

use crate::rng::Rng;

/// Resolution of the clock, and shortest time for which a timer can be set (TIMER_MULTIPLIER,
/// TIMER_MIN_DELTA).
const TICK_NS: u64 = 256;
const SHORTEST_NS: u64 = 500;

/// The first time at which the clock shows at least `time_ns`.
#[inline]
fn shown_ns(time_ns: u64) -> u64 {
    time_ns.div_ceil(TICK_NS).saturating_mul(TICK_NS)
}

/// Time at which a timer fires. It is set from the clock's value, which is up to a tick behind, and
/// set again if the clock does not show yet that it is due. The lag depends on the last timer of
/// any type that fired before.
#[inline]
fn fires_ns(due_ns: u64, rng: &mut Rng) -> u64 {
    let fires_ns = due_ns.saturating_add(rng.up_to(TICK_NS - 1));
    if fires_ns / TICK_NS * TICK_NS < due_ns {
        fires_ns.saturating_add(SHORTEST_NS)
    } else {
        fires_ns
    }
}

/// A time as `tc` passes it to the kernel: whole microseconds, in units of 64 ns.
fn of_tc_ns(time_us: u64) -> u64 {
    time_us.saturating_mul(125) / 8 * 64
}

pub struct Emulator {
    bytes_per_s: u64,
    delay_ns: u64,
    /// HTB's burst, the time of one byte: a packet may leave this much early.
    burst_ns: u64,
    /// Time at which HTB has neither a token nor a debt, so that the next packet may leave.
    due_ns: u64,
    /// Time at which netem sent the last packet.
    sent_ns: u64,
    rng: Rng,
}

impl Emulator {
    pub fn new(rate_bps: u64, delay_ns: u64, rng: Rng) -> Self {
        let bytes_per_s = (rate_bps / 8).max(1);
        let burst_ns = of_tc_ns(1_000_000 / bytes_per_s);
        Emulator { bytes_per_s, delay_ns: of_tc_ns(delay_ns / 1000), burst_ns, due_ns: 0, sent_ns: 0, rng }
    }

    pub fn transmit_time_ns(&self, bytes: u32) -> u64 {
        u64::from(bytes) * 1_000_000_000 / self.bytes_per_s
    }

    /// Time from which on any activity in the kernel lets the next packet leave, before its own
    /// timer does.
    pub fn ready_ns(&self) -> u64 {
        shown_ns(self.due_ns)
    }

    /// Passes a packet from HTB (htb_charge_class) to netem (netem_enqueue). Returns when the next
    /// may leave, and when this one reaches the far end.
    pub fn pass(&mut self, now: u64, busy_ns: u64) -> (u64, u64) {
        let clock_ns = now / TICK_NS * TICK_NS;
        let early_ns = clock_ns.saturating_sub(self.due_ns).min(self.burst_ns);
        self.due_ns = clock_ns.saturating_add(busy_ns.saturating_sub(early_ns));
        self.sent_ns = self.sent_ns.max(clock_ns.saturating_add(self.delay_ns)).saturating_add(busy_ns);
        (fires_ns(self.due_ns, &mut self.rng), fires_ns(self.sent_ns, &mut self.rng))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `tc -d class show` of iproute2 6.1 after `burst 1`, and `tc qdisc show` after `delay 8718.815us`.
    #[test]
    fn bursts_and_delays_are_those_that_tc_sets() {
        let of = |rate_bps| Emulator::new(rate_bps, 8_718_815, Rng::new(1, 1));
        for (rate_bps, ticks) in [(1_308_664, 0x5d), (7_003_672, 0xf), (8_376_264, 0), (20_859_160, 0)] {
            assert_eq!(of(rate_bps).burst_ns, 64 * ticks);
        }
        assert_eq!(of(8_000_000).delay_ns, 8_717_952);
    }

    #[test]
    fn a_timer_fires_when_the_clock_shows_that_it_is_due_and_not_much_later() {
        let mut rng = Rng::new(1, 1);
        for due_ns in (0..100_000).step_by(7) {
            let at_ns = fires_ns(due_ns, &mut rng);
            assert!(at_ns / TICK_NS * TICK_NS >= due_ns);
            assert!(at_ns < due_ns + TICK_NS + SHORTEST_NS);
        }
    }

    /// Back to back, and with a burst of one byte's time, each packet makes up for the delay of the
    /// last.
    #[test]
    fn packets_keep_the_rate_if_a_byte_takes_longer_than_a_timer_is_late() {
        for (rate_bps, is_late) in [(1_000_000, false), (8_376_264, true)] {
            let mut link = Emulator::new(rate_bps, 0, Rng::new(1, 1));
            let busy_ns = link.transmit_time_ns(1500);
            let mut now = 0;
            for _ in 0..1000 {
                (now, _) = link.pass(now, busy_ns);
            }
            let late_ns = now.saturating_sub(1000 * busy_ns);
            assert_eq!(late_ns > 100_000, is_late, "{late_ns}");
        }
    }

    #[test]
    fn time_ends_without_an_overflow() {
        let mut link = Emulator::new(1, u64::MAX, Rng::new(1, 1));
        let busy_ns = link.transmit_time_ns(65_535);
        for now in [0, u64::MAX - 1, u64::MAX] {
            let (free_ns, arrival_ns) = link.pass(now, busy_ns);
            assert!(free_ns >= now / TICK_NS * TICK_NS && arrival_ns >= now / TICK_NS * TICK_NS);
        }
        assert_eq!(link.pass(u64::MAX, busy_ns).1, u64::MAX);
    }

    #[test]
    fn packets_reach_the_far_end_in_order_a_transmission_apart() {
        let mut rng = Rng::new(2, 2);
        let mut link = Emulator::new(10_000_000, 1_000_000, Rng::new(1, 1));
        let (mut now, mut last_ns) = (0, 0);
        for _ in 0..1000 {
            let busy_ns = link.transmit_time_ns(40 + rng.up_to(1460) as u32);
            let (free_ns, arrival_ns) = link.pass(now, busy_ns);
            assert!(arrival_ns + TICK_NS + SHORTEST_NS > last_ns + busy_ns);
            assert!(arrival_ns >= now / TICK_NS * TICK_NS + 1_000_000 - 64 + busy_ns);
            (last_ns, now) = (arrival_ns, free_ns + rng.up_to(500_000));
        }
    }
}
