// SPDX-License-Identifier: MIT
//! Timelines worked out by hand, and properties that hold for any arrivals.

use ackwise_capture::tcp_flag::{ACK, FIN, PSH, SYN};
use ackwise_capture::write::{PcapStyle, PcapWriter, TcpPacket};
use ackwise_capture::{link, read, Capture, ReadOptions};
use ackwise_core::{Entry, Policy};
use ackwise_link as _;
use ackwise_replay::{
    replay, replay_arrivals, Arrivals, DeviceCost, DirectionResult, PolicyChoice, PolicyResult, Price,
    ReplayOptions, Replayer, CAPTURED, TRACE_ACKS_MAX,
};
use std::net::SocketAddr;

const MS: u64 = 1_000_000;
/// SYN options: MSS 1000, window scale 2.
const SYN_OPTIONS: [u8; 8] = [2, 4, 3, 0xe8, 1, 3, 3, 2];

fn ends() -> [SocketAddr; 2] {
    ["10.0.0.1:40000", "10.0.0.2:80"].map(|a| a.parse().expect("an address"))
}

/// Packets of a connection in which 0 sends data to 1; sequence numbers start at 1, windows are in
/// bytes.
struct Trace(Vec<(u64, TcpPacket)>);

impl Trace {
    /// A handshake in which the receiver answers after `distance_ns` and the sender at once.
    fn new(distance_ns: u64) -> Trace {
        let [a, b] = ends();
        let p = TcpPacket::new;
        Trace(vec![
            (0, p(a, b, 0, 0, 0).flags(SYN).options(&SYN_OPTIONS)),
            (distance_ns, p(b, a, 0, 1, 0).flags(SYN | ACK).options(&SYN_OPTIONS)),
            (distance_ns, p(a, b, 1, 1, 0)),
        ])
    }
    fn data(&mut self, time_ns: u64, seq: u32, len: u32) -> &mut Self {
        let [a, b] = ends();
        self.0.push((time_ns, TcpPacket::new(a, b, seq, 1, len)));
        self
    }
    fn fin(&mut self, time_ns: u64, seq: u32) -> &mut Self {
        let [a, b] = ends();
        self.0.push((time_ns, TcpPacket::new(a, b, seq, 1, 0).flags(FIN | ACK)));
        self
    }
    fn ack(&mut self, time_ns: u64, ack: u32, window_bytes: u32) -> &mut Self {
        let [a, b] = ends();
        let packet = TcpPacket::new(b, a, 1, ack, 0).window((window_bytes / 4) as u16);
        self.0.push((time_ns, packet));
        self
    }
    fn reverse_data(&mut self, time_ns: u64, seq: u32, ack: u32, len: u32) -> &mut Self {
        let [a, b] = ends();
        self.0.push((time_ns, TcpPacket::new(b, a, seq, ack, len).flags(PSH | ACK)));
        self
    }
    fn capture(&self) -> Capture {
        let style = PcapStyle { nanoseconds: true, ..PcapStyle::default() };
        let mut w = PcapWriter::new(link::RAW, style);
        for (time_ns, packet) in &self.0 {
            w.tcp(*time_ns, packet);
        }
        read(&w.into_bytes()[..], "trace", &ReadOptions::default()).expect("a valid capture")
    }
}

/// A policy as published: nothing but the RFCs' rules beside it, and no bound of flight or window.
fn on_rfc(name: &str) -> PolicyChoice {
    PolicyChoice { host: Some("rfc".to_owned()), clamp: false, ..PolicyChoice::new(name) }
}

fn options(names: &[&str]) -> ReplayOptions {
    ReplayOptions {
        policies: names.iter().map(|n| on_rfc(n)).collect(),
        min_data_segments: 1,
        traced_directions: usize::MAX,
        ..ReplayOptions::default()
    }
}

fn only(capture: &Capture, options: &ReplayOptions) -> DirectionResult {
    let mut result = replay(capture, options).expect("valid choices");
    assert_eq!(result.directions.len(), 1);
    result.directions.remove(0)
}

