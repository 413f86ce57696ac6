// SPDX-License-Identifier: MIT
//! The sockets of a host over repeated samples. Only sockets that changed yield a row.

use crate::filter::Filter;
use crate::limit::{attribute, Limit, Look, Moved, Shares};
use crate::message::{messages, Address, Attributes, Damaged, Endpoint, Idle, Message, Seen, State};
use crate::TcpInfo;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

/// Kind of a datagram: part of the list, its end, or a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    More,
    Done,
    Refused(i32),
}

/// Sockets to keep, beyond the kernel's own filter.
#[derive(Default)]
pub struct Chosen {
    pub uid: Option<u32>,
    /// Inodes of sockets, as shown in /proc/PID/fd.
    pub inodes: Option<HashSet<u32>>,
    pub filter: Filter,
}

impl Chosen {
    fn has(&self, seen: &Seen<'_>) -> bool {
        self.uid.map_or(true, |uid| uid == seen.uid)
            && self.inodes.as_ref().map_or(true, |known| known.contains(&seen.inode))
            && self.filter.has(&seen.ends)
    }

    fn is_all(&self) -> bool {
        self.uid.is_none() && self.inodes.is_none() && self.filter == Filter::default()
    }
}

/// The data needed for a sample of an idle socket. Most of a hundred thousand sockets are idle, and
/// each should touch only one cache line.
struct Watched {
    round: u32,
    /// Index of its details.
    place: u32,
    moved: Moved,
    time_us: u64,
    /// Time since the last active sample, microseconds.
    idle_us: u64,
}

impl Watched {
    /// Records that nothing has happened until now; returns the time since the last sample.
    fn rest(&mut self, time_us: u64) -> u64 {
        let passed_us = time_us.saturating_sub(self.time_us);
        self.time_us = time_us;
        self.idle_us += passed_us;
        passed_us
    }
}

struct Details {
    ends: Endpoint,
    interface: u32,
    uid: u32,
    congestion: Name,
    receive_buffer_bytes: Option<u32>,
    send_buffer_bytes: Option<u32>,
    window_max_bytes: u32,
    last: Look,
    interval: Interval,
    since_start: Shares,
}

/// Activity since rows were last generated.
#[derive(Clone, Copy, Default)]
struct Interval {
    /// Number of the interval it belongs to; it counts as empty in any other.
    number: u32,
    shares: Shares,
    acked_bytes: u64,
    received_bytes: u64,
    retransmissions: u32,
    is_active: bool,
}

/// Sums over all sockets since the table was made.
#[derive(Clone, Copy, Default, Serialize)]
pub struct Totals {
    #[serde(serialize_with = "by_limit")]
    pub limited_us: Shares,
    pub acked_bytes: u64,
    pub received_bytes: u64,
    pub retransmissions: u64,
    /// Number of samples of a socket.
    pub looks: u64,
    /// Number of complete lists.
    pub rounds: u64,
    pub sockets: u64,
    /// Active sockets of the last interval, by their largest limit.
    #[serde(serialize_with = "by_limit")]
    pub active: Shares,
}

/// One active socket and its account of the interval.
#[derive(Serialize)]
pub struct Row<'a> {
    pub local: Address,
    pub peer: Address,
    pub state: State,
    pub interface: u32,
    pub uid: u32,
    /// Number that is unique among all sockets since boot.
    pub cookie: u64,
    pub direction: &'static str,
    pub limit: Limit,
    pub interval_us: u64,
    pub lost_us: u64,
    #[serde(serialize_with = "by_limit")]
    pub limited_us: Shares,
    #[serde(serialize_with = "by_limit")]
    pub limited_since_start_us: Shares,
    pub acked_bytes: u64,
    pub received_bytes: u64,
    pub retransmissions: u32,
    pub unread_bytes: u32,
    pub congestion_control: &'a str,
    pub receive_buffer_bytes: Option<u32>,
    pub send_buffer_bytes: Option<u32>,
    pub peer_window_max_bytes: u32,
    pub tcp_info: &'a TcpInfo,
}

fn by_limit<S: Serializer>(shares: &Shares, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for &limit in Limit::ALL.iter().filter(|&&l| shares.of(l) > 0) {
        map.serialize_entry(limit.name(), &shares.of(limit))?;
    }
    map.end()
}

/// The name of a congestion control algorithm, without allocation.
#[derive(Clone, Copy, Default)]
struct Name([u8; 16]);

