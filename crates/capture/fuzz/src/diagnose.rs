// SPDX-License-Identifier: MIT
//! Any readable capture can be diagnosed, with any number of threads; every interval has exactly
//! one limit.
#![no_main]

use ackwise_capture::{read, ReadOptions, Source};
use ackwise_diagnose::{diagnose, statistics, Effort};
use std::num::NonZeroUsize;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let limit = ReadOptions { max_packets: Some(1000), ..ReadOptions::default() };
    let effort = |n| Effort { threads: NonZeroUsize::new(n).expect("not zero"), ..Effort::default() };
    let Ok(found) = diagnose([Source::reader(bytes, "fuzz")], &limit, &effort(1)) else { return };
    let again = diagnose([Source::reader(bytes, "fuzz")], &limit, &effort(2)).expect("read before");
    assert_eq!(serde_json::to_string(&found).ok(), serde_json::to_string(&again).ok());
    let counted = statistics([Source::reader(bytes, "fuzz")], &limit, &effort(1)).expect("read before");
    assert_eq!(found.connections.len(), counted.connections.len());
    // A replay finds its directions by the number of the connection.
    let read = read(bytes, "fuzz", &limit).expect("read before");
    assert_eq!(read.connections.len(), found.connections.len());
    for (one, other) in read.connections.iter().zip(&found.connections) {
        assert_eq!(one.endpoints, other.endpoints);
    }
    let mut packets = 0;
    for (whole, counts) in found.connections.iter().zip(&counted.connections) {
        assert!(whole.start_ns <= whole.end_ns && whole.end_ns <= found.notes.duration_ns);
        packets += whole.packets;
        for (half, same) in whole.halves.iter().zip(&counts.halves) {
            assert_eq!(half.counts, same.counts);
            let shared: u64 = half.limits.limits.values().map(|share| share.ns).sum();
            let spans: u64 = half.limits.spans.iter().map(|span| span.to_ns - span.from_ns).sum();
            assert!(shared <= whole.end_ns - whole.start_ns, "more time than there was");
            assert_eq!(shared, spans, "spans leave no gaps");
        }
    }
    assert_eq!(packets, found.notes.tcp_packets);
});
