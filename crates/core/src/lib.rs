// SPDX-License-Identifier: MIT
//! Safe binding of the C policy core: event in, verdict out.
//!
//! The layouts below mirror `core/include/ackwise/*.h`; the tests compare them with the C
//! compiler's layout.
#![deny(missing_docs)]

#[cfg(test)]
mod layout;
pub mod ranges;

#[cfg(test)]
use ackwise_link as _;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_void, CStr, CString};
use std::fmt;
use std::sync::Arc;

/// Private state a policy may use, in bytes (`AW_STATE_MAX_BYTES`).
pub const STATE_MAX_BYTES: usize = 64;
const PARAMS_MAX: usize = 8;
const VALUES_MAX: usize = 4;
/// A deadline that never comes.
pub const NEVER_NS: u64 = u64::MAX;
/// The longest delay of an ACK that rail MAX_DELAY allows (`AW_MAX_DELAY_NS`).
pub const MAX_DELAY_NS: u64 = 500_000_000;
/// Maximum delay of ACKs for segments above a hole, in microseconds (`AW_COMPRESS_DELAY_US`), and
/// maximum number of such segments per ACK (`AW_COMPRESS_SEGMENTS`).
const COMPRESS_DELAY_US: u16 = 1000;
const COMPRESS_SEGMENTS: u8 = 44;
/// `AW_WND_USE_ALWAYS`.
const WND_USE_ALWAYS: u8 = 2;

/// What happened (`enum aw_event_kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EventKind {
    /// A segment with payload, or a FIN, arrived.
    Data = 0,
    /// An ACK left, pure or piggybacked on data.
    AckSent = 1,
    /// The deadline of the pending verdict passed.
    Deadline = 2,
    /// The application read from the receive buffer.
    AppRead = 3,
}

/// Where a segment falls in sequence space (`enum aw_order`; RFC 9293, 3.10.7.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Order {
    /// Advances RCV.NXT; no hole was open.
    In = 0,
    /// Above RCV.NXT: data before it is missing.
    Hole = 1,
    /// Advances RCV.NXT and fills all or part of a hole.
    Fills = 2,
    /// Below RCV.NXT: no new data.
    Duplicate = 3,
}

/// Bits of [`Event::flags`].
pub mod flag {
    /// Data: the segment carried PSH.
    pub const PSH: u16 = 0x01;
    /// Data: a FIN that our own FIN will not acknowledge.
    pub const FIN: u16 = 0x02;
    /// Data: the CE mark differs from that of the previous segment (RFC 8257, 3.2).
    pub const CE_CHANGE: u16 = 0x04;
    /// The socket or route asks for immediate ACKs.
    pub const QUICKACK: u16 = 0x08;
    /// Data: the upper limit of the window was raised.
    pub const WND_GREW: u16 = 0x10;
    /// ACK sent: it was piggybacked on a data segment.
    pub const PIGGYBACK: u16 = 0x20;
    /// Out-of-order data is queued.
    pub const HOLE_OPEN: u16 = 0x40;
    /// Data is unread and the reader waits for more (`SO_RCVLOWAT`).
    pub const READER_WAITS: u16 = 0x80;
    /// The ACK can be piggybacked on data of this host, so it may wait for that.
    pub const DELACK: u16 = 0x100;
}

/// One event for the policy (`struct aw_event`). Quantities are those after the event: with
/// [`EventKind::Data`], `unacked_bytes` includes the segment.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Event {
    /// Monotonic time, never less than in the previous event.
    pub now_ns: u64,
    /// 32 uniform bits, fresh for every event; 0 unless [`Policy::uses_random`].
    pub random: u32,
    /// Data: payload of the segment. Read: bytes copied. Otherwise 0.
    pub bytes: u32,
    /// Received in order and not yet covered by an ACK.
    pub unacked_bytes: u32,
    /// In the receive buffer, not yet read by the application.
    pub unread_bytes: u32,
    /// The window in the last ACK, counted from that ACK's number (RCV.WND).
    pub wnd_bytes: u32,
    /// The window that an ACK would advertise now, after SWS avoidance (RFC 9293, 3.8.6.2.2).
    pub wnd_next_bytes: u32,
    /// The largest window that the receive buffer allows now.
    pub wnd_max_bytes: u32,
    /// The receiver's estimate of the peer's segment size, more than 0.
    pub rcv_mss_bytes: u32,
    /// The MSS that this host advertised; 0: not known.
    pub mss_max_bytes: u32,
    /// The receiver's RTT estimate; 0: not known yet.
    pub rtt_us: u32,
    /// This host's retransmission timeout; 0: not known.
    pub rto_us: u32,
    /// The longest delay of an ACK on this host; 0: no limit.
    pub delay_max_us: u32,
    /// Data: wire segments that receive offload merged, at least 1.
    pub segments: u16,
    /// Bits of [`flag`].
    pub flags: u16,
    /// What the event is.
    pub kind: EventKind,
    /// Data: where the segment falls in sequence space.
    pub order: Order,
    /// Data above a hole: how long the segment may wait for an ACK, in microseconds; 0: not at all
    /// (see [`Conn::sack_delay_us`]).
    pub sack_delay_us: u16,
}

