// SPDX-License-Identifier: MIT
//! Reads a capture for bench/diagnose: `cargo run --release --example totals WHAT THREADS FILE`
//!
//! WHAT is `diagnosis`, or `statistics`: the figures that tcptrace and tshark also count.

use ackwise_capture::{CaptureError, ReadOptions, Source};
use ackwise_diagnose::{Counts, Diagnosis, Effort, Rtt};

/// The allocator of the Python engine.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, what, threads, file] = &arguments[..] else {
        return Err("give WHAT THREADS FILE".into());
    };
    let effort = Effort { threads: threads.parse()?, ..Effort::default() };
    let (sources, options) = ([Source::file(file)], ReadOptions::default());
    match what.as_str() {
        "diagnosis" => show(ackwise_diagnose::diagnose(sources, &options, &effort), |h| (&h.counts, &h.rtt)),
        "statistics" => {
            show(ackwise_diagnose::statistics(sources, &options, &effort), |h| (&h.counts, &h.rtt))
        }
        _ => return Err("WHAT is diagnosis or statistics".into()),
    }?;
    Ok(())
}

fn show<H>(
    diagnosis: Result<Diagnosis<H>, CaptureError>,
    of: fn(&H) -> (&Counts, &Rtt),
) -> Result<(), CaptureError> {
    let diagnosis = diagnosis?;
    let halves = || diagnosis.connections.iter().flat_map(|c| &c.halves).map(of);
    println!(
        "{{\"packets\": {}, \"connections\": {}, \"cut_connections\": {}, \"left_out_connections\": {}, \
         \"retransmissions\": {}, \"rtt_samples\": {}}}",
        diagnosis.notes.tcp_packets,
        diagnosis.connections.len(),
        diagnosis.cut_connections,
        diagnosis.left_out.connections,
        halves().map(|(counts, _)| counts.sent.retransmissions.total()).sum::<u64>(),
        halves().map(|(_, rtt)| rtt.data_ns.samples()).sum::<u64>(),
    );
    Ok(())
}
