// SPDX-License-Identifier: MIT
//! The report on synthetic packets, and properties that hold for any packets.

use ackwise_capture::tcp_flag::{ACK, AE, CWR, ECE, FIN, PSH, RST, SYN};
use ackwise_capture::write::{PcapStyle, PcapWriter, TcpPacket};
use ackwise_capture::{link, ReadOptions, Source};
use ackwise_diagnose::limits::{Confidence, Judgment, Limit};
use ackwise_diagnose::{diagnose, statistics, Connection, Diagnosis, Effort, LeftOut};
use ackwise_link as _;
use std::net::SocketAddr;
use std::num::NonZeroUsize;

const START_NS: u64 = 1_700_000_000_000_000_000;
const MS: u64 = 1_000_000;
/// MSS 1000, SACK permitted, window scale 2.
const OPTIONS: [u8; 12] = [2, 4, 3, 0xe8, 4, 2, 3, 3, 2, 1, 1, 1];
/// Sequence number of the sender's first byte; it wraps around soon.
const SEQ: u32 = 0xffff_f000;
const PEER_SEQ: u32 = 77;

fn endpoints() -> [SocketAddr; 2] {
    ["10.0.0.1:1000", "10.0.0.2:80"].map(|a| a.parse().expect("an address"))
}

/// A capture written packet by packet; sequence numbers are relative to the sender's first byte.
struct Talk {
    writer: PcapWriter,
    now_ns: u64,
    ident: u16,
    /// Whether a mirror port captures each packet twice.
    is_mirrored: bool,
}

impl Talk {
    fn new() -> Self {
        let style = PcapStyle { nanoseconds: true, ..PcapStyle::default() };
        Talk { writer: PcapWriter::new(link::RAW, style), now_ns: START_NS, ident: 0, is_mirrored: false }
    }

    /// A capture with its handshake.
    fn open() -> Self {
        let mut talk = Talk::new();
        talk.handshake(SEQ.wrapping_sub(1));
        talk
    }

    fn handshake(&mut self, isn: u32) {
        let [a, b] = endpoints();
        self.put(0, &TcpPacket::new(a, b, isn, 0, 0).flags(SYN).options(&OPTIONS));
        let syn_ack = TcpPacket::new(b, a, PEER_SEQ - 1, isn.wrapping_add(1), 0).flags(SYN | ACK);
        self.put(10, &syn_ack.options(&OPTIONS));
        self.put(0, &TcpPacket::new(a, b, isn.wrapping_add(1), PEER_SEQ, 0));
    }

    fn put(&mut self, after_ms: u64, packet: &TcpPacket) {
        self.now_ns += after_ms * MS;
        self.ident += 1;
        let mut ip = packet.to_ip();
        ip[4..6].copy_from_slice(&self.ident.to_be_bytes());
        self.writer.frame(self.now_ns, &ip);
        if self.is_mirrored {
            // A router lowers the TTL.
            ip[8] -= 1;
            self.writer.frame(self.now_ns + 20_000, &ip);
        }
    }

    fn data(&mut self, after_ms: u64, from: u32, bytes: u32) {
        let [a, b] = endpoints();
        self.put(after_ms, &TcpPacket::new(a, b, SEQ.wrapping_add(from), PEER_SEQ, bytes).flags(PSH | ACK));
    }

    fn ack(&mut self, after_ms: u64, number: u32, window: u16) {
        self.sack(after_ms, number, window, &[]);
    }

    fn sack(&mut self, after_ms: u64, number: u32, window: u16, blocks: &[(u32, u32)]) {
        let [a, b] = endpoints();
        let mut options = vec![1, 1, 5, 2 + 8 * blocks.len() as u8];
        for &(from, to) in blocks {
            options.extend([from, to].into_iter().flat_map(|n| SEQ.wrapping_add(n).to_be_bytes()));
        }
        let options = if blocks.is_empty() { &[][..] } else { &options[..] };
        let packet = TcpPacket::new(b, a, PEER_SEQ, SEQ.wrapping_add(number), 0);
        self.put(after_ms, &packet.window(window).options(options));
    }

    fn connections(self) -> Vec<Connection> {
        let bytes = self.writer.into_bytes();
        diagnose([Source::reader(&bytes[..], "made")], &ReadOptions::default(), &Effort::default())
            .expect("readable")
            .connections
            .into_iter()
            .map(|connection| *connection)
            .collect()
    }

