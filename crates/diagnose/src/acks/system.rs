// SPDX-License-Identifier: MIT
//! Which stock systems and devices acknowledge like this receiver.
//!
//! Stock receivers differ little: all answer the second full segment at once. What tells them apart
//! are lone segments (at once in Linux's quickack phase, else after a timer) and stretch ACKs (a
//! driver that holds ACKs for some milliseconds, a count, a quarter of the window). Each ACK is put
//! into one class; a system fits if nearly all ACKs are in classes that its rule allows.
//!
//! | system | lone segment | full segments | source |
//! |---|---|---|---|
//! | Linux | quickack, a read, or 40 to 200 ms | second at once; GRO and a backlog count as one | `tcp_input.c` of 6.12 |
//! | Windows | 40 to 50 ms, before Windows 10 200 ms | second packet at once | `Get-NetTCPSetting` |
//! | FreeBSD | 40 ms, before 14 100 ms | second packet at once | `tcp_timer.h` |
//! | lwIP | next tick of a timer of 250 ms | second packet at once | `tcp_in.c` |
//! | Apple | 100 ms | two, eight, or a quarter of the window | XNU, `tcp_cc.c` |
//! | Wi-Fi drivers | as the system above them | hold ACKs for 3 to 10 ms, or for a count | their sources |

use super::arrivals::Answer;
use super::verdict::Confidence;
use crate::distance::is_at_host;
use crate::distribution::Distribution;
use crate::step::Ack;
use serde::Serialize;

const MS: u64 = 1_000_000;
/// Minimum number of ACKs for a name, and of stretch ACKs for a device.
const ACKS_MIN: u32 = 8;
const STRETCHED_MIN: u32 = 20;
/// A busy host takes up to this long for what it does at once: softirqs, backlog, a reader's turn.
const AT_ONCE_NS: u64 = MS;
/// Share of ACKs that may contradict a rule: packets of other causes occur in every transfer.
const ODD_SHARE: f64 = 0.05;
/// Share of ACKs that a pause of the host or of the path delays: so few waits show no timer.
const PAUSED_SHARE: f64 = 0.005;
/// Share of stretch ACKs above which the receiver, or a device, holds ACKs deliberately.
const STRETCHED_SHARE: f64 = 0.25;
/// Share of the stretch ACKs that a device's rule must explain.
const DEVICE_SHARE: f64 = 0.8;
/// Number of ACKs at the start of which Linux's quickack phase may be a part.
const QUICK_ACKS: u32 = 64;

/// Delayed-ACK timers, with the tick of the clock that fires them.
const TIMERS_NS: [(u64, u64); 4] =
    [(0, 36 * MS), (36 * MS, 62 * MS), (90 * MS, 125 * MS), (185 * MS, 260 * MS)];
const EARLY: usize = 0;
const FORTY: usize = 1;
const HUNDRED: usize = 2;
const TWO_HUNDRED: usize = 3;
const OTHER: usize = 4;

/// Systems without quick ACKs answer fewer lone segments at once: a FIN, a read that opens the window.
const QUICK_SHARE: f64 = 0.01;

/// Devices that hold the ACKs of the system above them: for how long, and at most for how many
/// segments, two for each ACK. A count of a few segments is left out (Broadcom's default ratio of 3):
/// at an even rate, any time makes such a count.
const DEVICES: [(&str, u64, &[u32]); 4] = [
    ("wifi-qualcomm", 3 * MS, &[40]),
    ("wifi-samsung", 4 * MS, &[20, 32, 40]),
    ("wifi-aic", 5 * MS, &[20, 22]),
    ("wifi-broadcom", 10 * MS, &[30]),
];
/// Difference between a hold and its nominal time: clock ticks, and the width of buckets.
const HOLD_TOLERANCE_NS: u64 = 6 * MS / 10;
const HOLD_TOLERANCE: u64 = 10;
const XNU_STRETCH: u32 = 8;

/// The systems or devices that the ACKs fit.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AckSystem {
    /// Names, most specific first; empty if none fits or there are too few ACKs.
    pub names: Vec<&'static str>,
    /// Share of the ACKs that the first name's rule allows, 0 to 1.
    pub share: f64,
    /// Number of ACKs that were judged.
    pub judged_acks: u32,
    /// None without a name.
    pub confidence: Option<Confidence>,
    /// Number of ACKs for three segments or more that left long after the second segment.
    pub held_acks: u32,
    /// How long after the second segment these left: the time for which ACKs are held.
    pub held_ns: Distribution,
}

