// SPDX-License-Identifier: MIT
//! Captures of every format and link type, with everything that may be wrong in one.

mod fixtures;

use ackwise_capture::tcp_flag::{ACK, FIN, RST, SYN};
use ackwise_capture::write::{frame, PcapStyle, PcapWriter, PcapngWriter, TcpPacket};
use ackwise_capture::{
    in_order, link, packets, read, read_each, segments, Capture, CaptureError, CaptureErrorKind, Ending,
    Format, MssSource, Protocol, ReadOptions, SackBlock, SkipCause, Source, TcpSegment, Tunnel,
};
use std::ops::ControlFlow;

use fixtures::{pcap, short_connection, v4, v6, Folder, MS, START_NS};

fn parse(bytes: &[u8]) -> Result<Capture, CaptureError> {
    read(bytes, "test.pcap", &ReadOptions::default())
}

/// Checks every property of [`short_connection`].
fn check_short(capture: &Capture) {
    assert_eq!(capture.notes.packets, 8);
    assert!(capture.notes.skipped.is_empty(), "{:?}", capture.notes.skipped);
    assert_eq!(capture.notes.start_unix_ns, START_NS);
    assert_eq!(capture.notes.duration_ns, 25 * MS);
    assert_eq!(capture.connections.len(), 1);
    let c = &capture.connections[0];
    assert!(c.initiator_known);
    assert_eq!(c.ending, Ending::Finished);
    let handshake = c.handshake.expect("complete");
    assert_eq!(handshake.rtt_ns(), 11 * MS);
    assert_eq!((handshake.distance_ns(0), handshake.distance_ns(1)), (MS, 10 * MS));
    let [there, back] = &c.directions;
    assert_eq!((there.packets, back.packets), (5, 3));
    assert_eq!(there.payload_bytes, 1560);
    // Two with payload, one with FIN.
    assert_eq!((there.data_packets, there.data_segments, there.packets_above_mss), (3, 3, 0));
    assert_eq!((there.mss_bytes, there.mss_source), (1460, MssSource::Handshake));
    assert_eq!((there.pure_acks, back.pure_acks), (1, 1));
    assert_eq!(there.ce_packets, 1);
    assert!(there.sack_permitted && !there.timestamps);
    assert_eq!((there.window_shift, back.window_shift), (Some(7), Some(7)));
    let seqs: Vec<_> = there.records.iter().map(|r| (r.seq, r.seq_end(), r.ack)).collect();
    assert_eq!(seqs, [(0, 1, 0), (1, 1, 1), (1, 1461, 1), (1461, 1561, 1), (1561, 1562, 2)]);
    assert_eq!(there.records[0].window, 65535, "a SYN's window is not scaled");
    assert_eq!(there.records[1].window, 512 << 7);
    assert_eq!(back.records[1].ack, 1561);
    assert!(back.records[1].is_pure_ack() && !back.records[1].is_data());
    assert!(there.records[3].is_ce() && !there.records[2].is_ce());
    assert_eq!(there.records[2].time_ns, 12 * MS);
    // 1460 bytes at 12 ms and 100 more after it; a FIN is not data.
    let sent: Vec<_> = there.new_data().iter().map(|&(_, bytes)| bytes).collect();
    assert_eq!(sent, [1460, 100]);
    assert_eq!(there.new_data()[0].0, 12 * MS);
    let order: Vec<_> = c.timeline().map(|(d, r)| (d, r.packet)).collect();
    assert_eq!(order, [(0, 1), (1, 2), (0, 3), (0, 4), (0, 5), (1, 6), (1, 7), (0, 8)]);
}

#[test]
fn pcap_of_every_style() {
    for big_endian in [false, true] {
        for nanoseconds in [false, true] {
            let style = PcapStyle { big_endian, nanoseconds, ..PcapStyle::default() };
            let capture = parse(&pcap(link::ETHERNET, style, &short_connection(v4()))).unwrap();
            assert_eq!(capture.notes.files[0].format, Some(Format::Pcap));
            check_short(&capture);
        }
    }
}

#[test]
fn every_link_type_and_both_ip_versions() {
    for link_type in [
        link::ETHERNET,
        link::LINUX_SLL,
        link::LINUX_SLL2,
        link::RAW,
        link::RAW_BSD,
        link::RAW_OPENBSD,
        link::NULL,
        link::LOOP,
    ] {
        for ends in [v4(), v6()] {
            let packets = short_connection(ends);
            check_short(&parse(&pcap(link_type, PcapStyle::default(), &packets)).unwrap());
        }
    }
    let packets = short_connection(v4());
    check_short(&parse(&pcap(link::IPV4, PcapStyle::default(), &packets)).unwrap());
    let packets = short_connection(v6());
    check_short(&parse(&pcap(link::IPV6, PcapStyle::default(), &packets)).unwrap());
}

