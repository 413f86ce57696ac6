// SPDX-License-Identifier: MIT
//! Safe binding of the C core: event in, verdict out. A host keeps the rules of TCP, and a policy may
//! place orders with it.
//!
//! The layouts below mirror `core/include/ackwise/*.h`; the tests compare them with the C
//! compiler's layout.
#![deny(missing_docs)]

mod entry;
#[cfg(test)]
mod layout;
pub mod ranges;
mod share;

#[cfg(test)]
use ackwise_link as _;
use entry::{static_str, RawHost, RawParams, RawPolicy};
pub use entry::{Entry, Host, Param, Policy, Value};
use std::collections::BTreeMap;
use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;

const STATE_MAX_BYTES: usize = 64;
const HOST_STATE_MAX_BYTES: usize = 24;
const VALUES_MAX: usize = 4;
/// A deadline that never comes.
pub const NEVER_NS: u64 = u64::MAX;
/// The longest delay of an ACK (`AW_DELAY_MAX_NS`; RFC 9293, 3.8.6.3).
pub const DELAY_MAX_NS: u64 = 500_000_000;
/// The shortest time of an order (`AW_DELAY_MIN_NS`).
pub const DELAY_MIN_NS: u64 = 50_000;
const WND_USE_NEVER: u8 = 0;
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

/// Where a segment falls in sequence space (`enum aw_seq`; RFC 9293, 3.10.7.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Seq {
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

/// One event at a socket (`struct aw_event`). Quantities are those after the event: with
/// [`EventKind::Data`], `unacked_bytes` includes the segment.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Event {
    /// Monotonic time, never less than in the previous event.
    pub now_ns: u64,
    /// 32 uniform bits, fresh for every event; 0 unless [`Policy::uses_random`]
    /// (a host may read those of the first event).
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
    pub seq: Seq,
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
            seq: Seq::In,
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
    /// Origin of the reason: "wait", "policy" (or the host in its place), "duty" (of the host, whatever
    /// the policy) or "driver".
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
    /// Whether a duty of the host set the action or the time.
    pub by_duty: bool,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct RawVerdict {
    deadline_ns: u64,
    action: u8,
    reason: u8,
    by_duty: u8,
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
        Verdict { action, reason: Reason(raw.reason), by_duty: raw.by_duty != 0 }
    }
}

#[derive(Clone)]
#[repr(C)]
struct RawOrder {
    bytes: u32,
    delay_ns: u32,
}

#[derive(Clone)]
#[repr(C)]
struct RawAccount {
    last_ns: u64,
    bytes: u32,
    asked_bytes: u32,
    others: [u32; 4],
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
    host: *const RawHost,
    policy: *const RawPolicy,
    host_params: *const RawParams,
    params: *const RawParams,
    owed_since_ns: u64,
    due_ns: u64,
    pending: RawVerdict,
    order: RawOrder,
    account: RawAccount,
    flight: [u64; 2],
    compress: RawCompress,
    unacked_bytes: u32,
    news: u8,
    unbounded: u8,
    questions: u16,
    host_state: [u64; HOST_STATE_MAX_BYTES / 8],
    state: [u64; STATE_MAX_BYTES / 8],
}

extern "C" {
    fn aw_reason_label(reason: u32) -> *const c_char;
    fn aw_reason_text(reason: u32) -> *const c_char;
    fn aw_reason_source(reason: u32) -> *const c_char;
    fn aw_conn_init(
        conn: *mut RawConn,
        host: *const RawHost,
        host_params: *const RawParams,
        policy: *const RawPolicy,
        params: *const RawParams,
        e: *const Event,
    );
    fn aw_decide(conn: *mut RawConn, e: *const Event) -> RawVerdict;
}

