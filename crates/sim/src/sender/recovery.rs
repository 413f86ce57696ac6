// SPDX-License-Identifier: MIT
//! Loss recovery: what counts as lost (RFC 6675, RFC 8985) and how the window is reduced meanwhile
//! (RFC 6582, RFC 6937).

use super::segment::Segment;
use super::Sender;
use crate::congestion::AckSample;
use crate::scenario::Recovery;

/// RFC 5681, 3.2 and RFC 6675, 2: duplicate ACKs that show a loss.
const DUP_THRESH: u32 = 3;
/// RFC 8985, 6.2 (step 4): a segment is late by a quarter of an RTT before it counts as lost.
const REORDERING_RTT_SHARE: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossState {
    Open,
    /// Fast recovery until RecoveryPoint (RFC 6675, 2; RFC 6582 calls it `recover`) is acknowledged.
    FastRecovery {
        until: u64,
    },
    /// After a timeout, until this sequence number is acknowledged.
    Timeout {
        until: u64,
    },
}

/// Proportional rate reduction (RFC 6937): recovery is clocked by what arrives, so that a large
/// loss is not answered by a burst.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prr {
    /// The window when recovery began; RFC 6937 takes what was outstanding (RecoverFS).
    pub prior_cwnd: u64,
    pub delivered: u64,
    pub sent: u64,
}

impl Sender {
    /// RFC 6675, 4: IsLost(), when more than (DupThresh - 1) * SMSS bytes above it were SACKed.
    /// Returns true when a segment is newly lost.
    fn mark_lost(&mut self) -> bool {
        let highest = self.sacked.highest();
        if highest <= self.judged_below.max(self.una) {
            return false;
        }
        let reach = u64::from(DUP_THRESH - 1) * self.mss;
        let mut above = 0;
        let mut edge = 0;
        for (start, end) in self.sacked.iter().rev() {
            above += end - start;
            if above > reach {
                // Everything below the third SACKed segment from the top.
                edge = start + (above - reach).min(end - start) - 1;
                break;
            }
        }
        if edge == 0 {
            return false;
        }
        let lost_before = self.tally.lost;
        let first = self.segments.partition_point(|s| s.seq < self.judged_below);
        for seg in self.segments.iter_mut().skip(first) {
            if seg.seq + u64::from(seg.len) > edge {
                break;
            }
            self.judged_below = seg.seq + u64::from(seg.len);
            if !seg.sacked && !seg.lost && !seg.again_in_flight {
                seg.lose(&mut self.tally);
                self.resend_from = self.resend_from.min(seg.seq);
            }
        }
        self.tally.lost > lost_before
    }

    /// RFC 8985, 6.2, for retransmissions: lost too when something sent a quarter of an RTT later has
    /// arrived. Only looked for when it happened to the segment that blocks all others. Returns true
    /// then.
    pub(super) fn mark_lost_again(&mut self, delivered_sent_ns: u64) -> bool {
        let patience_ns = self.srtt_ns / REORDERING_RTT_SHARE;
        let overdue =
            |s: &Segment| s.again_in_flight && s.departure.sent_ns + patience_ns < delivered_sent_ns;
        if !self.segments.front().is_some_and(overdue) {
            return false;
        }
        for seg in self.segments.iter_mut().filter(|s| overdue(s)) {
            seg.recall(&mut self.tally);
        }
        self.resend_from = self.una;
        true
    }

    fn mark_first_lost(&mut self) {
        if let Some(seg) = self.segments.front_mut() {
            seg.lose(&mut self.tally);
            self.resend_from = self.resend_from.min(seg.seq);
        }
    }

    /// What an ACK means for loss recovery and the congestion window; `lost_again`: it showed that
    /// retransmissions were lost.
    pub(super) fn recover(&mut self, sample: &mut AckSample, lost_again: bool) {
        self.resend_from = self.resend_from.max(self.una);
        let newly_lost = self.cfg.recovery == Recovery::Sack && self.mark_lost();
        match self.loss_state {
            LossState::Open if self.loss_is_found() => self.enter_fast_recovery(sample),
            LossState::Open => self.cc.on_ack(sample),
            LossState::FastRecovery { until } if self.una >= until => self.leave_fast_recovery(sample),
            LossState::FastRecovery { .. } => self.stay_in_fast_recovery(sample, newly_lost || lost_again),
            LossState::Timeout { until } => {
                if self.una >= until {
                    self.loss_state = LossState::Open;
                    self.cc.on_recovered();
                }
                // Slow start after a timeout: what is in flight is what the window allows.
                sample.window_limited = true;
                self.cc.on_ack(sample);
            }
        }
    }

