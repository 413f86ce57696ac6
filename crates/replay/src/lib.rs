// SPDX-License-Identifier: MIT
//! Replay of acknowledgement policies on the arrivals of a capture, compared with the cost of the
//! best schedule known afterwards.
//!
//! The replay is an open loop: arrivals keep their captured times, whatever a policy does. In
//! reality, a policy that acknowledges later than the captured receiver would sometimes have slowed
//! the sender down; only the simulator can show by how much. ACK counts and latencies on these
//! arrivals are exact.
//!
//! Conventions:
//! - A capture taken near the receiver gives arrival times. In a capture taken elsewhere, the
//!   receiver's packets are shifted back by the RTT between capture point and receiver, and data
//!   lost in between looks as if it had arrived.
//! - The receiver's data packets keep their times and carry ACKs at no cost, for the policies and
//!   for the optimum.
//! - The window is the one that the real receiver had last advertised.
//! - A packet merged by offloads stands for `ceil(payload / MSS)` segments that arrive at once.
//! - An ACK reports every segment that arrived before it, in order (by its number) or not (by SACK,
//!   which is assumed to have room for all, or as a duplicate ACK).
//! - Timers fire before packets of the same nanosecond; the application reads after them.
#![forbid(unsafe_code)]

mod drive;
pub mod optimum;
mod random;
mod result;
mod stream;

pub use optimum::Price;
pub use result::{
    AckPoint, ArrivalsResult, DirectionResult, LeftOut, OptimumResult, PolicyResult, Quantiles, ReplayResult,
    Trace, CAPTURED, SCHEMA_VERSION, TRACE_ACKS_MAX,
};
pub use stream::Arrivals;

use ackwise_capture::{Capture, Connection};
pub use ackwise_core::PolicyChoice;
use ackwise_core::{Entry, Resolved};
#[cfg(test)]
use ackwise_link as _;
use drive::{Account, Setting};
use optimum::{optimum, Arrival, Optimum};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use stream::{Stream, What};

/// Processor time of the receiving device, for an estimate.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceCost {
    /// Time to build and send one ACK, nanoseconds.
    pub ack_ns: u64,
    /// Time to receive one data packet (after aggregation), nanoseconds.
    pub data_ns: u64,
}

/// What to replay, and how to evaluate it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReplayOptions {
    /// Policies to replay; empty: every host alone and every policy but rivals on `linux`, with its
    /// defaults.
    pub policies: Vec<PolicyChoice>,
    /// Directions with fewer data segments are left out.
    pub min_data_segments: u64,
    pub price: Price,
    /// Delay between arrival of data and the application's read, nanoseconds; 0: it reads at once.
    pub reader_lag_ns: u64,
    /// The host's maximum ACK delay in nanoseconds, at most [`ackwise_core::DELAY_MAX_NS`]. A
    /// capture does not show it.
    pub ack_delay_max_ns: u64,
    /// Seed of the random bits that policies may use.
    pub seed: u64,
    pub device: Option<DeviceCost>,
    /// (connection, direction) pairs to replay, numbered as in the capture; None: all.
    pub only: Option<BTreeSet<(usize, usize)>>,
    /// Maximum number of directions kept, those with the most data, so that memory and result are
    /// bounded for any capture; the others are counted.
    pub max_directions: usize,
    /// Number of directions whose ACKs are kept for every policy.
    pub traced_directions: usize,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        ReplayOptions {
            policies: Vec::new(),
            min_data_segments: 10,
            price: Price::default(),
            reader_lag_ns: 0,
            ack_delay_max_ns: ackwise_core::DELAY_MAX_NS,
            seed: 1,
            device: None,
            only: None,
            max_directions: 1000,
            traced_directions: 0,
        }
    }
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// A choice that cannot be replayed; the message gives the valid choices.
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
    let initial = Entry::find(&choice.name).map(|e| e.params()).unwrap_or_default();
    let mut named: BTreeMap<_, _> = initial.iter().map(|p| (p.name.to_owned(), p.initial)).collect();
    named.extend(choice.params.clone());
    Ok(Prepared { resolved, named })
}

fn prepare_all(options: &ReplayOptions) -> Result<Vec<Prepared>, ReplayError> {
    if options.policies.is_empty() {
        let ours = Entry::all().filter(|e| e.kind() != "rival");
        return ours.map(|e| prepare(&PolicyChoice::new(e.name()))).collect();
    }
    options.policies.iter().map(prepare).collect()
}

