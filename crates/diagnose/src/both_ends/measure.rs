// SPDX-License-Identifier: MIT
//! ACKs, segments, ACK latency and RTTs of all flows of a run.

use super::path::{AckPath, PathRecorder};
use super::{Host, Passing, Run, HOSTS};
use ackwise_capture::sequence::Offsets;
use ackwise_capture::{tcp_flag, CaptureError, ReadOptions};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Measurements requested for a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Time of day at the start of the run, nanoseconds; times in traces and samples are relative
    /// to it.
    pub start_ns: u64,
    /// Time of day after which packets are not part of the run, nanoseconds.
    pub end_ns: u64,
    /// Payload of a full segment, bytes; a larger packet is a merged one.
    pub mss_bytes: u32,
    /// Time of day from which the paths of ACKs are followed, nanoseconds; None: they are not.
    pub paths_from_ns: Option<u64>,
    /// The flows, in the order of their ports.
    pub flows: Vec<AskedFlow>,
}

/// Measurements requested for one flow.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskedFlow {
    /// Whether the server sends the data.
    pub down: bool,
    /// Maximum points of its trace; None: no trace.
    pub trace_limit: Option<usize>,
    /// Times at which ACKs are counted, nanoseconds since the start of the run.
    #[serde(default)]
    pub samples_ns: Vec<i64>,
}

/// Measurements of one flow from both captures.
#[derive(Debug, Default, Serialize)]
pub struct MeasuredFlow {
    /// Data segments at the receiving host; merged ones count separately.
    pub segments_received: u64,
    /// Packets that only acknowledge.
    pub acks_sent: u64,
    /// Data packets of the receiving host that carried an ACK of data.
    pub acks_piggybacked: u64,
    /// Value of `acks_sent` at each of the requested times.
    pub acks_at_samples: Vec<usize>,
    /// RTT samples at the sending host, nanoseconds.
    #[serde(skip)]
    pub rtt_ns: Vec<u64>,
    /// Time from the arrival of data at the receiving host to its ACK, nanoseconds.
    #[serde(skip)]
    pub ack_latency_ns: Vec<u64>,
    /// Data and ACKs over time; None unless requested.
    pub trace: Option<Trace>,
    /// Fate of the ACKs on the path; None unless requested.
    #[serde(skip)]
    pub ack_path: Option<AckPath>,
}

/// Data and ACKs at their senders in order of time; sequence numbers are relative to the first byte
/// of data.
#[derive(Debug, Default, Serialize)]
pub struct Trace {
    #[serde(skip)]
    limit: usize,
    /// Times at which data packets left, nanoseconds since the start of the run.
    pub data_time_ns: Vec<i64>,
    /// Sequence number of the first byte of each.
    pub data_seq: Vec<i64>,
    /// Payload bytes of each.
    pub data_bytes: Vec<u32>,
    /// Whether each repeats data.
    pub data_retransmitted: Vec<bool>,
    /// Times at which ACKs left, nanoseconds since the start of the run.
    pub ack_time_ns: Vec<i64>,
    /// Acknowledgment number of each.
    pub ack_seq: Vec<i64>,
    /// Reasons of the ACKs; empty, because captures do not show them.
    pub ack_reason: Vec<&'static str>,
    /// Whether more data or ACKs were sent than the limit.
    pub truncated: bool,
}

/// Reads the captures of a run.
///
/// # Errors
/// The errors of [`ackwise_capture::segments`].
pub fn measure(
    run: &Run,
    wanted: &Measured,
    options: &ReadOptions<'_>,
) -> Result<Vec<MeasuredFlow>, CaptureError> {
    let mut followed: Vec<_> = wanted.flows.iter().map(|asked| Followed::new(asked, wanted)).collect();
    for at in HOSTS {
        run.read(at, options, |p| {
            if p.time_ns <= wanted.end_ns {
                if let Some(flow) = followed.get_mut(p.flow) {
                    flow.take(at, p, wanted);
                }
            }
        })?;
    }
    Ok(followed.into_iter().map(Followed::finish).collect())
}

/// State of a flow while its captures are read.
struct Followed<'a> {
    asked: &'a AskedFlow,
    found: MeasuredFlow,
    receiving: Receiving,
    sending: Sending,
    path: Option<PathRecorder>,
}

impl<'a> Followed<'a> {
    fn new(asked: &'a AskedFlow, wanted: &Measured) -> Self {
        let trace = asked.trace_limit.map(|limit| Trace { limit, ..Trace::default() });
        Followed {
            asked,
            found: MeasuredFlow { trace, ..MeasuredFlow::default() },
            receiving: Receiving::default(),
            sending: Sending::default(),
            path: wanted.paths_from_ns.map(|_| PathRecorder::default()),
        }
    }

    fn take(&mut self, at: Host, p: &Passing<'_>, wanted: &Measured) {
        let sender = Host::sender(self.asked.down);
        if let Some(path) = self.path.as_mut().filter(|_| Some(p.time_ns) >= wanted.paths_from_ns) {
            match (at == sender, p.by == sender) {
                (false, false) => path.left(p),
                (true, false) => path.came(p),
                (false, true) => path.data(p),
                (true, true) => {}
            }
        }
        if p.segment.has(tcp_flag::RST) {
            return;
        }
        let since_start_ns = (p.time_ns as i64).wrapping_sub(wanted.start_ns as i64);
        match (at == sender, p.by == sender) {
            (false, true) => self.receiving.arrived(p, wanted.mss_bytes, &mut self.found),
            (false, false) => self.receiving.left(p, since_start_ns, &mut self.found),
            (true, true) => self.sending.left(p, since_start_ns, self.found.trace.as_mut()),
            (true, false) => self.found.rtt_ns.extend(self.sending.arrived(p)),
        }
    }