    fn loss_is_found(&self) -> bool {
        match self.cfg.recovery {
            // RFC 6675, 5, steps 1 and 2; a segment that IsLost counts before the third duplicate.
            Recovery::Sack => self.tally.lost > 0 || (self.dupacks >= DUP_THRESH && self.tally.sacked > 0),
            // RFC 5681, 3.2, step 2.
            Recovery::Newreno => self.dupacks == DUP_THRESH,
            Recovery::Timeout => false,
        }
    }

    /// RFC 5681, 3.2, steps 2 and 3; RFC 6675, 5, step 4.
    fn enter_fast_recovery(&mut self, sample: &AckSample) {
        #[cfg(debug_assertions)]
        self.check();
        self.loss_state = LossState::FastRecovery { until: self.nxt };
        self.counters.fast_recoveries += 1;
        self.mark_first_lost();
        self.prr = Prr { prior_cwnd: self.cc.window.cwnd, ..Prr::default() };
        self.cc.on_loss(&self.flight());
        if self.inflates_window() {
            // One segment for each of the duplicates, which have left the network.
            self.cc.window.cwnd += u64::from(DUP_THRESH) * self.mss;
        }
        self.reduce_window(sample, true);
    }

    fn stay_in_fast_recovery(&mut self, sample: &AckSample, newly_lost: bool) {
        if self.cfg.recovery == Recovery::Newreno {
            let acked = sample.acked_bytes;
            let cwnd = &mut self.cc.window.cwnd;
            if acked > 0 {
                // RFC 6582, 3.2, step 3: a partial ACK deflates the window.
                let kept = cwnd.saturating_sub(acked);
                *cwnd = (kept + if acked >= self.mss { self.mss } else { 0 }).max(self.mss);
                self.mark_first_lost();
            } else if self.dupacks > 0 {
                // RFC 5681, 3.2, step 4.
                *cwnd += self.mss;
            }
        }
        if self.cc.is_rate_based() {
            self.cc.on_ack(sample);
        } else if sample.delivered_bytes > 0 {
            self.reduce_window(sample, newly_lost);
        }
    }

    fn leave_fast_recovery(&mut self, sample: &AckSample) {
        self.loss_state = LossState::Open;
        if self.inflates_window() {
            // RFC 6582, 3.2, step 3, option 1.
            let flight = self.outstanding().max(self.mss);
            self.cc.window.cwnd = self.cc.window.ssthresh.min(flight + self.mss);
        }
        self.cc.on_recovered();
        if self.cc.is_rate_based() {
            self.cc.on_ack(sample);
        } else if self.cfg.recovery == Recovery::Sack {
            // RFC 6937, 3.1: at the end of recovery.
            self.cc.window.cwnd = self.cc.window.ssthresh;
        }
    }

    /// NewReno counts segments that left the network by growing the window (RFC 5681, 3.2); with
    /// SACK the bytes in flight are known.
    fn inflates_window(&self) -> bool {
        self.cfg.recovery == Recovery::Newreno && !self.cc.is_rate_based()
    }

    /// The window for this ACK: RFC 6937, 3.1, as Linux has it (tcp_cwnd_reduction). Below ssthresh
    /// what arrived leaves again, and one segment more if SND.UNA moved and nothing else was lost.
    // [D-30]
    fn reduce_window(&mut self, sample: &AckSample, newly_lost: bool) {
        if self.cfg.recovery != Recovery::Sack || self.cc.is_rate_based() {
            return;
        }
        let prr = &mut self.prr;
        prr.delivered += sample.delivered_bytes;
        let (delivered, sent, mss) = (prr.delivered, prr.sent, self.mss);
        let prior_cwnd = u128::from(prr.prior_cwnd);
        let (in_flight, ssthresh) = (self.bytes_in_flight(), self.cc.window.ssthresh);
        let may_send = if in_flight > ssthresh {
            let share = (u128::from(delivered) * u128::from(ssthresh)).div_ceil(prior_cwnd) as u64;
            // Linux counts segments, and rounds up.
            (share.div_ceil(mss) * mss).saturating_sub(sent)
        } else {
            let is_safe = sample.acked_bytes > 0 && !newly_lost;
            let owed = delivered.saturating_sub(sent).max(sample.delivered_bytes);
            (owed + if is_safe { mss } else { 0 }).min(ssthresh - in_flight)
        };
        // The first retransmission leaves at once (RFC 6675, 5, step 4.3).
        let first = if sent == 0 { mss } else { 0 };
        self.cc.window.cwnd = in_flight + may_send.max(first);
    }
}
