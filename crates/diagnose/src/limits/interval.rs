// SPDX-License-Identifier: MIT
//! What happened to a transfer in an interval of about one RTT.

use super::wait::{Stall, Wait};

pub(super) const WAITS: usize = 11;

impl Wait {
    pub fn index(self) -> usize {
        match self {
            Wait::Room => 0,
            Wait::ReceiveWindow => 1,
            Wait::ClosedWindow => 2,
            Wait::Application | Wait::Answer | Wait::Block => 3,
            Wait::Stall(Stall::Nagle) => 4,
            Wait::Stall(Stall::ReceiveWindow) => 5,
            Wait::Stall(Stall::SendBuffer) => 6,
            Wait::Timer => 7,
            Wait::Recovery => 8,
            Wait::Grant => 9,
            Wait::Idle => 10,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Interval {
    pub from_ns: u64,
    pub to_ns: u64,
    pub waits_ns: [u64; WAITS],
    /// Payload bytes sent for the first time, and acknowledged.
    pub new_bytes: u64,
    pub acked_bytes: u64,
    pub recoveries: u32,
    pub marks: u32,
    /// RTTs of the path, including the receiver's delay.
    pub rtt_min_ns: u64,
    pub rtt_sum_ns: u64,
    pub rtts: u32,
    /// Minimum RTT in this interval, or in the last one with a sample: a recovery has none (Karn).
    pub near_rtt_ns: Option<u64>,
    /// Maximum bytes in flight, as the sender saw it.
    pub flight_max_bytes: u64,
    /// Minimum of the bytes that the window still allowed after a packet.
    pub slack_min_bytes: u64,
    pub window_max_bytes: u64,
    pub window_min_bytes: u64,
    pub acks: u32,
    pub packets: u32,
    /// Queueing delay of ACKs: from the receiver to the capture point, and from there to the
    /// sender.
    pub queued_behind: Mean,
    pub queued_before: Mean,
    /// Minimum queueing delay of data: from the sender to the capture point, and from there to the
    /// receiver.
    pub data_before_ns: u64,
    pub data_behind_ns: u64,
    /// Time for which the receiver's host kept data that its ACK policy would have acknowledged.
    pub kept: Mean,
    /// Bursts of full segments, and those of them that no ACK prompted.
    pub bursts: u32,
    pub own_bursts: u32,
    /// Packets after which the sender had less than a segment left.
    pub partial_packets: u32,
    /// The highest rate at which a few packets passed the path, bytes per second.
    pub passed_bytes_per_s: u64,
}

/// A mean of times, if any were seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    pub sum_ns: u64,
    pub samples: u32,
}

impl Mean {
    pub(super) fn add(&mut self, ns: u64) {
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.samples = self.samples.saturating_add(1);
    }

    pub(super) fn merge(&mut self, other: Mean) {
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.samples = self.samples.saturating_add(other.samples);
    }

    pub fn ns(&self) -> u64 {
        self.sum_ns.checked_div(self.samples.into()).unwrap_or(0)
    }
}

impl Interval {
    pub(super) fn at(from_ns: u64) -> Self {
        Interval {
            from_ns,
            to_ns: from_ns,
            rtt_min_ns: u64::MAX,
            slack_min_bytes: u64::MAX,
            window_min_bytes: u64::MAX,
            data_before_ns: u64::MAX,
            data_behind_ns: u64::MAX,
            ..Interval::default()
        }
    }

    pub fn ns(&self) -> u64 {
        self.to_ns - self.from_ns
    }

    /// Whether a loss or a mark reduced the congestion window.
    pub fn is_reduced(&self) -> bool {
        self.recoveries > 0 || self.marks > 0
    }

    /// Whether the sender spent more than half of the time in this wait.
    pub fn is_mostly(&self, wait: Wait) -> bool {
        2 * self.waits_ns[wait.index()] > self.ns()
    }

    pub fn rtt_ns(&self) -> Option<u64> {
        (self.rtts > 0).then(|| self.rtt_sum_ns / u64::from(self.rtts))
    }

    pub fn bytes_per_s(&self) -> f64 {
        self.acked_bytes as f64 * 1e9 / self.ns().max(1) as f64
    }

    pub(super) fn merge(&mut self, next: &Interval) {
        self.to_ns = next.to_ns;
        for (sum, ns) in self.waits_ns.iter_mut().zip(next.waits_ns) {
            *sum += ns;
        }
        self.new_bytes += next.new_bytes;
        self.acked_bytes += next.acked_bytes;
        self.recoveries += next.recoveries;
        self.marks += next.marks;
        self.rtt_min_ns = self.rtt_min_ns.min(next.rtt_min_ns);
        self.rtt_sum_ns = self.rtt_sum_ns.saturating_add(next.rtt_sum_ns);
        self.rtts += next.rtts;
        self.flight_max_bytes = self.flight_max_bytes.max(next.flight_max_bytes);
        self.slack_min_bytes = self.slack_min_bytes.min(next.slack_min_bytes);
        self.window_max_bytes = self.window_max_bytes.max(next.window_max_bytes);
        self.window_min_bytes = self.window_min_bytes.min(next.window_min_bytes);
        self.acks += next.acks;
        self.packets += next.packets;
        self.queued_behind.merge(next.queued_behind);
        self.queued_before.merge(next.queued_before);
        self.data_before_ns = self.data_before_ns.min(next.data_before_ns);
        self.data_behind_ns = self.data_behind_ns.min(next.data_behind_ns);
        self.kept.merge(next.kept);
        self.bursts += next.bursts;
        self.own_bursts += next.own_bursts;
        self.partial_packets += next.partial_packets;
        self.passed_bytes_per_s = self.passed_bytes_per_s.max(next.passed_bytes_per_s);
    }

    /// Queueing delay of data that none avoided, as far as timestamps show it.
    pub fn data_queue_ns(&self) -> u64 {
        let known = |ns: u64| if ns == u64::MAX { 0 } else { ns };
        known(self.data_before_ns) + known(self.data_behind_ns)
    }

    /// Queueing delay of ACKs on the return path.
    pub fn return_queue_ns(&self) -> u64 {
        self.queued_behind.ns() + self.queued_before.ns()
    }
}
