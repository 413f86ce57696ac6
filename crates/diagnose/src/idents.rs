// SPDX-License-Identifier: MIT
//! IP identification of an endpoint that counts its packets, as Linux does for each connection: a
//! gap means packets that were sent but did not reach the capture point.

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Idents {
    next: Option<u16>,
    in_order: u8,
}

/// Position of a packet's identification in the endpoint's count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ident {
    /// Distance from the successor of the highest one; negative: the packet was overtaken, or sent
    /// twice. Arbitrary where the endpoint does not count.
    pub ahead: i16,
    /// Whether enough came in order before that it is no accident.
    pub counts: bool,
}

impl Idents {
    /// Number in a row that is no accident.
    const COUNTS: u8 = 4;
    const GAP_MAX: u16 = 256;

    /// Processes a packet of `segments` segments, each of which uses one identification.
    pub fn came(&mut self, number: u16, segments: u32) -> Ident {
        let behind_it = Some(number.wrapping_add(segments as u16));
        let Some(next) = self.next else {
            self.next = behind_it;
            return Ident::default();
        };
        let ahead = number.wrapping_sub(next) as i16;
        let counts = self.in_order >= Self::COUNTS && number != 0;
        let is_near = ahead.unsigned_abs() <= Self::GAP_MAX;
        if ahead == 0 {
            self.in_order = self.in_order.saturating_add(1);
        } else if !is_near {
            self.in_order = 0;
        }
        if ahead >= 0 || !is_near {
            self.next = behind_it;
        }
        Ident { ahead, counts }
    }
}

impl Ident {
    /// Numbers skipped before this packet, though nothing may show yet that the endpoint counts; 0
    /// where it jumps.
    pub fn skipped_packets(self) -> u32 {
        match u16::try_from(self.ahead) {
            Ok(ahead) if ahead <= Idents::GAP_MAX => ahead.into(),
            _ => 0,
        }
    }

    /// Number of packets missing before this one; 0 where identifications are no evidence.
    pub fn missing_packets(self) -> u32 {
        if self.counts {
            self.skipped_packets()
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Missing packets according to the identifications of single-segment packets in sequence.
    fn missing(numbers: impl IntoIterator<Item = u16>) -> Vec<u32> {
        let mut idents = Idents::default();
        numbers.into_iter().map(|number| idents.came(number, 1).missing_packets()).collect()
    }

    #[test]
    fn a_gap_shows_what_is_missing_once_enough_came_in_order() {
        assert_eq!(missing([7, 8, 9, 10, 11, 14, 15, 16]), [0, 0, 0, 0, 0, 2, 0, 0]);
        assert_eq!(missing([7, 8, 9, 12]), [0; 4]);
        // across the largest number
        assert_eq!(missing([65_532, 65_533, 65_534, 65_535, 1, 2, 4])[4..], [0, 0, 1]);
    }

    #[test]
    fn a_packet_that_was_overtaken_leaves_the_count_as_it_is() {
        assert_eq!(missing([7, 8, 9, 10, 11, 14, 12, 13, 15, 17]), [0, 0, 0, 0, 0, 2, 0, 0, 0, 1]);
    }

    #[test]
    fn a_sender_that_does_not_count_misses_nothing() {
        assert_eq!(missing([0; 9]), [0; 9]);
        let scattered = (0..2000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 16) as u16);
        assert!(missing(scattered).iter().all(|&n| n == 0));
    }
}
