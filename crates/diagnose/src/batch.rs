// SPDX-License-Identifier: MIT
//! Batches of packets, collected to be followed together.

use crate::key::Key;
use crate::report::Options;
use ackwise_capture::life::Sign;
use ackwise_capture::{AccEcn, Cut, Packet};
use std::hint::black_box;
use std::ops::Deref;
use std::slice;

/// A packet to be assigned to its connection.
#[derive(Debug)]
pub(crate) struct Arrival<'p> {
    pub key: Key,
    /// Number of packets before it in the capture.
    pub ordinal: u64,
    pub headers: Headers,
    pub sacks: &'p [(u32, u32)],
    pub accecn: Option<&'p AccEcn>,
}

/// No shift: the largest is 14.
const NO_SCALE: u8 = u8::MAX;

/// Bits of [`Headers::marks`]: what the options hold, and that the snap length cut them.
const SACK_PERMITTED: u8 = 1;
const TIMESTAMPS: u8 = 2;
const ACCECN: u8 = 4;
const CUT: u8 = 8;

// One cache line.
const _: () = assert!(std::mem::size_of::<Headers>() == 64);

/// The relevant fields of a packet, in one cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(crate) struct Headers {
    /// Nanoseconds since the first packet of the capture.
    pub time_ns: u64,
    pub number: u64,
    pub file: u32,
    pub seq: u32,
    pub ack: u32,
    value: u32,
    echo: u32,
    pub payload_len: u32,
    pub ip_total_len: u32,
    pub flags: u16,
    pub window: u16,
    pub ip_ident: u16,
    /// MSS option of a SYN; 0: none.
    mss: u16,
    /// Number of packets in the capture between the first of the batch and this one.
    place: u32,
    /// [`NO_SCALE`]: none.
    window_scale: u8,
    pub ecn: u8,
    /// Direction, as in [`crate::key::Key::of`].
    pub from_upper: bool,
    pub ttl: u8,
    marks: u8,
    sacks: u8,
}

/// A packet with its options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'b> {
    pub headers: &'b Headers,
    pub sacks: &'b [(u32, u32)],
    pub accecn: Option<&'b AccEcn>,
}

impl Deref for Segment<'_> {
    type Target = Headers;

    fn deref(&self) -> &Headers {
        self.headers
    }
}

impl Headers {
    #[inline]
    pub fn of(packet: &Packet, time_ns: u64, from_upper: bool) -> Self {
        let segment = &packet.segment;
        let options = &segment.options;
        let (value, echo) = options.timestamps.unwrap_or_default();
        let mark = |bit, is_set: bool| if is_set { bit } else { 0 };
        let marks = mark(SACK_PERMITTED, options.sack_permitted)
            | mark(TIMESTAMPS, options.timestamps.is_some())
            | mark(ACCECN, options.accecn.is_some())
            | mark(CUT, segment.cut == Some(Cut::Options));
        Headers {
            time_ns,
            number: packet.number,
            file: packet.file,
            seq: segment.seq,
            ack: segment.ack,
            value,
            echo,
            payload_len: segment.payload_len,
            ip_total_len: segment.ip_total_len,
            flags: segment.flags,
            window: segment.window,
            ip_ident: segment.ip_ident,
            mss: options.mss.unwrap_or(0),
            place: 0,
            window_scale: options.window_scale.unwrap_or(NO_SCALE),
            ecn: segment.ecn,
            from_upper,
            ttl: segment.ip_ttl,
            marks,
            sacks: segment.sack_blocks().len() as u8,
        }
    }

    #[inline]
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    #[inline]
    pub fn sign(&self) -> Sign {
        let &Headers { time_ns, flags, seq, from_upper, .. } = self;
        Sign { time_ns, flags, seq, from: usize::from(from_upper) }
    }

    #[inline]
    fn is_marked(&self, bit: u8) -> bool {
        self.marks & bit != 0
    }

    /// (TSval, TSecr), if the packet has the option.
    #[inline]
    pub fn timestamps(&self) -> Option<(u32, u32)> {
        self.is_marked(TIMESTAMPS).then_some((self.value, self.echo))
    }

