// SPDX-License-Identifier: MIT
//! What an arriving ACK does to a sender.

use super::segment::Departure;
use super::timers::Timer;
use super::{Sender, INITIAL_RTO_NS, MAX_RTO_NS};
use crate::congestion::{AckSample, DeliveryRate};
use crate::packet::Packet;
use crate::scenario::Recovery;

/// A delivery rate over less than this part of an RTT would be a burst, not a rate.
const RATE_MIN_RTT_SHARE: u64 = 8;

/// What one ACK newly reported about the segments that were out.
struct News {
    sample: AckSample,
    /// The segment sent last among those newly delivered.
    newest: Option<Departure>,
    /// A retransmitted segment is among those acknowledged.
    retransmitted: bool,
    /// When the highest of those acknowledged, and of those SACKed, left that were sent once.
    acked_sent_ns: Option<u64>,
    sacked_sent_ns: Option<u64>,
}

impl News {
    fn new(sample: AckSample) -> Self {
        News { sample, newest: None, retransmitted: false, acked_sent_ns: None, sacked_sent_ns: None }
    }

    fn deliver(&mut self, departure: &Departure) {
        if self.newest.map_or(true, |n| departure.sent_ns >= n.sent_ns) {
            self.newest = Some(*departure);
        }
    }
}

impl Sender {
    /// An ACK (on its own or on data) arrived. Returns the round-trip time it measured.
    pub fn on_ack(&mut self, now: u64, p: &Packet) -> Option<u64> {
        // RFC 9293, 3.10.7.4: old ACKs and those of data not sent are ignored.
        if p.ack < self.una || p.ack > self.nxt {
            return None;
        }
        let window_moved = self.update_peer_window(p);
        let mut news = News::new(self.sample_before(now));
        self.take_cumulative(p.ack, &mut news);
        self.take_sack(p, &mut news);
        self.take_rtt(p, &mut news);
        let News { mut sample, newest, .. } = news;
        self.take_delivery(newest.as_ref(), &mut sample);
        self.count_duplicate(p, window_moved, sample.acked_bytes);
        self.cc.on_rtt(&sample);
        let lost_again = newest.is_some_and(|newest| self.mark_lost_again(newest.sent_ns));
        self.recover(&mut sample, lost_again);
        // RFC 6298, 5.2 and 5.3: new data acknowledged restarts the timer.
        if sample.delivered_bytes > 0 || sample.acked_bytes > 0 || self.timer == Timer::Persist {
            self.restart_timer(now);
        }
        sample.rtt_ns
    }

    /// RFC 9293, 3.10.7.4: SND.WND, here by its right edge, which never moves back (RFC 9293,
    /// 3.8.6). Returns true when it moved.
    fn update_peer_window(&mut self, p: &Packet) -> bool {
        let right = p.ack + u64::from(p.wnd_bytes);
        let moved = right > self.wnd_right;
        self.wnd_right = self.wnd_right.max(right);
        self.wnd_max = self.wnd_max.max(p.wnd_bytes.into());
        if moved && self.outstanding() == 0 {
            // Window probes are over; data has its own timeouts.
            self.backoff = 0;
        }
        moved
    }

    /// The state in front of this ACK.
    fn sample_before(&self, now: u64) -> AckSample {
        let (window, in_flight) = (self.window(), self.bytes_in_flight());
        // In slow start a window is in use when half of it is (Linux, tcp_is_cwnd_limited).
        let half_used = self.cc.window.in_slow_start() && 2 * in_flight >= window;
        AckSample {
            now_ns: now,
            mss: self.mss,
            prior_in_flight: in_flight,
            window_limited: in_flight + self.mss > window || half_used,
            ..AckSample::default()
        }
    }

    /// RFC 9293, 3.10.7.4: advances SND.UNA and takes what it covers off the queue.
    fn take_cumulative(&mut self, ack: u64, news: &mut News) {
        news.sample.acked_bytes = ack - self.una;
        self.una = ack;
        while let Some(front) = self.segments.front_mut() {
            let end = front.seq + u64::from(front.len);
            let bytes = end.min(ack).saturating_sub(front.seq);
            if bytes == 0 && front.len > 0 {
                break;
            }
            if front.sacked {
                self.tally.sacked -= bytes;
            } else {
                news.sample.delivered_bytes += bytes;
                news.deliver(&front.departure);
            }
            if front.lost {
                self.tally.lost -= bytes;
            }
            if front.again_in_flight {
                self.tally.again -= bytes;
            }
            news.retransmitted |= front.retransmitted;
            if !front.retransmitted && !front.sacked {
                let sent_ns = front.departure.sent_ns;
                news.sample.rtt_ns = news.sample.rtt_ns.or(Some(news.sample.now_ns - sent_ns));
                news.acked_sent_ns = Some(sent_ns);
            }
            if end > ack {
                front.len -= bytes as u32;
                front.seq += bytes;
                break;
            }
            self.segments.pop_front();
        }
    }

    /// RFC 6675, 4: Update(), the scoreboard of SACKed segments.
    fn take_sack(&mut self, p: &Packet, news: &mut News) {
        for &(start, end) in p.sack.iter().flat_map(|blocks| blocks.iter()) {
            self.take_sack_block(start, end, news);
        }
        if news.sample.acked_bytes > 0 {
            self.sacked.cut_below(self.una);
        }
    }

