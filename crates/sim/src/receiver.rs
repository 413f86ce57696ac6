// SPDX-License-Identifier: MIT
//! The receiving half of an endpoint: reassembly, the window, and the driver of the policy core.

use crate::echo::Echo;
use crate::packet::{Flags, Packet, Sack, SACK_BLOCKS};
use crate::receive_buffer::ReceiveBuffer;
use crate::rng::Rng;
use crate::round_trip::RoundTrip;
use crate::scenario::{ReceiverSpec, SocketLayer};
use crate::sender::NEVER;
use ackwise_core::ranges::Ranges;
use ackwise_core::{flag, Action, Conn, Event, EventKind, Reason, Resolved, Seq};

/// Linux: initial window.
const FIRST_WINDOW_BYTES: u64 = 65_535;
/// RFC 9293, 3.7.1: default MSS, Linux's initial estimate of the peer's segments.
const MSS_GUESS_BYTES: u32 = 536;

/// Time for which the ACK of a FIN waits for the FIN of an application that closes (Linux,
/// TCP_ATO_MIN).
const FIN_WAIT_US: u32 = 40_000;
/// Linux counts timeouts in jiffies and rounds them up: CONFIG_HZ=250.
const TICK_NS: u64 = 4_000_000;

/// Length of the option with padding (RFC 7323, appendix A).
const TIMESTAMP_BYTES: u32 = 12;

/// Linux uses this fraction of its own RTT, if that is smaller than the one measured
/// from data.
const SACK_RTT_SHARE: u64 = 20;

/// Linux, tcp_comp_sack_slack_ns.
const SACK_SLACK_NS: u64 = 100_000;

/// Linux, tcp_event_data_recv: shorter segments do not affect the window.
const GROWING_MIN_BYTES: u32 = 128;

pub struct Receiver {
    cfg: ReceiverSpec,
    mss: u32,
    pub rcv_nxt: u64,
    /// rcv_nxt at the last ACK, and the window it offered.
    rcv_wup: u64,
    wnd: u64,
    /// Window that an ACK leaving now would offer; NEVER: it has to be recomputed.
    next_wnd: u64,
    /// Sequence number up to which the application has read.
    read: u64,
    above: Ranges,
    /// Range that arrived twice (RFC 2883), until an ACK reports it.
    copy: Option<(u64, u64)>,
    /// A position in the range that changed last, which is reported first (RFC 2018, 4), and one in
    /// the range that changed before.
    newest_ranges: [u64; 2],
    /// Whether an ACK for the current segment can also report the segments above a hole: the
    /// segment belongs to one of these ranges, or there are fewer than two (Linux,
    /// tcp_sack_new_ofo_skb).
    sack_has_room: bool,
    buffer: ReceiveBuffer,
    /// Maximum window during the initial phase (Linux, rcv_ssthresh), ...
    ceiling: u64,
    /// ... limited to this until the buffer's share of payload is known (window_clamp).
    first_clamp: Option<u64>,
    /// What the application allows (Linux, TCP_WINDOW_CLAMP).
    clamp: u64,
    pub scale: u32,
    rcv_mss: u32,
    rtt: RoundTrip,
    echo_ns: u64,
    /// Autotuning: bytes read at the start of a round, time of its start, and the maximum of all
    /// rounds.
    tune_read: u64,
    tune_since_ns: u64,
    tune_space: u64,
    conn: Conn,
    /// Questions to the policy that the processor was charged for, modulo 2^16.
    charged_questions: u16,
    /// Random numbers of the policy; None: it uses none.
    rng: Option<Rng>,
    ack_delay_max_us: u32,
    /// (arrival time, segments) that are not acknowledged yet.
    unacked: Vec<(u64, u16)>,
    pub deadline_ns: u64,
    pub reader_ns: u64,
    read_credit_ns: u64,
    /// Whether the ACK of the latest arrival waits for its read (`ack_after_read`).
    waits_for_read: bool,
    pub last_data_ns: u64,
    rto_us: u32,
    /// RTT estimate of this end's sender, which Linux's own code uses.
    srtt_us: u32,
    sack: bool,
    /// Whether the host is Linux; if so, it keeps its own rules whatever the policy.
    is_linux: bool,
    /// Whether a policy places orders.
    has_policy: bool,
    pub echo: Echo,
    /// Whether no data has arrived yet.
    silent: bool,
    /// Whether its application closes the connection when it has read everything.
    closes: bool,
    /// Position of the peer's FIN; NEVER: it has not arrived, or the connection is closed.
    fin_at: u64,
}