    /// The options of a SYN.
    pub fn options(&self) -> Options {
        Options {
            mss_bytes: Some(self.mss).filter(|&mss| mss > 0),
            window_scale: Some(self.window_scale).filter(|&shift| shift != NO_SCALE),
            sack_permitted: self.is_marked(SACK_PERMITTED),
            timestamps: self.is_marked(TIMESTAMPS),
            is_cut: self.is_marked(CUT),
        }
    }
}

impl Segment<'_> {
    /// [left edge, right edge) of each SACK block, the first as reported.
    #[inline]
    pub fn sack_blocks(&self) -> &[(u32, u32)] {
        self.sacks
    }
}

/// Marks the absence of a run number.
const NONE: u32 = u32::MAX;

/// Packets of any connections. The data that each packet needs is in its first cache line: there
/// are many batches.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Batch {
    /// Hash of the latest run.
    last_hash: u64,
    /// Number of packets in the capture before the first one here.
    first_ordinal: u64,
    packets: Vec<Headers>,
    runs: Vec<Run>,
    sacks: Vec<(u32, u32)>,
    /// The AccECN options of packets that have one.
    accecn: Vec<AccEcn>,
    /// Index of the first run of each connection.
    firsts: Vec<u32>,
    /// Index of the last run so far, by hash.
    lasts: Vec<u32>,
}

/// Consecutive packets of one connection. Packets tend to come in bursts, so common data is stored,
/// sorted and looked up a third as often.
#[derive(Debug)]
struct Run {
    key: Key,
    /// Some bits of the key's hash.
    hash: u32,
    /// Index of the connection's next run, or [`NONE`].
    next: u32,
    /// Start index of its packets, its SACK blocks and its AccECN options.
    from: u32,
    sacks_from: u32,
    accecn_from: u32,
}

impl Batch {
    /// Adds a packet, and returns whether the one before it is of another connection.
    #[inline(always)]
    pub fn push(&mut self, arrival: Arrival<'_>, hash: u64) -> bool {
        let Arrival { key, ordinal, headers, sacks, accecn } = arrival;
        // A different hash avoids looking at the run.
        let begins = self.last_hash != hash || self.runs.last().map_or(true, |run| run.key != key);
        if begins {
            self.last_hash = hash;
            let places = [self.packets.len(), self.sacks.len(), self.accecn.len()];
            let [from, sacks_from, accecn_from] = places.map(|n| n as u32);
            // The lowest bits selected the shelf.
            let hash = (hash >> u32::BITS) as u32;
            self.runs.push(Run { key, hash, next: NONE, from, sacks_from, accecn_from });
        }
        if self.packets.is_empty() {
            self.first_ordinal = ordinal;
        }
        self.packets.push(Headers { place: (ordinal - self.first_ordinal) as u32, ..headers });
        if !sacks.is_empty() || accecn.is_some() {
            self.push_options(sacks, accecn);
        }
        begins
    }

    #[inline(never)]
    fn push_options(&mut self, sacks: &[(u32, u32)], accecn: Option<&AccEcn>) {
        self.sacks.extend_from_slice(sacks);
        self.accecn.extend(accecn);
    }

    /// Reserves space for this many packets, so that none is moved as more arrive.
    pub fn reserve(&mut self, packets: usize) {
        self.packets.reserve(packets.saturating_sub(self.packets.len()));
    }

    /// Time of the first packet.
    pub fn first_ns(&self) -> Option<u64> {
        self.packets.first().map(|headers| headers.time_ns)
    }

