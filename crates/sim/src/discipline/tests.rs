// SPDX-License-Identifier: MIT
//! Tests of the disciplines with a queue for each flow: arithmetic, and properties that must always
//! hold.
//!
//! The link carries 1000 bytes per millisecond; a packet's ACK number identifies it.

use super::cake::Cake;
use super::{cake_ack_filter, Qdisc};
use crate::channel::tests::{packet, pipe, run};
use crate::channel::Channel;
use crate::packet::{Ecn, Flags, Packet};
use crate::rng::Rng;
use crate::scenario::{AckFilter, ChannelSpec, Discipline};
use std::collections::HashMap;

const MS: u64 = 1_000_000;
const US: u64 = 1_000;
const FAIR: [Discipline; 3] = [Discipline::FqCodel, Discipline::Fq, Discipline::Cake];

/// Linux's defaults at 8 Mbit/s, without an AQM unless a test is about it: CoDel's interval is an
/// hour.
fn spec(discipline: Discipline) -> ChannelSpec {
    let mut spec = pipe(discipline);
    spec.queue_packets = 0;
    spec
}

fn patient(discipline: Discipline) -> ChannelSpec {
    let mut spec = spec(discipline);
    match discipline {
        Discipline::FqCodel => spec.interval_ns = Some(3_600_000 * MS),
        Discipline::Fq => spec.flow_limit_packets = Some(10_000),
        _ => spec.interval_ns = Some(3_600_000 * MS),
    }
    spec
}

fn channel(spec: &ChannelSpec) -> Channel {
    Channel::new(spec, 1500, 1, 1)
}

/// Packets of `flows` (length of each) that all arrive at once, `count` of each, with `name % 100`
/// as the flow.
fn backlog(flows: &[u32], count: u64) -> Vec<(u64, Box<Packet>)> {
    let mut offers = Vec::new();
    for i in 0..count {
        for (flow, bytes) in flows.iter().enumerate() {
            offers.push((0, packet(flow as u32, *bytes, 1, 100 * i + flow as u64)));
        }
    }
    offers
}

#[test]
fn flows_with_a_backlog_have_equal_bytes_whatever_their_packets() {
    // Deficit round robin: among flows that always have something to send, no two differ by more
    // than a turn and a largest packet. With fq, the first turn is ten frames, and three packets of
    // each flow bypassed the flows' queues.
    let lengths = [1500, 300, 700];
    for discipline in FAIR {
        let mut link = channel(&patient(discipline));
        let out = run(&mut link, &backlog(&lengths, 300));
        let bound = if discipline == Discipline::Fq { 10 * 1514 + 3 * 1500 } else { 1514 } + 1500;
        let mut sent = [0u32; 3];
        for (_, name) in out {
            let flow = (name % 100) as usize;
            sent[flow] += lengths[flow];
            if sent[1] == 300 * 300 {
                break; // the smallest has nothing left
            }
            let spread = sent.iter().max().expect("three") - sent.iter().min().expect("three");
            assert!(spread <= bound, "{spread} of {bound}, {sent:?}, {discipline:?}");
        }
        assert!(sent[1] > 80_000, "{sent:?}");
    }
}

#[test]
fn a_sparse_flow_waits_for_the_packet_in_transmission_only() {
    // Five flows keep the link busy. A packet that arrives when its flow has been quiet for a round
    // waits for at most one of theirs (1.5 ms), and takes 0.1 ms itself; the delay is 1 us.
    for discipline in FAIR {
        let mut offers = backlog(&[1500; 5], 400);
        let mut rng = Rng::new(5, 5);
        let mut sparse = HashMap::new();
        let mut at = 100 * MS;
        for i in 0..100 {
            at += 20 * MS + rng.up_to(3 * MS);
            sparse.insert(100 * i + 99, at);
            offers.push((at, packet(99, 100, 1, 100 * i + 99)));
        }
        let mut link = channel(&patient(discipline));
        let out = run(&mut link, &offers);
        let delays = out.iter().filter_map(|(time, name)| Some(time - sparse.get(name)?));
        let worst = delays.max().expect("a hundred");
        assert!(worst <= 1_601 * US, "{worst} ns, {discipline:?}");
        assert!(worst > 1_000 * US, "the link was busy: {worst} ns, {discipline:?}");
    }
}

