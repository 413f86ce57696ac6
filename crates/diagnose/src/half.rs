// SPDX-License-Identifier: MIT
//! One half of a connection: the data of one endpoint, and its acknowledgment by the peer.

use crate::batch::Segment;
use crate::distance::Recent;
use crate::idents::Idents;
use crate::ranges::Ranges;
use crate::recovery::{Clue, Recovery};
use crate::scale::Scale;
use crate::step::{Ack, AckKind, Answer, Data, DataKind, Echo, SenderView};
use ackwise_capture::sequence::{first, near};
use ackwise_capture::tcp_flag;
use std::collections::VecDeque;

/// Maximum number of packets kept until they are acknowledged; older ones are forgotten, so that
/// memory is bounded.
const OUTSTANDING_MAX: usize = 1 << 16;
/// Maximum while no packet of the peer was seen, so that ACKs are unlikely.
const UNANSWERED_MAX: usize = 32;
/// Maximum number of ACKs in flight to the data sender.
const UNDERWAY_MAX: usize = 1 << 12;
/// Where the path's RTT is unknown, a packet this late was retransmitted, not overtaken.
const REORDER_NS: u64 = 3_000_000;
/// RFC 7323, 2.3.
const WINDOW_MAX_BYTES: u64 = 1 << 30;
/// More data than a capture misses at once.
const MISSED_MAX_BYTES: u64 = 1 << 24;
/// Largest segment within an MTU of 1500, and the smallest that every host accepts.
const MTU_BYTES: u32 = 1500;
const SMALL_MSS_BYTES: u32 = 536;
/// Segments of one size that no write ends, after which none is larger.
const ALIKE: u16 = 16;

/// An unacknowledged packet with data.
#[derive(Clone, Copy, Debug)]
struct Sent {
    start: u64,
    end: u64,
    /// Time at which it last passed.
    time_ns: u64,
    timestamp: u32,
    segments: u32,
    ident: u16,
    is_again: bool,
    is_pushed: bool,
}

/// An acknowledgment with its window.
#[derive(Clone, Copy, Debug, Default)]
struct Advert {
    time_ns: u64,
    /// The receiver's timestamp, which the sender echoes from then on.
    stamp: Option<u32>,
    una: u64,
    edge: u64,
    /// New payload that came with it.
    bytes: u32,
}

/// The packet that revealed the newest hole.
#[derive(Clone, Copy, Debug, Default)]
struct NewestHole {
    time_ns: u64,
    ident: u16,
    timestamp: Option<u32>,
}

/// State of the connection that a half needs to interpret a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    pub time_ns: u64,
    /// RTT between the capture point and the data sender.
    pub sender: Option<Recent>,
    /// Minimum of this RTT; 0 before the first sample.
    pub sender_least_ns: u64,
    /// RTT between both endpoints.
    pub path: Option<Recent>,
    pub sack: bool,
}

