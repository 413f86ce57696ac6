// SPDX-License-Identifier: MIT
//! The segments that are out, and what is known of each.

/// When a segment left, and what had been delivered by then: its delivery rate is measured from
/// here (draft-cheng-iccrg-delivery-rate-estimation, 3.2).
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

/// The time echoed (0: none) is that of a segment that left before (RFC 7323).
pub fn is_earlier(echo_ns: u64, sent_ns: u64) -> bool {
    echo_ns > 0 && echo_ns / TIMESTAMP_NS < sent_ns / TIMESTAMP_NS
}

#[derive(Clone, Debug)]
pub struct Segment {
    pub seq: u64,
    pub len: u32,
    /// Of its last transmission.
    pub departure: Departure,
    pub sacked: bool,
    pub lost: bool,
    pub retransmitted: bool,
    /// A retransmission of it is in flight.
    pub again_in_flight: bool,
    pub psh: bool,
    pub fin: bool,
    /// The first of a socket buffer.
    pub begins_buffer: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub sacked: u64,
    pub sacked_segments: u64,
    pub lost: u64,
    /// Retransmitted, the retransmission in flight.
    pub again: u64,
    /// Socket buffers.
    pub buffers: u64,
}

impl Segment {
    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }

    /// The retransmission that left then is in flight.
    pub fn is_out_again(&self, sent_ns: u64) -> bool {
        self.again_in_flight && !self.sacked && self.departure.sent_ns == sent_ns
    }

    /// It was sent again although it arrived: the time echoed is earlier.
    pub fn is_spurious(&self, echo_ns: u64) -> bool {
        self.retransmitted && is_earlier(echo_ns, self.departure.sent_ns)
    }

    /// Its retransmission, if there is one, is no longer in flight.
    pub fn recall(&mut self, tally: &mut Tally) {
        if self.again_in_flight {
            self.again_in_flight = false;
            tally.again -= u64::from(self.len);
        }
    }

    /// It begins a socket buffer, or goes on with the one before.
    pub fn begin_buffer(&mut self, begins: bool, tally: &mut Tally) {
        tally.buffers += u64::from(begins);
        tally.buffers -= u64::from(self.begins_buffer);
        self.begins_buffer = begins;
    }

    /// Taken as lost, and so is a retransmission of it; not when it was SACKed.
    pub fn lose(&mut self, tally: &mut Tally) {
        self.recall(tally);
        if !self.lost && !self.sacked {
            self.lost = true;
            tally.lost += u64::from(self.len);
        }
    }

    /// It has arrived above a hole. A copy of what was not lost is still on its way.
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