#[test]
fn a_flow_below_its_share_waits_for_one_quantum_of_each_other_at_most() {
    // Every 4 ms: a round of five takes 7.5 ms, so the flow returns before it is sparse again. It
    // sends 100 bytes in 4 ms, far less than its share, so it never has a backlog of two quanta.
    for (discipline, quantum) in
        [(Discipline::FqCodel, 1514), (Discipline::Fq, 3028), (Discipline::Cake, 300)]
    {
        let mut offers = backlog(&[1500; 5], 300);
        for i in 1..400 {
            offers.push((i * 4 * MS, packet(99, 100, 1, 100 * i + 99)));
        }
        offers.sort_by_key(|o| o.0);
        let mut link = channel(&patient(discipline));
        let out = run(&mut link, &offers);
        let delays =
            out.iter().filter(|(_, name)| name % 100 == 99).map(|(time, name)| time - name / 100 * 4 * MS);
        let worst = delays.max().expect("some");
        // A turn is a quantum plus the excess of its last packet.
        let turns = 5 * (quantum + 1500) * US;
        // fq: a first turn of ten packets.
        let first = if discipline == Discipline::Fq { 5 * 10 * 1514 * US } else { 0 };
        assert!(worst <= turns + first + 1_601 * US, "{worst} ns, {discipline:?}");
    }
}

#[test]
fn drops_of_one_flow_leave_the_others_alone() {
    // A flood at twice the link's rate, and a flow that sends 10%.
    for discipline in [Discipline::FqCodel, Discipline::Cake] {
        let mut offers = Vec::new();
        for i in 0..4000u64 {
            offers.push((i * MS / 2, packet(0, 1000, 1, 100 * i)));
            if i % 20 == 0 {
                offers.push((i * MS / 2, packet(1, 1000, 1, 100 * i + 1)));
            }
        }
        let mut link = channel(&spec(discipline));
        let out = run(&mut link, &offers);
        let kept = out.iter().filter(|(_, name)| name % 100 == 1).count();
        assert_eq!(kept, 200, "{discipline:?}");
        assert!(link.stats.dropped_queue > 50, "{} {discipline:?}", link.stats.dropped_queue);
    }
}

#[test]
fn fq_codel_at_its_limit_takes_half_of_the_fattest_flow_from_its_head() {
    // One packet starts at once. The queue then holds 40 of flow 0 (1000 bytes) and 60 of flow 1
    // (100 bytes); the 101st makes flow 0 lose 20, and leaves 81.
    let mut spec = patient(Discipline::FqCodel);
    spec.queue_packets = 100;
    let mut link = channel(&spec);
    let mut offers: Vec<_> = (0..41).map(|i| (0, packet(0, 1000, 1, 100 * i))).collect();
    offers.extend((0..61).map(|i| (0, packet(1, 100, 1, 100 * i + 1))));
    let out = run(&mut link, &offers);
    assert_eq!(link.stats.dropped_queue, 20);
    let first: Vec<_> = out.iter().map(|o| o.1).filter(|name| name % 100 == 0).take(2).collect();
    assert_eq!(first, [0, 2100], "from the head");
    // A batch has at most 64 packets, half of the bytes or not.
    spec.queue_packets = 1000;
    let mut link = channel(&spec);
    run(&mut link, &(0..1002).map(|i| (0, packet(0, 1000, 1, i))).collect::<Vec<_>>());
    assert_eq!(link.stats.dropped_queue, 64);
}

#[test]
fn cake_at_its_limit_takes_the_head_of_the_longest_queue() {
    let mut spec = patient(Discipline::Cake);
    spec.queue_bytes = 50_000;
    let mut link = channel(&spec);
    let mut offers: Vec<_> = (0..41).map(|i| (0, packet(0, 1000, 1, 100 * i))).collect();
    offers.extend((0..11).map(|i| (0, packet(1, 1000, 1, 100 * i + 1))));
    let out = run(&mut link, &offers);
    assert_eq!(link.stats.dropped_queue, 1);
    assert!(!out.iter().any(|o| o.1 == 100), "the head of flow 0 is gone");
    assert_eq!(out.iter().filter(|o| o.1 % 100 == 1).count(), 11);
}