impl Name {
    fn new(bytes: &[u8]) -> Self {
        let mut name = Name::default();
        for (place, &byte) in name.0.iter_mut().zip(bytes) {
            *place = if byte.is_ascii_graphic() { byte } else { b'?' };
        }
        name
    }

    fn text(&self) -> &str {
        let end = self.0.iter().position(|&b| b == 0).unwrap_or(self.0.len());
        std::str::from_utf8(&self.0[..end]).unwrap_or("?")
    }
}

/// All selected sockets that the kernel lists.
#[derive(Default)]
pub struct Table {
    chosen: Chosen,
    sockets: HashMap<u64, Watched>,
    details: Vec<Details>,
    /// Indices of closed sockets, for reuse.
    free: Vec<u32>,
    /// Number of the list being read: a socket missing from a complete list is closed.
    round: u32,
    /// Number of calls of `rows`.
    interval: u32,
    /// Cookies of the sockets that were active in this interval.
    active: Vec<u64>,
    /// Whether a socket was reported idle that is unknown here, or known in another state.
    contradicts: bool,
    totals: Totals,
}

impl Table {
    pub fn new(chosen: Chosen) -> Self {
        Table { chosen, ..Table::default() }
    }

    /// Processes one datagram of the kernel's list, read at `time_us` of a monotonic clock.
    pub fn take(&mut self, datagram: &[u8], time_us: u64) -> Result<Answer, Damaged> {
        for message in messages(datagram) {
            match message? {
                Message::Done => return Ok(Answer::Done),
                Message::Refused(errno) => return Ok(Answer::Refused(errno)),
                Message::Socket(seen) if self.chosen.has(&seen) => self.look(&seen, time_us),
                Message::Socket(_) => {}
                Message::Idle(idle) => self.idle(&idle, time_us),
            }
        }
        Ok(Answer::More)
    }

    /// Ends a complete list: sockets missing from it are closed.
    pub fn end_round(&mut self) {
        let (round, free) = (self.round, &mut self.free);
        self.sockets.retain(|_, socket| {
            let is_open = socket.round == round;
            if !is_open {
                free.push(socket.place);
            }
            is_open
        });
        self.round = round.wrapping_add(1);
        self.totals.rounds += 1;
    }

    /// Whether, since the last call, a socket was reported idle that has to be described in full.
    pub fn needs_all(&mut self) -> bool {
        std::mem::take(&mut self.contradicts)
    }

    /// Selects the inodes to keep from now on.
    pub fn choose_inodes(&mut self, inodes: HashSet<u32>) {
        self.chosen.inodes = Some(inodes);
    }

    pub fn totals(&self) -> Totals {
        Totals { sockets: self.sockets.len() as u64, ..self.totals }
    }

    /// Passes the sockets that were active since the last call to `each`, sorted by time lost, at
    /// most `most`.
    pub fn rows(&mut self, most: usize, mut each: impl FnMut(Row<'_>)) {
        let mut rows: Vec<Row<'_>> = self
            .active
            .iter()
            .filter_map(|&cookie| {
                let watched = self.sockets.get(&cookie)?;
                self.details.get(watched.place as usize)?.row(cookie)
            })
            .collect();
        let mut active = Shares::default();
        rows.iter().for_each(|row| active.add(row.limit, 1));
        let moved = |row: &Row<'_>| row.acked_bytes.saturating_add(row.received_bytes);
        let rank = |row: &Row<'_>| Reverse((row.lost_us, moved(row), row.cookie));
        if most < rows.len() {
            rows.select_nth_unstable_by_key(most, rank);
            rows.truncate(most);
        }
        rows.sort_unstable_by_key(rank);
        rows.into_iter().for_each(&mut each);
        self.totals.active = active;
        self.active.clear();
        self.interval = self.interval.wrapping_add(1);
    }

    fn idle(&mut self, idle: &Idle, time_us: u64) {
        let Some(watched) = self.sockets.get_mut(&idle.cookie) else {
            self.contradicts |= self.chosen.is_all(); // otherwise it may be one that was not selected
            return;
        };
        watched.round = self.round;
        self.totals.looks += 1;
        if watched.moved.is_idle_after(idle.segments) {
            self.totals.limited_us.add(Limit::SendingApplication, watched.rest(time_us));
        } else {
            self.contradicts = true;
        }
    }

    fn look(&mut self, seen: &Seen<'_>, time_us: u64) {
        let found = seen.attributes();
        let Some(info) = found.info else { return }; // not a full socket
        self.totals.looks += 1;
        let moved = Moved::of(&info);
        if let Some(watched) = self.sockets.get_mut(&seen.cookie) {
            watched.round = self.round;
            if moved.is_idle() && moved == watched.moved {
                self.totals.limited_us.add(Limit::SendingApplication, watched.rest(time_us));
                return;
            }
            watched.time_us = time_us;
            watched.moved = moved;
            let idle_us = std::mem::take(&mut watched.idle_us);
            let place = watched.place as usize;
            let Some(details) = self.details.get_mut(place) else { return };
            if details.interval.number != self.interval {
                details.interval = Interval { number: self.interval, ..Interval::default() };
            }
            details.since_start.add(Limit::SendingApplication, idle_us);
            details.last.time_us += idle_us;
            if !details.interval.is_active {
                details.interval.is_active = true;
                self.active.push(seen.cookie);
            }
            details.account(seen, &found, Look::new(seen, &found, info, time_us), &mut self.totals);
        } else {
            let details = Details::new(seen, &found, Look::new(seen, &found, info, time_us));
            let place = match self.free.pop() {
                Some(place) => {
                    self.details[place as usize] = details;
                    place
                }
                None => {
                    self.details.push(details);
                    self.details.len() as u32 - 1
                }
            };
            let watched = Watched { round: self.round, place, moved, time_us, idle_us: 0 };
            self.sockets.insert(seen.cookie, watched);
        }
    }
}

impl Details {
    fn new(seen: &Seen<'_>, found: &Attributes<'_>, now: Look) -> Self {
        Details {
            ends: seen.ends,
            interface: seen.interface,
            uid: seen.uid,
            congestion: Name::new(found.congestion),
            receive_buffer_bytes: found.receive_buffer_bytes,
            send_buffer_bytes: found.send_buffer_bytes,
            window_max_bytes: now.info.snd_wnd_bytes().unwrap_or(0),
            last: now,
            interval: Interval::default(),
            since_start: Shares::default(),
        }
    }

