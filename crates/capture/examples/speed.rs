// SPDX-License-Identifier: MIT
//! Speed of reading and decoding packets: `speed [FILE...]`.
//!
//! Each file is read five times, so that it comes from the page cache; the fastest reading counts.
//! Without a file, a million packets of 66 bytes in memory are read.

use ackwise_capture::write::{PcapStyle, PcapWriter, TcpPacket};
use ackwise_capture::{link, packets, CaptureError, ReadOptions, Source};
use std::ops::ControlFlow;
use std::time::Instant;

fn made() -> Vec<u8> {
    let [a, b] = ["10.0.0.1:40000", "10.0.0.2:80"].map(|a| a.parse().expect("an address"));
    let style = PcapStyle { snap_len: 66, ..PcapStyle::default() };
    let mut w = PcapWriter::new(link::ETHERNET, style);
    let stamps = [1, 1, 8, 10, 0, 0, 0, 2, 0, 0, 0, 1];
    for i in 0..1_000_000u32 {
        let (src, dst) = if i % 3 == 0 { (b, a) } else { (a, b) };
        w.tcp(u64::from(i) * 1000, &TcpPacket::new(src, dst, i, i, 0).options(&stamps));
    }
    w.into_bytes()
}

fn measure<'a>(name: &str, source: impl Fn() -> Source<'a>) -> Result<(), CaptureError> {
    let mut best_ns = u128::MAX;
    let mut read = 0;
    for _ in 0..5 {
        let (began, mut payload_bytes) = (Instant::now(), 0u64);
        let notes = packets([source()], &ReadOptions::default(), |packet| {
            payload_bytes += u64::from(packet.segment.payload_len);
            ControlFlow::Continue(())
        })?;
        std::hint::black_box(payload_bytes);
        best_ns = best_ns.min(began.elapsed().as_nanos());
        read = notes.packets;
    }
    let each_ns = best_ns as f64 / read.max(1) as f64;
    println!("{name}: {read} packets, {each_ns:.1} ns each, {:.1} million per second", 1e3 / each_ns);
    Ok(())
}

fn main() -> Result<(), CaptureError> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        let bytes = made();
        return measure("in memory", || Source::reader(&bytes[..], "in memory"));
    }
    files.iter().try_for_each(|file| measure(file, || Source::file(file)))
}
