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
use super::wait::{Wait, MIN_RTO_NS};

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
/// Packets that follow each other faster than this, 10 us for a full one, may come from the memory
/// of a host: a link's rate only if traffic reaches half of it. Bytes per second.
const AT_ONCE: f64 = 150e6;
/// No traffic passes a link faster than at its rate for long; bunched ACKs stay within this factor.
/// After a loss an ACK may stand for many RTTs, and there a queue shows the link anyway.
const PASSES: f64 = 1.25;
/// Number of intervals over which the highest rate is averaged.
const SUSTAINED: usize = 8;
/// Minimum growth of flight in two intervals of slow start (RFC 5681 with every second segment
/// acknowledged: 2.25).
const SLOW_START_GROWTH: f64 = 1.4;
/// Flight that varies less than this over these many intervals may have a constant bound.
const CONSTANT: f64 = 0.12;
const CONSTANT_INTERVALS: usize = 8;
/// Number at the end of a transfer.
const LAST_INTERVALS: usize = 4;
/// Intervals over which a congestion window that no loss reduces grows by more than that.
const LONG_CONSTANT: usize = 16;
/// Minimum growth of a full congestion window in each RTT, packets: that of Reno with delayed ACKs,
/// and CUBIC's at least (RFC 9438, 4.3).
const GROWTH_PACKETS: f64 = 0.5;
/// Spare factor for the time that a congestion window may seem constant.
const SPARE: f64 = 1.5;
/// CUBIC's factor C, packets / s^3, and the part of its window that a loss takes (RFC 9438, 5.1, 4.6).
const CUBIC: f64 = 0.4;
const REDUCED: f64 = 0.3;

/// Intervals to both sides that show who sets the times of bursts, their minimum number, and the
/// share that the application sets.
const NEAR: usize = 8;
const BURSTS_MIN: u32 = 4;
const OWN: f64 = 0.25;
/// A sender that its application limits has less than a segment left once in so many bursts, or more
/// often.
const PARTIAL_BURSTS: u32 = 16;
const PARTIAL_MIN: u32 = 2;
/// No link is slower than what passes, except for the size of a few packets.
const FASTER: f64 = 1.5;
/// Share of such intervals that refutes a link's rate.
const OFTEN: f64 = 0.25;

