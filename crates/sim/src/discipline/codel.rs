// SPDX-License-Identifier: MIT
//! CoDel (RFC 8289): drops when every packet of an interval waited longer than the target, and then
//! at decreasing intervals, interval / sqrt(count), until one waited less.
//!
//! Constants: target 5 ms and interval 100 ms (RFC 8289, 4.2 and 4.3), also the defaults of Linux.
//! Deviation from Linux 6.12 (`codel_Newton_step`): the square root is exact. Linux approximates it
//! with one step per drop, which makes the second interval 50 ms instead of 71 ms and the third 56
//! ms instead of 58 ms.

use super::drop_tail::DropTail;
use super::qdisc::{count_drop, frame_bytes, mark, Qdisc};
use super::queues::Queues;
use crate::packet::Packet;
use crate::result::ChannelResult;
use crate::scenario::ChannelSpec;

const TARGET_NS: u64 = 5_000_000;
pub const INTERVAL_NS: u64 = 100_000_000;

/// CoDel's parameters.
#[derive(Clone, Copy)]
pub struct Target {
    target_ns: u64,
    interval_ns: u64,
    /// A backlog of one packet is not a queue, however long that packet waited (RFC 8289, 5.2).
    packet_bytes: u64,
}

impl Target {
    pub fn new(pipe: &ChannelSpec, frame_bytes: u32) -> Self {
        Target {
            target_ns: pipe.target_ns.unwrap_or(TARGET_NS),
            interval_ns: pipe.interval_ns.unwrap_or(INTERVAL_NS),
            packet_bytes: frame_bytes.into(),
        }
    }

    fn interval_of(&self, count: u32) -> u64 {
        interval_of(self.interval_ns, count)
    }
}

/// The control law: the time between two drops.
pub fn interval_of(interval_ns: u64, count: u32) -> u64 {
    (interval_ns as f64 / f64::from(count.max(1)).sqrt()) as u64
}

/// State of one queue.
#[derive(Clone, Default)]
pub struct Codel {
    first_above_ns: u64,
    drop_next_ns: u64,
    count: u32,
    last_count: u32,
    dropping: bool,
    /// Whether the previous packet was dropped on schedule: the next drop is scheduled only if this
    /// packet waited too long, too.
    scheduled: bool,
}

