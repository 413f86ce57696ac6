// SPDX-License-Identifier: MIT
//! Packet timelines of small cases, worked out by hand from the RFCs, to the nanosecond.
//!
//! The path is the ruler's (see `scenes`): a full segment sent at T on the idle link arrives at T +
//! 21 ms, its ACK reaches the sender 19 ms later; the link takes one full segment per millisecond.
//! Everything is exact: any difference is an error in the simulator or in the calculation.

mod scenes;

use ackwise_link as _;
use scenes::{acks, at_ms, group, only_flow, ruler, run, sent, sent_bytes, trace, MS, MSS, S, US};
use serde_json::{json, Value};

/// The ruler's path with one transfer of this many segments, with the changes in `over`.
fn transfer(segments: u64, over: Value) -> Value {
    let mut g = group(json!({ "app": { "kind": "bulk", "bytes": segments * MSS } }));
    scenes::lay_over(&mut g, &over);
    g
}

fn delayed(segments: u32) -> Value {
    json!({ "name": "delayed", "params": { "segments": segments } })
}

/// Loss of packets that leave the link's transmitter in these milliseconds (one full packet each).
fn losing_at(ms: &[u64]) -> Value {
    let outages: Vec<_> =
        ms.iter().map(|t| json!({ "start_ns": t * MS - MS / 2, "length_ns": MS })).collect();
    json!({ "down": { "outages": outages } })
}

/// A sender, and a receiver that sends an ACK for each segment above a hole: on Linux, they share
/// ACKs after the third.
fn each_sacked(sender: Value) -> Value {
    json!({ "sender": sender, "receiver": { "socket": "bsd43" } })
}

// --- growth --------------------------------------------------------------------------------------

#[test]
// [RFC 6928, 2]
fn slow_start_doubles_when_each_segment_is_acknowledged() {
    // RFC 6928: ten segments at 0, arriving at 21..30 ms. RFC 5681, 3.1: each ACK (40..49 ms) moves
    // the window by one and widens it by one: two segments. The 20 segments pass the link one per
    // millisecond (arrivals 61..80 ms), so their ACKs arrive at 80..99 ms.
    let r = run(&ruler(json!({}), &[transfer(70, json!({}))]));
    let mut expected = at_ms(&[(0, 1..=10)]);
    expected.extend((0..10).flat_map(|i| at_ms(&[(40 + i, 11 + 2 * i..=12 + 2 * i)])));
    expected.extend((0..20).flat_map(|i| at_ms(&[(80 + i, 31 + 2 * i..=32 + 2 * i)])));
    assert_eq!(sent(trace(&r)), expected);

    let mut answers: Vec<_> = (0..10).map(|i| (21_000 + 1_000 * i, 1 + i, "every-segment")).collect();
    answers.extend((0..20).map(|i| (61_000 + 1_000 * i, 11 + i, "every-segment")));
    // Round 3: segment 31 leaves at 80 ms and arrives at 101 ms.
    answers.extend((0..40).map(|i| (101_000 + 1_000 * i, 31 + i, "every-segment")));
    assert_eq!(acks(trace(&r)), answers);
    // Segment 70 arrives at 140 ms and its ACK is back at 159 ms.
    assert_eq!(only_flow(&r).end_ns, 140 * MS);
    assert_eq!(r.duration_ns, 159 * MS);
}

#[test]
fn slow_start_doubles_with_an_ack_for_two_segments_when_bytes_are_counted() {
    // RFC 3465, 2.2: an ACK for two segments widens the window by two: four segments leave.
    // ACKs leave with segments 2, 4 ... 10 (22, 24 ... 30 ms). Both limits give the same: an ACK
    // covers just 2 SMSS.
    for counting in ["bytes", "bytes2smss"] {
        let over = json!({ "policy": delayed(2), "sender": { "counting": counting } });
        let r = run(&ruler(json!({}), &[transfer(70, over)]));
        let mut expected = at_ms(&[(0, 1..=10)]);
        expected.extend((0..5).flat_map(|i| at_ms(&[(41 + 2 * i, 11 + 4 * i..=14 + 4 * i)])));
        // Segments 11..30 arrive at 62..81 ms, their ACKs leave at 63, 65 ... 81.
        expected.extend((0..10).flat_map(|i| at_ms(&[(82 + 2 * i, 31 + 4 * i..=34 + 4 * i)])));
        assert_eq!(sent(trace(&r)), expected, "{counting}");
    }
}

#[test]
fn slow_start_grows_by_half_with_an_ack_for_two_segments_when_acks_are_counted() {
    // RFC 5681, 3.1 in its oldest reading: one SMSS per ACK, so three segments leave for every two
    // acknowledged: 10, 15, and of these 14 are paired: 21.
    let over = json!({ "policy": delayed(2), "sender": { "counting": "acks" } });
    let r = run(&ruler(json!({}), &[transfer(46, over)]));
    let mut expected = at_ms(&[(0, 1..=10)]);
    expected.extend((0..5).flat_map(|i| at_ms(&[(41 + 2 * i, 11 + 3 * i..=13 + 3 * i)])));
    // Segments 11..25 arrive at 62..76 ms: ACKs with 12, 14 ... 24 at 63, 65 ... 75 ms.
    expected.extend((0..7).flat_map(|i| at_ms(&[(82 + 2 * i, 26 + 3 * i..=28 + 3 * i)])));
    assert_eq!(sent(trace(&r)), expected);
    // Segment 26 (sent at 82, arriving at 103 ms) makes a pair with 25.
    assert_eq!(acks(trace(&r))[12], (103_000, 26, "segment-count"));
}

#[test]
// [RFC 3465, 2.2]
fn an_ack_for_four_segments_opens_the_window_by_two_at_most_when_capped() {
    // RFC 3465, 2.3, L = 2: four segments acknowledged, two gained: six leave; 8, 12, 18.
    let over = json!({
        "policy": delayed(4),
        "sender": { "counting": "bytes2smss", "initial_window_segments": 8 },
    });
    let r = run(&ruler(json!({}), &[transfer(38, over)]));
    let expected = at_ms(&[
        (0, 1..=8),
        // ACKs leave with segment 4 (24 ms) and 8 (28 ms).
        (43, 9..=14),
        (47, 15..=20),
        // Segments 9..20 arrive at 64..75 ms; ACKs leave at 67, 71, 75 ms.
        (86, 21..=26),
        (90, 27..=32),
        (94, 33..=38),
    ]);
    assert_eq!(sent(trace(&r)), expected);
}

#[test]
fn an_ack_for_four_segments_opens_the_window_by_four_when_bytes_are_counted() {
    let over = json!({
        "policy": delayed(4),
        "sender": { "counting": "bytes", "initial_window_segments": 8 },
    });
    let r = run(&ruler(json!({}), &[transfer(56, over)]));
    let expected = at_ms(&[
        (0, 1..=8),
        (43, 9..=16),
        (47, 17..=24),
        // Segments 9..24 arrive at 64..79 ms; ACKs leave at 67, 71, 75, 79 ms.
        (86, 25..=32),
        (90, 33..=40),
        (94, 41..=48),
        (98, 49..=56),
    ]);
    assert_eq!(sent(trace(&r)), expected);
}