    fn connection(self) -> Connection {
        let mut connections = self.connections();
        assert_eq!(connections.len(), 1);
        connections.remove(0)
    }
}

/// Sends 40 packets of a size, and ten merged ones of four each; the segments counted in all.
fn segments_of(bytes: u32, flags: u16) -> u64 {
    let mut talk = Talk::open();
    let [a, b] = endpoints();
    let mut put = |n: u32, size: u32| {
        let packet = TcpPacket::new(a, b, SEQ.wrapping_add(n * bytes), PEER_SEQ, size).flags(flags | ACK);
        talk.put(1, &packet);
    };
    (0..40).for_each(|n| put(n, bytes));
    (10..20).for_each(|n| put(4 * n, 4 * bytes));
    talk.connection().halves[0].counts.sent.segments
}

#[test]
fn a_segment_is_as_long_as_those_that_come_and_end_no_write() {
    // The option allows 1000 bytes. A router behind the capture point has clamped it.
    assert_eq!(segments_of(500, 0), 40 + 10 * 4);
    // The application writes so much at a time.
    assert_eq!(segments_of(500, PSH), 40 + 10 * 2);
}

/// A transfer with a fast retransmission, duplicate ACKs and a window update.
fn transfer(mut talk: Talk) -> Connection {
    for n in 0..6 {
        talk.data(1, 1000 * n, 1000);
    }
    talk.ack(10, 1000, 500);
    for n in 3..6 {
        talk.sack(1, 1000, 500, &[(2000, 1000 * n)]);
    }
    talk.data(0, 1000, 1000);
    talk.ack(10, 6000, 500);
    talk.ack(10, 6000, 900);
    talk.connection()
}

#[test]
fn copies_of_a_mirror_port_change_nothing_but_their_count() {
    let plain = transfer(Talk::open());
    let mut talk = Talk::new();
    talk.is_mirrored = true;
    talk.handshake(SEQ.wrapping_sub(1));
    let mirrored = transfer(talk);
    let sent = &plain.halves[0].counts.sent;
    assert_eq!((sent.retransmissions.fast, sent.retransmissions.total()), (1, 1));
    let acks = &plain.halves[0].counts.acks;
    assert_eq!((acks.duplicate, acks.triple_duplicates, acks.window_updates), (3, 1, 1));
    assert_eq!(mirrored.packets, 2 * plain.packets);
    assert_eq!(mirrored.repeated_packets.iter().sum::<u64>(), plain.packets);
    for half in [0, 1] {
        assert_eq!(mirrored.halves[half].counts, plain.halves[half].counts);
        let samples = |c: &Connection| c.halves[half].rtt.data_ns.samples();
        assert_eq!(samples(&mirrored), samples(&plain));
    }
}

#[test]
fn the_handshake_says_how_far_the_ends_are_and_how_windows_are_scaled() {
    let connection = transfer(Talk::open());
    assert_eq!(connection.distance_ns, [Some(0), Some(10 * MS)]);
    let half = &connection.halves[0];
    assert!(half.window.is_known);
    assert_eq!(half.window.window_bytes.max(), Some(3600), "900 with scale 2");
    assert_eq!(half.window.flight_bytes.max(), Some(6000));
    // Only the first ACK is a sample: the others come while there is a hole, or acknowledge data
    // that was sent twice.
    assert_eq!((half.rtt.data_ns.samples(), half.rtt.data_ns.min()), (1, Some(15 * MS)));
    assert_eq!((half.counts.sent.new_bytes, half.counts.acks.acked_bytes), (6000, 6000));
    assert_eq!(half.counts.acks.unseen_bytes, 0);
}

#[test]
fn a_capture_that_begins_later_counts_what_it_has() {
    let connection = transfer(Talk::new());
    assert!(!connection.initiator_known && connection.handshake.is_none());
    let half = &connection.halves[0];
    assert!(!half.window.is_known, "its scale was in the handshake");
    assert_eq!((half.counts.sent.new_bytes, half.counts.acks.acked_bytes), (6000, 6000));
    assert_eq!(half.counts.acks.unseen_bytes, 0);
    assert_eq!(half.counts.sent.retransmissions.fast, 1);
}

