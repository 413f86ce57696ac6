// SPDX-License-Identifier: MIT
//! For a sender that waits for ACKs: decides which window limits it, or whether the link is busy.
//!
//! | limit | flight | RTT | losses |
//! |---|---|---|---|
//! | slow start | doubles in a few RTTs | may rise at the end | none before |
//! | link | any | above its smallest: a queue stands | when the queue is full |
//! | link with a short queue or none | at the product of rate and RTT | near its smallest | at that flight |
//! | policer | falls at one rate | near its smallest | many, at that rate |
//! | send buffer | constant | near its smallest | none |
//! | congestion window | below what the link would carry | near its smallest | some |

use super::interval::Interval;
use super::judgment::Judgment;
use super::limit::Limit;
use super::link::Slowest;
use super::wait::MIN_RTO_NS;

const MS: u64 = 1_000_000;
/// Shares by which the RTT exceeds its minimum where a queue stands: in part of an interval, and in
/// all of it.
const QUEUE_SHARE: u64 = 5;
const QUEUE_LEAST_NS: u64 = 2 * MS;
/// Minimum share of the slowest link's rate at which it counts as busy.
const BUSY: f64 = 0.97;
/// Ratio of the ACK rate to the rate through the link while a queue stands before it, beyond which
/// ACKs are bunched: by a link that grants airtime, or a host that merges packets.
const BUNCHED: f64 = 4.0;
/// No traffic passes a link faster than at its rate for long; bunched ACKs stay within this factor.
/// After a loss an ACK may stand for many RTTs, and there a queue shows the link anyway.
const PASSES: f64 = 1.25;
/// Number of intervals over which the highest rate is averaged.
const SUSTAINED: usize = 8;
/// Minimum growth of flight in two intervals of slow start (RFC 5681 with every second segment
/// acknowledged: 2.25).
const SLOW_START_GROWTH: f64 = 1.4;
/// Flight that varies less than this over these many intervals has a constant bound.
const CONSTANT: f64 = 0.12;
const CONSTANT_INTERVALS: usize = 4;
/// Intervals for which CUBIC may hold its window: after a loss, and after slow start.
const LONG_CONSTANT: usize = 16;

/// Packets queued in a shaper that otherwise acts as a policer.
const QUEUED_PACKETS: f64 = 1.5;
const PACKET_BYTES: f64 = 1500.0;
/// A window of this size or less has only a few ACKs in each RTT.
const FEW_PACKETS: f64 = 16.0;

/// Number of intervals at the end of a short transfer.
const ENDING: usize = 2;

/// Traffic while a queue stood on the data's path, so that its link was never idle.
#[derive(Default)]
struct Queued {
    intervals: usize,
    ns: u64,
    bytes: u64,
}

impl Queued {
    fn bytes_per_s(&self) -> f64 {
        self.bytes as f64 * 1e9 / self.ns.max(1) as f64
    }

    fn is_most_of(&self, list: &[Interval]) -> bool {
        self.intervals >= SUSTAINED && 2 * self.ns > list.iter().map(Interval::ns).sum()
    }
}

pub(super) struct Path {
    rtt_floor_ns: u64,
    /// Whether this is the RTT of an empty path: the capture starts with the connection.
    is_floor_empty: bool,
    link: Option<Slowest>,
    sustained_bytes_per_s: f64,
    /// First and last interval with a loss.
    losses: Option<(usize, usize)>,
    is_policed: bool,
    /// Whether the capture was taken at the receiver.
    at_receiver: bool,
}

