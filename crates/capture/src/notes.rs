// SPDX-License-Identifier: MIT
//! Findings of a reading apart from the packets: per input, per interface, and what was skipped.

use crate::segment::{Protocol, SkipCause, Tunnel};
use crate::too_big::TooBig;
use crate::unpack::Compression;
use serde::Serialize;
use std::collections::BTreeMap;

/// File format of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// The classic format of tcpdump, with times in microseconds or nanoseconds.
    Pcap,
    /// Blocks, with interfaces and statistics.
    Pcapng,
}

/// The input ended inside a record; everything before it was kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Truncation {
    /// Byte offset at which the incomplete record starts, in the unpacked data.
    pub offset: u64,
    /// Number that its packet would have had, counted from 1.
    pub packet: u64,
    /// Bytes of the record that are present.
    pub present_bytes: u64,
    /// Bytes that the record claims to have.
    pub claimed_bytes: u64,
}

/// Everything about a reading that is not a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CaptureNotes {
    /// The inputs in the order of their first packets; [`crate::Packet::file`] is an index into
    /// this list.
    pub files: Vec<FileNotes>,
    /// Number of packets of any kind that were read.
    pub packets: u64,
    /// Number of packets with a TCP header.
    pub tcp_packets: u64,
    /// Number of other packets, by cause.
    pub skipped: BTreeMap<SkipCause, u64>,
    /// What those in IP carry.
    pub protocols: BTreeMap<Protocol, u64>,
    /// Time of the first TCP packet, nanoseconds since 1970.
    pub start_unix_ns: u64,
    /// Time from the first TCP packet to the last, nanoseconds.
    pub duration_ns: u64,
    /// Number of TCP packets with a time before the latest so far. They were sorted, or given that
    /// time, so that time never decreases.
    pub backward_steps: u64,
    /// The largest distance to the latest time, nanoseconds.
    pub largest_backward_ns: u64,
    /// How often such packets came in a row.
    pub backward_runs: u64,
    /// The largest number of them in a row.
    pub longest_backward_run: u64,
    /// Whether the packets were sorted by time, as far as they fit into the buffer.
    pub is_sorted: bool,
    /// Number of TCP packets whose payload or options were cut by the snap length.
    pub cut_packets: u64,
    /// Number of TCP packets whose options were cut: SACK blocks or timestamps may be missing.
    pub cut_options: u64,
    /// Number of first fragments of TCP packets.
    pub first_fragments: u64,
    /// Number of later fragments that were matched and count as TCP packets.
    pub later_fragments: u64,
    /// Number of TCP packets that came through a tunnel, by the innermost one.
    pub tunnels: BTreeMap<Tunnel, u64>,
    /// ICMP messages that a TCP packet was too large, in order.
    #[serde(skip)]
    pub too_big: Vec<TooBig>,
    /// Whether reading stopped at [`crate::ReadOptions::max_packets`].
    pub stopped_at_limit: bool,
}

/// A clock that is set is off by more than this: what is less is slewed (NTP's step threshold).
const CLOCK_STEP_NS: u64 = 128_000_000;
/// Packets out of order come a few at a time, or again and again; a clock is set once or twice,
/// and every packet after it is earlier.
const FEW_PACKETS: u64 = 64;
const FEW_RUNS: u64 = 3;

impl CaptureNotes {
    /// How far times are out of order, nanoseconds; None if they are not, or because the clock was
    /// set back.
    pub(crate) fn disorder_ns(&self) -> Option<u64> {
        let is_short = self.largest_backward_ns < CLOCK_STEP_NS && self.longest_backward_run <= FEW_PACKETS;
        (self.backward_steps > 0 && !self.is_sorted && (is_short || self.backward_runs > FEW_RUNS))
            .then_some(self.largest_backward_ns)
    }

    /// Packets that the capture lost by its own count; None if no input has a count. Counters of
    /// one interface continue across the files of a ring buffer, so the highest counts.
    pub fn dropped_packets(&self) -> Option<u64> {
        let mut highest: BTreeMap<_, u64> = BTreeMap::new();
        for (f, file) in self.files.iter().enumerate() {
            for (i, interface) in file.interfaces.iter().enumerate() {
                let Some(dropped) = interface.dropped() else { continue };
                // Without a name or a start time, two interfaces cannot be known to be the same.
                let same = match (&interface.name, interface.capture_start_ns) {
                    (Some(name), Some(start)) => (Some((name.as_str(), start)), 0, 0),
                    _ => (None, f, i),
                };
                let entry = highest.entry(same).or_default();
                *entry = dropped.max(*entry);
            }
        }
        (!highest.is_empty()).then(|| highest.values().sum())
    }
}

/// One input, as far as it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileNotes {
    /// Name as the caller gave it; "stdin" for standard input.
    pub name: String,
    /// None where the file is empty.
    pub format: Option<Format>,
    /// Compression of the file; None if it is not compressed.
    pub compression: Option<Compression>,
    /// Bytes read from it, unpacked.
    pub bytes: u64,
    /// Number of packets of any kind.
    pub packets: u64,
    /// Where the file ends inside a packet; everything before it was read.
    pub truncated: Option<Truncation>,
    /// Interfaces of all sections; [`crate::Packet::interface`] is an index into this list.
    pub interfaces: Vec<InterfaceNotes>,
}

impl FileNotes {
    /// Notes for an empty file.
    pub(crate) fn empty(name: String) -> Self {
        let interfaces = Vec::new();
        FileNotes { name, format: None, compression: None, bytes: 0, packets: 0, truncated: None, interfaces }
    }
}

/// The capture interface, as the file describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InterfaceNotes {
    /// Link type as in <https://www.tcpdump.org/linktypes.html>.
    pub link: u32,
    /// Maximum bytes kept of a packet; 0: no limit.
    pub snap_len: u32,
    /// Name of the interface.
    pub name: Option<String>,
    /// Filter of the capture.
    pub filter: Option<String>,
    /// Number of packets of any kind.
    pub packets: u64,
    /// Start time of the capture, nanoseconds since 1970.
    pub capture_start_ns: Option<u64>,
    /// Packets that the interface received (ifrecv).
    pub received_packets: Option<u64>,
    /// Packets that the interface dropped for lack of resources (ifdrop).
    pub interface_dropped_packets: Option<u64>,
    /// Packets that the operating system dropped (osdrop).
    pub system_dropped_packets: Option<u64>,
}

impl InterfaceNotes {
    /// Packets that the capture lost here; None if the file does not say.
    pub fn dropped(&self) -> Option<u64> {
        match (self.interface_dropped_packets, self.system_dropped_packets) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        }
    }
}
