// SPDX-License-Identifier: MIT
//! Qualcomm qcacld: while more than 300 packets arrive in 100 ms, and until fewer than 100 do, the
//! newest ACK of a flow waits for 20 others, at most 3 ms.
//!
//! An ACK that is not newer goes out behind the one that waits; so does any other packet of the
//! flow. One timer serves all flows: an ACK that comes while it runs waits for less.
// [S6.13]

use super::rule::{is_ack_alone, Out, Rule, MS};
use crate::packet::Packet;
use crate::sender::NEVER;

const SAMPLE_NS: u64 = 100 * MS;
const ON_ABOVE: u64 = 300;
const OFF_BELOW: u64 = 100;
const REPLACED_MOST: u32 = 20;
const WAIT_NS: u64 = 3 * MS;

struct Stream {
    flow: u32,
    held: Box<Packet>,
    replaced: u32,
}

pub struct Qualcomm {
    streams: Vec<Stream>,
    timer_ns: u64,
    is_on: bool,
    /// Packets received in the sample that ends then.
    received: u64,
    sample_end_ns: u64,
}

impl Default for Qualcomm {
    fn default() -> Self {
        Qualcomm { streams: Vec::new(), timer_ns: NEVER, is_on: false, received: 0, sample_end_ns: SAMPLE_NS }
    }
}

impl Qualcomm {
    /// Ends the samples that are over.
    fn sample(&mut self, now: u64) {
        if now < self.sample_end_ns {
            return;
        }
        let later = (now - self.sample_end_ns) / SAMPLE_NS;
        self.is_on = (self.received > ON_ABOVE || self.is_on && self.received >= OFF_BELOW) && later == 0;
        self.received = 0;
        self.sample_end_ns += (later + 1) * SAMPLE_NS;
    }
}

impl Rule for Qualcomm {
    fn send(&mut self, now: u64, packet: Box<Packet>, out: &mut Out) {
        self.sample(now);
        if !self.is_on {
            self.streams.drain(..).for_each(|stream| out.send(stream.held));
            return out.send(packet);
        }
        let found = self.streams.iter().position(|stream| stream.flow == packet.flow);
        if !is_ack_alone(&packet) {
            if let Some(at) = found {
                out.send(self.streams.remove(at).held);
            }
            return out.send(packet);
        }
        let Some(at) = found else {
            self.streams.push(Stream { flow: packet.flow, held: packet, replaced: 0 });
            self.timer_ns = self.timer_ns.min(now + WAIT_NS);
            return;
        };
        let stream = &mut self.streams[at];
        if stream.held.ack >= packet.ack {
            out.send(self.streams.remove(at).held);
            return out.send(packet);
        }
        out.drop(Some(std::mem::replace(&mut stream.held, packet)));
        stream.replaced += 1;
        if stream.replaced == REPLACED_MOST {
            out.send(self.streams.remove(at).held);
        }
        self.timer_ns = self.timer_ns.min(now + WAIT_NS);
    }

    fn receive(&mut self, now: u64, _packet: &Packet) {
        self.sample(now);
        self.received += 1;
    }

    fn expire(&mut self, now: u64, out: &mut Out) {
        if self.timer_ns <= now {
            self.timer_ns = NEVER;
            self.streams.drain(..).for_each(|stream| out.send(stream.held));
        }
    }

    fn due_ns(&self) -> u64 {
        self.timer_ns
    }
}