/// Replays synthetic arrivals, one direction without a capture, through every chosen policy.
///
/// # Errors
/// The errors of [`replay`], and arrivals that no receiver could see; the message gives the remedy.
pub fn replay_arrivals(arrivals: &Arrivals, options: &ReplayOptions) -> Result<ArrivalsResult, ReplayError> {
    let prepared = prepare_all(options)?;
    let stream = Stream::of_arrivals(arrivals).map_err(ReplayError::Choice)?;
    let bytes = arrivals.bytes.iter().map(|&b| u64::from(b)).sum();
    let judge = Judge::new(&stream, bytes, options, options.traced_directions > 0)?;
    let policies = prepared.iter().map(|p| judge.policy(p, options.seed)).collect();
    Ok(ArrivalsResult { segments: judge.segments, optimum: judge.optimum(), policies })
}

/// Replays every direction with enough data through every chosen policy.
///
/// Deterministic: the same capture and options give the same result.
///
/// # Errors
/// An unknown policy, host or parameter, or a parameter out of range.
pub fn replay(capture: &Capture, options: &ReplayOptions) -> Result<ReplayResult, ReplayError> {
    let mut replayer = Replayer::new(options)?;
    for (c, connection) in capture.connections.iter().enumerate() {
        replayer.add(c, connection, &|| false)?;
    }
    Ok(replayer.finish(capture))
}

/// Sort key of a direction: (bytes, connection, direction), most data first, then the capture's
/// order.
type Place = (Reverse<u64>, usize, usize);

/// Replays connections one by one as a reader delivers them, and keeps only results.
pub struct Replayer<'a> {
    options: &'a ReplayOptions,
    prepared: Vec<Prepared>,
    kept: BTreeMap<Place, DirectionResult>,
    directions_skipped: u64,
    left_out: LeftOut,
}

impl<'a> Replayer<'a> {
    /// # Errors
    /// The errors of [`replay`].
    pub fn new(options: &'a ReplayOptions) -> Result<Self, ReplayError> {
        let prepared = prepare_all(options)?;
        let (kept, left_out) = (BTreeMap::new(), LeftOut::default());
        Ok(Replayer { options, prepared, kept, directions_skipped: 0, left_out })
    }

    /// Replays both directions of connection `c` of a capture, in any order of connections. Stops
    /// soon after `cancelled` returns true; it is called before each policy.
    ///
    /// # Errors
    /// [`ReplayError::Cancelled`].
    pub fn add(
        &mut self,
        c: usize,
        connection: &Connection,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), ReplayError> {
        for d in [0, 1] {
            if self.options.only.as_ref().is_some_and(|only| !only.contains(&(c, d))) {
                continue;
            }
            let direction = &connection.directions[d];
            let segments = direction.data_segments;
            if segments < self.options.min_data_segments.max(1) {
                self.directions_skipped += u64::from(segments > 0);
                continue;
            }
            let place = (Reverse(direction.payload_bytes), c, d);
            let full = self.kept.len() >= self.options.max_directions;
            if full && self.kept.last_key_value().map_or(true, |(last, _)| *last < place) {
                self.left_out.add(segments, direction.payload_bytes);
                continue;
            }
            if let Some(stream) = Stream::new(connection, d) {
                let judged = self.judge(connection, place, &stream, cancelled)?;
                self.keep(place, judged);
            }
        }
        Ok(())
    }

    fn keep(&mut self, place: Place, judged: DirectionResult) {
        self.kept.insert(place, judged);
        if self.kept.len() > self.options.max_directions {
            if let Some((_, last)) = self.kept.pop_last() {
                self.left_out.add(last.data_segments, last.payload_bytes);
            }
        }
        if let Some(displaced) = self.kept.values_mut().nth(self.options.traced_directions) {
            displaced.policies.iter_mut().for_each(|p| p.trace = None);
        }
    }

    fn is_traced(&self, place: Place) -> bool {
        match self.options.traced_directions.checked_sub(1) {
            Some(last) => self.kept.keys().nth(last).map_or(true, |least| place < *least),
            None => false,
        }
    }

    /// The result for the connections of `capture`.
    pub fn finish(self, capture: &Capture) -> ReplayResult {
        let mut directions: Vec<_> = self.kept.into_values().collect();
        directions.sort_unstable_by_key(|d| (d.connection, d.direction));
        ReplayResult {
            schema_version: SCHEMA_VERSION,
            capture: capture.name.clone(),
            price: self.options.price,
            seed: self.options.seed,
            reader_lag_ns: self.options.reader_lag_ns,
            ack_delay_max_ns: self.options.ack_delay_max_ns,
            truncated: capture.truncated.clone(),
            directions_skipped: self.directions_skipped,
            directions_left_out: self.left_out,
            directions,
        }
    }

