// SPDX-License-Identifier: MIT
//! A sender's processing of an arriving ACK.

use super::recovery::LossState;
use super::segment::{Departure, Tally};
use super::timers::Timer;
use super::{Sender, INITIAL_RTO_NS, MAX_RTO_NS, NEVER};
use crate::congestion::{AckSample, DeliveryRate};
use crate::packet::{Flags, Packet, SACK_BLOCKS};
use crate::scenario::Recovery;

/// New information in one ACK about the outstanding segments.
pub(super) struct News {
    pub sample: AckSample,
    pub prior_una: u64,
    /// RTT of the first acknowledged segment that was sent once and not SACKed before.
    pub clean_rtt_ns: Option<u64>,
    /// The echoed timestamp; 0: none.
    pub echo_ns: u64,
    /// Whether nothing was out of order before this ACK, nor is with it.
    pub in_order: bool,
    /// Whether it echoes congestion to a sender with outstanding data.
    pub echoes: bool,
    /// Whether it moves neither SND.UNA nor the window and carries no data.
    pub is_pure_duplicate: bool,
    /// End of the range that D-SACK reported.
    pub dsacked_end: Option<u64>,
    /// The lowest segment overtaken by one sent later; u64::MAX: none.
    pub overtaken: u64,
    /// The lowest newly delivered segment that was sent once; u64::MAX: none.
    pub lowest_original: u64,
    /// Whether it SACKs new data.
    pub sacks_data: bool,
    /// End of the highest segment SACKed before; 0: none.
    sacked_to: u64,
    /// The most recently sent of the newly delivered segments.
    newest: Option<Departure>,
    /// Whether a retransmitted segment is among those acknowledged.
    retransmitted: bool,
    /// Send times of segments that were sent once: the highest one acknowledged, and the lowest and
    /// the highest one SACKed.
    acked_sent_ns: Option<u64>,
    sacked_first_sent_ns: Option<u64>,
    sacked_sent_ns: Option<u64>,
}

impl News {
    fn new(sender: &Sender, p: &Packet, now: u64, window_moved: bool) -> Self {
        let prior_una = sender.una;
        let echoes = p.has(Flags::ECE) && sender.ecn.is_agreed && !sender.segments.is_empty();
        News {
            sample: sender.sample_before(now),
            prior_una,
            sacked_to: sender.sacked.highest(),
            clean_rtt_ns: None,
            echo_ns: p.echo_ns,
            in_order: sender.is_in_order() && p.sack.is_none() && !echoes,
            echoes,
            is_pure_duplicate: p.ack == prior_una && p.len == 0 && !window_moved,
            dsacked_end: None,
            overtaken: u64::MAX,
            lowest_original: u64::MAX,
            sacks_data: false,
            newest: None,
            retransmitted: false,
            acked_sent_ns: None,
            sacked_first_sent_ns: None,
            sacked_sent_ns: None,
        }
    }

    fn deliver(&mut self, departure: &Departure) {
        if self.newest.map_or(true, |n| departure.sent_ns >= n.sent_ns) {
            self.newest = Some(*departure);
        }
    }
}

impl Sender {
    /// Processes an ACK (on its own or on data). Returns the RTT visible on the wire: that of the
    /// first segment it covers that was sent once and not reported before.
    #[inline]
    pub fn on_ack(&mut self, now: u64, p: &Packet) -> Option<u64> {
        // RFC 9293, 3.10.7.4: old ACKs and ACKs of unsent data are ignored.
        if p.ack < self.una || p.ack > self.nxt {
            return None;
        }
        let window_moved = self.update_peer_window(p);
        self.queue.note_ack();
        if self.is_at_rest() && p.sack.is_none() {
            return None;
        }
        self.judge_ack(now, p, window_moved)
    }

