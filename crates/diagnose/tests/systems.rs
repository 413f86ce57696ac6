// SPDX-License-Identifier: MIT
//! ACK streams of systems and drivers, made from their published rules alone, and what is named.
//!
//! Each stream has its own spacing of data, pauses, tick and distance, from a seed. The rules were
//! written with the seeds below 120; those used here were first judged afterwards, with these bounds.

use ackwise_capture::tcp_flag::{ACK, PSH, SYN};
use ackwise_capture::write::{frame, PcapStyle, PcapWriter, TcpPacket};
use ackwise_capture::{link, ReadOptions, Source};
use ackwise_core as _;
use ackwise_diagnose::acks::Thinner;
use ackwise_diagnose::{Acking, Effort};
use ackwise_link as _;
use std::net::SocketAddr;

const US: u64 = 1000;
const MS: u64 = 1000 * US;
const MSS: u32 = 1448;
const WINDOW_BYTES: u32 = 512 * 1024;
const FIRST_SEED: u64 = 200;
const SEEDS: u64 = 20;

struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}

#[derive(Clone, Copy)]
struct Segment {
    time_ns: u64,
    bytes: u32,
    is_pushed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Acked {
    time_ns: u64,
    bytes: u32,
    /// Timestamp of the oldest segment that was not acknowledged before.
    echo: u32,
}

/// When an ACK leaves for data in order.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    /// `__tcp_ack_snd_check` of Linux, and the ACK of a read after PSH.
    Linux,
    /// The second packet, or this timer on a clock of such a tick.
    Second { timer_ns: u64, tick_ns: u64 },
    /// The next tick of a free-running clock.
    SecondOrTick(u64),
    /// So many segments, or 100 ms.
    Count(u32),
    /// A quarter of the window, or 100 ms.
    Quarter,
    /// Each segment.
    Each,
}

fn tick(ms: u32) -> u32 {
    7_000_000 + ms
}

/// The timestamp of a segment sent at this time.
fn stamp(time_ns: u64) -> u32 {
    tick((time_ns / MS) as u32)
}

fn receive(rule: Rule, data: &[Segment], draw: &mut Draw) -> Vec<Acked> {
    let mut acks: Vec<Acked> = Vec::new();
    let (mut bytes, mut unacked, mut packets, mut quick) = (0u32, 0u32, 0u32, 16u32);
    let mut echo = 0;
    let mut deadline: Option<u64> = None;
    let processing = |draw: &mut Draw| 5 * US + draw.below(40) * US;
    for segment in data {
        if let Some(at) = deadline.filter(|&at| at < segment.time_ns) {
            acks.push(Acked { time_ns: at, bytes, echo });
            (unacked, packets, deadline) = (0, 0, None);
        }
        if packets == 0 {
            echo = stamp(segment.time_ns);
        }
        bytes += segment.bytes;
        unacked += segment.bytes;
        packets += 1;
        let now = match rule {
            Rule::Linux => unacked > MSS || quick > 0 || segment.is_pushed,
            Rule::Second { .. } | Rule::SecondOrTick(_) => packets >= 2,
            Rule::Count(most) => packets >= most,
            Rule::Quarter => unacked >= WINDOW_BYTES / 4,
            Rule::Each => true,
        };
        if now {
            quick = quick.saturating_sub(1);
            acks.push(Acked { time_ns: segment.time_ns + processing(draw), bytes, echo });
            (unacked, packets, deadline) = (0, 0, None);
        } else if deadline.is_none() {
            let mut after = |ns: u64, tick_ns: u64| segment.time_ns + ns + draw.below(tick_ns);
            deadline = Some(match rule {
                Rule::Linux => after(40 * MS, 4 * MS),
                Rule::Second { timer_ns, tick_ns } => after(timer_ns, tick_ns),
                Rule::SecondOrTick(period) => (segment.time_ns / period + 1) * period,
                _ => after(100 * MS, 10 * MS),
            });
        }
    }
    if let Some(at) = deadline {
        acks.push(Acked { time_ns: at, bytes, echo });
    }
    acks
}

/// A driver that holds the newest ACK, until the first that it held is this old or so many came.
fn hold(acks: &[Acked], hold_ns: u64, most: u32, draw: &mut Draw) -> Vec<Acked> {
    let mut sent = Vec::new();
    let mut held: Option<(u64, u32, Acked)> = None;
    for &ack in acks {
        if let Some((until, _, newest)) = held.filter(|h| h.0 <= ack.time_ns) {
            sent.push(Acked { time_ns: until, ..newest });
            held = None;
        }
        let (until, count, _) = held.unwrap_or((ack.time_ns + hold_ns + draw.below(200) * US, 0, ack));
        held = Some((until, count + 1, ack));
        if count + 1 >= most {
            sent.push(ack);
            held = None;
        }
    }
    sent.extend(held.map(|(until, _, newest)| Acked { time_ns: until, ..newest }));
    sent
}

