// SPDX-License-Identifier: MIT
//! Valid captures for fuzzing to start from: `fuzz_seeds READ_FOLDER REPLAY_FOLDER`.

use ackwise_capture::link;
use ackwise_capture::tcp_flag::{ACK, FIN, PSH, SYN};
use ackwise_capture::write::{PcapStyle, PcapWriter, PcapngWriter, TcpPacket};
use std::net::SocketAddr;
use std::path::Path;

const MS: u64 = 1_000_000;

fn connection([a, b]: [SocketAddr; 2]) -> Vec<(u64, TcpPacket)> {
    let syn = [2, 4, 2, 0, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 2];
    let stamps = [1, 1, 8, 10, 0, 0, 0, 2, 0, 0, 0, 1];
    let sack = [1, 1, 5, 10, 0, 0, 0, 150, 0, 0, 0, 200];
    let p = TcpPacket::new;
    vec![
        (0, p(a, b, 0, 0, 0).flags(SYN).options(&syn)),
        (MS, p(b, a, 0, 1, 0).flags(SYN | ACK).options(&syn)),
        (2 * MS, p(a, b, 1, 1, 0).options(&stamps)),
        (3 * MS, p(a, b, 1, 1, 50).options(&stamps).ecn(2)),
        (4 * MS, p(a, b, 151, 1, 50).flags(PSH | ACK).options(&stamps).ecn(3)),
        (5 * MS, p(b, a, 1, 51, 0).options(&sack).window(40)),
        (6 * MS, p(a, b, 51, 1, 100).options(&stamps)),
        (7 * MS, p(b, a, 1, 201, 20).options(&stamps)),
        (90 * MS, p(a, b, 201, 21, 0).flags(FIN | ACK)),
        (91 * MS, p(b, a, 21, 202, 0)),
    ]
}

fn main() -> std::io::Result<()> {
    let folders: Vec<String> = std::env::args().skip(1).collect();
    let [read, replay] = &folders[..] else {
        eprintln!("usage: fuzz_seeds READ_FOLDER REPLAY_FOLDER");
        std::process::exit(2);
    };
    let v4 = ["10.0.0.1:1000", "10.0.0.2:80"].map(|a| a.parse().expect("an address"));
    let v6 = ["[fd00::1]:1000", "[fd00::2]:80"].map(|a| a.parse().expect("an address"));
    let links = [link::ETHERNET, link::LINUX_SLL, link::LINUX_SLL2, link::RAW, link::NULL, link::LOOP];
    let mut seeds = Vec::new();
    for (i, link_type) in links.into_iter().enumerate() {
        let big_endian = i % 2 == 1;
        let packets = connection(if i % 3 == 2 { v6 } else { v4 });
        let style = PcapStyle { big_endian, nanoseconds: i % 3 == 1, snap_len: 0 };
        let mut pcap = PcapWriter::new(link_type, style);
        let mut pcapng = PcapngWriter::new(big_endian);
        let interface = pcapng.interface(link_type, [6, 9, 0x80 | 20][i % 3]);
        for (time_ns, packet) in &packets {
            pcap.tcp(*time_ns, packet);
            pcapng.tcp(interface, *time_ns, packet);
        }
        seeds.push(pcap.into_bytes());
        seeds.push(pcapng.into_bytes());
    }
    for (i, seed) in seeds.iter().enumerate() {
        std::fs::write(Path::new(read).join(format!("seed-{i:02}")), seed)?;
        let chosen = [&[80, 23, 0], &seed[..]].concat();
        std::fs::write(Path::new(replay).join(format!("seed-{i:02}")), chosen)?;
    }
    Ok(())
}
