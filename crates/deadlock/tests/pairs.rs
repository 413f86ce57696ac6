// SPDX-License-Identifier: MIT
//! The published pairs, and properties that hold for all of them.

use ackwise_core::PolicyChoice;
use ackwise_deadlock::{judge, Answer, Call, Nagle, Pair, Socket, StallClass};
use ackwise_link as _;

const TABLE: &str = include_str!("../../../experiments/ackwise_experiments/reference/a3_table_15_1.csv");

fn pair(send_kib: u64, recv_kib: u64, policy: &str) -> Pair {
    Pair {
        mss_bytes: 9148,
        send_buffer_bytes: send_kib << 10,
        recv_buffer_bytes: recv_kib << 10,
        nagle: Nagle::Bsd43,
        socket: Socket::Bsd43,
        write_bytes: 0,
        script: Vec::new(),
        policy: PolicyChoice::new(policy),
        timestamps: true,
        rtt_ns: 1_000_000,
        rate_bps: 100_000_000,
        header_bytes: 40,
        transfer_bytes: 0,
        without: Vec::new(),
    }
}

fn answer(pair: &Pair) -> Answer {
    judge(pair).unwrap().answer
}

/// Cells of table 15.1: (send buffer KiB, receive buffer KiB, deadlock).
fn cells() -> Vec<(u64, u64, bool)> {
    let rows = TABLE.lines().filter(|l| l.starts_with(|c: char| c.is_ascii_digit()));
    rows.map(|row| {
        let f: Vec<&str> = row.split(',').collect();
        (f[0].parse().unwrap(), f[1].parse().unwrap(), f[3] == "1")
    })
    .collect()
}

#[test]
// [S5.1] [S5.2]
fn the_published_cells_come_out() {
    let cells = cells();
    assert_eq!(cells.len(), 64);
    for (s, r, deadlock) in cells {
        assert_eq!(answer(&pair(s, r, "bsd")) == Answer::Yes, deadlock, "{s}/{r}");
    }
}

#[test]
// [S5.1] [S5.2]
fn the_classes_that_the_source_names_come_out() {
    let class = |s, r| judge(&pair(s, r, "bsd")).unwrap().class;
    assert_eq!(class(4, 16), Some(StallClass::I));
    assert_eq!(class(8, 16), Some(StallClass::II));
    assert_eq!(class(16, 40), Some(StallClass::II));
    for (s, r) in [(16, 24), (16, 32), (24, 48), (24, 52)] {
        assert_eq!(class(s, r), Some(StallClass::III), "{s}/{r}");
    }
}

#[test]
fn who_acknowledges_each_segment_never_waits() {
    for (s, r, _) in cells() {
        for nagle in [Nagle::Bsd43, Nagle::Minshall, Nagle::Off] {
            let p = Pair { nagle, ..pair(s, r, "every") };
            assert_eq!(answer(&p), Answer::Never, "{s}/{r} {nagle:?}");
        }
    }
}

#[test]
fn the_source_s_cure_ends_it_in_each_cell() {
    for (s, r, _) in cells() {
        for policy in ["a3", "a3fewer", "csa3"] {
            let answer = answer(&pair(s, r, policy));
            assert!(matches!(answer, Answer::Never | Answer::AtStart), "{policy} {s}/{r}: {answer:?}");
        }
    }
}

#[test]
fn three_segments_and_a_window_for_them_are_enough() {
    for mss_bytes in [536, 1460, 4096, 9148] {
        for extra in [0, 1, 511, 1023, 1024, 5000] {
            // A last cluster may stay empty.
            let s = 3 * u64::from(mss_bytes) + 1023 + extra;
            for r in [4, 8, 16] {
                let p = Pair {
                    mss_bytes,
                    send_buffer_bytes: s,
                    recv_buffer_bytes: r * u64::from(mss_bytes),
                    ..pair(0, 0, "bsd")
                };
                assert_eq!(answer(&p), Answer::Never, "{mss_bytes} {s} {r}");
            }
        }
    }
}

#[test]
fn without_nagle_s_rule_no_short_segment_waits() {
    for (s, r, _) in cells() {
        let p = Pair { nagle: Nagle::Off, ..pair(s, r, "bsd") };
        let verdict = judge(&p).unwrap();
        // The sender has nothing left to send: its buffer is full.
        if let Some(stall) = verdict.stall {
            assert_eq!((stall.held_bytes, stall.class), (0, StallClass::I), "{s}/{r}");
        }
    }
}

#[test]
fn a_pair_that_cannot_be_is_refused() {
    let refused = |p: Pair, what: &str| {
        let said = judge(&p).unwrap_err();
        assert!(said.contains(what) && said.contains("give"), "{said}");
    };
    refused(Pair { mss_bytes: 3, ..pair(4, 4, "bsd") }, "mss_bytes");
    refused(pair(0, 4, "bsd"), "send_buffer_bytes");
    refused(Pair { rtt_ns: 0, ..pair(4, 4, "bsd") }, "rtt_ns");
    assert!(judge(&pair(4, 4, "bds")).is_err());
}

/// Two hosts as Linux ships them, and what the client does in each turn.
fn turns(script: &[Call]) -> Pair {
    Pair {
        mss_bytes: 1448,
        send_buffer_bytes: 2_500_000,
        recv_buffer_bytes: 131_072,
        nagle: Nagle::Minshall,
        socket: Socket::Linux,
        script: script.to_vec(),
        ..pair(1, 1, "linux")
    }
}

#[test]
fn write_write_read_waits_for_the_delayed_ack() {
    use Call::{Read, Write};
    let stalls = [vec![Write(100), Write(100), Read(1)], vec![Write(100), Write(1348), Read(100_000)]];
    for script in stalls {
        let verdict = judge(&turns(&script)).unwrap();
        assert_eq!(verdict.answer, Answer::Yes, "{script:?}");
        assert_eq!(verdict.class, Some(StallClass::Request));
        // tcp_delack_min: in each turn the ACK waits for an answer that does not come
        assert_eq!((verdict.shortest_ns, verdict.longest_ns), (40_000_000, 40_000_000));
        let turn: u64 = script.iter().map(|c| if let Write(n) = c { *n } else { 0 }).sum();
        assert_eq!(verdict.bytes_per_stall, turn as f64);
        assert_eq!(judge(&Pair { nagle: Nagle::Off, ..turns(&script) }).unwrap().answer, Answer::Never);
    }
    // one write, or an answer to each, or a full segment first, which Minshall's rule lets pass
    for script in [
        vec![Write(200), Read(1)],
        vec![Write(100), Read(1), Write(100), Read(1)],
        vec![Write(1448), Write(100), Read(1)],
    ] {
        assert_eq!(judge(&turns(&script)).unwrap().answer, Answer::Never, "{script:?}");
    }
}
