// SPDX-License-Identifier: MIT
//! The sending half of an endpoint: what may leave now, what was lost, when to give up waiting.

use crate::congestion::{AckSample, Congestion};
use crate::packet::Packet;
use crate::ranges::Ranges;
use crate::scenario::{Nagle, Recovery, Sender as Config, SocketLayer};
use std::collections::VecDeque;

pub const NEVER: u64 = u64::MAX;
/// RFC 6298, 2.1: before the first measurement.
const INITIAL_RTO_NS: u64 = 1_000_000_000;
/// RFC 6298, 2.5 allows a maximum of at least 60 s; Linux takes 120 s.
const MAX_RTO_NS: u64 = 120_000_000_000;
/// RFC 8985, 7.2: worst delayed-ACK timer of the peer, when a single segment is out.
const WORST_ACK_DELAY_NS: u64 = 200_000_000;
/// Bytes of one application write in a bulk transfer: its last segment carries PSH (iperf3's size).
const BULK_WRITE_BYTES: u64 = 128 * 1024;
/// 4.3BSD (spec page 5): an mbuf cluster, and how much is copied before TCP output runs.
const CLUSTER_BYTES: u64 = 1024;
const PIECE_BYTES: u64 = 4096;
/// Least share of the peer's largest window that a segment cut off by the window fills (rule
/// `unsent`): the share that the window must slide before the receiver tells of it.
const USABLE_PERCENT: u64 = 35;

/// How long so many bytes take at this rate.
fn transfer_ns(bytes: u64, bps: u64) -> u64 {
    (u128::from(bytes) * 8_000_000_000).div_ceil(bps.into()) as u64
}

#[derive(Clone, Debug)]
struct Segment {
    seq: u64,
    len: u32,
    sent_ns: u64,
    /// For the delivery rate: bytes delivered, and when, at the time of sending.
    delivered: u64,
    delivered_ns: u64,
    first_sent_ns: u64,
    app_limited: bool,
    sacked: bool,
    lost: bool,
    retransmitted: bool,
    /// A retransmission of it is in flight.
    again_in_flight: bool,
    psh: bool,
    fin: bool,
}

/// Bytes of the outstanding segments in each state.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    sacked: u64,
    lost: u64,
    again: u64,
}

impl Segment {
    /// Its retransmission, if there is one, is not in flight any more.
    fn recall(&mut self, tally: &mut Tally) {
        if self.again_in_flight {
            self.again_in_flight = false;
            tally.again -= u64::from(self.len);
        }
    }

    /// Taken as lost, and so is a retransmission of it; not when it was SACKed.
    fn lose(&mut self, tally: &mut Tally) {
        self.recall(tally);
        if !self.lost && !self.sacked {
            self.lost = true;
            tally.lost += u64::from(self.len);
        }
    }

    /// It has arrived above a hole.
    fn sack(&mut self, tally: &mut Tally) {
        self.recall(tally);
        if self.lost {
            self.lost = false;
            tally.lost -= u64::from(self.len);
        }
        self.sacked = true;
        tally.sacked += u64::from(self.len);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Fast recovery until this sequence number is acknowledged.
    Recovery(u64),
    /// After a timeout, until this sequence number is acknowledged.
    Loss(u64),
}

/// Proportional rate reduction (RFC 6937): recovery is clocked by what arrives, so that a large
/// loss is not answered by a burst.
#[derive(Clone, Copy, Debug, Default)]
struct Prr {
    /// Bytes in flight when recovery began.
    flight: u64,
    delivered: u64,
    sent: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    Off,
    Retransmit,
    TailLossProbe,
    /// The window is closed.
    Persist,
}

/// Counters of one sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    pub retransmitted: u64,
    pub timeouts: u64,
    pub fast_recoveries: u64,
}

