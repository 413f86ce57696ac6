// SPDX-License-Identifier: MIT
//! Retransmission, tail-loss probe and persist timers.

use super::recovery::LossState;
use super::{Sender, MAX_RTO_NS, NEVER};
use crate::scenario::Recovery;

/// RFC 8985, 7.2: worst delayed-ACK timer of the peer, when a single segment is out.
const WORST_ACK_DELAY_NS: u64 = 200_000_000;
/// RFC 9293, 3.8.6.1: probes of a closed window back off like retransmissions; at most this far.
const MAX_PERSIST_NS: u64 = 60_000_000_000;
/// The timeout doubles this often at most: the bounds above are reached before.
const MAX_PERSIST_DOUBLINGS: u32 = 10;
const MAX_RTO_DOUBLINGS: u32 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    Off,
    Retransmit,
    TailLossProbe,
    /// The window is closed.
    Persist,
}

impl Sender {
    /// RFC 6298, 5.5: the timeout doubles with each expiry.
    pub(super) fn arm_retransmit(&mut self, now: u64, backoff: u32) {
        self.timer = Timer::Retransmit;
        self.timer_ns = now + (self.rto_ns << backoff.min(MAX_RTO_DOUBLINGS)).min(MAX_RTO_NS);
    }

    /// RFC 6298, 5.1 to 5.3, and where a tail-loss probe would come first, that (RFC 8985, 7.2).
    pub(super) fn restart_timer(&mut self, now: u64) {
        if self.outstanding() == 0 {
            self.timer = Timer::Off;
            self.timer_ns = NEVER;
            return;
        }
        self.arm_retransmit(now, self.backoff);
        if !self.may_probe_tail() {
            return;
        }
        let ack_delay_ns = if self.segments.len() == 1 { WORST_ACK_DELAY_NS } else { 0 };
        let probe_ns = now + 2 * self.srtt_ns + ack_delay_ns;
        if probe_ns < self.timer_ns {
            self.timer = Timer::TailLossProbe;
            self.timer_ns = probe_ns;
        }
    }

    fn may_probe_tail(&self) -> bool {
        self.cfg.tail_loss_probe
            && self.cfg.recovery == Recovery::Sack
            && self.loss_state == LossState::Open
            && self.tally.sacked == 0
            && !self.probed
            && self.backoff == 0
            && self.srtt_ns > 0
    }

    /// The retransmission, probe or persist timer expired. Returns true when a window probe has to
    /// leave; all else goes through `next_segment`.
    pub fn on_timer(&mut self, now: u64) -> bool {
        let timer = std::mem::replace(&mut self.timer, Timer::Off);
        self.timer_ns = NEVER;
        match timer {
            Timer::Off => {}
            Timer::Persist => self.backoff = (self.backoff + 1).min(MAX_PERSIST_DOUBLINGS),
            Timer::TailLossProbe => self.probe_tail(now),
            Timer::Retransmit => self.time_out(now),
        }
        timer == Timer::Persist
    }

    /// RFC 8985, 7.3: new data if there is any, else the last segment again.
    fn probe_tail(&mut self, now: u64) {
        self.probed = true;
        self.probe_is_new = self.has_unsent() && self.nxt + self.mss <= self.wnd_right;
        if !self.probe_is_new {
            if let Some(last) = self.segments.back_mut() {
                last.lose(&mut self.tally);
                self.resend_from = self.resend_from.min(last.seq);
            }
        }
        self.arm_retransmit(now, 0);
    }

    /// RFC 6298, 5.4 to 5.6; all that is not SACKed is taken as lost.
    fn time_out(&mut self, now: u64) {
        self.counters.timeouts += 1;
        #[cfg(debug_assertions)]
        self.check();
        let is_first = !matches!(self.loss_state, LossState::Timeout { .. }) || self.backoff == 0;
        if is_first {
            self.cc.on_timeout(&self.flight());
        } else {
            // RFC 5681, 3.1: ssthresh stays when the same segment times out again.
            self.cc.window.cwnd = self.mss;
        }
        self.loss_state = LossState::Timeout { until: self.nxt };
        self.backoff += 1;
        self.dupacks = 0;
        for seg in &mut self.segments {
            seg.lose(&mut self.tally);
        }
        self.judged_below = self.nxt;
        self.resend_from = self.una;
        self.arm_retransmit(now, self.backoff);
        self.pace_ns = now;
    }

    /// RFC 9293, 3.8.6.1: a closed window with nothing outstanding is probed.
    pub(super) fn arm_persist(&mut self, now: u64) {
        if self.timer == Timer::Off && self.outstanding() == 0 {
            self.timer = Timer::Persist;
            self.timer_ns =
                now + (self.rto_ns << self.backoff.min(MAX_PERSIST_DOUBLINGS)).min(MAX_PERSIST_NS);
        }
    }
}