impl Codel {
    /// Whether to drop the packet at the head, which waited for `sojourn_ns` (RFC 8289, 5.5).
    /// `backlog_bytes`: bytes behind it.
    pub fn drops(&mut self, t: &Target, now: u64, sojourn_ns: u64, backlog_bytes: u64) -> bool {
        let above = self.is_above(t, now, sojourn_ns, backlog_bytes);
        let scheduled = std::mem::take(&mut self.scheduled);
        if self.dropping {
            if !above {
                self.dropping = false;
                return false;
            }
            if scheduled {
                self.drop_next_ns += t.interval_of(self.count);
            }
            if now < self.drop_next_ns {
                return false;
            }
            self.count = self.count.saturating_add(1);
            self.scheduled = true;
            return true;
        }
        if !above {
            return false;
        }
        self.dropping = true;
        // A rate that controlled this queue a short while ago is a good starting point.
        let recent = now.saturating_sub(self.drop_next_ns) < 16 * t.interval_ns;
        let delta = self.count.saturating_sub(self.last_count);
        self.count = if recent && delta > 1 { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next_ns = now + t.interval_of(self.count);
        true
    }

    /// Records that the packet to be dropped was marked instead, and leaves (RFC 8289, 5.5; Linux,
    /// codel_dequeue).
    fn marked(&mut self, t: &Target) {
        if std::mem::take(&mut self.scheduled) {
            self.drop_next_ns += t.interval_of(self.count);
        }
    }

    /// Records that the queue was found empty.
    fn found_empty(&mut self) {
        self.first_above_ns = 0;
        self.dropping = false;
        self.scheduled = false;
    }

    /// Records packets dropped because of a limit: the flow needs a stronger signal.
    pub fn dropped_at_limit(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    /// Removes the next packet of a queue that CoDel lets pass, possibly marked. The backlog is that
    /// of all queues, as in Linux.
    pub fn pull(
        &mut self,
        t: &Target,
        queues: &mut Queues,
        queue: usize,
        now: u64,
        stats: &mut ChannelResult,
    ) -> Option<Box<Packet>> {
        while let Some((since_ns, mut packet)) = queues.pop(queue) {
            if !self.drops(t, now, now - since_ns, queues.bytes()) {
                return Some(packet);
            }
            if mark(stats, &mut packet) {
                self.marked(t);
                return Some(packet);
            }
            count_drop(stats, &packet);
        }
        self.found_empty();
        None
    }

    /// Whether every packet of the last interval waited too long.
    fn is_above(&mut self, t: &Target, now: u64, sojourn_ns: u64, backlog_bytes: u64) -> bool {
        if sojourn_ns < t.target_ns || backlog_bytes <= t.packet_bytes {
            self.first_above_ns = 0;
            return false;
        }
        if self.first_above_ns == 0 {
            self.first_above_ns = now + t.interval_ns;
            return false;
        }
        now >= self.first_above_ns
    }
}

/// A FIFO with CoDel.
pub struct CodelQueue {
    fifo: DropTail,
    codel: Codel,
    target: Target,
}

impl CodelQueue {
    pub fn new(pipe: &ChannelSpec, mtu_bytes: u32) -> Self {
        let target = Target::new(pipe, frame_bytes(mtu_bytes));
        CodelQueue { fifo: DropTail::new(pipe, 1), codel: Codel::default(), target }
    }
}

impl Qdisc for CodelQueue {
    fn enqueue(&mut self, now: u64, packet: Box<Packet>, is_idle: bool, stats: &mut ChannelResult) {
        self.fifo.enqueue(now, packet, is_idle, stats);
    }

    fn dequeue(&mut self, now: u64, stats: &mut ChannelResult) -> Option<Box<Packet>> {
        self.codel.pull(&self.target, &mut self.fifo.queues, 0, now, stats)
    }

    fn queues(&self) -> &Queues {
        &self.fifo.queues
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn target() -> Target {
        Target { target_ns: TARGET_NS, interval_ns: INTERVAL_NS, packet_bytes: 1514 }
    }

    /// Times of the drops among packets that leave every millisecond after the given sojourn time.
    fn drops(codel: &mut Codel, from_ms: u64, to_ms: u64, sojourn_ns: u64, backlog: u64) -> Vec<u64> {
        (from_ms..to_ms)
            .map(|ms| ms * MS)
            .filter(|&now| {
                let mut dropped = false;
                while codel.drops(&target(), now, sojourn_ns, backlog) {
                    dropped = true;
                }
                dropped
            })
            .collect()
    }

    #[test]
    fn a_standing_queue_is_cut_at_interval_over_the_root_of_count() {
        // First above the target at 1 s, so the first drop is 100 ms later; drop n + 1 then follows
        // drop n after 100 ms / sqrt(n), seen at the next packet.
        let mut due = 1_100.0;
        let mut expected = Vec::new();
        for n in 1..200 {
            expected.push((due * 1e6 / 1e6_f64).ceil() as u64 * MS);
            due += 100.0 / f64::from(n).sqrt();
        }
        expected.retain(|&at| at < 3_000 * MS);
        assert!(expected.len() > 80);
        assert_eq!(drops(&mut Codel::default(), 1_000, 3_000, 6 * MS, 100_000), expected);
    }

    #[test]
    fn a_standing_queue_is_marked_at_the_times_at_which_it_would_be_cut() {
        // codel_dequeue: a packet that leaves has only one mark, however many are due.
        let t = target();
        let mut codel = Codel::default();
        let marks: Vec<u64> = (1_000..1_400)
            .filter(|ms| {
                let drops = codel.drops(&t, ms * MS, 6 * MS, 100_000);
                if drops {
                    codel.marked(&t);
                }
                drops
            })
            .collect();
        // 1100, then 100 / sqrt(n) later each: 1200, 1270.7, 1328.4, 1378.4.
        assert_eq!(marks, [1_100, 1_200, 1_271, 1_329, 1_379]);
    }

    #[test]
    fn neither_a_short_wait_nor_a_backlog_of_one_packet_is_a_queue() {
        let mut codel = Codel::default();
        assert!(drops(&mut codel, 1_000, 5_000, 5 * MS - 1, 100_000).is_empty());
        assert!(drops(&mut codel, 5_000, 9_000, 500 * MS, 1514).is_empty());
        assert_eq!(drops(&mut codel, 9_000, 9_101, 500 * MS, 1515), [9_100 * MS]);
    }

    #[test]
    fn a_queue_that_comes_back_soon_is_cut_at_the_rate_reached() {
        let mut codel = Codel::default();
        let first = drops(&mut codel, 1_000, 2_000, 6 * MS, 100_000);
        codel.found_empty();
        let again = drops(&mut codel, 2_050, 2_350, 6 * MS, 100_000);
        assert_eq!(again[0], 2_150 * MS, "after an interval, as any queue");
        let apart = again[1] - again[0];
        // There were `first.len()` drops; count from the second, because the first does not
        // increase the count.
        let reached = 100e6 / ((first.len() - 1) as f64).sqrt();
        assert!((apart as f64 - reached).abs() <= 1e6, "{apart} for {reached}");
    }

    #[test]
    fn several_drops_are_due_at_once_after_a_long_packet() {
        let mut codel = Codel::default();
        drops(&mut codel, 1_000, 1_200, 6 * MS, 100_000);
        let late = 1_500 * MS;
        let mut dropped = 0;
        while codel.drops(&target(), late, 6 * MS, 100_000) {
            dropped += 1;
        }
        // Due at 1200 ms and then after 71, 58, 50, 45 and 41 ms: six until 1465 ms.
        assert_eq!(dropped, 6);
    }
}
