// SPDX-License-Identifier: MIT
//! Tests of a sender with ACKs that no path of the simulator produces: reordering of single
//! segments, reports of copies. Segments have 1000 bytes and leave from 1 s on; the RTT is 40 ms.

use super::segment::Departure;
use super::Sender;
use crate::packet::{Flags, Packet};
use crate::rng::Rng;
use crate::scenario::{CongestionControl, SenderSpec};

const MS: u64 = 1_000_000;
const MSS: u64 = 1_000;
const START_MS: u64 = 1_000;

struct Flow {
    sender: Sender,
}

/// Segments n..=m as a block of sequence numbers.
fn block(n: u64, m: u64) -> (u64, u64) {
    ((n - 1) * MSS, m * MSS)
}

impl Flow {
    fn idle() -> Self {
        let spec = SenderSpec { congestion_control: CongestionControl::Reno, ..SenderSpec::default() };
        Flow { sender: Sender::new(&spec, MSS, 1 << 30, Some(40 * MS), START_MS * MS, Rng::new(1, 1)) }
    }

    /// A flow of a hundred segments, of which ten leave at 1 s.
    fn new() -> Self {
        let mut flow = Flow::idle();
        flow.sender.write(100 * MSS);
        assert_eq!(flow.send(0), (1..=10).collect::<Vec<_>>());
        flow
    }

    /// The segments that leave this long after 1 s.
    fn send(&mut self, ms: u64) -> Vec<u64> {
        self.leaving((START_MS + ms) * MS)
    }

    fn leaving(&mut self, now: u64) -> Vec<u64> {
        std::iter::from_fn(|| self.sender.next_segment(now)).map(|out| out.seq / MSS + 1).collect()
    }

    /// An ACK of everything up to this segment, which echoes the segment that left this long after
    /// 1 s. Returns the segments that then leave.
    fn ack(&mut self, ms: u64, segment: u64, echo_ms: Option<u64>, sack: &[(u64, u64)]) -> Vec<u64> {
        self.take_ack((START_MS + ms) * MS, segment, echo_ms, sack);
        self.send(ms)
    }

    fn take_ack(&mut self, now: u64, segment: u64, echo_ms: Option<u64>, sack: &[(u64, u64)]) {
        self.take(now, segment, echo_ms, sack, false);
    }

    fn take(&mut self, now: u64, segment: u64, echo_ms: Option<u64>, sack: &[(u64, u64)], ece: bool) {
        let packet = Packet {
            wire_bytes: 52,
            segments: 1,
            flags: if ece { Flags::ECE } else { Flags::empty() },
            ack: segment * MSS,
            wnd_bytes: 1 << 30,
            echo_ns: echo_ms.map_or(0, |ms| (START_MS + ms) * MS),
            sack: (!sack.is_empty()).then(|| Box::new(sack.to_vec())),
            ..Packet::default()
        };
        self.sender.on_ack(now, &packet);
    }

    /// A flow with ECN.
    fn with_ecn() -> Self {
        let mut flow = Flow::idle();
        flow.sender.ecn.is_agreed = true;
        flow.sender.write(100 * MSS);
        flow.send(0);
        flow
    }

    /// An ACK with or without ECE. Returns the segments that then leave, and whether they have CWR.
    fn echo(&mut self, ms: u64, segment: u64, sack: &[(u64, u64)], ece: bool) -> Vec<(u64, bool)> {
        let now = (START_MS + ms) * MS;
        self.take(now, segment, Some(0), sack, ece);
        std::iter::from_fn(|| self.sender.next_segment(now)).map(|out| (out.seq / MSS + 1, out.cwr)).collect()
    }

    fn window_segments(&self) -> f64 {
        self.sender.cc.window.cwnd as f64 / MSS as f64
    }

