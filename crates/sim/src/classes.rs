// SPDX-License-Identifier: MIT
//! Every struct of a scenario and of a result as data, for callers: keys, texts, defaults.

use crate::keys::{word, Declared, Key, Table};
use crate::result::{
    ChannelResult, ChannelSeries, FlowResult, GroupResult, HostResult, PingResult, Quantiles, RunResult,
    Series, Trace,
};
use crate::scenario::{
    Access, Bulk, BurstLoss, ChannelSpec, FlowGroup, HostSpec, Lose, OddWrites, Outage, ParetoBulk, Process,
    RandomSpacing, ReceiverSpec, RecordSpec, Reorder, Replay, RequestResponse, Scenario, SenderSpec,
    KEYS_OF_DISCIPLINES,
};
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::{json, Value};
use std::sync::OnceLock;

/// The smallest possible scenario: every other key has a default.
const LEAST: &str = r#"{
    "seed": 0,
    "duration_ns": 1,
    "down": {"rate_bps": 1, "delay_ns": 0},
    "up": {"rate_bps": 1, "delay_ns": 0},
    "groups": [{"name": "", "policy": {"name": "every"}, "app": {"kind": "bulk"}}]
}"#;

/// The keys of `T`; those in its smallest instance are required.
fn table<T: Table + Serialize + DeserializeOwned>(least: Value) -> Vec<Key> {
    let full: T = serde_json::from_value(least.clone()).expect("all that is required");
    let full = serde_json::to_value(full).expect("serializable");
    let default = |name| least.get(name).is_none().then(|| full[name].clone());
    T::KEYS.iter().map(|d| Key { default: default(d.name), ..key(d) }).collect()
}

fn key(d: &Declared) -> Key {
    Key {
        name: d.name,
        kind: d.kind,
        text: joined(d.text),
        default: None,
        choices: (d.choices)(),
        bounds: d.bounds,
        disciplines: Vec::new(),
    }
}

fn joined(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// A struct, as described to callers, for the classes that `tools/classes.py` generates.
#[derive(Clone, Debug, Serialize)]
pub struct Class {
    pub name: &'static str,
    pub text: String,
    /// Its table in [`scenario_keys`]; absent: it belongs to a result, whose keys have no defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<&'static str>,
    pub keys: Vec<Key>,
}

/// The keys of a direction, with the disciplines to which some of them are limited.
pub(crate) fn channel_keys() -> &'static [Key] {
    // Computed once, because every run needs them.
    static KEYS: OnceLock<Vec<Key>> = OnceLock::new();
    KEYS.get_or_init(|| {
        let least: Value = serde_json::from_str(LEAST).expect("JSON");
        let mut keys = table::<ChannelSpec>(least["down"].clone());
        for (name, disciplines) in KEYS_OF_DISCIPLINES {
            let key = keys.iter_mut().find(|k| k.name == *name).expect("a key of a direction");
            key.disciplines = disciplines.iter().map(word).collect();
        }
        keys
    })
}

/// Tables of keys by name, in the order of their declaration.
pub struct Tables(pub Vec<(&'static str, Vec<Key>)>);

impl Serialize for Tables {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, keys)| (name, keys)))
    }
}

/// A struct of the scenario, described by its table.
fn class<T: Table + Serialize + DeserializeOwned>(name: &'static str, least: Value) -> Class {
    Class { name: T::NAME, text: joined(T::ABOUT), table: Some(name), keys: table::<T>(least) }
}

/// A struct of the result.
fn found<T: Table>() -> Class {
    Class { name: T::NAME, text: joined(T::ABOUT), table: None, keys: T::KEYS.iter().map(key).collect() }
}

fn scenario_classes() -> Vec<Class> {
    let least: Value = serde_json::from_str(LEAST).expect("JSON");
    let nothing = || json!({});
    vec![
        class::<Scenario>("scenario", least.clone()),
        Class { keys: channel_keys().to_vec(), ..class::<ChannelSpec>("channel", least["down"].clone()) },
        class::<BurstLoss>("burst_loss", json!({"enter_ppm": 0, "leave_ppm": 1})),
        class::<Reorder>("reorder", json!({"probability_ppm": 0, "delay_ns": 0})),
        class::<Outage>("outage", json!({"start_ns": 0, "length_ns": 1})),
        class::<Lose>("lose", json!({"nth": 1})),
        class::<Access>("access", json!({"rate_bps": 1, "delay_ns": 0})),
        class::<HostSpec>("host", nothing()),
        class::<Process>("process", nothing()),
        class::<RecordSpec>("record", nothing()),
        class::<FlowGroup>("group", least["groups"][0].clone()),
        class::<SenderSpec>("sender", nothing()),
        class::<ReceiverSpec>("receiver", nothing()),
        class::<Bulk>("app.bulk", nothing()),
        class::<RequestResponse>("app.request-response", json!({"request_bytes": 1, "response_bytes": 1})),
        class::<RandomSpacing>("app.random-spacing", json!({"packets": 1, "bytes": 1, "max_gap_ns": 0})),
        class::<OddWrites>("app.odd-writes", json!({"write_bytes": 1, "writes": 1})),
        class::<ParetoBulk>("app.pareto-bulk", json!({"mean_bytes": 1, "max_bytes": 2})),
        class::<Replay>("app.replay", json!({"times_ns": [0], "bytes": [1]})),
    ]
}