    fn take_sack_block(&mut self, start: u64, end: u64, news: &mut News) {
        if end <= self.una || self.cfg.recovery != Recovery::Sack {
            return;
        }
        let segments = &mut self.segments;
        let tally = &mut self.tally;
        self.sacked.insert(start.max(self.una), end.min(self.nxt), |from, to| {
            let first = segments.partition_point(|s| s.seq < from);
            for seg in segments.iter_mut().skip(first) {
                let bytes = u64::from(seg.len);
                if seg.seq + bytes > to {
                    break;
                }
                if seg.sacked {
                    continue;
                }
                seg.sack(tally);
                if !seg.retransmitted {
                    news.sacked_sent_ns = Some(seg.departure.sent_ns);
                }
                news.sample.delivered_bytes += bytes;
                news.deliver(&seg.departure);
            }
        });
    }

    /// RFC 6298: one measurement for each ACK that allows one; for congestion control also the RTT of
    /// the newest segment (tcp_clean_rtx_queue of Linux).
    fn take_rtt(&mut self, p: &Packet, news: &mut News) {
        let sample = &mut news.sample;
        let mut newest_sent_ns = news.sacked_sent_ns.or(news.acked_sent_ns);
        if news.retransmitted {
            // Karn's algorithm (RFC 6298, 3): data acknowledged with a retransmitted segment had
            // waited for it. An echoed timestamp is not ambiguous (RFC 7323, 4).
            let echo_ns = (p.echo_ns > 0).then_some(p.echo_ns);
            sample.rtt_ns = echo_ns.map(|sent_ns| sample.now_ns - sent_ns);
            newest_sent_ns = news.sacked_sent_ns.or(echo_ns);
        }
        sample.newest_rtt_ns = newest_sent_ns.map(|sent_ns| sample.now_ns - sent_ns);
        if let Some(rtt_ns) = sample.rtt_ns {
            self.measure(rtt_ns);
            // RFC 6298, 5: the backed-off timeout stays until a measurement (so does Linux).
            self.backoff = 0;
        }
        sample.srtt_ns = self.srtt_ns;
        sample.una = self.una;
        sample.nxt = self.nxt;
    }

    /// RFC 6298, 2.2 to 2.4.
    pub(super) fn measure(&mut self, rtt_ns: u64) {
        if self.srtt_ns == 0 {
            self.srtt_ns = rtt_ns;
            self.rttvar_ns = rtt_ns / 2;
        } else {
            let delta = self.srtt_ns.abs_diff(rtt_ns);
            self.rttvar_ns = self.rttvar_ns - self.rttvar_ns / 4 + delta / 4;
            self.srtt_ns = self.srtt_ns - self.srtt_ns / 8 + rtt_ns / 8;
        }
        let min_rto_ns = self.cfg.min_rto_ns;
        self.rto_ns = if min_rto_ns >= INITIAL_RTO_NS {
            // RFC 6298, 2.4: the sum has the bound.
            (self.srtt_ns + 4 * self.rttvar_ns).clamp(min_rto_ns, MAX_RTO_NS)
        } else {
            // Linux bounds the variance's part, not the sum, from below.
            (self.srtt_ns + (4 * self.rttvar_ns).max(min_rto_ns)).min(MAX_RTO_NS)
        };
    }

    /// Counts what was delivered; `newest` gives the delivery rate and marks the rounds.
    fn take_delivery(&mut self, newest: Option<&Departure>, sample: &mut AckSample) {
        if sample.delivered_bytes > 0 {
            self.delivered += sample.delivered_bytes;
            self.delivered_ns = sample.now_ns;
        }
        if let Some(newest) = newest {
            sample.rate = self.delivery_rate(sample.now_ns, newest);
            if newest.delivered >= self.round_end {
                sample.round_started = true;
                self.round_end = self.delivered;
            }
        }
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
    }

    /// The rate over the newest delivered segment's flight
    /// (draft-cheng-iccrg-delivery-rate-estimation, 3.3).
    fn delivery_rate(&mut self, now: u64, newest: &Departure) -> Option<DeliveryRate> {
        let delivered = self.delivered - newest.delivered;
        let sending_ns = newest.sent_ns.saturating_sub(newest.first_sent_ns);
        let acking_ns = now - newest.delivered_ns;
        self.first_sent_ns = newest.sent_ns;
        let interval_ns = sending_ns.max(acking_ns);
        (interval_ns > 0 && interval_ns >= self.srtt_ns / RATE_MIN_RTT_SHARE).then(|| DeliveryRate {
            bytes_per_s: delivered as f64 * 1e9 / interval_ns as f64,
            app_limited: newest.app_limited,
        })
    }

    /// RFC 5681, 2: a duplicate ACK carries no data, acknowledges nothing new and moves no window.
    /// With SACK a moved window does not matter (RFC 6675, 2).
    fn count_duplicate(&mut self, p: &Packet, window_moved: bool, acked_bytes: u64) {
        if acked_bytes > 0 {
            self.dupacks = 0;
            self.probed = false;
        } else if p.len == 0 && self.outstanding() > 0 && (!window_moved || p.sack.is_some()) {
            self.dupacks += 1;
        }
    }
}
