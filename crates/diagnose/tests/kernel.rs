// SPDX-License-Identifier: MIT
//! The sending kernel's own counters (`nstat`), compared with the packets at the sending and at the
//! receiving host.

use ackwise_capture::{ReadOptions, Source};
use ackwise_diagnose::{diagnose, ByCause, Effort};
use ackwise_link as _;
use std::path::Path;

/// Counters of the sending host at the end of its captures.
struct Kernel {
    capture: &'static str,
    /// RetransSegs.
    retransmissions: u64,
    /// TCPFastRetrans.
    fast: u64,
    /// TCPTimeouts; timeouts of a SYN (TCPSynRetrans) retransmitted the SYN.
    timeouts: u64,
    /// TCPDSACKRecv and TCPDSACKOfoRecv.
    dsacks: u64,
}

const fn kernel(
    capture: &'static str,
    retransmissions: u64,
    fast: u64,
    timeouts: u64,
    dsacks: u64,
) -> Kernel {
    Kernel { capture, retransmissions, fast, timeouts, dsacks }
}

const KERNEL: &[Kernel] = &[
    kernel("slow-reader", 17, 17, 0, 0),
    kernel("lossy-both-ways", 2, 2, 0, 0),
    kernel("disorder", 4, 4, 0, 26),
    kernel("lossy-bulk", 28, 26, 2, 1),
    kernel("lossy-requests", 19, 13, 3, 0),
    kernel("lossy-short", 56, 52, 3, 0),
    kernel("stuck-reader", 2, 0, 0, 2),
];

#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    retransmissions: ByCause,
    timeouts: u64,
    syn_retransmissions: u64,
    dsacks: u64,
}

/// Pure ACKs of the connecting endpoint, which receives the data here, and number of missing ones.
fn acks(name: &str) -> (u64, u64) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/captures/{name}.pcap.gz"));
    let diagnosis =
        diagnose([Source::file(path)], &ReadOptions::default(), &Effort::default()).expect("readable");
    let half = &diagnosis.connections.first().expect("a connection").halves[1];
    let thinning = half.acking.thinning.as_ref().expect("Linux counts its packets");
    (half.counts.acks.pure, thinning.missing_acks)
}

#[test]
fn acks_that_were_lost_on_the_way_are_counted_where_they_did_not_come() {
    for (name, beyond_the_numbers) in [
        // The ACK of the SYN-ACK: no pure ACK precedes it.
        ("lossy-bulk", 1),
        // Still in flight at the end.
        ("disorder", 8),
        ("slow-reader", 0),
        ("stuck-reader", 0),
    ] {
        let (sent, missing_at_once) = acks(&format!("{name}-client"));
        let (came, missing) = acks(&format!("{name}-server"));
        assert_eq!(missing_at_once, 0, "{name}");
        assert_eq!(missing + beyond_the_numbers, sent - came, "{name}");
    }
}

/// Retransmissions of the accepting endpoints, which send the data here.
fn found(name: &str) -> Found {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/captures/{name}.pcap.gz"));
    let diagnosis =
        diagnose([Source::file(path)], &ReadOptions::default(), &Effort::default()).expect("readable");
    let mut found = Found::default();
    for connection in &diagnosis.connections {
        let counts = &connection.halves[1].counts;
        let by_cause = &counts.sent.retransmissions;
        found.retransmissions.fast += by_cause.fast;
        found.retransmissions.timeout += by_cause.timeout;
        found.retransmissions.tail_loss_probe += by_cause.tail_loss_probe;
        found.retransmissions.unclear += by_cause.unclear;
        found.timeouts += counts.sent.recoveries.timeout;
        found.syn_retransmissions += counts.sent.syn_retransmissions;
        found.dsacks += counts.acks.with_dsack;
    }
    found
}

#[test]
fn causes_are_those_that_the_sending_kernel_counts() {
    for kernel in KERNEL {
        let found = found(&format!("{}-server", kernel.capture));
        let causes = found.retransmissions;
        let figures = [
            ("retransmissions", causes.total() + found.syn_retransmissions, kernel.retransmissions),
            ("fast", causes.fast, kernel.fast),
            ("timeouts", found.timeouts + found.syn_retransmissions, kernel.timeouts),
            // Sent by neither of them; TCPLossProbes also counts probes with new data.
            ("probes", causes.tail_loss_probe, kernel.retransmissions - kernel.fast - kernel.timeouts),
            ("D-SACKs", found.dsacks, kernel.dsacks),
        ];
        for (figure, ours, counted) in figures {
            assert_eq!(ours, counted, "{}: {figure}; {found:?}", kernel.capture);
        }
    }
}

#[test]
fn the_receiving_side_sees_the_same_causes_of_what_arrives() {
    for kernel in KERNEL {
        let found = found(&format!("{}-client", kernel.capture));
        let causes = found.retransmissions;
        let name = kernel.capture;
        assert!(causes.total() + found.syn_retransmissions <= kernel.retransmissions, "{name}: {found:?}");
        assert!(causes.fast <= kernel.fast, "{name}: {found:?}");
        assert!(found.timeouts + found.syn_retransmissions <= kernel.timeouts, "{name}: {found:?}");
        assert_eq!(found.dsacks, kernel.dsacks, "{name}");
        // A probe repeats the highest number: if the first copy was lost, it looks like the first, or
        // like a timer's packet.
        let probes = kernel.retransmissions - kernel.fast - kernel.timeouts;
        assert!(causes.tail_loss_probe <= probes, "{name}: {found:?}");
        assert!(causes.total() - causes.fast <= kernel.timeouts + probes, "{name}: {found:?}");
    }
}
