// SPDX-License-Identifier: MIT
//! The event loop: carries packets over links and through hosts, and wakes endpoints. `flow` models
//! an endpoint's reaction to a segment, up to the departing ACK.
//!
//! ```text
//! send_out -> depart -> enter_access -> [heap] -> arrive -> enter_link -> [heap] -> arrive -> receive
//!    ^                     if any                           Channel                             |
//!    +------------------------------------- respond <-------------------------------------------+
//! ```
//!
//! A host whose processor takes time holds a packet before `depart` and before `receive`.
//! A queue that chooses when its transmitter is free is served in `on_transmitter`; packets of a link
//! with faults arrive by `on_delivery`.

use crate::access::{Access, LINKS_OF_FLOW};
use crate::app::App;
use crate::channel::{Channel, Crossing, Wake, CHANNELS};
use crate::endpoint::{Endpoint, EndpointId, PerRole, Role, Side};
use crate::flow::{Context, Flow};
use crate::heap::{Heap, SimEvent, Turn};
use crate::host::{Flows, Host, TurnBytes, Work};
use crate::packet::{Framing, Packet};
use crate::ping::{Pings, PING_FLOW};
use crate::receiver::{Receiver, Setup};
use crate::record::{FlowRecord, GroupRecord};
use crate::result::{RunResult, SCHEMA_VERSION};
use crate::rng::Rng;
use crate::scenario::{
    DataDirection, FlowGroup, PolicyChoice, ReceiverSpec, Recovery, Scenario, SenderSpec, SocketLayer,
};
use crate::sender::{Sender, NEVER};
use crate::tap::{End, Opened, Passed, Place, Tap};
use ackwise_core::{Reason, Resolved};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

/// TCP timestamps with padding (RFC 7323, appendix A).
const TIMESTAMP_BYTES: u32 = 12;
/// Options carried only by a SYN: MSS (RFC 9293, 3.2), window scale (RFC 7323, 2.2) and SACK
/// permitted (RFC 2018, 2), which is padded unless timestamps share its four bytes.
const MSS_OPTION_BYTES: u32 = 4;
const SCALE_OPTION_BYTES: u32 = 4;
const SACK_OPTION_BYTES: u32 = 4;
/// Flows of each group that get a time series.
const SERIES_FLOWS: u32 = 16;
/// Number of events between two checks for cancellation and for time standing still.
const CHECK_EVERY: u64 = 8192;
/// Maximum events at one point in time: guards against a loop in which simulated time stands still.
const SAME_TIME_EVENTS: u64 = 50_000_000;

/// RNG stream id for congestion control.
const SENDERS: u64 = 1 << 44;

/// Why a run has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SimError {
    /// The scenario is invalid; the message gives the valid choices.
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

fn syn_option_bytes(receiver: &ReceiverSpec) -> u32 {
    let scale = if receiver.window_scaling { SCALE_OPTION_BYTES } else { 0 };
    let sack = if receiver.timestamps { 0 } else { SACK_OPTION_BYTES };
    MSS_OPTION_BYTES + scale + sack
}

/// The host whose processor serves this one.
#[inline]
fn processor(scenario: &Scenario, side: Side) -> Side {
    if scenario.one_processor {
        Side::Client
    } else {
        side
    }
}

/// Initial state of both ends of a flow.
struct FlowStart {
    mss: u32,     // payload bytes
    options: u32, // bytes of timestamps in each segment
    framing: Framing,
    /// Transit time of an empty segment over empty links.
    down_ns: u64,
    up_ns: u64,
    has_handshake: bool,
    wants_ecn: bool,
}

impl FlowStart {
    /// RTT of an earlier handshake; None if the flow opens with one.
    fn rtt_ns(&self) -> Option<u64> {
        (!self.has_handshake).then_some(self.down_ns + self.up_ns)
    }
}

struct GroupState {
    spec: FlowGroup,
    policies: PerRole<Resolved>,
    record: GroupRecord,
    started: u32,
    rng: Rng,
}

/// The flows as seen by their hosts' processors.
struct Served<'a> {
    now: u64,
    flows: &'a [Flow],
}

impl Flows for Served<'_> {
    fn turn(&self, who: EndpointId) -> TurnBytes {
        self.flows[who.flow as usize].turn_bytes(who.role, self.now)
    }
}

/// Ends a run that was cancelled, or in which simulated time stands still.
struct Watch<'a> {
    cancel: Option<&'a AtomicBool>,
    same_time_events: u64,
    checked_ns: u64,
}

