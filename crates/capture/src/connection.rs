// SPDX-License-Identifier: MIT
//! TCP connections of a capture and the packets of each direction, in sequence space without
//! wrap-around.

use crate::life::{Ending, Life, Sign};
use crate::segment::{tcp_flag, Cut, TcpSegment};
use crate::sequence::Offsets;
use serde::Serialize;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

const CE: u8 = 3;

/// One TCP packet, as it passed the capture point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Record {
    /// Nanoseconds since the first packet of the capture; never decreases from record to record.
    pub time_ns: u64,
    /// Number of the packet in the file, counted from 1 as in Wireshark.
    pub packet: u64,
    /// First sequence number. 0 is the SYN if one was captured; otherwise 1 is the lowest number
    /// seen in this direction (in data, or in ACKs of it).
    pub seq: u64,
    /// Acknowledgement number in the peer's numbering; 0 without the ACK flag or before its SYN.
    pub ack: u64,
    /// TCP payload length according to the IP header, even if less was captured.
    pub payload_len: u32,
    /// Length of the IP packet including its header; above the MTU where offloads merged packets.
    pub ip_total_len: u32,
    /// Advertised window: in bytes where [`Direction::window_shift`] is known, otherwise the raw
    /// header field.
    pub window: u32,
    /// The timestamps option (RFC 7323, 3): TSval; 0 without it.
    pub ts_val: u32,
    /// TSecr of the same option; 0 without it.
    pub ts_ecr: u32,
    sacks_from: u32,
    sacks: u8,
    /// ECN bits of the IP header: 3 is "congestion experienced".
    pub ecn: u8,
    /// TCP flags, in the bits of [`crate::tcp_flag`].
    pub flags: u16,
    /// Whether the packet has the timestamps option.
    pub has_timestamps: bool,
}

impl Record {
    /// Whether any bit of `flag` is set in [`Record::flags`].
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
    /// Whether the packet only acknowledges: no payload, no SYN, FIN or RST.
    pub fn is_pure_ack(&self) -> bool {
        self.payload_len == 0
            && self.flags & (tcp_flag::ACK | tcp_flag::SYN | tcp_flag::FIN | tcp_flag::RST) == tcp_flag::ACK
    }
    /// Whether the packet carries payload or a FIN, which the peer has to acknowledge.
    pub fn is_data(&self) -> bool {
        (self.payload_len > 0 || self.has(tcp_flag::FIN)) && !self.has(tcp_flag::RST)
    }
    /// Whether the packet is marked "congestion experienced" (RFC 3168).
    pub fn is_ce(&self) -> bool {
        self.ecn == CE
    }
    /// Sequence number of the first payload byte (a SYN takes one number before it).
    pub fn data_seq(&self) -> u64 {
        self.seq + u64::from(self.has(tcp_flag::SYN))
    }
    /// Sequence number after the packet: SYN and FIN take one each.
    pub fn seq_end(&self) -> u64 {
        self.data_seq() + u64::from(self.payload_len) + u64::from(self.has(tcp_flag::FIN))
    }
}

/// A block of received data above a hole, in the numbering of the direction that it acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SackBlock {
    /// Sequence number of the first byte.
    pub start: u64,
    /// Sequence number after the last byte.
    pub end: u64,
}

/// Source of a segment size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MssSource {
    /// The peer's MSS option, or the sender's own (without the timestamps option).
    Handshake,
    /// The most frequent payload length within an MTU of 1500.
    Packets,
    /// An assumption for lack of data: what an MTU of 1500 leaves.
    Assumed,
}

