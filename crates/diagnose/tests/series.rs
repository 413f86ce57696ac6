// SPDX-License-Identifier: MIT
//! Series of shipped captures, compared with the diagnosis of the same file, which counts every
//! packet.

use ackwise_capture::{ReadOptions, Source};
use ackwise_diagnose::series::{series, Mark, Series, Wanted};
use ackwise_diagnose::{diagnose, Connection, Effort};
use ackwise_link as _;

const CAPTURES: [&str; 3] = ["bulk", "request-response", "stream"];

fn path(name: &str) -> String {
    format!("{}/../../python/ackwise/captures/{name}.pcap", env!("CARGO_MANIFEST_DIR"))
}

fn wanted(connection: &Connection, of: usize, most_points: usize) -> Wanted {
    Wanted { endpoints: connection.endpoints, start_ns: connection.start_ns, of, most_points }
}

fn each_transfer(mut check: impl FnMut(&Connection, usize, &dyn Fn(usize) -> Series)) {
    let options = ReadOptions::default();
    for name in CAPTURES {
        let read = || [Source::file(path(name))];
        let found = diagnose(read(), &options, &Effort::default()).expect("it is a capture");
        for connection in &found.connections {
            for of in [0, 1] {
                let drawn = |most| {
                    let all = series(read(), &options, &[wanted(connection, of, most)]);
                    all.expect("the same file").1.remove(0)
                };
                check(connection, of, &drawn);
            }
        }
    }
}

fn again(series: &Series) -> u64 {
    use Mark::{FastRetransmission, TailLossProbe, TimeoutRetransmission, UnclearRetransmission};
    let kinds = [FastRetransmission, TailLossProbe, TimeoutRetransmission, UnclearRetransmission];
    let tracks = kinds.iter().filter_map(|kind| series.marks.get(kind));
    tracks.flat_map(|track| track.points()).map(|piece| piece.place.packets).sum()
}

#[test]
fn no_packet_is_lost_whatever_the_number_of_points() {
    each_transfer(|connection, of, drawn| {
        for most_points in [2, 7, 100, 100_000] {
            let drawn = &drawn(most_points);
            let counts = &connection.halves[of].counts;
            let points = drawn.data.points();
            assert!(points.len() <= most_points && drawn.acks.points().len() <= most_points);
            let payload: u64 = points.iter().map(|p| p.payload_bytes).sum();
            let marked = drawn.marks.values().flat_map(|track| track.points());
            let filled: u64 = marked.map(|piece| piece.new_bytes).sum();
            assert_eq!(payload + filled, counts.sent.new_bytes);
            assert_eq!(again(drawn), counts.sent.retransmissions.total());
            let kinds = |f: fn(&ackwise_diagnose::series::Acks) -> u64| -> u64 {
                drawn.acks.points().iter().map(f).sum()
            };
            assert_eq!(kinds(|a| a.delivered_bytes), counts.acks.acked_bytes);
            assert_eq!(kinds(|a| a.kinds.duplicate), counts.acks.duplicate);
            assert_eq!(kinds(|a| a.kinds.window_update), counts.acks.window_updates);
            assert_eq!(kinds(|a| a.place.packets) + counts.acks.old, counts.acks.acks);
        }
    });
}

#[test]
fn extremes_survive_when_points_become_one() {
    each_transfer(|_, _, drawn| {
        let (few, whole) = (&drawn(5), &drawn(100_000));
        let highest = |s: &Series| s.data.points().iter().map(|p| p.flight_bytes.max).max();
        let rtts = |s: &Series| {
            let rtts: Vec<_> = s.acks.points().iter().filter_map(|a| a.rtt_ns).collect();
            (rtts.iter().map(|r| r.min).min(), rtts.iter().map(|r| r.max).max())
        };
        let ends = |s: &Series| s.data.points().iter().map(|p| p.end).max();
        assert_eq!(highest(few), highest(whole));
        assert_eq!(rtts(few), rtts(whole));
        assert_eq!(ends(few), ends(whole));
    });
}

#[test]
fn a_transfer_that_is_not_there_has_no_points() {
    let options = ReadOptions::default();
    let found =
        diagnose([Source::file(path("bulk"))], &options, &Effort::default()).expect("it is a capture");
    let other = Wanted { start_ns: 1 << 60, ..wanted(&found.connections[0], 0, 10) };
    let (_, drawn) = series([Source::file(path("bulk"))], &options, &[other]).expect("the same file");
    assert!(drawn[0].data.points().is_empty() && drawn[0].acks.points().is_empty());
}
