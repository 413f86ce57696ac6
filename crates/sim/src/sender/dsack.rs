// SPDX-License-Identifier: MIT
//! D-SACK (RFC 2883): the receiver's reports of data that arrived twice.

use super::ack::News;
use super::Sender;
use crate::packet::Packet;

impl Sender {
    /// Processes the report, if the first SACK block is one (RFC 2883, 4; Linux, tcp_check_dsack):
    /// below the cumulative ACK, or within the second block. Copies beyond the number of
    /// retransmissions are the network's.
    pub(super) fn take_dsack(&mut self, p: &Packet, news: &mut News) {
        let mut blocks = p.sack.iter().flat_map(|blocks| blocks.iter().copied());
        let Some((start, end)) = blocks.next() else { return };
        let is_within = |(s, e): (u64, u64)| s <= start && end <= e;
        if start >= end || !(start < p.ack || blocks.next().is_some_and(is_within)) {
            return;
        }
        let segments = (end - start).div_ceil(self.mss);
        self.copies_reported += segments;
        if self.copies_reported > self.counters.retransmitted {
            return;
        }
        news.dsacked_end = Some(end);
        news.sample.delivered_bytes += end - start;
        if self.tail_probe.map(|probe| probe.end) != news.dsacked_end {
            self.rack.note_spurious();
        }
        if end <= news.prior_una {
            self.undo.take_dsack(end, segments);
        } else {
            self.take_dsack_above(start, end, news);
        }
    }

    /// Processes a report on segments that are not acknowledged yet.
    fn take_dsack_above(&mut self, start: u64, end: u64, news: &mut News) {
        let first = self.segments.partition_point(|s| s.seq < start);
        for segment in self.segments.iter_mut().skip(first).take_while(|s| s.end() <= end) {
            if !segment.retransmitted {
                continue;
            }
            self.undo.take_dsack(segment.end(), 1);
            if segment.sacked {
                news.overtaken = news.overtaken.min(segment.seq);
            }
            segment.recall(&mut self.tally);
        }
    }
}