    fn account(&mut self, seen: &Seen<'_>, found: &Attributes<'_>, now: Look, totals: &mut Totals) {
        self.window_max_bytes = self.window_max_bytes.max(now.info.snd_wnd_bytes().unwrap_or(0));
        self.congestion = Name::new(found.congestion);
        self.receive_buffer_bytes = found.receive_buffer_bytes;
        self.send_buffer_bytes = found.send_buffer_bytes;
        (self.interface, self.uid) = (seen.interface, seen.uid);
        let before = &self.last;
        let shares = attribute(before, &now, self.window_max_bytes);
        let count = |look: &Look| look.info.total_retrans().unwrap_or(0);
        let retransmissions = count(&now).wrapping_sub(count(before));
        let (acked, received) = (now.acked_since(before), now.received_since(before));
        let interval = &mut self.interval;
        interval.acked_bytes = interval.acked_bytes.saturating_add(acked);
        interval.received_bytes = interval.received_bytes.saturating_add(received);
        interval.retransmissions = interval.retransmissions.saturating_add(retransmissions);
        interval.shares.merge(&shares);
        self.since_start.merge(&shares);
        totals.acked_bytes = totals.acked_bytes.saturating_add(acked);
        totals.received_bytes = totals.received_bytes.saturating_add(received);
        totals.retransmissions = totals.retransmissions.saturating_add(u64::from(retransmissions));
        totals.limited_us.merge(&shares);
        self.last = now;
    }

    /// The row for a socket; None before its second sample.
    fn row(&self, cookie: u64) -> Option<Row<'_>> {
        let i = &self.interval;
        let interval_us = i.shares.total_us();
        let limit = Limit::ALL.iter().copied().max_by_key(|&l| i.shares.of(l)).filter(|_| interval_us > 0)?;
        Some(Row {
            local: self.ends.local,
            peer: self.ends.peer,
            state: self.last.state,
            interface: self.interface,
            uid: self.uid,
            cookie,
            direction: if i.received_bytes > i.acked_bytes { "receiving" } else { "sending" },
            limit,
            interval_us,
            lost_us: i.shares.lost_us(),
            limited_us: i.shares,
            limited_since_start_us: self.since_start,
            acked_bytes: i.acked_bytes,
            received_bytes: i.received_bytes,
            retransmissions: i.retransmissions,
            unread_bytes: self.last.unread_bytes,
            congestion_control: self.congestion.text(),
            receive_buffer_bytes: self.receive_buffer_bytes,
            send_buffer_bytes: self.send_buffer_bytes,
            peer_window_max_bytes: self.window_max_bytes,
            tcp_info: &self.last.info,
        })
    }
}
