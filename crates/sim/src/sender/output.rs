// SPDX-License-Identifier: MIT
//! TCP output: the choice of the next segment.

use super::recovery::LossState;
use super::segment::{Departure, Segment};
use super::tail_probe::DueProbe;
use super::timers::Timer;
use super::{Sender, NEVER};
use crate::congestion::{Restart, Window};
use crate::scenario::{Nagle, Recovery};

/// Minimum share of the peer's largest window that a segment cut off by the window must fill (rule
/// `unsent`): the share by which the window must slide before the receiver reports it.
const USABLE_PERCENT: u64 = 35;

/// Linux (tcp_update_skb_after_send) starts to pace after this many segments, and catches up half
/// of a burst that leaves late.
const UNPACED_SEGMENTS: u64 = 10;

/// A departing segment.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    pub seq: u64,
    pub len: u32,
    pub psh: bool,
    pub fin: bool,
    pub is_retransmission: bool,
    /// Whether it is ECN-capable (RFC 3168, 6.1.5: new data only).
    pub is_ect: bool,
    pub cwr: bool,
}

impl Sender {
    /// False: `next_segment` has nothing to send.
    #[inline]
    pub fn has_output(&self) -> bool {
        self.written != self.nxt
            || self.tally.lost > 0
            || self.due_probe.is_some()
            || self.pace_waits
            || self.owes_space_check()
    }

    /// End of the data written so far, and whether that is all.
    pub fn end_written(&self) -> (u64, bool) {
        (self.written, self.written == self.fin_at)
    }

    /// The next segment that may leave at `now`; lost ones come first (RFC 6675, 4, NextSeg()).
    // `inline(always)` here, on `next_lost` and `send_unsent` saves 1.2% of all instructions; on
    // `send_new`: see engine.rs.
    #[inline(always)]
    pub fn next_segment(&mut self, now: u64) -> Option<Outgoing> {
        self.pace_waits = false;
        if self.due_probe == Some(DueProbe::LastSegment) {
            return self.send_last_again(now);
        }
        let mut next = match self.next_lost() {
            Some(at) => self.send_again(now, at),
            None => self.send_unsent(now),
        };
        if next.is_none() && self.frto_gives_up() {
            next = self.next_lost().and_then(|at| self.send_again(now, at));
        }
        if next.is_none() {
            if std::mem::take(&mut self.sent_restarts_timer) {
                self.restart_timer(now);
            }
            self.end_burst();
            self.judge_window_use(now);
            self.end_output(now);
        }
        next
    }

    #[cold]
    fn send_last_again(&mut self, now: u64) -> Option<Outgoing> {
        self.due_probe = None;
        self.segments.len().checked_sub(1).map(|last| self.resend(now, last))
    }

    /// The next lost segment without a retransmission in flight.
    #[inline(always)]
    fn next_lost(&mut self) -> Option<usize> {
        if self.tally.lost == 0 || self.holds_lost {
            return None;
        }
        self.find_lost()
    }

    #[cold]
    fn find_lost(&mut self) -> Option<usize> {
        if self.segments.back().map_or(true, |last| last.seq < self.resend_from) {
            return None;
        }
        let first = self.segments.partition_point(|s| s.seq < self.resend_from);
        let found = (first..self.segments.len())
            .find(|&i| self.segments[i].lost && !self.segments[i].again_in_flight);
        self.resend_from = found.map_or(self.nxt, |i| self.segments[i].seq);
        found
    }

    /// Whether this many more bytes fit into the congestion window; one segment always does.
    fn fits_window(&self, len: u64) -> bool {
        let in_flight = self.bytes_in_flight();
        in_flight == 0 || in_flight + len <= self.window()
    }

    fn departure(&self, now: u64) -> Departure {
        Departure {
            sent_ns: now,
            delivered: self.delivered,
            delivered_ns: self.delivered_ns,
            first_sent_ns: self.first_sent_ns,
            app_limited: self.app_limited_until > 0,
        }
    }