/// One direction of a connection.
#[derive(Clone, Debug, Serialize)]
pub struct Direction {
    /// The packets of this direction in file order, without [`Direction::old_packets`].
    #[serde(skip)]
    pub records: Vec<Record>,
    #[serde(skip)]
    sack_blocks: Vec<SackBlock>,
    /// Initial sequence number, where the SYN was captured.
    pub isn: Option<u32>,
    /// MSS option of this direction's SYN.
    pub mss_option: Option<u16>,
    /// Window scale option of this direction's SYN.
    pub window_scale_option: Option<u8>,
    /// Shift already applied to [`Record::window`]; None where the handshake was not captured, so
    /// that windows are unknown.
    pub window_shift: Option<u8>,
    /// Whether this direction's SYN carried SACK-permitted (RFC 2018, 2); false where it was not
    /// captured.
    pub sack_permitted: bool,
    /// Whether the snap length cut the options of this direction's SYN: those missing here may have
    /// been offered.
    pub options_cut: bool,
    /// Whether data packets carry the timestamps option.
    pub timestamps: bool,
    /// Payload of a full segment on the wire, bytes, at least 1.
    pub mss_bytes: u32,
    /// Where [`Direction::mss_bytes`] comes from.
    pub mss_source: MssSource,
    /// Number of packets.
    pub packets: u64,
    /// Payload bytes, including retransmissions.
    pub payload_bytes: u64,
    /// Number of packets with payload or FIN.
    pub data_packets: u64,
    /// Number of wire segments: a merged packet counts once for each `mss_bytes`.
    pub data_segments: u64,
    /// Number of packets with more than one MSS of payload: an offload was on at the capture point.
    pub packets_above_mss: u64,
    /// Number of pure ACKs ([`Record::is_pure_ack`]).
    pub pure_acks: u64,
    /// Number of packets marked "congestion experienced" (RFC 3168, 5).
    pub ce_packets: u64,
    /// Number of packets that precede the SYN in sequence space; they are left out of everything
    /// else.
    pub old_packets: u64,
}

impl Direction {
    fn new(syn: Option<Syn>, packets: usize) -> Self {
        Direction {
            records: Vec::with_capacity(packets),
            sack_blocks: Vec::new(),
            isn: syn.map(|s| s.isn),
            mss_option: syn.and_then(|s| s.mss),
            window_scale_option: syn.and_then(|s| s.window_scale),
            window_shift: None,
            sack_permitted: syn.is_some_and(|s| s.sack_permitted),
            options_cut: syn.is_some_and(|s| s.options_cut),
            timestamps: false,
            mss_bytes: 1,
            mss_source: MssSource::Assumed,
            packets: 0,
            payload_bytes: 0,
            data_packets: 0,
            data_segments: 0,
            packets_above_mss: 0,
            pure_acks: 0,
            ce_packets: 0,
            old_packets: 0,
        }
    }

    /// SACK blocks of a record of this direction, in the peer's numbering.
    pub fn sacks(&self, record: &Record) -> &[SackBlock] {
        let from = record.sacks_from as usize;
        self.sack_blocks.get(from..from + usize::from(record.sacks)).unwrap_or(&[])
    }

    /// First transmissions: (time in nanoseconds, bytes) of every packet with payload above everything seen
    /// before. Retransmitted and late data is left out.
    pub fn new_data(&self) -> Vec<(u64, u32)> {
        let mut highest = 0;
        let mut sent = Vec::new();
        for r in self.records.iter().filter(|r| r.payload_len > 0 && r.is_data()) {
            let end = r.data_seq() + u64::from(r.payload_len);
            let fresh = end.saturating_sub(highest.max(r.data_seq()));
            if fresh > 0 {
                sent.push((r.time_ns, fresh.min(r.payload_len.into()) as u32));
                highest = end;
            }
        }
        sent
    }

    /// Number of wire segments for a payload of this length, at least 1.
    pub fn segments_of(&self, payload_len: u32) -> u32 {
        payload_len.div_ceil(self.mss_bytes).max(1)
    }
}

/// Times of the three packets that open a connection, nanoseconds as in [`Record::time_ns`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Handshake {
    /// Time of the last SYN before the SYN-ACK.
    pub syn_ns: u64,
    /// Time of the SYN-ACK.
    pub syn_ack_ns: u64,
    /// Time of the initiator's first packet after the SYN-ACK.
    pub ack_ns: u64,
}

impl Handshake {
    /// RTT of the whole path in nanoseconds, wherever the capture point lies.
    pub fn rtt_ns(&self) -> u64 {
        self.ack_ns - self.syn_ns
    }
    /// RTT between the capture point and an end, nanoseconds; end 0 is the initiator.
    pub fn distance_ns(&self, end: usize) -> u64 {
        if end == 0 {
            self.ack_ns - self.syn_ack_ns
        } else {
            self.syn_ack_ns - self.syn_ns
        }
    }
}