impl Watch<'_> {
    /// Called every `CHECK_EVERY` events.
    #[cold]
    fn check(&mut self, now: u64) -> Result<(), SimError> {
        if self.cancel.is_some_and(|c| c.load(Ordering::Relaxed)) {
            return Err(SimError::Cancelled);
        }
        let stands_still = std::mem::replace(&mut self.checked_ns, now) == now;
        self.same_time_events = if stands_still { self.same_time_events + CHECK_EVERY } else { 0 };
        if self.same_time_events >= SAME_TIME_EVENTS {
            return Err(SimError::Scenario(format!(
                "simulated time stands still at {now} ns; a fault of the simulator, please report the scenario"
            )));
        }
        Ok(())
    }
}

pub struct Engine<'a> {
    scenario: &'a Scenario,
    now: u64,
    heap: Heap,
    /// The shared link's two directions.
    channels: [Channel; 2],
    access: Option<Access>,
    /// Number of links that a packet crosses: the shared one, or one between two access links.
    hops: u8,
    /// Whether one access link alone feeds each direction of the shared link, so that the future of a
    /// packet is known when it leaves its host.
    has_one_feeder: bool,
    /// Whether a driver looks at what its host receives.
    has_coalescer: bool,
    /// Hosts by `Side`.
    hosts: [Host; 2],
    flows: Vec<Flow>,
    groups: Vec<GroupState>,
    pings: Option<Pings>,
    /// Packets delayed by reordering, by slot.
    late: Vec<Option<Box<Packet>>>,
    medium_busy: bool,
    medium_turn: usize,
    out: VecDeque<Box<Packet>>,
    #[allow(clippy::vec_box)] // the boxes themselves are used again
    spare: Vec<Box<Packet>>,
    tap: Option<&'a mut dyn Tap>,
    events: u64,
    /// Arrivals folded into another event.
    events_saved: u64,
    hops_done: u64,
}

const DOWN: usize = 0;
const UP: usize = 1;

/// Runs a scenario to its end.
///
/// # Errors
/// `SimError::Scenario` when it cannot be run; `SimError::Cancelled` soon after `cancel` was set.
pub fn run(scenario: &Scenario, cancel: Option<&AtomicBool>) -> Result<RunResult, SimError> {
    run_tapped(scenario, cancel, None)
}

/// Like [`run`], with a `tap` that sees every TCP packet. The tap does not affect the run.
///
/// # Errors
/// The errors of [`run`].
pub fn run_tapped<'a>(
    scenario: &'a Scenario,
    cancel: Option<&AtomicBool>,
    tap: Option<&'a mut dyn Tap>,
) -> Result<RunResult, SimError> {
    crate::check::scenario(scenario).map_err(SimError::Scenario)?;
    let mut engine = Engine::new(scenario, tap)?;
    engine.run(cancel)?;
    Ok(engine.finish())
}

impl<'a> Engine<'a> {
    fn new(scenario: &'a Scenario, tap: Option<&'a mut dyn Tap>) -> Result<Self, SimError> {
        let seed = scenario.seed;
        let mut groups = Vec::new();
        for (i, spec) in scenario.groups.iter().enumerate() {
            let resolve = |choice: &PolicyChoice| choice.resolve().map_err(SimError::Scenario);
            let policies =
                PerRole { data_sender: resolve(&spec.peer_policy)?, data_receiver: resolve(&spec.policy)? };
            groups.push(GroupState {
                spec: spec.clone(),
                policies,
                record: GroupRecord::default(),
                started: 0,
                rng: Rng::new(seed, 1 << 40 | i as u64),
            });
        }
        let channel = |spec, way| Channel::new(spec, scenario.mtu_bytes, seed, 1 << 41 | way as u64);
        let channels = [channel(&scenario.down, DOWN), channel(&scenario.up, UP)];
        let pings = Pings::new(scenario);
        let is_one_flow = pings.is_none() && scenario.groups.iter().map(|g| g.count).eq([1]);
        // A series and a tap look at links in between.
        let is_looked_at = tap.is_some() || scenario.series_interval_ns > 0;
        let has_one_feeder = scenario.access.is_some()
            && is_one_flow
            && !is_looked_at
            && channels.iter().all(Channel::is_plain);
        let has_coalescer = channels.iter().any(|channel| channel.coalescer.is_some());
        let mut engine = Engine {
            scenario,
            now: 0,
            heap: Heap::new(match (&scenario.access, &tap) {
                (None, _) => 1,
                (Some(_), None) => 2,
                (Some(_), Some(_)) => 3,
            }),
            channels,
            access: scenario.access.as_ref().map(|a| Access::new(a.rate_bps, a.delay_ns)),
            hops: if scenario.access.is_some() { 3 } else { 1 },
            has_one_feeder,
            has_coalescer,
            hosts: [Host::new(&scenario.client), Host::new(&scenario.server)],
            flows: Vec::new(),
            groups,
            pings,
            late: Vec::new(),
            medium_busy: false,
            medium_turn: 0,
            out: VecDeque::new(),
            spare: Vec::new(),
            tap,
            events: 0,
            events_saved: 0,
            hops_done: 0,
        };
        engine.heap.add_links(CHANNELS as usize + LINKS_OF_FLOW);
        for g in 0..engine.groups.len() {
            engine.plan_starts(g);
        }
        if scenario.series_interval_ns > 0 {
            engine.heap.push(0, SimEvent::Series);
        }
        if engine.pings.is_some() {
            engine.heap.push(scenario.ping_interval_ns, SimEvent::Ping);
        }
        Ok(engine)
    }

