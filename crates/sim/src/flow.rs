// SPDX-License-Identifier: MIT
//! One flow: the reactions of its ends to an event, up to the departing segments.

use crate::app::App;
use crate::endpoint::{Endpoint, EndpointId, PerRole, Role, Side};
use crate::heap::{Heap, SimEvent};
use crate::host::{Host, TurnBytes};
use crate::packet::{Ecn, Flags, Framing, Packet};
use crate::record::{FlowRecord, GroupRecord};
use crate::sender::{Bare, Opening, NEVER};
use ackwise_core::Reason;
use std::collections::VecDeque;

/// Maximum number kept: packets duplicated by a link would accumulate.
const SPARE_PACKETS: usize = 256;

pub struct Flow {
    pub number: u32,
    pub group: u32,
    pub ends: PerRole<Endpoint>,
    pub app: App,
    pub framing: Framing,
    /// Whether both hosts want ECN.
    pub wants_ecn: bool,
    pub record: FlowRecord,
    pub active: bool,
}

/// The context of an end at one point in time.
pub struct Context<'a> {
    pub now: u64,
    pub host: &'a Host,
    pub group: &'a mut GroupRecord,
    /// The heap for wake-ups.
    pub heap: &'a mut Heap,
    /// Departing packets, in order.
    pub out: &'a mut VecDeque<Box<Packet>>,
    /// Packets that have arrived; departing packets reuse their memory.
    #[allow(clippy::vec_box)] // the boxes themselves are used again
    pub spare: &'a mut Vec<Box<Packet>>,
}

impl Flow {
    pub fn id(&self, role: Role) -> EndpointId {
        EndpointId { flow: self.number, role }
    }

    /// The end to which this packet goes.
    pub fn target(&self, packet: &Packet) -> Role {
        let side = if packet.down { Side::Client } else { Side::Server };
        if self.ends.data_receiver.side == side {
            Role::DataReceiver
        } else {
            Role::DataSender
        }
    }

    /// Processes a segment at an end: the sender half gets its ACK, the receiver half its data,
    /// about which it asks the policy. Returns the reason for the ACK that is due, if any.
    // Inlined always: see engine.rs.
    #[inline(always)]
    pub fn on_segment(&mut self, role: Role, p: Box<Packet>, cx: &mut Context) -> Option<Reason> {
        let end = &mut self.ends[role];
        end.rx.note_timestamp(&p);
        if (p.has(Flags::SYN) || !end.tx.is_established()) && !self.on_handshake(role, &p, cx) {
            return None;
        }
        let end = &mut self.ends[role];
        let rtt_ns = end.tx.on_ack(cx.now, &p);
        if let (Role::DataSender, Some(rtt_ns)) = (role, rtt_ns) {
            cx.group.rtt.record(rtt_ns);
            self.record.rtt(rtt_ns);
        }
        let mut due = None;
        if !p.is_pure_ack() {
            if role == Role::DataReceiver {
                self.record.arrived(cx.now, p.segments.into());
            }
            due = end.rx.on_segment(cx.now, &p, end.tx.rto_ns(), end.tx.srtt_ns);
        }
        if cx.spare.len() < SPARE_PACKETS {
            cx.spare.push(p);
        }
        due
    }

    /// Processes a SYN, or a packet that arrives before this end is established (RFC 9293, 3.10.7.2
    /// to 3.10.7.4). Returns true if the rest of the packet is for an established end.
    #[cold]
    fn on_handshake(&mut self, role: Role, p: &Packet, cx: &mut Context) -> bool {
        match (self.ends[role].tx.opening, p.has(Flags::SYN)) {
            (Opening::Listen, true) => {
                self.agree_on_ecn(role, p.has(Flags::ECE) && p.has(Flags::CWR));
                self.send_syn(role, cx);
            }
            (Opening::SynReceived, true) => self.send_syn(role, cx),
            (Opening::SynSent, true) => {
                self.agree_on_ecn(role, p.has(Flags::ECE) && !p.has(Flags::CWR));
                self.on_established(role, p.echo_ns, cx);
                self.send_bare_ack(role, cx);
            }
            // The peer has the SYN-ACK, but has not seen that its ACK arrived (RFC 5961, 4).
            (Opening::Established, true) => self.send_bare_ack(role, cx),
            (Opening::SynReceived, false) => self.on_established(role, p.echo_ns, cx),
            (Opening::Listen | Opening::SynSent | Opening::Established, false) => {}
        }
        !p.has(Flags::SYN) && self.ends[role].tx.is_established()
    }

