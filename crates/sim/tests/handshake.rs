// SPDX-License-Identifier: MIT
//! Start and end of connections of Linux's senders, worked out by hand from RFC 9293, 3.5, and
//! Linux 6.12.
//!
//! The path is the ruler's (see `scenes`). A SYN of 52 bytes, with MSS, SACK permitted and window
//! scale, takes 19 ms to the server and 20.052 ms back; its ACK takes 19 ms. The client is
//! therefore established at 39.052 ms and the server at 58.052 ms, and each has measured an RTT of
//! 39.052 ms.

mod scenes;

use ackwise_link as _;
use ackwise_sim::result::{FlowResult, RunResult};
use ackwise_sim::run_tapped;
use ackwise_sim::tap::{Opened, Passed, Place, Tap};
use scenes::{acks, group, lay_over, only_flow, ruler, run, sent, trace, MS, MSS, S, US};
use serde_json::{json, Value};

const CLIENT_READY: u64 = 39_052 * US;
const SERVER_READY: u64 = 58_052 * US;

/// A transfer of this many segments by a Linux sender that sends single segments, with the changes
/// in `over`.
fn linux(segments: u64, over: Value) -> Value {
    let mut g = group(json!({
        "handshake": true,
        "sender": { "recovery": "sack", "min_rto_ns": 200 * MS },
        "app": { "kind": "bulk", "bytes": segments * MSS },
    }));
    if over.get("app").is_some() {
        g["app"] = Value::Null;
    }
    lay_over(&mut g, &over);
    g
}

fn losing(way: &str, from: u64, length: u64) -> Value {
    json!({ way: { "outages": [{ "start_ns": from, "length_ns": length }] } })
}

#[derive(Default)]
struct Seen {
    opened: Vec<Opened>,
    /// Packets leaving a host: (time, towards the client, SYN, payload).
    left: Vec<(u64, bool, bool, u32)>,
}

impl Tap for Seen {
    fn opened(&mut self, connection: &Opened) {
        self.opened.push(connection.clone());
    }
    fn passed(&mut self, p: &Passed) {
        if p.place == (if p.down { Place::Server } else { Place::Client }) {
            self.left.push((p.time_ns, p.down, p.syn, p.payload_bytes));
        }
    }
}

fn watched(path: Value, g: Value) -> (RunResult, Seen) {
    let mut seen = Seen::default();
    let result = run_tapped(&ruler(path, &[g]), None, Some(&mut seen)).unwrap();
    (result, seen)
}

fn syns(seen: &Seen, down: bool) -> Vec<u64> {
    seen.left.iter().filter(|p| p.1 == down && p.2).map(|p| p.0).collect()
}

fn first_data_ns(flow: &FlowResult) -> u64 {
    flow.trace.as_ref().expect("a trace was asked for").data_time_ns[0]
}

#[test]
fn a_download_begins_one_and_a_half_round_trips_after_its_syn() {
    let (result, seen) = watched(json!({}), linux(2, json!({})));
    let expected = [
        (0, false, true, 0),
        (19 * MS, true, true, 0),
        (CLIENT_READY, false, false, 0),
        (SERVER_READY, true, false, 960),
        (SERVER_READY, true, false, 960),
    ];
    assert_eq!(seen.left[..5], expected);
    assert!(seen.opened[0].handshake);
    // A flow starts with its first write, and so does the time of its only message.
    let flow = only_flow(&result);
    assert_eq!((flow.start_ns, flow.end_ns), (SERVER_READY, SERVER_READY + 22 * MS));
    let message_ns = result.groups[0].message_latency_ns.max;
    assert!((message_ns - 22e6).abs() <= 22e3, "{message_ns}");
    // SYN-ACK, data and the ACK of a FIN; SYN, its ACK, those of the data, and a FIN.
    assert_eq!((result.down.packets, result.down.bytes), (4, 52 + 2 * 1000 + 40));
    assert_eq!((result.up.packets, result.up.bytes), (5, 52 + 4 * 40));
    // Only ACKs of data count.
    assert_eq!(flow.acks_sent, 2);
    assert_eq!(flow.retransmitted_segments, 0);
}

#[test]
fn a_syn_has_its_options_on_the_wire() {
    // MSS 4, window scale 4, timestamps and SACK permitted 12; MSS and SACK permitted alone 8.
    for (timestamps, scaling, bytes) in [(true, true, 60), (true, false, 56), (false, false, 48)] {
        let over = json!({ "receiver": { "timestamps": timestamps, "window_scaling": scaling } });
        let lost = losing("up", 19 * MS, 60 * S);
        let result = run(&ruler(lost, &[linux(1, over)]));
        // The client's SYN passes, and the SYN-ACKs that answer it; nothing else comes back.
        assert_eq!(result.down.bytes, result.down.packets * bytes, "{bytes}");
    }
}

