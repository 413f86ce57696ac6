// SPDX-License-Identifier: MIT
//! One stream of TCP packets from one or several sources, in order of time.
//!
//! Sources are sorted by their first packets, and each is opened when the stream reaches that time.
//! The files of a ring buffer are therefore read one after another, and only files that overlap are
//! open at the same time and merged.

use crate::error::{CaptureError, CaptureErrorKind};
use crate::file::CaptureFile;
use crate::fragment::Fragments;
use crate::input::{Source, Watch};
use crate::notes::{CaptureNotes, FileNotes};
use crate::packet::{self, Skipped};
use crate::raw::RawPacket;
use crate::reading::{Packet, ReadOptions, Take};
use crate::segment::{Cut, Fragment, Protocol, SkipCause, TcpSegment, Tunnel};
use crate::sort::Sorter;
use crate::too_big::{self, TooBig};
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// Calls `each` for every TCP packet of the sources in order of time. Sources that overlap are
/// merged, others are read one after another, whatever the order in which they are given.
/// [`ControlFlow::Break`] ends the reading. Nothing is kept but one buffer for each open source.
///
/// # Errors
/// A source cannot be opened or read, is no capture, or is damaged before its end; the error says
/// where.
pub fn packets<'a>(
    sources: impl IntoIterator<Item = Source<'a>>,
    options: &ReadOptions<'_>,
    each: impl FnMut(&Packet) -> ControlFlow<()>,
) -> Result<CaptureNotes, CaptureError> {
    packets_into(sources, options, &mut Caller(each))
}

struct Caller<F>(F);

impl<F: FnMut(&Packet) -> ControlFlow<()>> Take for Caller<F> {
    fn take(&mut self, packet: &Packet) -> ControlFlow<()> {
        (self.0)(packet)
    }
}

/// Like [`packets`], with a [`Take`] in place of a closure.
///
/// # Errors
/// The errors of [`packets`].
pub fn packets_into<'a>(
    sources: impl IntoIterator<Item = Source<'a>>,
    options: &ReadOptions<'_>,
    to: &mut impl Take,
) -> Result<CaptureNotes, CaptureError> {
    if options.sort_ns == 0 {
        return read_all(sources, options, to);
    }
    let mut hand_out = |packet: &Packet| to.take(packet);
    let mut sorter = Sorter::new(options.sort_ns, &mut hand_out);
    let notes = read_all(sources, options, &mut sorter)?;
    sorter.finish();
    Ok(notes)
}

fn read_all<'a>(
    sources: impl IntoIterator<Item = Source<'a>>,
    options: &ReadOptions<'_>,
    to: &mut impl Take,
) -> Result<CaptureNotes, CaptureError> {
    let sources: Vec<_> = sources.into_iter().collect();
    let watch = Watch::new(&sources, options.watch);
    let mut reading = Reading::new(options);
    let mut waiting = reading.in_order(sources, &watch)?;
    let mut open: Vec<Cursor<'_>> = Vec::new();
    loop {
        let first = (0..open.len()).min_by_key(|&i| open[i].head.place());
        let reached_ns = first.map_or(u64::MAX, |i| open[i].head.time_ns);
        if waiting.front().is_some_and(|w| w.first_ns <= reached_ns) {
            let Some(next) = waiting.pop_front() else { continue };
            open.extend(next.open(&watch, &mut reading)?);
            continue;
        }
        let Some(first) = first else { return Ok(reading.finish()) };
        // No packet of another source comes before this point.
        let others = (0..open.len()).filter(|&i| i != first).map(|i| open[i].head.place());
        let until = others.chain(waiting.front().map(|w| (w.first_ns, w.file))).min();
        match open[first].hand_out(until, &mut reading, to)? {
            Reached::Later => {}
            Reached::End => {
                let over = open.swap_remove(first);
                reading.close(over);
            }
            Reached::Enough => {
                open.into_iter().for_each(|cursor| reading.close(cursor));
                return Ok(reading.finish());
            }
        }
    }
}

/// A source that the stream has not reached yet.
struct Waiting<'a> {
    /// Time of its first packet of any kind; 0 if it has none.
    first_ns: u64,
    file: u32,
    begun: Begun<'a>,
}

enum Begun<'a> {
    /// A source that can be opened at any time: until then it takes no buffer and no descriptor.
    Closed(Source<'a>),
    Open(CaptureFile<'a>),
}

impl<'a> Waiting<'a> {
    /// Opens the source at its first TCP packet; None if it has none.
    fn open(self, watch: &'a Watch<'a>, reading: &mut Reading) -> Result<Option<Cursor<'a>>, CaptureError> {
        let file = match self.begun {
            Begun::Closed(source) => CaptureFile::open(source, watch)?,
            Begun::Open(file) => file,
        };
        let mut cursor = Cursor { file, head: Packet::nothing(self.file) };
        if cursor.begin(reading)? {
            return Ok(Some(cursor));
        }
        reading.close(cursor);
        Ok(None)
    }
}

