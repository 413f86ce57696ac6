// SPDX-License-Identifier: MIT
//! Echo requests of the client and the server's replies (ICMP, RFC 792): small packets that wait in
//! the same queues as TCP's.

use crate::packet::{Flags, Framing, Packet};
use crate::result::PingResult;
use crate::scenario::Scenario;
use crate::stats::Times;

/// Flow number of pings in packets.
pub const PING_FLOW: u32 = u32::MAX;
/// Header and 56 bytes of data, as ping(8) sends them.
const ECHO_BYTES: u32 = 8 + 56;
const TCP_HEADER_BYTES: u32 = 20;

pub struct Pings {
    pub interval_ns: u64,
    framing: Framing,
    /// Send time of each request, and its RTT; 0: no reply arrived.
    sent: Vec<(u64, u64)>,
}

impl Pings {
    /// The pings; None if the scenario has none.
    pub fn new(s: &Scenario) -> Option<Self> {
        let overhead_bytes = s.ip_tcp_header_bytes - TCP_HEADER_BYTES + s.link_overhead_bytes;
        let framing = Framing { overhead_bytes, cells: s.link_cells, syn_option_bytes: 0 };
        (s.ping_interval_ns > 0).then_some(Pings {
            interval_ns: s.ping_interval_ns,
            framing,
            sent: Vec::new(),
        })
    }

    /// The next request.
    pub fn request(&mut self, now: u64) -> Box<Packet> {
        self.sent.push((now, 0));
        Box::new(Packet {
            flow: PING_FLOW,
            wire_bytes: self.framing.wire_bytes(ECHO_BYTES),
            len: ECHO_BYTES,
            segments: 1,
            flags: Flags::PSH, // receive offload does not merge it
            seq: self.sent.len() as u64 - 1,
            sent_ns: now,
            ..Packet::default()
        })
    }

    /// Handles an arriving request or reply; returns the reply to send, if any.
    pub fn receive(&mut self, now: u64, mut packet: Box<Packet>) -> Option<Box<Packet>> {
        if packet.down {
            let (sent_ns, rtt_ns) = &mut self.sent[packet.seq as usize];
            // Ignores a second copy.
            if *rtt_ns == 0 {
                *rtt_ns = now - *sent_ns;
            }
            return None;
        }
        packet.down = true;
        packet.hop = 0;
        Some(packet)
    }

    /// The result, with requests up to the last that was answered: replies to later ones may be in
    /// flight.
    pub fn finish(self) -> PingResult {
        let judged = self.sent.iter().rposition(|(_, rtt_ns)| *rtt_ns > 0).map_or(0, |last| last + 1);
        let mut rtts = Times::default();
        let mut lost = 0;
        for (_, rtt_ns) in &self.sent[..judged] {
            match rtt_ns {
                0 => lost += 1,
                _ => rtts.record(*rtt_ns),
            }
        }
        PingResult { sent: judged as u64, lost, rtt_ns: rtts.quantiles() }
    }
}
