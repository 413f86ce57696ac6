// SPDX-License-Identifier: MIT
//! One connection: its two halves, and the interpretation of each packet as a step.

use crate::ace::Ace;
use crate::batch::{Headers, Segment};
use crate::distance::{Distance, Recent};
use crate::ecn_bytes::EcnCounters;
use crate::half::{Context, Half};
use crate::observer::{End, Observer};
use crate::repeats::{Copied, Repeats};
use crate::report::{Connection, Ecn, Ending, Handshake, Options, Scaling};
use crate::step::{Ack, AckKind, Data, Step};
use crate::table::Name;
use crate::transit::Transit;
use ackwise_capture::tcp_flag;
use std::net::SocketAddr;

/// Length of the timestamps option with padding, bytes.
const TIMESTAMPS_BYTES: u32 = 12;

/// Number of steps that one observer watches before the next one does: the code of all of them does
/// not fit into a processor's first cache, but these steps do.
const WATCHED: usize = 16;

/// Contents of an endpoint's SYN.
#[derive(Clone, Copy, Debug)]
struct Syn {
    time_ns: u64,
    flags: u16,
    options: Options,
}

/// A connection, and the observers of each half.
#[derive(Debug)]
pub(crate) struct Flow<O> {
    /// Number of packets in the capture before its first.
    index: u64,
    endpoints: [SocketAddr; 2],
    /// Whether endpoint 0 is the upper one (see [`crate::key::Key::of`]).
    is_upper: bool,
    initiator_known: bool,
    syns: [Option<Syn>; 2],
    /// RFC 2018, 2: only if both sides permit it. Where a SYN is missing, blocks may occur.
    uses_sack: bool,
    /// Each endpoint's report of CE marks, and of marked bytes.
    aces: [Ace; 2],
    ecn_counters: [EcnCounters; 2],
    handshake: Option<Handshake>,
    start_ns: u64,
    last_ns: u64,
    packets: u64,
    repeated_packets: [u64; 2],
    repeats: [Repeats; 2],
    distances: [Distance; 2],
    /// Transit times from each endpoint to the capture point.
    transits: [Transit; 2],
    /// `halves[e]`: data sent by endpoint e, and its acknowledgment by the other.
    halves: [Half; 2],
    observers: [O; 2],
}

impl<O: Observer> Flow<O> {
    /// A connection that starts with this packet.
    pub fn new(name: &Name, first: &Headers) -> Self {
        let &Headers { time_ns, flags, from_upper, .. } = first;
        let syn = flags & tcp_flag::SYN != 0;
        let from_acceptor = syn && flags & tcp_flag::ACK != 0;
        let is_upper = from_upper != from_acceptor;
        let [lower, upper] = name.key.endpoints();
        let endpoints = if is_upper { [upper, lower] } else { [lower, upper] };
        Flow {
            index: name.index,
            endpoints,
            is_upper,
            initiator_known: syn,
            syns: [None; 2],
            uses_sack: true,
            aces: Default::default(),
            ecn_counters: Default::default(),
            handshake: None,
            start_ns: time_ns,
            last_ns: time_ns,
            packets: 0,
            repeated_packets: [0; 2],
            repeats: Default::default(),
            distances: Default::default(),
            transits: Default::default(),
            halves: Default::default(),
            observers: Default::default(),
        }
    }