#[test]
// [RFC 9406, 4.2]
fn hystart_plus_plus_ends_slow_start_before_the_queue_overflows() {
    // The path holds 40 segments, the queue 600. The window doubles from 10 to 1280 and overruns both. The first
    // segment of a round finds a queue, of 40, when the ACKs of 80 segments release 160; so its RTT, 80 ms, is
    // known with 160 segments, and is believed with 168. A quarter more in each of five rounds makes less than
    // 168 * 1.25^5 = 513, and congestion avoidance goes on from there. Linux's HyStart is CUBIC's only.
    let lost = |congestion_control: &str, hystart: &str| {
        let sender = json!({ "congestion_control": congestion_control, "hystart": hystart });
        let queue = json!({ "down": { "queue_packets": 600 } });
        let r = run(&ruler(queue, &[transfer(3_000, json!({ "sender": sender }))]));
        only_flow(&r).retransmitted_segments
    };
    for congestion_control in ["reno", "cubic"] {
        assert!(lost(congestion_control, "off") > 50);
        assert_eq!(lost(congestion_control, "rfc9406"), 0);
        let of_linux = lost(congestion_control, "linux");
        assert_eq!(of_linux > 50, congestion_control == "reno", "{of_linux}");
    }
}

#[test]
fn a_short_segment_waits_for_the_ack_of_those_before_it_by_the_rule_of_4_3bsd() {
    // RFC 1122, 4.2.3.4. Two writes of 1200 bytes are two full segments, which have arrived at 22
    // ms, and 480 bytes (half a millisecond on the wire). The rule lets these leave with the ACK of
    // both, 20 ms later.
    for (nagle, expected_ms) in [("off", 22), ("bsd43", 62)] {
        let g = group(json!({
            "policy": { "name": "every" },
            "sender": { "nagle": nagle },
            "app": { "kind": "odd-writes", "write_bytes": MSS + 240, "writes": 2, "count": 1 },
        }));
        let end_ns = only_flow(&run(&ruler(json!({}), &[g]))).end_ns;
        assert!(end_ns.abs_diff(expected_ms * MS) < MS, "{nagle}: {end_ns}");
    }
}

// --- when an ACK leaves --------------------------------------------------------------------------

#[test]
fn a_lone_segment_is_acknowledged_when_its_timer_expires() {
    // RFC 1122, 4.2.3.2. Arrival at 21 ms; 200 ms is the policy's initial value.
    for (delay_ms, expected_us) in [(200, 221_000), (40, 61_000), (500, 521_000), (1, 22_000)] {
        let g = group(json!({
            "policy": { "name": "delayed", "params": { "delay_ms": delay_ms } },
            "app": { "kind": "odd-writes", "write_bytes": MSS, "writes": 1, "count": 1 },
        }));
        let r = run(&ruler(json!({}), &[g]));
        assert_eq!(acks(trace(&r)), [(expected_us, 1, "delay-timer")]);
    }
}

#[test]
fn a_second_arrival_does_not_put_the_timer_off() {
    // RFC 1122, 4.2.3.2: the delay counts from the first segment that no ACK covers. 480 bytes
    // (520 on the wire: 0.52 ms) arrive at 20.52 ms, 240 more at 70.28 ms: one ACK at 220.52 ms.
    let g = group(json!({
        "policy": delayed(2),
        "sender": { "nagle": "off" },
        "app": { "kind": "replay", "times_ns": [0, 50 * MS, 2 * S], "bytes": [480, 240, MSS] },
    }));
    let r = run(&ruler(json!({}), &[g]));
    let t = trace(&r);
    assert_eq!((t.ack_time_ns[0], t.ack_seq[0]), (220_520 * US, 720));
    // The stream's last segment carries FIN: acknowledged as it arrives, at 2021 ms.
    assert_eq!((t.ack_time_ns[1], t.ack_seq[1]), (2_021_000 * US, 720 + MSS));
    assert_eq!(t.ack_reason[1], "fin");
}

#[test]
// [RFC 9293, 3.8.6.3] [S2.8]
fn no_policy_delays_an_ack_beyond_500_ms() {
    // RFC 5681, 4.2. At a price of 999 s for an ACK (rho = 0.999, unit 1 s) greedy would wait for a
    // quarter of an hour.
    for name in ["greedy", "dynamic"] {
        let g = group(json!({
            "policy": { "name": name, "params": { "cost_permille": 999, "unit_us": 1_000_000 } },
            "app": { "kind": "odd-writes", "write_bytes": MSS, "writes": 1, "count": 1 },
        }));
        let r = run(&ruler(json!({}), &[g]));
        assert_eq!(acks(trace(&r)), [(521_000, 1, "max-delay")], "{name}");
    }
}

#[test]
// [D-17]
fn no_policy_delays_an_ack_longer_than_its_host_allows() {
    // A host that allows 4 ms, like Linux where the minimum RTO is 5 ms. Arrival at 21 ms.
    let g = group(json!({
        "policy": delayed(1000),
        "receiver": { "ack_delay_max_ns": 4 * MS },
        "app": { "kind": "odd-writes", "write_bytes": MSS, "writes": 1, "count": 1 },
    }));
    let r = run(&ruler(json!({}), &[g]));
    assert_eq!(acks(trace(&r)), [(25_000, 1, "delay-timer")]);
}

#[test]
// [RFC 9293, 3.10.7.4 (b)]
fn a_fin_is_acknowledged_at_once() {
    // RFC 9293, 3.10.7.4: the third segment of three, alone after a pair, carries FIN.
    let r = run(&ruler(json!({}), &[transfer(3, json!({ "policy": delayed(2) }))]));
    assert_eq!(acks(trace(&r)), [(22_000, 2, "segment-count"), (23_000, 3, "fin")]);
    assert_eq!(r.groups[0].flows_completed, 1);
    assert_eq!(r.duration_ns, 42 * MS);
}

#[test]
// [S1.8]
fn the_ack_of_a_response_rides_on_the_next_request() {
    // 100 bytes of request: 140 on the wire at 1 Tbit/s are 1.12 ns, rounded up to 2: 19 ms and 1
    // ns. A response of one segment: 21 ms. So a turn takes 40 ms and 1 ns, and each of the first
    // four responses is acknowledged by the request that follows it (RFC 9293, 3.8.6.3 lets it
    // wait).
    let app = json!({ "kind": "request-response", "request_bytes": 100, "response_bytes": MSS, "count": 5 });
    let over = json!({ "policy": delayed(2), "peer_policy": delayed(2), "app": app });
    let r = run(&ruler(json!({}), &[group(over)]));
    let g = &r.groups[0];
    let turn = 40_000_001;
    assert_eq!(trace(&r).data_time_ns, (0..5).map(|i| i * turn + 19_000_001).collect::<Vec<_>>());
    assert_eq!((g.acks_piggybacked, g.acks_sent), (4, 1));
    // The last one has no data to ride on: it leaves 200 ms after its arrival.
    assert_eq!(trace(&r).ack_time_ns, [5 * turn + 200 * MS]);
    assert_eq!(trace(&r).ack_reason, ["delay-timer"]);
    assert_eq!(g.message_latency_ns.samples, 5);
    assert!((g.message_latency_ns.mean - turn as f64).abs() < 1.0);
}

