// SPDX-License-Identifier: MIT
//! Valid captures damaged at random are either read or refused.

mod fixtures;

use ackwise_capture::write::{
    fragments, frame, tunnelled, PcapStyle, PcapVersion, PcapWriter, PcapngWriter, TcpPacket,
};
use ackwise_capture::{link, packets, read, Capture, ReadOptions, Source, Tunnel};
use fixtures::{pcap, short_connection, v4, v6, Random, START_NS};
use std::ops::ControlFlow;

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
            w.statistics(i, START_NS, 8, 1);
            all.push(w.into_bytes());
        }
    }
    for link_type in [
        link::IEEE802_11,
        link::IEEE802_11_RADIOTAP,
        link::IEEE802_11_PRISM,
        link::IEEE802_11_AVS,
        link::PPI,
        link::NFLOG,
    ] {
        all.push(pcap(link_type, PcapStyle::default(), &short_connection(v6())));
    }
    let [a, b] = v4();
    for version in [PcapVersion::V2_3, PcapVersion::V2_2, PcapVersion::Modified] {
        for link_type in [link::PPP, link::PPP_ETHER, link::PPP_WITH_DIRECTION, link::SLIP] {
            let style = PcapStyle { version, ..PcapStyle::default() };
            all.push(pcap(link_type, style, &short_connection([a, b])));
        }
    }
    let mut w = PcapWriter::new(link::ETHERNET, PcapStyle::default());
    for tunnel in
        [Tunnel::IpInIp, Tunnel::Gre, Tunnel::Vxlan, Tunnel::Geneve, Tunnel::GtpU, Tunnel::L2tp, Tunnel::Tzsp]
    {
        for (time_ns, packet) in short_connection([a, b]) {
            let short = TcpPacket { payload_len: packet.payload_len.min(40), ..packet };
            w.frame(START_NS + time_ns, &frame(link::ETHERNET, &tunnelled(tunnel, &short.to_ip())));
        }
    }
    for part in fragments(&TcpPacket::new(a, b, 1, 1, 100).to_ip(), 40) {
        w.frame(START_NS, &frame(link::ETHERNET, &part));
    }
    all.push(w.into_bytes());
    all
}

/// Reads the bytes as two sources: time continues, and no packet is lost.
fn check_in_two_parts(bytes: &[u8], cut: usize) {
    let (first, second) = bytes.split_at(cut);
    let sources = [Source::reader(first, "first"), Source::reader(second, "second")];
    let (mut before, mut count) = (0, 0);
    let notes = packets(sources, &ReadOptions::default(), |packet| {
        assert!(packet.time_ns >= before, "time runs on");
        (before, count) = (packet.time_ns, count + 1);
        ControlFlow::Continue(())
    });
    if let Ok(notes) = notes {
        assert_eq!(notes.tcp_packets, count);
        assert_eq!(count + notes.skipped.values().sum::<u64>(), notes.packets);
        assert_eq!(notes.files.iter().map(|f| f.packets).sum::<u64>(), notes.packets);
    }
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
        if round % 8 == 0 {
            let other = &valid[random.below(valid.len())];
            check_in_two_parts(&[&bytes[..], other].concat(), bytes.len());
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
    // Both outcomes are frequent; otherwise the test would show nothing.
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
