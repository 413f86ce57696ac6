// SPDX-License-Identifier: MIT
//! ICMP messages that tell a sender of a smaller path MTU: "fragmentation needed" (RFC 1191, 4) and
//! "packet too big" (RFC 8201, 4).

use crate::segment::{be16, be32};
use std::net::{IpAddr, SocketAddr};

/// Maximum number of different messages kept.
const KEPT: usize = 256;

/// A router's messages that packets of a TCP connection are too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooBig {
    /// Time of the first message, nanoseconds since 1970.
    pub time_ns: u64,
    /// Number of messages with the same ends and the same MTU.
    pub messages: u64,
    /// The router.
    pub router: IpAddr,
    /// Sender of the packets that are too large.
    pub from: SocketAddr,
    /// Their destination.
    pub to: SocketAddr,
    /// MTU of the next link, bytes; 0 from routers older than RFC 1191.
    pub mtu_bytes: u32,
    /// Length of the first such IP packet.
    pub packet_bytes: u32,
}

/// The MTU of such a message, and the packet that it quotes; None for any other message.
pub(crate) fn quoted(protocol: u8, body: &[u8]) -> Option<(u32, &[u8])> {
    let mtu_bytes = match (protocol, body) {
        (1, [3, 4, ..]) => be16(body, 6).ok()?.into(),
        (58, [2, 0, ..]) => be32(body, 4).ok()?,
        _ => return None,
    };
    Some((mtu_bytes, body.get(8..)?))
}

/// Adds a message to those before it.
pub(crate) fn add(known: &mut Vec<TooBig>, told: TooBig) {
    let is_same = |one: &TooBig| (one.from, one.to, one.mtu_bytes) == (told.from, told.to, told.mtu_bytes);
    match known.iter().position(is_same) {
        Some(at) => known[at].messages += told.messages,
        None if known.len() < KEPT => known.push(told),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::write::{too_big, PcapStyle, PcapWriter, TcpPacket};
    use crate::{link, packets, ReadOptions, Source};
    use std::ops::ControlFlow;

    #[test]
    fn messages_of_both_families_are_read_with_the_ends_of_the_packet_that_they_quote() {
        for (router, from, to) in [
            ("192.0.2.1", "10.0.0.1:80", "10.0.0.2:1000"),
            ("2001:db8::1", "[2001:db8::2]:80", "[2001:db8::3]:1000"),
        ] {
            let (from, to) = (from.parse().expect("an address"), to.parse().expect("an address"));
            let router = router.parse().expect("an address");
            let packet = TcpPacket::new(from, to, 1, 1, 1400);
            let ip = packet.to_ip();
            let mut writer = PcapWriter::new(link::RAW, PcapStyle::default());
            writer.tcp(1_000_000, &packet);
            (0..3).for_each(|n| _ = writer.frame(2_000_000 + n * 1_000_000, &too_big(router, &ip, 1280)));
            // Neither is one: another type, and one cut in the quoted ports.
            let mut other = too_big(router, &ip, 1280);
            let header = if router.is_ipv4() { 20 } else { 40 };
            writer.frame(9_000_000, &other[..other.len() - 43]);
            other[header] = 11;
            writer.frame(9_000_000, &other);
            let bytes = writer.into_bytes();
            let options = ReadOptions::default();
            let source = [Source::reader(&bytes[..], "made")];
            let notes = packets(source, &options, |_| ControlFlow::Continue(())).expect("readable");
            let [told] = notes.too_big[..] else { panic!("{:?}", notes.too_big) };
            assert_eq!((told.router, told.from, told.to), (router, from, to));
            assert_eq!((told.messages, told.mtu_bytes, told.time_ns), (3, 1280, 2_000_000));
            assert_eq!(told.packet_bytes as usize, ip.len());
        }
    }
}
