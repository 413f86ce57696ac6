// SPDX-License-Identifier: MIT
//! A connection that hears of every read and one that hears only of news reach the same verdicts.

use ackwise_core::{flag, Action, Conn, Entry, Event, EventKind, PolicyChoice, Seq, Verdict};
use ackwise_link as _;

const MSS: u32 = 1_000;
const MS: u64 = 1_000_000;

/// Marsaglia's xorshift64 generator.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

struct Pair {
    told: Conn,
    spared: Conn,
    now_ns: u64,
    unacked_bytes: u32,
    wnd_bytes: u32,
    reads_spared: u32,
}

impl Pair {
    fn event(&self, kind: EventKind, random: u32) -> Event {
        let mut e = Event::new(kind, self.now_ns);
        e.random = random;
        e.unacked_bytes = self.unacked_bytes;
        e.wnd_bytes = self.wnd_bytes;
        e.wnd_max_bytes = 40 * MSS;
        e.wnd_next_bytes = 40 * MSS;
        e.rcv_mss_bytes = MSS;
        e.mss_max_bytes = MSS;
        e.rtt_us = 20_000;
        e.rto_us = 220_000;
        e.delay_max_us = 200_000;
        e
    }

    /// Gives the event to both connections and compares their verdicts.
    fn tell(&mut self, e: &Event) -> Verdict {
        let verdict = self.told.decide(e);
        assert_eq!(self.spared.decide(e), verdict, "{e:?}");
        verdict
    }

    fn read(&mut self, pending: Verdict, bytes: u32, at_once: bool, random: u32) -> Verdict {
        let mut e = self.event(EventKind::AppRead, random);
        e.bytes = bytes;
        let left = self.wnd_bytes.saturating_sub(self.unacked_bytes);
        if self.spared.read_is_news(left, e.wnd_max_bytes, at_once) {
            return self.tell(&e);
        }
        self.reads_spared += 1;
        let verdict = self.told.decide(&e);
        assert_eq!(verdict, pending, "{e:?}");
        verdict
    }

    fn acknowledge(&mut self, wnd_bytes: u32, random: u32) {
        self.wnd_bytes = wnd_bytes;
        self.unacked_bytes = 0;
        let e = self.event(EventKind::AckSent, random);
        self.tell(&e);
    }
}

#[test]
fn a_read_that_is_no_news_changes_no_verdict() {
    for entry in Entry::all() {
        let mut random = Random(1);
        let mut start = Event::new(EventKind::Data, 0);
        start.random = 1;
        start.rcv_mss_bytes = MSS;
        let conn = PolicyChoice::new(entry.name()).resolve().expect("a policy of the list").connect(&start);
        let mut pair = Pair {
            told: conn.clone(),
            spared: conn,
            now_ns: MS,
            unacked_bytes: 0,
            wnd_bytes: 40 * MSS,
            reads_spared: 0,
        };
        for _ in 0..20_000 {
            pair.now_ns += random.below(3 * MS);
            let above_hole = random.below(20) == 0;
            let bytes = if random.below(8) == 0 { 300 } else { MSS };
            if !above_hole {
                pair.unacked_bytes += bytes;
            }
            let mut e = pair.event(EventKind::Data, random.below(1 << 32) as u32);
            e.bytes = bytes;
            if above_hole {
                e.seq = Seq::Hole;
                e.sack_delay_us = pair.spared.sack_delay_us(true);
            } else {
                // The read of this data frees the buffer.
                e.unread_bytes = bytes;
                e.wnd_next_bytes = e.wnd_bytes.saturating_sub(e.unacked_bytes);
            }
            if random.below(10) == 0 {
                e.flags |= flag::PSH;
            }
            let mut verdict = pair.tell(&e);
            // Usually at once, otherwise a little later, before the timer.
            let at_once = random.below(4) > 0;
            if !at_once {
                pair.now_ns += random.below(MS);
            }
            if !above_hole && verdict.action != Action::SendNow {
                verdict = pair.read(verdict, bytes, at_once, random.below(1 << 32) as u32);
            }
            if let Action::WaitUntil(deadline_ns) = verdict.action {
                if deadline_ns <= pair.now_ns + MS / 2 {
                    pair.now_ns = pair.now_ns.max(deadline_ns);
                    let e = pair.event(EventKind::Deadline, random.below(1 << 32) as u32);
                    verdict = pair.tell(&e);
                }
            }
            if verdict.action == Action::SendNow || pair.unacked_bytes > 30 * MSS {
                // Includes windows that the next data fill.
                let window = [2, 10, 40][random.below(3) as usize] * MSS;
                pair.acknowledge(window, random.below(1 << 32) as u32);
            }
        }
        // Without an order, the host's own rules look at reads. An order of one byte is reached by each
        // segment and, while the window cannot move, asked about at its read. XNU's rules are about
        // reads, too.
        let hosts = ["linux", "bsd", "model"];
        let policies = ["ratelimit", "every", "dynamic", "greedy", "xnu", "xnustretch", "tack"];
        let is_told = hosts.contains(&entry.name()) || policies.contains(&entry.name());
        assert!(is_told || pair.reads_spared > 1000, "{}: {}", entry.name(), pair.reads_spared);
    }
}