/// A receiver's rules in the form that callers write: a policy on a host, or a host alone.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "Written")]
pub struct PolicyChoice {
    /// The name of a policy, or of a host that stands alone ([`Entry::find`]).
    pub name: String,
    /// Parameters of what is named: name to value; those not given keep their default.
    pub params: BTreeMap<String, u32>,
    /// The host on which a policy stands; None: `linux`.
    pub host: Option<String>,
    /// Whether the sender's flight and window bound the orders of a policy; if not, as in published
    /// algorithms, only the longest delay does.
    pub clamp: bool,
}

/// [`PolicyChoice`] as it is read.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    #[serde(default)]
    params: BTreeMap<String, u32>,
    #[serde(default)]
    host: Option<String>,
    #[serde(default = "yes")]
    clamp: bool,
    #[serde(default)]
    rails: Option<serde::de::IgnoredAny>,
}

fn yes() -> bool {
    true
}

impl TryFrom<Written> for PolicyChoice {
    type Error = &'static str;

    fn try_from(w: Written) -> Result<Self, Self::Error> {
        if w.rails.is_some() {
            return Err("there are no \"rails\": they are duties of the host, which always keeps them; \
                        \"clamp\": false lifts the bounds of flight and window");
        }
        Ok(PolicyChoice { name: w.name, params: w.params, host: w.host, clamp: w.clamp })
    }
}

impl Default for PolicyChoice {
    /// A host that is not configured otherwise.
    fn default() -> Self {
        PolicyChoice::new(Host::DEFAULT)
    }
}

impl PolicyChoice {
    /// A policy on `linux`, or a host alone, with default parameters.
    pub fn new(name: &str) -> Self {
        PolicyChoice { name: name.to_owned(), params: BTreeMap::new(), host: None, clamp: true }
    }

    /// What these names refer to.
    ///
    /// # Errors
    /// An unknown policy, host or parameter, a value out of range, or a host that would stand on
    /// another; the message gives the valid choices.
    pub fn resolve(&self) -> Result<Resolved, String> {
        let known = |names: Vec<_>| names.join(", ");
        let entry = Entry::find(&self.name).ok_or_else(|| {
            let names = known(Entry::all().map(|e| e.name()).collect());
            format!("no policy or host \"{}\"; there are: {names}", self.name)
        })?;
        let params = entry.configure(self.params.iter().map(|(name, &value)| (name.as_str(), value)))?;
        let mut setting = match (entry, self.host.as_deref()) {
            (Entry::Host(host), Some(named)) if named != host.name() => {
                return Err(format!("{} is a host and cannot stand on host {named}", host.name()));
            }
            (Entry::Host(host), _) => {
                Setting { host: *host.0, policy: None, host_params: params, params: RawParams::default() }
            }
            (Entry::Policy(policy), named) => {
                let named = named.unwrap_or(Host::DEFAULT);
                let host = Host::find(named).ok_or_else(|| {
                    let names = known(Host::all().map(|h| h.name()).collect());
                    format!("no host \"{named}\"; there are: {names}")
                })?;
                Setting { host: *host.0, policy: Some(policy), host_params: host.defaults(), params }
            }
        };
        if !self.clamp {
            setting.host.unbounded = 1;
        }
        Ok(Resolved(Arc::new(setting)))
    }
}

struct Setting {
    /// With the choice's own `unbounded`.
    host: RawHost,
    policy: Option<Policy>,
    host_params: RawParams,
    params: RawParams,
}

// SAFETY: a setting is not changed, and its pointers lead to constant data.
unsafe impl Send for Setting {}
// SAFETY: as above.
unsafe impl Sync for Setting {}

/// A host and its policy, if any, with their parameters: ready for any number of connections.
#[derive(Clone)]
pub struct Resolved(Arc<Setting>);

