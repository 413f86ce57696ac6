// SPDX-License-Identifier: MIT
//! Compares the reader with tshark on the same capture: connections, numbers, lengths and windows
//! must agree.

mod fixtures;

use ackwise_capture::tcp_flag::{ACK, PSH, SYN};
use ackwise_capture::write::{PcapngWriter, TcpPacket};
use ackwise_capture::{link, read_file};
use fixtures::{Random, MS, START_NS, SYN_OPTIONS};
use std::collections::BTreeMap;
use std::process::Command;

/// Interleaved transfers with retransmissions, in two link types and both IP versions.
fn transfers() -> Vec<u8> {
    let mut random = Random(99);
    let mut w = PcapngWriter::new(false);
    let interfaces = [w.interface(link::ETHERNET, 9), w.interface(link::LINUX_SLL2, 9)];
    let mut open = Vec::new();
    let mut now = START_NS;
    for n in 0..6u16 {
        let text = match n % 2 {
            0 => [format!("10.0.0.{n}:5000"), "10.1.0.1:80".to_owned()],
            _ => [format!("[fd00::{n}]:5000"), "[fd00::ffff]:443".to_owned()],
        };
        let [a, b] = text.map(|t| t.parse().expect("an address"));
        let (isn_a, isn_b) = (u32::MAX - 3000 * u32::from(n), 1_000_000 * u32::from(n));
        let i = interfaces[usize::from(n / 3)];
        let p = TcpPacket::new;
        w.tcp(i, now, &p(a, b, isn_a, 0, 0).flags(SYN).options(&SYN_OPTIONS));
        let back = p(b, a, isn_b, isn_a.wrapping_add(1), 0).flags(SYN | ACK);
        w.tcp(i, now + MS, &back.options(&SYN_OPTIONS));
        now += 2 * MS;
        open.push((a, b, i, isn_a.wrapping_add(1), isn_b.wrapping_add(1)));
    }
    for _ in 0..400 {
        now += random.below(3_000_000) as u64;
        let k = random.below(open.len());
        let (a, b, i, seq_a, seq_b) = &mut open[k];
        let window = 100 + random.below(400) as u16;
        match random.below(4) {
            0 => {
                let packet = TcpPacket::new(*a, *b, *seq_a, *seq_b, 0).window(window);
                w.tcp(*i, now, &packet);
            }
            1 => {
                // A retransmission, but none from before the SYN, which tshark numbers from 2^32.
                let sent = seq_b.wrapping_sub(1_000_000 * k as u32 + 1);
                let len = sent.min(500);
                let packet = TcpPacket::new(*b, *a, seq_b.wrapping_sub(len), *seq_a, len);
                w.tcp(*i, now, &packet.window(window));
            }
            _ => {
                let len = 1 + random.below(1460) as u32;
                let packet = TcpPacket::new(*b, *a, *seq_b, *seq_a, len).flags(PSH | ACK);
                w.tcp(*i, now, &packet.window(window));
                *seq_b = seq_b.wrapping_add(len);
            }
        }
    }
    w.into_bytes()
}

#[test]
fn agrees_with_tshark() {
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("skipped: tshark is not installed (apt-get install tshark)");
        return;
    }
    let path = std::env::temp_dir().join(format!("ackwise-tshark-{}.pcapng", std::process::id()));
    std::fs::write(&path, transfers()).expect("a temporary file");
    let fields = ["frame.number", "tcp.stream", "tcp.seq", "tcp.ack", "tcp.len", "tcp.window_size"];
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&path).args(["-T", "fields"]);
    command.args(fields.iter().flat_map(|f| ["-e", f]));
    let output = command.output().expect("tshark runs");
    let capture = read_file(&path);
    std::fs::remove_file(&path).expect("the file is ours");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let mut expected: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for line in String::from_utf8(output.stdout).expect("text").lines() {
        let n: Vec<u64> = line.split('\t').map(|f| f.parse().unwrap_or(0)).collect();
        expected.insert(n[0], n[1..].to_vec());
    }
    let mut found = BTreeMap::new();
    for (stream, c) in capture.expect("readable").connections.iter().enumerate() {
        for (_, r) in c.timeline() {
            let window = r.window.into();
            found.insert(r.packet, vec![stream as u64, r.seq, r.ack, r.payload_len.into(), window]);
        }
    }
    assert_eq!(expected.len(), 412);
    for (packet, fields) in &expected {
        assert_eq!(found.get(packet), Some(fields), "packet {packet}: stream, seq, ack, len, window");
    }
    assert_eq!(found.len(), expected.len());
}