#[test]
fn fq_lets_eight_packets_by_and_then_takes_turns() {
    // The first starts at once; eight wait in one FIFO; the others in their flows.
    let offers = backlog(&[1000, 1000], 40);
    let out: Vec<u64> = run(&mut channel(&spec(Discipline::Fq)), &offers).iter().map(|o| o.1 % 100).collect();
    assert_eq!(out[..9], [0, 1, 0, 1, 0, 1, 0, 1, 0]);
    // Flow 1 has the next packet: 16 of its first turn (15140 bytes), then 16 of flow 0. The credit
    // is then 15140 - 16000: a quantum of 3028 is more than two packets, so three follow.
    let turns: Vec<_> = out[9..].chunk_by(|a, b| a == b).map(|turn| (turn[0], turn.len())).collect();
    assert_eq!(turns[..6], [(1, 16), (0, 16), (1, 3), (0, 3), (1, 3), (0, 3)]);
}

#[test]
fn fq_limits_a_flow_and_all() {
    let count = |spec: &ChannelSpec, flows: &[u32]| {
        let mut link = channel(spec);
        run(&mut link, &backlog(flows, 300)).len()
    };
    let mut spec = spec(Discipline::Fq);
    // One in transmission, eight that bypass, and a hundred of each flow.
    assert_eq!(count(&spec, &[100]), 109);
    assert_eq!(count(&spec, &[100, 100, 100]), 309);
    spec.flow_limit_packets = Some(50);
    assert_eq!(count(&spec, &[100, 100, 100]), 159);
    spec.queue_packets = 120;
    assert_eq!(count(&spec, &[100, 100, 100]), 129);
}

#[test]
fn cake_shapes_to_its_rate_and_a_late_packet_delays_no_other() {
    // Half of the link's rate: 1000 bytes take 1 ms of the link and 2 ms of the shaper.
    let mut spec = patient(Discipline::Cake);
    spec.shaper_rate_bps = Some(4_000_000);
    let offers: Vec<_> = (0..4).map(|i| (0, packet(0, 1000, 1, i))).collect();
    let out: Vec<u64> = run(&mut channel(&spec), &offers).iter().map(|o| o.0 / US).collect();
    assert_eq!(out, [1_001, 3_001, 5_001, 7_001]);
    // Without a rate of its own, the shaper has the link's rate.
    spec.shaper_rate_bps = None;
    let out: Vec<u64> = run(&mut channel(&spec), &offers).iter().map(|o| o.0 / US).collect();
    assert_eq!(out, [1_001, 2_001, 3_001, 4_001]);
    // The medium takes 1.6 ms more for each packet, so the shaper never limits: 2.6 ms each.
    spec.shaper_rate_bps = Some(4_000_000);
    spec.per_packet_ns = 1_600 * US;
    let out: Vec<u64> = run(&mut channel(&spec), &offers).iter().map(|o| o.0 / US).collect();
    assert_eq!(out, [2_601, 5_201, 7_801, 10_401]);
}

#[test]
fn cake_drops_by_its_target_but_never_the_last_packet_of_a_flow() {
    // Eight flows with one packet each, repeatedly, at 1.2 times the link's rate: the wait grows
    // far beyond the target, but no queue holds more than one packet most of the time.
    let mut cake = Cake::new(&spec(Discipline::Cake), 1500, Rng::new(1, 1));
    let mut stats = Default::default();
    for round in 0..200u64 {
        let now = round * 100 * MS;
        for flow in 0..8 {
            cake.enqueue(now, packet(flow, 1000, 1, round), false, &mut stats);
        }
        for _ in 0..8 {
            assert!(cake.dequeue(now + 90 * MS, &mut stats).is_some());
        }
    }
    assert_eq!(stats.dropped_queue, 0);
    // Two packets each: now COBALT may drop one of them.
    for round in 200..400u64 {
        let now = round * 100 * MS;
        for flow in 0..16 {
            cake.enqueue(now, packet(flow % 8, 1000, 1, round), false, &mut stats);
        }
        while cake.dequeue(now + 90 * MS, &mut stats).is_some() {}
    }
    assert!(stats.dropped_queue > 100, "{}", stats.dropped_queue);
}

