// SPDX-License-Identifier: MIT
//! Compares the reader with tshark, tcpdump, editcap and mergecap on the same bytes.

mod fixtures;

use ackwise_capture::tcp_flag::{FIN, SYN};
use ackwise_capture::write::{
    fragments, frame, tunnelled, PcapStyle, PcapVersion, PcapWriter, PcapngWriter, TcpPacket,
};
use ackwise_capture::{link, packets, CaptureErrorKind, CaptureNotes, Packet, ReadOptions, Source, Tunnel};
use fixtures::{pcap, short_connection, v4, v6, Folder, Random, MS, START_NS};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};

/// A TCP packet as both programs describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    number: u64,
    time_ns: u64,
    src: String,
    dst: String,
    ports: (u16, u16),
    seq: u32,
    ack: u32,
    flags: u16,
    payload_len: u32,
    ttl: u8,
}

fn ours(sources: &[&Path]) -> (Vec<Packet>, CaptureNotes) {
    let mut found = Vec::new();
    let sources: Vec<_> = sources.iter().map(Source::file).collect();
    let notes = packets(sources, &ReadOptions::default(), |p| {
        found.push(p.clone());
        ControlFlow::Continue(())
    });
    (found, notes.expect("readable"))
}

fn rows(found: &[Packet]) -> Vec<Row> {
    let row = |p: &Packet| Row {
        number: p.number,
        time_ns: p.time_ns,
        src: p.segment.src.ip().to_string(),
        dst: p.segment.dst.ip().to_string(),
        ports: (p.segment.src.port(), p.segment.dst.port()),
        seq: p.segment.seq,
        ack: p.segment.ack,
        flags: p.segment.flags,
        payload_len: p.segment.payload_len,
        ttl: p.segment.ip_ttl,
    };
    found.iter().map(row).collect()
}

