// SPDX-License-Identifier: MIT
//! Tunnels: from the payload of an outer IP packet to the IP packet inside.

use crate::ethertype::{ethernet, payload_of, ppp};
use crate::segment::{be16, be32, skip, Protocol, SkipCause, Tunnel};
use crate::wifi;

const UDP: u8 = 17;
const UDP_BYTES: usize = 8;
/// The port of RFC 7348, and Linux's earlier one.
const VXLAN_PORTS: [u16; 2] = [4789, 8472];
const VXLAN_GPE_PORT: u16 = 4790;
const GENEVE_PORT: u16 = 6081;
const GTP_U_PORT: u16 = 2152;
const L2TP_PORT: u16 = 1701;
const TEREDO_PORT: u16 = 3544;
const TZSP_PORT: u16 = 37008;
const ETHERNET_BRIDGING: u16 = 0x6558;

/// The IP packet inside; None if the protocol is not a tunnel.
pub(crate) fn inside(protocol: u8, body: &[u8]) -> Result<Option<(Tunnel, &[u8])>, SkipCause> {
    Ok(Some(match protocol {
        4 | 41 => (Tunnel::IpInIp, body),
        47 => (Tunnel::Gre, gre(body)?),
        115 => (Tunnel::L2tp, l2tp_3(body)?),
        UDP => {
            let ports = [be16(body, 0)?, be16(body, 2)?];
            let Some(rest) = body.get(UDP_BYTES..) else { return Ok(None) };
            match ports {
                [_, port] if VXLAN_PORTS.contains(&port) => (Tunnel::Vxlan, vxlan(rest)?),
                [_, VXLAN_GPE_PORT] => (Tunnel::Vxlan, vxlan_gpe(rest)?),
                [_, GENEVE_PORT] => (Tunnel::Geneve, geneve(rest)?),
                [_, GTP_U_PORT] => (Tunnel::GtpU, gtp_u(rest)?),
                [_, TZSP_PORT] => (Tunnel::Tzsp, tzsp(rest)?),
                ports if ports.contains(&L2TP_PORT) => (Tunnel::L2tp, l2tp(rest)?),
                ports if ports.contains(&TEREDO_PORT) => (Tunnel::Teredo, teredo(rest)?),
                _ => return Ok(None),
            }
        }
        _ => return Ok(None),
    }))
}

/// What the payload of an IP packet is.
pub(crate) fn name(protocol: u8, body: &[u8]) -> Protocol {
    match protocol {
        50 => Protocol::Esp,
        1 | 58 => Protocol::Icmp,
        132 => Protocol::Sctp,
        UDP => {
            let ports = [0, 2].map(|at| be16(body, at).unwrap_or(0));
            // IKE on the same port begins with 4 bytes of 0.
            let is_ike = body.get(UDP_BYTES..UDP_BYTES + 4) == Some(&[0; 4][..]);
            match ports {
                ports if ports.contains(&4500) && !is_ike => Protocol::Esp,
                ports if ports.contains(&51820) => Protocol::WireGuard,
                ports if ports.contains(&1194) => Protocol::OpenVpn,
                ports if ports.contains(&443) => Protocol::Quic,
                ports if ports.contains(&53) => Protocol::Dns,
                _ => Protocol::Udp,
            }
        }
        _ => Protocol::Other,
    }
}

/// GRE: RFC 2784 and 2890, the version that carries PPP (RFC 2637), and mirrored frames (ERSPAN).
fn gre(body: &[u8]) -> Result<&[u8], SkipCause> {
    let flags = be16(body, 0)?;
    let has = |flag: u16| flags & flag != 0;
    let version = flags & 7;
    if has(0x4000) || version > 1 {
        return Err(SkipCause::NotTcp); // source routes, long obsolete
    }
    // Checksum, key, sequence number and, in version 1, acknowledgement number.
    let optional = [has(0x8000), has(0x2000), has(0x1000), version == 1 && has(0x0080)];
    let rest = skip(body, 4 + 4 * optional.into_iter().filter(|&there| there).count())?;
    match be16(body, 2)? {
        ETHERNET_BRIDGING => ethernet(rest),
        0x880b => match rest {
            [0xff, 0x03, rest @ ..] => ppp(rest),
            _ => ppp(rest),
        },
        // Type I has no header of its own and no sequence number, type II has 8 bytes.
        0x88be => ethernet(skip(rest, if has(0x1000) { 8 } else { 0 })?),
        0x22eb => {
            let has_subheader = rest.get(11).ok_or(SkipCause::Cut)? & 1 != 0;
            ethernet(skip(rest, if has_subheader { 20 } else { 12 })?)
        }
        ethertype => payload_of(ethertype, rest),
    }
}

/// VXLAN (RFC 7348): the flags must have the bit for a valid network identifier.
fn vxlan(body: &[u8]) -> Result<&[u8], SkipCause> {
    match be16(body, 0)? & 0x0800 {
        0 => Err(SkipCause::NotTcp),
        _ => ethernet(skip(body, 8)?),
    }
}

