// SPDX-License-Identifier: MIT
//! A receiver's report of marked payload in Accurate ECN: the counters of the AccECN options (RFC
//! 9768, 3.2.3).

use crate::step::EcnBytes;
use ackwise_capture::AccEcn;

/// Initial values of the counters for ECT(0), CE and ECT(1) (3.2.1).
const BEGIN: [u32; 3] = [1, 0, 1];

/// State of the counters in the options of one endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EcnCounters {
    /// Not negotiated, or cleared by something on the path (3.2.3.2.4).
    Ignored,
    /// Negotiated, but not seen yet.
    Expected,
    Counts {
        last: [Option<u32>; 3],
    },
}

/// Without a captured handshake, each counter is followed from its first value on.
impl Default for EcnCounters {
    fn default() -> Self {
        EcnCounters::Counts { last: [None; 3] }
    }
}

impl EcnCounters {
    /// Bytes newly reported by the endpoint's next packet.
    pub fn heard(&mut self, option: &AccEcn) -> Option<EcnBytes> {
        let now = option.counters();
        let mut last = match *self {
            EcnCounters::Ignored => return None,
            EcnCounters::Expected if now[0] == Some(0) || now[2] == Some(0) => {
                *self = EcnCounters::Ignored;
                return None;
            }
            EcnCounters::Expected => BEGIN.map(Some),
            EcnCounters::Counts { last } => last,
        };
        let [ect0, ce, ect1] = [0, 1, 2].map(|n| now[n].map_or(0, |now| rise(&mut last[n], now)));
        *self = EcnCounters::Counts { last };
        Some(EcnBytes { ect0, ce, ect1 })
    }
}

/// Increase of a counter. It is reported at least once in 2^22 bytes (3.2.3.3), so half of its
/// range distinguishes a packet that was overtaken from one that is ahead.
fn rise(last: &mut Option<u32>, now: u32) -> u32 {
    let above = u32::BITS - AccEcn::BITS;
    let rise = (now.wrapping_sub(last.unwrap_or(now)) << above) as i32 >> above;
    if rise >= 0 {
        *last = Some(now);
    }
    rise.max(0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::below;

    const FULL: u64 = 1 << 24;

    fn option(order_1: bool, counters: &[u64]) -> AccEcn {
        let fields: Vec<_> =
            counters.iter().flat_map(|counter| counter.to_be_bytes()[5..].to_vec()).collect();
        AccEcn::read(&fields, order_1)
    }

    #[test]
    fn counters_are_followed_over_their_wraps_though_packets_overtake_and_leave_fields_out() {
        let mut below = below(1);
        for order_1 in [false, true] {
            let mut followed = EcnCounters::Expected;
            let (mut counters, mut found) = ([1, 0, 1], [0; 3]);
            let mut before = counters;
            for _ in 0..5_000 {
                let overtaken = std::mem::replace(&mut before, counters);
                counters = counters.map(|counter| counter + below(1 << 17));
                // RFC 9768, table 5: fields that are left out are the last ones.
                let [ect0, ce, ect1] = if below(4) == 0 { overtaken } else { counters };
                let fields = if order_1 { [ect1, ce, ect0] } else { [ect0, ce, ect1] };
                let heard = followed.heard(&option(order_1, &fields[..below(4) as usize]));
                let EcnBytes { ect0, ce, ect1 } = heard.expect("agreed on");
                [ect0, ce, ect1].into_iter().zip(&mut found).for_each(|(n, sum)| *sum += u64::from(n));
            }
            let [ect0, ce, ect1] = counters;
            let fields = if order_1 { [ect1, ce, ect0] } else { [ect0, ce, ect1] };
            let last = followed.heard(&option(order_1, &fields)).expect("agreed on");
            let last = [last.ect0, last.ce, last.ect1].map(u64::from);
            assert!(counters.iter().all(|&counter| counter > 10 * FULL));
            assert_eq!([0, 1, 2].map(|n| found[n] + last[n]), [ect0 - 1, ce, ect1 - 1]);
        }
    }

    #[test]
    fn counters_that_the_path_clears_are_ignored() {
        for fields in [&[0][..], &[1, 0, 0]] {
            let mut counters = EcnCounters::Expected;
            assert_eq!(counters.heard(&option(false, fields)), None);
            assert_eq!(counters.heard(&option(false, &[1001])), None);
        }
        let mut counters = EcnCounters::Expected;
        assert_eq!(counters.heard(&option(true, &[])), Some(EcnBytes::default()));
    }

    #[test]
    fn without_the_handshake_what_came_before_the_first_option_is_not_counted() {
        let mut counters = EcnCounters::default();
        assert_eq!(counters.heard(&option(false, &[5000, 300])), Some(EcnBytes::default()));
        let rest = EcnBytes { ect0: 1000, ce: 50, ect1: 0 };
        assert_eq!(counters.heard(&option(false, &[6000, 350, 1])), Some(rest));
    }
}