/// Output of a program; None if it is not installed.
fn said(program: &str, words: &[&str]) -> Option<String> {
    let output = match Command::new(program).args(words).stderr(Stdio::piped()).output() {
        Ok(output) => output,
        Err(_) => {
            eprintln!("skipped: {program} is not installed (apt-get install tshark tcpdump)");
            return None;
        }
    };
    assert!(output.status.success(), "{program} {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn epoch_ns(text: &str) -> u64 {
    let (seconds, fraction) = text.split_once('.').expect("a time with a fraction");
    let fraction = format!("{fraction:0<9}");
    seconds.parse::<u64>().expect("seconds") * 1_000_000_000
        + fraction[..9].parse::<u64>().expect("a fraction")
}

/// The packets that tshark sees in a file; for tunnels, the innermost headers.
fn tshark(path: &Path) -> Option<Vec<Row>> {
    let fields = [
        "frame.number",
        "frame.time_epoch",
        "ip.src",
        "ip.dst",
        "ipv6.src",
        "ipv6.dst",
        "tcp.srcport",
        "tcp.dstport",
        "tcp.seq_raw",
        "tcp.ack_raw",
        "tcp.flags",
        "tcp.len",
        "ip.ttl",
        "ipv6.hlim",
    ];
    let mut words = vec!["-r", path.to_str()?, "-Y", "tcp", "-T", "fields", "-E", "occurrence=l"];
    words.extend(["-d", "mpls.label==32,pwethcw"]);
    words.extend(fields.iter().flat_map(|f| ["-e", f]));
    let text = said("tshark", &words)?;
    let row = |line: &str| {
        let f: Vec<&str> = line.split('\t').collect();
        let v6 = !f[4].is_empty();
        Row {
            number: f[0].parse().expect("a number"),
            time_ns: epoch_ns(f[1]),
            src: f[if v6 { 4 } else { 2 }].to_owned(),
            dst: f[if v6 { 5 } else { 3 }].to_owned(),
            ports: (f[6].parse().expect("a port"), f[7].parse().expect("a port")),
            seq: f[8].parse().expect("a number"),
            ack: f[9].parse().unwrap_or(0),
            flags: u16::from_str_radix(f[10].trim_start_matches("0x"), 16).expect("flags"),
            payload_len: f[11].parse().expect("a length"),
            ttl: f[if v6 { 13 } else { 12 }].parse().expect("a TTL"),
        }
    };
    Some(text.lines().map(row).collect())
}

/// Times in nanoseconds that tcpdump prints for a file, with sequence number and length.
fn tcpdump(path: &Path) -> Option<Vec<(u64, String)>> {
    let precision = "--time-stamp-precision=nano";
    let text = said("tcpdump", &["-r", path.to_str()?, "-ttnSv", "-K", precision])?;
    let joined = text.replace("\n    ", " ");
    let row = |line: &str| {
        let (time, rest) = line.split_once(' ').expect("a time");
        let payload_len = rest.rsplit_once(", length ").expect("TCP").1.split(':').next().unwrap_or("");
        let ports = rest.split_once("Flags [").expect("TCP").1;
        (epoch_ns(time), format!("{} {payload_len}", ports.split(',').nth(1).unwrap_or("").trim()))
    };
    Some(joined.lines().map(row).collect())
}

fn as_tcpdump_prints(p: &Packet) -> (u64, String) {
    let (seq, payload_len) = (p.segment.seq, p.segment.payload_len);
    let numbers = match payload_len {
        0 if p.segment.has(SYN | FIN) => format!("seq {seq}"),
        0 => format!("ack {}", p.segment.ack),
        _ => format!("seq {seq}:{}", seq + payload_len),
    };
    (p.time_ns, format!("{numbers} {payload_len}"))
}

#[test]
fn every_pcap_variant_reads_as_tcpdump_reads_it() {
    let folder = Folder::new("pcap-variants");
    for version in
        [PcapVersion::V2_4, PcapVersion::V2_3, PcapVersion::V2_2, PcapVersion::V543, PcapVersion::Modified]
    {
        for (big_endian, nanoseconds) in [(false, false), (false, true), (true, false), (true, true)] {
            if nanoseconds && version == PcapVersion::Modified {
                continue;
            }
            for snap_len in [0, 66] {
                let style = PcapStyle { big_endian, nanoseconds, snap_len, version };
                let path = folder.file("x.pcap", &pcap(link::ETHERNET, style, &short_connection(v4())));
                let (found, notes) = ours(&[&path]);
                assert_eq!(found.len(), 8, "{style:?}");
                assert_eq!(notes.cut_packets > 0, snap_len > 0);
                let Some(expected) = tcpdump(&path) else { return };
                assert_eq!(found.iter().map(as_tcpdump_prints).collect::<Vec<_>>(), expected, "{style:?}");
            }
        }
    }
}

#[test]
fn link_types_read_as_tshark_reads_them() {
    let folder = Folder::new("link-types");
    for link_type in [
        link::ETHERNET,
        link::LINUX_SLL,
        link::LINUX_SLL2,
        link::RAW,
        link::RAW_BSD,
        link::NULL,
        link::LOOP,
        link::PPP,
        link::PPP_HDLC,
        link::PPP_ETHER,
        link::CISCO_HDLC,
        link::PPP_WITH_DIRECTION,
        link::IEEE802_11,
        link::IEEE802_11_RADIOTAP,
        link::IEEE802_11_PRISM,
        link::IEEE802_11_AVS,
        link::PPI,
        link::NFLOG,
    ] {
        for ends in [v4(), v6()] {
            let path = folder.file("x.pcap", &pcap(link_type, PcapStyle::default(), &short_connection(ends)));
            let (found, _) = ours(&[&path]);
            assert_eq!(found.len(), 8, "link type {link_type}");
            let Some(expected) = tshark(&path) else { return };
            assert_eq!(rows(&found), expected, "link type {link_type}");
        }
    }
}

#[test]
fn link_types_that_tshark_does_not_know_read_as_tcpdump_reads_them() {
    let folder = Folder::new("tcpdump-links");
    for link_type in [link::SLIP, link::PPP_PPPD] {
        let path = folder.file("x.pcap", &pcap(link_type, PcapStyle::default(), &short_connection(v4())));
        let (found, _) = ours(&[&path]);
        let Some(expected) = tcpdump(&path) else { return };
        assert_eq!(
            found.iter().map(as_tcpdump_prints).collect::<Vec<_>>(),
            expected,
            "link type {link_type}"
        );
    }
}

#[test]
fn tunnels_read_as_tshark_reads_them() {
    let folder = Folder::new("tunnels");
    for (tunnel, name) in [
        (Tunnel::IpInIp, "ip-in-ip"),
        (Tunnel::Gre, "gre"),
        (Tunnel::Vxlan, "vxlan"),
        (Tunnel::Geneve, "geneve"),
        (Tunnel::GtpU, "gtp-u"),
        (Tunnel::L2tp, "l2tp"),
        (Tunnel::Teredo, "teredo"),
        (Tunnel::Tzsp, "tzsp"),
    ] {
        for ends in [v4(), v6()] {
            if tunnel == Tunnel::Teredo && ends == v4() {
                continue; // it carries IPv6 only
            }
            for snap_len in [0, 150] {
                let mut w = PcapWriter::new(link::ETHERNET, PcapStyle { snap_len, ..PcapStyle::default() });
                for (time_ns, packet) in short_connection(ends) {
                    let outer = tunnelled(tunnel, &packet.to_ip());
                    w.frame(START_NS + time_ns, &frame(link::ETHERNET, &outer));
                }
                let path = folder.file("x.pcap", &w.into_bytes());
                let (found, notes) = ours(&[&path]);
                assert_eq!(notes.tunnels.get(&tunnel), Some(&8), "{name}");
                assert!(found
                    .iter()
                    .all(|p| (p.segment.tunnel, p.segment.tunnel_depth) == (Some(tunnel), 1)));
                let Some(expected) = tshark(&path) else { return };
                assert_eq!(rows(&found), expected, "{name}, snap length {snap_len}");
            }
        }
    }
    // Nested tunnels.
    let inner = TcpPacket::new(v4()[0], v4()[1], 7, 9, 33).to_ip();
    let both = tunnelled(Tunnel::Vxlan, &tunnelled(Tunnel::Gre, &inner));
    let mut w = PcapWriter::new(link::RAW, PcapStyle::default());
    w.frame(START_NS, &both);
    let path = folder.file("nested.pcap", &w.into_bytes());
    let (found, _) = ours(&[&path]);
    assert_eq!((found[0].segment.tunnel, found[0].segment.tunnel_depth), (Some(Tunnel::Gre), 2));
    if let Some(expected) = tshark(&path) {
        assert_eq!(rows(&found), expected);
    }
}

#[test]
fn encapsulations_read_as_tshark_reads_them() {
    let folder = Folder::new("encapsulations");
    let ip4 = TcpPacket::new(v4()[0], v4()[1], 7, 9, 33).to_ip();
    let ethernet = |behind: &[u8]| [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2], behind, &ip4].concat();
    let inner_ethernet = frame(link::ETHERNET, &ip4);
    let outer = |protocol: u8, body: &[u8]| {
        let mut outer = tunnelled(Tunnel::IpInIp, body);
        outer[9] = protocol;
        frame(link::ETHERNET, &outer)
    };
    let gre = |head: &[u8], body: &[u8]| outer(47, &[head, body].concat());
    let frames: [(&str, Vec<u8>); 15] = [
        ("VLAN", ethernet(&[0x81, 0, 0, 5, 8, 0])),
        ("QinQ", ethernet(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0])),
        ("old QinQ", ethernet(&[0x91, 0, 0, 5, 0x81, 0, 0, 6, 8, 0])),
        ("PPPoE", ethernet(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 75, 0, 0x21])),
        ("MPLS", ethernet(&[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 63])),
        ("pseudowire", {
            let head = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0x47, 0, 2, 1, 63, 0, 0, 0, 0];
            [&head[..], &inner_ethernet].concat()
        }),
        ("SNAP", {
            let len = (8 + ip4.len()) as u16;
            ethernet(&[&len.to_be_bytes()[..], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]].concat())
        }),
        ("GRE with key and sequence number", gre(&[0x30, 0, 8, 0, 0, 0, 0, 7, 0, 0, 0, 9], &ip4)),
        ("GRE with checksum", gre(&[0x80, 0, 8, 0, 0, 0, 0, 0], &ip4)),
        ("GRE with Ethernet", gre(&[0, 0, 0x65, 0x58], &inner_ethernet)),
        ("PPTP", gre(&[0x30, 0x81, 0x88, 0x0b, 0, 75, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0xff, 3, 0, 0x21], &ip4)),
        ("ERSPAN II", {
            let head = [0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 1, 0, 0, 0, 0, 0, 0];
            gre(&head, &inner_ethernet)
        }),
        ("ERSPAN III", {
            let head = [0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            gre(&head, &inner_ethernet)
        }),
        ("ERSPAN I", gre(&[0, 0, 0x88, 0xbe], &inner_ethernet)),
        ("IPv4 in IPv4", outer(4, &ip4)),
    ];
    for (name, bytes) in frames {
        let mut w = PcapWriter::new(link::ETHERNET, PcapStyle::default());
        w.frame(START_NS, &bytes);
        let path = folder.file("x.pcap", &w.into_bytes());
        let (found, notes) = ours(&[&path]);
        assert_eq!(found.len(), 1, "{name}: {:?}", notes.skipped);
        let Some(expected) = tshark(&path) else { return };
        assert_eq!(rows(&found), expected, "{name}");
    }
}

