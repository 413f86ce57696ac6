// SPDX-License-Identifier: MIT
//! F-RTO (RFC 5682, 3.1): segments that arrive after a timeout show whether anything was lost. As
//! in Linux 6.12 (tcp_process_loss in net/ipv4/tcp_input.c), with SACK only.

use super::ack::News;
use super::recovery::LossState;
use super::Sender;

#[derive(Clone, Copy, Debug, Default)]
pub struct Frto {
    /// Whether it is still unknown if the timeout was spurious.
    pub judges: bool,
}

impl Sender {
    /// Starts after a timeout. `is_first`: no loss was being repaired, or nothing was acknowledged
    /// since the last timeout (tcp_enter_loss).
    // [RFC 5682, 3.1]
    pub(super) fn begin_frto(&mut self, is_first: bool) {
        self.frto.judges = is_first && self.sends_bursts;
    }

    /// Step 3.b: whether data arrived that was outstanding at the timeout and never retransmitted.
    pub(super) fn frto_shows_original(&self, until: u64, news: &News) -> bool {
        self.frto.judges && news.lowest_original < until
    }

    /// Step 2.b: whether new data is to leave instead of presumably lost data.
    pub(super) fn frto_sends_new(&mut self, until: u64, news: &News) -> bool {
        if !self.frto.judges {
            return false;
        }
        if self.nxt > until {
            // Step 3.a: only new data above a hole can follow.
            self.frto.judges = !(news.sacks_data || news.is_pure_duplicate);
            return false;
        }
        news.sample.acked_bytes > 0 && self.una < until
    }

    /// Called when nothing more may leave. True if lost segments waited for new data of which none
    /// could leave: they are retransmitted after all.
    pub(super) fn frto_gives_up(&mut self) -> bool {
        let gives_up =
            self.holds_lost && self.frto.judges && self.loss_state == LossState::Timeout { until: self.nxt };
        if gives_up {
            self.frto.judges = false;
            self.holds_lost = false;
        }
        gives_up
    }
}
