// SPDX-License-Identifier: MIT
//! The offline optimum of dynamic acknowledgement: the cheapest schedule for arrivals that are all
//! known in advance, exact and in linear time.
//!
//! Some optimal schedule sends each ACK at an arrival, so with arrivals at `a_1 <= ... <= a_n`
//!
//! ```text
//! OPT[j] = min over i < j of OPT[i] + A + L * (latency of i+1..j acknowledged at a_j)
//! latency of i+1..j at a = a * (W_j - W_i) - (S_j - S_i)
//! ```
//!
//! where `W` and `S` are prefix sums of weights and of weights times arrival times, `A` is the
//! price of an ACK and `L` the price of latency. The part that depends on `i` is a line in `a` with
//! intercept `OPT[i] + L * S_i` and slope `-L * W_i`. Slopes fall with `i` and queries rise with
//! `j`, so the lower envelope is kept in a queue that is read at one end and extended at the other
//! (monotone convex hull). Times are integers, and so are the envelope's break points: nothing is
//! rounded.
//!
//! Source: Dooly, Goldman, Scott (1998, 2001) for the problem and the recurrence.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The price of ACKs and latency: `rho * ACKs + (1 - rho) * latency / unit`.
///
/// Costs are computed as integers, scaled by `1000 * unit_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "PriceFields", into = "PriceFields")]
pub struct Price {
    rho_permille: u16,
    unit_ns: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceFields {
    rho_permille: u16,
    unit_ns: u64,
}

impl TryFrom<PriceFields> for Price {
    type Error = String;
    fn try_from(f: PriceFields) -> Result<Self, String> {
        Price::new(f.rho_permille, f.unit_ns)
    }
}

impl From<Price> for PriceFields {
    fn from(p: Price) -> Self {
        PriceFields { rho_permille: p.rho_permille, unit_ns: p.unit_ns }
    }
}

impl Default for Price {
    /// ACKs and latency weigh the same; 10 ms of latency cost as much as an ACK.
    fn default() -> Self {
        Price { rho_permille: 500, unit_ns: 10_000_000 }
    }
}

impl Price {
    /// Longest unit: 1000 s.
    pub const UNIT_NS_MAX: u64 = 1_000_000_000_000;

    /// `rho_permille`: 1 to 999, `unit_ns`: 1 to [`Price::UNIT_NS_MAX`].
    ///
    /// # Errors
    /// A value out of range; the message gives the range.
    pub fn new(rho_permille: u16, unit_ns: u64) -> Result<Self, String> {
        if !(1..=999).contains(&rho_permille) {
            return Err(format!("rho_permille = {rho_permille} is out of range; give 1 to 999"));
        }
        if !(1..=Self::UNIT_NS_MAX).contains(&unit_ns) {
            let max = Self::UNIT_NS_MAX;
            return Err(format!("unit_ns = {unit_ns} is out of range; give 1 to {max}"));
        }
        Ok(Price { rho_permille, unit_ns })
    }

    pub fn rho_permille(self) -> u16 {
        self.rho_permille
    }
    pub fn unit_ns(self) -> u64 {
        self.unit_ns
    }

    fn ack(self) -> i128 {
        i128::from(self.rho_permille) * i128::from(self.unit_ns)
    }
    fn latency(self) -> i128 {
        1000 - i128::from(self.rho_permille)
    }

    /// Scaled cost: `rho_permille * unit_ns * acks + (1000 - rho_permille) * latency_ns`.
    pub fn scaled(self, acks: u64, latency_ns: u128) -> u128 {
        let acks = u128::from(acks) * self.ack() as u128;
        acks.saturating_add(latency_ns.saturating_mul(self.latency() as u128))
    }

    /// A scaled cost in the units of the formula above: one ACK costs `rho`.
    pub fn unscaled(self, cost: u128) -> f64 {
        cost as f64 / (1000.0 * self.unit_ns as f64)
    }
}

/// Segments that arrived at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub time_ns: u64,
    /// Number of segments, at least 1.
    pub weight: u32,
}

/// A cheapest schedule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Optimum {
    /// Number of ACKs paid for.
    pub acks: u64,
    /// Sum over segments of the time from arrival to the ACK that covers it.
    pub latency_ns: u128,
    /// Cost in the units of [`Price::scaled`].
    #[serde(skip)]
    pub cost_scaled: u128,
    /// Cost in the units of [`Price::unscaled`].
    pub cost: f64,
    /// Times of the ACKs paid for.
    #[serde(skip)]
    pub schedule_ns: Vec<u64>,
}