#[test]
fn snapped_packets_keep_their_lengths() {
    // Down to the window field: 14 + 20 + 16 bytes.
    for snap_len in [50, 54, 60, 96] {
        let style = PcapStyle { snap_len, ..PcapStyle::default() };
        let capture = parse(&pcap(link::ETHERNET, style, &short_connection(v4()))).unwrap();
        assert!(capture.notes.skipped.is_empty(), "{snap_len}: {:?}", capture.notes.skipped);
        assert_eq!(capture.connections[0].directions[0].payload_bytes, 1560);
    }
    let style = PcapStyle { snap_len: 49, ..PcapStyle::default() };
    let capture = parse(&pcap(link::ETHERNET, style, &short_connection(v4()))).unwrap();
    assert_eq!(capture.notes.skipped[&SkipCause::Cut], 8);
}

#[test]
fn pcapng_with_several_interfaces_and_sections() {
    for big_endian in [false, true] {
        let mut w = PcapngWriter::new(big_endian);
        let ethernet = w.interface(link::ETHERNET, 6);
        let raw = w.interface(link::RAW, 9);
        let binary = w.interface(link::LINUX_SLL2, 0x80 | 30);
        let packets = short_connection(v4());
        for (i, (time_ns, packet)) in packets[..6].iter().enumerate() {
            let interface = [ethernet, raw, binary][i % 3];
            // A multiple of 10 ms is not a multiple of 2^-30 s; the rest is checked unchanged.
            w.tcp(interface, START_NS + time_ns, packet);
        }
        w.block(5, &[0; 12]).block(0x0bad_cafe, b"opaque").section();
        let again = w.interface(link::NULL, 9);
        for (time_ns, packet) in &packets[6..] {
            w.tcp(again, START_NS + time_ns, packet);
        }
        let capture = parse(&w.into_bytes()).unwrap();
        assert_eq!(capture.notes.files[0].format, Some(Format::Pcapng));
        assert_eq!(capture.connections.len(), 1);
        let c = &capture.connections[0];
        assert_eq!((c.directions[0].packets, c.directions[1].packets), (5, 3));
        assert_eq!(c.ending, Ending::Finished);
        let third = c.directions[0].records[1].time_ns;
        assert!(11 * MS - third <= 1, "2^-30 s is below a nanosecond: {third}");
        assert_eq!(capture.notes.duration_ns, 25 * MS);
    }
}

#[test]
fn pcapng_packets_without_time_or_interface_are_counted() {
    let mut w = PcapngWriter::new(false);
    let packet = short_connection(v4()).remove(3).1;
    w.frame(0, START_NS, &frame(link::ETHERNET, &packet.to_ip()));
    let known = w.interface(147, 6);
    w.frame(known, START_NS, &[0; 60]);
    let raw = w.interface(link::RAW, 6);
    let mut simple = 60u32.to_le_bytes().to_vec();
    simple.extend([0; 60]);
    w.block(3, &simple);
    w.tcp(raw, START_NS, &packet);
    let capture = parse(&w.into_bytes()).unwrap();
    assert_eq!(capture.notes.packets, 4);
    assert_eq!(capture.notes.skipped[&SkipCause::UnknownLink], 2);
    assert_eq!(capture.notes.skipped[&SkipCause::NoTime], 1);
    assert_eq!(capture.connections.len(), 1);
    assert!(!capture.connections[0].initiator_known);
}

