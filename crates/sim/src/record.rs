// SPDX-License-Identifier: MIT
//! Recording during a run, and its summary.

use crate::receiver::Receiver;
use crate::result::{FlowResult, GroupResult, Series, Trace};
use crate::sender::{Counters, Outgoing, Sender};
use crate::stats::Times;
use ackwise_core::{Policy, Reason};
use std::collections::BTreeMap;

/// Upper bound on the number of the core's reasons.
const REASONS: usize = 64;

pub struct GroupRecord {
    pub rtt: Times,
    pub ack_latency: Times,
    pub message_latency: Times,
    pub acks_piggybacked: u64,
    pub completed: u64,
    reasons: [u64; REASONS],
}

impl Default for GroupRecord {
    fn default() -> Self {
        GroupRecord {
            rtt: Times::default(),
            ack_latency: Times::default(),
            message_latency: Times::default(),
            acks_piggybacked: 0,
            completed: 0,
            reasons: [0; REASONS],
        }
    }
}

#[derive(Default)]
pub struct FlowRecord {
    start_ns: u64,
    pub end_ns: u64,
    pub delivered_bytes: u64,
    segments_received: u64,
    acks_sent: u64,
    counters: Counters,
    pub stalls: u64,
    pub stalled_ns: u64,
    pub completed: bool,
    series: Option<Box<SeriesRecord>>,
    trace: Option<Box<TraceRecord>>,
}

struct TraceRecord {
    out: Trace,
    limit: usize,
}

// Few flows have a trace: keep its fields out of the way of all others.
impl TraceRecord {
    /// Whether the trace has no room for one more point after `len`.
    fn is_full(&mut self, len: usize) -> bool {
        self.out.truncated |= len >= self.limit;
        len >= self.limit
    }

    #[cold]
    fn data(&mut self, now: u64, segment: &Outgoing) {
        if self.is_full(self.out.data_seq.len()) {
            return;
        }
        self.out.data_time_ns.push(now);
        self.out.data_seq.push(segment.seq);
        self.out.data_bytes.push(segment.len);
        self.out.data_retransmitted.push(segment.is_retransmission);
    }

    #[cold]
    fn arrived(&mut self, now: u64, segments: u32) {
        if self.is_full(self.out.arrival_time_ns.len()) {
            return;
        }
        self.out.arrival_time_ns.push(now);
        self.out.arrival_segments.push(segments);
    }

    #[cold]
    fn ack(&mut self, now: u64, ack: u64, reason: Reason) {
        if self.is_full(self.out.ack_seq.len()) {
            return;
        }
        self.out.ack_time_ns.push(now);
        self.out.ack_seq.push(ack);
        self.out.ack_reason.push(reason.label().into());
    }
}

#[derive(Default)]
struct SeriesRecord {
    out: Series,
    last_delivered: u64,
    /// Number and sum of the RTTs measured in the current interval.
    rtts: u64,
    rtts_ns: u64,
    /// ACKs of the current interval by reason.
    reasons: BTreeMap<Reason, u64>,
}

impl SeriesRecord {
    #[cold]
    fn ack(&mut self, reason: Reason) {
        *self.reasons.entry(reason).or_default() += 1;
    }
}

impl FlowRecord {
    pub fn new(now: u64, series: bool, trace_limit: Option<u32>) -> Self {
        FlowRecord {
            start_ns: now,
            series: series.then(Box::default),
            trace: trace_limit
                .map(|limit| Box::new(TraceRecord { out: Trace::default(), limit: limit as usize })),
            ..FlowRecord::default()
        }
    }

    #[inline]
    pub fn data(&mut self, now: u64, segment: &Outgoing) {
        if let Some(trace) = &mut self.trace {
            trace.data(now, segment);
        }
    }

    /// Records data that reached the receiving TCP.
    #[inline]
    pub fn arrived(&mut self, now: u64, segments: u32) {
        self.segments_received += u64::from(segments);
        self.end_ns = now;
        if let Some(trace) = &mut self.trace {
            trace.arrived(now, segments);
        }
    }

    #[inline]
    pub fn ack(&mut self, now: u64, ack: u64, reason: Reason) {
        self.acks_sent += 1;
        if let Some(series) = &mut self.series {
            series.ack(reason);
        }
        if let Some(trace) = &mut self.trace {
            trace.ack(now, ack, reason);
        }
    }

    #[inline]
    pub fn rtt(&mut self, rtt_ns: u64) {
        if let Some(s) = &mut self.series {
            s.rtts += 1;
            s.rtts_ns += rtt_ns;
        }
    }

