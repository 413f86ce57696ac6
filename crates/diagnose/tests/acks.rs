// SPDX-License-Identifier: MIT
//! Connections written by hand, with ACKs as described in RFCs and manuals, and their diagnosis.

use ackwise_capture::tcp_flag::{ACK, PSH, SYN};
use ackwise_capture::write::{frame, PcapStyle, PcapWriter, TcpPacket};
use ackwise_capture::{link, ReadOptions, Source};
use ackwise_diagnose::acks::{AckHabits, Confidence, Offload, Undecided};
use ackwise_diagnose::{Acking, Effort};
use ackwise_link as _;
use std::net::SocketAddr;

const MS: u64 = 1_000_000;
const MSS: u32 = 1460;
const SYN_OPTIONS: [u8; 11] = [2, 4, 5, 0xb4, 4, 2, 1, 3, 3, 7, 0];

/// A capture of one connection: the sender connects, sends data, and the receiver answers.
struct Script {
    file: PcapWriter,
    sent_bytes: u32,
    acked_bytes: u32,
    /// IP identification of the receiver's last packet; 0: it does not count packets.
    ident: u16,
    window_bytes: u32,
}

fn ends() -> [SocketAddr; 2] {
    ["10.0.0.1:40000", "10.0.0.2:80"].map(|a| a.parse().expect("an address"))
}

impl Script {
    /// A script with its handshake, as seen at the receiver (`near`) or at the sender, 20 ms apart.
    fn new(near: bool) -> Self {
        let [a, b] = ends();
        let (back_ns, there_ns) = if near { (0, 20 * MS) } else { (20 * MS, 0) };
        let style = PcapStyle { nanoseconds: true, ..PcapStyle::default() };
        let mut file = PcapWriter::new(link::ETHERNET, style);
        file.tcp(0, &TcpPacket::new(a, b, 0, 0, 0).flags(SYN).options(&SYN_OPTIONS));
        file.tcp(back_ns, &TcpPacket::new(b, a, 0, 1, 0).flags(SYN | ACK).options(&SYN_OPTIONS));
        file.tcp(back_ns + there_ns, &TcpPacket::new(a, b, 1, 1, 0).window(1000));
        Script { file, sent_bytes: 0, acked_bytes: 0, ident: 0, window_bytes: 1000 << 7 }
    }

    fn data(&mut self, time_ns: u64, bytes: u32, flags: u16) {
        let [a, b] = ends();
        let packet = TcpPacket::new(a, b, 1 + self.sent_bytes, 1, bytes).flags(flags).window(1000);
        self.file.tcp(time_ns, &packet);
        self.sent_bytes += bytes;
    }

    fn ack(&mut self, time_ns: u64, bytes: u32) {
        self.ack_sent_at(time_ns, bytes, None);
    }

    /// With a timestamp of the time at which it was sent.
    fn ack_sent_at(&mut self, time_ns: u64, bytes: u32, sent_ns: Option<u64>) {
        let [a, b] = ends();
        self.acked_bytes += bytes;
        let window = (self.window_bytes >> 7) as u16;
        let mut packet = TcpPacket::new(b, a, 1, 1 + self.acked_bytes, 0).window(window);
        if let Some(sent_ns) = sent_ns {
            let value = (1000 + sent_ns / MS) as u32;
            packet = packet.options(&[&[1, 1, 8, 10][..], &value.to_be_bytes(), &[0; 4]].concat());
        }
        let mut ip = packet.to_ip();
        ip[4..6].copy_from_slice(&self.ident.to_be_bytes());
        self.file.frame(time_ns, &frame(link::ETHERNET, &ip));
    }

    /// Full segments, every second one acknowledged; one in `kept` of these ACKs reaches the
    /// capture.
    fn thinned(kept: u16) -> Self {
        let mut script = Script::new(false);
        for i in 0..50 {
            let time_ns = (100 + i) * MS;
            (0..2 * kept).for_each(|_| script.data(time_ns, MSS, ACK));
            script.ident = script.ident.wrapping_add(kept);
            script.ack(time_ns + MS / 2, 2 * u32::from(kept) * MSS);
        }
        script
    }

    fn acking(self) -> Acking {
        let bytes = self.file.into_bytes();
        let found = ackwise_diagnose::diagnose(
            [Source::reader(&bytes[..], "script")],
            &ReadOptions::default(),
            &Effort::default(),
        );
        let found = found.expect("readable");
        found
            .connections
            .into_iter()
            .next()
            .expect("a connection")
            .halves
            .into_iter()
            .next()
            .expect("a half")
            .acking
    }
}