#[test]
fn tags_extension_headers_and_oddities() {
    let [a, b] = v4();
    let ip4 = TcpPacket::new(a, b, 7, 9, 33).to_ip();
    let ip6 = TcpPacket::new(v6()[0], v6()[1], 7, 9, 33).to_ip();
    let ethernet = |behind: &[u8], ip: &[u8]| [&[0; 12], behind, ip].concat();
    // Hop-by-hop and destination options, 8 bytes each, then a fragment header on a whole packet.
    let mut extended = ip6.clone();
    extended.splice(40..40, [60, 0, 1, 4, 0, 0, 0, 0, 44, 0, 1, 4, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 1]);
    extended[6] = 0;
    extended[5] += 24;
    let [mut first6, mut later6] = [extended.clone(), extended.clone()];
    first6[40 + 16 + 3] = 1;
    later6[40 + 16 + 3] = 0x20;
    let [mut first4, mut later4] = [ip4.clone(), ip4.clone()];
    first4[6] = 0x20;
    later4[7] = 0x04;
    let mut with_options = ip4.clone();
    with_options.splice(20..20, [1, 1, 1, 0]);
    with_options[0] = 0x46;
    with_options[3] += 4;
    let mut udp = ip4.clone();
    udp[9] = 17;
    let mut short_tcp = ip4.clone();
    short_tcp[32] = 0x40;
    let mut no_total = ip4.clone();
    (no_total[2], no_total[3]) = (0, 0);
    let mut no_total6 = ip6.clone();
    (no_total6[4], no_total6[5]) = (0, 0);
    let mut padded = ethernet(&[8, 0], &TcpPacket::new(a, b, 7, 9, 0).to_ip());
    padded.resize(60, 0xee);

    let payload_of = |frame: &[u8]| {
        let mut w = PcapWriter::new(link::ETHERNET, PcapStyle::default());
        w.frame(START_NS, frame);
        let capture = parse(&w.into_bytes()).unwrap();
        match capture.connections.first() {
            Some(c) => Ok(c.directions[0].records[0].payload_len),
            None => Err(*capture.notes.skipped.keys().next().expect("one of both")),
        }
    };
    assert_eq!(payload_of(&ethernet(&[0x81, 0, 0, 5, 8, 0], &ip4)), Ok(33), "VLAN");
    let qinq = [0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 0x86, 0xdd];
    assert_eq!(payload_of(&ethernet(&qinq, &ip6)), Ok(33), "QinQ");
    let pppoe = [0x88, 0x64, 0x11, 0, 0, 1, 0, 75, 0, 0x21];
    assert_eq!(payload_of(&ethernet(&pppoe, &ip4)), Ok(33), "PPPoE");
    let lcp = [0x88, 0x64, 0x11, 0, 0, 1, 0, 75, 0xc0, 0x21];
    assert_eq!(payload_of(&ethernet(&lcp, &ip4)), Err(SkipCause::NotIp));
    assert_eq!(payload_of(&ethernet(&[8, 6], &[0; 28])), Err(SkipCause::NotIp), "ARP");
    assert_eq!(payload_of(&ethernet(&[8, 0], &with_options)), Ok(33));
    assert_eq!(payload_of(&ethernet(&[0x86, 0xdd], &extended)), Ok(33));
    assert_eq!(payload_of(&ethernet(&[0x86, 0xdd], &first6)), Ok(33), "what it has itself");
    assert_eq!(payload_of(&ethernet(&[0x86, 0xdd], &later6)), Err(SkipCause::Fragment));
    assert_eq!(payload_of(&ethernet(&[8, 0], &first4)), Ok(33));
    assert_eq!(payload_of(&ethernet(&[8, 0], &later4)), Err(SkipCause::Fragment));
    assert_eq!(payload_of(&ethernet(&[8, 0], &udp)), Err(SkipCause::NotTcp));
    assert_eq!(payload_of(&ethernet(&[8, 0], &short_tcp)), Err(SkipCause::Malformed));
    assert_eq!(payload_of(&ethernet(&[8, 0], &no_total)), Ok(33), "offload leaves length 0");
    assert_eq!(payload_of(&ethernet(&[0x86, 0xdd], &no_total6)), Ok(33), "jumbogram");
    assert_eq!(payload_of(&padded), Ok(0), "Ethernet padding is no payload");
    let jumbo = TcpPacket::new(a, b, 7, 9, 100_000).to_ip();
    assert_eq!(payload_of(&ethernet(&[8, 0], &jumbo)), Ok(100_000));
    let chain = [[0x81, 0, 0, 1].repeat(200), vec![8, 0]].concat();
    assert_eq!(payload_of(&ethernet(&chain, &ip4)), Ok(33));
}

#[test]
fn numbers_unwrap_and_old_packets_stay_below() {
    let [a, b] = v4();
    let p = TcpPacket::new;
    let near = u32::MAX - 999;
    // Without handshake: the lowest number seen becomes 1, retransmissions included.
    let packets = [
        (0, p(a, b, near, 70, 1000)),
        (MS, p(a, b, near.wrapping_add(1000), 70, 1000)),
        (2 * MS, p(a, b, near.wrapping_sub(500), 70, 500)),
        (3 * MS, p(b, a, 70, 1000, 0).options(&[1, 1, 5, 10, 0, 0, 0x07, 0xd0, 0, 0, 0x0b, 0xb8])),
        (4 * MS, p(b, a, 0xdead_beef, 1000, 0).flags(RST | ACK)),
    ];
    let capture = parse(&pcap(link::ETHERNET, PcapStyle::default(), &packets)).unwrap();
    let c = &capture.connections[0];
    let seqs: Vec<_> = c.directions[0].records.iter().map(|r| r.seq).collect();
    assert_eq!(seqs, [501, 1501, 1]);
    let back = &c.directions[1];
    assert_eq!(back.records[0].ack, 2501);
    assert_eq!(back.sacks(&back.records[0]), [SackBlock { start: 3501, end: 4501 }]);
    assert_eq!(c.ending, Ending::Reset);
    assert_eq!(back.window_shift, None, "the scale is not known without the handshake");
    assert_eq!(c.directions[0].mss_source, MssSource::Packets);
    assert_eq!(c.directions[0].mss_bytes, 1000);
}

#[test]
fn a_new_syn_is_a_new_connection() {
    let mut packets = short_connection(v4());
    let repeated = packets[0].clone();
    packets.insert(1, (MS, repeated.1));
    let again = short_connection(v4()).into_iter().map(|(t, mut p)| {
        p.seq = p.seq.wrapping_add(90_000);
        if p.flags & SYN == 0 {
            p.ack = p.ack.wrapping_add(90_000);
        }
        (t + 100 * MS, p)
    });
    packets.extend(again);
    let capture = parse(&pcap(link::ETHERNET, PcapStyle::default(), &packets)).unwrap();
    assert_eq!(capture.connections.len(), 2);
    assert_eq!(capture.connections[0].directions[0].packets, 6);
    assert_eq!(capture.connections[1].directions[0].packets, 5);
    assert_eq!(capture.connections[1].start_ns, 100 * MS);
    assert_eq!(capture.connections[0].handshake.expect("complete").syn_ns, MS, "the SYN that was answered");
}