#[test]
fn cake_divides_the_quantum_among_bulk_flows_so_turns_are_short() {
    // One of eight bulk flows may send 1/8 of the quantum, 300 bytes at 8 Mbit/s. That is less than
    // a packet, so a turn is one packet, and small packets are not sent in groups.
    let offers = backlog(&[100; 8], 100);
    let out: Vec<u64> =
        run(&mut channel(&patient(Discipline::Cake)), &offers).iter().map(|o| o.1 % 100).collect();
    let turns: Vec<_> = out[100..400].chunk_by(|a, b| a == b).map(<[u64]>::len).collect();
    assert!(turns.iter().all(|&n| n == 1), "{turns:?}");
    // With only one other flow, a turn is half of the quantum: 150 bytes, at most two packets.
    let offers = backlog(&[100; 2], 100);
    let out: Vec<u64> =
        run(&mut channel(&patient(Discipline::Cake)), &offers).iter().map(|o| o.1 % 100).collect();
    let turns: Vec<_> = out[20..150].chunk_by(|a, b| a == b).map(<[u64]>::len).collect();
    let mean = turns.iter().sum::<usize>() as f64 / turns.len() as f64;
    assert!((mean - 1.5).abs() < 0.1, "{mean}");
}

#[test]
fn a_standing_queue_of_one_flow_loses_packets_on_codel_s_schedule() {
    // Twice the link's rate for 2 s: above 5 ms from the first packet that waited that long, then
    // drops at interval / sqrt(count) with interval 100 ms; the times of k drops sum to 100 ms * 2
    // (sqrt(k) - 1), within 100 ms.
    let offers: Vec<_> = (0..4000).map(|i| (i * MS / 2, packet(0, 1000, 1, i))).collect();
    let mut link = channel(&spec(Discipline::FqCodel));
    let out = run(&mut link, &offers);
    let names: Vec<u64> = out.iter().map(|o| o.1).collect();
    let drops: Vec<u64> = out.windows(2).filter(|w| w[1].1 > w[0].1 + 1).map(|w| w[1].0).take(20).collect();
    assert!(names.windows(2).all(|w| w[0] < w[1]));
    // The packet after a drop arrives a transmission and the delay later.
    let mut due = drops[0];
    for (n, at) in drops.iter().enumerate() {
        assert!((due..=due + MS).contains(at), "drop {n} at {at}, due {due}");
        due += (100e6 / ((n + 1) as f64).sqrt()) as u64;
    }
    // The 10th packet waits 5 ms (it arrived 5 ms before its turn); the first drop comes an
    // interval later.
    assert!((105 * MS..=115 * MS).contains(&drops[0]), "{}", drops[0]);
}

/// Random packets of random flows, at about the link's rate and above it.
fn offers(rng: &mut Rng) -> Vec<(u64, Box<Packet>)> {
    let flows = 1 + rng.up_to(60) as u32;
    let gap = 100 * US + rng.up_to(2 * MS);
    let mut now = 0;
    (0..2000)
        .map(|i| {
            now += if rng.chance_ppm(200_000) { 0 } else { rng.up_to(gap) };
            let flow = rng.up_to(u64::from(flows)) as u32;
            let ack = rng.chance_ppm(300_000);
            let bytes = if ack { 66 } else { 40 + rng.up_to(1460) as u32 };
            let mut p = packet(flow, bytes, u32::from(!ack), i);
            if rng.chance_ppm(100_000) {
                p.sack = Some(Box::new(vec![(i + 10, i + 10 + rng.up_to(5))]));
            }
            (now, p)
        })
        .collect()
}

fn random_spec(rng: &mut Rng, discipline: Discipline) -> ChannelSpec {
    let mut spec = spec(discipline);
    spec.rate_bps = 1_000_000 + rng.up_to(20_000_000);
    if rng.chance_ppm(200_000) {
        spec.grant_interval_ns = MS;
    }
    match discipline {
        Discipline::FqCodel => {
            spec.queue_packets = [0, 1, 7, 50][rng.up_to(3) as usize];
            spec.queue_bytes = [0, 2_000, 40_000][rng.up_to(2) as usize];
            spec.quantum_bytes = [None, Some(256), Some(5_000)][rng.up_to(2) as usize];
        }
        Discipline::Fq => {
            spec.queue_packets = [0, 1, 7, 50][rng.up_to(3) as usize];
            spec.flow_limit_packets = [None, Some(1), Some(20)][rng.up_to(2) as usize];
            spec.initial_quantum_bytes = [None, Some(1)][rng.up_to(1) as usize];
        }
        _ => {
            spec.queue_bytes = [0, 2_000, 40_000][rng.up_to(2) as usize];
            spec.ack_filter = [AckFilter::Off, AckFilter::On, AckFilter::Aggressive][rng.up_to(2) as usize];
            spec.shaper_rate_bps = [None, Some(1 + spec.rate_bps / 2)][rng.up_to(1) as usize];
        }
    }
    spec
}

