// SPDX-License-Identifier: MIT
//! Shift of the windows in headers (RFC 7323, 2.2). The handshake contains it; a capture that
//! starts later shows it where a sender fills the window repeatedly.

/// Maximum shift (RFC 7323, 2.3).
const SHIFT_MAX: u8 = 14;
/// A sender that stops this often just within the window stops because of it.
const FILLS: u32 = 16;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scale {
    from_handshake: Option<u8>,
    /// The smallest shift that allows the data sent, and how often the sender filled that window.
    least: u8,
    fills: u32,
}

impl Scale {
    /// Sets the shift from the SYNs, if they were captured.
    pub fn set(&mut self, shift: Option<u8>) {
        self.from_handshake = shift;
    }

    pub fn shift(&self) -> u8 {
        self.from_handshake.unwrap_or(self.least)
    }

    pub fn is_known(&self) -> bool {
        self.from_handshake.is_some() || self.fills >= FILLS
    }

    /// Records data sent into a window of `header` units: `flight_bytes` above the number
    /// acknowledged here, `heard_bytes` above the number that the sender had heard of, ending up to
    /// `slack_bytes` before the edge.
    pub fn sent(
        &mut self,
        header: u16,
        flight_bytes: u64,
        heard_bytes: u64,
        slack_bytes: Option<u64>,
        mss: u32,
    ) {
        if header == 0 || self.from_handshake.is_some() {
            return;
        }
        let before = self.least;
        let allowed_bytes = |shift: u8| u64::from(header) << shift;
        // The sender's view is known only to a tick of its clock.
        let exceeds =
            |shift: u8| flight_bytes > allowed_bytes(shift) || 2 * heard_bytes > 3 * allowed_bytes(shift);
        while self.least < SHIFT_MAX && exceeds(self.least) {
            self.least += 1;
        }
        if self.least > before {
            self.fills = 0;
        } else if slack_bytes.is_some_and(|bytes| bytes < mss.into()) {
            self.fills = self.fills.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// State after a window of 500 units of 128 bytes and a sender with this much in flight.
    fn after(flight_bytes: u64, packets: u32) -> Scale {
        let mut scale = Scale::default();
        for _ in 0..packets {
            let edge = 500u64 << scale.shift();
            scale.sent(500, flight_bytes, flight_bytes, edge.checked_sub(flight_bytes), 1448);
        }
        scale
    }

    #[test]
    fn a_sender_that_fills_the_window_shows_its_scale() {
        let scale = after(63_000, 20);
        assert_eq!((scale.shift(), scale.is_known()), (7, true));
        assert!(!after(63_000, 10).is_known());
    }

    #[test]
    fn a_sender_that_stops_elsewhere_does_not() {
        assert!(!after(50_000, 1000).is_known());
        assert!(!after(33_000, 1000).is_known());
    }

    #[test]
    fn a_handshake_says_it_at_once() {
        let mut scale = Scale::default();
        scale.set(Some(3));
        assert_eq!((scale.shift(), scale.is_known()), (3, true));
    }
}