fn of<'a>(direction: &'a DirectionResult, name: &str) -> &'a PolicyResult {
    direction.policies.iter().find(|p| p.policy == name).expect("was asked for")
}

/// (time in ms, ACK number, segments, reason) of each ACK.
fn points(policy: &PolicyResult) -> Vec<(u64, u64, u64, &str)> {
    let trace = policy.trace.as_ref().expect("asked for");
    trace.first.iter().map(|p| (p.time_ns / MS, p.ack, p.segments, p.reason)).collect()
}

#[test]
fn every_and_delayed_acknowledge_when_they_should() {
    let mut t = Trace::new(0);
    // Two full segments, one alone, two again of which the second is too late for the timer's ACK.
    t.data(10 * MS, 1, 1000).data(11 * MS, 1001, 1000).ack(11 * MS, 2001, 60_000);
    t.data(30 * MS, 2001, 1000).ack(70 * MS, 3001, 60_000);
    t.data(300 * MS, 3001, 400).data(301 * MS, 3401, 1000).data(302 * MS, 4401, 1000);
    t.ack(310 * MS, 5401, 60_000);
    let d = only(&t.capture(), &options(&["every", "delayed"]));
    assert_eq!((d.data_segments, d.mss_bytes, d.receiver_distance_ns), (6, 1000, 0));
    assert_eq!(
        points(of(&d, "every")),
        [
            (10, 1001, 1, "every-segment"),
            (11, 2001, 1, "every-segment"),
            (30, 3001, 1, "every-segment"),
            (300, 3401, 1, "every-segment"),
            (301, 4401, 1, "every-segment"),
            (302, 5401, 1, "every-segment"),
        ]
    );
    let delayed = of(&d, "delayed");
    assert_eq!(
        points(delayed),
        [
            (11, 2001, 2, "segment-count"),
            (230, 3001, 1, "delay-timer"),
            // 1400 bytes at 301 are less than two segments of 1000, 2400 at 302 are not.
            (302, 5401, 3, "segment-count"),
        ]
    );
    assert_eq!(delayed.latency_ns, (1 + 200 + 2 + 1) * MS);
    assert_eq!((delayed.ack_latency_ns.p50, delayed.ack_latency_ns.max), (MS, 200 * MS));
    assert_eq!(delayed.acks_by_reason["delay-timer"], 1);
    assert!((delayed.segments_per_ack - 2.0).abs() < 1e-12);
    assert_eq!(delayed.params["delay_ms"], 200);
    // rho 0.5, 10 ms: 1.5 for the ACKs, 0.5 * 204 / 10 for latency.
    assert!((delayed.cost - 11.7).abs() < 1e-9);
    // Optimum: ACKs at 11, 30 and 302 with 1 + 2 + 1 ms.
    assert_eq!((d.optimum.acks, d.optimum.latency_ns), (3, 4 * MS));
    assert!((d.optimum.cost - 1.7).abs() < 1e-9);
    assert!((delayed.cost_ratio.expect("not free") - 11.7 / 1.7).abs() < 1e-9);

    let captured = of(&d, CAPTURED);
    assert_eq!(
        points(captured),
        [(11, 2001, 2, "advancing"), (70, 3001, 1, "advancing"), (310, 5401, 3, "advancing")]
    );
    assert_eq!(captured.latency_ns, (1 + 40 + 10 + 9 + 8) * MS);
}

#[test]
fn a_timer_fires_before_a_packet_of_the_same_instant() {
    let mut t = Trace::new(0);
    t.data(10 * MS, 1, 1000).data(210 * MS, 1001, 1000).ack(220 * MS, 2001, 60_000);
    let d = only(&t.capture(), &options(&["delayed"]));
    assert_eq!(points(of(&d, "delayed")), [(210, 1001, 1, "delay-timer"), (410, 2001, 1, "delay-timer")]);
}

