// SPDX-License-Identifier: MIT
//! Lists the TCP connections of captures: `cargo run --example list FILE...`

use ackwise_capture::{read_each, CaptureError, ReadOptions, Source};
use std::ops::ControlFlow;

fn main() -> Result<(), CaptureError> {
    for file in std::env::args_os().skip(1) {
        let capture = read_each(Source::named(file), &ReadOptions::default(), |number, connection| {
            let [client, server] = connection.endpoints;
            let [sent, received] = connection.directions.map(|d| d.payload_bytes);
            println!("{number}: {client} -> {server}, {sent} bytes there, {received} back");
            ControlFlow::Continue(())
        })?;
        println!("{} packets", capture.notes.packets);
    }
    Ok(())
}
