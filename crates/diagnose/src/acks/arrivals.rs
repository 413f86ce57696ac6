// SPDX-License-Identifier: MIT
//! Data in flight to the receiver: it has passed the capture point and is not acknowledged.

use crate::ranges::Ranges;
use crate::step::{DataKind, Step};
use ackwise_capture::tcp_flag;
use ackwise_core::Seq;
use std::collections::VecDeque;

/// Maximum number kept, so that memory is bounded; ACKs for forgotten arrivals cannot be judged.
const KEPT_MAX: usize = 4096;

/// A packet with data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// Time at which it passed the capture point.
    pub time_ns: u64,
    pub start: u64,
    pub end: u64,
    pub segments: u16,
    pub is_pushed: bool,
    pub is_fin: bool,
    /// Whether the receiver had this data already, or the packet is a probe.
    pub is_needless: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    underway: VecDeque<Arrival>,
    /// Whether an arrival was forgotten.
    pub is_cut: bool,
}

impl Arrivals {
    pub fn add(&mut self, step: &Step) {
        let data = &step.data;
        if !data.kind.is_data() && !matches!(data.kind, DataKind::KeepAlive | DataKind::WindowProbe) {
            return;
        }
        if self.underway.len() >= KEPT_MAX {
            self.underway.pop_front();
            self.is_cut = true;
        }
        self.underway.push_back(Arrival {
            time_ns: step.time_ns,
            start: data.start,
            end: data.end,
            segments: data.segments.clamp(1, u16::MAX.into()) as u16,
            is_pushed: step.has(tcp_flag::PSH),
            is_fin: step.has(tcp_flag::FIN),
            is_needless: !data.kind.is_data() || (data.new_bytes == 0 && data.needless_bytes > 0),
        });
    }

    /// Removes the next packets, in the order in which they passed.
    pub fn take_first(&mut self, most: usize) -> Vec<Arrival> {
        self.underway.drain(..most.min(self.underway.len())).collect()
    }

    /// Removes the packets up to the one whose end is acknowledged, including those above it that
    /// passed before it.
    pub fn take(&mut self, number: u64) -> Vec<Arrival> {
        let last = self.underway.iter().rposition(|a| a.end <= number);
        self.underway.drain(..last.map_or(0, |at| at + 1)).collect()
    }
}

/// Data held by the receiver, as far as the capture shows it.
#[derive(Clone, Debug, Default)]
pub(super) struct Reassembly {
    pub rcv_nxt: u64,
    above: Ranges,
}

impl Reassembly {
    pub fn has_hole(&self) -> bool {
        !self.above.is_empty()
    }

    pub fn add(&mut self, arrival: &Arrival) -> Seq {
        if arrival.is_needless || arrival.end <= self.rcv_nxt {
            return Seq::Duplicate;
        }
        if arrival.start > self.rcv_nxt {
            self.above.insert(arrival.start, arrival.end, |_, _| ());
            return Seq::Hole;
        }
        let seq = if self.has_hole() { Seq::Fills } else { Seq::In };
        self.acknowledged(arrival.end);
        seq
    }

    /// Records that the receiver has everything below `number`.
    pub fn acknowledged(&mut self, number: u64) {
        self.rcv_nxt = self.rcv_nxt.max(number);
        self.above.cut_below(self.rcv_nxt);
    }
}

/// An ACK and the arrivals that it answers, in the receiver's time.
pub(super) struct Answer {
    pub time_ns: u64,
    pub number: u64,
    pub arrivals: Vec<Arrival>,
    pub tolerance_ns: u64,
}

impl Answer {
    /// The maximum of (number of waiting segments) times (time they waited).
    pub fn area_ns(&self) -> u64 {
        let mut segments = 0;
        let area = |arrival: &Arrival| {
            segments += u64::from(arrival.segments);
            segments * self.time_ns.saturating_sub(arrival.time_ns)
        };
        self.arrivals.iter().map(area).max().unwrap_or(0)
    }

    pub fn since_newest_ns(&self) -> u64 {
        self.arrivals.last().map_or(0, |arrival| self.time_ns.saturating_sub(arrival.time_ns))
    }

    pub fn since_oldest_ns(&self) -> u64 {
        self.arrivals.first().map_or(0, |arrival| self.time_ns.saturating_sub(arrival.time_ns))
    }

    pub fn is_late(&self) -> bool {
        self.since_newest_ns() > self.tolerance_ns
    }
}
