// SPDX-License-Identifier: MIT
//! The result of a replay. Times in nanoseconds; times of day count from the capture's first packet.

use crate::optimum::Price;
use ackwise_capture::{MssSource, Truncation};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Version of the keys below; increases when a key changes its meaning or is removed.
pub const SCHEMA_VERSION: u32 = 1;

/// Name of the capture's own receiver among the policies.
pub const CAPTURED: &str = "captured";

#[derive(Clone, Debug, Serialize)]
pub struct ReplayResult {
    pub schema_version: u32,
    /// Name of the capture.
    pub capture: String,
    pub price: Price,
    pub seed: u64,
    pub reader_lag_ns: u64,
    pub ack_delay_max_ns: u64,
    /// Where the file ended inside a packet; everything before it was replayed.
    pub truncated: Option<Truncation>,
    /// Directions with data, but with fewer segments than asked for.
    pub directions_skipped: u64,
    pub directions_left_out: LeftOut,
    pub directions: Vec<DirectionResult>,
}

/// Directions beyond [`crate::ReplayOptions::max_directions`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    pub directions: u64,
    pub data_segments: u64,
    pub payload_bytes: u64,
}

impl LeftOut {
    pub(crate) fn add(&mut self, data_segments: u64, payload_bytes: u64) {
        self.directions += 1;
        self.data_segments += data_segments;
        self.payload_bytes += payload_bytes;
    }
}

/// The data of one direction.
#[derive(Clone, Debug, Serialize)]
pub struct DirectionResult {
    /// Index of the connection in the capture, and of the direction in the connection.
    pub connection: usize,
    pub direction: usize,
    /// Sender and receiver of the data.
    pub from: SocketAddr,
    pub to: SocketAddr,
    /// Time of the first and the last replayed step.
    pub start_ns: u64,
    pub end_ns: u64,
    pub data_packets: u64,
    /// Number of wire segments: a packet merged by offloads counts once for each MSS.
    pub data_segments: u64,
    pub payload_bytes: u64,
    pub mss_bytes: u32,
    pub mss_source: MssSource,
    /// Packets above the MSS: offloads were on, so arrival times within them are unknown.
    pub packets_above_mss: u64,
    /// Whether the window is known. If not, the handshake is not in the capture, and a window of 4
    /// MiB was assumed.
    pub window_known: bool,
    /// RTT of the handshake, nanoseconds.
    pub handshake_rtt_ns: Option<u64>,
    /// RTT between capture point and receiver, subtracted from the times of the receiver's packets.
    pub receiver_distance_ns: u64,
    /// Bytes that the receiver acknowledged but that are not in the capture.
    pub unseen_bytes: u64,
    /// Data packets by position in sequence space.
    pub packets_in_order: u64,
    pub packets_above_hole: u64,
    pub packets_filling_hole: u64,
    pub packets_duplicate: u64,
    pub optimum: OptimumResult,
    pub policies: Vec<PolicyResult>,
}

/// Results of policies on synthetic arrivals.
#[derive(Clone, Debug, Serialize)]
pub struct ArrivalsResult {
    /// Number of wire segments: a packet above the MSS counts once for each MSS.
    pub segments: u64,
    pub optimum: OptimumResult,
    pub policies: Vec<PolicyResult>,
}

/// The cheapest schedule, which knows all arrivals and pays nothing for ACKs on data.
#[derive(Clone, Debug, Serialize)]
pub struct OptimumResult {
    pub acks: u64,
    pub latency_ns: u64,
    /// `rho * acks + (1 - rho) * latency / unit`.
    pub cost: f64,
    #[serde(skip)]
    pub cost_scaled: u128,
}