#[test]
fn an_upload_begins_when_the_syn_ack_arrives() {
    let (result, seen) = watched(json!({}), linux(1, json!({ "direction": "up" })));
    // The ACK of the SYN-ACK leaves before the data.
    let after = [(CLIENT_READY, false, false, 0), (CLIENT_READY, false, false, 960)];
    assert_eq!(seen.left[2..4], after);
    assert_eq!(only_flow(&result).start_ns, CLIENT_READY);
}

#[test]
fn the_client_asks_when_it_is_established_and_the_server_may_answer() {
    let app = json!({ "kind": "request-response", "request_bytes": 100, "response_bytes": MSS, "count": 1 });
    // The handshake's ACK is lost: the request acknowledges the SYN-ACK as well. It leaves after
    // the ACK's transmission time, 1 ns.
    for path in [json!({}), losing("up", CLIENT_READY, 1)] {
        let (result, seen) = watched(path, linux(1, json!({ "app": app.clone() })));
        let asked = seen.left.iter().find(|p| p.3 == 100).unwrap();
        assert_eq!(asked.0, CLIENT_READY);
        assert_eq!(syns(&seen, true).len(), 1);
        let flow = only_flow(&result);
        assert_eq!(first_data_ns(flow) / US, SERVER_READY / US);
        assert_eq!(flow.start_ns, first_data_ns(flow));
    }
}

#[test]
fn a_lost_syn_is_sent_again_after_a_second_five_times_and_then_later_and_later() {
    // RFC 6298, 2.1: 1 s. Linux (tcp_syn_linear_timeouts): it doubles from the fifth timeout on.
    let (_, seen) = watched(losing("up", 0, 12 * S), linux(1, json!({})));
    assert_eq!(syns(&seen, false)[..8], [0, 1, 2, 3, 4, 5, 7, 11].map(|s| s * S));
    let (_, seen) = watched(losing("down", 0, 50 * S), linux(1, json!({})));
    // A SYN-ACK at 19 ms, then after 1, 2, 4 and 8 s more, and one for each SYN that comes again.
    let times = syns(&seen, true);
    assert_eq!(times[0], 19 * MS);
    assert!(times.contains(&(S + 19 * MS)), "{times:?}");
    let answered = syns(&seen, false).iter().map(|t| t + 19 * MS).filter(|t| times.contains(t)).count();
    assert_eq!(answered, syns(&seen, false).len());
}

#[test]
fn a_lost_syn_delays_the_data_and_is_counted_where_its_end_sends_the_data() {
    let lost = losing("up", 0, MS);
    let down = run(&ruler(lost.clone(), &[linux(1, json!({}))]));
    assert_eq!(only_flow(&down).start_ns, S + SERVER_READY);
    assert_eq!((only_flow(&down).retransmitted_segments, only_flow(&down).timeouts), (0, 0));
    let up = run(&ruler(lost, &[linux(1, json!({ "direction": "up" }))]));
    assert_eq!(only_flow(&up).start_ns, S + CLIENT_READY);
    assert_eq!((only_flow(&up).retransmitted_segments, only_flow(&up).timeouts), (1, 1));
}

#[test]
fn a_lost_ack_of_the_handshake_is_asked_for_again() {
    // The server's SYN-ACK leaves again a second later; its client is established and answers with an ACK.
    let (result, seen) = watched(losing("up", CLIENT_READY, MS), linux(1, json!({})));
    assert_eq!(syns(&seen, true), [19 * MS, S + 19 * MS]);
    assert_eq!(first_data_ns(only_flow(&result)), S + SERVER_READY);
    assert_eq!((only_flow(&result).retransmitted_segments, only_flow(&result).timeouts), (1, 1));
}

#[test]
fn the_window_is_one_segment_if_a_syn_was_sent_again_twice() {
    // Linux, tcp_init_transfer; RFC 5681, 3.1.
    for (lost, segments) in [(0, 10), (1, 10), (2, 1), (3, 1)] {
        let path = losing("up", 0, if lost == 0 { 1 } else { (lost - 1) * S + MS });
        let path = if lost == 0 { json!({}) } else { path };
        let result = run(&ruler(path, &[linux(20, json!({ "direction": "up" }))]));
        let first = first_data_ns(only_flow(&result));
        let flight = trace(&result).data_time_ns.iter().filter(|&&t| t == first).count();
        assert_eq!(flight, segments, "{lost}");
    }
}

#[test]
fn the_first_timeout_follows_from_the_round_trip_of_the_handshake() {
    // The only segment is lost. RFC 6298, 2.2, with Linux's minimum variance term: 39.052 ms and
    // 200 ms, which are 24 jiffies of 10 ms, after the one in which the segment left.
    let lost = losing("down", SERVER_READY, 2 * MS);
    let result = run(&ruler(lost, &[linux(1, json!({}))]));
    let times = &trace(&result).data_time_ns;
    assert_eq!(times[..2], [SERVER_READY, (SERVER_READY / (10 * MS) + 24 + 1) * 10 * MS]);
}