/// A TCP connection; direction 0 goes from endpoint 0 to endpoint 1.
#[derive(Clone, Debug, Serialize)]
pub struct Connection {
    /// Endpoint 0 sent the SYN; without a handshake, it sent the first packet.
    pub endpoints: [SocketAddr; 2],
    /// Whether endpoint 0 is known to have opened the connection.
    pub initiator_known: bool,
    /// The packets of each direction, with what they add up to.
    pub directions: [Direction; 2],
    /// Time of the first packet, as in [`Record::time_ns`].
    pub start_ns: u64,
    /// Time of the last packet.
    pub end_ns: u64,
    /// How the connection ended.
    pub ending: Ending,
    /// Times of the handshake; None unless all three of its packets were captured.
    pub handshake: Option<Handshake>,
}

impl Connection {
    /// Time from the first packet to the last, nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }

    /// The records of both directions in file order, each with its direction.
    pub fn timeline(&self) -> Timeline<'_> {
        Timeline { rest: [&self.directions[0].records, &self.directions[1].records] }
    }
}

/// Iterator of [`Connection::timeline`].
#[derive(Clone, Debug)]
pub struct Timeline<'a> {
    rest: [&'a [Record]; 2],
}

impl<'a> Iterator for Timeline<'a> {
    type Item = (usize, &'a Record);

    fn next(&mut self) -> Option<Self::Item> {
        let from = match (self.rest[0].first(), self.rest[1].first()) {
            (Some(a), Some(b)) => usize::from(b.packet < a.packet),
            (Some(_), None) => 0,
            (None, Some(_)) => 1,
            (None, None) => return None,
        };
        let (first, rest) = self.rest[from].split_first()?;
        self.rest[from] = rest;
        Some((from, first))
    }
}

/// Numbers of one direction. Their zero point is moved when the capture is complete, so they may be negative until
/// then.
#[derive(Clone, Copy, Debug, Default)]
struct Space {
    offsets: Offsets,
    lowest: i64,
}

impl Space {
    fn number(&mut self, raw: u32, moves: bool) -> i64 {
        if !moves {
            return self.offsets.of(raw);
        }
        let value = self.offsets.see(raw);
        self.lowest = self.lowest.min(value);
        value
    }
}

/// A packet of an open connection, numbers as on the wire.
#[derive(Clone, Copy)]
struct Packet {
    time_ns: u64,
    number: u64,
    seq: u32,
    ack: u32,
    payload_len: u32,
    ip_total_len: u32,
    timestamps: (u32, u32),
    window: u16,
    flags: u16,
    /// Direction 0 or 1.
    from: u8,
    ecn: u8,
    sacks: u8,
    has_timestamps: bool,
}

/// Contents of the first SYN of a direction.
#[derive(Clone, Copy)]
struct Syn {
    isn: u32,
    mss: Option<u16>,
    window_scale: Option<u8>,
    sack_permitted: bool,
    options_cut: bool,
}

/// Two endpoints in a fixed order, whoever opened the connection.
type Pair = (SocketAddr, SocketAddr);

/// A connection that may still receive packets, with the minimum needed to build it when it is
/// over.
struct Open {
    /// Index in the order of first packets.
    index: usize,
    /// Whether endpoint 0 is the second of its pair.
    swapped: bool,
    initiator_known: bool,
    life: Life,
    syns: [Option<Syn>; 2],
    packets: Vec<Packet>,
    sacks: Vec<(u32, u32)>,
}

const PACKET_BYTES: u64 = std::mem::size_of::<Packet>() as u64;
const SACK_BYTES: u64 = std::mem::size_of::<(u32, u32)>() as u64;
/// Includes its entry in the table, which is at least 7/16 full.
const OPEN_BYTES: u64 = std::mem::size_of::<Open>() as u64 + ENTRY_BYTES * 16 / 7;
const ENDED_BYTES: u64 = std::mem::size_of::<(u64, Pair, usize)>() as u64;
const ENTRY_BYTES: u64 = std::mem::size_of::<(Pair, Box<Open>)>() as u64 + 1;

// The crate's documentation states this limit.
const _: () = assert!(PACKET_BYTES <= 48);
const _: () = assert!(OPEN_BYTES <= 300);
const _: () = assert!(std::mem::size_of::<Record>() <= 64);

/// Sorts segments into connections and delivers connections that are over.
#[derive(Default)]
pub(crate) struct Tracker {
    open: HashMap<Pair, Box<Open>>,
    /// Ended connections and the times at which they may be delivered, in order of time.
    ended: VecDeque<(u64, Pair, usize)>,
    connections: usize,
    packets: u64,
    sacks: u64,
}

impl Tracker {
    /// Adds a segment, and delivers connections to which it and later segments cannot belong.
    pub fn add(
        &mut self,
        segment: &TcpSegment,
        time_ns: u64,
        number: u64,
        mut over: impl FnMut(usize, Connection),
    ) {
        let pair = (segment.src.min(segment.dst), segment.src.max(segment.dst));
        while let Some(&(_, ended, index)) = self.ended.front().filter(|e| e.0 < time_ns) {
            self.ended.pop_front();
            match self.open.get(&ended).filter(|open| open.index == index) {
                Some(open) if open.life.is_over(time_ns) => self.close(&ended, &mut over),
                // Packets arrived after its end: check again when they are old enough.
                Some(open) => self.ended.push_back((open.life.leaves_ns(), ended, index)),
                None => {}
            }
        }
        let from = usize::from(segment.src > segment.dst);
        let sign = Sign { time_ns, flags: segment.flags, seq: segment.seq, from };
        if self.open.get(&pair).is_some_and(|o| !o.life.goes_on(&sign)) {
            self.close(&pair, &mut over);
        }
        let open = self.open.entry(pair).or_insert_with(|| {
            self.connections += 1;
            Box::new(Open::new(segment, time_ns, self.connections - 1))
        });
        open.add(segment, time_ns, number);
        if open.life.add(&sign) {
            self.ended.push_back((open.life.leaves_ns(), pair, open.index));
        }
        self.packets += 1;
        self.sacks += segment.sack_blocks().len() as u64;
    }

