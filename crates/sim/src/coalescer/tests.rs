// SPDX-License-Identifier: MIT
//! Each rule on sequences whose outcome was worked out by hand.

use super::*;
use crate::channel::tests::packet;
use crate::packet::{Flags, Sack};

const MSS: u64 = 1460;
const US: u64 = 1_000;

/// A driver, and what has left it: time in us, ACK number in pairs of segments.
struct Driver {
    coalescer: Coalescer,
    timer_ns: Option<u64>,
    left: Vec<(u64, u64)>,
}

impl Driver {
    fn new(kind: Coalescing) -> Self {
        let coalescer = Coalescer::new(kind, 1500).unwrap();
        Driver { coalescer, timer_ns: None, left: Vec::new() }
    }

    fn collect(&mut self, now: u64) {
        while let Some(packet) = self.coalescer.next() {
            self.left.push((now / US, packet.ack / (2 * MSS)));
        }
        // A later time than the pending event's needs no other.
        self.timer_ns = self.coalescer.wake().or(self.timer_ns);
    }

    /// Lets the time pass, with the events that the driver asked for.
    fn pass(&mut self, until_us: u64) {
        while let Some(at) = self.timer_ns.filter(|at| *at <= until_us * US) {
            self.timer_ns = None;
            self.coalescer.expire(at);
            self.collect(at);
        }
    }

    fn offer(&mut self, at_us: u64, packet: Box<Packet>) {
        self.pass(at_us);
        self.coalescer.send(at_us * US, packet);
        self.collect(at_us * US);
    }

    fn ack(&mut self, at_us: u64, pairs: u64) {
        self.offer(at_us, ack(pairs));
    }

    fn receive(&mut self, at_us: u64, packet: &Packet) {
        self.pass(at_us);
        self.coalescer.receive(at_us * US, packet);
    }

    /// What left since the last call.
    fn taken(&mut self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.left)
    }
}

fn ack(pairs: u64) -> Box<Packet> {
    let mut made = packet(1, 52, 0, pairs * 2 * MSS);
    made.wnd_bytes = 4 << 20;
    made
}

fn with(mut packet: Box<Packet>, flags: Flags) -> Box<Packet> {
    packet.flags.insert(flags);
    packet
}

// [S6.14]
#[test]
fn broadcom_sends_the_newest_of_three_or_after_ten_milliseconds() {
    let mut driver = Driver::new(Coalescing::Broadcom);
    for n in 1..=5 {
        driver.ack(1_000 * n, n);
    }
    driver.pass(100_000);
    // The third is sent; the fourth waits from 4 ms on, and the fifth goes in its place.
    assert_eq!(driver.taken(), [(3_000, 3), (14_000, 5)]);
    assert_eq!(driver.coalescer.dropped(), 3);
}

// [S6.14]
#[test]
fn broadcom_counts_duplicates_and_drops_what_is_older() {
    let mut driver = Driver::new(Coalescing::Broadcom);
    for at in [0, 1, 2, 3] {
        driver.ack(at, 7);
    }
    driver.ack(4, 6);
    driver.pass(50_000);
    assert_eq!(driver.taken(), [(2, 7), (10_003, 7)]);
}

// [S6.14]
#[test]
fn broadcom_has_four_places_and_loses_the_fifth_flows_ack() {
    let mut driver = Driver::new(Coalescing::Broadcom);
    for flow in 1..=5 {
        driver.offer(0, packet(flow, 52, 0, u64::from(flow) * 2 * MSS));
    }
    driver.pass(50_000);
    assert_eq!(driver.taken(), [(10_000, 1), (10_000, 2), (10_000, 3), (10_000, 4)]);
}

// [S6.14]
#[test]
fn broadcom_touches_no_packet_with_data_or_another_flag() {
    let mut driver = Driver::new(Coalescing::Broadcom);
    driver.ack(0, 1);
    driver.offer(1, with(ack(2), Flags::ECE));
    driver.offer(2, with(ack(3), Flags::PSH));
    driver.offer(3, packet(1, 1500, 1448, 4 * 2 * MSS));
    driver.pass(50_000);
    // What waits comes later, behind what is newer.
    assert_eq!(driver.taken(), [(1, 2), (2, 3), (3, 4), (10_000, 1)]);
}

