// SPDX-License-Identifier: MIT
//! Behaviour of the applications at both ends of a flow: when they write, and what counts as a
//! message.

use crate::endpoint::Role;
use crate::rng::Rng;
use crate::scenario::{AppSpec, Bulk, OddWrites, ParetoBulk, RandomSpacing, Replay, RequestResponse};
use crate::sender::{Sender, NEVER};
use std::collections::VecDeque;

/// Shape of the bounded Pareto distribution of flow sizes: heavy-tailed as measured for file
/// transfers (1.1 to 1.3), with a mean that exists.
const PARETO_SHAPE: f64 = 1.2;

/// The applications of one flow. The data sender's side writes the data; the other side reads it
/// and, in request/response, requests it.
pub struct App {
    spec: AppSpec,
    rng: Rng,
    /// Next time at which the writing side acts.
    pub wake_ns: u64,
    /// Next time at which the requesting side acts.
    pub ask_ns: u64,
    /// Messages in progress: (end in the data stream, time of the first write).
    messages: VecDeque<(u64, u64)>,
    /// End of the stream of a bulk writer.
    limit: u64,
    has_begun: bool,
    done: u32,
    written: u32,
    /// Time of the first write of data.
    pub wrote_ns: Option<u64>,
    asked_ns: u64,
    /// Number of request bytes answered by the writing side.
    answered: u64,
}

impl App {
    pub fn new(spec: &AppSpec, mut rng: Rng) -> Self {
        let limit = match spec {
            AppSpec::Bulk(Bulk { bytes }) if *bytes > 0 => *bytes,
            AppSpec::ParetoBulk(ParetoBulk { mean_bytes, max_bytes }) => {
                pareto(rng.unit(), *mean_bytes as f64, *max_bytes as f64)
            }
            _ => NEVER,
        };
        App {
            spec: spec.clone(),
            wake_ns: NEVER,
            ask_ns: NEVER,
            messages: VecDeque::new(),
            limit,
            has_begun: false,
            done: 0,
            written: 0,
            wrote_ns: None,
            asked_ns: 0,
            answered: 0,
            rng,
        }
    }

    /// The side whose application acts first, as soon as its end is established.
    pub fn first(&self) -> Role {
        match self.spec {
            AppSpec::RequestResponse(_) => Role::DataReceiver,
            _ => Role::DataSender,
        }
    }

    /// Starts that application.
    pub fn begin(&mut self, now: u64) {
        self.has_begun = true;
        match &self.spec {
            // Writes now, and again whenever there is room.
            AppSpec::Bulk(_) | AppSpec::ParetoBulk(_) => {}
            AppSpec::RequestResponse(_) => self.ask_ns = now,
            AppSpec::Replay(Replay { times_ns, .. }) => {
                self.wake_ns = times_ns.first().map_or(NEVER, |t| now + t);
            }
            AppSpec::RandomSpacing(_) | AppSpec::OddWrites(_) => self.wake_ns = now,
        }
        if self.limit != NEVER {
            self.messages.push_back((self.limit, now));
        }
    }

    /// Number of bytes that a bulk writer may write now.
    pub fn writable(&self, tx: &Sender) -> u64 {
        if self.is_bulk() {
            tx.fillable(self.limit)
        } else {
            0
        }
    }

    /// Whether a bulk writer has more to write.
    pub fn has_more(&self, tx: &Sender) -> bool {
        self.is_bulk() && tx.written < self.limit
    }

    pub fn is_bulk(&self) -> bool {
        matches!(self.spec, AppSpec::Bulk(_) | AppSpec::ParetoBulk(_))
    }

    /// Gives the writing side its turn: after a start, a timer, or an ACK that freed room. A bulk
    /// writer writes at most `most` bytes. Returns true while TCP output should run and the writer
    /// be called again.
    pub fn write(&mut self, now: u64, tx: &mut Sender, most: u64) -> bool {
        if self.is_bulk() {
            self.wrote_ns.get_or_insert(now);
            let again = tx.fill(now, self.limit, most);
            self.wake_ns = tx.copied_ns();
            if tx.written == self.limit {
                tx.fin_at = self.limit;
            }
            return again;
        }
        if now < self.wake_ns {
            return false;
        }
        self.wake_ns = NEVER;
        self.wrote_ns.get_or_insert(now);
        match &self.spec {
            AppSpec::RandomSpacing(RandomSpacing { packets, bytes, min_gap_ns, max_gap_ns }) => {
                put(&mut self.messages, now, tx, u64::from(*bytes), 1);
                self.written += 1;
                if self.written < *packets {
                    self.wake_ns = now + min_gap_ns + self.rng.up_to(max_gap_ns.saturating_sub(*min_gap_ns));
                } else {
                    tx.fin_at = tx.written;
                }
            }
            AppSpec::OddWrites(OddWrites { write_bytes, writes, .. }) => {
                put(&mut self.messages, now, tx, u64::from(*write_bytes), *writes);
            }
            AppSpec::Replay(Replay { times_ns, bytes }) => {
                let at = self.written as usize;
                let next = at + 1;
                put(&mut self.messages, now, tx, u64::from(bytes[at]), 1);
                self.written += 1;
                match times_ns.get(next) {
                    Some(t) => self.wake_ns = now + (t - times_ns[at]),
                    None => tx.fin_at = tx.written,
                }
            }
            _ => {}
        }
        false
    }