#[test]
fn fragments_have_together_what_tshark_reassembles() {
    let folder = Folder::new("fragments");
    let [a, b] = v4();
    let mut w = PcapWriter::new(link::ETHERNET, PcapStyle::default());
    let mut put = |i: u64, ip: &[u8]| {
        w.frame(START_NS + i * MS, &frame(link::ETHERNET, ip));
    };
    let ident = |mut ip: Vec<u8>, ident: u8| {
        ip[5] = ident;
        ip
    };
    let whole = ident(TcpPacket::new(a, b, 1000, 1, 4000).flags(0x11).to_ip(), 1);
    let parts = fragments(&whole, 1480);
    assert_eq!(parts.len(), 3);
    put(0, &parts[0]);
    put(1, &parts[1]);
    put(2, &parts[2]);
    // Without the first fragment, as with a filter on the other port.
    put(3, &fragments(&ident(whole.clone(), 2), 1480)[1]);
    // Only the first fragment, as passed by a filter with a port.
    put(4, &fragments(&ident(whole, 3), 1480)[0]);
    let path = folder.file("x.pcap", &w.into_bytes());
    let (found, notes) = ours(&[&path]);
    let seen: Vec<_> =
        found.iter().map(|p| (p.number, p.segment.seq, p.segment.payload_len, p.segment.flags & 1)).collect();
    assert_eq!(seen, [(1, 1000, 1460, 0), (2, 2460, 1480, 0), (3, 3940, 1060, 1), (5, 1000, 1460, 0)]);
    assert_eq!((notes.first_fragments, notes.later_fragments), (2, 2));
    assert_eq!(notes.skipped.values().sum::<u64>(), 1);
    if let Some(expected) = tshark(&path) {
        let whole = expected.iter().find(|row| row.number == 3).expect("reassembled in the last fragment");
        assert_eq!((whole.seq, whole.payload_len), (1000, seen[..3].iter().map(|s| s.2).sum()));
    }
}

