// SPDX-License-Identifier: MIT
//! Applications as processes with lower priority than packets, and time series: counts and times
//! worked out by hand.

mod scenes;

use ackwise_link as _;
use scenes::{acks, group, only_flow, ruler, run, sent, trace, MS, MSS, S, US};
use serde_json::{json, Value};

/// Packets that arrive practically together: 1 us each, 1 ms of delay each way.
fn at_once() -> serde_json::Value {
    json!({
        "down": { "rate_bps": 8_000_000_000u64, "delay_ns": MS },
        "up": { "rate_bps": 8_000_000_000u64, "delay_ns": MS },
    })
}

#[test]
fn an_idle_processor_reads_when_the_packet_is_done() {
    // 21 ms on the way, 1 ms for the packet, 2 ms for the call, 960/1024 of 1.024 ms for the copy.
    let g = group(json!({
        "app": { "kind": "odd-writes", "write_bytes": MSS, "writes": 1, "count": 1 },
    }));
    let process = json!({ "read_ns": 2 * MS, "read_kib_ns": 1_024_000 });
    let r = run(&ruler(json!({ "client": { "data_received_ns": MS, "process": process } }), &[g]));
    let latency = r.groups[0].message_latency_ns.max / MS as f64;
    assert!((latency / 24.96 - 1.0).abs() < 1e-3, "{latency} ms, but for the histogram's buckets");
    assert_eq!(r.client.cpu_busy_ns, 3 * MS + 960 * US);
}

/// 641 segments arrive together and take 20 us each; a read takes 30 us.
fn starved_reader(policy: serde_json::Value) -> ackwise_sim::result::RunResult {
    let g = group(json!({
        "policy": policy,
        "sender": { "initial_window_segments": 641 },
        "app": { "kind": "bulk", "bytes": 641 * MSS },
    }));
    let mut path = at_once();
    path["client"] = json!({
        "data_received_ns": 20 * US,
        "process": { "read_ns": 30 * US, "turn_packets": 16 },
    });
    run(&ruler(path, &[g]))
}

#[test]
fn a_saturated_processor_lets_the_reader_run_after_so_many_packets() {
    // The reader asks when a segment is available, by which time the next may be in service; then
    // 16 more are handled before its turn: 17 or 18 per read.
    let r = starved_reader(json!({ "name": "every" }));
    let reading = r.client.cpu_busy_ns - 641 * 20 * US;
    let reads = reading / (30 * US);
    assert_eq!(reading, reads * 30 * US);
    assert!((641u64.div_ceil(18)..=641u64.div_ceil(17)).contains(&reads), "{reads} reads");
    assert_eq!(r.groups[0].delivered_bytes, 641 * MSS);
}

#[test]
fn a_starved_linux_receiver_acknowledges_once_a_read() {
    // Sixteen quick ACKs; after that unread data keeps the window from moving, so that only the
    // reader's ACKs leave, each for the data since the last.
    let r = starved_reader(json!({ "name": "linux" }));
    let all = acks(trace(&r));
    let (quick, read) = all.split_at(16);
    assert!(quick.iter().enumerate().all(|(i, a)| (a.1, a.2) == (i as u64 + 1, "quickack")), "{quick:?}");
    let covered: Vec<_> = read.windows(2).map(|w| w[1].1 - w[0].1).collect();
    let (last, full) = covered.split_last().expect("many");
    assert!(full.iter().all(|c| (17..=18).contains(c)) && *last <= 18, "{covered:?}");
    assert_eq!(read.last().map(|a| a.1), Some(641));
    // A receiver required to acknowledge every second segment does so, whoever starves.
    let r = starved_reader(json!({ "name": "delayed", "params": { "segments": 2 } }));
    assert_eq!(r.groups[0].acks_sent, 320 + 1);
}

#[test]
fn a_writer_sends_as_fast_as_it_writes() {
    // 960/1024 of 102.4 us to write a segment, 4 us to send it: one per 100 us, and nothing queues
    // on the path, whatever the window.
    let g = group(json!({
        "sender": { "initial_window_segments": 500 },
        "app": { "kind": "bulk", "bytes": 300 * MSS },
    }));
    let mut path = at_once();
    path["server"] = json!({ "data_sent_ns": 4 * US, "process": { "write_kib_ns": 102_400 } });
    let r = run(&ruler(path, &[g]));
    let times: Vec<_> = sent(trace(&r)).iter().map(|s| s.0).collect();
    assert_eq!(times, (0..300).map(|i| 96 + 100 * i).collect::<Vec<_>>());
    assert_eq!(r.server.cpu_busy_ns, 300 * 100 * US);
    // 4 us to send, 1 us on the link and 1 ms; the ACK has 40 bytes, 40 ns, and 1 ms: it arrives
    // during the writer's turn, which ends 2100 us after the segment was passed down.
    let rtt = r.groups[0].rtt_ns.max / US as f64;
    assert!((rtt / 2100.0 - 1.0).abs() < 1e-3, "{rtt} us, but for the histogram's buckets");
}

