// SPDX-License-Identifier: MIT
//! Faults of other stacks and of this simulator, each reproduced by the scenario that showed it.

mod scenes;

use ackwise_link as _;
use ackwise_sim::result::RunResult;
use scenes::{acks, group, only_flow, ruler, run, sent, trace, MS, MSS, S, US};
use serde_json::{json, Value};

/// An MTU of 65 535 bytes with a receive buffer of the same size, 10 Gbit/s and 50 us each way: the
/// loopback of a host with little memory. The MSS is 65 495; ten segments are sent.
fn loopback(policy: Value) -> RunResult {
    let g = group(json!({
        "policy": policy,
        "sender": { "congestion_control": "cubic", "recovery": "sack", "min_rto_ns": 200 * MS },
        "receiver": { "recv_buffer_bytes": 65_535, "window_scaling": true },
    }));
    run(&ruler(
        json!({
            "duration_ns": S,
            "mtu_bytes": 65_535,
            "down": { "rate_bps": 10_000_000_000u64, "delay_ns": 50 * US },
            "up": { "rate_bps": 10_000_000_000u64, "delay_ns": 50 * US },
        }),
        &[g],
    ))
}

/// RTT of one segment: 52.428 us for it, 50 us, and back 40 bytes: 0.032 us, and 50 us.
const ROUND_NS: u64 = 52_428 + 50_000 + 32 + 50_000;

#[test]
fn seen_an_mtu_as_large_as_the_window_stalls_for_the_timer_in_each_window() {
    // Spec page 5, class I, on today's stacks: one segment fills the window, and a receiver that
    // counts to two, and has no duties, waits for its timer: 10 or 40 ms for each 65 495 bytes.
    for delay_ms in [10, 40] {
        let params = json!({ "delay_ms": delay_ms });
        let r = loopback(json!({ "name": "delayed", "params": params, "host": "model" }));
        let t = trace(&r);
        assert!(t.data_bytes.iter().all(|&b| b == 65_495), "one segment fills the window");
        let gap = delay_ms * MS + ROUND_NS;
        assert_eq!(t.data_time_ns, (0..=S / gap).map(|i| i * gap).collect::<Vec<_>>());
        assert!(t.ack_reason.iter().all(|reason| reason == "delay-timer"));
        // A deadline after the last full round may fall inside the second.
        assert!([S / gap, S / gap + 1].contains(&r.groups[0].stalls), "{}", r.groups[0].stalls);
    }
}

#[test]
fn seen_a_duty_of_every_host_ends_that_stall() {
    // The window is used up, so the ACK leaves as soon as the segment is read: one per
    // 152.46 us: 3.4 Gbit/s. A second holds 6559 rounds; one of them may be cut off.
    for delay_ms in [10, 40] {
        let r = loopback(json!({ "name": "delayed", "params": { "delay_ms": delay_ms } }));
        assert_eq!(r.groups[0].stalls, 0);
        let rounds = S / ROUND_NS;
        let delivered = only_flow(&r).delivered_bytes / 65_495;
        assert!([rounds, rounds + 1].contains(&delivered), "{delivered}");
        assert!(trace(&r).ack_reason.iter().all(|reason| reason == "window-dry"));
    }
}

#[test]
fn linux_needs_no_duty_there_since_its_sender_pushes_what_is_half_of_a_window() {
    // forced_push: each segment is more than half of the largest window, so each has PSH and is acknowledged
    // when it is read.
    let r = loopback(json!({ "name": "linux" }));
    assert_eq!(r.groups[0].stalls, 0);
    assert!(r.groups[0].acks_by_reason["push"] > 6000, "{:?}", r.groups[0].acks_by_reason);
}

