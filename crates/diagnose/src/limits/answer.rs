// SPDX-License-Identifier: MIT
//! Detects whether the capture was taken at the receiver.
//!
//! A host answers a capture point of its own faster than any host across a wire, unless its
//! processor is slow. A slow processor spends the same time on a packet of the handshake as on a
//! segment, so n segments and their ACK take as long as n packets. Across a wire they take longer
//! than the handshake, by the time in which a link transmits n segments.

use crate::distance::is_at_host;
use crate::observer::End;
use crate::step::{Ack, AckKind, DataKind, Step};

/// Maximum time of a slow host's handshake, in segments. It handles one packet and one ACK: with
/// ACKs as expensive as segments and one ACK for two segments, that is 4/3 of a segment's time.
/// With a slow uplink that carries an ACK for two segments, it is 2.
const HANDSHAKE_SEGMENTS: f64 = 2.0;
/// Midpoint between a host and a link.
const HALF: f64 = 0.5;
const FEW: usize = 4;

/// Time until the first segments of a burst are acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct Bursts {
    /// Time at which a packet passed with nothing in flight, and its sequence number.
    began: Option<(u64, u64)>,
    /// Minimum time from there until one, two, ... segments were acknowledged.
    least_ns: [Option<u64>; FEW],
}

impl Bursts {
    pub fn sent(&mut self, step: &Step) {
        if step.data.kind == DataKind::New && step.data.flight_before_bytes == 0 {
            self.began = Some((step.time_ns, step.data.start));
        }
    }

    pub fn acked(&mut self, step: &Step, ack: &Ack) {
        let Some((began_ns, start)) = self.began.filter(|_| ack.kind == AckKind::Advancing) else { return };
        let (bytes, mss) = (ack.number.saturating_sub(start), u64::from(ack.mss_bytes));
        if ack.is_recovery || bytes > FEW as u64 * mss {
            self.began = None;
        } else if bytes > 0 && bytes % mss == 0 {
            let ns = step.time_ns - began_ns;
            let least_ns = &mut self.least_ns[(bytes / mss) as usize - 1];
            *least_ns = Some(least_ns.map_or(ns, |least| least.min(ns)));
        }
    }

    /// Whether the capture was taken at the receiver. `bytes_per_s`: rate while many segments
    /// waited, if they did.
    pub fn is_at_receiver(&self, end: &End, bytes_per_s: Option<f64>) -> bool {
        let [to_sender_ns, to_receiver_ns] = end.distance_ns;
        let is_slow_host = || {
            let segment_ns = f64::from(end.mss_bytes) * 1e9 / bytes_per_s?;
            Some(self.is_slow_host(end.handshake_ns? as f64 / segment_ns, segment_ns))
        };
        // A slow host may take longer to answer than the whole round trip to the sender.
        is_at_host(to_receiver_ns) && to_receiver_ns < to_sender_ns
            || !is_at_host(to_sender_ns) && is_slow_host() == Some(true)
    }