#[test]
fn an_ack_that_must_leave_at_once_does_not_wait_for_the_next_request() {
    let app = json!({ "kind": "request-response", "request_bytes": 100, "response_bytes": MSS, "count": 5 });
    let r = run(&ruler(json!({}), &[group(json!({ "policy": { "name": "every" }, "app": app }))]));
    assert_eq!((r.groups[0].acks_piggybacked, r.groups[0].acks_sent), (0, 5));
}

// --- Nagle ---------------------------------------------------------------------------------------

/// One write of a segment and a half; each segment waits 200 ms for its ACK.
fn one_and_a_half(nagle: &str) -> Vec<(u64, u64, u32)> {
    let g = group(json!({
        "policy": delayed(2),
        "sender": { "nagle": nagle },
        "app": { "kind": "odd-writes", "write_bytes": 1440, "writes": 1, "count": 1 },
    }));
    sent_bytes(trace(&run(&ruler(json!({}), &[g]))))
}

#[test]
// [S5.4]
fn bsd_nagle_holds_an_odd_tail_until_all_is_acknowledged() {
    // RFC 1122, 4.2.3.4: the half segment waits while anything is outstanding: the ACK leaves by
    // timer at 221 ms and arrives at 240 ms.
    assert_eq!(one_and_a_half("bsd43"), [(0, 0, 960), (240_000, 960, 480)]);
}

#[test]
fn minshall_nagle_lets_an_odd_tail_go_behind_full_segments() {
    assert_eq!(one_and_a_half("minshall"), [(0, 0, 960), (0, 960, 480)]);
    assert_eq!(one_and_a_half("off"), [(0, 0, 960), (0, 960, 480)]);
}

#[test]
fn minshall_nagle_holds_a_second_short_segment() {
    // 480 bytes at 0 arrive at 20.52 ms, the ACK leaves at 220.52 and arrives at 239.52 ms.
    let times = |nagle: &str| {
        let g = group(json!({
            "policy": delayed(2),
            "sender": { "nagle": nagle },
            "app": { "kind": "replay", "times_ns": [0, MS, 2 * S], "bytes": [480, 240, MSS] },
        }));
        sent_bytes(trace(&run(&ruler(json!({}), &[g]))))
    };
    let last = (2_000_000, 720, 960);
    assert_eq!(times("minshall"), [(0, 0, 480), (239_520, 480, 240), last]);
    assert_eq!(times("bsd43"), [(0, 0, 480), (239_520, 480, 240), last]);
    assert_eq!(times("off"), [(0, 0, 480), (1_000, 480, 240), last]);
}

#[test]
fn nagle_gathers_small_writes_while_it_waits() {
    // Writes of 100 bytes every 10 ms: the first leaves, all others until its ACK (every segment
    // is acknowledged at once: 140 bytes take 0.14 ms, back at 39.14 ms) leave together.
    let times: Vec<u64> = (0..5).map(|i| i * 10 * MS).chain([S]).collect();
    let g = group(json!({
        "sender": { "nagle": "bsd43" },
        "app": { "kind": "replay", "times_ns": times, "bytes": [100, 100, 100, 100, 100, MSS] },
    }));
    let out = sent_bytes(trace(&run(&ruler(json!({}), &[g]))));
    // The write at 40 ms waits for the ACK of the 300 bytes: 340 on the wire, 39.34 ms later.
    let last = (1_000_000, 500, 960);
    assert_eq!(out, [(0, 0, 100), (39_140, 100, 300), (78_480, 400, 100), last]);
}

// --- loss ----------------------------------------------------------------------------------------

/// A window of 65 535 bytes for a larger buffer: unread data does not affect it.
fn steady_window() -> Value {
    json!({ "receiver": { "window_scaling": false } })
}

#[test]
fn an_ack_that_moves_the_window_is_no_duplicate() {
    // RFC 5681, 2, condition (e). Segments 1 to 3 are read at 23.5 ms, after their ACKs left. The next ACK
    // (by 5, 44 ms) offers the room, less what 5 takes: so the third duplicate is the one by 8.
    let over = json!({ "receiver": { "reader_lag_ns": 2_500 * US } });
    let r = run(&ruler(losing_at(&[4]), &[transfer(20, over)]));
    assert_eq!(sent(trace(&r))[16], (47_000, 4));
}

#[test]
fn newreno_sends_the_third_duplicate_acks_segment_again_and_inflates_the_window() {
    // Segment 2 of ten (end of transmission at 2 ms) is lost.
    // 40 ms: ACK of 1, the window is 11: segments 11, 12.
    // 42, 43, 44 ms: duplicate ACKs by 3, 4, 5. At the third (RFC 5681, 3.2, step 2): FlightSize
    //   = 11 segments, ssthresh = 5.5 = 5280 bytes; segment 2 again; cwnd = 5.5 + 3 = 8.5.
    // 45..49 ms: five more duplicates, one segment each: 13.5. New data leaves when 11 + 1 fit:
    //   at 48 ms (12.5): segment 13; at 49 ms (13.5): segment 14.
    // 80, 81 ms: duplicates by 11 and 12: 14.5 and 15.5: segments 15 and 16.
    // 65 ms: segment 2 arrives (sent at 44): ACK of 12, back at 84 ms: full acknowledgement
    //   (RFC 6582, 3.2, step 3): cwnd = min(5.5, max(4, 1) + 1) = 5 with 4 outstanding: segment 17.
    // 88, 89 ms: ACKs of 13, 14 (arrived at 69, 70): congestion avoidance, one each: 18, 19.
    let r = run(&ruler(losing_at(&[2]), &[transfer(19, steady_window())]));
    let expected = at_ms(&[
        (0, 1..=10),
        (40, 11..=12),
        (44, 2..=2),
        (48, 13..=13),
        (49, 14..=14),
        (80, 15..=15),
        (81, 16..=16),
        (84, 17..=17),
        (88, 18..=18),
        (89, 19..=19),
    ]);
    assert_eq!(sent(trace(&r)), expected);
    let g = &r.groups[0];
    assert_eq!((g.fast_recoveries, g.retransmitted_segments, g.timeouts), (1, 1, 0));
}

#[test]
// [RFC 5681, 3.2] [RFC 5681, 4.2 (b)]
fn a_hole_and_what_fills_it_are_acknowledged_at_once() {
    // RFC 5681, 4.2. Segment 2 is lost: 1 (21 ms) waits; the hole shows with 3 (23
    // ms), and each of 3..10 asks for 2 again. 42 ms: the ACK of 1 counts as new, 43 to 45 ms as
    // its duplicates: segment 2, sent at 45 ms, arrives at 66 ms and fills all up to 12, which
    // came at 63 and 64 ms (sent at 42 ms). Of NewReno each has its ACK, of 12 for its FIN.
    let mut over = steady_window();
    // A policy that by itself would wait for 64 segments.
    over["policy"] = delayed(64);
    let r = run(&ruler(losing_at(&[2]), &[transfer(12, over)]));
    let mut expected: Vec<_> = (23..=30).map(|ms| (ms * 1000, 1, "out-of-order")).collect();
    expected.extend([(63_000, 1, "out-of-order"), (64_000, 1, "fin"), (66_000, 12, "hole-filled")]);
    assert_eq!(acks(trace(&r)), expected);
}