    /// Segment 2 is overtaken by three: it is retransmitted at 46 ms, and half of the window of 11
    /// is kept.
    fn resends_the_second() -> Self {
        let mut flow = Flow::new();
        assert_eq!(flow.ack(40, 1, Some(0), &[]), [11, 12]);
        assert_eq!(flow.ack(42, 1, Some(0), &[block(3, 3)]), [13]);
        assert_eq!(flow.ack(44, 1, Some(0), &[block(3, 4)]), [14]);
        assert_eq!(flow.ack(46, 1, Some(0), &[block(3, 5)]), [2]);
        assert_eq!(flow.sender.cc.window.ssthresh, 5_500);
        flow
    }
}

#[test]
fn the_echo_of_an_original_undoes_the_reduction() {
    // RFC 3522: the ACK of 5 echoes the time of the original, 0 ms, not of the copy, 46 ms. The
    // window is 11 again, in slow start as before, plus one for segment 2, the only one delivered
    // now. Nine are outstanding, 6 to 14: of the three that fit, two leave as a burst, and the next
    // ACK releases the third.
    let mut flow = Flow::resends_the_second();
    assert_eq!(flow.ack(48, 5, Some(0), &[]), [15, 16]);
    assert_eq!(flow.window_segments(), 12.0);
    assert!(flow.sender.cc.window.in_slow_start());
}

#[test]
fn the_echo_of_a_copy_confirms_the_reduction() {
    let mut flow = Flow::resends_the_second();
    flow.ack(86, 5, Some(46), &[]);
    assert!(flow.window_segments() < 6.0, "{}", flow.window_segments());
    assert_eq!(flow.sender.cc.window.ssthresh, 5_500);
}

#[test]
fn a_report_of_the_copy_undoes_the_reduction_without_timestamps() {
    // RFC 3708: D-SACK reports that segment 2 arrived twice, so the only retransmission was a copy.
    let mut flow = Flow::resends_the_second();
    flow.ack(48, 5, None, &[]);
    assert!(flow.window_segments() < 11.0);
    flow.ack(86, 5, None, &[block(2, 2)]);
    assert_eq!(flow.window_segments(), 11.0);
    assert!(flow.sender.cc.window.in_slow_start());
}

#[test]
fn copies_that_the_sender_did_not_make_undo_nothing() {
    // Two reports and one retransmission: the second copy is the network's. A report of data
    // acknowledged before the reduction does not count, either.
    let mut flow = Flow::resends_the_second();
    flow.ack(48, 5, None, &[]);
    flow.ack(49, 5, None, &[block(1, 1)]);
    flow.ack(86, 5, None, &[block(2, 2)]);
    assert!(flow.window_segments() < 11.0);
}

#[test]
fn a_path_that_reorders_gets_a_quarter_of_the_shortest_rtt() {
    // After the first reordering (of segment 2, by three segments up to 5), three SACKs are not
    // enough: RFC 8985, 6.2, step 4. Segment 6 left together with those SACKed; from the last SACK
    // at 54 ms on it waits for 10 ms, a quarter of 40, and Linux adds 2 to the timer: 12 ms are two
    // jiffies of 10 ms, counted from the next tick on (tcp_rack_mark_lost, calc_index): 80 ms.
    let mut flow = Flow::resends_the_second();
    flow.ack(48, 5, Some(0), &[]);
    for (ms, last) in [(52, 7), (53, 8), (54, 9)] {
        assert!(!flow.ack(ms, 5, Some(0), &[block(7, last)]).contains(&6), "{ms}");
    }
    assert_eq!(flow.sender.timer_ns, (START_MS + 80) * MS);
    flow.sender.on_timer(flow.sender.timer_ns);
    assert_eq!(flow.send(80)[0], 6);
}