/// ACKs by class.
#[derive(Debug, Default)]
pub(super) struct Systems {
    acks: u32,
    /// One segment, at once; and of these full segments without PSH after the quickack phase.
    lone: u32,
    lone_full: u32,
    /// One segment, after a wait: by timer.
    timers: [u32; OTHER + 1],
    timer_least_ns: Option<u64>,
    /// One segment with PSH, before any timer: as the application reads.
    reads: u32,
    /// Two segments or a merged packet, at once.
    pairs: u32,
    /// Several packets at once after the second, as a backlog leaves them.
    batches: u32,
    held_ns: Distribution,
    /// Held ACKs that the device's time or count explains, and of these those that its count does.
    by_device: [(u32, u32); DEVICES.len()],
    /// Stretch ACKs for eight segments, and for a quarter of the window; or by a timer of 100 ms.
    eights: u32,
    quarters: u32,
}

impl Systems {
    /// Takes an ACK of data in order. `rcv_mss_bytes`: the largest segment so far.
    pub fn answered(&mut self, answer: &Answer, ack: &Ack, rcv_mss_bytes: u32, is_near: bool) {
        self.acks += 1;
        let mss_bytes = u64::from(rcv_mss_bytes.max(1));
        let at_once_ns = answer.tolerance_ns.max(AT_ONCE_NS);
        let mut bytes = 0;
        let second = answer.arrivals.iter().position(|arrival| {
            bytes += arrival.end - arrival.start;
            bytes > mss_bytes
        });
        let Some(trigger) = second.and_then(|at| answer.arrivals.get(at)) else {
            return self.lone_answered(answer, ack, bytes >= mss_bytes, at_once_ns);
        };
        // Away from the receiver only differences of arrivals are exact: it left before the next.
        let newest_ns = answer.arrivals.last().map_or(answer.time_ns, |arrival| arrival.time_ns);
        let spread_ns = newest_ns.saturating_sub(trigger.time_ns);
        let gap_ns = spread_ns / u64::from(ack.segments.saturating_sub(2).max(1));
        let held_ns =
            if is_near { answer.time_ns.saturating_sub(trigger.time_ns) } else { spread_ns + gap_ns / 2 };
        if spread_ns.max(if is_near { held_ns } else { 0 }) <= AT_ONCE_NS {
            let is_batch = answer.arrivals.len() > second.map_or(0, |at| at + 1);
            *(if is_batch { &mut self.batches } else { &mut self.pairs }) += 1;
            return;
        }
        if !is_near && ack.packets_left == 0 {
            return; // no later data shows when it left
        }
        self.held_ns.record(held_ns);
        for (count, (_, hold_ns, segments)) in self.by_device.iter_mut().zip(DEVICES) {
            let is_time = held_ns.abs_diff(hold_ns) <= tolerance_ns(hold_ns) + gap_ns / 2;
            let is_count = held_ns < hold_ns && segments.iter().any(|&most| ack.segments.abs_diff(most) <= 1);
            count.0 += u32::from(is_time || is_count);
            count.1 += u32::from(is_count);
        }
        let (from_ns, to_ns) = TIMERS_NS[HUNDRED];
        let is_timer = (from_ns..=to_ns).contains(&answer.since_oldest_ns());
        self.eights += u32::from(ack.segments == XNU_STRETCH || is_timer);
        let quarter_bytes = ack.window_bytes / 4;
        let is_quarter = (quarter_bytes..=quarter_bytes + 2 * mss_bytes).contains(&ack.acked_bytes);
        self.quarters += u32::from((is_quarter && ack.window_known) || is_timer);
    }

    fn lone_answered(&mut self, answer: &Answer, ack: &Ack, is_full: bool, at_once_ns: u64) {
        let waited_ns = answer.since_newest_ns();
        if waited_ns <= at_once_ns {
            self.lone += 1;
            let is_late = self.acks > QUICK_ACKS && is_full && !ack.is_pushed;
            self.lone_full += u32::from(is_late);
            return;
        }
        let waited_ns = answer.since_oldest_ns();
        if ack.is_pushed && waited_ns <= TIMERS_NS[EARLY].1 {
            self.reads += 1;
            return;
        }
        let timer = TIMERS_NS.iter().position(|(from, to)| (from..=to).contains(&&waited_ns));
        self.timers[timer.unwrap_or(OTHER)] += 1;
        if waited_ns > TIMERS_NS[EARLY].1 {
            self.timer_least_ns = Some(self.timer_least_ns.map_or(waited_ns, |ns| ns.min(waited_ns)));
        }
    }

    /// `thinned`: whether most of what arrived here was thinned below the receiver's TCP; None where
    /// that is not visible.
    pub fn finish(self, distance_ns: Option<u64>, thinned: Option<bool>) -> AckSystem {
        let held = self.held_ns.samples() as u32;
        let is_near = is_at_host(distance_ns);
        let mut found = AckSystem { judged_acks: self.acks, held_acks: held, ..AckSystem::default() };
        if self.acks >= ACKS_MIN {
            let full = held + self.pairs + self.batches;
            (found.names, found.share) = match f64::from(held) > STRETCHED_SHARE * f64::from(full) {
                true => self.stretched(held, thinned, is_near),
                false if thinned == Some(true) => (Vec::new(), 0.0),
                // Away from the receiver, the path may have drawn apart what arrived together.
                false => self.plain(f64::from(held), if is_near { ODD_SHARE } else { STRETCHED_SHARE }),
            };
        }
        let is_clear = found.names.len() == 1;
        // Away from the receiver, a hold may be a count, or a medium that delivers in bursts.
        let is_device = f64::from(held) > ODD_SHARE * f64::from(self.acks);
        found.confidence = (!found.names.is_empty()).then_some(match (is_near, is_clear) {
            (true, true) => Confidence::High,
            (false, true) if is_device => Confidence::Low,
            (true, false) | (false, true) => Confidence::Medium,
            (false, false) => Confidence::Low,
        });
        found.held_ns = self.held_ns;
        found
    }

