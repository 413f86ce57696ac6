// SPDX-License-Identifier: MIT
//! Attribution of the time between two samples of a socket to limits.
//!
//! The sender's kernel counts how long data waited, and how much of that time it waited for the
//! receive window and for the send buffer. These times are used unchanged. The kernel does not
//! count how the remaining wait divides, so all of it goes to the one limit that the second sample
//! shows.
//!
//! ```text
//! interval = nothing to send + receive window + send buffer + the rest
//!            ^ application     ^ or its reader  ^ exact        ^ timeout (exact since Linux 6.7),
//!              exact             exact                           slow start, congestion window, link
//! ```
//!
//! A receiver's kernel keeps no such account: its queue and its window decide.

use crate::message::{Attributes, Seen, State};
use crate::TcpInfo;
use serde::Serialize;

macro_rules! limits {
    ($($(#[$text:meta])* $name:ident = $word:literal,)*) => {
        /// The limits to which a transfer's time is attributed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Limit { $($(#[$text])* $name,)* }

        impl Limit {
            pub const ALL: &'static [Limit] = &[$(Limit::$name,)*];

            pub fn name(self) -> &'static str {
                match self { $(Limit::$name => $word,)* }
            }
        }
    };
}

limits! {
    Handshake = "handshake",
    SlowStart = "slow-start",
    CongestionWindow = "congestion-window",
    Link = "link",
    ReceiveWindow = "receive-window",
    ReceivingApplication = "receiving-application",
    SendBuffer = "send-buffer",
    SendingApplication = "sending-application",
    AckStall = "ack-stall",
    Timeout = "timeout",
    Undecided = "undecided",
}

/// Microseconds by limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shares(pub [u64; Limit::ALL.len()]);

impl Shares {
    pub fn add(&mut self, limit: Limit, time_us: u64) {
        self.0[limit as usize] += time_us;
    }

    pub fn of(&self, limit: Limit) -> u64 {
        self.0[limit as usize]
    }

    pub fn total_us(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Time under a known limit while the sending application had something to send.
    pub fn lost_us(&self) -> u64 {
        let kept = self.of(Limit::SendingApplication).saturating_add(self.of(Limit::Undecided));
        self.total_us().saturating_sub(kept)
    }

    pub fn merge(&mut self, other: &Shares) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.saturating_add(theirs);
        }
    }
}

/// Counters that change with every packet sent or received, and while data waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    segments: Option<(u32, u32)>,
    busy_us: Option<u64>,
    waiting: Option<(u32, u32)>,
}

impl Moved {
    pub fn of(info: &TcpInfo) -> Self {
        Moved {
            segments: info.segs_out().zip(info.segs_in()),
            busy_us: info.busy_time_us(),
            waiting: info.unacked().zip(info.notsent_bytes()),
        }
    }

    /// Whether nothing waits; false with older kernels, which do not report it.
    pub fn is_idle(&self) -> bool {
        self.waiting == Some((0, 0))
    }

    /// Whether it was idle when the socket had sent and received this many segments.
    pub fn is_idle_after(&self, segments: (u32, u32)) -> bool {
        self.is_idle() && self.segments == Some(segments)
    }
}

/// A sample of a socket.
#[derive(Clone, Copy)]
pub struct Look {
    pub time_us: u64,
    pub state: State,
    pub timer: u8,
    pub unread_bytes: u32,
    /// BBR's pacing gain, in 1/256.
    pub pacing_gain: Option<u32>,
    /// SO_SNDBUF in effect, including the kernel's own share.
    pub send_buffer_bytes: Option<u32>,
    pub info: TcpInfo,
}

const ZERO_WINDOW_PROBE: u8 = 4; // a value of idiag_timer
const CWR: u8 = 2; // values of tcpi_ca_state, from here on
const LOSS: u8 = 4;
// BBR's gain is 2.89 during startup and at most 1.25 later.
const BBR_STARTUP_GAIN: u32 = 2 * 256;
// A path with a queue has an RTT half as long again as the minimum, and above a host's jitter.
const JITTER_US: u64 = 4000;
const DELAYED_ACK_US: u64 = 40_000; // Linux's TCP_DELACK_MIN
/// A window of fewer segments waits for delayed ACKs, however fast its reader is.
const SEGMENTS_MIN: u32 = 4;
const QUEUE_US_MIN: u32 = 1000;

impl Look {
    pub fn new(seen: &Seen<'_>, found: &Attributes<'_>, info: TcpInfo, time_us: u64) -> Self {
        Look {
            time_us,
            state: seen.state,
            timer: seen.timer,
            unread_bytes: seen.unread_bytes,
            pacing_gain: found.pacing_gain,
            send_buffer_bytes: found.send_buffer_bytes,
            info,
        }
    }