impl Path {
    pub fn of(
        list: &[Interval],
        link: Option<Slowest>,
        policed_bytes_per_s: Option<f64>,
        has_handshake: bool,
        at_receiver: impl FnOnce(Option<f64>) -> bool,
    ) -> Self {
        let floor = list.iter().filter(|i| i.rtts > 0).map(|i| i.rtt_min_ns).min();
        let lost = |i: &Interval| i.recoveries > 0;
        let losses = list.iter().position(lost).zip(list.iter().rposition(lost));
        let mut path = Path {
            rtt_floor_ns: floor.unwrap_or(0),
            is_floor_empty: has_handshake,
            link,
            sustained_bytes_per_s: sustained(list),
            losses,
            is_policed: false,
            at_receiver: false,
        };
        let queued = path.queued(list);
        // A window of few segments spaces its ACKs as a slow link would.
        if path.losses.is_none() && !queued.is_most_of(list) && list.len() >= SUSTAINED {
            path.link = link.filter(|link| path.sustained_bytes_per_s <= PASSES * link.bytes_per_s);
        }
        path.at_receiver = at_receiver((queued.ns > 0).then(|| queued.bytes_per_s()));
        if queued.is_most_of(list) {
            let queued = Slowest { bytes_per_s: queued.bytes_per_s(), is_of_most: true };
            let is_bunched = |link: &Slowest| link.bytes_per_s > BUNCHED * queued.bytes_per_s;
            path.link = path.link.map(|link| if is_bunched(&link) { queued } else { link });
        }
        path.is_policed = policed_bytes_per_s.is_some_and(|rate| path.policed(list, rate));
        path
    }

    fn queued(&self, list: &[Interval]) -> Queued {
        let queued = |i: &&Interval| self.has_queue(i) && !self.waits_in_return(i) && i.recoveries == 0;
        let sum = |sum: Queued, i: &Interval| Queued {
            intervals: sum.intervals + 1,
            ns: sum.ns + i.ns(),
            bytes: sum.bytes + i.acked_bytes,
        };
        list.iter().filter(queued).fold(Queued::default(), sum)
    }

    /// The judgment's figures about the path.
    pub fn figures(&self, list: &[Interval]) -> Judgment {
        let rtts: u64 = list.iter().map(|i| u64::from(i.rtts)).sum();
        let sum_ns: u64 = list.iter().map(|i| i.rtt_sum_ns).fold(0, u64::saturating_add);
        Judgment {
            rtt_min_ns: (rtts > 0).then_some(self.rtt_floor_ns),
            rtt_mean_ns: sum_ns.checked_div(rtts),
            flight_max_bytes: list.iter().map(|i| i.flight_max_bytes).max().unwrap_or(0),
            window_max_bytes: list.iter().map(|i| i.window_max_bytes).max().unwrap_or(0),
            window_left_min_bytes: list
                .iter()
                .map(|i| i.slack_min_bytes)
                .min()
                .filter(|&left| left != u64::MAX),
            link_bytes_per_s: self.link.map(|link| link.bytes_per_s),
            sustained_bytes_per_s: self.sustained_bytes_per_s,
            ..Judgment::default()
        }
    }

    fn queue_ns(&self, interval: &Interval) -> u64 {
        // The minimum counts: a delayed ACK lengthens one RTT, a standing queue lengthens all.
        interval.near_rtt_ns.map_or(0, |rtt| rtt.saturating_sub(self.rtt_floor_ns))
    }

    pub fn has_queue(&self, interval: &Interval) -> bool {
        self.queue_ns(interval) > (self.rtt_floor_ns / QUEUE_SHARE).max(QUEUE_LEAST_NS)
    }

    /// Whether ACKs account for most of the RTT above its minimum.
    pub fn waits_in_return(&self, interval: &Interval) -> bool {
        self.has_queue(interval) && 2 * interval.return_queue_ns() > self.queue_ns(interval)
    }

    /// Whether it is half of the RTT or more: whatever window binds would allow twice the rate
    /// without it.
    pub fn return_path_doubles(&self, list: &[Interval], n: usize) -> bool {
        near_return(list, n).is_some_and(|(rtt_ns, queue_ns)| 2 * queue_ns > rtt_ns)
    }