#[test]
fn packets_go_before_the_writer() {
    // Each ACK takes 100 us to receive and lets nothing wait: a segment and its ACK take 200 us.
    let g = group(json!({ "app": { "kind": "bulk", "bytes": 300 * MSS } }));
    let mut path = at_once();
    path["server"] = json!({
        "data_sent_ns": 4 * US,
        "ack_received_ns": 100 * US,
        "process": { "write_kib_ns": 102_400 },
    });
    let r = run(&ruler(path, &[g]));
    assert_eq!(r.server.cpu_busy_ns, 300 * 200 * US);
    // Busy from the first write on, except while the last ACK is in flight.
    assert!(r.duration_ns - r.server.cpu_busy_ns < 3 * MS, "{}", r.duration_ns);
}

#[test]
fn one_processor_serves_both_hosts() {
    // A segment and its ACK take 20 + 30 + 10 + 5 us, on whichever processor they are handled.
    let g = group(json!({
        "policy": { "name": "every" },
        "sender": { "initial_window_segments": 500 },
        "app": { "kind": "bulk", "bytes": 300 * MSS },
    }));
    let mut path = at_once();
    path["one_processor"] = json!(true);
    path["client"] = json!({
        "data_sent_ns": 20 * US,
        "data_received_ns": 30 * US,
        "ack_sent_ns": 10 * US,
        "ack_received_ns": 5 * US,
    });
    let r = run(&ruler(path.clone(), std::slice::from_ref(&g)));
    assert_eq!((r.client.cpu_busy_ns, r.server.cpu_busy_ns), (300 * 65 * US, 0));
    // Idle for two ways at most: it is the bottleneck.
    assert!(r.duration_ns - r.client.cpu_busy_ns < 3 * MS, "{}", r.duration_ns);
    path["server"] = json!({ "ack_sent_ns": US });
    let refused = ackwise_sim::run(&ruler(path, &[g]), None);
    assert!(refused.is_err_and(|e| e.to_string().contains("one_processor")));
}

#[test]
fn a_writer_goes_on_until_its_turn_is_over() {
    // On one processor, both applications always ask: the reader gets its turn after ten segments,
    // and each turn of the writer takes one call.
    let g = group(json!({
        "policy": { "name": "delayed", "params": { "segments": 1000, "delay_ms": 500 } },
        "sender": { "initial_window_segments": 500 },
        "app": { "kind": "bulk", "bytes": 300 * MSS },
    }));
    let busy = |turn_segments: u64| {
        let path = json!({
            "down": { "rate_bps": 8_000_000_000u64, "delay_ns": 10 * US },
            "up": { "rate_bps": 8_000_000_000u64, "delay_ns": 10 * US },
            "one_processor": true,
            "client": {
                "process": {
                    "read_ns": 50 * US,
                    "write_ns": 20 * US,
                    "write_kib_ns": 102_400,
                    "turn_bytes": turn_segments * MSS,
                },
            },
        });
        let r = run(&ruler(path, std::slice::from_ref(&g)));
        assert_eq!(r.groups[0].delivered_bytes, 300 * MSS);
        r.client.cpu_busy_ns - 300 * 96 * US
    };
    // The last segment may come after the reader's turn.
    let expected = 30 * (50 + 20) * US;
    assert!([expected, expected + 50 * US].contains(&busy(10)), "{}", busy(10));
    // Turns of one segment: a call for each of 300 writes, and the reader has its turn more often.
    let reads = (busy(0) - 300 * 20 * US) / (50 * US);
    assert!((100..=300).contains(&reads), "{reads} reads");
}

#[test]
fn a_send_buffer_grows_with_the_congestion_window() {
    // The buffer has room for twenty segments, and the writer stops where less than a third is
    // free. A buffer that a plan leaves at Linux's size grows on such a host.
    let written = |grows: bool| {
        let g = group(json!({
            "sender": {
                "initial_window_segments": 10,
                "send_buffer_bytes": 4_000_000,
                "send_buffer_grows": grows,
            },
            "app": { "kind": "bulk", "bytes": 2000 * MSS },
        }));
        let mut path = at_once();
        path["server"] = json!({ "process": { "write_kib_ns": 1024 } });
        path["duration_ns"] = json!(MS);
        run(&ruler(path, &[g])).server.cpu_busy_ns
    };
    assert_eq!(written(true), 14 * MSS);
    // Otherwise the available time limits it: a KiB takes a microsecond.
    assert!(written(false) > 900 * US, "{}", written(false));
}

