// SPDX-License-Identifier: MIT
//! Packets that somebody else sent in an endpoint's place, told by their TTLs: a proxy that
//! acknowledges what is still on its way, a firewall that resets a connection.

use crate::observer::{End, Observer};
use crate::step::Step;
use ackwise_capture::tcp_flag;
use serde::Serialize;

/// Minimum numbers of an endpoint's own packets, and of its pure ACKs.
const OWN: u32 = 2;
const ACKS: u32 = 8;
/// Differences between the initial values of hosts (32, 64, 128, 255): some systems use several.
const INITIAL: [u8; 6] = [32, 64, 96, 127, 191, 223];

/// TTLs of one kind of packet.
#[derive(Clone, Copy, Debug, Default)]
struct Kind {
    ttl: u8,
    packets: u32,
    differs: bool,
}

impl Kind {
    fn add(&mut self, ttl: u8) {
        if self.packets == 0 {
            self.ttl = ttl;
        }
        self.differs |= self.ttl != ttl;
        self.packets = self.packets.saturating_add(1);
    }

    /// The TTL, if it is that of all of them.
    fn one(&self, least: u32) -> Option<u8> {
        (self.packets >= least && !self.differs).then_some(self.ttl)
    }
}

/// Observer of one half: the TTLs of its endpoint's packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origins {
    own: Kind,
    acks: Kind,
    resets: Kind,
}

/// TTLs (IPv6: hop limits) with which an endpoint's packets passed the capture point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Hops {
    /// That of its SYN, data and FIN; None if it varies, as on several routes.
    pub own_ttl: Option<u8>,
    /// That of its pure ACKs, if all of them show another sender.
    pub foreign_ack_ttl: Option<u8>,
    /// That of its resets, likewise.
    pub foreign_rst_ttl: Option<u8>,
}

impl Observer for Origins {
    type Report = Hops;

    fn sent(&mut self, step: &Step) {
        let kind = match step {
            _ if step.has(tcp_flag::RST) => &mut self.resets,
            _ if step.is_pure_ack() => &mut self.acks,
            _ => &mut self.own,
        };
        kind.add(step.ttl);
    }

    fn finish(self, _end: &End) -> Hops {
        let own_ttl = self.own.one(OWN);
        let foreign = |kind: Kind, least| {
            let (own, ttl) = (own_ttl?, kind.one(least)?);
            (own != ttl && !INITIAL.contains(&own.abs_diff(ttl))).then_some(ttl)
        };
        Hops { own_ttl, foreign_ack_ttl: foreign(self.acks, ACKS), foreign_rst_ttl: foreign(self.resets, 1) }
    }
}