#[test]
fn each_round_trip_with_a_spurious_retransmission_widens_the_reordering_window() {
    // RFC 8985, 6.2, step 4: RACK.reo_wnd_mult grows with a D-SACK, once per round trip, for 16
    // recoveries.
    let mut rack = super::rack::Rack::default();
    rack.note_spurious();
    rack.adapt(0, 10);
    assert_eq!(rack.steps(), 1, "no reordering was seen");
    rack.note_reordering(0, 5 * MSS, MSS);
    rack.note_spurious();
    rack.adapt(10, 20);
    rack.note_spurious();
    rack.adapt(15, 30);
    assert_eq!(rack.steps(), 2, "what left before the first step");
    rack.note_spurious();
    rack.adapt(20, 40);
    assert_eq!(rack.steps(), 3);
    for _ in 0..16 {
        rack.adapt(40, 50);
        assert_eq!(rack.steps(), 3);
        rack.end_recovery();
    }
    rack.adapt(40, 50);
    assert_eq!(rack.steps(), 1);
}

#[test]
fn an_ack_beyond_a_tail_loss_probe_reduces_the_window_unless_it_was_a_copy() {
    // RFC 8985, 7.4. Ten segments in all, 10 is lost; the probe is its copy. The ACK of 10 does not
    // show whether the original arrived; an ACK of new data without a report of a copy shows that
    // it did not.
    for (sack, reduced) in [(vec![], true), (vec![block(10, 10)], false)] {
        let mut flow = Flow::idle();
        flow.sender.write(10 * MSS);
        flow.send(0);
        flow.ack(40, 9, Some(0), &[]);
        flow.sender.on_timer(flow.sender.timer_ns);
        assert_eq!(flow.send(400), [10]);
        flow.ack(440, 10, Some(400), &[]);
        let before = flow.sender.cc.window.cwnd;
        flow.sender.write(MSS);
        flow.send(441);
        if reduced {
            flow.ack(481, 11, Some(441), &sack);
        } else {
            flow.ack(460, 10, Some(400), &sack);
            flow.ack(481, 11, Some(441), &[]);
        }
        assert_eq!(flow.sender.cc.window.cwnd < before, reduced);
    }
}

/// Segments that leave 40 ms after a window of ten on a path of 40 ms, with one ACK for every two
/// segments, `every_us` apart: segments, and whether each is pushed.
fn leaves_with_acks(every_us: u64, acks: u64) -> Vec<Vec<(u64, bool)>> {
    let mut flow = Flow::new();
    (1..=acks)
        .map(|n| {
            let now = (START_MS + 40) * MS + (n - 1) * every_us * 1_000;
            flow.take_ack(now, 2 * n, Some(0), &[]);
            std::iter::from_fn(|| flow.sender.next_segment(now))
                .map(|out| (out.seq / MSS + 1, out.psh))
                .collect()
        })
        .collect()
}

#[test]
fn the_last_segment_of_a_burst_is_pushed() {
    // __tcp_transmit_skb. A window of 12 to 20 segments in 40 ms, at twice that rate in 1/1024 s:
    // less than two segments, and a burst is at least two (tcp_tso_autosize).
    let sent = leaves_with_acks(2_000, 2);
    assert_eq!(sent[0], [(11, false), (12, true), (13, false), (14, true)]);
    assert_eq!(sent[1], [(15, false), (16, true), (17, false), (18, true)]);
}

#[test]
fn a_segment_of_its_own_is_not_pushed() {
    let mut flow = Flow::new();
    flow.take_ack((START_MS + 40) * MS, 0, Some(0), &[block(2, 2)]);
    let out = flow.sender.next_segment((START_MS + 40) * MS).expect("the SACK makes room for one");
    assert_eq!((out.seq / MSS + 1, out.psh), (11, false));
}

/// For each segment that leaves at once in the first window: whether it is pushed.
fn first_window(spec: &SenderSpec, rtt_ms: u64) -> Vec<bool> {
    let now = START_MS * MS;
    let mut sender = Sender::new(spec, MSS, 1 << 30, Some(rtt_ms * MS), now, Rng::new(1, 1));
    let mut pushed = Vec::new();
    loop {
        let goes_on = sender.fill(now, u64::MAX, u64::MAX);
        pushed.extend(std::iter::from_fn(|| sender.next_segment(now)).map(|out| out.psh));
        if !goes_on {
            return pushed;
        }
    }
}

