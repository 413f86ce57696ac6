// SPDX-License-Identifier: MIT
//! Every packet that the ends of one flow sent, with its loss on the path.

use super::{Host, Run, HOSTS};
use ackwise_capture::sequence::Offsets;
use ackwise_capture::{tcp_flag, CaptureError, ReadOptions};
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// The packets of a flow. Times are relative to its first packet with data.
#[derive(Debug)]
pub struct FollowedFlow {
    /// Time of that packet since the start of the run, nanoseconds.
    pub first_data_ns: i64,
    /// Last relevant time, nanoseconds: end of the run, or a FIN.
    pub end_ns: i64,
    /// Packets in order of time.
    pub packets: Vec<FollowedPacket>,
}

/// A packet at its sender. Sequence numbers are relative to the first byte of data of either end.
#[derive(Clone, Debug)]
pub struct FollowedPacket {
    /// Time at which it left, nanoseconds.
    pub time_ns: i64,
    /// Whether the end that sends the data sent it.
    pub by_sender: bool,
    /// First sequence number.
    pub seq: i64,
    /// Payload bytes.
    pub payload_bytes: u32,
    /// Acknowledgment number.
    pub ack: i64,
    /// SACK blocks as (start, end), end not included.
    pub sacks: Vec<(i64, i64)>,
    /// Whether it starts below data sent before.
    pub again: bool,
    /// Whether it did not arrive although a later one did.
    pub lost: bool,
}

/// A lost packet in the form of the simulator's key `lose`.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// Offset of its first byte of data; None: it carries none.
    pub at_bytes: Option<i64>,
    /// Ordinal among the packets with that byte, or without data, counted from 1.
    pub nth: u64,
}

#[derive(Clone, Debug)]
struct Seen {
    time_ns: u64,
    ident: u16,
    flags: u16,
    seq: u32,
    ack: u32,
    payload_bytes: u32,
    sacks: Box<[(u32, u32)]>,
}

/// Distinguishes a packet from others of the same end.
type Identity = (u16, u32);

impl Seen {
    fn identity(&self) -> Identity {
        (self.ident, self.seq)
    }

    fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}

/// Packets of one flow, indexed by the host that captured them and by the host that sent them.
type Captured = [[Vec<Seen>; 2]; 2];

fn read(run: &Run, flow: usize, options: &ReadOptions<'_>) -> Result<Captured, CaptureError> {
    let mut captured = Captured::default();
    for at in HOSTS {
        run.read(at, options, |p| {
            if p.flow == flow && !p.segment.has(tcp_flag::RST) {
                captured[at as usize][p.by as usize].push(Seen {
                    time_ns: p.time_ns,
                    ident: p.segment.ip_ident,
                    flags: p.segment.flags,
                    seq: p.segment.seq,
                    ack: p.segment.ack,
                    payload_bytes: p.segment.payload_len,
                    sacks: p.segment.sack_blocks().into(),
                });
            }
        })?;
    }
    Ok(captured)
}

/// Follows one flow, whose data flows down to the client or up to the server; None if it sent no
/// data. `trace_first_ns`: time of its first data in the run's result; `duration_ns`: duration of
/// the run.
///
/// # Errors
/// The errors of [`ackwise_capture::segments`].
pub fn follow(
    run: &Run,
    flow: usize,
    down: bool,
    trace_first_ns: i64,
    duration_ns: u64,
    options: &ReadOptions<'_>,
) -> Result<Option<FollowedFlow>, CaptureError> {
    let captured = read(run, flow, options)?;
    let left = HOSTS.map(|host| &captured[host as usize][host as usize]);
    let sender = Host::sender(down);
    let has_data = |p: &&Seen| p.payload_bytes > 0;
    let Some(first) = left[sender as usize].iter().find(has_data) else { return Ok(None) };
    let both = || left.iter().copied().flatten();
    let data_ns = both().filter(has_data).map(|p| p.time_ns as i64).min().unwrap_or(0);
    // The trace's times are relative to the start of the run, the captures' are times of day.
    let start_ns = (first.time_ns as i64).wrapping_sub(trace_first_ns);
    let fins = both().filter(|p| p.has(tcp_flag::FIN)).map(|p| p.time_ns as i64);
    let end_ns = fins.fold(start_ns.saturating_add_unsigned(duration_ns), i64::min);
    let mut packets = Vec::new();
    for host in HOSTS {
        let [own, peers] = [host, host.peer()].map(|end| numbers(left[end as usize]));
        let lost = lost(left[host as usize], &captured[host.peer() as usize][host as usize]);
        let is_counted =
            |p: &&Seen| !p.has(tcp_flag::SYN) && (data_ns..=end_ns).contains(&(p.time_ns as i64));
        collect(left[host as usize].iter().filter(is_counted), [own, peers], |p, seq, ack, sacks, again| {
            packets.push(FollowedPacket {
                time_ns: p.time_ns as i64 - data_ns,
                by_sender: host == sender,
                seq,
                payload_bytes: p.payload_bytes,
                ack,
                sacks,
                again,
                lost: lost.contains(&p.identity()),
            });
        });
    }
    packets.sort_by_key(|p| p.time_ns);
    Ok(Some(FollowedFlow {
        first_data_ns: data_ns.wrapping_sub(start_ns),
        end_ns: end_ns.wrapping_sub(data_ns),
        packets,
    }))
}

/// Sequence numbers of a host relative to its first byte of data.
fn numbers(left: &[Seen]) -> Offsets {
    let syn = left.iter().find(|p| p.has(tcp_flag::SYN));
    let mut numbers = Offsets::default();
    numbers.start(syn.map_or(1, |p| p.seq.wrapping_add(1)));
    numbers
}