pub struct Sender {
    cfg: Config,
    pub mss: u64,
    pub una: u64,
    pub nxt: u64,
    /// End of what the application wrote.
    pub written: u64,
    /// End of the stream, once known: the last segment carries FIN.
    pub fin_at: u64,
    /// A piece on its way into the send buffer: bytes, and when they are there.
    copying: Option<(u64, u64)>,
    /// Ends of writes, for PSH (Linux) in order.
    pushes: VecDeque<u64>,
    /// A bulk writer was interrupted in the middle of a write.
    writes_on: bool,
    segments: VecDeque<Segment>,
    sacked: Ranges,
    tally: Tally,
    /// All segments below are judged: lost or SACKed.
    judged_below: u64,
    /// No lost segment waits for retransmission below.
    resend_from: u64,
    state: State,
    prr: Prr,
    dupacks: u32,
    pub cc: Congestion,
    /// Right edge of the peer's window, and the largest window it ever offered.
    wnd_right: u64,
    wnd_max: u64,
    /// End of the last short segment sent (Minshall).
    short_end: u64,
    pub srtt_ns: u64,
    rttvar_ns: u64,
    rto_ns: u64,
    backoff: u32,
    timer: Timer,
    pub timer_ns: u64,
    probed: bool,
    /// The probe is new data, which the congestion window does not hold back.
    probe_is_new: bool,
    /// Pacing: the next segment leaves no earlier.
    pub pace_ns: u64,
    pace_waits: bool,
    delivered: u64,
    delivered_ns: u64,
    first_sent_ns: u64,
    app_limited_until: u64,
    round_end: u64,
    pub counters: Counters,
}

impl Sender {
    /// `wnd`: the peer's window before its first ACK; `rtt_ns`: as the handshake measured it.
    pub fn new(cfg: &Config, mss: u64, wnd: u64, rtt_ns: u64, now: u64) -> Self {
        let cc =
            Congestion::new(cfg.congestion_control, cfg.counting, mss, cfg.initial_window_segments.into());
        let mut s = Sender {
            cfg: cfg.clone(),
            mss,
            una: 0,
            nxt: 0,
            written: 0,
            fin_at: NEVER,
            copying: None,
            pushes: VecDeque::new(),
            writes_on: false,
            segments: VecDeque::new(),
            sacked: Ranges::default(),
            tally: Tally::default(),
            judged_below: 0,
            resend_from: 0,
            state: State::Open,
            prr: Prr::default(),
            dupacks: 0,
            cc,
            wnd_right: wnd,
            wnd_max: wnd,
            short_end: 0,
            srtt_ns: 0,
            rttvar_ns: 0,
            rto_ns: INITIAL_RTO_NS,
            backoff: 0,
            timer: Timer::Off,
            timer_ns: NEVER,
            probed: false,
            probe_is_new: false,
            pace_ns: 0,
            pace_waits: false,
            delivered: 0,
            delivered_ns: now,
            first_sent_ns: now,
            app_limited_until: 0,
            round_end: 0,
            counters: Counters::default(),
        };
        if rtt_ns > 0 {
            s.measure(rtt_ns);
        }
        s
    }

    /// Bytes the application may write now.
    pub fn room(&self) -> u64 {
        (self.una + self.cfg.send_buffer_bytes).saturating_sub(self.written)
    }

    /// The application writes one message; its end is pushed.
    pub fn write(&mut self, bytes: u64) {
        self.written += bytes;
        self.pushes.push_back(self.written);
    }

    /// What a bulk writer up to `limit` puts into a Linux socket if it runs now.
    pub fn fillable(&self, limit: u64) -> u64 {
        let room = self.room().min(limit.saturating_sub(self.written));
        // The writer is woken when a third of the buffer is free (sk_stream_write_space).
        let at_end = self.written + room == limit;
        if self.written > self.una && !at_end && room < self.cfg.send_buffer_bytes / 3 {
            return 0;
        }
        room
    }

