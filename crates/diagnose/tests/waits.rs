// SPDX-License-Identifier: MIT
//! What a sender waited for, on conversations whose hosts wait for a known reason, each captured at
//! both ends and between them.

use ackwise_capture::tcp_flag::{ACK, FIN, PSH, RST, SYN};
use ackwise_capture::write::{too_big, PcapStyle, PcapWriter, TcpPacket};
use ackwise_capture::{link, ReadOptions, Source};
use ackwise_diagnose::limits::{Because, Confidence, Doubt, Limit, MtuSign};
use ackwise_diagnose::{diagnose, Connection, Effort};
use ackwise_link as _;
use std::net::SocketAddr;

const START_NS: u64 = 1_700_000_000_000_000_000;
const MS: u64 = 1_000_000;
const US: u64 = 1000;
const CLIENT: usize = 0;
const SERVER: usize = 1;
const MSS: u32 = 1400;
/// MSS 1400, SACK permitted, window scale 7.
const OPTIONS: [u8; 12] = [2, 4, 5, 0x78, 4, 2, 3, 3, 7, 1, 1, 1];
/// A packet leaves after the one before it at 100 Mbit/s, and a host answers in this time.
const PACKET_NS: u64 = 120 * US;
const HOST_NS: u64 = 30 * US;
/// Where the path is captured: distance from the client, in hundredths of the path.
const PLACES: [u64; 3] = [0, 40, 100];
/// Those in front of a loss behind the path: not at the client.
const IN_FRONT: [u64; 2] = [40, 100];

/// How hosts number their packets.
#[derive(Clone, Copy)]
enum Idents {
    /// Each connection for itself, as Linux does.
    Own,
    /// All connections of the host together: so many packets go elsewhere in each half second.
    Shared(u64),
    Zero,
    Random,
}

/// A conversation over a path. Times are those at the host that sends.
#[derive(Clone)]
struct Talk {
    rtt_ns: u64,
    idents: Idents,
    stamps: bool,
    sack: bool,
    /// Time at which a packet leaves, its sender, the packet, and whether it is lost: at once, or
    /// behind all capture points.
    packets: Vec<(u64, usize, TcpPacket, Loss)>,
    /// TTL at the capture point, by sender.
    ttl: fn(usize, &TcpPacket) -> u8,
    /// IP packets of others, and when they pass the capture point.
    others: Vec<(u64, Vec<u8>)>,
    /// What each host received: when, and up to which sequence number.
    received: [Vec<(u64, u32)>; 2],
    next: [u32; 2],
}

#[derive(Clone, Copy, PartialEq)]
enum Loss {
    None,
    Early,
    Late,
}

fn endpoints(from: usize) -> (SocketAddr, SocketAddr) {
    let [client, server] = ["10.0.0.1:1000", "10.0.0.2:80"].map(|a| a.parse().expect("an address"));
    if from == CLIENT {
        (client, server)
    } else {
        (server, client)
    }
}

impl Talk {
    fn new(rtt_ms: u64) -> Self {
        let (idents, stamps, sack) = (Idents::Own, false, true);
        let received = [vec![], vec![]];
        let (packets, others) = (vec![], vec![]);
        let ttl: fn(usize, &TcpPacket) -> u8 = |_, _| 64;
        Talk { rtt_ns: rtt_ms * MS, idents, stamps, sack, packets, ttl, others, received, next: [1, 1] }
    }

    /// The handshake; the time at which it is over for the client.
    fn open(&mut self) -> u64 {
        let (a, b) = endpoints(CLIENT);
        let options: Vec<u8> = match self.sack {
            true => OPTIONS.to_vec(),
            false => OPTIONS.iter().enumerate().map(|(n, &o)| if n == 4 || n == 5 { 1 } else { o }).collect(),
        };
        let syn = TcpPacket::new(a, b, 0, 0, 0).flags(SYN).options(&options);
        self.put(0, CLIENT, syn, Loss::None);
        let syn_ack = TcpPacket::new(b, a, 0, 1, 0).flags(SYN | ACK).options(&options);
        self.put(self.rtt_ns / 2 + HOST_NS, SERVER, syn_ack, Loss::None);
        let at_ns = self.rtt_ns + 2 * HOST_NS;
        self.received = [vec![(0, 1)], vec![(0, 1)]];
        self.ack(at_ns, CLIENT);
        at_ns
    }

    fn put(&mut self, at_ns: u64, from: usize, packet: TcpPacket, loss: Loss) {
        let packet = packet.window(20_000);
        self.packets.push((at_ns, from, packet, loss));
    }

    /// Acknowledgment number of a host at a time.
    fn una(&self, at_ns: u64, host: usize) -> u32 {
        let came = self.received[host].iter().filter(|(ns, _)| *ns <= at_ns);
        came.map(|(_, end)| *end).max().unwrap_or(0)
    }