/// An open source.
struct Cursor<'a> {
    file: CaptureFile<'a>,
    /// Its next TCP packet.
    head: Packet,
}

/// Why a source delivers no more for now.
enum Reached {
    /// Its next packet is later than requested.
    Later,
    End,
    /// The caller wants no more packets.
    Enough,
}

impl Cursor<'_> {
    /// Advances to the first TCP packet; false if there is none.
    fn begin(&mut self, reading: &mut Reading) -> Result<bool, CaptureError> {
        let nobody = &mut Caller(|_: &Packet| ControlFlow::Continue(()));
        Ok(matches!(self.read(|_| false, reading, nobody)?, Reached::Later))
    }

    /// Delivers the next packet, and those after it that are not later than `until`.
    #[inline(always)]
    fn hand_out(
        &mut self,
        until: Option<(u64, u32)>,
        reading: &mut Reading,
        to: &mut impl Take,
    ) -> Result<Reached, CaptureError> {
        reading.stamp(&mut self.head);
        match apart(to, &self.head) {
            ControlFlow::Break(()) => Ok(Reached::Enough),
            ControlFlow::Continue(()) => {
                self.read(|packet| until.map_or(true, |until| packet.place() <= until), reading, to)
            }
        }
    }

    /// Delivers TCP packets as long as they are due; the next one then becomes `head`.
    #[inline(always)]
    fn read(
        &mut self,
        is_due: impl Fn(&Packet) -> bool,
        reading: &mut Reading,
        to: &mut impl Take,
    ) -> Result<Reached, CaptureError> {
        let mut packet = Packet::nothing(self.head.file);
        while !reading.is_at_limit() {
            let Some(raw) = self.file.next_packet()? else { break };
            reading.packets += 1;
            // The most common packets are delivered as they are decoded: reading them back from
            // memory right after writing takes longer than decoding them.
            if plain(&raw, &mut packet) {
                reading.count(&packet.segment);
                if !is_due(&packet) {
                    self.head = packet;
                    return Ok(Reached::Later);
                }
                reading.stamp(&mut packet);
                if to.take(&packet).is_break() {
                    return Ok(Reached::Enough);
                }
                continue;
            }
            let head = &mut self.head;
            if let Err(skipped) = decode(&raw, &mut reading.fragments, head) {
                reading.skipped[skipped.cause as usize] += 1;
                if let Some(protocol) = skipped.protocol {
                    reading.protocols[protocol as usize] += 1;
                }
                if let Some(told) = skipped.too_big {
                    too_big::add(&mut reading.notes.too_big, TooBig { time_ns: head.time_ns, ..told });
                }
                continue;
            }
            reading.count(&head.segment);
            if !is_due(head) {
                return Ok(Reached::Later);
            }
            reading.stamp(head);
            if apart(to, head).is_break() {
                return Ok(Reached::Enough);
            }
        }
        Ok(Reached::End)
    }
}

/// Out-of-line call for rare packets, so that the consumer is not compiled into each place.
#[cold]
#[inline(never)]
fn apart(to: &mut impl Take, packet: &Packet) -> ControlFlow<()> {
    to.take(packet)
}

#[inline(always)]
fn plain(raw: &RawPacket<'_>, into: &mut Packet) -> bool {
    let (Some(link), Some(time_ns)) = (raw.link, raw.time_ns) else { return false };
    into.time_ns = time_ns;
    into.number = raw.number;
    into.interface = raw.interface;
    packet::plain(link, raw.data, raw.wire_len, &mut into.segment)
}

fn decode(raw: &RawPacket<'_>, fragments: &mut Fragments, into: &mut Packet) -> Result<(), Skipped> {
    let link = raw.link.ok_or(SkipCause::UnknownLink)?;
    into.time_ns = raw.time_ns.ok_or(SkipCause::NoTime)?;
    into.number = raw.number;
    into.interface = raw.interface;
    packet::decode(link, raw.data, raw.wire_len, fragments, &mut into.segment)
}

/// Times more than two years after the first are wrong: sums of times must fit into 63 bits.
const LONGEST_NS: u64 = 1 << 56;

/// State common to all sources of one reading.
struct Reading {
    max_packets: Option<u64>,
    /// Whether packets are sorted after they are counted here.
    sorts: bool,
    fragments: Fragments,
    packets: u64,
    skipped: [u64; SkipCause::ALL.len()],
    protocols: [u64; Protocol::ALL.len()],
    tunnels: [u64; Tunnel::ALL.len()],
    latest_ns: Option<u64>,
    /// Number of packets in a row with a time before the latest one.
    backward_run: u64,
    files: Vec<Option<FileNotes>>,
    notes: CaptureNotes,
}

