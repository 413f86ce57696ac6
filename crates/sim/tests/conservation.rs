// SPDX-License-Identifier: MIT
//! Random scenarios that use every key: whatever the path, the policy, the sender and the socket,
//! each byte is delivered once and in order, every transfer ends, no ACK waits longer than the
//! protocol allows, and equal seeds give equal bytes.

mod scenes;

use ackwise_core::{Entry, Host, Policy};
use ackwise_link as _;
use ackwise_sim::result::RunResult;
use ackwise_sim::run_tapped;
use ackwise_sim::scenario::{
    AppSpec, Bulk, CongestionControl, OddWrites, RandomSpacing, Replay, RequestResponse, Scenario,
};
use ackwise_sim::tap::{Opened, Passed, Place, Tap};
use scenes::{read, run, text, MS, S, US};
use serde_json::{json, Value};
use std::collections::BTreeMap;

/// SplitMix64 (Steele, Lea, Flood 2014): independent of the simulator's own numbers.
struct Dice(u64);

impl Dice {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

fn pipe(d: &mut Dice) -> Value {
    let mut p = json!({
        "rate_bps": d.pick(&[64_000u64, 500_000, 2_000_000, 10_000_000, 100_000_000, 1_000_000_000]),
        "delay_ns": d.pick(&[0, 100 * US, 5 * MS, 50 * MS, 300 * MS]),
        "queue_packets": d.pick(&[0, 0, 1, 2, 5, 20, 100]),
        "discipline": d.pick(&["fifo", "fifo", "ack-separation", "ack-filter", "ack-separation-filter", "codel"]),
    });
    if d.one_in(4) {
        p["queue_bytes"] = json!(d.pick(&[1_500u64, 5_000, 70_000]));
    }
    if d.one_in(3) {
        p["loss_ppm"] = json!(d.pick(&[100, 10_000, 50_000, 200_000]));
    }
    if d.one_in(4) {
        p["burst_loss"] = json!({
            "enter_ppm": d.pick(&[1_000, 20_000]),
            "leave_ppm": d.pick(&[100_000, 500_000]),
            "loss_ppm": d.pick(&[300_000, 1_000_000]),
        });
    }
    if d.one_in(4) {
        p["reorder"] = json!({ "probability_ppm": d.pick(&[10_000, 300_000]), "delay_ns": d.below(60 * MS) });
    }
    if d.one_in(4) {
        p["duplicate_ppm"] = json!(d.pick(&[1_000, 100_000, 1_000_000]));
    }
    if d.one_in(4) {
        p["jitter_ns"] = json!(d.below(30 * MS));
    }
    if d.one_in(6) {
        let start = d.below(2 * S);
        p["outages"] = json!([{ "start_ns": start, "length_ns": d.below(3 * S) }]);
    }
    if d.one_in(8) {
        p["grant_interval_ns"] = json!(d.pick(&[MS, 8 * MS]));
    }
    if d.one_in(8) {
        p["per_packet_ns"] = json!(200 * US);
    }
    if d.one_in(3) {
        queue_for_each_flow(d, &mut p);
    }
    p
}

/// Chooses a discipline with a queue for each flow, and sets some of its keys.
fn queue_for_each_flow(d: &mut Dice, pipe: &mut Value) {
    let rate = pipe["rate_bps"].as_u64().expect("a rate");
    let (over, other_limit) = match d.below(3) {
        0 => {
            // A full FQ-CoDel drops from the head: a burst above its limit never gets its first packet through.
            let quantum = d.pick(&[300, 3000]);
            (json!({ "discipline": "fq-codel", "quantum_bytes": quantum, "queue_packets": 100 }), None)
        }
        1 => (json!({ "discipline": "fq", "flow_limit_packets": d.pick(&[1, 5, 100]) }), Some("queue_bytes")),
        _ => {
            let shaper_rate = d.pick(&[rate, rate / 2, rate - rate / 20]);
            let filter = d.pick(&["off", "on", "aggressive"]);
            let cake = json!({ "discipline": "cake", "shaper_rate_bps": shaper_rate, "ack_filter": filter });
            (cake, Some("queue_packets"))
        }
    };
    scenes::lay_over(pipe, &over);
    if let (Some(limit), Some(keys)) = (other_limit, pipe.as_object_mut()) {
        keys.remove(limit);
    }
}

fn host(d: &mut Dice) -> Value {
    if !d.one_in(3) {
        return json!({});
    }
    json!({
        "data_received_ns": d.below(200 * US),
        "data_sent_ns": d.below(200 * US),
        "ack_received_ns": d.below(100 * US),
        "acknowledged_kib_ns": d.pick(&[0, 0, 10 * US]),
        "ack_sent_ns": d.below(100 * US),
        "policy_ns": 10 * US,
        "backlog_packets": d.pick(&[1000, 1, 3, 50]),
        "gro_max_bytes": d.pick(&[0, 3_000, 65_536]),
        "gro_window_ns": d.pick(&[0, 50 * US, 2 * MS]),
        "process": {
            "read_ns": d.pick(&[0, 0, 20 * US, MS]),
            "read_kib_ns": d.pick(&[0, 0, 5 * US]),
            "write_ns": d.pick(&[0, 0, 10 * US]),
            "write_kib_ns": d.pick(&[0, 0, 10 * US]),
            "turn_bytes": d.pick(&[0, 0, 1, 20_000]),
            "turn_packets": d.pick(&[64, 1, 300]),
        },
    })
}

/// Any host alone, or any policy on any host, with each parameter at its minimum, its maximum, its
/// default or any value.
fn policy(d: &mut Dice) -> Value {
    // Host `model` has no duties: a policy on it may wait forever.
    let hosts: Vec<_> = Host::all().filter(|h| h.name() != "model").collect();
    let all: Vec<_> =
        hosts.iter().copied().map(Entry::Host).chain(Policy::all().map(Entry::Policy)).collect();
    let entry = d.pick(&all);
    let mut params = BTreeMap::new();
    for p in entry.params() {
        let any = p.min + d.below(u64::from(p.max - p.min) + 1) as u32;
        params.insert(p.name, d.pick(&[p.min, p.max, p.initial, any]));
    }
    let mut choice = json!({ "name": entry.name(), "params": params, "clamp": !d.one_in(4) });
    if matches!(entry, Entry::Policy(_)) && d.one_in(2) {
        choice["host"] = json!(d.pick(&hosts).name());
    }
    choice
}

fn app(d: &mut Dice) -> Value {
    match d.below(6) {
        0 | 1 => json!({ "kind": "bulk", "bytes": 1 + d.below(200_000) }),
        2 => json!({
            "kind": "request-response", "count": 1 + d.below(8),
            "request_bytes": 1 + d.below(4_000), "response_bytes": 1 + d.below(40_000),
            "think_ns": d.pick(&[0, 0, 30 * MS]),
        }),
        3 => json!({
            "kind": "random-spacing", "packets": 1 + d.below(60), "bytes": 1 + d.below(3_000),
            "max_gap_ns": d.pick(&[0, 5 * MS, 70 * MS]),
        }),
        4 => json!({
            "kind": "odd-writes", "count": 1 + d.below(8), "writes": 1 + d.below(5),
            "write_bytes": 1 + d.below(5_000), "gap_ns": d.pick(&[0, 100 * MS]),
        }),
        _ => {
            let n = 1 + d.below(20) as usize;
            let mut times: Vec<u64> = (0..n).map(|_| d.below(S)).collect();
            times.sort_unstable();
            let bytes: Vec<u64> = (0..n).map(|_| 1 + d.below(9_000)).collect();
            json!({ "kind": "replay", "times_ns": times, "bytes": bytes })
        }
    }
}

fn flows(d: &mut Dice, name: &str) -> Value {
    let poisson = d.one_in(5);
    json!({
        "name": name,
        "count": 1 + d.below(3),
        "direction": d.pick(&["down", "up"]),
        "start_jitter_ns": d.below(100 * MS),
        "arrivals_per_s": if poisson { 5.0 } else { 0.0 },
        "policy": policy(d),
        "peer_policy": policy(d),
        "sender": {
            "congestion_control": d.pick(&["reno", "cubic", "bbr"]),
            "counting": d.pick(&["bytes", "bytes2smss", "acks"]),
            "nagle": d.pick(&["bsd43", "unsent", "minshall", "off"]),
            "recovery": d.pick(&["sack", "sack", "newreno", "timeout"]),
            "socket": d.pick(&["linux", "bsd43"]),
            "low_water_bytes": d.pick(&[0, 4096, 1 << 20]),
            "copy_bps": d.pick(&[0, 2_000_000, 100_000_000]),
            "initial_window_segments": d.pick(&[1, 2, 10, 100]),
            "send_buffer_bytes": d.pick(&[300u64, 1_000, 4_096, 16_384, 65_536, 4 << 20]),
            "max_window_segments": d.pick(&[0, 0, 1, 3, 20]),
            "pacing": d.one_in(3),
            "tail_loss_probe": d.one_in(2),
            "min_rto_ns": d.pick(&[MS, 200 * MS, S]),
        },
        "receiver": {
            "recv_buffer_bytes": d.pick(&[256u64, 1_460, 4_096, 65_535, 131_072, 1 << 20]),
            "recv_buffer_max_bytes": d.pick(&[0u64, 6 << 20]),
            "window_scaling": d.one_in(2),
            "timestamps": d.one_in(2),
            "slow_window": d.one_in(2),
            "window_clamp_bytes": d.pick(&[0, 0, 0, 20_000, 200_000]),
            "reader_lag_ns": d.pick(&[0, 0, 0, 3 * MS, 700 * MS]),
            "reader_bps": d.pick(&[0u64, 0, 0, 300_000, 20_000_000]),
            "ack_after_read": d.pick(&[false, true]),
            "socket": d.pick(&["linux", "bsd43"]),
        },
        "app": app(d),
    })
}

fn scenario(number: u64) -> Scenario {
    let mut d = Dice(number);
    let header = d.pick(&[40u64, 60]);
    let mut s = json!({
        "seed": number,
        // Mostly idle, but long enough for the rarest chain of timeouts.
        "duration_ns": 100_000 * S,
        "mtu_bytes": d.pick(&[header + 76, 296, 576, 1_500, 1_500, 9_000, 65_535]),
        "ip_tcp_header_bytes": header,
        "link_overhead_bytes": d.pick(&[0, 38]),
        "link_cells": number % 5 == 0,
        "down": pipe(&mut d),
        "up": pipe(&mut d),
        "client": host(&mut d),
        "server": host(&mut d),
        "groups": [flows(&mut d, "a")],
        "record": { "trace": true, "trace_limit": 1_000_000 },
    });
    if d.one_in(4) {
        s["one_processor"] = json!(true);
        s["server"] = json!({});
    }
    if d.one_in(3) {
        let other = flows(&mut d, "b");
        s["groups"].as_array_mut().expect("a list").push(other);
    }
    // Separate dice: these draws do not change the rest of a scenario.
    for group in s["groups"].as_array_mut().expect("a list") {
        group["sender"]["hystart"] = json!(Dice(!number).pick(&["linux", "rfc9406", "off"]));
    }
    if d.one_in(4) {
        s["access"] =
            json!({ "rate_bps": d.pick(&[1_000_000u64, 100_000_000]), "delay_ns": d.below(20 * MS) });
    }
    if d.one_in(8) {
        for way in ["down", "up"] {
            s[way]["shared_medium"] = json!(true);
            s[way].as_object_mut().expect("keys").remove("shaper_rate_bps");
        }
    }
    read(&s)
}

fn written(app: &AppSpec) -> u64 {
    match app {
        AppSpec::Bulk(Bulk { bytes }) => *bytes,
        AppSpec::RequestResponse(RequestResponse { response_bytes, count, .. }) => {
            response_bytes * u64::from(*count)
        }
        AppSpec::RandomSpacing(RandomSpacing { packets, bytes, .. }) => {
            u64::from(*packets) * u64::from(*bytes)
        }
        AppSpec::OddWrites(OddWrites { write_bytes, writes, count, .. }) => {
            u64::from(*write_bytes) * u64::from(*writes) * u64::from(*count)
        }
        AppSpec::Replay(Replay { bytes, .. }) => bytes.iter().map(|b| u64::from(*b)).sum(),
        AppSpec::ParetoBulk(_) => unreachable!("not drawn here"),
    }
}

/// Number of SYNs sent, and number of connections that began with one.
#[derive(Default)]
struct Syns {
    left: u64,
    first: u64,
}

impl Tap for Syns {
    fn opened(&mut self, connection: &Opened) {
        self.first += 2 * u64::from(connection.handshake);
    }
    fn passed(&mut self, p: &Passed) {
        let leaves = p.place == (if p.down { Place::Server } else { Place::Client });
        self.left += u64::from(p.syn && leaves);
    }
}

/// Checks the invariants of a run; returns the first violation.
fn judge(s: &Scenario, r: &RunResult, syns: &Syns) -> Result<(), String> {
    let demand = |holds: bool, what: String| if holds { Ok(()) } else { Err(what) };
    for share in [r.down.busy_share, r.up.busy_share, r.client.cpu_share, r.server.cpu_share] {
        demand((0.0..=1.0).contains(&share), format!("busy for {share} of the time"))?;
    }
    for (spec, g) in s.groups.iter().zip(&r.groups) {
        let bytes = written(&spec.app);
        demand(g.flows_started == u64::from(spec.count), format!("{} flows started", g.flows_started))?;
        demand(g.flows_completed == g.flows_started, format!("{} flows completed", g.flows_completed))?;
        for f in &g.flows {
            demand(f.delivered_bytes == bytes, format!("{} of {bytes} bytes delivered", f.delivered_bytes))?;
            demand(f.end_ns >= f.start_ns && f.end_ns <= r.duration_ns, "ends outside of the run".into())?;
        }
        // Quantiles are kept to three digits.
        let longest_ms = g.ack_latency_ns.max / 1e6;
        demand(longest_ms <= 500.0 * 1.001, format!("an ACK was delayed by {longest_ms} ms"))?;
        let t = g.flows[0].trace.as_ref().ok_or("no trace")?;
        demand(!t.truncated, "the trace is cut off".into())?;
        let arrived: u64 = t.arrival_segments.iter().map(|&n| u64::from(n)).sum();
        demand(arrived == g.flows[0].segments_received, format!("{arrived} segments in the trace"))?;
        // New data continues where earlier data ended, up to the last byte; retransmitted data was
        // sent before.
        let mut next = 0;
        for i in 0..t.data_seq.len() {
            let end = t.data_seq[i] + u64::from(t.data_bytes[i]);
            if t.data_retransmitted[i] {
                demand(end <= next, format!("{end} sent again before {next} was sent"))?;
            } else {
                demand(t.data_seq[i] == next, format!("{} sent after {next}", t.data_seq[i]))?;
                next = end;
            }
        }
        demand(next == bytes, format!("{next} of {bytes} bytes sent"))?;
        demand(t.ack_seq.windows(2).all(|w| w[0] <= w[1]), "ACK numbers go back".into())?;
        demand(t.ack_time_ns.windows(2).all(|w| w[0] <= w[1]), "time goes back".into())?;
        let again = t.data_retransmitted.iter().filter(|a| **a).count() as u64;
        let counted = g.flows[0].retransmitted_segments;
        // The trace contains data; the counter includes SYNs.
        let syns_again = syns.left - syns.first;
        let fits = again <= counted && counted <= again + syns_again;
        demand(fits, format!("{again} retransmissions in the trace, {counted} counted"))?;
    }
    Ok(())
}

/// Whether every arrival depends on random numbers.
fn is_random(s: &Scenario) -> bool {
    s.down.jitter_ns > MS || s.up.jitter_ns > MS
}

/// The same scenario with rivals in place of its policies, one after the other.
fn rivalled(number: u64) -> Scenario {
    let rivals: Vec<_> = Policy::rivals().map(|p| p.name()).collect();
    let mut s = scenario(number);
    let choices = s.groups.iter_mut().flat_map(|g| [&mut g.policy, &mut g.peer_policy]);
    for (choice, i) in choices.zip(number as usize..) {
        choice.name = rivals[i % rivals.len()].to_owned();
        choice.params.clear();
    }
    // BBR paces what a small buffer holds by its last sample: after a pause of 1000 s, by 1000 s.
    for sender in s.groups.iter_mut().map(|g| &mut g.sender) {
        if sender.congestion_control == CongestionControl::Bbr && sender.send_buffer_bytes <= 1000 {
            sender.congestion_control = CongestionControl::Cubic;
        }
    }
    s
}

/// Runs the scenarios with these numbers on all cores, and reports each failure with its JSON.
fn check_all(numbers: std::ops::Range<u64>, scenario: fn(u64) -> Scenario) {
    let threads = 2;
    let failures = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for part in 0..threads {
            let (numbers, failures) = (numbers.clone(), &failures);
            scope.spawn(move || {
                for number in numbers.filter(|n| n % threads == part) {
                    let s = scenario(number);
                    let verdict = std::panic::catch_unwind(|| {
                        let mut syns = Syns::default();
                        let r = run_tapped(&s, None, Some(&mut syns)).map_err(|e| e.to_string())?;
                        judge(&s, &r, &syns)?;
                        let bytes = serde_json::to_string(&r).expect("serializable");
                        if serde_json::to_string(&run(&s)).expect("serializable") != bytes {
                            return Err("another result where nobody looks at the packets".to_string());
                        }
                        if is_random(&s) {
                            let mut other = s.clone();
                            other.seed += 1_000_000;
                            let mut changed = run(&other);
                            changed.seed = s.seed;
                            if serde_json::to_string(&changed).expect("serializable") == bytes {
                                return Err("the seed makes no difference".to_string());
                            }
                        }
                        Ok(())
                    });
                    let what = match verdict {
                        Ok(Ok(())) => continue,
                        Ok(Err(what)) => what,
                        Err(panic) => {
                            let message = panic.downcast_ref::<String>().map(String::as_str);
                            let message = message.or(panic.downcast_ref::<&str>().copied());
                            format!("panic: {}", message.unwrap_or("without words"))
                        }
                    };
                    let failure = format!("scenario {number}: {what}\n{}", text(&s));
                    failures.lock().expect("no panic while it is held").push(failure);
                }
            });
        }
    });
    let failures = failures.into_inner().expect("all threads are done");
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_byte_arrives_once_and_in_order_on_any_path_with_any_policy() {
    // Builds with checks are thirty times slower.
    check_all(0..if cfg!(debug_assertions) { 300 } else { 2000 }, scenario);
}