    pub fn received_since(&self, before: &Look) -> u64 {
        since(self.info.bytes_received(), before.info.bytes_received())
    }

    pub fn acked_since(&self, before: &Look) -> u64 {
        since(self.info.bytes_acked(), before.info.bytes_acked())
    }

    /// Whether this end is mainly a receiver of data.
    pub fn is_receiving_since(&self, before: &Look) -> bool {
        self.received_since(before) > self.acked_since(before)
    }

    fn queues_on_path(&self) -> bool {
        match (self.info.rtt_us(), self.info.min_rtt_us()) {
            (Some(rtt), Some(least)) if least > 0 => {
                let queue = rtt.saturating_sub(least);
                queue > QUEUE_US_MIN && queue > least / 2
            }
            _ => false,
        }
    }

    fn is_in_slow_start(&self) -> bool {
        match self.pacing_gain {
            Some(gain) => gain > BBR_STARTUP_GAIN,
            None => self.info.snd_cwnd() < self.info.snd_ssthresh(),
        }
    }

    /// Whether everything that the send buffer can hold is in flight; half of the buffer is the
    /// kernel's own.
    fn fills_send_buffer(&self) -> bool {
        let count = |field: Option<u32>| u64::from(field.unwrap_or(0));
        let waiting = u64::from(self.info.in_flight()).saturating_mul(count(self.info.snd_mss_bytes()));
        let room = self.send_buffer_bytes.unwrap_or(u32::MAX);
        self.info.notsent_bytes() == Some(0) && waiting >= u64::from(room / 2)
    }

    /// Whether the next segment would not fit into the peer's window; false where it is not known.
    fn fills_peer_window(&self) -> bool {
        let mss = self.info.snd_mss_bytes().unwrap_or(0);
        let next = (u64::from(self.info.in_flight()) + 1) * u64::from(mss);
        self.info.snd_wnd_bytes().is_some_and(|window| next > u64::from(window))
    }

    /// Whether the data in flight fills the congestion window, give or take a burst.
    fn fills_window(&self) -> bool {
        let window = self.info.snd_cwnd().unwrap_or(0);
        u64::from(self.info.in_flight()) * 4 >= u64::from(window) * 3
    }
}

/// Divides the time between two samples of one socket; the parts add up to it. `window_max_bytes`:
/// the largest window that the peer has offered so far.
pub fn attribute(before: &Look, now: &Look, window_max_bytes: u32) -> Shares {
    let mut shares = Shares::default();
    let all_us = now.time_us.saturating_sub(before.time_us);
    if now.state == State::SYN_SENT {
        shares.add(Limit::Handshake, all_us);
    } else if now.is_receiving_since(before) {
        shares.add(receiving(before, now, all_us), all_us);
    } else {
        sending(before, now, window_max_bytes, all_us, &mut shares);
    }
    shares
}

fn sending(before: &Look, now: &Look, window_max_bytes: u32, all_us: u64, shares: &mut Shares) {
    let Some(busy_after) = now.info.busy_time_us() else {
        shares.add(Limit::Undecided, all_us); // no account before Linux 4.10
        return;
    };
    // The kernel counts in ticks, so a counted time can exceed the interval by a tick.
    let busy_us = since(Some(busy_after), before.info.busy_time_us()).min(all_us);
    let window_us = since(now.info.rwnd_limited_us(), before.info.rwnd_limited_us()).min(busy_us);
    let buffer_us =
        since(now.info.sndbuf_limited_us(), before.info.sndbuf_limited_us()).min(busy_us - window_us);
    let mut rest_us = busy_us - window_us - buffer_us;
    let timeouts_us = 1000
        * now.info.total_rto_time_ms().unwrap_or(0).wrapping_sub(before.info.total_rto_time_ms().unwrap_or(0))
            as u64;
    let timeouts_us = timeouts_us.min(rest_us);
    rest_us -= timeouts_us;

    let by_window = peer_limit(before, now, window_max_bytes, window_us);
    let is_by_window = !now.fills_window() && (2 * window_us > busy_us || now.fills_peer_window());
    shares.add(Limit::SendingApplication, all_us - busy_us);
    shares.add(by_window, window_us);
    shares.add(Limit::SendBuffer, buffer_us);
    shares.add(Limit::Timeout, timeouts_us);
    let counted = [(by_window, window_us), (Limit::SendBuffer, buffer_us)];
    let rest = waiting(before, now, counted);
    // With room in the congestion window, a longer RTT is no queue: ACKs wait for the peer's reads.
    let is_guess =
        matches!(rest, Limit::Link | Limit::CongestionWindow | Limit::SlowStart | Limit::Undecided);
    shares.add(if is_guess && is_by_window { by_window } else { rest }, rest_us);
}

