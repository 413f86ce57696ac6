// SPDX-License-Identifier: MIT
//! Loss detection by time (RACK, RFC 8985) as in Linux 6.12 (net/ipv4/tcp_recovery.c): a segment is
//! lost if a segment sent later has arrived and the reordering window has passed since.

use super::recovery::DUP_THRESH;
use super::segment::Segment;
use super::Sender;
use std::collections::VecDeque;

/// The reordering window is this fraction of the minimum RTT (RFC 8985, 6.2, step 4), ...
const WINDOW_RTT_SHARE: u64 = 4;
/// ... increased once after each round trip with a spurious retransmission, at most this many
/// times, ...
const STEPS_MAX: u64 = 255;
/// ... until this many recoveries had none (TCP_RACK_RECOVERY_THRESH).
const RECOVERIES_KEPT: u32 = 16;
/// Minimum extra wait of Linux beyond the window (TCP_TIMEOUT_MIN_US).
const TIMER_SLACK_NS: u64 = 2_000_000;
/// Maximum reordering in segments that Linux assumes (tcp_max_reordering).
const REORDERING_MAX: u64 = 300;

/// State of order and time on the path.
#[derive(Clone, Debug)]
pub struct Rack {
    /// Send time and end of the most recently sent of the delivered segments.
    sent_ns: u64,
    end: u64,
    /// RTT of the segment delivered last.
    rtt_ns: u64,
    /// Whether anything was delivered since the last search for losses.
    advanced: bool,
    /// Reordering extent in segments; a loss is assumed at once after as many SACKs.
    pub reordering: u64,
    pub reordering_seen: bool,
    steps: u64,
    recoveries_left: u32,
    /// Whether D-SACK reported a spurious retransmission, and bytes delivered when the last such
    /// report counted.
    dsack_seen: bool,
    delivered_at_step: u64,
    /// All segments below that were sent once are judged.
    judged_below: u64,
    /// Retransmissions in order of departure: sequence number and time.
    resent: VecDeque<(u64, u64)>,
}

impl Default for Rack {
    fn default() -> Self {
        Rack {
            sent_ns: 0,
            end: 0,
            rtt_ns: 0,
            advanced: false,
            reordering: DUP_THRESH.into(),
            reordering_seen: false,
            steps: 1,
            recoveries_left: 0,
            dsack_seen: false,
            delivered_at_step: 0,
            judged_below: 0,
            resent: VecDeque::new(),
        }
    }
}

impl Rack {
    /// RFC 8985, 6.2, steps 1 and 2: records a delivered segment.
    pub fn deliver(&mut self, now: u64, segment: &Segment, min_rtt_ns: u64) {
        let sent_ns = segment.departure.sent_ns;
        let rtt_ns = now - sent_ns;
        if segment.retransmitted && rtt_ns < min_rtt_ns {
            // The original arrived, not the retransmission.
            return;
        }
        self.advanced = true;
        self.rtt_ns = rtt_ns;
        let end = segment.end();
        if (sent_ns, end) > (self.sent_ns, self.end) {
            (self.sent_ns, self.end) = (sent_ns, end);
        }
    }

    /// Records a retransmission.
    pub fn resend(&mut self, seq: u64, now: u64) {
        self.resent.push_back((seq, now));
    }

    /// Makes the next ACK search for losses, whatever it delivers.
    pub fn look_again(&mut self, una: u64) {
        self.advanced = true;
        self.judged_below = una;
    }

    /// Records that D-SACK reported a retransmission as spurious.
    pub fn note_spurious(&mut self) {
        self.dsack_seen |= self.reordering_seen;
    }

    /// RFC 8985, 6.2, step 4, once per round trip. `sent_after`: bytes delivered when the newest
    /// segment of this ACK left; `delivered`: bytes delivered now.
    pub fn adapt(&mut self, sent_after: u64, delivered: u64) {
        if sent_after < self.delivered_at_step {
            self.dsack_seen = false;
        }
        if self.dsack_seen {
            self.dsack_seen = false;
            self.steps = (self.steps + 1).min(STEPS_MAX);
            self.delivered_at_step = delivered;
            self.recoveries_left = RECOVERIES_KEPT;
        } else if self.recoveries_left == 0 {
            self.steps = 1;
        }
    }

    #[cfg(test)]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Records the end of a recovery that was needed.
    pub fn end_recovery(&mut self) {
        self.recoveries_left = self.recoveries_left.saturating_sub(1);
    }

    /// Records that a recovery was spurious.
    pub fn keep_window(&mut self) {
        self.recoveries_left = (self.recoveries_left + 1).min(RECOVERIES_KEPT);
    }

