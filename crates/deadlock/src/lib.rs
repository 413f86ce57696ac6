// SPDX-License-Identifier: MIT
//! Can this sender and this receiver wait for each other (spec page 5)?
//!
//! No simulator: one connection, no loss, a congestion window that never is the limit, a reader
//! that reads at once. What a sender does depends on the order of the ACKs it gets, and what a
//! receiver does on the order of the segments, not on when they come, as long as no timer fires.
//! So a pair's way is one sequence, on any link, and only timers can leave it. The machine walks
//! along it, asks the policy of the core what the receiver does, and sees whether a timer is what
//! lets the sender go on. A fast timer may also fire in the middle: that branch is walked from each
//! place where data waits.

mod machine;
mod receiver;
mod sender;

use ackwise_core::{PolicyChoice, Resolved};
use machine::{Machine, Walk};
pub use machine::{Stall, StallClass};
pub use sender::{Nagle, Socket};
use serde::{Deserialize, Serialize};

/// Both ends and the path between them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    pub mss_bytes: u32,
    pub send_buffer_bytes: u64,
    pub recv_buffer_bytes: u64,
    pub nagle: Nagle,
    /// The sender's socket layer; the receiver's window follows it.
    pub socket: Socket,
    /// Size of the messages that the application writes, each after the one before was delivered;
    /// 0: one stream without end.
    #[serde(default)]
    pub write_bytes: u64,
    pub policy: PolicyChoice,
    /// Segments have timestamps (RFC 7323). Without them a Linux receiver takes the time of a whole window for the
    /// RTT (tcp_rcv_rtt_measure), which is too long where the sender keeps less than a window outstanding.
    #[serde(default = "yes")]
    pub timestamps: bool,
    /// Round trip of the empty path.
    pub rtt_ns: u64,
    /// Of the path, both ways; 0: without limit.
    #[serde(default)]
    pub rate_bps: u64,
    /// Headers that every packet has on the wire.
    #[serde(default)]
    pub header_bytes: u32,
    /// How far to go; 0: as far as the answer needs.
    #[serde(default)]
    pub transfer_bytes: u64,
    /// Rules that do not hold, to see which one decides.
    #[serde(default)]
    pub without: Vec<Rule>,
}

fn yes() -> bool {
    true
}

/// A rule of the endpoints that the equations of the source leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// A short segment leaves when it is half of the largest window ever offered.
    HalfWindow,
    /// The socket layer runs TCP output after each 4096 bytes.
    Push,
    /// Less than half a cluster of room is not used.
    Cluster,
    /// TCP output runs before the writer that an ACK woke.
    OutputFirst,
    /// The receiver learns the MSS from what arrives.
    LearntMss,
    /// An ACK caused by an arrival leaves before the application has read it.
    AckBeforeRead,
}

/// Whether the pair stalls, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// No timer ever is what lets the sender go on.
    Never,
    /// Only while the policy still learns.
    AtStart,
    /// Once a timer fired while only a part had arrived, which nothing but a disturbance brings about.
    AfterDisturbance,
    /// Again and again.
    Yes,
}

#[derive(Clone, Debug, Serialize)]
pub struct PairVerdict {
    pub answer: Answer,
    /// Of the first stall; none: there is none.
    pub class: Option<StallClass>,
    /// The last stall seen, and the shortest and the longest wait of all (fast timers vary).
    pub stall: Option<Stall>,
    pub shortest_ns: u64,
    pub longest_ns: u64,
    /// Stalls before it settled, and the time they took.
    pub start_stalls: u64,
    pub start_ns: u64,
    /// Mean distance of stalls, once it settled; 0: there are none.
    pub bytes_per_stall: f64,
    /// Times the policy kept silent on purpose, to learn.
    pub pauses: u64,
    /// What is left, once it settled.
    pub goodput_bps: f64,
    /// From one stall it comes to the next by itself.
    pub lasting: bool,
}

