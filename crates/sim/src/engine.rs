// SPDX-License-Identifier: MIT
//! The road of one packet: application, sender, host, links, host, receiver, policy, and back.

use crate::app::App;
use crate::heap::{Heap, Kind};
use crate::host::{Host, Work};
use crate::packet::{Framing, Packet, Parcel};
use crate::pipe::{Link, Wake};
use crate::receiver::{Receiver, Setup};
use crate::record::{FlowRecord, GroupRecord};
use crate::result::{RunResult, SCHEMA_VERSION};
use crate::rng::Rng;
use crate::scenario::{Direction, FlowGroup, PolicyChoice, Recovery, Scenario};
use crate::sender::{Sender, NEVER};
use ackwise_core::{Reason, Resolved};
use std::sync::atomic::{AtomicBool, Ordering};

/// TCP timestamps with padding (RFC 7323, appendix A).
const TIMESTAMP_BYTES: u32 = 12;
/// Flows of each group that get a time series.
const SERIES_FLOWS: u32 = 16;
/// How often a cancellation is looked for, in events.
const CANCEL_EVERY: u64 = 8192;
/// A wake-up finds this much work at most before the next one is due: guards against a loop in
/// which simulated time stands still.
const SAME_TIME_EVENTS: u64 = 50_000_000;

/// Why a run gave no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SimError {
    /// The scenario cannot be run: what is wrong and what would be right.
    Scenario(String),
    Cancelled,
}

impl std::fmt::Display for SimError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SimError::Scenario(what) => f.write_str(what),
            SimError::Cancelled => f.write_str("cancelled"),
        }
    }
}

impl std::error::Error for SimError {}

/// One end of a flow.
struct Endpoint {
    tx: Sender,
    rx: Receiver,
    /// The wake-up that is in the heap; others are stale.
    scheduled_ns: u64,
    /// Lies at the client.
    at_client: bool,
    /// Its application asked the processor for a turn.
    asks: bool,
}

struct Flow {
    group: u32,
    /// [the data sender, the data receiver]
    ends: [Endpoint; 2],
    app: App,
    framing: Framing,
    record: FlowRecord,
    active: bool,
}

struct GroupState {
    spec: FlowGroup,
    /// [of the data sender, of the data receiver]
    policies: [Resolved; 2],
    record: GroupRecord,
    started: u32,
    rng: Rng,
}

pub struct Engine<'a> {
    scenario: &'a Scenario,
    now: u64,
    heap: Heap,
    links: Vec<Link>,
    /// Links of a flow in each direction: one (the pipe) or three (access, pipe, access).
    hops: u8,
    hosts: [Host; 2],
    flows: Vec<Flow>,
    groups: Vec<GroupState>,
    /// Packets held back by links, by slot.
    late: Vec<Option<Parcel>>,
    medium_busy: bool,
    medium_turn: usize,
    out: Vec<Parcel>,
    events: u64,
    hops_done: u64,
}

const DOWN: usize = 0;
const UP: usize = 1;
const CLIENT: usize = 0;
const SERVER: usize = 1;
const DATA_SENDER: usize = 0;
const DATA_RECEIVER: usize = 1;

/// Runs a scenario to its end.
///
/// # Errors
/// `SimError::Scenario` when it cannot be run; `SimError::Cancelled` soon after `cancel` was set.
pub fn run(scenario: &Scenario, cancel: Option<&AtomicBool>) -> Result<RunResult, SimError> {
    crate::check::scenario(scenario).map_err(SimError::Scenario)?;
    let mut engine = Engine::new(scenario)?;
    engine.run(cancel)?;
    Ok(engine.finish())
}