#[test]
fn packets_from_before_the_syn_are_left_out() {
    let [a, b] = v4();
    let mut packets = short_connection(v4());
    packets.insert(4, (12 * MS, TcpPacket::new(a, b, 500, 5001, 800)));
    packets.insert(5, (12 * MS, TcpPacket::new(a, b, 400, 5001, 0).flags(RST)));
    let capture = parse(&pcap(link::ETHERNET, PcapStyle::default(), &packets)).unwrap();
    let there = &capture.connections[0].directions[0];
    assert_eq!((there.old_packets, there.packets, there.payload_bytes), (1, 6, 1560));
    assert_eq!(there.records[3].seq, 0, "a reset is kept, whatever its number");
}

#[test]
fn merged_packets_show_the_offload() {
    let [a, b] = v4();
    let mut packets = short_connection(v4());
    packets.insert(5, (14 * MS, TcpPacket::new(a, b, 2561, 5001, 14_600)));
    let capture = parse(&pcap(link::ETHERNET, PcapStyle::default(), &packets)).unwrap();
    let there = &capture.connections[0].directions[0];
    assert_eq!((there.packets_above_mss, there.data_packets, there.data_segments), (1, 4, 13));
}

#[test]
fn time_never_runs_backwards() {
    let mut packets = short_connection(v4());
    packets[4].0 = 5 * MS;
    let capture = parse(&pcap(link::ETHERNET, PcapStyle::default(), &packets)).unwrap();
    assert_eq!((capture.notes.backward_steps, capture.notes.largest_backward_ns), (1, 7 * MS));
    assert_eq!(capture.connections[0].directions[0].records[3].time_ns, 12 * MS);
}

#[test]
fn what_is_whole_survives_a_cut() {
    let whole = pcap(link::ETHERNET, PcapStyle::default(), &short_connection(v4()));
    for (cut, kept) in [(1, 7), (54, 7), (60, 7), (70, 7), (71, 6)] {
        let capture = parse(&whole[..whole.len() - cut]).unwrap();
        assert_eq!(capture.notes.packets, kept, "cut {cut}");
        assert_eq!(capture.truncated.is_some(), cut != 70);
        if let Some(t) = capture.truncated {
            assert_eq!(t.packet, kept + 1);
            assert_eq!(t.offset + t.present_bytes, (whole.len() - cut) as u64);
        }
    }
    let mut w = PcapngWriter::new(true);
    let i = w.interface(link::RAW, 6);
    for (time_ns, packet) in short_connection(v4()) {
        w.tcp(i, START_NS + time_ns, &packet);
    }
    let whole = w.into_bytes();
    let capture = parse(&whole[..whole.len() - 3]).unwrap();
    assert_eq!(capture.notes.packets, 7);
    assert_eq!(capture.truncated.expect("cut").packet, 8);
}

#[test]
fn every_length_of_a_cut_file_is_read_or_refused() {
    let whole = pcap(link::ETHERNET, PcapStyle::default(), &short_connection(v4()));
    for len in 0..whole.len() {
        match parse(&whole[..len]) {
            Ok(capture) => assert!(len >= 24 && capture.notes.packets < 8),
            Err(e) if len == 0 => assert_eq!(e.kind, CaptureErrorKind::Empty),
            Err(e) => assert!(len < 24 && e.kind == CaptureErrorKind::NotACapture, "{len}: {e}"),
        }
    }
}

#[test]
fn bytes_at_random_are_in_no_format() {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    for len in (16..4016).step_by(2) {
        let bytes: Vec<u8> = (0..len).map(|_| next()).collect();
        assert_eq!(
            parse(&bytes).unwrap_err().kind,
            CaptureErrorKind::NotACapture,
            "{len}: {:?}",
            &bytes[..16]
        );
    }
}

