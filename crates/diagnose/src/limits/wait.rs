// SPDX-License-Identifier: MIT
//! What a sender waited for between two packets.
//!
//! A packet that leaves as an ACK arrives was waiting for that ACK; one that leaves at another time was
//! waiting for the application, or for a timer.

use crate::step::{Ack, AckKind, Cause, DataKind, Step};
use ackwise_capture::tcp_flag;
use serde::Serialize;

const MS: u64 = 1_000_000;
/// Above what hosts and links add, below the shortest delayed-ACK timer in use (Linux: 40 ms).
const DELAYED_ACK_NS: u64 = 25 * MS;
/// Of Linux; others wait longer (RFC 6298, 2.4: a second).
pub(super) const MIN_RTO_NS: u64 = 195 * MS;
/// A host that sends more marks the end of a write now and then; one that writes less at a time, most times.
const PUSHES_OFTEN: f32 = 0.75;

/// Of the time between two packets, the part since an ACK came: close to 0 where ACKs make data leave.
const SCATTERED: f32 = 0.2;

/// A receiver may delay the ACK of so many, with policies that make fewer ACKs.
const FEW_SEGMENTS: u64 = 4;

/// Why a sender waits for a delayed ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stall {
    /// Nagle's algorithm holds a short segment while data is unacknowledged (RFC 9293, 3.7.4).
    Nagle,
    /// The receive window holds less than what makes the receiver answer at once.
    ReceiveWindow,
    /// So does the send buffer, or the congestion window.
    SendBuffer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// For room: an ACK came, and data left.
    Room,
    /// For room in the advertised window.
    ReceiveWindow,
    /// The advertised window had no room for a segment at all.
    ClosedWindow,
    /// For the application.
    Application,
    /// For the application, which waited for the peer's.
    Answer,
    /// For an ACK that the receiver delayed.
    Stall(Stall),
    /// For the retransmission timer.
    Timer,
    /// For a loss to be recovered.
    Recovery,
}

/// How often a sender went on only when data of the peer had come, and how long that took in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Answers {
    pub waits: u64,
    pub ns: u64,
}

/// A gap in front of a packet: the part until the ACK that came last, and the part since.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waited {
    pub until_ack: (Wait, u64),
    pub since_ack: (Wait, u64),
}

impl Waited {
    fn whole(wait: Wait, ns: u64) -> Self {
        Waited { until_ack: (wait, ns), since_ack: (wait, 0) }
    }
}

/// What the packet in front left behind.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    end: u64,
    slack_bytes: u64,
    /// Shorter than a segment, or marked as the end of a write.
    ends_write: bool,
    is_short: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Waits {
    before: Before,
    /// Up to here the sender recovers from losses.
    recovery_end: u64,
    by_timer: bool,
    /// How long the receiver kept the ACK that advanced last, the path's time subtracted.
    ack_delay_ns: u64,
    /// What that ACK acknowledged.
    acked_bytes: u64,
    /// Data of the receiver's application came with it or since.
    is_answer: bool,
    window_known: bool,
    most_window_bytes: u64,
    /// The smallest window advertised since data was sent: far below the largest, the application has
    /// not read what came.
    low_window_bytes: u64,
    /// Behind a short segment, which leaves when the application has written no more: where in the time
    /// between two packets the last ACK came, of late.
    scatter: f32,
    /// Share of packets with PSH, of late.
    pushes: f32,
    /// The shortest time from one full segment to the next.
    segment_ns: Option<u64>,
    pub answers: Answers,
}