#[test]
fn nothing_is_lost_unsaid_reordered_within_a_flow_or_kept_beyond_a_limit() {
    let (mut dropped, mut filtered) = (0, 0);
    for seed in 0..120 {
        let mut rng = Rng::new(seed, 7);
        let discipline = FAIR[seed as usize % 3];
        let spec = random_spec(&mut rng, discipline);
        let offers = offers(&mut rng);
        let flow_of: HashMap<u64, u32> = offers.iter().map(|(_, p)| (p.ack, p.flow)).collect();
        let mut link = Channel::new(&spec, 1500, seed, 1);
        let out = run(&mut link, &offers);
        let stats = &link.stats;
        let gone = stats.dropped_queue + stats.acks_filtered;
        assert_eq!(out.len() as u64 + gone, 2000, "in = out + dropped, {spec:?}");
        assert!(!link.has_waiting());
        let mut last: HashMap<u32, u64> = HashMap::new();
        for (_, name) in &out {
            let before = last.insert(flow_of[name], *name);
            assert!(before.is_none_or(|b| b < *name), "{spec:?}");
        }
        // fq's eight packets that bypass do not count towards its limit.
        let beside = if discipline == Discipline::Fq { 8 } else { 0 };
        if spec.queue_packets > 0 {
            assert!(stats.max_queue_packets <= u64::from(spec.queue_packets) + beside, "{spec:?}");
        }
        dropped += stats.dropped_queue;
        filtered += stats.acks_filtered;
        // Equal seeds give equal packets.
        assert_eq!(run(&mut Channel::new(&spec, 1500, seed, 1), &offers), out);
    }
    assert!(dropped > 1_000 && filtered > 1_000, "{dropped} {filtered}");
}

#[test]
fn bytes_that_wait_in_cake_never_exceed_its_limit() {
    let mut spec = spec(Discipline::Cake);
    spec.queue_bytes = 10_000;
    let mut cake = Cake::new(&spec, 1500, Rng::new(1, 1));
    let mut rng = Rng::new(1, 7);
    let mut stats = Default::default();
    for (now, packet) in offers(&mut rng) {
        cake.enqueue(now, packet, false, &mut stats);
        assert!(cake.queues().bytes() <= 10_000);
        if rng.chance_ppm(700_000) {
            cake.dequeue(now, &mut stats);
        }
    }
    assert!(stats.dropped_queue > 100);
}

#[test]
fn flows_of_a_set_of_cake_s_hash_share_a_queue_only_when_there_are_more_than_eight() {
    let mut cake = Cake::new(&spec(Discipline::Cake), 1500, Rng::new(1, 1));
    let mut stats = Default::default();
    // A thousandth of the flows has its home in a given set of eight: there are 128 sets.
    let home = cake.home_of(0) / 8;
    let same: Vec<u32> = (0..4000).filter(|&flow| cake.home_of(flow) / 8 == home).take(9).collect();
    for (n, &flow) in same.iter().enumerate() {
        cake.enqueue(0, packet(flow, 100, 1, n as u64), false, &mut stats);
        let used = (0..1024).filter(|&q| cake.queues().packets_of(q) > 0).count();
        assert_eq!(used, (n + 1).min(8));
    }
}

/// ACKs left in the queue after `names` with these ACK numbers arrived, and how many the filter
/// dropped.
fn filtered(acks: &[(u64, Option<(u64, u64)>)], aggressive: bool) -> Vec<u64> {
    let mut queue: Vec<Box<Packet>> = Vec::new();
    for (i, (ack, sack)) in acks.iter().enumerate() {
        let mut p = packet(1, 66, 0, *ack);
        p.sent_ns = i as u64;
        p.sack = sack.map(|block| Box::new(vec![block]));
        queue.push(p);
        let newest = queue.last().expect("one");
        let found = cake_ack_filter::redundant(queue.iter().map(|p| &**p), queue.len(), newest, aggressive);
        if let Some(at) = found {
            queue.remove(at);
        }
    }
    queue.iter().map(|p| p.ack).collect()
}

