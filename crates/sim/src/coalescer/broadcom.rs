// SPDX-License-Identifier: MIT
//! Broadcom DHD, mode HOLD: of three ACKs of a flow the newest is sent, or what waits after 10 ms.
//!
//! An equal number counts as newer, so two of three duplicate ACKs are gone. Four flows have a place;
//! an ACK that finds none is never sent.
// [S6.14]

use super::rule::{is_ack_alone, Out, Rule, MS};
use crate::packet::Packet;
use crate::sender::NEVER;

const STREAMS: usize = 4;
const RATIO: u32 = 3;
const WAIT_NS: u64 = 10 * MS;

struct Stream {
    held: Box<Packet>,
    count: u32,
    due_ns: u64,
}

#[derive(Default)]
pub struct Broadcom {
    streams: Vec<Stream>,
}

impl Rule for Broadcom {
    fn send(&mut self, now: u64, packet: Box<Packet>, out: &mut Out) {
        if !is_ack_alone(&packet) {
            return out.send(packet);
        }
        let Some(at) = self.streams.iter().position(|stream| stream.held.flow == packet.flow) else {
            if self.streams.len() < STREAMS {
                self.streams.push(Stream { held: packet, count: 1, due_ns: now + WAIT_NS });
            } else {
                out.drop(Some(packet));
            }
            return;
        };
        let stream = &mut self.streams[at];
        if packet.ack < stream.held.ack {
            return out.drop(Some(packet));
        }
        out.drop(Some(std::mem::replace(&mut stream.held, packet)));
        stream.count += 1;
        if stream.count >= RATIO {
            out.send(self.streams.remove(at).held);
        }
    }

    fn expire(&mut self, now: u64, out: &mut Out) {
        while let Some(at) = self.streams.iter().position(|stream| stream.due_ns <= now) {
            out.send(self.streams.remove(at).held);
        }
    }

    fn due_ns(&self) -> u64 {
        self.streams.iter().map(|stream| stream.due_ns).min().unwrap_or(NEVER)
    }
}