#[test]
fn errors_say_what_where_and_what_to_do() {
    let message = |bytes: &[u8]| {
        let e = parse(bytes).expect_err("not readable");
        (e.kind, e.to_string())
    };
    let (kind, text) = message(b"");
    assert_eq!(kind, CaptureErrorKind::Empty);
    assert_eq!(
        text,
        "test.pcap: byte 0: the file is empty; expected a pcap or pcapng file of at least 24 \
         bytes; capture again, for example with tcpdump -w"
    );
    let (kind, text) = message(&[0x1f, 0x8b, 8, 0, 0, 0]);
    assert_eq!(kind, CaptureErrorKind::NotACapture);
    assert!(text.contains("byte 0 unpacked: the compressed data breaks off"), "{text}");
    let (kind, text) = message(b"GET / HTTP/1.1\r\nHost: example\r\n");
    assert_eq!(kind, CaptureErrorKind::NotACapture);
    assert!(text.contains("47, 45, 54, 20") && text.contains("editcap"), "{text}");

    let good = pcap(link::ETHERNET, PcapStyle::default(), &short_connection(v4()));
    let mut other = good.clone();
    other[20] = 147;
    let (kind, text) = message(&other);
    assert_eq!(kind, CaptureErrorKind::Unsupported);
    assert!(text.contains("link type 147"), "{text}");
    let mut old = good.clone();
    old[4] = 1;
    assert_eq!(message(&old).0, CaptureErrorKind::Unsupported);
    // Length of the second packet: file header, first packet of 16 + 66 bytes, 8 bytes of times.
    let mut damaged = good;
    damaged[24 + 16 + 66 + 8..][..4].fill(0xff);
    let (kind, text) = message(&damaged);
    assert_eq!(kind, CaptureErrorKind::Corrupt);
    assert!(text.contains("byte 106 (packet 2): a packet of 4294967295 captured bytes"), "{text}");

    let mut w = PcapngWriter::new(false);
    w.interface(link::RAW, 6);
    let good = w.into_bytes();
    let damage = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        message(&bytes)
    };
    assert!(damage(28 + 4, 13).1.contains("byte 28 (packet 1)"));
    assert_eq!(damage(8, 0).0, CaptureErrorKind::Corrupt);
    assert_eq!(damage(12, 2).0, CaptureErrorKind::Unsupported);
    assert_eq!(damage(good.len() - 4, 0).0, CaptureErrorKind::Corrupt);
    let missing = ackwise_capture::read_file("/nonexistent/x.pcap").expect_err("not there");
    assert_eq!(missing.kind, CaptureErrorKind::Io);
    assert!(missing.to_string().starts_with("/nonexistent/x.pcap: byte 0: cannot open"));
}

#[test]
fn reading_stops_at_the_limit() {
    let bytes = pcap(link::ETHERNET, PcapStyle::default(), &short_connection(v4()));
    let options = ReadOptions { max_packets: Some(3), ..ReadOptions::default() };
    let capture = read(&bytes[..], "x", &options).unwrap();
    assert!(capture.notes.stopped_at_limit);
    assert_eq!(capture.notes.packets, 3);
}

#[test]
fn input_may_come_in_single_bytes() {
    struct Drip<'a>(&'a [u8]);
    impl std::io::Read for Drip<'_> {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            let n = self.0.len().min(1);
            buf[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }
    let bytes = pcap(link::ETHERNET, PcapStyle::default(), &short_connection(v4()));
    check_short(&read(Drip(&bytes), "drip", &ReadOptions::default()).unwrap());
}

#[test]
fn the_summary_is_json_without_packets() {
    let bytes = pcap(link::ETHERNET, PcapStyle::default(), &short_connection(v4()));
    let json = serde_json::to_value(parse(&bytes).unwrap()).unwrap();
    let there = &json["connections"][0]["directions"][0];
    assert_eq!(there["mss_source"], "handshake");
    assert_eq!(there["packets"], 5);
    assert!(there.get("records").is_none());
    assert_eq!(json["connections"][0]["endpoints"][1], "10.0.0.2:80");
}

#[test]
fn fin_alone_is_data_and_takes_a_number() {
    let [a, b] = v4();
    let packets = [(0, TcpPacket::new(a, b, 10, 1, 0).flags(FIN | ACK))];
    let capture = parse(&pcap(link::RAW, PcapStyle::default(), &packets)).unwrap();
    let r = capture.connections[0].directions[0].records[0];
    assert!(r.is_data() && !r.is_pure_ack());
    assert_eq!(r.seq_end() - r.seq, 1);
}

fn each_segment(bytes: &[u8]) -> Result<Vec<(u64, TcpSegment)>, CaptureError> {
    let mut found = Vec::new();
    segments(Source::reader(bytes, "test.pcap"), &ReadOptions::default(), |unix_ns, s| {
        found.push((unix_ns, s.clone()))
    })?;
    Ok(found)
}

#[test]
fn segments_come_one_by_one_as_they_were_written() {
    for ends in [v4(), v6()] {
        let written = short_connection(ends);
        let style = PcapStyle { nanoseconds: true, ..PcapStyle::default() };
        let found = each_segment(&pcap(link::ETHERNET, style, &written)).expect("a whole file");
        assert_eq!(found.len(), written.len());
        for ((at, tcp), (time_ns, p)) in found.iter().zip(&written) {
            assert_eq!(*at, START_NS + time_ns);
            assert_eq!((tcp.src, tcp.dst), (p.src, p.dst));
            assert_eq!((tcp.seq, tcp.ack, tcp.flags, tcp.window), (p.seq, p.ack, p.flags, p.window));
            assert_eq!((tcp.payload_len, tcp.ip_ident), (p.payload_len, 0));
            assert!(tcp.sack_blocks().is_empty());
        }
    }
}