#[test]
fn duties_answer_holes_at_once() {
    let mut t = Trace::new(0);
    t.data(10 * MS, 1, 1000).data(20 * MS, 2001, 1000).data(30 * MS, 1001, 1000);
    t.data(40 * MS, 1, 1000).fin(50 * MS, 3001).ack(60 * MS, 3002, 60_000);
    let d = only(&t.capture(), &options(&["delayed"]));
    assert_eq!(
        (d.packets_in_order, d.packets_above_hole, d.packets_filling_hole, d.packets_duplicate),
        (2, 1, 1, 1)
    );
    let with = &d.policies[1];
    assert_eq!(
        points(with),
        [
            (20, 1001, 2, "out-of-order"),
            (30, 3001, 1, "segment-count"),
            (40, 3001, 1, "duplicate"),
            (50, 3002, 1, "fin"),
        ]
    );
}

#[test]
fn data_of_the_receiver_acknowledges_for_free() {
    let mut t = Trace::new(0);
    t.data(10 * MS, 1, 500).reverse_data(40 * MS, 1, 501, 100).data(50 * MS, 501, 500);
    t.ack(60 * MS, 1001, 60_000);
    let mut o = options(&["delayed"]);
    o.min_data_segments = 2;
    let d = only(&t.capture(), &o);
    let delayed = of(&d, "delayed");
    assert_eq!(points(delayed), [(40, 501, 1, "piggyback"), (250, 1001, 1, "delay-timer")]);
    assert_eq!((delayed.acks, delayed.acks_piggybacked), (1, 1));
    assert_eq!((d.optimum.acks, d.optimum.latency_ns), (2, 0), "30 ms are dearer than an ACK");
    o.price = Price::new(900, 10 * MS).expect("in range");
    let d = only(&t.capture(), &o);
    assert_eq!((d.optimum.acks, d.optimum.latency_ns), (1, 30 * MS));
    assert_eq!(points(of(&d, CAPTURED)), [(40, 501, 1, "piggyback"), (60, 1001, 1, "advancing")]);
}

#[test]
fn a_distant_receiver_is_dated_back() {
    let mut t = Trace::new(20 * MS);
    t.data(100 * MS, 1, 1000).data(101 * MS, 1001, 1000).ack(121 * MS, 2001, 60_000);
    t.data(200 * MS, 2001, 1000).ack(260 * MS, 3001, 60_000);
    let d = only(&t.capture(), &options(&["every"]));
    assert_eq!(d.receiver_distance_ns, 20 * MS);
    let captured = of(&d, CAPTURED);
    assert_eq!(points(captured), [(101, 2001, 2, "advancing"), (240, 3001, 1, "advancing")]);
    assert_eq!(captured.latency_ns, 41 * MS);
}

#[test]
fn the_receivers_other_acks_are_told_apart() {
    let mut t = Trace::new(0);
    t.data(10 * MS, 1, 1000).ack(10 * MS, 1001, 60_000);
    t.ack(20 * MS, 1001, 70_000).ack(30 * MS, 1001, 70_000);
    t.data(40 * MS, 2001, 1000).ack(40 * MS, 1001, 70_000);
    // The ACK shows that data filling the hole was not captured.
    t.ack(50 * MS, 3001, 70_000).data(60 * MS, 3001, 1000);
    let d = only(&t.capture(), &options(&["every"]));
    let captured = of(&d, CAPTURED);
    assert_eq!(
        points(captured),
        [
            (10, 1001, 1, "advancing"),
            (20, 1001, 0, "window-update"),
            (40, 1001, 1, "duplicate"),
            (50, 3001, 0, "advancing"),
            (60, 4001, 1, "end-of-capture"),
        ]
    );
    assert!(captured.closing_ack);
    assert_eq!(d.unseen_bytes, 1000);
    assert_eq!(d.packets_in_order, 2, "the hole is gone");
}

