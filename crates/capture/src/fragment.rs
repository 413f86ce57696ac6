// SPDX-License-Identifier: MIT
//! TCP packets in IP fragments.
//!
//! Only the first fragment has the TCP header. Later fragments continue its sequence numbers, so
//! each fragment is delivered as a packet of its own as it arrives, without waiting for others. A
//! fragment whose first one was not captured is skipped: capture filters with a port pass only
//! first fragments.

use crate::segment::{tcp_flag, Fragment, TcpSegment};
use std::net::IpAddr;

/// Maximum number of datagrams whose later fragments may still arrive.
const DATAGRAMS_MAX: usize = 64;

/// Fields common to the fragments of one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram {
    pub src: IpAddr,
    pub dst: IpAddr,
    pub ident: u32,
}

/// The most recent first fragments.
#[derive(Default)]
pub(crate) struct Fragments {
    first: Vec<(Datagram, TcpSegment, u32)>,
    /// Index for the next one.
    at: usize,
}

impl Fragments {
    /// Stores a first fragment, whose TCP header has `header_len` bytes.
    pub fn begin(&mut self, datagram: Datagram, segment: &mut TcpSegment, header_len: u32) {
        segment.fragment = Some(Fragment::First);
        let kept = (datagram, segment.clone(), header_len);
        // A FIN follows the last byte, which is in the last fragment.
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

    /// A later fragment as a packet: `len` bytes at `offset` in the datagram's payload.
    pub fn carry_on(&self, datagram: Datagram, offset: u32, len: u32, is_last: bool) -> Option<TcpSegment> {
        let (_, first, header_len) = self.first.iter().find(|f| f.0 == datagram)?;
        let mut segment = first.clone();
        segment.fragment = Some(Fragment::Later);
        // A SYN takes a sequence number before the payload.
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
