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
/// Largest initial value of a timer, without the RTT, for one that packets lost before the capture
/// point show (FreeBSD: 230 ms, Windows: 300 ms).
const MAX_RTO_NS: u64 = 400 * MS;
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

/// Initial congestion window, segments (RFC 6928): with fewer in flight, it has room.
const INITIAL_SEGMENTS: u64 = 10;

/// Number of silences kept until later ones show what they were, and of timers that show it.
const MAYBE_MOST: usize = 16;
const TIMERS_LEAST: u64 = 2;

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
    /// Waits for the application, with data in flight.
    Application,
    /// Waits for the application, with nothing in flight.
    Idle,
    /// Waits for the application, which itself waited for the peer's application.
    Answer,
    /// The same, before everything sent before was acknowledged: the peer's application grants how
    /// much may be outstanding.
    Grant,
    /// Waits for the application, which itself waited until everything was acknowledged.
    Block,
    /// Waits for an ACK that the receiver delayed.
    Stall(Stall),
    /// Waits for the retransmission timer.
    Timer,
    /// Waits for the recovery of a loss.
    Recovery,
}

/// How often a sender resumed only when the peer's data had arrived, and the total time until it
/// arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Answers {
    /// Number of these waits.
    pub waits: u64,
    /// Their total time, nanoseconds.
    pub ns: u64,
}

impl Answers {
    pub(super) fn add(&mut self, ns: u64) {
        self.waits += 1;
        self.ns += ns;
    }
}

/// Nagle's algorithm without a delayed ACK: an application writes a message in parts, the first of
/// which ends with a short segment, and the short end of the last one leaves as that segment is
/// acknowledged (RFC 9293, 3.7.4).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Nagle {
    /// Sequence number after the last short segment.
    short_end: u64,
    /// What the sender knew to be acknowledged when the last packet left.
    una: u64,
    /// Whether no ACK let a packet of this message go so far.
    is_first_burst: bool,
    /// Number of short segments that left as the algorithm would let them, and of those that left
    /// while another one was unacknowledged: then it is off.
    alike: u64,
    free: u64,
    /// Times that it held back the end of a message.
    pub held: Answers,
}

impl Nagle {
    /// Maximum share of segments that leave although it would hold them back, as a divisor.
    const EXCEPTIONS: u64 = 8;

    /// Whether a packet waited for the ACK of a short segment, and for nothing else.
    fn holds(&mut self, step: &Step, gap_ns: u64, prompt_ns: u64) -> bool {
        let (data, sender) = (&step.data, &step.data.sender);
        let mss_bytes = u64::from(data.mss_bytes);
        let is_held = self.is_first_burst
            && (self.una + 1..=sender.una).contains(&self.short_end)
            && data.end - data.start < mss_bytes
            && sender.answer.is_none()
            && sender.since_advance_ns.is_some_and(|ns| ns <= prompt_ns)
            && data.end - self.una <= INITIAL_SEGMENTS * mss_bytes;
        self.alike += u64::from(is_held);
        if is_held && self.free * Self::EXCEPTIONS <= self.alike {
            self.held.add(gap_ns);
            return true;
        }
        false
    }

    fn sent(&mut self, step: &Step) {
        let (data, sender) = (&step.data, &step.data.sender);
        let is_short = data.end - data.start < u64::from(data.mss_bytes);
        // Data with a FIN is not held back.
        let is_free = is_short && sender.una < self.short_end && !step.has(tcp_flag::FIN);
        self.free += u64::from(is_free && data.kind == DataKind::New);
        let begins = sender.answer.is_some() || data.since_data_ns.is_none();
        self.is_first_burst = begins || self.is_first_burst && sender.advances == 0;
        if is_short {
            self.short_end = self.short_end.max(data.end);
        }
        self.una = sender.una;
    }
}

/// How often the application wrote on only when everything sent was acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Blocks {
    /// Number of these waits.
    pub waits: u64,
    /// Their total time, nanoseconds.
    pub ns: u64,
    /// Part of it for which the receiver delayed the last ACK, nanoseconds.
    pub delayed_ns: u64,
}

/// Waits for messages with which the peer's application grants more data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Grants {
    pub waits: Answers,
    /// Bytes sent after them, and bytes of the messages.
    pub sent_bytes: u64,
    pub message_bytes: u64,
}

