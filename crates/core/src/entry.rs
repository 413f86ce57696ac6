// SPDX-License-Identifier: MIT
//! The hosts and policies of the core's lists, with their parameters.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::fmt;
use std::ptr;
use std::sync::{PoisonError, RwLock};

pub(crate) const PARAMS_MAX: usize = 8;

/// SAFETY: `s` must be a valid NUL-terminated string that is never freed.
pub(crate) unsafe fn static_str(s: *const c_char) -> &'static str {
    if s.is_null() {
        return "";
    }
    CStr::from_ptr(s).to_str().unwrap_or("")
}

#[repr(C)]
pub(crate) struct RawParam {
    pub name: *const c_char,
    pub unit: *const c_char,
    pub text: *const c_char,
    pub min: u32,
    pub max: u32,
    pub initial: u32,
}

#[repr(C)]
pub(crate) struct RawValue {
    pub name: *const c_char,
    pub unit: *const c_char,
    pub text: *const c_char,
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct RawParams {
    pub value: [u32; PARAMS_MAX],
}

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RawHost {
    pub name: *const c_char,
    pub summary: *const c_char,
    pub source: *const c_char,
    pub params: *const RawParam,
    pub params_count: u8,
    pub wnd_use: u8,
    pub uses_random: u8,
    pub unbounded: u8,
    pub no_duties: u8,
    pub init: *const c_void,
    pub delay: *const c_void,
    pub on_data: *const c_void,
    pub on_deadline: *const c_void,
    pub on_app_read: *const c_void,
    pub on_ack_sent: *const c_void,
}

impl RawHost {
    pub fn name(&self) -> &'static str {
        // SAFETY: registry strings are constant.
        unsafe { static_str(self.name) }
    }
}

#[repr(C)]
pub(crate) struct RawPolicy {
    pub name: *const c_char,
    pub summary: *const c_char,
    pub source: *const c_char,
    pub params: *const RawParam,
    pub values: *const RawValue,
    pub params_count: u8,
    pub values_count: u8,
    pub state_bytes: u8,
    pub uses_random: u8,
    pub asked_on_read: u8,
    pub reads_arrivals: u8,
    pub init: *const c_void,
    pub order: *const c_void,
    pub observe: Option<unsafe extern "C" fn(*const c_void, *const RawParams, *mut u32)>,
}

extern "C" {
    fn aw_host_at(index: u32) -> *const RawHost;
    fn aw_host_find(name: *const c_char) -> *const RawHost;
    fn aw_policy_at(index: u32) -> *const RawPolicy;
    fn aw_policy_find(name: *const c_char) -> *const RawPolicy;
    fn aw_rival_at(index: u32) -> *const RawPolicy;
    fn aw_policy_validate(policy: *const RawPolicy) -> c_int;
    fn aw_params_init(params: *const RawParam, count: u32, p: *mut RawParams);
}