#[test]
fn a_slow_sender_that_paces_sends_single_segments() {
    // bbr_min_tso_segs: below 1.2 Mbit/s. 2.887 times ten segments in 40 ms are 5.8 Mbit/s, in 400 ms 0.58.
    let bbr = SenderSpec { congestion_control: CongestionControl::Bbr, ..SenderSpec::default() };
    assert_eq!(first_window(&bbr, 40), [false, true].repeat(5));
    assert_eq!(first_window(&bbr, 400), [false; 10]);
}

#[test]
fn the_writes_of_a_bulk_writer_push_nothing() {
    // tcp_sendmsg_locked removes PSH from the buffer that the next write fills. 200 segments in 40
    // ms form bursts of nine (10 MB/s / 1024); a write of 128 KiB ends in segment 132.
    let reno = CongestionControl::Reno;
    let spec = SenderSpec { congestion_control: reno, initial_window_segments: 200, ..SenderSpec::default() };
    let pushed = first_window(&spec, 40);
    assert!(pushed.len() > 190);
    let last_of_nine = |n: usize| n % 9 == 8;
    assert!(pushed[..180].iter().enumerate().all(|(n, &psh)| psh == last_of_nine(n)), "{pushed:?}");
}

#[test]
fn a_rate_is_the_applications_only_where_it_has_nothing_more_to_send() {
    // tcp_rate_check_app_limited.
    let marks =
        |flow: &Flow| flow.sender.segments.iter().map(|s| s.departure.app_limited).collect::<Vec<_>>();
    // There are only five segments, and the window has ten.
    let mut flow = Flow::idle();
    flow.sender.write(5 * MSS);
    flow.send(0);
    assert_eq!(marks(&flow), [true; 5]);
    // The window is full when more is written.
    let mut flow = Flow::new();
    flow.ack(40, 2, Some(0), &[]);
    flow.sender.write(5 * MSS);
    flow.ack(42, 4, Some(0), &[]);
    assert_eq!(marks(&flow)[10..], [false; 4]);
    // A retransmission is marked by the state at that time, as in tcp_rate_skb_sent.
    let mut flow = Flow::idle();
    flow.sender.write(10 * MSS);
    flow.send(0);
    flow.sender.write(MSS);
    flow.ack(40, 0, Some(0), &[block(2, 10)]);
    assert!(flow.sender.segments[0].retransmitted);
    assert!(!flow.sender.segments[0].departure.app_limited);
}

#[test]
fn in_less_than_the_shortest_rtt_no_rate_is_measured() {
    // tcp_rate_gen; the clocks count whole microseconds.
    let mut flow = Flow::new();
    let now = (START_MS + 90) * MS;
    let mut rate = |delivered_ns| {
        let departure =
            Departure { sent_ns: now, delivered: 0, delivered_ns, first_sent_ns: now, app_limited: false };
        flow.sender.delivery_rate(now, &departure).map(|rate| rate.interval_us)
    };
    assert_eq!(rate(now - 39 * MS), None);
    assert_eq!(rate(now - 40 * MS - 1), Some(40_001));
}

#[test]
fn a_part_of_a_burst_waits_for_an_ack_that_comes_soon() {
    // tcp_tso_should_defer: with room for one of the two segments of a burst, 0.5 ms after data
    // left and 40 ms after the segment to be acknowledged next. 1.5 ms after data left, nothing
    // waits.
    for (after_us, at_once, then) in [(500, vec![], vec![15, 16]), (1_500, vec![15], vec![16])] {
        let mut flow = Flow::new();
        assert_eq!(flow.ack(40, 2, Some(0), &[]), [11, 12, 13, 14]);
        let now = (START_MS + 40) * MS + after_us * 1_000;
        flow.take_ack(now, 2, Some(0), &[block(4, 4)]);
        assert_eq!(flow.leaving(now), at_once);
        flow.take_ack(now + 2 * MS, 2, Some(0), &[block(4, 5)]);
        assert_eq!(flow.leaving(now + 2 * MS), then);
    }
}