#[test]
fn a_segment_has_its_ident_its_sack_blocks_and_the_length_that_an_offload_left_out() {
    let [a, b] = v4();
    let sack = [1, 1, 5, 18, 0, 0, 0, 9, 0, 0, 0, 10, 0, 0, 1, 0, 0, 0, 2, 0];
    let mut with_ident = TcpPacket::new(a, b, 1, 1, 0).options(&sack).to_ip();
    with_ident[4..6].copy_from_slice(&[0xab, 0xcd]);
    let mut w = PcapWriter::new(link::ETHERNET, PcapStyle { snap_len: 200, ..PcapStyle::default() });
    w.frame(START_NS, &frame(link::ETHERNET, &with_ident));
    // Longer than an IP header can express: its length field is 0.
    w.tcp(START_NS, &TcpPacket::new(a, b, 1, 1, 70_000));
    w.frame(START_NS, &frame(link::ETHERNET, &[0x45; 40]));
    let found = each_segment(&w.into_bytes()).expect("a whole file");
    assert_eq!(found.len(), 2, "the packet that is not TCP is skipped");
    assert_eq!(found[0].1.ip_ident, 0xabcd);
    assert_eq!(found[0].1.sack_blocks(), [(9, 10), (256, 512)]);
    assert_eq!(found[1].1.payload_len, 70_000);
}

#[test]
fn a_file_that_ends_inside_a_packet_names_the_byte_and_the_packet() {
    let bytes = pcap(link::ETHERNET, PcapStyle::default(), &short_connection(v4()));
    let second = 24 + 16 + 14 + 20 + 20 + 12;
    let error = each_segment(&bytes[..second + 20]).expect_err("cut");
    assert_eq!((error.kind, error.offset, error.packet), (CaptureErrorKind::Corrupt, second as u64, Some(2)));
    let text = error.to_string();
    assert!(text.starts_with("test.pcap: byte 106 (packet 2): the file ends inside a packet"), "{text}");
}

/// Connections that end with a FIN of both sides, each `gap_ns` after the previous one.
fn short_connections(count: u16, gap_ns: u64, with_fins: bool) -> Vec<u8> {
    let [a, b] = v4();
    let mut w = PcapWriter::new(link::ETHERNET, PcapStyle::default());
    for i in 0..count {
        let a = std::net::SocketAddr::new(a.ip(), 1024 + i);
        for (time_ns, packet) in short_connection([a, b]) {
            if with_fins || packet.flags & FIN == 0 {
                w.tcp(START_NS + u64::from(i) * gap_ns + time_ns, &packet);
            }
        }
    }
    w.into_bytes()
}

#[test]
fn only_open_connections_are_held() {
    let options = ReadOptions { max_held_bytes: 64 << 10, ..ReadOptions::default() };
    let bytes = short_connections(5000, 60_000 * MS, true);
    assert_eq!(read(&bytes[..], "x", &options).expect("few are open at a time").connections.len(), 5000);
    for (gap_ns, with_fins) in [(60_000 * MS, false), (MS, true)] {
        let e = read(&short_connections(5000, gap_ns, with_fins)[..], "x", &options).expect_err("too much");
        assert_eq!(e.kind, CaptureErrorKind::TooLarge);
        let text = e.to_string();
        assert!(text.contains(" connections are open") && text.contains("more than 65536 bytes"), "{text}");
        assert!(text.contains("tcpdump -r in.pcap"), "{text}");
    }
}