#[test]
fn hosts_of_published_sources_begin_established() {
    let none = [
        json!({ "handshake": false }),
        json!({ "sender": { "recovery": "newreno" } }),
        json!({ "sender": { "recovery": "timeout" } }),
        json!({ "sender": { "socket": "bsd43" } }),
        json!({ "receiver": { "socket": "bsd43" } }),
    ];
    for over in none {
        let (result, seen) = watched(json!({}), linux(1, over.clone()));
        assert!(!seen.opened[0].handshake && !seen.left.iter().any(|p| p.2), "{over}");
        assert_eq!(sent(trace(&result))[0], (0, 1), "{over}");
    }
}

// --- the end -------------------------------------------------------------------------------------

/// Two full segments and one of 100 bytes, with FIN, or without the last 100 bytes.
fn ending(bytes: u64, over: Value) -> RunResult {
    let mut g = linux(1, json!({ "policy": { "name": "delayed", "params": { "segments": 2 } } }));
    lay_over(&mut g, &over);
    g["app"] = json!({ "kind": "bulk", "bytes": bytes });
    run(&ruler(json!({}), &[g]))
}

#[test]
fn the_last_ack_rides_on_the_fin_of_an_application_that_has_read_all() {
    // Linux, tcp_fin and __tcp_ack_snd_check: the short segment and the FIN are less than a full one. They
    // arrive at 22.14 ms, are read at once, and the application closes.
    let result = ending(2 * MSS + 100, json!({}));
    assert_eq!(acks(trace(&result)), [(SERVER_READY / US + 22_000, 2, "segment-count")]);
    // SYN, ACK, ACK, FIN; SYN-ACK, data, ACK of the FIN.
    assert_eq!((result.up.packets, result.down.packets), (4, 5));
    let group = &result.groups[0];
    assert_eq!((group.flows_completed, group.acks_piggybacked), (1, 0));
    assert_eq!(group.ack_latency_ns.samples, 3);
    // The FIN returns at 41.14 ms.
    assert_eq!(result.duration_ns, SERVER_READY + 41_140 * US + 20_040 * US);
}

#[test]
fn a_full_segment_with_a_fin_is_acknowledged_at_once() {
    let result = ending(3 * MSS, json!({}));
    let expected = [(22_000, 2, "segment-count"), (23_000, 3, "fin")];
    let expected = expected.map(|(us, segment, reason)| (SERVER_READY / US + us, segment, reason));
    assert_eq!(acks(trace(&result)), expected);
    assert_eq!(result.up.packets, 5);
}

#[test]
fn a_fin_waits_no_longer_than_40_ms_for_a_reader_that_is_late() {
    let result = ending(2 * MSS + 100, json!({ "receiver": { "reader_lag_ns": 100 * MS } }));
    let last = trace(&result).ack_time_ns.last().copied();
    assert_eq!(last, Some(SERVER_READY + 22_140 * US + 40 * MS));
    assert_eq!(result.up.packets, 5);
}

// --- the receiver's timeout ------------------------------------------------------------------------

#[test]
fn a_pause_counts_as_longer_than_the_timeout_when_it_is_by_a_tick() {
    // Linux, tcp_event_data_recv: after a pause longer than its RTO, a receiver acknowledges every
    // segment again. Its RTO is that of the handshake, 239.052 ms, in whole jiffies: 240 ms. The
    // time between segments is the gap plus 21 ms.
    for (gap_us, quick) in [(218_500, 16), (219_500, 40)] {
        let app = json!({
            "kind": "odd-writes", "write_bytes": MSS, "writes": 1, "gap_ns": gap_us * US, "count": 40,
        });
        let over = json!({ "policy": { "name": "linux", "host": null }, "app": app });
        let result = run(&ruler(json!({}), &[linux(1, over)]));
        assert_eq!(result.groups[0].acks_by_reason["quickack"], quick, "{gap_us}");
    }
}

// --- BBR's start -----------------------------------------------------------------------------------

#[test]
fn bbr_paces_from_the_eleventh_segment_at_the_window_over_the_round_trip() {
    // Linux: ten segments leave at once (tcp_update_skb_after_send), then bursts of two, spaced by
    // their time at 739/256 windows per RTT of the handshake, minus 1%
    // (bbr_init_pacing_rate_from_rtt). The first ACK arrives 40 ms later; the first burst catches
    // up half of its time.
    let g = linux(40, json!({ "sender": { "congestion_control": "bbr" } }));
    let result = run(&ruler(json!({}), &[g]));
    let sent: Vec<_> = trace(&result).data_time_ns.iter().map(|t| t - SERVER_READY).collect();
    assert_eq!(sent[..10], [0; 10]);
    let burst_ns = (2.0 * 960.0 * 1e9 / (739.0 / 256.0 * 0.99 * 9600.0 / 0.039_052)) as u64;
    let bursts = [40 * MS, 40 * MS + burst_ns / 2, 40 * MS + burst_ns / 2 + burst_ns];
    for (n, at) in bursts.into_iter().enumerate() {
        for &leaves in &sent[10 + 2 * n..12 + 2 * n] {
            assert!(leaves.abs_diff(at) <= 1_000, "burst {n}: {leaves} for {at}");
        }
    }
}