#[test]
fn one_direction_alone_shows_what_is_sent_again_but_not_why() {
    let mut talk = Talk::new();
    for n in [0, 1, 2, 1, 3] {
        talk.data(30, 1000 * n, 1000);
    }
    let connection = talk.connection();
    let half = &connection.halves[0];
    assert_eq!(half.counts.sent.retransmissions.unclear, 1);
    assert_eq!(half.counts.sent.new_bytes, 4000);
    assert_eq!(half.window.flight_bytes.max(), Some(0), "nothing says what is acknowledged");
    assert_eq!(connection.halves[1].counts.sent.packets, 0);
}

#[test]
fn acks_only_tell_what_was_not_captured() {
    let mut talk = Talk::new();
    for n in 0..5 {
        talk.ack(30, 1000 * n, 500);
    }
    let connection = talk.connection();
    // Endpoint 0 sent the first packet, so its peer is acknowledged.
    let acks = &connection.halves[1].counts.acks;
    assert_eq!((acks.acked_bytes, acks.unseen_bytes, acks.unseen_acks), (4000, 4000, 4));
}

#[test]
fn a_packet_that_the_capture_lost_is_no_retransmission() {
    let mut talk = Talk::open();
    for n in [0, 1, 3] {
        talk.data(1, 1000 * n, 1000);
    }
    talk.ack(10, 4000, 500);
    let counts = &talk.connection().halves[0].counts.clone();
    assert_eq!((counts.sent.gaps, counts.sent.gap_bytes), (1, 1000));
    assert_eq!((counts.acks.unseen_acks, counts.acks.unseen_bytes), (1, 1000));
    assert_eq!(counts.sent.retransmissions.total() + counts.sent.out_of_order_packets, 0);
}

#[test]
fn what_is_overtaken_within_an_rtt_is_out_of_order() {
    let mut talk = Talk::open();
    for n in [0, 2, 1, 3] {
        talk.data(1, 1000 * n, 1000);
    }
    // The identification shows which was sent first; here the late one was sent later.
    let counts = &talk.connection().halves[0].counts.clone();
    assert_eq!((counts.sent.out_of_order_packets, counts.sent.retransmissions.total()), (0, 1));
    assert_eq!(counts.sent.unseen_retransmissions, 1);

    let mut talk = Talk::open();
    talk.data(1, 0, 1000);
    talk.ident = 20;
    talk.data(1, 2000, 1000);
    talk.ident = 19;
    talk.data(1, 1000, 1000);
    let counts = &talk.connection().halves[0].counts.clone();
    assert_eq!((counts.sent.out_of_order_packets, counts.sent.retransmissions.total()), (1, 0));
    assert_eq!(counts.sent.new_bytes, 3000);
}

#[test]
fn probes_of_a_closed_window_and_keep_alives_are_told_apart() {
    let mut talk = Talk::open();
    talk.data(1, 0, 1000);
    talk.ack(10, 1000, 500);
    talk.data(1000, 999, 1);
    talk.ack(10, 1000, 500);
    talk.data(1, 1000, 1000);
    talk.ack(10, 2000, 0);
    talk.data(200, 1999, 0);
    talk.ack(10, 2000, 0);
    talk.data(400, 2000, 1);
    talk.ack(10, 2000, 0);
    talk.ack(390, 2000, 500);
    let half = talk.connection().halves[0].clone();
    let (sent, acks) = (&half.counts.sent, &half.counts.acks);
    assert_eq!((sent.keep_alives, acks.keep_alive_replies), (1, 1));
    assert_eq!((sent.window_probes, acks.window_probe_replies, acks.window_updates), (2, 2, 1));
    assert_eq!((sent.retransmissions.total(), acks.duplicate), (0, 0));
    assert_eq!((half.window.zero_windows, half.window.closures), (3, 1));
    assert_eq!(half.window.closed_ns, 1010 * MS);
}

#[test]
fn a_dsack_shows_a_spurious_retransmission() {
    let mut talk = Talk::open();
    talk.data(1, 0, 1000);
    talk.data(300, 0, 1000);
    talk.ack(10, 1000, 500);
    talk.sack(1, 1000, 500, &[(0, 1000)]);
    let counts = talk.connection().halves[0].counts.clone();
    assert_eq!((counts.acks.with_dsack, counts.acks.dsack_bytes), (1, 1000));
    assert_eq!(counts.sent.retransmissions.tail_loss_probe, 1);
    assert_eq!(counts.acks.duplicate, 1);
}