    /// Number of connections held, and bytes that they and their packets take.
    pub fn held(&self) -> (usize, u64) {
        let open = self.open.len();
        let bytes = [
            open as u64 * OPEN_BYTES,
            self.ended.len() as u64 * ENDED_BYTES,
            self.packets * PACKET_BYTES,
            self.sacks * SACK_BYTES,
        ];
        (open, bytes.iter().sum())
    }

    fn close(&mut self, pair: &Pair, over: &mut impl FnMut(usize, Connection)) {
        if let Some(open) = self.open.remove(pair) {
            self.packets -= open.packets.len() as u64;
            self.sacks -= open.sacks.len() as u64;
            over(open.index, open.finish(pair));
        }
    }

    /// The remaining connections, in the order of first packets.
    pub fn finish(self) -> impl Iterator<Item = (usize, Connection)> {
        let mut rest: Vec<_> = self.open.into_iter().collect();
        rest.sort_unstable_by_key(|(_, open)| open.index);
        rest.into_iter().map(|(pair, open)| (open.index, open.finish(&pair)))
    }
}

impl Open {
    fn new(segment: &TcpSegment, time_ns: u64, index: usize) -> Self {
        let syn = segment.flags & tcp_flag::SYN != 0;
        let ack = segment.flags & tcp_flag::ACK != 0;
        let first = if syn && ack { segment.dst } else { segment.src };
        Open {
            index,
            swapped: first > segment.src.min(segment.dst),
            initiator_known: syn,
            life: Life::new(time_ns),
            syns: [None; 2],
            // Most connections of a scan or a flood have no second packet.
            packets: Vec::with_capacity(1),
            sacks: Vec::new(),
        }
    }

    fn direction_of(&self, segment: &TcpSegment) -> usize {
        // A connection of an endpoint with itself has one direction.
        usize::from(segment.src != segment.dst && (segment.src > segment.dst) != self.swapped)
    }

