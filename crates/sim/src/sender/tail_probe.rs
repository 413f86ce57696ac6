// SPDX-License-Identifier: MIT
//! Tail-loss probe (RFC 8985, 7) as in Linux 6.12: when no ACK arrives, one segment requests one
//! before the retransmission timer expires.

use super::ack::News;
use super::Sender;
use crate::congestion::Flight;

/// RFC 8985, 7.2: longest delayed-ACK timer of the peer, assumed when a single segment is
/// outstanding.
const WORST_ACK_DELAY_NS: u64 = 200_000_000;
/// Slack in other cases (Linux, TCP_TIMEOUT_MIN_US).
const SLACK_NS: u64 = 2_000_000;

/// A probe that no ACK has answered yet.
#[derive(Clone, Copy, Debug)]
pub struct TailProbe {
    /// SND.NXT after the probe.
    pub end: u64,
    /// Whether it repeated the last segment.
    pub is_copy: bool,
}

/// Data of the probe that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DueProbe {
    NewData,
    LastSegment,
}

impl Sender {
    /// RFC 8985, 7.2: time for which the sender waits for an ACK.
    pub(super) fn probe_wait_ns(&self) -> u64 {
        let single = self.segments.len() == 1;
        2 * self.srtt_ns + if single { WORST_ACK_DELAY_NS } else { SLACK_NS }
    }

    /// RFC 8985, 7.3: new data if there is any, otherwise the last segment again. False: a probe is
    /// outstanding.
    pub(super) fn probe_tail(&mut self) -> bool {
        if self.tail_probe.is_some() {
            return false;
        }
        let unsent = self.mss.min(self.written - self.nxt);
        let has_new = unsent > 0 && self.nxt + unsent <= self.wnd_right;
        self.due_probe = Some(if has_new { DueProbe::NewData } else { DueProbe::LastSegment });
        let end = if has_new { self.nxt + unsent } else { self.nxt };
        self.tail_probe = Some(TailProbe { end, is_copy: !has_new });
        true
    }

    /// RFC 8985, 7.4 (Linux, tcp_process_tlp_ack): an ACK beyond a repeated segment, without a
    /// report of a copy, shows that the original was lost. It counts like any other loss.
    pub(super) fn judge_tail_probe(&mut self, news: &News) {
        let Some(probe) = self.tail_probe.filter(|probe| self.una >= probe.end) else { return };
        let is_duplicate = news.is_pure_duplicate && news.sample.delivered_bytes == 0;
        if !probe.is_copy || news.dsacked_end == Some(probe.end) || is_duplicate {
            self.tail_probe = None;
        } else if self.una > probe.end {
            self.tail_probe = None;
            let bytes = news.sample.prior_in_flight;
            self.cc.on_loss(&Flight { bytes, ..self.flight() });
            self.ecn.queue_cwr();
        }
    }
}
