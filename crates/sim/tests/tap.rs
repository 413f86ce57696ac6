// SPDX-License-Identifier: MIT
//! Taps see each packet where and when it passes, and change nothing.

mod scenes;

use ackwise_link as _;
use ackwise_sim::run_tapped;
use ackwise_sim::tap::{Opened, Passed, Place, Tap};
use scenes::{group, only_flow, ruler, run, text, trace, MS, MSS};
use serde_json::{json, to_string};

#[derive(Default)]
struct Seen {
    opened: Vec<Opened>,
    /// Time, place, towards the client, sequence number, payload.
    packets: Vec<(u64, Place, bool, u64, u32)>,
}

impl Tap for Seen {
    fn opened(&mut self, connection: &Opened) {
        self.opened.push(connection.clone());
    }
    fn passed(&mut self, p: &Passed) {
        self.packets.push((p.time_ns, p.place, p.down, p.seq, p.payload_bytes));
    }
}

impl Seen {
    fn count(&self, place: Place, down: bool) -> u64 {
        self.packets.iter().filter(|p| p.1 == place && p.2 == down).count() as u64
    }
}

#[test]
fn a_tap_sees_what_left_what_was_lost_and_what_came_and_changes_nothing() {
    let lossy = json!({
        "down": { "queue_packets": 20, "loss_ppm": 20_000, "duplicate_ppm": 0 },
        "up": { "loss_ppm": 10_000 },
        "duration_ns": 20_000 * MS,
    });
    let scenario = ruler(lossy, &[group(json!({}))]);
    let mut seen = Seen::default();
    let tapped = run_tapped(&scenario, None, Some(&mut seen)).unwrap();
    let plain = run(&scenario);
    assert_eq!(to_string(&tapped).unwrap(), to_string(&plain).unwrap(), "{}", text(&scenario));
    assert!(plain.down.dropped_queue > 0 && plain.down.dropped_link > 0 && plain.up.dropped_link > 0);

    assert!(seen.packets.windows(2).all(|p| p[0].0 <= p[1].0), "out of order");
    assert_eq!(seen.count(Place::Router, true) + seen.count(Place::Router, false), 0);
    // A channel counts packets that left its queue; the end of the run cuts off those in flight.
    let left = seen.count(Place::Server, true);
    assert!(left >= plain.down.packets + plain.down.dropped_queue);
    assert!(left <= plain.down.packets + plain.down.dropped_queue + 20);
    let came = seen.count(Place::Client, true);
    assert!(came + plain.down.dropped_link <= plain.down.packets);
    let acks_left = seen.count(Place::Client, false);
    assert_eq!(acks_left, plain.up.packets + plain.up.dropped_queue);
    // Departures from the server equal the sent segments of the trace.
    let sent: Vec<_> =
        seen.packets.iter().filter(|p| p.1 == Place::Server && p.2).map(|p| (p.0, p.3)).collect();
    let traced = trace(&plain);
    assert_eq!(sent.len(), traced.data_seq.len());
    assert!(sent
        .iter()
        .zip(traced.data_time_ns.iter().zip(&traced.data_seq))
        .all(|(a, (t, s))| *a == (*t, *s)));
}

#[test]
fn a_router_stands_between_access_link_and_shared_link() {
    // Access links of 1 Gbit/s and 3 ms: a segment of 1000 bytes takes 8 us and 3 ms to the router,
    // 1 ms and 20 ms over the shared link, and the same access time to the client.
    let path = json!({ "access": { "rate_bps": 1_000_000_000, "delay_ns": 3 * MS } });
    let one = json!({ "app": { "kind": "bulk", "bytes": MSS } });
    let scenario = ruler(path, &[group(one)]);
    let mut seen = Seen::default();
    let result = run_tapped(&scenario, None, Some(&mut seen)).unwrap();
    assert_eq!(only_flow(&result).delivered_bytes, MSS);
    let data: Vec<_> = seen.packets.iter().filter(|p| p.2).map(|p| (p.0, p.1)).collect();
    let access_ns = 3 * MS + 8_000;
    let at_router = access_ns;
    let at_client = access_ns + 21 * MS + access_ns;
    assert_eq!(data, [(0, Place::Server), (at_router, Place::Router), (at_client, Place::Client)]);
    let acks: Vec<_> = seen.packets.iter().filter(|p| !p.2).map(|p| p.1).collect();
    assert_eq!(acks, [Place::Client, Place::Router, Place::Server]);
    let opened = &seen.opened[0];
    assert_eq!((opened.mss_bytes, opened.up, opened.sack), (960, false, false));
}