    /// Creates flows in order of their start, so that a flow's number is its index.
    fn plan_starts(&mut self, group: usize) {
        let g = &mut self.groups[group];
        if g.spec.arrivals_per_s > 0.0 {
            self.heap.push(g.spec.start_ns, SimEvent::Arrival(group));
            return;
        }
        for _ in 0..g.spec.count {
            let at = g.spec.start_ns + g.rng.up_to(g.spec.start_jitter_ns);
            self.heap.push(at, SimEvent::Start(group));
        }
    }

    fn next_arrival(&mut self, group: usize) {
        self.start_flow(group);
        let g = &mut self.groups[group];
        if g.started < g.spec.count {
            let gap = g.rng.exponential(1e9 / g.spec.arrivals_per_s) as u64;
            self.heap.push(self.now.saturating_add(gap.max(1)), SimEvent::Arrival(group));
        }
    }

    fn start_flow(&mut self, group: usize) {
        let index = self.flows.len() as u32;
        if let Some(access) = &mut self.access {
            access.add_flow();
            self.heap.add_links(LINKS_OF_FLOW);
        }
        let opening = self.opening(group);
        let ends = self.ends(group, &opening);
        self.tell_opened(index, group, &opening, &ends);
        let s = self.scenario;
        let g = &mut self.groups[group];
        let down = g.spec.direction == DataDirection::Down;
        let rng = Rng::new(s.seed, 1 << 42 | (group as u64) << 32 | u64::from(g.started));
        let mut app = App::new(&g.spec.app, rng);
        if !opening.has_handshake {
            app.begin(self.now);
        }
        let series = s.series_interval_ns > 0 && g.started < SERIES_FLOWS;
        let trace = s.record.trace && g.started == 0;
        let record = FlowRecord::new(self.now, series, trace.then_some(s.record.trace_limit));
        g.started += 1;
        let mut flow = Flow {
            number: index,
            group: group as u32,
            ends,
            app,
            framing: opening.framing,
            wants_ecn: opening.wants_ecn,
            record,
            active: true,
        };
        if !opening.has_handshake {
            flow.agree_on_ecn(Role::DataSender, true);
            flow.agree_on_ecn(Role::DataReceiver, true);
        }
        let ids = [flow.id(Role::DataSender), flow.id(Role::DataReceiver)];
        self.flows.push(flow);
        if opening.has_handshake {
            self.handle(ids[usize::from(down)], |flow, cx| {
                flow.send_syn(if down { Role::DataReceiver } else { Role::DataSender }, cx);
                None
            });
            return;
        }
        for id in ids {
            self.handle(id, |_, _| None);
        }
    }

    fn opening(&self, group: usize) -> FlowStart {
        let s = self.scenario;
        let spec = &self.groups[group].spec;
        let options = if spec.receiver.timestamps { TIMESTAMP_BYTES } else { 0 };
        let framing = Framing {
            overhead_bytes: s.ip_tcp_header_bytes + options + s.link_overhead_bytes,
            cells: s.link_cells,
            syn_option_bytes: syn_option_bytes(&spec.receiver),
        };
        let empty_bytes = framing.wire_bytes(0);
        let access = self.access.as_ref().map_or(0, |a| 2 * a.empty_time_ns(empty_bytes));
        let idle = |d: usize| self.channels[d].empty_time_ns(empty_bytes) + access;
        FlowStart {
            mss: s.mtu_bytes - s.ip_tcp_header_bytes - options,
            options,
            framing,
            down_ns: idle(DOWN),
            up_ns: idle(UP),
            has_handshake: spec.opens_with_handshake(),
            wants_ecn: s.ecn && spec.has_linux_ends(),
        }
    }