#[test]
fn another_syn_between_the_same_endpoints_opens_another_connection() {
    let mut talk = Talk::open();
    talk.data(1, 0, 500);
    talk.handshake(5000);
    talk.handshake(5000);
    let connections = talk.connections();
    assert_eq!(connections.len(), 2);
    assert_eq!(connections[0].halves[0].counts.sent.new_bytes, 500);
    assert_eq!(connections[1].halves[0].counts.sent.syn_retransmissions, 1);
}

#[test]
fn ecn_is_counted_by_code_point_and_flag() {
    let mut talk = Talk::open();
    let [a, b] = endpoints();
    for (n, ecn) in [1, 2, 2, 3].into_iter().enumerate() {
        let seq = SEQ.wrapping_add(100 * n as u32);
        talk.put(1, &TcpPacket::new(a, b, seq, PEER_SEQ, 100).ecn(ecn));
    }
    talk.put(1, &TcpPacket::new(b, a, PEER_SEQ, SEQ.wrapping_add(400), 0).flags(ACK | ECE));
    let counts = talk.connection().halves[0].counts.clone();
    let sent = &counts.sent;
    assert_eq!((sent.ect1_packets, sent.ect0_packets, sent.ce_packets), (1, 2, 1));
    assert_eq!(counts.acks.ece_packets, 1);
}

#[test]
fn ce_marks_are_those_that_the_counter_of_accurate_ecn_reports() {
    // RFC 9768, 3.2: the counter starts at 5; its bits are AE, CWR and ECE.
    let carrying = |value: u64| {
        [(4, AE), (2, CWR), (1, ECE)]
            .iter()
            .fold(0, |f, &(bit, flag)| if value & bit == 0 { f } else { f | flag })
    };
    let mut talk = Talk::new();
    let [a, b] = endpoints();
    let put_ack = |talk: &mut Talk, number: u32, count: u64| {
        let packet = TcpPacket::new(b, a, PEER_SEQ, SEQ.wrapping_add(number), 0);
        talk.put(1, &packet.flags(ACK | carrying(count)));
    };
    let isn = SEQ.wrapping_sub(1);
    talk.put(0, &TcpPacket::new(a, b, isn, 0, 0).flags(SYN | AE | CWR | ECE).options(&OPTIONS));
    let syn_ack = TcpPacket::new(b, a, PEER_SEQ - 1, SEQ, 0).flags(SYN | ACK | CWR);
    talk.put(10, &syn_ack.options(&OPTIONS));
    // Echoes a SYN-ACK that was not ECN-capable.
    talk.put(0, &TcpPacket::new(a, b, SEQ, PEER_SEQ, 0).flags(ACK | CWR));
    let mut count = 5;
    for n in 0..20_u32 {
        let ecn = if n % 3 == 0 { 3 } else { 1 };
        count += u64::from(ecn == 3);
        let data = TcpPacket::new(a, b, SEQ.wrapping_add(1000 * n), PEER_SEQ, 1000);
        talk.put(1, &data.flags(ACK | carrying(5)).ecn(ecn));
        put_ack(&mut talk, 1000 * (n + 1), count);
    }
    // ACKs overtaken on their way: a step back by one would be an increase by seven.
    put_ack(&mut talk, 19_000, count - 1);
    put_ack(&mut talk, 20_000, count - 1);
    let connection = talk.connection();
    assert_eq!(connection.ecn, Some(ackwise_diagnose::Ecn::Accurate));
    let counts = &connection.halves[0].counts;
    assert_eq!((counts.sent.ce_packets, counts.acks.ce_reported_packets), (7, 7));
    assert_eq!(counts.acks.ce_unclear_acks, 0);
    assert_eq!(connection.halves[1].counts.acks.ce_reported_packets, 0);
}

