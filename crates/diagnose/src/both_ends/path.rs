// SPDX-License-Identifier: MIT
//! Fate of a flow's pure ACKs between its hosts, and evenness of its data.

use super::{is_pure_ack, Passing};
use ackwise_capture::sequence::Offsets;
use ackwise_core::ranges::Ranges;
use serde::Serialize;
use std::collections::HashMap;

/// Linux's minimum RTO.
const PAUSE_NS: u64 = 200_000_000;

/// ACKs after the last one that arrived are in flight and not counted.
#[derive(Debug, Default, Serialize)]
pub struct AckPath<Delays = Vec<u64>> {
    /// Number of pure ACKs that left the receiving host.
    pub acks_sent: u64,
    /// Number of these that did not arrive.
    pub acks_dropped: u64,
    /// Delays from one host to the other, nanoseconds.
    pub delay_ns: Delays,
    /// Number of ACKs that advance nothing.
    pub duplicate_acks_sent: u64,
    /// Number of these that did not arrive.
    pub duplicate_acks_dropped: u64,
    /// Bytes reported by SACK, each counted once.
    pub sacked_bytes: u64,
    /// Bytes reported only by ACKs that were dropped.
    pub sacked_bytes_never_told: u64,
    /// Bytes of data that arrived, including retransmissions.
    pub data_bytes: u64,
    /// Number of gaps between data of at least Linux's minimum RTO.
    pub pauses: u64,
    /// Total length of these gaps, nanoseconds.
    pub paused_ns: u64,
}

impl AckPath {
    /// The record with its delays converted by `view`.
    pub fn with_delays<View>(self, view: impl FnOnce(Vec<u64>) -> View) -> AckPath<View> {
        let AckPath {
            acks_sent, acks_dropped, delay_ns, duplicate_acks_sent, duplicate_acks_dropped, ..
        } = self;
        let AckPath { sacked_bytes, sacked_bytes_never_told, data_bytes, pauses, paused_ns, .. } = self;
        AckPath {
            acks_sent,
            acks_dropped,
            delay_ns: view(delay_ns),
            duplicate_acks_sent,
            duplicate_acks_dropped,
            sacked_bytes,
            sacked_bytes_never_told,
            data_bytes,
            pauses,
            paused_ns,
        }
    }
}

/// Distinguishes an ACK from the others: the IP identification counts the packets of a connection.
type Identity = (u16, u32);

struct Ack {
    identity: Identity,
    time_ns: u64,
    sacks: Box<[(u32, u32)]>,
}

#[derive(Default)]
pub(super) struct PathRecorder {
    sent: Vec<Ack>,
    arrived_ns: HashMap<Identity, u64>,
    last_data_ns: Option<u64>,
    found: AckPath,
}

impl PathRecorder {
    /// A packet of the data's receiver, at its departure.
    pub fn left(&mut self, p: &Passing<'_>) {
        if is_pure_ack(p.segment) {
            let identity = (p.segment.ip_ident, p.segment.ack);
            self.sent.push(Ack { identity, time_ns: p.time_ns, sacks: p.segment.sack_blocks().into() });
        }
    }

    /// A packet of the data's receiver, at its arrival.
    pub fn came(&mut self, p: &Passing<'_>) {
        if is_pure_ack(p.segment) {
            self.arrived_ns.insert((p.segment.ip_ident, p.segment.ack), p.time_ns);
        }
    }

    /// A packet of the data's sender, at its arrival.
    pub fn data(&mut self, p: &Passing<'_>) {
        if p.segment.payload_len == 0 {
            return;
        }
        self.found.data_bytes += u64::from(p.segment.payload_len);
        let gap_ns = self.last_data_ns.map_or(0, |last_ns| p.time_ns.saturating_sub(last_ns));
        if gap_ns >= PAUSE_NS {
            self.found.pauses += 1;
            self.found.paused_ns += gap_ns;
        }
        self.last_data_ns = Some(p.time_ns);
    }

    pub fn finish(self) -> AckPath {
        let PathRecorder { sent, arrived_ns, mut found, .. } = self;
        let arrived = sent.iter().rposition(|ack| arrived_ns.contains_key(&ack.identity));
        let counted = &sent[..arrived.map_or(0, |last| last + 1)];
        let mut numbers = Offsets::default();
        let mut highest = None;
        let (mut reported, mut told): (Ranges, Ranges) = Default::default();
        for ack in counted {
            let number = numbers.see(ack.identity.1);
            let arrived_ns = arrived_ns.get(&ack.identity);
            found.delay_ns.extend(arrived_ns.map(|arrived| arrived.saturating_sub(ack.time_ns)));
            let is_duplicate = highest >= Some(number);
            highest = highest.max(Some(number));
            found.duplicate_acks_sent += u64::from(is_duplicate);
            found.duplicate_acks_dropped += u64::from(is_duplicate && arrived_ns.is_none());
            for &(left, right) in &ack.sacks {
                let left = numbers.see(left);
                if left < number {
                    continue; // a D-SACK
                }
                let [left, right] = [left, numbers.see(right)].map(|at| at.max(0) as u64);
                reported.insert(left, right, |_, _| ());
                if arrived_ns.is_some() {
                    told.insert(left, right, |_, _| ());
                }
            }
        }
        found.acks_sent = counted.len() as u64;
        found.acks_dropped = found.acks_sent - found.delay_ns.len() as u64;
        found.sacked_bytes = reported.bytes();
        found.sacked_bytes_never_told = reported.bytes() - told.bytes();
        found
    }
}