impl<'a> Engine<'a> {
    fn new(scenario: &'a Scenario) -> Result<Self, SimError> {
        let seed = scenario.seed;
        let mut groups = Vec::new();
        for (i, spec) in scenario.groups.iter().enumerate() {
            let resolve = |choice: &PolicyChoice| choice.resolve().map_err(SimError::Scenario);
            let policies = [resolve(&spec.peer_policy)?, resolve(&spec.policy)?];
            groups.push(GroupState {
                spec: spec.clone(),
                policies,
                record: GroupRecord::default(),
                started: 0,
                rng: Rng::new(seed, 1 << 40 | i as u64),
            });
        }
        let links =
            vec![Link::new(&scenario.down, seed, 1 << 41), Link::new(&scenario.up, seed, 1 << 41 | 1)];
        let mut engine = Engine {
            scenario,
            now: 0,
            heap: Heap::default(),
            links,
            hops: if scenario.access.is_some() { 3 } else { 1 },
            hosts: [Host::new(&scenario.client), Host::new(&scenario.server)],
            flows: Vec::new(),
            groups,
            late: Vec::new(),
            medium_busy: false,
            medium_turn: 0,
            out: Vec::new(),
            events: 0,
            hops_done: 0,
        };
        for g in 0..engine.groups.len() {
            engine.plan_starts(g);
        }
        if scenario.series_interval_ns > 0 {
            engine.heap.push(0, Kind::Series, 0);
        }
        Ok(engine)
    }

    /// Flows are created in order of their start, so that a flow's number is its place.
    fn plan_starts(&mut self, group: usize) {
        let g = &mut self.groups[group];
        if g.spec.arrivals_per_s > 0.0 {
            self.heap.push(g.spec.start_ns, Kind::Arrival, group);
            return;
        }
        for _ in 0..g.spec.count {
            let at = g.spec.start_ns + g.rng.up_to(g.spec.start_jitter_ns);
            self.heap.push(at, Kind::Start, group);
        }
    }

    fn next_arrival(&mut self, group: usize) {
        self.start_flow(group);
        let g = &mut self.groups[group];
        if g.started < g.spec.count {
            let gap = g.rng.exponential(1e9 / g.spec.arrivals_per_s) as u64;
            self.heap.push(self.now + gap.max(1), Kind::Arrival, group);
        }
    }

    fn start_flow(&mut self, group: usize) {
        let s = self.scenario;
        let index = self.flows.len();
        if let Some(access) = &s.access {
            for _ in 0..4 {
                self.links.push(Link::plain(access.rate_bps, access.delay_ns));
            }
        }
        let g = &mut self.groups[group];
        let spec = &g.spec;
        let options = if spec.receiver.timestamps { TIMESTAMP_BYTES } else { 0 };
        let mss = s.mtu_bytes - s.ip_tcp_header_bytes - options;
        let overhead_bytes = s.ip_tcp_header_bytes + options + s.link_overhead_bytes;
        let framing = Framing { overhead_bytes, cells: s.link_cells };
        let empty_bytes = framing.wire_bytes(0);
        // The handshake's round trip: two empty segments over empty links.
        let idle = |d: usize| -> u64 {
            let access = s
                .access
                .as_ref()
                .map_or(0, |a| 2 * Link::plain(a.rate_bps, a.delay_ns).empty_time_ns(empty_bytes));
            self.links[d].empty_time_ns(empty_bytes) + access
        };
        let rtt_ns = idle(DOWN) + idle(UP);
        let down = spec.direction == Direction::Down;
        let number = u64::from(g.started);
        let at_client = [!down, down];
        let host = at_client.map(|client| if client { &s.client } else { &s.server });
        let receiver = |role: usize| {
            let place = (group as u64) << 32 | number << 2 | role as u64;
            let sack = spec.sender.recovery == Recovery::Sack;
            let setup = Setup { policy: &g.policies[role], seed: s.seed, place, sack };
            let config = spec.receiver.bounded(host[role].recv_buffer_max_bytes);
            Receiver::new(&config, mss, self.now, rtt_ns, &setup)
        };
        let endpoint = |role: usize, rx: Receiver, peer_wnd: u64| {
            let config = spec.sender.bounded(host[role].send_buffer_max_bytes);
            let tx = Sender::new(&config, u64::from(mss), peer_wnd, rtt_ns, self.now);
            Endpoint { tx, rx, scheduled_ns: NEVER, at_client: at_client[role], asks: false }
        };
        let (a, b) = (receiver(DATA_SENDER), receiver(DATA_RECEIVER));
        let (wnd_a, wnd_b) = (a.window(), b.window());
        let ends = [endpoint(DATA_SENDER, a, wnd_b), endpoint(DATA_RECEIVER, b, wnd_a)];
        let rng = Rng::new(s.seed, 1 << 42 | (group as u64) << 32 | number);
        let app = App::new(&spec.app, self.now, rng);
        let series = s.series_interval_ns > 0 && g.started < SERIES_FLOWS;
        let trace = s.record.trace && g.started == 0;
        let record = FlowRecord::new(self.now, series, trace.then_some(s.record.trace_limit));
        g.started += 1;
        self.flows.push(Flow { group: group as u32, ends, app, framing, record, active: true });
        self.act(index, DATA_SENDER);
        self.act(index, DATA_RECEIVER);
    }

