// SPDX-License-Identifier: MIT
//! Decodes the bytes of one packet to its TCP segment, or to the reason why there is none.
//!
//! No library is used because captures differ from wires: headers cut by the snap length, lengths
//! of 0 in packets larger than 64 KiB, options cut in the middle.

use crate::fragment::{Datagram, Fragments};
use crate::segment::*;
use crate::too_big::TooBig;
use crate::{link, too_big, tunnel};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Maximum number of tunnels in one another; real networks have three.
const TUNNELS_MAX: u8 = 8;

/// Why a packet is left out, and what it carries, where that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Skipped {
    pub cause: SkipCause,
    pub protocol: Option<Protocol>,
    /// What it says about a TCP packet; its time is not set.
    pub too_big: Option<TooBig>,
}

impl From<SkipCause> for Skipped {
    fn from(cause: SkipCause) -> Self {
        Skipped { cause, protocol: None, too_big: None }
    }
}

/// Decodes in place, because copying would take most of the time. `wire_len`: length of the packet
/// on the wire, of which `data` may be a part.
#[inline(never)]
pub(crate) fn decode(
    link: u32,
    data: &[u8],
    wire_len: u32,
    fragments: &mut Fragments,
    into: &mut TcpSegment,
) -> Result<(), Skipped> {
    let mut ip = link::ip_of(link, data)?;
    let is_whole = wire_len as usize <= data.len() && link::states_length(link);
    let mut wire_len = (wire_len as usize).saturating_sub(data.len() - ip.len());
    let mut tunnel = None;
    let mut tunnel_depth = 0u8;
    loop {
        let mut network = network(ip, wire_len.max(ip.len()) as u32)?;
        // Nothing was cut, so there is no more than this, whatever the header says. A tunnel may
        // carry a part of a packet (mirrored frames).
        if is_whole && tunnel.is_none() {
            let beyond = network.body_len - network.body.len() as u32;
            network.body_len -= beyond;
            network.total_len -= beyond;
        }
        let body = network.body;
        if network.protocol == TCP {
            network.segment(fragments, into)?;
            into.tunnel = tunnel;
            into.tunnel_depth = tunnel_depth;
            return Ok(());
        }
        if network.fragment_offset > 0 {
            return Err(SkipCause::Fragment.into());
        }
        let inside = match tunnel::inside(network.protocol, body) {
            Ok(None) | Err(SkipCause::NotTcp) => Err(Skipped {
                cause: SkipCause::NotTcp,
                protocol: Some(tunnel::name(network.protocol, body)),
                too_big: network.too_big(),
            }),
            Ok(Some(inside)) => Ok(inside),
            Err(cause) => Err(cause.into()),
        };
        let (kind, inner) = inside?;
        if tunnel_depth == TUNNELS_MAX {
            return Err(SkipCause::Malformed.into());
        }
        tunnel = Some(kind);
        tunnel_depth += 1;
        wire_len = (network.body_len as usize).saturating_sub(body.len() - inner.len());
        ip = inner;
    }
}

const TCP: u8 = 6;
/// RFC 4302.
const AUTHENTICATION: u8 = 51;

/// An IP header with all its extensions parsed.
struct Network<'a> {
    src: IpAddr,
    dst: IpAddr,
    total_len: u32,
    ident: u32,
    ttl: u8,
    ecn: u8,
    protocol: u8,
    /// The captured part, without padding.
    body: &'a [u8],
    /// Length according to the header.
    body_len: u32,
    /// Offset of the body in the payload of the whole datagram, which continues after it if `more`
    /// is set.
    fragment_offset: u32,
    more: bool,
}