#[test]
fn a_window_counts_as_used_until_the_data_that_filled_it_is_acknowledged() {
    // tcp_cwnd_validate. Ten of ten segments were outstanding, and 11 and 12 are the last: in
    // congestion avoidance the window may grow up to the ACK of 10, and not with that of 12.
    let mut flow = Flow::idle();
    flow.sender.cc.window.ssthresh = 10 * MSS;
    flow.sender.write(10 * MSS);
    flow.send(0);
    assert!(flow.sender.uses_window());
    flow.ack(40, 5, Some(0), &[]);
    flow.sender.write(2 * MSS);
    flow.send(41);
    assert!(flow.sender.uses_window());
    flow.ack(42, 10, Some(0), &[]);
    flow.sender.write(MSS);
    flow.send(43);
    assert!(!flow.sender.uses_window());
}

#[test]
fn in_slow_start_a_window_counts_as_used_when_half_of_it_was() {
    for (segments, used) in [(5, false), (6, true)] {
        let mut flow = Flow::idle();
        flow.sender.write(segments * MSS);
        flow.send(0);
        assert_eq!(flow.sender.uses_window(), used);
    }
}

/// Ten segments are outstanding, the timer expires 500 ms after they left, and segment 1 is
/// retransmitted.
fn timed_out() -> Flow {
    let mut flow = Flow::new();
    flow.sender.time_out((START_MS + 500) * MS);
    assert_eq!(flow.send(500), [1]);
    assert_eq!(flow.window_segments(), 1.0);
    flow
}

#[test]
// [RFC 5682, 3.1]
fn after_a_timeout_two_new_segments_leave_first() {
    // RFC 5682, 3.1, steps 2.b and 3.a. The ACK of the retransmission releases 11 and 12, not 2.
    // Their SACK shows that none of the outstanding data arrived: with a window of three (slow
    // start) 2 leaves.
    let mut flow = timed_out();
    assert_eq!(flow.ack(540, 1, Some(500), &[]), [11, 12]);
    assert_eq!(flow.ack(580, 1, Some(500), &[block(11, 11)])[0], 2);
    assert_eq!(flow.sender.cc.window.ssthresh, 5_000);
    // Already judged: an original that arrives late changes nothing.
    flow.ack(590, 1, Some(500), &[block(9, 9), block(11, 11)]);
    assert_eq!(flow.sender.cc.window.ssthresh, 5_000);
}

#[test]
fn an_original_that_arrives_after_a_timeout_undoes_it_without_timestamps() {
    // Step 3.b: segment 2 is acknowledged, or 9 SACKed, and neither was retransmitted.
    for (segment, sack) in [(2, vec![]), (1, vec![block(9, 9)])] {
        let mut flow = timed_out();
        assert_eq!(flow.ack(540, 1, None, &[]), [11, 12]);
        flow.ack(545, segment, None, &sack);
        assert!(flow.window_segments() >= 10.0, "{}", flow.window_segments());
        assert!(flow.sender.cc.window.in_slow_start());
        assert_eq!(flow.sender.counters.retransmitted, 1);
    }
}

#[test]
fn without_new_data_a_timeout_is_followed_by_retransmissions() {
    // Step 2.b has nothing to send: two of the other nine leave, as slow start allows.
    let mut flow = Flow::idle();
    flow.sender.write(10 * MSS);
    flow.send(0);
    flow.sender.time_out((START_MS + 500) * MS);
    assert_eq!(flow.send(500), [1]);
    assert_eq!(flow.ack(540, 1, Some(500), &[]), [2, 3]);
}