    fn segment(&mut self, at_ns: u64, from: usize, seq: u32, bytes: u32, flags: u16, loss: Loss) {
        let (a, b) = endpoints(from);
        let mut packet = TcpPacket::new(a, b, seq, self.una(at_ns, from), bytes).flags(ACK | flags);
        if self.stamps {
            let [value, echo] = [at_ns / MS, at_ns.saturating_sub(self.rtt_ns / 2) / MS];
            let stamp = |ms: u64| (1000 + ms as u32).to_be_bytes();
            packet = packet.options(&[&[1, 1, 8, 10][..], &stamp(value), &stamp(echo)].concat());
        }
        self.put(at_ns, from, packet, loss);
    }

    fn ack(&mut self, at_ns: u64, from: usize) {
        self.segment(at_ns, from, self.next[from], 0, 0, Loss::None);
    }

    /// New data in segments, in order; the time at which the last has arrived. The last has PSH.
    fn data(&mut self, at_ns: u64, from: usize, bytes: u32) -> u64 {
        let mut left = bytes;
        let mut at_ns = at_ns;
        while left > 0 {
            let size = left.min(MSS);
            left -= size;
            self.lose(at_ns, from, size, if left == 0 { PSH } else { 0 }, Loss::None);
            let arrives_ns = at_ns + self.rtt_ns / 2;
            self.received[1 - from].push((arrives_ns, self.next[from]));
            at_ns += PACKET_NS;
        }
        at_ns - PACKET_NS + self.rtt_ns / 2
    }

    /// New data in one segment, whatever becomes of it.
    fn lose(&mut self, at_ns: u64, from: usize, bytes: u32, flags: u16, loss: Loss) {
        self.segment(at_ns, from, self.next[from], bytes, flags, loss);
        self.next[from] += bytes + u32::from(flags & FIN != 0);
    }

    /// As `data`, with an ACK for every second segment and `last_ns` later for the last.
    fn acked_data(&mut self, at_ns: u64, from: usize, bytes: u32, last_ns: u64) -> u64 {
        let segments = u64::from(bytes.div_ceil(MSS));
        let done_ns = self.data(at_ns, from, bytes);
        for n in (2..segments).step_by(2) {
            self.ack(at_ns + (n - 1) * PACKET_NS + self.rtt_ns / 2 + HOST_NS, 1 - from);
        }
        self.ack(done_ns + HOST_NS + last_ns, 1 - from);
        done_ns
    }

    /// What the capture at a place shows.
    fn diagnosis(&self, place: u64) -> Connection {
        let style = PcapStyle { nanoseconds: true, ..PcapStyle::default() };
        let mut writer = PcapWriter::new(link::RAW, style);
        let mut packets = self.packets.clone();
        packets.sort_by_key(|(at_ns, from, ..)| (*at_ns, *from));
        let mut counts = [1u64; 2];
        let mut seen: Vec<(u64, Vec<u8>)> = vec![];
        for (n, (at_ns, from, packet, loss)) in packets.into_iter().enumerate() {
            counts[from] += 1;
            let ident = match self.idents {
                Idents::Own => counts[from],
                Idents::Shared(others) => counts[from] + others * (at_ns / (500 * MS)),
                Idents::Zero => 0,
                Idents::Random => (n as u64).wrapping_mul(2_654_435_761) >> 16,
            };
            let part = if from == CLIENT { place } else { 100 - place };
            if loss == Loss::Early && part > 0 {
                continue;
            }
            let packet = packet.ident(ident as u16);
            let mut ip = packet.to_ip();
            ip[8] = (self.ttl)(from, &packet);
            seen.push((at_ns + self.rtt_ns / 2 * part / 100, ip));
        }
        seen.extend(self.others.iter().cloned());
        seen.sort_by_key(|(ns, _)| *ns);
        for (ns, ip) in &seen {
            writer.frame(START_NS + ns, ip);
        }
        let bytes = writer.into_bytes();
        let source = [Source::reader(&bytes[..], "made")];
        let found = diagnose(source, &ReadOptions::default(), &Effort::default()).expect("readable");
        assert_eq!(found.connections.len(), 1);
        *found.connections.into_iter().next().expect("a connection")
    }
}

fn share(connection: &Connection, half: usize, limit: Limit) -> f64 {
    let limits = &connection.halves[half].limits.limits;
    let whole: u64 = limits.values().map(|share| share.ns).sum();
    limits.get(&limit).map_or(0.0, |share| share.ns as f64 / whole as f64)
}

/// Time with a limit, ms.
fn time_ms(connection: &Connection, half: usize, limit: Limit) -> u64 {
    connection.halves[half].limits.limits.get(&limit).map_or(0, |share| share.ns / MS)
}

#[track_caller]
fn mostly(connection: &Connection, half: usize, limit: Limit, least: f64, what: &str) {
    let found = share(connection, half, limit);
    assert!(found >= least, "{what}: {limit:?} {found}, {:?}", connection.halves[half].limits.limits);
}