impl Waits {
    /// Returns the wait that a packet of the data sender ended; none if it carries no data.
    pub fn sent(&mut self, step: &Step) -> Option<Waited> {
        let data = &step.data;
        let gap_ns = data.since_data_ns.unwrap_or(0);
        let waited = match data.kind {
            // The sender stands at the edge of a window that the application has let shrink.
            DataKind::Retransmission(Cause::TailLossProbe | Cause::Unclear)
                if self.fills_window(data.mss_bytes) && self.window_shrank(data.mss_bytes) =>
            {
                Waited::whole(Wait::ClosedWindow, gap_ns)
            }
            DataKind::Retransmission(Cause::Timeout | Cause::TailLossProbe) => {
                Waited::whole(Wait::Timer, gap_ns)
            }
            DataKind::Retransmission(Cause::Unclear) if is_long(step, gap_ns) => {
                Waited::whole(Wait::Timer, gap_ns)
            }
            DataKind::Retransmission(_) => Waited::whole(Wait::Recovery, gap_ns),
            DataKind::WindowProbe => Waited::whole(Wait::ClosedWindow, gap_ns),
            DataKind::New | DataKind::OutOfOrder => self.new_data(step, gap_ns),
            _ => return None,
        };
        if waited.until_ack.0 == Wait::Answer {
            self.answers.waits += 1;
            self.answers.ns += gap_ns;
        }
        if let (true, Some(since_ack_ns)) = (self.before.is_short && gap_ns > 0, data.sender.since_ack_ns) {
            let part = since_ack_ns.min(gap_ns) as f32 / gap_ns as f32;
            self.scatter += (part - self.scatter) / 16.0;
        }
        if data.begins_recovery {
            self.recovery_end = data.sender.nxt.max(data.end);
            self.by_timer = matches!(data.kind, DataKind::Retransmission(Cause::Timeout));
        }
        if data.end - data.start >= u64::from(data.mss_bytes) && data.since_data_ns.is_some() {
            self.segment_ns = Some(self.segment_ns.map_or(gap_ns, |shortest| shortest.min(gap_ns)));
        }
        self.pushes += (f32::from(u8::from(step.has(tcp_flag::PSH))) - self.pushes) / 16.0;
        let slack_bytes = data.sender.slack_bytes(data.end);
        let is_short = data.end - data.start < u64::from(data.mss_bytes);
        self.before = Before {
            end: data.end.max(self.before.end),
            slack_bytes,
            ends_write: is_short || step.has(tcp_flag::PSH) && self.pushes > PUSHES_OFTEN,
            is_short,
        };
        self.low_window_bytes = u64::MAX;
        Some(waited)
    }