    fn run(&mut self, cancel: Option<&AtomicBool>) -> Result<(), SimError> {
        let mut same = 0u64;
        while let Some((time, kind, index)) = self.heap.pop() {
            if time > self.scenario.duration_ns {
                self.now = self.scenario.duration_ns;
                return Ok(());
            }
            if kind == Kind::Endpoint && !self.is_due(index, time) {
                continue;
            }
            same = if time == self.now { same + 1 } else { 0 };
            if same >= SAME_TIME_EVENTS {
                return Err(SimError::Scenario(format!(
                    "simulated time stands still at {time} ns; a fault of the simulator, please report the scenario"
                )));
            }
            self.now = time;
            self.events += 1;
            if self.events % CANCEL_EVERY == 0 && cancel.is_some_and(|c| c.load(Ordering::Relaxed)) {
                return Err(SimError::Cancelled);
            }
            match kind {
                Kind::Link => self.on_link(index),
                Kind::Transmit => self.on_transmit(index),
                Kind::Late => {
                    if let Some(packet) = self.late[index].take() {
                        self.cross(packet);
                    }
                }
                Kind::Host => self.on_host(index),
                Kind::Endpoint => self.on_wake(index),
                Kind::Start => self.start_flow(index),
                Kind::Arrival => self.next_arrival(index),
                Kind::Series => self.on_series(),
            }
        }
        Ok(())
    }

    // --- links -------------------------------------------------------------------------------

    /// The link a packet takes next, by flow, direction and links crossed so far.
    #[inline]
    fn link_of(&self, p: &Packet) -> usize {
        let shared = if p.down { DOWN } else { UP };
        match (self.hops, p.hop) {
            (1, _) | (_, 1) => shared,
            (_, hop) => 2 + 4 * p.flow as usize + 2 * shared + usize::from(hop == 2),
        }
    }

    #[inline]
    fn put_on_link(&mut self, link: usize, packet: Parcel) {
        let shared = self.links[link].shared;
        if shared {
            self.links[link].hold();
        }
        match self.links[link].enqueue(self.now, packet) {
            Wake::Deliver(at) => self.heap.push(at, Kind::Link, link),
            Wake::Transmit(at) => self.heap.push(at, Kind::Transmit, link),
            Wake::None => {}
        }
        if shared && !self.medium_busy && self.links[link].has_waiting() {
            self.medium_busy = true;
            self.heap.push(self.now, Kind::Transmit, link);
        }
    }

    fn on_transmit(&mut self, link: usize) {
        if !self.links[link].shared {
            let (wake, again) = self.links[link].transmit(self.now);
            if let Wake::Deliver(at) = wake {
                self.heap.push(at, Kind::Link, link);
            }
            if let Some(at) = again {
                self.heap.push(at, Kind::Transmit, link);
            }
            return;
        }
        // One medium: both directions take turns.
        let other = 1 - self.medium_turn;
        let pick = if self.links[other].has_waiting() { other } else { self.medium_turn };
        self.medium_turn = pick;
        let (wake, again) = self.links[pick].transmit(self.now);
        if let Wake::Deliver(at) = wake {
            self.heap.push(at, Kind::Link, pick);
        }
        match again {
            Some(at) => self.heap.push(at, Kind::Transmit, pick),
            None => self.medium_busy = false,
        }
    }

