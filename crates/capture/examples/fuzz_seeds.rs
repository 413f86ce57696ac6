// SPDX-License-Identifier: MIT
//! Writes valid captures as seeds for fuzzing: `fuzz_seeds READ_FOLDER REPLAY_FOLDER`.

use ackwise_capture::link;
use ackwise_capture::tcp_flag::{ACK, FIN, PSH, SYN};
use ackwise_capture::write::{
    fragments, frame, tunnelled, PcapStyle, PcapVersion, PcapWriter, PcapngWriter, TcpPacket,
};
use ackwise_capture::Tunnel;
use flate2::write::GzEncoder;
use std::io::Write;
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

/// A connection through every tunnel, with a packet in fragments.
fn through_tunnels(ends: [SocketAddr; 2]) -> Vec<u8> {
    let mut w = PcapWriter::new(link::ETHERNET, PcapStyle::default());
    for ((time_ns, packet), tunnel) in connection(ends).iter().zip(Tunnel::ALL.iter().cycle()) {
        w.frame(*time_ns, &frame(link::ETHERNET, &tunnelled(*tunnel, &packet.to_ip())));
    }
    for part in fragments(&TcpPacket::new(ends[0], ends[1], 201, 21, 60).to_ip(), 40) {
        w.frame(80 * MS, &frame(link::ETHERNET, &part));
    }
    w.into_bytes()
}

fn main() -> std::io::Result<()> {
    let folders: Vec<String> = std::env::args().skip(1).collect();
    let [read, replay] = &folders[..] else {
        eprintln!("usage: fuzz_seeds READ_FOLDER REPLAY_FOLDER");
        std::process::exit(2);
    };
    let v4 = ["10.0.0.1:1000", "10.0.0.2:80"].map(|a| a.parse().expect("an address"));
    let v6 = ["[fd00::1]:1000", "[fd00::2]:80"].map(|a| a.parse().expect("an address"));
    let links = [
        (link::ETHERNET, PcapVersion::V2_4),
        (link::LINUX_SLL, PcapVersion::V2_3),
        (link::LINUX_SLL2, PcapVersion::V2_2),
        (link::RAW, PcapVersion::V543),
        (link::NULL, PcapVersion::Modified),
        (link::LOOP, PcapVersion::V2_4),
        (link::PPP, PcapVersion::V2_4),
        (link::PPP_ETHER, PcapVersion::V2_4),
        (link::PPP_WITH_DIRECTION, PcapVersion::V2_4),
        (link::SLIP, PcapVersion::V2_4),
        (link::IEEE802_11_RADIOTAP, PcapVersion::V2_4),
        (link::IEEE802_11_PRISM, PcapVersion::V2_4),
        (link::IEEE802_11_AVS, PcapVersion::V2_4),
        (link::PPI, PcapVersion::V2_4),
        (link::NFLOG, PcapVersion::V2_4),
    ];
    let mut seeds = vec![through_tunnels(v4), through_tunnels(v6)];
    for (i, (link_type, version)) in links.into_iter().enumerate() {
        let big_endian = i % 2 == 1;
        let packets = connection(if i % 3 == 2 { v6 } else { v4 });
        let style = PcapStyle { big_endian, nanoseconds: i % 3 == 1, snap_len: 0, version };
        let mut pcap = PcapWriter::new(link_type, style);
        let mut pcapng = PcapngWriter::new(big_endian);
        let interface = pcapng.interface_with(link_type, [6, 9, 0x80 | 20][i % 3], 100, &[(2, b"eth0")]);
        for (time_ns, packet) in &packets {
            pcap.tcp(*time_ns, packet);
            pcapng.tcp(interface, *time_ns, packet);
        }
        pcapng.statistics(interface, 0, 10, 1);
        seeds.push(pcap.into_bytes());
        seeds.push(pcapng.into_bytes());
    }
    for (i, seed) in seeds.iter().enumerate() {
        let put =
            |kind: &str, bytes: &[u8]| std::fs::write(Path::new(read).join(format!("{kind}-{i:02}")), bytes);
        put("seed", seed)?;
        // Two concatenated files: as two sources, they are cut at the end of the first.
        if i % 4 == 0 {
            let mut gzip = GzEncoder::new(Vec::new(), flate2::Compression::new(i as u32 % 10));
            gzip.write_all(seed)?;
            put("gzip", &gzip.finish()?)?;
            let mut zstd = Vec::with_capacity(zstd_safe::compress_bound(seed.len()));
            zstd_safe::compress(&mut zstd, seed, 1)
                .map_err(|code| std::io::Error::other(zstd_safe::get_error_name(code)))?;
            put("zstd", &zstd)?;
            put("twice", &[&seed[..], seed, &[128]].concat())?;
        }
        let chosen = [&[80, 23, 0], &seed[..]].concat();
        std::fs::write(Path::new(replay).join(format!("seed-{i:02}")), chosen)?;
    }
    Ok(())
}
