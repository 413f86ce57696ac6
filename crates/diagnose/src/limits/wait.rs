// SPDX-License-Identifier: MIT
//! Classification of a sender's wait between two packets.
//!
//! A packet that leaves as an ACK arrives was waiting for that ACK; a packet that leaves at another
//! time was waiting for the application or a timer.

use crate::step::{Ack, AckKind, Cause, DataKind, Step};
use ackwise_capture::tcp_flag;
use serde::Serialize;

const MS: u64 = 1_000_000;
/// Above the delays of hosts and links, below the shortest delayed-ACK timer in use (Linux: 40 ms).
pub(super) const DELAYED_ACK_NS: u64 = 25 * MS;
/// Minimum RTO of Linux; others wait longer (RFC 6298, 2.4: a second).
pub(super) const MIN_RTO_NS: u64 = 195 * MS;
/// PSH share of a host that sets it on most packets: it writes less at a time. Others set it now
/// and then, at the end of a write.
const PUSHES_OFTEN: f32 = 0.75;

/// Time since the last ACK as a share of the time between two packets: close to 0 where ACKs
/// trigger data.
const SCATTERED: f32 = 0.2;
/// Shorter gaps are those of packets that leave together.
const WITHIN_NS: u64 = MS / 4;

/// Number of segments for which a receiver may delay the ACK, with policies that send fewer ACKs.
const FEW_SEGMENTS: u64 = 4;

/// Why a sender waits for a delayed ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stall {
    /// Nagle's algorithm holds back a short segment while data is unacknowledged (RFC 9293, 3.7.4).
    Nagle,
    /// The receive window holds less data than makes the receiver acknowledge at once.
    ReceiveWindow,
    /// The send buffer or the congestion window holds less than that.
    SendBuffer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Waits for room in a window: an ACK arrived, and data left.
    Room,
    /// Waits for room in the advertised window.
    ReceiveWindow,
    /// Waits for a closed window, without room for a segment.
    ClosedWindow,
    /// Waits for the application.
    Application,
    /// Waits for the application, which itself waited for the peer's application.
    Answer,
    /// Waits for an ACK that the receiver delayed.
    Stall(Stall),
    /// Waits for the retransmission timer.
    Timer,
    /// Waits for the recovery of a loss.
    Recovery,
}

/// How often a sender resumed only when the peer's data had arrived, and the total time of these
/// waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Answers {
    /// Number of these waits.
    pub waits: u64,
    /// Their total time, nanoseconds.
    pub ns: u64,
}

/// A gap before a packet, divided into the part until the latest ACK and the part since.
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

/// State after the previous packet.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    end: u64,
    slack_bytes: u64,
    /// Whether it was shorter than a segment, or marked as the end of a write.
    ends_write: bool,
    is_short: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Waits {
    before: Before,
    /// Sequence number up to which the sender recovers from losses.
    recovery_end: u64,
    by_timer: bool,
    /// Time for which the receiver held the last advancing ACK, without the path's delay.
    ack_delay_ns: u64,
    /// Bytes acknowledged by that ACK.
    acked_bytes: u64,
    /// Whether data of the receiver's application came with it or since.
    is_answer: bool,
    window_known: bool,
    most_window_bytes: u64,
    /// Minimum window advertised since data was sent. Far below the maximum, it shows that the
    /// application has not read.
    low_window_bytes: u64,
    /// Whether the window opened without new data: the application has read. A window that opens as
    /// data is acknowledged at once is only small.
    is_late: bool,
    /// After a short segment, which leaves when the application has written no more: recent
    /// position of the last ACK in the time between two packets, 0 to 1.
    scatter: f32,
    /// Recent share of packets with PSH.
    pushes: f32,
    /// Minimum time from one full segment to the next.
    segment_ns: Option<u64>,
    pub answers: Answers,
}

