// SPDX-License-Identifier: MIT
//! A data receiver's reaction to CE marks (RFC 3168, 6.1.3), as in Linux 6.12 (tcp_ecn_check_ce,
//! tcp_ecn_accept_cwr).

use crate::packet::{Ecn, Flags, Packet};
use ackwise_core::Seq;

/// Linux: number of immediate ACKs after a mark, because the sender's window may be a single
/// segment.
const QUICK_ACKS: u8 = 2;

/// Echo of congestion at one end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Echo {
    /// Whether the ends agreed on ECN.
    pub is_agreed: bool,
    /// Whether each departing segment has ECE, until the peer's CWR confirms its reaction.
    pub echoes: bool,
    /// Whether the peer has sent a segment that could be marked.
    seen_ect: bool,
    /// Whether the previous segment was marked.
    was_marked: bool,
    /// Number of ACKs that must leave at once.
    quick: u8,
}

impl Echo {
    /// Processes a segment with data, a FIN or a probe. Returns whether it differs from the
    /// previous one in being marked.
    // "continues to set the ECN-Echo flag [...] until it receives a CWR packet" [RFC 3168, 6.1.3]
    pub fn on_segment(&mut self, p: &Packet, place: Seq) -> bool {
        if !self.is_agreed {
            return false;
        }
        if p.has(Flags::CWR) {
            self.echoes = false;
            if p.len > 0 {
                self.quick = self.quick.max(1);
            }
        }
        if p.len > 0 && place != Seq::Duplicate {
            self.take_mark(p.ecn);
        }
        let is_marked = p.ecn == Ecn::Ce;
        std::mem::replace(&mut self.was_marked, is_marked) != is_marked
    }

    fn take_mark(&mut self, ecn: Ecn) {
        let is_news = match ecn {
            // A retransmission: RFC 3168, 6.1.5.
            Ecn::NotEct => self.seen_ect,
            Ecn::Ect => false,
            Ecn::Ce => !std::mem::replace(&mut self.echoes, true),
        };
        self.seen_ect |= ecn != Ecn::NotEct;
        if is_news {
            self.quick = self.quick.max(QUICK_ACKS);
        }
    }

    /// Whether the host wants pending data acknowledged at once.
    pub fn asks_for_ack(&self) -> bool {
        self.quick > 0
    }

    pub fn on_ack_sent(&mut self) {
        self.quick = self.quick.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::tests::packet;

    /// A segment arrives; returns whether an ACK is requested, and whether it then has ECE.
    fn arrives(echo: &mut Echo, ecn: Ecn, cwr: bool) -> (bool, bool) {
        let mut p = packet(1, 1000, 960, 0);
        p.ecn = ecn;
        p.flags.set(Flags::CWR, cwr);
        echo.on_segment(&p, Seq::In);
        let asks = echo.asks_for_ack();
        echo.on_ack_sent();
        (asks, echo.echoes)
    }

    fn agreed() -> Echo {
        Echo { is_agreed: true, ..Echo::default() }
    }

    #[test]
    // [RFC 3168, 6.1.3]
    fn a_mark_is_echoed_until_the_sender_has_reacted() {
        let mut echo = agreed();
        assert_eq!(arrives(&mut echo, Ecn::Ect, false), (false, false));
        // Two immediate ACKs from the mark on, then the policy decides.
        assert_eq!(arrives(&mut echo, Ecn::Ce, false), (true, true));
        assert_eq!(arrives(&mut echo, Ecn::Ect, false), (true, true));
        assert_eq!(arrives(&mut echo, Ecn::Ect, false), (false, true));
        // Another mark changes nothing.
        assert_eq!(arrives(&mut echo, Ecn::Ce, false), (false, true));
        // CWR ends it, with an immediate ACK: the window is small.
        assert_eq!(arrives(&mut echo, Ecn::Ect, true), (true, false));
        assert_eq!(arrives(&mut echo, Ecn::Ect, false), (false, false));
        // A marked segment with CWR starts another echo.
        assert_eq!(arrives(&mut echo, Ecn::Ce, true), (true, true));
    }

    #[test]
    fn a_segment_that_cannot_be_marked_among_others_is_a_retransmission() {
        let mut echo = agreed();
        assert_eq!(arrives(&mut echo, Ecn::NotEct, false), (false, false));
        arrives(&mut echo, Ecn::Ect, false);
        assert_eq!(arrives(&mut echo, Ecn::NotEct, false), (true, false));
        assert_eq!(arrives(&mut echo, Ecn::Ect, false), (true, false));
        assert_eq!(arrives(&mut echo, Ecn::Ect, false), (false, false));
    }

    #[test]
    fn a_change_of_the_mark_is_told_either_way() {
        let mut echo = agreed();
        let mut changes = |marks: &[Ecn]| -> Vec<bool> {
            let mut p = packet(1, 1000, 960, 0);
            marks
                .iter()
                .map(|&ecn| {
                    p.ecn = ecn;
                    echo.on_segment(&p, Seq::In)
                })
                .collect()
        };
        let marks = [Ecn::Ect, Ecn::Ce, Ecn::Ce, Ecn::Ect, Ecn::NotEct];
        assert_eq!(changes(&marks), [false, true, false, true, false]);
    }

    #[test]
    fn without_an_agreement_and_of_a_duplicate_a_mark_means_nothing() {
        let mut echo = Echo::default();
        assert_eq!(arrives(&mut echo, Ecn::Ce, false), (false, false));
        let mut p = packet(1, 1000, 960, 0);
        p.ecn = Ecn::Ce;
        let mut echo = agreed();
        echo.on_segment(&p, Seq::Duplicate);
        assert!(!echo.echoes);
    }
}