#[test]
fn seen_linux_waits_40_ms_where_the_senders_own_window_is_one_segment() {
    // The receive window is 1 MiB, so no rule about windows helps: Linux answers the first eight
    // at once (1 MiB are eight pairs) and those that end a write of 128 KiB when they are read
    // (PSH); for each other one it waits 40 ms, its shortest delay.
    let g = group(json!({
        "policy": { "name": "linux" },
        "sender": { "initial_window_segments": 1, "max_window_segments": 1 },
    }));
    let path = json!({
        "duration_ns": 10 * S,
        "mtu_bytes": 65_535,
        "down": { "rate_bps": 10_000_000_000u64, "delay_ns": 50 * US },
        "up": { "rate_bps": 10_000_000_000u64, "delay_ns": 50 * US },
    });
    let r = run(&ruler(path, &[g]));
    let t = trace(&r);
    let mut expected = Vec::new();
    let mut now = 0;
    for i in 0.. {
        if now > 10 * S {
            break;
        }
        expected.push(now);
        let pushed = (i + 1) * 65_495 / 131_072 > i * 65_495 / 131_072;
        now += ROUND_NS + if i < 8 || pushed { 0 } else { 40 * MS };
    }
    assert_eq!(t.data_time_ns, expected);
}

#[test]
fn no_policy_stalls_there_on_linux() {
    for policy in ackwise_core::Policy::all() {
        let r = loopback(json!({ "name": policy.name(), "host": "linux", "clamp": true }));
        assert_eq!(r.groups[0].stalls, 0, "{}", policy.name());
        assert!(r.groups[0].goodput_bps > 3e9, "{}: {}", policy.name(), r.groups[0].goodput_bps);
    }
}

/// A window of eight segments for a receiver whose policy waits for 64.
fn stretched(host: &str, clamp: bool) -> RunResult {
    let g = group(json!({
        "policy": { "name": "delayed", "params": { "segments": 64 }, "host": host, "clamp": clamp },
        "sender": { "initial_window_segments": 8, "max_window_segments": 8 },
        "app": { "kind": "bulk", "bytes": 64 * MSS },
    }));
    run(&ruler(json!({}), &[g]))
}

#[test]
fn seen_a_receiver_without_a_clamp_waits_for_its_timer_in_each_round() {
    // Eight segments arrive at 21..28 ms; the timer runs from the first: 221 ms, at the sender at
    // 240 ms. So a round takes 240 ms, and FIN ends the eighth at once, which is a duty:
    // 7 * 240 + 28 ms.
    for host in ["model", "rfc"] {
        let r = stretched(host, false);
        let expected: Vec<_> = (0..8).flat_map(|k| (1..=8).map(move |n| (k * 240_000, 8 * k + n))).collect();
        assert_eq!(sent(trace(&r)), expected);
        assert_eq!(r.groups[0].stalls, 7);
        let fin = if host == "rfc" { (7 * 240 + 28) * MS } else { (7 * 240 + 221) * MS };
        assert_eq!(*trace(&r).ack_time_ns.last().expect("an ACK"), fin);
    }
}

#[test]
fn seen_the_clamp_restores_the_two_segment_rule_there() {
    // A quarter of eight segments are two: ACKs with segments 2, 4, 6 ..., as RFC 5681, 4.2 asks.
    let r = stretched("rfc", true);
    let t = trace(&r);
    assert_eq!(t.ack_seq, (1..=32).map(|i| 2 * i * MSS).collect::<Vec<_>>());
    assert_eq!(acks(t)[..2], [(22_000, 2, "segment-count"), (24_000, 4, "segment-count")]);
    assert_eq!(r.groups[0].stalls, 0);
}

#[test]
fn seen_a_large_loss_is_not_answered_by_a_burst() {
    // A window of 200 segments loses its middle 100, and then everything sent for 30 ms after
    // recovery has begun. RFC 6937: as much may be sent as was delivered, plus one segment per ACK;
    // the sender must never inject more at once.
    let outages = json!([
        { "start_ns": 50 * MS, "length_ns": 100 * MS },
        { "start_ns": 215 * MS, "length_ns": 30 * MS },
    ]);
    let g = group(json!({
        "sender": {
            "initial_window_segments": 200, "max_window_segments": 200, "recovery": "sack",
            "tail_loss_probe": true, "min_rto_ns": 200 * MS,
        },
        "app": { "kind": "bulk", "bytes": 2000 * MSS },
    }));
    let r = run(&ruler(json!({ "down": { "outages": outages } }), &[g]));
    assert_eq!(only_flow(&r).delivered_bytes, 2000 * MSS);
    // 130 segments were lost, each must be sent again, and none without need.
    assert_eq!(r.groups[0].retransmitted_segments, r.down.dropped_link);
    let mut burst = 0;
    let mut last = 0;
    for &(at, _) in sent(trace(&r)).iter().filter(|(at, _)| *at > 0) {
        burst = if at == last { burst + 1 } else { 1 };
        last = at;
        // Two segments per ACK in slow start and after a timeout; three with Reno's growth.
        assert!(burst <= 3, "{burst} segments at {at} us");
    }
}

