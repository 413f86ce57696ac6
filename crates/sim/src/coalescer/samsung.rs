// SPDX-License-Identifier: MIT
//! Samsung SCSC: the newest ACK of a flow waits for 9 to 19 others or 4 ms of silence, by the rate
//! that the flow acknowledged in the last half second; all pass while it starts, and after a loss.
//!
//! An ACK of more than two segments is a delayed one and passes, so a receiver that thins its ACKs
//! itself is left alone. It is not in force for the first 512 ACKs, nor for 512 after each SACK.
// [S6.12]

use super::rule::{Out, Rule, MS};
use crate::packet::{Flags, Packet};
use crate::sender::NEVER;

const RECORDS: usize = 16;
const UNUSED_NS: u64 = 10_000 * MS;
const START_ACKS: u32 = 512;
const SAMPLE_NS: u64 = 500 * MS;
const WAIT_NS: u64 = 4 * MS;
/// Mbit/s from which so many ACKs are one.
const LEVELS: [(u64, u64); 3] = [(100, 20), (20, 16), (1, 10)];

struct Record {
    flow: u32,
    held: Option<Box<Packet>>,
    due_ns: u64,
    /// Number of ACKs since one was sent.
    count: u64,
    acked: u64,
    sent_ns: u64,
    /// ACKs seen of those that all pass; None: no more.
    start: Option<u32>,
    /// ACKs that are one; 0: all pass.
    most: u64,
    sampled_ns: u64,
    sampled_ack: Option<u64>,
    sampled_bytes: u64,
    rate_mbps: u64,
    hysteresis_mbps: u64,
}

impl Record {
    fn new(now: u64, flow: u32) -> Self {
        Record {
            flow,
            held: None,
            due_ns: NEVER,
            count: 0,
            acked: 0,
            sent_ns: now,
            start: Some(0),
            most: 0,
            sampled_ns: now,
            sampled_ack: None,
            sampled_bytes: 0,
            rate_mbps: 0,
            hysteresis_mbps: 0,
        }
    }

    /// Measures the rate and chooses how many ACKs are one.
    fn sample(&mut self, now: u64, packet: &Packet, mss: u64) {
        let before = self.sampled_ack.replace(packet.ack);
        self.sampled_bytes += before.map_or(0, |before| packet.ack.saturating_sub(before));
        if now - self.sampled_ns <= SAMPLE_NS {
            return;
        }
        let rate_mbps = self.sampled_bytes * 8 / (SAMPLE_NS / 1000);
        if rate_mbps.abs_diff(self.rate_mbps) > self.hysteresis_mbps {
            let level = LEVELS.iter().find(|(from, _)| rate_mbps >= *from);
            // It takes the window for twice what it is, and allows a fifth of that, in pairs.
            let most = 2 * u64::from(packet.wnd_bytes) / 5 / (2 * mss);
            self.most = level.map_or(0, |(_, acks)| (*acks).min(most));
        }
        self.hysteresis_mbps = rate_mbps / 5;
        self.rate_mbps = rate_mbps;
        self.sampled_bytes = 0;
        self.sampled_ns = now;
    }

    /// Whether a packet passes, and with it what waits is void.
    fn passes(&mut self, now: u64, packet: &Packet, mss: u64) -> bool {
        if packet.len > 0 || packet.flags.intersects(Flags::PSH | Flags::ECE) {
            return true;
        }
        self.sample(now, packet, mss);
        if packet.sack.is_some() {
            self.start = Some(0);
            return true;
        }
        if packet.ack == self.acked {
            return true;
        }
        if let Some(seen) = self.start {
            self.start = (seen + 1 < START_ACKS).then_some(seen + 1);
            return true;
        }
        self.most == 0 || packet.ack - self.acked > 2 * mss
    }
}

pub struct Samsung {
    mss: u64,
    records: Vec<Record>,
}

impl Samsung {
    pub fn new(mss: u64) -> Self {
        Samsung { mss, records: Vec::new() }
    }

    /// The record of a flow; None: all are in use.
    fn record(&mut self, now: u64, flow: u32) -> Option<&mut Record> {
        if let Some(at) = self.records.iter().position(|r| r.flow == flow) {
            return Some(&mut self.records[at]);
        }
        let new = Record::new(now, flow);
        if self.records.len() < RECORDS {
            self.records.push(new);
            return self.records.last_mut();
        }
        let unused = self.records.iter_mut().find(|r| now - r.sent_ns >= UNUSED_NS)?;
        *unused = new;
        Some(unused)
    }
}

impl Rule for Samsung {
    fn send(&mut self, now: u64, packet: Box<Packet>, out: &mut Out) {
        let mss = self.mss;
        if packet.has(Flags::FIN) {
            // What waits is void with its record.
            if let Some(at) = self.records.iter().position(|r| r.flow == packet.flow) {
                out.drop(self.records.swap_remove(at).held);
            }
            return out.send(packet);
        }
        let found = self.record(now, packet.flow).filter(|_| !packet.has(Flags::SYN));
        let Some(record) = found.filter(|r| packet.ack >= r.acked) else {
            return out.send(packet);
        };
        let passes = record.passes(now, &packet, mss);
        let is_first = record.held.is_none() && !passes;
        record.acked = packet.ack;
        record.count = if is_first { 1 } else { record.count + 1 };
        out.drop(record.held.take());
        if passes || (!is_first && record.count >= record.most) {
            record.count = 0;
            record.due_ns = NEVER;
            record.sent_ns = now;
            out.send(packet);
        } else {
            record.held = Some(packet);
            record.due_ns = now + WAIT_NS;
        }
    }

    fn expire(&mut self, now: u64, out: &mut Out) {
        for record in self.records.iter_mut().filter(|r| r.due_ns <= now) {
            record.due_ns = NEVER;
            record.count = 0;
            record.sent_ns = now;
            record.held.take().into_iter().for_each(|held| out.send(held));
        }
    }

    fn due_ns(&self) -> u64 {
        self.records.iter().map(|r| r.due_ns).min().unwrap_or(NEVER)
    }
}
