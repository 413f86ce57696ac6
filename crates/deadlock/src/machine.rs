// SPDX-License-Identifier: MIT
//! State machine of both ends and the wires between them; each step is the earlier of an arrival
//! and a timer.

use crate::pair::{Call, Pair};
use crate::receiver::{Ack, Receiver};
use crate::sender::{Segment, Sender};
use ackwise_core::{Reason, Resolved};
use serde::Serialize;
use std::collections::VecDeque;

/// Why both ends wait: the paper's classes (spec page 5) and two more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum StallClass {
    /// Even the whole content of the send buffer would cause no ACK.
    I,
    /// A short segment left early, and the remainder is short, too.
    II,
    /// A timer's ACK covered only part of the data, and the remainder is short.
    III,
    /// The last, short segment of a write waits behind the full ones.
    #[serde(rename = "write")]
    Write,
    /// A write waits for the ACK of the write before it, which would come with the answer to both.
    #[serde(rename = "request")]
    Request,
    /// The window is closed, and no ACK announces that it could open.
    #[serde(rename = "window")]
    Window,
}

/// One period that only a timer could end.
#[derive(Clone, Debug, Serialize)]
pub struct Stall {
    pub class: StallClass,
    /// Bytes received when the stall began.
    pub at_bytes: u64,
    /// Time from the last arrival to the timer, nanoseconds.
    pub wait_ns: u64,
    pub end_ns: u64,
    pub reason: &'static str,
    /// Bytes sent but not acknowledged.
    pub outstanding_bytes: u64,
    /// Unsent bytes in the send buffer.
    pub held_bytes: u64,
    /// Free bytes in the send buffer.
    pub room_bytes: u64,
}

/// Record of a walk.
pub struct Walk {
    pub stalls: Vec<Stall>,
    pub pauses: u64,
    pub begin_bytes: u64,
    /// Samples of (bytes received, time).
    marks: Vec<(u64, u64)>,
}

impl Walk {
    pub fn stalls_between(&self, from: u64, to: u64) -> &[Stall] {
        let first = self.stalls.partition_point(|s| s.at_bytes < from);
        let end = self.stalls.partition_point(|s| s.at_bytes < to);
        &self.stalls[first..end]
    }

    /// Bytes received by which a policy must have finished learning: half of the walk.
    pub fn settled(&self, length: u64) -> u64 {
        let end = self.marks.last().map_or(length, |m| m.0).min(length);
        self.begin_bytes + (end - self.begin_bytes.min(end)) / 2
    }

    /// Appends the continuation of this walk.
    pub fn append(&mut self, next: Walk) {
        self.stalls.extend(next.stalls);
        self.marks.extend(next.marks);
        self.pauses += next.pauses;
    }

    pub fn goodput_bps(&self, from: u64) -> f64 {
        let first = self.marks.partition_point(|m| m.0 < from).min(self.marks.len().saturating_sub(2));
        match (self.marks.get(first), self.marks.last()) {
            (Some(a), Some(b)) if b.1 > a.1 => (b.0 - a.0) as f64 * 8e9 / (b.1 - a.1) as f64,
            _ => 0.0,
        }
    }

    /// Whether both walks have the same stalls at the same places.
    pub fn alike(&self, other: &Walk) -> bool {
        let place = |s: &Stall| (s.at_bytes, s.wait_ns);
        self.stalls.iter().map(place).eq(other.stalls.iter().map(place))
    }
}

#[derive(Clone)]
struct Wire {
    delay_ns: u64,
    rate_bps: u64,
    header_bytes: u64,
    free_ns: u64,
}

impl Wire {
    fn arrival_ns(&mut self, now_ns: u64, bytes: u64) -> u64 {
        let wire = bytes + self.header_bytes;
        let takes = (wire * 8_000_000_000).checked_div(self.rate_bps).unwrap_or(0);
        self.free_ns = self.free_ns.max(now_ns) + takes;
        self.free_ns + self.delay_ns
    }
}

#[derive(Clone)]
pub struct Machine {
    write_bytes: u64,
    script: Vec<Call>,
    /// The next call.
    call: usize,
    /// Bytes of the answer that the application waits for.
    awaited: Option<u64>,
    /// Whether that answer is on its way.
    answered: bool,
    now_ns: u64,
    tx: Sender,
    rx: Receiver,
    down: Wire,
    up: Wire,
    data: VecDeque<(u64, Segment)>,
    acks: VecDeque<(u64, Ack)>,
    segments: Vec<Segment>,
    answers: Vec<Ack>,
    /// Whether a timer's ACK left while more data was in flight.
    disturbed: bool,
    /// Bytes received when a timer last fired.
    timer_bytes: u64,
}