/// Contents of the ACK-related fields.
pub struct AckFields {
    pub ack: u64,
    pub wnd_bytes: u32,
    pub echo_ns: u64,
    /// ECN-Echo.
    pub ece: bool,
    pub sack: Option<Box<Sack>>,
}

pub struct Setup<'a> {
    pub policy: &'a Resolved,
    pub seed: u64,
    pub place: u64,
    /// Whether both ends agreed on SACK (RFC 2018, 2).
    pub sack: bool,
    /// Whether this end opens the connection.
    pub opens: bool,
    /// Whether the application closes the connection when it has read everything.
    pub closes: bool,
    /// Whether the sender is on the same kernel, and keeps each segment as the packet that arrived.
    pub shares_packets: bool,
}

impl Receiver {
    pub fn new(cfg: &ReceiverSpec, mss: u32, now: u64, rtt_ns: u64, setup: &Setup) -> Self {
        let mut rng = Rng::new(setup.seed, setup.place);
        let mut start = Event::new(EventKind::Data, now);
        start.random = rng.bits();
        start.rcv_mss_bytes = mss;
        let buffer = ReceiveBuffer::new(cfg, mss, setup.shares_packets);
        let scale = if cfg.window_scaling { buffer.window_scale() } else { 0 };
        let first_clamp = (buffer.grows && cfg.slow_window).then(|| {
            // Linux, tcp_init_buffer_space: room for one segment is reserved.
            let (whole, mss) = (buffer.window(), u64::from(mss));
            if whole > 2 * mss {
                (whole - mss).max(2 * mss)
            } else {
                whole
            }
        });
        let clamp = if cfg.window_clamp_bytes > 0 { cfg.window_clamp_bytes } else { u64::MAX };
        let mut r = Receiver {
            cfg: cfg.clone(),
            mss,
            rcv_nxt: 0,
            rcv_wup: 0,
            wnd: 0,
            next_wnd: NEVER,
            read: 0,
            above: Ranges::default(),
            copy: None,
            newest_ranges: [0; 2],
            sack_has_room: true,
            buffer,
            first_clamp,
            clamp,
            ceiling: if cfg.slow_window { FIRST_WINDOW_BYTES } else { u64::MAX }.min(clamp),
            scale,
            rcv_mss: mss.min(MSS_GUESS_BYTES),
            rtt: RoundTrip::of_handshake(rtt_ns),
            echo_ns: 0,
            tune_read: 0,
            tune_since_ns: now,
            tune_space: u64::from(mss) * 10,
            conn: setup.policy.connect(&start),
            charged_questions: 0,
            rng: setup.policy.policy().is_some_and(|p| p.uses_random()).then_some(rng),
            ack_delay_max_us: (cfg.ack_delay_max_ns / 1000) as u32,
            unacked: Vec::new(),
            deadline_ns: NEVER,
            reader_ns: NEVER,
            read_credit_ns: now,
            waits_for_read: false,
            last_data_ns: now,
            rto_us: 0,
            srtt_us: (rtt_ns / 1000) as u32,
            sack: setup.sack,
            is_linux: setup.policy.host() == "linux",
            has_policy: setup.policy.policy().is_some(),
            echo: Echo::default(),
            silent: true,
            closes: setup.closes,
            fin_at: NEVER,
        };
        r.wnd = r.window_now();
        if r.buffer.grows && cfg.slow_window {
            // Linux, tcp_select_initial_window: whole segments, without timestamps at the end that
            // opens.
            let options = if setup.opens && cfg.timestamps { TIMESTAMP_BYTES } else { 0 };
            let each = u64::from(mss + options);
            r.wnd = (r.buffer.window() / each).max(1) * each;
            r.wnd = r.wnd.min(r.buffer.window()).min(FIRST_WINDOW_BYTES).min(clamp);
            r.ceiling = r.wnd.min(first_clamp.unwrap_or(u64::MAX));
            r.next_wnd = NEVER;
        }
        // Linux, tcp_init_buffer_space.
        r.tune_space = r.tune_space.min(r.wnd).min(r.ceiling);
        r
    }