#[test]
// [D-31]
fn segments_above_a_hole_share_acks_once_three_are_reported() {
    // Ten times the rate: segment 2 is lost, 3 to 10 come at 20.3, 20.4 .. 21 ms. 3, 4 and 5 have an ACK each, 6
    // (20.6 ms) waits for 1 ms: 5% of the RTT, 40.1 ms at least, are more; and for the 0.1 ms of slack that
    // Linux's timer has (tcp_comp_sack_slack_ns). Its ACK reports 6 to 10.
    let over = json!({ "sender": { "recovery": "sack" }, "policy": delayed(64) });
    let path = json!({ "down": {
        "rate_bps": 80_000_000, "outages": [{ "start_ns": 150 * US, "length_ns": 100 * US }],
    } });
    let r = run(&ruler(path, &[transfer(20, over)]));
    let first: Vec<_> = acks(trace(&r)).into_iter().take(4).collect();
    let each = [20_300, 20_400, 20_500].map(|us| (us, 1, "out-of-order"));
    assert_eq!(first[..3], each);
    assert_eq!((first[3].0, first[3].2), (21_700, "out-of-order"));
}

#[test]
fn newreno_sends_one_hole_again_for_each_partial_ack() {
    // Segments 2 and 4 are lost. Duplicates by 3, 5, 6 reach the sender at 42, 44, 45 ms.
    // 45 ms: FlightSize 11, ssthresh 5.5, segment 2 again, cwnd 8.5.
    // 46..49 ms: duplicates by 7..10: 12.5 at 49 ms: segment 13.
    // 80, 81 ms: by 11, 12: 13.5, 14.5: segments 14, 15.
    // 66 ms: segment 2 arrives: ACK of 3, at the sender at 85 ms: partial (RFC 6582, 3.2, step 3):
    //   segment 4 again; cwnd = 14.5 - 2 + 1 = 13.5, outstanding 4..15 = 12: segment 16 as well.
    // 89 ms: duplicate by 13 (sent at 49, arrived at 70): 14.5 and 13 outstanding: segment 17.
    // 106 ms: segment 4 (sent at 85) arrives, with 14 and 15 (101, 102 ms) already there: ACK of
    //   15, at 125 ms. Their duplicates at 120, 121 ms bring segments 18 and 19.
    // 125 ms: recovery ends at 12: cwnd = min(5.5, 4 + 1) = 5, outstanding 16..19: segment 20.
    let r = run(&ruler(losing_at(&[2, 4]), &[transfer(20, steady_window())]));
    let expected = at_ms(&[
        (0, 1..=10),
        (40, 11..=12),
        (45, 2..=2),
        (49, 13..=13),
        (80, 14..=14),
        (81, 15..=15),
        (85, 4..=4),
        (85, 16..=16),
        (89, 17..=17),
        (120, 18..=18),
        (121, 19..=19),
        (125, 20..=20),
    ]);
    assert_eq!(sent(trace(&r)), expected);
    let g = &r.groups[0];
    assert_eq!((g.fast_recoveries, g.retransmitted_segments, g.timeouts), (1, 2, 0));
}

#[test]
fn sack_recovery_sends_by_what_was_delivered() {
    // Segment 2 is lost. RFC 6675 with Linux's proportional rate reduction (RFC 6937).
    // 40 ms: ACK of 1, cwnd 11: segments 11, 12 (outstanding 2..12).
    // 42 ms: a segment SACKed: pipe 10: limited transmit (RFC 3042): 13. 43 ms: room for 14, but a burst is
    //   two segments, 13 left 1 ms ago and the ACK of 2 is due: it waits (tcp_tso_should_defer).
    // 44 ms: three SACKed: segment 2 is lost (RFC 6675, 4). FlightSize without limited transmit
    //   (RFC 5681, 3.2, step 2) 11: ssthresh 5.5, half of cwnd: of what is delivered from here on,
    //   half may leave, rounded up. Delivered 1: segment 2 again. Pipe 8 + 1, in segments.
    // 45..49 ms: delivered 2..6: the second segment at 3 (46 ms): 14; the third at 5 (48 ms): 15.
    // 80 ms: SACK of 11: pipe 5: half a segment up to ssthresh: nothing fits. 81 ms: SACK of 12: pipe 4: 16.
    // 82 ms: SACK of 13: pipe 4: 17.
    // 84 ms: ACK of 13: over; cwnd 5.5, outstanding 14..17: segment 18. 86, 88 ms: ACKs of 14, 15: 19, 20.
    let over = each_sacked(json!({ "recovery": "sack" }));
    let r = run(&ruler(losing_at(&[2]), &[transfer(20, over)]));
    let expected = at_ms(&[
        (0, 1..=10),
        (40, 11..=12),
        (42, 13..=13),
        (44, 2..=2),
        (46, 14..=14),
        (48, 15..=15),
        (81, 16..=16),
        (82, 17..=17),
        (84, 18..=18),
        (86, 19..=19),
        (88, 20..=20),
    ]);
    assert_eq!(sent(trace(&r)), expected);
    let g = &r.groups[0];
    assert_eq!((g.fast_recoveries, g.retransmitted_segments, g.timeouts), (1, 1, 0));
}

#[test]
fn sack_recovery_repairs_two_holes_in_one_round_trip() {
    // Segments 2 and 4 are lost: SACK of 3 (42 ms), 5 (44), 6 (45): now three segments above 2:
    // lost; above 4 there are two. 46 ms: SACK of 7: 4 is lost as well.
    // 42 ms: limited transmit: 15. 44 ms: 16. At 45 ms FlightSize without these is 13: ssthresh 6.5.
    // 45 ms: segment 2. Half of what is delivered may leave, rounded up: at delivered 3 (47 ms) the
    //   second: outstanding 2..16 and the copy, less five SACKed and two lost: pipe 9: segment 4.
    // 66 ms: segment 2 arrives: ACK of 3. 68 ms: segment 4 arrives: ACK of all so far.
    let over = each_sacked(json!({ "recovery": "sack", "initial_window_segments": 12 }));
    let r = run(&ruler(losing_at(&[2, 4]), &[transfer(16, over)]));
    let expected =
        at_ms(&[(0, 1..=12), (40, 13..=14), (42, 15..=15), (44, 16..=16), (45, 2..=2), (47, 4..=4)]);
    assert_eq!(sent(trace(&r)), expected);
    assert_eq!(only_flow(&r).end_ns, 68 * MS);
    assert_eq!(r.groups[0].fast_recoveries, 1);
}