/// Requests of `bytes` with some time between them, and their answers.
fn requests(idents: Idents, bytes: u32, pause_ms: u64) -> Talk {
    let mut talk = Talk::new(30);
    talk.idents = idents;
    let mut now_ns = talk.open();
    for _ in 0..16 {
        let came_ns = talk.acked_data(now_ns, CLIENT, bytes, 0);
        let done_ns = talk.acked_data(came_ns + MS, SERVER, 3800, 0);
        now_ns = done_ns + pause_ms * MS;
    }
    talk
}

#[test]
fn numbers_that_a_host_skips_are_no_lost_packets() {
    for idents in [Idents::Shared(1), Idents::Shared(3), Idents::Shared(90), Idents::Zero, Idents::Random] {
        for (bytes, pause_ms) in [(200, 190), (200, 500), (3000, 700), (40_000, 1500)] {
            for place in PLACES {
                let found = requests(idents, bytes, pause_ms).diagnosis(place);
                for half in [CLIENT, SERVER] {
                    assert_eq!(time_ms(&found, half, Limit::Timeout), 0, "{bytes} bytes at {place}");
                    mostly(&found, half, Limit::SendingApplication, 0.85, "requests");
                }
            }
        }
    }
}

#[test]
fn a_number_that_a_connection_skips_within_a_write_is_a_lost_packet() {
    let mut talk = Talk::new(30);
    let mut now_ns = talk.open();
    for _ in 0..8 {
        for n in 0..10 {
            talk.lose(now_ns + n * PACKET_NS, CLIENT, MSS, 0, Loss::None);
            talk.received[SERVER].push((now_ns + n * PACKET_NS + 15 * MS, talk.next[CLIENT]));
        }
        for n in (1..10).step_by(2) {
            talk.ack(now_ns + n * PACKET_NS + 15 * MS + HOST_NS, SERVER);
        }
        // The first copy of the tail is lost at once; nothing reports that.
        let (at_ns, seq) = (now_ns + 10 * PACKET_NS, talk.next[CLIENT]);
        talk.lose(at_ns, CLIENT, MSS, PSH, Loss::Early);
        let again_ns = at_ns + 260 * MS;
        talk.segment(again_ns, CLIENT, seq, MSS, PSH, Loss::None);
        talk.received[SERVER].push((again_ns + 15 * MS, talk.next[CLIENT]));
        talk.ack(again_ns + 15 * MS + HOST_NS, SERVER);
        now_ns = again_ns + 30 * MS + 2 * HOST_NS;
    }
    for place in PLACES {
        mostly(&talk.diagnosis(place), CLIENT, Limit::Timeout, 0.8, "lost tails");
    }
}

/// A transfer of 80 kB, silence, and a last packet that is lost `lost` times behind all captures.
fn idle_then_lost(idle_ms: u64, lost: u32, bytes: u32, flags: u16, keep_alive_ms: Option<u64>) -> Talk {
    let mut talk = Talk::new(30);
    let mut now_ns = talk.open();
    let asked_ns = talk.acked_data(now_ns, CLIENT, 200, 0);
    now_ns = talk.acked_data(asked_ns + MS, SERVER, 80_000, 0) + 20 * MS;
    let end_ns = now_ns + idle_ms * MS;
    for at_ns in
        keep_alive_ms.into_iter().flat_map(|ms| (now_ns + ms * MS..end_ns).step_by((ms * MS) as usize))
    {
        let seq = talk.next[SERVER] - 1;
        talk.segment(at_ns, SERVER, seq, 0, 0, Loss::None);
        talk.ack(at_ns + 15 * MS + HOST_NS, CLIENT);
    }
    let seq = talk.next[SERVER];
    talk.lose(end_ns, SERVER, bytes, flags, Loss::Late);
    let mut again_ns = end_ns;
    for n in 0..lost {
        again_ns += (230 * MS) << n;
        let loss = if n + 1 == lost { Loss::None } else { Loss::Late };
        talk.segment(again_ns, SERVER, seq, bytes, flags, loss);
    }
    talk.received[CLIENT].push((again_ns + 15 * MS, talk.next[SERVER]));
    talk.ack(again_ns + 15 * MS + HOST_NS, CLIENT);
    talk
}

#[test]
fn silence_before_what_is_lost_belongs_to_the_application_and_only_the_rest_to_the_timer() {
    for (idle_ms, keep_alive_ms) in [(5000, None), (60_000, None), (60_000, Some(7000)), (900, None)] {
        for (bytes, flags) in [(0, FIN), (300, PSH), (MSS, PSH)] {
            for lost in [1u32, 2, 3] {
                for place in IN_FRONT {
                    let found = idle_then_lost(idle_ms, lost, bytes, flags, keep_alive_ms).diagnosis(place);
                    let timer_ms = 230 * ((1 << lost) - 1);
                    let told_ms = time_ms(&found, SERVER, Limit::Timeout);
                    let what = format!("{idle_ms} ms, {bytes} bytes lost {lost} times, at {place}");
                    assert!(told_ms.abs_diff(timer_ms) <= 40, "{what}: {told_ms} not {timer_ms}");
                    let idle = time_ms(&found, SERVER, Limit::SendingApplication);
                    assert!(idle.abs_diff(idle_ms) <= 60, "{what}: idle {idle}");
                    assert_eq!(time_ms(&found, CLIENT, Limit::Timeout), 0, "{what}");
                }
            }
        }
    }
}

