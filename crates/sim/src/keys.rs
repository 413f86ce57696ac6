// SPDX-License-Identifier: MIT
//! One declaration for each key of a scenario: its type, meaning, default and bounds. `keys!` makes
//! the struct that serde reads, the check of its bounds and the description for callers from it.

use crate::scenario::{
    Access, AppSpec, Bulk, BurstLoss, ChannelSpec, FlowGroup, HostSpec, OddWrites, Outage, ParetoBulk,
    Process, RandomSpacing, ReceiverSpec, RecordSpec, Reorder, Replay, RequestResponse, Scenario, SenderSpec,
};
use serde::Serialize;
use serde_json::{json, Value};
use std::collections::BTreeMap;

/// A key as callers may see it.
#[derive(Clone, Debug, Serialize)]
pub struct Key {
    pub name: &'static str,
    /// Type in the engine, such as `u64`.
    pub kind: &'static str,
    /// What it means.
    pub text: String,
    /// Absent: the key is required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Least and greatest value; absent: those of the type.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Bounds {
    pub low: u64,
    pub high: u64,
}

/// What the declaration itself says of a key.
pub(crate) struct Declared {
    pub name: &'static str,
    pub kind: &'static str,
    /// Lines of its comment.
    pub text: &'static [&'static str],
    pub bounds: Option<Bounds>,
}

/// A struct of keys.
pub(crate) trait Table {
    const KEYS: &'static [Declared];

    /// # Errors
    /// The first key whose value is out of range, with the range.
    fn check_bounds(&self, at: &str) -> Result<(), String>;
}

/// Declares a struct of keys. A type is followed by the key's bounds in brackets, if it has any:
/// `delay_ns: u64 [0..=60 * S]`.
macro_rules! keys {
    (
        $(#[doc = $about:literal])*
        #[derive($($derive:ident),*)]
        $(#[serde($($container:tt)*)])?
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])*
                $(#[serde($($serde:tt)*)])?
                pub $field:ident: $type:ty $([$low:literal..=$high:expr])?,
            )*
        }
    ) => {
        $(#[doc = $about])*
        #[derive($($derive),*)]
        $(#[serde($($container)*)])?
        pub struct $name {
            $(
                $(#[doc = $doc])*
                $(#[serde($($serde)*)])?
                pub $field: $type,
            )*
        }

        impl crate::keys::Table for $name {
            const KEYS: &'static [crate::keys::Declared] = &[
                $(crate::keys::Declared {
                    name: stringify!($field),
                    kind: stringify!($type),
                    text: &[$($doc),*],
                    bounds: crate::keys::bounds!($($low, $high)?),
                },)*
            ];

            // Not every table has bounds.
            #[allow(unused_variables)]
            fn check_bounds(&self, at: &str) -> Result<(), String> {
                $($(crate::check::within(at, stringify!($field), self.$field.into(), $low, $high)?;)?)*
                Ok(())
            }
        }
    };
}
pub(crate) use keys;

macro_rules! bounds {
    () => {
        None
    };
    ($low:literal, $high:expr) => {
        Some(crate::keys::Bounds { low: $low, high: $high })
    };
}
pub(crate) use bounds;

/// The least that a scenario has to say: every other key has a default.
const LEAST: &str = r#"{
    "seed": 0,
    "duration_ns": 1,
    "down": {"rate_bps": 1, "delay_ns": 0},
    "up": {"rate_bps": 1, "delay_ns": 0},
    "groups": [{"name": "", "count": 1, "policy": {"name": "every"}, "app": {"kind": "bulk"}}]
}"#;

/// The keys of one table. `least` is what its smallest instance says, `full` the same with all
/// defaults.
fn describe(declared: &[Declared], least: &Value, full: &Value) -> Vec<Key> {
    let default = |name: &str| least.get(name).is_none().then(|| full[name].clone());
    let key = |d: &Declared| Key {
        name: d.name,
        kind: d.kind,
        text: d.text.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" "),
        default: default(d.name),
        bounds: d.bounds,
    };
    declared.iter().map(key).collect()
}