#[test]
fn a_segment_is_lost_once_a_quarter_of_the_shortest_rtt_has_passed_and_a_tick_comes() {
    // RFC 8985, 6.2: one SACK (of 3, at 42 ms) is too few for three duplicates. Both left at 0, so
    // segment 2 has waited for an RTT. The shortest is the handshake's 39.04 ms: a quarter is 9.76 ms,
    // and Linux's timer adds 2 ms: 11.76 ms are two jiffies of 10 ms, from the tick at 50 ms on: 70 ms.
    let over = json!({ "sender": { "recovery": "sack" } });
    let r = run(&ruler(losing_at(&[2]), &[transfer(3, over)]));
    let mut expected = at_ms(&[(0, 1..=3)]);
    expected.push((70_000, 2));
    assert_eq!(sent(trace(&r)), expected);
    let g = &r.groups[0];
    assert_eq!((g.fast_recoveries, g.retransmitted_segments, g.timeouts), (1, 1, 0));
}

#[test]
fn a_retransmission_is_lost_when_what_left_after_it_has_arrived() {
    // Like sack_recovery_sends_by_what_was_delivered, but the copy of 2 is lost as well: it leaves
    // the link at 45 ms. Segment 14 left after it, at 46 ms; its SACK arrives at 86 ms (RFC 8985,
    // 6.2, step 5): in flight are 15, 16 and 17. The window of 5.5 allows 2 and 18. 88 ms, SACK of
    // 15: 19. 121 ms, of 16: 20.
    let over = each_sacked(json!({ "recovery": "sack" }));
    let r = run(&ruler(losing_at(&[2, 45]), &[transfer(20, over)]));
    let out = sent(trace(&r));
    assert_eq!(
        out[12..18],
        at_ms(&[(42, 13..=13), (44, 2..=2), (46, 14..=14), (48, 15..=15), (81, 16..=16), (82, 17..=17)])
    );
    assert_eq!(out[18..], at_ms(&[(86, 2..=2), (86, 18..=18), (88, 19..=19), (121, 20..=20)]));
    assert_eq!((r.groups[0].retransmitted_segments, r.groups[0].timeouts), (2, 0));
}

#[test]
fn what_waits_above_a_hole_takes_room_in_the_window() {
    // A buffer of ten segments; 2 and 5 are lost. An ACK leaves before what it covers is read: that of 1
    // offers nine, up to 10. 45 ms: the third SACK (of 6): both are lost; rate reduction sends 2. 7 waits for
    // 1 ms, and Linux's timer for 0.1 ms more, and shares its ACK with 8: 47.1 ms: 5.
    // 66 ms: 2 arrives: ACK of 4, of which 2 to 4 are not read, and 6 to 10 wait: the window ends at 10 as
    // before, so nothing leaves at 85 ms. 68.1 ms: 5 arrives: ACK of 10, of which 5 to 10 are not read: 14.
    let over = json!({
        "sender": { "recovery": "sack" },
        "receiver": { "recv_buffer_bytes": 10 * MSS },
    });
    let r = run(&ruler(losing_at(&[2, 5]), &[transfer(30, over)]));
    let mut expected = at_ms(&[(0, 1..=10), (45, 2..=2)]);
    expected.push((47_100, 5));
    expected.extend((11..=14).map(|n| (87_100, n)));
    assert_eq!(sent(trace(&r))[..16], expected);
}

#[test]
// [D-30]
fn sack_recovery_of_a_large_loss_sends_one_for_one_and_two_when_a_hole_is_filled() {
    // Segments 2..13 of 20 are lost. 40 ms: ACK of 1, cwnd 21: segments 21, 22, the last.
    // 55 ms: the third SACK above them (16): all are lost. FlightSize 21: ssthresh 10.5; pipe 6.
    // 55..59 ms: SACK of 16..20, and 80, 81 ms: of 21, 22: what is delivered leaves again: 2..8.
    // 95 ms: ACK of 2 (sent at 55 ms): SND.UNA moved and nothing else was lost: two leave, and two
    //   at 96 ms (ACK of 3). 97 ms: ACK of 4: segment 13 is left.
    let over = each_sacked(json!({ "recovery": "sack", "initial_window_segments": 20 }));
    let r = run(&ruler(losing_at(&(2..=13).collect::<Vec<_>>()), &[transfer(22, over)]));
    let mut expected = at_ms(&[(0, 1..=20), (40, 21..=22)]);
    expected.extend((0..5).flat_map(|i| at_ms(&[(55 + i, 2 + i..=2 + i)])));
    expected.extend(at_ms(&[(80, 7..=7), (81, 8..=8), (95, 9..=10), (96, 11..=12), (97, 13..=13)]));
    assert_eq!(sent(trace(&r)), expected);
    let g = &r.groups[0];
    assert_eq!((g.fast_recoveries, g.retransmitted_segments, g.timeouts), (1, 12, 0));
}

#[test]
// [RFC 6298, 2.1]
fn the_first_timeout_is_one_second_and_doubles() {
    // RFC 6298, 2.4: the handshake's 39.04 ms give 39.04 + 4 * 19.52 = 117.12 ms, rounded up to
    // 1 s; 5.5: doubled each time. Lost are the window at 0 and what is sent at 1 s and 3 s. With SACK it is Linux's
    // timer, of whole jiffies of 10 ms, and the one that has begun does not count.
    let down = json!({ "down": { "outages": [{ "start_ns": 0, "length_ns": 3500 * MS }] } });
    for (recovery, late) in [("timeout", 0), ("newreno", 0), ("sack", 10)] {
        let over = json!({ "sender": { "recovery": recovery } });
        let r = run(&ruler(down.clone(), &[transfer(10, over)]));
        let expected = at_ms(&[
            (0, 1..=10),
            (1000 + late, 1..=1),
            (3000 + 2 * late, 1..=1),
            (7000 + 3 * late, 1..=1),
            (7040 + 3 * late, 2..=3),
        ]);
        assert_eq!(sent(trace(&r))[..15], expected, "{recovery}");
        assert_eq!(r.groups[0].timeouts, 3);
        assert_eq!(r.groups[0].fast_recoveries, 0);
    }
}

#[test]
fn a_timeout_without_the_rfcs_floor_is_srtt_and_at_least_200_ms() {
    // Linux: 39.04 ms + max(4 * 19.52, 200) ms = 239.04 ms. RFC 6298, 2.2 to 2.3 are the first
    // summands; the floor is Linux's.
    let down = json!({ "down": { "outages": [{ "start_ns": 0, "length_ns": 11 * MS }] } });
    let over = json!({ "sender": { "recovery": "timeout", "min_rto_ns": 200 * MS } });
    let r = run(&ruler(down, &[transfer(10, over)]));
    assert_eq!(sent(trace(&r))[10], (239_040, 1));
}

