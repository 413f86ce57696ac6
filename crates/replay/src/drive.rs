// SPDX-License-Identifier: MIT
//! Drives one policy, or the capture's own receiver, over a stream and records the outcome.

use crate::random::SplitMix64;
use crate::result::{AckPoint, Trace};
use crate::stream::{clamp, Data, Sent, Step, Stream, What};
use ackwise_core::{flag, Action, Conn, Event, EventKind, Reason, Resolved, DELAY_MAX_NS, NEVER_NS};
use std::collections::{BTreeMap, VecDeque};

/// The outcome of a receiver on a stream.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub acks: u64,
    pub piggybacked: u64,
    pub by_reason: BTreeMap<String, u64>,
    /// (latency in nanoseconds, number of segments with it).
    pub latencies: Vec<(u64, u64)>,
    pub latency_ns: u128,
    pub closing_ack: bool,
    pub trace: Option<Trace>,
}

const CLOSING: &str = "end-of-capture";
const PIGGYBACK: &str = "piggyback";

impl Account {
    fn new(stream: &Stream, trace: bool) -> Self {
        Account { trace: trace.then(|| Trace::new(stream.span_ns())), ..Account::default() }
    }

    fn covered(&mut self, arrived_ns: u64, now_ns: u64, segments: u64) {
        let latency = now_ns.saturating_sub(arrived_ns);
        self.latency_ns += u128::from(latency) * u128::from(segments);
        match self.latencies.last_mut() {
            Some((last, count)) if *last == latency => *count += segments,
            _ => self.latencies.push((latency, segments)),
        }
    }

    fn ack(&mut self, time_ns: u64, ack: u64, segments: u64, reason: &'static str) {
        if reason == PIGGYBACK {
            self.piggybacked += 1;
        } else {
            self.acks += 1;
            match self.by_reason.get_mut(reason) {
                Some(count) => *count += 1,
                None => drop(self.by_reason.insert(reason.to_owned(), 1)),
            }
        }
        if let Some(trace) = &mut self.trace {
            trace.add(AckPoint { time_ns, ack, segments, reason });
        }
    }
}

/// A policy on its host, and what surrounds both.
pub(crate) struct Setting<'a> {
    pub policy: &'a Resolved,
    pub reader_lag_ns: u64,
    pub ack_delay_max_ns: u64,
    pub seed: u64,
    pub trace: bool,
}

/// Runs a policy over the stream.
pub(crate) fn policy(stream: &Stream, setting: &Setting<'_>) -> Account {
    let mut random = SplitMix64::new(setting.seed);
    let (start_ns, end_ns) = stream.span_ns();
    let mut event = Event::new(EventKind::AckSent, start_ns);
    event.random = random.next_u32();
    event.rcv_mss_bytes = stream.mss_bytes;
    event.mss_max_bytes = stream.mss_bytes;
    event.delay_max_us = (setting.ack_delay_max_ns.min(DELAY_MAX_NS) / 1000) as u32;
    let mut driver = Driver {
        conn: setting.policy.connect(&event),
        random,
        account: Account::new(stream, setting.trace),
        pending: Vec::new(),
        deadline_ns: NEVER_NS,
        rcv_nxt: stream.first_rcv_nxt,
        acked: stream.first_rcv_nxt,
        wnd_bytes: stream.first_wnd_bytes,
        template: event,
        unread_bytes: 0,
        data_seen: false,
        sack: stream.sack,
    };
    driver.template.wnd_next_bytes = stream.first_wnd_bytes;
    driver.template.wnd_max_bytes = stream.first_wnd_bytes;
    let mut reads: VecDeque<(u64, u32)> = VecDeque::new();
    let mut steps = stream.steps.iter().peekable();
    loop {
        let step_ns = steps.peek().map_or(NEVER_NS, |s| s.time_ns);
        let read_ns = reads.front().map_or(NEVER_NS, |r| r.0);
        // Timers run before packets of the same instant, as softirqs do; reads come last.
        if driver.deadline_ns != NEVER_NS && driver.deadline_ns <= step_ns.min(read_ns) {
            driver.deadline();
        } else if steps.peek().is_some() && step_ns <= read_ns {
            let Some(step) = steps.next() else { break };
            if let Some(bytes) = driver.step(step) {
                reads.push_back((step.time_ns.saturating_add(setting.reader_lag_ns), bytes));
                if setting.reader_lag_ns == 0 {
                    // The reader wakes before the next packet is processed.
                    reads.pop_front();
                    driver.read(step.time_ns, bytes);
                }
            }
        } else if let Some((time_ns, bytes)) = reads.pop_front() {
            driver.read(time_ns, bytes);
        } else {
            break;
        }
    }
    driver.close(end_ns)
}

