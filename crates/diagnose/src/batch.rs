// SPDX-License-Identifier: MIT
//! Packets that wait to be followed together.

use crate::key::Key;
use crate::report::Options;
use crate::table::Arrival;
use ackwise_capture::Packet;
use std::ops::Deref;

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
    /// 0: none.
    mss: u16,
    /// Place of its SACK blocks in the batch.
    sacks_from: u32,
    window_scale: Option<u8>,
    pub ecn: u8,
    /// As in [`crate::key::Key::of`].
    pub from_upper: bool,
    sack_permitted: bool,
    has_timestamps: bool,
    sacks: u8,
}

/// A packet, as connections are followed by it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'b> {
    pub headers: &'b Headers,
    pub sacks: &'b [(u32, u32)],
}

impl Deref for Segment<'_> {
    type Target = Headers;

    fn deref(&self) -> &Headers {
        self.headers
    }
}

impl Headers {
    #[inline]
    pub fn of(packet: &Packet, time_ns: u64, from_upper: bool) -> Self {
        let segment = &packet.segment;
        let options = &segment.options;
        let (value, echo) = options.timestamps.unwrap_or_default();
        Headers {
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
            mss: options.mss.unwrap_or(0),
            sacks_from: 0,
            window_scale: options.window_scale,
            ecn: segment.ecn,
            from_upper,
            sack_permitted: options.sack_permitted,
            has_timestamps: options.timestamps.is_some(),
            sacks: segment.sack_blocks().len() as u8,
        }
    }

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
            mss_bytes: Some(self.mss).filter(|&mss| mss > 0),
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

/// Packets of any connections.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    packets: Vec<(Key, u64, Headers)>,
    sacks: Vec<(u32, u32)>,
    /// For each packet: half of its connection's hash, above its place.
    order: Vec<u64>,
}

impl Batch {
    #[inline]
    pub fn push(&mut self, arrival: &Arrival<'_>, hash: u64) {
        let Arrival { key, ordinal, segment } = arrival;
        self.order.push(hash >> u32::BITS << u32::BITS | self.packets.len() as u64);
        let sacks_from = self.sacks.len() as u32;
        self.packets.push((*key, *ordinal, Headers { sacks_from, ..*segment.headers }));
        if !segment.sacks.is_empty() {
            self.sacks.extend_from_slice(segment.sacks);
        }
    }

    /// When the first packet came.
    pub fn first_ns(&self) -> Option<u64> {
        self.packets.first().map(|(_, _, headers)| headers.time_ns)
    }

    /// Connection by connection, those of each in the order in which they came; the batch is empty then.
    pub fn drain(&mut self, mut each: impl FnMut(&Arrival<'_>)) {
        self.order.sort_unstable();
        for &place in &self.order {
            let Some((key, ordinal, headers)) = self.packets.get(place as u32 as usize) else { continue };
            let sacks = self.sacks.get(headers.sacks_from as usize..).unwrap_or(&[]);
            let sacks = &sacks[..sacks.len().min(headers.sacks.into())];
            each(&Arrival { key: *key, ordinal: *ordinal, segment: Segment { headers, sacks } });
        }
        self.packets.clear();
        self.sacks.clear();
        self.order.clear();
    }
}