#[test]
// [RFC 2861, 3.2 (a)]
fn a_pause_halves_the_window_for_each_rto() {
    // tcp_cwnd_restart. RTO: 40 ms and 200 ms, 24 jiffies. Of 80 segments, all remain after a pause
    // of 24 jiffies; 40 after more than one RTO, 20 after more than two, 10, the initial window,
    // after more than three, and never fewer. Slow start ends at three quarters of 80.
    let rto_ms = 240;
    for (pause_ms, window, ssthresh) in [
        (rto_ms, 80, 50),
        (rto_ms + 9, 80, 50),
        (rto_ms + 10, 40, 60),
        (2 * rto_ms, 40, 60),
        (2 * rto_ms + 10, 20, 60),
        (3 * rto_ms + 10, 10, 60),
        (50 * rto_ms, 10, 60),
    ] {
        let mut flow = Flow::idle();
        flow.sender.write(MSS);
        flow.send(0);
        flow.ack(40, 1, Some(0), &[]);
        assert_eq!(flow.sender.rto_ns, rto_ms * MS);
        flow.sender.cc.window.cwnd = 80 * MSS;
        flow.sender.cc.window.ssthresh = 50 * MSS;
        flow.sender.write(100 * MSS);
        assert_eq!(flow.send(pause_ms).len() as u64, window, "{pause_ms} ms");
        assert_eq!(flow.sender.cc.window.ssthresh, ssthresh * MSS, "{pause_ms} ms");
    }
}

/// One segment of a window of 80 is in use and acknowledged at 40 ms; the RTO is 240 ms. Another
/// one is lost.
fn uses_little() -> Flow {
    let mut flow = Flow::idle();
    flow.sender.write(MSS);
    flow.send(0);
    flow.ack(40, 1, Some(0), &[]);
    flow.sender.cc.window.cwnd = 80 * MSS;
    flow.sender.cc.window.ssthresh = 50 * MSS;
    flow.sender.write(MSS);
    assert_eq!(flow.send(200), [2]);
    flow
}

#[test]
// [RFC 2861, 3.2 (b)]
fn a_window_unused_for_an_rto_goes_half_of_the_way_to_what_was_used() {
    // tcp_cwnd_application_limited. The pauses, at most 200 ms, are no longer than an RTO, but no
    // ACK came for one: at 280 ms, of 80 segments and the initial 10, which is more than the two
    // outstanding, 45 are left. An RTO later 13 are outstanding: 29, and slow start ends at three
    // quarters of 45 or where it did.
    let mut flow = uses_little();
    flow.sender.write(MSS);
    assert_eq!(flow.send(279), [3]);
    assert_eq!(flow.window_segments(), 80.0);
    flow.sender.write(MSS);
    assert_eq!(flow.send(280), [4]);
    assert_eq!((flow.window_segments(), flow.sender.cc.window.ssthresh), (45.0, 60 * MSS));
    flow.sender.write(9 * MSS);
    assert_eq!(flow.send(519), (5..=13).collect::<Vec<_>>());
    assert_eq!(flow.window_segments(), 45.0);
    flow.sender.write(2 * MSS);
    assert_eq!(flow.send(520), [14, 15]);
    assert_eq!(flow.window_segments(), 29.0);
    // The window is judged anew: fifteen are outstanding.
    assert_eq!(flow.sender.cc.window.ssthresh, 60 * MSS);
}