/// Calls `take` with each packet except the last of the handshake, with its numbers, its SACK
/// blocks, and whether it starts below data sent before.
fn collect<'a>(
    left: impl Iterator<Item = &'a Seen>,
    [mut own, mut peers]: [Offsets; 2],
    mut take: impl FnMut(&Seen, i64, i64, Vec<(i64, i64)>, bool),
) {
    let mut high = 0;
    for p in left {
        let (seq, ack) = (own.see(p.seq), peers.see(p.ack));
        if p.payload_bytes == 0 && ack == 0 {
            continue;
        }
        let sacks = p.sacks.iter().map(|&(left, right)| (peers.see(left), peers.see(right))).collect();
        take(p, seq, ack, sacks, p.payload_bytes > 0 && seq < high);
        high = high.max(seq + i64::from(p.payload_bytes));
    }
}

/// Identities of packets that did not arrive although a later one did.
fn lost(sent: &[Seen], arrived: &[Seen]) -> HashSet<Identity> {
    let mss = sent.iter().map(|p| p.payload_bytes).max().unwrap_or(0);
    let mut there = HashSet::new();
    for p in arrived {
        // Receive offload merges consecutive packets under the first one's number.
        let pieces = if mss > 0 { p.payload_bytes.div_ceil(mss).max(1) } else { 1 };
        for piece in 0..pieces {
            let seq = p.seq.wrapping_add(piece.wrapping_mul(mss));
            there.insert((p.ident.wrapping_add(piece as u16), seq));
        }
    }
    let last = sent.iter().rposition(|p| there.contains(&p.identity()));
    let counted = &sent[..last.map_or(0, |last| last + 1)];
    counted.iter().map(Seen::identity).filter(|identity| !there.contains(identity)).collect()
}

/// Packets of the first flow that each host sent and the other did not receive.
///
/// # Errors
/// The errors of [`ackwise_capture::segments`].
pub fn losses(run: &Run, options: &ReadOptions<'_>) -> Result<[Vec<Lost>; 2], CaptureError> {
    let captured = read(run, 0, options)?;
    Ok(HOSTS.map(|host| {
        let arrived = &captured[host.peer() as usize][host as usize];
        losses_of(&captured[host as usize][host as usize], arrived)
    }))
}

fn losses_of(sent: &[Seen], arrived: &[Seen]) -> Vec<Lost> {
    let gone = lost(sent, arrived);
    let mut own = numbers(sent);
    let begins: Vec<i64> =
        sent.iter().map(|p| if p.has(tcp_flag::SYN) { 0 } else { own.see(p.seq) }).collect();
    let is_gone = |p: &Seen| gone.contains(&p.identity());
    let lost_data = sent.iter().zip(&begins).filter(|(p, _)| p.payload_bytes > 0 && is_gone(p));
    let mut bytes_lost: Vec<i64> = lost_data.map(|(_, &at)| at).collect();
    bytes_lost.sort_unstable();
    bytes_lost.dedup();
    // Number of packets that carried each of those bytes, and of those without data.
    let mut carried: HashMap<Option<i64>, u64> = HashMap::new();
    let mut found = Vec::new();
    for (p, &at) in sent.iter().zip(&begins) {
        let end = at + i64::from(p.payload_bytes);
        let inside = match p.payload_bytes {
            0 => vec![None],
            _ => {
                let [first, last] = [at, end].map(|edge| bytes_lost.partition_point(|&byte| byte < edge));
                bytes_lost[first..last].iter().copied().map(Some).collect()
            }
        };
        for &byte in &inside {
            *carried.entry(byte).or_default() += 1;
        }
        if is_gone(p) {
            let at_bytes = inside.first().copied().flatten();
            found.push(Lost { at_bytes, nth: carried.get(&at_bytes).copied().unwrap_or(0) });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1448;

    fn seen(n: u16, payload_bytes: u32) -> Seen {
        let seq = 1 + MSS * u32::from(n);
        Seen { time_ns: 0, ident: n, flags: tcp_flag::ACK, seq, ack: 1, payload_bytes, sacks: [].into() }
    }

    #[test]
    fn merged_arrivals_are_not_losses() {
        let sent: Vec<_> = (0..6).map(|n| seen(n, MSS)).collect();
        // Captured behind receive offload: one packet in place of several, with the first one's
        // number.
        let arrived = [seen(0, MSS), seen(1, 3 * MSS), seen(5, MSS)];
        assert_eq!(lost(&sent, &arrived), HashSet::from([(4, 1 + MSS * 4)]));
    }

    #[test]
    fn a_loss_is_named_by_its_byte_and_the_packets_that_carried_it() {
        let again = |n: u16, ident: u16| Seen { ident, ..seen(n, MSS) };
        // 1 is lost and retransmitted twice, the first time in vain; then an ACK without data.
        let sent = [
            seen(0, MSS),
            seen(1, MSS),
            seen(2, MSS),
            again(1, 3),
            again(1, 4),
            again(3, 5),
            seen(4, 0),
            seen(5, 0),
        ];
        let arrived = [sent[0].clone(), sent[2].clone(), sent[4].clone(), sent[5].clone(), sent[7].clone()];
        let byte = Some(i64::from(MSS));
        let lost = |at_bytes, nth| Lost { at_bytes, nth };
        assert_eq!(losses_of(&sent, &arrived), [lost(byte, 1), lost(byte, 2), lost(None, 1)]);
    }
}
