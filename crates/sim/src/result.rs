// SPDX-License-Identifier: MIT
//! The result of a run: a summary, one row for each flow, optional series and traces.

use crate::keys::keys;
use serde::Serialize;
use std::collections::BTreeMap;

/// Version of the keys below; increases when a key changes its meaning or is removed.
pub const SCHEMA_VERSION: u32 = 1;

/// A value that only the simulator knows; it is absent in a run of the lab, which has the same
/// format.
pub type Simulated<T> = T;

keys! {
    /// A run.
    #[derive(Clone, Debug, Serialize)]
    pub struct RunResult {
        pub schema_version: u32,
        pub seed: u64,
        /// Simulated time at the end of the run.
        pub duration_ns: u64,
        pub events: Simulated<u64>,
        /// Number of packets that crossed a link, summed over all links.
        pub packet_hops: Simulated<u64>,
        pub groups: Vec<GroupResult>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub ping: Option<PingResult>,
        pub down: Simulated<ChannelResult>,
        pub up: Simulated<ChannelResult>,
        pub client: HostResult,
        pub server: HostResult,
    }
}

keys! {
    /// Echo requests of the client, up to the last that was answered.
    #[derive(Clone, Debug, Default, Serialize)]
    pub struct PingResult {
        pub sent: u64,
        pub lost: u64,
        pub rtt_ns: Quantiles,
    }
}

keys! {
    /// All flows of one group. Rates are over the time from the group's first byte sent to its last
    /// byte delivered.
    #[derive(Clone, Debug, Serialize)]
    pub struct GroupResult {
        pub name: String,
        pub policy: String,
        pub flows_started: u64,
        pub flows_completed: u64,
        /// Payload read by the receiving applications, all flows.
        pub delivered_bytes: u64,
        pub goodput_bps: f64,
        /// Jain's index of the flows' goodputs; 1 for a single flow.
        pub fairness: f64,
        pub segments_received: u64,
        /// ACK-only segments sent by the data receiver.
        pub acks_sent: u64,
        /// ACKs carried by data of the receiver.
        pub acks_piggybacked: u64,
        /// Segments received per ACK (pure or piggybacked).
        pub segments_per_ack: f64,
        /// Number of pure ACKs by reason label, without zero counts.
        pub acks_by_reason: BTreeMap<String, u64>,
        /// RTTs measured by the sender.
        pub rtt_ns: Quantiles,
        /// Time from the arrival of a segment at the receiving TCP to the ACK that covers it.
        pub ack_latency_ns: Quantiles,
        /// Latency of messages (requests, writes, flows), from first write to last byte delivered.
        pub message_latency_ns: Quantiles,
        pub retransmitted_segments: u64,
        pub timeouts: u64,
        pub fast_recoveries: Simulated<u64>,
        /// Number of times the sender had data but could not send until a delayed-ACK timer expired.
        pub stalls: Simulated<u64>,
        pub stalled_ns: Simulated<u64>,
        pub flows: Vec<FlowResult>,
    }
}

keys! {
    /// One flow.
    #[derive(Clone, Debug, Serialize)]
    pub struct FlowResult {
        pub start_ns: u64,
        /// Time at which the last byte was delivered; 0: none was.
        pub end_ns: u64,
        pub delivered_bytes: u64,
        pub goodput_bps: f64,
        pub segments_received: u64,
        pub acks_sent: u64,
        pub retransmitted_segments: u64,
        pub timeouts: u64,
        pub stalls: Simulated<u64>,
        pub completed: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub series: Option<Series>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub trace: Option<Trace>,
    }
}

keys! {
    /// A distribution.
    #[derive(Clone, Debug, Default, Serialize)]
    pub struct Quantiles {
        pub samples: u64,
        pub mean: f64,
        pub p50: f64,
        pub p95: f64,
        pub p99: f64,
        pub max: f64,
        /// Histogram: upper bounds and counts of the non-empty buckets.
        pub bucket_upper: Vec<u64>,
        pub bucket_count: Vec<u64>,
    }
}

