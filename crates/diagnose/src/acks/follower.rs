// SPDX-License-Identifier: MIT
//! A policy of the core that follows a receiver: its decisions on the same arrivals.
//!
//! Whatever it decides, it is told of the receiver's own ACKs, so that one difference does not
//! cause the next.

use ackwise_core::{Action, Conn, Event, EventKind, PolicyChoice, Resolved, NEVER_NS};
use serde::Serialize;
use std::cell::OnceCell;
use std::rc::Rc;

/// Label in verdicts, name of the policy or host, host under the policy (None: Linux), parameters.
type Candidate = (&'static str, &'static str, Option<&'static str>, &'static [(&'static str, u32)]);

/// Policies with the settings to distinguish. `delayed` with one segment is `every`. What the RFCs
/// describe stands on them alone; what only a policy for Linux does stands on Linux.
pub(super) const CANDIDATES: &[Candidate] = &[
    ("every", "every", Some("rfc"), &[]),
    ("delayed", "delayed", Some("rfc"), &[]),
    ("delayed:delay_ms=40", "delayed", Some("rfc"), &[("delay_ms", 40)]),
    ("delayed:delay_ms=500", "delayed", Some("rfc"), &[("delay_ms", 500)]),
    ("delayed:segments=4", "delayed", None, &[("segments", 4)]),
    ("delayed:segments=8", "delayed", None, &[("segments", 8)]),
    ("delayed:segments=16", "delayed", None, &[("segments", 16)]),
    ("linux", "linux", None, &[]),
    ("bsd", "bsd", None, &[]),
    ("ratelimit", "ratelimit", None, &[]),
    ("dynamic", "dynamic", None, &[]),
    ("greedy", "greedy", None, &[]),
    ("a3", "a3", None, &[]),
    ("a3fewer", "a3fewer", None, &[]),
    ("csa3", "csa3", None, &[]),
];

thread_local! {
    static RESOLVED: OnceCell<Rc<Vec<Option<Resolved>>>> = const { OnceCell::new() };
}

/// The candidates; None where the core does not provide one.
fn resolved() -> Rc<Vec<Option<Resolved>>> {
    RESOLVED.with(|cell| cell.get_or_init(|| Rc::new(resolve_all())).clone())
}

fn resolve_all() -> Vec<Option<Resolved>> {
    let resolve = |&(_, policy, host, params): &Candidate| {
        let params = params.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
        let host = host.map(str::to_owned);
        PolicyChoice { params, host, ..PolicyChoice::new(policy) }.resolve().ok()
    };
    CANDIDATES.iter().map(resolve).collect()
}

/// An ACK that the policy would have sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fire {
    pub time_ns: u64,
    pub number: u64,
}

/// How often the policy would have sent the receiver's ACK.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Score {
    /// Number of ACKs that the policy was compared on.
    pub acks: u32,
    /// Number of these that it explains: it would have sent the same ACK at about the same time.
    pub explained: u32,
    /// Whether a random value was fitted to the first ACKs.
    pub is_fitted: bool,
}

/// What the policy does since the receiver's last ACK.
#[derive(Clone, Copy)]
enum Stand {
    /// It would have sent an ACK.
    Fired(Fire),
    /// It waits until then; [`NEVER_NS`]: for data.
    Waits(u64),
}

const WAITS_FOR_DATA: Stand = Stand::Waits(NEVER_NS);

#[derive(Clone)]
pub(super) struct Follower {
    /// Index in [`CANDIDATES`].
    place: u8,
    /// Number of the receiver's random values learnt from its ACKs.
    learnt: u8,
    acks: u32,
    explained: u32,
    stand: Stand,
    conn: Conn,
}

// Each direction with data has one for each candidate.
const _: () = assert!(std::mem::size_of::<Follower>() <= 272);

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.name(), self.score())
    }
}

fn start(random: u32) -> Event {
    let mut event = Event::new(EventKind::Data, 0);
    event.random = random;
    event
}

pub(super) fn followers() -> Vec<Follower> {
    let follower = |(place, resolved): (u8, &Option<Resolved>)| {
        // The random value is unknown: assume the longest wait until ACKs show it.
        let conn = resolved.as_ref()?.connect(&start(u32::MAX));
        Some(Follower { place, learnt: 0, acks: 0, explained: 0, stand: WAITS_FOR_DATA, conn })
    };
    let resolved = resolved();
    let mut followers = Vec::with_capacity(resolved.len());
    followers.extend((0..).zip(resolved.iter()).filter_map(follower));
    followers
}

impl Follower {
    /// Label in verdicts.
    pub fn name(&self) -> &'static str {
        CANDIDATES[usize::from(self.place)].0
    }

    /// Lets the policy's timer expire up to `until_ns`; the fields in `around` have not changed
    /// since.
    pub fn expire(&mut self, until_ns: u64, around: &Event, number: u64) {
        while let Stand::Waits(deadline_ns) = self.stand {
            if deadline_ns > until_ns {
                return;
            }
            self.stand = WAITS_FOR_DATA;
            self.decide(&Event { kind: EventKind::Deadline, now_ns: deadline_ns, ..*around }, number);
        }
    }

    /// Passes an event to the policy. `number`: acknowledgment number of an ACK that leaves now.
    pub fn decide(&mut self, event: &Event, number: u64) {
        let action = self.conn.decide(event).action;
        if let Stand::Waits(_) = self.stand {
            self.stand = match action {
                Action::SendNow => Stand::Fired(Fire { time_ns: event.now_ns, number }),
                Action::WaitUntil(deadline_ns) => Stand::Waits(deadline_ns),
                Action::Nothing => WAITS_FOR_DATA,
            };
        }
    }

    /// Passes a read right after its data, unless it changes nothing.
    pub fn read(&mut self, event: &Event, number: u64) {
        let left_bytes = event.wnd_bytes.saturating_sub(event.unacked_bytes);
        // A promised ACK stays promised.
        if self.fired().is_none() && self.conn.read_is_news(left_bytes, event.wnd_max_bytes, true) {
            self.decide(event, number);
        }
    }

    /// The ACK that the policy would have sent since the receiver's last.
    pub fn fired(&self) -> Option<Fire> {
        match self.stand {
            Stand::Fired(fire) => Some(fire),
            Stand::Waits(_) => None,
        }
    }

    /// Tells the policy that the receiver's ACK left.
    pub fn acked(&mut self, sent: &Event) {
        self.stand = match self.conn.decide(sent).action {
            Action::WaitUntil(deadline_ns) => Stand::Waits(deadline_ns),
            Action::SendNow | Action::Nothing => WAITS_FOR_DATA,
        };
    }

    pub fn count(&mut self, explained: bool) {
        self.acks += 1;
        self.explained += u32::from(explained);
    }

    pub fn score(&self) -> Score {
        Score { acks: self.acks, explained: self.explained, is_fitted: self.learnt > 1 }
    }

    /// Fits the random value that some receivers draw when a connection starts, and that only their
    /// ACKs show.
    pub fn learn(&mut self, random: u32, at_most: u8) {
        if self.learnt >= at_most {
            return;
        }
        self.learnt += 1;
        if let Some(Some(resolved)) = resolved().get(usize::from(self.place)) {
            self.conn = resolved.connect(&start(random));
        }
        self.stand = WAITS_FOR_DATA;
        // The ACK used for fitting does not count against the policy.
        self.acks -= 1;
    }
}