#[test]
fn a_run_whose_links_are_crossed_in_one_step_is_the_run_with_each_step_on_its_own() {
    // A tap looks at every link, so that each hop is an event. Short queues drop; a host that takes
    // time sends in steps; ends of runs cut packets off on each of the links.
    let mut dropped = 0;
    for n in 0..60u64 {
        let pick = |all: &[u64], every: u64| all[(n / every) as usize % all.len()];
        let path = json!({
            "seed": n,
            "duration_ns": 400 * MS + n * 7_654_321,
            "down": { "rate_bps": (pick(&[8_000_000, 20_000_000, 100_000_000], 1)), "queue_packets": 5 + n },
            "up": { "rate_bps": (pick(&[100_000_000, 2_000_000], 1)), "queue_packets": 3 + n / 2 },
            "access": { "rate_bps": (pick(&[8_000_000, 50_000_000, 1_000_000_000], 3)), "delay_ns": MS },
            "server": { "data_sent_ns": n / 30 * 5_000 },
        });
        let policy = ["every", "linux", "delayed", "dynamic"][n as usize / 9 % 4];
        let direction = ["down", "up"][n as usize / 5 % 2];
        let over = json!({ "policy": { "name": policy }, "direction": direction });
        let scenario = ruler(path, &[group(over)]);
        let stepwise = run_tapped(&scenario, None, Some(&mut Seen::default())).unwrap();
        let at_once = run(&scenario);
        assert_eq!(to_string(&at_once).unwrap(), to_string(&stepwise).unwrap(), "{}", text(&scenario));
        dropped += at_once.down.dropped_queue + at_once.up.dropped_queue;
    }
    assert!(dropped > 100, "{dropped}");
}

/// Departures from the server: payload and PSH; from the client: the window.
#[derive(Default)]
struct Left {
    data: Vec<(u32, bool)>,
    windows: Vec<u32>,
}

impl Tap for Left {
    fn opened(&mut self, _: &Opened) {}
    fn passed(&mut self, p: &Passed) {
        match p.place {
            Place::Server if p.down => self.data.push((p.payload_bytes, p.psh)),
            Place::Client if !p.down => self.windows.push(p.window_bytes),
            _ => {}
        }
    }
}

fn left(over: serde_json::Value) -> Left {
    // A short path: a burst may be long (tcp_tso_autosize).
    let path = json!({ "down": { "delay_ns": 0 }, "up": { "delay_ns": 0 } });
    let mut seen = Left::default();
    run_tapped(&ruler(path, &[group(over)]), None, Some(&mut seen)).unwrap();
    seen
}

#[test]
fn a_short_segment_at_the_end_of_all_data_belongs_to_the_burst() {
    // Linux, tcp_mss_split_point: three segments are one socket buffer, of which the last is pushed.
    let app = json!({ "kind": "bulk", "bytes": 2 * MSS + 100 });
    let seen = left(json!({ "sender": { "recovery": "sack" }, "app": app }));
    assert_eq!(seen.data, [(960, false), (960, false), (100, true)]);
}

#[test]
fn a_segment_of_128_bytes_opens_the_window_and_a_shorter_one_does_not() {
    // Linux, tcp_event_data_recv and tcp_grow_window, once a full segment has shown the payload's
    // share of memory: 132/256 of 131072 bytes.
    for (bytes, grows) in [(127, false), (128, true)] {
        let seen = left(json!({
            "receiver": { "slow_window": true, "recv_buffer_bytes": 131_072, "recv_buffer_max_bytes": 6 << 20 },
            "app": { "kind": "replay", "times_ns": [0, 200 * MS, 400 * MS], "bytes": [MSS, bytes, bytes] },
        }));
        assert_eq!(seen.windows[2] > seen.windows[0], grows, "{bytes}: {:?}", seen.windows);
    }
}

#[test]
fn the_first_windows_are_those_of_the_kernel() {
    // Captured on Linux 6.12 with segments of 1448 bytes, each acknowledged: the window of the
    // handshake's last ACK in units of 128 bytes, and its growth by two segments with each ACK
    // (tcp_select_initial_window, tcp_init_buffer_space, tcp_grow_window).
    let path = json!({ "mtu_bytes": 1500 });
    let one = json!({
        "handshake": true,
        "sender": { "recovery": "sack" },
        "receiver": {
            "slow_window": true, "timestamps": true, "recv_buffer_bytes": 131_072,
            "recv_buffer_max_bytes": 6_291_456,
        },
        "app": { "kind": "bulk", "bytes": 3 * 1448 },
    });
    let mut seen = Left::default();
    run_tapped(&ruler(path, &[group(one)]), None, Some(&mut seen)).unwrap();
    assert_eq!(seen.windows[1..5], [64_256, 67_072, 69_888, 72_832]);
}