struct Driver {
    conn: Conn,
    random: SplitMix64,
    account: Account,
    /// (arrival time, segments) of data that no ACK has reported.
    pending: Vec<(u64, u32)>,
    deadline_ns: u64,
    rcv_nxt: u64,
    acked: u64,
    /// Window advertised by the last ACK.
    wnd_bytes: u32,
    /// Fields common to all events: windows, estimates, the open hole.
    template: Event,
    unread_bytes: u32,
    data_seen: bool,
    sack: bool,
}

impl Driver {
    fn event(&mut self, kind: EventKind, now_ns: u64) -> Event {
        let now_ns = now_ns.max(self.template.now_ns);
        self.template.now_ns = now_ns;
        Event {
            kind,
            random: self.random.next_u32(),
            unacked_bytes: clamp(self.rcv_nxt - self.acked),
            unread_bytes: self.unread_bytes,
            wnd_bytes: self.wnd_bytes,
            ..self.template
        }
    }

    fn decide(&mut self, event: &Event) {
        let verdict = self.conn.decide(event);
        match verdict.action {
            Action::SendNow => self.send(event.now_ns, verdict.reason),
            Action::WaitUntil(deadline_ns) => self.deadline_ns = deadline_ns,
            Action::Nothing => self.deadline_ns = NEVER_NS,
        }
    }

    fn send(&mut self, now_ns: u64, reason: Reason) {
        let segments = self.cover(now_ns);
        self.account.ack(now_ns, self.rcv_nxt, segments, reason.label());
        self.sent(now_ns, 0);
    }

    /// Reports everything pending in an ACK; returns the number of segments.
    fn cover(&mut self, now_ns: u64) -> u64 {
        let mut segments = 0;
        for (arrived_ns, n) in self.pending.drain(..) {
            self.account.covered(arrived_ns, now_ns, n.into());
            segments += u64::from(n);
        }
        segments
    }

    fn sent(&mut self, now_ns: u64, flags: u16) {
        self.acked = self.rcv_nxt;
        self.wnd_bytes = self.template.wnd_next_bytes;
        let mut event = self.event(EventKind::AckSent, now_ns);
        event.flags |= flags;
        self.deadline_ns = match self.conn.decide(&event).action {
            Action::WaitUntil(deadline_ns) => deadline_ns,
            // An ACK that just left leaves no other due.
            Action::SendNow | Action::Nothing => NEVER_NS,
        };
    }

    fn deadline(&mut self) {
        let now_ns = self.deadline_ns.max(self.template.now_ns);
        let event = self.event(EventKind::Deadline, now_ns);
        self.decide(&event);
    }

    /// Processes a step; returns the bytes that became readable.
    fn step(&mut self, step: &Step) -> Option<u32> {
        self.rcv_nxt = step.rcv_nxt;
        self.template.wnd_next_bytes = step.wnd_bytes;
        self.template.wnd_max_bytes = step.wnd_max_bytes;
        self.template.flags = if step.hole_open { flag::HOLE_OPEN } else { 0 };
        match step.what {
            What::Data(data) => {
                self.data(step.time_ns, &data);
                (data.readable_bytes > 0).then_some(data.readable_bytes)
            }
            What::Sent(Sent { piggyback, .. }) => {
                // ACKs sent before the first data are the receiver's own.
                if !self.data_seen {
                    self.wnd_bytes = step.wnd_bytes;
                }
                if piggyback {
                    let segments = self.cover(step.time_ns);
                    if segments > 0 {
                        self.account.ack(step.time_ns, self.rcv_nxt, segments, PIGGYBACK);
                    }
                    self.sent(step.time_ns, flag::PIGGYBACK);
                }
                None
            }
        }
    }

    fn data(&mut self, now_ns: u64, data: &Data) {
        self.data_seen = true;
        self.pending.push((now_ns, data.segments));
        self.unread_bytes = self.unread_bytes.saturating_add(data.readable_bytes);
        self.template.rcv_mss_bytes = data.rcv_mss_bytes.max(1);
        self.template.rtt_us = data.rtt_us;
        let mut event = self.event(EventKind::Data, now_ns);
        event.bytes = data.payload_bytes;
        event.segments = u16::try_from(data.segments).unwrap_or(u16::MAX);
        event.seq = data.seq;
        event.sack_delay_us = if self.sack { self.conn.sack_delay_us(true) } else { 0 };
        event.flags |= data.flags;
        self.decide(&event);
    }

