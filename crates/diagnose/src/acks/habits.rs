// SPDX-License-Identifier: MIT
//! Properties of a receiver's ACKs that need no policy to describe.

use crate::distance::is_at_host;
use crate::distribution::Distribution;
use crate::observer::End;
use crate::step::{Ack, AckKind, Step};
use serde::Serialize;

/// Number of packets kept as evidence for each habit.
const EXAMPLES: usize = 3;
/// RFC 5681, 4.2: an ACK for at least every second segment.
pub(super) const STRETCH_SEGMENTS: u32 = 3;
/// Minimum distance of ACKs, from that of their data, that timestamps of a millisecond resolve.
const RESOLVED_NS: u64 = 4_000_000;

/// Origin of packets above the MSS, which the network never carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Offload {
    /// The sender's host splits them below the capture point (TSO, GSO).
    Segmentation,
    /// The receiver's host merged segments before the capture point (GRO, LRO).
    Receive,
    /// The capturing host merged them.
    OnTheWay,
}

/// Evidence: a packet in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Example {
    /// Index of the file in [`ackwise_capture::CaptureNotes::files`].
    pub file: u32,
    /// Number in that file, counted from 1 as in Wireshark.
    pub number: u64,
}

/// Properties of a receiver's ACKs, with a few packets as evidence for each.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AckHabits {
    /// Number of data packets larger than a segment.
    pub merged_packets: u64,
    /// Where these packets were merged; None if there are none.
    pub offload: Option<Offload>,
    /// Segments per ACK, for ACKs that leave as data arrives.
    pub prompt_segments: Distribution,
    /// Wait of the oldest segment for every other ACK, nanoseconds: the timer's delay.
    pub late_ns: Distribution,
    /// Number of ACKs at the start that acknowledge one segment each at once: the quickack phase.
    pub quick_acks: u64,
    /// Number of ACKs for three segments or more.
    pub stretch_acks: u64,
    /// Number of ACKs for a whole window, with nothing left in flight: the window was full before
    /// more could arrive.
    pub window_bound_acks: u64,
    /// Number of pure window updates.
    pub window_updates: u64,
    /// Number of ACKs closer together than a quarter of the distance of their data, although all of
    /// the data had passed before the first of them.
    pub compressed_acks: u64,
    /// Of these, those that the receiver's TCP sent apart, according to timestamps: something below it
    /// or on the way brought them together.
    pub compressed_below: u64,
    /// Of these, those that it sent together, according to timestamps.
    pub compressed_by_receiver: u64,
    /// ACKs that left as data arrived.
    pub prompt_examples: Vec<Example>,
    /// ACKs that left later.
    pub late_examples: Vec<Example>,
    /// ACKs for three segments or more.
    pub stretch_examples: Vec<Example>,
    /// ACKs for a whole window.
    pub window_bound_examples: Vec<Example>,
    /// Pure window updates.
    pub window_update_examples: Vec<Example>,
    /// Data packets larger than a segment.
    pub merged_examples: Vec<Example>,
}

#[derive(Debug, Default)]
pub(super) struct Habits {
    found: AckHabits,
    quick_is_over: bool,
    /// Time of the last ACK, and time of the newest data that it acknowledged.
    last: Option<(u64, u64)>,
    /// When the last ACK was sent, seen from here; None without timestamps.
    last_sent_ns: Option<u64>,
    /// Window advertised by the last ACK.
    window_bytes: Option<u64>,
}

pub(super) fn keep(examples: &mut Vec<Example>, step: &Step) {
    if examples.len() < EXAMPLES {
        examples.push(Example { file: step.file, number: step.number });
    }
}

impl Habits {
    pub fn sent(&mut self, step: &Step) {
        if step.data.kind.is_data() && step.data.segments > 1 {
            self.found.merged_packets += 1;
            keep(&mut self.found.merged_examples, step);
        }
    }

    /// Records an ACK for data in order, prompt or late.
    pub fn answered(&mut self, step: &Step, ack: &Ack, is_late: bool, since_oldest_ns: u64) {
        let found = &mut self.found;
        if is_late {
            found.late_ns.record(since_oldest_ns);
            keep(&mut found.late_examples, step);
        } else {
            found.prompt_segments.record(ack.segments.into());
            keep(&mut found.prompt_examples, step);
        }
        self.quick_is_over |= is_late || ack.segments > 1;
        found.quick_acks += u64::from(!self.quick_is_over);
        if ack.segments >= STRETCH_SEGMENTS {
            found.stretch_acks += 1;
            keep(&mut found.stretch_examples, step);
        }
        let sent_ns = step.queued_ns.map(|ns| step.time_ns.saturating_sub(ns));
        let newest_at_ns = step.time_ns.saturating_sub(ack.newest_ns.unwrap_or(0));
        if let Some((last_ns, last_newest_ns)) = self.last {
            let apart_ns = newest_at_ns.saturating_sub(last_newest_ns);
            let came_together = 4 * (step.time_ns - last_ns) < apart_ns;
            if newest_at_ns < last_ns && came_together {
                found.compressed_acks += 1;
                let sent_ns = self.last_sent_ns.zip(sent_ns).filter(|_| apart_ns >= RESOLVED_NS);
                if let Some((before_ns, sent_ns)) = sent_ns {
                    let sent_apart = 2 * sent_ns.saturating_sub(before_ns) > apart_ns;
                    found.compressed_below += u64::from(sent_apart);
                    found.compressed_by_receiver += u64::from(!sent_apart);
                }
            }
        }
        self.last_sent_ns = sent_ns;
        self.last = Some((step.time_ns, newest_at_ns));
    }

    pub fn window(&mut self, step: &Step, ack: &Ack) {
        let before = self.window_bytes.replace(ack.window_bytes).filter(|_| ack.window_known);
        let is_all = ack.kind == AckKind::Advancing && !ack.is_recovery && ack.packets_left == 0;
        if is_all && before.is_some_and(|window| ack.acked_bytes + u64::from(ack.mss_bytes) > window) {
            self.found.window_bound_acks += 1;
            keep(&mut self.found.window_bound_examples, step);
        }
    }

    pub fn other(&mut self, step: &Step, ack: &Ack) {
        if ack.kind == AckKind::WindowUpdate {
            self.found.window_updates += 1;
            keep(&mut self.found.window_update_examples, step);
        }
    }

    pub fn finish(mut self, end: &End) -> AckHabits {
        let [sender_ns, receiver_ns] = end.distance_ns;
        if self.found.merged_packets > 0 {
            self.found.offload = Some(match (is_at_host(sender_ns), is_at_host(receiver_ns)) {
                (true, false) => Offload::Segmentation,
                (false, true) => Offload::Receive,
                (true, true) if sender_ns <= receiver_ns => Offload::Segmentation,
                (true, true) => Offload::Receive,
                (false, false) => Offload::OnTheWay,
            });
        }
        self.found
    }
}
