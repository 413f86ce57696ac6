// SPDX-License-Identifier: MIT
//! The two endpoints of a connection, independent of direction, as integers that are fast to
//! compare and to hash.

use ackwise_capture::TcpSegment;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    lower: [u64; 2],
    upper: [u64; 2],
    ports: [u16; 2],
    is_ipv4: bool,
}

impl Key {
    /// The key, and whether the upper of the two endpoints sent the packet; if they are equal,
    /// neither is the upper.
    #[inline]
    pub fn of(segment: &TcpSegment) -> (Self, bool) {
        Key::between(&segment.src, &segment.dst)
    }

    /// The key for any two endpoints, and whether `src` is the upper one.
    #[inline]
    pub fn between(src: &SocketAddr, dst: &SocketAddr) -> (Self, bool) {
        let (SocketAddr::V4(a), SocketAddr::V4(b)) = (src, dst) else { return Key::between_any(src, dst) };
        let number = |end: &SocketAddrV4| u64::from(u32::from(*end.ip())) << 16 | u64::from(end.port());
        let [a, b] = [a, b].map(number);
        let from_upper = a > b;
        let [lower, upper] = if from_upper { [b, a] } else { [a, b] };
        let ports = [lower as u16, upper as u16];
        (Key { lower: [0, lower >> 16], upper: [0, upper >> 16], ports, is_ipv4: true }, from_upper)
    }

    #[inline(never)]
    fn between_any(src: &SocketAddr, dst: &SocketAddr) -> (Self, bool) {
        let is_ipv4 = src.is_ipv4();
        let (src, dst) = (number(src), number(dst));
        let from_upper = src > dst;
        let ((lower, low_port), (upper, high_port)) = if from_upper { (dst, src) } else { (src, dst) };
        let halves = |ip: u128| [(ip >> 64) as u64, ip as u64];
        let ports = [low_port, high_port];
        (Key { lower: halves(lower), upper: halves(upper), ports, is_ipv4 }, from_upper)
    }

    /// Both endpoints, the lower one first.
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

fn number(address: &SocketAddr) -> (u128, u16) {
    match address {
        SocketAddr::V4(address) => (u32::from(*address.ip()).into(), address.port()),
        SocketAddr::V6(address) => (u128::from(*address.ip()), address.port()),
    }
}

/// Hashes for tables indexed by untrusted addresses: multiplications, which take a fraction of the
/// time of the standard library's hash, with seeds that nobody can predict.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_have_one_key_and_its_endpoints_come_back() {
        let addresses = ["10.0.0.1:80", "10.0.0.2:79", "[2001:db8::1]:1", "[2001:db8::2]:1", "[::a00:1]:80"];
        let addresses = addresses.map(|a| a.parse::<SocketAddr>().expect("an address"));
        let seeds = Seeds::default();
        for (lower, upper) in [(0, 0), (0, 1), (2, 3), (2, 2), (4, 2)] {
            let (lower, upper) = (addresses[lower], addresses[upper]);
            let (there, back) = (Key::between(&lower, &upper), Key::between(&upper, &lower));
            assert_eq!(there.0, back.0);
            assert_eq!((there.1, back.1), (false, lower != upper));
            assert_eq!(there.0.endpoints(), [lower, upper]);
            assert_eq!(seeds.hash_one(there.0), seeds.hash_one(back.0));
        }
        let [ipv4, ipv6] = [addresses[0], addresses[4]].map(|a| Key::between(&a, &a).0);
        assert!(ipv4 != ipv6, "the same number in another family");
    }

    /// The low bits select a slot, the high ones distinguish entries in it.
    #[test]
    fn ports_and_addresses_that_count_up_are_spread_evenly() {
        let seeds = Seeds::default();
        for shift in [0, 57] {
            let mut places = [0u32; 128];
            for n in 0..12_800u32 {
                let client =
                    SocketAddr::from((Ipv4Addr::from(0x0a00_0000 + n / 128), 40_000 + (n % 128) as u16));
                let (key, _) = Key::between(&client, &SocketAddr::from(([192, 0, 2, 1], 443)));
                places[(seeds.hash_one(key) >> shift) as usize % 128] += 1;
            }
            // 100 each, within ten standard deviations.
            assert!(places.iter().all(|n| (1..200).contains(n)), "{places:?}");
        }
    }
}
