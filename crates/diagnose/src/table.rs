// SPDX-License-Identifier: MIT
//! Finds the connection of each packet, and hands out those that are over.

use crate::flow::Flow;
use crate::key::Key;
use crate::report::{Connection, Ending};
use crate::step::Step;
use ackwise_capture::Packet;
use std::collections::{HashMap, VecDeque};

/// Twice the MSL of RFC 9293, 3.4.2: the longest time in which a packet of a connection that ended
/// may still arrive.
const QUIET_NS: u64 = 240_000_000_000;

#[derive(Default)]
pub(crate) struct Table {
    open: HashMap<Key, Box<Flow>>,
    /// Connections that ended and when they may be handed out, in order of time.
    ended: VecDeque<(u64, Key, u64)>,
}

/// A packet on its way to its connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'p> {
    pub packet: &'p Packet,
    pub key: Key,
    /// Since the first packet of the capture.
    pub now_ns: u64,
    /// Packets in front of it.
    pub ordinal: u64,
}

impl Table {
    /// Adds a packet, and hands out connections to which it and later ones cannot belong. `watch` is
    /// called with its connection and its step, unless it is a copy of another.
    pub fn add(
        &mut self,
        arrival: &Arrival<'_>,
        over: &mut impl FnMut(Connection),
        watch: impl FnOnce(&Flow, &Step),
    ) {
        let Arrival { packet, key, now_ns, ordinal } = *arrival;
        self.hand_out(now_ns, over);
        let goes_on = |flow: &&mut Box<Flow>| !is_over(flow, now_ns) && !flow.is_reopened_by(&packet.segment);
        match self.open.get_mut(&key).filter(goes_on) {
            Some(flow) => {
                if flow.add(packet, now_ns, watch) {
                    self.ended.push_back((now_ns.saturating_add(QUIET_NS), key, flow.index));
                }
            }
            None => {
                self.close(&key, over);
                let mut flow = Box::new(Flow::new(packet, now_ns, ordinal));
                if flow.add(packet, now_ns, watch) {
                    self.ended.push_back((now_ns.saturating_add(QUIET_NS), key, flow.index));
                }
                self.open.insert(key, flow);
            }
        }
    }

    fn hand_out(&mut self, now_ns: u64, over: &mut impl FnMut(Connection)) {
        while let Some(&(_, key, index)) = self.ended.front().filter(|e| e.0 < now_ns) {
            self.ended.pop_front();
            match self.open.get(&key).filter(|flow| flow.index == index) {
                Some(flow) if is_over(flow, now_ns) => self.close(&key, over),
                // Packets came after its end: looked at again when they are old enough.
                Some(_) => self.ended.push_back((now_ns.saturating_add(QUIET_NS), key, index)),
                None => {}
            }
        }
    }

    fn close(&mut self, key: &Key, over: &mut impl FnMut(Connection)) {
        if let Some(flow) = self.open.remove(key) {
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