keys! {
    /// One value for each interval of `series_interval_ns`, from time 0.
    #[derive(Clone, Debug, Default, Serialize)]
    pub struct Series {
        pub time_ns: Vec<u64>,
        pub delivered_bytes: Vec<u64>,
        pub acks: Vec<u64>,
        /// Reason label -> number of ACKs in the interval.
        pub acks_by_reason: BTreeMap<String, Vec<u64>>,
        pub cwnd_bytes: Vec<u64>,
        /// 0: not set yet.
        pub ssthresh_bytes: Vec<u64>,
        pub srtt_ns: Vec<u64>,
        /// Mean of the RTTs measured in the interval; 0: there were none.
        pub rtt_ns: Simulated<Vec<u64>>,
        pub bytes_in_flight: Vec<u64>,
        pub rcv_wnd_bytes: Vec<u64>,
        /// Name of a value of the receiver's policy (see `ackwise policy show`) -> its values.
        pub policy: BTreeMap<String, Vec<u32>>,
    }
}

keys! {
    /// Time-sequence points of one flow, in order of time.
    #[derive(Clone, Debug, Default, Serialize)]
    pub struct Trace {
        pub data_time_ns: Vec<u64>,
        pub data_seq: Vec<u64>,
        pub data_bytes: Vec<u32>,
        pub data_retransmitted: Vec<bool>,
        pub ack_time_ns: Vec<u64>,
        pub ack_seq: Vec<u64>,
        pub ack_reason: Vec<String>,
        /// Arrivals of data at the receiving TCP: time, and number of segments in one arrival
        /// (GRO).
        pub arrival_time_ns: Simulated<Vec<u64>>,
        pub arrival_segments: Simulated<Vec<u32>>,
        pub truncated: bool,
    }
}

keys! {
    /// One direction of the link.
    #[derive(Clone, Debug, Default, Serialize)]
    pub struct ChannelResult {
        pub packets: u64,
        pub bytes: u64,
        /// Part of `bytes` that pure ACKs account for.
        pub ack_bytes: u64,
        pub dropped_queue: u64,
        /// Number of pure ACKs among `dropped_queue`.
        pub acks_dropped_queue: u64,
        pub dropped_link: u64,
        /// Number of packets marked by the queue instead of dropped (RFC 3168).
        pub marked: u64,
        /// Number of pure ACKs dropped as redundant: by the queue, or by the sending host's driver.
        pub acks_filtered: u64,
        /// Most packets, and most bytes, that waited at a time; the one in transmission does not.
        pub max_queue_packets: u64,
        pub max_queue_bytes: u64,
        pub busy_share: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub series: Option<ChannelSeries>,
    }
}

impl ChannelResult {
    /// Counts what waits after an arrival.
    #[inline]
    pub fn waits(&mut self, packets: usize, bytes: u64) {
        self.max_queue_packets = self.max_queue_packets.max(packets as u64);
        self.max_queue_bytes = self.max_queue_bytes.max(bytes);
    }
}

keys! {
    /// Content of a channel's queue at each multiple of `series_interval_ns`, from time 0.
    #[derive(Clone, Debug, Default, Serialize)]
    pub struct ChannelSeries {
        pub time_ns: Vec<u64>,
        /// Number of pure ACKs.
        pub acks: Vec<u32>,
        /// Number of other packets.
        pub data: Vec<u32>,
    }
}

keys! {
    /// A host's processor.
    #[derive(Clone, Debug, Default, Serialize)]
    pub struct HostResult {
        pub cpu_busy_ns: Simulated<u64>,
        pub cpu_share: Simulated<f64>,
        /// Processor seconds per 10^9 bytes delivered, all groups.
        pub cpu_s_per_gb: Simulated<f64>,
        pub dropped_backlog: Simulated<u64>,
    }
}
