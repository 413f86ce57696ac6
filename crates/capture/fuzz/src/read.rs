// SPDX-License-Identifier: MIT
//! Any bytes, compressed or not, are either read or refused, and what is read satisfies the
//! invariants.
#![no_main]

use ackwise_capture::{packets, read, ReadOptions, Source};
use std::ops::ControlFlow;

/// Options with a packet limit: a few bytes of zstd unpack to millions of packets.
fn limited() -> ReadOptions<'static> {
    ReadOptions { max_packets: Some(100_000), ..ReadOptions::default() }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    in_two_parts(bytes);
    let capture = match read(bytes, "fuzz", &limited()) {
        Ok(capture) => capture,
        Err(e) => {
            assert!(e.unpacked || e.offset <= bytes.len() as u64);
            assert!(!e.to_string().is_empty());
            return;
        }
    };
    let directions = || capture.connections.iter().flat_map(|c| &c.directions);
    let records: u64 = directions().map(|d| d.records.len() as u64 + d.old_packets).sum();
    assert_eq!(records + capture.notes.skipped.values().sum::<u64>(), capture.notes.packets);
    for c in &capture.connections {
        let mut before = 0;
        for (d, r) in c.timeline() {
            assert!(r.time_ns >= before && r.time_ns <= capture.notes.duration_ns);
            assert!(r.seq_end() >= r.seq);
            assert!(c.directions[d].sacks(r).len() <= 4);
            before = r.time_ns;
        }
        assert!(c.duration_ns() <= capture.notes.duration_ns);
    }
});

/// Reads the bytes as two sources, cut where the last byte says: time continues, and every packet
/// counts.
fn in_two_parts(bytes: &[u8]) {
    let Some(&last) = bytes.last() else { return };
    let (first, second) = bytes.split_at(bytes.len() * usize::from(last) / 256);
    let sources = [Source::reader(first, "first"), Source::reader(second, "second")];
    let (mut before, mut count) = (0, 0);
    let notes = packets(sources, &limited(), |packet| {
        assert!(packet.time_ns >= before);
        assert!(packet.segment.sack_blocks().len() <= 4);
        (before, count) = (packet.time_ns, count + 1);
        ControlFlow::Continue(())
    });
    if let Ok(notes) = notes {
        assert_eq!((notes.tcp_packets, notes.files.len()), (count, 2));
        assert_eq!(notes.files.iter().map(|f| f.packets).sum::<u64>(), notes.packets);
    }
}
