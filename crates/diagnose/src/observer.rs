// SPDX-License-Identifier: MIT
//! What watches the steps of one half.

use crate::ecn::Ecn;
use crate::step::Step;
use ackwise_capture::Handshake;
use serde::Serialize;

/// Watches one half in bounded memory. Every step of the connection is passed to it once, in one of
/// two ways.
pub trait Observer: Default {
    /// Findings of the observer, in the form in which they are reported.
    type Report: Serialize;
    /// Whether it reads [`Step::queued_ns`], which is computed only on demand.
    const READS_QUEUES: bool = false;

    /// The data sender of this half sent a packet; [`Step::data`] refers to this half.
    fn sent(&mut self, _step: &Step) {}

    /// The receiver of this half sent a packet; [`Step::ack`] refers to this half.
    fn acked(&mut self, _step: &Step) {}

    /// Steps of the connection, for the half that is the data of endpoint `of`.
    fn watch(&mut self, of: usize, steps: &[Step]) {
        for step in steps {
            if step.from == of {
                self.sent(step);
            } else {
                self.acked(step);
            }
        }
    }

    /// The findings, once, after the last step.
    fn finish(self, end: &End) -> Self::Report;
}

/// State of a half at the end of its connection or of the capture.
#[derive(Clone, Debug)]
pub struct End {
    /// Time of the connection's last packet.
    pub time_ns: u64,
    /// First sequence number of data; None where no number was seen.
    pub first: Option<u64>,
    /// Sequence number after the highest byte sent (SND.NXT).
    pub nxt: u64,
    /// Highest number acknowledged (SND.UNA).
    pub una: u64,
    /// Whether the receiver acknowledged anything.
    pub is_answered: bool,
    /// Bytes of data and FIN that the receiver sent itself.
    pub peer_bytes: u64,
    /// Payload of a full segment on the wire, bytes.
    pub mss_bytes: u32,
    /// Minimum RTT between the capture point and the data sender, then the receiver; nanoseconds.
    pub distance_ns: [Option<u64>; 2],
    /// Version of ECN; None where a SYN was not captured.
    pub ecn: Option<Ecn>,
    /// The handshake, if all of it was captured.
    pub handshake: Option<Handshake>,
    /// Time that the receiver took for its answer in the handshake, nanoseconds.
    pub handshake_ns: Option<u64>,
}

/// Steps without an observer.
impl Observer for () {
    type Report = ();

    fn finish(self, _end: &End) {}
}