    fn ends(&self, group: usize, opening: &FlowStart) -> PerRole<Endpoint> {
        let s = self.scenario;
        let g = &self.groups[group];
        let spec = &g.spec;
        let mss = opening.mss;
        let (sends, receives) = match spec.direction {
            DataDirection::Down => (Side::Server, Side::Client),
            DataDirection::Up => (Side::Client, Side::Server),
        };
        let sides = PerRole { data_sender: sends, data_receiver: receives };
        let host = |role: Role| match sides[role] {
            Side::Client => &s.client,
            Side::Server => &s.server,
        };
        let rtt_ns = opening.rtt_ns();
        let place = |role: Role| (group as u64) << 32 | u64::from(g.started) << 2 | role as u64;
        let receiver = |role: Role| {
            let place = place(role);
            let sack = spec.sender.recovery == Recovery::Sack;
            let closes = opening.has_handshake && role == Role::DataReceiver;
            let opens = sides[role] == Side::Client;
            let setup = Setup {
                policy: &g.policies[role],
                seed: s.seed,
                place,
                sack,
                opens,
                closes,
                shares_packets: s.one_processor,
            };
            let config = spec.receiver.bounded(host(role).recv_buffer_max_bytes);
            Receiver::new(&config, mss, self.now, rtt_ns.unwrap_or(0), &setup)
        };
        let endpoint = |role: Role, rx: Receiver, peer_wnd: u64| {
            let mut config = spec.sender.bounded(host(role).send_buffer_max_bytes);
            // Matches how the emulated devices were calibrated.
            let is_default = config.socket == SocketLayer::Linux
                && config.send_buffer_bytes == SenderSpec::LINUX_SEND_BUFFER_BYTES;
            config.send_buffer_grows |= is_default && (s.one_processor || host(role).is_paid());
            let rng = Rng::new(s.seed, SENDERS | place(role));
            let tx = Sender::new(&config, u64::from(mss), peer_wnd, rtt_ns, self.now, rng);
            Endpoint { tx, rx, side: sides[role], scheduled_ns: NEVER, awaits_turn: false }
        };
        let (a, b) = (receiver(Role::DataSender), receiver(Role::DataReceiver));
        let (wnd_a, wnd_b) = (a.window(), b.window());
        PerRole {
            data_sender: endpoint(Role::DataSender, a, wnd_b),
            data_receiver: endpoint(Role::DataReceiver, b, wnd_a),
        }
    }

    fn tell_opened(&mut self, flow: u32, group: usize, o: &FlowStart, ends: &PerRole<Endpoint>) {
        let Some(tap) = &mut self.tap else { return };
        let spec = &self.groups[group].spec;
        let offer = |role: Role| End {
            window_bytes: ends[role].rx.window(),
            window_shift: spec.receiver.window_scaling.then_some(ends[role].rx.scale),
        };
        let down = spec.direction == DataDirection::Down;
        let (a, b) = (offer(Role::DataSender), offer(Role::DataReceiver));
        let (client, server) = if down { (b, a) } else { (a, b) };
        tap.opened(&Opened {
            flow,
            time_ns: self.now,
            handshake: o.has_handshake,
            up: !down,
            down_ns: o.down_ns,
            up_ns: o.up_ns,
            mss_bytes: o.mss + o.options,
            timestamps: spec.receiver.timestamps,
            sack: spec.sender.recovery == Recovery::Sack,
            ecn: o.wants_ecn && !o.has_handshake,
            client,
            server,
        });
    }

    fn run(&mut self, cancel: Option<&AtomicBool>) -> Result<(), SimError> {
        let mut watch = Watch { cancel, same_time_events: 0, checked_ns: NEVER };
        while let Some((time, turn)) = self.heap.pop(self.scenario.duration_ns) {
            if let Turn::Event(SimEvent::Endpoint(id)) = turn {
                if !self.is_due(id, time) {
                    continue;
                }
            }
            self.now = time;
            self.events += 1;
            if self.events % CHECK_EVERY == 0 {
                watch.check(time)?;
            }
            match turn {
                Turn::Packet(packet) => self.arrive(packet),
                Turn::Event(event) => self.on_event(event),
            }
        }
        if !self.heap.is_empty() {
            self.now = self.scenario.duration_ns;
        }
        Ok(())
    }