#[test]
fn merged_packets_count_as_segments_and_may_be_acknowledged_in_pieces() {
    let mut t = Trace::new(0);
    t.data(10 * MS, 1, 4500).ack(12 * MS, 2001, 60_000).ack(14 * MS, 4501, 60_000);
    let mut o = options(&["delayed"]);
    o.device = Some(DeviceCost { ack_ns: 2_000, data_ns: 500 });
    let d = only(&t.capture(), &o);
    assert_eq!((d.data_packets, d.data_segments, d.packets_above_mss), (1, 5, 1));
    let captured = of(&d, CAPTURED);
    assert_eq!(points(captured), [(12, 2001, 2, "advancing"), (14, 4501, 3, "advancing")]);
    assert_eq!(captured.latency_ns, (2 * 2 + 3 * 4) * MS);
    let delayed = of(&d, "delayed");
    assert_eq!(points(delayed), [(10, 4501, 5, "segment-count")]);
    // One ACK and one packet: 2500 ns for 4500 bytes.
    assert!((delayed.cpu_s_per_gb.expect("given") - 2_500.0 / 4_500.0).abs() < 1e-12);
}

#[test]
fn a_dry_window_brings_the_ack_forward() {
    let mut t = Trace::new(0);
    // The receiver offers only 2000 bytes.
    t.ack(MS, 1, 2000).data(10 * MS, 1, 1000).ack(10 * MS, 1001, 2000);
    t.data(20 * MS, 1001, 1000).ack(20 * MS, 2001, 2000);
    t.data(30 * MS, 2001, 1000).ack(30 * MS, 3001, 2000);
    let mut o = options(&[]);
    let params = [("segments".to_owned(), 100), ("delay_ms".to_owned(), 500)].into();
    o.policies = vec![PolicyChoice { params, ..on_rfc("delayed") }];
    let d = only(&t.capture(), &o);
    let reasons: Vec<_> = points(of(&d, "delayed")).iter().map(|p| p.3.to_owned()).collect();
    assert!(reasons.iter().any(|r| r == "window-dry"), "{reasons:?}");
}

#[test]
fn a_lagging_reader_is_asked_for() {
    let mut t = Trace::new(0);
    for i in 0..60 {
        let now = 10 * MS + 20 * MS * u64::from(i);
        t.data(now, 1 + 300 * i, 300);
        t.0.last_mut().expect("just added").1.flags = PSH | ACK;
        t.ack(now + MS, 301 + 300 * i, 60_000);
    }
    let capture = t.capture();
    let latency_ns = |name: &str, reader_lag_ns| {
        let policies = vec![PolicyChoice::new("linux"), on_rfc("every")];
        let o = ReplayOptions { policies, reader_lag_ns, ..options(&[]) };
        of(&only(&capture, &o), name).latency_ns
    };
    // Policy "every" acknowledges only data; Linux acknowledges what was pushed when it is read.
    assert_eq!(latency_ns("every", 0), latency_ns("every", 5 * MS));
    assert_ne!(latency_ns("linux", 0), latency_ns("linux", 5 * MS));
}

#[test]
fn no_ack_waits_longer_than_the_host_allows() {
    let mut t = Trace::new(0);
    for i in 0..40 {
        let now = 10 * MS + 700 * MS * u64::from(i);
        t.data(now, 1 + 300 * i, 300).ack(now + MS, 301 + 300 * i, 60_000);
    }
    let params = [("segments".to_owned(), 100), ("delay_ms".to_owned(), 500)].into();
    let delayed = PolicyChoice { params, ..on_rfc("delayed") };
    for ack_delay_max_ns in [50 * MS, 190 * MS, 500 * MS, u64::MAX] {
        let o = ReplayOptions { policies: vec![delayed.clone()], ack_delay_max_ns, ..options(&[]) };
        let d = only(&t.capture(), &o);
        assert_eq!(of(&d, "delayed").ack_latency_ns.p50, ack_delay_max_ns.min(500 * MS));
    }
}

