// SPDX-License-Identifier: MIT
//! A packet, how packets are read, and who takes them.

use crate::input::Progress;
use crate::segment::TcpSegment;
use std::ops::ControlFlow;

/// One TCP packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Capture time, nanoseconds since 1970; never earlier than the previous packet.
    pub time_ns: u64,
    /// Number in its file, counted from 1 as in Wireshark.
    pub number: u64,
    /// Its file, as an index of [`crate::CaptureNotes::files`].
    pub file: u32,
    /// Its interface, as an index of [`crate::FileNotes::interfaces`].
    pub interface: u32,
    /// Its headers.
    pub segment: TcpSegment,
}

impl Packet {
    /// An empty packet to decode into.
    pub(crate) fn nothing(file: u32) -> Self {
        Packet { time_ns: 0, number: 0, file, interface: 0, segment: TcpSegment::nothing() }
    }

    /// Sort key: time, and index of the file.
    #[inline]
    pub(crate) fn place(&self) -> (u64, u32) {
        (self.time_ns, self.file)
    }
}

/// Limits of one reading, and the callback that watches it.
#[derive(Clone, Copy)]
pub struct ReadOptions<'w> {
    /// Stop after this many packets of any kind; None: read to the end.
    pub max_packets: Option<u64>,
    /// Refuse a capture whose open connections need more memory than this at one time. Applies to
    /// [`crate::read_each`], which holds packets; [`crate::packets`] does not.
    pub max_held_bytes: u64,
    /// Sort packets whose times are this far out of order at most, nanoseconds; 0: deliver them as
    /// they come. See [`crate::in_order`].
    pub sort_ns: u64,
    /// Called at least once for each 256 KiB of packets, and after a signal;
    /// [`ControlFlow::Break`] ends the reading with [`crate::CaptureErrorKind::Stopped`].
    pub watch: Option<&'w (dyn Fn(Progress) -> ControlFlow<()> + Sync)>,
}

impl Default for ReadOptions<'_> {
    /// 1 GiB holds 22 million packets: a transfer of 20 GB with its ACKs, or 3 million simultaneous
    /// connections.
    fn default() -> Self {
        ReadOptions { max_packets: None, max_held_bytes: 1 << 30, sort_ns: 0, watch: None }
    }
}

/// Consumer of packets. Unlike a closure, an `#[inline(always)]` implementation is certain to be
/// compiled together with the decoder of the most common packets, so that their fields stay in
/// registers.
pub trait Take {
    /// [`ControlFlow::Break`] ends the reading.
    fn take(&mut self, packet: &Packet) -> ControlFlow<()>;
}
