// SPDX-License-Identifier: MIT
//! Compares our figures with tshark's and tcptrace's on the same captures: every figure with the
//! same meaning must be equal, and every difference is listed in a table with its reason.

use ackwise_capture::tcp_flag::{ACK, AE, CWR, ECE, SYN};
use ackwise_capture::write::{PcapStyle, PcapWriter, TcpPacket};
use ackwise_capture::{link, ReadOptions, Source};
use ackwise_diagnose::{diagnose, Connection, Effort};
use ackwise_link as _;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A figure of one sender of one connection: connection, endpoint, name.
type Figures = BTreeMap<(usize, usize, &'static str), i64>;

/// A figure that differs, summed over all senders of a capture.
struct Difference {
    capture: &'static str,
    figure: &'static str,
    ours: i64,
    theirs: i64,
    why: &'static str,
}

const fn differs(
    capture: &'static str,
    figure: &'static str,
    ours: i64,
    theirs: i64,
    why: &'static str,
) -> Difference {
    Difference { capture, figure, ours, theirs, why }
}

/// Karn's rule, extended: while the receiver has a hole, its ACKs answer other packets than they
/// acknowledge. tcptrace excludes packets that it saw twice, tshark excludes none.
const KARN: &str = "no sample of the RTT during a recovery";
const SACKED_WINDOW: &str = "a report of SACK is a duplicate ACK whatever the window (RFC 6675, 2)";
/// `kernel.rs` shows how many the kernel retransmitted.
const TOO_SOON: &str = "tshark takes what comes within an RTT of the hole for out of order";
const EMPTY_PROBE: &str = "the window was closed: this probes it, with or without payload";
const PROBE_ANSWERS: &str = "the answer to a probe is no duplicate ACK: nothing is in flight";
const COPIES: &str = "26 packets that the network duplicated are not counted as sent";
const FINS: &str = "a FIN is no duplicate ACK (RFC 5681, 2), nor is an answer while nothing is in flight";
const NOTHING_IN_FLIGHT: &str = "answers a SYN or FIN that came twice: nothing is in flight (RFC 5681, 2)";
const DSACK: &str = "the window moved, and a D-SACK block is there: a duplicate ACK";
/// In connections whose SYN is not answered, or answered by a reset.
const UNFINISHED: &str = "the window of a SYN that leads to no connection is none";
const REFUSED: &str = "a reset in answer to a SYN is no sample of a connection's RTT";
const ZERO: &str = "a sample of 0, from packets of one clock tick, counts; the tools take it for none";
const SILENT: &str = "tshark has it on packets behind the handshake, and this sender sent none";
/// `kernel.rs` compares our figures with the kernel's own counts.
const SOON_ONLY: &str =
    "tshark calls a retransmission fast within 20 ms of a duplicate ACK, and gives others an RTO";
const SPURIOUS: &str = "tshark gives no RTO to what was acknowledged before";
const RESET: &str = "the number in a reset acknowledges nothing";
const NUMBERED: &str = "IP identifications show that a first copy was lost before the capture point";
const FIN_NUMBER: &str = "a FIN takes a number; tshark counts payload";
const FLIGHT_SIZE: &str =
    "FlightSize is what no ACK's number covers (RFC 5681, 2); tshark leaves out what SACK reports, and holes";

#[rustfmt::skip]
const DIFFERENCES: &[Difference] = &[
    differs("bulk", "tcptrace RTT samples", 142, 180, KARN),
    differs("bulk", "tcptrace ack pkts sent", 819, 820, RESET),
    differs("bulk", "tcptrace max win adv", 617472, 681712, UNFINISHED),
    differs("bulk", "tcptrace triple dupacks", 4, 3, SACKED_WINDOW),
    differs("bulk", "tshark acks_frame", 142, 206, KARN),
    differs("bulk", "tshark fast_retransmission", 63, 3, SOON_ONLY),
    differs("bulk", "tshark largest ack_rtt", 1521, 197671, KARN),
    differs("bulk", "tshark rto", 0, 60, SOON_ONLY),
    differs("bulk", "tshark smallest ack_rtt", 24, 52, REFUSED),
    differs("bulk", "tshark smallest initial_rtt", 96, 124, REFUSED),
    differs("bulk", "tshark third duplicate_ack", 4, 3, SACKED_WINDOW),
    differs("disorder-client", "tcptrace RTT samples", 1505, 1497, KARN),
    differs("disorder-client", "tcptrace ack pkts sent", 4169, 4195, COPIES),
    differs("disorder-client", "tcptrace actual data bytes", 3425968, 3463616, COPIES),
    differs("disorder-client", "tcptrace actual data pkts", 2366, 2392, COPIES),
    differs("disorder-client", "tcptrace pushed data pkts", 653, 660, COPIES),
    differs("disorder-client", "tcptrace rexmt data pkts", 0, 26, COPIES),
    differs("disorder-client", "tshark acks_frame", 1505, 1561, KARN),
    differs("disorder-client", "tshark fast_retransmission", 4, 19, COPIES),
    differs("disorder-client", "tshark largest ack_rtt", 42497, 152297, KARN),
    differs("disorder-client", "tshark out_of_order", 45, 30, COPIES),
    differs("disorder-client", "tshark retransmission or out_of_order", 49, 75, COPIES),
    differs("disorder-client", "tshark retransmission", 4, 45, COPIES),
    differs("disorder-client", "tshark rto", 0, 10, COPIES),
    differs("disorder-client", "tshark smallest ack_rtt", 40097, 40098, ZERO),
    differs("disorder-client", "tshark spurious_retransmission", 0, 16, COPIES),
    differs("disorder-server", "tcptrace RTT samples", 1497, 1536, KARN),
    differs("disorder-server", "tshark acks_frame", 1497, 1540, KARN),
    differs("disorder-server", "tshark fast_retransmission", 4, 1, SOON_ONLY),
    differs("disorder-server", "tshark largest ack_rtt", 142808, 256815, KARN),
    differs("disorder-server", "tshark out_of_order", 0, 3, TOO_SOON),
    differs("disorder-server", "tshark retransmission", 4, 1, TOO_SOON),
    differs("lossy-both-ways-client", "tcptrace RTT min", 1200, 1439, ZERO),
    differs("lossy-both-ways-client", "tshark acks_frame", 2534, 2539, KARN),
    differs("lossy-both-ways-client", "tshark smallest ack_rtt", 120038, 120039, ZERO),
    differs("lossy-both-ways-server", "tshark acks_frame", 2533, 2538, KARN),
    differs("lossy-both-ways-server", "tshark smallest ack_rtt", 120036, 120037, ZERO),
    differs("lossy-bulk-client", "tcptrace RTT samples", 76, 79, KARN),
    differs("lossy-bulk-client", "tcptrace duplicate acks", 52, 53, NOTHING_IN_FLIGHT),
    differs("lossy-bulk-client", "tcptrace triple dupacks", 13, 3, SACKED_WINDOW),
    differs("lossy-bulk-client", "tshark acks_frame", 76, 96, KARN),
    differs("lossy-bulk-client", "tshark duplicate_ack", 52, 53, NOTHING_IN_FLIGHT),
    differs("lossy-bulk-client", "tshark fast_retransmission", 21, 2, SOON_ONLY),
    differs("lossy-bulk-client", "tshark largest ack_rtt", 60096, 176594, KARN),
    differs("lossy-bulk-client", "tshark out_of_order", 0, 18, TOO_SOON),
    differs("lossy-bulk-client", "tshark retransmission", 23, 5, TOO_SOON),
    differs("lossy-bulk-client", "tshark rto", 1, 2, SOON_ONLY),
    differs("lossy-bulk-client", "tshark smallest ack_rtt", 60096, 63796, ZERO),
    differs("lossy-bulk-client", "tshark third duplicate_ack", 13, 3, SACKED_WINDOW),
    differs("lossy-bulk-server", "tcptrace triple dupacks", 12, 3, SACKED_WINDOW),
    differs("lossy-bulk-server", "tshark acks_frame", 72, 91, KARN),
    differs("lossy-bulk-server", "tshark fast_retransmission", 26, 1, SOON_ONLY),
    differs("lossy-bulk-server", "tshark largest ack_rtt", 72044, 1065886, KARN),
    differs("lossy-bulk-server", "tshark out_of_order", 0, 25, TOO_SOON),
    differs("lossy-bulk-server", "tshark retransmission", 28, 3, TOO_SOON),
    differs("lossy-bulk-server", "tshark rto", 1, 2, SOON_ONLY),
    differs("lossy-bulk-server", "tshark third duplicate_ack", 12, 3, SACKED_WINDOW),
    differs("lossy-requests-client", "tcptrace RTT min", 601, 1054, ZERO),
    differs("lossy-requests-client", "tcptrace outoforder pkts", 16, 14, NUMBERED),
    differs("lossy-requests-client", "tshark acks_frame", 85, 101, KARN),
    differs("lossy-requests-client", "tshark fast_retransmission", 12, 2, SOON_ONLY),
    differs("lossy-requests-client", "tshark largest ack_rtt", 111530, 1169105, KARN),
    differs("lossy-requests-client", "tshark out_of_order", 0, 6, TOO_SOON),
    differs("lossy-requests-client", "tshark retransmission or out_of_order", 18, 16, NUMBERED),
    differs("lossy-requests-client", "tshark retransmission", 18, 10, TOO_SOON),
    differs("lossy-requests-client", "tshark rto", 4, 8, SOON_ONLY),
    differs("lossy-requests-client", "tshark smallest ack_rtt", 60096, 60097, ZERO),
    differs("lossy-requests-server", "tcptrace RTT avg", 695, 694, KARN),
    differs("lossy-requests-server", "tcptrace RTT samples", 84, 85, KARN),
    differs("lossy-requests-server", "tshark acks_frame", 84, 100, KARN),
    differs("lossy-requests-server", "tshark fast_retransmission", 13, 2, SOON_ONLY),
    differs("lossy-requests-server", "tshark largest ack_rtt", 112530, 1152268, KARN),
    differs("lossy-requests-server", "tshark out_of_order", 0, 6, TOO_SOON),
    differs("lossy-requests-server", "tshark retransmission", 19, 13, TOO_SOON),
    differs("lossy-requests-server", "tshark rto", 6, 11, SOON_ONLY),
    differs("lossy-requests-server", "tshark smallest ack_rtt", 60292, 60293, ZERO),
    differs("lossy-short-client", "tcptrace RTT avg", 20524, 20523, KARN),
    differs("lossy-short-client", "tcptrace RTT samples", 470, 472, KARN),
    differs("lossy-short-client", "tcptrace duplicate acks", 259, 267, FINS),
    differs("lossy-short-client", "tcptrace max win adv", 5036928, 5230568, UNFINISHED),
    differs("lossy-short-client", "tcptrace outoforder pkts", 50, 49, NUMBERED),
    differs("lossy-short-client", "tshark acks_frame", 470, 524, KARN),
    differs("lossy-short-client", "tshark duplicate_ack", 259, 260, NOTHING_IN_FLIGHT),
    differs("lossy-short-client", "tshark fast_retransmission", 47, 16, SOON_ONLY),
    differs("lossy-short-client", "tshark largest ack_rtt", 2061432, 6882685, KARN),
    differs("lossy-short-client", "tshark out_of_order", 0, 24, TOO_SOON),
    differs("lossy-short-client", "tshark retransmission or out_of_order", 57, 56, NUMBERED),
    differs("lossy-short-client", "tshark retransmission", 57, 32, TOO_SOON),
    differs("lossy-short-client", "tshark rto", 6, 16, SOON_ONLY),
    differs("lossy-short-client", "tshark smallest ack_rtt", 2043125, 3116966, ZERO),
    differs("lossy-short-client", "tshark smallest initial_rtt", 4238154, 4178058, SILENT),
    differs("lossy-short-server", "tcptrace RTT avg", 21905, 21903, KARN),
    differs("lossy-short-server", "tcptrace RTT samples", 450, 451, KARN),
    differs("lossy-short-server", "tcptrace duplicate acks", 242, 251, FINS),
    differs("lossy-short-server", "tcptrace max win adv", 4972672, 5231472, UNFINISHED),
    differs("lossy-short-server", "tcptrace triple dupacks", 25, 24, SACKED_WINDOW),
    differs("lossy-short-server", "tshark acks_frame", 450, 505, KARN),
    differs("lossy-short-server", "tshark duplicate_ack", 242, 245, NOTHING_IN_FLIGHT),
    differs("lossy-short-server", "tshark fast_retransmission", 52, 14, SOON_ONLY),
    differs("lossy-short-server", "tshark largest ack_rtt", 2354321, 5531981, KARN),
    differs("lossy-short-server", "tshark out_of_order", 0, 25, TOO_SOON),
    differs("lossy-short-server", "tshark retransmission", 59, 34, TOO_SOON),
    differs("lossy-short-server", "tshark rto", 6, 20, SOON_ONLY),
    differs("lossy-short-server", "tshark third duplicate_ack", 25, 24, SACKED_WINDOW),
    differs("request-response", "tcptrace duplicate acks", 0, 1, FINS),
    differs("slow-reader-client", "tcptrace RTT avg", 198, 182, KARN),
    differs("slow-reader-client", "tcptrace RTT min", 100, 130, ZERO),
    differs("slow-reader-client", "tcptrace RTT samples", 83, 99, KARN),
    differs("slow-reader-client", "tshark acks_frame", 83, 100, KARN),
    differs("slow-reader-client", "tshark fast_retransmission", 17, 1, SOON_ONLY),
    differs("slow-reader-client", "tshark out_of_order", 0, 16, TOO_SOON),
    differs("slow-reader-client", "tshark retransmission", 17, 1, TOO_SOON),
    differs("slow-reader-client", "tshark smallest ack_rtt", 10010, 12731, ZERO),
    differs("slow-reader-server", "tshark acks_frame", 83, 100, KARN),
    differs("slow-reader-server", "tshark fast_retransmission", 17, 0, SOON_ONLY),
    differs("slow-reader-server", "tshark rto", 0, 17, SOON_ONLY),
    differs("stream", "tcptrace duplicate acks", 0, 1, FINS),
    differs("stuck-reader-client", "tcptrace RTT min", 100, 425, ZERO),
    differs("stuck-reader-client", "tcptrace duplicate acks", 2, 27, PROBE_ANSWERS),
    differs("stuck-reader-client", "tcptrace rexmt data pkts", 2, 1, EMPTY_PROBE),
    differs("stuck-reader-client", "tcptrace triple dupacks", 0, 6, PROBE_ANSWERS),
    differs("stuck-reader-client", "tcptrace zwnd probe pkts", 13, 1, EMPTY_PROBE),
    differs("stuck-reader-client", "tshark acks_frame", 34, 36, KARN),
    differs("stuck-reader-client", "tshark duplicate_ack", 2, 1, DSACK),
    differs("stuck-reader-client", "tshark keep_alive", 0, 13, EMPTY_PROBE),
    differs("stuck-reader-client", "tshark rto", 2, 0, SPURIOUS),
    differs("stuck-reader-client", "tshark smallest ack_rtt", 10010, 40403, ZERO),
    differs("stuck-reader-client", "tshark zero_window_probe", 13, 0, EMPTY_PROBE),
    differs("stuck-reader-client", "tshark zero_window_probe_ack", 12, 0, EMPTY_PROBE),
    differs("stuck-reader-server", "tcptrace duplicate acks", 2, 27, PROBE_ANSWERS),
    differs("stuck-reader-server", "tcptrace triple dupacks", 0, 6, PROBE_ANSWERS),
    differs("stuck-reader-server", "tcptrace zwnd probe pkts", 13, 0, EMPTY_PROBE),
    differs("stuck-reader-server", "tshark acks_frame", 32, 34, KARN),
    differs("stuck-reader-server", "tshark duplicate_ack", 2, 1, DSACK),
    differs("stuck-reader-server", "tshark keep_alive", 0, 13, EMPTY_PROBE),
    differs("stuck-reader-server", "tshark zero_window_probe", 13, 0, EMPTY_PROBE),
    differs("stuck-reader-server", "tshark zero_window_probe_ack", 12, 0, EMPTY_PROBE),
    differs("bulk", "tshark largest bytes_in_flight", 196929, 129984, FLIGHT_SIZE),
    differs("stream", "tshark largest bytes_in_flight", 4345, 4344, FIN_NUMBER),
    differs("disorder-client", "tshark largest bytes_in_flight", 186792, 94120, FLIGHT_SIZE),
    differs("disorder-server", "tshark largest bytes_in_flight", 304080, 212856, FLIGHT_SIZE),
    differs("lossy-both-ways-client", "tshark largest bytes_in_flight", 262140, 261390, FLIGHT_SIZE),
    differs("lossy-both-ways-server", "tshark largest bytes_in_flight", 262140, 222294, FLIGHT_SIZE),
    differs("lossy-bulk-client", "tshark largest bytes_in_flight", 70952, 8688, FLIGHT_SIZE),
    differs("lossy-bulk-server", "tshark largest bytes_in_flight", 76744, 41992, FLIGHT_SIZE),
    differs("lossy-requests-client", "tshark largest bytes_in_flight", 10200, 3096, FLIGHT_SIZE),
    differs("lossy-short-client", "tshark largest bytes_in_flight", 481498, 78192, FLIGHT_SIZE),
    differs("lossy-short-server", "tshark largest bytes_in_flight", 785351, 701872, FLIGHT_SIZE),
];

fn captures() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for folder in ["tests/captures", "../../python/ackwise/captures"] {
        for entry in std::fs::read_dir(root.join(folder)).expect("the folder is kept") {
            let path = entry.expect("readable").path();
            if path.extension().is_some_and(|e| e == "pcap" || e == "gz") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn name_of(capture: &Path) -> String {
    let name = capture.file_name().expect("a file").to_string_lossy();
    name.trim_end_matches(".gz").trim_end_matches(".pcap").to_owned()
}

/// The connections of a capture, with times since 1970.
fn connections(capture: &Path) -> Vec<Connection> {
    let found =
        diagnose([Source::file(capture)], &ReadOptions::default(), &Effort::default()).expect("readable");
    let start_ns = found.notes.start_unix_ns;
    let since_1970 = |mut connection: Box<Connection>| {
        connection.start_ns += start_ns;
        connection.end_ns += start_ns;
        *connection
    };
    found.connections.into_iter().map(since_1970).collect()
}

/// RTT samples between a sender's data and its ACKs, including that of its SYN: minimum, maximum
/// and mean.
fn rtts_ns(connection: &Connection, sender: usize) -> [f64; 3] {
    let data = &connection.halves[sender].rtt.data_ns;
    // For a retransmitted SYN, nothing shows which one was answered.
    let is_once = connection.halves[sender].counts.sent.syn_retransmissions == 0;
    let shaken = connection.handshake.filter(|_| is_once);
    let syn = shaken.map(|h| [h.syn_ack_ns - h.syn_ns, h.ack_ns - h.syn_ack_ns][sender]);
    let least = data.min().into_iter().chain(syn).min().unwrap_or(0);
    let most = data.max().into_iter().chain(syn).max().unwrap_or(0);
    let samples = data.samples() + u64::from(syn.is_some());
    [least as f64, most as f64, (data.sum() + syn.unwrap_or(0)) as f64 / samples.max(1) as f64]
}

fn is_missing(tool: &str, package: &str) -> bool {
    let missing = Command::new(tool).arg("-v").output().is_err();
    if missing {
        eprintln!("skipped: {tool} is not installed (apt-get install {package})");
    }
    missing
}

fn text_of(command: &mut Command) -> String {
    let output = command.output().expect("the tool runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// tcptrace's figures for a packet's sender, computed from ours.
fn as_tcptrace(connection: &Connection, sender: usize) -> Vec<(&'static str, i64)> {
    let half = &connection.halves[sender];
    let sent = &half.counts.sent;
    let acks = &connection.halves[1 - sender].counts.acks;
    let unseen = sent.unseen_retransmissions;
    let [least, most, mean] = rtts_ns(connection, sender);
    let tenths_ms = |ns: f64| (ns / 1e5).round() as u64;
    // tcptrace counts in microseconds.
    let elapsed_us = connection.end_ns / 1000 - connection.start_ns / 1000;
    let bytes_per_s = 1e6 * sent.new_bytes as f64 / elapsed_us.max(1) as f64;
    let figures = [
        ("total packets", sent.packets + connection.repeated_packets[sender]),
        ("ack pkts sent", acks.acks),
        // Linux's probes carry no payload.
        ("pure acks sent", acks.pure + sent.keep_alives + sent.window_probes),
        ("sack pkts sent", acks.with_sack),
        ("dsack pkts sent", acks.with_dsack),
        ("max sack blks/ack", acks.most_sack_blocks.into()),
        ("unique bytes sent", sent.new_bytes),
        ("actual data pkts", sent.data_packets),
        ("actual data bytes", sent.payload_bytes),
        ("rexmt data pkts", sent.retransmissions.total() - unseen + sent.syn_retransmissions),
        ("outoforder pkts", sent.out_of_order_packets + unseen),
        ("zwnd probe pkts", sent.window_probes),
        ("pushed data pkts", sent.pushed_packets),
        ("max segm size", sent.largest_payload_bytes.into()),
        ("zero win adv", connection.halves[1 - sender].window.zero_windows),
        ("triple dupacks", half.counts.acks.triple_duplicates),
        ("duplicate acks", half.counts.acks.duplicate - half.counts.acks.duplicate_with_window),
        ("max win adv", connection.halves[1 - sender].window.window_bytes.max().unwrap_or(0)),
        ("throughput", bytes_per_s.round() as u64),
        ("RTT min", tenths_ms(least)),
        ("RTT max", tenths_ms(most)),
        ("RTT avg", tenths_ms(mean)),
        ("RTT samples", half.rtt.data_ns.samples() + u64::from(connection.handshake.is_some())),
    ];
    figures.map(|(name, figure)| (name, figure as i64)).into()
}

/// `tcptrace -l -r -W`: each line has the same label twice, once per endpoint.
fn tcptrace(capture: &Path, names: &[&'static str]) -> Figures {
    let text = text_of(Command::new("tcptrace").args(["-l", "-r", "-W", "-n"]).arg(capture));
    let mut found = Figures::new();
    let mut connection = 0;
    for line in text.lines() {
        if let Some(number) = line.strip_prefix("TCP connection ").and_then(|n| n.strip_suffix(':')) {
            connection = number.parse().unwrap_or(0);
        }
        let Some((label, rest)) = line.trim_start().split_once(':') else { continue };
        let Some(&name) = names.iter().find(|&&n| n == label) else { continue };
        let Some((left, right)) = rest.split_once(&format!("{label}:")) else { continue };
        for (endpoint, side) in [left, right].into_iter().enumerate() {
            let figure: f64 = side.split_whitespace().next().and_then(|f| f.parse().ok()).unwrap_or(0.0);
            let unit = if ["RTT min", "RTT max", "RTT avg"].contains(&name) { 10.0 } else { 1.0 };
            found.insert((connection - 1, endpoint, name), (unit * figure).round() as i64);
        }
    }
    found
}

/// Figures not named `tcp.analysis.NAME`, or not found by its presence.
const LATE: &str = "retransmission or out_of_order";
const THIRD: &str = "third duplicate_ack";
/// Fields with values: in microseconds if they are times.
const LEAST_RTT: &str = "smallest ack_rtt";
const MOST_RTT: &str = "largest ack_rtt";
const FIRST_RTT: &str = "smallest initial_rtt";
const MOST_IN_FLIGHT: &str = "largest bytes_in_flight";

/// Marks of tshark's analysis on a sender's packets, computed from our figures.
fn as_tshark(connection: &Connection, sender: usize) -> Vec<(&'static str, i64)> {
    let sent = &connection.halves[sender].counts.sent;
    let acked = &connection.halves[1 - sender];
    let acks = &acked.counts.acks;
    // Its samples are on the ACK, so they belong to the other endpoint's data.
    let [least, most, _] = rtts_ns(connection, 1 - sender);
    let retransmissions = sent.retransmissions.total() + sent.syn_retransmissions;
    let figures = [
        (THIRD, acks.triple_duplicates),
        (LEAST_RTT, (least / 1e3).round() as u64),
        (MOST_RTT, (most / 1e3).round() as u64),
        (MOST_IN_FLIGHT, connection.halves[sender].window.flight_bytes.max().unwrap_or(0)),
        // It is on packets after the handshake.
        (FIRST_RTT, connection.handshake.map_or(0, |h| (h.rtt_ns() + 500) / 1000)),
        ("fast_retransmission", sent.retransmissions.fast),
        ("rto", sent.retransmissions.timeout + sent.retransmissions.tail_loss_probe),
        (LATE, retransmissions + sent.out_of_order_packets),
        ("retransmission", retransmissions),
        ("spurious_retransmission", sent.needless_retransmissions),
        ("out_of_order", sent.out_of_order_packets),
        ("lost_segment", sent.gaps),
        ("duplicate_ack", acks.duplicate - acks.duplicate_with_window),
        ("window_update", acks.window_updates + acks.duplicate_with_window),
        ("ack_lost_segment", acks.unseen_acks),
        ("zero_window", acked.window.zero_windows),
        ("zero_window_probe", sent.window_probes),
        ("zero_window_probe_ack", acks.window_probe_replies),
        ("keep_alive", sent.keep_alives),
        ("keep_alive_ack", acks.keep_alive_replies),
        ("window_full", connection.halves[sender].window.window_full_packets),
        ("acks_frame", acked.rtt.data_ns.samples() + u64::from(connection.handshake.is_some())),
    ];
    figures.map(|(name, figure)| (name, figure as i64)).into()
}

fn tshark(capture: &Path, names: &[&'static str], connections: &[Connection]) -> Figures {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(capture).args(["-o", "tcp.calculate_timestamps:TRUE", "-T", "fields"]);
    command.args(["-e", "tcp.stream", "-e", "ip.src", "-e", "tcp.srcport"]);
    let field_of = |name: &'static str| match name {
        LATE | THIRD => "duplicate_ack_num",
        name => name.trim_start_matches("largest ").trim_start_matches("smallest "),
    };
    // tshark outputs a field that is requested twice only once.
    let mut wanted: Vec<_> = names.iter().map(|&name| field_of(name)).collect();
    wanted.sort_unstable();
    wanted.dedup();
    command.args(wanted.iter().flat_map(|f| ["-e".to_owned(), format!("tcp.analysis.{f}")]));
    let mut found = Figures::new();
    for line in text_of(&mut command).lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let Ok(stream) = fields[0].parse::<usize>() else { continue };
        let source = format!("{}:{}", fields[1], fields[2]);
        let sender = usize::from(connections[stream].endpoints[0].to_string() != source);
        let marks = &fields[3..];
        let mark_of =
            |field| wanted.iter().zip(marks).find(|(&f, _)| f == field).map_or("", |(_, &mark)| mark);
        let is_marked = |field| !mark_of(field).is_empty();
        for &name in names {
            let mark = mark_of(field_of(name));
            let counts = match name {
                LATE => is_marked("retransmission") || is_marked("out_of_order"),
                THIRD => mark == "3",
                _ => !mark.is_empty(),
            };
            let key = (stream, sender, name);
            if let Some((which, field)) = name.split_once(' ').filter(|_| ![LATE, THIRD].contains(&name)) {
                let Ok(value) = mark.parse::<f64>() else { continue };
                let unit = if field.ends_with("rtt") { 1e6 } else { 1.0 };
                let value = (unit * value).round() as i64;
                let best = found.entry(key).or_insert(value);
                *best = if which == "largest" { value.max(*best) } else { value.min(*best) };
                continue;
            }
            *found.entry(key).or_default() += i64::from(counts);
        }
    }
    found
}

fn compare(
    tool: &str,
    ours: fn(&Connection, usize) -> Vec<(&'static str, i64)>,
    theirs: impl Fn(&Path, &[&'static str], &[Connection]) -> Figures,
) {
    let mut wrong = Vec::new();
    let mut explained = 0;
    for capture in captures() {
        let connections = connections(&capture);
        let mut found = Figures::new();
        for (n, connection) in connections.iter().enumerate() {
            for sender in [0, 1] {
                found.extend(ours(connection, sender).into_iter().map(|(k, v)| ((n, sender, k), v)));
            }
        }
        let mut names: Vec<_> = found.keys().map(|k| k.2).collect();
        names.sort_unstable();
        names.dedup();
        let wanted = theirs(&capture, &names, &connections);
        assert!(!wanted.is_empty(), "{tool} found something in {}", capture.display());
        for name in names {
            let differing =
                found.keys().filter(|k| k.2 == name && found.get(k) != Some(wanted.get(k).unwrap_or(&0)));
            let keys: Vec<_> = differing.collect();
            let sum =
                |figures: &Figures| figures.iter().filter(|(k, _)| k.2 == name).map(|(_, v)| v).sum::<i64>();
            let (ours, theirs) = (sum(&found), sum(&wanted));
            let expected = DIFFERENCES
                .iter()
                .find(|d| d.capture == name_of(&capture) && d.figure == format!("{tool} {name}"));
            match expected {
                None if keys.is_empty() => {}
                Some(d) if !keys.is_empty() && (d.ours, d.theirs) == (ours, theirs) && !d.why.is_empty() => {
                    explained += 1;
                }
                _ => wrong.push(format!(
                    "(\"{}\", \"{tool} {name}\", {ours}, {theirs}), for example {:?}: {:?}, {:?}",
                    name_of(&capture),
                    keys.first(),
                    keys.first().and_then(|k| found.get(k)),
                    keys.first().and_then(|k| wanted.get(k)),
                )),
            }
        }
    }
    assert!(wrong.is_empty(), "not explained:\n{}", wrong.join("\n"));
    let listed = DIFFERENCES.iter().filter(|d| d.figure.starts_with(tool)).count();
    assert_eq!(explained, listed, "a difference in the table is none");
}

// [S4.6]
#[test]
fn agrees_with_tcptrace() {
    if !is_missing("tcptrace", "tcptrace") {
        compare("tcptrace", as_tcptrace, |capture, names, _| tcptrace(capture, names));
    }
}

#[test]
fn agrees_with_tshark() {
    if !is_missing("tshark", "tshark") {
        compare("tshark", as_tshark, tshark);
    }
}

/// Random numbers below a given limit (Knuth's MMIX generator).
fn below(seed: u64) -> impl FnMut(u32) -> u32 {
    let mut state = seed;
    move |n| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u32 % n
    }
}

/// Transfers with Accurate ECN (RFC 9768), more than 2^24 bytes each: packets with any mark, ACKs
/// with options of both orders and all lengths, or without. In every second one the endpoint that
/// opened the connection receives.
fn accurate_ecn() -> Vec<u8> {
    let mut below = below(3);
    let style = PcapStyle { nanoseconds: true, ..PcapStyle::default() };
    let mut writer = PcapWriter::new(link::RAW, style);
    let mut now_ns = 1_700_000_000_000_000_000;
    let mut put = |packet: &TcpPacket| {
        now_ns += 1_000_000;
        writer.tcp(now_ns, packet);
    };
    let ace = |value: u32| {
        [(4, AE), (2, CWR), (1, ECE)]
            .iter()
            .fold(0, |flags, &(bit, flag)| if value & bit == 0 { flags } else { flags | flag })
    };
    for n in 0..4_u16 {
        let [a, b] = [format!("10.0.0.1:{}", 1000 + n), "10.0.0.2:80".to_owned()]
            .map(|end| end.parse::<SocketAddr>().expect("an address"));
        put(&TcpPacket::new(a, b, 99, 0, 0).flags(SYN | AE | CWR | ECE).options(&[2, 4, 0x75, 0x30]));
        let options = [2, 4, 0x75, 0x30, 172, 8, 0, 0, 1, 0, 0, 0];
        put(&TcpPacket::new(b, a, 99, 100, 0).flags(SYN | ACK | CWR).options(&options));
        put(&TcpPacket::new(a, b, 100, 100, 0).flags(ACK | CWR));
        let (from, to) = if n % 2 == 0 { (a, b) } else { (b, a) };
        let (mut seq, mut marks, mut bytes) = (100, 5, [1_u32, 0, 1]);
        for _ in 0..1200 {
            for _ in 0..1 + below(3) {
                let (ecn, payload) = (below(4), 1 + below(30_000));
                let data = TcpPacket::new(from, to, seq, 100, payload).ecn(ecn as u8);
                put(&data.flags(ACK | ace(5)));
                seq += payload;
                if let Some(counter) = [None, Some(2), Some(0), Some(1)][ecn as usize] {
                    bytes[counter] += payload;
                }
                marks += u32::from(ecn == 3);
            }
            let ack = TcpPacket::new(to, from, 100, seq, 0).flags(ACK | ace(marks));
            let kind = if below(2) == 0 { 172 } else { 174 };
            let fields = below(4) as u8;
            let mut option = vec![kind, 2 + 3 * fields];
            let counters = if kind == 172 { bytes } else { [bytes[2], bytes[1], bytes[0]] };
            counters[..fields.into()].iter().for_each(|counter| option.extend(&counter.to_be_bytes()[1..]));
            option.resize(option.len().next_multiple_of(4), 1);
            put(&ack.options(if below(5) == 0 { &[] } else { &option }));
        }
    }
    writer.into_bytes()
}

/// Counts by stream and reporting endpoint: packets marked CE, options, and bytes of ECT(0), CE and
/// ECT(1).
type Marks = BTreeMap<(usize, usize), [u64; 5]>;

/// Increases of the counters that tshark shows, from their initial values (RFC 9768, 3.2.1 and
/// 3.2.2.1).
fn marks_by_tshark(capture: &Path, connections: &[Connection]) -> Marks {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(capture).args(["-T", "fields", "-Y", "tcp.flags.ack == 1"]);
    let counters = ["ee0b", "eceb", "ee1b"].map(|name| format!("tcp.options.acc_ecn.{name}"));
    for field in ["tcp.stream", "tcp.srcport", "tcp.flags.syn", "tcp.flags.ace", "tcp.option_kind"] {
        command.args(["-e", field]);
    }
    command.args(counters.iter().flat_map(|field| ["-e", field]));
    let (mut found, mut last) = (Marks::new(), BTreeMap::new());
    for line in text_of(&mut command).lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let number = |n: usize| fields[n].parse::<u64>().ok();
        let stream: usize = fields[0].parse().expect("a stream");
        let opened = connections[stream].endpoints[0].port().to_string() == fields[1];
        let key = (stream, usize::from(!opened));
        let last = last.entry(key).or_insert([5, 1, 0, 1]);
        let sums = found.entry(key).or_default();
        sums[1] += u64::from(fields[4].split(',').any(|kind| kind == "172" || kind == "174"));
        // In the handshake the field reports how the peer's packet arrived.
        let is_first = number(2) == Some(1) || *sums == [0; 5] && opened;
        let marks = number(3).filter(|_| !is_first);
        for (n, (now, wraps)) in
            [(marks, 8), (number(5), 1 << 24), (number(6), 1 << 24), (number(7), 1 << 24)]
                .into_iter()
                .enumerate()
        {
            let Some(now) = now else { continue };
            sums[if n == 0 { 0 } else { n + 1 }] += (wraps + now - last[n]) % wraps;
            last[n] = now;
        }
    }
    found
}

#[test]
fn marks_reported_by_accurate_ecn_are_those_that_tshark_shows() {
    if is_missing("tshark", "tshark") {
        return;
    }
    let path = std::env::temp_dir().join(format!("ackwise-accecn-{}.pcap", std::process::id()));
    std::fs::write(&path, accurate_ecn()).expect("a temporary file");
    let connections = connections(&path);
    let theirs = marks_by_tshark(&path, &connections);
    std::fs::remove_file(&path).expect("the file is ours");
    let mut ours = Marks::new();
    for (stream, connection) in connections.iter().enumerate() {
        for (half, reporter) in [(0, 1), (1, 0)] {
            let acks = &connection.halves[half].counts.acks;
            let bytes = [acks.ect0_reported_bytes, acks.ce_reported_bytes, acks.ect1_reported_bytes];
            let [ect0, ce, ect1] = bytes;
            ours.insert((stream, reporter), [acks.ce_reported_packets, acks.with_accecn, ect0, ce, ect1]);
            assert_eq!(acks.ce_unclear_acks, 0);
            let sent = &connection.halves[half].counts.sent;
            assert_eq!(acks.ce_reported_packets, sent.ce_packets, "stream {stream}");
            if half == stream % 2 {
                assert!(bytes.iter().all(|&sum| sum > 1 << 22) && sent.payload_bytes > 1 << 24, "{bytes:?}");
            }
        }
    }
    assert_eq!(ours.len(), 8);
    assert_eq!(ours, theirs);
}
