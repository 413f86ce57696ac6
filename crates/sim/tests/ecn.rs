// SPDX-License-Identifier: MIT
//! ECN from end to end: the packets on the wire, compared with the clauses of RFC 3168. The path is
//! the ruler's (see `scenes`), with an AQM before the data.

mod scenes;

use ackwise_link as _;
use ackwise_sim::result::RunResult;
use ackwise_sim::run_tapped;
use ackwise_sim::scenario::Scenario;
use ackwise_sim::tap::{Ecn, Opened, Passed, Place, Tap};
use scenes::{group, lay_over, ruler, run, text, MS, MSS, S};
use serde_json::{json, to_string, Value};

/// One packet at one place.
#[derive(Clone, Copy, Debug)]
struct Seen {
    time_ns: u64,
    place: Place,
    down: bool,
    syn: bool,
    seq: u64,
    bytes: u32,
    ecn: Ecn,
    ece: bool,
    cwr: bool,
}

#[derive(Default)]
struct All(Vec<Seen>);

impl Tap for All {
    fn opened(&mut self, _connection: &Opened) {}
    fn passed(&mut self, p: &Passed) {
        self.0.push(Seen {
            time_ns: p.time_ns,
            place: p.place,
            down: p.down,
            syn: p.syn,
            seq: p.seq,
            bytes: p.payload_bytes,
            ecn: p.ecn,
            ece: p.ece,
            cwr: p.cwr,
        });
    }
}

fn watched(scenario: &Scenario) -> (RunResult, Vec<Seen>) {
    let mut all = All::default();
    let result = run_tapped(scenario, None, Some(&mut all)).unwrap();
    (result, all.0)
}

fn linux(over: Value) -> Value {
    let mut g = group(json!({
        "handshake": true,
        "sender": { "recovery": "sack", "min_rto_ns": 200 * MS, "tail_loss_probe": true },
    }));
    lay_over(&mut g, &over);
    g
}

fn with_ecn(over: Value, g: Value) -> Scenario {
    let mut path = json!({ "ecn": true, "duration_ns": 20 * S, "down": { "discipline": "codel" } });
    lay_over(&mut path, &over);
    ruler(path, &[g])
}

#[test]
fn a_syn_offers_ecn_and_its_answer_accepts_it() {
    // RFC 3168, 6.1.1: ECE and CWR; ECE alone. 6.1.1: neither can be marked.
    let (_, seen) = watched(&with_ecn(json!({}), linux(json!({}))));
    let flags = |down| {
        let syn = seen.iter().find(|p| p.syn && p.down == down).expect("a SYN");
        (syn.ece, syn.cwr, syn.ecn)
    };
    assert_eq!(flags(false), (true, true, Ecn::NotEct));
    assert_eq!(flags(true), (true, false, Ecn::NotEct));
    let (_, plain) = watched(&with_ecn(json!({ "ecn": false }), linux(json!({}))));
    assert!(plain.iter().all(|p| p.ecn == Ecn::NotEct && !p.ece && !p.cwr));
}

#[test]
fn an_offer_that_is_lost_is_not_repeated() {
    // RFC 3168, 6.1.1.1. The first SYN is lost, so the connection is one without ECN.
    let lost = json!({ "up": { "outages": [{ "start_ns": 0, "length_ns": MS }] } });
    let (result, seen) = watched(&with_ecn(lost, linux(json!({}))));
    let offers: Vec<_> =
        seen.iter().filter(|p| p.syn && p.place == Place::Client && !p.down).map(|p| p.ece).collect();
    assert_eq!(offers, [true, false]);
    assert!(seen.iter().all(|p| p.ecn == Ecn::NotEct));
    assert!(result.groups[0].delivered_bytes > 0);
    // The SYN-ACK is lost: the server has the offer, and the second SYN does not take it back.
    let lost = json!({ "down": { "outages": [{ "start_ns": 0, "length_ns": 21 * MS }] } });
    let (_, seen) = watched(&with_ecn(lost, linux(json!({}))));
    assert!(seen.iter().any(|p| p.ecn == Ecn::Ect), "agreed");
}

