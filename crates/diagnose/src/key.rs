// SPDX-License-Identifier: MIT
//! The two endpoints of a connection, whichever sent a packet, as numbers that are quick to compare
//! and to hash.

use ackwise_capture::TcpSegment;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::net::{IpAddr, SocketAddr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    lower: [u64; 2],
    upper: [u64; 2],
    ports: u32,
}

impl Key {
    /// The upper of the two endpoints sent the packet; where they are equal, none is.
    #[inline]
    pub fn of(segment: &TcpSegment) -> (Self, bool) {
        let (src, dst) = (number(&segment.src), number(&segment.dst));
        let from_upper = src > dst;
        let (lower, upper) = if from_upper { (dst, src) } else { (src, dst) };
        let ports = u32::from(lower.1) << 16 | u32::from(upper.1);
        (Key { lower: lower.0, upper: upper.0, ports }, from_upper)
    }
}

impl Hash for Key {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [[a, b], [c, d]] = [self.lower, self.upper];
        if a | c == 0 {
            state.write_u64(b << 32 ^ d);
        } else {
            [a, b, c, d].into_iter().for_each(|word| state.write_u64(word));
        }
        state.write_u32(self.ports);
    }
}

/// An IPv4 address is its own number, which no IPv6 address in use has (RFC 4291, 2.5.5.1).
#[inline]
fn number(address: &SocketAddr) -> ([u64; 2], u16) {
    let ip = match address.ip() {
        IpAddr::V4(ip) => [0, u32::from(ip).into()],
        IpAddr::V6(ip) => {
            let ip = u128::from(ip);
            [(ip >> 64) as u64, ip as u64]
        }
    };
    (ip, address.port())
}

/// Hashes for tables of strangers' addresses: multiplications, as they take a fraction of the time of
/// the standard library's, and seeds that nobody can foresee.
#[derive(Clone, Debug)]
pub(crate) struct Seeds([u64; 2]);

impl Default for Seeds {
    fn default() -> Self {
        let random = RandomState::new();
        Seeds([random.hash_one(0), random.hash_one(1)])
    }
}

impl BuildHasher for Seeds {
    type Hasher = Mixer;

    #[inline]
    fn build_hasher(&self) -> Mixer {
        Mixer { state: self.0[0], seed: self.0[1] }
    }
}

pub(crate) struct Mixer {
    state: u64,
    seed: u64,
}

impl Hasher for Mixer {
    #[inline]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.state ^ word) * u128::from(self.seed | 1);
        self.state = product as u64 ^ (product >> 64) as u64;
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.state
    }
}