    fn new_data(&self, step: &Step, gap_ns: u64) -> Waited {
        let (data, sender) = (&step.data, &step.data.sender);
        let since_ack_ns = sender.since_ack_ns.unwrap_or(gap_ns).min(gap_ns);
        let until_ack_ns = gap_ns - since_ack_ns;
        let segment = (data.end - data.start).min(u64::from(data.mss_bytes));
        let is_short = data.end - data.start < u64::from(data.mss_bytes);
        if sender.una < self.recovery_end {
            let timer = self.by_timer && is_long(step, gap_ns);
            return Waited::whole(if timer { Wait::Timer } else { Wait::Recovery }, gap_ns);
        }
        // Its first copy was lost in front of the capture point, and nothing else reported that.
        if data.ident.missing_packets() > 0 && gap_ns > MIN_RTO_NS && is_long(step, gap_ns) {
            return Waited::whole(Wait::Timer, gap_ns);
        }
        // What is in flight should have been acknowledged by then: a probe of the tail, with new data.
        let answer_ns = step.rtt_ns().unwrap_or(0) + DELAYED_ACK_NS;
        if sender.una < sender.nxt && since_ack_ns > answer_ns {
            return Waited::whole(Wait::Timer, gap_ns);
        }
        // The send buffer was empty, and what came next does not leave with ACKs.
        if self.before.is_short && !self.fills_window(data.mss_bytes) && self.scatter > SCATTERED {
            return Waited::whole(Wait::Application, gap_ns);
        }
        // It had sent all that it had, until the peer's application answered.
        let was_empty = self.before.ends_write && sender.una >= self.before.end;
        if was_empty && self.is_answer && !self.fills_window(data.mss_bytes) {
            return Waited::whole(Wait::Answer, gap_ns);
        }
        // A timer sends what fits into a window that has no room for a segment.
        if is_short && self.window_known && sender.edge == data.end {
            return Waited::whole(Wait::ClosedWindow, gap_ns);
        }
        let prompt_ns = self.prompt_ns(step);
        let queued = step.queued_ns.is_some_and(|queued_ns| queued_ns > prompt_ns);
        // Pacing spreads what an ACK allows over the RTT.
        let paced = !self.before.ends_write && step.rtt_ns().is_some_and(|rtt_ns| gap_ns < rtt_ns);
        if since_ack_ns > prompt_ns && !queued && !paced {
            // It could have sent when the ACK came.
            let before = if self.before.ends_write { Wait::Application } else { Wait::Room };
            return Waited {
                until_ack: (before, until_ack_ns),
                since_ack: (Wait::Application, since_ack_ns),
            };
        }
        let wait = if self.window_known && self.before.slack_bytes < segment {
            if self.window_shrank(data.mss_bytes) {
                Wait::ClosedWindow
            } else if sender.una >= self.before.end && self.ack_delay_ns >= DELAYED_ACK_NS {
                // For more than that a receiver answers at once, if the application has read it.
                if self.acked_bytes <= FEW_SEGMENTS * u64::from(data.mss_bytes) {
                    Wait::Stall(Stall::ReceiveWindow)
                } else {
                    Wait::ClosedWindow
                }
            } else {
                Wait::ReceiveWindow
            }
        } else if sender.una >= self.before.end && self.ack_delay_ns >= DELAYED_ACK_NS {
            let nagle = is_short || self.before.is_short;
            Wait::Stall(if nagle { Stall::Nagle } else { Stall::SendBuffer })
        } else {
            Wait::Room
        };
        Waited { until_ack: (wait, until_ack_ns), since_ack: (wait, since_ack_ns) }
    }

    /// The window had no room for another segment.
    fn fills_window(&self, mss_bytes: u32) -> bool {
        self.window_known && self.before.slack_bytes < mss_bytes.into()
    }

    /// The receiver holds what its application has not read.
    fn window_shrank(&self, mss_bytes: u32) -> bool {
        self.low_window_bytes < u64::from(mss_bytes).max(self.most_window_bytes / 2)
    }

    /// Within this time, data leaves because an ACK came. Away from the sender, serialization and short
    /// queues come on top of the smallest RTT, which was that of packets without data.
    fn prompt_ns(&self, step: &Step) -> u64 {
        let rtt_ns = step.least_rtt_ns().unwrap_or(8 * MS);
        let away = step.least_ns[step.from].is_some_and(|ns| 8 * ns > rtt_ns);
        if away {
            (rtt_ns / 4).clamp(MS, 10 * MS) + self.segment_ns.unwrap_or(0).min(rtt_ns / 2)
        } else {
            (rtt_ns / 8).clamp(MS / 4, 5 * MS)
        }
    }

    pub fn acked(&mut self, step: &Step, ack: &Ack) {
        self.window_known = ack.window_known;
        self.most_window_bytes = self.most_window_bytes.max(ack.window_bytes);
        self.low_window_bytes = self.low_window_bytes.min(ack.window_bytes);
        if step.payload_bytes > 0 {
            self.is_answer = true;
        }
        if ack.kind == AckKind::Advancing {
            let path_ns = step.least_ns[step.from].unwrap_or(0);
            self.acked_bytes = ack.acked_bytes;
            self.is_answer = step.payload_bytes > 0;
            self.ack_delay_ns = match ack.newest_ns {
                Some(newest_ns) if !ack.is_recovery => newest_ns.saturating_sub(path_ns),
                _ => 0,
            };
        }
    }
}

/// Longer than the answer to what was sent takes.
fn is_long(step: &Step, gap_ns: u64) -> bool {
    step.rtt_ns().is_some_and(|rtt_ns| gap_ns > 2 * rtt_ns)
}