    /// Devices and systems that hold ACKs. A capture at the receiver is taken above its driver: there,
    /// what looks like a hold is a reader's pause.
    fn stretched(&self, held: u32, thinned: Option<bool>, is_near: bool) -> (Vec<&'static str>, f64) {
        if held < STRETCHED_MIN {
            return (Vec::new(), 0.0);
        }
        let share = |count: u32| f64::from(count) / f64::from(held);
        let median_ns = self.held_ns.quantile(0.5).unwrap_or(0);
        let devices =
            DEVICES.iter().zip(self.by_device).filter_map(|(&(name, hold_ns, _), (all, counts))| {
                let is_it = median_ns.abs_diff(hold_ns) <= tolerance_ns(hold_ns) || 2 * counts > held;
                is_it.then_some((name, share(all)))
            });
        let own = share(self.eights).max(share(self.quarters));
        // At an even rate a time looks like a count, but not like a part of the window.
        if share(self.quarters) >= 1.0 - ODD_SHARE && thinned != Some(true) {
            return (vec!["apple"], own);
        }
        let mut fitting: Vec<_> = devices.filter(|_| thinned != Some(false) && !is_near).collect();
        if thinned != Some(true) {
            fitting.push(("apple", own));
        }
        fitting.sort_by(|a, b| b.1.total_cmp(&a.1));
        let best = fitting.first().map_or(0.0, |first| first.1);
        fitting.retain(|(_, share)| *share >= DEVICE_SHARE && *share >= best - ODD_SHARE);
        (fitting.into_iter().map(|(name, _)| name).collect(), best)
    }

    /// Systems that answer the second full segment at once.
    fn plain(&self, held: f64, held_share: f64) -> (Vec<&'static str>, f64) {
        let all = f64::from(self.acks);
        let share = |odd: f64| 1.0 - odd / all;
        if self.lone_full >= QUICK_ACKS && f64::from(self.lone) >= (1.0 - ODD_SHARE) * all {
            return (vec!["no-delayed-acks"], share(all - f64::from(self.lone)));
        }
        let timers = |kinds: &[usize]| f64::from(kinds.iter().map(|&kind| self.timers[kind]).sum::<u32>());
        let reads = f64::from(self.reads);
        let waits = reads + timers(&[EARLY, FORTY, HUNDRED, TWO_HUNDRED, OTHER]);
        let is_quick = f64::from(self.lone) > (QUICK_SHARE * all).max(2.0);
        // Linux doubles its wait while timers fire, but begins with the shortest.
        let begins_short = self.timer_least_ns.map_or(true, |ns| ns <= TIMERS_NS[FORTY].1);
        let is_spread = timers(&[EARLY, FORTY, OTHER]) > 2.0 * ODD_SHARE * waits
            && timers(&[HUNDRED, TWO_HUNDRED, OTHER]) > 2.0 * ODD_SHARE * waits;
        // Whether lone segments may be answered at once, and the waits of the others.
        let rules = [
            ("linux", true, if begins_short { waits - timers(&[EARLY]) } else { reads }),
            ("windows", false, timers(&[FORTY]).max(timers(&[TWO_HUNDRED]))),
            ("freebsd", false, timers(&[FORTY]).max(timers(&[HUNDRED]))),
            // These are not named without their timer.
            ("apple", false, if waits > 0.0 { timers(&[HUNDRED]) } else { f64::NEG_INFINITY }),
            ("lwip", false, if is_spread { waits } else { f64::NEG_INFINITY }),
        ];
        let fits = |may_be_quick: bool, waited: f64| {
            (may_be_quick || !is_quick)
                && waits - waited <= (2.0 * ODD_SHARE * waits).max(PAUSED_SHARE * all).max(1.0)
                && held <= (held_share * all).max(1.0)
        };
        let mut fitting: Vec<_> = rules.into_iter().filter(|rule| fits(rule.1, rule.2)).collect();
        fitting.sort_by(|a, b| b.2.total_cmp(&a.2));
        let best = fitting.first().map_or(0.0, |first| share(waits - first.2 + held));
        (fitting.into_iter().map(|rule| rule.0).collect(), best)
    }
}

fn tolerance_ns(hold_ns: u64) -> u64 {
    HOLD_TOLERANCE_NS.max(hold_ns / HOLD_TOLERANCE)
}