    /// Whether ACKs wait so long that the retransmission timer may expire.
    pub fn return_path_outlasts_timer(&self, list: &[Interval], n: usize) -> bool {
        self.return_path_doubles(list, n)
            && near_return(list, n).is_some_and(|(_, queue_ns)| queue_ns > MIN_RTO_NS)
    }

    /// Whether losses occur at one rate without a queue; a shaper queues only a packet or two.
    fn policed(&self, list: &[Interval], bytes_per_s: f64) -> bool {
        let Some((first, last)) = self.losses else { return false };
        let behind = &list[first..=last];
        let packets_ns = (QUEUED_PACKETS * PACKET_BYTES * 1e9 / bytes_per_s) as u64;
        let is_queued = |i: &&Interval| self.has_queue(i) && self.queue_ns(i) > packets_ns;
        let queued_ns: u64 = behind.iter().filter(is_queued).map(Interval::ns).sum();
        queued_ns < behind.iter().map(Interval::ns).sum::<u64>() / 4
    }

    /// Whether data arrives at the slowest link's rate, most of it spaced at that rate.
    pub fn is_busy(&self, list: &[Interval], n: usize) -> bool {
        self.link.is_some_and(|link| link.is_of_most && near_rate(list, n) >= BUSY * link.bytes_per_s)
    }

    /// Whether the link is busy, so that a larger window would not help, however full this one is.
    /// The ACKs of a small window may by chance be spaced as after a link, so a packet of such a
    /// window must also wait in the queue.
    pub fn is_links_window(&self, list: &[Interval], n: usize) -> bool {
        let interval = &list[n];
        let is_small = interval.flight_max_bytes as f64 <= FEW_PACKETS * PACKET_BYTES;
        let waits = |link: Slowest| self.queue_ns(interval) as f64 * link.bytes_per_s >= PACKET_BYTES * 1e9;
        self.is_busy(list, n) && !(is_small && self.is_floor_empty && !self.link.is_some_and(waits))
    }

    /// The limit of a sender that waited for room in interval number `n`.
    pub fn limit(&self, list: &[Interval], n: usize) -> Limit {
        let interval = &list[n];
        let lost_before = self.losses.is_some_and(|(first, _)| first < n);
        if self.is_policed && self.losses.is_some_and(|(first, last)| (first..=last).contains(&n)) {
            Limit::Policer
        } else if self.has_queue(interval) {
            // A host timestamps an ACK when it processes it: any later wait of the ACK was
            // elsewhere.
            if self.waits_in_return(interval) {
                Limit::ReturnPath
            } else if self.at_receiver && 2 * interval.kept.ns() > self.queue_ns(interval) {
                Limit::Processor
            } else {
                Limit::Link
            }
        } else if !lost_before && interval.recoveries == 0 && grows(list, n) {
            Limit::SlowStart
        } else if self.is_busy(list, n) {
            Limit::Link
        } else if is_constant(list, n, if lost_before { LONG_CONSTANT } else { CONSTANT_INTERVALS })
            || self.losses.is_none() && stands_still(list, n)
        {
            Limit::SendBuffer
        } else if self.losses.is_none() && n + ENDING >= list.len() && n > 0 && grows(list, n - 1) {
            // The remainder at the end needs no larger window.
            Limit::SlowStart
        } else {
            Limit::CongestionWindow
        }
    }
}

/// The highest rate over several consecutive intervals. A capture that starts within a connection
/// has intervals far shorter than an RTT until it knows one: they do not count.
fn sustained(list: &[Interval]) -> f64 {
    let known = list.iter().position(|i| i.rtts > 0).unwrap_or(0);
    let list = &list[known..];
    list.windows(SUSTAINED.min(list.len().max(1))).map(rate).fold(0.0, f64::max)
}

