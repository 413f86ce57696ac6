// SPDX-License-Identifier: MIT
//! AIC8800: of ten ACKs of a flow the newest is sent, or what waits after 5 ms, or the one that
//! answers a short segment with PSH.
//!
//! An ACK that is not newer is dropped: duplicate ACKs, whatever SACK blocks they carry, and window
//! updates. So a sender learns of a hole only when more data fills another one, or by its timer.
// [S6.15]

use super::rule::{Out, Rule, MS};
use crate::packet::{Flags, Packet};
use crate::sender::NEVER;

const STREAMS: usize = 32;
const COUNT: u32 = 10;
const WAIT_NS: u64 = 5 * MS;
const UNUSED_NS: u64 = 4000 * MS;
/// Longer packets are looked at in neither direction.
const BYTES_MOST: u32 = 200;

struct Stream {
    flow: u32,
    held: Option<Box<Packet>>,
    due_ns: u64,
    count: u32,
    acked: u64,
    seen_ns: u64,
    /// First byte of a segment whose ACK must not wait.
    pushed: Option<u64>,
}

#[derive(Default)]
pub struct Aic {
    streams: Vec<Stream>,
    cleaned_ns: u64,
}

impl Aic {
    /// Forgets flows that sent nothing for long; looked for as seldom.
    fn clean(&mut self, now: u64) {
        if now > self.cleaned_ns + UNUSED_NS {
            self.cleaned_ns = now;
            self.streams.retain(|stream| now <= stream.seen_ns + UNUSED_NS);
        }
    }
}

impl Rule for Aic {
    fn send(&mut self, now: u64, packet: Box<Packet>, out: &mut Out) {
        self.clean(now);
        if !packet.is_pure_ack() || packet.wire_bytes > BYTES_MOST {
            return out.send(packet);
        }
        let Some(stream) = self.streams.iter_mut().find(|stream| stream.flow == packet.flow) else {
            if self.streams.len() < STREAMS {
                let (flow, acked) = (packet.flow, packet.ack);
                // The next one passes, too.
                let stream = Stream {
                    flow,
                    held: None,
                    due_ns: NEVER,
                    count: COUNT,
                    acked,
                    seen_ns: now,
                    pushed: None,
                };
                self.streams.push(stream);
            }
            return out.send(packet);
        };
        stream.seen_ns = now;
        if packet.ack <= stream.acked {
            return out.drop(Some(packet));
        }
        stream.acked = packet.ack;
        out.drop(stream.held.take());
        let answers = stream.pushed.is_some_and(|seq| packet.ack >= seq);
        if answers {
            stream.pushed = None;
        } else {
            stream.count += 1;
        }
        if answers || stream.count >= COUNT {
            stream.count = 0;
            stream.due_ns = NEVER;
            out.send(packet);
        } else {
            stream.held = Some(packet);
            stream.due_ns = stream.due_ns.min(now + WAIT_NS);
        }
    }

    fn receive(&mut self, _now: u64, packet: &Packet) {
        if packet.has(Flags::PSH) && packet.wire_bytes <= BYTES_MOST {
            let found = self.streams.iter_mut().find(|stream| stream.flow == packet.flow);
            found.into_iter().for_each(|stream| stream.pushed = Some(packet.seq));
        }
    }

    fn expire(&mut self, now: u64, out: &mut Out) {
        for stream in self.streams.iter_mut().filter(|stream| stream.due_ns <= now) {
            stream.due_ns = NEVER;
            stream.count = 0;
            stream.held.take().into_iter().for_each(|held| out.send(held));
        }
    }

    fn due_ns(&self) -> u64 {
        self.streams.iter().map(|stream| stream.due_ns).min().unwrap_or(NEVER)
    }
}