    fn on_event(&mut self, event: SimEvent) {
        match event {
            SimEvent::Delivery(channel) => self.on_delivery(channel),
            SimEvent::Transmitter(channel) => self.on_transmitter(channel),
            SimEvent::Late(slot) => {
                if let Some(packet) = self.late[slot].take() {
                    self.arrive_late(packet);
                }
            }
            SimEvent::Host(side) => self.on_host(side),
            SimEvent::Endpoint(id) => self.on_timer(id),
            SimEvent::Start(group) => self.start_flow(group),
            SimEvent::Arrival(group) => self.next_arrival(group),
            SimEvent::Series => self.on_series(),
            SimEvent::Ping => self.on_ping(),
            SimEvent::Coalescer(channel) => self.on_coalescer(channel),
        }
    }

    // --- links and hosts ---------------------------------------------------------------------

    /// Adds a packet to an access link of its flow.
    // `inline(always)` here, in flow.rs, fifo.rs and on `send_new` saves 5.4% of all instructions, on
    // `on_segment`, `write_and_send` and ACKs 1.8% more (bench/README.md, Inlining).
    #[inline(always)]
    fn enter_access(&mut self, packet: Box<Packet>) {
        if let Some(access) = &mut self.access {
            let crossing = access.enqueue(self.now, &packet);
            self.heap.push_packet(crossing, packet);
        }
    }

    #[inline(always)]
    fn enter_link(&mut self, packet: Box<Packet>) {
        let channel = if packet.down { DOWN } else { UP };
        if self.channels[channel].is_plain() {
            if let Some(crossing) = self.channels[channel].cross(self.now, &packet) {
                self.schedule_arrival(packet, crossing);
            }
            return;
        }
        self.offer(channel, packet);
    }

    #[inline(never)]
    fn offer(&mut self, channel: usize, packet: Box<Packet>) {
        let Some(driver) = &mut self.channels[channel].coalescer else {
            return self.enqueue(channel, packet);
        };
        driver.send(self.now, packet);
        self.leave_driver(channel);
    }

    fn on_coalescer(&mut self, channel: usize) {
        if let Some(driver) = &mut self.channels[channel].coalescer {
            driver.expire(self.now);
            self.leave_driver(channel);
        }
    }

    /// Queues what a driver no longer holds, and schedules its timer.
    fn leave_driver(&mut self, channel: usize) {
        while let Some(packet) = self.channels[channel].coalescer.as_mut().and_then(|d| d.next()) {
            self.enqueue(channel, packet);
        }
        if let Some(at) = self.channels[channel].coalescer.as_mut().and_then(|d| d.wake()) {
            self.heap.push(at, SimEvent::Coalescer(channel));
        }
    }

    fn enqueue(&mut self, channel: usize, packet: Box<Packet>) {
        let wake = self.channels[channel].enqueue(self.now, packet);
        self.schedule(channel, wake);
        if self.channels[channel].shared && !self.medium_busy && self.channels[channel].has_waiting() {
            self.medium_busy = true;
            self.heap.push(self.now, SimEvent::Transmitter(channel));
        }
    }

    #[inline]
    fn schedule(&mut self, channel: usize, wake: Wake) {
        match wake {
            Wake::Crosses(packet, crossing) => self.schedule_arrival(packet, crossing),
            Wake::Deliver(at) => self.heap.push(at, SimEvent::Delivery(channel)),
            Wake::Transmit(at) => self.heap.push(at, SimEvent::Transmitter(channel)),
            Wake::None => {}
        }
    }

    /// Schedules a packet's arrival at the far end of the shared link. The access link after it
    /// receives packets from no other link, so its future is known as well, and the packet is
    /// handled next at its destination. A tap makes it handled in between.
    #[inline(always)]
    fn schedule_arrival(&mut self, mut packet: Box<Packet>, mut crossing: Crossing) {
        if let (Some(access), None) = (&mut self.access, &self.tap) {
            if crossing.arrival_ns <= self.scenario.duration_ns {
                self.hops_done += 1;
                self.events_saved += 1;
            }
            packet.hop += 1;
            crossing = access.enqueue(crossing.arrival_ns, &packet);
        }
        self.heap.push_packet(crossing, packet);
    }

