// SPDX-License-Identifier: MIT
//! Run time of the offline optimum, compared with one plain pass over the same memory.
//!
//!     optimum_speed [--arrivals N] [--json]

use ackwise_link as _;
use ackwise_replay::optimum::{optimum, Arrival};
use ackwise_replay::Price;
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (mut count, mut json) = (10_000_000usize, false);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => json = true,
            "--arrivals" => count = arguments.next().ok_or("--arrivals: give a number")?.parse()?,
            other => return Err(format!("{other}: give --arrivals N or --json").into()),
        }
    }
    let mut results = Vec::new();
    // Blocks without a gap worth an ACK are short on slow links and long on fast ones, where nearly
    // all arrivals have to be weighed against each other.
    for (name, mean_gap_ns) in [("1 Gbit/s", 12_000), ("10 Mbit/s", 1_200_000), ("sparse", 40_000_000)] {
        let arrivals = arrivals(count, mean_gap_ns);
        let seconds = fastest(|| optimum(&arrivals, &[], Price::default()).map(|o| o.acks));
        let pass = fastest(|| -> Result<u64, std::convert::Infallible> {
            Ok(arrivals.iter().fold(0u64, |sum, a| sum.wrapping_add(a.time_ns) ^ u64::from(a.weight)))
        });
        let found = optimum(&arrivals, &[], Price::default())?;
        results.push((name, seconds, pass, found.acks, found.cost));
    }
    if json {
        let rows: Vec<_> = results
            .iter()
            .map(|(name, seconds, pass, acks, cost)| {
                serde_json::json!({
                    "arrivals": count, "trace": name, "seconds": seconds, "memory_pass_seconds": pass,
                    "ratio": seconds / pass, "ns_per_arrival": seconds * 1e9 / count as f64,
                    "acks": acks, "cost": cost,
                })
            })
            .collect();
        println!("{}", serde_json::json!({ "benchmark": "optimum", "rows": rows }));
        return Ok(());
    }
    println!("{count} arrivals, fastest of {ROUNDS}");
    println!(
        "{:<10} {:>9} {:>9} {:>7} {:>11} {:>10}",
        "trace", "optimum", "pass", "ratio", "ns/arrival", "ACKs"
    );
    for (name, seconds, pass, acks, _) in results {
        println!(
            "{name:<10} {seconds:>7.3} s {pass:>7.4} s {:>7.1} {:>11.1} {acks:>10}",
            seconds / pass,
            seconds * 1e9 / count as f64
        );
    }
    Ok(())
}

/// Arrivals with gaps uniform between 0 and twice the mean.
fn arrivals(count: usize, mean_gap_ns: u64) -> Vec<Arrival> {
    let (mut state, mut time_ns) = (1u64, 0);
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        time_ns += (state >> 33) % (2 * mean_gap_ns);
        Arrival { time_ns, weight: 1 }
    };
    (0..count).map(next).collect()
}

fn fastest<T, E>(work: impl Fn() -> Result<T, E>) -> f64 {
    let seconds = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        let _ = black_box(work());
        start.elapsed().as_secs_f64()
    });
    seconds.fold(f64::INFINITY, f64::min)
}
