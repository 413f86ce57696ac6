// SPDX-License-Identifier: MIT
//! IEEE 802.11 frames, and the headers that drivers put before them: to the IP packet of a data
//! frame that is not encrypted.

use crate::ethertype::snap;
use crate::segment::{be32, skip, SkipCause};

pub(crate) fn le16(b: &[u8], at: usize) -> Result<usize, SkipCause> {
    match b.get(at..at + 2) {
        Some(raw) => Ok(u16::from_le_bytes([raw[0], raw[1]]).into()),
        None => Err(SkipCause::Cut),
    }
}

/// Radiotap (<https://www.radiotap.org>): the length is in the header. The only field that matters
/// says whether the 802.11 header is padded.
pub(crate) fn radiotap(data: &[u8]) -> Result<&[u8], SkipCause> {
    const MORE: u8 = 0x80;
    const PADDED: u8 = 0x20;
    let body = skip(data, le16(data, 2)?)?;
    let present = *data.get(4).ok_or(SkipCause::Cut)?;
    // The field of flags follows the words of what is present, and a time on a multiple of 8.
    let mut at = 8;
    while data.get(at - 1).ok_or(SkipCause::Cut)? & MORE != 0 {
        at += 4;
    }
    if present & 1 != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    let flags = if present & 2 != 0 { *data.get(at).ok_or(SkipCause::Cut)? } else { 0 };
    payload(body, flags & PADDED != 0)
}

/// Prism and AVS headers, which some drivers write with the same link type.
pub(crate) fn prism(data: &[u8]) -> Result<&[u8], SkipCause> {
    const AVS: u32 = 0x8021_1000;
    let stated = be32(data, 4)?;
    let len = match be32(data, 0)? & 0xffff_f000 {
        AVS => stated,
        // In the writer's byte order.
        _ => stated.min(stated.swap_bytes()),
    };
    frame(skip(data, len as usize)?)
}

pub(crate) fn frame(data: &[u8]) -> Result<&[u8], SkipCause> {
    payload(data, false)
}

/// IEEE 802.11-2020, 9.2 and 9.3.2.
fn payload(data: &[u8], is_padded: bool) -> Result<&[u8], SkipCause> {
    let [control, flags, ..] = *data else { return Err(SkipCause::Cut) };
    let (is_data, has_qos, is_null) = (control & 0x0c == 0x08, control & 0x80 != 0, control & 0x40 != 0);
    if !is_data || is_null {
        return Err(SkipCause::NotIp);
    }
    let (to_ds, from_ds, protected, order) =
        (flags & 1 != 0, flags & 2 != 0, flags & 0x40 != 0, flags & 0x80 != 0);
    let mut len = if to_ds && from_ds { 30 } else { 24 };
    let mut is_aggregate = false;
    if has_qos {
        is_aggregate = data.get(len).ok_or(SkipCause::Cut)? & 0x80 != 0;
        len += if order { 6 } else { 2 };
    }
    if is_padded {
        len = len.next_multiple_of(4);
    }
    let body = skip(data, len)?;
    let found = if is_aggregate { aggregate(body) } else { snap(body) };
    match found {
        // Decrypted frames may have kept their flag and the 8 bytes of CCMP, GCMP or TKIP.
        Err(SkipCause::NotIp) if protected => match body.get(8..) {
            Some([0xaa, 0xaa, 0x03, ..]) => snap(&body[8..]),
            _ => Err(SkipCause::Encrypted),
        },
        found => found,
    }
}

/// An A-MSDU (9.3.2.2.2) of one frame. Several frames of one record are not read.
fn aggregate(body: &[u8]) -> Result<&[u8], SkipCause> {
    const HEAD: usize = 14;
    let rest = skip(body, HEAD)?;
    let len = usize::from(u16::from_be_bytes([body[12], body[13]]));
    // The frame check sequence may follow.
    match rest.len() > len.next_multiple_of(4) + HEAD {
        true => Err(SkipCause::NotIp),
        false => snap(rest),
    }
}
