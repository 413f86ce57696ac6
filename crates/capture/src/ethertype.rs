// SPDX-License-Identifier: MIT
//! What follows an Ethernet type: VLAN tags, PPPoE, MPLS, down to an IP header.

use crate::segment::{be16, skip, SkipCause};

pub(crate) fn ethernet(data: &[u8]) -> Result<&[u8], SkipCause> {
    let rest = skip(data, 14)?;
    match be16(data, 12)? {
        // A length (IEEE 802.3), followed by the type (SNAP).
        0..=1535 => snap(rest),
        ethertype => payload_of(ethertype, rest),
    }
}

/// LLC with SNAP (RFC 1042): the type follows.
pub(crate) fn snap(data: &[u8]) -> Result<&[u8], SkipCause> {
    match data {
        [0xaa, 0xaa, 0x03, 0, 0, 0, rest @ ..] => payload_of(be16(rest, 0)?, skip(rest, 2)?),
        _ => Err(SkipCause::NotIp),
    }
}

/// After address and control: the protocol in two bytes, or in one if it is below 256.
pub(crate) fn ppp(data: &[u8]) -> Result<&[u8], SkipCause> {
    let (protocol, rest) = match data {
        [low, rest @ ..] if low & 1 == 1 => (u16::from(*low), rest),
        _ => (be16(data, 0)?, skip(data, 2)?),
    };
    match protocol {
        0x0021 | 0x0057 => Ok(rest),
        0x0281 | 0x0283 => mpls(rest),
        _ => Err(SkipCause::NotIp),
    }
}

/// Skips VLAN tags, PPPoE and MPLS; each iteration consumes bytes, so the loop ends.
pub(crate) fn payload_of(mut ethertype: u16, mut rest: &[u8]) -> Result<&[u8], SkipCause> {
    loop {
        match ethertype {
            0x0800 | 0x86dd => return Ok(rest),
            0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
                ethertype = be16(rest, 2)?;
                rest = skip(rest, 4)?;
            }
            0x8864 => return ppp(skip(rest, 6)?),
            0x8847 | 0x8848 => return mpls(rest),
            _ => return Err(SkipCause::NotIp),
        }
    }
}

/// Nothing after the labels names the payload: IP is recognized by its version, an Ethernet
/// pseudowire by its control word, which starts with 0 (RFC 4385).
fn mpls(mut rest: &[u8]) -> Result<&[u8], SkipCause> {
    loop {
        let bottom_of_stack = be16(rest, 2)? & 0x0100 != 0;
        rest = skip(rest, 4)?;
        if bottom_of_stack {
            break;
        }
    }
    match rest.first().map(|b| b >> 4) {
        None => Err(SkipCause::Cut),
        Some(4 | 6) => Ok(rest),
        Some(0) => ethernet(skip(rest, 4)?),
        Some(_) => Err(SkipCause::NotIp),
    }
}
