// SPDX-License-Identifier: MIT
//! The three-way handshake at one end (RFC 9293, 3.5): a SYN that is repeated until it is answered,
//! and the RTT that its answer measures.

use super::timers::Timer;
use super::{Sender, INITIAL_RTO_NS, MAX_RTO_NS, NEVER};

/// Linux (tcp_syn_linear_timeouts): only after this many timeouts of a SYN does the next one
/// double. The timeout of a SYN-ACK doubles each time (reqsk_timeout).
const LINEAR_TIMEOUTS: u32 = 4;
/// Linux (tcp_init_transfer, RFC 5681, 3.1): after this many repetitions of the SYN, the window is
/// one segment.
const RESENT_TOO_OFTEN: u32 = 2;
/// Maximum number of doublings of the timeout: its bound is reached before.
const MAX_DOUBLINGS: u32 = 7;

/// State of an end (RFC 9293, 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    Listen,
    SynSent,
    SynReceived,
    Established,
}

/// The SYN of this end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Syn {
    first_sent_ns: u64,
    resent: u32,
}

impl Sender {
    #[inline]
    pub fn is_established(&self) -> bool {
        self.opening == Opening::Established
    }

    /// Whether the latest SYN was a repetition.
    pub fn syn_was_resent(&self) -> bool {
        self.syn.resent > 0
    }

    /// A SYN leaves, initially or repeated: from the end that opens (`SynSent`) or from the one
    /// that answers (`SynReceived`).
    pub fn send_syn(&mut self, now: u64, opening: Opening) {
        if self.opening == opening {
            self.syn.resent += 1;
            self.counters.retransmitted += 1;
        } else {
            self.opening = opening;
            self.syn = Syn { first_sent_ns: now, resent: 0 };
        }
        let linear = if opening == Opening::SynSent { LINEAR_TIMEOUTS } else { 0 };
        let doublings = self.syn.resent.saturating_sub(linear).min(MAX_DOUBLINGS);
        self.timer = Timer::Handshake;
        self.timer_ns = now + (INITIAL_RTO_NS << doublings).min(MAX_RTO_NS);
    }

    /// The SYN of this end is acknowledged by a packet that echoes `echo_ns` (0: nothing). Returns
    /// the measured RTT.
    pub fn on_syn_acknowledged(&mut self, now: u64, echo_ns: u64) -> Option<u64> {
        // Karn's algorithm (RFC 6298, 3); an echoed timestamp is not ambiguous (RFC 7323, 4).
        let sent_ns = match self.syn.resent {
            0 => Some(self.syn.first_sent_ns),
            _ => Some(echo_ns).filter(|&echo_ns| echo_ns > 0),
        };
        let rtt_ns = sent_ns.map(|sent_ns| now - sent_ns);
        self.timer = Timer::Off;
        self.timer_ns = NEVER;
        // Linux, tcp_try_undo_spurious_syn: the first SYN had arrived.
        let is_spurious = echo_ns > 0 && echo_ns == self.syn.first_sent_ns;
        if self.syn.resent >= RESENT_TOO_OFTEN && !is_spurious {
            self.cc.window.cwnd = self.mss;
        }
        self.establish(now, rtt_ns);
        rtt_ns
    }

    /// Allows data to leave.
    pub(super) fn establish(&mut self, now: u64, rtt_ns: Option<u64>) {
        self.opening = Opening::Established;
        self.delivered_ns = now;
        self.first_sent_ns = now;
        self.last_sent_ns = now;
        if let Some(rtt_ns) = rtt_ns {
            self.measure(rtt_ns);
            self.min_rtt_ns = rtt_ns;
        }
        self.cc.on_established(now, rtt_ns);
    }
}