    /// Records whether the peer's SYN offers or accepts ECN (RFC 3168, 6.1.1).
    pub fn agree_on_ecn(&mut self, role: Role, peer_does: bool) {
        let end = &mut self.ends[role];
        end.tx.ecn.is_agreed = self.wants_ecn && peer_does;
        end.rx.echo.is_agreed = end.tx.ecn.is_agreed;
    }

    /// The SYN of this end is acknowledged.
    fn on_established(&mut self, role: Role, echo_ns: u64, cx: &mut Context) {
        let end = &mut self.ends[role];
        let rtt_ns = end.tx.on_syn_acknowledged(cx.now, echo_ns);
        end.rx.establish(cx.now, rtt_ns.unwrap_or(0));
        if role == self.app.first() {
            self.app.begin(cx.now);
        }
    }

    /// Sends the client's SYN or the server's SYN-ACK; both are repeated when no answer arrives.
    pub fn send_syn(&mut self, role: Role, cx: &mut Context) {
        let end = &mut self.ends[role];
        let opening = if end.side == Side::Client { Opening::SynSent } else { Opening::SynReceived };
        end.tx.send_syn(cx.now, opening);
        // RFC 3168, 6.1.1.1: the offer is not repeated, because it may have caused the loss of the
        // SYN.
        let offers_ecn = self.wants_ecn && opening == Opening::SynSent && !end.tx.syn_was_resent();
        let accepts_ecn = end.tx.ecn.is_agreed;
        let mut packet = self.packet(role, 0, cx);
        packet.flags.set(Flags::SYN, true);
        packet.flags.set(Flags::ECE, offers_ecn || accepts_ecn);
        packet.flags.set(Flags::CWR, offers_ecn);
        packet.wire_bytes = self.framing.wire_bytes(self.framing.syn_option_bytes);
        cx.out.push_back(packet);
    }

    /// Sends an ACK that does not answer data.
    fn send_bare_ack(&mut self, role: Role, cx: &mut Context) {
        let packet = self.packet(role, 0, cx);
        cx.out.push_back(packet);
    }

    /// Does everything that an end can do at this time, given the ACK that is due. Output comes
    /// before the ACK: data carries it, and only an ACK that no data carried leaves on its own.
    /// Reading comes last, and the room it frees is used for output. Returns true when the
    /// application requests a turn on the processor.
    #[inline(always)]
    pub fn respond(&mut self, role: Role, mut due: Option<Reason>, cx: &mut Context) -> bool {
        if !self.ends[role].tx.is_established() {
            self.await_peer(role, cx);
            return false;
        }
        let writes_in_turns = self.writes_in_turns(role, cx.host);
        // State of the writer when everything that may leave had left: bytes written, and whether
        // that was all.
        let mut offered = None;
        if self.ends[role].tx.sends_before_the_writer_wakes() {
            self.output(role, &mut due, cx);
            offered = Some(self.ends[role].tx.end_written());
        }
        let reader_wants_turn = loop {
            self.write_and_send(role, writes_in_turns, offered, &mut due, cx);
            if let Some(reason) = due.take() {
                self.send_ack(role, reason, cx);
            }
            let end = &mut self.ends[role];
            if end.awaits_turn || !end.rx.wake_reader(cx.now) {
                break false;
            }
            if cx.host.charges_reading() {
                break true;
            }
            due = self.read(role, cx);
        };
        if self.ends[role].rx.takes_end() {
            self.send_fin(role, cx);
        }
        let writer_wants_turn = writes_in_turns && self.app.writable(&self.ends[role].tx) > 0;
        self.note_end(cx);
        self.schedule(role, cx);
        (reader_wants_turn || writer_wants_turn) && !std::mem::replace(&mut self.ends[role].awaits_turn, true)
    }