/// Arrivals without a solution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptimumError {
    /// The arrival (or free ACK) at this index is earlier than the previous one.
    NotSorted {
        index: usize,
        free: bool,
    },
    ZeroWeight {
        index: usize,
    },
    /// There are 2^48 segments or more.
    TooMany,
}

impl fmt::Display for OptimumError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptimumError::NotSorted { index, free } => {
                let what = if *free { "free ACK" } else { "arrival" };
                write!(f, "{what} {index} is earlier than the one before; sort by time")
            }
            OptimumError::ZeroWeight { index } => {
                write!(f, "arrival {index} stands for no segment; leave it out")
            }
            OptimumError::TooMany => write!(f, "2^48 segments or more; split the trace"),
        }
    }
}

impl std::error::Error for OptimumError {}

/// A cheapest schedule for `arrivals`, in order of time.
///
/// `free_acks_ns`: times, in order, at which an ACK leaves at no cost because data carries it; it
/// covers everything that arrived up to and including that time.
///
/// Time: linear. Memory: at most 72 bytes for each arrival of the longest block without a gap worth an
/// ACK.
///
/// # Errors
/// Input that is out of order, without weight, or too large.
// [S2.7]
pub fn optimum(arrivals: &[Arrival], free_acks_ns: &[u64], price: Price) -> Result<Optimum, OptimumError> {
    check(arrivals, free_acks_ns)?;
    let mut block = Block { price, lines: Vec::new(), head: 0, parents: Vec::new() };
    let mut schedule_ns = Vec::new();
    let mut latency_ns = 0;
    let mut free = free_acks_ns.iter().copied().peekable();
    let mut start = 0;
    while start < arrivals.len() {
        // Free ACKs before the first pending arrival cover nothing.
        while free.next_if(|&f| f < arrivals[start].time_ns).is_some() {}
        let free_ns = free.peek().copied();
        let (len, latency) = block.solve(&arrivals[start..], free_ns, &mut schedule_ns);
        latency_ns += latency;
        start += len;
    }
    let acks = schedule_ns.len() as u64;
    let cost_scaled = price.scaled(acks, latency_ns);
    let cost = price.unscaled(cost_scaled);
    Ok(Optimum { acks, latency_ns, cost_scaled, cost, schedule_ns })
}

fn check(arrivals: &[Arrival], free_acks_ns: &[u64]) -> Result<(), OptimumError> {
    let mut before = 0;
    let mut total = 0u64;
    for (index, a) in arrivals.iter().enumerate() {
        if a.time_ns < before {
            return Err(OptimumError::NotSorted { index, free: false });
        }
        if a.weight == 0 {
            return Err(OptimumError::ZeroWeight { index });
        }
        before = a.time_ns;
        total = total.saturating_add(a.weight.into());
    }
    // 2^48 segments * 2^64 ns * 1000 stays below 2^127: no sum below overflows.
    if total >= 1 << 48 {
        return Err(OptimumError::TooMany);
    }
    match free_acks_ns.windows(2).position(|w| w[1] < w[0]) {
        Some(i) => Err(OptimumError::NotSorted { index: i + 1, free: true }),
        None => Ok(()),
    }
}

/// `OPT[i] + L * latency(i+1.. at a)` as a line in `a`, without the terms common to all lines.
#[derive(Clone, Copy)]
struct CostLine {
    /// Number of arrivals of the block acknowledged before.
    i: usize,
    /// `OPT[i] + L * S_i`.
    intercept: i128,
    /// `W_i`; the slope is `-L * W_i`.
    weight: i128,
    /// First time at which this line is not above its predecessor in the queue.
    from: i128,
}

/// Consecutive arrivals that an optimal schedule may have to weigh against each other. The buffers
/// are reused for the next block.
struct Block {
    price: Price,
    lines: Vec<CostLine>,
    head: usize,
    /// Number of arrivals acknowledged before an ACK at arrival `j` (counted from 1).
    parents: Vec<usize>,
}