    /// Processes an ACK that may carry information about outstanding data.
    #[inline(never)]
    fn judge_ack(&mut self, now: u64, p: &Packet, window_moved: bool) -> Option<u64> {
        let mut news = News::new(self, p, now, window_moved);
        if self.cfg.recovery == Recovery::Sack && p.sack.is_some() {
            self.take_dsack(p, &mut news);
            self.take_sack(p, &mut news);
        }
        self.take_cumulative(p.ack, &mut news);
        self.take_rtt(&mut news);
        self.take_delivery(&mut news);
        self.count_duplicate(p, window_moved, news.sample.acked_bytes);
        self.cc.on_rtt(&news.sample);
        self.judge_tail_probe(&news);
        let reordering_wait_ns = self.recover(&mut news);
        match reordering_wait_ns {
            Some(wait_ns) => self.arm_reordering(now, wait_ns),
            None if self.restarts_timer(&news) => self.restart_timer(now),
            None => {}
        }
        // Without SACK, data that waited behind a hole cannot be distinguished (Karn, RFC 6298, 3).
        let is_clean = self.cfg.recovery == Recovery::Sack || !news.retransmitted;
        news.clean_rtt_ns.filter(|_| is_clean)
    }

    /// Whether nothing is outstanding or expected: an ACK without SACK blocks changes at most the
    /// window. Each segment of a download carries such an ACK to the host that receives it.
    #[inline]
    fn is_at_rest(&self) -> bool {
        self.segments.is_empty()
            && self.timer == Timer::Off
            && self.tail_probe.is_none()
            && self.loss_state == LossState::Open
            && !self.cc.is_rate_based
    }

    /// Whether no segment was reported, taken as lost, or retransmitted.
    pub(super) fn is_in_order(&self) -> bool {
        let Tally { sacked, lost, again, .. } = self.tally;
        self.loss_state == LossState::Open && sacked + lost + again == 0
    }

    /// RFC 6298, 5.2 and 5.3: an ACK of new data restarts the timer. Newly SACKed data does so if
    /// it left before the retransmission of the segment that blocks all others (Linux,
    /// tcp_clean_rtx_queue).
    fn restarts_timer(&self, news: &News) -> bool {
        let sacked_earlier = || {
            let first = self.segments.front().map(|s| s.departure.sent_ns);
            news.sacked_first_sent_ns.is_some() && news.sacked_first_sent_ns < first
        };
        news.sample.acked_bytes > 0 || self.timer == Timer::Persist || sacked_earlier()
    }

    /// Updates SND.WND (RFC 9293, 3.10.7.4), stored as its right edge, which never moves back (RFC
    /// 9293, 3.8.6). Returns true when it moved.
    #[inline]
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

    /// Sample with the state before this ACK.
    fn sample_before(&self, now: u64) -> AckSample {
        AckSample {
            now_ns: now,
            mss: self.mss,
            prior_in_flight: self.bytes_in_flight(),
            window_limited: self.uses_window(),
            next_departure_ns: self.pace_ns,
            ..AckSample::default()
        }
    }

    /// Advances SND.UNA and removes covered segments from the queue (RFC 9293, 3.10.7.4).
    fn take_cumulative(&mut self, ack: u64, news: &mut News) {
        let now = news.sample.now_ns;
        news.sample.acked_bytes = ack - self.una;
        self.una = ack;
        self.grow_buffer();
        let mut overtaken = u64::MAX;
        while let Some(front) = self.segments.front_mut() {
            let end = front.end();
            let bytes = end.min(ack).saturating_sub(front.seq);
            if bytes == 0 && front.len > 0 {
                break;
            }
            if front.sacked {
                self.tally.sacked -= bytes;
            } else {
                news.sample.delivered_bytes += bytes;
                news.deliver(&front.departure);
                if !front.is_spurious(news.echo_ns) {
                    self.rack.deliver(now, front, self.min_rtt_ns);
                }
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
                news.sample.rtt_ns = news.sample.rtt_ns.or(Some(now - sent_ns));
                news.acked_sent_ns = Some(sent_ns);
                if end <= ack {
                    news.clean_rtt_ns = news.clean_rtt_ns.or(Some(now - sent_ns));
                }
                overtaken = overtaken.min(front.seq);
            }
            if end > ack {
                front.len -= bytes as u32;
                front.seq += bytes;
                break;
            }
            self.tally.sacked_segments -= u64::from(front.sacked);
            front.begin_buffer(false, &mut self.tally);
            self.segments.pop_front();
        }
        if let Some(front) = self.segments.front_mut() {
            front.begin_buffer(true, &mut self.tally);
        }
        if news.sample.acked_bytes > 0 {
            self.sacked.cut_below(self.una);
        }
        news.lowest_original = news.lowest_original.min(overtaken);
        if overtaken < news.sacked_to {
            self.rack.note_reordering(overtaken, self.highest_sacked(), self.mss);
        }
    }