    fn add(&mut self, segment: &TcpSegment, time_ns: u64, number: u64) {
        let from = self.direction_of(segment);
        let has = |flag| segment.flags & flag != 0;
        let options = &segment.options;
        if has(tcp_flag::SYN) && self.syns[from].is_none() {
            self.syns[from] = Some(Syn {
                isn: segment.seq,
                mss: options.mss.filter(|&mss| mss > 0),
                window_scale: options.window_scale,
                sack_permitted: options.sack_permitted,
                options_cut: segment.cut == Some(Cut::Options),
            });
        }
        self.sacks.extend(segment.sack_blocks());
        self.packets.push(Packet {
            time_ns,
            number,
            seq: segment.seq,
            ack: segment.ack,
            payload_len: segment.payload_len,
            ip_total_len: segment.ip_total_len,
            timestamps: options.timestamps.unwrap_or((0, 0)),
            window: segment.window,
            flags: segment.flags,
            from: from as u8,
            ecn: segment.ecn,
            sacks: segment.sack_blocks().len() as u8,
            has_timestamps: options.timestamps.is_some(),
        });
    }

    fn finish(self, pair: &Pair) -> Connection {
        let mut building = Building {
            connection: Connection {
                endpoints: if self.swapped { [pair.1, pair.0] } else { [pair.0, pair.1] },
                initiator_known: self.initiator_known,
                directions: [0, 1].map(|d| {
                    let packets = self.packets.iter().filter(|p| usize::from(p.from) == d).count();
                    Direction::new(self.syns[d], packets)
                }),
                start_ns: self.packets.first().map_or(0, |p| p.time_ns),
                end_ns: self.packets.last().map_or(0, |p| p.time_ns),
                ending: self.life.ending(),
                handshake: None,
            },
            spaces: Default::default(),
            syn_seq: [None; 2],
        };
        let mut sacks = &self.sacks[..];
        for packet in &self.packets {
            let (blocks, rest) = sacks.split_at(packet.sacks.into());
            building.add(packet, blocks);
            sacks = rest;
        }
        drop(self);
        building.finish()
    }
}

/// A connection that is over, packet by packet.
struct Building {
    connection: Connection,
    spaces: [Space; 2],
    syn_seq: [Option<i64>; 2],
}

impl Building {
    fn add(&mut self, packet: &Packet, blocks: &[(u32, u32)]) {
        let d = usize::from(packet.from);
        let has = |flag| packet.flags & flag != 0;
        // Sequence numbers of a reset may be far from the connection's.
        let moves = !has(tcp_flag::RST);
        let seq = self.spaces[d].number(packet.seq, moves);
        let ack = match has(tcp_flag::ACK) {
            true => self.spaces[1 - d].number(packet.ack, moves),
            false => 0,
        };
        if has(tcp_flag::SYN) && self.syn_seq[d].is_none() {
            self.syn_seq[d] = Some(seq);
        }
        let direction = &mut self.connection.directions[d];
        let sacks_from = direction.sack_blocks.len();
        for &(start, end) in blocks {
            let start = self.spaces[1 - d].offsets.of(start) as u64;
            let end = self.spaces[1 - d].offsets.of(end) as u64;
            direction.sack_blocks.push(SackBlock { start, end });
        }
        direction.records.push(Record {
            time_ns: packet.time_ns,
            packet: packet.number,
            seq: seq as u64,
            ack: ack as u64,
            payload_len: packet.payload_len,
            ip_total_len: packet.ip_total_len,
            window: packet.window.into(),
            ts_val: packet.timestamps.0,
            ts_ecr: packet.timestamps.1,
            sacks_from: u32::try_from(sacks_from).unwrap_or(u32::MAX),
            sacks: packet.sacks,
            ecn: packet.ecn,
            flags: packet.flags,
            has_timestamps: packet.has_timestamps,
        });
    }

    fn finish(mut self) -> Connection {
        let zero = [0, 1].map(|d| self.syn_seq[d].unwrap_or(self.spaces[d].lowest.saturating_sub(1)));
        let number = |raw: u64, d: usize| (raw as i64).saturating_sub(zero[d]).max(0) as u64;
        let shifts = self.window_shifts();
        for d in [0, 1] {
            let direction = &mut self.connection.directions[d];
            direction.window_shift = shifts[d];
            // Older than the SYN: a packet of an earlier connection, whose numbers do not fit.
            let is_old = |r: &Record| (r.seq as i64) < zero[d] && !r.has(tcp_flag::RST);
            let before = direction.records.len();
            if self.syn_seq[d].is_some() {
                direction.records.retain(|r| !is_old(r));
            }
            direction.old_packets = (before - direction.records.len()) as u64;
            for record in &mut direction.records {
                record.seq = number(record.seq, d);
                record.ack = match record.has(tcp_flag::ACK) {
                    true => number(record.ack, 1 - d),
                    false => 0,
                };
                // RFC 7323, 2.2: the window of a SYN is never scaled.
                if !record.has(tcp_flag::SYN) {
                    record.window <<= shifts[d].unwrap_or(0);
                }
            }
            for block in &mut direction.sack_blocks {
                block.start = number(block.start, 1 - d);
                block.end = number(block.end, 1 - d);
            }
        }
        for d in [0, 1] {
            self.count(d);
        }
        self.connection.handshake = handshake(&self.connection);
        self.connection
    }