/// A download with pauses: even segments, and now and then a short or a lone one before a pause.
fn download(draw: &mut Draw, chunk: u64) -> Vec<Segment> {
    let gap_ns = (80 + draw.below(500)) * US;
    let pause_every = chunk + 2 * draw.below(chunk) + 1; // odd, so that one is left alone
    let mut time_ns = 200 * MS;
    let mut data = Vec::new();
    for i in 1..=100 * chunk {
        let is_last = i % pause_every == 0;
        let is_short = is_last && draw.below(2) == 0;
        let bytes = if is_short { 200 + draw.below(900) as u32 } else { MSS };
        data.push(Segment { time_ns, bytes, is_pushed: is_short });
        time_ns += gap_ns * 9 / 10 + draw.below(gap_ns / 5);
        if is_last {
            time_ns += 320 * MS + draw.below(100) * MS;
        }
    }
    data
}

struct Stream {
    data: Vec<Segment>,
    acks: Vec<Acked>,
    /// Way between the capture point and the receiver.
    far_ns: u64,
    has_timestamps: bool,
}

fn options(value: u32, echo: u32) -> Vec<u8> {
    let mut bytes = vec![1, 1, 8, 10];
    bytes.extend(value.to_be_bytes());
    bytes.extend(echo.to_be_bytes());
    bytes
}

impl Stream {
    fn acking(&self) -> Acking {
        let [a, b] = ["10.0.0.1:40000", "10.0.0.2:80"].map(|a| a.parse::<SocketAddr>().expect("an address"));
        let with = |value, echo| if self.has_timestamps { options(value, echo) } else { Vec::new() };
        let syn = |value, echo| [vec![2, 4, 5, 0xb4, 4, 2, 1, 3, 3, 7], with(value, echo)].concat();
        let mut packets = vec![
            (0, TcpPacket::new(a, b, 0, 0, 0).flags(SYN).options(&syn(tick(0), 0))),
            (
                2 * self.far_ns + 30 * US,
                TcpPacket::new(b, a, 0, 1, 0).flags(SYN | ACK).options(&syn(9, tick(0))),
            ),
            (100 * MS, TcpPacket::new(a, b, 1, 1, 0).window(4000).options(&with(tick(100), 9))),
        ];
        let mut sent = 0;
        for segment in &self.data {
            let flags = if segment.is_pushed { ACK | PSH } else { ACK };
            let packet = TcpPacket::new(a, b, 1 + sent, 1, segment.bytes).flags(flags).window(4000);
            packets.push((segment.time_ns - self.far_ns, packet.options(&with(stamp(segment.time_ns), 9))));
            sent += segment.bytes;
        }
        for ack in &self.acks {
            let packet = TcpPacket::new(b, a, 1, 1 + ack.bytes, 0).window((WINDOW_BYTES >> 7) as u16);
            let packet = packet.options(&with(9 + (ack.time_ns / MS) as u32, ack.echo));
            packets.push((ack.time_ns + self.far_ns, packet));
        }
        packets.sort_by_key(|p| p.0);
        let style = PcapStyle { nanoseconds: true, ..PcapStyle::default() };
        let mut file = PcapWriter::new(link::ETHERNET, style);
        for (time_ns, packet) in &packets {
            let mut ip = packet.to_ip();
            ip[4..6].copy_from_slice(&[0, 0]); // as with "do not fragment": it counts nothing
            file.frame(*time_ns, &frame(link::ETHERNET, &ip));
        }
        let bytes = file.into_bytes();
        let found = ackwise_diagnose::diagnose(
            [Source::reader(&bytes[..], "stream")],
            &ReadOptions::default(),
            &Effort::default(),
        );
        let connection = found.expect("readable").connections.into_iter().next().expect("a connection");
        connection.halves.into_iter().next().expect("a half").acking
    }
}

fn stream(seed: u64, rule: Rule, driver: Option<(u64, u32)>, is_near: bool) -> Stream {
    let mut draw = Draw((FIRST_SEED + seed) * 7919 + 17);
    // Drivers hold ACKs, and a quarter of the window fills, only in a bulk transfer.
    let chunk = if driver.is_some() || rule == Rule::Quarter { 300 } else { 30 };
    let data = download(&mut draw, chunk);
    let acks = receive(rule, &data, &mut draw);
    let acks = match driver {
        Some((hold_ns, most)) => hold(&acks, hold_ns, most, &mut draw),
        None => acks,
    };
    let far_ns = if is_near { 0 } else { (1 + draw.below(40)) * MS };
    Stream { data, acks, far_ns, has_timestamps: draw.below(3) > 0 }
}