    fn on_transmitter(&mut self, channel: usize) {
        if !self.channels[channel].shared {
            let (wake, again) = self.channels[channel].transmit(self.now);
            self.schedule(channel, wake);
            if let Some(at) = again {
                self.heap.push(at, SimEvent::Transmitter(channel));
            }
            return;
        }
        // One medium: the directions alternate.
        let other = 1 - self.medium_turn;
        let pick = if self.channels[other].has_waiting() { other } else { self.medium_turn };
        self.medium_turn = pick;
        let (wake, again) = self.channels[pick].transmit(self.now);
        self.schedule(pick, wake);
        match again {
            Some(at) => self.heap.push(at, SimEvent::Transmitter(pick)),
            None => self.medium_busy = false,
        }
    }

    #[inline]
    fn on_delivery(&mut self, channel: usize) {
        let (arrived, next) = self.channels[channel].deliver();
        if let Some(at) = next {
            self.heap.push(at, SimEvent::Delivery(channel));
        }
        let Some(a) = arrived else { return };
        if a.late_ns > 0 {
            let slot = self.late.iter().position(Option::is_none).unwrap_or_else(|| {
                self.late.push(None);
                self.late.len() - 1
            });
            self.late[slot] = Some(a.packet);
            self.heap.push(self.now + a.late_ns, SimEvent::Late(slot));
            return;
        }
        if a.twice {
            self.arrive_late(a.packet.clone());
        }
        self.arrive_late(a.packet);
    }

    /// Out-of-line copy of `cross` for packets with a fault; keeps the hot loop small.
    #[inline(never)]
    fn arrive_late(&mut self, packet: Box<Packet>) {
        self.arrive(packet);
    }

    /// Handles a packet that has crossed a link.
    #[inline(always)]
    fn arrive(&mut self, mut packet: Box<Packet>) {
        self.hops_done += 1;
        packet.hop += 1;
        if packet.hop < self.hops {
            if packet.down == (packet.hop == 1) {
                self.pass_tap(Place::Router, &packet);
            }
            if packet.hop == 1 {
                self.enter_link(packet);
            } else {
                self.put_on_last_link(packet);
            }
            return;
        }
        if self.has_coalescer {
            self.pass_driver(&packet);
        }
        let side = if packet.down { Side::Client } else { Side::Server };
        self.pass_tap(if packet.down { Place::Client } else { Place::Server }, &packet);
        if self.hosts[processor(self.scenario, side) as usize].is_active() {
            self.submit(side, Work::Received(packet));
        } else {
            self.receive(packet);
        }
    }

    /// Handles a packet that leaves its host.
    #[inline(always)]
    fn depart(&mut self, packet: Box<Packet>) {
        self.pass_tap(if packet.down { Place::Server } else { Place::Client }, &packet);
        if self.has_one_feeder {
            self.cross_all_links(packet);
        } else if self.access.is_some() {
            self.enter_access(packet);
        } else {
            self.put_on_only_link(packet);
        }
    }

    /// Sends a packet over its access link and, as no other link's packets can come before it there,
    /// over the shared link.
    #[inline(never)]
    fn cross_all_links(&mut self, mut packet: Box<Packet>) {
        let Some(access) = &mut self.access else { return };
        let crossing = access.enqueue(self.now, &packet);
        if crossing.arrival_ns > self.scenario.duration_ns {
            self.heap.push_packet(crossing, packet); // stays on its way
            return;
        }
        self.hops_done += 1;
        self.events_saved += 1;
        packet.hop += 1;
        let channel = if packet.down { DOWN } else { UP };
        if let Some(crossing) = self.channels[channel].cross(crossing.arrival_ns, &packet) {
            self.schedule_arrival(packet, crossing);
        }
    }

    #[inline(never)]
    fn put_on_only_link(&mut self, packet: Box<Packet>) {
        self.enter_link(packet);
    }

    #[inline(never)]
    fn put_on_last_link(&mut self, packet: Box<Packet>) {
        self.enter_access(packet);
    }

    /// A packet reaches a host: shows it to the driver of that host.
    #[inline(never)]
    fn pass_driver(&mut self, packet: &Packet) {
        let sends = if packet.down { UP } else { DOWN };
        if let Some(driver) = &mut self.channels[sends].coalescer {
            driver.receive(self.now, packet);
        }
    }