    /// Records that data up to `high` overtook `low` (RFC 8985, 6.2, step 3).
    pub fn note_reordering(&mut self, low: u64, high: u64, mss: u64) {
        if low >= high {
            return;
        }
        let segments = (high - low).div_ceil(mss);
        self.reordering = self.reordering.max(segments.min(REORDERING_MAX));
        self.reordering_seen = true;
    }

    /// Lowers the reordering extent: a timeout came although enough was SACKed (tcp_enter_loss).
    pub fn doubt_reordering(&mut self) {
        self.reordering = self.reordering.min(DUP_THRESH.into());
    }

    fn left_before(&self, sent_ns: u64, end: u64) -> bool {
        (sent_ns, end) < (self.sent_ns, self.end)
    }

    /// Time until which a segment sent then may still arrive.
    pub fn patience_ends_ns(&self, sent_ns: u64, window_ns: u64) -> u64 {
        sent_ns + self.rtt_ns + window_ns
    }
}

impl Sender {
    /// The reordering window (Linux, tcp_rack_reo_wnd). If the path has not reordered, it is 0 in a
    /// recovery, or once there are as many SACKs as RFC 5681 requires duplicates.
    fn reordering_window_ns(&self) -> u64 {
        if !self.rack.reordering_seen {
            let enough = self.tally.sacked_segments >= self.rack.reordering;
            if enough || self.loss_state.repairs() {
                return 0;
            }
        }
        (self.min_rtt_ns / WINDOW_RTT_SHARE).saturating_mul(self.rack.steps).min(self.srtt_ns)
    }

    /// Marks lost segments after an ACK. Returns the time until the next may be lost.
    pub(super) fn detect_losses_by_ack(&mut self, now: u64) -> Option<u64> {
        if !std::mem::take(&mut self.rack.advanced) {
            return None;
        }
        self.detect_losses(now).map(|wait_ns| wait_ns + TIMER_SLACK_NS)
    }

    /// RFC 8985, 6.2, step 5. Returns the longest time for which a segment may still arrive.
    pub(super) fn detect_losses(&mut self, now: u64) -> Option<u64> {
        let window_ns = self.reordering_window_ns();
        let sent_once = self.detect_lost_originals(now, window_ns);
        let sent_again = self.detect_lost_retransmissions(now, window_ns);
        sent_once.max(sent_again)
    }

    fn detect_lost_originals(&mut self, now: u64, window_ns: u64) -> Option<u64> {
        let mut wait_ns = None;
        let mut at = self.segments.partition_point(|s| s.seq < self.rack.judged_below);
        while let Some(segment) = self.segments.get_mut(at) {
            let mut end = segment.end();
            at += 1;
            if segment.sacked {
                // Skips data SACKed in one piece.
                end = self.sacked.around(segment.seq).map_or(end, |(_, joined)| joined);
                at = self.segments.partition_point(|s| s.seq < end);
            } else if !segment.lost && !segment.retransmitted {
                let sent_ns = segment.departure.sent_ns;
                if !self.rack.left_before(sent_ns, end) {
                    break;
                }
                let ends_ns = self.rack.patience_ends_ns(sent_ns, window_ns);
                if ends_ns > now {
                    wait_ns = wait_ns.max(Some(ends_ns - now));
                } else {
                    segment.lose(&mut self.tally);
                    self.newly_lost = true;
                    self.resend_from = self.resend_from.min(segment.seq);
                }
            }
            if wait_ns.is_none() {
                self.rack.judged_below = end;
            }
        }
        wait_ns
    }

    fn detect_lost_retransmissions(&mut self, now: u64, window_ns: u64) -> Option<u64> {
        let mut wait_ns = None;
        let mut at = 0;
        while let Some(&(seq, sent_ns)) = self.rack.resent.get(at) {
            if sent_ns > self.rack.sent_ns {
                break;
            }
            let found = self.segments.partition_point(|s| s.seq < seq);
            let segment = self.segments.get_mut(found).filter(|s| s.seq == seq && s.is_out_again(sent_ns));
            let mut is_over = segment.is_none();
            if let Some(segment) = segment {
                if !self.rack.left_before(sent_ns, segment.end()) {
                    break;
                }
                let ends_ns = self.rack.patience_ends_ns(sent_ns, window_ns);
                is_over = ends_ns <= now;
                if is_over {
                    segment.lose(&mut self.tally);
                    self.newly_lost = true;
                    self.resend_from = self.resend_from.min(seq);
                } else {
                    wait_ns = wait_ns.max(Some(ends_ns - now));
                }
            }
            if is_over && at == 0 {
                self.rack.resent.pop_front();
            } else {
                at += 1;
            }
        }
        wait_ns
    }
}