/// Whether the peer's window is small, opens late because the peer's application does not read, or is
/// full only because a link's queue holds it.
fn peer_limit(before: &Look, now: &Look, window_max_bytes: u32, window_us: u64) -> Limit {
    // Linux shrinks a window only by the unread bytes in the buffer behind it.
    let window = now.info.snd_wnd_bytes();
    let is_closing = window.is_some_and(|w| w == 0 || w < window_max_bytes / 2);
    let is_probed = now.timer == ZERO_WINDOW_PROBE || now.info.probes().unwrap_or(0) > 0;
    // If the window is merely small, the next data can leave as soon as an ACK returns.
    let pause_us = 1000 * u64::from(now.info.last_data_sent_ms().unwrap_or(0));
    let rtt_us = u64::from(now.info.min_rtt_us().unwrap_or(u32::MAX));
    let pauses = pause_us > 2 * rtt_us + JITTER_US;
    // Such a window is filled once per RTT. The delay of an ACK does not count: it waits for a
    // read, too.
    let in_time_us = rtt_us.max(u64::from(now.info.rtt_us().unwrap_or(0)).saturating_sub(DELAYED_ACK_US));
    let filled = u128::from(now.acked_since(before)) * u128::from(in_time_us + JITTER_US) * 2;
    let is_slow = filled < u128::from(window_max_bytes) * u128::from(window_us);
    // An ACK that cannot move the window waits for a read, at most as long as for the timer. A queue
    // may be longer, and leaves the window as it is.
    let late_us = u64::from(now.info.rtt_us().unwrap_or(0)).saturating_sub(rtt_us);
    let is_late = late_us > JITTER_US.max(rtt_us / 4);
    let is_wide = window >= now.info.snd_mss_bytes().map(|mss| mss.saturating_mul(SEGMENTS_MIN));
    let moves = window.is_some_and(|w| w < window_max_bytes - window_max_bytes / 100);
    if is_late && late_us > 2 * DELAYED_ACK_US && is_wide && !moves && !is_probed {
        return Limit::Link;
    }
    if is_closing || is_probed || pauses || is_slow || (is_late && is_wide && moves) {
        Limit::ReceivingApplication
    } else {
        Limit::ReceiveWindow
    }
}

/// The limit when the network, not a buffer, made data wait.
fn waiting(before: &Look, now: &Look, counted: [(Limit, u64); 2]) -> Limit {
    let state = now.info.ca_state().unwrap_or(0);
    if state == LOSS || now.info.backoff().unwrap_or(0) > 0 {
        return Limit::Timeout;
    }
    if now.fills_send_buffer() {
        // The kernel counts this time only once it has sent everything and still refuses a write.
        return Limit::SendBuffer;
    }
    let unsent = now.info.notsent_bytes().unwrap_or(0);
    if !now.fills_window() && unsent == 0 {
        // It waited for the ACKs of everything it had, as also happens between two stops by a
        // buffer.
        let most = counted.into_iter().max_by_key(|c| c.1).filter(|c| c.1 > 0);
        return most.map_or(Limit::SendingApplication, |c| c.0);
    }
    let mss = now.info.snd_mss_bytes().unwrap_or(0);
    if !now.fills_window() && unsent < mss && now.info.in_flight() > 0 {
        return Limit::AckStall; // only Nagle's algorithm holds back a segment that is not full
    }
    if now.queues_on_path() {
        Limit::Link
    } else if state >= CWR || now.info.total_retrans() != before.info.total_retrans() {
        Limit::CongestionWindow
    } else if now.is_in_slow_start() {
        Limit::SlowStart
    } else if now.fills_window() {
        Limit::CongestionWindow
    } else {
        Limit::Undecided
    }
}

fn receiving(before: &Look, now: &Look, all_us: u64) -> Limit {
    let info = &now.info;
    // Linux before 6.2 does not report the window; it may grow up to this value.
    let window = u64::from(info.rcv_wnd_bytes().or(info.rcv_ssthresh_bytes()).unwrap_or(0));
    if now.unread_bytes > 0 && u64::from(now.unread_bytes) >= window {
        return Limit::ReceivingApplication;
    }
    let in_a_round_trip = u128::from(now.received_since(before)) * u128::from(info.rcv_rtt_us().unwrap_or(0));
    if in_a_round_trip * 4 >= u128::from(window) * u128::from(all_us) * 3 && in_a_round_trip > 0 {
        Limit::ReceiveWindow
    } else if info.rcv_ooopack() != before.info.rcv_ooopack() {
        Limit::CongestionWindow
    } else {
        Limit::Undecided
    }
}

fn since(now: Option<u64>, before: Option<u64>) -> u64 {
    now.unwrap_or(0).saturating_sub(before.unwrap_or(0))
}