#[test]
fn connections_come_as_soon_as_they_are_over() {
    let bytes = short_connections(3, 300_000 * MS, true);
    let mut seen = Vec::new();
    let capture = read_each(Source::reader(&bytes[..], "x"), &ReadOptions::default(), |index, c| {
        seen.push((index, c.endpoints[0].port(), c.end_ns));
        if seen.len() == 2 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    assert_eq!(seen, [(0, 1024, 25 * MS), (1, 1025, 300_025 * MS)]);
    assert!(capture.expect("valid").notes.packets < 24, "it stopped before the end");
}

#[test]
fn four_quiet_minutes_part_a_connection_that_ended_from_its_successor() {
    let [a, b] = v4();
    for (wait_ms, connections) in [(240_000, 1), (240_001, 2)] {
        for end in [FIN | ACK, RST] {
            let mut packets = short_connection(v4());
            packets[7].1.flags = end;
            let late = TcpPacket::new(b, a, 5002, 2562, 0);
            // The packets in between do not split the connection, but keep it open.
            packets.push(((25 + 100_000) * MS, late.clone()));
            packets.push(((25 + 100_000 + wait_ms) * MS, late));
            let capture = parse(&pcap(link::ETHERNET, PcapStyle::default(), &packets)).unwrap();
            assert_eq!(capture.connections.len(), connections, "{wait_ms} ms, flags {end:#x}");
        }
    }
    // A connection without an end stays a single one, however long it is silent.
    let mut packets = short_connection(v4());
    packets.truncate(6);
    packets.push((86_400_000 * MS, TcpPacket::new(a, b, 2561, 5001, 100)));
    let capture = parse(&pcap(link::ETHERNET, PcapStyle::default(), &packets)).unwrap();
    assert_eq!(capture.connections.len(), 1);
}

#[test]
fn interfaces_of_a_section_are_limited() {
    let mut w = PcapngWriter::new(false);
    for _ in 0..65_537 {
        w.interface(link::RAW, 6);
    }
    let e = parse(&w.into_bytes()).expect_err("no capture has so many");
    assert!(e.to_string().contains("more than 65536 interfaces"), "{e}");
}

#[test]
fn only_regular_files_with_content_are_opened() {
    let refused = |path: &str| ackwise_capture::read_file(path).expect_err("no capture").to_string();
    assert!(refused("/").contains("a directory"));
    assert!(refused("/dev/zero").contains("not a regular file"));
    // Reading such files can consume data that others wait for.
    assert!(refused("/proc/self/status").contains("the file is empty"));
    let fifo = std::env::temp_dir().join(format!("ackwise-fifo-{}", std::process::id()));
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo of coreutils");
    assert!(made.success());
    let text = refused(fifo.to_str().expect("UTF-8"));
    std::fs::remove_file(&fifo).expect("made above");
    assert!(text.contains("not a regular file"), "{text}");
}

/// A record without payload bytes, as an IPv4 packet of this protocol.
fn ipv4(protocol: u8, body: &[u8]) -> Vec<u8> {
    let [high, low] = (20 + body.len() as u16).to_be_bytes();
    let head = [0x45, 0, high, low, 0, 0, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    [&head, body].concat()
}

fn udp(ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let [from, to] = ports.map(u16::to_be_bytes);
    let len = (8 + payload.len() as u16).to_be_bytes();
    ipv4(17, &[&from[..], &to, &len, &[0, 0], payload].concat())
}

fn read_frames(link_type: u32, frames: &[Vec<u8>]) -> Capture {
    let mut w = PcapWriter::new(link_type, PcapStyle::default());
    for f in frames {
        w.frame(START_NS, f);
    }
    parse(&w.into_bytes()).expect("a whole file")
}

#[test]
fn headers_before_tcp_that_no_writer_here_has() {
    let [a, b] = v4();
    let tcp = TcpPacket::new(a, b, 7, 8, 30).to_ip();
    let ethernet = frame(link::ETHERNET, &tcp);
    // RFC 4302: 12 bytes and 12 of a check value, length in words without the first two.
    let authenticated = ipv4(51, &[&[6, 4, 0, 0], &[0; 20][..], &tcp[20..]].concat());
    // RFC 3931: session, cookie of 4 bytes, default sublayer.
    let l2tp_3 = [&[0, 0, 0, 9, 1, 2, 3, 4, 0x40, 0, 0, 1], &ethernet[..]].concat();
    let gpe = |next: u8, inner: &[u8]| udp([5555, 4790], &[&[0x0c, 0, 0, next, 0, 0, 5, 0], inner].concat());
    for (ip, tunnel) in [
        (authenticated, None),
        (ipv4(115, &l2tp_3), Some(Tunnel::L2tp)),
        (udp([1701, 1701], &[&[0, 3, 0, 0], &l2tp_3[..]].concat()), Some(Tunnel::L2tp)),
        (gpe(1, &tcp), Some(Tunnel::Vxlan)),
        (gpe(3, &ethernet), Some(Tunnel::Vxlan)),
    ] {
        let capture = read_frames(link::RAW, &[ip]);
        let found = &capture.connections.first().expect("TCP").directions[0];
        assert_eq!((found.packets, found.payload_bytes), (1, 30), "{tunnel:?}");
        assert_eq!(capture.notes.tunnels.keys().next().copied(), tunnel);
    }
}

#[test]
fn frames_of_802_11_that_hold_no_readable_packet_are_counted_apart() {
    let [a, b] = v4();
    let tcp = TcpPacket::new(a, b, 7, 8, 30).to_ip();
    let open = frame(link::IEEE802_11, &tcp);
    let mut sealed = open.clone();
    sealed[1] |= 0x40;
    // The flag may be left on a frame that a driver has decrypted, and CCMP's 8 bytes too.
    let mut opened = sealed.clone();
    opened.splice(26..26, [9; 8]);
    sealed.truncate(26);
    sealed.extend([0x51; 60]);
    let mut beacon = open.clone();
    beacon[0] = 0x80;
    let mut without_data = open.clone();
    without_data[0] = 0xc8;
    let mut aggregate = open.clone();
    aggregate[24] = 0x80;
    let len = (open.len() - 26) as u16;
    aggregate.splice(26..26, [&[2; 12][..], &len.to_be_bytes()].concat());
    let capture = read_frames(link::IEEE802_11, &[open, sealed, opened, beacon, without_data, aggregate]);
    assert_eq!(capture.notes.tcp_packets, 3);
    let skipped = [(SkipCause::NotIp, 2), (SkipCause::Encrypted, 1)];
    assert_eq!(capture.notes.skipped, skipped.into_iter().collect());
}

#[test]
fn what_is_not_tcp_is_named() {
    let packets = [
        (udp([40_000, 443], &[0xc0; 40]), Protocol::Quic),
        (udp([51_820, 9000], &[4; 40]), Protocol::WireGuard),
        (udp([1194, 1194], &[0x38; 40]), Protocol::OpenVpn),
        (udp([4500, 4500], &[7; 40]), Protocol::Esp),
        (udp([4500, 4500], &[0; 40]), Protocol::Udp),
        (ipv4(50, &[7; 40]), Protocol::Esp),
        (udp([53, 40_000], &[7; 40]), Protocol::Dns),
        (ipv4(1, &[8; 40]), Protocol::Icmp),
        (ipv4(132, &[8; 40]), Protocol::Sctp),
        (udp([2152, 2152], &[0x30; 40]), Protocol::Udp),
        (ipv4(89, &[8; 40]), Protocol::Other),
    ];
    for (ip, protocol) in packets {
        let notes = read_frames(link::RAW, &[ip]).notes;
        assert_eq!(notes.protocols, [(protocol, 1)].into_iter().collect());
        assert_eq!(notes.skipped.get(&SkipCause::NotTcp), Some(&1));
    }
}

#[test]
fn tunnels_in_one_another_have_an_end() {
    let [a, b] = v4();
    let mut ip = TcpPacket::new(a, b, 7, 8, 30).to_ip();
    for depth in 1..12u64 {
        ip = ipv4(4, &ip);
        let notes = read_frames(link::RAW, &[ip.clone()]).notes;
        assert_eq!(notes.tcp_packets, u64::from(depth <= 8), "{depth} tunnels");
    }
}

#[test]
fn an_ip_length_beyond_a_whole_frame_is_no_payload() {
    let [a, b] = v4();
    let whole = TcpPacket::new(a, b, 7, 8, 100);
    for (options, present) in [(0, 60), (0, 0), (12, 100), (12, 0)] {
        let packet = whole.clone().options(&vec![1; options]);
        let full = frame(link::ETHERNET, &packet.to_ip());
        let kept = full.len() - 100 + present;
        let len = |data: &[u8], snap_len: usize| {
            let style = PcapStyle { snap_len: snap_len as u32, ..PcapStyle::default() };
            let mut w = PcapWriter::new(link::ETHERNET, style);
            w.frame(START_NS, data);
            parse(&w.into_bytes()).expect("a whole file").connections[0].directions[0].payload_bytes
        };
        assert_eq!((len(&full[..kept], 0), len(&full, kept)), (present as u64, 100));
    }
}

/// Times as several queues of a network card leave them: each a little behind the one before.
fn in_disorder(packets: usize) -> Vec<(u64, TcpPacket)> {
    let [a, b] = v4();
    let mut all: Vec<_> =
        (0..packets as u32).map(|n| (u64::from(n) * MS, TcpPacket::new(a, b, 1 + 100 * n, 1, 100))).collect();
    all.chunks_exact_mut(10).for_each(|ten| ten.rotate_left(3));
    all
}

#[test]
fn packets_out_of_order_are_sorted_in_a_second_reading() {
    let folder = Folder::new("disorder");
    let path = folder.file("x.pcap", &pcap(link::ETHERNET, PcapStyle::default(), &in_disorder(200)));
    let read = |options: &ReadOptions<'_>| {
        let mut times = Vec::new();
        let notes = packets([Source::file(&path)], options, |packet| {
            times.push((packet.time_ns, packet.segment.seq));
            ControlFlow::Continue(())
        })?;
        Ok((notes, times))
    };
    let options = ReadOptions::default();
    let (notes, times) = in_order(&options, read, |(notes, _)| notes).expect("a whole file");
    assert!(notes.is_sorted);
    assert_eq!((notes.backward_steps, notes.backward_runs), (60, 20));
    let sorted: Vec<_> = (0..200).map(|n| (START_NS + n * MS, 1 + 100 * n as u32)).collect();
    assert_eq!(times, sorted);
}

#[test]
fn a_clock_that_is_set_back_is_not_disorder() {
    let mut all = in_disorder(0);
    let [a, b] = v4();
    for n in 0..400u32 {
        let time_ns = u64::from(n) * MS + if n < 200 { 500 * MS } else { 0 };
        all.push((time_ns, TcpPacket::new(a, b, 1 + 100 * n, 1, 100)));
    }
    let folder = Folder::new("clock");
    let path = folder.file("x.pcap", &pcap(link::ETHERNET, PcapStyle::default(), &all));
    let read = |options: &ReadOptions<'_>| {
        let mut numbers = Vec::new();
        let notes = packets([Source::file(&path)], options, |packet| {
            numbers.push(packet.segment.seq);
            ControlFlow::Continue(())
        })?;
        Ok((notes, numbers))
    };
    let (notes, numbers) = in_order(&ReadOptions::default(), read, |(notes, _)| notes).expect("a file");
    assert!(!notes.is_sorted && notes.backward_steps == 200);
    assert!(numbers.windows(2).all(|two| two[0] < two[1]));
}