/// Stalls that come twice in the second half of a walk come again and again.
const REPEATED: usize = 2;
/// Length of a walk in flights, the most that both buffers let stand out: `ratelimit` settles for thousands of segments.
const FLIGHTS: u64 = 40_000;
/// Events of a walk at most: a few hundredths of a second.
const EVENTS: u64 = 400_000;
/// Places at which a disturbance is tried, steps to look for one, and beats of a fast timer.
const BRANCHES: usize = 48;
const PLACES: u32 = 64;
const BEATS: u32 = 1000;
/// Stalls that last: one in four flights.
const LASTING_FLIGHTS: u64 = 40;
/// Draws of what a policy leaves to chance (the phase of a fast timer, a patience).
const DRAWS: u32 = 8;

/// Walks the pair's way.
///
/// # Errors
/// A pair that cannot be, or an unknown policy, with what would be right.
pub fn judge(pair: &Pair) -> Result<PairVerdict, String> {
    check(pair)?;
    let flight = pair.send_buffer_bytes.min(pair.recv_buffer_bytes).max(1);
    let length = if pair.transfer_bytes > 0 { pair.transfer_bytes } else { FLIGHTS * flight };
    let policy = pair.policy.resolve()?;
    let mut runs = Vec::new();
    for draw in 0..DRAWS {
        let random = random_bits(draw);
        let mut machine = Machine::new(pair, &policy, random);
        let run = machine.walk(length, EVENTS);
        // Without chance in it, one draw is all.
        let same = runs.first().is_some_and(|r: &Walk| r.alike(&run));
        runs.push(run);
        if draw == 1 && same {
            break;
        }
    }
    let worst = runs.into_iter().max_by_key(|r| r.stalls_between(length / 2, length).len());
    let Some(run) = worst else { return Err("no draw".into()) };
    let settled = run.settled(length);
    if run.stalls_between(settled, length).len() >= REPEATED {
        return Ok(verdict(Answer::Yes, &run, settled, true));
    }
    // Off the way: a timer that fires while only a part of what was sent has arrived.
    if let Some(period_ns) = Machine::fast_timer_ns(pair, &policy) {
        if let Some((branch, lasting)) = beaten(pair, &policy, flight, period_ns) {
            let stalls = verdict(Answer::Yes, &branch, branch.begin_bytes, lasting);
            let goodput_bps = if lasting { stalls.goodput_bps } else { run.goodput_bps(settled) };
            return Ok(PairVerdict { goodput_bps, ..stalls });
        }
    } else if let Some(branch) = disturbed_once(pair, &policy, length, flight) {
        return Ok(verdict(Answer::AfterDisturbance, &branch, branch.begin_bytes, true));
    }
    let answer = if run.stalls.is_empty() { Answer::Never } else { Answer::AtStart };
    Ok(verdict(answer, &run, settled, false))
}

/// Spread evenly over the high bits and over the low ones.
fn random_bits(draw: u32) -> u32 {
    draw.wrapping_add(1).wrapping_mul(0x9e37_79b9)
}

/// A fast timer that fires at any place, again and again: the stalls it leads to, and whether one
/// leads to the next without another beat.
fn beaten(pair: &Pair, policy: &Resolved, flight: u64, period_ns: u64) -> Option<(Walk, bool)> {
    let mut machine = Machine::new(pair, policy, random_bits(0));
    // Two beats are a period apart: what the first one led to has gone on for as long.
    let flight_ns = match pair.rate_bps {
        0 => pair.rtt_ns,
        rate => pair.rtt_ns + flight * 8_000_000_000 / rate,
    };
    let apart = (period_ns / (2 * flight_ns)).clamp(1, 8) * flight;
    let most = EVENTS / BEATS as u64;
    let mut run = machine.walk(4 * flight, most);
    let (mut half, mut lasting) = (0, None);
    for beat in 0..BEATS {
        if beat == BEATS / 2 {
            half = run.stalls.len();
        }
        let on = machine.walk(machine.delivered() + apart, most);
        let stalled = !on.stalls.is_empty();
        run.append(on);
        if stalled && lasting.is_none() {
            // In a branch: the way itself goes on with its beats.
            let mut branch = machine.clone();
            let after = branch.walk(branch.delivered() + LASTING_FLIGHTS * flight, EVENTS / 16);
            lasting = (after.stalls.len() >= LASTING_FLIGHTS as usize / 4).then_some(after);
        }
        let steps = random_bits(beat) >> 16 & 31;
        run.append(machine.walk(u64::MAX, steps.into()));
        // On the way to the place a timer may have fired by itself.
        let found = machine.since_timer() >= apart && machine.find_waiting_data(PLACES);
        if found && machine.since_timer() >= apart {
            machine.fire_timer();
        }
    }
    match lasting {
        Some(after) => Some((after, true)),
        None => (run.stalls.len() >= half + REPEATED).then_some((run, false)),
    }
}