#[test]
fn keep_alives_are_neither_data_nor_losses_and_end_no_silence() {
    for place in IN_FRONT {
        let found = idle_then_lost(60_000, 1, 300, PSH, Some(5000)).diagnosis(place);
        let sent = &found.halves[SERVER].counts.sent;
        assert_eq!((sent.keep_alives, sent.retransmissions.total()), (11, 1));
        assert_eq!(sent.new_bytes, 80_300);
        assert_eq!(found.halves[SERVER].counts.acks.keep_alive_replies, 11);
    }
}

#[test]
fn a_handshake_is_over_when_it_is_over() {
    for idle_ms in [300, 10_000] {
        for place in PLACES {
            let mut talk = Talk::new(30);
            let now_ns = talk.open() + idle_ms * MS;
            let asked_ns = talk.acked_data(now_ns, CLIENT, 200, 0);
            talk.acked_data(asked_ns + MS, SERVER, 5000, 0);
            let found = talk.diagnosis(place);
            for half in [CLIENT, SERVER] {
                let told_ms = time_ms(&found, half, Limit::Handshake);
                assert!(told_ms <= 61, "half {half} at {place}: {told_ms}");
                mostly(&found, half, Limit::SendingApplication, 0.75, "an idle client");
            }
            let answers = found.halves[SERVER].limits.answers;
            assert_eq!(answers.waits, 1, "the request");
            assert!((answers.ns / MS).abs_diff(idle_ms) <= 40);
        }
    }
}

/// A server's answer of full segments, of which none arrives until it sends smaller ones; a short
/// tail does.
fn black_hole(passes: u32, sack: bool, copies: u32, recovers: bool, loss: Loss) -> Talk {
    let mut talk = Talk::new(30);
    talk.sack = sack;
    let now_ns = talk.open();
    let asked_ns = talk.acked_data(now_ns, CLIENT, 300, 0);
    let start = talk.next[SERVER];
    let mut at_ns = asked_ns + MS;
    for _ in 0..6 {
        talk.lose(at_ns, SERVER, MSS, 0, loss);
        at_ns += PACKET_NS;
    }
    let tail = talk.next[SERVER];
    talk.lose(at_ns, SERVER, 200, PSH, Loss::None);
    // It lies above a hole.
    let (a, b) = endpoints(CLIENT);
    let mut ack = TcpPacket::new(a, b, talk.next[CLIENT], start, 0);
    if sack {
        let block = [tail, tail + 200].into_iter().flat_map(u32::to_be_bytes);
        ack = ack.options(&[1, 1, 5, 10].into_iter().chain(block).collect::<Vec<_>>());
    }
    talk.put(at_ns + 15 * MS + HOST_NS, CLIENT, ack, Loss::None);
    for n in 0..copies {
        at_ns += (230 * MS) << n;
        talk.segment(at_ns, SERVER, start, MSS, 0, loss);
    }
    if recovers {
        at_ns += (230 * MS) << copies;
        let mut seq = start;
        while seq < tail {
            let bytes = passes.min(tail - seq);
            talk.segment(at_ns, SERVER, seq, bytes, 0, Loss::None);
            seq += bytes;
            let end = if seq == tail { talk.next[SERVER] } else { seq };
            talk.received[CLIENT].push((at_ns + 15 * MS, end));
            talk.ack(at_ns + 15 * MS + HOST_NS, CLIENT);
            at_ns += 31 * MS;
        }
    }
    talk
}

#[test]
fn sizes_that_never_arrive_are_a_black_hole_of_the_path_mtu() {
    for place in IN_FRONT {
        for (passes, sack, copies, recovers) in
            [(1000, true, 4, true), (512, false, 3, true), (1300, true, 2, true), (1000, true, 5, false)]
        {
            let found = black_hole(passes, sack, copies, recovers, Loss::Late).diagnosis(place);
            let told = found.halves[SERVER].limits.path_mtu.expect("told");
            assert_eq!(told.lost_bytes, MSS + 40);
            assert_eq!(told.passed_bytes, if recovers { passes } else { 200 } + 40);
            mostly(&found, SERVER, Limit::Timeout, 0.6, "a black hole");
            assert_eq!(found.halves[CLIENT].limits.path_mtu, None);
        }
    }
}

