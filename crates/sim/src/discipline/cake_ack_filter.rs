// SPDX-License-Identifier: MIT
//! CAKE's ACK filter (Linux 6.12 net/sched/sch_cake.c, `cake_ack_filter`): finds the queued ACK of
//! a flow that a newer packet makes redundant.
//!
//! It differs from RFC 3449, 5.2.1 (`ack-filter`): data triggers it as well; unless it is
//! aggressive, the oldest of at least two redundant ACKs is dropped, so that one always stays
//! behind the head; and ACKs with SACK blocks are dropped, too, when a newer packet reports all of
//! their blocks.
//!
//! An ACK is kept if the next one has other ECE or CWR flags. IP options, which the simulator does
//! not have, are not implemented.

use crate::packet::{Flags, Packet};

/// Position in `queue`, counted from its head, of the packet to drop; the last packet has just
/// arrived.
pub fn redundant<'a>(
    queue: impl Iterator<Item = &'a Packet>,
    length: usize,
    newest: &Packet,
    aggressive: bool,
) -> Option<usize> {
    let last = length - 1;
    let mut oldest = None;
    for (at, packet) in queue.take(last).enumerate() {
        if packet.flow == newest.flow {
            oldest = oldest.filter(|&(_, flags)| flags == ecn_flags(packet));
        }
        if !is_redundant(packet, newest) {
            continue;
        }
        if let Some((at, _)) = oldest {
            return Some(at);
        }
        oldest = Some((at, ecn_flags(packet)));
    }
    let (at, flags) = oldest?;
    (aggressive && at + 1 == last && flags == ecn_flags(newest)).then_some(at)
}

fn ecn_flags(packet: &Packet) -> (bool, bool) {
    (packet.has(Flags::ECE), packet.has(Flags::CWR))
}

/// Whether `old` is redundant. A window probe counts as an ACK: it looks the same.
fn is_redundant(old: &Packet, newest: &Packet) -> bool {
    let is_bare = old.len == 0 && !old.flags.intersects(Flags::SYN | Flags::FIN | Flags::PSH);
    let is_older = old.ack <= newest.ack && old.sent_ns <= newest.sent_ns && old.echo_ns <= newest.echo_ns;
    is_bare
        && old.flow == newest.flow
        && is_older
        && match reported(old, newest) {
            Sacked::Less => false,
            // A duplicate ACK is kept, and so is a window update.
            Sacked::Same => old.ack < newest.ack,
            Sacked::More => true,
        }
}

/// SACK blocks of the newer of two packets, compared with the older's.
enum Sacked {
    Less,
    Same,
    More,
}

/// Compares the SACK blocks (`cake_tcph_sack_compare`).
fn reported(old: &Packet, newest: &Packet) -> Sacked {
    let (before, after) = (blocks(old), blocks(newest));
    // A duplicate SACK (RFC 2883) is reported once and must arrive.
    let is_kept = |&(start, end): &(u64, u64)| {
        start >= old.ack && after.iter().any(|&(from, to)| from <= start && end <= to)
    };
    let bytes = |all: &[(u64, u64)]| all.iter().map(|(start, end)| end - start).sum::<u64>();
    if !before.iter().all(is_kept) {
        Sacked::Less
    } else if bytes(after) > bytes(before) {
        Sacked::More
    } else {
        Sacked::Same
    }
}

fn blocks(packet: &Packet) -> &[(u64, u64)] {
    packet.sack.as_deref().map_or(&[], Vec::as_slice)
}