    #[inline]
    fn pass_tap(&mut self, place: Place, packet: &Packet) {
        if let Some(tap) = &mut self.tap {
            if packet.flow != PING_FLOW {
                tap.passed(&Passed::new(self.now, place, packet));
            }
        }
    }

    /// Submits work to a host's processor.
    fn submit(&mut self, side: Side, work: Work) {
        let side = processor(self.scenario, side);
        let flows = Served { now: self.now, flows: &self.flows };
        if let Some(at) = self.hosts[side as usize].submit(self.now, work, &flows) {
            self.heap.push(at, SimEvent::Host(side));
        }
    }

    fn on_host(&mut self, side: Side) {
        let flows = Served { now: self.now, flows: &self.flows };
        let (work, next) = self.hosts[side as usize].wake(self.now, &flows);
        if let Some(at) = next {
            self.heap.push(at, SimEvent::Host(side));
        }
        match work {
            Some(Work::Received(packet)) => self.receive(packet),
            Some(Work::Sent(packet)) => self.depart(packet),
            Some(Work::Turn(id)) => {
                self.on_turn(id);
                self.resume(side);
            }
            None => {}
        }
    }

    /// Restarts the processor after an application turn unless the turn already queued work.
    fn resume(&mut self, side: Side) {
        let flows = Served { now: self.now, flows: &self.flows };
        if let Some(at) = self.hosts[side as usize].resume(self.now, &flows) {
            self.heap.push(at, SimEvent::Host(side));
        }
    }

    // --- endpoints ---------------------------------------------------------------------------

    /// The flow of an endpoint, and the endpoint's context.
    #[inline]
    fn endpoint(&mut self, id: EndpointId) -> (&mut Flow, Context<'_>) {
        let flow = &mut self.flows[id.flow as usize];
        let cx = Context {
            now: self.now,
            host: &self.hosts[processor(self.scenario, flow.ends[id.role].side) as usize],
            group: &mut self.groups[flow.group as usize].record,
            heap: &mut self.heap,
            out: &mut self.out,
            spare: &mut self.spare,
        };
        (flow, cx)
    }

    /// Runs `happen`, which may make an ACK due, on an endpoint. The endpoint then does everything
    /// it can at this time, and departing packets are sent.
    fn handle(&mut self, id: EndpointId, happen: impl FnOnce(&mut Flow, &mut Context) -> Option<Reason>) {
        let (flow, mut cx) = self.endpoint(id);
        let due = happen(flow, &mut cx);
        self.respond(id, due);
    }

    /// Like `handle`, for a packet's arrival; compiled for each role, on which most of an endpoint's
    /// behaviour depends.
    #[inline(always)]
    fn handle_arrival(&mut self, id: EndpointId, p: Box<Packet>) {
        let (flow, mut cx) = self.endpoint(id);
        let due = flow.on_segment(id.role, p, &mut cx);
        let asks = flow.respond(id.role, due, &mut cx);
        self.finish_response(id, asks);
    }

    #[inline(never)]
    fn respond(&mut self, id: EndpointId, due: Option<Reason>) {
        let (flow, mut cx) = self.endpoint(id);
        let asks = flow.respond(id.role, due, &mut cx);
        self.finish_response(id, asks);
    }

    #[inline]
    fn finish_response(&mut self, id: EndpointId, asks: bool) {
        let end = &mut self.flows[id.flow as usize].ends[id.role];
        let side = end.side;
        let host = &mut self.hosts[processor(self.scenario, side) as usize];
        if host.charges_questions() {
            host.charge_questions(end.rx.new_questions());
        }
        if !self.out.is_empty() {
            self.send_out(side);
        }
        if asks {
            self.submit(side, Work::Turn(id));
        }
    }

    fn on_ping(&mut self) {
        let Some(pings) = &mut self.pings else { return };
        let next = self.now + pings.interval_ns;
        self.out.push_back(pings.request(self.now));
        self.send_out(Side::Client);
        if next <= self.scenario.duration_ns {
            self.heap.push(next, SimEvent::Ping);
        }
    }