#[test]
fn cake_s_filter_drops_the_older_of_two_redundant_acks() {
    let plain = |acks: &[u64]| acks.iter().map(|&ack| (ack, None)).collect::<Vec<_>>();
    assert_eq!(filtered(&plain(&[1, 2]), false), [1, 2]);
    assert_eq!(filtered(&plain(&[1, 2, 3]), false), [2, 3]);
    assert_eq!(filtered(&plain(&[1, 2, 3, 4, 5, 6]), false), [5, 6]);
    assert_eq!(filtered(&plain(&[1, 2, 3, 4, 5, 6]), true), [6]);
    // Duplicates are kept, and so is a single ACK before them.
    assert_eq!(filtered(&plain(&[7, 7, 7, 7]), true), [7, 7, 7, 7]);
    assert_eq!(filtered(&plain(&[5, 6, 7, 7, 7]), false), [6, 7, 7, 7]);
    // SACK: an ACK may be dropped only if the newer one reports the same blocks.
    let first = Some((20, 30));
    let more = Some((20, 40));
    let other = Some((50, 60));
    assert_eq!(filtered(&[(7, None), (7, first), (7, more)], false), [7, 7]);
    assert_eq!(filtered(&[(7, first), (7, first), (7, first)], true), [7, 7, 7]);
    assert_eq!(filtered(&[(7, first), (7, more)], true), [7]);
    assert_eq!(filtered(&[(7, first), (8, other), (9, other)], true), [7, 9]);
    assert_eq!(filtered(&[(7, first), (8, None)], true), [7, 8]);
    // A duplicate SACK, below the ACK number, is never dropped.
    assert_eq!(filtered(&[(7, Some((2, 3))), (8, Some((2, 3))), (9, Some((2, 9)))], true), [7, 8, 9]);
}

#[test]
fn cake_s_filter_leaves_data_other_flows_and_closing_alone_but_data_triggers_it() {
    let decide = |change: &dyn Fn(&mut Box<Packet>), newest: Box<Packet>| {
        let mut old = packet(1, 66, 0, 1);
        change(&mut old);
        let queue = [old, packet(1, 66, 0, 2), newest];
        cake_ack_filter::redundant(queue.iter().map(|p| &**p), 3, &queue[2], false)
    };
    assert_eq!(decide(&|_| (), packet(1, 66, 0, 3)), Some(0));
    assert_eq!(decide(&|_| (), packet(1, 1500, 1448, 3)), Some(0), "data carries an ACK");
    assert_eq!(decide(&|p| p.len = 1, packet(1, 66, 0, 3)), None);
    assert_eq!(decide(&|p| p.flags.set(Flags::FIN, true), packet(1, 66, 0, 3)), None);
    assert_eq!(decide(&|p| p.flow = 2, packet(1, 66, 0, 3)), None);
    assert_eq!(decide(&|p| p.ack = 9, packet(1, 66, 0, 3)), None);
    assert_eq!(decide(&|p| p.sent_ns = 9, packet(1, 66, 0, 3)), None, "a later timestamp");
    assert_eq!(
        decide(&|p| p.flags.set(Flags::PROBE, true), packet(1, 66, 0, 3)),
        Some(0),
        "looks like an ACK"
    );
}

#[test]
fn a_stream_of_acks_through_a_busy_cake_is_thinned_and_the_newest_always_arrives() {
    // Data of another flow keeps the link busy; ACKs arrive every 100 us, ten per millisecond.
    let mut spec = patient(Discipline::Cake);
    spec.ack_filter = AckFilter::On;
    let mut link = channel(&spec);
    let mut offers = Vec::new();
    for i in 0..10_000u64 {
        if i % 10 == 0 {
            offers.push((i * 100 * US, packet(0, 1000, 1, 0)));
        }
        offers.push((i * 100 * US, packet(1, 66, 0, i + 1)));
    }
    let out = run(&mut link, &offers);
    let acks: Vec<u64> = out.iter().map(|o| o.1).filter(|&ack| ack > 0).collect();
    assert_eq!(acks.last(), Some(&10_000));
    assert_eq!(acks.len() as u64 + link.stats.acks_filtered, 10_000);
    assert_eq!(link.stats.dropped_queue, 0);
    // While a data packet leaves, ten arrive and two are kept. As these leave (66 us each), others
    // arrive, so n = 2 + 0.66 n leave, in 1 + 0.066 n ms, in which ten per millisecond arrived.
    let n = 2.0 / (1.0 - 0.66);
    let expected = 10_000.0 * n / (10.0 * (1.0 + 0.066 * n));
    assert!((acks.len() as f64 / expected - 1.0).abs() < 0.01, "{} of {expected}", acks.len());
}

