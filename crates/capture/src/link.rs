// SPDX-License-Identifier: MIT
//! Link layers: from the first byte of a packet to its IP header.
//!
//! Link types as in <https://www.tcpdump.org/linktypes.html>.

use crate::ethertype::{ethernet, payload_of, ppp};
use crate::segment::{be16, skip, SkipCause};
use crate::wifi;

/// BSD loopback: the address family as four bytes in the writer's byte order.
pub const NULL: u32 = 0;
/// Ethernet (IEEE 802.3).
pub const ETHERNET: u32 = 1;
/// SLIP, after 16 bytes of direction and original header.
pub const SLIP: u32 = 8;
/// PPP, with or without address and control bytes (RFC 1661, 1662).
pub const PPP: u32 = 9;
/// Raw IP, as most BSDs number it.
pub const RAW_BSD: u32 = 12;
/// Raw IP, as OpenBSD numbers it.
pub const RAW_OPENBSD: u32 = 14;
/// PPP in HDLC-like framing (RFC 1662), or Cisco's framing.
pub const PPP_HDLC: u32 = 50;
/// PPPoE session packets without their Ethernet header (RFC 2516).
pub const PPP_ETHER: u32 = 51;
/// Raw IPv4 or IPv6; the version field says which.
pub const RAW: u32 = 101;
/// Cisco's HDLC framing.
pub const CISCO_HDLC: u32 = 104;
/// OpenBSD loopback: the address family as four bytes in network byte order.
pub const LOOP: u32 = 108;
/// IEEE 802.11.
pub const IEEE802_11: u32 = 105;
/// Linux "cooked" capture, version 1: 16 bytes, the Ethernet type last.
pub const LINUX_SLL: u32 = 113;
/// IEEE 802.11 after a Prism or AVS header.
pub const IEEE802_11_PRISM: u32 = 119;
/// IEEE 802.11 after a radiotap header.
pub const IEEE802_11_RADIOTAP: u32 = 127;
/// IEEE 802.11 after an AVS header.
pub const IEEE802_11_AVS: u32 = 163;
/// A header that names the link type of the rest.
pub const PPI: u32 = 192;
/// What iptables and nftables log: attributes, one of which is the IP packet.
pub const NFLOG: u32 = 239;
/// PPP of pppd: a direction byte in place of the address byte.
pub const PPP_PPPD: u32 = 166;
/// PPP after one direction byte.
pub const PPP_WITH_DIRECTION: u32 = 204;
/// Raw IPv4.
pub const IPV4: u32 = 228;
/// Raw IPv6.
pub const IPV6: u32 = 229;
/// Linux "cooked" capture, version 2: 20 bytes, the Ethernet type first.
pub const LINUX_SLL2: u32 = 276;

/// Supported link types, for messages.
pub(crate) const SUPPORTED: &str = "Ethernet (1), raw IP (101, 228, 229, 12, 14), Linux cooked \
    (113, 276), loopback (0, 108), PPP (9, 50, 51, 104, 166, 204), SLIP (8), 802.11 (105, 119, 127, \
    163, 192), NFLOG (239)";

pub(crate) fn is_supported(link: u32) -> bool {
    matches!(
        link,
        NULL | ETHERNET
            | SLIP
            | PPP
            | RAW_BSD
            | RAW_OPENBSD
            | PPP_HDLC
            | PPP_ETHER
            | RAW
            | CISCO_HDLC
            | LOOP
            | LINUX_SLL
            | PPP_PPPD
            | PPP_WITH_DIRECTION
            | IPV4
            | IPV6
            | LINUX_SLL2
            | IEEE802_11
            | IEEE802_11_PRISM
            | IEEE802_11_RADIOTAP
            | IEEE802_11_AVS
            | PPI
            | NFLOG
    )
}

/// Whether records state the length on the wire: iptables copies the beginning of a packet only.
pub(crate) fn states_length(link: u32) -> bool {
    link != NFLOG
}

/// Skips the link layer.
pub(crate) fn ip_of(link: u32, data: &[u8]) -> Result<&[u8], SkipCause> {
    match link {
        ETHERNET => ethernet(data),
        LINUX_SLL => payload_of(be16(data, 14)?, skip(data, 16)?),
        // The protocol comes first, followed by 18 bytes about the interface.
        LINUX_SLL2 => payload_of(be16(data, 0)?, skip(data, 20)?),
        // The address family is in the writer's byte order; the IP version gives the same
        // information.
        NULL | LOOP => skip(data, 4),
        RAW | RAW_BSD | RAW_OPENBSD | IPV4 | IPV6 => Ok(data),
        // Direction, and the header before VJ compression.
        SLIP => skip(data, 16),
        PPP | PPP_HDLC | CISCO_HDLC => hdlc(data),
        // Direction, in place of the address or before it.
        PPP_PPPD | PPP_WITH_DIRECTION => match data {
            [_, 0xff, 0x03, rest @ ..] | [_, 0x03, rest @ ..] => ppp(rest),
            _ => ppp(skip(data, 1)?),
        },
        PPP_ETHER => ppp(skip(data, 6)?),
        IEEE802_11 => wifi::frame(data),
        IEEE802_11_RADIOTAP => wifi::radiotap(data),
        IEEE802_11_PRISM | IEEE802_11_AVS => wifi::prism(data),
        PPI => ppi(data),
        NFLOG => nflog(data),
        _ => Err(SkipCause::UnknownLink),
    }
}

/// What iptables and nftables log (NFLOG): attributes in the writer's byte order, one of which is
/// the IP packet.
fn nflog(data: &[u8]) -> Result<&[u8], SkipCause> {
    const PAYLOAD: u16 = 9;
    let mut rest = skip(data, 4)?;
    // An attribute's length fits into the packet in one byte order only.
    let first = be16(rest, 0)?;
    let swapped = usize::from(first) > rest.len() || first < 4;
    let number = |at: &[u8], from| be16(at, from).map(|n| if swapped { n.swap_bytes() } else { n });
    loop {
        let (len, kind) = (usize::from(number(rest, 0)?), number(rest, 2)?);
        if len < 4 {
            return Err(SkipCause::Malformed);
        }
        if kind == PAYLOAD {
            return Ok(&rest[4..len.min(rest.len())]);
        }
        rest = skip(rest, len.next_multiple_of(4))?;
    }
}

/// PPP with or without address and control bytes, or Cisco's framing.
fn hdlc(data: &[u8]) -> Result<&[u8], SkipCause> {
    match data {
        [0xff, 0x03, rest @ ..] => ppp(rest),
        [0x0f | 0x8f, _, rest @ ..] => payload_of(be16(rest, 0)?, skip(rest, 2)?),
        _ => ppp(data),
    }
}

/// PPI: a header that names the link type inside.
fn ppi(data: &[u8]) -> Result<&[u8], SkipCause> {
    let body = skip(data, wifi::le16(data, 2)?)?;
    match wifi::le16(data, 4)? as u32 {
        ETHERNET => ethernet(body),
        IEEE802_11 => wifi::frame(body),
        IEEE802_11_RADIOTAP => wifi::radiotap(body),
        _ => Err(SkipCause::UnknownLink),
    }
}