#[test]
fn made_up_arrivals_are_judged_as_captured_ones_are() {
    let mut t = Trace::new(0);
    let times_ns = vec![10 * MS, 11 * MS, 30 * MS, 300 * MS, 301 * MS, 302 * MS];
    for (i, &at) in (0..).zip(&times_ns) {
        t.data(at, 1 + 1000 * i, 1000);
        t.0.last_mut().expect("just added").1.flags = PSH | ACK;
    }
    t.ack(2_000 * MS, 6001, 60_000);
    let mut o = options(&["every", "delayed", "dynamic", "greedy"]);
    o.price = Price::new(700, 10 * MS).expect("in range");
    let captured = only(&t.capture(), &o);
    let made = Arrivals { times_ns, bytes: vec![1000; 6], mss_bytes: 1000, rtt_ns: 0 };
    let judged = replay_arrivals(&made, &o).expect("valid");
    assert_eq!((judged.segments, judged.optimum.cost_scaled), (6, captured.optimum.cost_scaled));
    for (policy, before) in judged.policies.iter().zip(&captured.policies[1..]) {
        let name = &policy.policy;
        assert_eq!(name, &before.policy);
        let seen: Vec<_> = points(policy);
        // The drawn z is the only difference: each direction has its own random bits.
        if name != "dynamic" {
            assert_eq!(seen, points(before), "{name}");
        }
        assert_eq!(seen.iter().map(|p| p.2).sum::<u64>(), 6, "{name}");
        assert!(policy.cost_ratio.expect("not free") >= 1.0, "{name}");
    }
}

#[test]
fn arrivals_that_cannot_be_are_named() {
    let good = Arrivals { times_ns: vec![1, 2], bytes: vec![1, 2500], mss_bytes: 1000, rtt_ns: 0 };
    let o = options(&["every"]);
    assert_eq!(replay_arrivals(&good, &o).expect("valid").segments, 1 + 3);
    let says = |a: Arrivals| replay_arrivals(&a, &o).expect_err("wrong").to_string();
    assert!(says(Arrivals { times_ns: vec![2, 1], ..good.clone() }).contains("times_ns[1] is earlier"));
    assert!(says(Arrivals { bytes: vec![1], ..good.clone() }).contains("2 times and 1 sizes"));
    assert!(says(Arrivals { bytes: vec![1, 0], ..good.clone() }).contains("bytes[1] = 0"));
    assert!(says(Arrivals { mss_bytes: 0, ..good }).contains("mss_bytes = 0"));
}

#[test]
fn choices_that_do_not_exist_are_named() {
    let capture = Trace::new(0).data(MS, 1, 10).capture();
    let error = |choice: PolicyChoice| {
        let o = ReplayOptions { policies: vec![choice], ..ReplayOptions::default() };
        replay(&capture, &o).expect_err("wrong").to_string()
    };
    assert!(error(PolicyChoice::new("nope")).starts_with("no policy or host \"nope\"; there are: linux, "));
    let params = [("delay_ms".to_owned(), 501)].into();
    assert!(error(PolicyChoice { params, ..PolicyChoice::new("delayed") }).contains("1 to 500"));
    let on = |host: &str, name| PolicyChoice { host: Some(host.to_owned()), ..PolicyChoice::new(name) };
    assert!(error(on("vms", "delayed")).starts_with("no host \"vms\"; there are: linux, bsd, rfc"));
    assert!(error(on("linux", "bsd")).contains("bsd is a host and cannot stand on host linux"));
    let result = replay(&capture, &ReplayOptions::default()).expect("valid");
    assert_eq!((result.directions.len(), result.directions_skipped), (0, 1));
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit.max(1)
    }
}

/// Data in bursts, with holes and repetitions, and a receiver that occasionally sends data itself.
fn random_trace(random: &mut Random) -> Capture {
    let mut t = Trace::new(random.below(3) * MS);
    let (mut now, mut seq, mut reverse) = (5 * MS, 1, 1);
    for _ in 0..20 + random.below(150) {
        let spread = [2_000, 50_000, 2_000_000, 90_000_000, 900_000_000][random.below(5) as usize];
        now += random.below(spread);
        let len = [1000, 1000, 1000, 37, 6000][random.below(5) as usize];
        match random.below(14) {
            0 if seq > 4000 => drop(t.data(now, seq - 3000, 1000)),
            1 => {
                // Two swapped packets.
                t.data(now, seq + len, len).data(now + random.below(500_000), seq, len);
                now += 500_000;
                seq += 2 * len;
            }
            2 => {
                t.reverse_data(now, reverse, seq, 90);
                reverse += 90;
            }
            3 => drop(t.ack(now, seq, 20_000 + random.below(60_000) as u32)),
            _ => {
                t.data(now, seq, len);
                seq += len;
            }
        }
        if random.below(3) == 0 {
            t.ack(now, seq, 65_000);
        }
    }
    t.fin(now + MS, seq);
    t.capture()
}