impl Event {
    /// An event of this kind with all other fields empty.
    pub fn new(kind: EventKind, now_ns: u64) -> Self {
        Event {
            now_ns,
            random: 0,
            bytes: 0,
            unacked_bytes: 0,
            unread_bytes: 0,
            wnd_bytes: 0,
            wnd_next_bytes: 0,
            wnd_max_bytes: 0,
            rcv_mss_bytes: 1,
            mss_max_bytes: 0,
            rtt_us: 0,
            rto_us: 0,
            delay_max_us: 0,
            segments: 1,
            flags: 0,
            kind,
            order: Order::In,
            sack_delay_us: 0,
        }
    }
}

/// The action of a verdict (`enum aw_action`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// No ACK is owed: disarm the timer.
    Nothing,
    /// An ACK is owed and leaves at this time, in nanoseconds.
    WaitUntil(u64),
    /// An ACK is owed and leaves now.
    SendNow,
}

/// Reason for a verdict: index into the list of reasons (`enum aw_reason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reason(pub u8);

impl Reason {
    /// The short name in counters and columns, such as "delay-timer"; "?" if there is no such
    /// reason.
    pub fn label(self) -> &'static str {
        // SAFETY: the core returns a static string for every number.
        unsafe { static_str(aw_reason_label(self.0.into())) }
    }
    /// One sentence for people; "?" if there is no such reason.
    pub fn text(self) -> &'static str {
        // SAFETY: the core returns a static string for every number.
        unsafe { static_str(aw_reason_text(self.0.into())) }
    }
    /// Origin of the reason: "wait", "policy", "rail" or "driver".
    pub fn source(self) -> &'static str {
        // SAFETY: the core returns a static string for every number.
        unsafe { static_str(aw_reason_source(self.0.into())) }
    }
    /// Every reason, in the order of the list.
    pub fn all() -> impl Iterator<Item = Reason> {
        (0u8..u8::MAX).map(Reason).take_while(|r| r.label() != "?")
    }
}

/// The answer to an event (`struct aw_verdict`): what the driver does, and why. It covers all
/// unacknowledged data and replaces the previous verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What to do.
    pub action: Action,
    /// Why now; or why not, while the ACK waits or none is owed.
    pub reason: Reason,
    /// Whether a rail made the verdict earlier than the policy's own.
    pub by_rail: bool,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct RawVerdict {
    deadline_ns: u64,
    action: u8,
    reason: u8,
    by_rail: u8,
    reserved: u8,
    reserved_word: u32,
}

/// `AW_WAIT` of `enum aw_action`.
const WAIT: u8 = 1;

impl From<RawVerdict> for Verdict {
    #[inline]
    fn from(raw: RawVerdict) -> Verdict {
        let action = match raw.action {
            WAIT => Action::WaitUntil(raw.deadline_ns),
            2 => Action::SendNow,
            _ => Action::Nothing,
        };
        Verdict { action, reason: Reason(raw.reason), by_rail: raw.by_rail != 0 }
    }
}

#[repr(C)]
struct RawParam {
    name: *const c_char,
    unit: *const c_char,
    text: *const c_char,
    min: u32,
    max: u32,
    initial: u32,
}