/// Decodes the most common packets: TCP in IPv4 on Ethernet, with timestamps or without options, so
/// that each field has a fixed offset. False for all others. `into` is empty or holds another such
/// packet.
#[inline(always)]
pub(crate) fn plain(link: u32, data: &[u8], wire_len: u32, into: &mut TcpSegment) -> bool {
    let Some((head, rest)) = data.split_first_chunk::<54>() else { return false };
    let two = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let four = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let is_plain = link == link::ETHERNET
        && two(12) == 0x0800
        && head[14] == 0x45
        && two(20) & 0x3fff == 0
        && head[23] == TCP;
    let (header, timestamps) = match (head[46] >> 4, rest.first_chunk::<12>()) {
        (5, _) => (20, None),
        (8, Some([1, 1, 8, 10, stamps @ ..])) => {
            let [a, b, c, d, e, f, g, h] = *stamps;
            (32, Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]))))
        }
        _ => return false,
    };
    let total_len = u32::from(two(16));
    if !is_plain || total_len < 20 + header || 14 + total_len > wire_len {
        return false;
    }
    let address = |at: usize, port: usize| SocketAddr::new(IpAddr::V4(Ipv4Addr::from(four(at))), two(port));
    into.src = address(26, 34);
    into.dst = address(30, 36);
    into.seq = four(38);
    into.ack = four(42);
    into.flags = two(46) & 0x1ff;
    into.window = two(48);
    into.payload_len = total_len - 20 - header;
    into.ip_total_len = total_len;
    into.ip_ident = two(18);
    into.ip_ttl = head[22];
    into.ecn = head[15] & 3;
    into.cut = (data.len() < 14 + total_len as usize).then_some(Cut::Payload);
    into.options.timestamps = timestamps;
    true
}

/// Parses an IP packet; `available`: bytes on the wire from the IP header on.
#[inline]
fn network(ip: &[u8], available: u32) -> Result<Network<'_>, SkipCause> {
    match ip.first().map(|b| b >> 4) {
        Some(4) => ipv4(ip, available),
        Some(6) => ipv6(ip, available),
        Some(_) => Err(SkipCause::NotIp),
        None => Err(SkipCause::Cut),
    }
}

#[inline]
fn ipv4(ip: &[u8], available: u32) -> Result<Network<'_>, SkipCause> {
    let Some((head, _)) = ip.split_first_chunk::<20>() else { return Err(SkipCause::Cut) };
    let two = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let header = u32::from(head[0] & 0x0f) * 4;
    // 0: segmentation offload or a packet above 64 KiB; the wire length counts then.
    let total_len = match two(2) {
        0 => available,
        n => n.into(),
    };
    if header < 20 || total_len < header {
        return Err(SkipCause::Malformed);
    }
    let address = |at: usize| IpAddr::V4(Ipv4Addr::new(head[at], head[at + 1], head[at + 2], head[at + 3]));
    let mut body_len = total_len - header;
    let mut body = skip(ip, header as usize)?;
    let mut protocol = head[9];
    let fragment = two(6);
    if protocol == AUTHENTICATION && fragment & 0x1fff == 0 {
        let len = usize::from(*body.get(1).ok_or(SkipCause::Cut)?) * 4 + 8;
        body_len = body_len.checked_sub(len as u32).ok_or(SkipCause::Malformed)?;
        protocol = body[0];
        body = skip(body, len)?;
    }
    Ok(Network {
        src: address(12),
        dst: address(16),
        total_len,
        ident: two(4).into(),
        ttl: head[8],
        ecn: head[1] & 3,
        protocol,
        body: upto(body, body_len),
        body_len,
        fragment_offset: u32::from(fragment & 0x1fff) * 8,
        more: fragment & 0x2000 != 0,
    })
}

fn upto(b: &[u8], len: u32) -> &[u8] {
    &b[..b.len().min(len as usize)]
}

fn ipv6(ip: &[u8], available: u32) -> Result<Network<'_>, SkipCause> {
    let Some((head, mut body)) = ip.split_first_chunk::<40>() else { return Err(SkipCause::Cut) };
    // 0: jumbogram (RFC 2675), the form in which Linux writes packets above 64 KiB.
    let mut body_len = match u16::from_be_bytes([head[4], head[5]]) {
        0 => available.saturating_sub(40),
        n => n.into(),
    };
    let total_len = body_len + 40;
    let mut protocol = head[6];
    let (mut ident, mut fragment_offset, mut more) = (0, 0, false);
    loop {
        let len = match protocol {
            // Hop-by-hop, routing, destination options, mobility, host identity, shim6.
            0 | 43 | 60 | 135 | 139 | 140 => usize::from(*body.get(1).ok_or(SkipCause::Cut)?) * 8 + 8,
            AUTHENTICATION => usize::from(*body.get(1).ok_or(SkipCause::Cut)?) * 4 + 8,
            // Fragment; one with offset 0 and nothing more is a whole packet (RFC 6946).
            44 => {
                let field = be16(body, 2)?;
                ident = be32(body, 4)?;
                fragment_offset = u32::from(field & 0xfff8);
                more = field & 1 != 0;
                8
            }
            _ => break,
        };
        body_len = body_len.checked_sub(len as u32).ok_or(SkipCause::Malformed)?;
        protocol = body[0];
        body = skip(body, len)?;
        if fragment_offset > 0 {
            break;
        }
    }
    let address = |at: usize| {
        let mut raw = [0; 16];
        raw.copy_from_slice(&head[at..at + 16]);
        IpAddr::V6(Ipv6Addr::from(raw))
    };
    Ok(Network {
        src: address(8),
        dst: address(24),
        total_len,
        ident,
        ttl: head[7],
        ecn: head[1] >> 4 & 3,
        protocol,
        body: upto(body, body_len),
        body_len,
        fragment_offset,
        more,
    })
}

