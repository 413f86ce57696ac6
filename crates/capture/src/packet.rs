// SPDX-License-Identifier: MIT
//! From the bytes of one packet to its TCP segment, or to the cause why there is none.
//!
//! Read by hand and not by a library because captures differ from wires: headers cut by the snap
//! length, lengths of 0 in packets larger than 64 KiB, options cut in the middle.

use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Link types as in <https://www.tcpdump.org/linktypes.html>.
pub mod link {
    pub const NULL: u32 = 0;
    pub const ETHERNET: u32 = 1;
    pub const RAW_BSD: u32 = 12;
    pub const RAW_OPENBSD: u32 = 14;
    pub const RAW: u32 = 101;
    pub const LOOP: u32 = 108;
    pub const LINUX_SLL: u32 = 113;
    pub const IPV4: u32 = 228;
    pub const IPV6: u32 = 229;
    pub const LINUX_SLL2: u32 = 276;
}

/// TCP header flags, in the bits of [`crate::Record::flags`].
pub mod tcp_flag {
    pub const FIN: u16 = 0x001;
    pub const SYN: u16 = 0x002;
    pub const RST: u16 = 0x004;
    pub const PSH: u16 = 0x008;
    pub const ACK: u16 = 0x010;
    pub const URG: u16 = 0x020;
    pub const ECE: u16 = 0x040;
    pub const CWR: u16 = 0x080;
    pub const AE: u16 = 0x100;
}

/// Why a packet is in no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SkipCause {
    /// Its interface has a link type that is not read, or was not described.
    UnknownLink,
    /// The record carries no time (pcapng simple packets).
    NoTime,
    /// Neither IPv4 nor IPv6 (ARP, LLDP, PPPoE discovery ...).
    NotIp,
    /// IP, but no TCP header in it (UDP, ICMP, tunnels, encrypted).
    NotTcp,
    /// Part of a fragmented IP packet.
    Fragment,
    /// The snap length cut its headers.
    Cut,
    /// Its headers contradict themselves.
    Malformed,
}

/// At most four SACK blocks fit into the options.
pub(crate) const SACKS_MAX: usize = 4;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub mss: Option<u16>,
    pub window_scale: Option<u8>,
    pub sack_permitted: bool,
    pub timestamps: Option<(u32, u32)>,
    pub sacks: [(u32, u32); SACKS_MAX],
    pub sack_count: usize,
}

/// The headers of one TCP packet, numbers as on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpSegment {
    pub src: SocketAddr,
    pub dst: SocketAddr,
    /// Identification field of the IPv4 header; 0 for IPv6.
    pub ip_ident: u16,
    pub seq: u32,
    pub ack: u32,
    /// As in [`tcp_flag`].
    pub flags: u16,
    pub window: u16,
    /// On the wire, of which the capture may hold a part.
    pub payload_len: u32,
    pub ip_total_len: u32,
    /// The two ECN bits of the IP header.
    pub ecn: u8,
    pub(crate) options: Options,
}

impl TcpSegment {
    /// [left edge, right edge) of each SACK block, the first as reported.
    pub fn sack_blocks(&self) -> &[(u32, u32)] {
        &self.options.sacks[..self.options.sack_count]
    }
}

pub(crate) fn link_is_supported(link: u32) -> bool {
    matches!(
        link,
        link::NULL
            | link::ETHERNET
            | link::RAW_BSD
            | link::RAW_OPENBSD
            | link::RAW
            | link::LOOP
            | link::LINUX_SLL
            | link::IPV4
            | link::IPV6
            | link::LINUX_SLL2
    )
}

fn be16(b: &[u8], at: usize) -> Result<u16, SkipCause> {
    match b.get(at..at + 2) {
        Some(raw) => Ok(u16::from_be_bytes([raw[0], raw[1]])),
        None => Err(SkipCause::Cut),
    }
}

fn be32(b: &[u8], at: usize) -> Result<u32, SkipCause> {
    Ok(u32::from(be16(b, at)?) << 16 | u32::from(be16(b, at + 2)?))
}

fn skip(b: &[u8], len: usize) -> Result<&[u8], SkipCause> {
    b.get(len..).ok_or(SkipCause::Cut)
}

/// `wire_len`: length of the packet on the wire, which `data` may be a part of.
pub(crate) fn decode(link: u32, data: &[u8], wire_len: u32) -> Result<TcpSegment, SkipCause> {
    let ip = match link {
        link::ETHERNET => behind_ethertype(data, 12)?,
        link::LINUX_SLL => behind_ethertype(data, 14)?,
        link::LINUX_SLL2 => {
            // The protocol comes first, then 18 bytes about the interface.
            let kind = be16(data, 0)?;
            payload_of(kind, skip(data, 20)?)?
        }
        // The address family is in the byte order of the writer; the IP version says the same.
        link::NULL | link::LOOP => skip(data, 4)?,
        link::RAW | link::RAW_BSD | link::RAW_OPENBSD | link::IPV4 | link::IPV6 => data,
        _ => return Err(SkipCause::UnknownLink),
    };
    let link_len = (data.len() - ip.len()) as u32;
    network(ip, wire_len.saturating_sub(link_len).max(ip.len() as u32))
}

fn behind_ethertype(data: &[u8], at: usize) -> Result<&[u8], SkipCause> {
    payload_of(be16(data, at)?, skip(data, at + 2)?)
}