#[test]
fn after_a_timeout_slow_start_up_to_half_the_flight_then_one_segment_a_window() {
    // RFC 5681, 3.1: FlightSize 10: ssthresh 5, cwnd 1.
    // 1000: segment 1. 1040: cwnd 2: 2, 3. 1080, 1081: cwnd 3, 4: 4, 5 and 6, 7.
    // 1120: ACK of 4: cwnd 5 = ssthresh: 8, 9. Then congestion avoidance (RFC 3465, 2.1: one
    // segment for each window acknowledged): 1121..1123: ACKs of 5, 6, 7: 10, 11, 12.
    // 1160 (ACK of 8): 13; that makes four. 1161 (ACK of 9) the fifth: cwnd 6: 14, 15.
    // 1162..1164: ACKs of 10, 11, 12: 16, 17, 18.
    let down = json!({ "down": { "outages": [{ "start_ns": 0, "length_ns": 11 * MS }] } });
    let over = json!({ "sender": { "recovery": "timeout" } });
    let r = run(&ruler(down, &[transfer(18, over)]));
    let expected = at_ms(&[
        (0, 1..=10),
        (1000, 1..=1),
        (1040, 2..=3),
        (1080, 4..=5),
        (1081, 6..=7),
        (1120, 8..=9),
        (1121, 10..=10),
        (1122, 11..=11),
        (1123, 12..=12),
        (1160, 13..=13),
        (1161, 14..=15),
        (1162, 16..=16),
        (1163, 17..=17),
        (1164, 18..=18),
    ]);
    assert_eq!(sent(trace(&r)), expected);
}

#[test]
fn an_ack_of_new_data_restarts_the_retransmission_timer() {
    // RFC 6298, 5.3. Only segment 10 is lost; the last ACK arrives at 48 ms.
    let over = json!({ "sender": { "recovery": "timeout" } });
    let r = run(&ruler(losing_at(&[10]), &[transfer(10, over)]));
    assert_eq!(sent(trace(&r))[10..], [(1_048_000, 10)]);
}

/// The smoothed RTT after these samples (RFC 6298, 2.2 and 2.3).
fn smoothed(samples: impl IntoIterator<Item = f64>) -> f64 {
    samples.into_iter().reduce(|srtt, r| srtt * 7.0 / 8.0 + r / 8.0).expect("a sample")
}

#[test]
fn a_tail_loss_probe_leaves_after_two_round_trips_and_the_peers_longest_delay() {
    // RFC 8985, 7.2: segment 10 of ten is lost. Samples: the handshake's 39.04 ms, then 40..48 ms
    // (each segment waits one more millisecond for the link). The ACK at 48 ms leaves a single
    // segment outstanding: PTO = 2 SRTT + 200 ms. Nothing new to send: the last segment again.
    let srtt_ms = smoothed([39.04].into_iter().chain((40..=48).map(f64::from)));
    // Linux counts whole jiffies of 10 ms behind that of the ACK.
    let jiffies = (48.0 / 10.0_f64).floor() + ((2.0 * srtt_ms + 200.0) / 10.0).ceil() + 1.0;
    let over = json!({ "sender": { "recovery": "sack", "tail_loss_probe": true } });
    let r = run(&ruler(losing_at(&[10]), &[transfer(10, over)]));
    let t = trace(&r);
    assert_eq!((t.data_seq.len(), t.data_seq[10]), (11, 9 * MSS));
    assert_eq!(t.data_time_ns[10] as f64, 1e7 * jiffies);
    assert_eq!((r.groups[0].timeouts, r.groups[0].fast_recoveries), (0, 0));
}

#[test]
fn a_tail_loss_probe_is_new_data_where_there_is_some_whatever_the_congestion_window() {
    // RFC 8985, 7.3: the first window is lost; the probe is segment 11, beyond the congestion window of
    // ten, at 2 * 39.04 ms and 2 ms that Linux adds: 80.08 ms, nine jiffies of 10 ms and that which has begun. Its
    // SACK comes 40 ms later and shows that all that left at 0 is lost.
    let down = json!({ "down": { "outages": [{ "start_ns": 0, "length_ns": 11 * MS }] } });
    let over = json!({ "sender": { "recovery": "sack", "tail_loss_probe": true } });
    let r = run(&ruler(down, &[transfer(30, over)]));
    assert_eq!(sent(trace(&r))[10..12], [(100_000, 11), (140_000, 1)]);
}

// --- windows and queues --------------------------------------------------------------------------

/// Four segments of receive buffer, and a reader that is late.
fn slow_reader(lag_ms: u64) -> Value {
    group(json!({
        "receiver": { "recv_buffer_bytes": 4 * MSS, "reader_lag_ns": lag_ms * MS },
        "app": { "kind": "bulk", "bytes": 8 * MSS },
    }))
}

#[test]
fn a_shut_window_opens_again_when_the_reader_reads() {
    // Four segments fill the buffer (21..24 ms). The reader comes 300 ms after the first, at 321
    // ms, and empties it: the window update (RFC 9293, 3.8.6.2.2) reaches the sender at 340 ms.
    let r = run(&ruler(json!({}), &[slow_reader(300)]));
    assert_eq!(sent(trace(&r)), at_ms(&[(0, 1..=4), (340, 5..=8)]));
    assert_eq!(acks(trace(&r))[4], (321_000, 4, "window-dry"));
}

#[test]
fn a_shut_window_is_probed_after_a_timeout_and_twice_as_long_again() {
    // RFC 9293, 3.8.6.1. The ACK that reports that the reader came (2021 ms) is lost. The one before
    // (window 0) reaches the sender at 43 ms: probe 1 s later, at 1043 ms: 40 bytes, 20.04 ms; the
    // answer (still 0) takes 19 ms. From then (1082.04 ms; Linux also counts from the answer) twice
    // as long: a probe at 3082.04 ms, answered at 3121.08 ms.
    let outage = json!({ "start_ns": 2020 * MS, "length_ns": 2 * MS });
    let r = run(&ruler(json!({ "up": { "outages": [outage] } }), &[slow_reader(2000)]));
    let expected: Vec<_> = (1..=4).map(|n| (0, n)).chain((5..=8).map(|n| (3_121_080, n))).collect();
    assert_eq!(sent(trace(&r)), expected);
}

#[test]
// [RFC 9293, 3.8.6.2.2]
fn a_slow_reader_never_makes_short_segments() {
    // RFC 9293, 3.8.6.2.2: the reader takes 1 kbyte/s or so; the window is offered only in steps of
    // min(half the buffer, one segment).
    let mut g = slow_reader(0);
    g["receiver"]["reader_bps"] = json!(80_000);
    let r = run(&ruler(json!({}), &[g]));
    assert!(trace(&r).data_bytes.iter().all(|&b| u64::from(b) == MSS), "{:?}", trace(&r).data_bytes);
    // 8 segments at 10 000 bytes per second: the last of them is read 8 * 96 ms after the first
    // arrived; it arrives while at most a buffer of four is unread.
    let end = only_flow(&r).end_ns;
    assert!(end > 21 * MS + 4 * 96 * MS && end < 21 * MS + 8 * 96 * MS, "{end}");
    assert_eq!(only_flow(&r).delivered_bytes, 8 * MSS);
}

#[test]
fn the_window_without_scaling_is_65535_bytes_and_the_sender_leaves_a_sliver_unused() {
    // RFC 7323, 1.1. 65 535 = 68 * 960 + 255: RFC 9293, 3.8.6.2.1 forbids to send the 255.
    let g = group(json!({
        "sender": { "initial_window_segments": 200 },
        "receiver": { "window_scaling": false },
        "app": { "kind": "bulk", "bytes": 200 * MSS },
    }));
    let r = run(&ruler(json!({}), &[g]));
    let out = sent(trace(&r));
    assert_eq!(out[..68], at_ms(&[(0, 1..=68)]));
    // From here each ACK frees one place.
    let expected: Vec<_> = (0..132).map(|i| (40_000 + 1_000 * i, 69 + i)).collect();
    assert_eq!(out[68..], expected);
}

