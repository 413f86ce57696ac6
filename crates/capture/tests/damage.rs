// SPDX-License-Identifier: MIT
//! Valid captures, damaged at random: whatever comes, it is read or refused.

mod fixtures;

use ackwise_capture::write::{PcapStyle, PcapngWriter};
use ackwise_capture::{link, read, Capture, ReadOptions};
use fixtures::{pcap, short_connection, v4, v6, Random, START_NS};

fn valid() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for link_type in [link::ETHERNET, link::LINUX_SLL2, link::RAW, link::NULL] {
        for (big_endian, ends) in [(false, v4()), (true, v6())] {
            let style =
                PcapStyle { big_endian, nanoseconds: big_endian, snap_len: 100, ..PcapStyle::default() };
            all.push(pcap(link_type, style, &short_connection(ends)));
            let mut w = PcapngWriter::new(big_endian);
            let i = w.interface(link_type, 9);
            for (time_ns, mut packet) in short_connection(ends) {
                packet.payload_len = packet.payload_len.min(40);
                packet.options.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
                w.tcp(i, START_NS + time_ns, &packet);
            }
            all.push(w.into_bytes());
        }
    }
    all
}

fn check(capture: &Capture, file_len: usize) {
    let records: u64 = capture
        .connections
        .iter()
        .flat_map(|c| &c.directions)
        .map(|d| d.records.len() as u64 + d.old_packets)
        .sum();
    let skipped: u64 = capture.notes.skipped.values().sum();
    assert_eq!(records + skipped, capture.notes.packets, "every packet is somewhere");
    assert!(capture.notes.packets as usize * 16 <= file_len);
    for c in &capture.connections {
        let mut before = 0;
        for (d, r) in c.timeline() {
            assert!(r.time_ns >= before, "time runs on");
            before = r.time_ns;
            assert!(c.directions[d].sacks(r).len() <= 4);
            assert!(c.directions[d].segments_of(r.payload_len) >= 1);
            assert!(r.seq_end() >= r.seq);
        }
        assert!(c.end_ns <= capture.notes.duration_ns);
    }
}

#[test]
fn damaged_captures_are_read_or_refused() {
    let valid = valid();
    let mut random = Random(42);
    let (mut read_ok, mut refused) = (0, 0);
    for round in 0..60_000 {
        let mut bytes = valid[random.below(valid.len())].clone();
        for _ in 0..1 + random.below(8) {
            let at = random.below(bytes.len());
            match random.below(6) {
                0 => bytes[at] = random.below(256) as u8,
                1 => bytes[at] ^= 1 << random.below(8),
                2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
                3 => bytes.truncate(at.max(1)),
                4 => {
                    let end = (at + random.below(64)).min(bytes.len());
                    let copy = bytes[at..end].to_vec();
                    bytes.splice(at..at, copy);
                }
                _ => drop(bytes.drain(at..(at + random.below(16)).min(bytes.len() - 1).max(at))),
            }
        }
        match read(&bytes[..], "damaged", &ReadOptions::default()) {
            Ok(capture) => {
                check(&capture, bytes.len());
                read_ok += 1;
            }
            Err(e) => {
                assert!(e.offset as usize <= bytes.len(), "round {round}: {e}");
                assert!(!e.found.is_empty());
                refused += 1;
            }
        }
    }
    // Both ways are taken often, or the damage tests nothing.
    assert!(read_ok > 6_000 && refused > 6_000, "{read_ok} read, {refused} refused");
}

#[test]
fn noise_is_no_capture() {
    let mut random = Random(7);
    for _ in 0..2_000 {
        let bytes: Vec<u8> = (0..random.below(400)).map(|_| random.below(256) as u8).collect();
        assert!(read(&bytes[..], "noise", &ReadOptions::default()).is_err());
    }
}
