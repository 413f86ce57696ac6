// SPDX-License-Identifier: MIT
//! One declaration for each key of a scenario or a result: its type, meaning, default and bounds.
//! `keys!` makes the struct that serde reads or writes, the check of its bounds and the description
//! for callers from it; `choice!` does the same for the words of an enum.

use ackwise_core::PolicyChoice;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A key, as described to callers.
#[derive(Clone, Debug, Serialize)]
pub struct Key {
    pub name: &'static str,
    /// Type in the engine, such as `u64`.
    pub kind: &'static str,
    /// Meaning of the key.
    pub text: String,
    /// Possible values; empty: not a choice.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// Absent: the key is required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Minimum and maximum value; absent: those of the type.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
    /// Disciplines to which the key applies; empty: it does not depend on the discipline.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disciplines: Vec<String>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Bounds {
    pub low: u64,
    pub high: u64,
}

/// The part of a key's description that its declaration contains.
pub(crate) struct Declared {
    pub name: &'static str,
    pub kind: &'static str,
    /// Lines of its doc comment.
    pub text: &'static [&'static str],
    pub choices: fn() -> Vec<String>,
    pub bounds: Option<Bounds>,
}

/// The type of a key.
pub(crate) trait KeyType {
    /// Possible values; empty: not a choice.
    fn choices() -> Vec<String> {
        Vec::new()
    }

    /// The first number out of bounds, for a message.
    fn outside(&self, _bounds: Bounds) -> Option<String> {
        None
    }
}

impl KeyType for bool {}
impl KeyType for String {}
impl KeyType for PolicyChoice {}

impl KeyType for u32 {
    fn outside(&self, bounds: Bounds) -> Option<String> {
        u64::from(*self).outside(bounds)
    }
}

impl KeyType for u64 {
    fn outside(&self, bounds: Bounds) -> Option<String> {
        (!(bounds.low..=bounds.high).contains(self)).then(|| self.to_string())
    }
}

impl KeyType for f64 {
    fn outside(&self, bounds: Bounds) -> Option<String> {
        (!(bounds.low as f64..=bounds.high as f64).contains(self)).then(|| self.to_string())
    }
}

impl<T: KeyType> KeyType for Option<T> {
    fn outside(&self, bounds: Bounds) -> Option<String> {
        self.as_ref().and_then(|value| value.outside(bounds))
    }
}

impl<T: KeyType> KeyType for BTreeMap<String, T> {}

impl<T: KeyType> KeyType for Vec<T> {
    fn outside(&self, bounds: Bounds) -> Option<String> {
        self.iter().find_map(|value| value.outside(bounds))
    }
}

/// Checks that a key of the table `at` (empty: the scenario itself) is within its bounds.
pub(crate) fn within(at: &str, key: &str, value: &impl KeyType, low: u64, high: u64) -> Result<(), String> {
    let Some(value) = value.outside(Bounds { low, high }) else {
        return Ok(());
    };
    let dot = if at.is_empty() { "" } else { "." };
    Err(format!("{at}{dot}{key} = {value} is out of range; give {low} to {high}"))
}

/// A struct of keys.
pub(crate) trait Table {
    /// Name of the struct.
    const NAME: &'static str;
    /// Lines of the struct's doc comment.
    const ABOUT: &'static [&'static str];
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
            const NAME: &'static str = stringify!($name);
            const ABOUT: &'static [&'static str] = &[$($about),*];
            const KEYS: &'static [crate::keys::Declared] = &[
                $(crate::keys::Declared {
                    name: stringify!($field),
                    kind: stringify!($type),
                    text: &[$($doc),*],
                    choices: <$type as crate::keys::KeyType>::choices,
                    bounds: crate::keys::bounds!($($low, $high)?),
                },)*
            ];

            // Not every table has bounds.
            #[allow(unused_variables)]
            fn check_bounds(&self, at: &str) -> Result<(), String> {
                $($(crate::keys::within(at, stringify!($field), &self.$field, $low, $high)?;)?)*
                Ok(())
            }
        }

        impl crate::keys::KeyType for $name {}
    };
}
pub(crate) use keys;

/// Declares an enum whose variants are the possible values of a key.
macro_rules! choice {
    (
        $(#[$about:meta])*
        pub enum $name:ident {
            $($(#[$word_about:meta])* $word:ident,)*
        }
    ) => {
        $(#[$about])*
        pub enum $name {
            $($(#[$word_about])* $word,)*
        }

        impl crate::keys::KeyType for $name {
            fn choices() -> Vec<String> {
                vec![$(crate::keys::word(&$name::$word)),*]
            }
        }
    };
}
pub(crate) use choice;

/// Serde's text for a value without fields.
pub(crate) fn word(value: &impl Serialize) -> String {
    let written = serde_json::to_value(value).expect("serializable");
    written.as_str().expect("a word").to_string()
}

macro_rules! bounds {
    () => {
        None
    };
    ($low:literal, $high:expr) => {
        Some(crate::keys::Bounds { low: $low, high: $high })
    };
}
pub(crate) use bounds;
