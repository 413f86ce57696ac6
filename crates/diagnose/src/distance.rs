// SPDX-License-Identifier: MIT
//! How far the capture point is from an endpoint: the RTT between the two.
//!
//! Samples are answers to packets that passed: SYN-ACK to SYN and ACK to SYN-ACK, ACK to data, and
//! with timestamps whatever echoes the first packet of a tick. An answer may wait for an
//! application or a delayed-ACK timer, so the smallest of a few counts.

const KEPT: usize = 4;

/// A host answers its own capture point faster than any wire away from it.
pub const AT_HOST_NS: u64 = 300_000;

/// Whether the capture was taken at the endpoint, unless its processor is slow.
pub(crate) fn is_at_host(distance_ns: Option<u64>) -> bool {
    distance_ns.is_some_and(|ns| ns < AT_HOST_NS)
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Distance {
    samples_ns: [u64; KEPT],
    count: usize,
    recent: Option<Recent>,
    min_ns: Option<u64>,
    /// Timestamp of the packet whose echo is awaited, and when it passed.
    awaited: Option<(u32, u64)>,
    /// The highest timestamp sent towards the endpoint.
    newest: Option<u32>,
}

/// The smallest and the largest of the latest samples.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recent {
    pub min_ns: u64,
    pub max_ns: u64,
}

impl Distance {
    pub fn sample(&mut self, rtt_ns: u64) {
        self.samples_ns[self.count % KEPT] = rtt_ns;
        self.count += 1;
        let recent = &self.samples_ns[..self.count.min(KEPT)];
        let fold = |pick: fn(u64, u64) -> u64| recent.iter().copied().reduce(pick).unwrap_or(rtt_ns);
        self.recent = Some(Recent { min_ns: fold(u64::min), max_ns: fold(u64::max) });
        self.min_ns = Some(self.min_ns.map_or(rtt_ns, |min| min.min(rtt_ns)));
    }

    /// A packet towards the endpoint.
    pub fn towards(&mut self, time_ns: u64, value: u32) {
        if self.newest.map_or(true, |newest| value.wrapping_sub(newest) as i32 > 0) {
            self.newest = Some(value);
            self.awaited = self.awaited.or(Some((value, time_ns)));
        }
    }

    /// A packet from it.
    pub fn from(&mut self, time_ns: u64, echo: u32) {
        let Some((awaited, since_ns)) = self.awaited else { return };
        let ahead = echo.wrapping_sub(awaited) as i32;
        if ahead == 0 {
            self.sample(time_ns - since_ns);
        }
        if ahead >= 0 {
            self.awaited = None;
        }
    }

    pub fn recent(&self) -> Option<Recent> {
        self.recent
    }

    /// The smallest of all.
    pub fn min_ns(&self) -> Option<u64> {
        self.min_ns
    }
}