    #[inline]
    fn on_link(&mut self, link: usize) {
        let (arrived, next) = self.links[link].deliver();
        if let Some(at) = next {
            self.heap.push(at, Kind::Link, link);
        }
        let Some(a) = arrived else { return };
        if a.late_ns > 0 {
            let slot = self.late.iter().position(Option::is_none).unwrap_or_else(|| {
                self.late.push(None);
                self.late.len() - 1
            });
            self.late[slot] = Some(a.packet);
            self.heap.push(self.now + a.late_ns, Kind::Late, slot);
            return;
        }
        if a.twice {
            self.cross(a.packet.clone());
        }
        self.cross(a.packet);
    }

    /// A packet has crossed a link.
    #[inline]
    fn cross(&mut self, mut packet: Parcel) {
        self.hops_done += 1;
        packet.hop += 1;
        if packet.hop < self.hops {
            let link = self.link_of(&packet);
            self.put_on_link(link, packet);
            return;
        }
        let host = if packet.down { CLIENT } else { SERVER };
        if self.hosts[host].is_active() {
            self.give(host, Work::Received(packet));
        } else {
            self.receive(packet);
        }
    }

    /// Hands work to a host's processor.
    fn give(&mut self, host: usize, work: Work) {
        let (now, flows) = (self.now, &self.flows);
        if let Some(at) = self.hosts[host].submit(now, work, |who| turn_bytes(flows, who, now)) {
            self.heap.push(at, Kind::Host, host);
        }
    }

    fn on_host(&mut self, host: usize) {
        let (now, flows) = (self.now, &self.flows);
        let (work, next) = self.hosts[host].wake(now, |who| turn_bytes(flows, who, now));
        if let Some(at) = next {
            self.heap.push(at, Kind::Host, host);
        }
        match work {
            Some(Work::Received(packet)) => self.receive(packet),
            Some(Work::Sent(packet)) => {
                let link = self.link_of(&packet);
                self.put_on_link(link, packet);
            }
            Some(Work::Turn(who)) => self.on_turn(host, who),
            None => {}
        }
    }

    // --- endpoints ---------------------------------------------------------------------------

    fn receive(&mut self, p: Parcel) {
        let index = p.flow as usize;
        let flow = &mut self.flows[index];
        let role = usize::from(flow.ends[DATA_RECEIVER].at_client == p.down);
        let end = &mut flow.ends[role];
        let now = self.now;
        end.rx.note_timestamp(&p);
        let rtt_ns = end.tx.on_ack(now, &p);
        if let (DATA_SENDER, Some(rtt_ns)) = (role, rtt_ns) {
            self.groups[flow.group as usize].record.rtt.record(rtt_ns);
            flow.record.rtt(rtt_ns);
        }
        if p.len > 0 || p.fin || p.probe {
            if role == DATA_RECEIVER {
                flow.record.arrived(now, p.segments.into());
            }
            end.rx.on_segment(now, &p, end.tx.rto_ns());
        }
        self.act(index, role);
    }

    /// The application of an endpoint has its turn: it reads and writes.
    fn on_turn(&mut self, host: usize, who: usize) {
        let (index, role) = (who / 2, who % 2);
        let now = self.now;
        let flow = &mut self.flows[index];
        flow.ends[role].asks = false;
        if self.hosts[host].charges_reading() && flow.ends[role].rx.reader_ns == NEVER {
            flow.read(now, role, &mut self.groups[flow.group as usize]);
        }
        if flow.writes_in_turns(role, &self.hosts[host]) {
            let tx = &mut flow.ends[role].tx;
            let most = tx.mss;
            flow.app.write(now, tx, most);
        }
        self.act(index, role);
    }