// [S6.15]
#[test]
fn aic_sends_every_tenth_after_the_first_two_or_after_five_milliseconds() {
    let mut driver = Driver::new(Coalescing::Aic);
    for n in 1..=23 {
        driver.ack(100 * n, n);
    }
    driver.pass(50_000);
    // 1 makes the flow known, 2 finds its count full; then 12 and 22. 23 waits from 2.3 ms on.
    assert_eq!(driver.taken(), [(100, 1), (200, 2), (1_200, 12), (2_200, 22), (7_300, 23)]);
    // The timer is not put off by what comes while it runs.
    driver.ack(60_000, 24);
    driver.ack(63_000, 25);
    driver.pass(90_000);
    assert_eq!(driver.taken(), [(65_000, 25)]);
}

// [S6.15]
#[test]
fn aic_drops_duplicates_with_their_sack_blocks() {
    let mut driver = Driver::new(Coalescing::Aic);
    driver.ack(0, 1);
    let mut duplicate = ack(1);
    duplicate.sack = Some(Box::new(Sack::from([(10 * MSS, 11 * MSS)])));
    driver.offer(1, duplicate);
    driver.ack(2, 1);
    driver.pass(50_000);
    assert_eq!((driver.taken(), driver.coalescer.dropped()), (vec![(0, 1)], 2));
}

// [S6.15]
#[test]
fn aic_answers_a_short_pushed_segment_at_once() {
    let mut driver = Driver::new(Coalescing::Aic);
    let pushed = |bytes: u32, seq: u64| {
        let mut made = with(packet(1, bytes, bytes - 52, 0), Flags::PSH);
        made.seq = seq;
        made
    };
    driver.ack(0, 1);
    driver.ack(0, 2);
    driver.receive(100, &pushed(200, 4 * 2 * MSS));
    driver.ack(200, 3);
    driver.ack(300, 4);
    // A longer one is not looked at.
    driver.receive(400, &pushed(201, 5 * 2 * MSS));
    driver.ack(500, 5);
    driver.pass(50_000);
    assert_eq!(driver.taken(), [(0, 1), (0, 2), (300, 4), (5_500, 5)]);
}

/// Lets packets arrive during the 100 ms before `end_ms`.
fn receive(driver: &mut Driver, count: u64, end_ms: u64) {
    for n in 0..count {
        driver.receive(end_ms * 1_000 - 100_000 + n, &packet(1, 1500, 1448, 0));
    }
}

// [S6.13]
#[test]
fn qualcomm_holds_above_300_packets_in_100_ms_until_below_100() {
    let mut driver = Driver::new(Coalescing::Qualcomm);
    let holds = [(300, false), (301, true), (100, true), (99, false), (100, false)];
    for (n, (count, is_on)) in holds.into_iter().enumerate() {
        let end_ms = 100 * (n as u64 + 1);
        receive(&mut driver, count, end_ms);
        driver.ack(end_ms * 1_000, n as u64 + 1);
        driver.pass(end_ms * 1_000 + 10_000);
        let left_us = end_ms * 1_000 + if is_on { 3_000 } else { 0 };
        assert_eq!(driver.taken(), [(left_us, n as u64 + 1)], "{count}");
    }
    // A sample without a packet turns it off, too.
    receive(&mut driver, 400, 600);
    driver.ack(700_000, 9);
    assert_eq!(driver.taken(), [(700_000, 9)]);
}

// [S6.13]
#[test]
fn qualcomm_sends_the_twenty_first_or_after_three_milliseconds_of_its_one_timer() {
    let mut driver = Driver::new(Coalescing::Qualcomm);
    receive(&mut driver, 301, 100);
    for n in 1..=22 {
        driver.ack(100_000 + 100 * n, n);
    }
    driver.pass(110_000);
    // The first started the timer, which finds the 22nd after 0.8 ms.
    assert_eq!(driver.taken(), [(102_100, 21), (103_100, 22)]);
    assert_eq!(driver.coalescer.dropped(), 20);
}

