// SPDX-License-Identifier: MIT
//! The receiver: its window, and the core's policy that decides when an ACK leaves.

use crate::pair::{Pair, Rule, Socket};
use ackwise_core::{flag, Action, Conn, Event, EventKind, Reason, Resolved};

/// MSS assumed before a larger segment arrives (RFC 9293, 3.7.1).
const MSS_DEFAULT_BYTES: u32 = 536;

#[derive(Clone, Copy, Debug)]
pub struct Ack {
    pub number: u64,
    pub window: u64,
    pub reason: Reason,
    /// Bytes of the answer that carries it; 0: a pure ACK.
    pub answer_bytes: u64,
}

/// Linux's only measurement of the RTT without timestamps (tcp_rcv_rtt_measure): the shortest time
/// in which a whole window of data arrived.
#[derive(Clone, Copy, Default)]
struct WindowClock {
    /// Sequence number that ends the window being measured; the first window starts with the first
    /// segment.
    end: u64,
    since_ns: u64,
    least_us: Option<u32>,
}

impl WindowClock {
    fn on_data(&mut self, now_ns: u64, next: u64, window: u64) {
        if next < self.end {
            return;
        }
        if self.end > 0 {
            let took_us = (now_ns / 1000 - self.since_ns / 1000).clamp(1, u32::MAX.into()) as u32;
            self.least_us = Some(self.least_us.map_or(took_us, |least| least.min(took_us)));
        }
        (self.end, self.since_ns) = (next + window, now_ns);
    }
}

#[derive(Clone)]
pub struct Receiver {
    mss: u32,
    buffer: u64,
    scale: u32,
    socket: Socket,
    learns_mss: bool,
    ack_first: bool,
    known_mss: u32,
    random: u32,
    rtt_us: u32,
    rto_us: u32,
    window_clock: Option<WindowClock>,
    pub next: u64,
    acked: u64,
    window: u64,
    read: u64,
    conn: Conn,
    pub deadline_ns: u64,
    owed: Option<Reason>,
    pub last_data_ns: u64,
}

impl Receiver {
    pub fn new(pair: &Pair, policy: &Resolved, random: u32, now_ns: u64) -> Self {
        let headers_ns = match pair.rate_bps {
            0 => 0,
            rate => 2 * u64::from(pair.header_bytes) * 8_000_000_000 / rate,
        };
        let handshake_ns = pair.rtt_ns + headers_ns;
        // Stock Linux uses the RTT of its sending half instead (tcp_send_delayed_ack).
        let measures_windows = pair.socket == Socket::Linux && !pair.timestamps && policy.policy().is_some();
        let rtt_us = (handshake_ns / 1000).min(u64::from(u32::MAX)) as u32;
        let mut start = Event::new(EventKind::Data, now_ns);
        start.random = random;
        start.rcv_mss_bytes = pair.mss_bytes;
        let mut r = Receiver {
            mss: pair.mss_bytes,
            buffer: pair.recv_buffer_bytes,
            // RFC 7323, 2.2: the smallest shift that can express the whole buffer.
            scale: (0..14).find(|s| pair.recv_buffer_bytes >> s <= 65_535).unwrap_or(14),
            socket: pair.socket,
            learns_mss: !pair.without.contains(&Rule::LearntMss),
            ack_first: !pair.without.contains(&Rule::AckBeforeRead),
            known_mss: pair.mss_bytes.min(MSS_DEFAULT_BYTES),
            random,
            rtt_us,
            // RFC 6298, 2.2 and 2.4, for an end that sends no data.
            rto_us: rtt_us.saturating_mul(3).max(1_000_000),
            window_clock: measures_windows.then(WindowClock::default),
            next: 0,
            acked: 0,
            window: 0,
            read: 0,
            conn: policy.connect(&start),
            deadline_ns: u64::MAX,
            owed: None,
            last_data_ns: now_ns,
        };
        r.window = r.offer();
        r
    }

    pub fn window(&self) -> u64 {
        self.window
    }

    pub fn unacked(&self) -> u64 {
        self.next - self.acked
    }

    /// Right edge that an ACK offers: it never retreats, and it avoids the silly window syndrome
    /// (RFC 9293, 3.8.6.2.2).
    fn offer(&self) -> u64 {
        let open = (self.acked + self.window).saturating_sub(self.next);
        let free = self.buffer - (self.next - self.read).min(self.buffer);
        let sliver = match self.socket {
            Socket::Bsd43 => free < self.buffer / 4 && free < u64::from(self.mss),
            Socket::Linux => {
                free < self.buffer / 16 || (free < u64::from(self.known_mss) && free < self.buffer / 2)
            }
        };
        open.max(if sliver { 0 } else { free >> self.scale << self.scale })
    }

    fn ask(&mut self, kind: EventKind, now_ns: u64, bytes: u32, flags: u16) {
        let mut e = Event::new(kind, now_ns);
        e.random = self.random;
        e.bytes = bytes;
        e.unacked_bytes = self.unacked() as u32;
        e.unread_bytes = (self.next - self.read) as u32;
        e.wnd_bytes = self.window as u32;
        e.wnd_next_bytes = self.offer() as u32;
        e.wnd_max_bytes = self.buffer as u32;
        e.rcv_mss_bytes = if self.learns_mss { self.known_mss } else { self.mss };
        e.mss_max_bytes = self.mss;
        e.rtt_us = self.rtt_us;
        e.rto_us = self.rto_us;
        e.flags = flags;
        let verdict = self.conn.decide(&e);
        (self.deadline_ns, self.owed) = match verdict.action {
            Action::Nothing => (u64::MAX, None),
            Action::WaitUntil(at) => (at, None),
            Action::SendNow => (u64::MAX, Some(verdict.reason)),
        };
    }

    fn acknowledge(&mut self, now_ns: u64, out: &mut Vec<Ack>) {
        if let Some(reason) = self.owed {
            self.window = self.offer();
            self.acked = self.next;
            out.push(Ack { number: self.next, window: self.window, reason, answer_bytes: 0 });
            self.ask(EventKind::AckSent, now_ns, 0, 0);
        }
    }

    /// Processes a segment that arrives in order and is read at once.
    pub fn on_segment(&mut self, now_ns: u64, bytes: u32, psh: bool, out: &mut Vec<Ack>) {
        if bytes >= self.known_mss {
            self.known_mss = bytes.min(self.mss);
        }
        self.next += u64::from(bytes);
        self.last_data_ns = now_ns;
        if let Some(clock) = &mut self.window_clock {
            clock.on_data(now_ns, self.next, self.window);
            self.rtt_us = clock.least_us.unwrap_or(self.rtt_us);
        }
        self.ask(EventKind::Data, now_ns, bytes, if psh { flag::PSH } else { 0 });
        if self.ack_first {
            self.acknowledge(now_ns, out);
        }
        self.read = self.next;
        self.ask(EventKind::AppRead, now_ns, bytes, 0);
        self.acknowledge(now_ns, out);
    }

    /// The application answers what it has read: the ACK goes with it.
    pub fn answer(&mut self, now_ns: u64, answer_bytes: u64, out: &mut Vec<Ack>) {
        self.window = self.offer();
        self.acked = self.next;
        out.push(Ack { number: self.next, window: self.window, reason: Reason(0), answer_bytes });
        self.ask(EventKind::AckSent, now_ns, 0, flag::PIGGYBACK);
    }

    pub fn on_deadline(&mut self, now_ns: u64, out: &mut Vec<Ack>) {
        self.ask(EventKind::Deadline, now_ns, 0, 0);
        self.acknowledge(now_ns, out);
    }
}
