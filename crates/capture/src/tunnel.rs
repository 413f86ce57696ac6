// SPDX-License-Identifier: MIT
//! Tunnels: from the payload of an outer IP packet to the IP packet inside.

use crate::link::{ethernet, payload_of, ppp};
use crate::segment::{be16, skip, SkipCause, Tunnel};

const UDP: u8 = 17;
/// The port of RFC 7348, and Linux's earlier one.
const VXLAN_PORTS: [u16; 2] = [4789, 8472];
const GENEVE_PORT: u16 = 6081;
const ETHERNET_BRIDGING: u16 = 0x6558;

/// The IP packet inside; None if the protocol is not a tunnel.
pub(crate) fn inside(protocol: u8, body: &[u8]) -> Result<Option<(Tunnel, &[u8])>, SkipCause> {
    Ok(Some(match protocol {
        4 | 41 => (Tunnel::IpInIp, body),
        47 => (Tunnel::Gre, gre(body)?),
        UDP => match be16(body, 2)? {
            port if VXLAN_PORTS.contains(&port) => (Tunnel::Vxlan, vxlan(skip(body, 8)?)?),
            GENEVE_PORT => (Tunnel::Geneve, geneve(skip(body, 8)?)?),
            _ => return Ok(None),
        },
        _ => return Ok(None),
    }))
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
