// SPDX-License-Identifier: MIT
//! Any bytes: read or refused, and what was read keeps its promises.
#![no_main]

use ackwise_capture::{read, ReadOptions};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let capture = match read(bytes, "fuzz", &ReadOptions::default()) {
        Ok(capture) => capture,
        Err(e) => {
            assert!(e.offset <= bytes.len() as u64);
            assert!(!e.to_string().is_empty());
            return;
        }
    };
    let directions = || capture.connections.iter().flat_map(|c| &c.directions);
    let records: u64 = directions().map(|d| d.records.len() as u64 + d.old_packets).sum();
    assert_eq!(records + capture.skipped.values().sum::<u64>(), capture.packets);
    for c in &capture.connections {
        let mut before = 0;
        for (d, r) in c.timeline() {
            assert!(r.time_ns >= before && r.time_ns <= capture.duration_ns);
            assert!(r.seq_end() >= r.seq);
            assert!(c.directions[d].sacks(r).len() <= 4);
            before = r.time_ns;
        }
        assert!(c.duration_ns() <= capture.duration_ns);
    }
});
