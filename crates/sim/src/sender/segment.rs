// SPDX-License-Identifier: MIT
//! The outstanding segments and their state.

/// Departure of a segment, with the bytes delivered by then, from which its delivery rate is
/// measured (draft-cheng-iccrg-delivery-rate-estimation, 3.2).
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    pub sent_ns: u64,
    pub delivered: u64,
    pub delivered_ns: u64,
    pub first_sent_ns: u64,
    pub app_limited: bool,
}

/// Linux's timestamps count milliseconds.
const TIMESTAMP_NS: u64 = 1_000_000;

/// Whether the echoed time (0: none) belongs to a segment sent before `sent_ns` (RFC 7323).
pub fn is_earlier(echo_ns: u64, sent_ns: u64) -> bool {
    echo_ns > 0 && echo_ns / TIMESTAMP_NS < sent_ns / TIMESTAMP_NS
}

#[derive(Clone, Debug)]
pub struct Segment {
    pub seq: u64,
    pub len: u32,
    /// Departure of its last transmission.
    pub departure: Departure,
    pub sacked: bool,
    pub lost: bool,
    pub retransmitted: bool,
    /// Whether a retransmission of it is in flight.
    pub again_in_flight: bool,
    pub psh: bool,
    pub fin: bool,
    /// Whether it is the first of a socket buffer.
    pub begins_buffer: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub sacked: u64,
    pub sacked_segments: u64,
    pub lost: u64,
    /// Retransmitted bytes whose retransmission is in flight.
    pub again: u64,
    /// Number of socket buffers.
    pub buffers: u64,
}

impl Segment {
    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }

    /// Whether the retransmission that left then is in flight.
    pub fn is_out_again(&self, sent_ns: u64) -> bool {
        self.again_in_flight && !self.sacked && self.departure.sent_ns == sent_ns
    }

    /// Whether its retransmission was spurious: the echoed time is earlier.
    pub fn is_spurious(&self, echo_ns: u64) -> bool {
        self.retransmitted && is_earlier(echo_ns, self.departure.sent_ns)
    }

    /// Records that its retransmission, if any, is no longer in flight.
    pub fn recall(&mut self, tally: &mut Tally) {
        if self.again_in_flight {
            self.again_in_flight = false;
            tally.again -= u64::from(self.len);
        }
    }

    /// Makes it begin a socket buffer, or continue the previous one.
    pub fn begin_buffer(&mut self, begins: bool, tally: &mut Tally) {
        tally.buffers += u64::from(begins);
        tally.buffers -= u64::from(self.begins_buffer);
        self.begins_buffer = begins;
    }

    /// Marks it as lost, together with a retransmission of it; not if it was SACKed.
    pub fn lose(&mut self, tally: &mut Tally) {
        self.recall(tally);
        if !self.lost && !self.sacked {
            self.lost = true;
            tally.lost += u64::from(self.len);
        }
    }

    /// Marks it as arrived above a hole. A copy of a segment that was not lost is still in flight.
    pub fn sack(&mut self, tally: &mut Tally) {
        if self.lost {
            self.recall(tally);
            self.lost = false;
            tally.lost -= u64::from(self.len);
        }
        self.sacked = true;
        tally.sacked += u64::from(self.len);
        tally.sacked_segments += 1;
    }
}
