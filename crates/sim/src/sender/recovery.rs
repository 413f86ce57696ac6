// SPDX-License-Identifier: MIT
//! Loss recovery: its start and end, and the window's reduction in between (RFC 6582, RFC 6937).
//! With SACK, `rack` determines losses, and `undo` spurious ones.

use super::ack::News;
use super::Sender;
use crate::congestion::AckSample;
use crate::scenario::Recovery;

/// Number of duplicate ACKs that show a loss (RFC 5681, 3.2).
pub(super) const DUP_THRESH: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossState {
    Open,
    /// Congestion was echoed (RFC 3168): the window shrinks until more than this is acknowledged
    /// (Linux, TCP_CA_CWR).
    Echoed {
        until: u64,
    },
    /// Fast recovery until RecoveryPoint (RFC 6675, 2; RFC 6582 calls it `recover`) is acknowledged.
    FastRecovery {
        until: u64,
    },
    /// After a timeout, until this sequence number is acknowledged.
    Timeout {
        until: u64,
    },
}

impl LossState {
    /// Whether a loss is being repaired.
    pub fn repairs(self) -> bool {
        matches!(self, LossState::FastRecovery { .. } | LossState::Timeout { .. })
    }
}

/// Proportional rate reduction (RFC 6937): arrivals clock the recovery, so that a large loss does
/// not cause a burst.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prr {
    /// Window at the start of recovery; RFC 6937 uses the outstanding data (RecoverFS).
    pub prior_cwnd: u64,
    pub delivered: u64,
    pub sent: u64,
}

impl Sender {
    /// Processes an ACK for loss recovery and the congestion window. Returns the time until another
    /// segment may be lost.
    pub(super) fn recover(&mut self, news: &mut News) -> Option<u64> {
        self.resend_from = self.resend_from.max(self.una);
        if self.cfg.recovery == Recovery::Sack {
            self.recover_with_sack(news)
        } else {
            news.sample.in_flight = self.bytes_in_flight();
            self.recover_with_duplicates(&mut news.sample);
            None
        }
    }

    /// Recovery with SACK (Linux, tcp_fastretrans_alert and tcp_cong_control).
    fn recover_with_sack(&mut self, news: &mut News) -> Option<u64> {
        self.newly_lost = false;
        self.holds_lost = false;
        if news.echoes {
            self.undo.forbid();
        }
        if news.in_order {
            self.follow_with_sack(&mut news.sample);
            return None;
        }
        let mut wait_ns = None;
        let mut sends_new = false;
        match self.loss_state {
            LossState::FastRecovery { until } if self.una >= until => self.leave_with_sack(news),
            LossState::FastRecovery { .. } => {
                let is_partial = news.sample.acked_bytes > 0;
                self.holds_lost = is_partial && self.undo_by_partial_ack(news.prior_una, news.echo_ns);
            }
            LossState::Timeout { until } => sends_new = self.leave_timeout(until, news),
            LossState::Echoed { until } if self.una > until => self.leave_echo(),
            LossState::Echoed { .. } | LossState::Open => {}
        }
        if !self.holds_lost {
            if !matches!(self.loss_state, LossState::Timeout { .. }) {
                self.undo_by_dsack();
            }
            let (lost_before, again_before) = (self.tally.lost, self.tally.again);
            wait_ns = self.detect_losses_by_ack(news.sample.now_ns);
            let lost_again = self.tally.again < again_before;
            news.sample.lost_bytes = self.tally.lost - lost_before + (again_before - self.tally.again);
            let may_begin = match self.loss_state {
                LossState::Open | LossState::Echoed { .. } => self.tally.lost > 0,
                LossState::Timeout { .. } => lost_again,
                LossState::FastRecovery { .. } => false,
            };
            if may_begin {
                self.enter_fast_recovery();
                if news.echoes {
                    self.undo.forbid();
                }
            } else if !self.loss_state.repairs() {
                self.forget_old_retransmissions();
                if news.echoes {
                    self.answer_echo();
                }
            }
        }
        self.holds_lost |= sends_new && matches!(self.loss_state, LossState::Timeout { .. });
        self.follow_with_sack(&mut news.sample);
        wait_ns
    }

    fn leave_with_sack(&mut self, news: &News) {
        if self.confirm_reduction(news.echo_ns) && !self.cc.is_rate_based {
            // RFC 6937, 3.1: at the end of recovery.
            self.cc.window.cwnd = self.cc.window.ssthresh;
        }
        self.end_recovery();
    }

    /// Progress after a timeout (Linux, tcp_process_loss). True: new data is to leave instead of
    /// presumably lost data.
    fn leave_timeout(&mut self, until: u64, news: &News) -> bool {
        let is_undone = news.sample.acked_bytes > 0 && self.undo_timeout(news.echo_ns);
        if is_undone {
            return false;
        }
        if self.frto_shows_original(until, news) {
            self.undo_spurious_timeout();
            return false;
        }
        let sends_new = self.frto_sends_new(until, news);
        if self.una >= until {
            self.confirm_reduction(news.echo_ns);
            self.end_recovery();
        }
        sends_new
    }