/// Full segments a millisecond apart, with an immediate ACK for every `n`.
fn every_nth(n: u32, near: bool) -> Script {
    let mut script = Script::new(near);
    let mut events: Vec<(u64, bool)> = Vec::new();
    let delay_ns = if near { 0 } else { 20 * MS };
    for i in 0..200 {
        let time_ns = 100 * MS + u64::from(i) * MS;
        events.push((time_ns, true));
        if (i + 1) % n == 0 {
            events.push((time_ns + delay_ns, false));
        }
    }
    events.sort_by_key(|e| (e.0, !e.1));
    for (time_ns, is_data) in events {
        if is_data {
            script.data(time_ns, MSS, ACK);
        } else {
            script.ack(time_ns, n * MSS);
        }
    }
    script
}

fn habits(script: Script) -> AckHabits {
    script.acking().habits
}

#[test]
fn every_segment_and_every_second_one_are_told_apart_at_both_ends() {
    for near in [true, false] {
        let found = every_nth(1, near).acking();
        assert_eq!(found.verdict.policies.first(), Some(&"every"), "{:?}", found.verdict);
        assert_eq!(found.habits.prompt_segments.max(), Some(1));
        assert_eq!(found.habits.quick_acks, 200);
        let found = every_nth(2, near).acking();
        assert_eq!(found.verdict.policies.first(), Some(&"delayed"), "{:?}", found.verdict);
        assert_eq!((found.habits.prompt_segments.min(), found.habits.quick_acks), (Some(2), 0));
        assert_eq!(found.habits.stretch_acks, 0);
    }
}

#[test]
fn far_from_the_receiver_confidence_is_low() {
    assert_eq!(every_nth(2, false).acking().verdict.confidence, Some(Confidence::Low));
}

#[test]
fn a_timer_is_known_by_its_delay_and_by_the_packets_that_show_it() {
    let mut script = Script::new(true);
    for i in 0..20 {
        let time_ns = 100 * MS + i * 300 * MS;
        script.data(time_ns, 100, ACK | PSH);
        script.ack(time_ns + 200 * MS, 100);
    }
    let found = script.acking();
    let late = &found.habits.late_ns;
    assert_eq!((late.samples(), late.min(), late.max()), (20, Some(200 * MS), Some(200 * MS)));
    // Three packets of the handshake, then data and ACK in turn.
    let numbers: Vec<_> = found.habits.late_examples.iter().map(|e| e.number).collect();
    assert_eq!(numbers, [5, 7, 9]);
    assert!(found.verdict.policies.contains(&"delayed"), "{:?}", found.verdict);
    assert!(!found.verdict.policies.contains(&"delayed:delay_ms=40"), "{:?}", found.verdict);
}

#[test]
fn the_fast_timer_of_bsd_ticks_whenever_data_came() {
    let mut script = Script::new(true);
    for i in 0..20 {
        // Ticks at 30 ms and every 200 ms; data comes 7 ms later each time.
        let tick_ns = 30 * MS + (i + 2) * 400 * MS;
        script.data(tick_ns - 10 * MS - i * 7 * MS, 100, ACK);
        script.ack(tick_ns, 100);
    }
    let found = script.acking();
    assert_eq!(found.verdict.policies, ["bsd"], "{:?}", found.verdict);
}

#[test]
fn packets_above_the_mss_name_the_offload_of_the_host_that_captured() {
    for (near, offload) in [(true, Offload::Receive), (false, Offload::Segmentation)] {
        let mut script = Script::new(near);
        for i in 0..10 {
            let time_ns = 100 * MS + i * 100 * MS;
            script.data(time_ns, 10 * MSS, ACK);
            script.ack(time_ns + 20 * MS, 10 * MSS);
        }
        let found = habits(script);
        assert_eq!((found.merged_packets, found.offload), (10, Some(offload)));
        assert_eq!(found.stretch_acks, 10);
    }
    assert_eq!(habits(every_nth(2, true)).offload, None);
}

#[test]
fn acks_that_waited_together_are_compressed() {
    let mut script = Script::new(false);
    for i in 0..8 {
        script.data(100 * MS + i * MS, MSS, ACK);
    }
    for i in 0..8 {
        script.ack(150 * MS + i * MS / 100, MSS);
    }
    assert_eq!(habits(script).compressed_acks, 7);
    assert_eq!(habits(every_nth(1, false)).compressed_acks, 0);
    // Head and body of a request: the body leaves when the delayed ACK of the head arrives.
    let mut script = Script::new(true);
    for i in 1..20 {
        let time_ns = 100 * i * MS;
        script.data(time_ns, 100, PSH | ACK);
        script.ack(time_ns + 40 * MS, 100);
        script.data(time_ns + 41 * MS, 400, PSH | ACK);
        script.ack(time_ns + 41 * MS, 400);
    }
    assert_eq!(habits(script).compressed_acks, 0);
}

