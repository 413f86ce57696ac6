// SPDX-License-Identifier: MIT
//! How long packets of one endpoint waited in queues on their way to the capture point, by the
//! timestamps that they carry (RFC 7323): a packet that took longer than the fastest one waited.

/// Ticks of timestamp clocks in use: Linux (1 ms, or 1 us by route), BSD and Windows (1, 10, 100 ms),
/// older hosts (4, 500 ms).
const TICKS_NS: [f64; 6] = [1e3, 1e6, 4e6, 1e7, 1e8, 5e8];
/// Clocks are this exact, with the time that the first and the last packet waited.
const EXACT: f64 = 0.1;
/// So long a time shows which tick it is.
const LEARNT_NS: f64 = 1e8;

#[derive(Clone, Debug, Default)]
pub(crate) struct Transit {
    first: Option<(u32, u64)>,
    /// Which of [`TICKS_NS`] it is.
    tick: Option<usize>,
    /// Of the fastest packet, for each tick that it could be.
    fastest_ns: [f64; TICKS_NS.len()],
}

impl Transit {
    /// Time in queues, in steps of a tick; none while the clock is not known.
    pub fn came(&mut self, time_ns: u64, value: u32) -> Option<u64> {
        let (first, first_ns) = *self.first.get_or_insert((value, time_ns));
        let ticks = value.wrapping_sub(first) as i32;
        if ticks < 0 {
            return None; // sent again, or overtaken, and older than the first
        }
        let passed_ns = time_ns.saturating_sub(first_ns) as f64;
        let transit_ns = |tick_ns: f64| passed_ns - f64::from(ticks) * tick_ns;
        for (fastest_ns, tick_ns) in self.fastest_ns.iter_mut().zip(TICKS_NS) {
            *fastest_ns = fastest_ns.min(transit_ns(tick_ns));
        }
        if self.tick.is_none() && passed_ns >= LEARNT_NS && ticks > 0 {
            let near = |tick_ns: &f64| (passed_ns / f64::from(ticks) / tick_ns - 1.0).abs() < EXACT;
            self.tick = TICKS_NS.iter().position(near);
        }
        let tick = self.tick?;
        Some((transit_ns(TICKS_NS[tick]) - self.fastest_ns[tick] - TICKS_NS[tick]).max(0.0) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn what_exceeds_the_fastest_packet_is_a_queue() {
        let mut transit = Transit::default();
        for ms in 0..200u64 {
            let queued = transit.came((50 + ms) * MS, 7_000 + ms as u32);
            assert_eq!(queued.is_some(), ms >= 100);
            assert_eq!(queued.unwrap_or(0), 0);
        }
        assert_eq!(transit.came((50 + 200 + 30) * MS, 7_200), Some(29 * MS));
        assert_eq!(transit.came((50 + 240) * MS, 7_240), Some(0));
    }

    #[test]
    fn a_clock_of_no_known_tick_says_nothing() {
        let mut transit = Transit::default();
        for ms in 0..1000u64 {
            assert_eq!(transit.came(ms * MS, (ms / 2) as u32 / 3), None);
        }
    }

    #[test]
    fn clocks_wrap_around() {
        let mut transit = Transit::default();
        for ms in 0..500u64 {
            let queued = transit.came(ms * MS, (u32::MAX - 100).wrapping_add(ms as u32));
            assert!(queued.unwrap_or(0) == 0);
        }
    }
}