#[repr(C)]
struct RawValue {
    name: *const c_char,
    unit: *const c_char,
    text: *const c_char,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct RawParams {
    value: [u32; PARAMS_MAX],
}

#[repr(C)]
struct RawPolicy {
    name: *const c_char,
    summary: *const c_char,
    source: *const c_char,
    params: *const RawParam,
    values: *const RawValue,
    params_count: u8,
    values_count: u8,
    state_bytes: u8,
    acks_per_round: u8,
    uses_random: u8,
    wnd_use: u8,
    init: *const c_void,
    on_data: *const c_void,
    on_deadline: *const c_void,
    on_app_read: *const c_void,
    on_ack_sent: *const c_void,
    observe: Option<unsafe extern "C" fn(*const c_void, *const RawParams, *mut u32)>,
}

impl RawPolicy {
    /// Whether every read must be reported: it may change the policy's verdict or use a random
    /// number.
    #[inline]
    fn is_told_of_reads(&self) -> bool {
        !self.on_app_read.is_null() || self.uses_random != 0
    }
}

#[derive(Clone)]
#[repr(C)]
struct RawCompress {
    duplicate_acks: u8,
    waiting: u8,
}

#[derive(Clone)]
#[repr(C)]
struct RawConn {
    policy: *const RawPolicy,
    params: *const RawParams,
    owed_since_ns: u64,
    pending: RawVerdict,
    rails: u32,
    flight: [u32; 3],
    compress: RawCompress,
    news: u8,
    reserved: u8,
    state: [u64; STATE_MAX_BYTES / 8],
}

extern "C" {
    fn aw_rail_name(bit: u32) -> *const c_char;
    fn aw_rail_text(bit: u32) -> *const c_char;
    fn aw_rail_set(bit: u32) -> *const c_char;
    fn aw_reason_label(reason: u32) -> *const c_char;
    fn aw_reason_text(reason: u32) -> *const c_char;
    fn aw_reason_source(reason: u32) -> *const c_char;
    fn aw_policy_at(index: u32) -> *const RawPolicy;
    fn aw_policy_find(name: *const c_char) -> *const RawPolicy;
    fn aw_params_init(policy: *const RawPolicy, p: *mut RawParams);
    fn aw_conn_init(
        conn: *mut RawConn,
        policy: *const RawPolicy,
        params: *const RawParams,
        rails: u32,
        e: *const Event,
    );
    fn aw_decide(conn: *mut RawConn, e: *const Event) -> RawVerdict;
}

/// SAFETY: `s` must be a valid NUL-terminated string that is never freed.
unsafe fn static_str(s: *const c_char) -> &'static str {
    if s.is_null() {
        return "";
    }
    CStr::from_ptr(s).to_str().unwrap_or("")
}

/// A policy of the core's registry.
#[derive(Clone, Copy)]
pub struct Policy(&'static RawPolicy);

// SAFETY: registry entries are constant data.
unsafe impl Send for Policy {}
// SAFETY: registry entries are constant data.
unsafe impl Sync for Policy {}

/// One parameter of a policy.
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

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Policy").field(&self.name()).finish()
    }
}

impl Policy {
    /// All policies in the registry's order.
    pub fn all() -> impl Iterator<Item = Policy> {
        // SAFETY: the core returns NULL past the end, otherwise constant data.
        (0u32..).map_while(|i| unsafe { aw_policy_at(i).as_ref() }.map(Policy))
    }

    /// The policy with this name, in lower case; None if there is none.
    pub fn find(name: &str) -> Option<Policy> {
        let name = CString::new(name).ok()?;
        // SAFETY: a valid string in, NULL or constant data out.
        unsafe { aw_policy_find(name.as_ptr()).as_ref() }.map(Policy)
    }

    /// One lower-case word, the same in files, on the command line and in sysctls.
    pub fn name(&self) -> &'static str {
        // SAFETY: registry strings are constant.
        unsafe { static_str(self.0.name) }
    }
    /// Whether this is the kernel's own code, without calls to a policy.
    pub fn is_stock(&self) -> bool {
        self.name() == "linux"
    }
    /// One line for lists.
    pub fn summary(&self) -> &'static str {
        // SAFETY: registry strings are constant.
        unsafe { static_str(self.0.summary) }
    }
    /// The RFC section or the page of `spec/` that the policy follows.
    pub fn source(&self) -> &'static str {
        // SAFETY: registry strings are constant.
        unsafe { static_str(self.0.source) }
    }
    /// Whether the policy reads [`Event::random`] after connection setup; if not, it may be 0.
    pub fn uses_random(&self) -> bool {
        self.0.uses_random != 0
    }
    /// Private state of one connection, at most [`STATE_MAX_BYTES`].
    pub fn state_bytes(&self) -> usize {
        self.0.state_bytes.into()
    }

    /// The parameters, in the order of their values in [`Params`].
    pub fn params(&self) -> Vec<Param> {
        (0..usize::from(self.0.params_count))
            .map(|i| {
                // SAFETY: params holds params_count constant entries.
                let raw = unsafe { &*self.0.params.add(i) };
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

    /// Descriptions of the numbers that [`Conn::observe`] returns, in the same order.
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

    /// Parameter values: the defaults, overridden by `named`.
    ///
    /// # Errors
    /// An unknown name or a value out of range; the message gives the valid choices.
    pub fn configure<'a>(&self, named: impl IntoIterator<Item = (&'a str, u32)>) -> Result<Params, String> {
        let mut raw = RawParams { value: [0; PARAMS_MAX] };
        // SAFETY: both point to valid data.
        unsafe { aw_params_init(self.0, &mut raw) };
        let params = self.params();
        for (name, value) in named {
            let i = params.iter().position(|p| p.name == name).ok_or_else(|| {
                let names: Vec<_> = params.iter().map(|p| p.name).collect();
                format!(
                    "policy {}: no parameter \"{name}\"; it has: {}",
                    self.name(),
                    if names.is_empty() { "none".into() } else { names.join(", ") }
                )
            })?;
            let p = &params[i];
            if value < p.min || value > p.max {
                return Err(format!(
                    "policy {}: {name} = {value} is out of range; give {} to {} {}",
                    self.name(),
                    p.min,
                    p.max,
                    p.unit
                ));
            }
            raw.value[i] = value;
        }
        Ok(Params(Arc::new(raw)))
    }
}