#[test]
fn linux_opens_the_window_from_64_kib_by_two_segments_each() {
    // The window is 65 535 at first: 68 segments; each full segment raises it by two segments, so
    // each ACK (40, 41 ... ms) frees three, as far as the buffer reaches.
    let g = group(json!({
        "sender": { "initial_window_segments": 1000 },
        "receiver": { "slow_window": true, "recv_buffer_bytes": 1 << 20 },
        "app": { "kind": "bulk", "bytes": 300 * MSS },
    }));
    let r = run(&ruler(json!({}), &[g]));
    let count = |until_us| sent(trace(&r)).iter().filter(|(t, _)| *t <= until_us).count() as u64;
    for i in 0..60 {
        // After i + 1 ACKs: (65 535 + 2 (i + 1) * 960, scaled down to 32 bytes) / 960 + i + 1.
        let window = (65_535 + 2 * (i + 1) * MSS) / 32 * 32 / MSS;
        assert_eq!(count(40_000 + 1_000 * i), (window + i + 1).min(300), "after {} ACKs", i + 1);
    }
}

#[test]
fn a_clamp_keeps_the_window_steady_while_data_is_unread() {
    // Nothing is read for a second. The buffer has room for more than all; the window is the clamp,
    // 20 segments, and each ACK frees one.
    let g = group(json!({
        "sender": { "initial_window_segments": 1000 },
        "receiver": { "window_clamp_bytes": 20 * MSS, "recv_buffer_bytes": 1 << 20, "reader_lag_ns": S },
        "app": { "kind": "bulk", "bytes": 100 * MSS },
    }));
    let r = run(&ruler(json!({}), &[g]));
    let expected: Vec<_> =
        (0..100).map(|i| (if i < 20 { 0 } else { 40_000 * (i / 20) + 1_000 * (i % 20) }, i + 1)).collect();
    assert_eq!(sent(trace(&r)), expected);
}

#[test]
fn a_full_fifo_drops_what_comes_behind_its_limit() {
    // 50 segments at once meet a queue of 20: one is in transmission, 20 wait, 29 are dropped. The
    // other disciplines have the same limit.
    for discipline in ["fifo", "ack-separation", "ack-filter", "ack-separation-filter", "codel"] {
        let over = json!({
            "sender": { "initial_window_segments": 50, "recovery": "timeout" },
            "app": { "kind": "bulk", "bytes": 50 * MSS },
        });
        let down = json!({ "down": { "queue_packets": 20, "discipline": discipline } });
        let r = run(&ruler(down, &[group(over)]));
        assert_eq!((r.down.dropped_queue, r.down.max_queue_packets), (29, 20), "{discipline}");
        // Segments of 1000 bytes.
        assert_eq!(r.down.max_queue_bytes, 20_000, "{discipline}");
        // The last in the queue waits for 20 others: it arrives at 21 + 20 ms.
        assert_eq!(acks(trace(&r))[20], (41_000, 21, "every-segment"), "{discipline}");
    }
}

// [S6.14]
#[test]
fn a_coalescer_thins_what_the_receiver_sends_and_its_timer_flushes_the_rest() {
    // Segments arrive one each ms, and each is acknowledged; of three ACKs Broadcom's driver sends the
    // newest. The 31st waits for its timer.
    for (segments, left) in [(30, 10), (31, 11)] {
        let over = json!({
            "sender": { "initial_window_segments": 50 },
            "app": { "kind": "bulk", "bytes": segments * MSS },
        });
        let up = json!({ "up": { "coalescer": "broadcom" } });
        let r = run(&ruler(up, &[group(over)]));
        let (sent, filtered) = (r.groups[0].acks_sent, r.up.acks_filtered);
        assert_eq!((sent, r.up.packets, filtered), (segments, left, segments - left));
        assert_eq!(r.groups[0].flows_completed, 1);
        assert_eq!(r.groups[0].retransmitted_segments, 0);
    }
}

#[test]
fn an_idle_link_takes_a_packet_larger_than_its_queue() {
    // 500 bytes of queue: of ten packets of 1000 only the first passes; the others are retransmitted one
    // by one, each alone on the link.
    for discipline in ["fifo", "ack-separation", "ack-filter", "ack-separation-filter", "codel"] {
        let down = json!({ "down": { "queue_bytes": 500, "discipline": discipline } });
        let r = run(&ruler(down, &[transfer(10, json!({}))]));
        assert_eq!(r.groups[0].flows_completed, 1, "{discipline}");
        assert_eq!(acks(trace(&r))[0], (21_000, 1, "every-segment"), "{discipline}");
    }
}

#[test]
fn a_fifo_limited_in_bytes_holds_what_fits() {
    // 10 500 bytes hold ten packets of 1000.
    let over = json!({
        "sender": { "initial_window_segments": 50, "recovery": "timeout" },
        "app": { "kind": "bulk", "bytes": 50 * MSS },
    });
    let r = run(&ruler(json!({ "down": { "queue_bytes": 10_500 } }), &[group(over)]));
    assert_eq!((r.down.dropped_queue, r.down.max_queue_packets), (39, 10));
    assert_eq!(r.down.max_queue_bytes, 10_000);
}

#[test]
fn an_idle_link_waits_for_its_grant() {
    // Grants at multiples of 8 ms: a response sent at 19 ms and 1 ns leaves at 24 ms.
    let app = json!({ "kind": "request-response", "request_bytes": 100, "response_bytes": MSS, "count": 1 });
    let over = json!({ "peer_policy": delayed(2), "app": app });
    let r = run(&ruler(json!({ "down": { "grant_interval_ns": 8 * MS } }), &[group(over)]));
    assert_eq!(acks(trace(&r)), [(45_000, 1, "every-segment")]);
}

#[test]
fn pacing_spaces_segments_by_the_window_over_the_round_trip() {
    // Linux: twice the window per SRTT in slow start: 10 segments in 39.04 ms (the handshake's):
    // one in 1.952 ms; a fifth of that would be a burst. The eleventh waits for the window.
    let over = json!({ "sender": { "pacing": true } });
    let r = run(&ruler(json!({}), &[transfer(20, over)]));
    let expected: Vec<u64> = (0..10).map(|i| i * 1_952_000).collect();
    assert_eq!(trace(&r).data_time_ns[..10], expected);
}

// --- the deadlock of spec page 5 -----------------------------------------------------------------

fn sunos(send_kib: u64, recv_kib: u64) -> ackwise_sim::result::RunResult {
    let g = group(json!({
        "policy": { "name": "bsd", "params": { "phase": 0 } },
        "sender": { "nagle": "bsd43", "socket": "bsd43", "send_buffer_bytes": send_kib << 10 },
        "receiver": { "socket": "bsd43", "recv_buffer_bytes": recv_kib << 10 },
    }));
    // MSS 9148; loss-free, far faster than the fast timer.
    let path = json!({
        "duration_ns": 20 * S,
        "mtu_bytes": 9188,
        "down": { "rate_bps": 100_000_000, "delay_ns": MS },
        "up": { "rate_bps": 100_000_000, "delay_ns": MS },
    });
    run(&ruler(path, &[g]))
}