    /// RFC 7323, 2.2: scaling is on only if both SYNs carry the option; a SYN-ACK carries it only
    /// in answer to one.
    fn window_shifts(&self) -> [Option<u8>; 2] {
        // The option of each SYN: None where it is not known.
        let [a, b] = [0, 1].map(|d| {
            let direction = &self.connection.directions[d];
            let option = direction.window_scale_option;
            direction.isn.and_then(|_| match direction.options_cut && option.is_none() {
                true => None,
                false => Some(option),
            })
        });
        match (a, b) {
            (Some(None), Some(_)) | (_, Some(None)) => [Some(0); 2],
            (Some(Some(a)), Some(Some(b))) => [Some(a), Some(b)],
            (None, Some(Some(b))) => [None, Some(b)],
            (Some(_), None) | (None, None) => [None; 2],
        }
    }

    fn count(&mut self, d: usize) {
        let [mine, peer] = [d, 1 - d].map(|d| self.connection.directions[d].mss_option);
        let options = peer.or(mine).map(u32::from);
        let is_ipv4 = self.connection.endpoints[0].is_ipv4();
        let direction = &mut self.connection.directions[d];
        direction.packets = direction.records.len() as u64;
        for record in &direction.records {
            direction.payload_bytes += u64::from(record.payload_len);
            direction.pure_acks += u64::from(record.is_pure_ack());
            direction.ce_packets += u64::from(record.is_ce());
            direction.data_packets += u64::from(record.is_data());
            direction.timestamps |= record.is_data() && record.has_timestamps;
        }
        let stamps = if direction.timestamps { 12 } else { 0 };
        (direction.mss_bytes, direction.mss_source) = match options {
            Some(mss) => (mss.saturating_sub(stamps).max(1), MssSource::Handshake),
            None => match most_frequent_payload(&direction.records) {
                Some(mss) => (mss, MssSource::Packets),
                None => (if is_ipv4 { 1460 } else { 1440 } - stamps, MssSource::Assumed),
            },
        };
        for record in direction.records.iter().filter(|r| r.is_data()) {
            let segments = record.payload_len.div_ceil(direction.mss_bytes).max(1);
            direction.data_segments += u64::from(segments);
            direction.packets_above_mss += u64::from(segments > 1);
        }
    }
}

/// The most frequent payload length, the longer one in a tie. Only packets that fit an MTU of 1500
/// count, because offloads merge to any size above, and only lengths of 536 bytes (the smallest
/// segment that every host accepts, RFC 9293, 3.7.1) or more, because short packets are an
/// application's writes.
fn most_frequent_payload(records: &[Record]) -> Option<u32> {
    let mut counts = vec![0u32; 1501];
    for record in records.iter().filter(|r| r.payload_len >= 536 && r.ip_total_len <= 1500) {
        if let Some(count) = counts.get_mut(record.payload_len as usize) {
            *count = count.saturating_add(1);
        }
    }
    let (length, count) = counts.into_iter().enumerate().max_by_key(|&(_, n)| n)?;
    (count > 0).then_some(length as u32)
}

fn handshake(connection: &Connection) -> Option<Handshake> {
    let [there, back] = &connection.directions;
    let answer = back.records.iter().find(|r| r.has(tcp_flag::SYN) && r.has(tcp_flag::ACK))?;
    let before = there.records.iter().take_while(|r| r.packet < answer.packet);
    let syn = before.filter(|r| r.has(tcp_flag::SYN)).last()?;
    let ack = there.records.iter().find(|r| r.packet > answer.packet && r.has(tcp_flag::ACK))?;
    Some(Handshake { syn_ns: syn.time_ns, syn_ack_ns: answer.time_ns, ack_ns: ack.time_ns })
}