#[test]
fn on_any_arrivals_everything_is_acknowledged_once_and_dearer_than_the_optimum() {
    let mut random = Random(2024);
    let mut ratios = 0;
    for round in 0..60 {
        let capture = random_trace(&mut random);
        let rho = [20, 500, 980][round % 3];
        let mut o = options(&[]);
        o.price = Price::new(rho, 1 + random.below(20_000_000)).expect("in range");
        o.seed = round as u64;
        o.reader_lag_ns = [0, 0, 700_000][round / 3 % 3];
        o.policies = Entry::all().map(|e| PolicyChoice::new(e.name())).collect();
        o.policies.extend(Policy::all().chain(Policy::rivals()).map(|p| on_rfc(p.name())));
        let result = replay(&capture, &o).expect("valid");
        for d in &result.directions {
            for p in &d.policies {
                let name = format!("round {round}, {} on {} {}->{}", p.policy, p.host, d.from, d.to);
                let trace = &p.trace.as_ref().expect("asked for").first;
                let reported: u64 = trace.iter().map(|a| a.segments).sum();
                assert_eq!(reported, d.data_segments, "{name}: every segment once");
                assert_eq!(p.ack_latency_ns.samples, d.data_segments, "{name}");
                assert!(trace.windows(2).all(|w| w[0].time_ns <= w[1].time_ns), "{name}");
                assert_eq!(p.acks + p.acks_piggybacked, trace.len() as u64, "{name}");
                assert_eq!(p.acks_by_reason.values().sum::<u64>(), p.acks, "{name}");
                assert!(p.cost_scaled >= d.optimum.cost_scaled, "{name}: beats the optimum");
                ratios += u32::from(p.cost_scaled > d.optimum.cost_scaled);
                if p.policy == CAPTURED {
                    continue;
                }
                assert!(trace.windows(2).all(|w| w[0].ack <= w[1].ack), "{name}");
                assert!(p.ack_latency_ns.max <= 500 * MS, "{name}: {}", p.ack_latency_ns.max);
                assert!(!p.closing_ack, "{name}");
                // On Linux, an ACK waits for the read if it could not move the window.
                if p.policy == "every" && p.host == "rfc" {
                    assert_eq!(p.ack_latency_ns.max, 0, "{name}");
                }
            }
        }
        let again = replay(&capture, &o).expect("valid");
        let json = |r| serde_json::to_string(r).expect("serializable");
        assert_eq!(json(&result), json(&again), "same input, same result");
    }
    assert!(ratios > 1000, "the comparison with the optimum was seldom strict");
}

#[test]
fn options_and_results_are_json() {
    let o: ReplayOptions = serde_json::from_str(
        r#"{"policies": [{"name": "delayed", "params": {"segments": 4}, "host": "rfc", "clamp": false}],
            "price": {"rho_permille": 100, "unit_ns": 5000000}}"#,
    )
    .expect("what users write");
    assert_eq!(o.min_data_segments, 10);
    for wrong in [r#"{"price": {"rho_permille": 0, "unit_ns": 1}}"#, r#"{"polices": []}"#] {
        assert!(serde_json::from_str::<ReplayOptions>(wrong).is_err(), "{wrong}");
    }
    let rails = serde_json::from_str::<PolicyChoice>(r#"{"name": "delayed", "rails": []}"#);
    assert!(rails.expect_err("gone").to_string().contains("duties of the host"));
    let mut t = Trace::new(0);
    for i in 0..12 {
        t.data((10 + u64::from(i)) * MS, 1 + 1000 * i, 1000);
    }
    let json = serde_json::to_value(replay(&t.capture(), &o).expect("valid")).expect("serializable");
    let p = &json["directions"][0]["policies"][0];
    assert_eq!(p["policy"], "delayed");
    assert_eq!(p["acks"], 3);
    assert_eq!(p["params"]["segments"], 4);
    assert_eq!((&p["host"], &p["clamp"]), (&"rfc".into(), &false.into()));
    assert!(p.get("trace").is_none());
}

