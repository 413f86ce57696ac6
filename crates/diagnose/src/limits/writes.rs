// SPDX-License-Identifier: MIT
//! Who sets the times of a sender's bursts: the ACKs that make room, or its application.
//!
//! A sender that waits for room sends within a fraction of a millisecond of the ACK that makes it.
//! An application that writes steadily sends at times of its own, while ACKs come and go. Its data
//! ends with less than a segment now and then; what a full window or a full link holds back does
//! not.

use crate::distance::is_at_host;
use crate::step::{Ack, AckKind, DataKind, Step};

/// Maximum time from an ACK to the data for which it makes room, where the sender captures, and the
/// most that a path may add.
const PROMPT_NS: u64 = 150_000;
const VARIES_NS: u64 = 300_000;
const VARIES_RTTS: u64 = 64;
/// Number of bursts by which a mean forgets, and of mean deviations within which most are.
const MEMORY: f64 = 8.0;
const DEVIATIONS: f64 = 2.0;
/// Transmission times that a path of several links may add, in those of the slowest before the
/// capture point.
const LATER_PACKETS: u64 = 2;
/// Shorter gaps are those of packets within a burst.
const SHORTEST_NS: u64 = 300_000;
/// A burst begins after a gap of so many gaps within a burst.
const LONGER: u64 = 3;
/// Number of gaps of which half are within a burst, if there are bursts.
const GAPS: usize = 8;
/// Minimum length of a burst whose speed shows that of the path, and what an ACK may be late.
const PASSED_SEGMENTS: u64 = 4;
const LATE_NS: u64 = 300_000;

/// The burst that a packet begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Burst {
    /// It left as an ACK arrived.
    Prompted,
    /// It left at some other time.
    Own,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Writes {
    gaps_ns: [u64; GAPS],
    count: usize,
    /// Recent mean of the time from an ACK to a burst, and its deviation.
    mean_ns: f64,
    deviation_ns: f64,
    /// Time and first sequence number of a burst that is not yet acknowledged.
    began: Option<(u64, u64)>,
}

impl Writes {
    /// The burst that begins with this packet, if one does. Only full segments count: Nagle's
    /// algorithm releases short ones when an ACK arrives, whoever waits.
    pub fn sent(&mut self, step: &Step, gap_ns: u64) -> Option<Burst> {
        let data = &step.data;
        if data.kind != DataKind::New {
            self.began = None;
            return None;
        }
        if self.count == 0 {
            self.began = Some((step.time_ns, data.start));
        }
        let gaps_ns = self.gaps_ns;
        self.gaps_ns[self.count % GAPS] = gap_ns;
        self.count += 1;
        let is_full = data.end - data.start >= u64::from(data.mss_bytes);
        if !is_full || gap_ns < SHORTEST_NS || self.count <= GAPS {
            return None;
        }
        let within_ns = median(gaps_ns);
        if gap_ns < LONGER * within_ns {
            return None;
        }
        self.began.get_or_insert((step.time_ns, data.start));
        let since_ns = data.sender.since_ack_ns.unwrap_or(gap_ns).min(gap_ns);
        let off_ns = since_ns as f64 - self.mean_ns;
        self.mean_ns += off_ns / MEMORY;
        self.deviation_ns += (off_ns.abs() - self.deviation_ns) / MEMORY;
        let away_ns = match is_at_host(step.least_ns[step.from]) {
            true => 0,
            // Also the transmission time of a packet, which those of the handshake did not take.
            false => {
                let most_ns = VARIES_NS + step.least_rtt_ns().unwrap_or(0) / VARIES_RTTS;
                LATER_PACKETS * within_ns + most_ns.min((DEVIATIONS * self.deviation_ns) as u64)
            }
        };
        Some(if since_ns > PROMPT_NS + away_ns { Burst::Own } else { Burst::Prompted })
    }

    /// A rate at which the path passed data just now, bytes per second: its slowest link is no
    /// slower.
    pub fn acked(&mut self, step: &Step, ack: &Ack) -> Option<u64> {
        let (began_ns, start) = self.began.filter(|_| ack.kind == AckKind::Advancing)?;
        let mss = u64::from(ack.mss_bytes);
        let bytes = ack.number.saturating_sub(start);
        if ack.is_recovery {
            self.began = None;
        }
        if ack.is_recovery || bytes < PASSED_SEGMENTS * mss {
            return None;
        }
        self.began = None;
        let ns = (step.time_ns - began_ns).saturating_sub(step.least_ns[step.from].unwrap_or(0)) + LATE_NS;
        // The first packet takes its own time, too, but the minimum RTT may have part of it.
        Some((bytes - mss) * 1_000_000_000 / ns)
    }
}