/// Every key of a scenario by table: `scenario` itself, `channel` (`down` and `up`), `sender` ...,
/// and `app.KIND` for each application.
pub fn scenario_keys() -> BTreeMap<&'static str, Vec<Key>> {
    let least: Value = serde_json::from_str(LEAST).expect("JSON");
    let full: Scenario = serde_json::from_str(LEAST).expect("a whole scenario");
    let full = serde_json::to_value(full).expect("serializable");
    let nothing = json!({});
    let (group, all_group) = (&least["groups"][0], &full["groups"][0]);
    let mut tables = BTreeMap::from([
        ("scenario", describe(Scenario::KEYS, &least, &full)),
        ("channel", describe(ChannelSpec::KEYS, &least["down"], &full["down"])),
        ("host", describe(HostSpec::KEYS, &nothing, &full["client"])),
        ("process", describe(Process::KEYS, &nothing, &full["client"]["process"])),
        ("record", describe(RecordSpec::KEYS, &nothing, &full["record"])),
        ("group", describe(FlowGroup::KEYS, group, all_group)),
        ("sender", describe(SenderSpec::KEYS, &nothing, &all_group["sender"])),
        ("receiver", describe(ReceiverSpec::KEYS, &nothing, &all_group["receiver"])),
    ]);
    for (name, declared, least) in [
        ("burst_loss", BurstLoss::KEYS, json!({"enter_ppm": 0, "leave_ppm": 0, "loss_ppm": 0})),
        ("reorder", Reorder::KEYS, json!({"probability_ppm": 0, "delay_ns": 0})),
        ("outage", Outage::KEYS, json!({"start_ns": 0, "length_ns": 0})),
        ("access", Access::KEYS, json!({"rate_bps": 1, "delay_ns": 0})),
    ] {
        tables.insert(name, describe(declared, &least, &least));
    }
    for (name, declared, least) in [
        ("app.bulk", Bulk::KEYS, json!({"kind": "bulk"})),
        (
            "app.request-response",
            RequestResponse::KEYS,
            json!({"kind": "request-response", "request_bytes": 1, "response_bytes": 1}),
        ),
        (
            "app.random-spacing",
            RandomSpacing::KEYS,
            json!({"kind": "random-spacing", "packets": 1, "bytes": 1, "max_gap_ns": 0}),
        ),
        ("app.odd-writes", OddWrites::KEYS, json!({"kind": "odd-writes", "write_bytes": 1, "writes": 1})),
        (
            "app.pareto-bulk",
            ParetoBulk::KEYS,
            json!({"kind": "pareto-bulk", "mean_bytes": 1, "max_bytes": 2}),
        ),
        ("app.replay", Replay::KEYS, json!({"kind": "replay", "times_ns": [0], "bytes": [1]})),
    ] {
        let full: AppSpec = serde_json::from_value(least.clone()).expect("an application");
        let full = serde_json::to_value(full).expect("serializable");
        tables.insert(name, describe(declared, &least, &full));
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(table: &str, name: &str) -> Key {
        let keys = &scenario_keys()[table];
        keys.iter().find(|k| k.name == name).unwrap_or_else(|| panic!("no {table}.{name}")).clone()
    }

    #[test]
    fn a_key_is_described_by_its_one_declaration() {
        let rto = key("sender", "min_rto_ns");
        assert_eq!((rto.kind, rto.default), ("u64", Some(json!(200_000_000))));
        assert_eq!(rto.bounds.map(|b| (b.low, b.high)), Some((1_000_000, 60_000_000_000)));
        assert!(rto.text.starts_with("Lower bound of the retransmission timeout"), "{}", rto.text);
        assert_eq!(key("channel", "rate_bps").default, None);
        assert_eq!(key("channel", "ack_share_ppm").default, Some(json!(500_000)));
        assert_eq!(key("app.odd-writes", "count").default, Some(json!(0)));
    }

    #[test]
    fn every_default_is_within_its_bounds() {
        for (table, keys) in scenario_keys() {
            for k in keys {
                if let (Some(Value::Number(default)), Some(b)) = (&k.default, k.bounds) {
                    let default = default.as_u64().expect("a whole number");
                    assert!((b.low..=b.high).contains(&default), "{table}.{}", k.name);
                }
            }
        }
    }

    #[test]
    fn what_the_least_scenario_says_is_required() {
        let least: Value = serde_json::from_str(LEAST).expect("JSON");
        for path in ["", "/down", "/groups/0", "/groups/0/app"] {
            let table = least.pointer(path).and_then(Value::as_object).expect("a table");
            for name in table.keys() {
                let mut without = least.clone();
                let table = without.pointer_mut(path).and_then(Value::as_object_mut).expect("a table");
                table.remove(name);
                let read = serde_json::from_value::<Scenario>(without);
                assert!(read.is_err(), "{path}/{name} has a default");
            }
        }
    }

    #[test]
    fn every_key_has_a_text() {
        for (table, keys) in scenario_keys() {
            for k in keys {
                assert!(!k.text.is_empty(), "{table}.{} has no comment", k.name);
            }
        }
    }
}