    /// Passes packets through both halves, and their steps to the observers. `steps` is empty before
    /// and after.
    pub fn follow<'p>(&mut self, segments: impl Iterator<Item = Segment<'p>>, steps: &mut Vec<Step>) {
        steps.reserve_exact(WATCHED);
        for segment in segments {
            self.add(&segment, steps);
            if steps.len() == WATCHED {
                self.watch(steps);
                steps.clear();
            }
        }
        self.watch(steps);
        steps.clear();
    }

    fn watch(&mut self, steps: &[Step]) {
        for (of, observer) in self.observers.iter_mut().enumerate() {
            observer.watch(of, steps);
        }
    }

    /// Passes the packet through both halves, and appends its step unless it is a copy of an earlier
    /// packet.
    pub fn add(&mut self, segment: &Segment<'_>, steps: &mut Vec<Step>) {
        let now_ns = segment.time_ns;
        let from = usize::from(segment.from_upper != self.is_upper);
        let to = 1 - from;
        let has = |flag| segment.has(flag);
        let recent = [0, 1].map(|e| self.distances[e].recent());
        let path = path_of(recent);
        let rtt_ns = path.map(|path| path.min_ns);
        let silence_ns = now_ns - self.last_ns;
        self.last_ns = now_ns;
        self.packets += 1;
        if self.is_copy(from, segment, now_ns, rtt_ns) {
            self.repeated_packets[from] += 1;
            return;
        }
        if has(tcp_flag::SYN) {
            self.syn(from, segment, now_ns);
        }
        let least_ns = [0, 1].map(|e| self.distances[e].min_ns());
        let cx = Context {
            time_ns: now_ns,
            sender: recent[from],
            sender_least_ns: least_ns[from].unwrap_or(0),
            path,
            sack: self.uses_sack,
        };
        // In its place, because it is too large to be moved for each packet.
        steps.push(Step {
            time_ns: now_ns,
            file: segment.file,
            number: segment.number,
            from,
            flags: segment.flags,
            ttl: segment.ttl,
            ecn: segment.ecn,
            payload_bytes: segment.payload_len,
            ip_bytes: segment.ip_total_len,
            silence_ns,
            queued_ns: None,
            least_ns,
            distance_ns: recent.map(|r| r.map(|r| r.min_ns)),
            data: Data::default(),
            ack: None,
        });
        let Some(step) = steps.last_mut() else { return };
        self.halves[from].sent(segment, &cx, &mut step.data);
        // The acknowledgment number of a reset need not belong to the connection.
        if has(tcp_flag::ACK) && !has(tcp_flag::RST) {
            let ack = step.ack.insert(Ack::default());
            self.halves[to].acked(segment, &step.data, now_ns, ack);
            // Linux's rule: the order of ACKs without progress does not show which was sent first.
            if ack.kind == AckKind::Advancing || ack.sacked_bytes > 0 || has(tcp_flag::SYN) {
                ack.ce_marks = self.aces[from].heard(segment.flags);
            }
            ack.ecn_bytes = segment.accecn.and_then(|option| self.ecn_counters[from].heard(option));
        }
        if let Some((value, echo)) = segment.timestamps() {
            self.distances[to].towards(now_ns, value);
            if has(tcp_flag::ACK) {
                self.distances[from].from(now_ns, echo);
            }
        }
        if O::READS_QUEUES {
            // Some hosts use another clock in their SYN.
            let stamp = segment.timestamps().map(|(value, _)| value).filter(|_| !has(tcp_flag::SYN));
            step.queued_ns = stamp.and_then(|value| self.transits[from].came(now_ns, value));
        }
        self.follow_handshake(step);
        if let Some(rtt_ns) = step.ack.as_ref().and_then(|ack| ack.rtt_ns()) {
            self.distances[from].sample(rtt_ns);
        }
    }

    /// Whether an earlier packet was captured a second time, here or at another point of the path.
    fn is_copy(&mut self, from: usize, segment: &Segment<'_>, now_ns: u64, rtt_ns: Option<u64>) -> bool {
        // Linux sends a reset for each packet that arrives, one like the other.
        if segment.has(tcp_flag::RST) {
            return false;
        }
        let found = self.repeats[from].find(now_ns, segment, rtt_ns, self.uses_sack);
        let found = match found {
            None if self.halves[from].holds(segment, self.repeats[from].is_numbered()) => Copied::Far,
            None => return false,
            Some(found) => found,
        };
        if found == Copied::Far {
            self.repeats.iter_mut().for_each(Repeats::look_far);
        }
        true
    }

    fn syn(&mut self, from: usize, segment: &Segment<'_>, now_ns: u64) {
        // If SYNs are retransmitted, the last one before the answer counts.
        if self.syns[1 - from].is_some() && self.syns[from].is_some() {
            return;
        }
        let options = segment.options();
        self.syns[from] = Some(Syn { time_ns: now_ns, flags: segment.flags, options });
        self.apply_options();
        let [Some(syn), Some(syn_ack)] = self.syns else { return };
        self.ecn_counters = [EcnCounters::Ignored; 2];
        if Ecn::of([syn.flags, syn_ack.flags]) == Ecn::Accurate {
            self.aces = Ace::of_handshake(syn_ack.flags);
            self.ecn_counters = [EcnCounters::Expected; 2];
        }
    }

    fn apply_options(&mut self) {
        let options = self.syns.map(|syn| syn.map(|s| s.options));
        let both = |f: fn(&Options) -> bool| options.iter().flatten().all(f);
        // What the snap length cut off may have been there.
        self.uses_sack = both(|o| o.sack_permitted || o.is_cut);
        let stamps = if both(|o| o.timestamps || o.is_cut) { TIMESTAMPS_BYTES } else { 0 };
        for e in [0, 1] {
            let (mine, peer) = (options[e], options[1 - e]);
            // RFC 9293, 3.7.1: the option limits what the peer of its sender sends. Without it, the
            // sender's own at least shows its MTU.
            let mss = [peer, mine].into_iter().flatten().find_map(|o| o.mss_bytes);
            self.halves[e].mss_limit_bytes = mss.map(|mss| u32::from(mss).saturating_sub(stamps).max(1));
            // RFC 7323, 2.2: scaling is on only if both SYNs carry the option; a SYN-ACK carries it
            // only in answer to one. The peer's scale applies to the windows for data sent by e.
            let scale = |of: Option<Options>| of.map(|o| o.scale());
            self.halves[e].scale.set(match (scale(mine), scale(peer)) {
                (Some(Some(Scaling::Off)), Some(_)) | (Some(_), Some(Some(Scaling::Off))) => Some(0),
                (Some(Some(Scaling::Offered(_))), Some(Some(Scaling::Offered(shift)))) => Some(shift),
                (None, Some(Some(Scaling::Offered(shift)))) if e == 0 => Some(shift),
                (None, Some(Some(Scaling::Off))) if e == 0 => Some(0),
                (Some(Some(Scaling::Off)), None) if e == 1 => Some(0),
                // A SYN-ACK with the option answers a SYN with it, even if that was cut.
                (Some(None), Some(Some(Scaling::Offered(shift)))) if e == 0 => Some(shift),
                _ => None,
            });
        }
    }

    fn follow_handshake(&mut self, step: &Step) {
        if self.handshake.is_some() || step.from != 0 || !step.has(tcp_flag::ACK) || step.has(tcp_flag::RST) {
            return;
        }
        let [Some(syn), Some(syn_ack)] = self.syns else { return };
        let handshake = Handshake { syn_ns: syn.time_ns, syn_ack_ns: syn_ack.time_ns, ack_ns: step.time_ns };
        if syn.time_ns <= syn_ack.time_ns {
            self.distances[0].sample(handshake.ack_ns - handshake.syn_ack_ns);
            self.distances[1].sample(handshake.syn_ack_ns - handshake.syn_ns);
            self.handshake = Some(handshake);
        }
    }

    fn ecn(&self) -> Option<Ecn> {
        let [syn, syn_ack] = self.syns.map(|syn| syn.map(|s| s.flags));
        Some(Ecn::of([syn?, syn_ack?]))
    }

    /// Ends the connection, or the capture.
    pub fn finish(self, ending: Ending) -> Connection<O::Report> {
        let end_ns = self.last_ns;
        let distances_ns = [0, 1].map(|e| self.distances[e].min_ns());
        let ends = [0, 1].map(|e| {
            let half = &self.halves[e];
            let (nxt, una) = half.highest();
            let peer = &self.halves[1 - e];
            End {
                time_ns: end_ns,
                first: half.first(),
                nxt,
                una,
                is_answered: half.is_answered,
                peer_bytes: peer.first().map_or(0, |first| peer.highest().0.saturating_sub(first)),
                mss_bytes: half.mss_bytes(),
                distance_ns: [distances_ns[e], distances_ns[1 - e]],
                ecn: self.ecn(),
                handshake: self.handshake,
                handshake_ns: self.handshake.map(|handshake| handshake.distance_ns(1 - e)),
            }
        });
        let ecn = self.ecn();
        let [a, b] = self.observers;
        Connection {
            index: self.index,
            endpoints: self.endpoints,
            initiator_known: self.initiator_known,
            start_ns: self.start_ns,
            end_ns,
            ending,
            packets: self.packets,
            repeated_packets: self.repeated_packets,
            options: self.syns.map(|syn| syn.map(|s| s.options)),
            ecn,
            handshake: self.handshake,
            distance_ns: distances_ns,
            halves: [a.finish(&ends[0]), b.finish(&ends[1])],
        }
    }
}

/// RTT of the whole path: the sum of both sides of the capture point, as far as known.
fn path_of(distances: [Option<Recent>; 2]) -> Option<Recent> {
    match distances {
        [Some(a), Some(b)] => Some(Recent { min_ns: a.min_ns + b.min_ns, max_ns: a.max_ns + b.max_ns }),
        [one, other] => one.or(other),
    }
}
