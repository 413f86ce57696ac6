// SPDX-License-Identifier: MIT
//! Queueing delay of one endpoint's packets on their way to the capture point, from their
//! timestamps (RFC 7323): a packet that took longer than the fastest one was queued.

/// Tick lengths of timestamp clocks in use: Linux (1 ms, or 1 us by route), BSD and Windows (1, 10,
/// 100 ms), older hosts (4, 500 ms).
const TICKS_NS: [f64; 6] = [1e3, 1e6, 4e6, 1e7, 1e8, 5e8];
/// Time after which the tick length is known.
const LEARNT_NS: f64 = 1e8;
/// Share of the time so far by which packets may be faster than the first one: it waited in a queue.
/// With too long a tick they seem faster by 1.5 times the time, and more.
const FASTER: f64 = 0.5;

#[derive(Clone, Debug, Default)]
pub(crate) struct Transit {
    first: Option<(u32, u64)>,
    /// Offset of the fastest packet, for each possible tick length.
    fastest_ns: [f64; TICKS_NS.len()],
    is_learnt: bool,
}

impl Transit {
    /// Queueing delay in multiples of a tick; None while the clock is unknown.
    pub fn came(&mut self, time_ns: u64, value: u32) -> Option<u64> {
        let (first, first_ns) = *self.first.get_or_insert((value, time_ns));
        let ticks = value.wrapping_sub(first) as i32;
        if ticks < 0 {
            return None; // retransmitted or overtaken, and older than the first
        }
        let passed_ns = time_ns.saturating_sub(first_ns) as f64;
        let transit_ns = |tick_ns: f64| passed_ns - f64::from(ticks) * tick_ns;
        for (fastest_ns, tick_ns) in self.fastest_ns.iter_mut().zip(TICKS_NS) {
            *fastest_ns = fastest_ns.min(transit_ns(tick_ns));
        }
        self.is_learnt |= passed_ns >= LEARNT_NS && ticks > 0;
        if !self.is_learnt {
            return None;
        }
        let tick = self.fastest_ns.iter().rposition(|fastest_ns| -fastest_ns <= FASTER * passed_ns)?;
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
    fn a_queue_that_grows_from_the_start_is_no_slow_clock() {
        let mut transit = Transit::default();
        let mut queued = None;
        for ms in 0..1000u64 {
            queued = transit.came(2 * ms * MS, 7_000 + ms as u32);
        }
        assert_eq!(queued, Some(998 * MS));
    }

    #[test]
    fn a_first_packet_that_waited_makes_no_fast_clock() {
        // Packets leave a radio together, each 60 ms, and the first one waited for longest.
        let mut transit = Transit::default();
        for ms in 0..3000u64 {
            let at = (3 + ms).div_ceil(60) * 60;
            let queued = transit.came(at * MS, 7_000 + ms as u32);
            assert!(queued.unwrap_or(0) <= 60 * MS, "{ms}");
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