#[test]
fn marked_bytes_are_those_that_accecn_options_report() {
    let mut talk = Talk::new();
    let [a, b] = endpoints();
    // RFC 9768, 3.2.1 and table 5: ECT(0), CE, ECT(1) from 1, 0, 1, or in reverse order.
    let option = |kind: u8, counters: &[u32]| {
        let mut bytes = vec![kind, 2 + 3 * counters.len() as u8];
        counters.iter().for_each(|counter| bytes.extend(&counter.to_be_bytes()[1..]));
        bytes.resize(bytes.len().next_multiple_of(4), 1);
        bytes
    };
    let isn = SEQ.wrapping_sub(1);
    talk.put(0, &TcpPacket::new(a, b, isn, 0, 0).flags(SYN | AE | CWR | ECE).options(&OPTIONS));
    let syn_ack = TcpPacket::new(b, a, PEER_SEQ - 1, SEQ, 0).flags(SYN | ACK | CWR);
    talk.put(10, &syn_ack.options(&[&OPTIONS[..], &option(172, &[1, 0, 1])].concat()));
    talk.put(0, &TcpPacket::new(a, b, SEQ, PEER_SEQ, 0).flags(ACK | CWR).options(&option(172, &[])));
    let (mut ect0, mut ce) = (1, 0);
    for n in 0..20_u32 {
        let marked = n % 3 == 0;
        *(if marked { &mut ce } else { &mut ect0 }) += 1000 + n;
        let data = TcpPacket::new(a, b, SEQ.wrapping_add(1000 * n), PEER_SEQ, 1000);
        talk.put(1, &data.flags(ACK | AE | ECE).ecn(if marked { 3 } else { 2 }));
        let counters = [option(172, &[ect0, ce]), option(174, &[1, ce, ect0]), option(172, &[])];
        let ack = TcpPacket::new(b, a, PEER_SEQ, SEQ.wrapping_add(1000 * (n + 1)), 0).flags(ACK | AE | ECE);
        talk.put(1, &ack.clone().options(&counters[n as usize % 3]));
        // It arrived after the next one: nothing new.
        if n == 10 {
            talk.put(0, &ack.options(&option(172, &[ect0 - 500, ce - 500])));
        }
    }
    let connection = talk.connection();
    let acks = &connection.halves[0].counts.acks;
    // The last option with counters was in packet 19.
    assert_eq!((acks.ect0_reported_bytes, acks.ce_reported_bytes), (u64::from(ect0) - 1, ce.into()));
    assert_eq!((acks.ect1_reported_bytes, acks.with_accecn), (0, 22));
    assert_eq!(connection.halves[1].counts.acks.with_accecn, 1);
}

#[test]
fn accecn_options_count_only_where_accurate_ecn_is_agreed_on() {
    let [_, b] = endpoints();
    let option = [172, 5, 0, 4, 0, 1, 1, 1];
    let mut talk = Talk::open();
    talk.data(1, 0, 1000);
    talk.put(1, &TcpPacket::new(b, endpoints()[0], PEER_SEQ, SEQ + 1000, 0).options(&option));
    assert_eq!(talk.connection().halves[0].counts.acks.with_accecn, 0);
}

/// xorshift64* generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as u32 % limit
    }
}

/// All time has one limit, none that its figures contradict, and nothing undecided is sure.
fn judged(judgment: &Judgment) {
    let times = judgment.limits.iter().map(|(limit, share)| (share.ns, *limit));
    let spans = judgment.spans.iter().map(|span| span.to_ns - span.from_ns);
    assert_eq!(times.clone().map(|(ns, _)| ns).sum::<u64>(), spans.sum::<u64>());
    for refuted in &judgment.refuted {
        assert!(!judgment.limits.contains_key(&refuted.limit));
        assert!(judgment.spans.iter().all(|span| span.limit != refuted.limit));
        assert!(judgment.limits[&Limit::Undecided].ns >= refuted.ns);
    }
    let is_undecided = times.max().map_or(true, |(_, limit)| limit == Limit::Undecided);
    assert_eq!(is_undecided, judgment.confidence == Confidence::Undecided);
}