/// Mean RTT, and the part that ACKs wait in the return path's queues. Neighbouring intervals are
/// included, because an interval of one timeout has no RTT.
fn near_return(list: &[Interval], n: usize) -> Option<(u64, u64)> {
    let near = &list[n.saturating_sub(2)..(n + 3).min(list.len())];
    let sampled = near.iter().filter_map(|i| Some((i.rtt_ns()?, i.return_queue_ns(), 1)));
    let sum = |a: (u64, u64, u64), b: (u64, u64, u64)| {
        (a.0.saturating_add(b.0), a.1.saturating_add(b.1), a.2 + b.2)
    };
    let (rtts_ns, queues_ns, count) = sampled.reduce(sum)?;
    Some((rtts_ns / count, queues_ns / count))
}

/// Mean rate over the interval and its neighbours.
fn near_rate(list: &[Interval], n: usize) -> f64 {
    rate(&list[n.saturating_sub(2)..(n + 3).min(list.len())])
}

fn rate(some: &[Interval]) -> f64 {
    let ns: u64 = some.iter().map(Interval::ns).sum();
    some.iter().map(|i| i.acked_bytes).sum::<u64>() as f64 * 1e9 / ns.max(1) as f64
}

fn grows(list: &[Interval], n: usize) -> bool {
    let before = list[n.saturating_sub(1)].flight_max_bytes.min(list[n].flight_max_bytes);
    let behind = list.get(n + 1).map_or(0, |i| i.flight_max_bytes).max(list[n].flight_max_bytes);
    // The first interval is always slow start.
    n == 0 || behind as f64 >= SLOW_START_GROWTH * before as f64
}

/// Whether flight is constant in the intervals around this one, or after it if flight has just
/// grown.
fn is_constant(list: &[Interval], n: usize, around: usize) -> bool {
    let part = |from: usize, to: usize| &list[from..to.min(list.len())];
    let varies_little = |near: &[Interval]| {
        let most = near.iter().map(|i| i.flight_max_bytes).max().unwrap_or(0);
        let least = near.iter().map(|i| i.flight_max_bytes).min().unwrap_or(0);
        near.iter().all(|i| i.recoveries == 0) && (most - least) as f64 <= CONSTANT * most as f64
    };
    let behind = part(n, n + 2 * around);
    varies_little(part(n.saturating_sub(around), n + around))
        || behind.len() == 2 * around && varies_little(behind)
}

/// Whether the bound is not the congestion window: without a loss, a full congestion window grows
/// with each RTT. Other bounds do not, even where flight varies with the sizes of writes.
fn stands_still(list: &[Interval], n: usize) -> bool {
    let most = |some: &[Interval]| some.iter().map(|i| i.flight_max_bytes).max().unwrap_or(0) as f64;
    let from = n.min(list.len().saturating_sub(LONG_CONSTANT)).saturating_sub(LONG_CONSTANT);
    let Some(near) = list.get(from..from + 2 * LONG_CONSTANT) else { return false };
    let (before, behind) = near.split_at(LONG_CONSTANT);
    most(behind) <= (1.0 + CONSTANT) * most(before)
}

#[cfg(test)]
mod tests {
    use super::super::interval::Mean;
    use super::*;

    const PATH: Path = Path {
        rtt_floor_ns: 0,
        is_floor_empty: true,
        link: None,
        sustained_bytes_per_s: 0.0,
        losses: None,
        is_policed: false,
        at_receiver: false,
    };

    fn flights(of: impl Fn(u64) -> u64) -> Vec<Interval> {
        (0..64).map(|n| Interval { flight_max_bytes: of(n), ..Interval::default() }).collect()
    }

