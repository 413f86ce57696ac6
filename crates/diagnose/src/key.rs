// SPDX-License-Identifier: MIT
//! The two endpoints of a connection, whichever sent a packet, as numbers that are quick to compare.

use ackwise_capture::TcpSegment;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    lower: (u128, u16),
    upper: (u128, u16),
}

impl Key {
    pub fn of(segment: &TcpSegment) -> Self {
        let (a, b) = (number(&segment.src), number(&segment.dst));
        Key { lower: a.min(b), upper: a.max(b) }
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let ports = u32::from(self.lower.1) << 16 | u32::from(self.upper.1);
        state.write_u128(self.lower.0);
        state.write_u128(self.upper.0);
        state.write_u32(ports);
    }
}

/// An IPv4 address is its own number, which no IPv6 address in use has (RFC 4291, 2.5.5.1).
fn number(address: &SocketAddr) -> (u128, u16) {
    let ip = match address.ip() {
        IpAddr::V4(ip) => u32::from(ip).into(),
        IpAddr::V6(ip) => u128::from(ip),
    };
    (ip, address.port())
}
