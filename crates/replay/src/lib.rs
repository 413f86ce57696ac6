// SPDX-License-Identifier: MIT
//! What acknowledgement policies would have done on the arrivals of a capture, and what the best
//! schedule known afterwards would have cost.
//!
//! The replay is an open loop: arrivals stay where the capture has them, whatever a policy
//! answers. A policy that acknowledges later than the captured receiver would in truth have slowed
//! the sender down now and then; how much is the simulator's business. Exact is the count of ACKs
//! and latencies on these arrivals.
//!
//! Conventions:
//! - A capture taken near the receiver gives arrival times. Taken elsewhere, the receiver's
//!   packets are dated back by the round trip between capture point and receiver, and data lost
//!   between them looks as if it had arrived.
//! - Packets of the receiver that carry data leave when they did, acknowledge at no cost, for the
//!   policies and for the optimum.
//! - A window is what the real receiver advertised last at that time.
//! - A packet merged by offloads stands for `ceil(payload / MSS)` segments that arrive at once.
//! - An ACK tells of every segment that arrived before it, in order (by its number) or not (by
//!   SACK, or as a duplicate ACK).
//! - Timers fire before packets of the same nanosecond; the application reads after them.
#![forbid(unsafe_code)]

mod drive;
pub mod optimum;
mod random;
mod result;
mod stream;

pub use optimum::Price;
pub use result::{
    AckPoint, DirectionResult, OptimumResult, PolicyResult, Quantiles, ReplayResult, CAPTURED, SCHEMA_VERSION,
};

use ackwise_capture::Capture;
pub use ackwise_core::PolicyChoice;
use ackwise_core::{Policy, Resolved, RAILS};
use drive::{Account, Setting};
use optimum::{optimum, Arrival};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use stream::{Stream, What};

/// Processor time of the receiving device, for an estimate.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceCost {
    /// To build and send one ACK, ns.
    pub ack_ns: u64,
    /// To receive one data packet (after aggregation), ns.
    pub data_ns: u64,
}

/// What to replay and how to judge it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReplayOptions {
    /// Empty: every policy as it comes.
    pub policies: Vec<PolicyChoice>,
    /// Directions with fewer data segments are left out.
    pub min_data_segments: u64,
    pub price: Price,
    /// The application reads this long after data arrived; 0: at once.
    pub reader_lag_ns: u64,
    /// Of the random bits that policies may use.
    pub seed: u64,
    pub device: Option<DeviceCost>,
    /// Keep every ACK of every policy.
    pub trace: bool,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        ReplayOptions {
            policies: Vec::new(),
            min_data_segments: 10,
            price: Price::default(),
            reader_lag_ns: 0,
            seed: 1,
            device: None,
            trace: false,
        }
    }
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// A choice that cannot be replayed; says what would be right.
    Choice(String),
    Cancelled,
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReplayError::Choice(what) => what,
            ReplayError::Cancelled => "cancelled",
        })
    }
}

impl std::error::Error for ReplayError {}

struct Prepared {
    resolved: Resolved,
    /// Every parameter with its value.
    named: BTreeMap<String, u32>,
}

fn prepare(choice: &PolicyChoice) -> Result<Prepared, ReplayError> {
    let resolved = choice.resolve().map_err(ReplayError::Choice)?;
    let initial = resolved.policy.params();
    let mut named: BTreeMap<_, _> = initial.iter().map(|p| (p.name.to_owned(), p.initial)).collect();
    named.extend(choice.params.clone());
    Ok(Prepared { resolved, named })
}

/// Replays every direction with enough data through every chosen policy.
///
/// Deterministic: the same capture and options give the same result.
///
/// # Errors
/// An unknown policy, parameter or rail, or a parameter out of range.
pub fn replay(capture: &Capture, options: &ReplayOptions) -> Result<ReplayResult, ReplayError> {
    replay_until(capture, options, &|| false)
}

/// The same, given up soon after `cancelled` answers true; asked before each policy.
///
/// # Errors
/// As [`replay`], and [`ReplayError::Cancelled`].
pub fn replay_until(
    capture: &Capture,
    options: &ReplayOptions,
    cancelled: &dyn Fn() -> bool,
) -> Result<ReplayResult, ReplayError> {
    let prepared = if options.policies.is_empty() {
        let all = Policy::all().map(|p| prepare(&PolicyChoice::new(p.name())));
        all.collect::<Result<Vec<_>, _>>()?
    } else {
        options.policies.iter().map(prepare).collect::<Result<Vec<_>, _>>()?
    };
    let mut result = ReplayResult {
        schema_version: SCHEMA_VERSION,
        capture: capture.name.clone(),
        price: options.price,
        seed: options.seed,
        reader_lag_ns: options.reader_lag_ns,
        truncated: capture.truncated.clone(),
        directions_skipped: 0,
        directions: Vec::new(),
    };
    for (c, connection) in capture.connections.iter().enumerate() {
        for d in [0, 1] {
            let segments = connection.directions[d].data_segments;
            if segments < options.min_data_segments.max(1) {
                result.directions_skipped += u64::from(segments > 0);
                continue;
            }
            if let Some(stream) = Stream::new(connection, d) {
                let direction = judge(capture, (c, d), &stream, &prepared, options, cancelled)?;
                result.directions.push(direction);
            }
        }
    }
    Ok(result)
}