impl Machine {
    pub fn new(pair: &Pair, policy: &Resolved, random: u32) -> Self {
        let wire = Wire {
            delay_ns: pair.rtt_ns / 2,
            rate_bps: pair.rate_bps,
            header_bytes: pair.header_bytes.into(),
            free_ns: 0,
        };
        let rx = Receiver::new(pair, policy, random, 0);
        let mut machine = Machine {
            write_bytes: if pair.script.is_empty() { pair.write_bytes } else { 0 },
            script: pair.script.clone(),
            call: 0,
            awaited: None,
            answered: false,
            now_ns: 0,
            tx: Sender::new(pair, rx.window()),
            rx,
            up: wire.clone(),
            down: wire,
            data: VecDeque::new(),
            acks: VecDeque::new(),
            segments: Vec::new(),
            answers: Vec::new(),
            disturbed: false,
            timer_bytes: 0,
        };
        if machine.script.is_empty() {
            machine.tx.write(&mut machine.segments);
        } else {
            machine.run_script();
        }
        machine.dispatch();
        machine
    }

    /// The application goes on until a call has to wait.
    fn run_script(&mut self) {
        while self.awaited.is_none() && !self.tx.is_blocked() {
            let Some(&call) = self.script.get(self.call) else { return };
            self.call = (self.call + 1) % self.script.len();
            match call {
                Call::Write(bytes) => {
                    self.tx.wanted += bytes;
                    self.tx.write(&mut self.segments);
                }
                Call::Read(bytes) => self.awaited = Some(bytes),
            }
        }
        self.answer();
    }

    /// The server answers once it has read all that was written before.
    fn answer(&mut self) {
        let read_all = self.rx.next == self.tx.wanted;
        if let Some(bytes) = self.awaited.filter(|_| read_all && !self.answered) {
            self.answered = true;
            self.rx.answer(self.now_ns, bytes, &mut self.answers);
        }
    }

    /// Period of a free-running timer, whose delay depends on the arrival time of the data. None:
    /// the policy has no such timer.
    pub fn fast_timer_ns(pair: &Pair, policy: &Resolved) -> Option<u64> {
        let mut rx = Receiver::new(pair, policy, 1 << 29, 0);
        let mut beat = |at_ns: u64| {
            rx.on_segment(at_ns, 1, false, &mut Vec::new());
            let due_ns = rx.deadline_ns;
            (due_ns < u64::MAX).then(|| {
                rx.on_deadline(due_ns, &mut Vec::new());
                due_ns
            })
        };
        let first = beat(1_000_003)?;
        let (second, third) = (beat(first + 1_003)?, beat(first + 1_000_000_007)?);
        // A free-running clock keeps its phase, however long ago it started.
        (second > first && (third - first) % (second - first) == 0).then_some(second - first)
    }

    pub fn delivered(&self) -> u64 {
        self.rx.next
    }

    pub fn since_timer(&self) -> u64 {
        self.rx.next - self.timer_bytes
    }

    fn dispatch(&mut self) {
        for s in self.segments.drain(..) {
            let at = self.down.arrival_ns(self.now_ns, s.bytes.into());
            self.data.push_back((at, s));
        }
        for a in self.answers.drain(..) {
            // an answer fills segments: each has a header of its own
            let more = a.answer_bytes.saturating_sub(1) / self.tx.mss() * self.up.header_bytes;
            let at = self.up.arrival_ns(self.now_ns, a.answer_bytes + more);
            self.acks.push_back((at, a));
        }
    }

    /// Continues until `length` bytes were received, or for `events` steps.
    pub fn walk(&mut self, length: u64, events: u64) -> Walk {
        let mut run = Walk {
            stalls: Vec::new(),
            pauses: 0,
            begin_bytes: self.rx.next,
            marks: vec![(self.rx.next, self.now_ns)],
        };
        let every = events / 1024 + 1;
        for step in 0..events {
            if self.rx.next >= length {
                break;
            }
            if let Some(stall) = self.step() {
                if stall.reason == "sampling-end" {
                    run.pauses += 1;
                } else {
                    run.stalls.push(stall);
                }
            }
            if step % every == 0 {
                run.marks.push((self.rx.next, self.now_ns));
            }
        }
        run.marks.push((self.rx.next, self.now_ns));
        run
    }