    /// The handshake is over; it took `rtt_ns` (0: unknown).
    pub fn establish(&mut self, now: u64, rtt_ns: u64) {
        self.rtt = RoundTrip::of_handshake(rtt_ns);
        self.srtt_us = (rtt_ns / 1000) as u32;
        self.tune_since_ns = now;
        self.read_credit_ns = now;
        self.last_data_ns = now;
    }

    /// How often the policy was asked since the last call.
    pub fn new_questions(&mut self) -> u16 {
        let asked = self.conn.questions();
        asked.wrapping_sub(std::mem::replace(&mut self.charged_questions, asked))
    }

    /// The observable values of the policy's state.
    pub fn observe_policy(&self) -> Vec<u32> {
        self.conn.observe()
    }

    pub fn unread(&self) -> u64 {
        self.rcv_nxt - self.read
    }

    /// Sequence number up to which everything was acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.rcv_wup
    }

    pub fn read_bytes(&self) -> u64 {
        self.read
    }

    pub fn window(&self) -> u64 {
        self.wnd
    }

    /// Free room in the buffer, bytes of payload.
    fn free(&self) -> u64 {
        self.buffer.free(self.unread(), &self.above)
    }

    /// Window that an ACK leaving now would advertise, from rcv_nxt: the right edge never moves
    /// back.
    // "MUST include a SWS avoidance algorithm in the receiver" [RFC 9293, 3.8.6.2.2]
    // `inline(always)` here, on `event` and `report` saves 0.2% of all instructions.
    #[inline(always)]
    fn window_now(&mut self) -> u64 {
        if self.next_wnd == NEVER {
            self.next_wnd = self.window_of_now();
        }
        self.next_wnd
    }

    #[inline(never)]
    fn window_of_now(&self) -> u64 {
        let left = (self.rcv_wup + self.wnd).saturating_sub(self.rcv_nxt);
        let (free, whole) = (self.free(), self.buffer.window());
        let usable = free.min(self.ceiling).min(if self.cfg.window_scaling { u64::MAX } else { 65_535 });
        let sliver = match self.cfg.socket {
            SocketLayer::Linux => free < whole / 16 || (free < u64::from(self.rcv_mss) && free < whole / 2),
            SocketLayer::Bsd43 => free < whole / 4 && free < u64::from(self.mss),
        };
        if sliver {
            return left;
        }
        let unit = 1 << self.scale;
        if !self.buffer.grows {
            return (usable / unit * unit).max(left);
        }
        // Linux, __tcp_select_window: rounded up where there is room; tcp_select_window rounds up
        // the remainder, too.
        let offer = if free < whole / 2 { usable / unit * unit } else { usable.next_multiple_of(unit) };
        if offer < left {
            left.next_multiple_of(unit)
        } else {
            offer
        }
    }

    /// The largest window that the buffer allows now.
    fn wnd_max(&self) -> u64 {
        self.buffer.window().min(self.ceiling)
    }

    #[inline(always)]
    fn event(&mut self, kind: EventKind, now: u64) -> Event {
        let mut flags = if self.above.is_empty() { 0 } else { flag::HOLE_OPEN };
        if self.echo.asks_for_ack() && kind != EventKind::AckSent {
            flags |= flag::QUICKACK;
        }
        Event {
            now_ns: now,
            random: self.rng.as_mut().map_or(0, Rng::bits),
            bytes: 0,
            unacked_bytes: (self.rcv_nxt - self.rcv_wup) as u32,
            unread_bytes: self.unread() as u32,
            wnd_bytes: self.wnd as u32,
            wnd_next_bytes: self.window_now() as u32,
            wnd_max_bytes: self.wnd_max() as u32,
            rcv_mss_bytes: self.rcv_mss,
            mss_max_bytes: self.mss,
            // Linux, tcp_send_delayed_ack; tcp_ack_rtt_us in `linux/`.
            rtt_us: if self.is_linux && !self.has_policy { self.srtt_us } else { self.rtt.us },
            rto_us: self.rto_us,
            delay_max_us: self.ack_delay_max_us,
            segments: 1,
            flags,
            kind,
            seq: Seq::In,
            sack_delay_us: 0,
        }
    }

    /// Reports an event to the policy. Its verdict sets the ACK timer; returns the reason of the
    /// ACK that has to leave now, if any.
    #[inline(always)]
    fn report(&mut self, e: &Event) -> Option<Reason> {
        let verdict = self.conn.decide(e);
        self.deadline_ns = match verdict.action {
            Action::WaitUntil(t) if e.sack_delay_us > 0 && e.seq == Seq::Hole => self.slackened(e.now_ns, t),
            Action::WaitUntil(t) => t,
            // A slow reader must not delay it beyond the maximum delay of an ACK.
            Action::SendNow if self.waits_for_read => {
                self.unacked.first().map_or(e.now_ns, |first| first.0) + self.cfg.ack_delay_max_ns
            }
            _ => NEVER,
        };
        (verdict.action == Action::SendNow && !self.waits_for_read).then_some(verdict.reason)
    }

    /// Linux sets the timer for shared ACKs with slack (tcp_comp_sack_slack_ns), and it expires at
    /// the end of the slack unless another timer expires before. It is set once, for the first
    /// segment that shares the ACK.
    fn slackened(&self, now: u64, until_ns: u64) -> u64 {
        let is_set = self.deadline_ns != NEVER
            && self.deadline_ns > now
            && self.deadline_ns <= until_ns + SACK_SLACK_NS;
        if is_set {
            self.deadline_ns
        } else {
            until_ns + SACK_SLACK_NS
        }
    }

    /// Records the timestamp of any arriving segment. RFC 7323, 4.3: echo the time of the segment
    /// that the last ACK waited for; it never decreases.
    pub fn note_timestamp(&mut self, p: &Packet) {
        if p.seq <= self.rcv_wup {
            self.echo_ns = self.echo_ns.max(p.sent_ns);
        }
    }

    /// Processes a segment with payload, a FIN or a window probe. Returns the reason of the ACK
    /// that is due.
    // "MUST process them all before sending any ACK segments" [S4.3] [RFC 9293, 3.10.7.4 (c)]
    pub fn on_segment(&mut self, now: u64, p: &Packet, rto_ns: u64, srtt_ns: u64) -> Option<Reason> {
        self.silent = false;
        self.next_wnd = NEVER;
        self.rto_us = match self.cfg.socket {
            SocketLayer::Linux => (rto_ns.div_ceil(TICK_NS) * TICK_NS / 1000) as u32,
            SocketLayer::Bsd43 => (rto_ns / 1000) as u32,
        };
        if srtt_ns > 0 {
            self.srtt_us = (srtt_ns / 1000) as u32;
        }
        self.estimate_mss(p);
        let place = self.place_of(p);
        let is_full = p.len >= self.rcv_mss;
        if place != Seq::Duplicate && self.cfg.timestamps && p.echo_ns > 0 && is_full {
            self.rtt.measure(now, p.echo_ns);
        }
        if p.has(Flags::FIN) && self.closes {
            self.fin_at = p.end();
        }
        let mark_changed = self.echo.on_segment(p, place);
        let window_grew = self.reassemble(now, p, place);
        self.waits_for_read = self.cfg.ack_after_read && place == Seq::In;
        self.unacked.push((now, p.segments));
        let mut e = self.event(EventKind::Data, now);
        e.bytes = p.len;
        e.segments = p.segments;
        e.seq = place;
        if self.sack && self.cfg.socket == SocketLayer::Linux {
            e.sack_delay_us = self.conn.sack_delay_us(self.sack_has_room);
            if self.is_linux && srtt_ns > 0 {
                e.sack_delay_us = e.sack_delay_us.min((srtt_ns / SACK_RTT_SHARE / 1000) as u16);
            }
        }
        let awaits_own_fin = p.has(Flags::FIN) && self.awaits_own_fin();
        if awaits_own_fin {
            e.delay_max_us = e.delay_max_us.min(FIN_WAIT_US);
        }
        let fin = if awaits_own_fin { flag::DELACK } else { flag::FIN };
        for (is_set, bit) in [
            (window_grew, flag::WND_GREW),
            (p.has(Flags::PSH), flag::PSH),
            (p.has(Flags::FIN), fin),
            (mark_changed, flag::CE_CHANGE),
        ] {
            e.flags |= u16::from(is_set) * bit;
        }
        let covered = self.rcv_nxt - self.rcv_wup;
        let due = self.report(&e);
        if due.is_some() && self.is_linux && place == Seq::Fills && !window_grew {
            // Linux, __tcp_ack_snd_check: not if enough data waits to require an ACK and the window
            // moves with it.
            let asks =
                covered > self.conn.may_wait_bytes(self.rcv_mss).into() && self.window_now() >= self.wnd;
            if !self.above.is_empty() && !asks {
                self.conn.count_duplicate();
            }
        }
        due
    }

    /// Whether the ACK of the peer's FIN waits for this end's own FIN, which carries it: Linux does
    /// if the application closes, unless more than a full segment is pending. The FIN counts as a
    /// byte (tcp_fin and __tcp_ack_snd_check).
    fn awaits_own_fin(&self) -> bool {
        self.rcv_nxt == self.fin_at && self.rcv_nxt - self.rcv_wup < u64::from(self.rcv_mss)
    }

    /// True once, when the application has read everything and closes.
    #[inline]
    pub fn takes_end(&mut self) -> bool {
        let is_end = self.read == self.fin_at;
        if is_end {
            self.closes = false;
            self.fin_at = NEVER;
        }
        is_end
    }

    /// Updates the estimate of the peer's segment size (Linux, tcp_measure_rcv_mss).
    fn estimate_mss(&mut self, p: &Packet) {
        let each = p.segment_bytes();
        if each >= self.rcv_mss {
            if each > self.rcv_mss {
                self.buffer.learn_share(each);
                self.first_clamp = None;
            }
            self.rcv_mss = each.min(self.mss);
        }
    }

    /// Position of a segment in sequence space (RFC 9293, 3.10.7.4).
    fn place_of(&self, p: &Packet) -> Seq {
        let is_old = p.end() <= self.rcv_nxt && p.len > 0;
        let in_window = p.seq <= self.rcv_wup + self.wnd.max(1);
        if p.has(Flags::PROBE) || is_old || !in_window {
            Seq::Duplicate
        } else if p.seq > self.rcv_nxt {
            Seq::Hole
        } else if self.above.is_empty() {
            Seq::In
        } else {
            Seq::Fills
        }
    }

    /// The part of a segment that had arrived before (RFC 2883, 4).
    fn find_copy(&self, p: &Packet) -> Option<(u64, u64)> {
        let has = |(start, end): (u64, u64)| start <= p.seq && p.end() <= end;
        let is_queued = p.seq > self.rcv_nxt && self.above.around(p.seq).is_some_and(has);
        let end = if is_queued { p.end() } else { p.end().min(self.rcv_nxt) };
        (p.seq < end).then_some((p.seq, end))
    }

    /// Stores the new part of a segment. Returns true when the maximum window grew.
    fn reassemble(&mut self, now: u64, p: &Packet, place: Seq) -> bool {
        if p.len > 0 {
            self.copy = self.find_copy(p);
        }
        match place {
            Seq::Duplicate => false,
            Seq::Hole => {
                // A copy of data queued above the hole contains nothing new, but its ACK still
                // reports the hole.
                if p.len == 0 {
                    return false;
                }
                self.note_range(p);
                // If it is merged with the segment before it, its memory is counted there.
                let follows = self.above.around(p.seq - 1).is_some_and(|(_, end)| end == p.seq);
                let grew = !follows && self.sack && self.raise_ceiling(p);
                self.above.insert(p.seq, p.end(), |_, _| {});
                grew || follows && self.sack && self.raise_ceiling(p)
            }
            Seq::In | Seq::Fills => {
                let from = self.rcv_nxt;
                self.rcv_nxt = self.rcv_nxt.max(p.end());
                self.buffer.queue(from, self.rcv_nxt);
                if self.cfg.socket == SocketLayer::Linux {
                    self.rtt.measure_window(now, self.rcv_nxt, self.wnd);
                }
                self.last_data_ns = now;
                let grew = self.raise_ceiling(p);
                if place == Seq::Fills {
                    if let Some((_, joined)) = self.above.around(self.rcv_nxt) {
                        self.buffer.queue(self.rcv_nxt, joined);
                        self.rcv_nxt = self.rcv_nxt.max(joined);
                    }
                    self.above.cut_below(self.rcv_nxt);
                }
                grew
            }
        }
    }

    /// Records that a segment is about to extend or start a range above a hole.
    fn note_range(&mut self, p: &Packet) {
        let touched = self.above.around(p.seq - 1).or(self.above.around(p.end()));
        let holds = |at: u64| touched.is_some_and(|(start, end)| start <= at && at < end);
        self.sack_has_room = self.above.iter().count() < 2 || self.newest_ranges.iter().any(|&at| holds(at));
        if !holds(self.newest_ranges[0]) {
            self.newest_ranges[1] = self.newest_ranges[0];
        }
        self.newest_ranges[0] = p.seq;
    }

    /// Raises the maximum window by two segments for each arrival, as far as there is room (Linux,
    /// tcp_grow_window).
    fn raise_ceiling(&mut self, p: &Packet) -> bool {
        let room = self.free().min(self.first_clamp.unwrap_or(u64::MAX)).min(self.clamp);
        let is_long = match self.cfg.socket {
            SocketLayer::Linux => p.len >= GROWING_MIN_BYTES,
            SocketLayer::Bsd43 => p.len >= self.rcv_mss,
        };
        let grows = self.ceiling < room && is_long;
        if grows {
            let step = 2 * u64::from(self.mss.max(p.len));
            self.ceiling = (self.ceiling + step).min(room);
        }
        grows
    }

    /// Start of the credit of a rate-limited reader: at most one buffer's worth.
    fn credit_since_ns(&self, now: u64, ns_per_byte: f64) -> u64 {
        let full = (self.buffer.window() as f64 * ns_per_byte) as u64;
        self.read_credit_ns.max(now.saturating_sub(full))
    }

    /// Bytes that the application may read at `now`.
    pub fn readable(&self, now: u64) -> u64 {
        if self.cfg.reader_bps == 0 {
            return self.unread();
        }
        let ns_per_byte = 8e9 / self.cfg.reader_bps as f64;
        let credit = (now - self.credit_since_ns(now, ns_per_byte)) as f64 / ns_per_byte;
        (credit as u64).min(self.unread())
    }

    /// Schedules the reader after data arrived. True: it reads at once.
    pub fn wake_reader(&mut self, now: u64) -> bool {
        if self.unread() == 0 || self.reader_ns != NEVER {
            return false;
        }
        let slow = if self.cfg.reader_bps == 0 {
            0
        } else {
            // Wakes for half a buffer, or for what there is.
            let bytes = self.unread().min(self.buffer.window() / 4).max(1);
            (bytes as f64 * 8e9 / self.cfg.reader_bps as f64) as u64 + 1
        };
        let wait = self.cfg.reader_lag_ns.max(slow);
        if wait == 0 {
            return true;
        }
        self.reader_ns = now + wait;
        false
    }

    /// The application reads `bytes`. Returns the reason of the ACK that is then due.
    pub fn on_read(&mut self, now: u64, bytes: u64) -> Option<Reason> {
        if self.cfg.reader_bps > 0 {
            let ns_per_byte = 8e9 / self.cfg.reader_bps as f64;
            self.read_credit_ns =
                self.credit_since_ns(now, ns_per_byte) + (bytes as f64 * ns_per_byte) as u64;
        }
        if bytes == 0 {
            return None;
        }
        let end = self.read + bytes;
        while self.read < end {
            self.read = self.buffer.read_piece(end);
            self.tune(now);
        }
        self.next_wnd = NEVER;
        self.waits_for_read = false;
        let left = (self.rcv_wup + self.wnd).saturating_sub(self.rcv_nxt);
        if !self.conn.read_is_news(left as u32, self.wnd_max() as u32, now == self.last_data_ns) {
            return None;
        }
        let mut e = self.event(EventKind::AppRead, now);
        e.bytes = bytes as u32;
        self.report(&e)
    }

    /// Adjusts the buffer (Linux, tcp_rcv_space_adjust): a round is an RTT as measured from data.
    fn tune(&mut self, now: u64) {
        let rtt_us = self.rtt.of_data_us();
        if rtt_us == 0 || now / 1000 < self.tune_since_ns / 1000 + u64::from(rtt_us) {
            return;
        }
        let copied = (self.read - self.tune_read).saturating_sub(self.unread());
        if copied > self.tune_space {
            if self.buffer.grows {
                let grew = self.buffer.grow(copied, self.tune_space);
                self.first_clamp = self.first_clamp.filter(|_| !grew);
            }
            self.tune_space = copied;
        }
        self.tune_read = self.read;
        self.tune_since_ns = now;
    }

    /// The ACK timer expired. Returns the reason of the ACK that is due.
    pub fn on_deadline(&mut self, now: u64) -> Option<Reason> {
        self.deadline_ns = NEVER;
        self.waits_for_read = false;
        let e = self.event(EventKind::Deadline, now);
        self.report(&e)
    }

    /// The fields of an ACK that leaves now.
    // Inlined always: see engine.rs.
    #[inline(always)]
    pub fn ack_fields(&mut self) -> AckFields {
        let wnd = self.window_now();
        let reports = self.sack && (self.copy.is_some() || !self.above.is_empty());
        let sack = reports.then(|| {
            // A copy comes first (RFC 2883, 4), then the newest blocks (RFC 2018, 4), which may be
            // from several segments that share this ACK.
            let mut blocks = Sack::with_capacity(SACK_BLOCKS);
            blocks.extend(self.copy);
            let newest = self.newest_ranges.iter().filter_map(|&at| self.above.around(at));
            for block in newest.chain(self.above.iter().rev()) {
                if blocks.len() < SACK_BLOCKS && !blocks[self.copy.iter().count()..].contains(&block) {
                    blocks.push(block);
                }
            }
            Box::new(blocks)
        });
        AckFields {
            ack: self.rcv_nxt,
            wnd_bytes: wnd.min(u32::MAX.into()) as u32,
            echo_ns: if self.cfg.timestamps { self.echo_ns } else { 0 },
            ece: self.echo.echoes,
            sack,
        }
    }

    /// Records an ACK that left; calls `latency` with the wait of each segment it covers. Before
    /// any data has arrived it acknowledges nothing, and the policy is not told.
    #[inline]
    pub fn on_ack_sent(&mut self, now: u64, piggyback: bool, latency: impl FnMut(u64, u16)) {
        if !self.silent {
            self.tell_ack_sent(now, piggyback, latency);
        }
    }

    fn tell_ack_sent(&mut self, now: u64, piggyback: bool, mut latency: impl FnMut(u64, u16)) {
        // It offered this window, so that another one leaving now would offer the same.
        self.wnd = self.window_now();
        self.rcv_wup = self.rcv_nxt;
        self.copy = None;
        self.echo.on_ack_sent();
        for &(arrived, segments) in &self.unacked {
            latency(now - arrived, segments);
        }
        self.unacked.clear();
        let mut e = self.event(EventKind::AckSent, now);
        if piggyback {
            e.flags |= flag::PIGGYBACK;
        }
        let due = self.report(&e);
        debug_assert_eq!(due, None, "an ACK that has just left is not due again");
    }

    /// Whether data has arrived that no ACK covers yet.
    pub fn owes_ack(&self) -> bool {
        !self.unacked.is_empty()
    }
}
