// SPDX-License-Identifier: MIT
//! Sockets over repeated samples, from messages built by hand.

use ackwise_sockets::{Answer, Chosen, Damaged, Filter, Limit, Table};
use std::collections::HashMap;

const SECOND_US: u64 = 1_000_000;
const TCP_INFO: usize = 248; // size in Linux 6.7

/// A socket as the kernel would describe it; fields of `tcp_info` by their offset in linux/tcp.h.
#[derive(Clone)]
struct Made {
    cookie: u64,
    state: u8,
    timer: u8,
    unread: u32,
    uid: u32,
    inode: u32,
    info: Vec<u8>,
}

impl Made {
    fn new(cookie: u64) -> Self {
        let mut made =
            Made { cookie, state: 1, timer: 0, unread: 0, uid: 7, inode: 70, info: vec![0; TCP_INFO] };
        made.u32(16, 1448).u32(80, 10).u32(76, 10).u32(68, 20_000).u32(148, 20_000).u32(228, 65_536);
        made
    }

    fn u32(&mut self, at: usize, value: u32) -> &mut Self {
        self.info[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn u64(&mut self, at: usize, value: u64) -> &mut Self {
        self.info[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn u8(&mut self, at: usize, value: u8) -> &mut Self {
        self.info[at] = value;
        self
    }

    /// Data in flight and more to send, for the whole second.
    fn busy(&mut self) -> &mut Self {
        self.u64(168, SECOND_US).u64(120, 1_000_000).u32(24, 10).u32(144, 100_000)
    }

    fn bytes(&self) -> Vec<u8> {
        let mut body = vec![2, self.state, self.timer, 0];
        body.extend([0x01, 0xbb, 0x13, 0x88]); // ports 443, 5000
        for address in [[10, 0, 0, 1], [10, 0, 0, 2]] {
            body.extend(address);
            body.extend([0; 12]);
        }
        body.extend([0; 4]);
        body.extend(self.cookie.to_ne_bytes());
        body.extend([0; 4]);
        for field in [self.unread, 0, self.uid, self.inode] {
            body.extend(field.to_ne_bytes());
        }
        assert_eq!(body.len(), 72);
        body.extend((4 + self.info.len() as u16).to_ne_bytes());
        body.extend(2u16.to_ne_bytes());
        body.extend(&self.info);
        body.resize(body.len().next_multiple_of(4), 0);
        message(18, &body)
    }
}

fn message(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut made = (16 + body.len() as u32).to_ne_bytes().to_vec();
    made.extend(kind.to_ne_bytes());
    made.extend([0; 10]);
    made.extend(body);
    made
}

fn rows(table: &mut Table) -> Vec<(u64, Limit, u64, HashMap<&'static str, u64>)> {
    let mut found = Vec::new();
    table.rows(usize::MAX, |row| {
        let shares =
            Limit::ALL.iter().map(|&l| (l.name(), row.limited_us.of(l))).filter(|s| s.1 > 0).collect();
        found.push((row.cookie, row.limit, row.interval_us, shares));
    });
    found
}

/// The limit of a second that ends with the state `after`.
fn limit_of(after: &Made) -> Limit {
    let mut table = Table::default();
    table.take(&Made::new(after.cookie).bytes(), 0).unwrap();
    table.take(&after.bytes(), SECOND_US).unwrap();
    let found = rows(&mut table);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].3.values().sum::<u64>(), SECOND_US);
    found[0].1
}

fn made(change: impl FnOnce(&mut Made)) -> Made {
    let mut one = Made::new(1);
    change(one.busy());
    one
}

#[test]
fn the_kernels_account_is_taken_as_it_is() {
    let mut table = Table::default();
    table.take(&Made::new(1).bytes(), 5).unwrap();
    let mut after = Made::new(1);
    after.u64(168, 800_000).u64(176, 500_000).u64(184, 200_000).u64(120, 1_600_000).u32(24, 10);
    table.take(&after.bytes(), 5 + SECOND_US).unwrap();
    let shares = HashMap::from([
        ("receive-window", 500_000),
        ("send-buffer", 200_000),
        ("sending-application", 200_000),
        ("congestion-window", 100_000),
    ]);
    assert_eq!(rows(&mut table), [(1, Limit::ReceiveWindow, SECOND_US, shares)]);
}

#[test]
fn what_the_kernel_does_not_count_follows_from_the_second_look() {
    type Case = (Limit, fn(&mut Made));
    let cases: [Case; 14] = [
        (Limit::SlowStart, |s| {
            s.u32(76, 0x7fff_ffff);
        }),
        (Limit::CongestionWindow, |_| ()),
        (Limit::CongestionWindow, |s| {
            s.u8(1, 3).u32(76, 0x7fff_ffff);
        }),
        (Limit::Link, |s| {
            s.u32(68, 50_000);
        }),
        (Limit::Timeout, |s| {
            s.u8(1, 4);
        }),
        (Limit::Timeout, |s| {
            s.u32(244, 900);
        }),
        (Limit::AckStall, |s| {
            s.u32(24, 1).u32(144, 100);
        }),
        (Limit::SendingApplication, |s| {
            s.u32(24, 1).u32(144, 0);
        }),
        (Limit::Undecided, |s| {
            s.u32(24, 1).u32(144, 100_000);
        }),
        (Limit::ReceiveWindow, |s| {
            s.u64(176, SECOND_US).u64(120, 3_200_000); // 64 KiB each RTT
        }),
        (Limit::ReceivingApplication, |s| {
            s.u64(176, SECOND_US).u64(120, 650_000); // a fifth of that
        }),
        (Limit::ReceivingApplication, |s| {
            s.u64(176, SECOND_US).u32(228, 0);
        }),
        (Limit::SendBuffer, |s| {
            s.u64(184, SECOND_US);
        }),
        (Limit::Handshake, |s| s.state = 2),
    ];
    for (limit, change) in cases {
        assert_eq!(limit_of(&made(change)), limit);
    }
}

#[test]
fn a_full_receive_window_is_neither_a_link_nor_undecided() {
    type Case = (Limit, &'static str, fn(&mut Made));
    let cases: [Case; 4] = [
        (Limit::ReceivingApplication, "a read makes room now and then, and its ACKs come late", |s| {
            s.u64(176, SECOND_US * 86 / 100).u32(80, 226).u32(24, 0).u32(228, 0);
            s.u32(68, 22_500).u32(148, 4);
        }),
        (Limit::ReceiveWindow, "all but a segment of the window is in flight", |s| {
            s.u32(80, 200).u32(24, 45);
        }),
        (Limit::ReceivingApplication, "reads delay ACKs and move the window", |s| {
            s.u64(176, SECOND_US).u64(120, 3_000_000).u32(228, 60_000).u32(68, 32_000);
        }),
        (Limit::Link, "a queue holds what the window allows", |s| {
            s.u64(176, SECOND_US).u64(120, 3_000_000).u32(68, 400_000);
        }),
    ];
    for (limit, why, change) in cases {
        let mut table = Table::default();
        table.take(&Made::new(1).bytes(), 0).unwrap();
        table.take(&made(change).bytes(), SECOND_US).unwrap();
        let found = rows(&mut table);
        assert_eq!(found[0].3, HashMap::from([(limit.name(), SECOND_US)]), "{why}");
    }
}

#[test]
fn a_receiver_is_judged_by_its_queue_and_window() {
    let receives = |unread: u32, bytes: u64, rtt_us: u32, holes: u32| {
        let mut one = Made::new(1);
        one.u64(128, bytes).u32(140, 9).u32(92, rtt_us).u32(232, 65_536).u32(224, holes).unread = unread;
        limit_of(&one)
    };
    assert_eq!(receives(100_000, 1000, 10_000, 0), Limit::ReceivingApplication);
    // 64 KiB per 10 ms
    assert_eq!(receives(0, 6_553_600, 10_000, 0), Limit::ReceiveWindow);
    assert_eq!(receives(0, 600_000, 10_000, 4), Limit::CongestionWindow);
    assert_eq!(receives(0, 600_000, 10_000, 0), Limit::Undecided);
}

#[test]
fn bbr_starts_slowly_only_by_its_gain() {
    let bbr = |gain: u32| {
        let mut one = made(|s| {
            s.u32(76, 0x7fff_ffff);
        })
        .bytes();
        let mut attribute = 24u16.to_ne_bytes().to_vec();
        attribute.extend(16u16.to_ne_bytes());
        attribute.extend([0; 12]);
        attribute.extend(gain.to_ne_bytes());
        attribute.extend([0; 4]);
        one.extend(attribute);
        let length = one.len() as u32;
        one[..4].copy_from_slice(&length.to_ne_bytes());
        let mut table = Table::default();
        table.take(&Made::new(1).bytes(), 0).unwrap();
        table.take(&one, SECOND_US).unwrap();
        rows(&mut table)[0].1
    };
    assert_eq!(bbr(739), Limit::SlowStart);
    assert_eq!(bbr(256), Limit::CongestionWindow);
}

#[test]
fn a_send_buffer_that_is_all_on_the_way_is_the_limit() {
    let with_buffer = |sent: u32, unsent: u32, buffer: u32| {
        let mut bytes = made(|s| {
            s.u32(24, sent).u32(144, unsent);
        })
        .bytes();
        let mut attribute = 40u16.to_ne_bytes().to_vec();
        attribute.extend(7u16.to_ne_bytes());
        attribute.extend([0; 12]);
        attribute.extend(buffer.to_ne_bytes());
        attribute.extend([0; 20]);
        bytes.extend(attribute);
        let length = bytes.len() as u32;
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        let mut table = Table::default();
        table.take(&Made::new(1).bytes(), 0).unwrap();
        table.take(&bytes, SECOND_US).unwrap();
        rows(&mut table)[0].1
    };
    // 10 segments of 1448 bytes
    assert_eq!(with_buffer(10, 0, 28_960), Limit::SendBuffer);
    assert_eq!(with_buffer(10, 0, 28_962), Limit::CongestionWindow);
    assert_eq!(with_buffer(10, 1, 28_960), Limit::CongestionWindow);
    assert_eq!(with_buffer(1, 0, 28_960), Limit::SendingApplication);
}

#[test]
fn parts_of_an_interval_always_add_up_to_it() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..20_000 {
        let mut table = Table::default();
        let (mut before, mut after) = (Made::new(1), Made::new(1));
        for byte in before.info.iter_mut().chain(&mut after.info) {
            *byte = if random.bool() { random.u8(..) } else { 0 };
        }
        after.state = random.u8(..12);
        after.timer = random.u8(..5);
        after.unread = random.u32(..);
        let us = random.u64(1..10_000_000);
        table.take(&before.bytes(), 77).unwrap();
        table.take(&after.bytes(), 77 + us).unwrap();
        for (_, limit, interval_us, shares) in rows(&mut table) {
            assert_eq!(interval_us, us);
            assert_eq!(shares.values().sum::<u64>(), us);
            assert_eq!(shares.values().max(), shares.get(limit.name()));
        }
    }
}

#[test]
fn an_idle_socket_has_no_row_but_its_time_counts() {
    let mut table = Table::default();
    for second in 0..3 {
        table.take(&Made::new(1).bytes(), second * SECOND_US).unwrap();
        table.end_round();
        assert_eq!(rows(&mut table).len(), 0);
    }
    let totals = table.totals();
    assert_eq!((totals.sockets, totals.looks, totals.rounds), (1, 3, 3));
    assert_eq!(totals.limited_us.of(Limit::SendingApplication), 2 * SECOND_US);
}

/// An idle message as linux/bpf/live writes it, after this many segments sent and received.
fn idle(cookie: u64, segments: (u32, u32)) -> Vec<u8> {
    let counts = [segments.0.to_ne_bytes(), segments.1.to_ne_bytes()].concat();
    message(256, &[cookie.to_ne_bytes().to_vec(), counts].concat())
}

#[test]
fn a_socket_that_is_said_to_be_idle_counts_as_if_it_had_been_described() {
    let described = |seconds: &[u64]| seconds.iter().map(|&s| (s, Made::new(1).bytes())).collect::<Vec<_>>();
    let said = |seconds: &[u64]| seconds.iter().map(|&s| (s, idle(1, (0, 0)))).collect::<Vec<_>>();
    let mut after = Made::new(1);
    after.busy().u32(136, 3);
    let last = vec![(7, after.bytes())];
    let totals =
        [[described(&[0, 1, 3, 6]), last.clone()], [[described(&[0]), said(&[1, 3, 6])].concat(), last]].map(
            |looks| {
                let mut table = Table::default();
                for (second, bytes) in looks.concat() {
                    table.take(&bytes, second * SECOND_US).unwrap();
                    table.end_round();
                }
                let found = rows(&mut table);
                assert!(!table.needs_all());
                (found, table.totals().looks, table.totals().limited_us)
            },
        );
    assert_eq!(totals[0], totals[1]);
    assert_eq!((totals[0].0[0].2, totals[0].1), (SECOND_US, 5));
}

#[test]
fn what_is_said_to_be_idle_but_not_known_as_that_has_to_be_described() {
    let mut table = Table::default();
    table.take(&Made::new(1).bytes(), 0).unwrap();
    for (bytes, needs) in [
        (idle(1, (0, 0)), false),
        (idle(1, (1, 0)), true), // has sent one since
        (idle(1, (0, 1)), true),
        (idle(2, (0, 0)), true), // never described
        (made(|_| ()).bytes(), false),
        (idle(1, (0, 0)), true), // had data in flight when it was described
    ] {
        table.take(&bytes, SECOND_US).unwrap();
        assert_eq!((table.needs_all(), table.needs_all()), (needs, false));
    }
    table.end_round();
    assert_eq!(table.totals().sockets, 1);
    // a socket that was not selected stays unknown
    let mut chosen = Table::new(Chosen { uid: Some(8), ..Chosen::default() });
    chosen.take(&Made::new(1).bytes(), 0).unwrap();
    chosen.take(&idle(1, (0, 0)), SECOND_US).unwrap();
    assert_eq!((chosen.needs_all(), chosen.totals().sockets), (false, 0));
}

#[test]
fn bytecode_that_the_kernel_would_refuse_chooses_nothing() {
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..20_000 {
        let code: Vec<u8> = (0..random.usize(0..40))
            .map(|_| if random.bool() { random.u8(..13) } else { random.u8(..) })
            .collect();
        let is_empty = code.is_empty();
        let chosen = Chosen { filter: Filter::new(code), ..Chosen::default() };
        let mut table = Table::new(chosen);
        table.take(&Made::new(1).bytes(), 0).unwrap();
        assert!(!is_empty || table.totals().sockets == 1); // parsing terminates, whatever the bytes
    }
    for code in [vec![1, 0, 0, 0], vec![99, 4, 4, 0], vec![2, 8, 12, 0], vec![1, 4, 1, 0]] {
        let mut table = Table::new(Chosen { filter: Filter::new(code), ..Chosen::default() });
        table.take(&Made::new(1).bytes(), 0).unwrap();
        assert_eq!(table.totals().sockets, 0);
    }
}

#[test]
fn a_port_that_is_used_again_is_another_socket() {
    let mut table = Table::default();
    let mut old = Made::new(1);
    old.u64(168, 50 * SECOND_US).u64(120, 1 << 40);
    table.take(&old.bytes(), 0).unwrap();
    table.end_round();
    // the same addresses and ports, and counters that begin again
    table.take(&Made::new(2).bytes(), SECOND_US).unwrap();
    table.end_round();
    table.take(&made(|s| s.cookie = 2).bytes(), 2 * SECOND_US).unwrap();
    let found = rows(&mut table);
    assert_eq!((found[0].0, found[0].2, found.len()), (2, SECOND_US, 1));
    assert_eq!(table.totals().acked_bytes, 1_000_000);
    assert_eq!(table.totals().sockets, 1);
}

#[test]
fn those_that_lost_most_time_come_first() {
    let mut table = Table::default();
    for second in 0..2 {
        for cookie in 1..=9 {
            let mut one = Made::new(cookie);
            one.u64(168, second * cookie * 100_000).u64(120, second).u32(24, 10).u32(144, 9000);
            table.take(&one.bytes(), second * SECOND_US).unwrap();
        }
    }
    let mut found = Vec::new();
    table.rows(3, |row| found.push((row.cookie, row.lost_us)));
    assert_eq!(found, [(9, 900_000), (8, 800_000), (7, 700_000)]);
}

#[test]
fn users_and_processes_are_chosen() {
    let mut table = Table::new(Chosen { uid: Some(7), inodes: Some([70].into()), ..Chosen::default() });
    for (cookie, uid, inode) in [(1, 7, 70), (2, 8, 70), (3, 7, 71)] {
        let mut one = Made::new(cookie);
        (one.uid, one.inode) = (uid, inode);
        table.take(&one.bytes(), 0).unwrap();
    }
    assert_eq!(table.totals().sockets, 1);
}

#[test]
fn older_kernels_have_fewer_counters() {
    for length in 0..TCP_INFO {
        let mut table = Table::default();
        for second in 0..2 {
            let mut one = made(|s| {
                s.u64(176, SECOND_US);
            });
            if second == 0 {
                one = Made::new(1);
            }
            one.info.truncate(length);
            table.take(&one.bytes(), second * SECOND_US).unwrap();
        }
        for (_, limit, interval_us, shares) in rows(&mut table) {
            assert_eq!(shares.values().sum::<u64>(), interval_us);
            // bytes_acked came with 4.1, the account of time with 4.10
            assert!(limit == Limit::Undecided || length >= 176, "{limit:?} by {length} bytes");
        }
    }
}

#[test]
fn the_end_and_a_refusal_are_told_apart_from_damage() {
    let mut table = Table::default();
    assert_eq!(table.take(&message(3, &[0; 4]), 0), Ok(Answer::Done));
    assert_eq!(table.take(&message(2, &(-2i32).to_ne_bytes()), 0), Ok(Answer::Refused(2)));
    assert_eq!(table.take(&message(1, &[]), 0), Ok(Answer::More));
    assert_eq!(table.take(&message(18, &[0; 71]), 0), Err(Damaged));
    assert_eq!(table.take(&message(256, &[0; 15]), 0), Err(Damaged));
    assert_eq!(table.take(&Made::new(1).bytes()[..99], 0), Err(Damaged));
    assert_eq!(table.take(&[1, 2, 3], 0), Err(Damaged));
}

#[test]
fn no_bytes_bring_it_down() {
    let mut random = fastrand::Rng::with_seed(2);
    let whole = Made::new(1).bytes();
    let mut table = Table::default();
    for round in 0..50_000 {
        let mut bytes = [whole.clone(), idle(1, (0, 0)), whole.clone()].concat();
        for _ in 0..random.usize(1..6) {
            let at = if random.bool() { random.usize(..80) } else { random.usize(..bytes.len()) };
            bytes[at] = random.u8(..);
        }
        bytes.truncate(random.usize(..=bytes.len()));
        let _ = table.take(&bytes, round * 1000);
        if round % 100 == 0 {
            table.end_round();
            rows(&mut table);
        }
    }
}