#[test]
fn an_aqm_marks_what_can_be_marked_and_drops_the_rest() {
    // Packets of 1000 bytes arrive every 0.9 ms and leave every ms, so that the queue stands from
    // the first second on; every second one can be marked. The time of the packets: 2000 in 1.8 s.
    for discipline in [Discipline::Codel, Discipline::FqCodel, Discipline::Cake] {
        for share in [0, 2, 1] {
            let mut spec = spec(discipline);
            if discipline != Discipline::Cake {
                spec.queue_packets = 1000;
            }
            let mut link = channel(&spec);
            let offers: Vec<_> = (0..2000)
                .map(|i| {
                    let mut p = packet(0, 1000, 1, i);
                    if share > 0 && i % share == 0 {
                        p.ecn = Ecn::Ect;
                    }
                    (i * 900_000, p)
                })
                .collect();
            let came = run(&mut link, &offers).len() as u64;
            let (marked, dropped) = (link.stats.marked, link.stats.dropped_queue);
            assert_eq!(came + dropped, 2000, "{discipline:?}");
            assert_eq!((marked > 0, dropped > 0), (share > 0, share != 1), "{discipline:?} {share}");
        }
    }
}

#[test]
fn cake_s_filter_keeps_an_ack_behind_which_the_echo_changes() {
    let left = |acks: &[(u64, bool)], aggressive: bool| -> Vec<u64> {
        let mut queue: Vec<Box<Packet>> = Vec::new();
        for &(ack, ece) in acks {
            let mut p = packet(1, 66, 0, ack);
            p.sent_ns = ack;
            p.flags.set(Flags::ECE, ece);
            queue.push(p);
            let newest = queue.last().expect("one");
            if let Some(at) =
                cake_ack_filter::redundant(queue.iter().map(|p| &**p), queue.len(), newest, aggressive)
            {
                queue.remove(at);
            }
        }
        queue.iter().map(|p| p.ack).collect()
    };
    // The first of two with the same flags may be dropped when a third has arrived, with the same
    // flags or not.
    assert_eq!(left(&[(1, true), (2, true), (3, true), (4, true)], false), [3, 4]);
    assert_eq!(left(&[(1, false), (2, true), (3, false), (4, true)], false), [1, 2, 3, 4]);
    assert_eq!(left(&[(1, true), (2, true), (3, false)], false), [2, 3]);
    // A single one before another with the same flags: aggressive only.
    assert_eq!(left(&[(1, true), (2, true)], true), [2]);
    assert_eq!(left(&[(1, true), (2, false)], true), [1, 2]);
}

/// ACK numbers that leave an fq_codel that compresses ACKs as XNU does, while a packet of 10 ms goes
/// ahead of them; and how many ACKs another replaced.
fn compressed(acks: Vec<(u64, Box<Packet>)>) -> (Vec<u64>, u64) {
    let mut spec = patient(Discipline::FqCodel);
    spec.ack_compression_ns = 5 * MS;
    let mut link = channel(&spec);
    let mut offers = vec![(0, packet(1, 10_000, 1, 0))];
    offers.extend(acks);
    let came = run(&mut link, &offers).iter().skip(1).map(|o| o.1).collect();
    (came, link.stats.acks_filtered)
}

// [S6.16]
#[test]
fn xnu_replaces_an_ack_by_those_of_the_five_milliseconds_after_it() {
    let acks = (1..=12).map(|n| (n * MS + 500 * US, packet(1, 66, 0, n))).collect();
    // 6.5 ms is within 5 ms of 1.5 ms; from 10 ms on nothing waits that could be replaced.
    assert_eq!(compressed(acks), (vec![6, 9, 10, 11, 12], 7));
}

// [S6.16]
#[test]
fn xnu_replaces_blocks_but_no_echo_and_nothing_behind_data() {
    let mut acks: Vec<_> =
        (1..=6).map(|n| (MS + n * 100 * US, packet(1, 66, u32::from(n == 5), n))).collect();
    acks[1].1.flags.insert(Flags::ECE);
    acks[3].1.sack = Some(Box::new(vec![(1, 2)]));
    acks.push((MS + 650 * US, packet(2, 66, 0, 7)));
    let (mut came, replaced) = compressed(acks);
    came.sort_unstable();
    assert_eq!((came, replaced), (vec![1, 2, 4, 5, 6, 7], 1));
}