// [S6.13]
#[test]
fn qualcomm_sends_what_waits_before_a_duplicate_and_before_data() {
    let mut driver = Driver::new(Coalescing::Qualcomm);
    receive(&mut driver, 301, 100);
    driver.ack(100_000, 1);
    driver.ack(100_100, 1);
    driver.ack(100_200, 2);
    driver.offer(100_300, packet(1, 1500, 1448, 3 * 2 * MSS));
    assert_eq!(driver.taken(), [(100_100, 1), (100_100, 1), (100_300, 2), (100_300, 3)]);
}

/// Samsung's driver after `acks` ACKs of two segments, one each millisecond: 23 Mbit/s.
fn samsung(acks: u64, wnd_bytes: u32) -> Driver {
    let mut driver = Driver::new(Coalescing::Samsung);
    driver.offer(0, with(ack(0), Flags::SYN));
    for n in 1..=acks {
        let mut made = ack(n);
        made.wnd_bytes = wnd_bytes;
        driver.offer(1_000 * n, made);
    }
    driver
}

// [S6.12]
#[test]
fn samsung_sends_every_sixteenth_at_20_mbit_after_512() {
    let mut driver = samsung(530, 4 << 20);
    driver.pass(600_000);
    let left = driver.taken();
    // The SYN and 512 ACKs; 513 is the first of sixteen; 530 leaves after 4 ms of silence.
    assert_eq!(left[..513].iter().map(|l| l.1).collect::<Vec<_>>(), (0..=512).collect::<Vec<_>>());
    assert_eq!(left[513..], [(528_000, 528), (534_000, 530)]);
}

// [S6.12]
#[test]
fn samsung_holds_no_more_than_its_share_of_the_window() {
    // 2 * 29 200 / 5 / 2920: four ACKs.
    let mut driver = samsung(520, 29_200);
    driver.pass(600_000);
    assert_eq!(driver.taken()[513..], [(516_000, 516), (520_000, 520)]);
}

// [S6.12]
#[test]
fn samsung_passes_what_acknowledges_more_than_two_segments_and_what_is_urgent() {
    let mut driver = samsung(513, 4 << 20);
    driver.taken();
    driver.offer(513_100, packet(1, 52, 0, 515 * 2 * MSS));
    driver.ack(513_200, 516);
    driver.offer(513_300, with(ack(517), Flags::ECE));
    driver.ack(513_400, 518);
    // A duplicate of the last number takes the place of what waits.
    driver.ack(513_500, 518);
    // An older one passes by.
    driver.ack(513_600, 517);
    assert_eq!(driver.taken(), [(513_100, 515), (513_300, 517), (513_500, 518), (513_600, 517)]);
}

// [S6.12]
#[test]
fn samsung_starts_over_after_a_sack() {
    let mut driver = samsung(513, 4 << 20);
    driver.taken();
    let mut hole = ack(513);
    hole.sack = Some(Box::new(Sack::from([(2_000 * MSS, 2_001 * MSS)])));
    driver.offer(513_100, hole);
    for n in 514..=1_026 {
        driver.ack(1_000 * n, n);
    }
    driver.pass(2_000_000);
    let left = driver.taken();
    // That one, 512 more, and the next waits.
    assert_eq!((left.len(), left[512], left[513]), (514, (1_025_000, 1_025), (1_030_000, 1_026)));
}

// [S6.12]
#[test]
fn samsung_follows_the_rate_and_lets_slow_flows_pass() {
    // 2920 bytes each 2 ms are 11 Mbit/s: ten ACKs are one. Each 40 ms they are 0: none waits.
    let mut driver = Driver::new(Coalescing::Samsung);
    driver.offer(0, with(ack(0), Flags::SYN));
    for n in 1..=522 {
        driver.ack(2_000 * n, n);
    }
    assert_eq!(driver.taken()[513..], [(1_044_000, 522)]);
    for n in 1..=40 {
        driver.ack(1_044_000 + 40_000 * n, 522 + n);
    }
    driver.pass(3_000_000);
    assert_eq!(driver.taken().last(), Some(&(2_644_000, 562)));
}
