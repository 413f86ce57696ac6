// SPDX-License-Identifier: MIT
//! One direction of a captured connection as its receiver saw it: the arrivals, their position in
//! sequence space, and the receiver's own packets. Nothing here depends on a policy.

use ackwise_capture::{tcp_flag, Connection, Record};
use ackwise_core::{flag, Seq};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Window assumed where the handshake, and with it the window scale, was not captured.
pub(crate) const ASSUMED_WINDOW_BYTES: u32 = 4 << 20;
/// A receiver's estimate of the peer's segment size before the first segment (RFC 9293, 3.7.1).
const FIRST_MSS_BYTES: u32 = 536;

/// An arriving packet with data or FIN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    /// First sequence number of the packet, and the one after its payload and FIN.
    pub start: u64,
    pub end: u64,
    pub payload_bytes: u32,
    /// Bytes that became readable.
    pub readable_bytes: u32,
    /// Number of wire segments it represents, at least 1.
    pub segments: u32,
    pub rcv_mss_bytes: u32,
    pub rtt_us: u32,
    pub seq: Seq,
    /// Flags for the core's event.
    pub flags: u16,
}

/// A packet sent by the receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub ack: u64,
    pub pure: bool,
    /// Whether it carries data or a FIN, so that its ACK is free.
    pub piggyback: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    Data(Data),
    Sent(Sent),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub time_ns: u64,
    /// Next sequence number expected after the step.
    pub rcv_nxt: u64,
    /// Window that the real receiver offers after the step, and its maximum so far.
    pub wnd_bytes: u32,
    pub wnd_max_bytes: u32,
    pub hole_open: bool,
    pub what: What,
}

/// The steps of one direction; see the module.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub steps: Vec<Step>,
    /// Next sequence number expected before the first step.
    pub first_rcv_nxt: u64,
    pub first_wnd_bytes: u32,
    pub mss_bytes: u32,
    /// Whether both ends agreed on SACK.
    pub sack: bool,
    pub window_known: bool,
    /// RTT between capture point and receiver, by which the receiver's packets are shifted back.
    pub distance_ns: u64,
    /// Bytes that the receiver acknowledged but that are not in the capture.
    pub unseen_bytes: u64,
    /// Number of packets by place: in order, above a hole, filling a hole, duplicate.
    pub orders: [u64; 4],
}

/// Packets that arrive in order and without loss, each ending a write of the application.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    /// Arrival time of each packet; must not decrease.
    pub times_ns: Vec<u64>,
    /// Payload of each packet, at least 1.
    pub bytes: Vec<u32>,
    /// Maximum segment size, at least 1; a larger packet is a merged one.
    pub mss_bytes: u32,
    /// The receiver's estimate of the RTT; 0: unknown.
    #[serde(default)]
    pub rtt_ns: u64,
}

impl Arrivals {
    fn check(&self) -> Result<(), String> {
        if self.times_ns.is_empty() || self.times_ns.len() != self.bytes.len() {
            return Err(format!(
                "arrivals: {} times and {} sizes; give one of each for every packet, at least one",
                self.times_ns.len(),
                self.bytes.len()
            ));
        }
        if self.mss_bytes == 0 {
            return Err("arrivals: mss_bytes = 0; give at least 1".into());
        }
        if let Some(i) = self.bytes.iter().position(|&b| b == 0) {
            return Err(format!("arrivals: bytes[{i}] = 0; give at least 1, or leave the packet out"));
        }
        match self.times_ns.windows(2).position(|w| w[1] < w[0]) {
            Some(i) => {
                Err(format!("arrivals: times_ns[{}] is earlier than the one before; sort them", i + 1))
            }
            None => Ok(()),
        }
    }
}