#[test]
fn counts_add_up_for_any_packets() {
    for seed in 1..=60 {
        let mut random = Random(seed);
        let mut talk = Talk::new();
        let near = |random: &mut Random, base: u32| match random.below(12) {
            0 => random.below(u32::MAX),
            _ => base.wrapping_add(random.below(20_000)),
        };
        let mut payload = 0;
        for _ in 0..400 {
            let [mut a, mut b] = endpoints();
            let (mut seq, mut ack) = (near(&mut random, SEQ), near(&mut random, PEER_SEQ));
            if random.below(2) == 0 {
                (a, b) = (b, a);
                (seq, ack) = (ack, seq);
            }
            let flags = match random.below(20) {
                0 => random.below(512) as u16,
                1 => FIN | ACK,
                2 => RST,
                3 => SYN,
                _ => ACK,
            };
            let options: Vec<u8> = (0..random.below(40)).map(|_| random.below(12) as u8).collect();
            let bytes = random.below(3) * random.below(1500);
            if flags & RST == 0 {
                payload += u64::from(bytes);
            }
            let packet = TcpPacket::new(a, b, seq, ack, bytes).flags(flags).options(&options);
            talk.put(random.below(50).into(), &packet.window(random.below(65_536) as u16));
        }
        let connections = talk.connections();
        let packets: u64 = connections.iter().map(|c| c.packets).sum();
        assert_eq!(packets, 400, "seed {seed}");
        let mut found = 0;
        for c in &connections {
            let sent: u64 = c.halves.iter().map(|h| h.counts.sent.packets).sum();
            assert_eq!(sent + c.repeated_packets.iter().sum::<u64>(), c.packets, "seed {seed}");
            for h in &c.halves {
                let (sent, acks) = (&h.counts.sent, &h.counts.acks);
                found += sent.payload_bytes;
                assert!(sent.new_bytes <= sent.payload_bytes, "seed {seed}");
                assert!(sent.retransmitted_bytes <= sent.payload_bytes, "seed {seed}");
                assert!(sent.unseen_retransmissions <= sent.retransmissions.total(), "seed {seed}");
                assert!(acks.unseen_bytes <= acks.acked_bytes, "seed {seed}");
                let kinds = acks.advancing
                    + acks.duplicate
                    + acks.window_updates
                    + acks.keep_alive_replies
                    + acks.window_probe_replies
                    + acks.old;
                assert!(kinds <= acks.acks && acks.pure + acks.piggybacked <= acks.acks, "seed {seed}");
                assert!(h.acking.segments.samples() <= acks.advancing, "seed {seed}");
                assert!(h.rtt.data_ns.samples() <= acks.advancing, "seed {seed}");
                judged(&h.limits);
            }
        }
        assert_eq!(found, payload, "seed {seed}");
    }
}

/// Random packets between this many ports and one server.
fn jumble(packets: u64, ports: u32) -> Vec<u8> {
    let style = PcapStyle { nanoseconds: true, ..PcapStyle::default() };
    let mut writer = PcapWriter::new(link::RAW, style);
    let mut random = Random(5);
    for n in 0..packets {
        let port = 1000 + random.below(ports) as u16;
        let [mut a, mut b] = endpoints();
        a.set_port(port);
        let flags = if random.below(50) == 0 { SYN } else { ACK };
        if random.below(3) == 0 {
            (a, b) = (b, a);
        }
        let (seq, ack) = (random.below(50_000), random.below(50_000));
        let packet = TcpPacket::new(a, b, seq, ack, random.below(2) * 700).flags(flags);
        writer.tcp(START_NS + n * MS, &packet);
    }
    writer.into_bytes()
}

/// Packets that wait together are followed by connection, not in order of time.
#[test]
fn connections_do_not_end_early_because_others_went_on() {
    let mut writer = PcapWriter::new(link::RAW, PcapStyle { nanoseconds: true, ..PcapStyle::default() });
    let mut put = |after_ms: u64, port: u16, flags: u16| {
        let [mut a, b] = endpoints();
        a.set_port(1000 + port);
        writer.tcp(START_NS + after_ms * MS, &TcpPacket::new(a, b, SEQ, PEER_SEQ, 0).flags(flags));
    };
    (0..100).for_each(|port| put(0, port, RST | ACK));
    // More packets than wait together, so that later ones are followed later.
    (0..5000).for_each(|_| put(0, 999, ACK));
    (0..100).for_each(|port| put(100_000, port, ACK));
    (100..700).for_each(|port| put(300_000, port, ACK));
    let bytes = writer.into_bytes();
    let source = Source::reader(&bytes[..], "made");
    let found = diagnose([source], &ReadOptions::default(), &Effort::default()).expect("readable");
    let packets: Vec<_> = found.connections.iter().map(|c| c.packets).collect();
    assert_eq!(packets, [[2; 100].as_slice(), &[5000], &[1; 600]].concat());
}

