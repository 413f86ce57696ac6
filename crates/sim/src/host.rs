// SPDX-License-Identifier: MIT
//! A host's processor: one server, a backlog of what arrives, with aggregation of neighbouring
//! segments (GRO) while they wait. What TCP sends in answer to an arrival is sent before the next
//! arrival is looked at, as a kernel does that runs to completion.

use crate::packet::{Packet, Parcel};
use crate::result::HostResult;
use crate::scenario::Host as Costs;
use crate::sender::NEVER;
use std::collections::VecDeque;

pub enum Work {
    /// Handed to TCP when done.
    Received(Parcel),
    /// Put on the link when done.
    Sent(Parcel),
}

pub struct Host {
    costs: Costs,
    /// What TCP sends is sent by whoever made it send, before the next arrival is looked at.
    sent: VecDeque<Parcel>,
    received: VecDeque<Parcel>,
    in_service: Option<Work>,
    /// When the work in service is done, or the gathered arrivals are handed up; NEVER: idle.
    wake_ns: u64,
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
            sent: VecDeque::new(),
            received: VecDeque::new(),
            in_service: None,
            wake_ns: NEVER,
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

    /// Work arrives. Some(time): call `wake` then.
    pub fn submit(&mut self, now: u64, work: Work) -> Option<u64> {
        match work {
            Work::Received(p) => {
                if self.merge(&p) {
                    return None;
                }
                if self.received.len() >= self.costs.backlog_packets as usize {
                    self.dropped += 1;
                    return None;
                }
                if self.costs.gro_window_ns > 0 && self.received.is_empty() && now >= self.gathered_ns {
                    self.gathered_ns = now + self.costs.gro_window_ns;
                }
                self.received.push_back(p);
            }
            Work::Sent(p) => self.sent.push_back(p),
        }
        self.serve(now)
    }

    /// Takes up work if the processor is free.
    fn serve(&mut self, now: u64) -> Option<u64> {
        if self.in_service.is_some() {
            return None;
        }
        let c = &self.costs;
        let (work, cost) = if let Some(p) = self.sent.pop_front() {
            let cost = if p.is_pure_ack() { c.ack_sent_ns } else { c.data_sent_ns };
            (Work::Sent(p), cost)
        } else if self.received.is_empty() {
            return None;
        } else if now < self.gathered_ns {
            self.wake_ns = self.gathered_ns;
            return Some(self.wake_ns);
        } else {
            let p = self.received.pop_front()?;
            let cost = if p.is_pure_ack() { c.ack_received_ns } else { c.data_received_ns };
            (Work::Received(p), cost)
        };
        self.busy_ns += cost;
        self.in_service = Some(work);
        self.wake_ns = now + cost;
        Some(self.wake_ns)
    }

    /// Appends `p` to the last waiting item when both are neighbours of one flow.
    fn merge(&mut self, p: &Packet) -> bool {
        if self.costs.gro_max_bytes == 0 || p.len == 0 {
            return false;
        }
        let Some(tail) = self.received.back_mut() else { return false };
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
        if !neighbours || tail.len + p.len > self.costs.gro_max_bytes {
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

    /// The time asked for has come: the work that is done, and when to come again.
    pub fn wake(&mut self, now: u64) -> (Option<Work>, Option<u64>) {
        if now != self.wake_ns {
            // Asked for before something more urgent came.
            return (None, None);
        }
        self.wake_ns = NEVER;
        let done = self.in_service.take();
        (done, self.serve(now))
    }

    pub fn finish(&self, duration_ns: u64, delivered_bytes: u64) -> HostResult {
        // Work is counted when it is taken up: what is still to be done did not happen.
        let to_come = if self.in_service.is_some() { self.wake_ns.saturating_sub(duration_ns) } else { 0 };
        let busy_ns = self.busy_ns - to_come;
        HostResult {
            cpu_busy_ns: busy_ns,
            cpu_share: busy_ns as f64 / duration_ns.max(1) as f64,
            cpu_s_per_gb: if delivered_bytes == 0 { 0.0 } else { busy_ns as f64 / delivered_bytes as f64 },
            dropped_backlog: self.dropped,
        }
    }
}