#[test]
fn every_byte_arrives_once_and_in_order_with_any_rival() {
    check_all(0..if cfg!(debug_assertions) { 100 } else { 600 }, rivalled);
}

#[test]
fn the_generator_reaches_all_policies_senders_and_disciplines() {
    // Checks that every value is drawn: undrawn values are not tested.
    let all: Vec<Scenario> = (0..2000).map(scenario).collect();
    let text: String = all.iter().map(text).collect();
    let hosts: Vec<_> = Host::all().map(|h| h.name()).filter(|name| *name != "model").collect();
    for name in Policy::all().map(|p| p.name()).chain(hosts.iter().copied()) {
        assert!(text.matches(&format!("\"name\":\"{name}\"")).count() > 20, "{name}");
    }
    for name in hosts {
        assert!(text.matches(&format!("\"host\":\"{name}\"")).count() > 20, "{name}");
    }
    for word in [
        "reno",
        "cubic",
        "bbr",
        "bytes2smss",
        "rfc9406",
        "acks",
        "newreno",
        "timeout",
        "bsd43",
        "minshall",
        "off",
        "ack-separation",
        "ack-filter",
        "ack-separation-filter",
        "codel",
        "fq-codel",
        "fq",
        "cake",
        "aggressive",
        "replay",
        "odd-writes",
        "random-spacing",
        "request-response",
    ] {
        assert!(text.matches(&format!("\"{word}\"")).count() > 20, "{word}");
    }
    assert!(all.iter().filter(|s| is_random(s)).count() > 20);
}