    /// Whether the receiver is a slow host; `handshake`: its answer time in the handshake, in
    /// segments.
    fn is_slow_host(&self, handshake: f64, segment_ns: f64) -> bool {
        let beyond =
            |(n, ns): (usize, &Option<u64>)| Some(ns.as_ref().copied()? as f64 / segment_ns - (n + 1) as f64);
        let least = self.least_ns.iter().enumerate().filter_map(beyond).fold(f64::INFINITY, f64::min);
        handshake < HANDSHAKE_SEGMENTS && least < handshake - HALF
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::Data;

    const MS: u64 = 1_000_000;

    /// A receiver that answered in the handshake after this many tenths of a millisecond.
    fn end(tenths: u64) -> End {
        let answered_ns = Some(tenths * MS / 10);
        End {
            time_ns: 0,
            first: Some(1),
            nxt: 1,
            una: 1,
            is_answered: true,
            peer_bytes: 0,
            mss_bytes: 1448,
            distance_ns: [Some(50 * MS), answered_ns],
            ecn: None,
            handshake: None,
            handshake_ns: answered_ns,
        }
    }

    /// The verdict when it also acknowledged one to four segments after these times, at 4.5 ms per
    /// segment.
    fn is_at(handshake: u64, tenths: [Option<u64>; FEW]) -> bool {
        let bursts = Bursts { began: None, least_ns: tenths.map(|tenths| tenths.map(|t| t * MS / 10)) };
        bursts.is_at_receiver(&end(handshake), Some(1448.0 * 1e9 / 4.5e6))
    }

    #[test]
    fn a_fast_host_answers_at_once() {
        assert!(is_at(2, [None; FEW]));
        assert!(!is_at(3, [None; FEW]), "a wire");
    }

    #[test]
    fn a_slow_processor_takes_as_long_for_the_handshake_as_for_a_segment_and_a_link_does_not() {
        // A packet takes 4 ms, an ACK 1 ms. Each segment, or every second one, has an ACK.
        assert!(is_at(50, [Some(50), Some(100), Some(150), Some(200)]));
        assert!(is_at(50, [None, Some(90), None, Some(180)]));
        // An ACK waits for the next packet, which is being processed.
        assert!(is_at(50, [Some(90), Some(100), None, None]));
        // A link with a wire that makes its handshake equally long.
        assert!(!is_at(50, [Some(95), Some(140), Some(185), Some(230)]));
        assert!(!is_at(50, [None, Some(140), None, Some(230)]));
        assert!(!is_at(50, [None; FEW]));
    }

    #[test]
    fn an_uplink_on_which_an_ack_takes_longer_than_its_two_segments_is_no_processor() {
        assert!(!is_at(92, [None, Some(92), None, Some(182)]));
    }

    #[test]
    fn a_capture_at_the_sender_is_none_at_a_slow_receiver() {
        let bursts = Bursts { began: None, least_ns: [Some(4 * MS), None, None, None] };
        let at = |to_sender_ns, to_receiver_ns| {
            let end = End { distance_ns: [Some(to_sender_ns), Some(to_receiver_ns)], ..end(40) };
            bursts.is_at_receiver(&end, Some(362_000.0))
        };
        assert!(at(50 * MS, 4 * MS) && at(3 * MS, 4 * MS), "a short way to the sender");
        assert!(!at(100_000, 4 * MS));
        // Both ends on one host.
        assert!(at(200_000, 100_000) && !at(100_000, 200_000));
    }

    #[test]
    fn a_burst_begins_with_nothing_in_flight_and_ends_with_a_loss() {
        let step = |time_ns, start, flight_before_bytes| Step {
            time_ns,
            file: 0,
            number: 0,
            from: 0,
            flags: 0,
            ttl: 64,
            ecn: 0,
            payload_bytes: 1000,
            ip_bytes: 1052,
            silence_ns: 0,
            queued_ns: None,
            distance_ns: [None; 2],
            least_ns: [None; 2],
            data: Data { kind: DataKind::New, start, flight_before_bytes, ..Data::default() },
            ack: None,
        };
        let at = |time_ns| step(time_ns, 0, 0);
        let ack = |number| Ack { kind: AckKind::Advancing, number, mss_bytes: 1000, ..Ack::default() };
        let mut bursts = Bursts::default();
        bursts.sent(&step(5, 1, 0));
        bursts.sent(&step(6, 1001, 1000));
        bursts.acked(&at(11), &ack(501));
        assert_eq!(bursts.least_ns, [None; FEW]);
        bursts.acked(&at(12), &ack(2001));
        bursts.sent(&step(20, 2001, 0));
        bursts.acked(&at(23), &ack(4001));
        assert_eq!(bursts.least_ns, [None, Some(3), None, None]);
        bursts.acked(&at(24), &Ack { is_recovery: true, ..ack(5001) });
        bursts.acked(&at(25), &ack(6001));
        assert_eq!(bursts.least_ns, [None, Some(3), None, None]);
    }
}
