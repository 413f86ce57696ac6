// SPDX-License-Identifier: MIT
//! Data for captures of a run: every TCP packet as it passes a host or a router.

use crate::packet::{Flags, Packet, Sack};

pub use crate::packet::Ecn;

/// Place at which a packet passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The interface of the client's host, before receive offload and the processor.
    Client,
    /// The interface of the server's host, before receive offload and the processor.
    Server,
    /// Between the server's access link and the shared link, if the path has access links: data to
    /// the client is seen before the shared queue.
    Router,
}

/// A connection that starts: with the client's SYN, or established, in the state that a handshake
/// would have left.
#[derive(Clone, Debug)]
pub struct Opened {
    pub flow: u32,
    pub time_ns: u64,
    /// Whether packets of a handshake follow.
    pub handshake: bool,
    /// Whether the client sends the data.
    pub up: bool,
    /// Transit time of an empty segment to the client and to the server.
    pub down_ns: u64,
    pub up_ns: u64,
    /// Value of the MSS option, without subtracting the options of segments.
    pub mss_bytes: u32,
    pub timestamps: bool,
    pub sack: bool,
    /// Whether it is established with ECN.
    pub ecn: bool,
    pub client: End,
    pub server: End,
}

/// Values offered by an end in its SYN.
#[derive(Clone, Copy, Debug)]
pub struct End {
    pub window_bytes: u64,
    /// None: no window scaling (RFC 7323, 2.2).
    pub window_shift: Option<u32>,
}

/// One packet; sequence numbers are relative to the first byte of data.
#[derive(Clone, Debug)]
pub struct Passed<'a> {
    pub time_ns: u64,
    pub place: Place,
    pub flow: u32,
    /// Whether it travels towards the client.
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

/// Receives the packets in order of time.
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