/// Messages about each packet of the server that is larger than `mtu_bytes`, as they pass the capture
/// point on their way back.
fn told(mut talk: Talk, mtu_bytes: u16) -> Talk {
    let router = "192.0.2.1".parse().expect("an address");
    for (at_ns, from, packet, _) in &talk.packets {
        let ip = packet.to_ip();
        if *from == SERVER && ip.len() > mtu_bytes.into() {
            talk.others.push((at_ns + 10 * MS, too_big(router, &ip, mtu_bytes)));
        }
    }
    talk
}

#[test]
fn a_routers_message_proves_a_black_hole_and_names_the_router() {
    for place in IN_FRONT {
        for (sack, recovers) in [(true, true), (false, true), (true, false), (false, false)] {
            let silent = black_hole(1000, sack, 5, recovers, Loss::Late);
            let found = told(silent.clone(), 1040).diagnosis(place);
            let path_mtu = found.halves[SERVER].limits.path_mtu.expect("told");
            let message = path_mtu.told.expect("a message");
            assert_eq!(message.router.to_string(), "192.0.2.1");
            assert_eq!((message.mtu_bytes, path_mtu.lost_bytes), (1040, MSS + 40));
            assert!(message.messages >= 6 && path_mtu.holds_others);
            assert_eq!(path_mtu.shown_by == MtuSign::RouterTold, !sack && !recovers);
            mostly(&found, SERVER, Limit::Timeout, 0.6, "a black hole");
            // Without it, a path on which nothing passes may as well be down.
            let without = silent.diagnosis(place).halves[SERVER].limits.path_mtu;
            assert_eq!(without.is_some(), sack || recovers);
            assert!(without.map_or(true, |one| one.told.is_none() && !one.holds_others));
        }
        // A message about larger packets than these says nothing about them.
        let mut talk = black_hole(1000, true, 5, true, Loss::Late);
        let (a, b) = endpoints(SERVER);
        let large = TcpPacket::new(a, b, 1, 1, 8000).to_ip();
        talk.others.push((100 * MS, too_big("192.0.2.1".parse().expect("an address"), &large, 4000)));
        let path_mtu = talk.diagnosis(place).halves[SERVER].limits.path_mtu.expect("told");
        assert_eq!(path_mtu.told, None);
    }
}

#[test]
fn a_sender_that_heeds_a_routers_message_is_in_no_black_hole() {
    for place in PLACES {
        let mut talk = Talk::new(30);
        let now_ns = talk.open();
        let asked_ns = talk.acked_data(now_ns, CLIENT, 300, 0);
        let start = talk.next[SERVER];
        talk.lose(asked_ns + MS, SERVER, MSS, 0, Loss::Late);
        let mut talk = told(talk, 1040);
        // Discovery of the path MTU (RFC 1191, 6.4): at once, in smaller packets.
        for (n, bytes) in [1000, MSS - 1000].into_iter().enumerate() {
            let at_ns = asked_ns + 12 * MS + n as u64 * PACKET_NS;
            talk.segment(at_ns, SERVER, start + 1000 * n as u32, bytes, 0, Loss::None);
            let end = if n == 0 { start + 1000 } else { start + MSS };
            talk.received[CLIENT].push((at_ns + 15 * MS, end));
            talk.ack(at_ns + 15 * MS + HOST_NS, CLIENT);
        }
        talk.acked_data(asked_ns + 60 * MS, SERVER, 6000, 0);
        assert_eq!(talk.diagnosis(place).halves[SERVER].limits.path_mtu, None);
    }
}

/// The places behind a hop that drops packets next to the server.
const BEHIND: [u64; 2] = [0, 40];

#[test]
fn behind_the_hop_a_black_hole_shows_by_smaller_packets_after_a_silence() {
    for place in BEHIND {
        for (passes, copies) in [(1000, 4), (512, 3), (1200, 2)] {
            let found = black_hole(passes, true, copies, true, Loss::Early).diagnosis(place);
            let told = found.halves[SERVER].limits.path_mtu.expect("told");
            assert_eq!((told.lost_bytes, told.passed_bytes), (MSS + 40, passes + 40));
            assert_eq!(told.shown_by, MtuSign::SmallerAfterSilence);
            mostly(&found, SERVER, Limit::Timeout, 0.5, "timers before the capture point");
            assert!(found.halves[SERVER].counts.sent.retransmissions.total() > 0);
        }
    }
}

/// An answer of `bytes` after three seconds, each packet with these flags but the last with PSH.
fn late_answer(bytes: u32, size: u32, flags: u16) -> Talk {
    let mut talk = Talk::new(30);
    let now_ns = talk.open();
    let asked_ns = talk.acked_data(now_ns, CLIENT, 300, 0);
    let mut at_ns = talk.acked_data(asked_ns + MS, SERVER, 250, 0) + 3000 * MS;
    for n in 0..bytes / size {
        let is_last = (n + 1) * size == bytes;
        talk.lose(at_ns, SERVER, size, if is_last { PSH } else { flags }, Loss::None);
        talk.received[CLIENT].push((at_ns + 15 * MS, talk.next[SERVER]));
        talk.ack(at_ns + 15 * MS + HOST_NS, CLIENT);
        at_ns += PACKET_NS;
    }
    talk
}