#[test]
fn any_number_of_threads_finds_the_same() {
    // Short connections, and so few that all but one thread are idle.
    for (ports, least) in [(300, 301), (1, 2)] {
        let bytes = jumble(20_000, ports);
        let told = [1, 2, 3, 8].map(|threads| {
            let source = Source::reader(&bytes[..], "made");
            let threads = NonZeroUsize::new(threads).expect("above 0");
            let effort = Effort { threads, ..Effort::default() };
            let diagnosis = diagnose([source], &ReadOptions::default(), &effort).expect("readable");
            assert!(diagnosis.connections.len() >= least);
            serde_json::to_string(&diagnosis.connections).expect("plain values")
        });
        assert!(told.iter().all(|one| *one == told[0]));
    }
}

#[test]
fn statistics_are_those_of_the_diagnosis() {
    let bytes = jumble(5_000, 100);
    let source = || [Source::reader(&bytes[..], "made")];
    let whole = diagnose(source(), &ReadOptions::default(), &Effort::default()).expect("readable");
    let plain = statistics(source(), &ReadOptions::default(), &Effort::default()).expect("readable");
    assert_eq!(whole.connections.len(), plain.connections.len());
    for (whole, plain) in whole.connections.iter().zip(&plain.connections) {
        assert_eq!(whole.packets, plain.packets);
        for (whole, plain) in whole.halves.iter().zip(&plain.halves) {
            assert_eq!(whole.counts, plain.counts);
            assert_eq!(format!("{:?}", whole.rtt), format!("{:?}", plain.rtt));
            assert_eq!(format!("{:?}", whole.rate), format!("{:?}", plain.rate));
            assert_eq!(format!("{:?}", whole.window), format!("{:?}", plain.window));
        }
    }
}

/// A sender without congestion control over a path that loses and delays packets, captured at the
/// sender.
#[test]
fn what_a_sender_repeats_and_its_receiver_acknowledges_is_what_is_counted() {
    for seed in 1..=60 {
        let mut random = Random(seed * 7919);
        let mut talk = Talk::open();
        let segments = 50 + random.below(100);
        let mut has = vec![false; segments as usize];
        let (mut again, mut advancing, mut acked) = (0, 0, 0);
        let mut next = 0;
        while acked < segments {
            let sends_again = next > acked && (next == segments || random.below(6) == 0);
            let segment = if sends_again { acked + random.below(next - acked) } else { next };
            again += u64::from(sends_again);
            next = next.max(segment + 1);
            talk.data(random.below(3).into(), 1000 * segment, 1000);
            if random.below(4) > 0 {
                has[segment as usize] = true;
            }
            if random.below(2) == 0 {
                let got = has.iter().take_while(|&&h| h).count() as u32;
                advancing += u64::from(got > acked);
                acked = got;
                talk.ack(5, 1000 * acked, 60_000);
            }
        }
        let half = talk.connection().halves[0].clone();
        let (sent, acks) = (&half.counts.sent, &half.counts.acks);
        assert_eq!(sent.new_bytes, 1000 * u64::from(segments), "seed {seed}");
        assert_eq!(sent.retransmissions.total(), again, "seed {seed}");
        assert_eq!(sent.retransmitted_bytes, 1000 * again, "seed {seed}");
        assert_eq!(acks.acked_bytes, 1000 * u64::from(segments), "seed {seed}");
        assert_eq!((acks.advancing, acks.unseen_bytes), (advancing, 0), "seed {seed}");
        assert_eq!(sent.out_of_order_packets + sent.gaps, 0, "seed {seed}");
    }
}

