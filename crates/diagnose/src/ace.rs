// SPDX-License-Identifier: MIT
//! A receiver's report of CE marks in Accurate ECN: the ACE field, a counter of three bits in the
//! flags AE, CWR and ECE (RFC 9768, 3.2.2).

use ackwise_capture::tcp_flag::{AE, CWR, ECE, SYN};

/// Initial value of the counter of CE-marked packets (3.2.1).
const BEGIN: u32 = 5;
/// Number of values; this many packets may wrap it.
pub(crate) const MODULUS: u32 = 8;
/// Value that means that the IP header of the peer's SYN or SYN-ACK was CE-marked (tables 2 and 3).
const HANDSHAKE_CE: u32 = 0b110;

fn ace(flags: u16) -> u32 {
    [AE, CWR, ECE].iter().fold(0, |value, flag| value << 1 | u32::from(flags & flag != 0))
}

/// State of the counter in the packets of one endpoint.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Ace {
    /// Not negotiated, not seen from the start, or cleared by something on the path (3.2.2.4).
    #[default]
    Unknown,
    /// The endpoint opened the connection: its first packet after the SYN echoes the SYN-ACK's IP
    /// header instead (3.2.2.1).
    Echoes,
    Counts {
        last: u32,
    },
}

impl Ace {
    /// The states of the endpoint that opened the connection, and of the other, whose SYN-ACK had
    /// these flags.
    pub fn of_handshake(syn_ack_flags: u16) -> [Self; 2] {
        [Ace::Echoes, Ace::Counts { last: BEGIN + u32::from(ace(syn_ack_flags) == HANDSHAKE_CE) }]
    }

    /// Number of packets newly reported as CE-marked by the endpoint's next packet, modulo 8; None
    /// where its flags do not say.
    pub fn heard(&mut self, flags: u16) -> Option<u32> {
        let now = ace(flags);
        let marked = now == HANDSHAKE_CE;
        match *self {
            Ace::Unknown => None,
            _ if flags & SYN != 0 => Some(marked.into()),
            Ace::Echoes => {
                if now == 0 {
                    *self = Ace::Unknown;
                    return None;
                }
                *self = Ace::Counts { last: BEGIN + u32::from(marked) };
                Some(marked.into())
            }
            Ace::Counts { last } => {
                *self = Ace::Counts { last: now };
                Some((now + MODULUS - last) % MODULUS)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flags that encode a value of the counter.
    fn carrying(value: u64) -> u16 {
        let bit = |n: u64, flag| if value >> n & 1 == 1 { flag } else { 0 };
        bit(2, AE) | bit(1, CWR) | bit(0, ECE)
    }

    #[test]
    fn a_counter_of_three_bits_is_followed_over_its_wraps() {
        let mut ace = Ace::of_handshake(carrying(0b010))[1];
        let mut count = 5;
        for marked in [0, 1, 0, 7, 3, 2, 6] {
            count += u64::from(marked);
            assert_eq!(ace.heard(carrying(count)), Some(marked));
        }
    }

    #[test]
    fn the_handshake_reports_marks_of_its_own_packets() {
        // Not-ECT, ECT(1), ECT(0), CE: tables 2 and 3.
        for (value, marked) in [(0b010, 0), (0b011, 0), (0b100, 0), (0b110, 1)] {
            let [mut opener, mut other] = Ace::of_handshake(carrying(value));
            assert_eq!(other.heard(SYN | carrying(value)), Some(marked));
            assert_eq!(other.heard(carrying(5 + u64::from(marked))), Some(0));
            assert_eq!(opener.heard(carrying(value)), Some(marked));
            assert_eq!(opener.heard(carrying(6 + u64::from(marked))), Some(1));
        }
    }

    #[test]
    fn a_field_that_the_path_clears_reports_nothing() {
        let [mut opener, _] = Ace::of_handshake(carrying(0b010));
        assert_eq!(opener.heard(carrying(0)), None);
        assert_eq!(opener.heard(carrying(3)), None);
    }
}