#[test]
fn sections_of_different_byte_orders_and_resolutions_read_as_tshark_reads_them() {
    let folder = Folder::new("sections");
    let mut w = PcapngWriter::new(false);
    let connection = short_connection(v4());
    for (i, (time_ns, packet)) in connection.iter().enumerate() {
        if i > 0 {
            w.section_in(i % 2 == 1);
        }
        let interface = w.interface(link::ETHERNET, [6, 9, 3, 0x80 | 20][i % 4]);
        // Exact in all resolutions: a multiple of 1/64 s, which is 15 625 000 ns.
        let time_ns = (START_NS + time_ns) / 1_000_000_000 * 1_000_000_000 + 15_625_000 * 8 * i as u64;
        w.tcp(interface, time_ns, packet);
    }
    let path = folder.file("x.pcapng", &w.into_bytes());
    let (found, notes) = ours(&[&path]);
    assert_eq!(notes.files[0].interfaces.len(), 8);
    assert!((0..).zip(&found).all(|(i, p)| p.interface == i));
    if let Some(expected) = tshark(&path) {
        assert_eq!(rows(&found), expected);
    }
}

#[test]
fn drops_are_those_that_capinfos_shows() {
    let folder = Folder::new("drops");
    let mut w = PcapngWriter::new(true);
    let first = w.interface_with(link::ETHERNET, 9, 96, &[(2, b"eth0"), (11, b"\0tcp port 80")]);
    let second = w.interface_with(link::RAW, 6, 0, &[(2, b"tun0")]);
    for (time_ns, packet) in &short_connection(v4()) {
        w.tcp(first, START_NS + time_ns, packet);
    }
    w.statistics(first, START_NS, 8, 1);
    w.statistics(second, START_NS, 0, 5);
    w.statistics(first, START_NS, 11, 3);
    let path = folder.file("x.pcapng", &w.into_bytes());
    let (_, notes) = ours(&[&path]);
    let [eth0, tun0] = &notes.files[0].interfaces[..] else { panic!("two interfaces") };
    assert_eq!((eth0.name.as_deref(), eth0.filter.as_deref()), (Some("eth0"), Some("tcp port 80")));
    assert_eq!((eth0.snap_len, eth0.packets, eth0.received_packets), (96, 8, Some(11)));
    assert_eq!((eth0.dropped(), tun0.dropped()), (Some(3), Some(5)));
    assert_eq!(eth0.capture_start_ns, Some(START_NS));
    assert_eq!(notes.dropped_packets(), Some(8));
    if let Some(text) = said("capinfos", &[path.to_str().expect("UTF-8")]) {
        assert!(text.contains("Name = eth0") && text.contains("Number of packets = 8"), "{text}");
        assert!(text.contains("Number of stat entries = 2"), "{text}");
    }
    let plain = folder.file("x.pcap", &pcap(link::RAW, PcapStyle::default(), &short_connection(v4())));
    assert_eq!(ours(&[&plain]).1.dropped_packets(), None, "a pcap file does not say");
}