    /// Everything an endpoint can do at this time: output (which carries due ACKs along), due
    /// ACKs, reading, and again until nothing is left.
    fn act(&mut self, index: usize, role: usize) {
        let now = self.now;
        let mut out = std::mem::take(&mut self.out);
        let flow = &mut self.flows[index];
        let host = if flow.ends[role].at_client { CLIENT } else { SERVER };
        let reads_in_turns = self.hosts[host].charges_reading();
        let writes_in_turns = flow.writes_in_turns(role, &self.hosts[host]);
        let mut asks = false;
        let group = &mut self.groups[flow.group as usize];
        if flow.ends[role].tx.sends_before_the_writer_wakes() {
            flow.send_data(now, index, role, &mut out, group);
        }
        loop {
            // The application writes, TCP sends what it may; a BSD writer goes on after it.
            loop {
                let again = if role == DATA_SENDER {
                    !writes_in_turns && flow.app.write(now, &mut flow.ends[role].tx, u64::MAX)
                } else {
                    flow.app.ask(now, &mut flow.ends[role].tx);
                    false
                };
                flow.send_data(now, index, role, &mut out, group);
                if !again {
                    break;
                }
            }
            if let Some(reason) = flow.ends[role].rx.ack_due() {
                flow.send_ack(now, index, role, reason, &mut out, group);
            }
            if flow.ends[role].asks || !flow.ends[role].rx.wake_reader(now) {
                break;
            }
            if reads_in_turns {
                asks = true;
                break;
            }
            flow.read(now, role, group);
        }
        asks |= writes_in_turns && flow.app.writable(&flow.ends[role].tx) > 0;
        asks &= !flow.ends[role].asks;
        flow.ends[role].asks |= asks;
        let wake = flow.wake_ns(role);
        let end = &mut flow.ends[role];
        if wake < end.scheduled_ns {
            end.scheduled_ns = wake;
            self.heap.push(wake.max(now), Kind::Endpoint, 2 * index + role);
        }
        flow.note_end(now, group);
        // What was read may have set the other side's application going.
        let other = 1 - role;
        let poke = if other == DATA_SENDER { flow.app.wake_ns } else { flow.app.ask_ns };
        let peer = &mut flow.ends[other];
        if poke < peer.scheduled_ns {
            peer.scheduled_ns = poke;
            self.heap.push(poke.max(now), Kind::Endpoint, 2 * index + other);
        }
        for packet in out.drain(..) {
            if self.hosts[host].is_active() {
                self.give(host, Work::Sent(packet));
            } else {
                let link = self.link_of(&packet);
                self.put_on_link(link, packet);
            }
        }
        self.out = out;
        if asks {
            self.give(host, Work::Turn(2 * index + role));
        }
    }

    /// False: the endpoint's timers were put off or stopped since, so this is no event, and a run
    /// that went quiet does not end with it.
    fn is_due(&mut self, what: usize, time: u64) -> bool {
        let (index, role) = (what / 2, what % 2);
        let flow = &mut self.flows[index];
        if flow.ends[role].scheduled_ns != time {
            return false;
        }
        let wake = flow.wake_ns(role);
        let due = wake <= time;
        flow.ends[role].scheduled_ns = if due { NEVER } else { wake };
        if !due && wake != NEVER {
            self.heap.push(wake, Kind::Endpoint, what);
        }
        due
    }

    fn on_wake(&mut self, what: usize) {
        let (index, role) = (what / 2, what % 2);
        let now = self.now;
        let mut probe = false;
        let flow = &mut self.flows[index];
        if flow.ends[role].rx.deadline_ns <= now {
            flow.note_stall(now, role);
            flow.ends[role].rx.on_deadline(now);
        }
        let end = &mut flow.ends[role];
        if end.tx.timer_ns <= now {
            probe = end.tx.on_timer(now);
        }
        if end.rx.reader_ns <= now {
            end.rx.reader_ns = NEVER;
            let host = if end.at_client { CLIENT } else { SERVER };
            if self.hosts[host].charges_reading() {
                if !std::mem::replace(&mut end.asks, true) {
                    self.give(host, Work::Turn(what));
                }
            } else {
                let group = &mut self.groups[flow.group as usize];
                flow.read(now, role, group);
            }
        }
        if probe {
            let flow = &mut self.flows[index];
            let mut packet = flow.packet(now, index, role, 0);
            packet.probe = true;
            packet.seq = flow.ends[role].tx.una.saturating_sub(1);
            self.out.push(packet);
        }
        self.act(index, role);
    }