/// Every key of a scenario by table: `scenario` itself, `channel` (`down` and `up`), `sender` ...,
/// and `app.KIND` for each application.
pub fn scenario_keys() -> Tables {
    Tables(scenario_classes().into_iter().filter_map(|c| Some((c.table?, c.keys))).collect())
}

/// Every struct of a scenario, then every struct of a result.
pub fn classes() -> Vec<Class> {
    let mut all = scenario_classes();
    all.extend([
        found::<RunResult>(),
        found::<PingResult>(),
        found::<GroupResult>(),
        found::<FlowResult>(),
        found::<Quantiles>(),
        found::<Series>(),
        found::<Trace>(),
        found::<ChannelResult>(),
        found::<ChannelSeries>(),
        found::<HostResult>(),
    ]);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{Bounds, KeyType};
    use crate::scenario::AppSpec;

    fn key(table: &str, name: &str) -> Key {
        let tables = scenario_keys().0;
        let (_, keys) = tables.iter().find(|(t, _)| *t == table).expect("a table");
        keys.iter().find(|k| k.name == name).unwrap_or_else(|| panic!("no {table}.{name}")).clone()
    }

    #[test]
    fn a_key_is_described_by_its_one_declaration() {
        let rto = key("sender", "min_rto_ns");
        assert_eq!((rto.kind, rto.default), ("u64", Some(json!(200_000_000))));
        assert_eq!(rto.bounds.map(|b| (b.low, b.high)), Some((1_000_000, 60_000_000_000)));
        assert_eq!(rto.text, "minimum RTO");
        assert_eq!(key("channel", "rate_bps").default, None);
        assert_eq!(key("channel", "ack_share_ppm").default, Some(json!(500_000)));
        assert_eq!(key("app.odd-writes", "count").default, Some(json!(0)));
        assert_eq!(key("burst_loss", "leave_ppm").default, None);
        assert_eq!(key("burst_loss", "loss_ppm").default, Some(json!(1_000_000)));
    }

    #[test]
    fn the_words_of_a_choice_are_those_that_serde_reads() {
        assert_eq!(key("sender", "counting").choices, ["bytes", "bytes2smss", "acks"]);
        let discipline = key("channel", "discipline").choices;
        assert_eq!(discipline[3..], ["ack-separation-filter", "codel", "fq-codel", "fq", "cake"]);
        assert!(key("channel", "rate_bps").choices.is_empty());
    }

    #[test]
    fn a_key_names_the_disciplines_that_it_belongs_to() {
        assert_eq!(key("channel", "quantum_bytes").disciplines, ["fq-codel", "fq"]);
        assert!(key("channel", "rate_bps").disciplines.is_empty());
    }

    #[test]
    fn every_application_has_its_table() {
        let refused = serde_json::from_value::<AppSpec>(json!({"kind": "?"})).expect_err("no such kind");
        let refused = refused.to_string();
        let kinds = refused.split('`').skip(3).step_by(2);
        let tables = scenario_keys().0;
        let described = tables.iter().filter_map(|(name, _)| name.strip_prefix("app."));
        assert!(kinds.eq(described), "{refused}");
    }

    #[test]
    fn a_list_and_an_optional_number_are_within_bounds_if_each_number_is() {
        let bounds = Bounds { low: 1, high: 3 };
        assert_eq!(vec![1u32, 3].outside(bounds), None);
        assert_eq!(vec![1u64, 4, 5].outside(bounds), Some("4".to_string()));
        assert_eq!(None::<u64>.outside(bounds), None);
        assert_eq!(Some(0u64).outside(bounds), Some("0".to_string()));
        assert_eq!(3.0.outside(bounds), None);
        assert_eq!(f64::NAN.outside(bounds), Some("NaN".to_string()));
    }

    #[test]
    fn every_default_is_within_its_bounds() {
        for (table, keys) in scenario_keys().0 {
            for k in keys {
                if let (Some(Value::Number(default)), Some(b)) = (&k.default, k.bounds) {
                    let default = default.as_f64().expect("a number");
                    assert_eq!(default.outside(b), None, "{table}.{}", k.name);
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

    /// The keys of a struct are those that serde writes, and each struct in them is described itself.
    #[test]
    fn every_struct_of_a_result_is_described() {
        let all = classes();
        let names: Vec<_> = all.iter().map(|class| class.name).collect();
        for class in all.iter().filter(|class| class.table.is_none()) {
            assert!(!class.text.is_empty(), "{} has no comment", class.name);
            for key in &class.keys {
                for word in key.kind.split(|c: char| !c.is_alphanumeric()) {
                    let ours = word.ends_with("Result") || ["Quantiles", "Series", "Trace"].contains(&word);
                    assert!(!ours || names.contains(&word), "{}.{}: {word}", class.name, key.name);
                }
            }
        }
        let written = serde_json::to_value(Quantiles::default()).expect("serializable");
        let described = all.iter().find(|class| class.name == "Quantiles").expect("described");
        let keys: std::collections::BTreeSet<_> = described.keys.iter().map(|key| key.name).collect();
        assert!(written.as_object().expect("a table").keys().map(String::as_str).eq(keys));
    }

    #[test]
    fn every_key_has_a_text() {
        for (table, keys) in scenario_keys().0 {
            for k in keys {
                assert!(!k.text.is_empty(), "{table}.{} has no comment", k.name);
            }
        }
    }
}