/// Parameter values, shared by any number of connections.
#[derive(Clone)]
pub struct Params(Arc<RawParams>);

/// A protocol duty towards the peer that every policy must fulfil (core/include/ackwise/rails.def).
#[derive(Clone, Copy, Debug)]
pub struct Rail {
    /// The name on the command line and in plans, such as "max-delay".
    pub name: &'static str,
    /// One bit of the set of rails in force.
    pub bit: u32,
    /// One sentence: what the rail ensures.
    pub text: &'static str,
    /// The smallest set that contains it: "default", "network" or "all".
    pub set: &'static str,
}

/// Every rail, in the order of its bit.
pub fn rails() -> impl Iterator<Item = Rail> {
    // SAFETY: the core returns a static string for every rail, null after the last.
    let word = |of: unsafe extern "C" fn(u32) -> *const c_char, number| unsafe {
        let text = of(number);
        (!text.is_null()).then(|| static_str(text))
    };
    (0..u32::BITS).map_while(move |number| {
        Some(Rail {
            name: word(aw_rail_name, number)?,
            bit: 1 << number,
            text: word(aw_rail_text, number)?,
            set: word(aw_rail_set, number)?,
        })
    })
}

/// Bits of the rails in force unless others are named.
pub fn default_rails() -> u32 {
    rails().filter(|r| r.set == "default").map(|r| r.bit).sum()
}

/// Bits of the rails with these names.
///
/// # Errors
/// An unknown name; the message lists the known ones.
pub fn rails_by_name<S: AsRef<str>>(names: &[S]) -> Result<u32, String> {
    names.iter().try_fold(0, |set, name| {
        let name = name.as_ref();
        rails().find(|r| r.name == name).map(|r| set | r.bit).ok_or_else(|| {
            let known: Vec<_> = rails().map(|r| r.name).collect();
            format!("no rail \"{name}\"; there are: {}", known.join(", "))
        })
    })
}

/// A policy by name with its parameters and rails, in the form that callers write.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyChoice {
    /// The name of the policy, see [`Policy::find`].
    pub name: String,
    /// Parameter name to value; parameters not named keep their default.
    #[serde(default)]
    pub params: BTreeMap<String, u32>,
    /// Names of the rails in force; None: the default set.
    #[serde(default)]
    pub rails: Option<Vec<String>>,
}

impl Default for PolicyChoice {
    /// The policy of a host that is not configured otherwise.
    fn default() -> Self {
        PolicyChoice::new("linux")
    }
}

impl PolicyChoice {
    /// A policy with default parameters and rails.
    pub fn new(name: &str) -> Self {
        PolicyChoice { name: name.to_owned(), params: BTreeMap::new(), rails: None }
    }

    /// The policy, parameters and rails that these names refer to.
    ///
    /// # Errors
    /// An unknown policy, parameter or rail, or a value out of range; the message gives the valid
    /// choices.
    pub fn resolve(&self) -> Result<Resolved, String> {
        let policy = Policy::find(&self.name).ok_or_else(|| {
            let known: Vec<_> = Policy::all().map(|p| p.name()).collect();
            format!("no policy \"{}\"; there are: {}", self.name, known.join(", "))
        })?;
        let params = policy.configure(self.params.iter().map(|(name, &value)| (name.as_str(), value)))?;
        let rails = match &self.rails {
            Some(names) => rails_by_name(names)?,
            None => default_rails(),
        };
        Ok(Resolved { policy, params, rails })
    }
}

