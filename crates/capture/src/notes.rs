// SPDX-License-Identifier: MIT
//! What a reading found beside its packets: per input, per interface, and what it left out.

use crate::packet::{SkipCause, Tunnel};
use crate::unpack::Compression;
use serde::Serialize;
use std::collections::BTreeMap;

/// File format of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    Pcap,
    Pcapng,
}

/// The input ended inside a record; everything before it was kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Truncation {
    /// Byte offset at which the incomplete record starts, in the unpacked data.
    pub offset: u64,
    /// Number that its packet would have had, counted from 1.
    pub packet: u64,
    /// Bytes of it that are there.
    pub present_bytes: u64,
    /// Bytes that it claims to have.
    pub claimed_bytes: u64,
}

/// Everything about a reading that is not a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CaptureNotes {
    /// The inputs in the order of their first packets; [`crate::Packet::file`] counts in it.
    pub files: Vec<FileNotes>,
    /// Packets of any kind, as far as the inputs were read.
    pub packets: u64,
    /// Those with a TCP header.
    pub tcp_packets: u64,
    /// The others, by cause.
    pub skipped: BTreeMap<SkipCause, u64>,
    /// Time of the first TCP packet, nanoseconds since 1970.
    pub start_unix_ns: u64,
    /// From the first TCP packet to the last.
    pub duration_ns: u64,
    /// TCP packets with a time before that of the packet in front of them; they were given its
    /// time, so that time never runs backwards.
    pub backward_steps: u64,
    /// The longest such step.
    pub largest_backward_ns: u64,
    /// TCP packets of which the snap length cut payload or options.
    pub cut_packets: u64,
    /// TCP packets of which it cut options: SACK blocks or timestamps may be missing.
    pub cut_options: u64,
    /// First fragments of TCP packets.
    pub first_fragments: u64,
    /// Fragments behind them that were found and count as TCP packets.
    pub later_fragments: u64,
    /// TCP packets that came through a tunnel, by the innermost one.
    pub tunnels: BTreeMap<Tunnel, u64>,
    /// Reading stopped at [`crate::ReadOptions::max_packets`].
    pub stopped_at_limit: bool,
}

impl CaptureNotes {
    /// Packets that the capture itself lost by its own account; none if no input says. Counters
    /// of one interface run on from file to file of a ring buffer, so the highest counts.
    pub fn dropped_packets(&self) -> Option<u64> {
        let mut highest: BTreeMap<_, u64> = BTreeMap::new();
        for (f, file) in self.files.iter().enumerate() {
            for (i, interface) in file.interfaces.iter().enumerate() {
                let Some(dropped) = interface.dropped() else { continue };
                // Without a name or a start nothing says that two interfaces are the same.
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
    /// As the caller gave it; "stdin" for the standard input.
    pub name: String,
    /// None where the file is empty.
    pub format: Option<Format>,
    pub compression: Option<Compression>,
    /// Read from it, unpacked.
    pub bytes: u64,
    /// Packets of any kind.
    pub packets: u64,
    /// The file ends inside a packet; all before it is there.
    pub truncated: Option<Truncation>,
    /// [`crate::Packet::interface`] counts in it, over all sections.
    pub interfaces: Vec<InterfaceNotes>,
}

impl FileNotes {
    /// Of a file without a byte.
    pub(crate) fn empty(name: String) -> Self {
        let interfaces = Vec::new();
        FileNotes { name, format: None, compression: None, bytes: 0, packets: 0, truncated: None, interfaces }
    }
}

/// Where packets were captured, as the file describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InterfaceNotes {
    /// Link type as in <https://www.tcpdump.org/linktypes.html>.
    pub link: u32,
    /// Most bytes kept of a packet; 0: no limit.
    pub snap_len: u32,
    /// Name of the interface.
    pub name: Option<String>,
    /// Filter of the capture.
    pub filter: Option<String>,
    /// Packets of any kind.
    pub packets: u64,
    /// When the capture began, nanoseconds since 1970.
    pub capture_start_ns: Option<u64>,
    /// Packets that the interface received (ifrecv).
    pub received_packets: Option<u64>,
    /// Packets that the interface dropped for want of resources (ifdrop).
    pub interface_dropped_packets: Option<u64>,
    /// Packets that the operating system dropped (osdrop).
    pub system_dropped_packets: Option<u64>,
}

impl InterfaceNotes {
    /// Packets that the capture lost here; none if the file does not say.
    pub fn dropped(&self) -> Option<u64> {
        match (self.interface_dropped_packets, self.system_dropped_packets) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        }
    }
}