    /// A bulk writer fills the buffer as the socket layer lets it, with `most` bytes at most.
    /// Returns true if TCP output has to run (again) and more may be written after it.
    pub fn fill(&mut self, now: u64, limit: u64, most: u64) -> bool {
        match self.cfg.socket {
            SocketLayer::Linux => {
                // The kernel fills its last buffer before it starts another: whole segments.
                let fillable = self.fillable(limit);
                let mut take = fillable.min(most);
                self.writes_on = most < fillable;
                let at_end = self.written + take == limit;
                if !at_end && take >= self.mss {
                    take -= (self.written + take) % self.mss;
                }
                if take == 0 {
                    return false;
                }
                let before = self.written / BULK_WRITE_BYTES;
                self.written += take;
                for n in before + 1..=self.written / BULK_WRITE_BYTES {
                    self.pushes.push_back(n * BULK_WRITE_BYTES);
                }
                if at_end {
                    self.pushes.push_back(self.written);
                }
                false
            }
            SocketLayer::Bsd43 => self.copy_piece(now, limit),
        }
    }

    /// The 4.3BSD writer's next step: a piece of at most 4096 bytes, in whole clusters unless it
    /// is the last. Returns true when one is in the buffer and TCP output has to run.
    fn copy_piece(&mut self, now: u64, limit: u64) -> bool {
        if let Some((bytes, done_ns)) = self.copying {
            if now < done_ns {
                return false;
            }
            self.copying = None;
            self.written += bytes;
            return true;
        }
        let left = limit - self.written;
        let room = self.room().min(left);
        let cluster = CLUSTER_BYTES.min(self.cfg.send_buffer_bytes);
        let least = self.cfg.low_water_bytes.clamp(cluster, self.cfg.send_buffer_bytes);
        if room == 0 || (room < least && room < left) {
            return false;
        }
        let piece = room.min(PIECE_BYTES);
        // Less than a cluster of room is not used.
        let bytes = if room == left { piece } else { piece - piece % cluster };
        if self.cfg.copy_bps == 0 {
            self.written += bytes;
            return true;
        }
        self.copying = Some((bytes, now + transfer_ns(bytes, self.cfg.copy_bps)));
        false
    }

    /// When the piece that is being copied into the send buffer will be there.
    pub fn copied_ns(&self) -> u64 {
        self.copying.map_or(NEVER, |(_, done_ns)| done_ns)
    }

    /// 4.3BSD's input routine ends with TCP output; the writer that waits for room runs later. So a
    /// short piece that an ACK set free leaves alone (spec page 5, class I).
    pub fn sends_before_the_writer_wakes(&self) -> bool {
        self.cfg.socket == SocketLayer::Bsd43
    }

    fn outstanding(&self) -> u64 {
        self.nxt - self.una
    }

    /// RFC 6675, 4: an estimate of the bytes in the network.
    pub fn pipe(&self) -> u64 {
        (self.outstanding() + self.tally.again).saturating_sub(self.tally.sacked + self.tally.lost)
    }

    /// RFC 5681, 4: FlightSize, as a loss halves it. What piled up above a hole that was lost again
    /// and again is no flight: the window bounds it.
    fn flight(&self) -> u64 {
        self.outstanding().min(self.cc.cwnd)
    }

    /// Data waits that could not be sent, for whatever reason.
    pub fn has_unsent(&self) -> bool {
        self.written > self.nxt
    }

    fn window(&self) -> u64 {
        match self.cfg.max_window_segments {
            0 => self.cc.cwnd,
            n => self.cc.cwnd.min(u64::from(n) * self.mss),
        }
    }

    fn measure(&mut self, rtt_ns: u64) {
        // RFC 6298, 2.2 and 2.3.
        if self.srtt_ns == 0 {
            self.srtt_ns = rtt_ns;
            self.rttvar_ns = rtt_ns / 2;
        } else {
            let delta = self.srtt_ns.abs_diff(rtt_ns);
            self.rttvar_ns = self.rttvar_ns - self.rttvar_ns / 4 + delta / 4;
            self.srtt_ns = self.srtt_ns - self.srtt_ns / 8 + rtt_ns / 8;
        }
        // Linux bounds the variance's part, not the sum, from below.
        let spread = (4 * self.rttvar_ns).max(self.cfg.min_rto_ns);
        self.rto_ns = (self.srtt_ns + spread).min(MAX_RTO_NS);
        if self.cfg.min_rto_ns >= INITIAL_RTO_NS {
            // RFC 6298, 2.4: the sum, in the textbook way.
            self.rto_ns = (self.srtt_ns + 4 * self.rttvar_ns).clamp(self.cfg.min_rto_ns, MAX_RTO_NS);
        }
    }

