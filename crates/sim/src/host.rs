// SPDX-License-Identifier: MIT
//! A host's processor: one server with one queue for what arrives and what leaves, with
//! aggregation of neighbouring segments (GRO) before they are served.

use crate::packet::Packet;
use crate::result::HostResult;
use crate::scenario::Host as Costs;
use std::collections::VecDeque;

pub enum Work {
    /// Handed to TCP when done.
    Received(Packet),
    /// Put on the link when done.
    Sent(Packet),
}

struct Item {
    start_ns: u64,
    done_ns: u64,
    work: Work,
}

pub struct Host {
    costs: Costs,
    line: VecDeque<Item>,
    received_waiting: usize,
    free_ns: u64,
    /// Arrivals gathered by interrupt moderation are handed up then.
    gathered_ns: u64,
    busy_ns: u64,
    dropped: u64,
    active: bool,
}

/// Packets that wait for the processor when the scenario names no limit (Linux
/// `net.core.netdev_max_backlog`).
const BACKLOG_PACKETS: u32 = 1000;

impl Host {
    pub fn new(costs: &Costs) -> Self {
        let mut costs = costs.clone();
        if costs.backlog_packets == 0 {
            costs.backlog_packets = BACKLOG_PACKETS;
        }
        let paid = costs.data_received_ns + costs.data_sent_ns + costs.ack_received_ns + costs.ack_sent_ns;
        let active = paid > 0 || costs.gro_max_bytes > 0 || costs.gro_window_ns > 0;
        Host {
            costs,
            line: VecDeque::new(),
            received_waiting: 0,
            free_ns: 0,
            gathered_ns: 0,
            busy_ns: 0,
            dropped: 0,
            active,
        }
    }

    /// False: infinitely fast, packets need not pass through.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// Work arrives. Some(time): the line was empty and its head is done then.
    pub fn submit(&mut self, now: u64, work: Work) -> Option<u64> {
        let (cost, ready) = match &work {
            Work::Received(p) => {
                if self.merge(now, p) {
                    return None;
                }
                if self.received_waiting >= self.costs.backlog_packets as usize {
                    self.dropped += 1;
                    return None;
                }
                self.received_waiting += 1;
                if self.costs.gro_window_ns > 0 && now >= self.gathered_ns {
                    self.gathered_ns = now + self.costs.gro_window_ns;
                }
                let cost =
                    if p.is_pure_ack() { self.costs.ack_received_ns } else { self.costs.data_received_ns };
                (cost, now.max(self.gathered_ns))
            }
            Work::Sent(p) => {
                let cost = if p.is_pure_ack() { self.costs.ack_sent_ns } else { self.costs.data_sent_ns };
                (cost, now)
            }
        };
        let start_ns = ready.max(self.free_ns);
        let done_ns = start_ns + cost;
        self.free_ns = done_ns;
        self.busy_ns += cost;
        let was_empty = self.line.is_empty();
        self.line.push_back(Item { start_ns, done_ns, work });
        was_empty.then_some(done_ns)
    }

    /// Appends `p` to the last waiting item when both are neighbours of one flow.
    fn merge(&mut self, now: u64, p: &Packet) -> bool {
        if self.costs.gro_max_bytes == 0 || p.len == 0 {
            return false;
        }
        let Some(Item { start_ns, work: Work::Received(tail), .. }) = self.line.back_mut() else {
            return false;
        };
        let neighbours = tail.flow == p.flow
            && tail.down == p.down
            && tail.len > 0
            && tail.end() == p.seq
            // PSH and FIN end an aggregate; a short segment may only end one.
            && !tail.psh
            && !tail.fin
            && tail.len % u32::from(tail.segments) == 0
            && p.len <= tail.len / u32::from(tail.segments)
            && tail.sack.is_none()
            && p.sack.is_none();
        if !neighbours || *start_ns <= now || tail.len + p.len > self.costs.gro_max_bytes {
            return false;
        }
        tail.len += p.len;
        tail.segments += p.segments;
        tail.psh = p.psh;
        tail.fin = p.fin;
        tail.ack = p.ack;
        tail.wnd_bytes = p.wnd_bytes;
        tail.sent_ns = p.sent_ns;
        tail.echo_ns = p.echo_ns;
        true
    }

    /// The head of the line is done; and when the next one will be.
    pub fn complete(&mut self) -> (Option<Work>, Option<u64>) {
        let Some(item) = self.line.pop_front() else { return (None, None) };
        if matches!(item.work, Work::Received(_)) {
            self.received_waiting -= 1;
        }
        (Some(item.work), self.line.front().map(|i| i.done_ns))
    }

    pub fn finish(&self, duration_ns: u64, delivered_bytes: u64) -> HostResult {
        HostResult {
            cpu_busy_ns: self.busy_ns,
            cpu_share: self.busy_ns as f64 / duration_ns.max(1) as f64,
            cpu_s_per_gb: if delivered_bytes == 0 {
                0.0
            } else {
                self.busy_ns as f64 / delivered_bytes as f64
            },
            dropped_backlog: self.dropped,
        }
    }
}