#[test]
fn hosts_of_published_sources_do_not_negotiate_it() {
    for sender in [json!({ "recovery": "newreno" }), json!({ "socket": "bsd43" })] {
        let run_with = |ecn: bool| {
            let path = json!({ "ecn": ecn, "duration_ns": 2 * S });
            to_string(&run(&with_ecn(path, linux(json!({ "sender": sender }))))).unwrap()
        };
        assert_eq!(run_with(true), run_with(false));
    }
}

#[test]
fn only_data_sent_for_the_first_time_can_be_marked() {
    // RFC 3168, 6.1.4: no pure ACK; 6.1.5: no retransmission.
    let lossy = json!({ "down": { "loss_ppm": 10_000 }, "up": { "loss_ppm": 10_000 } });
    let scenario = with_ecn(lossy, linux(json!({})));
    let (result, seen) = watched(&scenario);
    assert!(result.groups[0].retransmitted_segments > 10);
    let mut end = 0;
    for p in seen.iter().filter(|p| p.place == Place::Server && p.down && !p.syn) {
        let is_new = p.seq >= end && p.bytes > 0;
        assert_eq!(p.ecn == Ecn::Ect, is_new, "{p:?} {}", text(&scenario));
        end = end.max(p.seq + u64::from(p.bytes));
    }
    assert!(end > 1000 * MSS);
    assert!(seen.iter().filter(|p| !p.down).all(|p| p.ecn == Ecn::NotEct));
}

/// Reno, CUBIC and BBR through each AQM that marks.
fn marked_paths() -> Vec<Scenario> {
    let mut all = Vec::new();
    for discipline in ["codel", "fq-codel", "cake"] {
        for control in ["reno", "cubic", "bbr"] {
            let path = json!({ "down": { "discipline": discipline } });
            let g = json!({ "sender": { "congestion_control": control }, "policy": { "name": "linux", "host": null } });
            all.push(with_ecn(path, linux(g)));
        }
    }
    all
}

#[test]
fn each_mark_is_echoed_until_cwr_arrives() {
    // RFC 3168, 6.1.3: ECE from the first CE on; after CWR only if there is another CE, as seen on
    // the wire at the receiving host.
    for scenario in marked_paths() {
        let (result, seen) = watched(&scenario);
        let mut echoes = false;
        let mut with_ece = 0;
        for p in seen.iter().filter(|p| p.place == Place::Client && !p.syn) {
            if p.down {
                echoes = echoes && !p.cwr || p.ecn == Ecn::Ce;
            } else {
                assert_eq!(p.ece, echoes, "{p:?} {}", text(&scenario));
                with_ece += u64::from(p.ece);
            }
        }
        assert!(with_ece > 0, "{}", text(&scenario));
        let came = seen.iter().filter(|p| p.place == Place::Client && p.ecn == Ecn::Ce).count() as u64;
        assert!(came > 0 && came <= result.down.marked && result.down.marked <= came + 20);
    }
}

#[test]
fn a_mark_costs_no_retransmission() {
    for scenario in marked_paths() {
        let (marks, _) = watched(&scenario);
        assert_eq!(marks.down.dropped_queue, 0);
        assert_eq!(marks.groups[0].retransmitted_segments, 0, "{}", text(&scenario));
    }
}

#[test]
fn the_window_is_reduced_at_most_once_in_a_window_of_data() {
    // RFC 3168, 6.1.2: the next CWR comes at least one RTT, 40 ms, later, and only while ACKs with
    // ECE arrive; the first new segment after an ACK with ECE has it.
    for scenario in marked_paths() {
        let (_, seen) = watched(&scenario);
        let at_server = seen.iter().filter(|p| p.place == Place::Server && !p.syn);
        let mut last_ns = None;
        let mut pending = false;
        let mut count = 0;
        for p in at_server {
            if !p.down {
                pending |= p.ece;
                continue;
            }
            if p.cwr {
                assert!(pending, "{p:?} without an echo, {}", text(&scenario));
                assert!(last_ns.map_or(true, |at| p.time_ns >= at + 40 * MS), "{p:?} {}", text(&scenario));
                last_ns = Some(p.time_ns);
                count += 1;
                pending = false;
            }
        }
        assert!(count > 3, "{count} {}", text(&scenario));
    }
}