#[test]
fn a_window_is_kept_that_the_send_buffer_does_not_fill_or_a_hole_is_in() {
    // SOCK_NOSPACE: a bulk writer waits for room in a buffer of five segments. TCP_CA_Disorder:
    // segment 3 was SACKed.
    let mut flow = uses_little();
    flow.sender.cfg.send_buffer_bytes = 5 * MSS;
    flow.sender.fill(0, 1000 * MSS, u64::MAX);
    assert_eq!(flow.send(280), [3, 4, 5, 6]);
    assert_eq!(flow.window_segments(), 80.0);

    let mut flow = uses_little();
    flow.sender.write(MSS);
    assert_eq!(flow.send(205), [3]);
    flow.ack(245, 1, Some(0), &[block(3, 3)]);
    flow.sender.write(MSS);
    assert_eq!(flow.send(280), [4]);
    assert_eq!(flow.window_segments(), 80.0);
}

#[test]
fn senders_of_published_sources_and_rate_based_ones_keep_their_window() {
    use crate::scenario::{Recovery, SocketLayer};
    let linux = SenderSpec::default();
    for spec in [
        SenderSpec { recovery: Recovery::Newreno, ..linux.clone() },
        SenderSpec { socket: SocketLayer::Bsd43, ..linux.clone() },
        SenderSpec { congestion_control: CongestionControl::Bbr, ..linux },
    ] {
        let mut sender = Sender::new(&spec, MSS, 1 << 30, Some(40 * MS), START_MS * MS, Rng::new(1, 1));
        sender.cc.window.cwnd = 80 * MSS;
        sender.write(100 * MSS);
        assert!(sender.next_segment(100 * START_MS * MS).is_some());
        assert_eq!(sender.cc.window.cwnd, 80 * MSS);
    }
}

#[test]
fn an_echo_halves_the_window_over_a_round_trip_and_once() {
    // RFC 3168, 6.1.2, and tcp_cwnd_reduction: for ten segments five leave, the first with CWR,
    // however many ACKs have ECE. While more than five are outstanding, the share of five in ten,
    // rounded up: after the first, the third ... ACK. With the ninth, five are outstanding, with
    // the tenth four, so one leaves.
    let mut flow = Flow::with_ecn();
    let mut left = Vec::new();
    for n in 1..=10 {
        left.push(flow.echo(40 + 2 * n, n, &[], n <= 8));
    }
    let leaves = |n: u64| if n % 2 == 1 { vec![(10 + n.div_ceil(2), n == 1)] } else { vec![] };
    let expected: Vec<_> = (1..=8).map(leaves).chain([vec![], vec![(15, false)]]).collect();
    assert_eq!(left, expected);
    assert_eq!((flow.window_segments(), flow.sender.cc.window.ssthresh), (5.0, 5 * MSS));
    // Only the ACK of 11 shows that CWR has arrived. From then on the window grows again, and an
    // echo is a new one: half of five segments is 2.5, and at least two.
    assert_eq!(flow.echo(90, 11, &[], false), [(16, false)]);
    assert_eq!(flow.window_segments(), 5.0);
    assert_eq!(flow.echo(92, 12, &[], true), [(17, true)]);
    assert_eq!(flow.sender.cc.window.ssthresh, 2_500);
}

#[test]
fn without_an_agreement_an_echo_means_nothing() {
    let mut flow = Flow::new();
    assert_eq!(flow.echo(40, 2, &[], true), [(11, false), (12, false), (13, false), (14, false)]);
    assert_eq!(flow.window_segments(), 12.0);
}

#[test]
fn new_data_may_be_marked_and_a_retransmission_not() {
    // RFC 3168, 6.1.5. Segment 2 is lost: three SACKs retransmit it. The reduction for it is also
    // reported, in the next new segment (6.1.2), unless it is undone before (tcp_ecn_withdraw_cwr).
    for (echo_ms, is_told) in [(46, true), (0, false)] {
        let mut flow = Flow::with_ecn();
        let now = |ms| (START_MS + ms) * MS;
        flow.echo(40, 1, &[], false);
        for (ms, last) in [(42, 3), (44, 4)] {
            flow.take_ack(now(ms), 1, Some(0), &[block(3, last)]);
            assert!(flow.sender.next_segment(now(ms)).expect("new data").is_ect);
        }
        flow.take_ack(now(46), 1, Some(0), &[block(3, 5)]);
        let again = flow.sender.next_segment(now(46)).expect("2");
        assert!(again.is_retransmission && !again.is_ect && !again.cwr);
        flow.take_ack(now(86), 14, Some(echo_ms), &[]);
        let next = flow.sender.next_segment(now(86)).expect("15");
        assert_eq!((next.seq / MSS + 1, next.is_ect, next.cwr), (15, true, is_told));
    }
}

