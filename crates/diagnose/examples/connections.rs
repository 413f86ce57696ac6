// SPDX-License-Identifier: MIT
//! Statistics of a capture as JSON, one connection a line: `cargo run --example connections FILE...`

use ackwise_capture::{ReadOptions, Source};
use ackwise_diagnose::{diagnose, Effort};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sources: Vec<_> = std::env::args_os().skip(1).map(Source::named).collect();
    let diagnosis = diagnose(sources, &ReadOptions::default(), &Effort::default())?;
    for connection in &diagnosis.connections {
        println!("{}", serde_json::to_string(connection)?);
    }
    Ok(())
}
