// SPDX-License-Identifier: MIT
//! A host's processor: one server with a backlog of arrivals, which aggregates neighbouring
//! segments (GRO) while they wait. Packets that TCP sends in answer to an arrival are sent before
//! the next arrival is processed, as in a kernel that runs to completion. The application comes
//! last: it gets its turn when no arrival waits, or after many were handled since it asked.

use crate::endpoint::EndpointId;
use crate::packet::{Flags, Packet};
use crate::result::HostResult;
use crate::scenario::HostSpec;
use crate::sender::NEVER;
use std::collections::{HashMap, VecDeque};

pub enum Work {
    /// An arrival, passed to TCP when done.
    Received(Box<Packet>),
    /// A packet, put on the link when done.
    Sent(Box<Packet>),
    /// An application's turn: it reads and writes when done.
    Turn(EndpointId),
}

/// Bytes that an application reads and writes in its turn.
pub struct TurnBytes {
    pub read: u64,
    pub written: u64,
}

/// A processor's interface to the flows that it works for.
pub trait Flows {
    /// Bytes that an application would read and write in its turn now.
    fn turn(&self, who: EndpointId) -> TurnBytes;
}

pub struct Host {
    costs: HostSpec,
    /// Packets to send before the next arrival is processed.
    sent: VecDeque<Box<Packet>>,
    received: VecDeque<Box<Packet>>,
    /// Applications that requested a turn, and the arrivals handled since the last turn.
    asking: VecDeque<EndpointId>,
    handled: u32,
    /// The writer whose turn it is, and the bytes that it may still write before another
    /// application's turn.
    writing: Option<(EndpointId, u64)>,
    /// Highest acknowledgment number that arrived, by flow; empty unless acknowledged data has a
    /// cost.
    acknowledged: HashMap<u32, u64>,
    in_service: Option<Work>,
    /// Time at which the work in service is done, or the gathered arrivals are delivered; NEVER:
    /// idle.
    wake_ns: u64,
    /// Time at which arrivals gathered by interrupt moderation are delivered.
    gathered_ns: u64,
    /// Processor time of policies that were asked, not yet charged: the next work takes longer by it.
    asked_ns: u64,
    busy_ns: u64,
    dropped: u64,
    active: bool,
}

impl Host {
    pub fn new(costs: &HostSpec) -> Self {
        let costs = costs.clone();
        let active = costs.is_paid() || costs.gro_max_bytes > 0 || costs.gro_window_ns > 0;
        Host {
            costs,
            sent: VecDeque::new(),
            received: VecDeque::new(),
            asking: VecDeque::new(),
            handled: 0,
            writing: None,
            acknowledged: HashMap::new(),
            in_service: None,
            wake_ns: NEVER,
            gathered_ns: 0,
            asked_ns: 0,
            busy_ns: 0,
            dropped: 0,
            active,
        }
    }

    /// Whether it takes time; if not, packets need not pass through it.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// Processor time of a turn that reads and writes this many bytes.
    fn turn_ns(&mut self, who: EndpointId, bytes: TurnBytes) -> u64 {
        let p = &self.costs.process;
        let mut call_ns = if bytes.read > 0 { p.read_ns } else { 0 };
        if bytes.written > 0 {
            let left = match self.writing {
                Some((writer, left)) if writer == who && left > 0 => left,
                _ => {
                    call_ns += p.write_ns;
                    p.turn_bytes
                }
            };
            self.writing = Some((who, left.saturating_sub(bytes.written)));
        } else {
            self.writing = None;
        }
        call_ns + (bytes.read * p.read_kib_ns + bytes.written * p.write_kib_ns) / 1024
    }

    /// Whether this writer continues before another application gets its turn.
    fn goes_on(&self, who: EndpointId) -> bool {
        self.writing.is_some_and(|(writer, left)| writer == who && left > 0)
    }

    /// Whether reading takes a turn.
    pub fn charges_reading(&self) -> bool {
        self.costs.process.read_ns + self.costs.process.read_kib_ns > 0
    }

    /// Whether bulk writing takes a turn.
    pub fn charges_writing(&self) -> bool {
        self.costs.process.write_ns + self.costs.process.write_kib_ns > 0
    }

    /// Whether questions to a policy take time.
    #[inline]
    pub fn charges_questions(&self) -> bool {
        self.costs.policy_ns > 0
    }

    /// A policy was asked so many times. The answers are known at once; the time that they take is
    /// added to the processor's next work.
    pub fn charge_questions(&mut self, count: u16) {
        self.asked_ns += u64::from(count) * self.costs.policy_ns;
    }