impl Context {
    /// Recent minimum RTT between capture point and data sender, nanoseconds.
    fn sender_ns(&self) -> u64 {
        self.sender.map_or(0, |recent| recent.min_ns)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Half {
    /// Sequence number of the SYN, if it was captured.
    pub isn: Option<u64>,
    /// First sequence number of data; None before any number was seen.
    first: Option<u64>,
    nxt: u64,
    una: u64,
    /// Whether the peer acknowledged anything.
    pub is_answered: bool,
    outstanding: VecDeque<Sent>,
    /// Ranges that were skipped and not seen since.
    holes: Ranges,
    newest_hole: NewestHole,
    /// Start of the first hole since there was none, and when it was revealed.
    first_hole: (u64, u64),
    /// Range acknowledged before it was seen: the capture may have reordered the two directions.
    unseen: (u64, u64),
    sacked: Ranges,
    /// Send time of the newest acknowledged packet: packets sent earlier are lost (RFC 8985, 6.2).
    newest_acked_ns: u64,
    /// Maximum segment by the MSS options of the handshake, timestamps subtracted.
    pub mss_limit_bytes: Option<u32>,
    /// Payload of the largest packet, and how many in a row were of that size and not longer.
    largest_bytes: u32,
    alike: u16,
    /// Scale of the windows that the peer advertises.
    pub scale: Scale,
    idents: Idents,
    window_bytes: u64,
    window_in_header: u16,
    edge: u64,
    recovery: Recovery,
    last_data_ns: Option<u64>,
    /// Type of the latest packet if it was a keep-alive or a window probe.
    probed: Option<DataKind>,
    underway: VecDeque<Advert>,
    heard: Advert,
    /// ACKs of new data that the sender has heard since it last sent data: their number, and when
    /// the first passed.
    advances: u32,
    advanced_ns: u64,
    /// Data of the peer that it has heard since: the last packet, and the bytes in all.
    answer: Advert,
    answer_bytes: u64,
}

impl Half {
    fn number(&self, raw: u32) -> u64 {
        match self.first {
            Some(_) => near(self.nxt, raw),
            None => first(raw),
        }
    }

    fn start_at(&mut self, number: u64) {
        if self.first.is_none() {
            self.first = Some(number);
            (self.nxt, self.una) = (number, number);
            self.heard = Advert { una: number, edge: number, ..Advert::default() };
        }
    }

    /// First sequence number of data.
    pub fn first(&self) -> Option<u64> {
        self.first
    }

    /// Highest sequence numbers sent and acknowledged.
    pub fn highest(&self) -> (u64, u64) {
        (self.nxt, self.una)
    }

    /// Largest segment, bytes.
    pub fn mss_bytes(&self) -> u32 {
        match self.mss_limit_bytes {
            // A router behind the capture point clamped the MSS, or the path carries no more.
            Some(limit_bytes) if self.alike >= ALIKE => limit_bytes.min(self.largest_bytes),
            Some(limit_bytes) => limit_bytes,
            None => self.largest_bytes.max(SMALL_MSS_BYTES),
        }
    }

    /// Whether its first sequence number or data was captured: data acknowledged from here on but
    /// not seen was lost by the capture.
    fn has_begun(&self) -> bool {
        self.isn.is_some() || self.last_data_ns.is_some()
    }

    pub fn flight_bytes(&self) -> u64 {
        if self.is_answered {
            self.nxt - self.una
        } else {
            0
        }
    }

    fn window_is_closed(&self) -> bool {
        self.is_answered && self.window_bytes == 0
    }

    /// Processes a packet of the data sender. The result is written into `data`, which starts with
    /// defaults, because it is too large to be moved for each packet.
    pub fn sent(&mut self, segment: &Segment<'_>, cx: &Context, data: &mut Data) {
        let has = |flag| segment.has(flag);
        let flight_before_bytes = self.flight_bytes();
        if has(tcp_flag::RST) {
            // Sequence numbers of a reset may be far from the connection's.
            return self.begin(segment, (self.nxt, self.nxt), flight_before_bytes, cx, data);
        }
        let number = self.number(segment.seq);
        let start = number + u64::from(has(tcp_flag::SYN));
        let end = start + u64::from(segment.payload_len) + u64::from(has(tcp_flag::FIN));
        let is_known = self.first.is_some();
        self.start_at(start);
        if segment.ip_total_len <= MTU_BYTES {
            if segment.payload_len > self.largest_bytes {
                self.largest_bytes = segment.payload_len;
                self.alike = 0;
            }
            // The end of a write has PSH, and a segment that the MSS cuts off has not.
            let is_cut =
                segment.payload_len > 0 && segment.payload_len == self.largest_bytes && !has(tcp_flag::PSH);
            self.alike = self.alike.saturating_add(is_cut.into());
        }
        self.begin(segment, (start, end), flight_before_bytes, cx, data);
        let segments = segment.payload_len.div_ceil(self.mss_bytes()).max(1);
        data.ident = self.idents.came(segment.ip_ident, segments);
        if has(tcp_flag::SYN) {
            let again = is_known && self.isn == Some(number);
            self.isn = self.isn.or(Some(number));
            data.kind = if again { DataKind::SynAgain } else { DataKind::Syn };
        }
        let probe = self.probe(start, end).filter(|_| !has(tcp_flag::SYN | tcp_flag::FIN));
        if let Some(probe) = probe {
            data.kind = probe;
            self.probed = Some(probe);
            if end <= self.nxt {
                return;
            }
        } else {
            self.probed = None;
        }
        if end == start {
            return;
        }
        let kind = self.transmit(segment, cx, data);
        if data.kind == DataKind::None {
            data.kind = kind;
        }
        data.segments = segments;
        data.mss_bytes = self.mss_bytes();
        data.flight_bytes = self.flight_bytes();
        self.last_data_ns = Some(cx.time_ns);
        (self.advances, self.answer_bytes) = (0, 0);
    }

    fn begin(
        &mut self,
        segment: &Segment<'_>,
        (start, end): (u64, u64),
        flight_bytes: u64,
        cx: &Context,
        data: &mut Data,
    ) {
        data.start = start;
        data.end = end;
        data.mss_bytes = self.mss_bytes();
        data.since_data_ns = self.last_data_ns.map(|last| cx.time_ns - last);
        data.flight_before_bytes = flight_bytes;
        data.flight_bytes = flight_bytes;
        data.sender = self.sender_view(segment, cx);
    }

    /// Whether the packet is a probe without new data: at most one byte, either below the
    /// acknowledged number or into a closed window.
    fn probe(&self, start: u64, end: u64) -> Option<DataKind> {
        let below = start + 1 == self.una && end <= self.una;
        match (self.window_is_closed(), end - start) {
            (true, 0) if below => Some(DataKind::WindowProbe),
            (true, 1) if below || start >= self.edge => Some(DataKind::WindowProbe),
            (false, 0 | 1) if below && self.una == self.nxt => Some(DataKind::KeepAlive),
            _ => None,
        }
    }

    /// What the sender had heard when it sent the packet. The timestamp that it echoes shows this
    /// to a tick of the receiver's clock; within a tick, and without timestamps, the RTT to the
    /// sender does.
    fn sender_view(&mut self, segment: &Segment<'_>, cx: &Context) -> SenderView {
        let echo = segment.timestamps().map(|(_, echo)| echo);
        let path_ns = if echo.is_some() { cx.sender_least_ns } else { cx.sender_ns() };
        let reached = |advert: &Advert, heard: &Advert| match advert.stamp.zip(echo) {
            Some((stamp, echo)) if stamp != echo => (echo.wrapping_sub(stamp) as i32) > 0,
            // The first of the ACKs within this tick was heard.
            Some((stamp, _)) if heard.stamp != Some(stamp) => true,
            _ => advert.time_ns + path_ns <= cx.time_ns,
        };
        while let Some(advert) = self.underway.front().copied().filter(|next| reached(next, &self.heard)) {
            self.hear(advert);
            self.underway.pop_front();
        }
        // An ACK that should have reached the sender but did not is waiting in a queue, like the
        // one before it.
        let late = self.underway.front().filter(|next| next.time_ns + path_ns <= cx.time_ns);
        let (since_ns, distance_ns) = match late {
            Some(next) => (next.time_ns - self.heard.time_ns, cx.time_ns - self.heard.time_ns),
            None => (cx.time_ns.saturating_sub(self.heard.time_ns + path_ns), path_ns),
        };
        SenderView {
            una: self.heard.una,
            edge: self.heard.edge,
            nxt: self.nxt,
            since_ack_ns: (self.heard.time_ns > 0).then_some(since_ns),
            advances: self.advances,
            since_advance_ns: (self.advances > 0)
                .then(|| cx.time_ns.saturating_sub(self.advanced_ns + path_ns)),
            answer: (self.answer_bytes > 0).then(|| Answer {
                since_ns: cx.time_ns.saturating_sub(self.answer.time_ns + cx.sender_least_ns),
                una: self.answer.una,
                bytes: self.answer_bytes,
            }),
            distance_ns,
        }
    }

    fn hear(&mut self, advert: Advert) {
        if advert.una > self.heard.una {
            if self.advances == 0 {
                self.advanced_ns = advert.time_ns;
            }
            self.advances = self.advances.saturating_add(1);
        }
        if advert.bytes > 0 {
            self.answer = advert;
            self.answer_bytes += u64::from(advert.bytes);
        }
        self.heard = advert;
    }

    /// Time since an ACK reached the data sender.
    fn since_ack_ns(&self, cx: &Context) -> Option<u64> {
        let heard_ns = self.heard.time_ns + cx.sender_ns();
        (self.heard.time_ns > 0).then(|| cx.time_ns.saturating_sub(heard_ns))
    }

    /// Classifies passing sequence numbers as new, late or retransmitted.
    fn transmit(&mut self, segment: &Segment<'_>, cx: &Context, data: &mut Data) -> DataKind {
        let (start, end) = (data.start, data.end);
        if self.first.is_some_and(|first| end <= first) {
            return DataKind::Old;
        }
        let payload_end = start + u64::from(segment.payload_len);
        let sent = Sent {
            start,
            end,
            time_ns: cx.time_ns,
            timestamp: segment.timestamps().map_or(0, |t| t.0),
            segments: segment.payload_len.div_ceil(self.mss_bytes()).max(1),
            ident: segment.ip_ident,
            is_again: false,
            is_pushed: segment.flags & (tcp_flag::PSH | tcp_flag::FIN) != 0,
        };
        let above = payload_end.saturating_sub(start.max(self.nxt)).min(segment.payload_len.into());
        if start >= self.nxt {
            // Data in flight when the capture started is not a hole.
            if start > self.nxt && self.has_begun() {
                data.skipped_bytes = start - self.nxt;
                if self.holes.is_empty() {
                    self.first_hole = (self.nxt, cx.time_ns);
                }
                self.holes.insert(self.nxt, start, |_, _| ());
                self.newest_hole = NewestHole {
                    time_ns: cx.time_ns,
                    ident: segment.ip_ident,
                    timestamp: segment.timestamps().map(|t| t.0),
                };
            }
            self.nxt = end;
            if self.is_answered {
                let slack_bytes = data.sender.edge.checked_sub(end);
                let heard_bytes = end.saturating_sub(data.sender.una);
                let header = self.window_in_header;
                self.scale.sent(header, end - self.una, heard_bytes, slack_bytes, self.mss_bytes());
            }
            data.new_bytes = above as u32;
            self.keep(sent);
            return DataKind::New;
        }
        data.needless_bytes = self.una.min(payload_end).saturating_sub(start) as u32;
        let mut late = self.holes.remove(start, end);
        if (self.unseen.0..self.unseen.1).contains(&start) && end <= self.unseen.1 {
            late += end - start;
            self.unseen.0 = end;
            data.behind_ack_bytes = end - start;
            data.needless_bytes = 0;
            data.new_bytes = late.min(segment.payload_len.into()) as u32;
            return DataKind::OutOfOrder;
        }
        data.new_bytes = (above + late).min(segment.payload_len.into()) as u32;
        let is_tail = end >= self.nxt;
        self.nxt = self.nxt.max(end);
        if late > 0 && self.was_overtaken(segment, cx) {
            self.keep_late(sent);
            return DataKind::OutOfOrder;
        }
        let before_ns = self.mark_again(&sent);
        let revealed_ns = match self.first_hole {
            (first, time_ns) if first == start => time_ns,
            _ => self.newest_hole.time_ns,
        };
        data.lost_ns = before_ns.or((late > 0).then_some(revealed_ns));
        let clue = Clue {
            is_first: start <= self.una,
            is_tail,
            is_reported: self.sacked.highest() > start
                || before_ns.is_some_and(|before| before < self.newest_acked_ns),
            is_answered: self.is_answered,
            silence_ns: self.sender_silence_ns(cx),
            rtt: cx.path.unwrap_or_default(),
            sack: cx.sack,
            nxt: self.nxt,
        };
        let (cause, begins) = self.recovery.retransmission(&clue);
        data.begins_recovery = begins;
        DataKind::Retransmission(cause)
    }

    /// Whether an unacknowledged packet is this one, or one of the segments that an offload merged
    /// into it. A retransmission has a number of its own, if the sender numbers its packets, and a
    /// timestamp not older than what was sent before it.
    pub fn holds(&self, segment: &Segment<'_>, is_numbered: bool) -> bool {
        if segment.payload_len == 0 || segment.has(tcp_flag::SYN | tcp_flag::RST) || self.first.is_none() {
            return false;
        }
        let start = self.number(segment.seq);
        if start >= self.nxt || start < self.una {
            return false;
        }
        let at = self.outstanding.partition_point(|sent| sent.end <= start);
        let Some(held) = self.outstanding.get(at) else { return false };
        if start < held.start || start + u64::from(segment.payload_len) > held.end {
            return false;
        }
        let timestamp = segment.timestamps().map_or(0, |t| t.0);
        if timestamp != held.timestamp {
            return false;
        }
        if is_numbered && segment.ip_ident != 0 {
            let (before, mss) = (start - held.start, u64::from(self.mss_bytes()));
            return before % mss == 0 && segment.ip_ident == held.ident.wrapping_add((before / mss) as u16);
        }
        let newest = self.outstanding.back().map_or(timestamp, |newest| newest.timestamp);
        timestamp != 0 && newest.wrapping_sub(timestamp) as i32 > 0
    }

    /// Time for which the sender had neither sent data nor received an ACK.
    fn sender_silence_ns(&self, cx: &Context) -> u64 {
        let data_ns = self.last_data_ns.map_or(u64::MAX, |last| cx.time_ns - last);
        let ack_ns = self.since_ack_ns(cx).unwrap_or(u64::MAX);
        data_ns.min(ack_ns)
    }

    /// Whether a packet that fills a hole was overtaken on its way, and not retransmitted.
    fn was_overtaken(&self, segment: &Segment<'_>, cx: &Context) -> bool {
        let since_ns = cx.time_ns - self.newest_hole.time_ns;
        if let (Some((value, _)), Some(revealing)) = (segment.timestamps(), self.newest_hole.timestamp) {
            // If the sender's clock advanced between the two, it decides.
            match revealing.wrapping_sub(value) as i32 {
                0 => {}
                n => return n > 0,
            }
        }
        match self.newest_hole.ident.wrapping_sub(segment.ip_ident) {
            n @ 1..=1000 if segment.ip_ident != 0 => return n > 0,
            n if n > u16::MAX - 1000 && self.newest_hole.ident != 0 && segment.ip_ident != 0 => return false,
            _ => {}
        }
        since_ns < cx.path.map_or(REORDER_NS, |path| path.min_ns * 9 / 10)
    }

    fn keep(&mut self, sent: Sent) {
        let most = if self.is_answered { OUTSTANDING_MAX } else { UNANSWERED_MAX };
        if self.outstanding.len() >= most {
            self.outstanding.pop_front();
        }
        self.outstanding.push_back(sent);
    }

    fn keep_late(&mut self, sent: Sent) {
        let at = self.outstanding.partition_point(|s| s.start < sent.start);
        if self.outstanding.len() < OUTSTANDING_MAX {
            self.outstanding.insert(at, sent);
        }
    }

    /// Marks the range as retransmitted, in whatever pieces: it yields no RTT samples. Returns the
    /// time of the earlier copy.
    fn mark_again(&mut self, sent: &Sent) -> Option<u64> {
        let first = self.outstanding.partition_point(|s| s.end <= sent.start);
        let mut before_ns = None;
        for held in self.outstanding.iter_mut().skip(first).take_while(|s| s.start < sent.end) {
            before_ns = before_ns.or(Some(held.time_ns));
            held.time_ns = sent.time_ns;
            held.timestamp = sent.timestamp;
            held.ident = sent.ident;
            held.is_again = true;
        }
        if before_ns.is_none() && sent.end > self.una {
            self.keep_late(Sent { is_again: true, ..*sent });
        }
        before_ns
    }

    /// Processes a packet of the receiver, in the same way; `data` is what it carries.
    pub fn acked(&mut self, segment: &Segment<'_>, data: &Data, time_ns: u64, ack: &mut Ack) {
        let number = self.number(segment.ack);
        self.start_at(number);
        let is_first = !std::mem::replace(&mut self.is_answered, true);
        let flight_before_bytes = self.flight_bytes();
        let (una, edge) = (self.una, self.edge);
        ack.number = number;
        ack.dsack = dsack(number, segment, |raw| self.number(raw));
        ack.sack_blocks = segment.sack_blocks().len() as u32;
        ack.window_known = self.scale.is_known();
        ack.flight_before_bytes = flight_before_bytes;
        ack.mss_bytes = self.mss_bytes();
        ack.is_recovery = !self.sacked.is_empty() || self.recovery.is_open();
        for &(from, to) in segment.sack_blocks() {
            let (from, to) = (self.number(from), self.number(to));
            ack.foreign_sacks |= self.is_foreign(from, to);
            if una.max(number) <= from && from < to && to <= self.nxt {
                ack.sacked_bytes += self.sacked.insert(from, to, |_, _| ());
            }
        }
        let window_before = self.window_bytes;
        if number >= una {
            let shift = if segment.has(tcp_flag::SYN) { 0 } else { self.scale.shift() };
            self.window_bytes = u64::from(segment.window) << shift;
            self.window_in_header = segment.window;
            self.edge = number + self.window_bytes;
        }
        if number > una {
            ack.kind = AckKind::Advancing;
            self.advance(number, segment, time_ns, ack);
        } else if number == una {
            let same_window = self.window_bytes == window_before;
            ack.kind = match is_first {
                // The ACK of the SYN, or the first one captured: nothing to compare it with.
                true => AckKind::Unchanged,
                false => self.unchanged_kind(segment, same_window, flight_before_bytes, ack),
            };
            if ack.kind == AckKind::Duplicate {
                self.recovery.duplicate(ack.dsack.is_some() && ack.sacked_bytes == 0);
            }
        }
        ack.window_bytes = self.window_bytes;
        ack.edge = self.edge;
        ack.edge_moved_bytes = self.edge.wrapping_sub(edge) as i64;
        ack.flight_bytes = self.flight_bytes();
        ack.sacked_in_all_bytes = self.sacked.bytes();
        ack.packets_left = self.outstanding.len() as u32;
        // Keep-alives, probes and the answers to them do not let a sender go on.
        let asks = matches!(data.kind, DataKind::KeepAlive | DataKind::WindowProbe)
            || matches!(ack.kind, AckKind::KeepAliveReply | AckKind::WindowProbeReply);
        if number > una || number == una && !(asks && self.edge == edge) {
            let stamp = segment.timestamps().map(|(value, _)| value);
            let advert = Advert { time_ns, stamp, una: self.una, edge: self.edge, bytes: data.new_bytes };
            // A sender that was never seen has sent no packet that would request it.
            if self.last_data_ns.is_some() {
                self.tell(advert);
            } else {
                self.hear(advert);
            }
        }
    }

    /// Whether a SACK block lies where this connection has no data, in the data sent or still
    /// allowed (RFC 2018, 4, and for data received twice RFC 2883, 4).
    fn is_foreign(&self, from: u64, to: u64) -> bool {
        // What the capture missed may have been sent and allowed.
        let highest = match self.scale.is_known() {
            true => self.nxt.max(self.edge) + MISSED_MAX_BYTES,
            false => self.nxt + WINDOW_MAX_BYTES,
        };
        let lowest = match self.isn {
            Some(_) => self.first.unwrap_or(0),
            None => self.una.saturating_sub(WINDOW_MAX_BYTES),
        };
        self.last_data_ns.is_some() && (from < lowest || to > highest)
    }

    /// Type of an ACK that repeats its number.
    fn unchanged_kind(
        &self,
        segment: &Segment<'_>,
        same_window: bool,
        flight_bytes: u64,
        ack: &Ack,
    ) -> AckKind {
        let is_pure = segment.payload_len == 0 && segment.flags & (tcp_flag::SYN | tcp_flag::FIN) == 0;
        if !is_pure {
            return AckKind::Unchanged;
        }
        match self.probed {
            Some(DataKind::KeepAlive) if same_window => return AckKind::KeepAliveReply,
            Some(DataKind::WindowProbe) if same_window => return AckKind::WindowProbeReply,
            _ => {}
        }
        let reports = ack.sacked_bytes > 0 || ack.dsack.is_some();
        match (same_window, flight_bytes > 0) {
            // At the receiver nothing is in flight, wherever the sender may be.
            _ if reports => AckKind::Duplicate,
            (true, true) => AckKind::Duplicate,
            (false, _) => AckKind::WindowUpdate,
            (true, false) => AckKind::Unchanged,
        }
    }

    fn advance(&mut self, number: u64, segment: &Segment<'_>, time_ns: u64, ack: &mut Ack) {
        ack.acked_bytes = number - self.una;
        if number > self.nxt {
            ack.unseen_bytes = number - self.nxt;
            self.unseen = (self.nxt, number);
            self.nxt = number;
        }
        ack.unseen_bytes += self.holes.cut_below(number);
        ack.missed_bytes = if self.has_begun() { ack.unseen_bytes } else { 0 };
        self.una = number;
        let echo = segment.timestamps().map(|t| t.1);
        let oldest = self.outstanding.front().map_or(0, |sent| sent.timestamp);
        while let Some(sent) = self.outstanding.front().copied().filter(|s| s.start < number) {
            let since_ns = time_ns - sent.time_ns;
            self.newest_acked_ns = self.newest_acked_ns.max(sent.time_ns);
            ack.packets += 1;
            ack.oldest_ns = Some(ack.oldest_ns.map_or(since_ns, |ns| ns.max(since_ns)));
            ack.newest_ns = Some(since_ns);
            ack.is_exact = sent.end == number;
            ack.is_pushed = sent.is_pushed && ack.is_exact;
            ack.is_recovery |= sent.is_again;
            if ack.timestamp_rtt_ns.is_none() && echo == Some(sent.timestamp) && sent.timestamp != 0 {
                ack.timestamp_rtt_ns = Some(since_ns);
            }
            if sent.timestamp != oldest && ack.echo == Echo::Unclear && sent.timestamp != 0 {
                ack.echo = match echo {
                    Some(value) if value == oldest => Echo::Oldest,
                    Some(value) if value.wrapping_sub(oldest) as i32 > 0 => Echo::Later,
                    _ => Echo::Unclear,
                };
            }
            if sent.end > number {
                // Part of a merged packet.
                let part = ((number - sent.start) as u32).div_ceil(ack.mss_bytes).min(sent.segments);
                ack.segments += part;
                if let Some(rest) = self.outstanding.front_mut() {
                    rest.start = number;
                    rest.segments = (sent.segments - part).max(1);
                }
                break;
            }
            if sent.segments == 1 && !sent.is_again {
                ack.largest_bytes = ack.largest_bytes.max((sent.end - sent.start) as u32);
            }
            ack.segments += sent.segments;
            self.outstanding.pop_front();
        }
        self.sacked.cut_below(number);
        self.recovery.advance(number);
    }

    fn tell(&mut self, advert: Advert) {
        if self.underway.len() >= UNDERWAY_MAX {
            self.underway.pop_back();
        }
        self.underway.push_back(advert);
    }
}

/// D-SACK block (RFC 2883, 4): the first block lies below the acknowledgment, or within the second.
fn dsack(number: u64, segment: &Segment<'_>, unwrap: impl Fn(u32) -> u64) -> Option<(u64, u64)> {
    let mut blocks = segment.sack_blocks().iter().map(|&(from, to)| (unwrap(from), unwrap(to)));
    let block = blocks.next().filter(|b| b.0 < b.1)?;
    let within = |outer: (u64, u64)| outer.0 <= block.0 && block.1 <= outer.1;
    (block.1 <= number || blocks.next().is_some_and(within)).then_some(block)
}