    /// Records a point of the time series.
    pub fn sample(&mut self, now: u64, tx: &Sender, rx: &Receiver, policy: Option<Policy>) {
        let Some(s) = &mut self.series else { return };
        let out = &mut s.out;
        let before = out.time_ns.len();
        out.time_ns.push(now);
        out.delivered_bytes.push(rx.read_bytes() - s.last_delivered);
        s.last_delivered = rx.read_bytes();
        out.acks.push(s.reasons.values().sum());
        for (reason, count) in std::mem::take(&mut s.reasons) {
            let column = out.acks_by_reason.entry(reason.label().into()).or_default();
            column.resize(before, 0);
            column.push(count);
        }
        for column in out.acks_by_reason.values_mut() {
            column.resize(before + 1, 0);
        }
        out.cwnd_bytes.push(tx.cc.window.cwnd);
        out.ssthresh_bytes.push(if tx.cc.window.ssthresh == u64::MAX { 0 } else { tx.cc.window.ssthresh });
        out.srtt_ns.push(tx.srtt_ns);
        out.rtt_ns.push(s.rtts_ns.checked_div(s.rtts).unwrap_or(0));
        (s.rtts, s.rtts_ns) = (0, 0);
        out.bytes_in_flight.push(tx.bytes_in_flight());
        out.rcv_wnd_bytes.push(rx.window());
        let values = policy.map(|p| p.values()).unwrap_or_default();
        for (value, now) in values.iter().zip(rx.observe_policy()) {
            out.policy.entry(value.name.into()).or_default().push(now);
        }
    }

    /// Takes the final counts from the ends. A flow starts when its data was first written.
    pub fn close(&mut self, wrote_ns: Option<u64>, tx: &Sender, rx: &Receiver) {
        self.start_ns = wrote_ns.unwrap_or(self.start_ns);
        self.delivered_bytes = rx.read_bytes();
        self.counters = tx.counters;
    }

    fn goodput_bps(&self) -> f64 {
        let time = self.end_ns.saturating_sub(self.start_ns);
        if time == 0 {
            0.0
        } else {
            self.delivered_bytes as f64 * 8e9 / time as f64
        }
    }

    fn finish(self) -> FlowResult {
        FlowResult {
            start_ns: self.start_ns,
            end_ns: self.end_ns,
            delivered_bytes: self.delivered_bytes,
            goodput_bps: self.goodput_bps(),
            segments_received: self.segments_received,
            acks_sent: self.acks_sent,
            retransmitted_segments: self.counters.retransmitted,
            timeouts: self.counters.timeouts,
            stalls: self.stalls,
            completed: self.completed,
            series: self.series.map(|s| s.out),
            trace: self.trace.map(|t| t.out),
        }
    }
}

impl GroupRecord {
    #[inline]
    pub fn count(&mut self, reason: Reason) {
        self.reasons[usize::from(reason.0) % REASONS] += 1;
    }

    pub fn finish(self, name: String, policy: &str, flows: Vec<FlowRecord>, duration_ns: u64) -> GroupResult {
        let total = |f: fn(&FlowRecord) -> u64| flows.iter().map(f).sum::<u64>();
        let delivered_bytes = total(|f| f.delivered_bytes);
        let start = flows.iter().map(|f| f.start_ns).min().unwrap_or(0);
        // Flows cut off by the end of the run used all of the time.
        let all_done = flows.iter().all(|f| f.completed);
        let end = if all_done { flows.iter().map(|f| f.end_ns).max().unwrap_or(0) } else { duration_ns };
        let time = end.saturating_sub(start).max(1);
        let rates: Vec<f64> = flows.iter().map(FlowRecord::goodput_bps).collect();
        let square_of_sum = rates.iter().sum::<f64>().powi(2);
        let sum_of_squares: f64 = rates.iter().map(|r| r * r).sum();
        let fairness =
            if sum_of_squares > 0.0 { square_of_sum / (rates.len() as f64 * sum_of_squares) } else { 1.0 };
        let segments_received = total(|f| f.segments_received);
        let acks_sent = total(|f| f.acks_sent);
        let all_acks = acks_sent + self.acks_piggybacked;
        let acks_by_reason = (0..REASONS)
            .filter(|&r| self.reasons[r] > 0)
            .map(|r| (Reason(r as u8).label().to_string(), self.reasons[r]))
            .collect();
        GroupResult {
            name,
            policy: policy.into(),
            flows_started: flows.len() as u64,
            flows_completed: self.completed,
            delivered_bytes,
            goodput_bps: delivered_bytes as f64 * 8e9 / time as f64,
            fairness,
            segments_received,
            acks_sent,
            acks_piggybacked: self.acks_piggybacked,
            segments_per_ack: if all_acks == 0 { 0.0 } else { segments_received as f64 / all_acks as f64 },
            acks_by_reason,
            rtt_ns: self.rtt.quantiles(),
            ack_latency_ns: self.ack_latency.quantiles(),
            message_latency_ns: self.message_latency.quantiles(),
            retransmitted_segments: total(|f| f.counters.retransmitted),
            timeouts: total(|f| f.counters.timeouts),
            fast_recoveries: total(|f| f.counters.fast_recoveries),
            stalls: total(|f| f.stalls),
            stalled_ns: total(|f| f.stalled_ns),
            flows: flows.into_iter().map(FlowRecord::finish).collect(),
        }
    }
}