impl Block {
    /// Solves the first block of `arrivals`, which extends to a free ACK, to a gap so long that
    /// waiting over it costs more than an ACK, or to the end. Appends its ACKs; returns its
    /// arrivals and latency.
    fn solve(
        &mut self,
        arrivals: &[Arrival],
        free_ns: Option<u64>,
        schedule_ns: &mut Vec<u64>,
    ) -> (usize, u128) {
        let (ack, unit) = (self.price.ack(), self.price.latency());
        // Times are relative to the block's start: sums then fit in 64 bits for real traces, where
        // the division below is fast.
        let zero = arrivals[0].time_ns;
        let (mut weight, mut sum) = (0i128, 0i128);
        self.lines.clear();
        self.lines.push(CostLine { i: 0, intercept: 0, weight: 0, from: 0 });
        self.head = 0;
        self.parents.clear();
        self.parents.push(0);
        let mut last = None;
        for (i, arrival) in arrivals.iter().enumerate() {
            let time = i128::from(arrival.time_ns - zero);
            if free_ns.is_some_and(|f| arrival.time_ns > f) {
                break;
            }
            if last.is_some_and(|(t, w)| unit * w * (time - t) >= ack) {
                break;
            }
            weight += i128::from(arrival.weight);
            sum += i128::from(arrival.weight) * time;
            last = Some((time, i128::from(arrival.weight)));
            let best = self.best_at(time);
            let opt = best.intercept + ack + unit * (time * (weight - best.weight) - sum);
            self.parents.push(best.i);
            self.push(i + 1, opt + unit * sum, weight);
        }
        let len = self.parents.len() - 1;
        let next = arrivals.get(len).map(|a| a.time_ns);
        // A free ACK ends the block unless a paid one has ended it before.
        let free_ns = free_ns.filter(|&f| next.map_or(true, |n| n > f));
        let (mut at, mut until_ns) = (len, arrivals[len - 1].time_ns);
        if let Some(f) = free_ns {
            at = self.best_at(i128::from(f - zero)).i;
            until_ns = f;
        }
        let first = schedule_ns.len();
        let mut latency = latency_of(&arrivals[at..len], until_ns);
        while at > 0 {
            let before = self.parents[at];
            let time = arrivals[at - 1].time_ns;
            schedule_ns.push(time);
            latency += latency_of(&arrivals[before..at], time);
            at = before;
        }
        schedule_ns[first..].reverse();
        (len, latency)
    }

    /// The lowest line at this time, which must not be smaller than in the previous call.
    fn best_at(&mut self, time: i128) -> CostLine {
        while self.lines.get(self.head + 1).is_some_and(|l| l.from <= time) {
            self.head += 1;
        }
        self.lines[self.head]
    }

    fn push(&mut self, i: usize, intercept: i128, weight: i128) {
        let unit = self.price.latency();
        loop {
            let before = &self.lines[self.lines.len() - 1];
            let rise = intercept - before.intercept;
            let fall = unit * (weight - before.weight);
            // Rounded up: the first integer time at which the new line is not above.
            let from = rise.div_euclid(fall) + i128::from(rise.rem_euclid(fall) != 0);
            if self.lines.len() - 1 > self.head && from <= before.from {
                self.lines.pop();
            } else {
                self.lines.push(CostLine { i, intercept, weight, from });
                return;
            }
        }
    }
}

