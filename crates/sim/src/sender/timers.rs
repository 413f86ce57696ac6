// SPDX-License-Identifier: MIT
//! Retransmission, tail-loss probe and persist timers.

use super::recovery::{LossState, DUP_THRESH};
use super::{Sender, MAX_RTO_NS, NEVER};
use crate::congestion::JIFFY_NS;
use crate::scenario::Recovery;

/// RFC 9293, 3.8.6.1: probes of a closed window back off like retransmissions, up to this interval.
const MAX_PERSIST_NS: u64 = 60_000_000_000;
/// Maximum number of doublings of the interval: the bounds above are reached before.
const MAX_PERSIST_DOUBLINGS: u32 = 10;
const MAX_RTO_DOUBLINGS: u32 = 16;

/// Expiry of a Linux timer set for this long: it counts whole jiffies, and the current one does not
/// count (kernel/time/timer.c, calc_index).
fn by_jiffies(now: u64, wait_ns: u64) -> u64 {
    (now / JIFFY_NS + wait_ns.div_ceil(JIFFY_NS) + 1) * JIFFY_NS
}

/// A segment without data that has to leave for an expired timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bare {
    Syn,
    WindowProbe,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    Off,
    /// A SYN waits for its answer.
    Handshake,
    Retransmit,
    TailLossProbe,
    /// A segment that was overtaken may still arrive.
    Reordering,
    /// The window is closed.
    Persist,
}

impl Sender {
    /// RFC 6298, 5.5: the timeout doubles with each expiry.
    pub(super) fn arm_retransmit(&mut self, now: u64, backoff: u32) {
        self.timer = Timer::Retransmit;
        self.timer_ns = self.expiry_ns(now, self.timeout_ns(backoff));
    }

    fn timeout_ns(&self, backoff: u32) -> u64 {
        (self.rto_ns << backoff.min(MAX_RTO_DOUBLINGS)).min(MAX_RTO_NS)
    }

    /// Expiry of a timer set for this long; in jiffies on Linux.
    fn expiry_ns(&self, now: u64, wait_ns: u64) -> u64 {
        if self.sends_bursts {
            by_jiffies(now, wait_ns)
        } else {
            now + wait_ns
        }
    }

    /// Like `arm_retransmit`, counted from the departure of the segment that blocks all others
    /// (Linux, tcp_rearm_rto).
    fn arm_retransmit_of_first(&mut self, now: u64) {
        self.arm_retransmit(now, self.backoff);
        if self.sends_bursts {
            // tcp_rto_delta_us: the RTO itself is in whole jiffies.
            let since = self.segments.front().map_or(now, |s| s.departure.sent_ns);
            let left_ns = (since + self.rto_jiffies() * JIFFY_NS).saturating_sub(now);
            self.timer_ns = by_jiffies(now, left_ns.max(1));
        }
    }

    /// Arms the reordering timer: a segment may be lost after this time.
    pub(super) fn arm_reordering(&mut self, now: u64, wait_ns: u64) {
        self.timer = Timer::Reordering;
        self.timer_ns = by_jiffies(now, wait_ns.min(self.rto_ns));
    }

    /// RFC 6298, 5.1 to 5.3; if a tail-loss probe may leave, it comes first (RFC 8985, 7.2).
    pub(super) fn restart_timer(&mut self, now: u64) {
        if self.outstanding() == 0 {
            self.timer = Timer::Off;
            self.timer_ns = NEVER;
            return;
        }
        let mut wait_ns = self.timeout_ns(self.backoff);
        self.timer = Timer::Retransmit;
        if self.may_probe_tail() {
            self.timer = Timer::TailLossProbe;
            wait_ns = wait_ns.min(self.probe_wait_ns());
        }
        self.timer_ns = self.expiry_ns(now, wait_ns);
    }

    fn may_probe_tail(&self) -> bool {
        self.cfg.tail_loss_probe
            && self.cfg.recovery == Recovery::Sack
            && !self.loss_state.repairs()
            && self.tally.sacked == 0
            && !self.resent_is_out()
            && self.backoff == 0
            && self.srtt_ns > 0
    }

    /// The timer expired. Segments with data leave through `next_segment`.
    pub fn on_timer(&mut self, now: u64) -> Option<Bare> {
        let timer = std::mem::replace(&mut self.timer, Timer::Off);
        self.timer_ns = NEVER;
        match timer {
            Timer::Off => {}
            Timer::Handshake => {
                self.counters.timeouts += 1;
                return Some(Bare::Syn);
            }
            Timer::Persist => {
                self.backoff = (self.backoff + 1).min(MAX_PERSIST_DOUBLINGS);
                return Some(Bare::WindowProbe);
            }
            Timer::TailLossProbe if self.probe_tail() => self.arm_retransmit(now, 0),
            Timer::TailLossProbe => self.arm_retransmit_of_first(now),
            Timer::Reordering => {
                self.recover_late(now);
                self.arm_retransmit_of_first(now);
            }
            Timer::Retransmit => self.time_out(now),
        }
        None
    }

    /// Retransmission timeout (RFC 6298, 5.4 to 5.6).
    pub(super) fn time_out(&mut self, now: u64) {
        self.counters.timeouts += 1;
        #[cfg(debug_assertions)]
        self.check();
        let makes_progress = self.backoff == 0;
        let is_first = match self.loss_state {
            LossState::Open => true,
            LossState::Echoed { until } => self.una >= until,
            // Linux, tcp_enter_loss: recovery has reduced the window for this loss.
            LossState::FastRecovery { .. } => self.cfg.recovery != Recovery::Sack,
            LossState::Timeout { .. } => makes_progress,
        };
        if is_first {
            self.remember_window();
            self.cc.on_timeout(&self.flight());
        } else {
            // RFC 5681, 3.1: ssthresh does not change when the same segment times out again.
            self.cc.window.cwnd = self.mss;
        }
        if self.loss_state == LossState::Open && self.tally.sacked_segments >= u64::from(DUP_THRESH) {
            self.rack.doubt_reordering();
        }
        self.begin_frto(!self.loss_state.repairs() || !makes_progress);
        self.loss_state = LossState::Timeout { until: self.nxt };
        self.ecn.queue_cwr();
        self.tail_probe = None;
        self.holds_lost = false;
        self.backoff += 1;
        self.dupacks = 0;
        self.mark_lost_by_timeout(now);
        self.resend_from = self.una;
        self.arm_retransmit(now, self.backoff);
        self.pace_ns = now;
    }

    /// Marks everything that is not SACKed as lost; with SACK, not what left within the last RTT
    /// (Linux, tcp_timeout_mark_lost), beside which one segment may leave.
    fn mark_lost_by_timeout(&mut self, now: u64) {
        let by_time = self.cfg.recovery == Recovery::Sack;
        for (n, seg) in self.segments.iter_mut().enumerate() {
            if n == 0 || !by_time || self.rack.patience_ends_ns(seg.departure.sent_ns, 0) <= now {
                seg.lose(&mut self.tally);
            }
        }
        if by_time {
            self.cc.window.cwnd = self.bytes_in_flight() + self.mss;
        }
    }

    /// Arms the probe of a closed window with nothing outstanding (RFC 9293, 3.8.6.1).
    pub(super) fn arm_persist(&mut self, now: u64) {
        if self.timer == Timer::Off && self.outstanding() == 0 {
            self.timer = Timer::Persist;
            self.timer_ns =
                now + (self.rto_ns << self.backoff.min(MAX_PERSIST_DOUBLINGS)).min(MAX_PERSIST_NS);
        }
    }
}
