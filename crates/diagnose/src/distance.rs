// SPDX-License-Identifier: MIT
//! Distance of the capture point from an endpoint: the RTT between the two.
//!
//! Samples are the times until a passing packet is answered: SYN by SYN-ACK, SYN-ACK by ACK, data
//! by ACK, and with timestamps the first packet of a tick by its echo. An answer may wait for an
//! application or a delayed-ACK timer, so the minimum of a few samples counts.

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
    /// Timestamp of the packet whose echo is awaited, and the time it passed.
    awaited: Option<(u32, u64)>,
    /// The highest timestamp sent towards the endpoint.
    newest: Option<u32>,
}

/// Minimum and maximum of the latest samples.
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

    /// Processes a packet towards the endpoint.
    pub fn towards(&mut self, time_ns: u64, value: u32) {
        if self.newest.map_or(true, |newest| value.wrapping_sub(newest) as i32 > 0) {
            self.newest = Some(value);
            self.awaited = self.awaited.or(Some((value, time_ns)));
        }
    }

    /// Processes a packet from the endpoint.
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

    /// Minimum of all samples.
    pub fn min_ns(&self) -> Option<u64> {
        self.min_ns
    }
}