    /// A segment has reached TCP at its destination: processes it up to the ACK that it makes due,
    /// and sends packets out.
    #[inline(never)]
    fn receive(&mut self, p: Box<Packet>) {
        if p.flow == PING_FLOW {
            let reply = self.pings.as_mut().and_then(|pings| pings.receive(self.now, p));
            self.out.extend(reply);
            self.send_out(Side::Server);
            return;
        }
        let flow = p.flow;
        match self.flows[flow as usize].target(&p) {
            Role::DataSender => self.handle_arrival(EndpointId { flow, role: Role::DataSender }, p),
            Role::DataReceiver => self.handle_arrival(EndpointId { flow, role: Role::DataReceiver }, p),
        }
    }

    /// The application of an endpoint has its turn: it reads and writes.
    fn on_turn(&mut self, id: EndpointId) {
        self.handle(id, |flow, cx| flow.take_turn(id.role, cx));
    }

    /// Passes TCP's packets to the host's processor or, if that costs nothing, to the link.
    #[inline(never)]
    fn send_out(&mut self, side: Side) {
        let is_active = self.hosts[processor(self.scenario, side) as usize].is_active();
        while let Some(packet) = self.out.pop_front() {
            if is_active {
                self.submit(side, Work::Sent(packet));
            } else {
                self.depart(packet);
            }
        }
    }

    /// False if the endpoint's timers were postponed or stopped since: then this is no event, and a
    /// run that became quiet does not end with it.
    fn is_due(&mut self, id: EndpointId, time: u64) -> bool {
        let flow = &mut self.flows[id.flow as usize];
        if flow.ends[id.role].scheduled_ns != time {
            return false;
        }
        let wake_ns = flow.wake_ns(id.role);
        let due = wake_ns <= time;
        flow.ends[id.role].scheduled_ns = if due { NEVER } else { wake_ns };
        if !due && wake_ns != NEVER {
            self.heap.push(wake_ns, SimEvent::Endpoint(id));
        }
        due
    }

    /// A timer of an endpoint expired: of the delayed ACK, of its sender half, or of its reader.
    fn on_timer(&mut self, id: EndpointId) {
        let (flow, mut cx) = self.endpoint(id);
        let role = id.role;
        let mut due = None;
        if flow.ends[role].rx.deadline_ns <= cx.now {
            flow.note_stall(role, cx.now);
            due = flow.ends[role].rx.on_deadline(cx.now);
        }
        let end = &mut flow.ends[role];
        let bare = if end.tx.timer_ns <= cx.now { end.tx.on_timer(cx.now) } else { None };
        let mut asks = false;
        if end.rx.reader_ns <= cx.now {
            end.rx.reader_ns = NEVER;
            if cx.host.charges_reading() {
                asks = !std::mem::replace(&mut end.awaits_turn, true);
            } else {
                due = flow.read(role, &mut cx).or(due);
            }
        }
        if let Some(bare) = bare {
            flow.send_bare(role, bare, &mut cx);
        }
        if asks {
            let side = flow.ends[role].side;
            self.submit(side, Work::Turn(id));
        }
        self.respond(id, due);
    }

    fn on_series(&mut self) {
        for flow in &mut self.flows {
            flow.sample(self.now, self.groups[flow.group as usize].policies.data_receiver.policy());
        }
        for channel in &mut self.channels {
            channel.sample(self.now);
        }
        let next = self.now + self.scenario.series_interval_ns;
        if next <= self.scenario.duration_ns {
            self.heap.push(next, SimEvent::Series);
        }
    }

    fn finish(mut self) -> RunResult {
        // A run that became quiet ends with its last event.
        let duration_ns = self.now.max(1);
        let mut delivered = 0;
        let mut per_group: Vec<Vec<FlowRecord>> = self.groups.iter().map(|_| Vec::new()).collect();
        for flow in self.flows {
            let group = flow.group as usize;
            let record = flow.into_record();
            delivered += record.delivered_bytes;
            per_group[group].push(record);
        }
        let groups = self
            .groups
            .into_iter()
            .zip(per_group)
            .map(|(g, flows)| {
                g.record.finish(g.spec.name, g.policies.data_receiver.name(), flows, duration_ns)
            })
            .collect();
        RunResult {
            schema_version: SCHEMA_VERSION,
            seed: self.scenario.seed,
            duration_ns,
            events: self.events + self.events_saved,
            packet_hops: self.hops_done,
            groups,
            ping: self.pings.map(Pings::finish),
            down: self.channels[DOWN].finish(duration_ns),
            up: self.channels[UP].finish(duration_ns),
            client: self.hosts[Side::Client as usize].finish(duration_ns, delivered),
            server: self.hosts[Side::Server as usize].finish(duration_ns, delivered),
        }
    }
}
