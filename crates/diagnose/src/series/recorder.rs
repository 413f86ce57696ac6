// SPDX-License-Identifier: MIT
//! Recorder of one transfer: assigns each packet to a track.

use super::point::{Acks, Data, Kinds, Mark, Piece, Place, Range};
use super::track::Track;
use crate::step::{self, AckKind, Cause, DataKind, Step};
use ackwise_capture::sequence::near;
use ackwise_capture::tcp_flag;
use serde::Serialize;
use std::collections::BTreeMap;

/// ECN bits of a packet that experienced congestion (RFC 3168, 5).
const CE: u8 = 3;

/// One transfer as points.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// Data that passed for the first time.
    pub data: Track<Data>,
    /// ACKs of the receiver.
    pub acks: Track<Acks>,
    /// Retransmissions, SACK blocks and other events, by type.
    pub marks: BTreeMap<Mark, Track<Piece>>,
}

#[derive(Debug)]
pub(super) struct Recorder {
    most: usize,
    series: Series,
    /// First sequence number of the transfer.
    base: Option<u64>,
    /// RTT between the capture point and the sender.
    distance_ns: Option<u64>,
    /// Bytes above a hole after the previous ACK.
    sacked_bytes: u64,
}

impl Recorder {
    pub fn new(most: usize) -> Self {
        let series = Series { data: Track::new(most), acks: Track::new(most), marks: BTreeMap::new() };
        Recorder { most, series, base: None, distance_ns: None, sacked_bytes: 0 }
    }

    /// Adds a packet of a connection in which endpoint `of` sends the data.
    pub fn add(&mut self, sack_blocks: &[(u32, u32)], step: &Step, of: usize) {
        match (step.from == of, &step.ack) {
            (true, _) => self.sent(step),
            (false, Some(ack)) => self.acked(sack_blocks, step, ack),
            (false, None) => {}
        }
    }

    pub fn finish(self) -> Series {
        self.series
    }

    fn relative(&mut self, number: u64) -> i64 {
        number.wrapping_sub(*self.base.get_or_insert(number)) as i64
    }

    fn sent(&mut self, step: &Step) {
        let data = &step.data;
        let mark = match data.kind {
            DataKind::None | DataKind::Old => return,
            DataKind::Syn | DataKind::SynAgain if data.start == data.end => return,
            DataKind::Syn | DataKind::SynAgain | DataKind::New => None,
            DataKind::OutOfOrder => Some(Mark::OutOfOrder),
            DataKind::Retransmission(Cause::Fast) => Some(Mark::FastRetransmission),
            DataKind::Retransmission(Cause::Timeout) => Some(Mark::TimeoutRetransmission),
            DataKind::Retransmission(Cause::TailLossProbe) => Some(Mark::TailLossProbe),
            DataKind::Retransmission(Cause::Unclear) => Some(Mark::UnclearRetransmission),
            DataKind::KeepAlive => Some(Mark::KeepAlive),
            DataKind::WindowProbe => Some(Mark::WindowProbe),
        };
        self.distance_ns = Some(data.sender.distance_ns);
        if let Some(mark) = mark {
            self.mark(mark, step, (data.start, data.end), data.new_bytes);
        } else {
            let (start, end) = (self.relative(data.start), self.relative(data.end));
            let sender = &data.sender;
            self.series.data.push(Data {
                place: Place::of(step),
                start,
                end,
                payload_bytes: step.payload_bytes.into(),
                flight_bytes: Range::of(sender.flight_bytes(data.end)),
                window_bytes: Range::of(sender.edge.saturating_sub(sender.una)),
            });
        }
        if step.ecn == CE {
            self.mark(Mark::CongestionMark, step, (data.start, data.end), 0);
        }
    }

    fn acked(&mut self, sack_blocks: &[(u32, u32)], step: &Step, ack: &step::Ack) {
        for &(from, to) in sack_blocks {
            let block = (near(ack.number, from), near(ack.number, to));
            let mark = if ack.dsack == Some(block) { Mark::DuplicateSack } else { Mark::Sack };
            self.mark(mark, step, block, 0);
        }
        if ack.kind == AckKind::Old {
            return;
        }
        let mut kinds = Kinds::default();
        let carries = step.payload_bytes > 0 || step.has(tcp_flag::SYN | tcp_flag::FIN);
        *match ack.kind {
            AckKind::Duplicate => &mut kinds.duplicate,
            AckKind::WindowUpdate => &mut kinds.window_update,
            _ if carries => &mut kinds.piggybacked,
            _ => &mut kinds.pure,
        } = 1;
        let rtt_ns = match (ack.kind, ack.rtt_ns(), self.distance_ns) {
            (AckKind::Advancing, Some(rtt_ns), Some(rest_ns)) => Some(Range::of(rtt_ns + rest_ns)),
            _ => None,
        };
        let point = Acks {
            place: Place::of(step),
            kinds,
            number: Range::of(self.relative(ack.number)),
            edge: ack.window_known.then(|| Range::of(self.relative(ack.edge))),
            delivered_bytes: self.delivered(ack),
            rtt_ns,
        };
        self.series.acks.push(point);
    }

    /// Bytes newly delivered. A number that jumps over a hole does not show when the data above the
    /// hole arrived: blocks did.
    fn delivered(&mut self, ack: &step::Ack) -> u64 {
        let before = std::mem::replace(&mut self.sacked_bytes, ack.sacked_in_all_bytes);
        (ack.acked_bytes + ack.sacked_in_all_bytes).saturating_sub(before)
    }

    fn mark(&mut self, mark: Mark, step: &Step, (start, end): (u64, u64), new_bytes: u32) {
        let bytes = end.saturating_sub(start);
        let (start, end) = (self.relative(start), self.relative(end));
        let most = (self.most / 4).max(2);
        let track = self.series.marks.entry(mark).or_insert_with(|| Track::new(most));
        track.push(Piece { place: Place::of(step), start, end, bytes, new_bytes: new_bytes.into() });
    }
}