    /// Processes one arrival or timer. Returns the stall that a timer ended, if any.
    fn step(&mut self) -> Option<Stall> {
        let data_ns = self.data.front().map_or(u64::MAX, |d| d.0);
        let ack_ns = self.acks.front().map_or(u64::MAX, |a| a.0);
        let mut stall = None;
        if data_ns <= ack_ns && data_ns <= self.rx.deadline_ns && data_ns < u64::MAX {
            if let Some((at, s)) = self.data.pop_front() {
                self.now_ns = at;
                self.rx.on_segment(at, s.bytes, s.psh, &mut self.answers);
                if !self.script.is_empty() {
                    self.answer();
                } else if self.rx.next == self.tx.wanted {
                    // The message is delivered: start the next one.
                    self.tx.wanted += self.write_bytes;
                    self.tx.write(&mut self.segments);
                }
            }
        } else if ack_ns <= self.rx.deadline_ns && ack_ns < u64::MAX {
            if let Some((at, a)) = self.acks.pop_front() {
                self.now_ns = at;
                self.tx.on_ack(a.number, a.window, &mut self.segments);
                if a.answer_bytes > 0 {
                    (self.awaited, self.answered) = (None, false);
                }
                self.run_script();
            }
        } else {
            stall = self.timer();
        }
        self.dispatch();
        stall
    }

    fn timer(&mut self) -> Option<Stall> {
        let idle = self.data.is_empty() && self.acks.is_empty();
        let (held_bytes, room_bytes, open) = self.tx.held();
        // If the receiver has no timer either, the sender's window probe ends the stall.
        let silent = self.rx.deadline_ns == u64::MAX;
        if silent {
            self.now_ns += 1_000_000_000;
            self.answers.push(Ack {
                number: self.rx.next,
                window: self.rx.window(),
                reason: Reason(0),
                answer_bytes: 0,
            });
        } else {
            self.now_ns = self.rx.deadline_ns;
        }
        let mut stall = idle.then(|| Stall {
            class: if silent { StallClass::Window } else { self.class(held_bytes, open) },
            at_bytes: self.rx.next,
            wait_ns: self.now_ns - self.rx.last_data_ns,
            end_ns: self.now_ns,
            reason: "window-probe",
            outstanding_bytes: self.rx.unacked(),
            held_bytes,
            room_bytes,
        });
        self.timer_bytes = self.rx.next;
        if !silent {
            self.rx.on_deadline(self.now_ns, &mut self.answers);
        }
        match (&mut stall, self.answers.last()) {
            (Some(s), Some(a)) if !silent => s.reason = a.reason.label(),
            (None, Some(_)) => self.disturbed = true,
            _ => {}
        }
        stall.filter(|_| !self.answers.is_empty())
    }

    // [S5.1] [S5.2]
    fn class(&self, held_bytes: u64, open: u64) -> StallClass {
        if self.write_bytes > 0 {
            return StallClass::Write;
        }
        if !self.script.is_empty() && held_bytes <= open {
            return StallClass::Request;
        }
        if held_bytes > open {
            return StallClass::Window;
        }
        // Would an ACK have left if the sender had sent everything that its buffer can hold?
        let mut rx = self.rx.clone();
        let mut left = self.tx.buffer().saturating_sub(self.tx.nxt - self.tx.una).min(open);
        let mut out = Vec::new();
        while left > 0 && out.is_empty() {
            let bytes = left.min(self.mss());
            left -= bytes;
            rx.on_segment(self.rx.last_data_ns, bytes as u32, left == 0, &mut out);
        }
        match (out.is_empty(), self.disturbed) {
            (true, _) => StallClass::I,
            (false, false) => StallClass::II,
            (false, true) => StallClass::III,
        }
    }

    fn mss(&self) -> u64 {
        self.tx.mss()
    }

    /// Steps to the next state in which data waits for an ACK that is not due. False: there is none
    /// within `most_steps`.
    pub fn find_waiting_data(&mut self, most_steps: u32) -> bool {
        for _ in 0..most_steps {
            self.step();
            let more = !self.data.is_empty() || !self.acks.is_empty();
            if self.rx.deadline_ns < u64::MAX && more {
                return true;
            }
        }
        false
    }

    /// Fires the receiver's timer now, as if everything in flight were delayed by that much.
    pub fn fire_timer(&mut self) {
        let late = self.rx.deadline_ns - self.now_ns;
        self.now_ns += late;
        self.data.iter_mut().for_each(|d| d.0 += late);
        self.acks.iter_mut().for_each(|a| a.0 += late);
        self.disturbed = true;
        self.timer_bytes = self.rx.next;
        self.rx.on_deadline(self.now_ns, &mut self.answers);
        self.dispatch();
    }
}