#[test]
fn what_is_left_out_is_counted_and_worth_less() {
    let bytes = jumble(20_000, 300);
    let of = |threads, open_most, kept_most| {
        let threads = NonZeroUsize::new(threads).expect("above 0");
        let effort = Effort { threads, open_most, kept_most };
        let source = Source::reader(&bytes[..], "made");
        diagnose([source], &ReadOptions::default(), &effort).expect("readable")
    };
    let whole = of(1, 1 << 14, 10_000);
    assert_eq!((whole.left_out, whole.cut_connections), (LeftOut::default(), 0));
    let lost_and_bytes = |c: &Connection| {
        let of = |h: &ackwise_diagnose::Half| {
            (h.limits.lost_ns.saturating_add(50_000_000) / 100_000_000, bytes_of(h))
        };
        (c.halves.iter().map(of).max(), std::cmp::Reverse(c.index))
    };
    let mut worth: Vec<_> = whole.connections.iter().map(|c| lost_and_bytes(c)).collect();
    worth.sort_unstable();
    let few = of(1, 1 << 14, 40);
    let kept: Vec<_> = few.connections.iter().map(|c| c.index).collect();
    let mut expected: Vec<_> = worth[worth.len() - 40..].iter().map(|(_, index)| index.0).collect();
    expected.sort_unstable();
    assert_eq!(kept, expected);
    let told = |d: &Diagnosis| serde_json::to_string(&d.connections).expect("plain values");
    for one in &few.connections {
        let same = whole.connections.iter().find(|c| c.index == one.index).expect("kept there, too");
        assert_eq!(format!("{one:?}"), format!("{same:?}"));
    }
    for (open_most, kept_most) in [(1 << 14, 40), (50, 10_000), (50, 40), (1, 0)] {
        let found = [1, 2, 3, 8].map(|threads| of(threads, open_most, kept_most));
        let packets: u64 = found[0].connections.iter().map(|c| c.packets).sum();
        assert_eq!(packets + found[0].left_out.packets, whole.notes.tcp_packets);
        assert_eq!(found[0].cut_connections > 0, open_most < 300);
        assert!(found.iter().all(|one| told(one) == told(&found[0])
            && one.left_out == found[0].left_out
            && one.cut_connections == found[0].cut_connections));
    }
}

/// As many as bench/diagnose has, with so many packets that some are followed when all are open.
#[test]
fn ten_thousand_open_connections_are_followed_and_kept_whole() {
    const CONNECTIONS: u16 = 10_000;
    const ACKED: u32 = 14;
    let mut writer = PcapWriter::new(link::RAW, PcapStyle { nanoseconds: true, ..PcapStyle::default() });
    let mut put = |at_ms: u32, is_data: bool, segment: u32| {
        let seq = SEQ.wrapping_add(1000 * segment);
        for port in 0..CONNECTIONS {
            let [mut a, b] = endpoints();
            a.set_port(1000 + port);
            let packet = match is_data {
                true => TcpPacket::new(a, b, seq, PEER_SEQ, 1000),
                false => TcpPacket::new(b, a, PEER_SEQ, seq, 0),
            };
            writer.tcp(START_NS + u64::from(at_ms) * MS + u64::from(port) * 1000, &packet.flags(ACK));
        }
    };
    for segment in 0..ACKED {
        put(40 * segment, true, segment);
        put(40 * segment + 20, false, segment + 1);
    }
    put(40 * ACKED, true, ACKED);
    put(40 * ACKED + 500, true, ACKED);
    let bytes = writer.into_bytes();
    let (options, effort) = (ReadOptions::default(), Effort::default());
    let source = || [Source::reader(&bytes[..], "made")];
    let each = vec![(1, u64::from(ACKED)); CONNECTIONS.into()];

    let found = diagnose(source(), &options, &effort).expect("readable");
    assert_eq!((found.cut_connections, found.left_out), (0, LeftOut::default()));
    let again_and_rtts = found.connections.iter().map(|c| {
        let sender = &c.halves[usize::from(c.endpoints[1].port() != 80)];
        (sender.counts.sent.retransmissions.total(), sender.rtt.data_ns.samples())
    });
    assert_eq!(again_and_rtts.collect::<Vec<_>>(), each);

    let found = statistics(source(), &options, &effort).expect("readable");
    assert_eq!((found.cut_connections, found.left_out), (0, LeftOut::default()));
    let again_and_rtts = found.connections.iter().map(|c| {
        let sender = &c.halves[usize::from(c.endpoints[1].port() != 80)];
        (sender.counts.sent.retransmissions.total(), sender.rtt.data_ns.samples())
    });
    assert_eq!(again_and_rtts.collect::<Vec<_>>(), each);
}

fn bytes_of(half: &ackwise_diagnose::Half) -> u64 {
    half.counts.sent.new_bytes + half.counts.acks.missed_bytes
}