    fn read(&mut self, now_ns: u64, bytes: u32) {
        self.unread_bytes = self.unread_bytes.saturating_sub(bytes);
        let mut event = self.event(EventKind::AppRead, now_ns);
        event.bytes = bytes;
        self.decide(&event);
    }

    /// A policy may wait forever: data still unacknowledged at the end of the stream counts as
    /// covered by one closing ACK.
    fn close(mut self, end_ns: u64) -> Account {
        if !self.pending.is_empty() {
            let segments = self.cover(end_ns);
            self.account.ack(end_ns, self.rcv_nxt, segments, CLOSING);
            self.account.closing_ack = true;
        }
        self.account
    }
}

/// The ACKs that the capture's receiver sent; None if the capture does not contain its packets.
///
/// The reasons are those visible from outside: "advancing", "duplicate", "window-update". ACKs
/// before the first data and answers to keep-alives (nothing new to report) do not count.
pub(crate) fn captured(stream: &Stream, trace: bool) -> Option<Account> {
    let is_ack = |s: &Step| matches!(s.what, What::Sent(sent) if sent.pure || sent.piggyback);
    if !stream.steps.iter().any(is_ack) {
        return None;
    }
    let mut account = Account::new(stream, trace);
    let mut in_order: VecDeque<Waiting> = VecDeque::new();
    // Data above a hole or repeated: any ACK reports it (RFC 2018, RFC 2883).
    let mut others: Vec<(u64, u64)> = Vec::new();
    let mut highest = stream.first_rcv_nxt;
    let mut last_wnd_bytes = stream.first_wnd_bytes;
    let mut data_seen = false;
    for step in &stream.steps {
        let sent = match step.what {
            What::Data(data) => {
                data_seen = true;
                let segments = u64::from(data.segments);
                if data.end > highest && data.end <= step.rcv_nxt {
                    let (start, end) = (data.start, data.end);
                    in_order.push_back(Waiting { arrived_ns: step.time_ns, start, end, segments });
                } else {
                    others.push((step.time_ns, segments));
                }
                continue;
            }
            What::Sent(sent) => sent,
        };
        let mut segments = 0;
        if data_seen && (sent.pure || sent.piggyback) {
            for (arrived_ns, n) in others.drain(..) {
                account.covered(arrived_ns, step.time_ns, n);
                segments += n;
            }
            segments += cover_in_order(&mut in_order, sent.ack, stream.mss_bytes, |at, n| {
                account.covered(at, step.time_ns, n);
            });
            let reason = if sent.piggyback {
                (segments > 0).then_some(PIGGYBACK)
            } else if sent.ack > highest {
                Some("advancing")
            } else if segments > 0 {
                Some("duplicate")
            } else {
                (step.wnd_bytes != last_wnd_bytes).then_some("window-update")
            };
            if let Some(reason) = reason {
                account.ack(step.time_ns, sent.ack, segments, reason);
            }
        }
        highest = highest.max(sent.ack);
        last_wnd_bytes = step.wnd_bytes;
    }
    let end_ns = stream.span_ns().1;
    let left: Vec<_> =
        others.into_iter().chain(in_order.iter().map(|w| (w.arrived_ns, w.segments))).collect();
    if !left.is_empty() {
        let segments = left.iter().map(|l| l.1).sum();
        for (arrived_ns, n) in left {
            account.covered(arrived_ns, end_ns, n);
        }
        let rcv_nxt = stream.steps.last().map_or(0, |s| s.rcv_nxt);
        account.ack(end_ns, rcv_nxt, segments, CLOSING);
        account.closing_ack = true;
    }
    Some(account)
}

struct Waiting {
    arrived_ns: u64,
    start: u64,
    end: u64,
    /// Segments not reported yet: the last ones of the packet.
    segments: u64,
}

/// Removes whole segments that `ack` covers from the queue; returns their number.
fn cover_in_order(
    queue: &mut VecDeque<Waiting>,
    ack: u64,
    mss_bytes: u32,
    mut covered: impl FnMut(u64, u64),
) -> u64 {
    let mut segments = 0;
    while let Some(front) = queue.front_mut() {
        if front.end <= ack {
            covered(front.arrived_ns, front.segments);
            segments += front.segments;
            queue.pop_front();
            continue;
        }
        // A packet that was merged before the capture point may be acknowledged in pieces.
        let pieces =
            (ack.saturating_sub(front.start) / u64::from(mss_bytes)).min(front.segments.saturating_sub(1));
        if pieces > 0 {
            covered(front.arrived_ns, pieces);
            segments += pieces;
            front.segments -= pieces;
            front.start += pieces * u64::from(mss_bytes);
        }
        break;
    }
    segments
}