/// Segments 5 ms apart, each with an ACK; what comes back passes the capture point each 40 ms.
fn in_batches(held_below: bool) -> Script {
    let mut events: Vec<(u64, Option<u64>)> = Vec::new();
    for batch in 0..40 {
        let from_ns = (100 + batch * 40) * MS;
        for n in 0..8 {
            events.push((from_ns + n * 5 * MS, None));
            // The data takes 10 ms to the receiver, and an ACK 10 ms back.
            let sent_ns = from_ns + if held_below { n * 5 + 10 } else { 45 } * MS;
            events.push((from_ns + 55 * MS + n * MS / 10, Some(sent_ns)));
        }
    }
    events.sort_unstable();
    let mut script = Script::new(false);
    for (time_ns, sent_ns) in events {
        match sent_ns {
            None => script.data(time_ns, MSS, ACK),
            Some(_) => script.ack_sent_at(time_ns, MSS, sent_ns),
        }
    }
    script
}

#[test]
fn timestamps_tell_whether_acks_of_a_burst_were_sent_apart() {
    let held = habits(in_batches(true));
    assert!(held.compressed_acks > 200, "{held:?}");
    assert!(held.compressed_below * 10 >= held.compressed_acks * 8, "{held:?}");
    let sent = habits(in_batches(false));
    assert!(sent.compressed_acks > 200, "{sent:?}");
    assert!(sent.compressed_by_receiver * 10 >= sent.compressed_acks * 8, "{sent:?}");
    assert_eq!(sent.compressed_below, 0);
}

fn missing(script: Script) -> Option<u64> {
    script.acking().thinning.map(|t| t.missing_acks)
}

#[test]
fn acks_that_did_not_come_are_counted_by_the_identification() {
    assert_eq!(missing(Script::thinned(1)), Some(0));
    // 49 gaps of three.
    let found = Script::thinned(4).acking().thinning.expect("counts");
    assert_eq!((found.missing_acks, found.seen_acks), (147, 49));
    let numbers: Vec<_> = found.missing_examples.iter().map(|e| e.number).collect();
    assert_eq!(numbers, [21, 30, 39]);
}

#[test]
fn an_ack_that_was_overtaken_is_not_missing() {
    let mut script = Script::thinned(1);
    for (late_ms, ident) in [(200, 52), (201, 51), (202, 53)] {
        script.data(late_ms * MS, MSS, ACK);
        script.data(late_ms * MS, MSS, ACK);
        script.ident = ident;
        script.ack(late_ms * MS + MS / 2, 2 * MSS);
    }
    assert_eq!(missing(script), Some(0));
}

#[test]
fn numbers_that_count_more_than_this_connection_say_nothing() {
    let counted = |step: fn(u16) -> u16| {
        let mut script = Script::new(false);
        for i in 0..50 {
            let time_ns = (100 + u64::from(i)) * MS;
            script.data(time_ns, MSS, ACK);
            script.data(time_ns, MSS, ACK);
            script.ident = step(i);
            script.ack(time_ns + MS / 2, 2 * MSS);
        }
        missing(script)
    };
    assert_eq!(counted(|i| i + 1), Some(0));
    assert_eq!(counted(|_| 0), None, "not numbered, as in IPv6");
    assert_eq!(counted(|i| 5 * i), None, "other connections take numbers, too");
    assert_eq!(counted(|i| i.wrapping_mul(40_503)), None, "drawn");
}

#[test]
fn an_ack_of_a_whole_window_is_the_windows_and_not_the_policys() {
    // Four segments, which fill the window, then an ACK, and so on.
    let mut script = Script::new(true);
    script.window_bytes = 4 * MSS;
    for i in 0..30 {
        let time_ns = (100 + i) * MS;
        (0..4).for_each(|n| script.data(time_ns + 1000 * n, MSS, ACK));
        script.ack(time_ns + 10_000, 4 * MSS);
    }
    let found = habits(script);
    assert_eq!((found.window_bound_acks, found.window_bound_examples.len()), (29, 3));
    assert_eq!(habits(every_nth(4, true)).window_bound_acks, 0);
}

#[test]
fn one_direction_decides_nothing() {
    let mut script = Script::new(true);
    for i in 0..50 {
        script.data(100 * MS + i * MS, MSS, ACK);
    }
    // Only the receiver's SYN-ACK came back.
    assert_eq!(script.acking().verdict.undecided, Some(Undecided::FewAcks));
}

#[test]
fn the_same_capture_gives_the_same_answer() {
    let text = |acking: &Acking| serde_json::to_string(acking).expect("serializes");
    assert_eq!(text(&every_nth(3, true).acking()), text(&every_nth(3, true).acking()));
}