impl Grants {
    const LEAST: u64 = 4;
    /// Minimum share of the time, as a divisor.
    const SHARE: u64 = 20;

    /// Whether they take time again and again, and let much data go with a few bytes.
    fn are_a_window(&self, whole_ns: u64) -> bool {
        self.waits.waits >= Self::LEAST
            && self.waits.ns > whole_ns / Self::SHARE
            && self.sent_bytes >= Self::LEAST * self.message_bytes
    }
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
    is_pushed: bool,
}

/// Retransmissions that look like new data: earlier copies were lost before the capture point.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unseen {
    pub timers: u64,
    pub bytes: u64,
}

/// Whether the sender's IP packets skip numbers when it is late, and then alone. A host that counts
/// the packets of all its connections skips some at any time.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    early: u32,
    early_skips: u32,
    late: u32,
    late_skips: u32,
}

/// A silence that may be a timer's, with the values that the timer may have (0: none).
#[derive(Clone, Copy, Debug)]
struct Maybe {
    silence_ns: (u64, u64),
    timers_ns: [u64; 3],
    bytes: u32,
}

impl Numbers {
    const LEAST: u32 = 3;

    fn count(&mut self, is_late: bool, skips: bool) {
        let (all, skipping) = match is_late {
            true => (&mut self.late, &mut self.late_skips),
            false => (&mut self.early, &mut self.early_skips),
        };
        *all += 1;
        *skipping += u32::from(skips);
    }