    fn on_series(&mut self) {
        for flow in &mut self.flows {
            let policy = self.groups[flow.group as usize].policies[DATA_RECEIVER].policy;
            flow.record.sample(self.now, &flow.ends[DATA_SENDER].tx, &flow.ends[DATA_RECEIVER].rx, policy);
        }
        for link in &mut self.links[..2] {
            link.sample(self.now);
        }
        let next = self.now + self.scenario.series_interval_ns;
        if next <= self.scenario.duration_ns {
            self.heap.push(next, Kind::Series, 0);
        }
    }

    fn finish(mut self) -> RunResult {
        // A run that went quiet ends with its last event.
        let duration_ns = self.now.max(1);
        let mut delivered = 0;
        let mut per_group: Vec<Vec<FlowRecord>> = self.groups.iter().map(|_| Vec::new()).collect();
        for flow in self.flows {
            let mut record = flow.record;
            record.close(&flow.ends[DATA_SENDER].tx, &flow.ends[DATA_RECEIVER].rx);
            delivered += record.delivered_bytes;
            per_group[flow.group as usize].push(record);
        }
        let groups = self
            .groups
            .into_iter()
            .zip(per_group)
            .map(|(g, flows)| {
                g.record.finish(g.spec.name, g.policies[DATA_RECEIVER].policy.name(), flows, duration_ns)
            })
            .collect();
        RunResult {
            schema_version: SCHEMA_VERSION,
            seed: self.scenario.seed,
            duration_ns,
            events: self.events,
            packet_hops: self.hops_done,
            groups,
            down: self.links[DOWN].finish(duration_ns),
            up: self.links[UP].finish(duration_ns),
            client: self.hosts[CLIENT].finish(duration_ns, delivered),
            server: self.hosts[SERVER].finish(duration_ns, delivered),
        }
    }
}

/// What the application of this endpoint is going to read and to write in its turn.
fn turn_bytes(flows: &[Flow], who: usize, now: u64) -> (u64, u64) {
    let flow = &flows[who / 2];
    let end = &flow.ends[who % 2];
    let readable = if end.rx.reader_ns == NEVER { end.rx.readable(now) } else { 0 };
    let writable = if who % 2 == DATA_SENDER { flow.app.writable(&end.tx) } else { 0 };
    (readable, writable.min(end.tx.mss))
}

impl Flow {
    /// Only a bulk writer on a Linux socket waits for its turn.
    fn writes_in_turns(&self, role: usize, host: &Host) -> bool {
        role == DATA_SENDER
            && host.charges_writing()
            && self.app.is_bulk()
            && !self.ends[role].tx.sends_before_the_writer_wakes()
    }

    /// The earliest timer of this end or of its application.
    fn wake_ns(&self, role: usize) -> u64 {
        let end = &self.ends[role];
        let timers = [end.tx.timer_ns, end.tx.pace_wake_ns(), end.rx.deadline_ns, end.rx.reader_ns];
        let app = if role == DATA_SENDER { self.app.wake_ns } else { self.app.ask_ns };
        timers.into_iter().fold(app, u64::min)
    }

    /// A packet of this end with so much payload and the current ACK fields.
    fn packet(&mut self, now: u64, index: usize, role: usize, len: u32) -> Parcel {
        let end = &mut self.ends[role];
        let fields = end.rx.ack_fields();
        let blocks = fields.sack.as_ref().map_or(0, |s| s.len() as u32);
        // RFC 2018, 3: two bytes and eight for each block, padded to four.
        let sack_bytes = if blocks > 0 { 4 + 8 * blocks } else { 0 };
        Box::new(Packet {
            flow: index as u32,
            wire_bytes: self.framing.wire_bytes(sack_bytes + len),
            len,
            segments: 1,
            down: !end.at_client,
            hop: 0,
            fin: false,
            psh: false,
            retransmitted: false,
            probe: false,
            lost: false,
            seq: end.tx.nxt,
            ack: fields.ack,
            wnd_bytes: fields.wnd_bytes,
            sent_ns: now,
            echo_ns: fields.echo_ns,
            sack: fields.sack,
        })
    }