#[test]
fn seen_one_retransmission_each_round_trip_after_a_large_loss() {
    // The middle 150 of 200 segments are lost. With SACK they are recovered within a few RTTs of
    // 40 ms plus their 150 ms on the link, not one in each of 150 RTTs.
    let outages = json!([{ "start_ns": 20 * MS, "length_ns": 150 * MS }]);
    let g = group(json!({
        "sender": { "initial_window_segments": 200, "max_window_segments": 200, "recovery": "sack" },
        "app": { "kind": "bulk", "bytes": 200 * MSS },
    }));
    let r = run(&ruler(json!({ "down": { "outages": outages } }), &[g]));
    assert_eq!((r.down.dropped_link, r.groups[0].retransmitted_segments), (150, 150));
    assert_eq!(r.groups[0].timeouts, 0);
    // 200 + 150 transmissions, the first loss known at 220 ms at the latest; three RTTs of
    // slow-start-like growth are then more than enough.
    assert!(only_flow(&r).end_ns < (200 + 20 + 150 + 20 + 4 * 40) * MS, "{}", only_flow(&r).end_ns);
}

#[test]
fn seen_the_timestamp_echoed_is_that_of_the_first_segment_not_acknowledged() {
    // RFC 7323, 4.3: with delayed ACKs the echo includes the wait. Two segments of 948 bytes of a
    // request/response: the client's request carries the echo of the response's first segment, so
    // both ends measure; at the receiver the sample runs from the ACK to the first data it let go.
    // With ACKs for each of eight segments in flight and data 1 ms apart the receiver's RTT is 40
    // ms, which bounds Linux's delayed-ACK timer: it cannot be seen directly; but an echo of the
    // newest segment would make the sender's RTT shorter, of an old one longer: it must be exact.
    let g = group(json!({
        "policy": { "name": "delayed", "params": { "segments": 4 } },
        "sender": { "initial_window_segments": 8, "max_window_segments": 8 },
        "receiver": { "timestamps": true },
        "app": { "kind": "bulk", "bytes": 800 * 948 },
    }));
    let r = run(&ruler(json!({}), &[g]));
    let rtt = &r.groups[0].rtt_ns;
    // In the first burst segment 1 waits for 4 (24 ms), and 5 for the link and for 8 (28 ms): 43
    // and 47 ms; from then on four leave with each ACK: the first of them waits 3 ms: 43 ms.
    assert_eq!(rtt.samples, 200);
    assert!((rtt.mean - (199.0 * 43e6 + 47e6) / 200.0).abs() < 1.0, "{}", rtt.mean);
}

#[test]
fn seen_a_probe_into_a_shut_window_is_answered_and_not_taken_for_data() {
    // The reader comes after 5 s. Each probe is answered by an ACK at once (RFC 9293, 3.8.6.1),
    // and no byte is delivered twice.
    let g = group(json!({
        "policy": { "name": "delayed", "params": { "segments": 2 } },
        "receiver": { "recv_buffer_bytes": 4 * MSS, "reader_lag_ns": 5 * S },
        "app": { "kind": "bulk", "bytes": 8 * MSS },
    }));
    let r = run(&ruler(json!({}), &[g]));
    assert_eq!(only_flow(&r).delivered_bytes, 8 * MSS);
    assert_eq!(r.groups[0].flows_completed, 1);
    // Probes at 43 + 1000 ms and each later after twice the time: 1 s, 2 s; the third, 4 s after
    // the second's answer, finds the window open.
    assert_eq!(acks(trace(&r)).iter().filter(|a| a.2 == "duplicate").count(), 2);
}