    /// Timer of the requesting side: writes a request.
    #[inline]
    pub fn ask(&mut self, now: u64, tx: &mut Sender) {
        if now >= self.ask_ns {
            self.write_request(now, tx);
        }
    }

    #[cold]
    fn write_request(&mut self, now: u64, tx: &mut Sender) {
        self.ask_ns = NEVER;
        if let AppSpec::RequestResponse(RequestResponse { request_bytes, .. }) = self.spec {
            tx.write(request_bytes.into());
            self.asked_ns = now;
        }
    }

    /// The writing side has read requests up to `read`, and answers each complete one.
    pub fn on_request(&mut self, now: u64, read: u64, tx: &mut Sender) {
        if let AppSpec::RequestResponse(RequestResponse { request_bytes, response_bytes, .. }) = self.spec {
            while self.answered + u64::from(request_bytes) <= read {
                self.wrote_ns.get_or_insert(now);
                self.answered += u64::from(request_bytes);
                tx.write(response_bytes);
                self.messages.push_back((tx.written, self.asked_ns));
            }
        }
    }

    /// The reading side has read the data up to `read`; calls `latency` for each complete message.
    pub fn on_delivered(&mut self, now: u64, read: u64, mut latency: impl FnMut(u64)) {
        while let Some(&(end, since)) = self.messages.front() {
            if end > read {
                break;
            }
            self.messages.pop_front();
            latency(now - since);
            self.done += 1;
            match self.spec {
                AppSpec::RequestResponse(RequestResponse { think_ns, count, .. })
                    if count == 0 || self.done < count =>
                {
                    self.ask_ns = now + think_ns;
                }
                AppSpec::OddWrites(OddWrites { gap_ns, count, .. }) if count == 0 || self.done < count => {
                    self.wake_ns = now + gap_ns;
                }
                _ => {}
            }
        }
    }

    /// Whether nothing remains to be done once everything written is acknowledged.
    #[cold]
    pub fn is_finished(&self) -> bool {
        let finite = match self.spec {
            AppSpec::Bulk(Bulk { bytes }) => bytes > 0,
            // While a request is in flight, nothing else shows that it exists.
            AppSpec::RequestResponse(RequestResponse { count, .. })
            | AppSpec::OddWrites(OddWrites { count, .. }) => count > 0 && self.done >= count,
            _ => true,
        };
        self.has_begun && finite && self.wake_ns == NEVER && self.ask_ns == NEVER && self.messages.is_empty()
    }
}

/// Writes one message in `writes` writes.
fn put(messages: &mut VecDeque<(u64, u64)>, now: u64, tx: &mut Sender, bytes: u64, writes: u32) {
    let end = tx.written + bytes * u64::from(writes);
    for _ in 0..writes {
        tx.write(bytes);
    }
    messages.push_back((end, now));
}

/// Size at quantile `u` of the bounded Pareto distribution with this mean and maximum, by
/// inversion; the lower bound is chosen to give the mean.
pub fn pareto(u: f64, mean: f64, max: f64) -> u64 {
    let a = PARETO_SHAPE;
    let mean_of = |low: f64| {
        let ratio = (low / max).powf(a);
        low.powf(a) / (1.0 - ratio) * a / (a - 1.0) * (low.powf(1.0 - a) - max.powf(1.0 - a))
    };
    let (mut low, mut high) = (1.0, mean.min(max - 1.0).max(1.0));
    for _ in 0..60 {
        let mid = (low + high) / 2.0;
        if mean_of(mid) < mean {
            low = mid;
        } else {
            high = mid;
        }
    }
    let ratio = (low / max).powf(a);
    ((low / (1.0 - u * (1.0 - ratio)).powf(1.0 / a)) as u64).clamp(1, max as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_sizes_have_the_mean_asked_for() {
        let mut rng = Rng::new(3, 3);
        let n = 400_000;
        let sum: u64 = (0..n).map(|_| pareto(rng.unit(), 50_000.0, 1_000_000.0)).sum();
        let mean = sum as f64 / f64::from(n);
        assert!((mean / 50_000.0 - 1.0).abs() < 0.02, "{mean}");
    }

    /// Values from an independent calculation.
    #[test]
    fn flow_sizes_follow_their_quantile() {
        let size = |u| pareto(u, 50_000.0, 1_000_000.0);
        let sizes = [0.0, 0.25, 0.5, 0.9, 0.999, 0.999_999_9].map(size);
        assert_eq!(sizes, [14_498, 18_394, 25_700, 94_397, 883_759, 999_986]);
    }
}