impl Stream {
    /// The stream for synthetic arrivals: the receiver's window is wide open, and it sends no data.
    pub fn of_arrivals(arrivals: &Arrivals) -> Result<Stream, String> {
        arrivals.check()?;
        let mss_bytes = arrivals.mss_bytes;
        let mut rcv_nxt = 1;
        let data = arrivals.times_ns.iter().zip(&arrivals.bytes).map(|(&time_ns, &bytes)| {
            let start = rcv_nxt;
            rcv_nxt += u64::from(bytes);
            Step {
                time_ns,
                rcv_nxt,
                wnd_bytes: ASSUMED_WINDOW_BYTES,
                wnd_max_bytes: ASSUMED_WINDOW_BYTES,
                hole_open: false,
                what: What::Data(Data {
                    start,
                    end: rcv_nxt,
                    payload_bytes: bytes,
                    readable_bytes: bytes,
                    segments: bytes.div_ceil(mss_bytes),
                    rcv_mss_bytes: mss_bytes,
                    rtt_us: clamp(arrivals.rtt_ns.div_ceil(1_000)),
                    seq: Seq::In,
                    flags: flag::PSH,
                }),
            }
        });
        let steps: Vec<_> = data.collect();
        Ok(Stream {
            orders: [steps.len() as u64, 0, 0, 0],
            steps,
            first_rcv_nxt: 1,
            first_wnd_bytes: ASSUMED_WINDOW_BYTES,
            mss_bytes,
            sack: false,
            window_known: false,
            distance_ns: 0,
            unseen_bytes: 0,
        })
    }

    /// Times of the first and the last step.
    pub fn span_ns(&self) -> (u64, u64) {
        let at = |step: Option<&Step>| step.map_or(0, |s| s.time_ns);
        (at(self.steps.first()), at(self.steps.last()))
    }

    /// The stream of direction `d`; None if it carries no data.
    pub fn new(connection: &Connection, d: usize) -> Option<Stream> {
        let direction = &connection.directions[d];
        let receiver = &connection.directions[1 - d];
        let first = direction.records.iter().find(|r| r.is_data())?;
        let window_known = receiver.window_shift.is_some();
        let window = |r: &Record| if window_known { r.window } else { ASSUMED_WINDOW_BYTES };
        let first_wnd_bytes = receiver.records.first().map_or(ASSUMED_WINDOW_BYTES, window);
        let distance_ns = distance(connection, d);
        let first_rcv_nxt = if direction.isn.is_some() { 1 } else { first.data_seq() };

        let mut space = Space { rcv_nxt: first_rcv_nxt, beyond: BTreeMap::new() };
        let mut mss = MssEstimate { bytes: FIRST_MSS_BYTES.min(direction.mss_bytes), last: 0 };
        let mut rtt = RttEstimate::new(connection, distance_ns);
        let mut ce = false;
        let (mut wnd_bytes, mut wnd_max_bytes) = (first_wnd_bytes, first_wnd_bytes);
        let mut stream = Stream {
            steps: Vec::new(),
            first_rcv_nxt,
            first_wnd_bytes,
            mss_bytes: direction.mss_bytes,
            // Without the handshake, SACK blocks show it.
            sack: direction.sack_permitted && receiver.sack_permitted
                || receiver.records.iter().any(|r| !receiver.sacks(r).is_empty()),
            window_known,
            distance_ns,
            unseen_bytes: 0,
            orders: [0; 4],
        };
        let mut events = at_receiver(connection, d, distance_ns).peekable();
        while let Some((time_ns, from, record)) = events.next() {
            let what = if from == d {
                let (start, end) = (record.data_seq(), record.seq_end());
                let before = space.rcv_nxt;
                let seq = space.arrive(start, end);
                stream.orders[seq as usize] += 1;
                let advance = space.rcv_nxt - before;
                // The FIN takes a sequence number but no byte; it is last in the stream.
                let fin = record.has(tcp_flag::FIN);
                let readable = advance.saturating_sub(u64::from(fin && space.rcv_nxt == end));
                let len = record.payload_len.min(direction.mss_bytes);
                mss.update(len, record.flags);
                rtt.data(record, len >= mss.bytes);
                // What a segment did to the window shows in the ACK after it.
                let grew = events.peek().is_some_and(|(_, f, r)| *f != d && window(r) > wnd_max_bytes);
                let mut flags = 0;
                for (set, bit) in [
                    (record.has(tcp_flag::PSH), flag::PSH),
                    (fin, flag::FIN),
                    (record.is_ce() != ce, flag::CE_CHANGE),
                    (grew, flag::WND_GREW),
                ] {
                    flags |= if set { bit } else { 0 };
                }
                ce = record.is_ce();
                What::Data(Data {
                    start,
                    end,
                    payload_bytes: record.payload_len,
                    readable_bytes: clamp(readable),
                    segments: direction.segments_of(record.payload_len),
                    rcv_mss_bytes: mss.bytes,
                    rtt_us: rtt.us(),
                    seq,
                    flags,
                })
            } else {
                wnd_bytes = window(record);
                wnd_max_bytes = wnd_max_bytes.max(wnd_bytes);
                stream.unseen_bytes += space.skip_to(record.ack);
                rtt.sent(record);
                What::Sent(Sent {
                    ack: record.ack,
                    pure: record.is_pure_ack(),
                    piggyback: record.is_data() && record.has(tcp_flag::ACK),
                })
            };
            stream.steps.push(Step {
                time_ns,
                rcv_nxt: space.rcv_nxt,
                wnd_bytes,
                wnd_max_bytes,
                hole_open: !space.beyond.is_empty(),
                what,
            });
        }
        Some(stream)
    }
}