#[test]
fn an_ack_costs_by_what_it_acknowledges() {
    // 1 us per byte, whatever an ACK covers, and 100 us for each ACK.
    let busy = |segments: u64| {
        let g = group(json!({
            "policy": { "name": "delayed", "params": { "segments": segments } },
            "sender": { "initial_window_segments": 40 },
            "app": { "kind": "bulk", "bytes": 240 * MSS },
        }));
        let mut path = at_once();
        path["server"] = json!({ "ack_received_ns": 100 * US, "acknowledged_kib_ns": 1_024_000 });
        let r = run(&ruler(path, &[g]));
        (r.server.cpu_busy_ns, r.groups[0].acks_sent)
    };
    for segments in [1, 2, 8] {
        let (busy_ns, acks) = busy(segments);
        assert_eq!(busy_ns, acks * 100 * US + 240 * MSS * US);
    }
    assert!(busy(8).1 < busy(1).1 / 6);
}

#[test]
fn a_question_costs_what_a_policy_takes_and_the_kernels_own_code_asks_none() {
    let busy = |policy: Value| {
        let g = group(json!({ "policy": policy, "app": { "kind": "bulk", "bytes": 50 * MSS } }));
        let mut path = at_once();
        path["client"] = json!({ "data_received_ns": 3 * US, "policy_ns": 2 * US });
        run(&ruler(path, &[g])).client.cpu_busy_ns
    };
    assert_eq!(busy(json!({ "name": "linux" })), 50 * 3 * US);
    // One question before the first segment, then two for each ACK: may it wait, and what is next.
    for segments in [1, 2, 5] {
        let p = json!({ "name": "delayed", "host": "rfc", "params": { "segments": segments } });
        let questions = 1 + 2 * (50 / segments);
        assert_eq!(busy(p), (50 * 3 + questions * 2) * US);
    }
}

#[test]
fn a_series_tells_the_policys_values_and_the_round_trips() {
    // 20 segments to settle, intervals of 10, one segment a millisecond: from segment 41 on the
    // rate rises by one each 10 segments until the window stops it: 64 segments make 21 at most.
    let g = group(json!({
        "policy": {
            "name": "ratelimit",
            "params": { "settle_segments": 20, "interval_segments": 10, "guard": 0 },
        },
        "sender": { "initial_window_segments": 60, "max_window_segments": 60 },
        "receiver": {
            "recv_buffer_bytes": 64 * MSS,
            "window_scaling": false,
            "timestamps": false,
        },
        "app": { "kind": "bulk", "bytes": 4000 * MSS },
    }));
    let r = run(&ruler(json!({ "series_interval_ns": 10 * MS }), &[g]));
    let s = only_flow(&r).series.as_ref().expect("asked for");
    let n = s.time_ns.len();
    let rate = &s.policy["rate_segments"];
    let most = &s.policy["rate_max_segments"];
    assert_eq!([rate.len(), most.len(), s.rtt_ns.len(), s.cwnd_bytes.len()], [n; 4]);
    assert_eq!((rate[0], most[0]), (1, 0));
    assert!(rate.windows(2).all(|w| w[1] <= w[0] + 1), "by one each interval: {rate:?}");
    assert!(most[5..].iter().all(|&m| m == 21), "{most:?}");
    assert_eq!(rate.iter().max(), Some(&21));
    assert_eq!(s.delivered_bytes.iter().sum::<u64>(), 4000 * MSS);
    // Between two points, no RTT is outside the range of the whole run.
    let seen: Vec<f64> = s.rtt_ns.iter().filter(|&&t| t > 0).map(|&t| t as f64).collect();
    assert!(seen.iter().all(|&t| t >= 40.0 * MS as f64 && t <= r.groups[0].rtt_ns.max * 1.01), "{seen:?}");
    assert!(seen.len() > 150, "{}", seen.len());
}

#[test]
fn a_policy_without_values_tells_none() {
    let g = group(json!({ "app": { "kind": "bulk", "bytes": 10 * MSS } }));
    let r = run(&ruler(json!({ "series_interval_ns": S }), &[g]));
    assert!(only_flow(&r).series.as_ref().expect("asked for").policy.is_empty());
}