    #[test]
    fn what_is_passed_for_long_is_no_link() {
        // 1 MB/s in intervals of 10 ms
        let interval = |n: u64| Interval {
            from_ns: n * 10 * MS,
            to_ns: (n + 1) * 10 * MS,
            acked_bytes: 10_000,
            ..Interval::default()
        };
        let list: Vec<_> = (0..16).map(interval).collect();
        let link = |list: &[Interval], bytes_per_s| {
            Path::of(list, Some(Slowest { bytes_per_s, is_of_most: true }), None, true, |_| false)
                .link
                .map(|link| link.bytes_per_s)
        };
        assert_eq!(link(&list, 0.79e6), None);
        assert_eq!(link(&list, 0.81e6), Some(0.81e6));
        assert_eq!(link(&list[..7], 0.79e6), Some(0.79e6), "too short to say");
        // Before the first RTT is known, an interval is shorter than one.
        let early = |n: usize| Interval { acked_bytes: 20_000, rtts: 0, ..list[n] };
        let known = |n: usize| Interval { rtts: 1, ..list[n] };
        let both: Vec<_> = (0..8).map(early).chain((8..16).map(known)).collect();
        assert_eq!(link(&both, 0.81e6), Some(0.81e6));
    }

    #[test]
    fn a_small_window_that_is_full_is_the_links_affair_while_a_packet_of_it_waits() {
        // 1500 bytes in intervals of 10 ms
        let intervals = |flight_max_bytes, rtt_ns| {
            (0..5).map(move |n| Interval {
                from_ns: n * 10 * MS,
                to_ns: (n + 1) * 10 * MS,
                acked_bytes: 1500,
                flight_max_bytes,
                near_rtt_ns: Some(rtt_ns),
                ..Interval::default()
            })
        };
        let is_link = |bytes_per_s, is_of_most, is_floor_empty, flight_max_bytes, rtt_ns| {
            let link = Some(Slowest { bytes_per_s, is_of_most });
            Path { rtt_floor_ns: 40 * MS, is_floor_empty, link, ..PATH }
                .is_links_window(&intervals(flight_max_bytes, rtt_ns).collect::<Vec<_>>(), 2)
        };
        assert!(is_link(150e3, true, true, 7500, 50 * MS));
        assert!(!is_link(150e3, true, true, 7500, 49 * MS), "less than a packet");
        assert!(is_link(150e3, true, true, 30_000, 49 * MS), "so many are not as far apart by chance");
        assert!(is_link(150e3, true, false, 7500, 40 * MS), "how long an empty path takes is not known");
        assert!(!is_link(150e3, false, true, 30_000, 50 * MS), "the rate is that of few ACKs");
        assert!(!is_link(160e3, true, true, 7500, 50 * MS), "idle now and then");
    }

    #[test]
    fn what_an_ack_waited_since_its_stamp_it_did_not_wait_in_the_host() {
        let path = Path { rtt_floor_ns: 10 * MS, sustained_bytes_per_s: 1e6, at_receiver: true, ..PATH };
        let mean = |ns: u64| Mean { sum_ns: ns, samples: 1 };
        let limit = |kept_ns: u64, return_queue_ns: u64| {
            let interval = Interval {
                near_rtt_ns: Some(50 * MS),
                kept: mean(kept_ns),
                queued_behind: mean(return_queue_ns),
                ..Interval::default()
            };
            path.limit(&[interval], 0)
        };
        // Part of a queue of 40 ms: the capture point's view of the host includes the return path.
        assert_eq!(limit(40 * MS, 38 * MS), Limit::ReturnPath);
        assert_eq!(limit(40 * MS, MS), Limit::Processor);
        assert_eq!(limit(MS, MS), Limit::Link);
    }

    #[test]
    fn a_buffer_of_writes_of_many_sizes_stands_still_and_a_congestion_window_does_not() {
        let buffer = flights(|n| 40_000 - 9_000 * (n % 3));
        assert!((0..64).all(|n| stands_still(&buffer, n)));
        let reno = flights(|n| 40_000 + 1448 * n);
        assert!(!(0..64).any(|n| stands_still(&reno, n)));
        assert!(!stands_still(&buffer[..20], 10), "too short to say");
    }
}
