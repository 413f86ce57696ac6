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
    static RESOLVED: OnceCell<Rc<Vec<(&'static str, Resolved)>>> = const { OnceCell::new() };
}

/// The candidates that the core provides.
fn resolved() -> Rc<Vec<(&'static str, Resolved)>> {
    RESOLVED.with(|cell| cell.get_or_init(|| Rc::new(resolve_all())).clone())
}

fn resolve_all() -> Vec<(&'static str, Resolved)> {
    let resolve = |&(name, policy, host, params): &Candidate| {
        let params = params.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
        let host = host.map(str::to_owned);
        let choice = PolicyChoice { params, host, ..PolicyChoice::new(policy) };
        Some((name, choice.resolve().ok()?))
    };
    CANDIDATES.iter().filter_map(resolve).collect()
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

#[derive(Clone)]
pub(super) struct Follower {
    pub name: &'static str,
    place: usize,
    conn: Conn,
    deadline_ns: u64,
    fired: Option<Fire>,
    score: Score,
    /// Number of the receiver's random values learnt from its ACKs.
    learnt: u8,
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.name, self.score)
    }
}

fn start(random: u32) -> Event {
    let mut event = Event::new(EventKind::Data, 0);
    event.random = random;
    event
}

pub(super) fn followers() -> Vec<Follower> {
    let follower = |(place, (name, resolved)): (usize, &(&'static str, Resolved))| Follower {
        name,
        place,
        // The random value is unknown: assume the longest wait until ACKs show it.
        conn: resolved.connect(&start(u32::MAX)),
        deadline_ns: NEVER_NS,
        fired: None,
        score: Score::default(),
        learnt: 0,
    };
    resolved().iter().enumerate().map(follower).collect()
}

impl Follower {
    /// Lets the policy's timer expire up to `until_ns`; the fields in `around` have not changed
    /// since.
    pub fn expire(&mut self, until_ns: u64, around: &Event, number: u64) {
        while self.fired.is_none() && self.deadline_ns <= until_ns {
            let event = Event { kind: EventKind::Deadline, now_ns: self.deadline_ns, ..*around };
            self.deadline_ns = NEVER_NS;
            self.decide(&event, number);
        }
    }

    /// Passes an event to the policy. `number`: acknowledgment number of an ACK that leaves now.
    pub fn decide(&mut self, event: &Event, number: u64) {
        match self.conn.decide(event).action {
            Action::SendNow => {
                self.deadline_ns = NEVER_NS;
                self.fired.get_or_insert(Fire { time_ns: event.now_ns, number });
            }
            Action::WaitUntil(deadline_ns) => self.deadline_ns = deadline_ns,
            Action::Nothing => self.deadline_ns = NEVER_NS,
        }
    }

    /// The ACK that the policy would have sent since the receiver's last.
    pub fn fired(&self) -> Option<Fire> {
        self.fired
    }

    /// Tells the policy that the receiver's ACK left.
    pub fn acked(&mut self, sent: &Event) {
        self.fired = None;
        self.deadline_ns = match self.conn.decide(sent).action {
            Action::WaitUntil(deadline_ns) => deadline_ns,
            Action::SendNow | Action::Nothing => NEVER_NS,
        };
    }

    pub fn count(&mut self, explained: bool) {
        self.score.acks += 1;
        self.score.explained += u32::from(explained);
    }

    pub fn score(&self) -> Score {
        Score { is_fitted: self.learnt > 1, ..self.score }
    }

    /// Fits the random value that some receivers draw when a connection starts, and that only their
    /// ACKs show.
    pub fn learn(&mut self, random: u32, at_most: u8) {
        if self.learnt >= at_most {
            return;
        }
        self.learnt += 1;
        if let Some((_, resolved)) = resolved().get(self.place) {
            self.conn = resolved.connect(&start(random));
        }
        self.deadline_ns = NEVER_NS;
        self.fired = None;
        // The ACK used for fitting does not count against the policy.
        self.score.acks -= 1;
    }
}