impl Network<'_> {
    /// What an ICMP message says about a TCP packet that was too large.
    fn too_big(&self) -> Option<TooBig> {
        let (mtu_bytes, quote) = too_big::quoted(self.protocol, self.body)?;
        let packet = network(quote, 0).ok().filter(|packet| packet.protocol == TCP)?;
        let port = |at| be16(packet.body, at).ok();
        Some(TooBig {
            time_ns: 0,
            messages: 1,
            router: self.src,
            from: SocketAddr::new(packet.src, port(0)?),
            to: SocketAddr::new(packet.dst, port(2)?),
            mtu_bytes,
            packet_bytes: packet.total_len,
        })
    }

    /// Decodes the TCP segment in the body.
    fn segment(&self, fragments: &mut Fragments, into: &mut TcpSegment) -> Result<(), SkipCause> {
        let datagram = Datagram { src: self.src, dst: self.dst, ident: self.ident };
        if self.fragment_offset > 0 {
            let is_last = !self.more;
            let found = fragments.carry_on(datagram, self.fragment_offset, self.body_len, is_last);
            *into = found.ok_or(SkipCause::Fragment)?;
            into.ip_total_len = self.total_len;
            into.cut = (self.body.len() < self.body_len as usize).then_some(Cut::Payload);
            return Ok(());
        }
        self.tcp(into)?;
        if self.more {
            let header_len = self.body_len - into.payload_len;
            fragments.begin(datagram, into, header_len);
        }
        Ok(())
    }

    fn tcp(&self, into: &mut TcpSegment) -> Result<(), SkipCause> {
        let (b, len) = (self.body, self.body_len);
        if len < 20 {
            return Err(SkipCause::Malformed);
        }
        // Up to the window field; checksum and urgent pointer may be cut.
        let Some((head, _)) = b.split_first_chunk::<16>() else { return Err(SkipCause::Cut) };
        let two = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let four = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let header = u32::from(head[12] >> 4) * 4;
        if header < 20 || header > len {
            return Err(SkipCause::Malformed);
        }
        let captured = b.len() as u32;
        *into = TcpSegment {
            src: SocketAddr::new(self.src, two(0)),
            dst: SocketAddr::new(self.dst, two(2)),
            seq: four(4),
            ack: four(8),
            flags: two(12) & 0x1ff,
            window: two(14),
            payload_len: len - header,
            ip_total_len: self.total_len,
            ip_ident: if self.src.is_ipv4() { self.ident as u16 } else { 0 },
            ip_ttl: self.ttl,
            ecn: self.ecn,
            tunnel: None,
            tunnel_depth: 0,
            fragment: None,
            cut: match captured {
                _ if captured < header => Some(Cut::Options),
                _ if captured < len => Some(Cut::Payload),
                _ => None,
            },
            options: TcpOptions::default(),
        };
        options(b.get(20..(header as usize).min(b.len())).unwrap_or(&[]), &mut into.options);
        Ok(())
    }
}

