// SPDX-License-Identifier: MIT
//! Runs the scenario (JSON) on standard input and prints the result (JSON); time and event rate go
//! to standard error.

use ackwise_link as _;
use std::io::Read;

fn main() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).expect("readable input");
    let scenario = serde_json::from_str(&text).unwrap_or_else(|e| {
        eprintln!("scenario: {e}");
        std::process::exit(2);
    });
    let start = std::time::Instant::now();
    match ackwise_sim::run(&scenario, None) {
        Ok(result) => {
            let wall = start.elapsed().as_secs_f64();
            let hops = result.packet_hops;
            eprintln!("{hops} packet-hops in {wall:.3} s: {:.0} a second", hops as f64 / wall);
            println!("{}", serde_json::to_string(&result).expect("serializable"));
        }
        Err(e) => {
            eprintln!("{e}");
            std::process::exit(2);
        }
    }
}
