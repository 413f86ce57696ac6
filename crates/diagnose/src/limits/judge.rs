// SPDX-License-Identifier: MIT
//! Attributes every moment of a transfer to one limit, and computes each limit's share.

use super::interval::Interval;
use super::intervals::Intervals;
use super::judgment::Judgment;
use super::limit::Limit;
use super::link::Slowest;
use super::wait::{Stall, Wait, Waits};
use super::window::Path;
use std::collections::BTreeMap;

const STALLS: [Stall; 3] = [Stall::Nagle, Stall::ReceiveWindow, Stall::SendBuffer];

/// Minimum number of an application's pauses that explain a constant flight, in RTTs for each.
const BOUND_RTTS: u64 = 4;

/// Distinguishes a small window from a slow reader: where the application reads too slowly, the
/// window closes repeatedly, and is at its largest less than half of the time.
fn of_window(interval: &Interval, largest_bytes: u64) -> Limit {
    if interval.window_min_bytes != u64::MAX && interval.window_min_bytes < largest_bytes / 2 {
        Limit::ReceivingApplication
    } else {
        Limit::ReceiveWindow
    }
}

/// Intervals between two in which the window was closed, if no more than a window passed in them:
/// whatever their speed, the next piece waits for the application.
fn pieces(list: &[Interval], window_bytes: u64) -> Vec<bool> {
    let mut pieces = vec![false; list.len()];
    let mut behind = None;
    let mut bytes = 0;
    for (n, interval) in list.iter().enumerate() {
        if !interval.is_mostly(Wait::ClosedWindow) {
            bytes += interval.new_bytes;
            continue;
        }
        if let Some(from) = behind.filter(|_| bytes <= window_bytes) {
            pieces[from..n].fill(true);
        }
        behind = Some(n + 1);
        bytes = 0;
    }
    pieces
}

/// Intervals in which the retransmission timer ran. It starts with the last ACK (RFC 6298, 5.3),
/// whatever passes afterwards, or with the first packet after nothing was in flight (5.1).
fn timers(list: &[Interval]) -> Vec<bool> {
    let mut runs = false;
    let mut timers: Vec<_> = list
        .iter()
        .rev()
        .map(|interval| {
            let ends_one = interval.is_mostly(Wait::Timer);
            let is_off = interval.is_mostly(Wait::ClosedWindow) || interval.is_mostly(Wait::Idle);
            runs = ends_one || runs && interval.acks == 0 && !is_off;
            runs && !ends_one
        })
        .collect();
    timers.reverse();
    timers
}

