// SPDX-License-Identifier: MIT
//! The two endpoints of a connection, whichever sent a packet, as numbers that are quick to compare
//! and to hash.

use ackwise_capture::TcpSegment;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    lower: [u64; 2],
    upper: [u64; 2],
    ports: [u16; 2],
    is_ipv4: bool,
}

impl Key {
    /// The upper of the two endpoints sent the packet; where they are equal, none is.
    #[inline]
    pub fn of(segment: &TcpSegment) -> (Self, bool) {
        let (src, dst) = (number(&segment.src), number(&segment.dst));
        let from_upper = src > dst;
        let (lower, upper) = if from_upper { (dst, src) } else { (src, dst) };
        let ports = [lower.1, upper.1];
        (Key { lower: lower.0, upper: upper.0, ports, is_ipv4: segment.src.is_ipv4() }, from_upper)
    }

    /// The lower one first.
    pub fn endpoints(&self) -> [SocketAddr; 2] {
        [(self.lower, self.ports[0]), (self.upper, self.ports[1])].map(|([high, low], port)| {
            let ip = match self.is_ipv4 {
                true => Ipv4Addr::from(low as u32).into(),
                false => Ipv6Addr::from(u128::from(high) << 64 | u128::from(low)).into(),
            };
            SocketAddr::new(ip, port)
        })
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
        state.write_u32(u32::from(self.ports[0]) << 16 | u32::from(self.ports[1]));
    }
}

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
