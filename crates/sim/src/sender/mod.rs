// SPDX-License-Identifier: MIT
//! The sending half of an endpoint: the data that may leave, loss detection, and timeouts.
//!
//! `ack` processes an arriving ACK; `rack` detects losses, `recovery` reduces the window for them,
//! and `undo` and `frto` reverse that; `idle` reduces the window after a pause, `ecn` for an echo;
//! `output` chooses the next segment, `timers` handles timeouts and `tail_probe` requests an ACK;
//! `burst` groups segments and `window_use` determines whether the window limits; `buffer` is the
//! interface to the application; `handshake` precedes all of it.

mod ack;
mod buffer;
mod burst;
mod dsack;
mod ecn;
mod frto;
mod handshake;
mod idle;
mod output;
mod rack;
mod recovery;
mod segment;
mod socket;
mod tail_probe;
#[cfg(test)]
mod tests;
mod timers;
mod undo;
mod window_use;

pub use handshake::Opening;
pub use output::Outgoing;
pub use timers::Bare;

use crate::congestion::{Congestion, Flight};
use crate::rng::Rng;
use crate::scenario::SenderSpec;
use ackwise_core::ranges::Ranges;
use burst::Burst;
use ecn::Ecn;
use frto::Frto;
use handshake::Syn;
use rack::Rack;
use recovery::{LossState, Prr};
use segment::{Segment, Tally};
use socket::SendQueue;
use std::collections::VecDeque;
use tail_probe::{DueProbe, TailProbe};
use timers::Timer;
use undo::Undo;
use window_use::WindowUse;

pub const NEVER: u64 = u64::MAX;
/// RTO before the first RTT measurement.
// "the sender SHOULD set RTO <- 1 second" [RFC 6298, 2.1]
const INITIAL_RTO_NS: u64 = 1_000_000_000;
/// Linux's maximum RTO; RFC 6298, 2.5 allows a maximum of 60 s or more.
const MAX_RTO_NS: u64 = 120_000_000_000;

/// Counters of one sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    pub retransmitted: u64,
    pub timeouts: u64,
    pub fast_recoveries: u64,
}

pub struct Sender {
    cfg: SenderSpec,
    /// Copy of `cfg`'s property, because every segment needs it.
    sends_bursts: bool,
    pub mss: u64,
    pub opening: Opening,
    syn: Syn,
    pub una: u64,
    pub nxt: u64,
    /// End of the data that the application wrote.
    pub written: u64,
    /// Size of a growing send buffer, for the largest congestion window so far.
    grown_bytes: u64,
    /// End of the stream, once known: the last segment carries FIN.
    pub fin_at: u64,
    /// Data being copied into the send buffer: bytes, and completion time.
    copying: Option<(u64, u64)>,
    /// Ends of writes, in order, for PSH (Linux).
    pushes: VecDeque<u64>,
    /// Whether a bulk writer was interrupted in the middle of a write.
    writes_on: bool,
    queue: SendQueue,
    segments: VecDeque<Segment>,
    sacked: Ranges,
    tally: Tally,
    rack: Rack,
    undo: Undo,
    frto: Frto,
    pub ecn: Ecn,
    /// Whether this ACK showed that a segment was lost.
    newly_lost: bool,
    /// Whether lost segments wait, because presumably lost data may have arrived.
    holds_lost: bool,
    /// Number of copies that D-SACK reported.
    copies_reported: u64,
    /// No lost segment below this sequence number waits for retransmission.
    resend_from: u64,
    loss_state: LossState,
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
    min_rtt_ns: u64,
    rto_ns: u64,
    backoff: u32,
    timer: Timer,
    pub timer_ns: u64,
    /// New data left: the timer restarts when everything that may leave now has left.
    sent_restarts_timer: bool,
    tail_probe: Option<TailProbe>,
    /// A tail-loss probe that is due; the congestion window does not hold it back.
    due_probe: Option<DueProbe>,
    burst: Burst,
    window_use: WindowUse,
    /// Earliest departure of the next segment, by pacing.
    pub pace_ns: u64,
    pace_waits: bool,
    delivered: u64,
    delivered_ns: u64,
    first_sent_ns: u64,
    /// Time at which data last left, new or retransmitted.
    last_sent_ns: u64,
    app_limited_until: u64,
    round_end: u64,
    pub counters: Counters,
}