    /// Sets the window for this ACK.
    fn follow_with_sack(&mut self, sample: &mut AckSample) {
        match self.loss_state {
            _ if self.cc.is_rate_based => {
                sample.in_flight = self.bytes_in_flight();
                sample.in_recovery = matches!(self.loss_state, LossState::FastRecovery { .. });
                self.cc.on_ack(sample);
            }
            LossState::FastRecovery { .. } | LossState::Echoed { .. } => {
                if sample.delivered_bytes > 0 {
                    self.reduce_window(sample, self.newly_lost);
                }
            }
            LossState::Open | LossState::Timeout { .. } => self.grow_window(sample),
        }
    }

    /// Grows the window by the delivered data; if the path is known to reorder, out-of-order data
    /// counts, too (Linux, tcp_may_raise_cwnd).
    fn grow_window(&mut self, sample: &mut AckSample) {
        if sample.acked_bytes == 0 && self.rack.reordering <= DUP_THRESH.into() {
            return;
        }
        if self.loss_state != LossState::Open {
            // Slow start after a timeout: the window allows what is in flight.
            sample.window_limited = true;
        }
        self.cc.on_ack(&AckSample { acked_bytes: sample.delivered_bytes, ..*sample });
        self.window_use.since_ns = sample.now_ns;
    }

    /// The reordering window of a segment has passed (Linux, tcp_rack_reo_timeout).
    pub(super) fn recover_late(&mut self, now: u64) {
        self.newly_lost = false;
        self.holds_lost = false;
        self.detect_losses(now);
        if self.newly_lost && !matches!(self.loss_state, LossState::FastRecovery { .. }) {
            self.enter_fast_recovery();
            let sample = AckSample { now_ns: now, delivered_bytes: self.mss, ..AckSample::default() };
            self.reduce_window(&sample, true);
        }
    }

    /// Recovery without SACK: RFC 5681, 3.2, and RFC 6582; or a timeout only.
    fn recover_with_duplicates(&mut self, sample: &mut AckSample) {
        match self.loss_state {
            LossState::Open if self.cfg.recovery == Recovery::Newreno && self.dupacks == DUP_THRESH => {
                self.mark_first_lost();
                self.enter_fast_recovery();
            }
            LossState::Open => self.cc.on_ack(sample),
            LossState::FastRecovery { until } if self.una >= until => self.leave_newreno(sample),
            LossState::FastRecovery { .. } => self.stay_in_newreno(sample),
            // Only Linux's sender, which uses SACK, has ECN.
            LossState::Echoed { .. } => {}
            LossState::Timeout { until } => {
                if self.una >= until {
                    self.end_recovery();
                }
                sample.window_limited = true;
                self.cc.on_ack(sample);
            }
        }
    }

    fn mark_first_lost(&mut self) {
        if let Some(seg) = self.segments.front_mut() {
            seg.lose(&mut self.tally);
            self.resend_from = self.resend_from.min(seg.seq);
        }
    }

    /// Enters fast recovery (RFC 5681, 3.2, steps 2 and 3; RFC 6675, 5, step 4).
    fn enter_fast_recovery(&mut self) {
        #[cfg(debug_assertions)]
        self.check();
        self.forget_old_retransmissions();
        self.remember_window();
        self.counters.fast_recoveries += 1;
        let until = match self.loss_state {
            // Linux, tcp_enter_recovery: only one reduction per window of data.
            LossState::Echoed { until } => {
                self.undo.forbid();
                until
            }
            _ => self.begin_reduction(&self.flight()),
        };
        self.loss_state = LossState::FastRecovery { until };
        if self.cc.is_rate_based {
            // Linux, bbr_set_cwnd_to_recover_or_restore: its first round starts now.
            self.round_end = self.delivered;
        }
        if self.inflates_window() {
            // One segment for each of the duplicates, which have left the network.
            self.cc.window.cwnd += u64::from(DUP_THRESH) * self.mss;
        }
    }

    fn stay_in_newreno(&mut self, sample: &AckSample) {
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
        if self.cc.is_rate_based {
            self.cc.on_ack(sample);
        }
    }

    fn leave_newreno(&mut self, sample: &AckSample) {
        if self.inflates_window() {
            // RFC 6582, 3.2, step 3, option 1.
            let flight = self.outstanding().max(self.mss);
            self.cc.window.cwnd = self.cc.window.ssthresh.min(flight + self.mss);
        }
        self.end_recovery();
        if self.cc.is_rate_based {
            self.cc.on_ack(sample);
        }
    }

    pub(super) fn end_recovery(&mut self) {
        if self.loss_state != LossState::Open {
            self.loss_state = LossState::Open;
            self.cc.on_recovered();
        }
    }

    /// Whether the window is inflated: NewReno counts segments that left the network by growing the
    /// window (RFC 5681, 3.2); with SACK the bytes in flight are known.
    fn inflates_window(&self) -> bool {
        self.cfg.recovery == Recovery::Newreno && !self.cc.is_rate_based
    }

    /// Sets the window for this ACK as in RFC 6937, 3.1, in Linux's form (tcp_cwnd_reduction).
    /// Below ssthresh, as much leaves as arrived, plus one segment if SND.UNA moved and nothing
    /// else was lost.
    // [D-30]
    fn reduce_window(&mut self, sample: &AckSample, newly_lost: bool) {
        if self.cc.is_rate_based {
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