// [S4.6]
pub(super) fn judge(
    all: &Intervals,
    waits: &Waits,
    link: Option<Slowest>,
    policed_bytes_per_s: Option<f64>,
    // silences that the sender's timers made
    hidden_ns: &[(u64, u64)],
    has_handshake: bool,
    at_receiver: impl FnOnce(Option<f64>) -> bool,
) -> Judgment {
    let list = all.all();
    let path = Path::of(list, link, policed_bytes_per_s, has_handshake, at_receiver);
    let mut judgment = Judgment {
        answers: waits.answers,
        blocks: waits.blocks,
        held: waits.nagle.held,
        ..path.figures(list)
    };
    let whole_ns: u64 = list.iter().map(Interval::ns).sum();
    let granted = match waits.has_application_window(whole_ns) {
        true => Limit::ApplicationWindow,
        false => {
            judgment.answers.waits += waits.grants.waits.waits;
            judgment.answers.ns += waits.grants.waits.ns;
            Limit::SendingApplication
        }
    };
    // What the applications let be outstanding bounds the flight, too.
    let most_ns = BOUND_RTTS * judgment.rtt_mean_ns.unwrap_or(0);
    let bound = (waits.paused().saturating_mul(most_ns) > whole_ns).then_some(granted);
    let is_lossless = list.iter().all(|interval| interval.recoveries == 0);
    let mut most_bytes = 0;
    let largest_bytes = list.iter().map(|i| i.window_max_bytes).max().unwrap_or(0);
    if let (Some(began_ns), Some(opened_ns)) = (all.began_ns, all.opened_ns) {
        // The last ACK has to reach the sender, and the first data the capture point.
        let first_ns = list.first().map_or(opened_ns, |first| first.from_ns);
        let ready_ns = all.ready_ns.unwrap_or(opened_ns).min(first_ns);
        judgment.add(Limit::Handshake, began_ns, ready_ns);
        let is_silent = hidden_ns.iter().any(|&(from_ns, to_ns)| from_ns <= ready_ns && to_ns >= first_ns);
        let silent = if is_silent { Limit::Timeout } else { Limit::SendingApplication };
        judgment.add(silent, ready_ns, first_ns);
        // A request that follows the handshake at once was not waited for.
        let waited_ns = first_ns.saturating_sub(ready_ns);
        if waits.begins_with_answer && waited_ns > judgment.rtt_mean_ns.unwrap_or(0) {
            judgment.answers.add(waited_ns);
        }
    }
    let pieces = pieces(list, largest_bytes);
    let timers = timers(list);
    for (n, interval) in list.iter().enumerate() {
        // Anything that runs out or fills up while ACKs wait in a queue does so because of that
        // queue.
        let by_return_path = path.return_path_doubles(list, n);
        let timer = match path.return_path_outlasts_timer(list, n) {
            true => Limit::ReturnPath,
            false => Limit::Timeout,
        };
        // Timers of packets ran that were lost before the capture point, as later packets show.
        let is_silent =
            hidden_ns.iter().any(|&(from_ns, to_ns)| from_ns < interval.to_ns && interval.from_ns < to_ns)
                && [Wait::Idle, Wait::Application, Wait::Answer, Wait::Block]
                    .iter()
                    .any(|&w| interval.is_mostly(w));
        if timers[n] || is_silent {
            judgment.interval(interval, &BTreeMap::from([(timer, interval.ns())]), timer);
            continue;
        }
        let room = match path.limit(list, n) {
            _ if pieces[n] => Limit::ReceivingApplication,
            // Slow start grows beyond what it had reached.
            limit @ Limit::SlowStart if interval.flight_max_bytes <= most_bytes => bound.unwrap_or(limit),
            limit @ (Limit::SendBuffer | Limit::SendingApplication) => bound.unwrap_or(limit),
            limit @ Limit::CongestionWindow if is_lossless => bound.unwrap_or(limit),
            limit => limit,
        };
        most_bytes = most_bytes.max(interval.flight_max_bytes);
        let waited = |wait: Wait| interval.waits_ns[wait.index()];
        let mut shares = BTreeMap::new();
        let mut share = |limit: Limit, ns: u64| {
            if ns > 0 {
                *shares.entry(limit).or_insert(0) += ns;
            }
        };
        share(room, waited(Wait::Room));
        share(
            if matches!(room, Limit::Link | Limit::Policer | Limit::Processor | Limit::ReturnPath) {
                room
            } else {
                Limit::CongestionWindow
            },
            waited(Wait::Recovery),
        );
        // A window larger than the link needs is full, too: its data waits in the link's queue.
        let is_link =
            room == Limit::Link && path.has_queue(interval) || !pieces[n] && path.is_links_window(list, n);
        let window = match is_link {
            _ if by_return_path => Limit::ReturnPath,
            true => Limit::Link,
            false => of_window(interval, largest_bytes),
        };
        share(window, waited(Wait::ReceiveWindow));
        share(if is_link || by_return_path { window } else { granted }, waited(Wait::Grant));
        share(Limit::ReceivingApplication, waited(Wait::ClosedWindow));
        // Behind a link, packets come at its times and not at those of ACKs.
        let is_spaced = path.has_queue(interval) && path.is_busy(list, n);
        let writer = if is_spaced { Limit::Link } else { Limit::SendingApplication };
        share(writer, waited(Wait::Application));
        share(Limit::SendingApplication, waited(Wait::Idle));
        share(timer, waited(Wait::Timer));
        for stall in STALLS {
            let ns = waited(Wait::Stall(stall));
            share(Limit::AckStall, ns);
            if ns > 0 {
                *judgment.stalls_ns.entry(stall).or_insert(0) += ns;
            }
        }
        judgment.interval(interval, &shares, room);
    }
    if let Some(last) = list.last() {
        judgment.add(Limit::SendingApplication, last.to_ns, all.ended_ns);
    }
    judgment
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Intervals of 10 ms, each with the sender's wait, its new bytes and its ACKs.
    fn intervals(made: &[(Wait, u64, u32)]) -> Vec<Interval> {
        let interval = |(at, &(wait, new_bytes, acks)): (u64, &(Wait, u64, u32))| {
            let (from_ns, to_ns) = (10 * at * MS, 10 * (at + 1) * MS);
            let mut interval = Interval { from_ns, to_ns, new_bytes, acks, ..Interval::default() };
            interval.waits_ns[wait.index()] = 10 * MS;
            interval
        };
        (0..).zip(made).map(interval).collect()
    }

    #[test]
    fn what_passes_between_two_closed_windows_is_a_piece_if_a_window_holds_it() {
        let (closed, room) = ((Wait::ClosedWindow, 0, 1), (Wait::Room, 20_000, 5));
        let pieces = |made: &[_]| pieces(&intervals(made), 64_000);
        assert_eq!(pieces(&[closed, room, room, closed]), [false, true, true, false]);
        // nothing shows that the application delayed the first one, or will delay the last one
        assert_eq!(pieces(&[room, closed, closed, room]), [false; 4]);
        assert_eq!(pieces(&[closed, room, room, room, room, closed]), [false; 6], "more than a window");
    }

    #[test]
    fn a_timer_runs_from_the_last_ack_on() {
        let (acked, silent) = ((Wait::Room, 1000, 2), (Wait::Room, 1000, 0));
        let (timer, closed) = ((Wait::Timer, 0, 0), (Wait::ClosedWindow, 0, 0));
        let timers = |made: &[_]| timers(&intervals(made));
        assert_eq!(timers(&[acked, silent, silent, timer]), [false, true, true, false]);
        assert_eq!(timers(&[silent, acked, timer, silent]), [false; 4]);
        assert_eq!(timers(&[silent, closed, timer]), [false; 3]);
    }
}
