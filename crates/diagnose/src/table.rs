// SPDX-License-Identifier: MIT
//! Finds the connection of each packet, and hands out those that are over.

use crate::flow::Flow;
use crate::report::{Connection, Ending};
use crate::step::Step;
use ackwise_capture::Packet;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

/// Twice the MSL of RFC 9293, 3.4.2: the longest time in which a packet of a connection that ended
/// may still arrive.
const QUIET_NS: u64 = 240_000_000_000;

/// Two endpoints in order, whoever opened the connection.
type Pair = (SocketAddr, SocketAddr);

#[derive(Default)]
pub(crate) struct Table {
    open: HashMap<Pair, Box<Flow>>,
    /// Connections that ended and when they may be handed out, in order of time.
    ended: VecDeque<(u64, Pair, u64)>,
    connections: u64,
}

impl Table {
    /// Adds a packet that passed `now_ns` after the first, and hands out connections to which it and
    /// later ones cannot belong. `watch` is called with its connection and its step, unless it is a
    /// copy of another.
    pub fn add(
        &mut self,
        packet: &Packet,
        now_ns: u64,
        over: &mut impl FnMut(Connection),
        watch: impl FnOnce(&Flow, &Step),
    ) {
        let (src, dst) = (packet.segment.src, packet.segment.dst);
        let pair = (src.min(dst), src.max(dst));
        self.hand_out(now_ns, over);
        let ends = |flow: &Flow| is_over(flow, now_ns) || flow.is_reopened_by(&packet.segment);
        if self.open.get(&pair).is_some_and(|flow| ends(flow)) {
            self.close(&pair, over);
        }
        let flow = self.open.entry(pair).or_insert_with(|| {
            self.connections += 1;
            Box::new(Flow::new(packet, now_ns, self.connections - 1))
        });
        let was_open = flow.ending == Ending::Open;
        flow.add(packet, now_ns, watch);
        if was_open && flow.ending != Ending::Open {
            self.ended.push_back((now_ns.saturating_add(QUIET_NS), pair, flow.index));
        }
    }

    fn hand_out(&mut self, now_ns: u64, over: &mut impl FnMut(Connection)) {
        while let Some(&(_, pair, index)) = self.ended.front().filter(|e| e.0 < now_ns) {
            self.ended.pop_front();
            match self.open.get(&pair).filter(|flow| flow.index == index) {
                Some(flow) if is_over(flow, now_ns) => self.close(&pair, over),
                // Packets came after its end: looked at again when they are old enough.
                Some(_) => self.ended.push_back((now_ns.saturating_add(QUIET_NS), pair, index)),
                None => {}
            }
        }
    }

    fn close(&mut self, pair: &Pair, over: &mut impl FnMut(Connection)) {
        if let Some(flow) = self.open.remove(pair) {
            over(flow.finish());
        }
    }

    /// The rest, in the order of first packets.
    pub fn finish(self, over: &mut impl FnMut(Connection)) {
        let mut rest: Vec<_> = self.open.into_values().collect();
        rest.sort_unstable_by_key(|flow| flow.index);
        rest.into_iter().for_each(|flow| over(flow.finish()));
    }
}

fn is_over(flow: &Flow, now_ns: u64) -> bool {
    flow.ending != Ending::Open && now_ns - flow.last_ns > QUIET_NS
}
