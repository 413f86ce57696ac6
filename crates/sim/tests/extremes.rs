// SPDX-License-Identifier: MIT
//! Values at the limits of a plan's keys: no panic, and no arithmetic overflow.

mod scenes;

use ackwise_link as _;
use ackwise_sim::rng::Rng;
use ackwise_sim::{scenario_keys, SimError};
use scenes::{group, read, ruler, run, S};
use serde_json::{json, Value};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// 80 000 packets of 524 280 s each take 1300 times as long as 64 bits of nanoseconds can express.
#[test]
fn a_queue_may_last_longer_than_time_can_say() {
    let flood = group(json!({
        "count": 8,
        "sender": { "initial_window_segments": 10_000, "send_buffer_bytes": 1u64 << 32 },
        "receiver": { "recv_buffer_bytes": 1 << 30 },
    }));
    let slowest = json!({ "rate_bps": 1, "delay_ns": 60 * S, "jitter_ns": 60 * S,
                          "queue_packets": 10_000_000 });
    let over = json!({ "mtu_bytes": 65_535, "duration_ns": 100_000 * S, "down": slowest,
                       "record": { "trace": false } });
    let result = run(&ruler(over, &[flood]));
    assert!(result.down.max_queue_packets > 40_000, "{}", result.down.max_queue_packets);
    assert_eq!(result.down.busy_share, 1.0);
    assert_eq!(result.groups[0].delivered_bytes, 0, "the first packet takes six days");
}

#[test]
fn a_rate_of_arrivals_may_be_next_to_nothing() {
    let g = group(json!({ "count": 3, "arrivals_per_s": 1e-300, "app": { "kind": "bulk", "bytes": 1 } }));
    let result = run(&ruler(json!({ "duration_ns": 100_000 * S }), &[g]));
    assert_eq!(result.groups[0].flows.len(), 1);
}

/// A pcapng file can contain any time; a workload accepts times up to the maximum duration of a
/// run.
#[test]
fn times_of_a_replay_beyond_a_run_are_refused() {
    let replay = |times: [u64; 2]| {
        let app = json!({ "kind": "replay", "times_ns": times, "bytes": [1, 1] });
        ackwise_sim::run(&ruler(json!({}), &[group(json!({ "start_ns": S, "app": app }))]), None)
    };
    assert!(replay([0, 100_000 * S]).is_ok());
    for last in [100_000 * S + 1, u64::MAX - S, u64::MAX] {
        match replay([0, last]) {
            Err(SimError::Scenario(what)) => assert!(what.contains("times_ns"), "{what}"),
            other => panic!("{last}: {other:?}"),
        }
    }
}

/// Keys that determine a run's computing time, or that are meaningful only together with others.
const LEFT_OUT: [&str; 8] = [
    "count",
    "duration_ns",
    "seed",
    "name",
    "discipline",
    "shared_medium",
    "ping_interval_ns",
    "series_interval_ns",
];

/// A small scenario with three numbers set to a limit of their range.
fn extreme(random: &mut Rng) -> Value {
    let app = [
        json!({ "kind": "bulk", "bytes": 100_000 }),
        json!({ "kind": "request-response", "request_bytes": 100, "response_bytes": 5000, "count": 5 }),
        json!({ "kind": "random-spacing", "packets": 20, "bytes": 500, "max_gap_ns": 1_000_000 }),
        json!({ "kind": "odd-writes", "write_bytes": 700, "writes": 3, "gap_ns": 1_000_000, "count": 5 }),
        json!({ "kind": "pareto-bulk", "mean_bytes": 5_000, "max_bytes": 50_000 }),
    ];
    let chosen = app[random.up_to(4) as usize].clone();
    let kind = chosen["kind"].as_str().unwrap_or("").to_owned();
    let duration_ns = [1, S / 100, S / 10][random.up_to(2) as usize];
    let mut scenario = serde_json::to_value(ruler(
        json!({ "duration_ns": duration_ns, "record": { "trace": false } }),
        &[group(json!({ "app": chosen }))],
    ))
    .expect("serializable");
    let places = [
        ("scenario", String::new()),
        ("channel", "/down".into()),
        ("channel", "/up".into()),
        ("host", "/client".into()),
        ("host", "/server".into()),
        ("process", "/server/process".into()),
        ("group", "/groups/0".into()),
        ("sender", "/groups/0/sender".into()),
        ("receiver", "/groups/0/receiver".into()),
    ];
    let app_table = format!("app.{kind}");
    let tables = scenario_keys();
    for _ in 0..3 {
        let (table, path) = match random.up_to(places.len() as u64) as usize {
            i if i < places.len() => (places[i].0, places[i].1.as_str()),
            _ => (app_table.as_str(), "/groups/0/app"),
        };
        let Some((_, keys)) = tables.0.iter().find(|t| t.0 == table) else { panic!("no table {table}") };
        let ranged: Vec<_> = keys
            .iter()
            .filter(|k| k.bounds.is_some() && k.disciplines.is_empty() && !LEFT_OUT.contains(&k.name))
            .filter(|k| !k.kind.starts_with("Vec"))
            .collect();
        if ranged.is_empty() {
            continue;
        }
        let key = ranged[random.up_to(ranged.len() as u64 - 1) as usize];
        let end = key.bounds.map(|b| if random.up_to(1) == 0 { b.low } else { b.high });
        if let Some(at) = scenario.pointer_mut(path).filter(|at| at.is_object()) {
            at[key.name] = json!(end);
        }
    }
    scenario
}

/// Number of scenarios; ACKWISE_EXTREMES overrides it.
fn rounds() -> u64 {
    std::env::var("ACKWISE_EXTREMES").ok().and_then(|n| n.parse().ok()).unwrap_or(100)
}

#[test]
fn values_at_their_limits_neither_panic_nor_wrap() {
    let mut random = Rng::new(14, 1);
    let mut ran = 0;
    for _ in 0..rounds() {
        let scenario = extreme(&mut random);
        // A scenario that still runs long is cancelled.
        let stop = Arc::new(AtomicBool::new(false));
        let (done, waiting) = std::sync::mpsc::channel::<()>();
        let timer = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                if waiting.recv_timeout(Duration::from_secs(20)).is_err() {
                    stop.store(true, Ordering::Relaxed);
                }
            }
        });
        let result = ackwise_sim::run(&read(&scenario), Some(&stop));
        let _ = done.send(());
        timer.join().expect("does not panic");
        if let Ok(result) = result {
            ran += 1;
            assert!((0.0..=1.0).contains(&result.down.busy_share), "{scenario:#}");
            assert!(result.groups[0].delivered_bytes <= 1 << 40, "{scenario:#}");
        }
    }
    assert!(ran > rounds() / 3, "{ran}: most were refused, or did not end");
}