/// Parses options up to the end, to the first invalid one, or to where the snap length cuts.
/// Unknown options (MPTCP, Fast Open) are skipped.
fn options(mut b: &[u8], found: &mut TcpOptions) {
    while let Some(&kind) = b.first() {
        match kind {
            0 => break,
            1 => b = &b[1..],
            _ => {
                let Some(&len) = b.get(1) else { break };
                let Some(body) = b.get(2..usize::from(len)) else { break };
                let u32_at = |at: usize| be32(body, at).unwrap_or(0);
                match (kind, body.len()) {
                    (2, 2) => found.mss = be16(body, 0).ok(),
                    // RFC 7323, 2.3: more than 14 counts as 14.
                    (3, 1) => found.window_scale = Some(body[0].min(14)),
                    (4, 0) => found.sack_permitted = true,
                    (5, n) if n % 8 == 0 && n / 8 <= SACKS_MAX => {
                        found.sack_count = (n / 8) as u8;
                        for i in 0..n / 8 {
                            found.sacks[i] = (u32_at(8 * i), u32_at(8 * i + 4));
                        }
                    }
                    (8, 8) => found.timestamps = Some((u32_at(0), u32_at(4))),
                    (172 | 174, _) => found.accecn = Some(AccEcn::read(body, kind == 174)),
                    _ => {}
                }
                b = &b[usize::from(len)..];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::{frame, TcpPacket};

    #[test]
    fn a_plain_packet_is_decoded_as_any_other() {
        let [a, b] = ["10.0.0.1:40000", "10.0.0.2:80"].map(|a| a.parse().expect("an address"));
        let options = [1, 1, 8, 10, 0, 0, 0, 2, 0, 0, 0, 1, 1, 1, 5, 10, 0, 0, 0, 9, 0, 0, 0, 20];
        let wholes = [0, 12, 24].map(|len| {
            let packet = TcpPacket::new(a, b, 7, 8, 30).flags(tcp_flag::ACK).options(&options[..len]);
            frame(link::ETHERNET, &packet.to_ip())
        });
        let mut state = 1u64;
        let mut below = |limit: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % limit
        };
        let (mut found, mut plain_ones) = (TcpSegment::nothing(), 0);
        for _ in 0..50_000 {
            let mut data = wholes[below(3)].clone();
            for _ in 0..below(3) {
                // A byte of the headers, before the options.
                let at = below(80);
                data[at] = if below(2) == 0 { below(256) as u8 } else { data[at] ^ 1 << below(8) };
            }
            if below(3) == 0 {
                data.truncate(below(data.len() + 1));
            }
            let wire_len = (data.len() + below(2) * 100) as u32;
            if !plain(link::ETHERNET, &data, wire_len, &mut found) {
                continue;
            }
            let mut segment = TcpSegment::nothing();
            let any = decode(link::ETHERNET, &data, wire_len, &mut Fragments::default(), &mut segment);
            assert_eq!((any, &segment), (Ok(()), &found), "{data:02x?}");
            plain_ones += 1;
        }
        assert!((10_000..45_000).contains(&plain_ones), "{plain_ones}");
    }

    fn options(b: &[u8]) -> TcpOptions {
        let mut found = TcpOptions::default();
        super::options(b, &mut found);
        found
    }

    #[test]
    fn options_survive_unknown_cut_and_senseless_ones() {
        let syn = [2, 4, 5, 0xb4, 34, 2, 4, 2, 1, 3, 3, 200, 0, 9];
        let found = options(&syn);
        assert_eq!(found.mss, Some(1460));
        assert_eq!(found.window_scale, Some(14));
        assert!(found.sack_permitted);
        let data = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 5, 10, 0, 0, 0, 3, 0, 0];
        let found = options(&data);
        assert_eq!(found.timestamps, Some((1, 2)));
        assert_eq!(found.sack_count, 0, "a cut option does not count");
        assert_eq!(options(&[5, 0, 8]), TcpOptions::default());
        assert_eq!(options(&[8, 1]), TcpOptions::default());
    }

    #[test]
    fn accecn_options_of_both_orders_and_any_length_are_read() {
        let counters = |b: &[u8]| options(b).accecn.map(|found| found.counters());
        let body = [0x12, 0x34, 0x56, 0, 0, 2, 0xff, 0xff, 0xff];
        let [a, b, c] = [Some(0x12_34_56), Some(2), Some(0xff_ff_ff)];
        // RFC 9768, table 5.
        for (len, order_0, order_1) in [
            (2, [None; 3], [None; 3]),
            (5, [a, None, None], [None, None, a]),
            (8, [a, b, None], [None, b, a]),
            (11, [a, b, c], [c, b, a]),
        ] {
            for (kind, expected) in [(172, order_0), (174, order_1)] {
                let mut option = vec![1, kind, len as u8];
                option.extend(&body[..len - 2]);
                assert_eq!(counters(&option), Some(expected), "{option:?}");
                // Any other length: whole fields, the rest is padding.
                option.extend([9, 9]);
                option[2] += 2;
                assert_eq!(counters(&option), Some(expected), "{option:?}");
                option.pop();
                assert_eq!(counters(&option), None, "cut: {option:?}");
            }
        }
        assert_eq!(counters(&[173, 5, 0, 0, 1]), None);
    }
}