impl Waits {
    /// The wait that a packet of the data sender ended; None if it carries no data.
    pub fn sent(&mut self, step: &Step) -> Option<Waited> {
        let data = &step.data;
        let gap_ns = data.since_data_ns.unwrap_or(0);
        let silent_ns = gap_ns.min(data.sender.since_ack_ns.unwrap_or(gap_ns));
        let waited = match data.kind {
            // The sender is at the edge of a window that the application has let shrink.
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
            // Within a recovery, too, nothing else is sent again that late.
            DataKind::Retransmission(Cause::Fast) if is_long(step, silent_ns) && silent_ns > MIN_RTO_NS => {
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
        let is_between = self.before.is_short && gap_ns >= WITHIN_NS;
        if let (true, Some(since_ack_ns)) = (is_between, data.sender.since_ack_ns) {
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
        // Its first copy was lost before the capture point, and nothing else reported that.
        if data.ident.missing_packets() > 0 && gap_ns > MIN_RTO_NS && is_long(step, gap_ns) {
            return Waited::whole(Wait::Timer, gap_ns);
        }
        // Data in flight should have been acknowledged by then: this is a tail loss probe with new
        // data.
        let answer_ns = step.rtt_ns().unwrap_or(0) + DELAYED_ACK_NS;
        if sender.una < sender.nxt && since_ack_ns > answer_ns {
            return Waited::whole(Wait::Timer, gap_ns);
        }
        // The send buffer was empty, and the following data does not leave with ACKs.
        if self.before.is_short && !self.fills_window(data.mss_bytes) && self.scatter > SCATTERED {
            return Waited::whole(Wait::Application, gap_ns);
        }
        // The sender had sent everything it had, until the peer's application answered.
        let was_empty = self.before.ends_write && sender.una >= self.before.end;
        if was_empty && self.is_answer && !self.fills_window(data.mss_bytes) {
            return Waited::whole(Wait::Answer, gap_ns);
        }
        // A timer sends whatever fits into a window without room for a segment.
        let by_reader = self.is_late || self.most_window_bytes >= FEW_SEGMENTS * u64::from(data.mss_bytes);
        if by_reader && is_short && self.window_known && sender.edge == data.end {
            return Waited::whole(Wait::ClosedWindow, gap_ns);
        }
        let prompt_ns = self.prompt_ns(step);
        let queued = step.queued_ns.is_some_and(|queued_ns| queued_ns > prompt_ns);
        // Pacing spreads the data that an ACK allows over the RTT.
        let paced = !self.before.ends_write && step.rtt_ns().is_some_and(|rtt_ns| gap_ns < rtt_ns);
        if since_ack_ns > prompt_ns && !queued && !paced {
            // The sender could have sent when the ACK arrived.
            let before = if self.before.ends_write { Wait::Application } else { Wait::Room };
            return Waited {
                until_ack: (before, until_ack_ns),
                since_ack: (Wait::Application, since_ack_ns),
            };
        }
        let wait = if self.window_known && self.before.slack_bytes < segment {
            if by_reader && self.window_shrank(data.mss_bytes) {
                Wait::ClosedWindow
            } else if sender.una >= self.before.end && self.ack_delay_ns >= DELAYED_ACK_NS {
                // A receiver acknowledges more than that at once, if the application has read it.
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

    /// Whether the window had no room for another segment.
    fn fills_window(&self, mss_bytes: u32) -> bool {
        self.window_known && self.before.slack_bytes < mss_bytes.into()
    }

    /// Whether the receiver holds data that its application has not read.
    fn window_shrank(&self, mss_bytes: u32) -> bool {
        self.low_window_bytes < u64::from(mss_bytes).max(self.most_window_bytes / 2)
    }

    /// Maximum delay of data that leaves because an ACK arrived. Away from the sender, transmission
    /// times and short queues add to the minimum RTT, which was that of packets without data.
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
        if ack.edge_moved_bytes > 0 {
            self.is_late = ack.kind != AckKind::Advancing;
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

/// Whether the gap is longer than the answer to the data would take.
fn is_long(step: &Step, gap_ns: u64) -> bool {
    step.rtt_ns().is_some_and(|rtt_ns| gap_ns > 2 * rtt_ns)
}