fn judge(
    capture: &Capture,
    (c, d): (usize, usize),
    stream: &Stream,
    prepared: &[Prepared],
    options: &ReplayOptions,
    cancelled: &dyn Fn() -> bool,
) -> Result<DirectionResult, ReplayError> {
    let connection = &capture.connections[c];
    let direction = &connection.directions[d];
    let (mut arrivals, mut free) = (Vec::new(), Vec::new());
    for step in &stream.steps {
        match step.what {
            What::Data(data) => {
                arrivals.push(Arrival { time_ns: step.time_ns, weight: data.segments });
            }
            What::Sent(sent) if sent.piggyback => free.push(step.time_ns),
            What::Sent(_) => {}
        }
    }
    let best = optimum(&arrivals, &free, options.price).map_err(|e| ReplayError::Choice(e.to_string()))?;
    let segments: u64 = arrivals.iter().map(|a| u64::from(a.weight)).sum();
    let packets = arrivals.len() as u64;
    let bytes = direction.payload_bytes;

    let result = |name: &str, account: Account| {
        let sent = account.acks + account.piggybacked;
        let cost_scaled = options.price.scaled(account.acks, account.latency_ns);
        let cpu_ns = options.device.map(|device| {
            account.acks as f64 * device.ack_ns as f64 + packets as f64 * device.data_ns as f64
        });
        PolicyResult {
            policy: name.to_owned(),
            params: BTreeMap::new(),
            rails: Vec::new(),
            acks: account.acks,
            acks_piggybacked: account.piggybacked,
            acks_by_reason: account.by_reason,
            segments_per_ack: if sent > 0 { segments as f64 / sent as f64 } else { 0.0 },
            ack_latency_ns: Quantiles::of(account.latencies),
            latency_ns: u64::try_from(account.latency_ns).unwrap_or(u64::MAX),
            cost: options.price.unscaled(cost_scaled),
            cost_scaled,
            cost_ratio: (best.cost_scaled > 0).then(|| cost_scaled as f64 / best.cost_scaled as f64),
            // Nanoseconds for each byte are seconds for each 10^9 bytes.
            cpu_s_per_gb: cpu_ns.filter(|_| bytes > 0).map(|ns| ns / bytes as f64),
            closing_ack: account.closing_ack,
            trace: account.trace,
        }
    };
    // Every policy sees the same random bits, every direction others.
    let seed = options.seed ^ ((c as u64) << 1 | d as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut policies = Vec::new();
    policies.extend(drive::captured(stream, options.trace).map(|a| result(CAPTURED, a)));
    for p in prepared {
        if cancelled() {
            return Err(ReplayError::Cancelled);
        }
        let setting =
            Setting { policy: &p.resolved, reader_lag_ns: options.reader_lag_ns, seed, trace: options.trace };
        let mut judged = result(p.resolved.policy.name(), drive::policy(stream, &setting));
        judged.params = p.named.clone();
        let in_force = RAILS.iter().filter(|r| p.resolved.rails & r.1 != 0);
        judged.rails = in_force.map(|r| r.0.to_owned()).collect();
        policies.push(judged);
    }
    Ok(DirectionResult {
        connection: c,
        direction: d,
        from: connection.endpoints[d],
        to: connection.endpoints[1 - d],
        start_ns: stream.steps.first().map_or(0, |s| s.time_ns),
        end_ns: stream.steps.last().map_or(0, |s| s.time_ns),
        data_packets: packets,
        data_segments: segments,
        payload_bytes: bytes,
        mss_bytes: direction.mss_bytes,
        mss_source: direction.mss_source,
        packets_above_mss: direction.packets_above_mss,
        window_known: stream.window_known,
        handshake_rtt_ns: connection.handshake.map(|h| h.rtt_ns()),
        receiver_distance_ns: stream.distance_ns,
        unseen_bytes: stream.unseen_bytes,
        packets_in_order: stream.orders[0],
        packets_above_hole: stream.orders[1],
        packets_filling_hole: stream.orders[2],
        packets_duplicate: stream.orders[3],
        optimum: OptimumResult {
            acks: best.acks,
            latency_ns: u64::try_from(best.latency_ns).unwrap_or(u64::MAX),
            cost: best.cost,
            cost_scaled: best.cost_scaled,
        },
        policies,
    })
}