    fn finish(self) -> MeasuredFlow {
        let before = |&sample_ns: &i64| self.receiving.ack_times_ns.partition_point(|&t| t < sample_ns);
        MeasuredFlow {
            acks_at_samples: self.asked.samples_ns.iter().map(before).collect(),
            ack_path: self.path.map(PathRecorder::finish),
            ..self.found
        }
    }
}

/// State at the host that receives the data.
#[derive(Default)]
struct Receiving {
    numbers: Offsets,
    /// Arrival times of the segments that no ACK has covered yet.
    waiting_ns: Vec<u64>,
    ack_times_ns: Vec<i64>,
}

impl Receiving {
    fn arrived(&mut self, p: &Passing<'_>, mss_bytes: u32, found: &mut MeasuredFlow) {
        if p.segment.has(tcp_flag::SYN) {
            self.numbers.start(p.segment.seq.wrapping_add(1));
        } else if p.segment.payload_len > 0 {
            let merged = p.segment.payload_len.div_ceil(mss_bytes.max(1));
            found.segments_received += u64::from(merged);
            self.waiting_ns.extend((0..merged).map(|_| p.time_ns));
        }
    }

    fn left(&mut self, p: &Passing<'_>, since_start_ns: i64, found: &mut MeasuredFlow) {
        // Before any data it is part of the handshake or of a first request, and acknowledges no
        // data.
        if p.segment.has(tcp_flag::SYN) || found.segments_received == 0 {
            return;
        }
        if p.segment.payload_len == 0 && !p.segment.has(tcp_flag::FIN) {
            found.acks_sent += 1;
            self.ack_times_ns.push(since_start_ns);
            let number = self.numbers.see(p.segment.ack);
            if let Some(trace) = &mut found.trace {
                if trace.ack_seq.len() < trace.limit {
                    trace.ack_time_ns.push(since_start_ns);
                    trace.ack_seq.push(number);
                    trace.ack_reason.push("");
                } else {
                    trace.truncated = true;
                }
            }
        } else if !self.waiting_ns.is_empty() && p.segment.payload_len > 0 {
            found.acks_piggybacked += 1;
        }
        let latency_ns = |arrived_ns| p.time_ns.saturating_sub(arrived_ns);
        found.ack_latency_ns.extend(self.waiting_ns.drain(..).map(latency_ns));
    }
}

/// State at the host that sends the data. An advancing ACK gives the RTT of the first segment that
/// it newly covers, unless that was sent twice or reported by SACK before.
#[derive(Default)]
struct Sending {
    numbers: Offsets,
    outstanding: VecDeque<Sent>,
    /// End of all data sent.
    high: i64,
}

struct Sent {
    end: i64,
    start: i64,
    time_ns: u64,
    is_measurable: bool,
}

impl Sending {
    fn left(&mut self, p: &Passing<'_>, since_start_ns: i64, trace: Option<&mut Trace>) {
        if p.segment.has(tcp_flag::SYN) {
            self.numbers.start(p.segment.seq.wrapping_add(1));
            return;
        }
        let bytes = p.segment.payload_len;
        if bytes == 0 {
            return;
        }
        let start = self.numbers.see(p.segment.seq);
        let end = start + i64::from(bytes);
        let is_again = start < self.high;
        if let Some(trace) = trace {
            if trace.data_seq.len() < trace.limit {
                trace.data_time_ns.push(since_start_ns);
                trace.data_seq.push(start);
                trace.data_bytes.push(bytes);
                trace.data_retransmitted.push(is_again);
            } else {
                trace.truncated = true;
            }
        }
        if is_again {
            self.mark(start, end.min(self.high));
        }
        if end > self.high {
            let start = start.max(self.high);
            self.outstanding.push_back(Sent { end, start, time_ns: p.time_ns, is_measurable: true });
            self.high = end;
        }
    }

    /// The RTT shown by an arriving ACK.
    fn arrived(&mut self, p: &Passing<'_>) -> Option<u64> {
        if p.segment.has(tcp_flag::SYN) || !p.segment.has(tcp_flag::ACK) || self.outstanding.is_empty() {
            return None;
        }
        let ack = self.numbers.see(p.segment.ack);
        let covered = self.outstanding.partition_point(|sent| sent.end <= ack);
        let first = self.outstanding.drain(..covered).find(|sent| sent.is_measurable);
        for &(left, right) in p.segment.sack_blocks() {
            let (left, right) = (self.numbers.see(left), self.numbers.see(right));
            self.mark(left, right);
        }
        first.map(|sent| p.time_ns.saturating_sub(sent.time_ns))
    }

    /// Excludes segments that overlap [start, end) from RTT samples: they were sent twice, or
    /// reported by SACK.
    fn mark(&mut self, start: i64, end: i64) {
        let from = self.outstanding.partition_point(|sent| sent.end <= start);
        for sent in self.outstanding.range_mut(from..).take_while(|sent| sent.start < end) {
            sent.is_measurable = false;
        }
    }
}
