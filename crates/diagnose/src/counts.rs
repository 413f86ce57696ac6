// SPDX-License-Identifier: MIT
//! Counts of packets, segments, bytes and ACKs by type.

use crate::ace;
use crate::observer::{End, Observer};
use crate::step::{AckKind, Cause, DataKind, Step};
use ackwise_capture::tcp_flag;
use serde::Serialize;

/// Counts by [`Cause`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ByCause {
    /// Duplicate ACKs or SACK blocks reported the loss.
    pub fast: u64,
    /// The retransmission timer expired.
    pub timeout: u64,
    /// A tail loss probe (RFC 8985, 7).
    pub tail_loss_probe: u64,
    /// No cause is visible.
    pub unclear: u64,
}

impl ByCause {
    fn count(&mut self, cause: Cause) {
        *match cause {
            Cause::Fast => &mut self.fast,
            Cause::Timeout => &mut self.timeout,
            Cause::TailLossProbe => &mut self.tail_loss_probe,
            Cause::Unclear => &mut self.unclear,
        } += 1;
    }

    /// The sum of all causes.
    pub fn total(&self) -> u64 {
        self.fast + self.timeout + self.tail_loss_probe + self.unclear
    }
}

/// Packets and bytes of the data sender.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SentCounts {
    /// Packets of any type.
    pub packets: u64,
    /// With payload.
    pub data_packets: u64,
    /// Wire segments: a merged packet counts once for each MSS.
    pub segments: u64,
    /// Packets with more than one MSS: an offload was on at the capture point.
    pub packets_above_mss: u64,
    /// Payload bytes, including retransmissions.
    pub payload_bytes: u64,
    /// Payload bytes without retransmissions.
    pub new_bytes: u64,
    /// Largest payload of a packet; above the MSS where offloads merged packets.
    pub largest_payload_bytes: u32,
    /// Packets with SYN, including repeated ones.
    pub syn_packets: u64,
    /// Repeated SYNs.
    pub syn_retransmissions: u64,
    /// Packets with FIN.
    pub fin_packets: u64,
    /// Packets with RST.
    pub rst_packets: u64,
    /// Data packets with PSH.
    pub pushed_packets: u64,
    /// Packets with retransmitted data.
    pub retransmissions: ByCause,
    /// Payload bytes of the retransmissions.
    pub retransmitted_bytes: u64,
    /// Retransmissions of data never seen before: the first copy was lost before the capture point,
    /// or by the capture.
    pub unseen_retransmissions: u64,
    /// Retransmissions of data that was acknowledged before they passed.
    pub needless_retransmissions: u64,
    /// Recoveries; each expiry of a timer within one also counts.
    pub recoveries: ByCause,
    /// Packets that arrived below the highest number without being retransmissions.
    pub out_of_order_packets: u64,
    /// Packets that follow a gap in sequence space: data was lost, overtaken, or not captured.
    pub gaps: u64,
    /// Bytes skipped by these gaps when the packets passed.
    pub gap_bytes: u64,
    /// Keep-alives: an acknowledged number, sent to make the peer answer (RFC 9293, 3.8.4).
    pub keep_alives: u64,
    /// Window probes (RFC 9293, 3.8.6.1).
    pub window_probes: u64,
    /// Packets below the connection's first sequence number.
    pub old_packets: u64,
    /// Recoveries that a timer began although the receiver held three segments above the hole.
    pub timeouts_despite_sack: u64,
    /// Sequence numbers not acknowledged at the end; 0 where no packet of the receiver was seen.
    pub unacknowledged_bytes: u64,
    /// Packets marked ECT(0) (RFC 3168, 5).
    pub ect0_packets: u64,
    /// Packets marked ECT(1).
    pub ect1_packets: u64,
    /// Packets marked "congestion experienced".
    pub ce_packets: u64,
    /// Packets with the data sender's flag CWR: congestion window reduced.
    pub cwr_packets: u64,
}

impl SentCounts {
    /// Counts packets that a timer sent, that of a retransmission or of a probe, and whose earlier
    /// copies were lost before the capture point.
    pub(crate) fn add_unseen(&mut self, timers: u64, bytes: u64) {
        self.retransmissions.unclear += timers;
        self.recoveries.unclear += timers;
        self.unseen_retransmissions += timers;
        self.retransmitted_bytes += bytes;
    }
}