#[test]
fn a_loss_within_the_window_of_an_echo_reduces_no_further_and_is_not_undone() {
    // RFC 3168, 6.1.2: once per window of data. The reduction for the echo of 1 continues while
    // segment 2 is retransmitted; the arrival of the original of 2 changes nothing: the mark proves
    // congestion.
    let mut flow = Flow::with_ecn();
    flow.echo(40, 1, &[], true);
    assert_eq!(flow.sender.cc.window.ssthresh, 5 * MSS);
    flow.echo(42, 1, &[block(3, 3)], true);
    flow.echo(44, 1, &[block(3, 4)], true);
    // Two of four have left in place of those that arrived: the third ACK that shows the loss
    // releases none, because tcp_cwnd_reduction continues.
    assert_eq!(flow.echo(46, 1, &[block(3, 5)], true), []);
    assert_eq!(flow.echo(48, 1, &[block(3, 6)], true), [(2, false)]);
    assert_eq!(flow.sender.cc.window.ssthresh, 5 * MSS);
    flow.echo(50, 12, &[], false);
    assert_eq!(flow.sender.cc.window.ssthresh, 5 * MSS);
    assert!(flow.window_segments() < 10.0, "{}", flow.window_segments());
}

#[test]
fn a_timeout_within_the_window_of_an_echo_reduces_no_further() {
    // tcp_enter_loss: the window was reduced for the outstanding data. The probe, new data, left
    // within the last RTT and is not lost; one segment may leave beside it.
    let mut flow = Flow::with_ecn();
    flow.echo(40, 1, &[], true);
    flow.sender.on_timer(flow.sender.timer_ns);
    flow.send(1_000);
    flow.sender.on_timer(flow.sender.timer_ns);
    assert_eq!(flow.sender.counters.timeouts, 1);
    assert_eq!((flow.window_segments(), flow.sender.cc.window.ssthresh), (2.0, 5 * MSS));
}

/// A bulk writer and output in turn, as after an ACK.
fn write_and_send(flow: &mut Flow, ms: u64) -> Vec<u64> {
    let now = (START_MS + ms) * MS;
    let mut left = flow.send(ms);
    while flow.sender.fill(now, u64::MAX, u64::MAX) {
        left.extend(flow.send(ms));
    }
    left
}

#[test]
fn a_bulk_writer_overruns_its_memory_by_a_buffer_and_sleeps_until_a_third_is_free() {
    // tcp_sndbuf_expand: 46080 bytes for ten segments. tcp_sendmsg_locked checks it only when it
    // starts a buffer, of at most 65 segments (sk_gso_max_size), and fills up the remainder after
    // ten segments of the first.
    let mut flow = Flow::idle();
    assert_eq!(write_and_send(&mut flow, 0), (1..=10).collect::<Vec<_>>());
    assert_eq!((flow.sender.written, flow.sender.fillable(u64::MAX)), (75 * MSS, 0));
    // sk_stream_write_space. The memory may have grown with the window: to two windows of 2304
    // bytes per segment.
    let mut acked = 0;
    while flow.sender.fillable(u64::MAX) == 0 {
        acked += 2;
        flow.ack(40 + acked, acked, Some(0), &[]);
        assert!(acked < 75);
    }
    let (used, most) = ((75 - acked) * MSS, 2.0 * 2304.0 * flow.window_segments());
    assert!(acked > 2 && most >= 1.5 * used as f64, "{acked}: {used} of {most}");
}
