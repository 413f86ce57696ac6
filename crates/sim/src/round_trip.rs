// SPDX-License-Identifier: MIT
//! The round-trip time as a receiver knows it, from the timestamps that data echoes (Linux 6.12,
//! net/ipv4/tcp_input.c).

/// Linux: timestamps count milliseconds (TCP_TS_HZ).
const TICK_US: u32 = 1000;
const TICK_NS: u64 = TICK_US as u64 * 1000;
/// No longer one fits.
const MOST_TICKS: u32 = u32::MAX / 8 / TICK_US;

pub struct RoundTrip {
    /// 0: not known.
    pub us: u32,
    /// The same as data measured it, in eighths; 0: not yet.
    eighths: u32,
    /// What was echoed last, in ticks.
    echoed: Option<u64>,
}

impl RoundTrip {
    /// The sender's half of the connection measured it (`tcp_ack_rtt_us` in `linux/`); 0: it did not.
    pub fn of_handshake(ns: u64) -> Self {
        RoundTrip { us: (ns / 1000) as u32, eighths: 0, echoed: None }
    }

    /// As data measured it (rcv_rtt_est); 0: not yet.
    pub fn of_data_us(&self) -> u32 {
        self.eighths / 8
    }

    /// A full segment echoes a time. tcp_rcv_rtt_measure_ts: the first to echo it counts, if the clocks tick
    /// between; tcp_rcv_rtt_update: a shorter one counts at once, a longer one by an eighth.
    #[inline]
    pub fn measure(&mut self, now: u64, echo_ns: u64) {
        let echo = echo_ns / TICK_NS;
        if self.echoed.replace(echo) == Some(echo) {
            return;
        }
        let ticks = (now / TICK_NS - echo).min(MOST_TICKS.into()) as u32;
        if ticks == 0 {
            return;
        }
        let (sample_us, before) = (ticks * TICK_US, self.eighths);
        let is_shorter = before == 0 || sample_us * 8 < before;
        self.eighths = if is_shorter { sample_us * 8 } else { before - before / 8 + sample_us };
        self.us = self.eighths / 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;

    #[test]
    fn an_echo_is_measured_in_whole_milliseconds() {
        // tcp_rtt_tsopt_us: the difference of two clocks that tick once in a millisecond.
        let mut rtt = RoundTrip::of_handshake(21_659 * US);
        assert_eq!(rtt.us, 21_659);
        // As on the lab's link `adsl`: 29.356 ms pass, and 30 ticks.
        rtt.measure(59_316 * US, 29_960 * US);
        assert_eq!(rtt.us, 30_000);
        rtt.measure(59_999 * US, 30_000 * US);
        assert_eq!(rtt.us, 29_000, "a shorter one counts at once");
        rtt.measure(160_000 * US, 123_999 * US);
        assert_eq!(rtt.us, 30_000, "37 ms by an eighth");
    }

    #[test]
    fn one_echo_of_a_tick_counts_and_only_once_the_clocks_have_ticked() {
        let mut rtt = RoundTrip::of_handshake(300 * US);
        rtt.measure(10_700 * US, 10_400 * US);
        assert_eq!(rtt.us, 300, "by these clocks no time passed");
        rtt.measure(11_100 * US, 10_800 * US);
        assert_eq!(rtt.us, 300, "the tick was echoed before");
        rtt.measure(12_100 * US, 11_800 * US);
        assert_eq!(rtt.us, 1_000);
        rtt.measure(u64::MAX, 13_000 * US);
        assert!(rtt.us > 60_000_000, "an hour has no place");
    }
}