    /// Updates the scoreboard of SACKed segments (RFC 6675, 4: Update()), from the lowest block
    /// upwards, so that a segment below another counts as overtaken before this ACK.
    fn take_sack(&mut self, p: &Packet, news: &mut News) {
        let mut blocks = [(0, 0); SACK_BLOCKS];
        let reported = p.sack.iter().flat_map(|blocks| blocks.iter());
        for (block, &given) in blocks.iter_mut().zip(reported) {
            *block = given;
        }
        blocks.sort_unstable();
        for (start, end) in blocks {
            self.take_sack_block(start.max(p.ack), end.min(self.nxt), news);
        }
        if news.overtaken < u64::MAX && !matches!(self.loss_state, LossState::Timeout { .. }) {
            self.rack.note_reordering(news.overtaken, self.highest_sacked(), self.mss);
        }
    }

    fn take_sack_block(&mut self, start: u64, end: u64, news: &mut News) {
        let highest = self.sacked.highest();
        let (segments, tally, rack) = (&mut self.segments, &mut self.tally, &mut self.rack);
        let min_rtt_ns = self.min_rtt_ns;
        self.sacked.insert(start, end, |from, to| {
            let first = segments.partition_point(|s| s.seq < from);
            // Data SACKed in one piece becomes one socket buffer (Linux, tcp_shift_skb_data).
            let mut follows_sacked = first > 0 && segments[first - 1].sacked;
            for seg in segments.iter_mut().skip(first) {
                if seg.end() > to {
                    seg.begin_buffer(!(follows_sacked && seg.sacked), tally);
                    break;
                }
                if seg.sacked {
                    seg.begin_buffer(!follows_sacked, tally);
                    follows_sacked = true;
                    continue;
                }
                rack.deliver(news.sample.now_ns, seg, min_rtt_ns);
                seg.sack(tally);
                seg.begin_buffer(!follows_sacked, tally);
                follows_sacked = true;
                news.sacks_data = true;
                if !seg.retransmitted {
                    let sent_ns = seg.departure.sent_ns;
                    news.sacked_first_sent_ns.get_or_insert(sent_ns);
                    news.sacked_sent_ns = Some(sent_ns);
                    news.lowest_original = news.lowest_original.min(seg.seq);
                    if seg.seq < highest {
                        news.overtaken = news.overtaken.min(seg.seq);
                    }
                }
                news.sample.delivered_bytes += u64::from(seg.len);
                news.deliver(&seg.departure);
            }
        });
    }