/// VXLAN-GPE (draft-ietf-nvo3-vxlan-gpe): the flags say whether the header names the protocol.
fn vxlan_gpe(body: &[u8]) -> Result<&[u8], SkipCause> {
    let flags = *body.first().ok_or(SkipCause::Cut)?;
    let rest = skip(body, 8)?;
    match (flags & 0x0c, body[3]) {
        (0x08, _) | (0x0c, 3) => ethernet(rest),
        (0x0c, 1 | 2) => Ok(rest),
        _ => Err(SkipCause::NotTcp),
    }
}

/// GTP-U (3GPP TS 29.281, 5.1 and 5.2): a G-PDU of version 1, with its extension headers.
fn gtp_u(body: &[u8]) -> Result<&[u8], SkipCause> {
    const G_PDU: u8 = 255;
    let [flags, kind, ..] = *body else { return Err(SkipCause::Cut) };
    if flags >> 4 != 3 || kind != G_PDU {
        return Err(SkipCause::NotTcp);
    }
    if flags & 7 == 0 {
        return skip(body, 8);
    }
    let mut next = *body.get(11).ok_or(SkipCause::Cut)?;
    let mut rest = skip(body, 12)?;
    while next != 0 {
        let len = usize::from(*rest.first().ok_or(SkipCause::Cut)?) * 4;
        next = *rest.get(len.checked_sub(1).ok_or(SkipCause::Malformed)?).ok_or(SkipCause::Cut)?;
        rest = &rest[len..];
    }
    Ok(rest)
}

/// L2TP in UDP: PPP in version 2 (RFC 2661, 3.1).
fn l2tp(body: &[u8]) -> Result<&[u8], SkipCause> {
    let flags = be16(body, 0)?;
    let has = |flag: u16| flags & flag != 0;
    match (has(0x8000), flags & 0xf) {
        (false, 2) => {}
        (false, 3) => return l2tp_3(skip(body, 4)?),
        _ => return Err(SkipCause::NotTcp),
    }
    let fields = [(has(0x4000), 2), (true, 4), (has(0x0800), 4)];
    let mut at: usize = 2 + fields.into_iter().filter(|f| f.0).map(|f| f.1).sum::<usize>();
    if has(0x0200) {
        at += 2 + usize::from(be16(body, at)?);
    }
    match skip(body, at)? {
        [0xff, 0x03, rest @ ..] => ppp(rest),
        rest => ppp(rest),
    }
}

/// L2TP version 3 from the session on (RFC 3931, 4.1): Ethernet after a cookie and a sublayer whose
/// lengths only the ends know. What is an Ethernet frame with IP shows them.
fn l2tp_3(body: &[u8]) -> Result<&[u8], SkipCause> {
    if be32(body, 0)? == 0 {
        return Err(SkipCause::NotTcp); // control messages
    }
    [4, 8, 12, 16]
        .into_iter()
        .find_map(|at| ethernet(body.get(at..)?).ok().filter(|ip| is_ip(ip)))
        .ok_or(SkipCause::NotTcp)
}

/// Whether an IP packet of this length begins here.
fn is_ip(b: &[u8]) -> bool {
    let len = |at, head: usize| be16(b, at).is_ok_and(|len| usize::from(len) + head >= 20);
    match b {
        [0x45..=0x4f, ..] => len(2, 0),
        [0x60..=0x6f, ..] => len(4, 40),
        _ => false,
    }
}

/// Teredo (RFC 4380, 5.1.1): IPv6 after an authentication and an origin indication.
fn teredo(mut body: &[u8]) -> Result<&[u8], SkipCause> {
    if let [0, 1, id, auth, ..] = *body {
        body = skip(body, 13 + usize::from(id) + usize::from(auth))?;
    }
    if let [0, 0, ..] = *body {
        body = skip(body, 8)?;
    }
    match body.first().map(|b| b >> 4) {
        Some(6) => Ok(body),
        _ => Err(SkipCause::NotTcp),
    }
}

/// TZSP: a mirrored frame after a list of tags.
fn tzsp(body: &[u8]) -> Result<&[u8], SkipCause> {
    let encapsulated = be16(body, 2)?;
    let mut rest = skip(body, 4)?;
    loop {
        rest = match *rest {
            [0, ..] => &rest[1..],
            [1, ..] => break,
            [_, len, ..] => skip(rest, 2 + usize::from(len))?,
            _ => return Err(SkipCause::Cut),
        };
    }
    match (body[0], encapsulated) {
        (1, 1) => ethernet(&rest[1..]),
        (1, 18) => wifi::frame(&rest[1..]),
        _ => Err(SkipCause::NotTcp),
    }
}

/// Geneve (RFC 8926): version 0; the header gives the length of the options.
fn geneve(body: &[u8]) -> Result<&[u8], SkipCause> {
    let head = be16(body, 0)?;
    if head >> 14 != 0 {
        return Err(SkipCause::NotTcp);
    }
    let rest = skip(body, 8 + 4 * usize::from(head >> 8 & 0x3f))?;
    match be16(body, 2)? {
        ETHERNET_BRIDGING => ethernet(rest),
        ethertype => payload_of(ethertype, rest),
    }
}