    pub fn rto_ns(&self) -> u64 {
        self.rto_ns
    }

    /// An ACK (on its own or on data) arrived. Returns the round-trip time it measured.
    pub fn on_ack(&mut self, now: u64, p: &Packet) -> Option<u64> {
        if p.ack < self.una || p.ack > self.nxt {
            return None;
        }
        let right = p.ack + u64::from(p.wnd_bytes);
        let window_moved = right > self.wnd_right;
        self.wnd_right = self.wnd_right.max(right);
        self.wnd_max = self.wnd_max.max(p.wnd_bytes.into());
        if window_moved && self.outstanding() == 0 {
            // Probes are over; data has its own timeouts.
            self.backoff = 0;
        }

        let window = self.window();
        let prior = self.pipe();
        let mut sample = AckSample {
            now_ns: now,
            mss: self.mss,
            prior_in_flight: prior,
            // In slow start a window is in use when half of it is (Linux, tcp_is_cwnd_limited).
            window_limited: prior + self.mss > window || (self.cc.in_slow_start() && 2 * prior >= window),
            ..AckSample::default()
        };
        let mut newest: Option<Segment> = None;
        let fresh = p.ack - self.una;
        let mut repaired = false;
        self.una = p.ack;
        while let Some(front) = self.segments.front_mut() {
            let end = front.seq + u64::from(front.len);
            let whole = end <= p.ack;
            let bytes = end.min(p.ack).saturating_sub(front.seq);
            if bytes == 0 && front.len > 0 {
                break;
            }
            if front.sacked {
                self.tally.sacked -= bytes;
            } else {
                sample.delivered_bytes += bytes;
            }
            if front.lost {
                self.tally.lost -= bytes;
            }
            if front.again_in_flight {
                self.tally.again -= bytes;
            }
            repaired |= front.retransmitted;
            if sample.rtt_ns.is_none() && !front.retransmitted && !front.sacked {
                sample.rtt_ns = Some(now - front.sent_ns);
            }
            if !front.sacked && newest.as_ref().map_or(true, |n| front.sent_ns >= n.sent_ns) {
                newest = Some(front.clone());
            }
            if !whole {
                front.len -= bytes as u32;
                front.seq += bytes;
                break;
            }
            self.segments.pop_front();
        }
        if let Some(sack) = &p.sack {
            for &(start, end) in sack.iter() {
                self.apply_sack(start, end, &mut sample, &mut newest);
            }
        }
        if fresh > 0 {
            self.sacked.cut_below(self.una);
        }
        sample.acked_bytes = fresh;
        if repaired {
            // Karn's rule (RFC 6298, 3): what came with a repaired segment had waited for it. The
            // echo is not in doubt (RFC 7323, 4).
            sample.rtt_ns = (p.echo_ns > 0).then(|| now - p.echo_ns);
        }
        if let Some(rtt) = sample.rtt_ns {
            self.measure(rtt);
            // RFC 6298, 5: the backed-off timeout stays until a measurement (so does Linux).
            self.backoff = 0;
        }
        sample.srtt_ns = self.srtt_ns;
        if sample.delivered_bytes > 0 {
            self.delivered += sample.delivered_bytes;
            self.delivered_ns = now;
        }
        if let Some(seg) = &newest {
            sample.rate = self.delivery_rate(now, seg);
            if seg.delivered >= self.round_end {
                sample.round_started = true;
                self.round_end = self.delivered;
            }
        }
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }

