// SPDX-License-Identifier: MIT
//! A receiver's estimate of the RTT, from the timestamps that data echoes and from the time that a
//! window of data takes (Linux 6.12, net/ipv4/tcp_input.c).

/// Linux: timestamps count milliseconds (TCP_TS_HZ).
const TICK_US: u32 = 1000;
const TICK_NS: u64 = TICK_US as u64 * 1000;
/// Maximum measurable value.
const TICKS_MAX: u32 = u32::MAX / 8 / TICK_US;

pub struct RoundTrip {
    /// The estimate in microseconds; 0: unknown.
    pub us: u32,
    /// The estimate from data, in eighths of a microsecond; 0: none yet.
    eighths: u32,
    /// The timestamp last echoed, in ticks.
    echoed: Option<u64>,
    /// End of the window being measured, and its start time.
    window: Option<(u64, u64)>,
}

impl RoundTrip {
    /// An estimate from the sending half's handshake (`tcp_ack_rtt_us` in `linux/`); 0: not
    /// measured.
    pub fn of_handshake(ns: u64) -> Self {
        RoundTrip { us: (ns / 1000) as u32, eighths: 0, echoed: None, window: None }
    }

    /// The estimate from data (rcv_rtt_est); 0: none yet.
    pub fn of_data_us(&self) -> u32 {
        self.eighths / 8
    }

    /// Updates the estimate from the time that a full segment echoes. tcp_rcv_rtt_measure_ts: only
    /// the first segment with this echo counts, if the clocks tick in between; tcp_rcv_rtt_update:
    /// a smaller value counts at once, a larger one by an eighth.
    #[inline]
    pub fn measure(&mut self, now: u64, echo_ns: u64) {
        let echo = echo_ns / TICK_NS;
        if self.echoed.replace(echo) == Some(echo) {
            return;
        }
        let ticks = (now / TICK_NS - echo).min(TICKS_MAX.into()) as u32;
        if ticks == 0 {
            return;
        }
        let sample_us = ticks * TICK_US;
        if !self.shorten(sample_us) {
            self.eighths += sample_us - self.eighths / 8;
            self.us = self.eighths / 8;
        }
    }

    /// Updates the estimate when data is in order up to `rcv_nxt`. tcp_rcv_rtt_measure: a window of
    /// data takes at least one RTT, so only a smaller value counts.
    #[inline]
    pub fn measure_window(&mut self, now: u64, rcv_nxt: u64, wnd_bytes: u64) {
        if let Some((end, since_ns)) = self.window {
            if rcv_nxt < end {
                return;
            }
            self.shorten(((now / 1000 - since_ns / 1000) as u32).clamp(1, TICKS_MAX * TICK_US));
        }
        self.window = Some((rcv_nxt + wnd_bytes, now));
    }

    /// Accepts the first sample, and each smaller one.
    fn shorten(&mut self, sample_us: u32) -> bool {
        let is_shorter = self.eighths == 0 || sample_us * 8 < self.eighths;
        if is_shorter {
            self.eighths = sample_us * 8;
            self.us = sample_us;
        }
        is_shorter
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;

    #[test]
    fn an_echo_is_measured_in_whole_milliseconds() {
        // tcp_rtt_tsopt_us: the difference of two clocks with a tick of one millisecond.
        let mut rtt = RoundTrip::of_handshake(21_659 * US);
        assert_eq!(rtt.us, 21_659);
        // Values of the lab's link `adsl`: 29.356 ms pass, and 30 ticks.
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
        rtt.measure_window(20_000 * US, 1_000, 60_000);
        rtt.measure_window(20_400 * US, 60_000, 60_000);
        assert_eq!(rtt.us, 1_000, "the window has not come yet");
        rtt.measure_window(20_500 * US, 61_000, 60_000);
        assert_eq!(rtt.us, 500, "a window took less than a tick");
        rtt.measure_window(29_000 * US, 121_000, 60_000);
        assert_eq!(rtt.us, 500, "a longer one does not count");
        rtt.measure(u64::MAX, 13_000 * US);
        assert!(rtt.us > 60_000_000, "an hour has no place");
    }
}