/// Many connections, so that files of a ring cut through some of them.
fn traffic(seed: u64, start_ns: u64, count: usize) -> Vec<(u64, TcpPacket)> {
    let mut random = Random(seed);
    let mut now = start_ns;
    let mut sent = Vec::new();
    for i in 0..count {
        let [a, b] = v4();
        let a = std::net::SocketAddr::new(a.ip(), 5000 + (random.below(20) as u16));
        sent.push((now - START_NS, TcpPacket::new(a, b, i as u32, 9, 1 + random.below(1400) as u32)));
        now += 1000 * (1 + random.below(100_000) as u64);
    }
    sent
}

#[test]
fn overlapping_files_merge_as_mergecap_merges_them() {
    let folder = Folder::new("merge");
    let mut paths = Vec::new();
    for (i, start_ns) in [0, 3_000_000, 9_000_000_000].into_iter().enumerate() {
        let packets = traffic(1 + i as u64, START_NS + start_ns, 200);
        paths.push(folder.file(&format!("{i}.pcap"), &pcap(link::ETHERNET, PcapStyle::default(), &packets)));
    }
    let merged = folder.path("merged.pcapng");
    let words: Vec<&str> = ["-w", merged.to_str().expect("UTF-8")]
        .into_iter()
        .chain(paths.iter().map(|p| p.to_str().expect("UTF-8")))
        .collect();
    if said("mergecap", &words).is_none() {
        return;
    }
    let (expected, _) = ours(&[&merged]);
    let key = |p: &Packet| (p.time_ns, p.segment.clone());
    // Sources given in any order.
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let given: Vec<&Path> = order.iter().map(|&i| &*paths[i]).collect();
        let (found, notes) = ours(&given);
        assert_eq!(found.len(), 600);
        assert!(found.iter().map(key).eq(expected.iter().map(key)), "{order:?}");
        let names: Vec<_> = notes.files.iter().map(|f| &f.name[f.name.len() - 6..]).collect();
        assert_eq!(names, ["0.pcap", "1.pcap", "2.pcap"]);
        assert_eq!(notes.backward_steps, 0);
    }
}