/// A policy with its parameters and rails, ready for connections.
#[derive(Clone)]
pub struct Resolved {
    /// The policy.
    pub policy: Policy,
    /// Its parameter values.
    pub params: Params,
    /// Bits of the rails in force ([`Rail::bit`]).
    pub rails: u32,
}

impl Resolved {
    /// A new connection; `e` supplies time and random bits.
    pub fn connect(&self, e: &Event) -> Conn {
        Conn::new(self.policy, &self.params, self.rails, e)
    }
}

/// One connection's policy, state and rails. A clone is independent.
#[derive(Clone)]
pub struct Conn {
    raw: RawConn,
    params: Params,
}

// SAFETY: its pointers lead to constant data and to `params`, which is immutable.
unsafe impl Send for Conn {}

impl Conn {
    /// A new connection; `e` supplies time and random bits.
    pub fn new(policy: Policy, params: &Params, rails: u32, e: &Event) -> Conn {
        let params = params.clone();
        let empty =
            RawVerdict { deadline_ns: 0, action: 0, reason: 0, by_rail: 0, reserved: 0, reserved_word: 0 };
        let mut raw = RawConn {
            policy: policy.0,
            params: Arc::as_ptr(&params.0),
            owed_since_ns: NEVER_NS,
            pending: empty,
            rails,
            flight: [0; 3],
            compress: RawCompress { duplicate_acks: 0, waiting: 0 },
            news: 0,
            reserved: 0,
            state: [0; STATE_MAX_BYTES / 8],
        };
        // SAFETY: all pointers are valid; params is stored beside raw and outlives it.
        unsafe { aw_conn_init(&mut raw, policy.0, Arc::as_ptr(&params.0), rails, e) };
        Conn { raw, params }
    }

    /// The verdict in force after event `e`.
    #[inline]
    pub fn decide(&mut self, e: &Event) -> Verdict {
        debug_assert!(std::ptr::eq(self.raw.params, Arc::as_ptr(&self.params.0)));
        // SAFETY: raw was initialised by aw_conn_init; e is a valid event.
        unsafe { aw_decide(&mut self.raw, e) }.into()
    }

    /// Whether a read must be reported to the policy, given how much of the window in the last ACK
    /// is left and how large a window the buffer allows now. If false, it need not be (as in
    /// `aw_decide`; the result may be true for more reads than necessary). A read is no news when
    /// nothing is unacknowledged, or when the data arrived just now (`at_once`), so that everything
    /// but the window is unchanged.
    #[inline]
    pub fn read_is_news(&self, wnd_left_bytes: u32, wnd_max_bytes: u32, at_once: bool) -> bool {
        // SAFETY: the connection was created with an entry of the registry.
        let policy = unsafe { &*self.raw.policy };
        let is_owed = self.raw.owed_since_ns != NEVER_NS;
        let stays = || {
            at_once
                && self.raw.pending.action == WAIT
                && self.raw.compress.waiting == 0
                && !policy.is_told_of_reads()
        };
        is_owed && !stays() || policy.wnd_use == WND_USE_ALWAYS || wnd_left_bytes <= wnd_max_bytes / 2
    }

    /// [`Event::sack_delay_us`] on a host configured like Linux. `has_room`: the SACK option has
    /// room for the segment beside those already waiting.
    #[inline]
    pub fn sack_delay_us(&self, has_room: bool) -> u16 {
        let waiting = self.raw.compress.waiting;
        if waiting >= COMPRESS_SEGMENTS || (waiting > 0 && !has_room) {
            0
        } else {
            COMPRESS_DELAY_US
        }
    }

    /// Counts an ACK that left as one of the duplicates before segments share an ACK (Linux also
    /// counts the ACK of a segment that leaves a hole open).
    #[inline]
    pub fn count_duplicate(&mut self) {
        self.raw.compress.duplicate_acks = self.raw.compress.duplicate_acks.max(1);
    }

    /// The observable values of the policy's current state; empty if the policy has none.
    pub fn observe(&self) -> Vec<u32> {
        // SAFETY: the connection was created with an entry of the registry.
        let policy = unsafe { &*self.raw.policy };
        let mut out = [0; VALUES_MAX];
        if let Some(observe) = policy.observe {
            // SAFETY: state and parameters belong to this policy, which writes at most VALUES_MAX
            // numbers.
            unsafe { observe(self.raw.state.as_ptr().cast(), self.raw.params, out.as_mut_ptr()) };
        }
        out[..usize::from(policy.values_count)].to_vec()
    }
}