/// Result of a policy on one direction.
#[derive(Clone, Debug, Serialize)]
pub struct PolicyResult {
    /// Name of the policy or, without one, of the host; or [`CAPTURED`].
    pub policy: String,
    /// Name of the host; empty: that of the capture.
    pub host: String,
    /// Whether the sender's flight and window bound the orders of a policy.
    pub clamp: bool,
    /// All parameters by name.
    pub params: BTreeMap<String, u32>,
    /// Number of pure ACKs.
    pub acks: u64,
    /// Number of the receiver's data packets that acknowledged something.
    pub acks_piggybacked: u64,
    /// Pure ACKs by reason label, zero counts left out.
    pub acks_by_reason: BTreeMap<String, u64>,
    /// Data segments per ACK, pure or piggybacked; 0 without ACKs.
    pub segments_per_ack: f64,
    /// Latency of each data segment, from its arrival to the ACK that reports it.
    pub ack_latency_ns: Quantiles,
    /// Sum of these latencies.
    pub latency_ns: u64,
    /// `rho * acks + (1 - rho) * latency / unit`.
    pub cost: f64,
    #[serde(skip)]
    pub cost_scaled: u128,
    /// Cost relative to the optimum's, at least 1; None where the optimum costs nothing.
    pub cost_ratio: Option<f64>,
    /// Processor seconds of the receiving device for each 10^9 bytes of payload.
    pub cpu_s_per_gb: Option<f64>,
    /// Whether an ACK was added at the end because data was still unacknowledged.
    pub closing_ack: bool,
    /// The ACKs, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
}

/// Maximum number of ACKs that a trace lists individually.
pub const TRACE_ACKS_MAX: usize = 2500;
const TRACE_PARTS: usize = 100;

/// The ACKs of a policy over time, in bounded memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trace {
    /// The first ACKs, at most [`TRACE_ACKS_MAX`].
    pub first: Vec<AckPoint>,
    /// Length of the parts into which `counts` divides the time.
    pub part_ns: u64,
    /// Number of ACKs in each part by reason, in order of the reasons' first appearance.
    pub counts: Vec<(&'static str, Vec<u64>)>,
    #[serde(skip)]
    start_ns: u64,
}

impl Trace {
    pub(crate) fn new((start_ns, end_ns): (u64, u64)) -> Self {
        let part_ns = end_ns.saturating_sub(start_ns).div_ceil(TRACE_PARTS as u64).max(1);
        Trace { first: Vec::new(), part_ns, counts: Vec::new(), start_ns }
    }

    pub(crate) fn add(&mut self, point: AckPoint) {
        let known = self.counts.iter().position(|c| c.0 == point.reason);
        let counts = known.unwrap_or_else(|| {
            self.counts.push((point.reason, vec![0; TRACE_PARTS]));
            self.counts.len() - 1
        });
        let part = point.time_ns.saturating_sub(self.start_ns) / self.part_ns;
        self.counts[counts].1[part.min(TRACE_PARTS as u64 - 1) as usize] += 1;
        if self.first.len() < TRACE_ACKS_MAX {
            self.first.push(point);
        }
    }
}

/// One ACK of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AckPoint {
    pub time_ns: u64,
    /// Acknowledgement number, relative as in the capture.
    pub ack: u64,
    /// Number of data segments that this ACK is the first to report.
    pub segments: u64,
    pub reason: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Quantiles {
    pub samples: u64,
    pub mean: f64,
    pub p50: u64,
    pub p95: u64,
    pub p99: u64,
    pub max: u64,
}

impl Quantiles {
    /// Nearest-rank quantiles of values that each count `weight` times.
    pub(crate) fn of(mut values: Vec<(u64, u64)>) -> Self {
        values.sort_unstable();
        let samples: u64 = values.iter().map(|v| v.1).sum();
        let Some(&(max, _)) = values.last() else { return Quantiles::default() };
        let total: f64 = values.iter().map(|v| v.0 as f64 * v.1 as f64).sum();
        let at = |percent: u64| {
            let rank = (u128::from(samples) * u128::from(percent)).div_ceil(100).max(1);
            let mut below = 0u128;
            let reached = values.iter().find(|v| {
                below += u128::from(v.1);
                below >= rank
            });
            reached.map_or(max, |v| v.0)
        };
        Quantiles { samples, mean: total / samples as f64, p50: at(50), p95: at(95), p99: at(99), max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_count_weights() {
        let q = Quantiles::of(vec![(30, 1), (10, 98), (20, 1)]);
        assert_eq!((q.samples, q.p50, q.p95, q.p99, q.max), (100, 10, 10, 20, 30));
        assert!((q.mean - 10.3).abs() < 1e-9);
        assert_eq!(Quantiles::of(vec![]), Quantiles::default());
    }
}