/// A host of the core's list: the rules of TCP.
#[derive(Clone, Copy)]
pub struct Host(pub(crate) &'static RawHost);

/// A policy of the core's lists, or one that was added to them.
#[derive(Clone, Copy)]
pub struct Policy(pub(crate) &'static RawPolicy);

/// What [`Policy::add`] added in this process.
static ADDED: RwLock<Vec<Policy>> = RwLock::new(Vec::new());

fn added() -> Vec<Policy> {
    ADDED.read().unwrap_or_else(PoisonError::into_inner).clone()
}

// SAFETY: entries of the lists are constant data.
unsafe impl Send for Host {}
// SAFETY: as above.
unsafe impl Sync for Host {}
// SAFETY: as above.
unsafe impl Send for Policy {}
// SAFETY: as above.
unsafe impl Sync for Policy {}

impl Host {
    /// The name of the host unless another is named.
    pub(crate) const DEFAULT: &'static str = "linux";

    /// All hosts in the list's order.
    pub fn all() -> impl Iterator<Item = Host> {
        // SAFETY: the core returns NULL past the end, otherwise constant data.
        (0u32..).map_while(|i| unsafe { aw_host_at(i).as_ref() }.map(Host))
    }

    /// The host with this name, in lower case; None if there is none.
    pub fn find(name: &str) -> Option<Host> {
        let name = CString::new(name).ok()?;
        // SAFETY: a valid string in, NULL or constant data out.
        unsafe { aw_host_find(name.as_ptr()).as_ref() }.map(Host)
    }

    /// One lower-case word.
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Its parameters' defaults.
    pub(crate) fn defaults(&self) -> RawParams {
        Entry::Host(*self).defaults()
    }
}

impl Policy {
    /// All policies in the list's order, then those that were added.
    pub fn all() -> impl Iterator<Item = Policy> {
        // SAFETY: the core returns NULL past the end, otherwise constant data.
        (0u32..).map_while(|i| unsafe { aw_policy_at(i).as_ref() }.map(Policy)).chain(added())
    }

    /// The rules of other stacks, to compare with; [`Policy::find`] knows them, too.
    pub fn rivals() -> impl Iterator<Item = Policy> {
        // SAFETY: the core returns NULL past the end, otherwise constant data.
        (0u32..).map_while(|i| unsafe { aw_rival_at(i).as_ref() }.map(Policy))
    }

    fn is_rival(&self) -> bool {
        Policy::rivals().any(|rival| ptr::eq(rival.0, self.0))
    }

    /// The policy with this name, in lower case; None if there is none.
    pub fn find(name: &str) -> Option<Policy> {
        let text = CString::new(name).ok()?;
        // SAFETY: a valid string in, NULL or constant data out.
        let listed = unsafe { aw_policy_find(text.as_ptr()).as_ref() }.map(Policy);
        listed.or_else(|| Policy::rivals().chain(added()).find(|policy| policy.name() == name))
    }

    /// Adds a policy to the list, until the process ends. Err, in words, if it breaks a rule of
    /// `policy.h`, has another name than this one, or the name is taken.
    ///
    /// # Safety
    ///
    /// `policy` points to a `struct aw_policy` of this version of the core. Whatever it refers to
    /// stays valid and constant.
    pub unsafe fn add(policy: *const c_void, name: &str) -> Result<Policy, String> {
        let broken = match aw_policy_validate(policy.cast()) {
            0 => None,
            -1 => Some("name, summary or source is missing, or the name is not one lower-case word"),
            -2 => Some("order is missing"),
            -3 => Some("state_bytes is more than AW_STATE_MAX_BYTES"),
            -4 => Some("a parameter lacks its name, or its default is outside its range"),
            _ => Some("a value lacks its name, or observe is missing"),
        };
        if let Some(what) = broken {
            return Err(what.into());
        }
        let policy = Policy(&*policy.cast());
        if policy.name() != name {
            return Err(format!("aw_policy_{name} is named \"{}\"", policy.name()));
        }
        if Entry::find(name).is_some() {
            return Err(format!("the name \"{name}\" is taken"));
        }
        ADDED.write().unwrap_or_else(PoisonError::into_inner).push(policy);
        Ok(policy)
    }

    /// One lower-case word, the same in files, on the command line and in sysctls.
    pub fn name(&self) -> &'static str {
        // SAFETY: registry strings are constant.
        unsafe { static_str(self.0.name) }
    }

    /// Whether the policy reads [`Event::random`](crate::Event::random) after connection setup; if not, it may be 0.
    pub fn uses_random(&self) -> bool {
        self.0.uses_random != 0
    }

    /// Descriptions of the numbers that [`Conn::observe`](crate::Conn::observe) returns, in the same
    /// order.
    pub fn values(&self) -> Vec<Value> {
        (0..usize::from(self.0.values_count))
            .map(|i| {
                // SAFETY: values holds values_count constant entries.
                let raw = unsafe { &*self.0.values.add(i) };
                // SAFETY: the strings of the values are constant.
                unsafe {
                    Value {
                        name: static_str(raw.name),
                        unit: static_str(raw.unit),
                        text: static_str(raw.text),
                    }
                }
            })
            .collect()
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Host").field(&self.name()).finish()
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Policy").field(&self.name()).finish()
    }
}

/// One parameter of a host or a policy.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Name with the unit as its suffix, such as "delay_ms".
    pub name: &'static str,
    /// Unit of all values: "segments", "ms", "bytes", "1/1000" or "choice".
    pub unit: &'static str,
    /// One sentence: what the parameter does.
    pub text: &'static str,
    /// The smallest value allowed.
    pub min: u32,
    /// The largest value allowed.
    pub max: u32,
    /// The default.
    pub initial: u32,
}

/// One value of a policy's state that can be observed from outside.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    /// Name with the unit as its suffix, such as "rate_segments".
    pub name: &'static str,
    /// Unit of the value, as in [`Param::unit`].
    pub unit: &'static str,
    /// One sentence; says what 0 means where that is special.
    pub text: &'static str,
}

/// What a choice can name: a host that stands alone, or a policy, which stands on a host.
#[derive(Clone, Copy, Debug)]
pub enum Entry {
    /// A host without a policy.
    Host(Host),
    /// A policy.
    Policy(Policy),
}