/// How many streams name the system, how many name only others, how many there are, and the most
/// names of one.
fn judged(name: &str, rule: Rule, driver: Option<(u64, u32)>, is_near: bool) -> (u64, u64, u64, usize) {
    let (mut right, mut wrong, mut of, mut names) = (0, 0, 0, 0);
    for seed in 0..SEEDS {
        let made = stream(seed, rule, driver, is_near);
        let gap_ns = made.data[1].time_ns - made.data[0].time_ns;
        // At an even rate a hold that ends by its count looks like one of another time.
        if driver.is_some_and(|(hold_ns, most)| 2 * u64::from(most) * gap_ns < hold_ns * 6 / 5) {
            continue;
        }
        of += 1;
        let found = made.acking().system;
        let is_right = found.names.contains(&name);
        right += u64::from(is_right);
        wrong += u64::from(!is_right && !found.names.is_empty());
        names = names.max(found.names.len());
        if !is_right {
            println!("{name} near {is_near} seed {seed}: {found:?}");
        }
    }
    println!("{name} near {is_near}: {right} right, {wrong} wrong of {of}, up to {names} names");
    (right, wrong, of, names)
}

fn second(timer_ms: u64, tick_ms: u64) -> Rule {
    Rule::Second { timer_ns: timer_ms * MS, tick_ns: tick_ms * MS }
}

#[test]
fn systems_are_named_by_their_published_rules() {
    let mut failed = Vec::new();
    for is_near in [true, false] {
        for (name, rule, names_max) in [
            ("linux", Rule::Linux, 1),
            ("windows", second(40, 15), 3),
            ("windows", second(200, 15), 2),
            ("freebsd", second(40, 1), 3),
            ("freebsd", second(100, 10), 2),
            ("lwip", Rule::SecondOrTick(250 * MS), 2),
            ("apple", Rule::Count(8), 2),
            ("apple", Rule::Quarter, 1),
            ("no-delayed-acks", Rule::Each, 1),
        ] {
            // Away from the receiver, without timestamps, a count may be any driver's time.
            let names_max = if rule == Rule::Count(8) && !is_near { 5 } else { names_max };
            let (right, wrong, of, names) = judged(name, rule, None, is_near);
            if right * 10 < of * 9 || wrong * 20 > of || names > names_max {
                failed.push((name, rule, is_near, right, wrong, names));
            }
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn pauses_of_the_host_hide_no_system() {
    // A slow link with a reader that is always there: each third segment is acknowledged alone.
    let data: Vec<_> =
        (0..900).map(|i| Segment { time_ns: (200 + 6 * i) * MS, bytes: MSS, is_pushed: false }).collect();
    let mut acks: Vec<_> = (0..900)
        .filter(|i| i % 3 != 1)
        .map(|i| {
            let time_ns = data[i as usize].time_ns;
            let oldest_ns = if i % 3 == 2 { time_ns - 6 * MS } else { time_ns };
            Acked { time_ns: time_ns + 10 * US, bytes: (i + 1) * MSS, echo: stamp(oldest_ns) }
        })
        .collect();
    for paused in [100, 302, 452] {
        acks[paused].time_ns += 4 * MS;
    }
    for far_ns in [0, 10 * MS] {
        let made = Stream { data: data.clone(), acks: acks.clone(), far_ns, has_timestamps: true };
        let found = made.acking().system;
        assert_eq!(found.names.first(), Some(&"linux"), "{found:?}");
    }
}

#[test]
fn drivers_are_named_by_the_time_for_which_they_hold_acks() {
    let mut failed = Vec::new();
    for (name, hold_ms, most) in
        [("wifi-qualcomm", 3, 20), ("wifi-samsung", 4, 16), ("wifi-aic", 5, 10), ("wifi-broadcom", 10, 15)]
    {
        // Away from the receiver: its own capture is taken above the driver.
        let (right, wrong, of, _) = judged(name, Rule::Linux, Some((hold_ms * MS, most)), false);
        if of < SEEDS / 4 || right * 10 < of * 8 || wrong * 10 > of {
            failed.push((name, right, wrong, of));
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn timestamps_show_who_thinned_the_acks() {
    let (mut by_driver, mut by_receiver) = (0, 0);
    for seed in 0..SEEDS {
        let mut held = stream(seed, Rule::Linux, Some((8 * MS, 1000)), false);
        held.has_timestamps = true;
        let found = held.acking().thinned_by;
        assert_ne!(found, Thinner::Receiver, "seed {seed}");
        by_driver += u64::from(found == Thinner::Path);
        held.has_timestamps = false;
        assert_eq!(held.acking().thinned_by, Thinner::NotVisible, "seed {seed}");
        let mut own = stream(seed, Rule::Count(24), None, false);
        own.has_timestamps = true;
        let found = own.acking().thinned_by;
        assert_ne!(found, Thinner::Path, "seed {seed}");
        by_receiver += u64::from(found == Thinner::Receiver);
    }
    assert!(by_driver * 10 >= SEEDS * 9 && by_receiver * 10 >= SEEDS * 9, "{by_driver}, {by_receiver}");
}