    fn show_losses(self) -> bool {
        self.early >= Self::LEAST && self.early_skips == 0 && self.late_skips == self.late
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Waits {
    before: Before,
    /// Sequence number up to which the sender recovers from losses.
    recovery_end: u64,
    by_timer: bool,
    /// Time for which the receiver held the last advancing ACK, without the path's delay.
    ack_delay_ns: u64,
    /// Bytes acknowledged by that ACK, and when it passed.
    acked_bytes: u64,
    acked_ns: u64,
    /// Whether the data sent belongs to a grant.
    is_granted: bool,
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
    /// Initial value of the sender's timer, if packets before the capture point were lost.
    timer_ns: Option<u64>,
    numbers: Numbers,
    pub nagle: Nagle,
    maybe: Vec<Maybe>,
    pub unseen: Unseen,
    pub answers: Answers,
    pub blocks: Blocks,
    pub grants: Grants,
    /// Whether data of the peer came before the first of this direction.
    pub begins_with_answer: bool,
}

impl Waits {
    /// Whether messages of the peer's application let the sender go on, and not ACKs.
    pub fn has_application_window(&self, whole_ns: u64) -> bool {
        self.grants.are_a_window(whole_ns) && self.grants.waits.waits > self.blocks.waits
    }

    /// How often the application waited for its own data to be acknowledged, or for the peer's.
    pub fn paused(&self) -> u64 {
        self.grants.waits.waits + self.answers.waits + self.blocks.waits
    }

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
        self.count(step, &waited, gap_ns);
        self.nagle.sent(step);
        if data.ident.counts && gap_ns >= WITHIN_NS {
            let is_late = own_gap_ns(step, gap_ns) > MIN_RTO_NS;
            self.numbers.count(is_late, data.ident.missing_packets() > 0);
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
            is_pushed: step.has(tcp_flag::PSH),
        };
        self.low_window_bytes = u64::MAX;
        Some(waited)
    }

    fn count(&mut self, step: &Step, waited: &Waited, gap_ns: u64) {
        let answer = step.data.sender.answer;
        if step.data.since_data_ns.is_none() {
            self.begins_with_answer = answer.is_some();
        }
        match waited.until_ack {
            (Wait::Answer, ns) => self.answers.add(ns),
            (Wait::Grant, ns) => {
                self.grants.waits.add(ns);
                self.grants.message_bytes += answer.map_or(0, |answer| answer.bytes);
            }
            (Wait::Block, ns) => {
                self.blocks.waits += 1;
                self.blocks.ns += ns;
                self.blocks.delayed_ns += self.held_ns();
            }
            _ => {}
        }
        if gap_ns > 0 && waited.until_ack.0 != Wait::Room {
            self.is_granted = waited.until_ack.0 == Wait::Grant;
        }
        if self.is_granted {
            self.grants.sent_bytes += u64::from(step.data.new_bytes);
        }
    }

    fn new_data(&mut self, step: &Step, gap_ns: u64) -> Waited {
        let (data, sender) = (&step.data, &step.data.sender);
        let since_ack_ns = sender.since_ack_ns.unwrap_or(gap_ns).min(gap_ns);
        let until_ack_ns = gap_ns - since_ack_ns;
        let segment = (data.end - data.start).min(u64::from(data.mss_bytes));
        let is_short = data.end - data.start < u64::from(data.mss_bytes);
        if sender.una < self.recovery_end {
            let timer = self.by_timer && is_long(step, gap_ns);
            return Waited::whole(if timer { Wait::Timer } else { Wait::Recovery }, gap_ns);
        }
        let fills_window = self.fills_window(data.mss_bytes);
        // Its first copy was lost before the capture point, and nothing else reported that.
        let own_ns = own_gap_ns(step, gap_ns);
        if !fills_window && self.is_unseen_timer(step, own_ns) {
            self.unseen.timers += 1;
            self.unseen.bytes += u64::from(step.payload_bytes);
            return Waited { until_ack: (Wait::Answer, gap_ns - own_ns), since_ack: (Wait::Timer, own_ns) };
        }
        // Data in flight should have been acknowledged by then: this is a tail loss probe with new
        // data.
        let answer_ns = step.rtt_ns().unwrap_or(0) + DELAYED_ACK_NS;
        if sender.una < sender.nxt && since_ack_ns > answer_ns {
            return Waited::whole(Wait::Timer, gap_ns);
        }
        let prompt_ns = self.prompt_ns(step);
        let application = if sender.una >= sender.nxt { Wait::Idle } else { Wait::Application };
        // ACKs let the sender go on, and it had nothing to send.
        let first_ns = sender.since_advance_ns.unwrap_or(0);
        let has_passed = sender.advances > 1 && first_ns > since_ack_ns + prompt_ns / 4;
        let was_empty = (self.before.ends_write || has_passed) && !fills_window;
        let is_all_acked = sender.una >= self.before.end;
        if let Some(answer) = sender.answer.filter(|_| was_empty) {
            let since_ns = answer.since_ns.min(gap_ns);
            // The sender had sent everything it had, until the peer's application answered.
            let wait = match answer.una >= self.before.end {
                true if is_all_acked => Some(Wait::Answer),
                false if since_ns <= prompt_ns && gap_ns > prompt_ns / 4 => Some(Wait::Grant),
                _ => None,
            };
            if let Some(wait) = wait {
                return Waited { until_ack: (wait, gap_ns - since_ns), since_ack: (application, since_ns) };
            }
        }
        // The send buffer was empty, and the following data does not leave with ACKs.
        if self.before.is_short && !fills_window && self.scatter > SCATTERED {
            return Waited::whole(application, gap_ns);
        }
        // A timer sends whatever fits into a window without room for a segment.
        let by_reader = self.is_late || self.most_window_bytes >= FEW_SEGMENTS * u64::from(data.mss_bytes);
        if by_reader && is_short && self.window_known && sender.edge == data.end {
            return Waited::whole(Wait::ClosedWindow, gap_ns);
        }
        let queued = step.queued_ns.is_some_and(|queued_ns| queued_ns > prompt_ns);
        // Pacing spreads the data that an ACK allows over the RTT.
        let paced = !self.before.ends_write && step.rtt_ns().is_some_and(|rtt_ns| gap_ns < rtt_ns);
        if since_ack_ns > prompt_ns && !queued && !paced {
            // The sender could have sent when the ACK arrived.
            let before = if was_empty || is_all_acked { application } else { Wait::Room };
            return Waited { until_ack: (before, until_ack_ns), since_ack: (application, since_ack_ns) };
        }
        let is_late = is_short && is_all_acked && self.ack_delay_ns >= DELAYED_ACK_NS;
        if !fills_window && !is_late && self.nagle.holds(step, gap_ns, prompt_ns) {
            return Waited::whole(Wait::Stall(Stall::Nagle), gap_ns);
        }
        // Nagle's algorithm holds back short segments only.
        if is_all_acked && was_empty && !(is_short && self.ack_delay_ns >= DELAYED_ACK_NS) {
            return Waited::whole(Wait::Block, gap_ns);
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
            Wait::Stall(if is_short { Stall::Nagle } else { Stall::SendBuffer })
        } else {
            Wait::Room
        };
        Waited { until_ack: (wait, until_ack_ns), since_ack: (wait, since_ack_ns) }
    }

    /// Whether the packet follows others that were lost before the capture point. After the end of a
    /// write the application may as well have had nothing to send, and numbers been used for other
    /// connections: then the time must also be that of a timer, as before. An answer may take as
    /// long: then numbers must be skipped with late answers only.
    fn is_unseen_timer(&mut self, step: &Step, gap_ns: u64) -> bool {
        let ident = step.data.ident;
        let missing = ident.skipped_packets();
        if missing == 0 || gap_ns <= MIN_RTO_NS || !is_long(step, gap_ns) {
            return false;
        }
        let most_ns = MAX_RTO_NS + 2 * step.rtt_ns().unwrap_or(0);
        let is_within_write = !self.before.is_short && !self.before.is_pushed;
        // The timer doubles with each copy. The first may be a probe, which is as late as a timer for a
        // single packet, and else sooner.
        let doubled = 1u64 << missing.min(32);
        let timers = [doubled - 1, doubled / 2, (doubled / 2 - 1).max(1)].map(|timers| gap_ns / timers);
        let timers = timers.map(|ns| if (MIN_RTO_NS..most_ns).contains(&ns) { ns } else { 0 });
        let is_counted = ident.missing_packets() > 0;
        if is_counted {
            let again_ns = timers.into_iter().find(|&ns| self.is_as_before(ns));
            self.timer_ns = again_ns.or(timers.into_iter().find(|&ns| ns > 0)).or(self.timer_ns);
            let is_no_answer = step.data.sender.answer.is_none() || self.numbers.show_losses();
            if is_within_write || is_no_answer && again_ns.is_some() {
                return true;
            }
        }
        if self.maybe.len() < MAYBE_MOST && timers.into_iter().any(|ns| ns > 0) {
            let silence_ns = (step.time_ns - gap_ns, step.time_ns);
            self.maybe.push(Maybe { silence_ns, timers_ns: timers, bytes: step.payload_bytes });
        }
        false
    }

    fn is_as_before(&self, ns: u64) -> bool {
        self.timer_ns.is_some_and(|before_ns| ns > 0 && 8 * ns.abs_diff(before_ns) < before_ns)
    }

    /// Silences that later ones show to be timers': the sender does count the packets of this
    /// connection alone, and its timer has that value.
    pub fn settle(&mut self) -> Vec<(u64, u64)> {
        if self.unseen.timers < TIMERS_LEAST || !self.numbers.show_losses() {
            return Vec::new();
        }
        let maybe = std::mem::take(&mut self.maybe);
        let found = maybe.into_iter().filter(|one| one.timers_ns.iter().any(|&ns| self.is_as_before(ns)));
        let found: Vec<_> = found.collect();
        for one in &found {
            self.unseen.timers += 1;
            self.unseen.bytes += u64::from(one.bytes);
        }
        found.into_iter().map(|one| one.silence_ns).collect()
    }

    /// Time for which a receiver has delayed the last ACK, if it has.
    fn held_ns(&self) -> u64 {
        if self.ack_delay_ns >= DELAYED_ACK_NS {
            self.ack_delay_ns
        } else {
            0
        }
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
        if ack.edge_moved_bytes > 0 {
            self.is_late = ack.kind != AckKind::Advancing;
        }
        if ack.kind == AckKind::Advancing {
            let path_ns = step.least_ns[step.from].unwrap_or(0);
            // What it acknowledges may itself have arrived late, with more of it before.
            let since_ack_ns = step.time_ns - self.acked_ns;
            self.acked_bytes = ack.acked_bytes;
            self.acked_ns = step.time_ns;
            self.ack_delay_ns = match ack.newest_ns {
                Some(newest_ns) if !ack.is_recovery => newest_ns.saturating_sub(path_ns).min(since_ack_ns),
                _ => 0,
            };
        }
    }
}

/// The part of a gap that is the sender's own: since the peer's data arrived, if any did.
fn own_gap_ns(step: &Step, gap_ns: u64) -> u64 {
    step.data.sender.answer.map_or(gap_ns, |answer| answer.since_ns.min(gap_ns))
}

/// Whether the gap is longer than the answer to the data would take.
fn is_long(step: &Step, gap_ns: u64) -> bool {
    step.rtt_ns().is_some_and(|rtt_ns| gap_ns > 2 * rtt_ns)
}
