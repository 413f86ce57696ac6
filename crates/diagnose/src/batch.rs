// SPDX-License-Identifier: MIT
//! Packets of one connection that wait to be followed together.
//!
//! A connection with its observers takes some kilobytes. Where thousands are open, they are out of the
//! processor's caches whenever a packet comes; several packets at a time share the cost of fetching them.

use crate::report::Options;
use ackwise_capture::Packet;
use std::ops::Deref;

/// More would gain little, and take memory of every open connection.
const MOST: usize = 32;
const FEW: usize = 8;

/// What counts of a packet: one cache line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headers {
    /// Since the first packet of the capture.
    pub time_ns: u64,
    pub number: u64,
    pub file: u32,
    pub seq: u32,
    pub ack: u32,
    value: u32,
    echo: u32,
    pub payload_len: u32,
    pub ip_total_len: u32,
    pub flags: u16,
    pub window: u16,
    pub ip_ident: u16,
    mss: Option<u16>,
    window_scale: Option<u8>,
    pub ecn: u8,
    /// As in [`crate::key::Key::of`].
    pub from_upper: bool,
    sack_permitted: bool,
    has_timestamps: bool,
    sacks: u8,
}

/// A packet of a batch.
pub(crate) struct Segment<'b> {
    headers: &'b Headers,
    sacks: &'b [(u32, u32)],
}

impl Deref for Segment<'_> {
    type Target = Headers;

    fn deref(&self) -> &Headers {
        self.headers
    }
}

impl Headers {
    #[inline]
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// TSval and TSecr.
    #[inline]
    pub fn timestamps(&self) -> Option<(u32, u32)> {
        self.has_timestamps.then_some((self.value, self.echo))
    }

    /// Of a SYN.
    pub fn options(&self) -> Options {
        Options {
            mss_bytes: self.mss.filter(|&mss| mss > 0),
            window_scale: self.window_scale,
            sack_permitted: self.sack_permitted,
            timestamps: self.has_timestamps,
        }
    }
}

impl Segment<'_> {
    /// [left edge, right edge) of each SACK block, the first as reported.
    #[inline]
    pub fn sack_blocks(&self) -> &[(u32, u32)] {
        self.sacks
    }
}

#[derive(Debug, Default)]
pub(crate) struct Batch {
    packets: Vec<Headers>,
    /// Of all packets, one behind the other.
    sacks: Vec<(u32, u32)>,
}

impl Batch {
    #[inline]
    pub fn push(&mut self, packet: &Packet, time_ns: u64, from_upper: bool) {
        let segment = &packet.segment;
        let options = &segment.options;
        let (value, echo) = options.timestamps.unwrap_or_default();
        let sacks = segment.sack_blocks();
        if self.packets.len() == self.packets.capacity() {
            // Many connections have few packets.
            self.packets.reserve_exact(if self.packets.is_empty() { FEW } else { MOST - FEW });
        }
        self.packets.push(Headers {
            time_ns,
            number: packet.number,
            file: packet.file,
            seq: segment.seq,
            ack: segment.ack,
            value,
            echo,
            payload_len: segment.payload_len,
            ip_total_len: segment.ip_total_len,
            flags: segment.flags,
            window: segment.window,
            ip_ident: segment.ip_ident,
            mss: options.mss,
            window_scale: options.window_scale,
            ecn: segment.ecn,
            from_upper,
            sack_permitted: options.sack_permitted,
            has_timestamps: options.timestamps.is_some(),
            sacks: sacks.len() as u8,
        });
        if !sacks.is_empty() {
            self.sacks.extend_from_slice(sacks);
        }
    }

    pub fn first(&self) -> Option<&Headers> {
        self.packets.first()
    }

    pub fn is_full(&self) -> bool {
        self.packets.len() >= MOST
    }

    /// In the order in which they came; the batch is empty then.
    pub fn drain(&mut self, mut each: impl FnMut(&Segment<'_>)) {
        let mut sacks = &self.sacks[..];
        for headers in &self.packets {
            let (own, rest) = sacks.split_at(usize::from(headers.sacks).min(sacks.len()));
            sacks = rest;
            each(&Segment { headers, sacks: own });
        }
        self.packets.clear();
        self.sacks.clear();
    }
}