fn median(mut gaps_ns: [u64; GAPS]) -> u64 {
    *gaps_ns.select_nth_unstable(GAPS / 2 - 1).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::{Data, SenderView};

    const MS: u64 = 1_000_000;

    fn step(time_ns: u64, start: u64, bytes: u64, since_ack_ns: Option<u64>, to_sender_ns: u64) -> Step {
        Step {
            time_ns,
            file: 0,
            number: 0,
            from: 0,
            flags: 0,
            ttl: 64,
            ecn: 0,
            payload_bytes: bytes as u32,
            ip_bytes: bytes as u32 + 40,
            silence_ns: 0,
            queued_ns: None,
            distance_ns: [None; 2],
            least_ns: [Some(to_sender_ns), Some(20 * MS)],
            data: Data {
                kind: DataKind::New,
                start,
                end: start + bytes,
                mss_bytes: 1000,
                sender: SenderView { since_ack_ns, ..SenderView::default() },
                ..Data::default()
            },
            ack: None,
        }
    }

    /// The second of two bursts of ten packets, 20 ms apart, the first packet of this size.
    fn second(bytes: u64, since_ack_ns: Option<u64>, to_sender_ns: u64) -> Option<Burst> {
        let mut writes = Writes::default();
        for n in 0..10 {
            assert_eq!(writes.sent(&step(n * 1000, n * 1000, 1000, Some(0), to_sender_ns), 1000), None);
        }
        writes.sent(&step(20 * MS, 10_000, bytes, since_ack_ns, to_sender_ns), 20 * MS)
    }

    #[test]
    fn a_burst_right_after_an_ack_is_prompted_and_another_is_the_applications() {
        assert_eq!(second(1000, Some(50_000), 0), Some(Burst::Prompted));
        assert_eq!(second(1000, Some(250_000), 0), Some(Burst::Own));
        assert_eq!(second(1000, None, 0), Some(Burst::Own), "no ACK since the connection was opened");
        assert_eq!(second(400, Some(2 * MS), 0), None, "Nagle's algorithm may have held it back");
    }

    #[test]
    fn away_from_the_sender_a_burst_may_be_as_late_as_the_path_varies() {
        let last = |late_ns: fn(u64) -> u64| {
            let mut writes = Writes::default();
            let mut found = None;
            for n in 0..300 {
                let (gap_ns, since_ns) = if n % 10 == 0 { (20 * MS, late_ns(n / 10)) } else { (1000, 0) };
                let burst = writes.sent(&step(n * 2 * MS, n * 1000, 1000, Some(since_ns), 20 * MS), gap_ns);
                found = burst.or(found);
            }
            found
        };
        assert_eq!(last(|n| 400_000 * (n % 2)), Some(Burst::Prompted));
        assert_eq!(last(|_| 400_000), Some(Burst::Own));
        assert_eq!(last(|n| 4 * MS * (n % 2)), Some(Burst::Own), "more than a path");
    }

    #[test]
    fn packets_that_are_evenly_spaced_are_no_bursts() {
        let mut writes = Writes::default();
        for n in 0..50 {
            assert_eq!(writes.sent(&step(n * MS, n * 1000, 1000, Some(MS), 0), MS), None);
        }
    }

    #[test]
    fn what_passes_at_once_shows_that_no_link_is_slower() {
        let ack = |number| Ack { kind: AckKind::Advancing, number, mss_bytes: 1000, ..Ack::default() };
        let at = |time_ns| Step { from: 1, ..step(time_ns, 0, 0, None, 0) };
        let mut writes = Writes::default();
        (0..10).for_each(|n| {
            writes.sent(&step(n * 1000, n * 1000, 1000, None, 0), 1000);
        });
        assert_eq!(writes.acked(&at(20 * MS), &ack(3000)), None, "a short burst");
        // 9000 bytes in 2.3 ms, as far as that shows.
        assert_eq!(writes.acked(&at(22 * MS), &ack(10_000)), Some(9000 * 10_000 / 23));
        assert_eq!(writes.acked(&at(23 * MS), &ack(20_000)), None, "nothing was sent since");
    }
}