#[test]
fn a_ring_that_editcap_made_reads_as_its_origin() {
    let folder = Folder::new("ring");
    let origin =
        folder.file("x.pcap", &pcap(link::ETHERNET, PcapStyle::default(), &traffic(5, START_NS, 500)));
    let ring = folder.path("ring.pcapng");
    let [from, to] = [&origin, &ring].map(|p| p.to_str().expect("UTF-8"));
    if said("editcap", &["-c", "60", from, to]).is_none() {
        return;
    }
    let mut parts: Vec<_> = std::fs::read_dir(folder.path("."))
        .expect("ours")
        .map(|e| e.expect("readable").path())
        .filter(|p| p.to_str().is_some_and(|n| n.contains("ring_")))
        .collect();
    parts.sort();
    assert_eq!(parts.len(), 9);
    parts.rotate_left(4);
    let parts: Vec<&Path> = parts.iter().map(|p| &**p).collect();
    let key = |p: &Packet| (p.time_ns, p.segment.clone());
    let (found, notes) = ours(&parts);
    assert!(found.iter().map(key).eq(ours(&[&origin]).0.iter().map(key)));
    assert_eq!(found.iter().map(|p| p.file).max(), Some(8));
    assert!(notes.files.iter().all(|f| f.packets <= 60));
}

#[test]
fn what_editcap_writes_in_other_formats_is_named_with_the_line_that_converts_it() {
    let folder = Folder::new("formats");
    let origin = folder.file("x.pcap", &pcap(link::ETHERNET, PcapStyle::default(), &short_connection(v4())));
    // Formats, each with whether editcap can read its own output.
    let formats = [
        ("snoop", "snoop", true),
        ("netmon1", "Network Monitor 1", true),
        ("netmon2", "Network Monitor 2", true),
        ("ngsniffer", "Sniffer for DOS", true),
        ("ngwsniffer_1_1", "NetXray", true),
        ("ngwsniffer_2_0", "NetXray", true),
        ("visual", "Visual Networks", true),
        ("lanalyzer", "LANalyzer", true),
        ("5views", "5Views", false),
        ("observer", "Observer", false),
        ("k12text", "K12 as text", false),
        ("nettl", "nettl", false),
    ];
    for (format, name, converts) in formats {
        let path = folder.path("x.other");
        let [from, to] = [&origin, &path].map(|p| p.to_str().expect("UTF-8").to_owned());
        let done = Command::new("editcap").args(["-F", format, &from, &to]).output();
        let Ok(done) = done else {
            eprintln!("skipped: editcap is not installed (apt-get install wireshark-common)");
            return;
        };
        assert!(done.status.success(), "{format}: {}", String::from_utf8_lossy(&done.stderr));
        refused_and_converted(&folder, &path, name, converts);
    }
    // editcap does not write ERF. Time, type (Ethernet), flags, lengths, padding.
    let mut erf = Vec::new();
    for (time_ns, packet) in short_connection(v4()) {
        let frame = frame(link::ETHERNET, &packet.to_ip());
        let time_ns = START_NS + time_ns;
        let fraction = (u128::from(time_ns % 1_000_000_000) << 32) / 1_000_000_000;
        erf.extend(((time_ns / 1_000_000_000) << 32 | fraction as u64).to_le_bytes());
        erf.extend([2, 4]);
        erf.extend((18 + frame.len() as u16).to_be_bytes());
        erf.extend([0, 0]);
        erf.extend((frame.len() as u16).to_be_bytes());
        erf.extend([0, 0]);
        erf.extend(frame);
    }
    refused_and_converted(&folder, &folder.file("x.erf", &erf), "ERF", true);
}

fn refused_and_converted(folder: &Folder, path: &Path, name: &str, converts: bool) {
    let e = packets([Source::file(path)], &ReadOptions::default(), |_| ControlFlow::Continue(()));
    let e = e.expect_err(name);
    assert_eq!(e.kind, CaptureErrorKind::OtherFormat, "{e}");
    assert!(e.found.contains(name), "{name}: {e}");
    let line = e.remedy.strip_prefix("convert it: ").expect("the line that converts");
    if converts {
        let converted = folder.path("converted.pcapng");
        let line = line.replace(" converted.pcapng", &format!(" {}", converted.display()));
        let done = Command::new("sh").args(["-c", &line]).output().expect("sh");
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(ours(&[&converted]).0.len(), 8, "{name}");
    }
}
