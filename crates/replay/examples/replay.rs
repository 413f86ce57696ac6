// SPDX-License-Identifier: MIT
//! Replays a capture through every policy and prints the result as JSON.
//!
//!     replay FILE [OPTIONS]
//!
//! OPTIONS: `ReplayOptions` as JSON, for example
//! `{"policies": [{"name": "delayed", "params": {"segments": 8}}], "min_data_segments": 100}`.

use ackwise_capture::read_file;
use ackwise_link as _;
use ackwise_replay::{replay, ReplayOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: replay FILE [OPTIONS]")?;
    let options: ReplayOptions = match arguments.next() {
        Some(text) => serde_json::from_str(&text)?,
        None => ReplayOptions::default(),
    };
    let capture = read_file(file)?;
    println!("{}", serde_json::to_string_pretty(&replay(&capture, &options)?)?);
    Ok(())
}