impl Sender {
    /// `wnd`: the peer's window before its first ACK. `rtt_ns`: RTT of an earlier handshake; None:
    /// the handshake is still to come.
    pub fn new(cfg: &SenderSpec, mss: u64, wnd: u64, rtt_ns: Option<u64>, now: u64, rng: Rng) -> Self {
        let mut s = Sender {
            cfg: cfg.clone(),
            sends_bursts: burst::sends_bursts(cfg),
            mss,
            opening: Opening::Listen,
            syn: Syn::default(),
            una: 0,
            nxt: 0,
            written: 0,
            grown_bytes: 0,
            fin_at: NEVER,
            copying: None,
            pushes: VecDeque::new(),
            writes_on: false,
            queue: SendQueue::default(),
            segments: VecDeque::new(),
            sacked: Ranges::default(),
            tally: Tally::default(),
            rack: Rack::default(),
            undo: Undo::default(),
            frto: Frto::default(),
            ecn: Ecn::default(),
            newly_lost: false,
            holds_lost: false,
            copies_reported: 0,
            resend_from: 0,
            loss_state: LossState::Open,
            prr: Prr::default(),
            dupacks: 0,
            cc: Congestion::new(cfg, mss, rng),
            wnd_right: wnd,
            wnd_max: wnd,
            short_end: 0,
            srtt_ns: 0,
            rttvar_ns: 0,
            min_rtt_ns: NEVER,
            rto_ns: INITIAL_RTO_NS,
            backoff: 0,
            timer: Timer::Off,
            timer_ns: NEVER,
            sent_restarts_timer: false,
            tail_probe: None,
            due_probe: None,
            burst: Burst::default(),
            window_use: WindowUse::default(),
            pace_ns: 0,
            pace_waits: false,
            delivered: 0,
            delivered_ns: now,
            first_sent_ns: now,
            last_sent_ns: now,
            app_limited_until: 0,
            round_end: 0,
            counters: Counters::default(),
        };
        s.grow_buffer();
        s.grow_socket_memory();
        if rtt_ns.is_some() {
            s.establish(now, rtt_ns.filter(|&rtt_ns| rtt_ns > 0));
        }
        s
    }

    fn outstanding(&self) -> u64 {
        self.nxt - self.una
    }

    /// Estimate of bytes in the network, `pipe` in RFC 6675, 4.
    pub fn bytes_in_flight(&self) -> u64 {
        (self.outstanding() + self.tally.again).saturating_sub(self.tally.sacked + self.tally.lost)
    }

    /// End of the highest segment that was SACKed.
    fn highest_sacked(&self) -> u64 {
        self.sacked.highest().max(self.una)
    }

    /// FlightSize (RFC 5681, 2), which a loss halves. Data that accumulated above a repeatedly lost
    /// hole is not in flight: the window bounds it.
    fn flight(&self) -> Flight {
        Flight { bytes: self.outstanding().min(self.cc.window.cwnd), end: self.nxt, mss: self.mss }
    }

    /// Whether data waits that could not be sent, for any reason.
    pub fn has_unsent(&self) -> bool {
        self.written > self.nxt
    }

    fn window(&self) -> u64 {
        match self.cfg.max_window_segments {
            0 => self.cc.window.cwnd,
            n => self.cc.window.cwnd.min(u64::from(n) * self.mss),
        }
    }
    pub fn rto_ns(&self) -> u64 {
        self.rto_ns
    }

    /// Whether everything written is acknowledged.
    pub fn is_done(&self) -> bool {
        self.una == self.written
    }

    /// In debug builds, compares the running sums with the segments at each loss.
    #[cfg(debug_assertions)]
    fn check(&self) {
        let sum = |f: fn(&Segment) -> bool| -> u64 {
            self.segments.iter().filter(|s| f(s)).map(|s| u64::from(s.len)).sum()
        };
        assert_eq!(self.tally.sacked, sum(|s| s.sacked));
        let sacked_segments = self.segments.iter().filter(|s| s.sacked).count();
        assert_eq!(self.tally.sacked_segments, sacked_segments as u64);
        assert_eq!(self.tally.lost, sum(|s| s.lost));
        assert_eq!(self.tally.again, sum(|s| s.again_in_flight));
        assert_eq!(self.outstanding(), sum(|_| true));
    }
}
