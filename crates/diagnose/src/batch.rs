// SPDX-License-Identifier: MIT
//! Packets that wait to be followed together.

use crate::key::Key;
use crate::report::Options;
use crate::table::Arrival;
use ackwise_capture::{AccEcn, Packet};
use std::ops::Deref;
use std::slice;

/// What counts of a packet: one cache line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Headers {
    /// Since the first packet of the capture.
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
    /// 0: none.
    mss: u16,
    /// Place of its SACK blocks in the batch.
    sacks_from: u32,
    window_scale: Option<u8>,
    pub ecn: u8,
    /// As in [`crate::key::Key::of`].
    pub from_upper: bool,
    sack_permitted: bool,
    has_timestamps: bool,
    has_accecn: bool,
    sacks: u8,
}

/// A packet, as connections are followed by it.
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
            sacks_from: 0,
            window_scale: options.window_scale,
            ecn: segment.ecn,
            from_upper,
            sack_permitted: options.sack_permitted,
            has_timestamps: options.timestamps.is_some(),
            has_accecn: options.accecn.is_some(),
            sacks: segment.sack_blocks().len() as u8,
        }
    }

    #[inline]
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// TSval and TSecr.
    #[inline]
    pub fn timestamps(&self) -> Option<(u32, u32)> {
        self.has_timestamps.then_some((self.value, self.echo))
    }

    /// Of a SYN.
    pub fn options(&self) -> Options {
        Options {
            mss_bytes: Some(self.mss).filter(|&mss| mss > 0),
            window_scale: self.window_scale,
            sack_permitted: self.sack_permitted,
            timestamps: self.has_timestamps,
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

/// Runs are put together by so many values of their hashes: few beside the runs that wait on a shelf, and
/// several for each of its connections.
const GROUPS: usize = 128;

/// Packets of any connections.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    runs: Vec<Run>,
    /// With the number of packets in front of each.
    packets: Vec<(u64, Headers)>,
    sacks: Vec<(u32, u32)>,
    /// Of those packets that have the option.
    accecn: Vec<AccEcn>,
    /// Runs, group by group.
    order: Vec<u32>,
}

/// Packets of one connection with none of another between them: they tend to come in bursts, so that
/// what is the same for all of them is kept, sorted and looked up a third as often.
#[derive(Debug)]
struct Run {
    key: Key,
    group: u8,
    /// Places of its first packet and of its first AccECN option.
    from: u32,
    accecn_from: u32,
}

impl Batch {
    #[inline(always)]
    pub fn push(&mut self, arrival: Arrival<'_>, hash: u64) {
        let Arrival { key, ordinal, headers, sacks, accecn } = arrival;
        if self.runs.last().map_or(true, |run| run.key != key) {
            // The lowest bits chose the shelf.
            let group = (hash >> u32::BITS) as usize % GROUPS;
            let [from, accecn_from] = [self.packets.len(), self.accecn.len()].map(|n| n as u32);
            self.runs.push(Run { key, group: group as u8, from, accecn_from });
        }
        let sacks_from = self.sacks.len() as u32;
        self.packets.push((ordinal, Headers { sacks_from, ..headers }));
        if !sacks.is_empty() {
            self.sacks.extend_from_slice(sacks);
        }
        if let Some(option) = accecn {
            self.accecn.push(*option);
        }
    }

    /// When the first packet came.
    pub fn first_ns(&self) -> Option<u64> {
        self.packets.first().map(|(_, headers)| headers.time_ns)
    }

    /// Connection by connection but for a few that share a group, those of each in the order in which they
    /// came; the batch is empty then.
    pub fn drain(&mut self, mut each: impl FnMut(&Key, Burst<'_>)) {
        self.sort();
        for &n in &self.order {
            let n = n as usize;
            let to = self.runs.get(n + 1).map_or(self.packets.len(), |next| next.from as usize);
            let Run { key, from, accecn_from, .. } = &self.runs[n];
            let packets = self.packets[*from as usize..to].iter();
            let accecn = self.accecn[*accecn_from as usize..].iter();
            each(key, Burst { packets, sacks: &self.sacks, accecn });
        }
        self.runs.clear();
        self.packets.clear();
        self.sacks.clear();
        self.accecn.clear();
    }

    /// By counting: groups need no order of their own, and comparing would take longer.
    fn sort(&mut self) {
        let mut places = [0u32; GROUPS];
        for run in &self.runs {
            places[usize::from(run.group)] += 1;
        }
        let mut before = 0;
        for place in &mut places {
            before += std::mem::replace(place, before);
        }
        self.order.clear();
        self.order.resize(self.runs.len(), 0);
        for (n, run) in (0..).zip(&self.runs) {
            let place = &mut places[usize::from(run.group)];
            self.order[*place as usize] = n;
            *place += 1;
        }
    }
}

/// The packets of a run, each with the number of packets in front of it.
#[derive(Debug)]
pub(crate) struct Burst<'b> {
    packets: slice::Iter<'b, (u64, Headers)>,
    /// Of the whole batch.
    sacks: &'b [(u32, u32)],
    /// Of its packets, and of those behind them.
    accecn: slice::Iter<'b, AccEcn>,
}

impl<'b> Iterator for Burst<'b> {
    type Item = (u64, Segment<'b>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (ordinal, headers) = self.packets.next()?;
        let sacks = match headers.sacks {
            0 => &[],
            count => &self.sacks[headers.sacks_from as usize..][..count.into()],
        };
        let accecn = if headers.has_accecn { self.accecn.next() } else { None };
        Some((*ordinal, Segment { headers, sacks, accecn }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::below;
    use std::collections::BTreeMap;
    use std::net::SocketAddr;

    #[test]
    fn each_connection_gets_its_packets_in_order_and_a_group_comes_together() {
        let mut below = below(1);
        let server = SocketAddr::from(([192, 0, 2, 1], 443));
        let key = |n: u64| Key::between(&SocketAddr::from(([10, 0, 0, 1], n as u16 + 1)), &server).0;
        let mut batch = Batch::default();
        for _ in 0..50 {
            let (mut ordinal, mut put) = (0, BTreeMap::<_, Vec<_>>::new());
            for _ in 0..below(60) {
                let connection = below(7);
                // Connections 0 and 6 are in one group.
                let hash = (connection % 6) << u32::BITS;
                for _ in 0..1 + below(3) {
                    let sacks: Vec<_> = (0..below(3) as u32).map(|n| (n, ordinal as u32)).collect();
                    let accecn = (below(3) == 0).then(|| AccEcn::read(&[0, 0, ordinal as u8], false));
                    let headers = Headers {
                        sacks: sacks.len() as u8,
                        has_accecn: accecn.is_some(),
                        ..Headers::default()
                    };
                    let key = key(connection);
                    let accecn = accecn.as_ref();
                    batch.push(Arrival { key, ordinal, headers, sacks: &sacks, accecn }, hash);
                    put.entry(connection).or_default().push((ordinal, sacks, accecn.copied()));
                    ordinal += 1;
                }
            }
            let (mut found, mut groups) = (BTreeMap::<_, Vec<_>>::new(), Vec::new());
            batch.drain(|name, burst| {
                let connection = (0..7).find(|&n| key(n) == *name).expect("one of them");
                groups.push(connection % 6);
                let packets = burst.map(|(ordinal, s)| (ordinal, s.sacks.to_vec(), s.accecn.copied()));
                found.entry(connection).or_default().extend(packets);
            });
            assert_eq!(found, put);
            assert!(groups.windows(2).all(|w| w[0] <= w[1]), "{groups:?}");
            assert_eq!(batch.first_ns(), None);
        }
    }
}