/// Packets and bytes of the receiver's acknowledgments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AckCounts {
    /// Packets with the ACK flag.
    pub acks: u64,
    /// Packets that only acknowledge.
    pub pure: u64,
    /// ACKs carried by data, SYN or FIN.
    pub piggybacked: u64,
    /// ACKs that acknowledge data for the first time.
    pub advancing: u64,
    /// Pure ones among the advancing ACKs.
    pub advancing_pure: u64,
    /// Duplicate ACKs (RFC 5681, 2; RFC 6675, 2).
    pub duplicate: u64,
    /// Duplicates with SACK blocks not seen before and a changed window.
    pub duplicate_with_window: u64,
    /// Occurrences of a third duplicate ACK in a row.
    pub triple_duplicates: u64,
    /// Pure ACKs that change only the window.
    pub window_updates: u64,
    /// Answers to keep-alives.
    pub keep_alive_replies: u64,
    /// Answers to window probes.
    pub window_probe_replies: u64,
    /// ACKs below the highest number: overtaken on their way.
    pub old: u64,
    /// ACKs with SACK blocks (RFC 2018).
    pub with_sack: u64,
    /// ACKs with a D-SACK block (RFC 2883).
    pub with_dsack: u64,
    /// ACKs with SACK blocks outside the data of this connection.
    pub with_foreign_sack: u64,
    /// Bytes received twice, according to D-SACK.
    pub dsack_bytes: u64,
    /// Largest number of SACK blocks in one ACK.
    pub most_sack_blocks: u32,
    /// Bytes acknowledged by number.
    pub acked_bytes: u64,
    /// ACKs of data never seen: the capture lost it, or started later.
    pub unseen_acks: u64,
    /// Bytes of the data that was never seen before its ACK.
    pub unseen_bytes: u64,
    /// Bytes acknowledged but never seen, neither before nor after their ACK, although sent after
    /// the capture started: the capture lost them, or they took another path.
    pub missed_bytes: u64,
    /// Missed bytes in segments of the MSS.
    pub missed_segments: u64,
    /// Packets with ECE: the echo in classic ECN, or one bit of the counter in Accurate ECN.
    pub ece_packets: u64,
    /// Packets that the receiver reported as CE-marked by its counter in Accurate ECN (RFC 9768).
    pub ce_reported_packets: u64,
    /// ACKs of so many segments that the counter may have wrapped, which makes
    /// `ce_reported_packets` a lower bound.
    pub ce_unclear_acks: u64,
    /// Packets with an AccECN option (RFC 9768, 3.2.3).
    pub with_accecn: u64,
    /// Payload bytes received as ECT(0) according to the option's counters. Repeated data counts
    /// again; bytes counted before the capture are left out.
    pub ect0_reported_bytes: u64,
    /// Payload bytes received CE-marked, counted in the same way.
    pub ce_reported_bytes: u64,
    /// Payload bytes received as ECT(1), counted in the same way.
    pub ect1_reported_bytes: u64,
}

/// Counts of one half: what the data sender sent and how the receiver acknowledged it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Packets of the data sender.
    pub sent: SentCounts,
    /// ACKs of the receiver.
    pub acks: AckCounts,
    #[serde(skip)]
    duplicates: u32,
    /// Bytes that the receiver holds above a hole.
    #[serde(skip)]
    sacked_bytes: u64,
}

impl Counts {
    /// Payload without retransmissions but with what the capture lost, bytes.
    pub(crate) fn whole_bytes(&self) -> u64 {
        self.sent.new_bytes + self.acks.missed_bytes
    }
}

impl Observer for Counts {
    type Report = Self;