    /// Schedules the handshake's timer while the handshake is in progress.
    #[cold]
    fn await_peer(&mut self, role: Role, cx: &mut Context) {
        self.schedule(role, cx);
    }

    /// Schedules this end's wake-up for its next timer, and its peer's when the data read activated
    /// the peer's application.
    #[inline]
    fn schedule(&mut self, role: Role, cx: &mut Context) {
        let peer = role.other();
        for (role, wake_ns) in [(role, self.wake_ns(role)), (peer, self.app_wake_ns(peer))] {
            // What a busy processor has made late comes now.
            let wake_ns = wake_ns.max(cx.now);
            if wake_ns < self.ends[role].scheduled_ns {
                self.wake_at(role, wake_ns, cx);
            }
        }
    }

    #[cold]
    fn wake_at(&mut self, role: Role, wake_ns: u64, cx: &mut Context) {
        self.ends[role].scheduled_ns = wake_ns;
        cx.heap.push(wake_ns, SimEvent::Endpoint(self.id(role)));
    }

    /// Lets the application write and TCP send, unless it was `offered` the same before; a BSD
    /// writer continues afterwards.
    #[inline(always)]
    fn write_and_send(
        &mut self,
        role: Role,
        in_turns: bool,
        offered: Option<(u64, bool)>,
        due: &mut Option<Reason>,
        cx: &mut Context,
    ) {
        loop {
            let tx = &mut self.ends[role].tx;
            let again = match role {
                Role::DataSender => !in_turns && self.app.write(cx.now, tx, u64::MAX),
                Role::DataReceiver => {
                    self.app.ask(cx.now, tx);
                    false
                }
            };
            match role {
                Role::DataSender if offered == Some(tx.end_written()) && !tx.owes_space_check() => {}
                Role::DataSender => self.output(role, due, cx),
                // No data, or requests.
                Role::DataReceiver => self.output(role, due, cx),
            }
            if !again {
                return;
            }
        }
    }

    #[inline]
    fn output(&mut self, role: Role, due: &mut Option<Reason>, cx: &mut Context) {
        if self.ends[role].tx.has_output() {
            self.send_data(role, due, cx);
        }
    }

    /// Sends all data that may leave. Each segment carries the ACK that is due. A single copy, not
    /// inlined into its callers, because the event loop barely fits into the instruction cache.
    #[cold]
    #[inline(never)]
    fn send_data(&mut self, role: Role, due: &mut Option<Reason>, cx: &mut Context) {
        while let Some(segment) = self.ends[role].tx.next_segment(cx.now) {
            let mut p = self.packet(role, segment.len, cx);
            p.seq = segment.seq;
            p.flags.set(Flags::PSH, segment.psh);
            p.flags.set(Flags::FIN, segment.fin);
            if segment.is_ect {
                p.ecn = Ecn::Ect;
            }
            p.flags.set(Flags::CWR, segment.cwr);
            if role == Role::DataSender {
                self.record.data(cx.now, &segment);
            }
            cx.out.push_back(p);
            self.on_ack_sent(role, None, cx);
            *due = None;
        }
    }

    #[inline(always)]
    fn send_ack(&mut self, role: Role, reason: Reason, cx: &mut Context) {
        let p = self.packet(role, 0, cx);
        if role == Role::DataReceiver {
            self.record.ack(cx.now, p.ack, reason);
        }
        cx.out.push_back(p);
        self.on_ack_sent(role, Some(reason), cx);
    }