        if fresh > 0 {
            self.dupacks = 0;
            self.probed = false;
        } else if p.len == 0 && self.outstanding() > 0 && (!window_moved || p.sack.is_some()) {
            self.dupacks += 1;
        }
        if let Some(seg) = &newest {
            self.mark_lost_again(seg.sent_ns);
        }
        self.recover(&mut sample, fresh);
        if fresh > 0 || sample.delivered_bytes > 0 || self.timer == Timer::Persist {
            self.restart_timer(now);
        }
        sample.rtt_ns
    }

    fn apply_sack(&mut self, start: u64, end: u64, sample: &mut AckSample, newest: &mut Option<Segment>) {
        if end <= self.una || self.cfg.recovery != Recovery::Sack {
            return;
        }
        let segments = &mut self.segments;
        let tally = &mut self.tally;
        self.sacked.insert(start.max(self.una), end.min(self.nxt), |from, to| {
            let first = segments.partition_point(|s| s.seq < from);
            for seg in segments.iter_mut().skip(first) {
                let bytes = u64::from(seg.len);
                if seg.seq + bytes > to {
                    break;
                }
                if seg.sacked {
                    continue;
                }
                seg.sack(tally);
                sample.delivered_bytes += bytes;
                if newest.as_ref().map_or(true, |n| seg.sent_ns >= n.sent_ns) {
                    *newest = Some(seg.clone());
                }
            }
        });
    }

    /// Bytes a second over the newest delivered segment's flight
    /// (draft-cheng-iccrg-delivery-rate-estimation).
    fn delivery_rate(&mut self, now: u64, seg: &Segment) -> Option<(f64, bool)> {
        let delivered = self.delivered - seg.delivered;
        let sending = seg.sent_ns.saturating_sub(seg.first_sent_ns);
        let acking = now - seg.delivered_ns;
        self.first_sent_ns = seg.sent_ns;
        let interval = sending.max(acking);
        // Shorter than a round trip it would be a burst, not a rate.
        (interval > 0 && interval >= self.srtt_ns / 8)
            .then(|| (delivered as f64 * 1e9 / interval as f64, seg.app_limited))
    }

    /// RFC 6675, 4: IsLost, when three segments' worth above it was SACKed.
    fn mark_lost(&mut self) {
        let highest = self.sacked.highest();
        if highest <= self.judged_below.max(self.una) {
            return;
        }
        let mut above = 0;
        let mut edge = 0;
        for (start, end) in self.sacked.iter().rev() {
            above += end - start;
            if above > 2 * self.mss {
                // Everything below the third SACKed segment from the top.
                edge = start + (above - 2 * self.mss).min(end - start) - 1;
                break;
            }
        }
        if edge == 0 {
            return;
        }
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
    }

    /// RFC 8985, 6.2, for retransmissions: lost as well when something that was sent a quarter of a
    /// round trip later has arrived. Only looked for when it happened to the segment that blocks
    /// all others.
    fn mark_lost_again(&mut self, delivered_sent_ns: u64) {
        let patience = self.srtt_ns / 4;
        let overdue = |s: &Segment| s.again_in_flight && s.sent_ns + patience < delivered_sent_ns;
        if !self.segments.front().is_some_and(overdue) {
            return;
        }
        for seg in self.segments.iter_mut().filter(|s| overdue(s)) {
            seg.recall(&mut self.tally);
        }
        self.resend_from = self.una;
    }

    fn mark_first_lost(&mut self) {
        if let Some(seg) = self.segments.front_mut() {
            seg.lose(&mut self.tally);
            self.resend_from = self.resend_from.min(seg.seq);
        }
    }

    fn recover(&mut self, sample: &mut AckSample, fresh: u64) {
        self.resend_from = self.resend_from.max(self.una);
        if self.cfg.recovery == Recovery::Sack {
            self.mark_lost();
        }
        match self.state {
            State::Open => {
                let lost = match self.cfg.recovery {
                    Recovery::Sack => self.tally.lost > 0 || (self.dupacks >= 3 && self.tally.sacked > 0),
                    Recovery::Newreno => self.dupacks == 3,
                    Recovery::Timeout => false,
                };
                if lost {
                    #[cfg(debug_assertions)]
                    self.check();
                    self.state = State::Recovery(self.nxt);
                    self.counters.fast_recoveries += 1;
                    self.mark_first_lost();
                    self.cc.on_loss(self.flight(), self.mss);
                    self.prr = Prr { flight: self.outstanding(), ..Prr::default() };
                    self.reduce_window(sample.delivered_bytes);
                    if self.cfg.recovery == Recovery::Newreno && !self.cc.is_rate_based() {
                        self.cc.cwnd += 3 * self.mss;
                    }
                } else {
                    self.cc.on_ack(sample);
                }
            }
            State::Recovery(until) => {
                if self.una >= until {
                    self.state = State::Open;
                    if self.cfg.recovery == Recovery::Newreno && !self.cc.is_rate_based() {
                        // RFC 6582, 3.2, step 3, option 1.
                        self.cc.cwnd = self.cc.ssthresh.min(self.outstanding().max(self.mss) + self.mss);
                    }
                    self.cc.on_recovered();
                } else if self.cfg.recovery == Recovery::Newreno {
                    if fresh > 0 {
                        self.mark_first_lost();
                        let cwnd = self.cc.cwnd.saturating_sub(fresh);
                        self.cc.cwnd = (cwnd + if fresh >= self.mss { self.mss } else { 0 }).max(self.mss);
                    } else if self.dupacks > 0 {
                        self.cc.cwnd += self.mss;
                    }
                }
                if self.cc.is_rate_based() {
                    self.cc.on_ack(sample);
                } else if matches!(self.state, State::Recovery(_)) {
                    self.reduce_window(sample.delivered_bytes);
                } else if self.cfg.recovery == Recovery::Sack {
                    self.cc.cwnd = self.cc.ssthresh;
                }
            }
            State::Loss(until) => {
                if self.una >= until {
                    self.state = State::Open;
                    self.cc.on_recovered();
                }
                // Slow start after a timeout: what is in flight is what the window allows.
                sample.window_limited = true;
                self.cc.on_ack(sample);
            }
        }
    }

    /// RFC 6937, 3.1, with its slow-start reduction bound: the window for this ACK.
    fn reduce_window(&mut self, delivered: u64) {
        if self.cfg.recovery != Recovery::Sack || self.cc.is_rate_based() {
            return;
        }
        self.prr.delivered += delivered;
        let (pipe, ssthresh) = (self.pipe(), self.cc.ssthresh);
        let may_send = if pipe > ssthresh {
            let share =
                u128::from(self.prr.delivered) * u128::from(ssthresh) / u128::from(self.prr.flight.max(1));
            (share as u64).saturating_sub(self.prr.sent)
        } else {
            let owed = self.prr.delivered.saturating_sub(self.prr.sent).max(delivered) + self.mss;
            owed.min(ssthresh - pipe)
        };
        // The first retransmission leaves at once (RFC 6675, 5, step 4.3).
        let first = if self.prr.sent == 0 { self.mss } else { 0 };
        self.cc.cwnd = pipe + may_send.max(first);
    }

    /// RFC 6298, 5.5: the timeout doubles with each expiry.
    fn arm_retransmit(&mut self, now: u64, backoff: u32) {
        self.timer = Timer::Retransmit;
        self.timer_ns = now + (self.rto_ns << backoff.min(16)).min(MAX_RTO_NS);
    }

    fn restart_timer(&mut self, now: u64) {
        if self.outstanding() == 0 {
            self.timer = Timer::Off;
            self.timer_ns = NEVER;
            return;
        }
        self.arm_retransmit(now, self.backoff);
        let rto = self.timer_ns;
        let probe = self.cfg.tail_loss_probe
            && self.cfg.recovery == Recovery::Sack
            && self.state == State::Open
            && self.tally.sacked == 0
            && !self.probed
            && self.backoff == 0
            && self.srtt_ns > 0;
        if probe {
            let lone = if self.segments.len() == 1 { WORST_ACK_DELAY_NS } else { 0 };
            let pto = now + 2 * self.srtt_ns + lone;
            if pto < rto {
                self.timer = Timer::TailLossProbe;
                self.timer_ns = pto;
            }
        }
    }

    /// The retransmission, probe or persist timer expired. Returns true when a window probe has to
    /// leave; all else goes through `next_segment`.
    pub fn on_timer(&mut self, now: u64) -> bool {
        let timer = std::mem::replace(&mut self.timer, Timer::Off);
        self.timer_ns = NEVER;
        match timer {
            Timer::Off => false,
            Timer::Persist => {
                self.backoff = (self.backoff + 1).min(10);
                true
            }
            Timer::TailLossProbe => {
                self.probed = true;
                // RFC 8985, 7.3: new data if there is any, else the last segment again.
                self.probe_is_new = self.has_unsent() && self.nxt + self.mss <= self.wnd_right;
                if !self.probe_is_new {
                    if let Some(last) = self.segments.back_mut() {
                        last.lose(&mut self.tally);
                        self.resend_from = self.resend_from.min(last.seq);
                    }
                }
                self.arm_retransmit(now, 0);
                false
            }
            Timer::Retransmit => {
                self.counters.timeouts += 1;
                #[cfg(debug_assertions)]
                self.check();
                if !matches!(self.state, State::Loss(_)) || self.backoff == 0 {
                    self.cc.on_timeout(self.flight(), self.mss);
                } else {
                    self.cc.cwnd = self.mss;
                }
                self.state = State::Loss(self.nxt);
                self.backoff += 1;
                self.dupacks = 0;
                // RFC 6298, 5.4-5.6; all that is not SACKed is taken as lost.
                for seg in &mut self.segments {
                    seg.lose(&mut self.tally);
                }
                self.judged_below = self.nxt;
                self.resend_from = self.una;
                self.arm_retransmit(now, self.backoff);
                self.pace_ns = now;
                false
            }
        }
    }

    /// The next lost segment that may be sent again now.
    fn next_lost(&mut self) -> Option<usize> {
        if self.tally.lost == 0 {
            return None;
        }
        let first = self.segments.partition_point(|s| s.seq < self.resend_from);
        let found = (first..self.segments.len())
            .find(|&i| self.segments[i].lost && !self.segments[i].again_in_flight);
        self.resend_from = found.map_or(self.nxt, |i| self.segments[i].seq);
        found
    }

    /// The next segment that may leave at `now`: (seq, len, psh, fin, retransmitted).
    pub fn next_segment(&mut self, now: u64) -> Option<(u64, u32, bool, bool, bool)> {
        let window = self.window();
        let pipe = self.pipe();
        self.pace_waits = false;
        if let Some(i) = self.next_lost() {
            let len = u64::from(self.segments[i].len);
            // RFC 5681, 3.2, step 3; RFC 6582, 3.2, step 3: the one segment that duplicates or a
            // partial ACK ask for leaves whatever the window.
            let due = self.cfg.recovery == Recovery::Newreno && matches!(self.state, State::Recovery(_));
            if pipe > 0 && pipe + len > window && !due {
                return None;
            }
            if !self.pace(now, len) {
                return None;
            }
            let probe_end = self.nxt;
            let seg = &mut self.segments[i];
            seg.retransmitted = true;
            seg.again_in_flight = true;
            seg.sent_ns = now;
            seg.delivered = self.delivered;
            seg.delivered_ns = self.delivered_ns;
            seg.first_sent_ns = self.first_sent_ns;
            self.tally.again += len;
            self.prr.sent += len;
            self.counters.retransmitted += 1;
            let out = (seg.seq, seg.len, seg.psh, seg.fin, true);
            if self.timer == Timer::Off || self.probed && probe_end == seg.seq + len {
                self.arm_retransmit(now, 0);
            }
            return Some(out);
        }
        let unsent = self.written - self.nxt;
        if unsent == 0 {
            return None;
        }
        let open = self.wnd_right.saturating_sub(self.nxt);
        let len = self.mss.min(unsent).min(open);
        if len == 0 {
            self.arm_persist(now);
            return None;
        }
        let is_probe = std::mem::take(&mut self.probe_is_new);
        if pipe > 0 && pipe + len > window && !is_probe {
            return None;
        }
        let last = self.nxt + len == self.fin_at;
        if len < self.mss && !last && !self.short_may_leave(len, unsent) {
            if open < unsent && self.outstanding() == 0 {
                self.arm_persist(now);
            }
            return None;
        }
        if !self.pace(now, len) {
            return None;
        }
        Some(self.send_new(now, len, last))
    }

    fn send_new(&mut self, now: u64, len: u64, fin: bool) -> (u64, u32, bool, bool, bool) {
        let seq = self.nxt;
        let end = seq + len;
        if self.outstanding() == 0 {
            self.first_sent_ns = now;
            self.delivered_ns = now;
        }
        // The last segment of a write is pushed, and whatever empties the buffer.
        let mut psh = end == self.written && !self.writes_on;
        while self.pushes.front().is_some_and(|&at| at <= end) {
            self.pushes.pop_front();
            psh = true;
        }
        if end == self.written && self.pipe() + len < self.window() {
            self.app_limited_until = self.delivered + self.pipe() + len;
        }
        self.segments.push_back(Segment {
            seq,
            len: len as u32,
            sent_ns: now,
            delivered: self.delivered,
            delivered_ns: self.delivered_ns,
            first_sent_ns: self.first_sent_ns,
            app_limited: self.app_limited_until > 0,
            sacked: false,
            lost: false,
            retransmitted: false,
            again_in_flight: false,
            psh,
            fin,
        });
        self.nxt = end;
        self.prr.sent += len;
        if len < self.mss {
            self.short_end = end;
        }
        if matches!(self.timer, Timer::Off | Timer::Persist | Timer::TailLossProbe) {
            self.restart_timer(now);
        }
        (seq, len as u32, psh, fin, false)
    }

    /// RFC 1122, 4.2.3.4: may a segment shorter than the MSS leave?
    fn short_may_leave(&self, len: u64, unsent: u64) -> bool {
        if self.cfg.nagle == Nagle::Unsent {
            // What the window cuts off leaves only when it is worth it (RFC 813, 4).
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

    fn arm_persist(&mut self, now: u64) {
        if self.timer == Timer::Off && self.outstanding() == 0 {
            self.timer = Timer::Persist;
            self.timer_ns = now + (self.rto_ns << self.backoff.min(10)).min(60_000_000_000);
        }
    }

    /// Takes the pacing credit for a segment; false: it has to wait until `pace_ns`.
    fn pace(&mut self, now: u64, len: u64) -> bool {
        let rate = match self.cc.pacing_rate() {
            Some(rate) => rate,
            // Linux: twice the window per RTT in slow start, 1.2 times after it.
            None if self.cfg.pacing && self.srtt_ns > 0 => {
                let gain = if self.cc.in_slow_start() { 2.0 } else { 1.2 };
                gain * self.window() as f64 * 1e9 / self.srtt_ns as f64
            }
            None => return true,
        };
        if now < self.pace_ns {
            self.pace_waits = true;
            return false;
        }
        let gap = (len as f64 * 1e9 / rate.max(1.0)) as u64;
        // A late wake-up may catch up by one segment, not by a burst.
        self.pace_ns = now.max(self.pace_ns + gap.min(now - self.pace_ns)) + gap;
        true
    }

    /// When the pacer lets the next segment go, if that is what output waits for.
    pub fn pace_wake_ns(&self) -> u64 {
        if self.pace_waits {
            self.pace_ns
        } else {
            NEVER
        }
    }

    /// Everything written is acknowledged.
    pub fn is_done(&self) -> bool {
        self.una == self.written
    }

    /// The sums kept on the way against the segments; in debug builds, at each loss.
    #[cfg(debug_assertions)]
    fn check(&self) {
        let sum = |f: fn(&Segment) -> bool| -> u64 {
            self.segments.iter().filter(|s| f(s)).map(|s| u64::from(s.len)).sum()
        };
        assert_eq!(self.tally.sacked, sum(|s| s.sacked));
        assert_eq!(self.tally.lost, sum(|s| s.lost));
        assert_eq!(self.tally.again, sum(|s| s.again_in_flight));
        assert_eq!(self.outstanding(), sum(|_| true));
    }
}
