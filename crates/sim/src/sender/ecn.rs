// SPDX-License-Identifier: MIT
//! ECN at a sender (RFC 3168, 6.1.2), as Linux 6.12 does: an ACK with ECN-Echo reduces the window once in
//! a window of data, and the next new segment says so by CWR (tcp_enter_cwr, tcp_ecn_send).

use super::recovery::{LossState, Prr};
use super::Sender;
use crate::congestion::Flight;

/// How far this end's ECN is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ecn {
    /// The ends agreed on it.
    pub is_agreed: bool,
    /// The window was reduced, and the peer is to hear of it.
    owes_cwr: bool,
}

impl Ecn {
    pub fn queue_cwr(&mut self) {
        self.owes_cwr = self.is_agreed;
    }

    /// The reduction was undone before the peer heard of it.
    pub fn withdraw_cwr(&mut self) {
        self.owes_cwr = false;
    }

    /// Whether new data that leaves now has CWR.
    pub fn take_cwr(&mut self) -> bool {
        std::mem::take(&mut self.owes_cwr)
    }
}

impl Sender {
    /// Linux, tcp_init_cwnd_reduction. Returns the end of what is out: the reduction is over behind it.
    pub(super) fn begin_reduction(&mut self, flight: &Flight) -> u64 {
        self.tail_probe = None;
        self.prr = Prr { prior_cwnd: self.cc.window.cwnd, ..Prr::default() };
        self.cc.on_loss(flight);
        self.ecn.queue_cwr();
        self.nxt
    }

    /// Linux, tcp_enter_cwr: the window shrinks with each ACK, for all that is out, and nothing undoes it.
    pub(super) fn answer_echo(&mut self) {
        if self.loss_state != LossState::Open {
            return;
        }
        self.undo.forget_reduction();
        let cwnd = self.cc.window.cwnd;
        // RFC 3168, 6.1.2: of the window, as nothing was lost of it.
        let until = self.begin_reduction(&Flight { bytes: cwnd, ..self.flight() });
        self.cc.window.cwnd = cwnd;
        self.loss_state = LossState::Echoed { until };
    }

    /// Linux, tcp_end_cwnd_reduction: more than what was out then is acknowledged, so the peer has CWR.
    pub(super) fn leave_echo(&mut self) {
        self.loss_state = LossState::Open;
        if !self.cc.is_rate_based {
            self.cc.window.cwnd = self.cc.window.ssthresh;
        }
    }
}