    /// Retransmits the segment at this index, if it may leave.
    #[cold]
    fn send_again(&mut self, now: u64, at: usize) -> Option<Outgoing> {
        let len = u64::from(self.segments[at].len);
        // RFC 5681, 3.2, step 3; RFC 6582, 3.2, step 3: the segment requested by duplicates or a
        // partial ACK leaves whatever the window.
        let in_fast_recovery = matches!(self.loss_state, LossState::FastRecovery { .. });
        let is_asked_for = self.cfg.recovery == Recovery::Newreno && in_fast_recovery;
        if !(self.fits_window(len) || is_asked_for) || !self.pace(now, len) {
            return None;
        }
        Some(self.resend(now, at))
    }

    fn resend(&mut self, now: u64, at: usize) -> Outgoing {
        let departure = self.departure(now);
        let seg = &mut self.segments[at];
        seg.recall(&mut self.tally);
        seg.departure = departure;
        seg.retransmitted = true;
        seg.again_in_flight = true;
        let len = u64::from(seg.len);
        let out = Outgoing {
            seq: seg.seq,
            len: seg.len,
            psh: seg.psh,
            fin: seg.fin,
            is_retransmission: true,
            is_ect: false,
            cwr: false,
        };
        self.tally.again += len;
        self.last_sent_ns = now;
        self.prr.sent += len;
        self.counters.retransmitted += 1;
        let with_sack = self.cfg.recovery == Recovery::Sack;
        if with_sack {
            self.undo.resend(now);
            self.rack.resend(out.seq, now);
        }
        let is_first = at == 0 && with_sack;
        if self.timer == Timer::Off || is_first && self.timer != Timer::Reordering {
            self.arm_retransmit(now, self.backoff);
        }
        out
    }

    /// Sends data for the first time, if there is any and it may leave.
    #[inline(always)]
    fn send_unsent(&mut self, now: u64) -> Option<Outgoing> {
        let unsent = self.written - self.nxt;
        if unsent == 0 {
            return None;
        }
        let open = self.wnd_right.saturating_sub(self.nxt);
        if self.sends_bursts && self.due_probe != Some(DueProbe::NewData) {
            // A segment cut off by the peer's window is judged separately (below).
            if self.burst_goes_on() || open >= self.mss.min(unsent) {
                return self.send_burst(now);
            }
        }
        let len = self.mss.min(unsent).min(open);
        if len == 0 {
            self.arm_persist(now);
            return None;
        }
        let is_probe = self.due_probe.take() == Some(DueProbe::NewData);
        if !self.fits_window(len) && !is_probe {
            return None;
        }
        let is_last = self.nxt + len == self.fin_at;
        if len < self.mss && !is_last && !is_probe && !self.short_may_leave(len, unsent) {
            if open < unsent && self.outstanding() == 0 {
                self.arm_persist(now);
            }
            return None;
        }
        if !self.pace(now, len) {
            return None;
        }
        Some(self.send_new(now, len, is_last))
    }

    /// The next segment of the current burst, or the first of another.
    fn send_burst(&mut self, now: u64) -> Option<Outgoing> {
        if !self.burst_goes_on() && !self.begin_burst(now) {
            return None;
        }
        let len = self.mss.min(self.burst_left());
        Some(self.send_new(now, len, self.nxt + len == self.fin_at))
    }

    /// Handles idle restart: new data is about to leave, and nothing is outstanding.
    // Out of line, so that `send_new` can be inlined.
    #[cold]
    fn restart(&mut self, now: u64) {
        self.restart_after_idle(now);
        self.first_sent_ns = now;
        self.delivered_ns = now;
        let (last_sent_ns, app_limited) = (self.last_sent_ns, self.app_limited_until > 0);
        self.cc.on_restart(&Restart { now_ns: now, mss: self.mss, last_sent_ns, app_limited });
    }