impl Entry {
    /// Every host, then every policy, then every rival.
    pub fn all() -> impl Iterator<Item = Entry> {
        Host::all().map(Entry::Host).chain(Policy::all().chain(Policy::rivals()).map(Entry::Policy))
    }

    /// The entry with this name, in lower case; None if there is none.
    pub fn find(name: &str) -> Option<Entry> {
        Host::find(name).map(Entry::Host).or_else(|| Policy::find(name).map(Entry::Policy))
    }

    /// "host", "policy", or "rival" for a policy that is the rule of another stack.
    pub fn kind(&self) -> &'static str {
        match self {
            Entry::Host(_) => "host",
            Entry::Policy(policy) if policy.is_rival() => "rival",
            Entry::Policy(_) => "policy",
        }
    }

    /// One lower-case word.
    pub fn name(&self) -> &'static str {
        match self {
            Entry::Host(host) => host.name(),
            Entry::Policy(policy) => policy.name(),
        }
    }

    /// One line for lists.
    pub fn summary(&self) -> &'static str {
        let text = match self {
            Entry::Host(host) => host.0.summary,
            Entry::Policy(policy) => policy.0.summary,
        };
        // SAFETY: registry strings are constant.
        unsafe { static_str(text) }
    }

    /// The RFC section, the code or the page of `spec/` that it follows.
    pub fn source(&self) -> &'static str {
        let text = match self {
            Entry::Host(host) => host.0.source,
            Entry::Policy(policy) => policy.0.source,
        };
        // SAFETY: registry strings are constant.
        unsafe { static_str(text) }
    }

    /// Private state of a policy for one connection, bytes; 0 for a host.
    pub fn state_bytes(&self) -> usize {
        match self {
            Entry::Host(_) => 0,
            Entry::Policy(policy) => policy.0.state_bytes.into(),
        }
    }

    /// What it asks of a host, by the names of `struct aw_policy`; of a host: nothing.
    pub fn asks(&self) -> Vec<&'static str> {
        let Entry::Policy(policy) = self else {
            return Vec::new();
        };
        let all = [
            ("reads_arrivals", policy.0.reads_arrivals),
            ("asked_on_read", policy.0.asked_on_read),
            ("uses_random", policy.0.uses_random),
        ];
        all.into_iter().filter(|(_, asked)| *asked != 0).map(|(name, _)| name).collect()
    }

    fn raw_params(&self) -> (*const RawParam, u8) {
        match self {
            Entry::Host(host) => (host.0.params, host.0.params_count),
            Entry::Policy(policy) => (policy.0.params, policy.0.params_count),
        }
    }

    /// The parameters, in the core's order.
    pub fn params(&self) -> Vec<Param> {
        let (list, count) = self.raw_params();
        (0..usize::from(count))
            .map(|i| {
                // SAFETY: the list holds that many constant entries.
                let raw = unsafe { &*list.add(i) };
                // SAFETY: the strings of the parameters are constant.
                unsafe {
                    Param {
                        name: static_str(raw.name),
                        unit: static_str(raw.unit),
                        text: static_str(raw.text),
                        min: raw.min,
                        max: raw.max,
                        initial: raw.initial,
                    }
                }
            })
            .collect()
    }

    /// Descriptions of what can be observed of a policy ([`Policy::values`]); none of a host.
    pub fn values(&self) -> Vec<Value> {
        match self {
            Entry::Host(_) => Vec::new(),
            Entry::Policy(policy) => policy.values(),
        }
    }

    fn defaults(&self) -> RawParams {
        let mut raw = RawParams::default();
        let (list, count) = self.raw_params();
        // SAFETY: the list holds that many constant entries.
        unsafe { aw_params_init(list, count.into(), &mut raw) };
        raw
    }

    /// Parameter values: the defaults, overridden by `named`.
    pub(crate) fn configure<'a>(
        &self,
        named: impl IntoIterator<Item = (&'a str, u32)>,
    ) -> Result<RawParams, String> {
        let mut raw = self.defaults();
        let params = self.params();
        let what = format!("{} {}", self.kind(), self.name());
        for (name, value) in named {
            let i = params.iter().position(|p| p.name == name).ok_or_else(|| {
                let names: Vec<_> = params.iter().map(|p| p.name).collect();
                format!(
                    "{what}: no parameter \"{name}\"; it has: {}",
                    if names.is_empty() { "none".into() } else { names.join(", ") }
                )
            })?;
            let p = &params[i];
            if value < p.min || value > p.max {
                return Err(format!(
                    "{what}: {name} = {value} is out of range; give {} to {} {}",
                    p.min, p.max, p.unit
                ));
            }
            raw.value[i] = value;
        }
        Ok(raw)
    }
}