/// A timer that a pause of the path lets fire once, at each place in turn: the way on which stalls
/// then follow each other.
fn disturbed_once(pair: &Pair, policy: &Resolved, length: u64, flight: u64) -> Option<Walk> {
    let mut machine = Machine::new(pair, policy, random_bits(0));
    machine.walk(length / 2, EVENTS / 2);
    for _ in 0..BRANCHES {
        if !machine.find_waiting_data(PLACES) {
            break;
        }
        let mut branch = machine.clone();
        branch.fire_timer();
        branch.walk(branch.delivered() + 4 * flight, EVENTS / 64);
        let run = branch.walk(branch.delivered() + LASTING_FLIGHTS * flight, EVENTS / 64);
        if run.stalls.len() >= LASTING_FLIGHTS as usize / 4 {
            return Some(run);
        }
    }
    None
}

fn verdict(answer: Answer, run: &Walk, settled: u64, lasting: bool) -> PairVerdict {
    let after: Vec<&Stall> = run.stalls.iter().filter(|s| s.at_bytes >= settled).collect();
    let begin = run.stalls.len() - after.len();
    let (mut bytes_per_stall, mut goodput_bps) = (0.0, run.goodput_bps(settled));
    if let ([first, .., last], true) = (after.as_slice(), lasting) {
        bytes_per_stall = (last.at_bytes - first.at_bytes) as f64 / (after.len() - 1) as f64;
        let time = (last.end_ns - first.end_ns).max(1);
        goodput_bps = (last.at_bytes - first.at_bytes) as f64 * 8e9 / time as f64;
    }
    PairVerdict {
        answer,
        class: run.stalls.first().map(|s| s.class),
        stall: run.stalls.last().cloned(),
        shortest_ns: run.stalls.iter().map(|s| s.wait_ns).min().unwrap_or(0),
        longest_ns: run.stalls.iter().map(|s| s.wait_ns).max().unwrap_or(0),
        start_stalls: begin as u64,
        start_ns: run.stalls[..begin].iter().map(|s| s.wait_ns).sum(),
        bytes_per_stall,
        pauses: run.pauses,
        goodput_bps,
        lasting,
    }
}

fn check(pair: &Pair) -> Result<(), String> {
    let within = |name: &str, value: u64, low: u64, high: u64| {
        if (low..=high).contains(&value) {
            Ok(())
        } else {
            Err(format!("{name} = {value} is out of range; give {low} to {high}"))
        }
    };
    within("mss_bytes", pair.mss_bytes.into(), 64, 65_535)?;
    within("send_buffer_bytes", pair.send_buffer_bytes, 1, 1 << 30)?;
    within("recv_buffer_bytes", pair.recv_buffer_bytes, 256, 1 << 30)?;
    within("write_bytes", pair.write_bytes, 0, 1 << 30)?;
    within("rtt_ns", pair.rtt_ns, 1_000, 60_000_000_000)?;
    if pair.rate_bps != 0 {
        within("rate_bps", pair.rate_bps, 1_000, 10_u64.pow(12))?;
    }
    Ok(())
}