#[test]
fn an_answer_that_is_late_or_written_in_blocks_is_no_black_hole() {
    for place in PLACES {
        for (size, flags) in [(MSS, 0), (1000, PSH), (200, PSH)] {
            let found = late_answer(12 * size, size, flags).diagnosis(place);
            assert_eq!(found.halves[SERVER].limits.path_mtu, None, "{size}");
            mostly(&found, SERVER, Limit::SendingApplication, 0.9, "a late answer");
        }
    }
}

#[test]
fn an_end_of_which_no_full_packet_came_and_whose_numbers_skip_is_undecided() {
    for (place, lost, limit) in [
        (0, 12, Limit::Undecided),
        (40, 5, Limit::Undecided),
        // Nothing is missing, or the capture has all of it.
        (0, 0, Limit::SendingApplication),
        (100, 12, Limit::Timeout),
    ] {
        let mut talk = Talk::new(30);
        let now_ns = talk.open();
        let asked_ns = talk.acked_data(now_ns, CLIENT, 300, 0);
        let head_ns = talk.acked_data(asked_ns + MS, SERVER, 250, 0);
        let start = talk.next[SERVER];
        for n in 0..lost {
            let at_ns = head_ns - 15 * MS + (n + 1) * 300 * MS;
            talk.segment(at_ns, SERVER, start, MSS, 0, Loss::Early);
        }
        let closed_ns = head_ns + 4500 * MS;
        talk.lose(closed_ns, CLIENT, 0, FIN, Loss::None);
        talk.received[SERVER].push((closed_ns + 15 * MS, talk.next[CLIENT]));
        let (a, b) = endpoints(SERVER);
        let ack = TcpPacket::new(a, b, start, talk.next[CLIENT], 0).flags(ACK);
        talk.put(closed_ns + 15 * MS + HOST_NS, SERVER, ack, Loss::None);
        mostly(&talk.diagnosis(place), SERVER, limit, 0.7, "an end");
        if limit == Limit::Undecided {
            // A message about packets that are never seen, from a router behind the capture point.
            let found = told(talk, 1040).diagnosis(place);
            mostly(&found, SERVER, Limit::Timeout, 0.7, "a router told");
            let path_mtu = found.halves[SERVER].limits.path_mtu.expect("told");
            assert_eq!((path_mtu.lost_bytes, path_mtu.passed_bytes), (MSS + 40, 1040));
            assert_eq!(path_mtu.shown_by, MtuSign::RouterTold);
        }
    }
}

/// Requests of which each second one is answered `late_ms` later: because the first copy of the
/// answer is lost, or because the server takes that long.
fn late_answers(idents: Idents, late_ms: u64, is_lost: bool, pause_ms: u64) -> Talk {
    let mut talk = Talk::new(40);
    talk.idents = idents;
    let mut now_ns = talk.open();
    for n in 0..24 {
        let mut at_ns = talk.data(now_ns, CLIENT, 200) + MS;
        if n % 2 == 1 && is_lost {
            talk.segment(at_ns, SERVER, talk.next[SERVER], 900, PSH, Loss::Early);
        }
        at_ns += if n % 2 == 1 { late_ms * MS } else { 0 };
        now_ns = talk.data(at_ns, SERVER, 900) + pause_ms * MS + HOST_NS;
    }
    talk
}

#[test]
fn answers_that_are_late_because_a_packet_was_lost_are_told_by_the_numbers() {
    for place in BEHIND {
        for (late_ms, pause_ms) in [(240, 0), (300, 5)] {
            let lost = late_answers(Idents::Own, late_ms, true, pause_ms).diagnosis(place);
            mostly(&lost, SERVER, Limit::Timeout, 0.6, "lost answers");
            for idents in [Idents::Own, Idents::Shared(1), Idents::Shared(4), Idents::Zero, Idents::Random] {
                let slow = late_answers(idents, late_ms, false, pause_ms).diagnosis(place);
                mostly(&slow, SERVER, Limit::SendingApplication, 0.85, "slow answers");
            }
        }
    }
}

#[test]
fn losses_of_large_packets_of_which_some_arrive_are_no_black_hole() {
    for place in IN_FRONT {
        // All packets are lost for a while, and larger ones arrive afterwards.
        let mut talk = black_hole(1000, true, 3, true, Loss::Late);
        let after_ns = talk.packets.iter().map(|(at_ns, ..)| *at_ns).max().expect("packets") + 40 * MS;
        talk.acked_data(after_ns, SERVER, 10 * MSS, 0);
        assert_eq!(talk.diagnosis(place).halves[SERVER].limits.path_mtu, None);
        let outage = idle_then_lost(1000, 3, MSS, PSH, None).diagnosis(place);
        assert_eq!(outage.halves[SERVER].limits.path_mtu, None);
    }
}