#[test]
fn a_cancelled_replay_ends_before_the_next_policy() {
    let mut t = Trace::new(0);
    for i in 0..20 {
        t.data(MS * u64::from(i), 1 + 300 * i, 300);
    }
    let capture = t.capture();
    let asked = std::cell::Cell::new(0);
    let cancelled = || {
        asked.set(asked.get() + 1);
        asked.get() > 2
    };
    let options = ReplayOptions::default();
    let mut replayer = Replayer::new(&options).expect("valid choices");
    let result = replayer.add(0, &capture.connections[0], &cancelled);
    assert_eq!(result.expect_err("cancelled"), ackwise_replay::ReplayError::Cancelled);
    assert_eq!(asked.get(), 3);
}

#[test]
fn the_largest_directions_are_kept_in_whatever_order_connections_come() {
    let b = ends()[1];
    let mut w = PcapWriter::new(link::RAW, PcapStyle::default());
    for (i, segments) in [12, 10, 14, 11, 14, 13].into_iter().enumerate() {
        let a = SocketAddr::new(ends()[0].ip(), 1000 + i as u16);
        for k in 0..segments {
            w.tcp(MS * (k + 20 * i as u64), &TcpPacket::new(a, b, 1 + 1000 * k as u32, 1, 1000));
        }
    }
    let capture = read(&w.into_bytes()[..], "six", &ReadOptions::default()).expect("valid");
    let policies = vec![PolicyChoice::new("every")];
    let o = ReplayOptions { policies, max_directions: 4, traced_directions: 2, ..ReplayOptions::default() };
    let in_order = replay(&capture, &o).expect("valid");
    let kept: Vec<_> = in_order
        .directions
        .iter()
        .map(|d| (d.connection, d.data_segments, d.policies[0].trace.is_some()))
        .collect();
    assert_eq!(kept, [(0, 12, false), (2, 14, true), (4, 14, true), (5, 13, false)]);
    let left_out = in_order.directions_left_out;
    assert_eq!((left_out.directions, left_out.data_segments, left_out.payload_bytes), (2, 21, 21_000));
    let only = Some([(1, 0), (3, 0), (3, 1)].into());
    let chosen = replay(&capture, &ReplayOptions { only, ..o.clone() }).expect("valid").directions;
    assert_eq!(chosen.iter().map(|d| d.connection).collect::<Vec<_>>(), [1, 3]);
    for order in [[5, 4, 3, 2, 1, 0], [1, 3, 0, 5, 2, 4]] {
        let mut replayer = Replayer::new(&o).expect("valid");
        for c in order {
            replayer.add(c, &capture.connections[c], &|| false).expect("not cancelled");
        }
        let json = |r| serde_json::to_string(r).expect("serializable");
        assert_eq!(json(&replayer.finish(&capture)), json(&in_order), "{order:?}");
    }
}

#[test]
fn a_trace_counts_all_acks_and_lists_the_first() {
    let mut t = Trace::new(0);
    let count = 3 * TRACE_ACKS_MAX as u32;
    for i in 0..count {
        t.data(MS * u64::from(10 + i), 1 + 100 * i, 100);
    }
    let d = only(&t.capture(), &options(&["every"]));
    let trace = of(&d, "every").trace.as_ref().expect("asked for");
    assert_eq!(trace.first.len(), TRACE_ACKS_MAX);
    let [(reason, parts)] = &trace.counts[..] else { panic!("{:?}", trace.counts) };
    assert_eq!((*reason, parts.len(), parts.iter().sum::<u64>()), ("every-segment", 100, u64::from(count)));
}