    /// RFC 6298: one measurement for each ACK that allows one; for congestion control also the RTT
    /// of the newest segment (Linux, tcp_clean_rtx_queue and tcp_ack_update_rtt).
    fn take_rtt(&mut self, news: &mut News) {
        let sample = &mut news.sample;
        let now = sample.now_ns;
        let mut newest_sent_ns = news.sacked_sent_ns.or(news.acked_sent_ns);
        if news.retransmitted {
            // Karn's algorithm (RFC 6298, 3): data acknowledged together with a retransmitted
            // segment had waited for it. An echoed timestamp is not ambiguous (RFC 7323, 4).
            let echo_ns = (news.echo_ns > 0).then_some(news.echo_ns);
            sample.rtt_ns = echo_ns.map(|sent_ns| now - sent_ns);
            newest_sent_ns = news.sacked_sent_ns.or(echo_ns);
        }
        sample.newest_rtt_ns = newest_sent_ns.map(|sent_ns| now - sent_ns);
        let of_sacked_ns = news.sacked_first_sent_ns.map(|sent_ns| now - sent_ns);
        let measured_ns =
            if news.retransmitted { of_sacked_ns.or(sample.rtt_ns) } else { sample.rtt_ns.or(of_sacked_ns) };
        if let Some(rtt_ns) = measured_ns {
            self.measure(rtt_ns);
            // RFC 6298, 5: the backed-off timeout stays until a measurement, also in Linux.
            self.backoff = 0;
        }
        if let Some(rtt_ns) = sample.newest_rtt_ns {
            self.min_rtt_ns = self.min_rtt_ns.min(rtt_ns);
        }
        sample.srtt_ns = self.srtt_ns;
        sample.una = self.una;
        sample.nxt = self.nxt;
    }

    /// Updates SRTT, RTTVAR and RTO (RFC 6298, 2.2 to 2.4).
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
            // RFC 6298, 2.4: the bound applies to the sum.
            (self.srtt_ns + 4 * self.rttvar_ns).clamp(min_rto_ns, MAX_RTO_NS)
        } else {
            // Linux applies the lower bound to the variance term, not to the sum.
            (self.srtt_ns + (4 * self.rttvar_ns).max(min_rto_ns)).min(MAX_RTO_NS)
        };
    }

    /// Counts delivered data; its newest segment gives the delivery rate and marks the rounds.
    fn take_delivery(&mut self, news: &mut News) {
        let sample = &mut news.sample;
        if sample.delivered_bytes > 0 {
            self.delivered += sample.delivered_bytes;
            self.delivered_ns = sample.now_ns;
        }
        if let Some(newest) = &news.newest {
            self.rack.adapt(newest.delivered, self.delivered);
            sample.rate = self.delivery_rate(sample.now_ns, newest);
            if sample.rate.is_some() && newest.delivered >= self.round_end {
                sample.round_started = true;
                self.round_end = self.delivered;
            }
        }
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
    }

    /// The rate over the flight of the newest delivered segment
    /// (draft-cheng-iccrg-delivery-rate-estimation, 3.3). None if it covers less than an RTT,
    /// because it would be the rate of a burst (Linux, tcp_rate_gen).
    pub(super) fn delivery_rate(&mut self, now: u64, newest: &Departure) -> Option<DeliveryRate> {
        let delivered = self.delivered - newest.delivered;
        let passed_us = |since_ns: u64, until_ns: u64| (until_ns / 1000).saturating_sub(since_ns / 1000);
        let sending_us = passed_us(newest.first_sent_ns, newest.sent_ns);
        self.first_sent_ns = newest.sent_ns;
        let interval_us = sending_us.max(passed_us(newest.delivered_ns, now));
        let is_rate = interval_us > 0 && (interval_us >= self.min_rtt_ns / 1000 || self.min_rtt_ns == NEVER);
        is_rate.then_some(DeliveryRate { bytes: delivered, interval_us, app_limited: newest.app_limited })
    }

    /// Counts a duplicate ACK (RFC 5681, 2), which carries no data, acknowledges nothing new and
    /// moves no window. With SACK, the window may move (RFC 6675, 2).
    fn count_duplicate(&mut self, p: &Packet, window_moved: bool, acked_bytes: u64) {
        if acked_bytes > 0 {
            self.dupacks = 0;
        } else if p.len == 0 && self.outstanding() > 0 && (!window_moved || p.sack.is_some()) {
            self.dupacks += 1;
        }
    }
}