    /// Passes on the packets of each connection in order of arrival, and empties the batch.
    pub fn drain(&mut self, mut each: impl FnMut(&Key, Burst<'_>)) {
        // Read in order, all packets are in a cache much sooner than when read by connection.
        black_box(self.packets.iter().fold(0, |all, headers| all ^ headers.place));
        self.link();
        for &first in &self.firsts {
            each(&self.runs[first as usize].key, Burst::new(self, first));
        }
        self.runs.clear();
        self.packets.clear();
        self.sacks.clear();
        self.accecn.clear();
    }

    /// Links the runs of each connection.
    fn link(&mut self) {
        let places = (2 * self.runs.len()).next_power_of_two();
        self.firsts.clear();
        self.lasts.clear();
        self.lasts.resize(places, NONE);
        for n in 0..self.runs.len() {
            let Run { key, hash, .. } = self.runs[n];
            let mut place = hash as usize % places;
            loop {
                match self.lasts[place] {
                    NONE => self.firsts.push(n as u32),
                    last if self.runs[last as usize].key == key => self.runs[last as usize].next = n as u32,
                    _ => {
                        place = (place + 1) % places;
                        continue;
                    }
                }
                self.lasts[place] = n as u32;
                break;
            }
        }
    }
}

/// The packets of a connection, each with the number of packets before it in the capture.
#[derive(Debug)]
pub(crate) struct Burst<'b> {
    batch: &'b Batch,
    next_run: u32,
    /// Packets of the current run.
    packets: slice::Iter<'b, Headers>,
    /// SACK blocks of the current packets and all later ones; likewise for the options.
    sacks: &'b [(u32, u32)],
    accecn: slice::Iter<'b, AccEcn>,
}

impl<'b> Burst<'b> {
    fn new(batch: &'b Batch, next_run: u32) -> Self {
        Burst { batch, next_run, packets: [].iter(), sacks: &[], accecn: [].iter() }
    }

    /// Moves to the next run, if there is one.
    fn next_run(&mut self) -> Option<()> {
        let Batch { runs, packets, sacks, accecn, .. } = self.batch;
        let at = self.next_run as usize;
        let run = runs.get(at)?;
        let to = runs.get(at + 1).map_or(packets.len(), |next| next.from as usize);
        self.next_run = run.next;
        self.packets = packets[run.from as usize..to].iter();
        self.sacks = &sacks[run.sacks_from as usize..];
        self.accecn = accecn[run.accecn_from as usize..].iter();
        Some(())
    }
}

impl<'b> Iterator for Burst<'b> {
    type Item = (u64, Segment<'b>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let headers = loop {
            match self.packets.next() {
                Some(headers) => break headers,
                None => self.next_run()?,
            }
        };
        let mut sacks = &[][..];
        if headers.sacks > 0 {
            (sacks, self.sacks) = self.sacks.split_at(headers.sacks.into());
        }
        let accecn = if headers.is_marked(ACCECN) { self.accecn.next() } else { None };
        Some((self.batch.first_ordinal + u64::from(headers.place), Segment { headers, sacks, accecn }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::below;
    use std::collections::BTreeMap;
    use std::net::SocketAddr;

    #[test]
    fn each_connection_gets_its_packets_in_order_and_at_once() {
        let mut below = below(1);
        let server = SocketAddr::from(([192, 0, 2, 1], 443));
        let key = |n: u64| Key::between(&SocketAddr::from(([10, 0, 0, 1], n as u16 + 1)), &server).0;
        let mut batch = Batch::default();
        for _ in 0..50 {
            let (mut ordinal, mut put) = (0, BTreeMap::<_, Vec<_>>::new());
            for _ in 0..below(60) {
                let connection = below(7);
                // Connections 0 and 6 have the same hash.
                let hash = (connection % 6) << u32::BITS;
                for _ in 0..1 + below(3) {
                    let sacks: Vec<_> = (0..below(3) as u32).map(|n| (n, ordinal as u32)).collect();
                    let accecn = (below(3) == 0).then(|| AccEcn::read(&[0, 0, ordinal as u8], false));
                    let headers = Headers {
                        sacks: sacks.len() as u8,
                        marks: if accecn.is_some() { ACCECN } else { 0 },
                        ..Headers::default()
                    };
                    let key = key(connection);
                    let accecn = accecn.as_ref();
                    batch.push(Arrival { key, ordinal, headers, sacks: &sacks, accecn }, hash);
                    put.entry(connection).or_default().push((ordinal, sacks, accecn.copied()));
                    ordinal += 1;
                }
            }
            let mut found = BTreeMap::new();
            batch.drain(|name, burst| {
                let connection = (0..7).find(|&n| key(n) == *name).expect("one of them");
                let packets = burst.map(|(ordinal, s)| (ordinal, s.sacks.to_vec(), s.accecn.copied()));
                assert_eq!(found.insert(connection, packets.collect::<Vec<_>>()), None);
            });
            assert_eq!(found, put);
            assert_eq!(batch.first_ns(), None);
        }
    }
}