    /// Adds work. Some(time): call `wake` at that time.
    pub fn submit(&mut self, now: u64, work: Work, flows: &impl Flows) -> Option<u64> {
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
            Work::Turn(who) if self.goes_on(who) => self.asking.push_front(who),
            Work::Turn(who) => self.asking.push_back(who),
        }
        self.serve(now, flows)
    }

    /// Continues after a turn whose resulting work was submitted.
    pub fn resume(&mut self, now: u64, flows: &impl Flows) -> Option<u64> {
        if self.costs.process.turn_bytes == 0 {
            return None; // no work waited for the turn's result
        }
        self.serve(now, flows)
    }

    /// Starts work if the processor is free.
    fn serve(&mut self, now: u64, flows: &impl Flows) -> Option<u64> {
        if self.in_service.is_some() {
            return None;
        }
        let (work, cost) = if let Some(p) = self.sent.pop_front() {
            let c = &self.costs;
            let cost = if p.is_pure_ack() { c.ack_sent_ns } else { c.data_sent_ns };
            (Work::Sent(p), cost)
        } else if let Some(who) = self.next_turn(now) {
            (Work::Turn(who), self.turn_ns(who, flows.turn(who)))
        } else if self.received.is_empty() {
            return None;
        } else if now < self.gathered_ns {
            self.wake_ns = self.gathered_ns;
            return Some(self.wake_ns);
        } else {
            let p = self.received.pop_front()?;
            self.handled += u32::from(!self.asking.is_empty());
            let received_ns =
                if p.is_pure_ack() { self.costs.ack_received_ns } else { self.costs.data_received_ns };
            let cost = received_ns + self.acknowledging_ns(&p);
            (Work::Received(p), cost)
        };
        let cost = cost + std::mem::take(&mut self.asked_ns);
        self.busy_ns += cost;
        self.in_service = Some(work);
        self.wake_ns = now + cost;
        Some(self.wake_ns)
    }

    /// Processor time of the data that this packet acknowledges for the first time.
    fn acknowledging_ns(&mut self, p: &Packet) -> u64 {
        let kib_ns = self.costs.acknowledged_kib_ns;
        if kib_ns == 0 {
            return 0;
        }
        let highest = self.acknowledged.entry(p.flow).or_insert(0);
        let covered = p.ack.saturating_sub(*highest);
        *highest += covered;
        covered * kib_ns / 1024
    }

    /// The application whose turn it is.
    fn next_turn(&mut self, now: u64) -> Option<EndpointId> {
        let arrivals_wait = !self.received.is_empty() && now >= self.gathered_ns;
        if arrivals_wait && self.handled < self.costs.process.turn_packets {
            return None;
        }
        let who = self.asking.pop_front()?;
        self.handled = 0;
        Some(who)
    }

    /// Appends `p` to the last waiting item if both are neighbours of one flow.
    fn merge(&mut self, p: &Packet) -> bool {
        if self.costs.gro_max_bytes == 0 || p.len == 0 {
            return false;
        }
        let Some(tail) = self.received.back_mut() else { return false };
        let neighbours = tail.flow == p.flow
            && tail.down == p.down
            && tail.len > 0
            && tail.end() == p.seq
            // PSH and FIN end an aggregate; a short segment can only be the last one.
            && !tail.has(Flags::PSH)
            && !tail.has(Flags::FIN)
            // Linux, tcp_gro_receive and inet_gro_receive.
            && !p.has(Flags::CWR)
            && !tail.has(Flags::CWR)
            && tail.has(Flags::ECE) == p.has(Flags::ECE)
            && tail.ecn == p.ecn
            && tail.len % u32::from(tail.segments) == 0
            && p.len <= tail.segment_bytes()
            && tail.sack.is_none()
            && p.sack.is_none();
        if !neighbours || tail.len + p.len > self.costs.gro_max_bytes {
            return false;
        }
        tail.len += p.len;
        tail.segments += p.segments;
        tail.flags.set(Flags::PSH, p.has(Flags::PSH));
        tail.flags.set(Flags::FIN, p.has(Flags::FIN));
        tail.ack = p.ack;
        tail.wnd_bytes = p.wnd_bytes;
        tail.sent_ns = p.sent_ns;
        tail.echo_ns = p.echo_ns;
        true
    }

    /// The requested time has come: returns the finished work, and when to call again.
    pub fn wake(&mut self, now: u64, flows: &impl Flows) -> (Option<Work>, Option<u64>) {
        if now != self.wake_ns {
            // Requested before something more urgent arrived.
            return (None, None);
        }
        self.wake_ns = NEVER;
        let done = self.in_service.take();
        if let Some(Work::Turn(who)) = done {
            if self.goes_on(who) && self.received.is_empty() {
                // It requests another turn when it has written.
                return (done, None);
            }
        }
        (done, self.serve(now, flows))
    }

    pub fn finish(&self, duration_ns: u64, delivered_bytes: u64) -> HostResult {
        // Work is counted when it starts: subtract the part that has not taken place.
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