    fn sent(&mut self, step: &Step) {
        let sent = &mut self.sent;
        let data = &step.data;
        let flag = |flag| u64::from(step.has(flag));
        let payload = u64::from(step.payload_bytes);
        sent.packets += 1;
        sent.syn_packets += flag(tcp_flag::SYN);
        sent.fin_packets += flag(tcp_flag::FIN);
        sent.rst_packets += flag(tcp_flag::RST);
        sent.cwr_packets += flag(tcp_flag::CWR);
        match step.ecn {
            1 => sent.ect1_packets += 1,
            2 => sent.ect0_packets += 1,
            3 => sent.ce_packets += 1,
            _ => {}
        }
        if payload > 0 && !step.has(tcp_flag::RST) {
            sent.data_packets += 1;
            sent.segments += u64::from(data.segments);
            sent.packets_above_mss += u64::from(data.segments > 1);
            sent.payload_bytes += payload;
            sent.largest_payload_bytes = sent.largest_payload_bytes.max(step.payload_bytes);
            sent.pushed_packets += flag(tcp_flag::PSH);
        }
        if data.behind_ack_bytes > 0 {
            let acks = &mut self.acks;
            acks.missed_bytes = acks.missed_bytes.saturating_sub(data.behind_ack_bytes);
            acks.missed_segments = acks.missed_segments.saturating_sub(data.segments.into());
        }
        sent.new_bytes += u64::from(data.new_bytes);
        sent.gaps += u64::from(data.skipped_bytes > 0);
        sent.gap_bytes += data.skipped_bytes;
        match data.kind {
            DataKind::Retransmission(cause) => {
                sent.retransmissions.count(cause);
                sent.retransmitted_bytes += payload;
                sent.unseen_retransmissions += u64::from(data.new_bytes > 0);
                sent.needless_retransmissions +=
                    u64::from(payload > 0 && u64::from(data.needless_bytes) == payload);
                if data.begins_recovery {
                    sent.recoveries.count(cause);
                    let is_reported = self.sacked_bytes >= 3 * u64::from(data.mss_bytes);
                    sent.timeouts_despite_sack += u64::from(is_reported && cause == Cause::Timeout);
                }
            }
            DataKind::SynAgain => sent.syn_retransmissions += 1,
            DataKind::OutOfOrder => sent.out_of_order_packets += 1,
            DataKind::KeepAlive => sent.keep_alives += 1,
            DataKind::WindowProbe => sent.window_probes += 1,
            DataKind::Old => sent.old_packets += 1,
            DataKind::None | DataKind::Syn | DataKind::New => {}
        }
    }

    fn acked(&mut self, step: &Step) {
        let Some(ack) = &step.ack else { return };
        let acks = &mut self.acks;
        let pure = step.is_pure_ack();
        acks.acks += 1;
        acks.pure += u64::from(pure);
        acks.piggybacked += u64::from(step.payload_bytes > 0 || step.has(tcp_flag::SYN | tcp_flag::FIN));
        acks.ece_packets += u64::from(step.has(tcp_flag::ECE));
        if let Some(marked) = ack.ce_marks {
            acks.ce_reported_packets += u64::from(marked);
            acks.ce_unclear_acks += u64::from(ack.segments >= ace::MODULUS);
        }
        if let Some(came) = ack.ecn_bytes {
            acks.with_accecn += 1;
            acks.ect0_reported_bytes += u64::from(came.ect0);
            acks.ce_reported_bytes += u64::from(came.ce);
            acks.ect1_reported_bytes += u64::from(came.ect1);
        }
        acks.with_sack += u64::from(ack.sack_blocks > 0);
        acks.with_foreign_sack += u64::from(ack.foreign_sacks);
        self.sacked_bytes = ack.sacked_in_all_bytes;
        acks.most_sack_blocks = acks.most_sack_blocks.max(ack.sack_blocks);
        if let Some((start, end)) = ack.dsack {
            acks.with_dsack += 1;
            acks.dsack_bytes += end - start;
        }
        acks.acked_bytes += ack.acked_bytes;
        acks.unseen_acks += u64::from(ack.unseen_bytes > 0);
        acks.unseen_bytes += ack.unseen_bytes;
        acks.missed_bytes += ack.missed_bytes;
        acks.missed_segments += ack.missed_bytes.div_ceil(ack.mss_bytes.max(1).into());
        *match ack.kind {
            AckKind::Advancing => {
                self.duplicates = 0;
                acks.advancing_pure += u64::from(pure);
                &mut acks.advancing
            }
            AckKind::Duplicate => {
                self.duplicates = self.duplicates.saturating_add(1);
                acks.duplicate_with_window += u64::from(ack.edge_moved_bytes != 0);
                acks.triple_duplicates += u64::from(self.duplicates == 3);
                &mut acks.duplicate
            }
            AckKind::WindowUpdate => &mut acks.window_updates,
            AckKind::KeepAliveReply => &mut acks.keep_alive_replies,
            AckKind::WindowProbeReply => &mut acks.window_probe_replies,
            AckKind::Old => &mut acks.old,
            AckKind::Unchanged => return,
        } += 1;
    }

    fn finish(mut self, end: &End) -> Self {
        if end.is_answered {
            self.sent.unacknowledged_bytes = end.nxt.saturating_sub(end.una);
        }
        self
    }
}
