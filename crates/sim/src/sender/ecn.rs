// SPDX-License-Identifier: MIT
//! ECN at a sender (RFC 3168, 6.1.2), as in Linux 6.12: an ACK with ECN-Echo reduces the window
//! once per window of data, and the next new segment confirms it with CWR (tcp_enter_cwr,
//! tcp_ecn_send).

use super::recovery::{LossState, Prr};
use super::Sender;
use crate::congestion::Flight;

/// State of this end's ECN.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ecn {
    /// Whether the ends agreed on it.
    pub is_agreed: bool,
    /// Whether the window was reduced and the peer has to be informed.
    owes_cwr: bool,
}

impl Ecn {
    pub fn queue_cwr(&mut self) {
        self.owes_cwr = self.is_agreed;
    }

    /// Withdraws CWR: the reduction was undone before the peer heard of it.
    pub fn withdraw_cwr(&mut self) {
        self.owes_cwr = false;
    }

    /// Whether new data that leaves now has CWR; clears it.
    pub fn take_cwr(&mut self) -> bool {
        std::mem::take(&mut self.owes_cwr)
    }
}

impl Sender {
    /// Starts a reduction (Linux, tcp_init_cwnd_reduction). Returns the end of the outstanding
    /// data, after which the reduction is over.
    pub(super) fn begin_reduction(&mut self, flight: &Flight) -> u64 {
        self.tail_probe = None;
        self.prr = Prr { prior_cwnd: self.cc.window.cwnd, ..Prr::default() };
        self.cc.on_loss(flight);
        self.ecn.queue_cwr();
        self.nxt
    }

    /// Responds to an echo (Linux, tcp_enter_cwr): the window shrinks with each ACK for all
    /// outstanding data, and nothing undoes it.
    pub(super) fn answer_echo(&mut self) {
        if self.loss_state != LossState::Open {
            return;
        }
        self.undo.forget_reduction();
        let cwnd = self.cc.window.cwnd;
        // RFC 3168, 6.1.2: relative to the window, because no data was lost.
        let until = self.begin_reduction(&Flight { bytes: cwnd, ..self.flight() });
        self.cc.window.cwnd = cwnd;
        self.loss_state = LossState::Echoed { until };
    }

    /// Ends the reduction (Linux, tcp_end_cwnd_reduction): more data than was outstanding then is
    /// acknowledged, so the peer has received CWR.
    pub(super) fn leave_echo(&mut self) {
        self.loss_state = LossState::Open;
        if !self.cc.is_rate_based {
            self.cc.window.cwnd = self.cc.window.ssthresh;
        }
    }
}