#[test]
// [S5.1] [S5.3] [S5.5]
fn a_small_send_buffer_against_a_larger_receive_buffer_moves_4096_bytes_a_heartbeat() {
    // Class I of spec page 5: 8192 < min(2 * 9148, 0.35 * 16 384 = 5734 + 9148): the socket layer
    // pushes 4096 bytes, and 4096 are short of 5734: no window update; Nagle holds the next 4096
    // until the fast timer (every 200 ms) acknowledges. 4096 * 8 / 0.2 s = 0.16 Mbit/s.
    let r = sunos(8, 16);
    let t = trace(&r);
    assert!(t.data_bytes.iter().all(|&b| b == 4096), "{:?}", &t.data_bytes[..8]);
    // One at 0, then one after each beat at 200, 400 ... ms: ACK 40 bytes 3.2 us, and 1 ms.
    let expected: Vec<u64> = (1..=99).map(|beat| beat * 200 * MS + MS + 3_200).collect();
    assert_eq!(t.data_time_ns[1..=99], expected);
    assert!(t.ack_reason.iter().all(|reason| reason == "delay-timer"));
    assert_eq!(r.groups[0].goodput_bps.round(), 163_840.0);
    // The beat at 20 s is the last event of the run.
    assert_eq!(r.groups[0].stalls, 100);
}

#[test]
fn equal_buffers_of_the_same_system_do_not_deadlock() {
    // 4096 >= 0.35 * 8192 = 2867: each piece moves the window enough.
    let r = sunos(8, 8);
    assert_eq!(r.groups[0].stalls, 0);
    assert!(r.groups[0].goodput_bps > 5e6, "{}", r.groups[0].goodput_bps);
}

/// 4.3BSD endpoints with these changes; one way takes 1 ms plus the transmission time at 100
/// Mbit/s.
fn bsd_flow(policy: Value, sender: Value, receiver: Value) -> ackwise_sim::result::RunResult {
    let mut over = json!({
        "policy": policy,
        "sender": { "nagle": "bsd43", "socket": "bsd43" },
        "receiver": { "socket": "bsd43" },
    });
    scenes::lay_over(&mut over["sender"], &sender);
    scenes::lay_over(&mut over["receiver"], &receiver);
    let path = json!({
        "duration_ns": 300 * MS,
        "mtu_bytes": 9188,
        "down": { "rate_bps": 100_000_000, "delay_ns": MS },
        "up": { "rate_bps": 100_000_000, "delay_ns": MS },
    });
    run(&ruler(path, &[group(over)]))
}

/// (nanosecond, sequence number, bytes) of everything sent.
fn sent_ns(r: &ackwise_sim::result::RunResult) -> Vec<(u64, u64, u32)> {
    let t = trace(r);
    (0..t.data_seq.len()).map(|i| (t.data_time_ns[i], t.data_seq[i], t.data_bytes[i])).collect()
}

fn fast_timer() -> Value {
    json!({ "name": "bsd", "params": { "phase": 0 } })
}

#[test]
// [S5.3]
fn a_writer_that_copies_hands_over_a_piece_at_a_time() {
    // 4096 bytes a millisecond. 16 KiB against 40 KiB, class II: the piece of 1 ms leaves, those of
    // 2 and 3 ms wait, with that of 4 ms there are 12288: a full segment. 13244 are short of 14336,
    // so the beat at 200 ms acknowledges (40 bytes: 3.2 us). Output sends the 3140 that are left
    // before the writer goes on: its pieces are there 1, 2 and 3 ms later.
    let r = bsd_flow(
        fast_timer(),
        json!({ "send_buffer_bytes": 16 << 10, "copy_bps": 32_768_000 }),
        json!({ "recv_buffer_bytes": 40 << 10 }),
    );
    let first: Vec<_> = sent_ns(&r).into_iter().take(4).collect();
    let back = 201 * MS + 3_200;
    let expected = [(MS, 0, 4096), (4 * MS, 4096, 9148), (back, 13_244, 3140), (back + 3 * MS, 16_384, 9148)];
    assert_eq!(first, expected);
}

#[test]
fn a_writer_sleeps_until_its_low_water_mark_is_free() {
    // 6000 bytes of buffer: 1904 are free behind the first piece. A cluster of it is used, and
    // leaves alone after the beat; with a mark of 4096 the writer fills a whole piece then.
    for (low_water, second) in [(0, 1024), (4096, 4096)] {
        let r = bsd_flow(
            fast_timer(),
            json!({ "send_buffer_bytes": 6000, "low_water_bytes": low_water }),
            json!({ "recv_buffer_bytes": 16 << 10 }),
        );
        let sent: Vec<_> = sent_ns(&r).into_iter().take(2).map(|s| s.2).collect();
        assert_eq!(sent, [4096, second], "mark {low_water}");
    }
}

/// Bytes of each segment that leaves before any ACK.
fn before_an_ack(nagle: &str, send_kib: u64, recv_kib: u64) -> Vec<u32> {
    let r = bsd_flow(
        delayed(64),
        json!({ "nagle": nagle, "send_buffer_bytes": send_kib << 10 }),
        json!({ "recv_buffer_bytes": recv_kib << 10 }),
    );
    sent_ns(&r).into_iter().take_while(|s| s.0 < MS).map(|s| s.2).collect()
}

#[test]
fn nagle_by_what_is_unsent_waits_for_more_than_half_of_the_window() {
    // 8/8 KiB: 4096 are half of the window: they leave by 4.3BSD's rule, and wait by the other.
    assert_eq!(before_an_ack("bsd43", 8, 8), [4096, 4096]);
    assert_eq!(before_an_ack("unsent", 8, 8), [4096]);
    // 16/8 KiB: with 8192 unsent the 4096 that the window allows leave by both.
    assert_eq!(before_an_ack("bsd43", 16, 8), [4096, 4096]);
    assert_eq!(before_an_ack("unsent", 16, 8), [4096, 4096]);
}

#[test]
fn nagle_by_what_is_unsent_leaves_a_sliver_of_the_window_alone() {
    // Window 16 384. 8192 are half of it and leave by 4.3BSD's rule. By the other a full segment
    // follows the first piece; 3140 are left of the window, below 35%.
    assert_eq!(before_an_ack("bsd43", 64, 16), [4096, 8192]);
    assert_eq!(before_an_ack("unsent", 64, 16), [4096, 9148]);
}

#[test]
fn an_ack_may_wait_for_the_read() {
    // The reader takes 10 ms. 4136 bytes on the wire: 330.88 us.
    for (after_read, at_us) in [(false, 1_330), (true, 11_330)] {
        let r = bsd_flow(
            json!({ "name": "every" }),
            json!({ "send_buffer_bytes": 4096 }),
            json!({ "recv_buffer_bytes": 16 << 10, "ack_after_read": after_read, "reader_lag_ns": 10 * MS }),
        );
        assert_eq!(trace(&r).ack_time_ns[0] / US, at_us);
    }
}