    #[inline(always)]
    fn send_new(&mut self, now: u64, len: u64, fin: bool) -> Outgoing {
        let seq = self.nxt;
        let end = seq + len;
        if self.outstanding() == 0 {
            self.restart(now);
        }
        // The last segment of a burst or of a write is pushed, and so is one that empties the
        // buffer.
        let (begins_buffer, mut psh) = if self.sends_bursts {
            self.take_from_burst(now, len)
        } else {
            (true, end == self.written && !self.writes_on)
        };
        while self.pushes.front().is_some_and(|&at| at <= end) {
            self.pushes.pop_front();
            psh = true;
        }
        // A writer that waits for room in the buffer has more to send.
        let has_more = self.sends_bursts || self.queue.is_full;
        if end == self.written && !has_more && self.bytes_in_flight() + len < self.window() {
            self.app_limited_until = self.delivered + self.bytes_in_flight() + len;
        }
        self.segments.push_back(Segment {
            seq,
            len: len as u32,
            departure: self.departure(now),
            sacked: false,
            lost: false,
            retransmitted: false,
            again_in_flight: false,
            psh,
            fin,
            begins_buffer,
        });
        self.tally.buffers += u64::from(begins_buffer);
        self.nxt = end;
        self.last_sent_ns = now;
        self.window_use.sent = true;
        self.prr.sent += len;
        if len < self.mss {
            self.short_end = end;
        }
        if matches!(self.timer, Timer::Off | Timer::Persist | Timer::TailLossProbe) {
            self.sent_restarts_timer = true;
        }
        if self.ends_burst() {
            self.check_space(now);
        }
        let (is_ect, cwr) = (self.ecn.is_agreed, self.ecn.take_cwr());
        Outgoing { seq, len: len as u32, psh, fin, is_retransmission: false, is_ect, cwr }
    }

    /// Whether a segment shorter than the MSS may leave (RFC 1122, 4.2.3.4).
    // [S5.4]
    pub(super) fn short_may_leave(&self, len: u64, unsent: u64) -> bool {
        if self.cfg.nagle == Nagle::Unsent {
            // A segment cut off by the window leaves only when it is worthwhile (RFC 813, 4).
            let worth_it = len == unsent || 100 * len >= USABLE_PERCENT * self.wnd_max;
            let enough = unsent >= self.mss || 2 * unsent > self.wnd_max;
            return self.outstanding() == 0 || (enough && worth_it);
        }
        if 2 * len >= self.wnd_max {
            return true;
        }
        if len < unsent {
            return false;
        }
        match self.cfg.nagle {
            Nagle::Off => true,
            Nagle::Bsd43 | Nagle::Unsent => self.outstanding() == 0,
            Nagle::Minshall => self.short_end <= self.una,
        }
    }

    /// Pacing rate in bytes per second; None: no pacing.
    fn pacing_rate(&self) -> Option<f64> {
        self.cc.pacing_rate().or_else(|| {
            let paces = self.cfg.pacing && self.srtt_ns > 0;
            paces.then(|| Window { cwnd: self.window(), ..self.cc.window }.pacing_rate(self.srtt_ns))
        })
    }

    /// Whether the pacer holds back (Linux, tcp_pacing_check).
    pub(super) fn pacer_waits(&mut self, now: u64) -> bool {
        self.pace_waits = now < self.pace_ns && self.pacing_rate().is_some();
        self.pace_waits
    }

    /// Takes the pacing credit for this many bytes that leave together.
    pub(super) fn pace(&mut self, now: u64, bytes: u64) -> bool {
        self.pacing_rate().map_or(true, |rate| self.pace_at(rate, now, bytes))
    }

    /// Takes the pacing credit for bytes that leave together; false: they wait until `pace_ns`.
    fn pace_at(&mut self, rate: f64, now: u64, bytes: u64) -> bool {
        if now < self.pace_ns {
            self.pace_waits = true;
            return false;
        }
        let gap = (bytes as f64 * 1e9 / rate.max(1.0)) as u64;
        let late = now - self.pace_ns;
        self.pace_ns = if !self.sends_bursts {
            // A late wake-up may catch up by one segment, not by a burst.
            now.max(self.pace_ns + gap.min(late)) + gap
        } else if self.nxt + bytes < UNPACED_SEGMENTS * self.mss {
            now
        } else {
            now + gap - late.min(gap / 2)
        };
        true
    }

    /// Time at which the pacer releases the next segment, if output waits for it.
    pub fn pace_wake_ns(&self) -> u64 {
        if self.pace_waits {
            self.pace_ns
        } else {
            NEVER
        }
    }
}
