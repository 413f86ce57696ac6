// SPDX-License-Identifier: MIT
//! TCP packets that IP cut into fragments.
//!
//! Only the first fragment has the TCP header. Those behind it carry on its sequence numbers, so
//! each fragment is handed out as a packet of its own, when it comes, and none is waited for. A
//! fragment whose first one was not captured is skipped: capture filters with a port let only
//! first fragments pass.

use crate::packet::{tcp_flag, Fragment, TcpSegment};
use std::net::IpAddr;

/// Datagrams whose later fragments may still come.
const DATAGRAMS_MAX: usize = 64;

/// What the fragments of one datagram have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram {
    pub src: IpAddr,
    pub dst: IpAddr,
    pub ident: u32,
}

/// The latest first fragments.
#[derive(Default)]
pub(crate) struct Fragments {
    first: Vec<(Datagram, TcpSegment, u32)>,
    /// Where the next one goes.
    at: usize,
}

impl Fragments {
    /// Keeps a first fragment, `header_len` bytes of which are the TCP header.
    pub fn begin(&mut self, datagram: Datagram, segment: &mut TcpSegment, header_len: u32) {
        segment.fragment = Some(Fragment::First);
        let kept = (datagram, segment.clone(), header_len);
        // A FIN stands behind the last byte, which is in the last fragment.
        segment.flags &= !tcp_flag::FIN;
        match self.first.iter().position(|f| f.0 == datagram) {
            Some(same) => self.first[same] = kept,
            None if self.first.len() < DATAGRAMS_MAX => self.first.push(kept),
            None => {
                self.first[self.at] = kept;
                self.at = (self.at + 1) % DATAGRAMS_MAX;
            }
        }
    }

    /// A later fragment as a packet: `offset` in the datagram's payload, `len` bytes of it.
    pub fn carry_on(&self, datagram: Datagram, offset: u32, len: u32, is_last: bool) -> Option<TcpSegment> {
        let (_, first, header_len) = self.first.iter().find(|f| f.0 == datagram)?;
        let mut segment = first.clone();
        segment.fragment = Some(Fragment::Later);
        // A SYN takes a number in front of the payload.
        let before = offset.checked_sub(*header_len)? + u32::from(first.has(tcp_flag::SYN));
        segment.seq = first.seq.wrapping_add(before);
        segment.payload_len = len;
        segment.options = first.options.only_timestamps();
        segment.flags &= !tcp_flag::SYN;
        if !is_last {
            segment.flags &= !tcp_flag::FIN;
        }
        Some(segment)
    }
}
