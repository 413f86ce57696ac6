// SPDX-License-Identifier: MIT
//! Diagnoses a capture for bench/diagnose: `cargo run --release --example totals THREADS FILE`

use ackwise_capture::{ReadOptions, Source};
use std::num::NonZeroUsize;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, threads, file] = &arguments[..] else {
        return Err("give THREADS FILE".into());
    };
    let threads: NonZeroUsize = threads.parse()?;
    let diagnosis = ackwise_diagnose::diagnose([Source::file(file)], &ReadOptions::default(), threads)?;
    let halves = || diagnosis.connections.iter().flat_map(|c| &c.halves);
    let sum = |figure: fn(&ackwise_diagnose::Half) -> u64| halves().map(figure).sum::<u64>();
    println!(
        "{{\"packets\": {}, \"connections\": {}, \"retransmissions\": {}, \"rtt_samples\": {}}}",
        diagnosis.notes.tcp_packets,
        diagnosis.connections.len(),
        sum(|h| h.counts.sent.retransmissions.total()),
        sum(|h| h.rtt.data_ns.samples()),
    );
    Ok(())
}
