// SPDX-License-Identifier: MIT
//! Scenarios for the tests: a path with round numbers, and small changes to it.
//!
//! The ruler's path: packets of 1000 bytes (MSS 960) at 8 Mbit/s take 1 ms, then 20 ms; an ACK of
//! up to 125 bytes at 1 Tbit/s takes 1 ns, then 19 ms minus 1 ns. A segment sent at T on the idle
//! link therefore arrives at T + 21 ms, its ACK is back 19 ms later, and the RTT is 40 ms.

// Each test program uses only some of these.
#![allow(dead_code)]

use ackwise_core::Policy;
use ackwise_sim::result::{FlowResult, RunResult, Trace};
use ackwise_sim::scenario::Scenario;
use serde_json::{json, Value};

pub const MSS: u64 = 960;
pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;
pub const S: u64 = 1_000_000_000;

/// Merges `over` into `base`: objects key by key, everything else as a whole.
pub fn lay_over(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                lay_over(base.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over.clone(),
    }
}

/// A sender that counts bytes like Reno, without probes; a receiver with an open, fixed window.
/// Policies stand on `rfc`, which adds nothing, and their orders are not clamped.
pub fn group(over: Value) -> Value {
    let mut group = json!({
        "name": "g",
        "count": 1,
        "policy": { "name": "every" },
        "handshake": false,
        "sender": {
            "congestion_control": "reno",
            "recovery": "newreno",
            "tail_loss_probe": false,
            "min_rto_ns": S,
        },
        "receiver": {
            "recv_buffer_bytes": 1 << 20,
            "recv_buffer_max_bytes": 0,
            "timestamps": false,
            "slow_window": false,
        },
        "app": { "kind": "bulk" },
    });
    // Each application has its own keys: it is replaced, not merged.
    if over.get("app").is_some() {
        group["app"] = Value::Null;
    }
    lay_over(&mut group, &over);
    for key in ["policy", "peer_policy"] {
        let named = group.get(key).and_then(|p| p["name"].as_str());
        if named.and_then(Policy::find).is_some() {
            let mut policy = json!({ "host": "rfc", "clamp": false });
            lay_over(&mut policy, &group[key]);
            group[key] = policy;
        }
    }
    group
}

pub fn ruler(over: Value, groups: &[Value]) -> Scenario {
    let mut scenario = json!({
        "seed": 1,
        "duration_ns": 60 * S,
        "mtu_bytes": 1000,
        "down": { "rate_bps": 8_000_000, "delay_ns": 20 * MS },
        "up": { "rate_bps": 1_000_000_000_000u64, "delay_ns": 19 * MS - 1 },
        "groups": groups,
        "record": { "trace": true, "trace_limit": 2_000_000 },
    });
    lay_over(&mut scenario, &over);
    read(&scenario)
}

pub fn read(scenario: &Value) -> Scenario {
    serde_json::from_value(scenario.clone()).unwrap_or_else(|e| panic!("{e}\n{scenario:#}"))
}

pub fn run(scenario: &Scenario) -> RunResult {
    ackwise_sim::run(scenario, None).unwrap_or_else(|e| panic!("{e}\n{}", text(scenario)))
}

/// The scenario as JSON, the input of `examples/run.rs`.
pub fn text(scenario: &Scenario) -> String {
    serde_json::to_string(scenario).expect("serializable")
}

pub fn only_flow(result: &RunResult) -> &FlowResult {
    &result.groups[0].flows[0]
}

pub fn trace(result: &RunResult) -> &Trace {
    let trace = only_flow(result).trace.as_ref().expect("a trace was asked for");
    assert!(!trace.truncated);
    trace
}

/// (microsecond, segment number from 1) of everything sent; whole segments only.
pub fn sent(trace: &Trace) -> Vec<(u64, u64)> {
    (0..trace.data_seq.len())
        .map(|i| {
            assert_eq!(trace.data_bytes[i] as u64, MSS, "a short segment at {}", trace.data_seq[i]);
            assert_eq!(trace.data_seq[i] % MSS, 0);
            (micros(trace.data_time_ns[i]), trace.data_seq[i] / MSS + 1)
        })
        .collect()
}

/// (microsecond, sequence number, bytes) of everything sent.
pub fn sent_bytes(trace: &Trace) -> Vec<(u64, u64, u32)> {
    (0..trace.data_seq.len())
        .map(|i| (micros(trace.data_time_ns[i]), trace.data_seq[i], trace.data_bytes[i]))
        .collect()
}

/// (microsecond, last segment covered, reason) of the pure ACKs.
pub fn acks(trace: &Trace) -> Vec<(u64, u64, &str)> {
    (0..trace.ack_seq.len())
        .map(|i| (micros(trace.ack_time_ns[i]), trace.ack_seq[i] / MSS, trace.ack_reason[i].as_str()))
        .collect()
}

fn micros(ns: u64) -> u64 {
    assert_eq!(ns % US, 0, "{ns} ns is no whole microsecond");
    ns / US
}

/// Expected values of [`sent`]: these segments at each time, in whole milliseconds.
pub fn at_ms(expected: &[(u64, std::ops::RangeInclusive<u64>)]) -> Vec<(u64, u64)> {
    expected.iter().flat_map(|(ms, segments)| segments.clone().map(move |n| (ms * 1000, n))).collect()
}