#[test]
fn seen_a_segment_that_waited_behind_a_hole_taken_for_a_long_round_trip() {
    // Karn's rule (RFC 6298, 3). Segment 2 of ten is lost and retransmitted on the third duplicate; the
    // ACK for all of 2..12 measures no RTT. All others take just 40 ms.
    let outages = json!([{ "start_ns": 3 * MS / 2, "length_ns": MS }]);
    let g = group(json!({
        "receiver": { "window_scaling": false },
        "app": { "kind": "bulk", "bytes": 19 * MSS },
    }));
    let r = run(&ruler(json!({ "down": { "outages": outages } }), &[g]));
    assert_eq!((r.groups[0].retransmitted_segments, r.groups[0].rtt_ns.samples), (1, 8));
    assert!((r.groups[0].rtt_ns.mean - 4e7).abs() < 1.0, "{}", r.groups[0].rtt_ns.mean);
}

#[test]
fn seen_a_backed_off_timeout_forgotten_without_a_measurement() {
    // RFC 6298, 5.5 and 5.7: one segment at a time; the first is lost at 0 and 1 s and arrives when
    // sent at 3 s. Its ACK (3040 ms) is no measurement (Karn), so segment 2, which is lost, has the
    // timeout of 4 s. With timestamps the ACK is one, and the timeout is 1 s again.
    let outages = json!([
        { "start_ns": 0, "length_ns": 1500 * MS },
        { "start_ns": 3035 * MS, "length_ns": 100 * MS },
    ]);
    for (timestamps, again) in [(false, 7040), (true, 4040)] {
        let g = group(json!({
            "sender": { "max_window_segments": 1, "recovery": "timeout" },
            "receiver": { "timestamps": timestamps },
            "app": { "kind": "bulk", "bytes": 1900 },
        }));
        let r = run(&ruler(json!({ "down": { "outages": outages } }), &[g]));
        let times: Vec<u64> = trace(&r).data_time_ns.iter().map(|t| t / MS).collect();
        assert_eq!(times[..5], [0, 1000, 3000, 3040, again]);
    }
}

#[test]
fn seen_a_dialogue_taken_for_finished_while_a_request_was_on_its_way() {
    // A turn takes 40 ms: at 50 ms the second request of five is in progress.
    let app = json!({ "kind": "request-response", "request_bytes": 100, "response_bytes": MSS, "count": 5 });
    let r = run(&ruler(json!({ "duration_ns": 50 * MS }), &[group(json!({ "app": app }))]));
    assert_eq!((r.groups[0].flows_completed, r.groups[0].message_latency_ns.samples), (0, 1));
    let r = run(&ruler(json!({}), &[group(json!({ "app": app }))]));
    assert_eq!((r.groups[0].flows_completed, r.groups[0].message_latency_ns.samples), (1, 5));
}

#[test]
fn seen_what_piled_up_above_a_hole_taken_for_flight() {
    // RFC 5681, 3.1: half of the flight. A retransmission that was lost again held the left edge
    // while megabytes above it arrived; half of those became ssthresh, and the flow sent every
    // segment twice from then on.
    let group = |name: &str, policy: &str| {
        json!({
            "name": name, "count": 4, "start_jitter_ns": 2 * S,
            "policy": { "name": policy, "params": {} },
            "sender": { "congestion_control": "reno" },
            "app": { "kind": "bulk" },
        })
    };
    for seed in 1..=8 {
        let r = run(&ruler(
            json!({
                "seed": seed, "duration_ns": 60 * S, "mtu_bytes": 1500, "link_overhead_bytes": 38,
                "down": { "rate_bps": 10_000_000, "delay_ns": 500_000, "queue_packets": 100 },
                "up": { "rate_bps": 10_000_000, "delay_ns": 500_000, "queue_packets": 100 },
            }),
            &[group("new", "csa3"), group("ordinary", "linux")],
        ));
        for g in &r.groups {
            assert!(g.retransmitted_segments < 5000, "seed {seed}: {} sent again", g.retransmitted_segments);
        }
    }
}
