// SPDX-License-Identifier: MIT
//! What captures of a run would show: every TCP packet as it passes a host or a router.

use crate::packet::{Flags, Packet, Sack};

pub use crate::packet::Ecn;

/// Where a packet passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the interface of the client's host: before receive offload and the processor.
    Client,
    /// At that of the server's.
    Server,
    /// Between the server's access link and the shared link, if the path has access links: data to
    /// the client is seen in front of the shared queue.
    Router,
}

/// A connection that starts: with the SYN that its client sends, or established, as a handshake before it
/// would have left it.
#[derive(Clone, Debug)]
pub struct Opened {
    pub flow: u32,
    pub time_ns: u64,
    /// Its packets are to come.
    pub handshake: bool,
    /// The client sends the data.
    pub up: bool,
    /// How long an empty segment takes to the client and to the server.
    pub down_ns: u64,
    pub up_ns: u64,
    /// As the MSS option has it: options of segments not taken off.
    pub mss_bytes: u32,
    pub timestamps: bool,
    pub sack: bool,
    /// Established with ECN.
    pub ecn: bool,
    pub client: End,
    pub server: End,
}

/// What an end offers at the start.
#[derive(Clone, Copy, Debug)]
pub struct End {
    pub window_bytes: u64,
    /// None: no window scaling (RFC 7323, 2.2).
    pub window_shift: Option<u32>,
}

/// One packet; sequence numbers count from the first byte of data.
#[derive(Clone, Debug)]
pub struct Passed<'a> {
    pub time_ns: u64,
    pub place: Place,
    pub flow: u32,
    /// Towards the client.
    pub down: bool,
    pub seq: u64,
    pub ack: u64,
    pub payload_bytes: u32,
    pub window_bytes: u32,
    pub syn: bool,
    pub psh: bool,
    pub ecn: Ecn,
    pub ece: bool,
    pub cwr: bool,
    /// TSval and TSecr, nanoseconds.
    pub sent_ns: u64,
    pub echo_ns: u64,
    pub sack: &'a [(u64, u64)],
}

/// Gets what passes, in order of time.
pub trait Tap {
    fn opened(&mut self, connection: &Opened);
    fn passed(&mut self, packet: &Passed);
}

impl<'a> Passed<'a> {
    pub(crate) fn new(time_ns: u64, place: Place, p: &'a Packet) -> Self {
        Passed {
            time_ns,
            place,
            flow: p.flow,
            down: p.down,
            seq: p.seq,
            ack: p.ack,
            payload_bytes: p.len,
            window_bytes: p.wnd_bytes,
            syn: p.has(Flags::SYN),
            psh: p.has(Flags::PSH),
            ecn: p.ecn,
            ece: p.has(Flags::ECE),
            cwr: p.has(Flags::CWR),
            sent_ns: p.sent_ns,
            echo_ns: p.echo_ns,
            sack: p.sack.as_deref().map_or(&[], Sack::as_slice),
        }
    }
}