/// Waits in which the path is idle.
const IDLE: [Wait; 5] = [Wait::Application, Wait::Idle, Wait::Grant, Wait::ClosedWindow, Wait::Timer];
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
        2 * self.ns > list.iter().map(Interval::ns).sum() && self.intervals >= SUSTAINED
    }

    /// Whether it lasts long enough to show the link's rate, though not how often it is busy.
    fn shows_rate(&self, list: &[Interval]) -> bool {
        4 * self.ns > list.iter().map(Interval::ns).sum() && self.intervals >= SUSTAINED
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
    /// Whether neither a loss nor a mark reduced the congestion window.
    is_unreduced: bool,
    /// Intervals in which a buffer, not a congestion window, bounds the flight.
    is_buffered: Vec<bool>,
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
            is_unreduced: !list.iter().any(Interval::is_reduced),
            is_buffered: buffered(list),
            is_policed: false,
            at_receiver: false,
        };
        let queued = path.queued(list);
        // A window of few segments spaces its ACKs as a slow link would.
        if path.losses.is_none() && !queued.is_most_of(list) && list.len() >= SUSTAINED {
            path.link = link.filter(|link| path.sustained_bytes_per_s <= PASSES * link.bytes_per_s);
        }
        if !queued.is_most_of(list) {
            path.link = path.link.filter(|link| !is_passed(list, link.bytes_per_s));
        }
        path.at_receiver = at_receiver((queued.ns > 0).then(|| queued.bytes_per_s()));
        if queued.bytes > 0 && queued.shows_rate(list) {
            let queued = Slowest { bytes_per_s: queued.bytes_per_s(), is_of_most: true };
            let is_bunched = |link: &Slowest| link.bytes_per_s > BUNCHED * queued.bytes_per_s;
            path.link = path.link.map(|link| if is_bunched(&link) { queued } else { link });
        }
        let reached = 2.0 * path.sustained_bytes_per_s;
        path.link = path.link.filter(|link| link.bytes_per_s <= AT_ONCE.max(reached));
        path.is_policed = policed_bytes_per_s.is_some_and(|rate| path.policed(list, rate));
        path
    }

    fn queued(&self, list: &[Interval]) -> Queued {
        // An end that waits keeps ACKs for itself, too.
        let is_idle = |i: &Interval| IDLE.iter().any(|&wait| i.is_mostly(wait));
        let queued =
            |i: &&Interval| self.has_queue(i) && !self.waits_in_return(i) && i.recoveries == 0 && !is_idle(i);
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
        self.stands(self.queue_ns(interval))
    }

    fn stands(&self, queue_ns: u64) -> bool {
        queue_ns > (self.rtt_floor_ns / QUEUE_SHARE).max(QUEUE_LEAST_NS)
    }

    /// Whether data waits, too, on its own way: then the link there is never idle, and faster ACKs
    /// would only lengthen its queue.
    fn waits_on_data_path(&self, interval: &Interval) -> bool {
        self.stands(self.queue_ns(interval).min(interval.data_queue_ns()))
    }

    /// Whether ACKs account for most of the RTT above its minimum.
    pub fn waits_in_return(&self, interval: &Interval) -> bool {
        self.has_queue(interval)
            && 2 * interval.return_queue_ns() > self.queue_ns(interval)
            && !self.waits_on_data_path(interval)
    }

    /// Whether it is half of the RTT or more: whatever window binds would allow twice the rate
    /// without it.
    pub fn return_path_doubles(&self, list: &[Interval], n: usize) -> bool {
        !self.waits_on_data_path(&list[n])
            && near_return(list, n).is_some_and(|(rtt_ns, queue_ns)| 2 * queue_ns > rtt_ns)
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
        self.link.is_some_and(|link| {
            link.is_of_most
                && near_rate(list, n) >= BUSY * link.bytes_per_s
                && near(list, n, 2).iter().all(|i| i.passed_bytes_per_s as f64 <= FASTER * link.bytes_per_s)
        })
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
        } else if is_written(list, n) {
            Limit::SendingApplication
        } else if !lost_before && interval.recoveries == 0 && grows(list, n) {
            Limit::SlowStart
        } else if self.is_busy(list, n) {
            Limit::Link
        } else if self.is_buffered[n] || self.is_unreduced && stands_still(list, n) {
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

/// Intervals around number `n`.
fn near(list: &[Interval], n: usize, around: usize) -> &[Interval] {
    &list[n.saturating_sub(around)..(n + around + 1).min(list.len())]
}

/// Whether the application sets the times at which data leaves: more than a few bursts near this
/// interval answer no ACK, and now and then the sender has nothing left.
fn is_written(list: &[Interval], n: usize) -> bool {
    let near = near(list, n, NEAR);
    let sum = |of: fn(&Interval) -> u32| near.iter().map(of).sum::<u32>();
    let (bursts, partial) = (sum(|i| i.bursts), sum(|i| i.partial_packets));
    bursts >= BURSTS_MIN
        && f64::from(sum(|i| i.own_bursts)) >= OWN * f64::from(bursts)
        && partial >= PARTIAL_MIN.max(bursts / PARTIAL_BURSTS)
}

/// Whether bursts often pass the path faster than this rate.
fn is_passed(list: &[Interval], bytes_per_s: f64) -> bool {
    let passed = |i: &&Interval| i.passed_bytes_per_s > 0;
    let faster = |i: &&Interval| i.passed_bytes_per_s as f64 > FASTER * bytes_per_s;
    list.iter().filter(faster).count() as f64 > OFTEN * list.iter().filter(passed).count() as f64
}

/// Intervals in which flight is constant for longer than a full congestion window can be.
fn buffered(list: &[Interval]) -> Vec<bool> {
    let mut is_buffered = vec![false; list.len()];
    let first_loss = list.iter().position(Interval::is_reduced).unwrap_or(list.len());
    let mut from = 0;
    let (mut least, mut most) = (u64::MAX, 0);
    for to in 0..=list.len() {
        if let Some(next) = list.get(to).filter(|i| !i.is_reduced()) {
            let flight = next.flight_max_bytes;
            let (lower, upper) = (least.min(flight), most.max(flight));
            if (upper - lower) as f64 <= CONSTANT * upper as f64 {
                (least, most) = (lower, upper);
                continue;
            }
        }
        let run = &list[from..to];
        if is_bound(run, most, from > first_loss, to == list.len()) {
            is_buffered[from..to].fill(true);
        }
        // The next run begins with the last intervals that go with the one that ended this.
        from = to + usize::from(list.get(to).is_some_and(Interval::is_reduced));
        (least, most) = (u64::MAX, 0);
        if let Some(next) = list.get(to).filter(|_| from == to) {
            (least, most) = (next.flight_max_bytes, next.flight_max_bytes);
            for before in run.iter().rev().map(|i| i.flight_max_bytes) {
                let (lower, upper) = (least.min(before), most.max(before));
                if (upper - lower) as f64 > CONSTANT * upper as f64 {
                    break;
                }
                (least, most) = (lower, upper);
                from -= 1;
            }
        }
    }
    is_buffered
}

/// Whether a run of constant flight is too long, or too even, for a congestion window. Before a
/// loss, such a window grows with each RTT. After one, CUBIC is within half of the variation of its
/// plateau for `2 cbrt(CONSTANT / 2 * packets / C)`, unless Reno's window has passed it by then.
fn is_bound(run: &[Interval], most_bytes: u64, is_after_loss: bool, is_last: bool) -> bool {
    let (Some(first), Some(last)) = (run.first(), run.last()) else { return false };
    if run.len() < if is_last { LAST_INTERVALS } else { CONSTANT_INTERVALS } {
        return false;
    }
    let lasts_s = (last.to_ns - first.from_ns) as f64 / 1e9;
    let rtt_s = first.near_rtt_ns.unwrap_or(0).max(1) as f64 / 1e9;
    let packets = most_bytes as f64 / PACKET_BYTES;
    let plateau_s = 2.0 * (CONSTANT / 2.0 * packets / CUBIC).cbrt();
    let reno_s = (REDUCED + CONSTANT) * packets / GROWTH_PACKETS * rtt_s;
    if is_after_loss && lasts_s <= SPARE * plateau_s.min(reno_s) {
        return false;
    }
    let mean = |part: &[Interval]| {
        part.iter().map(|i| i.flight_max_bytes as f64).sum::<f64>() / part.len().max(1) as f64
    };
    let (before, behind) = run.split_at(run.len() / 2);
    let growth = GROWTH_PACKETS * PACKET_BYTES * lasts_s / 2.0 / rtt_s;
    mean(behind) - mean(before) < growth / 2.0
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
        is_unreduced: true,
        is_buffered: Vec::new(),
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

    /// Flights of 100 ms each, in packets.
    fn rounds(packets: impl Fn(u64) -> f64) -> Vec<Interval> {
        let interval = |n: u64| Interval {
            from_ns: 100 * n * MS,
            to_ns: 100 * (n + 1) * MS,
            near_rtt_ns: Some(100 * MS),
            flight_max_bytes: (packets(n) * PACKET_BYTES) as u64,
            ..Interval::default()
        };
        (0..100).map(interval).collect()
    }

    fn share_buffered(list: &[Interval]) -> usize {
        buffered(list).iter().filter(|&&is| is).count()
    }

    #[test]
    fn a_full_congestion_window_grows_and_a_full_buffer_does_not() {
        for packets in [20.0, 100.0, 400.0] {
            assert_eq!(share_buffered(&rounds(|_| packets)), 100);
            // Growth by one packet for each two that are acknowledged at once.
            assert_eq!(share_buffered(&rounds(|n| packets + 0.5 * n as f64)), 0, "{packets}");
            // Sizes of writes.
            assert_eq!(share_buffered(&rounds(|n| packets * (1.0 - 0.02 * (n % 4) as f64))), 100);
        }
    }

    #[test]
    fn a_plateau_of_cubic_is_no_buffer() {
        let lost: fn(&mut Interval) = |interval| interval.recoveries = 1;
        let marked: fn(&mut Interval) = |interval| interval.marks = 3;
        for (most, reduce) in [(50.0_f64, lost), (235.0, lost), (1000.0, lost), (235.0, marked)] {
            // RFC 9438, 4.2 and 4.3, from a loss in the first round on.
            let from_loss_s = (most * 0.3 / CUBIC).cbrt();
            let reno = |n: u64| 0.7 * most + 0.53 * n as f64;
            let cubic = |n: u64| reno(n).max(CUBIC * (0.1 * n as f64 - from_loss_s).powi(3) + most);
            let mut list = rounds(cubic);
            reduce(&mut list[0]);
            assert_eq!(share_buffered(&list), 0, "{most}");
        }
        let mut buffer = rounds(|_| 50.0);
        buffer[0].recoveries = 1;
        assert_eq!(share_buffered(&buffer), 99);
        (0..5).for_each(|n| buffer[20 * n].recoveries = 1);
        assert_eq!(share_buffered(&buffer), 0, "2 s are too short to say");
    }

    #[test]
    fn an_application_that_sends_at_times_of_its_own_is_slow_and_a_paced_bulk_sender_is_not() {
        let is_written = |bursts, own_bursts, partial_packets| {
            let interval = Interval { bursts, own_bursts, partial_packets, ..Interval::default() };
            is_written(&[interval; 17], 8)
        };
        assert!(is_written(4, 1, 1));
        assert!(!is_written(5, 1, 1), "most answer an ACK");
        assert!(!is_written(4, 4, 0), "never less than a segment");
        assert!(!is_written(0, 0, 1), "no bursts");
    }

    #[test]
    fn a_rate_that_bursts_exceed_is_no_links() {
        let path = |passed_bytes_per_s: u64| {
            let interval = |n: u64| Interval {
                from_ns: n * 10 * MS,
                to_ns: (n + 1) * 10 * MS,
                acked_bytes: 10_000,
                rtts: 1,
                near_rtt_ns: Some(10 * MS),
                passed_bytes_per_s,
                ..Interval::default()
            };
            let list: Vec<_> = (0..16).map(interval).collect();
            let link = Some(Slowest { bytes_per_s: 1e6, is_of_most: true });
            Path::of(&list, link, None, true, |_| false).is_busy(&list, 8)
        };
        assert!(path(1_400_000));
        assert!(!path(1_600_000));
    }

    #[test]
    fn packets_of_a_hosts_memory_show_no_link() {
        let interval = |n: u64| Interval {
            from_ns: n * 10 * MS,
            to_ns: (n + 1) * 10 * MS,
            acked_bytes: 1_000_000,
            rtts: 2,
            near_rtt_ns: Some(10 * MS),
            ..Interval::default()
        };
        let list: Vec<_> = (0..16).map(interval).collect();
        let link = |bytes_per_s| {
            let link = Some(Slowest { bytes_per_s, is_of_most: true });
            Path::of(&list, link, None, true, |_| false).link.map(|link| link.bytes_per_s)
        };
        // 100 MB/s are reached.
        assert_eq!(link(360e6), None);
        assert_eq!(link(190e6), Some(190e6));
        assert_eq!(link(110e6), Some(110e6));
    }

    #[test]
    fn a_queue_shows_the_links_rate_only_while_neither_end_waits() {
        // 100 kB/s with a queue of 30 ms; ACKs are as far apart as at 10 MB/s.
        let interval = |n: u64, wait: Wait| {
            let mut interval = Interval {
                from_ns: n * 10 * MS,
                to_ns: (n + 1) * 10 * MS,
                acked_bytes: 1000,
                rtts: 2,
                near_rtt_ns: Some(if n == 0 { 10 * MS } else { 40 * MS }),
                rtt_min_ns: if n == 0 { 10 * MS } else { 40 * MS },
                ..Interval::default()
            };
            interval.waits_ns[wait.index()] = 10 * MS;
            interval
        };
        let link = |wait: Wait, queued: u64| {
            let wait_of = |n: u64| if n < queued { wait } else { Wait::ClosedWindow };
            let list: Vec<_> = (0..32).map(|n| interval(n, wait_of(n))).collect();
            let link = Some(Slowest { bytes_per_s: 10e6, is_of_most: false });
            Path::of(&list, link, None, true, |_| false).link.map(|link| link.bytes_per_s)
        };
        assert_eq!(link(Wait::Room, 32), Some(100e3));
        assert_eq!(link(Wait::Room, 10), Some(100e3), "a third of the time");
        assert_eq!(link(Wait::Room, 6), Some(10e6), "too short to say");
        assert_eq!(link(Wait::Application, 32), Some(10e6), "the receiver delays ACKs");
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