fn latency_of(arrivals: &[Arrival], ack_ns: u64) -> u128 {
    arrivals.iter().map(|a| u128::from(ack_ns - a.time_ns) * u128::from(a.weight)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    /// The recurrence, evaluated literally.
    fn quadratic(arrivals: &[Arrival], price: Price) -> u128 {
        let mut opt = vec![0; arrivals.len() + 1];
        for j in 1..=arrivals.len() {
            let at = arrivals[j - 1].time_ns;
            let cost = |i: usize| opt[i] + price.scaled(1, latency_of(&arrivals[i..j], at));
            opt[j] = (0..j).map(cost).min().expect("at least one");
        }
        opt[arrivals.len()]
    }

    /// Total latency when ACKs leave at these times; None if they do not cover all arrivals.
    fn latency_with(arrivals: &[Arrival], leave: &[u64]) -> Option<u128> {
        arrivals.iter().try_fold(0, |sum, a| {
            let at = leave.iter().filter(|&&t| t >= a.time_ns).min()?;
            Some(sum + u128::from(at - a.time_ns) * u128::from(a.weight))
        })
    }

    /// The minimum cost over every subset of the arrivals as times of ACKs.
    fn exhaustive(arrivals: &[Arrival], free: &[u64], price: Price) -> u128 {
        let subsets = 0u32..1 << arrivals.len();
        let cost = |set: u32| {
            let mut leave = free.to_vec();
            let chosen = arrivals.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1);
            leave.extend(chosen.map(|(_, a)| a.time_ns));
            let acks = u64::from(set.count_ones());
            Some(price.scaled(acks, latency_with(arrivals, &leave)?))
        };
        subsets.filter_map(cost).min().expect("all arrivals is one")
    }

    fn times(list: &[u64]) -> Vec<Arrival> {
        list.iter().map(|&time_ns| Arrival { time_ns, weight: 1 }).collect()
    }

    #[test]
    fn worked_by_hand() {
        // One ACK costs as much as 10 units of latency: 0 and 4 share one (4), 30 has its own.
        let price = Price::new(500, 10).unwrap();
        let found = optimum(&times(&[0, 4, 30]), &[], price).unwrap();
        assert_eq!((found.acks, found.latency_ns), (2, 4));
        assert_eq!(found.schedule_ns, [4, 30]);
        assert_eq!(found.cost_scaled, 500 * 10 * 2 + 500 * 4);
        assert!((found.cost - 1.2).abs() < 1e-12);
        // A free ACK at 6 covers the first two for 6 + 2 and no ACK.
        let found = optimum(&times(&[0, 4, 30]), &[6], price).unwrap();
        assert_eq!((found.acks, found.latency_ns), (1, 8));
        assert_eq!(found.schedule_ns, [30]);
        // At 20 it comes too late for them.
        let found = optimum(&times(&[0, 4, 30]), &[20], price).unwrap();
        assert_eq!(found.schedule_ns, [4, 30]);
        assert_eq!(optimum(&[], &[1], price).unwrap().cost_scaled, 0);
    }

    fn random_arrivals(random: &mut SplitMix64, most: u64) -> (Vec<Arrival>, Price) {
        let spread = [1, 3, 20, 200, 5_000][random.below(5) as usize];
        let mut now = random.below(50);
        let arrivals = (0..random.below(most) + 1)
            .map(|_| {
                now += random.below(spread);
                Arrival { time_ns: now, weight: [1, 1, 1, 2, 45][random.below(5) as usize] }
            })
            .collect();
        let rho = 1 + random.below(999) as u16;
        (arrivals, Price::new(rho, 1 + random.below(3 * spread)).unwrap())
    }

    #[test]
    // [S2.7]
    fn agrees_with_the_quadratic_recurrence() {
        let mut random = SplitMix64::new(7);
        for round in 0..2000 {
            let (arrivals, price) = random_arrivals(&mut random, 120);
            let found = optimum(&arrivals, &[], price).unwrap();
            let expected = quadratic(&arrivals, price);
            assert_eq!(found.cost_scaled, expected, "round {round}: {arrivals:?} {price:?}");
        }
    }

    #[test]
    fn agrees_with_all_schedules_and_is_worth_its_price() {
        let mut random = SplitMix64::new(8);
        for round in 0..1500 {
            let (arrivals, price) = random_arrivals(&mut random, 9);
            let end = arrivals.last().map_or(0, |a| a.time_ns);
            let mut free: Vec<_> = (0..random.below(5)).map(|_| random.below(end + 20)).collect();
            free.sort_unstable();
            let found = optimum(&arrivals, &free, price).unwrap();
            let expected = exhaustive(&arrivals, &free, price);
            assert_eq!(found.cost_scaled, expected, "round {round}: {arrivals:?} free {free:?} {price:?}");
            assert_eq!(found.schedule_ns.len() as u64, found.acks);
            let mut leave = found.schedule_ns.clone();
            leave.extend(&free);
            assert_eq!(latency_with(&arrivals, &leave), Some(found.latency_ns));
        }
    }

    #[test]
    fn equal_times_are_one_ack() {
        let found = optimum(&times(&[5; 1000]), &[], Price::default()).unwrap();
        assert_eq!((found.acks, found.latency_ns), (1, 0));
    }

    #[test]
    fn extremes_do_not_overflow() {
        let price = Price::new(999, Price::UNIT_NS_MAX).unwrap();
        let arrivals: Vec<_> =
            [0, 1, u64::MAX - 1, u64::MAX].map(|time_ns| Arrival { time_ns, weight: u32::MAX }).to_vec();
        let found = optimum(&arrivals, &[], price).unwrap();
        assert_eq!(found.acks, 2);
        let price = Price::new(1, 1).unwrap();
        let found = optimum(&arrivals, &[u64::MAX], price).unwrap();
        assert_eq!((found.acks, found.latency_ns), (3, 0));
    }

    #[test]
    fn wrong_input_is_named() {
        let price = Price::default();
        assert_eq!(
            optimum(&times(&[2, 1]), &[], price),
            Err(OptimumError::NotSorted { index: 1, free: false })
        );
        assert_eq!(
            optimum(&times(&[1]), &[3, 2], price),
            Err(OptimumError::NotSorted { index: 1, free: true })
        );
        let nothing = Arrival { time_ns: 0, weight: 0 };
        assert_eq!(optimum(&[nothing], &[], price), Err(OptimumError::ZeroWeight { index: 0 }));
        assert!(Price::new(0, 1).is_err() && Price::new(1000, 1).is_err());
        assert!(Price::new(1, 0).is_err() && Price::new(1, Price::UNIT_NS_MAX + 1).is_err());
    }
}