/// Strips VLAN tags and PPPoE; each turn takes bytes, so the loop ends.
fn payload_of(mut ethertype: u16, mut rest: &[u8]) -> Result<&[u8], SkipCause> {
    loop {
        match ethertype {
            0x0800 | 0x86dd => return Ok(rest),
            0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
                ethertype = be16(rest, 2)?;
                rest = skip(rest, 4)?;
            }
            0x8864 => {
                return match be16(rest, 6)? {
                    0x0021 | 0x0057 => skip(rest, 8),
                    _ => Err(SkipCause::NotIp),
                };
            }
            _ => return Err(SkipCause::NotIp),
        }
    }
}

/// `available`: bytes from the IP header on that were on the wire.
fn network(ip: &[u8], available: u32) -> Result<TcpSegment, SkipCause> {
    match ip.first().map(|b| b >> 4) {
        Some(4) => ipv4(ip, available),
        Some(6) => ipv6(ip, available),
        Some(_) => Err(SkipCause::NotIp),
        None => Err(SkipCause::Cut),
    }
}

fn ipv4(ip: &[u8], available: u32) -> Result<TcpSegment, SkipCause> {
    if ip.len() < 20 {
        return Err(SkipCause::Cut);
    }
    let header = usize::from(ip[0] & 0x0f) * 4;
    // 0: segmentation offload or a packet above 64 KiB; the wire length is what counts then.
    let total = match be16(ip, 2)? {
        0 => available,
        n => n.into(),
    };
    if header < 20 || (total as usize) < header {
        return Err(SkipCause::Malformed);
    }
    // More fragments, or an offset: ports and sequence numbers may be missing.
    if be16(ip, 6)? & 0x3fff != 0 {
        return Err(SkipCause::Fragment);
    }
    if ip[9] != 6 {
        return Err(SkipCause::NotTcp);
    }
    let address = |at: usize| IpAddr::V4(Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3]));
    let body = skip(ip, header)?;
    let addresses = (address(12), address(16));
    let mut segment = tcp(body, total - header as u32, addresses, total, ip[1] & 3)?;
    segment.ip_ident = be16(ip, 4)?;
    Ok(segment)
}

fn ipv6(ip: &[u8], available: u32) -> Result<TcpSegment, SkipCause> {
    if ip.len() < 40 {
        return Err(SkipCause::Cut);
    }
    // 0: jumbogram (RFC 2675), as Linux writes packets above 64 KiB.
    let mut left = match be16(ip, 4)? {
        0 => available.saturating_sub(40),
        n => n.into(),
    };
    let total = left + 40;
    let mut next = ip[6];
    let mut body = &ip[40..];
    loop {
        let len = match next {
            6 => break,
            // Hop-by-hop, routing, destination options, mobility, host identity, shim6.
            0 | 43 | 60 | 135 | 139 | 140 => usize::from(*body.get(1).ok_or(SkipCause::Cut)?) * 8 + 8,
            // Authentication.
            51 => usize::from(*body.get(1).ok_or(SkipCause::Cut)?) * 4 + 8,
            // A fragment header may also mark a whole packet (RFC 6946).
            44 if be16(body, 2)? & 0xfff9 == 0 => 8,
            44 => return Err(SkipCause::Fragment),
            _ => return Err(SkipCause::NotTcp),
        };
        left = left.checked_sub(len as u32).ok_or(SkipCause::Malformed)?;
        next = body[0];
        body = skip(body, len)?;
    }
    let address = |at: usize| {
        let mut raw = [0; 16];
        raw.copy_from_slice(&ip[at..at + 16]);
        IpAddr::V6(Ipv6Addr::from(raw))
    };
    tcp(body, left, (address(8), address(24)), total, ip[1] >> 4 & 3)
}

/// `len`: length of the TCP segment by the IP header; `b` may hold less, or padding behind it.
fn tcp(
    b: &[u8],
    len: u32,
    (src, dst): (IpAddr, IpAddr),
    ip_total_len: u32,
    ecn: u8,
) -> Result<TcpSegment, SkipCause> {
    let b = &b[..b.len().min(len as usize)];
    if len < 20 {
        return Err(SkipCause::Malformed);
    }
    // Up to the window; checksum and urgent pointer may be cut.
    let window = be16(b, 14)?;
    let header = usize::from(b[12] >> 4) * 4;
    if header < 20 || header as u32 > len {
        return Err(SkipCause::Malformed);
    }
    Ok(TcpSegment {
        src: SocketAddr::new(src, be16(b, 0)?),
        dst: SocketAddr::new(dst, be16(b, 2)?),
        ip_ident: 0,
        seq: be32(b, 4)?,
        ack: be32(b, 8)?,
        flags: be16(b, 12)? & 0x1ff,
        window,
        payload_len: len - header as u32,
        ip_total_len,
        ecn,
        options: options(b.get(20..header.min(b.len())).unwrap_or(&[])),
    })
}

/// Options up to the end, the first that makes no sense, or where the snap length cuts. Unknown
/// ones (MPTCP, Fast Open) are stepped over.
fn options(mut b: &[u8]) -> Options {
    let mut found = Options::default();
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
                    // RFC 7323, 2.3: more than 14 is taken as 14.
                    (3, 1) => found.window_scale = Some(body[0].min(14)),
                    (4, 0) => found.sack_permitted = true,
                    (5, n) if n % 8 == 0 && n / 8 <= SACKS_MAX => {
                        found.sack_count = n / 8;
                        for i in 0..found.sack_count {
                            found.sacks[i] = (u32_at(8 * i), u32_at(8 * i + 4));
                        }
                    }
                    (8, 8) => found.timestamps = Some((u32_at(0), u32_at(4))),
                    _ => {}
                }
                b = &b[usize::from(len)..];
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(options(&[5, 0, 8]), Options::default());
        assert_eq!(options(&[8, 1]), Options::default());
    }
}