/// A sender that writes a block when the last one is acknowledged.
fn blocks(bytes: u32, rtt_ms: u64, last_ns: u64, stamps: bool) -> Talk {
    let mut talk = Talk::new(rtt_ms);
    talk.stamps = stamps;
    let mut now_ns = talk.open();
    for _ in 0..25 {
        let done_ns = talk.acked_data(now_ns, CLIENT, bytes, last_ns);
        now_ns = done_ns + HOST_NS + last_ns + talk.rtt_ns / 2 + 100 * US;
    }
    talk
}

#[test]
fn a_writer_that_waits_for_its_own_acks_is_held_up_by_no_window_and_not_by_nagle() {
    for (bytes, rtt_ms) in [(65_536, 80), (32_768, 20), (9000, 30)] {
        for (last_ns, stamps) in [(0, false), (0, true), (40 * MS, false), (40 * MS, true)] {
            for place in PLACES {
                let found = blocks(bytes, rtt_ms, last_ns, stamps).diagnosis(place);
                let what = format!("{bytes} bytes per {rtt_ms} ms, ACK {last_ns} ns later, at {place}");
                mostly(&found, CLIENT, Limit::SendingApplication, 0.75, &what);
                let told = found.halves[CLIENT].limits.blocks;
                assert!(told.waits >= 22, "{what}: {told:?}");
                let delayed_ms = told.delayed_ns / told.waits / MS;
                assert!(delayed_ms.abs_diff(last_ns / MS) <= 3, "{what}: {told:?}");
            }
        }
    }
}

#[test]
fn a_short_segment_that_waits_for_a_delayed_ack_is_nagles() {
    for place in PLACES {
        let mut talk = Talk::new(10);
        let mut now_ns = talk.open();
        for _ in 0..30 {
            talk.lose(now_ns, CLIENT, 200, PSH, Loss::None);
            talk.received[SERVER].push((now_ns + 5 * MS, talk.next[CLIENT]));
            talk.ack(now_ns + 45 * MS, SERVER);
            now_ns += 50 * MS + HOST_NS;
        }
        let found = talk.diagnosis(place);
        mostly(&found, CLIENT, Limit::AckStall, 0.75, "small writes");
        assert_eq!(found.halves[CLIENT].limits.blocks.waits, 0);
    }
}

/// A sender whose peer's application lets `window` bytes be outstanding, and grants `chunk` more
/// with a message of `message` bytes.
fn granted(window: u32, chunk: u32, rtt_ms: u64, message: u32, stamps: bool) -> Talk {
    let mut talk = Talk::new(rtt_ms);
    talk.stamps = stamps;
    let now_ns = talk.open();
    let mut grants: Vec<u64> = vec![now_ns; (window / chunk) as usize];
    let mut free_ns = now_ns;
    for n in 0..40 {
        let at_ns = free_ns.max(grants[n] + 60 * US);
        let done_ns = talk.acked_data(at_ns, SERVER, chunk, 0);
        free_ns = done_ns - talk.rtt_ns / 2 + PACKET_NS;
        grants.push(talk.data(done_ns + 2 * HOST_NS, CLIENT, message));
    }
    talk
}

#[test]
fn an_application_that_lets_only_so_much_be_outstanding_is_the_limit() {
    for (window, chunk, rtt_ms, message) in [
        (65_536, 32_768, 60, 13),
        (65_536, 16_384, 40, 60),
        (400_000, 100_000, 120, 9),
        (131_072, 32_768, 80, 36),
    ] {
        for stamps in [false, true] {
            for place in PLACES {
                let found = granted(window, chunk, rtt_ms, message, stamps).diagnosis(place);
                let what = format!("{window} by {chunk} per {rtt_ms} ms at {place}, stamps {stamps}");
                mostly(&found, SERVER, Limit::ApplicationWindow, 0.75, &what);
                mostly(&found, CLIENT, Limit::SendingApplication, 0.75, &what);
            }
        }
    }
}

#[test]
fn messages_that_grant_nothing_are_no_window() {
    // The peer's messages come at times of their own, and ACKs let the sender go on.
    for place in PLACES {
        let mut talk = Talk::new(40);
        let mut now_ns = talk.open();
        for n in 0..100u64 {
            if n % 3 == 0 {
                talk.data(now_ns + 7 * MS, CLIENT, 20);
            }
            let done_ns = talk.acked_data(now_ns, SERVER, 20 * MSS, 0);
            now_ns = done_ns + 20 * MS + 2 * HOST_NS;
        }
        let found = talk.diagnosis(place);
        let judged = &found.halves[SERVER].limits;
        assert_eq!(time_ms(&found, SERVER, Limit::ApplicationWindow), 0, "at {place}: {judged:?}");
    }
}