    /// Sends a FIN with the pending ACK from an end that sends no more data. It is not
    /// retransmitted: if it is lost, the peer's own FIN is repeated and acknowledged.
    fn send_fin(&mut self, role: Role, cx: &mut Context) {
        let mut packet = self.packet(role, 0, cx);
        packet.flags.set(Flags::FIN, true);
        cx.out.push_back(packet);
        self.tell_ack_sent(role, true, cx);
    }

    /// Sends a segment without data for an expired timer.
    pub fn send_bare(&mut self, role: Role, what: Bare, cx: &mut Context) {
        match what {
            Bare::Syn => self.send_syn(role, cx),
            Bare::WindowProbe => self.send_window_probe(role, cx),
        }
    }

    /// Sends a probe into the peer's closed window (RFC 9293, 3.8.6.1): one byte below it, which
    /// the peer already has.
    fn send_window_probe(&mut self, role: Role, cx: &mut Context) {
        let mut packet = self.packet(role, 0, cx);
        packet.flags.set(Flags::PROBE, true);
        packet.seq = self.ends[role].tx.una.saturating_sub(1);
        cx.out.push_back(packet);
    }

    /// A packet of this end with this payload length and the current ACK fields.
    #[inline(always)]
    fn packet(&mut self, role: Role, len: u32, cx: &mut Context) -> Box<Packet> {
        let end = &mut self.ends[role];
        let fields = end.rx.ack_fields();
        let blocks = fields.sack.as_ref().map_or(0, |s| s.len() as u32);
        // RFC 2018, 3: two bytes and eight for each block, padded to four.
        let sack_bytes = if blocks > 0 { 4 + 8 * blocks } else { 0 };
        let packet = Packet {
            flow: self.number,
            wire_bytes: self.framing.wire_bytes(sack_bytes + len),
            len,
            segments: 1,
            down: end.side == Side::Server,
            hop: 0,
            flags: if fields.ece { Flags::ECE } else { Flags::empty() },
            ecn: Ecn::NotEct,
            seq: end.tx.nxt,
            ack: fields.ack,
            wnd_bytes: fields.wnd_bytes,
            sent_ns: cx.now,
            echo_ns: fields.echo_ns,
            sack: fields.sack,
        };
        match cx.spare.pop() {
            Some(mut reused) => {
                *reused = packet;
                reused
            }
            None => Box::new(packet),
        }
    }

    /// Records an ACK that left: on its own with a reason, or on data.
    #[inline]
    fn on_ack_sent(&mut self, role: Role, reason: Option<Reason>, cx: &mut Context) {
        if role == Role::DataReceiver {
            match reason {
                Some(reason) => cx.group.count(reason),
                None if self.ends[role].rx.owes_ack() => cx.group.acks_piggybacked += 1,
                None => {}
            }
        }
        self.tell_ack_sent(role, reason.is_none(), cx);
    }

    /// Tells the receiving half that an ACK left.
    #[inline(always)]
    fn tell_ack_sent(&mut self, role: Role, piggyback: bool, cx: &mut Context) {
        let rx = &mut self.ends[role].rx;
        if role == Role::DataSender {
            rx.on_ack_sent(cx.now, piggyback, |_, _| {});
            return;
        }
        let group = &mut *cx.group;
        rx.on_ack_sent(cx.now, piggyback, |wait_ns, segments| {
            for _ in 0..segments {
                group.ack_latency.record(wait_ns);
            }
        });
    }

    /// Lets the application of this end read. Returns the reason for the ACK that is then due, if
    /// any.
    #[inline(always)]
    pub fn read(&mut self, role: Role, cx: &mut Context) -> Option<Reason> {
        let rx = &mut self.ends[role].rx;
        let bytes = rx.readable(cx.now);
        let due = rx.on_read(cx.now, bytes);
        let read = rx.read_bytes();
        match role {
            Role::DataReceiver => {
                self.app.on_delivered(cx.now, read, |ns| cx.group.message_latency.record(ns));
            }
            Role::DataSender => self.app.on_request(cx.now, read, &mut self.ends.data_sender.tx),
        }
        due
    }

