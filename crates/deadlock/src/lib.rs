// SPDX-License-Identifier: MIT
//! Deadlock analysis: can this sender and this receiver wait for each other (spec page 5)?
//!
//! This is not a simulation: one connection, no loss, a congestion window that never limits, a
//! reader that reads at once. As long as no timer fires, the sender's behaviour depends only on the
//! order of the ACKs, and the receiver's only on the order of the segments, not on their times. A
//! pair therefore follows a single sequence of states on any link, and only timers can leave it.
//! The state machine walks along this sequence, asks the core's policy for the receiver's ACKs, and
//! observes whether only a timer lets the sender continue. A fast timer may also fire in between:
//! that branch is walked from every state in which data waits.

mod machine;
mod pair;
mod receiver;
mod sender;

use ackwise_core::Resolved;
#[cfg(test)]
use ackwise_link as _;
use machine::{Machine, Walk};
pub use machine::{Stall, StallClass};
pub use pair::{Call, Nagle, Pair, Rule, Socket};
use serde::{Deserialize, Serialize};

/// Whether the pair stalls, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Never: no timer is needed to let the sender continue.
    Never,
    /// Only while the policy is still learning.
    AtStart,
    /// Repeatedly once a timer fired while only part of the data had arrived, which takes a
    /// disturbance.
    AfterDisturbance,
    /// Repeatedly, without a disturbance.
    Yes,
}

#[derive(Clone, Debug, Serialize)]
pub struct PairVerdict {
    pub answer: Answer,
    /// Class of the first stall; None: no stall.
    pub class: Option<StallClass>,
    /// The last stall, and the shortest and the longest wait of all stalls (fast timers vary).
    pub stall: Option<Stall>,
    pub shortest_ns: u64,
    pub longest_ns: u64,
    /// Number of stalls before the pair settled, and the time they took.
    pub start_stalls: u64,
    pub start_ns: u64,
    /// Mean bytes between stalls once the pair settled; 0: no stalls.
    pub bytes_per_stall: f64,
    /// Number of times the policy withheld an ACK on purpose, to learn.
    pub pauses: u64,
    /// Goodput once the pair settled, bit/s.
    pub goodput_bps: f64,
    /// Whether each stall leads to the next by itself.
    pub lasting: bool,
}

const CALLS_MAX: u64 = 64;
/// Number of stalls in the second half of a walk that counts as recurring.
const REPEATED: usize = 2;
/// Length of a walk in flights (a flight is the most that both buffers allow to be outstanding).
/// `ratelimit` settles only after thousands of segments.
const FLIGHTS: u64 = 40_000;
/// Maximum events of a walk: a few hundredths of a second of computing.
const EVENTS: u64 = 400_000;
/// Maximum states in which a disturbance is tried, steps to find one, and periods of a fast timer.
const BRANCHES: usize = 48;
const PLACES: u32 = 64;
const BEATS: u32 = 1000;
/// Stalls count as lasting if there is one in every four flights.
const LASTING_FLIGHTS: u64 = 40;
/// Number of draws of whatever a policy leaves to chance (the phase of a fast timer, a patience).
const DRAWS: u32 = 8;

/// Walks the pair's sequence of states and judges it.
///
/// # Errors
/// An impossible pair or an unknown policy; the message gives the valid choices.
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
        // A pair without randomness needs only one draw.
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
    // Disturbance: a timer fires while only part of the sent data has arrived.
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

/// Random bits for a draw, spread evenly over the high and the low bits.
fn random_bits(draw: u32) -> u32 {
    draw.wrapping_add(1).wrapping_mul(0x9e37_79b9)
}

/// Effect of a fast timer that fires repeatedly at any state: the walk with its stalls, and whether
/// one stall leads to the next without another timer.
fn beaten(pair: &Pair, policy: &Resolved, flight: u64, period_ns: u64) -> Option<(Walk, bool)> {
    let mut machine = Machine::new(pair, policy, random_bits(0));
    // Two periods apart: the consequences of the first timer have lasted that long.
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
            // In a clone: the main walk continues with its own timers.
            let mut branch = machine.clone();
            let after = branch.walk(branch.delivered() + LASTING_FLIGHTS * flight, EVENTS / 16);
            lasting = (after.stalls.len() >= LASTING_FLIGHTS as usize / 4).then_some(after);
        }
        let steps = random_bits(beat) >> 16 & 31;
        run.append(machine.walk(u64::MAX, steps.into()));
        // A timer may have fired by itself on the way to this state.
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

/// Effect of a timer that a pause of the path lets fire once, tried in each state in turn: the walk
/// on which stalls then follow each other.
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
    if !pair.script.is_empty() {
        within("script", pair.script.len() as u64, 1, CALLS_MAX)?;
        for call in &pair.script {
            let (Call::Write(bytes) | Call::Read(bytes)) = *call;
            within("script", bytes, 1, 1 << 30)?;
        }
        if !pair.script.iter().any(|call| matches!(call, Call::Write(_))) {
            return Err("script: nothing is written; give at least one write".into());
        }
    }
    within("rtt_ns", pair.rtt_ns, 1_000, 60_000_000_000)?;
    if pair.rate_bps != 0 {
        within("rate_bps", pair.rate_bps, 1_000, 10_u64.pow(12))?;
    }
    Ok(())
}