/// Requests in two writes of a short head and a body, each answered; Nagle's algorithm may hold back the
/// body's short end until the head is acknowledged.
fn in_two_writes(rtt_ms: u64, segments: u32, is_held: bool) -> Talk {
    let mut talk = Talk::new(rtt_ms);
    talk.stamps = true;
    let mut now_ns = talk.open();
    for _ in 0..12 {
        let head_ns = talk.data(now_ns, CLIENT, 180);
        talk.ack(head_ns + HOST_NS, SERVER);
        let full_ns = match segments {
            0 => head_ns,
            n => talk.acked_data(now_ns + PACKET_NS, CLIENT, n * MSS, 0),
        };
        let acked_ns = head_ns + talk.rtt_ns / 2 + 2 * HOST_NS;
        let end_ns = if is_held { acked_ns } else { full_ns - talk.rtt_ns / 2 + PACKET_NS };
        let came_ns = talk.data(end_ns, CLIENT, 300);
        now_ns = talk.data(came_ns + HOST_NS, SERVER, 60) + HOST_NS;
    }
    talk
}

#[test]
fn a_short_end_that_waits_for_an_ack_in_time_is_nagles_unless_short_segments_leave_freely() {
    for (rtt_ms, segments) in [(2, 0), (2, 6), (12, 1), (40, 0), (90, 7)] {
        for place in PLACES {
            let what = format!("{rtt_ms} ms, {segments} segments, at {place}");
            let held = in_two_writes(rtt_ms, segments, true).diagnosis(place);
            let limits = &held.halves[CLIENT].limits;
            assert!(limits.held.waits >= 10, "{what}: {:?}", limits.held);
            mostly(&held, CLIENT, Limit::AckStall, 0.3, &what);
            let free = in_two_writes(rtt_ms, segments, false).diagnosis(place);
            assert_eq!(free.halves[CLIENT].limits.held.waits, 0, "{what}");
            assert_eq!(time_ms(&free, CLIENT, Limit::AckStall), 0, "{what}");
        }
    }
}

#[test]
fn a_request_that_nobody_answers_shows_no_limit_away_from_its_sender() {
    let asked = |flags: u16, place: u64| {
        let mut talk = Talk::new(40);
        let now_ns = talk.open();
        talk.lose(now_ns, CLIENT, 106, PSH | flags, Loss::None);
        talk.received[SERVER].push((now_ns + 20 * MS, talk.next[CLIENT]));
        talk.ack(now_ns + 20 * MS + HOST_NS, SERVER);
        talk.diagnosis(place).halves[CLIENT].limits.clone()
    };
    let away = asked(0, 100);
    assert_eq!((away.confidence, away.refuted[0].because), (Confidence::Undecided, Because::Unfinished));
    let here = asked(0, 0);
    assert!(here.confidence == Confidence::Likely && here.doubts.contains(&Doubt::Unfinished));
    assert_eq!(asked(FIN, 100).confidence, Confidence::Sure);
}

#[test]
fn packets_with_another_ttl_are_somebody_elses_unless_it_varies_or_begins_elsewhere() {
    fn is_pure(packet: &TcpPacket) -> bool {
        packet.payload_len == 0 && packet.flags == ACK
    }
    let told = |ttl: fn(usize, &TcpPacket) -> u8| {
        let mut talk = Talk::new(600);
        talk.ttl = ttl;
        let now_ns = talk.open();
        let done_ns = talk.acked_data(now_ns, CLIENT, 60_000, 0);
        let end_ns = talk.acked_data(done_ns, SERVER, 3800, 0);
        talk.segment(end_ns, SERVER, talk.next[SERVER], 0, RST | ACK, Loss::None);
        let [client, server] = PLACES.map(|place| talk.diagnosis(place).halves.map(|half| half.hops))[0];
        assert_eq!((client.foreign_ack_ttl, client.foreign_rst_ttl), (None, None));
        (server.own_ttl, server.foreign_ack_ttl, server.foreign_rst_ttl)
    };
    let proxied = |from: usize, packet: &TcpPacket| match from {
        SERVER if is_pure(packet) => 61,
        SERVER => 52,
        _ => 64,
    };
    assert_eq!(told(|_, _| 64), (Some(64), None, None));
    assert_eq!(told(proxied), (Some(52), Some(61), None));
    let reset = |from: usize, packet: &TcpPacket| match from {
        SERVER if packet.flags & RST != 0 => 58,
        SERVER => 52,
        _ => 64,
    };
    assert_eq!(told(reset), (Some(52), None, Some(58)));
    // Another initial value, and a route that changes.
    assert_eq!(told(|_, packet| if is_pure(packet) { 57 } else { 121 }), (Some(121), None, None));
    let routes = |_: usize, packet: &TcpPacket| 50 + u8::from(packet.seq > 3000 || packet.ack > 3000);
    let (own, acks, _) = told(routes);
    assert_eq!((own, acks), (None, None));
}