    /// Gives the application of an end its turn on the processor.
    pub fn take_turn(&mut self, role: Role, cx: &mut Context) -> Option<Reason> {
        let end = &mut self.ends[role];
        end.awaits_turn = false;
        let reads = cx.host.charges_reading() && end.rx.reader_ns == NEVER;
        let due = if reads { self.read(role, cx) } else { None };
        if self.writes_in_turns(role, cx.host) {
            let tx = &mut self.ends[role].tx;
            let most = tx.mss;
            self.app.write(cx.now, tx, most);
        }
        due
    }

    /// Bytes that the application of this end will read and write in its turn.
    pub fn turn_bytes(&self, role: Role, now: u64) -> TurnBytes {
        let end = &self.ends[role];
        let read = if end.rx.reader_ns == NEVER { end.rx.readable(now) } else { 0 };
        let writable = match role {
            Role::DataSender => self.app.writable(&end.tx),
            Role::DataReceiver => 0,
        };
        TurnBytes { read, written: writable.min(end.tx.mss) }
    }

    /// Whether the writer waits for its turn; only a bulk writer on a Linux socket does.
    fn writes_in_turns(&self, role: Role, host: &Host) -> bool {
        role == Role::DataSender
            && host.charges_writing()
            && self.app.is_bulk()
            && self.ends[role].tx.may_fill_in_turns()
    }

    /// The next time at which the application of this end acts by itself.
    pub fn app_wake_ns(&self, role: Role) -> u64 {
        match role {
            Role::DataSender => self.app.wake_ns,
            Role::DataReceiver => self.app.ask_ns,
        }
    }

    /// The earliest timer of this end or its application.
    #[inline]
    pub fn wake_ns(&self, role: Role) -> u64 {
        let end = &self.ends[role];
        let timers = [end.tx.timer_ns, end.tx.pace_wake_ns(), end.rx.deadline_ns, end.rx.reader_ns];
        timers.into_iter().fold(self.app_wake_ns(role), u64::min)
    }

    /// Counts a stall when the deadline of a delayed ACK passed while the sender had data (in its
    /// buffer, or still with the application for lack of room), everything sent had arrived, and so
    /// had every ACK: both sides were waiting for each other.
    pub fn note_stall(&mut self, role: Role, now: u64) {
        if role != Role::DataReceiver {
            return;
        }
        let PerRole { data_sender: Endpoint { tx, .. }, data_receiver: Endpoint { rx, .. } } = &self.ends;
        let idle = tx.nxt == rx.rcv_nxt && tx.una == rx.acknowledged();
        let has_data = tx.has_unsent() || self.app.has_more(tx);
        if idle && has_data && now >= rx.deadline_ns && rx.owes_ack() {
            self.record.stalls += 1;
            self.record.stalled_ns += now - rx.last_data_ns;
        }
    }

    /// Records the end of the flow when its application is finished and everything is acknowledged.
    fn note_end(&mut self, cx: &mut Context) {
        let PerRole { data_sender: Endpoint { tx, .. }, data_receiver: Endpoint { rx, .. } } = &self.ends;
        if self.active && tx.is_done() && self.app.is_finished() {
            self.active = false;
            self.record.completed = true;
            self.record.end_ns = self.record.end_ns.max(rx.last_data_ns).min(cx.now);
            cx.group.completed += 1;
        }
    }

    /// Records a point of the time series; `policy` is the data receiver's.
    pub fn sample(&mut self, now: u64, policy: Option<ackwise_core::Policy>) {
        self.record.sample(now, &self.ends.data_sender.tx, &self.ends.data_receiver.rx, policy);
    }

    /// The record of the flow, with the final counts of its ends.
    pub fn into_record(mut self) -> FlowRecord {
        self.record.close(self.app.wrote_ns, &self.ends.data_sender.tx, &self.ends.data_receiver.rx);
        self.record
    }
}