    fn judge(
        &self,
        connection: &Connection,
        place: Place,
        stream: &Stream,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<DirectionResult, ReplayError> {
        let (_, c, d) = place;
        let direction = &connection.directions[d];
        let trace = self.is_traced(place);
        let judge = Judge::new(stream, direction.payload_bytes, self.options, trace)?;
        // Every policy sees the same random bits; each direction has its own.
        let seed = self.options.seed ^ ((c as u64) << 1 | d as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut policies = Vec::new();
        policies.extend(drive::captured(stream, trace).map(|a| judge.result(CAPTURED, a)));
        for p in &self.prepared {
            if cancelled() {
                return Err(ReplayError::Cancelled);
            }
            policies.push(judge.policy(p, seed));
        }
        Ok(DirectionResult {
            connection: c,
            direction: d,
            from: connection.endpoints[d],
            to: connection.endpoints[1 - d],
            start_ns: stream.span_ns().0,
            end_ns: stream.span_ns().1,
            data_packets: judge.packets,
            data_segments: judge.segments,
            payload_bytes: judge.bytes,
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
            optimum: judge.optimum(),
            policies,
        })
    }
}

/// The arrivals of one direction, and the cost of their best schedule.
struct Judge<'a> {
    stream: &'a Stream,
    options: &'a ReplayOptions,
    trace: bool,
    best: Optimum,
    packets: u64,
    segments: u64,
    /// Payload bytes.
    bytes: u64,
}

impl<'a> Judge<'a> {
    fn new(
        stream: &'a Stream,
        bytes: u64,
        options: &'a ReplayOptions,
        trace: bool,
    ) -> Result<Self, ReplayError> {
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
        let best =
            optimum(&arrivals, &free, options.price).map_err(|e| ReplayError::Choice(e.to_string()))?;
        let segments = arrivals.iter().map(|a| u64::from(a.weight)).sum();
        Ok(Judge { stream, options, trace, best, packets: arrivals.len() as u64, segments, bytes })
    }

    fn optimum(&self) -> OptimumResult {
        OptimumResult {
            acks: self.best.acks,
            latency_ns: u64::try_from(self.best.latency_ns).unwrap_or(u64::MAX),
            cost: self.best.cost,
            cost_scaled: self.best.cost_scaled,
        }
    }

    fn policy(&self, p: &Prepared, seed: u64) -> PolicyResult {
        let setting = Setting {
            policy: &p.resolved,
            reader_lag_ns: self.options.reader_lag_ns,
            ack_delay_max_ns: self.options.ack_delay_max_ns,
            seed,
            trace: self.trace,
        };
        let mut judged = self.result(p.resolved.name(), drive::policy(self.stream, &setting));
        judged.params = p.named.clone();
        judged.host = p.resolved.host().to_owned();
        judged.clamp = p.resolved.is_clamped();
        judged
    }

    fn result(&self, name: &str, account: Account) -> PolicyResult {
        let price = self.options.price;
        let sent = account.acks + account.piggybacked;
        let cost_scaled = price.scaled(account.acks, account.latency_ns);
        let cpu_ns = self.options.device.map(|device| {
            account.acks as f64 * device.ack_ns as f64 + self.packets as f64 * device.data_ns as f64
        });
        let optimum_scaled = self.best.cost_scaled;
        PolicyResult {
            policy: name.to_owned(),
            params: BTreeMap::new(),
            host: String::new(),
            clamp: false,
            acks: account.acks,
            acks_piggybacked: account.piggybacked,
            acks_by_reason: account.by_reason,
            segments_per_ack: if sent > 0 { self.segments as f64 / sent as f64 } else { 0.0 },
            ack_latency_ns: Quantiles::of(account.latencies),
            latency_ns: u64::try_from(account.latency_ns).unwrap_or(u64::MAX),
            cost: price.unscaled(cost_scaled),
            cost_scaled,
            cost_ratio: (optimum_scaled > 0).then(|| cost_scaled as f64 / optimum_scaled as f64),
            // Nanoseconds per byte equal seconds per 10^9 bytes.
            cpu_s_per_gb: cpu_ns.filter(|_| self.bytes > 0).map(|ns| ns / self.bytes as f64),
            closing_ack: account.closing_ack,
            trace: account.trace,
        }
    }
}