impl Reading {
    fn new(options: &ReadOptions<'_>) -> Self {
        Reading {
            max_packets: options.max_packets,
            sorts: options.sort_ns > 0,
            fragments: Fragments::default(),
            packets: 0,
            skipped: Default::default(),
            protocols: Default::default(),
            tunnels: Default::default(),
            latest_ns: None,
            backward_run: 0,
            files: Vec::new(),
            notes: CaptureNotes::default(),
        }
    }

    /// The sources sorted by the time of their first packets.
    fn in_order<'a>(
        &mut self,
        sources: Vec<Source<'a>>,
        watch: &'a Watch<'a>,
    ) -> Result<VecDeque<Waiting<'a>>, CaptureError> {
        self.files.resize(sources.len(), None);
        if let [_] = sources[..] {
            let alone = |source| Waiting { first_ns: 0, file: 0, begun: Begun::Closed(source) };
            return Ok(sources.into_iter().map(alone).collect());
        }
        let mut waiting = VecDeque::with_capacity(sources.len());
        let mut empty = Vec::new();
        for source in sources {
            let again = source.again();
            let name = source.name().to_owned();
            let read_before = watch.read_bytes();
            let mut file = match CaptureFile::open(source, watch) {
                // The newest file of a ring buffer is empty until something is written to it.
                Err(e) if e.kind == CaptureErrorKind::Empty => {
                    empty.push(FileNotes::empty(name));
                    continue;
                }
                opened => opened?,
            };
            let first_ns = file.first_time_ns()?.unwrap_or(0);
            let begun = match again {
                Some(source) => {
                    watch.set_read_bytes(read_before);
                    Begun::Closed(source)
                }
                None => Begun::Open(file),
            };
            waiting.push_back(Waiting { first_ns, file: 0, begun });
        }
        waiting.make_contiguous().sort_by_key(|w| w.first_ns);
        for (file, w) in (0..).zip(&mut waiting) {
            w.file = file;
        }
        for (slot, notes) in self.files[waiting.len()..].iter_mut().zip(empty) {
            *slot = Some(notes);
        }
        Ok(waiting)
    }

    fn is_at_limit(&mut self) -> bool {
        let at_limit = self.max_packets.is_some_and(|max| self.packets >= max);
        self.notes.stopped_at_limit |= at_limit;
        at_limit
    }

    fn count(&mut self, segment: &TcpSegment) {
        let notes = &mut self.notes;
        notes.tcp_packets += 1;
        notes.cut_packets += u64::from(segment.cut.is_some());
        notes.cut_options += u64::from(segment.cut == Some(Cut::Options));
        notes.first_fragments += u64::from(segment.fragment == Some(Fragment::First));
        notes.later_fragments += u64::from(segment.fragment == Some(Fragment::Later));
        if let Some(tunnel) = segment.tunnel {
            self.tunnels[tunnel as usize] += 1;
        }
    }

    /// Gives the next packet of the stream a time that does not decrease, unless it will be sorted.
    fn stamp(&mut self, packet: &mut Packet) {
        let notes = &mut self.notes;
        let Some(latest_ns) = self.latest_ns else {
            notes.start_unix_ns = packet.time_ns;
            self.latest_ns = Some(packet.time_ns);
            return;
        };
        packet.time_ns = packet.time_ns.min(notes.start_unix_ns.saturating_add(LONGEST_NS));
        if packet.time_ns >= latest_ns {
            self.backward_run = 0;
            self.latest_ns = Some(packet.time_ns);
            return;
        }
        notes.backward_steps += 1;
        notes.largest_backward_ns = notes.largest_backward_ns.max(latest_ns - packet.time_ns);
        notes.backward_runs += u64::from(self.backward_run == 0);
        self.backward_run += 1;
        notes.longest_backward_run = notes.longest_backward_run.max(self.backward_run);
        if self.sorts {
            notes.start_unix_ns = notes.start_unix_ns.min(packet.time_ns);
        } else {
            packet.time_ns = latest_ns;
        }
    }

    fn close(&mut self, cursor: Cursor<'_>) {
        if let Some(slot) = self.files.get_mut(cursor.head.file as usize) {
            *slot = Some(cursor.file.into_notes());
        }
    }

    fn finish(mut self) -> CaptureNotes {
        let counted = |(key, &count)| (count > 0).then_some((key, count));
        self.notes.skipped = SkipCause::ALL.into_iter().zip(&self.skipped).filter_map(counted).collect();
        let counted = |(key, &count)| (count > 0).then_some((key, count));
        self.notes.protocols = Protocol::ALL.into_iter().zip(&self.protocols).filter_map(counted).collect();
        let counted = |(key, &count)| (count > 0).then_some((key, count));
        self.notes.tunnels = Tunnel::ALL.into_iter().zip(&self.tunnels).filter_map(counted).collect();
        self.notes.packets = self.packets;
        self.notes.is_sorted = self.sorts;
        self.notes.duration_ns = self.latest_ns.map_or(0, |latest| latest - self.notes.start_unix_ns);
        // Sources that were not reached come last.
        self.notes.files = self.files.into_iter().flatten().collect();
        self.notes
    }
}