impl Resolved {
    /// The name of the host.
    pub fn host(&self) -> &'static str {
        self.0.host.name()
    }

    /// The policy; None: the host alone.
    pub fn policy(&self) -> Option<Policy> {
        self.0.policy
    }

    /// The name of the policy or, without one, of the host.
    pub fn name(&self) -> &'static str {
        self.0.policy.map_or(self.host(), |p| p.name())
    }

    /// Whether the sender's flight and window bound the orders of the policy; false without one.
    pub fn is_clamped(&self) -> bool {
        self.0.policy.is_some() && self.0.host.unbounded == 0
    }

    /// A new connection; `e` supplies time, random bits and the segment size.
    pub fn connect(&self, e: &Event) -> Conn {
        let (setting, policy) = (self.clone(), self.0.policy);
        let mut raw = MaybeUninit::uninit();
        // SAFETY: aw_conn_init writes the whole connection; the setting is stored beside it and
        // outlives it.
        let raw = unsafe {
            let (host, s) = (&setting.0.host, &setting.0);
            let policy = policy.map_or(ptr::null(), |p| ptr::from_ref(p.0));
            aw_conn_init(raw.as_mut_ptr(), host, &s.host_params, policy, &s.params, e);
            raw.assume_init()
        };
        Conn { raw, setting }
    }
}

/// One connection: its host's state, its policy's, and the verdict in force. A clone is independent.
#[derive(Clone)]
pub struct Conn {
    raw: RawConn,
    setting: Resolved,
}

// SAFETY: its pointers lead to constant data and to `setting`, which is immutable.
unsafe impl Send for Conn {}

impl Conn {
    /// The verdict in force after event `e`.
    #[inline]
    pub fn decide(&mut self, e: &Event) -> Verdict {
        debug_assert!(ptr::eq(self.raw.host, &self.setting.0.host));
        // SAFETY: raw was initialised by aw_conn_init; e is a valid event.
        unsafe { aw_decide(&mut self.raw, e) }.into()
    }

    /// Whether a read must be reported, given how much of the window in the last ACK is left and how
    /// large a window the buffer allows now. If false, it need not be (as in `aw_decide`; the result
    /// may be true for more reads than necessary). A read is no news when nothing is unacknowledged,
    /// or when the data arrived just now (`at_once`) and waits, so that everything but the window is
    /// unchanged.
    #[inline]
    pub fn read_is_news(&self, wnd_left_bytes: u32, wnd_max_bytes: u32, at_once: bool) -> bool {
        let (conn, setting) = (&self.raw, &self.setting.0);
        let is_owed = conn.owed_since_ns != NEVER_NS;
        let waits = || {
            // Without an order, the host's own rules for pushed data apply.
            let is_answered = conn.account.bytes == conn.account.asked_bytes;
            let is_left = conn.order.bytes > 0 && (conn.order.bytes > conn.unacked_bytes || is_answered);
            let is_ordered = is_left || setting.host.wnd_use == WND_USE_NEVER;
            let is_asked = setting.policy.is_some_and(|p| p.0.asked_on_read != 0);
            conn.pending.action == WAIT && conn.compress.waiting == 0 && is_ordered && !is_asked
        };
        is_owed && !(at_once && waits())
            || setting.host.wnd_use == WND_USE_ALWAYS
            || wnd_left_bytes <= wnd_max_bytes / 2
    }

    /// How much plain data may wait without a question or an ACK: less than the order's bytes or,
    /// without an order, the host's `own_bytes` (`aw_may_wait_bytes`).
    #[inline]
    pub fn may_wait_bytes(&self, own_bytes: u32) -> u32 {
        self.raw.order.bytes.checked_sub(1).unwrap_or(own_bytes)
    }

    /// How often the policy was asked, modulo 2^16.
    pub fn questions(&self) -> u16 {
        self.raw.questions
    }

    /// The observable values of the policy's current state; empty if there are none.
    pub fn observe(&self) -> Vec<u32> {
        let mut out = [0; VALUES_MAX];
        let Some((raw, observe)) = self.setting.0.policy.and_then(|p| Some((p.0, p.0.observe?))) else {
            return Vec::new();
        };
        // SAFETY: state and parameters belong to this policy, which writes at most VALUES_MAX
        // numbers.
        unsafe { observe(self.raw.state.as_ptr().cast(), self.raw.params, out.as_mut_ptr()) };
        out[..usize::from(raw.values_count)].to_vec()
    }
}
