// SPDX-License-Identifier: MIT
//! Keys of a link on the lab's clock, which has a transmitter and a delay line of its own: a key that
//! changes a run changes it there too.

mod scenes;

use ackwise_link as _;
use ackwise_sim::{run, scenario_keys, Key};
use scenes::{group, ruler, MS};
use serde_json::{json, Value};

/// A download of which the queue, the delay line and the return path have something to do.
fn base(key: &Key) -> Value {
    let discipline = key.disciplines.first().map_or("fifo", String::as_str);
    let mut way = json!({"discipline": discipline, "queue_packets": 0, "queue_bytes": 0});
    match discipline {
        "cake" => way["queue_bytes"] = json!(100_000),
        "fifo" => way["queue_packets"] = json!(20),
        _ => way["queue_packets"] = json!(200),
    }
    let mut up = way.clone();
    up["rate_bps"] = json!(250_000);
    let over = json!({"duration_ns": 2000 * MS, "down": way, "up": up, "record": {"trace": false}});
    let bulk = group(json!({"app": {"kind": "bulk"}}));
    let back = group(json!({"name": "back", "direction": "up", "app": {"kind": "bulk"}}));
    serde_json::to_value(ruler(over, &[bulk, back])).expect("serializable")
}

/// Values other than the key's own.
fn others(key: &Key, now: &Value) -> Vec<Value> {
    let all = match key.name {
        "burst_loss" => vec![json!({"enter_ppm": 50_000, "leave_ppm": 200_000})],
        "reorder" => vec![json!({"probability_ppm": 50_000, "delay_ns": 5 * MS})],
        "outages" => vec![json!([{"start_ns": 500 * MS, "length_ns": 100 * MS}])],
        "lose" => vec![json!([{"at_bytes": 50_000, "nth": 1}])],
        _ if !key.choices.is_empty() => key.choices.iter().map(|word| json!(word)).collect(),
        _ if key.kind == "bool" => vec![json!(true), json!(false)],
        _ => {
            let bounds = key.bounds.expect("a number has bounds");
            let within = |n: &u64| (bounds.low..=bounds.high).contains(n);
            [1, 5, 300, 1500, 20_000, 200_000, 3 * MS, 30 * MS]
                .into_iter()
                .filter(within)
                .map(|n| json!(n))
                .collect()
        }
    };
    all.into_iter().filter(|value| value != now).collect()
}

/// What a run comes to; nothing if the engine refuses the scenario.
fn outcome(base: &Value, key: &str, value: &Value, lab_clock: bool) -> Option<Value> {
    let mut given = base.clone();
    for way in ["down", "up"] {
        given[way][key] = value.clone();
        given[way]["lab_clock"] = json!(lab_clock);
    }
    let scenario = serde_json::from_value(given).ok()?;
    let mut found = serde_json::to_value(run(&scenario, None).ok()?).expect("serializable");
    // Not of the link.
    found.as_object_mut().expect("a table").remove("events");
    Some(found)
}

#[test]
fn a_key_that_changes_a_run_changes_it_on_the_lab_s_clock() {
    let tables = scenario_keys();
    let (_, keys) = tables.0.iter().find(|(name, _)| *name == "channel").expect("a table");
    let (mut compared, mut wrong) = (0, Vec::new());
    for key in keys.iter().filter(|key| key.name != "lab_clock") {
        let base = base(key);
        let now = &base["down"][key.name];
        let differs = |lab_clock| {
            let plain = outcome(&base, key.name, now, lab_clock);
            let changed =
                others(key, now).into_iter().filter_map(|value| outcome(&base, key.name, &value, lab_clock));
            changed.map(|one| Some(one) != plain).collect::<Vec<_>>()
        };
        let (own, on_the_lab_s) = (differs(false), differs(true));
        if !own.contains(&true) {
            wrong.push(format!("{}: no value changes a run", key.name));
        } else if !on_the_lab_s.contains(&true) {
            wrong.push(format!("{}: ignored on the lab's clock", key.name));
        }
        compared += 1;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(compared > 15);
}