pub(crate) fn clamp(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Data of direction `d` and packets of its receiver, in the receiver's order of events. The
/// receiver's packets passed the capture point one way delay after they left, and data one way
/// delay before it arrived, so shifting the former back by the RTT puts both on one clock. Data
/// precedes ACKs of the same time, otherwise an ACK might precede the data that it covers.
fn at_receiver(
    connection: &Connection,
    d: usize,
    distance_ns: u64,
) -> impl Iterator<Item = (u64, usize, &Record)> {
    let resets = |r: &&Record| !r.has(tcp_flag::RST);
    let mut data = connection.directions[d].records.iter().filter(|r| r.is_data()).peekable();
    let mut sent = connection.directions[1 - d].records.iter().filter(resets).peekable();
    std::iter::from_fn(move || {
        let left_ns = |r: &Record| r.time_ns.saturating_sub(distance_ns);
        let data_first = match (data.peek(), sent.peek()) {
            (Some(a), Some(b)) if a.time_ns == left_ns(b) => {
                // Same instant: the file's order, unless the shift created the tie.
                distance_ns > 0 || a.packet < b.packet
            }
            (Some(a), Some(b)) => a.time_ns < left_ns(b),
            (Some(_), None) => true,
            (None, _) => false,
        };
        if data_first {
            data.next().map(|r| (r.time_ns, d, r))
        } else {
            sent.next().map(|r| (left_ns(r), 1 - d, r))
        }
    })
}

/// RTT between the capture point and the receiver of direction `d`: from the handshake, but at most
/// the shortest time in which an ACK followed its data.
fn distance(connection: &Connection, d: usize) -> u64 {
    let Some(handshake) = connection.handshake else { return 0 };
    let mut distance_ns = handshake.distance_ns(1 - d);
    // End of each data packet that waits for its ACK, and the time of its first arrival.
    let mut waiting = BTreeMap::new();
    let mut highest = 0;
    for (from, record) in connection.timeline() {
        if from == d && record.is_data() {
            waiting.entry(record.seq_end()).or_insert(record.time_ns);
        } else if from != d && record.has(tcp_flag::ACK) && record.ack > highest {
            highest = record.ack;
            let later = waiting.split_off(&(highest + 1));
            if let Some(&latest) = waiting.values().max() {
                distance_ns = distance_ns.min(record.time_ns - latest);
            }
            waiting = later;
        }
    }
    distance_ns
}

/// Received sequence space: everything below `rcv_nxt`, and blocks above a hole.
struct Space {
    rcv_nxt: u64,
    /// Blocks as start -> end; they neither touch nor overlap.
    beyond: BTreeMap<u64, u64>,
}

impl Space {
    fn arrive(&mut self, start: u64, end: u64) -> Seq {
        if end <= self.rcv_nxt {
            return Seq::Duplicate;
        }
        if start <= self.rcv_nxt {
            let seq = if self.beyond.is_empty() { Seq::In } else { Seq::Fills };
            self.rcv_nxt = end;
            self.absorb();
            return seq;
        }
        if self.beyond.range(..=start).next_back().is_some_and(|(_, &e)| e >= end) {
            return Seq::Duplicate;
        }
        let (mut start, mut end) = (start, end);
        if let Some((&s, &e)) = self.beyond.range(..=start).next_back() {
            if e >= start {
                start = s;
                end = end.max(e);
            }
        }
        while let Some((&s, &e)) = self.beyond.range(start..).next() {
            if s > end {
                break;
            }
            self.beyond.remove(&s);
            end = end.max(e);
        }
        self.beyond.insert(start, end);
        Seq::Hole
    }

    fn absorb(&mut self) {
        while let Some((&s, &e)) = self.beyond.iter().next() {
            if s > self.rcv_nxt {
                break;
            }
            self.beyond.remove(&s);
            self.rcv_nxt = self.rcv_nxt.max(e);
        }
    }

    /// Marks everything below `ack` as received, captured or not; returns the bytes that were not
    /// captured.
    fn skip_to(&mut self, ack: u64) -> u64 {
        let before = self.rcv_nxt;
        if ack <= before {
            return 0;
        }
        let known: u64 =
            self.beyond.range(..ack).map(|(&s, &e)| e.min(ack).saturating_sub(s.max(before))).sum();
        self.rcv_nxt = ack;
        self.absorb();
        (ack - before).saturating_sub(known)
    }
}

/// The receiver's estimate of the peer's segment size, as in Linux (tcp_measure_rcv_mss): it grows
/// at once and shrinks when two equal lengths in a row are not an application's short writes.
struct MssEstimate {
    bytes: u32,
    last: u32,
}

impl MssEstimate {
    fn update(&mut self, len: u32, flags: u16) {
        if len == 0 {
            return;
        }
        let short_write = flags & (tcp_flag::PSH | tcp_flag::FIN | tcp_flag::URG) != 0;
        if len >= self.bytes {
            self.bytes = len;
        } else if len >= FIRST_MSS_BYTES || !short_write {
            if len == self.last {
                self.bytes = len;
            }
            self.last = len;
        }
    }
}

/// The receiver's RTT estimate, as in Linux: from the handshake, then from the timestamps that full
/// segments echo, smoothed by 1/8.
struct RttEstimate {
    smoothed_ns: Option<u64>,
    distance_ns: u64,
    /// The receiver's timestamps that were not echoed yet, each with the last time it was sent.
    sent: VecDeque<(u32, u64)>,
    last_echo: Option<u32>,
}

impl RttEstimate {
    fn new(connection: &Connection, distance_ns: u64) -> Self {
        let smoothed_ns = connection.handshake.map(|h| h.rtt_ns()).filter(|&ns| ns > 0);
        RttEstimate { smoothed_ns, distance_ns, sent: VecDeque::new(), last_echo: None }
    }

    fn sent(&mut self, record: &Record) {
        if !record.has_timestamps {
            return;
        }
        match self.sent.back_mut() {
            Some((val, time_ns)) if *val == record.ts_val => *time_ns = record.time_ns,
            _ => self.sent.push_back((record.ts_val, record.time_ns)),
        }
    }

    fn data(&mut self, record: &Record, full: bool) {
        if !record.has_timestamps || !full || self.last_echo == Some(record.ts_ecr) {
            return;
        }
        let is_older = |val: u32| (val.wrapping_sub(record.ts_ecr) as i32) < 0;
        while self.sent.front().is_some_and(|&(val, _)| is_older(val)) {
            self.sent.pop_front();
        }
        let Some(&(val, time_ns)) = self.sent.front() else { return };
        if val != record.ts_ecr || record.time_ns < time_ns {
            return;
        }
        self.last_echo = Some(val);
        let sample = (record.time_ns - time_ns).saturating_add(self.distance_ns);
        self.smoothed_ns = Some(match self.smoothed_ns {
            Some(old) => (old - old / 8).saturating_add(sample / 8),
            None => sample,
        });
    }

    /// The estimate in microseconds, rounded up; 0: unknown.
    fn us(&self) -> u32 {
        self.smoothed_ns.map_or(0, |ns| clamp(ns.div_ceil(1_000)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_space_tells_the_four_orders() {
        let mut space = Space { rcv_nxt: 1, beyond: BTreeMap::new() };
        assert_eq!(space.arrive(1, 11), Seq::In);
        assert_eq!(space.arrive(21, 31), Seq::Hole);
        assert_eq!(space.arrive(41, 51), Seq::Hole);
        assert_eq!(space.arrive(31, 41), Seq::Hole);
        assert_eq!(space.beyond.len(), 1, "touching blocks become one");
        assert_eq!(space.arrive(25, 45), Seq::Duplicate);
        assert_eq!(space.arrive(1, 11), Seq::Duplicate);
        assert_eq!(space.arrive(5, 16), Seq::Fills);
        assert_eq!((space.rcv_nxt, space.beyond.len()), (16, 1));
        assert_eq!(space.arrive(16, 21), Seq::Fills);
        assert_eq!((space.rcv_nxt, space.beyond.len()), (51, 0));
        assert_eq!(space.arrive(61, 71), Seq::Hole);
        assert_eq!(space.skip_to(66), 10);
        assert_eq!(space.rcv_nxt, 71);
    }

    #[test]
    fn segment_estimate_follows_the_sender() {
        let mut mss = MssEstimate { bytes: 536, last: 0 };
        mss.update(1448, 0);
        assert_eq!(mss.bytes, 1448);
        mss.update(100, tcp_flag::PSH);
        mss.update(100, tcp_flag::PSH);
        assert_eq!(mss.bytes, 1448, "short writes say nothing");
        mss.update(1200, 0);
        assert_eq!(mss.bytes, 1448);
        mss.update(1200, 0);
        assert_eq!(mss.bytes, 1200);
    }

    #[test]
    fn a_step_tells_what_the_receivers_kernel_would_know() {
        use ackwise_capture::write::{PcapStyle, PcapWriter, TcpPacket};
        use tcp_flag::{ACK, PSH, SYN};
        const MS: u64 = 1_000_000;
        let [a, b] = ["10.0.0.1:1000", "10.0.0.2:80"].map(|t| t.parse().expect("an address"));
        let stamps = |val: u8, ecr: u8| [1, 1, 8, 10, 0, 0, 0, val, 0, 0, 0, ecr];
        let syn = [&[2, 4, 4, 0, 1, 3, 3, 0], &stamps(1, 0)[..]].concat();
        let p = TcpPacket::new;
        let packets = [
            (0, p(a, b, 0, 0, 0).flags(SYN).options(&syn)),
            (0, p(b, a, 0, 1, 0).flags(SYN | ACK).options(&syn).window(5000)),
            (10 * MS, p(a, b, 1, 1, 0).options(&stamps(2, 1))),
            (11 * MS, p(a, b, 1, 1, 300).flags(PSH | ACK).options(&stamps(3, 1)).ecn(3)),
            (12 * MS, p(b, a, 1, 301, 0).options(&stamps(9, 3)).window(9000)),
            (12 * MS, p(a, b, 301, 1, 1012).options(&stamps(4, 1)).ecn(3)),
            (30 * MS, p(a, b, 1313, 1, 1012).options(&stamps(5, 9)).ecn(2)),
        ];
        let mut w = PcapWriter::new(ackwise_capture::link::RAW, PcapStyle::default());
        for (time_ns, packet) in &packets {
            w.tcp(*time_ns, packet);
        }
        let capture = ackwise_capture::read(&w.into_bytes()[..], "test", &Default::default()).expect("valid");
        let stream = Stream::new(&capture.connections[0], 0).expect("has data");
        assert_eq!((stream.mss_bytes, stream.first_wnd_bytes, stream.distance_ns), (1012, 5000, 0));
        let data: Vec<_> = stream
            .steps
            .iter()
            .filter_map(|s| match s.what {
                What::Data(d) => Some((s, d)),
                What::Sent(_) => None,
            })
            .collect();
        let flags: Vec<_> = data.iter().map(|(_, d)| d.flags).collect();
        assert_eq!(flags, [flag::PSH | flag::CE_CHANGE | flag::WND_GREW, 0, flag::CE_CHANGE]);
        let wnd: Vec<_> = data.iter().map(|(s, _)| (s.wnd_bytes, s.wnd_max_bytes)).collect();
        assert_eq!(wnd, [(5000, 5000), (9000, 9000), (9000, 9000)]);
        let mss: Vec<_> = data.iter().map(|(_, d)| d.rcv_mss_bytes).collect();
        assert_eq!(mss, [536, 1012, 1012]);
        // 10 ms from the handshake, 12 ms from the echo of 1, 18 ms from the echo of 9.
        let rtt: Vec<_> = data.iter().map(|(_, d)| d.rtt_us).collect();
        assert_eq!(rtt, [10_000, 10_250, 11_219]);
        let readable: Vec<_> = data.iter().map(|(_, d)| d.readable_bytes).collect();
        assert_eq!(readable, [300, 1012, 1012]);
    }
}
