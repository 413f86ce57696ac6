// SPDX-License-Identifier: MIT
//! Which packets between the same endpoints are one connection. All readers of a capture number
//! connections alike, because they ask this.

use crate::segment::tcp_flag;
use serde::Serialize;

/// How a connection ended within the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// Still open at the last packet.
    Open,
    /// Both sides sent a FIN.
    Finished,
    /// One side sent a RST.
    Reset,
}

/// Twice the MSL of RFC 9293, 3.4.2: the longest time for which packets of an ended connection may
/// still arrive.
const QUIET_NS: u64 = 240_000_000_000;

/// The fields of a packet that decide whether it belongs to a connection.
#[derive(Clone, Copy, Debug)]
pub struct Sign {
    /// Since the first packet of the capture.
    pub time_ns: u64,
    /// TCP flags, in the bits of [`tcp_flag`].
    pub flags: u16,
    /// Sequence number on the wire.
    pub seq: u32,
    /// 0 or 1: the endpoint that sent it, in any fixed order of the two.
    pub from: usize,
}

/// Life cycle of a connection, from its flags.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    last_ns: u64,
    /// Initial sequence numbers by endpoint.
    isns: [Option<u32>; 2],
    finished: [bool; 2],
    ending: Ending,
}

impl Life {
    /// A connection before its first packet, which comes at this time.
    pub fn new(now_ns: u64) -> Self {
        Life { last_ns: now_ns, isns: [None; 2], finished: [false; 2], ending: Ending::Open }
    }

    /// How it ended, so far.
    pub fn ending(&self) -> Ending {
        self.ending
    }

    /// Time of its last packet.
    pub fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Time until which more packets may arrive, if the latest one ended the connection.
    pub fn leaves_ns(&self) -> u64 {
        self.last_ns.saturating_add(QUIET_NS)
    }

    /// Whether the packet belongs to the connection, and does not start another one.
    pub fn goes_on(&self, next: &Sign) -> bool {
        !self.is_over(next.time_ns) && !self.is_reopened_by(next)
    }

    /// Whether it ended so long ago that no packet from this time on belongs to it.
    pub fn is_over(&self, now_ns: u64) -> bool {
        self.ending != Ending::Open && now_ns - self.last_ns > QUIET_NS
    }

    /// Whether a SYN, unless repeated, starts another connection between the same endpoints.
    fn is_reopened_by(&self, next: &Sign) -> bool {
        next.flags & (tcp_flag::SYN | tcp_flag::ACK) == tcp_flag::SYN
            && self.isns[next.from] != Some(next.seq)
    }

    /// Adds a packet; returns whether it ends the connection.
    pub fn add(&mut self, packet: &Sign) -> bool {
        self.last_ns = packet.time_ns;
        let has = |flag| packet.flags & flag != 0;
        if packet.flags & (tcp_flag::SYN | tcp_flag::FIN | tcp_flag::RST) == 0 {
            return false;
        }
        // The sequence number of a reset need not belong to the connection.
        if has(tcp_flag::SYN) && !has(tcp_flag::RST) {
            self.isns[packet.from].get_or_insert(packet.seq);
        }
        self.finished[packet.from] |= has(tcp_flag::FIN);
        let was_open = self.ending == Ending::Open;
        if has(tcp_flag::RST) {
            self.ending = Ending::Reset;
        } else if self.finished == [true; 2] && was_open {
            self.ending = Ending::Finished;
        }
        was_open && self.ending != Ending::Open
    }
}
