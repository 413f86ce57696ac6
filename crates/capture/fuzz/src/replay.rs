// SPDX-License-Identifier: MIT
//! Any readable capture can be replayed, and no policy beats the optimum on it.
#![no_main]

use ackwise_capture::{read, ReadOptions};
use ackwise_core::Entry;
use ackwise_replay::{replay, PolicyChoice, Price, ReplayOptions, CAPTURED};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // The first bytes choose price and reader, the rest is the capture.
    let Some((&[rho, unit, lag], bytes)) = bytes.split_first_chunk::<3>() else { return };
    let limit = ReadOptions { max_packets: Some(200), ..ReadOptions::default() };
    let Ok(capture) = read(bytes, "fuzz", &limit) else { return };
    let both = |e: Entry| [true, false].map(|clamp| PolicyChoice { clamp, ..PolicyChoice::new(e.name()) });
    let options = ReplayOptions {
        policies: Entry::all().flat_map(both).collect(),
        min_data_segments: 1,
        price: Price::new(1 + u16::from(rho) * 3, 1 << (unit % 40)).expect("in range"),
        reader_lag_ns: if lag < 128 { 0 } else { 1 << (lag - 128).min(63) },
        traced_directions: usize::MAX,
        ..ReplayOptions::default()
    };
    let result = replay(&capture, &options).expect("the choices are valid");
    for d in &result.directions {
        for p in &d.policies {
            let reported: u64 = p.trace.iter().flat_map(|t| &t.first).map(|a| a.segments).sum();
            assert_eq!(reported, d.data_segments, "{}: every segment once", p.policy);
            assert!(p.cost_scaled >= d.optimum.cost_scaled, "{}: beats the optimum", p.policy);
            let captured = p.policy == CAPTURED;
            assert!(captured || p.ack_latency_ns.max <= 500_000_000, "{}: too late", p.policy);
        }
    }
});