    fn send_data(
        &mut self,
        now: u64,
        index: usize,
        role: usize,
        out: &mut Vec<Parcel>,
        group: &mut GroupState,
    ) {
        while let Some(segment) = self.ends[role].tx.next_segment(now) {
            let mut p = self.packet(now, index, role, segment.len);
            p.seq = segment.seq;
            p.psh = segment.psh;
            p.fin = segment.fin;
            p.retransmitted = segment.is_retransmission;
            if role == DATA_SENDER {
                self.record.data(now, &segment);
            }
            out.push(p);
            self.acknowledged(now, role, None, group);
        }
    }

    fn send_ack(
        &mut self,
        now: u64,
        index: usize,
        role: usize,
        reason: Reason,
        out: &mut Vec<Parcel>,
        group: &mut GroupState,
    ) {
        let p = self.packet(now, index, role, 0);
        if role == DATA_RECEIVER {
            self.record.ack(now, p.ack, reason);
        }
        out.push(p);
        self.acknowledged(now, role, Some(reason), group);
    }

    /// An ACK left this end: on its own with a reason, or on data.
    #[inline]
    fn acknowledged(&mut self, now: u64, role: usize, reason: Option<Reason>, group: &mut GroupState) {
        let rx = &mut self.ends[role].rx;
        if role == DATA_SENDER {
            rx.on_ack_sent(now, reason.is_none(), |_, _| {});
            return;
        }
        match reason {
            Some(reason) => group.record.count(reason),
            None if rx.owes_ack() => group.record.acks_piggybacked += 1,
            None => {}
        }
        rx.on_ack_sent(now, reason.is_none(), |wait_ns, segments| {
            for _ in 0..segments {
                group.record.ack_latency.record(wait_ns);
            }
        });
    }

    /// The application of this end reads what it may.
    fn read(&mut self, now: u64, role: usize, group: &mut GroupState) {
        let rx = &mut self.ends[role].rx;
        let bytes = rx.readable(now);
        rx.on_read(now, bytes);
        let read = rx.read_bytes();
        if role == DATA_RECEIVER {
            self.app.on_delivered(now, read, |ns| group.record.message_latency.record(ns));
        } else {
            self.app.on_request(read, &mut self.ends[DATA_SENDER].tx);
        }
    }

    /// A delayed ACK's deadline passed while the sender had data, in its buffer or for want of room
    /// still with the application, everything sent had arrived and so had every ACK: both sides
    /// were waiting for each other.
    fn note_stall(&mut self, now: u64, role: usize) {
        if role != DATA_RECEIVER {
            return;
        }
        let [sender, receiver] = &self.ends;
        let idle = sender.tx.nxt == receiver.rx.rcv_nxt && sender.tx.una == receiver.rx.acknowledged();
        let has_data = sender.tx.has_unsent() || self.app.has_more(&sender.tx);
        if idle && has_data && now >= receiver.rx.deadline_ns && receiver.rx.owes_ack() {
            self.record.stalls += 1;
            self.record.stalled_ns += now - receiver.rx.last_data_ns;
        }
    }

    /// The flow is over when its application has nothing left and all is acknowledged.
    fn note_end(&mut self, now: u64, group: &mut GroupState) {
        if self.active && self.app.is_finished() && self.ends[DATA_SENDER].tx.is_done() {
            self.active = false;
            self.record.completed = true;
            self.record.end_ns = self.record.end_ns.max(self.ends[DATA_RECEIVER].rx.last_data_ns).min(now);
            group.record.completed += 1;
        }
    }
}
